"""What the input and the field for a reason share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.strip import Strip
from textual.widgets import TextArea

if TYPE_CHECKING:
    from textual import events


class Field(TextArea):
    """A text area without a timer for its cursor, whose keys are taken in their order."""

    def __init__(self, placeholder: str) -> None:
        super().__init__(soft_wrap=True, tab_behavior="focus", placeholder=placeholder, highlight_cursor_line=False)
        self.cursor_blink = False

    async def _on_key(self, event: events.Key) -> None:
        """Take a key.

        The field's own bindings are run here and not, as Textual does, after the event went up to the application:
        by then the next keys of a fast typist would have overtaken them.
        """
        bindings = self._bindings.key_to_bindings.get(event.key)
        if not bindings:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        await self.run_action(bindings[-1].action)

    def render_line(self, y: int) -> Strip:
        """Draw a line; Textual cannot wrap a placeholder into no width at all."""
        return super().render_line(y) if self.content_size.width > 0 else Strip.blank(max(0, self.size.width))
