"""The blocks of a transcript. A block knows what it shows and draws itself as lines; it is no widget.

A transcript of a thousand messages is therefore one widget, and the cost of a repaint does not grow with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from late.tui.canvas import Canvas, cut, folded, grounded, prefixed, strips, text, wrapped
from late.tui.diff import counts, diff_lines
from late.tui.markdown import StreamedMarkdown, markdown_lines
from late.tui.plain import cleaned, one_line

if TYPE_CHECKING:
    from rich.style import Style
    from rich.text import Text
    from textual.strip import Strip

MARGIN = 2
"""Columns before the text of every block; a bar may stand in them."""
MAX_EXPANDED = 2_000
"""Lines of a result that an opened card shows; the log and the result's file have the rest."""


class Block:
    """One thing in a transcript."""

    collapsible: ClassVar[bool] = False
    compact: ClassVar[bool] = False
    """Compact blocks stand below each other without a blank line."""

    def __init__(self) -> None:
        self.expanded: bool | None = None
        """What the person chose for this block; `None` follows the transcript's setting."""
        self._drawn: list[Strip] = []
        self._drawn_for: tuple[Canvas, bool] | None = None

    def changed(self) -> None:
        """The block has to be drawn again."""
        self._drawn_for = None

    def strips(self, canvas: Canvas, *, details: bool = False) -> list[Strip]:
        """The block's lines; drawn only when something changed."""
        expanded = details if self.expanded is None else self.expanded
        key = (canvas, expanded)
        if key != self._drawn_for:
            self._drawn = self.draw(canvas, expanded=expanded)
            self._drawn_for = key
        return self._drawn

    def draw(self, canvas: Canvas, *, expanded: bool) -> list[Strip]:
        """Draw all lines."""
        return strips(self.lines(canvas, expanded=expanded))

    def lines(self, canvas: Canvas, *, expanded: bool) -> list[Text]:
        """The lines as text, for blocks that are not drawn in another way."""
        raise NotImplementedError


@dataclass
class Fact:
    """A line of the welcome: a name and what it is."""

    name: str
    value: str


class WelcomeBlock(Block):
    """What stands in an empty transcript."""

    def __init__(self, version: str) -> None:
        super().__init__()
        self.version = version
        self.facts: list[Fact] = []
        self.advice: list[str] = []

    def lines(self, canvas: Canvas, *, expanded: bool) -> list[Text]:  # noqa: D102
        palette = canvas.palette
        title = text("late", palette.primary + palette.strong.without_color)
        title.append(f"  {self.version}", palette.muted)
        lines = [title, text()]
        width = max((len(fact.name) for fact in self.facts), default=0) + 3
        for fact in self.facts:
            name = text(f"{fact.name:<{width}}", palette.muted)
            lines.extend(prefixed(wrapped(text(fact.value, palette.text), canvas.width - MARGIN - width), name))
        if self.advice:
            lines.append(text())
        for row in self.advice:
            lines.extend(wrapped(text(row, palette.muted), canvas.width - MARGIN))
        return prefixed(lines, text("  "), text("  "))


class UserBlock(Block):
    """A message of the person, or the brief that the planner wrote for a subagent."""

    def __init__(self, content: str, *, source: Literal["person", "planner"] = "person", queued: bool = False) -> None:
        super().__init__()
        self.content = content
        self.source = source
        self.queued = queued

    @property
    def collapsible(self) -> bool:  # type: ignore[override]
        """A brief is shown by its first lines, a person's own words whole unless they are very long."""
        return True

    def lines(self, canvas: Canvas, *, expanded: bool) -> list[Text]:  # noqa: D102
        palette = canvas.palette
        style = palette.muted if self.queued or self.source == "planner" else palette.text
        bar_style = palette.faint if self.queued else palette.secondary if self.source == "planner" else palette.primary
        body: list[Text] = []
        for row in cleaned(self.content).strip("\n").split("\n"):
            body.extend(wrapped(text(row, style), canvas.width - MARGIN - 1) or [text()])
        limit = MAX_EXPANDED if expanded else 6 if self.source == "planner" else 40
        body = _limited(body, limit, canvas)
        if self.queued:
            body.append(text("queued: sent at the next turn", palette.muted + _italic()))
        bar = text("▌ ", bar_style)
        return [grounded(line, canvas.width, palette.user_ground) for line in prefixed(body, bar, bar)]


