"""The card that asks for a decision.

It answers to letters only while it has the focus, and it never takes the focus from somebody who types: when it comes
up by itself it waits for `ARMING_S`, and a letter that comes before goes to the input as the person meant it.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, ClassVar, Literal

from textual import events
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from late.tui.canvas import Canvas, cut, folded, strips, text, wrapped
from late.tui.diff import diff_lines, is_diff
from late.tui.plain import escaped
from late.tui.state import ARMING_S
from late.tui.widgets.field import Field

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.text import Text
    from textual.app import ComposeResult

    from late.tui.state import Approval
    from late.tui.theme import Palette

_SCOPE_KEYS = {"once": "y", "session": "s", "project": "p", "global": "g"}
_SCOPE_WORDS = {
    "once": "allow once",
    "session": "for this session",
    "project": "in this project",
    "global": "everywhere",
}
MAX_DETAIL = 400
"""Lines of the detail that are drawn; nobody reads more before a decision, and the rest is said to be there."""


class _Detail(ScrollView, can_focus=False):
    DEFAULT_CSS = """
    _Detail { height: 1; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; background: transparent; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._strips: list[Strip] = []

    def fill(self, lines: list[Strip], width: int, height: int) -> None:
        self._strips = lines
        self.styles.height = max(1, min(len(lines), height))
        self.virtual_size = Size(width, len(lines))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        row = y + self.scroll_offset.y
        strip = self._strips[row] if row < len(self._strips) else Strip.blank(0)
        width = self.size.width
        return strip.apply_style(self.rich_style).crop_extend(0, width, self.rich_style).apply_offsets(0, row)

    def get_selection(self, selection: object) -> tuple[str, str] | None:
        from textual.selection import Selection

        if not isinstance(selection, Selection):
            return None
        return selection.extract("\n".join(strip.text.rstrip() for strip in self._strips)), "\n"


class _Options(Widget):
    DEFAULT_CSS = """
    _Options { height: auto; }
    """
    ALLOW_SELECT = False

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Text] = []
        self.spans: list[tuple[int, int, int, str]] = []
        """Row, first and last column, and key of each choice."""

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.lines)

    def render_line(self, y: int) -> Strip:
        strip = strips([self.lines[y]])[0] if y < len(self.lines) else Strip.blank(0)
        return strip.apply_style(self.rich_style).crop_extend(0, self.size.width, self.rich_style)

    def on_click(self, event: events.Click) -> None:
        for row, start, end, key in self.spans:
            if row == event.y and start <= event.x < end and isinstance(self.parent, ApprovalCard):
                self.parent.choose(key)


