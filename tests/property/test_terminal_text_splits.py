"""Cleaning a stream does not depend on where it was cut."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from late.workspace.terminal_text import TerminalText, clean

PIECES = st.sampled_from(
    [
        "a", "wörld", "日本", "\n", "\r", "\r\n", "\t", "\x1b[31m", "\x1b[0m", "\x1b]52;c;QUJD\x07",
        "\x1b]0;title\x1b\\",
        "\x1b[?1049l", "\x1b[2J", "\x1b(B", "\x1b", "\x1b]", "\x1b[", "\x9b1m", "\x9d", "\x00", "\x00\x00", "x\x08",
        "\x07", "\x7f",
    ]
)  # fmt: skip
SHOWN = set("\n\t") | {" "}


@given(st.lists(PIECES, max_size=40).map("".join), st.lists(st.integers(0, 200), max_size=6))
def test_a_stream_cut_anywhere_gives_the_text_of_the_whole(text: str, cuts: list[int]) -> None:
    data = text.encode()
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    stream = TerminalText()
    parts = [stream.feed(data[start:end]) for start, end in pairwise(edges)]
    assert "".join([*parts, stream.finish()]) == clean(text)


@given(st.binary(max_size=400))
def test_nothing_that_a_terminal_obeys_is_left(data: bytes) -> None:
    stream = TerminalText()
    text = stream.feed(data) + stream.finish()
    assert all(char in SHOWN or not (ord(char) < 32 or 127 <= ord(char) < 160) for char in text)
