"""What a file or the files of a folder declare, with line ranges to read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from late.errors import ToolError
from late.tools.base import Effect, Preview, ToolArgs, ToolContext, ToolResult
from late.workspace.area import Area, area_of
from late.workspace.outline import Symbol, language_of, symbols
from late.workspace.ripgrep import list_files
from late.workspace.terminal_text import clean, escaped

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_PARSED = 400
"""Files of a folder that are parsed, about 2 ms each."""
_PER_FILE = (200, 60, 30, 15, 8, 4, 2)
"""Lines shown of one file of a folder, tried in this order until all fits."""
_NOTE_ROOM = 100
"""Characters for what is said about the rest."""


class Args(ToolArgs):
    """Of what."""

    path: str


class Outline:
    """Symbols by tree-sitter."""

    name: ClassVar[str] = "outline"
    description: ClassVar[str] = "Show the classes and functions of a code file or folder, with their line ranges."
    Args: ClassVar[type[ToolArgs]] = Args
    effect: ClassVar[Effect] = "read"

    def label(self, args: Args) -> str:
        """The path."""
        return f"Outline {escaped(args.path or '.')}"

    def paths(self, args: Args) -> tuple[str, ...]:
        """The path."""
        return (args.path or ".",)

    def preview(self, args: Args, context: ToolContext) -> Preview:
        """The path is checked, nothing is read."""
        area_of(context.workspace, args.path)
        return Preview(self.label(args))

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        """Read and list."""
        area = area_of(context.workspace, args.path)
        if area.is_dir:
            return await _of_folder(area, context.cap_chars)
        if language_of(area.relative) is None:
            raise ToolError(
                f"{escaped(args.path)} is in no language that outline understands", "Use read_file or search on it."
            )
        found = _symbols(area, area.relative)
        if not found:
            return ToolResult(f"{escaped(args.path)} declares nothing; use read_file.", {"symbols": 0})
        lines = list(_lines(found))
        text, left = _fitting(lines, context.cap_chars - _NOTE_ROOM)
        more = f"\n[{left:,} more symbols not shown: use search in this file]" if left else ""
        return ToolResult(f"{area.shown(area.relative)}\n{text}{more}", {"symbols": len(found)})


async def _of_folder(area: Area, cap: int) -> ToolResult:
    files = [path for path in await list_files(area) if language_of(path)]
    parsed: dict[str, list[Symbol]] = {}
    for path in files[:_MAX_PARSED]:
        parsed[path] = _symbols(area, path)
        await asyncio.sleep(0)  # others get their turn between two files
    if not parsed:
        raise ToolError(
            f"there is no code file in {area.shown(area.relative) or '.'} that outline understands", "Use list_files."
        )
    total = sum(map(len, parsed.values()))
    skipped = len(files) - len(parsed)
    notes = f"\n[{skipped:,} more files: outline a folder below]" if skipped else ""
    for limit in _PER_FILE:
        text = "\n".join(_of_file(area.shown(path), found, limit) for path, found in parsed.items()) + notes
        if len(text) <= cap:
            return ToolResult(text, {"symbols": total, "files": len(parsed)})
    lines = [f"{area.shown(path)} ({len(found)} symbols)" for path, found in parsed.items()]
    text, left = _fitting(lines, cap - min(_NOTE_ROOM, cap // 3))
    more = f"\n[{left + skipped:,} more files: outline a folder below, or a file]" if left + skipped else ""
    return ToolResult(f"{text}{more}", {"symbols": total, "files": len(parsed)})


def _of_file(name: str, found: list[Symbol], limit: int) -> str:
    """A file's symbols; where there are too many, those of the outer levels go first."""
    shown = found
    for level in range(max((symbol.name.count(".") for symbol in found), default=0), -1, -1):
        if len(shown) <= limit:
            break
        shown = [symbol for symbol in found if symbol.name.count(".") <= level]
    more = [f"… {len(found) - min(len(shown), limit)} more"] if len(found) > min(len(shown), limit) else []
    return "\n".join((name, *(f"  {line}" for line in (*_lines(shown[:limit]), *more))))


def _lines(found: Iterable[Symbol]) -> Iterable[str]:
    for symbol in found:
        indent = "  " * symbol.name.count(".")
        lines = (
            str(symbol.start_line) if symbol.start_line == symbol.end_line else f"{symbol.start_line}-{symbol.end_line}"
        )
        yield f"{lines} {indent}{clean(symbol.signature)}"


def _symbols(area: Area, path: str) -> list[Symbol]:
    try:
        return symbols(area.cwd / path)
    except OSError as error:
        if area.is_dir:  # one of many: it is listed without symbols
            return []
        raise ToolError(f"{area.shown(path)} cannot be read: {error.strerror or error}") from error


def _fitting(lines: list[str], room: int) -> tuple[str, int]:
    kept = 0
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept += 1
    return "\n".join(lines[:kept]), len(lines) - kept
