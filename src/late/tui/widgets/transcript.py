"""The transcript: one widget that draws the blocks of the agent in front."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from late.tui.blocks import Block, ToolBlock
from late.tui.canvas import BLANK, Canvas, cut, strips, text

if TYPE_CHECKING:
    from textual import events
    from textual.reactive import Reactive
    from textual.selection import Selection

    from late.tui.state import AgentView
    from late.tui.theme import Palette

WINDOW = 60
"""Blocks that are drawn at first; older ones are added when the person scrolls to the top."""
WHEEL_ROWS = 3
_GAP = [BLANK]


@dataclass
class _Place:
    """Where the person is in one agent's transcript."""

    window: int = WINDOW
    following: bool = True
    scroll_y: int = 0


class Transcript(ScrollView, can_focus=False):
    """Draws blocks by line and follows the end as long as the person is there."""

    DEFAULT_CSS = """
    Transcript {
        height: 1fr;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        padding: 0;
    }
    """
    ALLOW_SELECT = True
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "app.focus_prompt", show=False)]

    class AgentOpened(Message):
        """The person clicked on the card of a subagent."""

        def __init__(self, agent_id: str) -> None:
            super().__init__()
            self.agent_id = agent_id

    def __init__(self, view: AgentView, palette: Palette) -> None:
        super().__init__()
        self.view = view
        self.details = False
        """Whether all results and thoughts are open."""
        self.palette = palette
        self._places: dict[str, _Place] = {}
        self._shown: list[Block] = []
        self._starts: list[int] = [0]
        self._lines: list[list[Strip]] = []
        self._hidden = 0
        self._syncing = False
        self._shifted = False
        """The terminal has moved the rows already."""
        self._new_below = False

    @property
    def following(self) -> bool:
        """Whether the view keeps to the end."""
        return self._place.following

    @property
    def _place(self) -> _Place:
        return self._places.setdefault(self.view.agent_id, _Place())

    def show(self, view: AgentView) -> None:
        """Bring another agent's transcript to the front, where the person left it."""
        if view is self.view:
            return
        self._place.scroll_y = self.scroll_offset.y
        self.view = view
        self._new_below = False
        self._lines = []
        self.sync()
        if not self._place.following:
            self._scroll(self._place.scroll_y)
        self.refresh()

    def set_palette(self, palette: Palette) -> None:
        """Draw everything in other colours."""
        self.palette = palette
        self._lines = []
        self.sync()
        self.refresh()

    def toggle_details(self) -> None:
        """Open or close all results and thoughts."""
        self.details = not self.details
        for block in self.view.blocks:
            block.expanded = None
        self.sync()

    def sync(self) -> None:
        """Draw what changed in the blocks, and keep to the end if the person is there."""
        width = self.scrollable_content_region.width
        if width <= 0 or not self.is_mounted:
            return
        place = self._place
        blocks = [*self.view.blocks, *self.view.queued.values()]
        self._hidden = max(0, len(self.view.blocks) - place.window)
        self._shown = blocks[self._hidden :]
        before, self._lines = self._lines, self._draw(Canvas(width, self.palette))
        first = next(
            (index for index, (old, new) in enumerate(zip(before, self._lines, strict=False)) if old is not new),
            min(len(before), len(self._lines)),
        )
        self._starts = starts = [0]
        for lines in self._lines:
            starts.append(starts[-1] + len(lines))
        if first == len(before) == len(self._lines):
            return
        size = Size(width, starts[-1])
        rows_before = self.virtual_size.height
        dirty = bool(self._repaint_regions)
        self._syncing = True
        try:
            if self.virtual_size != size:
                # Not through the reactive: that would lay out the whole screen for every new line.
                self.set_reactive(cast("Reactive[Size]", Widget.virtual_size), size)
                self._scroll_update(size)
            if place.following:
                self._follow(shift=not dirty)
            elif size.height > rows_before and not self._new_below:
                self._new_below = True
                self.refresh_line(self.scroll_offset.y + self.size.height - 1)
        finally:
            self._syncing = False
        changed = starts[min(first, len(self._lines))]
        if first < len(before) and first < len(self._lines):
            changed += _same(before[first], self._lines[first])
        if changed - self.scroll_offset.y < self.size.height:
            self.refresh_lines(changed, max(1, self.scroll_offset.y + self.size.height - changed))

    def _draw(self, canvas: Canvas) -> list[list[Strip]]:
        drawn: list[list[Strip]] = []
        previous: Block | None = None
        if self._hidden:
            more = text(f"  ▲ {self._hidden} earlier — scroll up or click here", self.palette.muted)
            drawn.append(strips([cut(more, canvas.width)]))
        for block in self._shown:
            lines = block.strips(canvas, details=self.details)
            if previous is not None and not (previous.compact and block.compact):
                drawn.append(_GAP)
            drawn.append(lines)
            previous = block
        if drawn:
            drawn.append(_GAP)
        return drawn

    def _follow(self, *, shift: bool) -> None:
        """Go to the end. Where the terminal can move the rows that stay, only the new ones are painted."""
        from late.tui.driver import shift_rows

        rows = self.max_scroll_y - self.scroll_offset.y
        if shift and 0 < rows < self.size.height - 1 and shift_rows(self, rows):
            self._shifted = True
            self._scroll(self.max_scroll_y)
            self._shifted = False
            self.refresh_lines(self.scroll_offset.y + self.size.height - rows, rows)
        else:
            self._scroll(self.max_scroll_y)

    def _scroll(self, y: float) -> None:
        self.scroll_to(y=y, animate=False, force=True)

    # The person moves

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Notice whether the person is at the end, and add older blocks at the top."""
        if self._shifted:
            self.vertical_scrollbar.position = new_value
            return
        super().watch_scroll_y(old_value, new_value)
        if self._syncing or round(old_value) == round(new_value):
            return
        place = self._place
        was_following = place.following
        place.following = new_value >= self.max_scroll_y - 1
        if place.following:
            self._new_below = False
        if was_following != place.following:
            self.refresh()
        if new_value <= 0 and self._hidden:
            self.call_later(self._load_more)

    def _load_more(self) -> None:
        if not self._hidden:
            return
        rows = self.virtual_size.height
        self._place.window += WINDOW
        self._place.following = False
        new_below = self._new_below
        self.sync()
        self._new_below = new_below
        self._syncing = True
        self._scroll(self.scroll_offset.y + self.virtual_size.height - rows)
        self._syncing = False
        self.refresh()

    def scroll_rows(self, rows: int) -> None:
        """Move by rows; negative is up."""
        self._scroll(self.scroll_offset.y + rows)

    def scroll_pages(self, pages: int) -> None:
        """Move by screens, less two rows to keep the thread."""
        self.scroll_rows(pages * max(1, self.size.height - 2))

    def to_start(self) -> None:
        """Go to the first block that is drawn."""
        self._scroll(0)

    def to_end(self) -> None:
        """Go to the end and stay there."""
        self._place.following = True
        self._new_below = False
        self._scroll(self.max_scroll_y)
        self.refresh()

    def show_block(self, block: Block) -> None:
        """Bring a block's first line to the top if the block does not fit on the screen."""
        for index, lines in enumerate(self._lines):
            if block in self._shown and lines is block.strips(
                Canvas(self.scrollable_content_region.width, self.palette), details=self.details
            ):
                if len(lines) > self.size.height:
                    self._scroll(max(0, self._starts[index] - 1))
                return

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.scroll_rows(-WHEEL_ROWS)

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.scroll_rows(WHEEL_ROWS)

    def on_click(self, event: events.Click) -> None:
        """Open or close the block whose first line was clicked; bottom right goes to the end."""
        if not self.following and event.y == self.size.height - 1 and event.x >= self.size.width - 14:
            self.to_end()
            return
        y = event.y + self.scroll_offset.y
        index = bisect_right(self._starts, y) - 1
        if not 0 <= index < len(self._lines):
            return
        if self._hidden and index == 0:
            self._load_more()
            return
        lines = self._lines[index]
        canvas = Canvas(self.scrollable_content_region.width, self.palette)
        block = next((one for one in self._shown if one.strips(canvas, details=self.details) is lines), None)
        if block is None or y != self._starts[index] or not block.collapsible:
            return
        if isinstance(block, ToolBlock) and block.agent_id and event.chain == 1 and event.x > 4:
            self.post_message(self.AgentOpened(block.agent_id))
            return
        block.expanded = not (self.details if block.expanded is None else block.expanded)
        self.sync()

    def on_resize(self) -> None:
        """Another width means other lines, another height another end."""
        following = self.following
        self.sync()
        if following:
            self.to_end()

    # Drawing and selection

    def render_line(self, y: int) -> Strip:  # noqa: D102
        width = self.size.width
        row = y + self.scroll_offset.y
        base = self.rich_style
        index = bisect_right(self._starts, row) - 1
        if 0 <= index < len(self._lines):
            strip = self._lines[index][row - self._starts[index]]
            if (selection := self.text_selection) is not None:
                strip = self._selected(strip, row, selection)
            strip = strip.apply_style(base).crop_extend(0, width, base).apply_offsets(0, row)
        else:
            strip = Strip.blank(width, base)
        if y == self.size.height - 1 and not self.following:
            strip = self._with_hint(strip, width)
        return strip

    def _with_hint(self, strip: Strip, width: int) -> Strip:
        style = (self.palette.accent if self._new_below else self.palette.muted) + self.palette.user_ground
        hint = strips([text(" ↓ new · End " if self._new_below else " ↓ End ", style)])[0]
        if width < hint.cell_length + 4:
            return strip
        return Strip.join([strip.crop(0, width - hint.cell_length - 1), hint, strip.crop(width - 1)])

    def _selected(self, strip: Strip, row: int, selection: Selection) -> Strip:
        span = selection.get_span(row)
        if span is None:
            return strip
        length = len(strip.text)
        start, end = span
        end = length if end == -1 else min(end, length)
        if start >= end:
            return strip
        cells = [strip.index_to_cell_position(start), strip.index_to_cell_position(end), strip.cell_length]
        before, inside, after = strip.divide(cells)
        marked = Strip([segment._replace(style=(segment.style or self.palette.text) + self.palette.selection)
                        for segment in inside], inside.cell_length)  # fmt: skip
        return Strip.join([before, marked, after])

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, without the blanks that fill lines up."""
        content = "\n".join(strip.text for lines in self._lines for strip in lines)
        extracted = selection.extract(content)
        return "\n".join(line.rstrip() for line in extracted.split("\n")), "\n"

    def selection_updated(self, selection: Selection | None) -> None:  # noqa: D102
        self.refresh()


def _same(old: list[Strip], new: list[Strip]) -> int:
    """How many lines at the start of two drawings are the same."""
    count = 0
    for one, other in zip(old, new, strict=False):
        if one is not other and one != other:
            break
        count += 1
    return count
