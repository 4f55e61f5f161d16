"""A conversation as a model sees it: pure values, independent of any wire format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from late.events import ToolCall


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """The one system message, always first."""

    text: str


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What a person, the planner (to a subagent) or the harness says."""

    text: str
    source: Literal["person", "harness", "planner"] = "person"


@dataclass(frozen=True, slots=True)
class AgentMessage:
    """What the model said. `raw` is its exact text where calls were read out of the text."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The result of one call."""

    call_id: str
    name: str
    content: str


Message = SystemMessage | UserMessage | AgentMessage | ToolMessage


@dataclass(slots=True)
class Conversation:
    """One agent's messages: append-only, so that each request starts with the bytes of the one before."""

    system: SystemMessage
    messages: list[Message] = field(default_factory=list[Message])

    def append(self, message: Message) -> None:
        """Add a message at the end."""
        self.messages.append(message)

    def all(self) -> Sequence[Message]:
        """The system message and everything after it."""
        return [self.system, *self.messages]

    def open_calls(self) -> list[ToolCall]:
        """Calls that have no result yet, oldest first."""
        answered = {m.call_id for m in self.messages if isinstance(m, ToolMessage)}
        return [
            call for m in self.messages if isinstance(m, AgentMessage) for call in m.calls if call.id not in answered
        ]
