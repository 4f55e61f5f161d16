"""The status line's words, as a function of the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from late.tui.blocks import duration
from late.tui.canvas import cut, text
from late.tui.plain import cleaned
from late.tui.state import BUSY, Activity

if TYPE_CHECKING:
    from rich.style import Style
    from rich.text import Text

    from late.tui.state import AgentView, ScreenState
    from late.tui.theme import Palette

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TICK_S = 0.25
"""Seconds between two steps of the spinner and the clock."""
BAR_CELLS = 10
AMBER, RED = 0.60, 0.85
"""Shares of the context window from which its bar changes colour."""
_WORDS: dict[Activity, str] = {
    "starting": "starting",
    "idle": "ready",
    "connecting": "connecting",
    "loading": "server loads the model",
    "unreachable": "no server",
    "paused": "server asked for a pause",
    "prefill": "reading the prompt",
    "thinking": "thinking",
    "answering": "answering",
    "calling": "writing a call",
    "tool": "running",
    "waiting": "waiting for you",
}


def status_line(
    state: ScreenState, view: AgentView, *, now: float, width: int, directory: str, palette: Palette, flash: str = ""
) -> Text:
    """Draw the status of the agent in front, `width` cells wide, at a monotonic time.

    `flash` takes the place of the activity for as long as it is shown. What does not fit is left out, the least
    important first: directory, speeds, model.
    """
    left = text(f" {cleaned(flash)}", palette.accent) if flash else _activity(state, view, now, palette)
    parts = [part for part in _figures(state, view, directory, palette) if part[1].cell_len]
    kept = sorted(parts, key=lambda part: -part[0])
    gap = 3
    while kept and left.cell_len + 2 + sum(part.cell_len + gap for _, part in kept) > width:
        kept.pop()
    right = text()
    for _, part in (part for part in parts if part in kept):
        if right.cell_len:
            right.append("   ")
        right.append_text(part)
    line = cut(left, max(0, width - right.cell_len - 3 if right.cell_len else width))
    line.append(" " * max(0, width - line.cell_len - right.cell_len - 1))
    line.append_text(right)
    return cut(line, width)


def _activity(state: ScreenState, view: AgentView, now: float, palette: Palette) -> Text:
    elsewhere = next((a for a in state.approvals.values() if a.agent_id != view.agent_id), None)
    if elsewhere is not None and view.activity != "waiting":
        return text(f" ? {elsewhere.agent_id} waits for you · F2", palette.warning)
    activity = view.activity
    if activity in BUSY:
        mark = SPINNER[int(now / TICK_S) % len(SPINNER)]
        style = palette.primary
    else:
        mark, style = {
            "waiting": ("?", palette.warning),
            "unreachable": ("✗", palette.error),
            "idle": ("●", palette.success),
        }.get(activity, ("○", palette.muted))
    line = text(f" {mark} ", style)
    if len(state.agents) > 1:
        line.append(f"{view.agent_id} ", palette.muted)
    if view.outcome and activity == "idle":
        line.append(view.outcome.replace("_", " "), palette.text)
        planner = state.planner
        if planner.activity in BUSY:
            line.append(f"   {planner.agent_id}: {planner.doing or _WORDS[planner.activity]}", palette.muted)
        return line
    if activity == "prefill" and view.prefill is not None:
        line.append_text(_prefill(view, now, palette))
        return line
    words = _WORDS[activity]
    if activity == "tool" and view.doing:
        words = cleaned(view.doing)
    elif activity in {"calling", "loading", "unreachable", "paused"} and view.doing:
        words += f": {cleaned(view.doing)}"
    line.append(words, palette.text)
    if activity in BUSY and now - view.since >= 2:
        line.append(f"  {duration(float(int(now - view.since))).replace('.0', '')}", palette.muted)
    return line


def _prefill(view: AgentView, now: float, palette: Palette) -> Text:
    prefill = view.prefill
    if prefill is None or prefill.total <= 0:
        return text(_WORDS["prefill"], palette.text)
    share = prefill.expected(now) / prefill.total
    line = text("reading ", palette.text)
    line.append_text(bar(share, palette.primary, palette))
    line.append(f" {share:.0%}", palette.text)
    remaining = prefill.remaining_s(now)
    if remaining is not None and remaining >= 1:
        line.append(f"  {duration(float(round(remaining))).replace('.0', '')} left", palette.muted)
    if prefill.cached:
        line.append(f"  {prefill.cached / prefill.total:.0%} cached", palette.muted)
    return line


def _figures(state: ScreenState, view: AgentView, directory: str, palette: Palette) -> list[tuple[int, Text]]:
    """The right side's parts with their importance."""
    model = state.model_of(view)
    speeds = text()
    if view.prompt_speed:
        speeds.append(f"read {_short(view.prompt_speed)}", palette.muted)
    if view.decode_speed:
        speeds.append(" · " if speeds.cell_len else "", palette.faint)
        speeds.append(f"write {_short(view.decode_speed)}", palette.muted)
    if speeds.cell_len:
        speeds.append(" t/s", palette.muted)
    return [
        (2, speeds),
        (5, _context(view, model.context_window if model else None, palette)),
        (3, text(cleaned(model.model), palette.text) if model else text()),
        (1, text(cleaned(directory), palette.muted)),
        (4, text("F1 help", palette.muted)),
    ]


def _context(view: AgentView, window: int | None, palette: Palette) -> Text:
    used = view.context_used
    if used is None:
        return text()
    about = "≈" if view.estimated else ""
    if not window:
        return text(f"{about}{tokens(used)} tokens", palette.muted)
    share = used / window
    style: Style = palette.error if share >= RED else palette.warning if share >= AMBER else palette.success
    line = bar(share, style, palette, cells=6)
    line.append(f" {about}{tokens(used)}/{tokens(window)}", style if share >= AMBER else palette.muted)
    return line


def bar(share: float, style: Style, palette: Palette, cells: int = BAR_CELLS) -> Text:
    """A bar of a fixed number of cells."""
    filled = min(cells, max(0, round(share * cells)))
    line = text("━" * filled, style)
    line.append("━" * (cells - filled), palette.faint)
    return line


def tokens(count: float) -> str:
    """A number of tokens in few characters: `812`, `12.4k`, `131k`."""
    if count < 1000:
        return f"{count:.0f}"
    return f"{count / 1000:.1f}k".replace(".0k", "k") if count < 100_000 else f"{count / 1000:.0f}k"


def _short(speed: float) -> str:
    return f"{speed:.1f}" if speed < 10 else f"{speed:,.0f}"