class TextBlock(Block):
    """An answer of the model, streamed as Markdown."""

    def __init__(self, content: str = "", *, finished: bool = False) -> None:
        super().__init__()
        self.parts = [content] if content else []
        self.finished = finished
        self._markdown = StreamedMarkdown(content, finished=finished, margin=MARGIN)

    def append(self, fragment: str) -> None:
        """Take the next fragment of the answer."""
        self.parts.append(fragment)
        self._markdown.append(fragment)
        self.changed()

    def finish(self, content: str | None = None) -> None:
        """The answer is whole; `content` is what the model said where that differs from the fragments."""
        if content is not None and content != "".join(self.parts):
            self.parts = [content]
            self._markdown = StreamedMarkdown(content, finished=True, margin=MARGIN)
        elif not self.finished:
            self._markdown.finish()
        self.finished = True
        self.changed()

    def draw(self, canvas: Canvas, *, expanded: bool) -> list[Strip]:  # noqa: D102
        return self._markdown.strips(canvas.narrowed(MARGIN))


class ThoughtBlock(Block):
    """The model's thinking: its last lines while it thinks, one line afterwards."""

    collapsible = True
    compact = True

    def __init__(self, content: str = "", *, finished: bool = False) -> None:
        super().__init__()
        self.parts = [content] if content else []
        self.finished = finished
        self.started = 0.0
        self.seconds: float | None = None

    def append(self, fragment: str) -> None:
        """Take the next fragment of the thinking."""
        self.parts.append(fragment)
        self.changed()

    def finish(self, content: str | None = None, time: float = 0.0) -> None:
        """The thinking ended at a Unix `time` (0: not known)."""
        if content:
            self.parts = [content]
        if not self.finished and time and self.started:
            self.seconds = max(0.0, time - self.started)
        self.finished = True
        self.changed()

    def lines(self, canvas: Canvas, *, expanded: bool) -> list[Text]:  # noqa: D102
        palette = canvas.palette
        content = cleaned("".join(self.parts)).strip()
        words = "Thought" if self.finished else "Thinking"
        head = text(f"  {'▾' if expanded else '▸'} {words}", palette.muted)
        if self.seconds is not None and self.seconds >= 1:
            head.append(f" for {duration(self.seconds)}", palette.muted)
        if self.finished and not expanded:
            head.append(f"  {one_line(content)}", palette.muted + _italic())
        lines = [cut(head, canvas.width)]
        if expanded or not self.finished:
            body: list[Text] = []
            tail = content if expanded else content[-4 * canvas.width :]
            style = palette.muted + _italic()
            for row in tail.split("\n"):
                body.extend(wrapped(text(row, style), canvas.width - 4) or [text()])
            bar = text("  │ ", palette.faint)
            lines.extend(prefixed(body[:MAX_EXPANDED] if expanded else body[-3:], bar, bar))
        return lines


ToolState = Literal["writing", "waiting", "running", "ok", "error", "refused", "denied", "cancelled", "interrupted"]
_MARKS: dict[str, str] = {
    "writing": "·",
    "waiting": "?",
    "running": "●",
    "ok": "✓",
    "error": "✗",
    "refused": "✗",
    "denied": "✗",
    "cancelled": "-",
    "interrupted": "-",
}


