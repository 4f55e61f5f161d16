"""The input: a text area of one to eight rows with a history."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from late.tui.paste import Pastes, is_binary
from late.tui.widgets.field import Field

if TYPE_CHECKING:
    from textual import events


class Prompt(Field):
    """Enter sends, other newlines stay. Up and Down walk the history from the first and the last row."""

    DEFAULT_CSS = """
    Prompt {
        height: auto;
        min-height: 1;
        max-height: 8;
        border: none;
        border-left: outer $primary;
        padding: 0 1;
        background: $surface;
        scrollbar-size-vertical: 1;
        &:focus { border: none; border-left: outer $primary; }
        &:blur { border-left: outer $panel; }
        & .text-area--cursor-line { background: transparent; }
        & .text-area--placeholder { color: $late-muted; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", show=False),
        Binding("shift+enter,alt+enter,ctrl+j", "newline", show=False),
        Binding("up", "older_or_up", show=False),
        Binding("down", "newer_or_down", show=False),
        Binding("pageup", "app.page(-1)", show=False),
        Binding("pagedown", "app.page(1)", show=False),
        Binding("ctrl+left", "word_or_tab(-1)", show=False),
        Binding("ctrl+right", "word_or_tab(1)", show=False),
        Binding("tab", "complete_or_tab", show=False),
        Binding("home", "home", show=False),
        Binding("end", "end", show=False),
        Binding("ctrl+home,shift+home", "app.transcript_start", show=False),
        Binding("ctrl+end,shift+end", "app.transcript_end", show=False),
        Binding("ctrl+c", "app.copy_clear_or_quit", show=False),
        Binding("ctrl+d", "delete_or_quit", show=False),
    ]

    class Submitted(Message):
        """The person sent something that is not blank; `text` has the pastes in it and keeps blanks before it."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Refused(Message):
        """A paste was no text."""

    class Typed(Message):
        """A key went into the input."""

    def __init__(self, placeholder: str) -> None:
        super().__init__(placeholder)
        self.pastes = Pastes()
        self.past: list[str] = []
        self._position = 0
        self._draft = ""

    def remember(self, content: str) -> None:
        """Add a message to the history."""
        if content and (not self.past or self.past[-1] != content):
            self.past.append(content)
        self._position = len(self.past)

    async def _on_key(self, event: events.Key) -> None:
        self.post_message(self.Typed())
        await super()._on_key(event)

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        if is_binary(event.text):
            self.post_message(self.Refused())
            return
        self.post_message(self.Typed())
        self.insert(self.pastes.take(event.text), maintain_selection_offset=False)
        self.scroll_cursor_visible()

    def action_submit(self) -> None:
        """Send what was written."""
        content = self.text.rstrip()
        if not content:
            return
        if content.endswith("\\") and not content.endswith("\\\\") and self.cursor_location == self.document.end:
            self.action_delete_left()
            self.action_newline()
            return
        self.remember(content)
        self.clear()
        self.post_message(self.Submitted(self.pastes.expand(content)))

    def action_newline(self) -> None:
        """Start a new line."""
        self.insert("\n", maintain_selection_offset=False)
        self.scroll_cursor_visible()

    def action_older_or_up(self) -> None:
        """Up within the text, and from its first row into the history."""
        if self.navigator.is_first_wrapped_line(self.cursor_location) and self._position > 0:
            if self._position == len(self.past):
                self._draft = self.text
            self._recall(self._position - 1)
        else:
            self.action_cursor_up()

    def action_newer_or_down(self) -> None:
        """Down within the text, and from its last row back through the history to the draft."""
        if self.navigator.is_last_wrapped_line(self.cursor_location) and self._position < len(self.past):
            self._recall(self._position + 1)
        else:
            self.action_cursor_down()

    def _recall(self, position: int) -> None:
        self._position = position
        self.text = self.past[position] if position < len(self.past) else self._draft
        self.move_cursor(self.document.end)

    async def action_word_or_tab(self, direction: int) -> None:
        """Move by a word; with nothing written, to the next agent."""
        if not self.text:
            await self.run_action(f"app.cycle_agent({direction})")
        elif direction < 0:
            self.action_cursor_word_left()
        else:
            self.action_cursor_word_right()

    async def action_complete_or_tab(self) -> None:
        """Complete a command; with nothing written, go to the next agent."""
        from late.tui.slash import completed

        if not self.text:
            await self.run_action("app.cycle_agent(1)")
        elif (whole := completed(self.text)) is not None:
            self.text = whole
            self.move_cursor(self.document.end)

    async def action_home(self) -> None:
        """Go to the start of the line; with nothing written, of the transcript."""
        if self.text:
            self.action_cursor_line_start()
        else:
            await self.run_action("app.transcript_start")

    async def action_end(self) -> None:
        """Go to the end of the line; with nothing written, of the transcript."""
        if self.text:
            self.action_cursor_line_end()
        else:
            await self.run_action("app.transcript_end")

    async def action_delete_or_quit(self) -> None:
        """Delete the character under the cursor; with nothing written, quit."""
        if self.text:
            self.action_delete_right()
        else:
            await self.run_action("app.leave")
