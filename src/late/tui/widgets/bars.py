"""The two one-row widgets: agent tabs above the transcript and the status line below the input."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from late.tui.canvas import cut, strips, text
from late.tui.state import BUSY
from late.tui.statusline import status_line

if TYPE_CHECKING:
    from rich.text import Text
    from textual import events

    from late.tui.state import AgentView, ScreenState
    from late.tui.theme import Palette


class _Row(Widget):
    DEFAULT_CSS = """
    _Row { height: 1; width: 1fr; background: $background; }
    """
    ALLOW_SELECT = False

    def __init__(self, state: ScreenState, palette: Palette) -> None:
        super().__init__()
        self.state = state
        self.palette = palette
        self._shown: Text | None = None

    def renew(self) -> None:
        """Paint the row again if it says something else now."""
        if self.size.width and self.line(self.size.width) != self._shown:
            self.refresh()

    def line(self, width: int) -> Text:
        """The row's content."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y or width <= 0:
            return Strip.blank(max(0, width), self.rich_style)
        self._shown = self.line(width)
        strip = strips([self._shown])[0]
        return strip.apply_style(self.rich_style).crop_extend(0, width, self.rich_style)


class StatusBar(_Row):
    """State, context, model, speed, directory."""

    def __init__(self, state: ScreenState, palette: Palette, directory: str) -> None:
        super().__init__(state, palette)
        self.view: AgentView = state.planner
        self.directory = directory
        self.words = ""
        """Shown in the place of the activity."""
        self.clock = time.monotonic

    def line(self, width: int) -> Text:  # noqa: D102
        return status_line(
            self.state,
            self.view,
            now=self.clock(),
            width=width,
            directory=self.directory,
            palette=self.palette,
            flash=self.words,
        )


class Tabs(_Row):
    """The agents, shown as soon as there is more than the planner."""

    DEFAULT_CSS = """
    Tabs { display: none; background: $surface; }
    Tabs.-several { display: block; }
    """

    class Chosen(Message):
        """The person clicked on an agent."""

        def __init__(self, agent_id: str) -> None:
            super().__init__()
            self.agent_id = agent_id

    def __init__(self, state: ScreenState, palette: Palette) -> None:
        super().__init__(state, palette)
        self.front = state.planner.agent_id
        self._spans: list[tuple[int, int, str]] = []

    def line(self, width: int) -> Text:  # noqa: D102
        cells = [(agent.agent_id, self._cell(agent)) for agent in self.state.agents.values()]
        first = self._first_visible(cells, width)
        line = text("‹" if first else " ", self.palette.muted)
        self._spans = []
        for agent_id, cell in cells[first:]:
            self._spans.append((line.cell_len, line.cell_len + cell.cell_len, agent_id))
            line.append_text(cell)
            line.append(" ")
        hint = text("Tab next agent ", self.palette.muted)
        if line.cell_len + hint.cell_len < width:
            line.append(" " * (width - line.cell_len - hint.cell_len))
            line.append_text(hint)
        return cut(line, width)

    def _first_visible(self, cells: list[tuple[str, Text]], width: int) -> int:
        """The first tab to draw so that the one in front is on the screen."""
        front = next((index for index, (agent_id, _) in enumerate(cells) if agent_id == self.front), 0)
        first, used = front, cells[front][1].cell_len + 2 if cells else 0
        while first > 0 and used + cells[first - 1][1].cell_len + 1 <= width:
            first -= 1
            used += cells[first][1].cell_len + 1
        return first

    def _cell(self, agent: AgentView) -> Text:
        palette = self.palette
        in_front = agent.agent_id == self.front
        if agent.activity == "waiting":
            mark, style = "?", palette.warning
        elif agent.activity in BUSY:
            mark, style = "●", palette.primary
        elif agent.outcome is None:
            mark, style = "○", palette.muted
        else:
            mark, style = {
                "done": ("✓", palette.success),
                "unverified": ("~", palette.warning),
                "cancelled": ("-", palette.muted),
            }.get(agent.outcome, ("✗", palette.error))
        cell = text(f" {mark} ", style)
        cell.append(f"{agent.agent_id} ", palette.strong if in_front else palette.muted)
        if agent.step is not None:
            cell.append(f"step {agent.step} ", palette.muted)
        if in_front:
            cell.stylize_before(palette.selection)
        return cell

    def on_click(self, event: events.Click) -> None:
        """Bring the agent under the pointer to the front."""
        for start, end, agent_id in self._spans:
            if start <= event.x < end:
                self.post_message(self.Chosen(agent_id))
                return
