"""Showing lines of a file, with their numbers."""

from __future__ import annotations

import asyncio
import unicodedata
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from late.errors import ToolError
from late.tools.base import Effect, Preview, ToolArgs, ToolContext, ToolResult
from late.workspace.files import TextFile, read_bytes
from late.workspace.locate import locate
from late.workspace.outline import find_symbol, symbols
from late.workspace.text import shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LINE_CHARS = 2000
"""Of one line; longer ones are data or generated, and would push everything else out of the context."""
_NOTICE_CHARS = 260
"""Kept free for what is said about lines that are not shown, the path not counted."""
_MOST_CLIP_NOTICES = 3
_BLOCK = 65_536


class Args(ToolArgs):
    """Which lines of which file."""

    path: str
    start_line: int | None = None
    end_line: int | None = None
    symbol: str | None = Field(None, description="e.g. `Cart.total`, in place of lines")


class ReadFile:
    """Lines as `12| text`: number, bar, space, text. An empty line is `12|`."""

    name: ClassVar[str] = "read_file"
    description: ClassVar[str] = "Show a file, or some of its lines, as `12| text`; `12| ` is not in the file."
    Args: ClassVar[type[ToolArgs]] = Args
    effect: ClassVar[Effect] = "read"

    def label(self, args: Args) -> str:
        """E.g. `Read src/app.py:1-80`."""
        if args.symbol:
            return f"Read {args.path} {args.symbol}"
        if args.start_line is None and args.end_line is None:
            return f"Read {args.path}"
        return f"Read {args.path}:{args.start_line or 1}-{args.end_line or ''}"

    def paths(self, args: Args) -> tuple[str, ...]:
        """The file."""
        return (args.path,)

    def preview(self, args: Args, context: ToolContext) -> Preview:
        """Its label.

        Raises:
            ToolError: there is no such file.
        """
        locate(context.workspace, args.path)
        return Preview(self.label(args))

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        """Show the lines, as many as fit.

        Raises:
            ToolError: there is no such file, it is not text, it has no such lines or no such symbol.
        """
        return await asyncio.to_thread(_read, args, context)


def _read(args: Args, context: ToolContext) -> ToolResult:
    path = locate(context.workspace, args.path)
    name = context.workspace.relative(path)
    data = read_bytes(path, name)
    file = TextFile.decode(data, name)
    plain = file.plain
    total = plain.count("\n") + (plain != "" and not file.final_newline)
    details = {"path": name, "start": 0, "end": 0, "total": total, "sha256": sha256(data).hexdigest()}
    if not total:
        context.stamps.record(path, data)
        return ToolResult(f"{name} is empty.", details)
    start, end = _range(args, path, name, total)
    part = _fitting(_lines(plain, start, end), start, context.cap_chars - _NOTICE_CHARS - len(name))
    last = start + len(part.shown) - 1
    whole = start == 1 and last == total and not part.clipped
    context.stamps.record(path, data, None if whole else _between(start, last, part.clipped))
    notices = [*part.notices, *_rest(name, args, last, end, total)]
    if last == total and not file.final_newline:
        notices.append("the last line has no line ending")
    if file.encoding != "utf-8":
        notices.append(f"not UTF-8 but {file.encoding}, which edits keep")
    elif any("\ufffd" in line for line in part.shown) and "\ufffd" not in plain:
        notices.append("U+FFFD stands for bytes that are no UTF-8")
    content = "\n".join([*part.shown, *(f"({notice})" for notice in notices)])
    return ToolResult(content, {**details, "start": start, "end": last})


def _lines(plain: str, first: int, last: int) -> Iterator[str]:
    """Some lines of a text that may have millions."""
    at = _offset(plain, first)
    for _ in range(last - first + 1):
        end = plain.find("\n", at)
        yield plain[at:] if end < 0 else plain[at:end]
        at = end + 1


def _offset(plain: str, line: int) -> int:
    """Where a line begins; whole blocks are passed over first."""
    at, left = 0, line - 1
    while left and (inside := plain.count("\n", at, at + _BLOCK)) < left:
        left -= inside
        at += _BLOCK
    for _ in range(left):
        at = plain.index("\n", at) + 1
    return at


