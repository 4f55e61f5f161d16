"""Talking to a `ScriptedServer` through the real transport, without waiting for real time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from late.llm.openai import OpenAITransport
from late.llm.provider import Completed, StreamItem
from support.scripted_server import ScriptedServer

RECORDED = Path(__file__).parent.parent / "data" / "llama-server"
QUESTION: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
Kind = TypeVar("Kind", bound=StreamItem)


class Naps:
    """A `sleep` that returns at once, keeps the seconds, and calls `then` before it returns."""

    def __init__(self, then: Callable[[Naps], None] | None = None) -> None:
        self.taken: list[float] = []
        self._then = then

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        if self._then is not None:
            self._then(self)


@asynccontextmanager
async def connected(server: ScriptedServer, naps: Naps | None = None, **options: Any) -> AsyncIterator[OpenAITransport]:
    """A transport to `server`, closed at the end."""
    transport = OpenAITransport(server.base_url, sleep=naps or Naps(), **options)
    try:
        yield transport
    finally:
        await transport.close()


async def ask(
    server: ScriptedServer,
    body: dict[str, Any] | None = None,
    *,
    tools: frozenset[str] = frozenset(),
    naps: Naps | None = None,
    **options: Any,
) -> list[StreamItem]:
    """All items of the answer to one request."""
    async with connected(server, naps, **options) as transport:
        return [item async for item in transport.complete(body or QUESTION, tools)]


def completed(items: list[StreamItem]) -> Completed:
    """The last item, which is the only `Completed`."""
    assert [type(item) for item in items].count(Completed) == 1
    last = items[-1]
    assert isinstance(last, Completed)
    return last


def only(kind: type[Kind], items: list[StreamItem]) -> list[Kind]:
    """The items of one kind."""
    return [item for item in items if isinstance(item, kind)]


def recorded(name: str) -> bytes:
    """A body that a real llama-server sent."""
    return (RECORDED / f"{name}.response").read_bytes()
