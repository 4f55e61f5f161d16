"""The seam between agents and models.

An agent builds a `TurnRequest` and consumes the `StreamItem`s of a `ModelProvider`. How calls travel (dialects), what a
server puts on the wire and how it is retried is hidden behind this interface.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from late.events import FinishReason, ToolCall, Usage
from late.llm.messages import Message

DialectName = Literal["native", "constrained", "plain"]
JsonSchema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model is told of it."""

    name: str
    description: str
    parameters: JsonSchema


@dataclass(frozen=True, slots=True)
class EditTarget:
    """A file, or a region of one, that an answer in plain text rewrites."""

    path: str
    text: str | None
    """Its present content; `None` for a file that does not exist yet."""
    region: str | None = None
    """The exact text of the symbol to be rewritten where the whole file would be too much; a substring of `text`."""
    insert: bool = False
    """The answer is new code, to be put behind `region`, which stays."""


@dataclass(frozen=True, slots=True)
class Legal:
    """What the agent's state allows in this turn, for dialects that constrain decoding; the gate checks it again."""

    calls: Mapping[str, JsonSchema]
    """Tool name → schema of its arguments, narrowed to what is legal now (e.g. an enumeration of paths)."""
    speech: bool = True
    """May the model answer in plain words instead of a call?"""
    forced: ToolCall | None = None
    """The only call that is possible at all: made without asking the model."""
    edit: EditTarget | None = None
    """Set when this turn is for code: the plain dialect then reads it from a fenced block instead of from JSON."""


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """One turn of one agent."""

    messages: Sequence[Message]
    tools: Sequence[ToolSpec]
    """All tools of the agent, in fixed order, the same in every turn."""
    legal: Legal | None = None
    slot: int | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    """`None`: the server's own setting."""


@dataclass(frozen=True, slots=True)
class Text:
    """A fragment of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A fragment of the thinking."""

    text: str


@dataclass(frozen=True, slots=True)
class CallFragment:
    """A fragment of a call; `name` may be empty after the first."""

    index: int
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Progress:
    """Prefill progress; `processed` includes `cached`."""

    total: int
    cached: int
    processed: int
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class Counted:
    """Running token figures."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Waiting:
    """The endpoint is not ready yet."""

    state: Literal["connecting", "loading", "unreachable", "rate_limited", "probing"]
    message: str
    elapsed_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Retrying:
    """The request failed and will be sent again; what was streamed so far is void."""

    attempt: int
    reason: str
    wait_s: float
    partial: str = ""


@dataclass(frozen=True, slots=True)
class Completed:
    """The last item of every stream that did not raise."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    raw: str | None = None
    finish: FinishReason = "stop"
    final: bool = False
    usage: Usage = field(default_factory=Usage)
    first_byte_ms: float | None = None


StreamItem = Text | Reasoning | CallFragment | Progress | Counted | Waiting | Retrying | Completed


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What an endpoint serves, as far as it says so."""

    endpoint: str
    model: str
    server: Literal["llama.cpp", "openai", "in-process"]
    context_window: int | None = None
    """Tokens of one slot: the window of a request, not the model's."""
    slots: int | None = None
    vision: bool | None = None
    chat_template: str = ""
    dialect: DialectName = "native"

    @property
    def weak(self) -> bool:
        """Does the harness have to narrow each turn to what is legal, and give a coder one file at a time?"""
        return self.dialect != "native"


class ModelProvider(Protocol):
    """A model behind some endpoint. One provider may serve several agents."""

    async def connect(self) -> ModelInfo:
        """Ask the endpoint what it serves; cheap when asked again.

        Raises:
            ProviderError: nothing answers, or not with what a model server would say.
        """
        ...

    def stream(self, request: TurnRequest) -> AsyncGenerator[StreamItem]:
        """Run one turn. Closing the iterator (or cancelling its task) stops the server's work at once.

        Raises:
            ProviderError: the request failed, after the retries that make sense.
        """
        ...

    async def count_tokens(self, text: str) -> int | None:
        """Tokens of `text` by the model's own tokenizer, or `None` where the endpoint cannot say."""
        ...

    async def close(self) -> None:
        """Give back sockets and memory."""
        ...
