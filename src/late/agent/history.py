"""Conversations out of the log: what an agent said and heard, as its next request must replay it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from late.events import (
    AgentFinished,
    AgentStarted,
    AssistantMessage,
    CheckFinished,
    Event,
    FileChanged,
    MessageDelivered,
    ToolFinished,
    TurnStarted,
)
from late.llm.messages import AgentMessage, Conversation, SystemMessage, ToolMessage, UserMessage


@dataclass(slots=True)
class AgentRecord:
    """What the log knows of one agent."""

    started: AgentStarted
    conversation: Conversation
    turns: int = 0
    finished: AgentFinished | None = None
    work: list[FileChanged | CheckFinished] = field(default_factory=list[FileChanged | CheckFinished])
    """What it did, as far as it is on record."""


def agents_of(events: Iterable[Event]) -> dict[str, AgentRecord]:
    """Fold a log into the agents that it tells of, in the order in which they started."""
    agents: dict[str, AgentRecord] = {}
    early: dict[str, list[UserMessage]] = {}
    for event in events:
        if isinstance(event, AgentStarted):
            record = AgentRecord(event, Conversation(SystemMessage(event.system_prompt)))
            record.conversation.messages.extend(early.pop(event.agent_id, []))
            agents[event.agent_id] = record
            continue
        record = agents.get(event.agent_id)
        if isinstance(event, MessageDelivered):
            message = UserMessage(event.text, event.source)
            if record is None:
                early.setdefault(event.agent_id, []).append(message)
            else:
                record.conversation.append(message)
        if record is None:
            continue
        match event:
            case AssistantMessage():
                record.conversation.append(
                    AgentMessage(text=event.text, reasoning=event.reasoning, calls=event.calls, raw=event.raw)
                )
            case ToolFinished():
                record.conversation.append(ToolMessage(event.call_id, event.name, event.content))
            case FileChanged() | CheckFinished():
                record.work.append(event)
            case TurnStarted():
                record.turns = event.turn
            case AgentFinished():
                record.finished = event
            case _:
                pass
    return agents
