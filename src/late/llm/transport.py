"""The seam below the dialects: one request in the shape of OpenAI's chat completions, one normalised stream back.

`late.llm.openai` speaks it over HTTP, `late.llm.local` runs llama.cpp in process. A dialect builds the body and reads
the answer; a transport knows nothing of agents and tools.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from late.llm.provider import StreamItem


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What an endpoint says of itself; `None` where it says nothing."""

    endpoint: str
    server: Literal["llama.cpp", "openai", "in-process"]
    model: str
    context_window: int | None = None
    """Tokens served per slot."""
    slots: int | None = None
    vision: bool | None = None
    chat_template: str = ""
    build: str = ""
    parameters: int | None = None
    """Weights of the model, where the server says so (llama.cpp: `meta.n_params` of `/v1/models`)."""


class Transport(Protocol):
    """A way to a model."""

    async def describe(self) -> ServerInfo:
        """Ask once and remember; ask again after the connection was lost.

        Raises:
            ProviderError: nothing answers at the endpoint, or it is no model server.
        """
        ...

    def complete(self, body: dict[str, Any], known_tools: frozenset[str] = frozenset()) -> AsyncGenerator[StreamItem]:
        """Send one request and yield its stream; the last item is `Completed`.

        `body` holds `messages` and, as needed, `tools`, `response_format`, `id_slot`, `max_tokens`, `temperature`;
        the transport adds what its server understands (streaming, usage, prompt progress). A stream that was cut is
        never ended with `Completed`: it is retried (`Retrying` is yielded first) or raised. Closing the iterator
        closes the connection at once.

        Raises:
            ProviderError: after the retries that make sense.
        """
        ...

    async def tokenize(self, text: str) -> int | None:
        """Number of tokens of `text`, special tokens parsed, or `None` where the endpoint cannot say."""
        ...

    async def close(self) -> None:
        """Give back sockets and memory."""
        ...