class Words(Field):
    """Where the reason for a no is written."""

    DEFAULT_CSS = """
    Words {
        height: auto; max-height: 4; border: none; padding: 0; background: $panel; display: none;
        &:focus { border: none; }
        & .text-area--placeholder { color: $late-muted; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "done(True)", show=False),
        Binding("escape", "done(False)", show=False),
    ]

    def __init__(self) -> None:
        super().__init__("Why, or what instead? Enter sends the no, also without words. Esc goes back.")

    def action_done(self, sent: bool) -> None:
        """Leave the field, with or without sending it."""
        if isinstance(self.parent, ApprovalCard):
            self.parent.words_done(sent=sent)


class ApprovalCard(Vertical, can_focus=True, can_focus_children=True):
    """Shows one approval and takes the answer."""

    DEFAULT_CSS = """
    ApprovalCard {
        height: auto;
        display: none;
        border: round $panel;
        border-title-color: $warning;
        border-subtitle-color: $late-muted;
        padding: 0 1;
        margin: 0;
        background: $background;
        &.-shown { display: block; }
        &:focus { border: round $warning; }
    }
    """

    class Decided(Message):
        """The person chose."""

        def __init__(
            self,
            card: ApprovalCard,
            approval: Approval,
            choice: Literal["approve", "deny", "edit"],
            detail: str = "",
        ) -> None:
            super().__init__()
            self.card = card
            self.approval = approval
            self.choice = choice
            self.detail = detail
            """The scope of a yes, the words of a no."""

    def __init__(self, palette: Palette, pass_on: Callable[[str], None]) -> None:
        """Make a card.

        Args:
            palette: Its colours.
            pass_on: Takes a letter that is no answer, and the focus with it. It is called and not told by a message,
                so that no later letter comes before this one.
        """
        super().__init__()
        self.palette = palette
        self.by_itself = False
        """The focus was taken without the person having asked for it."""
        self._pass_on = pass_on
        self.approval: Approval | None = None
        self.edited = False
        """The plan's file was changed in the editor."""
        self.problem = ""
        """Why the last answer was not taken."""
        self._armed_at = 0.0
        self.clock = time.monotonic

    def compose(self) -> ComposeResult:  # noqa: D102
        yield _Detail()
        yield _Options()
        yield Words()

    def show(self, approval: Approval | None) -> None:
        """Ask for another decision, or for none."""
        if approval is not self.approval:
            self.approval = approval
            self.edited = False
            self.problem = ""
            self._show_words(shown=False)
            self.query_one(_Detail).scroll_to(y=0, animate=False)
        self.set_class(approval is not None, "-shown")
        self.draw()

    def take_focus(self, *, by_itself: bool) -> None:
        """Get the keys; when nobody asked for it, only after a moment without keys."""
        self.by_itself = by_itself
        self._armed_at = self.clock() + (ARMING_S if by_itself else 0.0)
        self.screen.set_focus(self)

    def rearm(self) -> None:
        """Wait again before keys are taken, if the person did not ask for the card."""
        if self.by_itself:
            self._armed_at = max(self._armed_at, self.clock() + ARMING_S)

    def draw(self) -> None:
        """Draw for the present width."""
        approval = self.approval
        width = self.content_size.width or self.screen.size.width - 4
        if approval is None or width <= 0:
            return
        canvas = Canvas(max(1, width - 1), self.palette)
        self.border_title = (
            "Approve this plan?" if approval.kind == "plan" else f"{escaped(approval.agent_id)} asks to run a tool"
        )
        limit = max(1, int(self.screen.size.height * 0.4) - 2)
        self.query_one(_Detail).fill(strips(self._content(approval, canvas)), width, limit)
        options = self.query_one(_Options)
        options.lines, options.spans = self._choices(approval, width)
        options.refresh(layout=True)
        self.border_subtitle = "" if self.holds_focus else "F2 to answer"

    @property
    def holds_focus(self) -> bool:
        """Whether the card or its field has the focus."""
        return self.has_focus or self.query_one(Words).has_focus

    def _content(self, approval: Approval, canvas: Canvas) -> list[Text]:
        palette = self.palette
        lines: list[Text] = []
        if approval.kind == "plan" or approval.title.removeprefix("$ ") != approval.detail.strip():
            lines.extend(wrapped(text(escaped(approval.title).replace("\n", " "), palette.strong), canvas.width))
        if approval.reason:
            lines.extend(wrapped(text(escaped(approval.reason), palette.muted), canvas.width))
        if approval.kind == "plan":
            steps = f"{approval.steps} steps" if approval.steps != 1 else "one step"
            words = "changed in the editor" if self.edited else f"{steps}, shown above"
            lines.append(text(words, palette.warning if self.edited else palette.muted))
        elif approval.detail.strip():
            if lines:
                lines.append(text())
            lines.extend(self._detail(approval.detail, canvas))
        if approval.pattern and len(approval.scopes) > 1:
            lines.append(text())
            lines.extend(wrapped(text(f"More than once covers: {escaped(approval.pattern)}", palette.muted),
                                 canvas.width))  # fmt: skip
        if self.problem:
            lines.extend(wrapped(text(escaped(self.problem), palette.error), canvas.width))
        return lines

    def _detail(self, detail: str, canvas: Canvas) -> list[Text]:
        detail = escaped(detail.rstrip())
        if is_diff(detail):
            lines = diff_lines(detail, canvas)
        else:
            lines = [piece for row in detail.split("\n") for piece in folded(row, canvas.width, self.palette.accent)]
        if len(lines) > MAX_DETAIL:
            rest = text(f"… {len(lines) - MAX_DETAIL} more lines are not shown", self.palette.warning)
            lines = [*lines[:MAX_DETAIL], rest]
        return lines

    def _choices(self, approval: Approval, width: int) -> tuple[list[Text], list[tuple[int, int, int, str]]]:
        palette = self.palette
        choices: list[tuple[str, str]] = []
        if approval.kind == "plan":
            choices = [("y", "approve" + (" the edited plan" if self.edited else "")), ("e", "edit"), ("n", "reject")]
        else:
            choices = [(_SCOPE_KEYS[scope], _SCOPE_WORDS[scope]) for scope in approval.scopes if scope in _SCOPE_KEYS]
            choices.append(("n", "deny"))
        lines, spans = [text()], list[tuple[int, int, int, str]]()
        active = self.holds_focus
        for key, words in choices:
            choice = text(f" {key} ", palette.warning + palette.selection if active else palette.muted)
            choice.append(f" {words}", palette.text if active else palette.muted)
            if lines[-1].cell_len and lines[-1].cell_len + choice.cell_len + 3 > width:
                lines.append(text())
            if lines[-1].cell_len:
                lines[-1].append("   ")
            spans.append((len(lines) - 1, lines[-1].cell_len, lines[-1].cell_len + choice.cell_len, key))
            lines[-1].append_text(choice)
        return [cut(line, width) for line in lines], spans

    # Keys

    async def _on_key(self, event: events.Key) -> None:
        if not self.has_focus:
            return
        event_key = event.key
        if event_key in {"up", "down"}:
            self.query_one(_Detail).scroll_relative(y=-1 if event_key == "up" else 1, animate=False)
        elif not event.is_printable or event.character is None:
            return
        elif self.clock() < self._armed_at or not self.choose(event.character.lower()):
            # Whoever writes a word must not answer with its next letter, even if that is already on its way here.
            self._armed_at = math.inf
            self._pass_on(event.character)
        event.stop()
        event.prevent_default()

    def choose(self, key: str) -> bool:
        """Take an answer; false when the key is none of the choices."""
        approval = self.approval
        if approval is None:
            return False
        if key == "n":
            self._show_words(shown=True)
            return True
        if approval.kind == "plan":
            if key not in {"y", "e"}:
                return False
            self.post_message(self.Decided(self, approval, "approve" if key == "y" else "edit", "once"))
            return True
        scope = next((scope for scope in approval.scopes if _SCOPE_KEYS.get(scope) == key), None)
        if scope is None:
            return False
        self.post_message(self.Decided(self, approval, "approve", scope))
        return True

    def words_done(self, *, sent: bool) -> None:
        """The field for the words was left."""
        content = self.query_one(Words).text.strip()
        self._show_words(shown=False)
        if sent and self.approval is not None:
            self.post_message(self.Decided(self, self.approval, "deny", content))

    def _show_words(self, *, shown: bool) -> None:
        words = self.query_one(Words)
        if bool(words.display) == shown:
            return
        words.display = shown
        self.query_one(_Options).display = not shown
        if shown:
            self.screen.set_focus(words)
        else:
            had_focus = words.has_focus
            words.clear()
            if had_focus:
                self.take_focus(by_itself=False)

    def on_descendant_focus(self) -> None:
        """Redraw: which keys answer has changed."""
        self.draw()

    def on_focus(self) -> None:
        """Redraw: the card answers now."""
        self.draw()

    def on_blur(self) -> None:
        """Redraw: the card does not answer now."""
        self.draw()

    def on_resize(self) -> None:
        """Another width means other lines."""
        self.draw()
