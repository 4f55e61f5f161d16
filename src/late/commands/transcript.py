"""A session as plain text, for reading and for pipes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from late.events import (
    PLANNER,
    AgentFinished,
    AgentStarted,
    ApprovalDecided,
    ApprovalRequested,
    AssistantMessage,
    CheckFinished,
    ErrorRaised,
    Event,
    FileChanged,
    MessageDelivered,
    ModelConnected,
    PlanDecided,
    PlanWritten,
    RunFinished,
    StepFinished,
    StepStarted,
    StepUndone,
    ToolFinished,
    ToolStarted,
    UnknownEvent,
)


def transcript(events: Iterable[Event]) -> Iterator[str]:
    """One block of text for each event that a reader wants to see, in the order of the log.

    Control characters are written as escapes, so that nothing in a log can act on the terminal.
    """
    for event in events:
        if text := _block(event):
            who = "" if event.agent_id == PLANNER else f"{event.agent_id} | "
            yield "\n".join(who + visible(line) for line in text.splitlines())


def visible(text: str) -> str:
    """The text with its control characters, but for tabs, written as escapes."""
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in text)


def _block(event: Event) -> str:  # noqa: C901 -- a table of one line a type
    match event:
        case MessageDelivered(source="person"):
            return "\n".join(f"> {line}" for line in event.text.splitlines())
        case MessageDelivered():
            return f"[{event.source}] {event.text}"
        case AssistantMessage():
            return event.text.strip()
        case AgentStarted(parent_id=str()):
            return f"started: {event.goal}"
        case AgentFinished():
            return f"finished, {event.outcome}: {event.report}"
        case ModelConnected():
            return f"model ({event.role}): {event.model or 'unnamed'} at {event.endpoint}"
        case ToolStarted():
            return f"* {event.label}"
        case ToolFinished() if event.status != "ok":
            return f"  {event.status}: {_first_lines(event.content)}"
        case FileChanged():
            return f"{event.kind} {event.path} (+{event.added} -{event.removed})\n{event.diff}"
        case PlanWritten():
            return "\n".join(
                [
                    f"plan: {event.plan.title}",
                    *(f"  {number}. {step.title}" for number, step in enumerate(event.plan.steps, 1)),
                ]
            )
        case PlanDecided():
            return f"plan {event.decision.replace('_', ' ')}" + (f": {event.words}" if event.words else "")
        case ApprovalRequested(kind="tool"):
            return f"? {event.title}" + (f" ({event.reason})" if event.reason else "")
        case ApprovalDecided():
            answer = f"approved ({event.scope})" if event.approved else "denied"
            return f"{answer} by {event.by}" + (f": {event.words}" if event.words else "")
        case StepStarted():
            return f"step {event.step}: {event.title}"
        case CheckFinished():
            status = "could not be run" if event.check.exit_code is None else f"exit status {event.check.exit_code}"
            return f"check `{event.check.command}`: {status}"
        case StepFinished():
            return f"step {event.step}: {event.outcome}"
        case StepUndone():
            lines = [f"  put back {path}" for path in event.restored]
            lines += [f"  left alone {file.path}: {file.why}" for file in event.refused]
            return "\n".join([f"step {event.step}: undone", *lines])
        case RunFinished() if event.reason != "done" or event.message:
            return f"{event.reason}: {event.message}" if event.message else event.reason
        case ErrorRaised():
            return f"error: {event.message}" + (f"\n{event.hint}" if event.hint else "")
        case UnknownEvent():
            return f"({event.type}: this version does not know this event)"
        case _:
            return ""


def _first_lines(text: str, most: int = 3) -> str:
    lines = text.splitlines()
    return "\n  ".join(lines[:most]) + (f"\n  … {len(lines) - most} more lines" if len(lines) > most else "")