class ToolBlock(Block):
    """A tool call: what it does, how it ended, and its result or diff."""

    collapsible = True
    compact = True

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.label = ""
        self.state: ToolState = "writing"
        self.written = 0
        """Characters of the arguments so far, while the model still writes them."""
        self.reason = ""
        """Why the policy asks or refuses."""
        self.live: list[str] = []
        self.content = ""
        self.diff = ""
        self.exit_code: int | None = None
        self.output_file = ""
        self.seconds: float | None = None
        self.agent_id: str | None = None
        """The subagent that this call started."""
        self.progress = ""
        """What that subagent does now."""

    def lines(self, canvas: Canvas, *, expanded: bool) -> list[Text]:  # noqa: D102
        body = self._body(canvas.narrowed(4), expanded=expanded)
        bar = text("  │ ", canvas.palette.faint)
        return [self._head(canvas), *prefixed(body, bar, bar)]

    def _head(self, canvas: Canvas) -> Text:
        palette = canvas.palette
        style = {
            "running": palette.primary,
            "waiting": palette.warning,
            "ok": palette.success,
            "error": palette.error,
            "refused": palette.warning,
            "denied": palette.warning,
        }.get(self.state, palette.muted)
        tail = text()
        if self.diff:
            added, removed = counts(self.diff)
            tail.append(f"  +{added}", palette.added)
            tail.append(f" -{removed}", palette.removed)
        if self.state not in {"writing", "running", "ok"} and (self.state != "error" or self.exit_code is None):
            words = {"waiting": "waits for you", "error": "failed"}.get(self.state, self.state)
            tail.append(f"  {words}", style)
        if self.exit_code is not None:
            tail.append(f"  exit {self.exit_code}", palette.muted if self.exit_code == 0 else palette.error)
        if self.seconds is not None and self.seconds >= 1:
            tail.append(f"  {duration(self.seconds)}", palette.muted)
        if self.state == "writing" and self.written:
            tail.append(f"  writing, {self.written:,} characters", palette.muted)
        label = cleaned(self.label or self.name).replace("\n", " ")
        head = text(f"  {_MARKS[self.state]} ", style)
        room = canvas.width - head.cell_len - tail.cell_len
        head.append_text(cut(text(label, palette.text if self.state != "writing" else palette.muted), max(8, room)))
        head.append_text(tail)
        return cut(head, canvas.width)

    def _body(self, canvas: Canvas, *, expanded: bool) -> list[Text]:
        palette = canvas.palette
        lines: list[Text] = []
        if self.reason and not self.content and self.state in {"refused", "denied"}:
            lines.extend(wrapped(text(cleaned(self.reason), palette.muted), canvas.width))
        if self.diff:
            drawn = diff_lines(self.diff, canvas)
            lines.extend(_limited(drawn, MAX_EXPANDED if expanded else 24, canvas))
            if self.state == "ok" and not expanded:
                return lines
        if self.agent_id and self.state == "running":
            lines.append(cut(text(self.progress or f"{self.agent_id} starts", palette.muted), canvas.width))
            return lines
        if self.state == "running":
            lines.extend(_tail("".join(self.live[-200:]), 4, canvas))
            return lines
        return lines + self._result(canvas, expanded=expanded)

    def _result(self, canvas: Canvas, *, expanded: bool) -> list[Text]:
        content = self.content or "".join(self.live)
        if not content.strip():
            return []
        if not expanded:
            if self.state in {"error", "refused"} or self.exit_code not in {None, 0}:
                return _tail(_output_only(content), 8, canvas)
            if self.agent_id:
                return _limited(_plain(content, canvas), 8, canvas)
            return _tail(_output_only(content), 3, canvas) if self.exit_code is not None else []
        lines = _limited(_plain(content, canvas), MAX_EXPANDED, canvas)
        if self.output_file:
            lines.append(cut(text(f"whole output: {self.output_file}", canvas.palette.muted), canvas.width))
        return lines


StepState = Literal["pending", "running", "done", "unverified", "blocked", "failed", "cancelled", "out_of_turns"]


@dataclass
class StepView:
    """A step of a plan and how it stands."""

    title: str
    files: tuple[str, ...] = ()
    instruction: str = ""
    verify: str | None = None
    state: StepState = "pending"


@dataclass
class PlanView:
    """A plan as it is shown."""

    title: str
    summary: str = ""
    steps: list[StepView] = field(default_factory=list)
    path: str = ""
    plan_hash: str = ""


PlanDecision = Literal["waiting", "approved", "approved_with_edits", "rejected", "unanswered"]


class PlanBlock(Block):
    """A plan in a frame, with the state of its steps."""

    collapsible = True

    def __init__(self, plan: PlanView) -> None:
        super().__init__()
        self.plan = plan
        self.decision: PlanDecision = "waiting"
        self.words = ""

    def lines(self, canvas: Canvas, *, expanded: bool) -> list[Text]:  # noqa: D102
        palette = canvas.palette
        width = max(4, canvas.width - MARGIN)
        inner = canvas.narrowed(MARGIN + 4)
        edge = palette.primary if self.decision == "waiting" else palette.faint
        body: list[Text] = []
        if self.plan.summary:
            body.extend([*markdown_lines(self.plan.summary, inner), text()])
        in_full = self.decision == "waiting" or expanded
        for number, step in enumerate(self.plan.steps, 1):
            body.extend(self._step(number, step, inner, in_full=in_full))
            if in_full and number < len(self.plan.steps):
                body.append(text())
        if self.words:
            body.extend([text(), *wrapped(text(f"“{cleaned(self.words)}”", palette.warning), inner.width)])
        state = {"waiting": "", "approved": " approved ", "approved_with_edits": " approved, edited ",
                 "rejected": " rejected ", "unanswered": " not answered "}[self.decision]  # fmt: skip
        state_style = palette.success if self.decision.startswith("approved") else palette.warning
        title = cut(text(f" {cleaned(self.plan.title)} ", palette.strong), max(1, width - 6))
        top = text("  ┌─", edge)
        top.append_text(title)
        top.append("─" * max(0, width - 3 - title.cell_len) + "┐", edge)
        bottom = text("  └─", edge)
        bottom.append(state, state_style)
        bottom.append("─" * max(0, width - 3 - len(state)) + "┘", edge)
        framed = [self._framed(line, width, edge) for line in body]
        return [cut(line, canvas.width) for line in (top, *framed, bottom)]

    @staticmethod
    def _framed(line: Text, width: int, edge: Style) -> Text:
        row = text("  │ ", edge)
        row.append_text(line)
        row.append(" " * max(0, width - 3 - line.cell_len) + "│", edge)
        return row

    def _step(self, number: int, step: StepView, canvas: Canvas, *, in_full: bool) -> list[Text]:
        palette = canvas.palette
        mark, style = {
            "pending": ("○", palette.muted),
            "running": ("●", palette.primary),
            "done": ("✓", palette.success),
            "unverified": ("~", palette.warning),
            "cancelled": ("-", palette.muted),
        }.get(step.state, ("✗", palette.error))
        head = text(f"{mark} {number}. ", style)
        title = text(cleaned(step.title), palette.strong)
        if step.state not in {"pending", "running", "done"}:
            title.append(f"  {step.state.replace('_', ' ')}", style)
        lines = prefixed(wrapped(title, canvas.width - head.cell_len), head)
        indent = text(" " * head.cell_len)
        room = canvas.narrowed(head.cell_len)
        if in_full:
            if step.instruction:
                lines.extend(prefixed(markdown_lines(step.instruction, room), indent, indent))
            if step.files:
                files = text("files   ", palette.muted)
                lines.extend(
                    prefixed(
                        prefixed(wrapped(text(", ".join(map(cleaned, step.files)), palette.secondary),
                                         room.width - 8), files),
                        indent, indent,
                    )
                )  # fmt: skip
            verify = text("verify  ", palette.muted)
            command = text(cleaned(step.verify), palette.accent) if step.verify else text("none", palette.muted)
            lines.extend(prefixed(prefixed(wrapped(command, room.width - 8), verify), indent, indent))
        return lines


