"""What a project and its files declare: symbols, the map for a first message, and the tests of a file."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from late.workspace.covering_tests import test_files_for
from late.workspace.grammars import language_of
from late.workspace.symbols import Symbol, find_symbol, parse_errors, symbols, symbols_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = [
    "Symbol",
    "find_symbol",
    "language_of",
    "parse_errors",
    "symbols",
    "symbols_of",
    "test_files_for",
    "workspace_map",
]

_NAMES_PER_FILE = (40, 20, 10, 5, 3)
"""Tried in this order until the map fits."""


def workspace_map(files: Sequence[str], root: Path, cap_chars: int) -> str:
    """The project at a glance: its paths, sorted, with the top-level symbols behind each code file.

    Where that is longer than `cap_chars`, first the symbols get fewer, then folders are cut with `… N more`, deep
    ones first. The same files always give the same text.
    """
    paths = sorted(set(files))
    if len("\n".join(paths)) <= cap_chars:
        return _with_symbols(paths, root, cap_chars)
    for shown in (16, 8, 4, 2, 1, 0):
        text = _cut_by_folder(paths, shown)
        if len(text) <= cap_chars:
            return text
    for depth in range(max(path.count("/") for path in paths), -1, -1):
        text = _folder_counts(paths, depth)
        if len(text) <= cap_chars:
            return text
    return _cut_lines(_folder_counts(paths, 1), cap_chars)


def _with_symbols(paths: list[str], root: Path, cap_chars: int) -> str:
    names = {path: _top_level(root / path) for path in paths if language_of(path)}
    for limit in _NAMES_PER_FILE:
        text = "\n".join(_line(path, names.get(path, []), limit) for path in paths)
        if len(text) <= cap_chars:
            return text
    lines = dict.fromkeys(paths, "")
    left = cap_chars - len("\n".join(paths))
    for path in paths:
        line = _line(path, names.get(path, []), _NAMES_PER_FILE[-1])
        if len(line) - len(path) <= left:
            left -= len(line) - len(path)
            lines[path] = line
    return "\n".join(lines[path] or path for path in paths)


def _top_level(path: Path) -> list[str]:
    try:
        listed = symbols(path)
    except OSError:  # gone or unreadable: the map still names it
        return []
    top = [symbol for symbol in listed if "." not in symbol.name]
    declared = [symbol.name for symbol in top if symbol.kind not in {"constant", "variable"}]
    names = declared or [symbol.name for symbol in top]
    return list(dict.fromkeys([name for name in names if not name.startswith("_")] or names))


def _line(path: str, names: list[str], limit: int) -> str:
    if not names:
        return path
    more = f", … {len(names) - limit} more" if len(names) > limit else ""
    return f"{path}: {', '.join(names[:limit])}{more}"


def _cut_by_folder(paths: list[str], shown: int) -> str:
    folders = _grouped(paths, lambda path: path.rpartition("/")[0])
    lines: list[str] = []
    for folder, inside in folders.items():
        lines.extend(inside[:shown])
        if len(inside) > shown:
            lines.append(f"{folder + '/' if folder else ''}… {len(inside) - shown} more")
    return "\n".join(lines)


def _folder_counts(paths: list[str], depth: int) -> str:
    folders = _grouped(paths, lambda path: "/".join(path.split("/")[:-1][:depth]))
    return "\n".join(
        f"{folder + '/' if folder else ''}… {len(inside)} file{'' if len(inside) == 1 else 's'}"
        for folder, inside in folders.items()
    )


def _grouped(paths: list[str], key: Callable[[str], str]) -> dict[str, list[str]]:
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        groups[key(path)].append(path)
    return dict(sorted(groups.items()))


def _cut_lines(text: str, cap_chars: int) -> str:
    lines = text.split("\n")
    kept = len(lines)
    while kept and len("\n".join([*lines[:kept], f"… {len(lines) - kept} more folders"])) > cap_chars:
        kept -= 1
    return "\n".join([*lines[:kept], f"… {len(lines) - kept} more folders"])
