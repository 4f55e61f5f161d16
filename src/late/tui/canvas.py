"""What a block is drawn on: a width, a palette, and the few ways in which text becomes lines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from io import StringIO
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

if TYPE_CHECKING:
    from collections.abc import Iterable

    from late.tui.theme import Palette

BLANK = Strip.blank(0)
"""An empty line; the same object everywhere, so that a comparison of lines is quick."""


@lru_cache(maxsize=1)
def _console() -> Console:
    """Only used to split text into segments; the driver decides which colours the terminal gets."""
    return Console(file=StringIO(), force_terminal=True, color_system="truecolor", width=1000, legacy_windows=False)


@dataclass(frozen=True, slots=True)
class Canvas:
    """The width in cells and the colours that a block is drawn with; a drawing is only good for its own canvas."""

    width: int
    palette: Palette

    def narrowed(self, cells: int) -> Canvas:
        """The same canvas with fewer columns, at least one."""
        return Canvas(max(1, self.width - cells), self.palette)


def text(content: str = "", style: Style | None = None) -> Text:
    """A piece of text without the line end that Rich adds by default; what is appended to it has its own style."""
    piece = Text(end="")
    piece.append(content, style)
    return piece


def wrapped(content: Text, width: int) -> list[Text]:
    """The text in lines of at most `width` cells, broken between words where that is possible."""
    lines = content.wrap(_console(), max(1, width), tab_size=4)
    for line in lines:
        line.rstrip()
        line.end = ""
    return list(lines)


def folded(line: str, width: int, style: Style | None = None) -> list[Text]:
    """A line of code or output in pieces of `width` cells; nothing is left out and no blank is lost."""
    width = max(1, width)
    if cell_len(line) <= width:
        return [text(line, style)]
    pieces: list[Text] = []
    while line:
        piece = line[:width]
        if not piece.isascii():
            piece = _longest_fitting(line, width)
        pieces.append(text(piece, style))
        line = line[len(piece) :]
    return pieces


def _longest_fitting(line: str, width: int) -> str:
    used = 0
    for index, character in enumerate(line):
        used += cell_len(character)
        if used > width:
            return line[: max(1, index)]
    return line


def cut(content: Text, width: int) -> Text:
    """The text on one line, with an ellipsis if it does not fit."""
    if width <= 0:
        return text()
    if content.cell_len > width:
        content = content.copy()
        content.truncate(width, overflow="ellipsis")
    return content


def prefixed(lines: Iterable[Text], first: Text, rest: Text | None = None) -> list[Text]:
    """The lines with `first` before the first of them and `rest` (or blanks of the same width) before the others."""
    if rest is None:
        rest = text(" " * first.cell_len)
    return [_joined(rest if index else first, line) for index, line in enumerate(lines)]


def _joined(left: Text, right: Text) -> Text:
    joined = text()
    joined.append_text(left)
    joined.append_text(right)
    return joined


def grounded(line: Text, width: int, ground: Style) -> Text:
    """The line, padded to `width`, on a background."""
    line = line.copy()
    line.pad_right(max(0, width - line.cell_len))
    line.stylize_before(ground)
    return line


def strips(lines: Iterable[Text]) -> list[Strip]:
    """Lines as what Textual's line API draws."""
    console = _console()
    return [Strip(list(line.render(console)), line.cell_len) for line in lines]
