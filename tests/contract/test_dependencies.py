"""What is declared is used, what is used is declared, and the documentation says why."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PROGRAMS = {"ripgrep"}
"""Distributions that are started and not imported."""
FIXED = {"mcp"}
"""Part of the project's fixed set; nothing imports it until tools of MCP servers are there."""
DISTRIBUTIONS = {
    "git": "gitpython",
    "jinja2": "llama-cpp-python",  # which comes with it, and is the only one that hands us its errors
    "llama_cpp": "llama-cpp-python",
    "markdown_it": "markdown-it-py",
}
"""Module → distribution, where their names differ."""


def name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower()


RUNTIME = [name_of(requirement) for requirement in PROJECT["dependencies"]]
LOCAL = [name_of(requirement) for requirement in PROJECT["optional-dependencies"]["local"]]


def imported_modules() -> set[str]:
    """Top-level names of everything that `src/late` imports, at module level or inside of functions."""
    found: set[str] = set()
    for file in (ROOT / "src" / "late").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names=names):
                    found.update(alias.name.partition(".")[0] for alias in names)
                case ast.ImportFrom(module=str(module)):
                    found.add(module.partition(".")[0])
                case ast.Constant(value=str(text)) if re.fullmatch(r"tree_sitter_\w+", text):
                    found.add(text)  # grammars are imported by name, out of a table
                case _:
                    pass
    return found - set(sys.stdlib_module_names) - {"late", "__future__"}


def distribution_of(module: str) -> str:
    return DISTRIBUTIONS.get(module, module.replace("_", "-"))


def test_everything_that_is_imported_is_declared() -> None:
    assert not {distribution_of(module) for module in imported_modules()} - {*RUNTIME, *LOCAL}


def test_everything_that_is_declared_is_used() -> None:
    assert not {*RUNTIME} - {distribution_of(module) for module in imported_modules()} - PROGRAMS - FIXED


@pytest.mark.parametrize("name", [*RUNTIME, *LOCAL])
def test_the_architecture_says_why_a_dependency_is_here(name: str) -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").lower()
    # One line may speak for all grammars.
    assert f"`{name}`" in text or (name.startswith("tree-sitter-") and "`tree-sitter-*`" in text)
