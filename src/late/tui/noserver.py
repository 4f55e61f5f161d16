"""What is shown while no model server answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from late.tui.blocks import MARGIN, ErrorBlock
from late.tui.canvas import Canvas, cut, prefixed, text, wrapped

if TYPE_CHECKING:
    from rich.text import Text

_WAYS = (
    ("Start a server", "llama-server -m MODEL.gguf --jinja -c 32768 --port 8080"),
    ("Use another one", "OPENAI_BASE_URL=http://host:port late"),
    ("Without a server", "late --local"),
)


class NoServerBlock(ErrorBlock):
    """What was tried, and the ways out."""

    def __init__(self, message: str, hint: str = "") -> None:
        # A hint that says how to start a server says nothing that does not stand below.
        super().__init__(message, "" if "llama-server" in hint else hint)

    def lines(self, canvas: Canvas, *, expanded: bool) -> list[Text]:  # noqa: D102
        palette = canvas.palette
        lines = [*super().lines(canvas, expanded=expanded), text()]
        for what, command in _WAYS:
            row = text(f"  {what:<18}", palette.muted)
            row.append(command, palette.accent)
            lines.append(cut(row, canvas.width))
        words = (
            "late keeps looking and goes on by itself as soon as a server answers; Ctrl+R looks now. "
            "You can write already: messages wait here."
        )
        lines.append(text())
        lines.extend(prefixed(wrapped(text(words, palette.muted), canvas.width - MARGIN), text("  "), text("  ")))
        return lines
