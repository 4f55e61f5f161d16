"""Which test files have to do with a changed file: by what they import (Python), else by how they are named."""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_MAX_BYTES = 1_000_000
_TEST_NAME = re.compile(
    r"^(test[_-].*|.*[_.-](test|tests|spec|unittest|integrationtest)|(Test[A-Z].*|.*[a-z0-9](Test|Tests|IT|Spec))|.*\.bats)$"
)
"""Of a file's name without its extension: `test_x`, `x_test`, `x.spec`, `x-test`, `TestX`, `XTests`, `XIT`."""
_TEST_FOLDERS = frozenset({"test", "tests", "__tests__", "spec", "testing"})
_IMPORT = re.compile(r"^\s*(?:from\s+(\.*[\w.]*)\s+import\s+([\w, ]+)|import\s+([\w., ]+))", re.MULTILINE)


def test_files_for(changed: str, files: Sequence[str], root: Path) -> list[str]:
    """The test files among `files` (relative, with `/`) that import or are named after `changed`, sorted.

    A changed test file stands for itself. A file that cannot be read imports nothing.
    """
    path = PurePosixPath(changed)
    if _is_test(path):
        return [changed]
    python = path.suffix in {".py", ".pyi"}
    modules = _module_names(path, frozenset(files)) if python else frozenset[str]()
    found: list[str] = []
    for file in files:
        candidate = PurePosixPath(file)
        if not _is_test(candidate) or file == changed:
            continue
        if _named_after(candidate, path) or (
            python and candidate.suffix == ".py" and modules & _imports(candidate, root)
        ):
            found.append(file)
    if not found and path.suffix == ".go":  # a Go package is tested by the files beside it, whatever their names
        found = [file for file in files if file.endswith("_test.go") and PurePosixPath(file).parent == path.parent]
    return sorted(found)


def _is_test(path: PurePosixPath) -> bool:
    if _TEST_NAME.match(path.stem) or path.suffix == ".bats":
        return True
    in_folder = any(part in _TEST_FOLDERS for part in path.parts[:-1])
    code = path.suffix not in {".md", ".txt", ".json", ".toml", ".yaml", ".yml", ".html", ".css", ".snap", ".svg"}
    return in_folder and code and path.suffix != ".py"


def _named_after(test: PurePosixPath, changed: PurePosixPath) -> bool:
    stem = changed.stem
    if stem in {"__init__", "index", "mod", "lib", "main"} and test.parent != changed.parent:
        stem = changed.parent.name or stem
    plain = {stem, f"test_{stem}", f"test-{stem}", f"Test{stem}"}
    ends = ("_test", "_tests", ".test", ".spec", "-test", "_spec", "_unittest", "Test", "Tests", "IT", "Spec")
    return test.stem in plain | {stem + end for end in ends} and _family(test) == _family(changed)


def _family(path: PurePosixPath) -> str:
    """Extensions that test each other share a family."""
    families = {
        "script": {".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts", ".vue", ".svelte"},
        "c": {".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx"},
        "shell": {".sh", ".bash", ".bats"},
        "python": {".py", ".pyi"},
    }
    return next((name for name, suffixes in families.items() if path.suffix in suffixes), path.suffix)


def _module_names(path: PurePosixPath, files: frozenset[str]) -> frozenset[str]:
    """The dotted names under which a Python file can be imported, whichever of its folders is on the path.

    A folder with an `__init__.py` is a package, so what lies in it has no shorter name.
    """
    parts = list(path.with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    names: set[str] = set()
    for start in range(len(parts)):
        above = "/".join(parts[:start])
        if start and f"{above}/__init__.py" in files:
            continue
        names.add(".".join(parts[start:]))
    return frozenset(names)


def _imports(path: PurePosixPath, root: Path) -> frozenset[str]:
    """The dotted names that a Python file imports; `from a import b` counts as `a` and `a.b`."""
    real = root / path
    try:
        if not real.is_file() or real.stat().st_size > _MAX_BYTES:
            return frozenset()
        text = real.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return frozenset()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return _imports_of_broken(text)
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = ".".join(path.parts[: len(path.parts) - node.level]) if node.level else ""
            module = ".".join(part for part in (package, node.module or "") if part)
            found.add(module)
            found.update(f"{module}.{alias.name}".lstrip(".") for alias in node.names)
    return frozenset(found)


def _imports_of_broken(text: str) -> frozenset[str]:
    found: set[str] = set()
    for module, names, plain in _IMPORT.findall(text):
        if plain:
            found.update(name.split(" as ")[0].strip() for name in plain.split(","))
        elif not module.startswith("."):
            found.add(module)
            found.update(f"{module}.{name.split(' as ')[0].strip()}" for name in names.split(","))
    return frozenset(found)
