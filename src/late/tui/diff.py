"""A unified diff as lines with numbers and colours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from late.tui.canvas import Canvas, folded, grounded, text
from late.tui.plain import cleaned

if TYPE_CHECKING:
    from rich.style import Style
    from rich.text import Text

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)")
_HEADERS = ("--- ", "+++ ", "diff --git", "index ", "new file", "deleted file", "similarity ", "rename ")


def is_diff(content: str) -> bool:
    """Whether a text is a unified diff and not something else that has `+` and `-` in it."""
    return any(_HUNK.match(line) for line in content.split("\n", 60)[:60])


def diff_lines(diff: str, canvas: Canvas) -> list[Text]:
    """Draw a diff: old numbers before removed lines, new numbers before all others, file headers left out."""
    palette = canvas.palette
    lines: list[Text] = []
    old = new = 0
    in_hunk = False
    digits = _number_width(diff)
    for row in diff.splitlines():
        hunk = _HUNK.match(row)
        if hunk:
            if in_hunk:
                lines.append(text(" " * digits + " ⋯", palette.faint))
            old, new, in_hunk = int(hunk[1]), int(hunk[2]), True
        elif not in_hunk:
            if not row.startswith(_HEADERS) and row.strip():
                lines.extend(folded(cleaned(row), canvas.width, palette.muted))
        elif row.startswith("+"):
            lines.extend(_row(new, digits, "+", row[1:], canvas, palette.added, palette.added_ground))
            new += 1
        elif row.startswith("-"):
            lines.extend(_row(old, digits, "-", row[1:], canvas, palette.removed, palette.removed_ground))
            old += 1
        elif row.startswith(("diff --git", "index ")):
            in_hunk = False
        elif row.startswith("\\"):
            lines.append(text(" " * digits + "   " + row[2:], palette.muted))
        else:
            lines.extend(_row(new, digits, " ", row[1:], canvas, palette.text, None))
            old += 1
            new += 1
    return lines


def counts(diff: str) -> tuple[int, int]:
    """Added and removed lines."""
    rows = [row for row in diff.splitlines() if not row.startswith(("+++", "---"))]
    return sum(row.startswith("+") for row in rows), sum(row.startswith("-") for row in rows)


def _number_width(diff: str) -> int:
    last = 0
    for row in diff.splitlines():
        if hunk := _HUNK.match(row):
            last = max(last, int(hunk[1]), int(hunk[2]))
    return max(3, len(str(last + 99)))


def _row(
    number: int, digits: int, sign: str, content: str, canvas: Canvas, style: Style, ground: Style | None
) -> list[Text]:
    pieces = folded(cleaned(content), max(1, canvas.width - digits - 3), style)
    lines: list[Text] = []
    for index, piece in enumerate(pieces):
        line = text(" " * digits if index else f"{number:>{digits}}", canvas.palette.muted)
        line.append(f" {sign} " if not index else "   ", style)
        line.append_text(piece)
        lines.append(grounded(line, canvas.width, ground) if ground is not None else line)
    return lines