class NoteBlock(Block):
    """A word of the harness."""

    collapsible = True
    compact = True

    def __init__(self, content: str, tone: Literal["muted", "success", "warning", "error"] = "muted") -> None:
        super().__init__()
        self.content = content
        self.tone = tone
        self.mark = {"muted": "·", "success": "✓", "warning": "!", "error": "✗"}[tone]
        self.output = ""
        """What a check printed."""

    def lines(self, canvas: Canvas, *, expanded: bool) -> list[Text]:  # noqa: D102
        palette = canvas.palette
        style: Style = getattr(palette, self.tone)
        body: list[Text] = []
        for row in cleaned(self.content).strip().split("\n"):
            body.extend(wrapped(text(row, palette.muted), canvas.width - 4) or [text()])
        lines = prefixed(_limited(body, MAX_EXPANDED if expanded else 4, canvas), text(f"  {self.mark} ", style))
        if self.output and (expanded or self.tone in {"warning", "error"}):
            inner = canvas.narrowed(4)
            drawn = _plain(self.output, inner)[:MAX_EXPANDED] if expanded else _tail(self.output, 10, inner)
            bar = text("  │ ", palette.faint)
            lines.extend(prefixed(drawn, bar, bar))
        return lines


class ErrorBlock(Block):
    """Something went wrong, with what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__()
        self.message = message
        self.hint = hint

    def lines(self, canvas: Canvas, *, expanded: bool) -> list[Text]:  # noqa: D102
        palette = canvas.palette
        body: list[Text] = []
        for content, style in ((self.message, palette.error), (self.hint, palette.muted)):
            for row in cleaned(content).strip().split("\n") if content.strip() else ():
                body.extend(wrapped(text(row, style), canvas.width - MARGIN) or [text()])
        bar = text("▌ ", palette.error)
        return prefixed(body, bar, bar)


def duration(seconds: float) -> str:
    """Seconds in words: `0.4 s`, `12 s`, `3 min 5 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _italic() -> Style:
    from rich.style import Style

    return Style(italic=True)


def _plain(content: str, canvas: Canvas) -> list[Text]:
    lines: list[Text] = []
    for row in cleaned(content).rstrip().split("\n"):
        lines.extend(folded(row, canvas.width, canvas.palette.muted))
        if len(lines) > MAX_EXPANDED:
            break
    return lines


def _output_only(content: str) -> str:
    """A command's result without its first line, which says what the card's head says."""
    first, _, rest = content.partition("\n")
    output = rest if first.startswith("exit ") else content
    return "" if output.strip() == "(no output)" else output


def _tail(content: str, count: int, canvas: Canvas) -> list[Text]:
    rows = cleaned(content).strip("\n").split("\n")
    if rows == [""]:
        return []
    shown = [cut(text(row, canvas.palette.muted), canvas.width) for row in rows[-count:]]
    if len(rows) > count:
        shown.insert(0, text(f"… {len(rows) - count} lines above", canvas.palette.muted + _italic()))
    return shown


def _limited(lines: list[Text], limit: int, canvas: Canvas) -> list[Text]:
    if len(lines) <= limit + 1:
        return lines
    return [
        *lines[:limit],
        cut(text(f"… {len(lines) - limit} more lines", canvas.palette.muted + _italic()), canvas.width),
    ]
