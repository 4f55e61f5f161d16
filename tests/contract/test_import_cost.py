"""What a command must not import. Sets of modules are compared, never milliseconds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "textual",
    "rich",
    "httpx",
    "pydantic",
    "mcp",
    "git",
    "sqlite3",
    "asyncio",
    "tree_sitter",
    "llama_cpp",
    "platformdirs",
}
PROBE = """
import sys
from late.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print("\\n" + " ".join(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def imported(tmp_path: Path, *arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "LATE_DATA_DIR": str(tmp_path)},
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "arguments", [["--version"], ["--help"], ["run", "--help"], ["session", "--help"], ["session", "nonsense"]]
)
def test_version_and_help_import_nothing_but_the_standard_library(tmp_path: Path, arguments: list[str]) -> None:
    found = imported(tmp_path, *arguments)
    assert not found & HEAVY
    assert {name for name in found if name not in sys.stdlib_module_names} <= {"late", "__main__", *bare(tmp_path)}


def bare(tmp_path: Path) -> set[str]:
    """What this interpreter imports by itself, such as hooks of editable installs."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys; print(*{name.partition('.')[0] for name in sys.modules})"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    return set(done.stdout.split())


def test_sessions_are_listed_without_the_screen_the_network_or_git(tmp_path: Path) -> None:
    found = imported(tmp_path, "session", "list")
    assert {"sqlite3", "pydantic"} <= found
    assert not found & {"textual", "rich", "httpx", "mcp", "git", "tree_sitter", "llama_cpp"}


def test_worktrees_need_git_and_no_screen_or_network(tmp_path: Path) -> None:
    found = imported(tmp_path, "worktree", "list")
    assert "git" in found
    assert not found & {"textual", "rich", "httpx", "mcp", "tree_sitter", "llama_cpp"}


def test_importing_the_package_imports_nothing_else(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys; before = set(sys.modules); import late; print(*set(sys.modules) - before)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout.split() == ["late"]
