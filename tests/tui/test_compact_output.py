"""The compacting driver sends fewer bytes for the same picture."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from late.tui.driver import compacted

WIDTH, HEIGHT = 40, 6
_TOKEN = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|([\s\S])")


def picture(data: str) -> list[list[tuple[str, str]]]:  # noqa: C901 - a terminal has many commands
    """What a terminal shows after some output: character and style of each cell."""
    grid = [[(" ", "")] * WIDTH for _ in range(HEIGHT)]
    x = y = 0
    attributes: list[str] = []
    foreground = background = ""
    for match in _TOKEN.finditer(data):
        numbers, letter, character = match.groups()
        style = ";".join([*attributes, foreground, background])
        if character == "\n":
            y = min(HEIGHT - 1, y + 1)
        elif character == "\r":
            x = 0
        elif character is not None:
            grid[y][min(x, WIDTH - 1)] = (character, style)
            x = min(WIDTH - 1, x + 1)
        elif letter == "H":
            row, column = numbers.split(";")
            x, y = int(column) - 1, int(row) - 1
        elif letter == "C":
            x = min(WIDTH - 1, x + int(numbers))
        elif letter == "X":
            assert not attributes, "cells are only erased in a style without attributes"
            for cell in range(x, min(WIDTH, x + int(numbers))):
                grid[y][cell] = (" ", style)
        elif letter == "m":
            codes = numbers.split(";")
            while codes:
                code = codes.pop(0)
                if code in ("0", ""):
                    attributes, foreground, background = [], "", ""
                elif code == "38":
                    foreground, codes = "38;" + ";".join(codes[:4]), codes[4:]
                elif code == "48":
                    background, codes = "48;" + ";".join(codes[:4]), codes[4:]
                else:
                    attributes.append(code)
    return grid


_COLOURS = st.sampled_from(["1;2;3", "9;9;9", "200;0;7"])
_STYLES = st.builds(
    lambda attributes, fore, back: f"{attributes}38;2;{fore};48;2;{back}",
    st.sampled_from(["", "", "", "1;", "3;7;"]), _COLOURS, _COLOURS,
)  # fmt: skip
_SEGMENTS = st.lists(st.tuples(_STYLES, st.sampled_from(["ab", "x", " " * 14, "end" + " " * 20, "   "])), max_size=5)


def frame(rows: list[list[tuple[str, str]]]) -> str:
    """A frame as Textual writes it."""
    lines = []
    for number, segments in enumerate(rows, 1):
        painted = "".join(f"\x1b[{style}m{text}\x1b[0m" for style, text in segments)
        lines.append(f"\x1b[{number};1H{painted}")
    return "\n".join(lines)


@settings(max_examples=150, deadline=None)
@given(rows=st.lists(_SEGMENTS, max_size=HEIGHT), erase=st.booleans())
def test_the_picture_is_the_same(rows: list[list[tuple[str, str]]], erase: bool) -> None:
    data = frame(rows)
    small = compacted(data, erase=erase)
    assert picture(small) == picture(data)
    assert len(small) <= len(data)


def test_a_row_of_plain_text_loses_its_resets_and_blanks() -> None:
    style, other = "38;2;1;2;3;48;2;9;9;9", "38;2;4;5;6;48;2;9;9;9"
    data = f"\x1b[{style}mab\x1b[0m\x1b[{style}mcd\x1b[0m\x1b[{other}mef{' ' * 20}\x1b[0m"
    assert compacted(data) == f"\x1b[{style}mabcd\x1b[38;2;4;5;6mef\x1b[20X\x1b[20C\x1b[0m"
