"""The front end without a screen: events as text for people or as JSON lines for programs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO

from late.events import (
    PLANNER,
    AgentFinished,
    ApprovalDecided,
    ApprovalRequested,
    AssistantMessage,
    CheckFinished,
    ErrorRaised,
    Event,
    FileChanged,
    ModelConnected,
    PlanWritten,
    ProviderWaited,
    RequestRetried,
    RunFinished,
    StepFinished,
    StepStarted,
    StepUndone,
    ToolFinished,
    ToolStarted,
)
from late.workspace.terminal_text import clean

_SILENT_TOOLS = frozenset({"write_implementation_plan", "spawn_subagent", "classify_request"})
"""Their own events say it better."""


def json_printer(out: TextIO | None = None) -> Callable[[Event], None]:
    """One stored event a line, as it is in the log. Deltas are left out: the event after them holds the whole."""
    stream = out or sys.stdout

    def show(event: Event) -> None:
        if not event.transient:
            stream.write(event.model_dump_json() + "\n")
            stream.flush()

    return show


class TextPrinter:
    """A run as plain text: what the planner says on `out`, everything else on `notes`."""

    def __init__(self, out: TextIO | None = None, notes: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._notes = notes or sys.stderr
        self._waited = ""

    def __call__(self, event: Event) -> None:
        """Print what a person would want to follow."""
        if isinstance(event, AssistantMessage):
            if event.agent_id == PLANNER and event.text.strip():
                self._say(self._out, event.text.strip())
        elif text := self._note(event):
            self._say(self._notes, text)

    def _say(self, stream: TextIO, text: str) -> None:
        stream.write(clean(text) + "\n")
        stream.flush()

    def _note(self, event: Event) -> str:
        indent = "" if event.agent_id == PLANNER else "    "
        match event:
            case ModelConnected():
                window = f", window {event.context_window}" if event.context_window else ""
                return f"model {event.model} at {event.endpoint}{window}, {event.dialect} calls"
            case ToolStarted() if event.name not in _SILENT_TOOLS:
                return f"{indent}· {event.label}"
            case ToolFinished() if event.status != "ok" and event.name not in _SILENT_TOOLS:
                return f"{indent}  {event.status}: {event.content.strip().splitlines()[0][:200]}"
            case FileChanged():
                return f"{indent}  {event.kind} {event.path} (+{event.added} -{event.removed})"
            case CheckFinished():
                return f"{indent}· check `{event.check.command}`: {_ended(event.check.exit_code)}"
            case RequestRetried():
                return f"{indent}  again in {event.wait_s:.0f} s (attempt {event.attempt}): {event.reason}"
            case ProviderWaited():
                return self._waiting(event)
            case _:
                return _milestone(event)

    def _waiting(self, event: ProviderWaited) -> str:
        if event.state == self._waited:
            return ""
        self._waited = event.state
        return f"waiting: {event.message}"


def _milestone(event: Event) -> str:
    match event:
        case PlanWritten():
            files = ", ".join(sorted({path for step in event.plan.steps for path in step.files}))
            return f"\nplan: {event.plan.title} ({len(event.plan.steps)} steps; {files}), written to {event.path}"
        case ApprovalRequested():
            return f"\n{event.title}\n{event.detail.strip()}\n"
        case ApprovalDecided():
            how = {"flag": " by --approve", "rule": " by an earlier approval"}.get(event.by, "")
            return f"{'approved' if event.approved else 'denied'}{how}{': ' + event.words if event.words else ''}"
        case StepStarted():
            return f"\nstep {event.step}: {event.title} ({event.coder_id})"
        case StepUndone():
            left = "".join(f"\n  left alone: {refused.path}: {refused.why}" for refused in event.refused)
            return f"step {event.step}: taken back ({', '.join(event.restored) or 'nothing'}){left}"
        case StepFinished():
            return f"step {event.step}: {event.outcome}"
        case AgentFinished() if event.agent_id.startswith("researcher"):
            return f"    {event.agent_id}: {event.outcome}"
        case ErrorRaised():
            return f"error: {event.message}" + (f"\n{event.hint}" if event.hint else "")
        case RunFinished() if event.reason != "done":
            return f"{event.reason}: {event.message}"
        case _:
            return ""


def _ended(code: int | None) -> str:
    if code is None:
        return "could not be run"
    return "passed" if code == 0 else f"failed (exit status {code})"