def _range(args: Args, path: Path, name: str, total: int) -> tuple[int, int]:
    """First and last line, from 1."""
    if args.symbol:
        return _lines_of_symbol(path, name, args.symbol)
    start = max(1, args.start_line or 1)
    end = min(total, args.end_line) if args.end_line and args.end_line > 0 else total
    if start > total:
        raise ToolError(f"{name} has {total} lines; there is no line {start}.", f"Use start_line from 1 to {total}.")
    if start > end:
        raise ToolError(f"start_line {start} comes after end_line {end}.", f"{name} has {total} lines.")
    return start, end


def _lines_of_symbol(path: Path, name: str, wanted: str) -> tuple[int, int]:
    symbol = find_symbol(path, wanted)
    if symbol is not None:
        return symbol.start_line, symbol.end_line
    listed = symbols(path)
    if not listed:
        raise ToolError(f"{name} has no symbols that can be read out.", "Use start_line and end_line.")
    short = wanted.replace("::", ".").rsplit(".", 1)[-1].strip("()")
    same = [symbol for symbol in listed if symbol.name.rsplit(".", 1)[-1] == short]
    rows = [f"{symbol.start_line}-{symbol.end_line} {symbol.name}" for symbol in same or listed]
    more = f"\n… {len(rows) - 60} more" if len(rows) > 60 else ""
    problem = f"{name} has several symbols {wanted!r}" if same else f"{name} has no symbol {wanted!r}"
    raise ToolError(
        f"{problem}:\n" + "\n".join(rows[:60]) + more, "Use one of these names, or start_line and end_line."
    )


@dataclass(slots=True)
class _Part:
    shown: list[str] = field(default_factory=list[str])
    clipped: list[int] = field(default_factory=list[int])
    notices: list[str] = field(default_factory=list[str])


def _fitting(lines: Iterator[str], start: int, room: int) -> _Part:
    """Numbered lines as many as fit, and at least one."""
    part = _Part()
    room = max(room, _NOTICE_CHARS)
    for number, line in enumerate(lines, start):
        head = f"{number}| " if line else f"{number}|"
        most = min(_LINE_CHARS, room - len(head)) if not part.shown else _LINE_CHARS
        if part.shown and len(head) + min(len(line), most) > room:
            break
        text = shown(clip(line, most))
        if len(line) > most:
            part.clipped.append(number)
            if len(part.clipped) <= _MOST_CLIP_NOTICES:
                notice = f"line {number} has {len(line):,} characters, only the first {len(text):,} are shown"
                part.notices.append(notice)
                room -= len(notice)
            text += "…"
        part.shown.append(head + text)
        room -= len(head) + len(text) + 1
    return part


def _between(first: int, last: int, without: list[int]) -> list[tuple[int, int]]:
    """The ranges of lines that are left without some."""
    edges = [first - 1, *without, last + 1]
    return [(low + 1, high - 1) for low, high in pairwise(edges) if high - low > 1]


def clip(text: str, most: int) -> str:
    """The beginning of a text, never ending within a character that is composed of several."""
    if len(text) <= most:
        return text
    end = max(0, most)
    while end > 0 and (_joins(text[end]) or text[end - 1] == "\u200d"):
        end -= 1
    return text[:end] if end > most - 64 else text[: max(0, most)]


def _joins(char: str) -> bool:
    """Belongs to the character before: combining marks, joiners, variation selectors, skin tones."""
    return unicodedata.category(char) in {"Mn", "Me", "Mc"} or char == "\u200d" or "\U0001f3fb" <= char <= "\U0001f3ff"


def _rest(name: str, args: Args, last: int, end: int, total: int) -> list[str]:
    if last < end:
        until = f" end_line={end}" if end < total else ""
        return [f"lines {last + 1}–{end} of {total} not shown: read_file path={name} start_line={last + 1}{until}"]
    asked = args.symbol or args.start_line is not None or args.end_line is not None
    return [f"{name} has {total} lines"] if asked and end < total else []
