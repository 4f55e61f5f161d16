"""The help: all keys and commands on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from late.tui.canvas import prefixed, text, wrapped
from late.tui.slash import COMMANDS

if TYPE_CHECKING:
    from rich.text import Text
    from textual.app import ComposeResult

    from late.tui.theme import Palette

KEYS_WIDTH = 32
"""Columns for the names of keys."""
SECTIONS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Writing",
        (
            ("Enter", "send; while an agent works the message waits for its next turn"),
            ("Shift+Enter  Alt+Enter  Ctrl+J", "new line; a \\ before Enter does the same"),
            ("Up  Down", "earlier messages, from the first and the last row"),
            ("Tab", "complete a /command"),
        ),
    ),
    (
        "Deciding",
        (
            ("F2  Ctrl+T", "go to the decision that is waited for, in whatever agent"),
            ("y  s  p  g", "allow once, for the session, in the project, everywhere"),
            ("e", "open the plan in $EDITOR"),
            ("n", "deny, or reject the plan, with words if you like"),
            ("Esc", "leave the card; letters go to the input"),
        ),
    ),
    (
        "Reading",
        (
            ("PgUp  PgDn  wheel", "scroll"),
            ("Home  End", "start and end, while nothing is written; End follows the output again"),
            ("Ctrl+O", "open or close all results and thoughts; a click opens one"),
            ("Tab  Ctrl+Right  Ctrl+Left", "next and previous agent, while nothing is written"),
            ("mouse  Ctrl+C", "select and copy; Shift+mouse selects as the terminal does"),
        ),
    ),
    (
        "Stopping",
        (
            ("Esc Esc", "stop the agent in front"),
            ("Ctrl+G", "stop it at once"),
            ("Ctrl+C", "clear the input; twice quits"),
            ("Ctrl+D  Ctrl+Q", "quit; the session is kept"),
            ("Ctrl+R", "look for the server now"),
        ),
    ),
)


def help_text(palette: Palette, width: int) -> Text:
    """The page, `width` cells wide; where that is little, what a key does stands below it."""
    lines: list[Text] = []
    for title, rows in (*SECTIONS, ("Commands", tuple((c.name, c.words) for c in COMMANDS))):
        if lines:
            lines.append(text())
        lines.append(text(title, palette.primary + palette.strong.without_color))
        for keys, words in rows:
            explained = text(words, palette.text)
            if width >= 2 * KEYS_WIDTH:
                name = text(f"  {keys:<{KEYS_WIDTH}}", palette.accent)
                lines.extend(prefixed(wrapped(explained, width - name.cell_len), name))
            else:
                lines.append(text(f"  {keys}", palette.accent))
                indent = text("    ")
                lines.extend(prefixed(wrapped(explained, width - 4), indent, indent))
    page = text("\n").join(lines)
    page.end = ""
    return page


class HelpScreen(ModalScreen[None]):
    """Shown above the transcript; any of its keys closes it."""

    DEFAULT_CSS = """
    HelpScreen {
        align: center middle;
        background: $background 60%;
        & > VerticalScroll {
            width: 100;
            max-width: 96%;
            height: auto;
            max-height: 94%;
            border: round $primary;
            border-title-color: $primary;
            border-subtitle-color: $late-muted;
            padding: 1 2;
            background: $background;
            scrollbar-size-vertical: 1;
            scrollbar-gutter: stable;
        }
    }
    """
    BINDINGS: ClassVar[list[Binding]] = [Binding("escape,f1,q,enter,ctrl+c", "dismiss", show=False)]

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette

    def compose(self) -> ComposeResult:  # noqa: D102
        page = VerticalScroll(Static())
        page.border_title = "late · keys and commands"
        page.border_subtitle = "Esc closes"
        yield page

    def on_resize(self) -> None:
        """Draw the page for the present width."""
        page = self.query_one(VerticalScroll)
        width = page.scrollable_content_region.width or self.size.width
        self.query_one(Static).update(help_text(self._palette, max(1, width)))
