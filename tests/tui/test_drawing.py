"""Lines that are drawn without a screen: Markdown, diffs, colours, and text from outside."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from late.tui.canvas import Canvas
from late.tui.diff import counts, diff_lines, is_diff
from late.tui.markdown import StreamedMarkdown
from late.tui.paste import Pastes, is_binary
from late.tui.plain import cleaned, escaped, one_line
from late.tui.theme import DARK, LIGHT, palette_of
from support import scenes

CANVAS = Canvas(60, palette_of(DARK))
DOCUMENT = (
    scenes.ANSWER
    + """
# Heading

- one
  - nested `code`
- two

  still two

> quoted
> words

~~~
fence
~~~
tail with **bold
"""
)


def shown(markdown: StreamedMarkdown, canvas: Canvas = CANVAS) -> list[str]:
    return [strip.text.rstrip() for strip in markdown.strips(canvas)]


@settings(max_examples=30, deadline=None)
@given(cuts=st.lists(st.integers(0, len(DOCUMENT)), max_size=40), looks=st.booleans())
def test_markdown_looks_the_same_however_it_was_cut_into_fragments(cuts: list[int], looks: bool) -> None:
    streamed = StreamedMarkdown()
    edges = [0, *sorted(cuts), len(DOCUMENT)]
    for start, end in pairwise(edges):
        streamed.append(DOCUMENT[start:end])
        if looks:
            streamed.strips(CANVAS)
    streamed.finish()
    assert shown(streamed) == shown(StreamedMarkdown(DOCUMENT, finished=True))


def test_what_was_committed_is_not_drawn_again() -> None:
    streamed = StreamedMarkdown("First paragraph.\n\nSecond")
    before = streamed.strips(CANVAS)
    streamed.append(" grows")
    after = streamed.strips(CANVAS)
    assert after[0] is before[0]
    assert after[-1].text.rstrip() == "Second grows"


def test_an_open_fence_is_shown_as_it_is_and_coloured_when_it_is_closed() -> None:
    streamed = StreamedMarkdown("```python\ndef f():\n    # **not bold**")
    assert shown(streamed) == [" def f():", "     # **not bold**"]
    plain = len({segment.style for strip in streamed.strips(CANVAS) for segment in strip})
    streamed.append("\n```\n")
    assert shown(streamed) == [" def f():", "     # **not bold**"]
    assert len({segment.style for strip in streamed.strips(CANVAS) for segment in strip}) > plain


@pytest.mark.parametrize("width", [1, 2, 3, 7, 20])
def test_no_line_is_wider_than_the_canvas(width: int) -> None:
    canvas = Canvas(width, CANVAS.palette)
    text = (
        "中文字 `code` | a | b |\n\n| x | y |\n|---|---|\n| 漢字 | long cell text |\n\n- - - - nested\n\n```\n"
        "wide code line\n```"
    )
    for strip in StreamedMarkdown(text, finished=True).strips(canvas):
        assert strip.cell_length <= max(2, width)


def test_a_diff_has_line_numbers_and_no_file_headers() -> None:
    lines = [line.plain.rstrip() for line in diff_lines(scenes.DIFF, CANVAS)]
    assert lines[0] == " 13       count: int"
    assert lines[2].startswith(" 15 -     return sum(round(")
    assert lines[-1] == " 17   def main() -> None:"
    assert not any("---" in line or "+++" in line for line in lines)
    assert counts(scenes.DIFF) == (2, 1)
    assert is_diff(scenes.DIFF)
    assert not is_diff("git commit -m '+ and -'")


def test_removed_lines_that_look_like_a_header_are_kept() -> None:
    diff = "--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1 @@\n--- a comment\n select 1\n"
    assert [line.plain.rstrip() for line in diff_lines(diff, CANVAS)] == ["  1 - -- a comment", "  1   select 1"]


def test_output_loses_its_escape_sequences_and_overwritten_lines() -> None:
    assert cleaned("\x1b[2J\x1b]52;c;aGk=\x07ok\x1b[?1049l") == "ok"
    assert cleaned("10%\r50%\r100%\r\ndone\n") == "100%\ndone\n"
    assert cleaned("a\tb\x00\x07") == "a   b"
    assert cleaned("\x1b]0;never ended") == ""
    assert one_line("\n\n  first \x1b[1mwords\x1b[0m\nsecond") == "first words"


def test_what_is_approved_shows_every_character() -> None:
    assert escaped("rm x\x1b[8m -rf\u202e\u200b\x07") == r"rm x\x1b[8m -rf\u202e\u200b\x07"
    assert escaped("naïve – 漢字") == "naïve – 漢字"
    assert escaped("a\rb") == r"a\x0db"


def test_tokens_are_expanded_once_and_from_left_to_right() -> None:
    pastes = Pastes()
    inner = pastes.take("1\n2\n3\n4\n5")
    outer = pastes.take(f"{inner}\nb\nc\nd")
    other = pastes.take("6\n7\n8\n9\n0")
    assert inner == "[pasted 5 lines]"
    assert outer == "[pasted 4 lines]"
    assert other == "[pasted 5 lines #2]"
    assert pastes.expand(f"{outer} {other} {inner}") == f"{inner}\nb\nc\nd 6\n7\n8\n9\n0 1\n2\n3\n4\n5"
    assert pastes.take("short\r\npaste") == "short\npaste"
    assert pastes.take("x" * 700) == "[pasted 700 characters]"


@pytest.mark.parametrize(("content", "binary"), [
    ("\x7fELF\x00", True),
    ("\x01\x02\x03abc", True),
    ("\ufffd" * 3 + "ab", True),
    ("\x1b[1mcoloured\x1b[0m log\n", False),
    ("日本語\tand text\r\n", False),
    ("", False),
])  # fmt: skip
def test_a_binary_paste_is_told_from_text(content: str, binary: bool) -> None:
    assert is_binary(content) is binary


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)
def test_every_colour_of_text_is_readable_on_its_ground(theme) -> None:
    """WCAG 2.2 asks for a contrast of 4.5."""
    palette = palette_of(theme)
    grounds = [theme.background, theme.surface]
    for name in ("text", "muted", "primary", "secondary", "accent", "success", "warning", "error"):
        for ground in grounds:
            assert contrast(getattr(palette, name).color.get_truecolor(), ground) >= 4.5, (name, ground)
    for style, ground in ((palette.added, palette.added_ground), (palette.removed, palette.removed_ground)):
        assert contrast(style.color.get_truecolor(), ground.bgcolor.get_truecolor().hex) >= 4.5


def contrast(one: object, other: str) -> float:
    from textual.color import Color

    def luminance(color: Color) -> float:
        parts = [value / 255 for value in color.rgb]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    values = sorted((luminance(Color(*one)), luminance(Color.parse(other))))
    return (values[1] + 0.05) / (values[0] + 0.05)
