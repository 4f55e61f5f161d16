"""The provider that agents use: a transport and a dialect put together."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from late.llm.dialects.base import Dialect
from late.llm.dialects.constrained import ConstrainedDialect
from late.llm.dialects.native import NativeDialect
from late.llm.dialects.plain import PlainDialect
from late.llm.probe import DialectChooser
from late.llm.provider import Completed, DialectName, ModelInfo, StreamItem, Text, TurnRequest
from late.llm.transport import ServerInfo, Transport


def make_dialect(name: DialectName, server: ServerInfo) -> Dialect:
    """The dialect of that name. Thinking is sent back to llama.cpp only: other servers reject the field."""
    match name:
        case "native":
            return NativeDialect(keep_reasoning=server.server == "llama.cpp")
        case "constrained":
            return ConstrainedDialect()
        case "plain":
            return PlainDialect()


class ChatProvider:
    """A `ModelProvider` over a transport. The dialect is chosen at the first `connect`."""

    def __init__(self, transport: Transport, choose: DialectChooser, *, window: int | None = None) -> None:
        self._transport = transport
        self._choose = choose
        self._info: ModelInfo | None = None
        self._dialect: Dialect | None = None
        self._window = window

    async def connect(self) -> ModelInfo:
        """Ask the server what it serves, and choose the dialect once."""
        server = await self._transport.describe()
        window = self._window or server.context_window
        if self._info is None or self._dialect is None or self._info.model != server.model:
            name = await self._choose(self._transport, server)
            self._dialect = make_dialect(name, server)
            self._info = ModelInfo(
                endpoint=server.endpoint,
                model=server.model,
                server=server.server,
                context_window=window,
                slots=server.slots,
                vision=server.vision,
                chat_template=server.chat_template,
                dialect=name,
            )
        elif self._info.context_window != window:
            self._info = replace(self._info, context_window=window, slots=server.slots)
        return self._info

    async def stream(self, request: TurnRequest) -> AsyncGenerator[StreamItem]:
        """Run one turn in the model's dialect."""
        if self._dialect is None:
            await self.connect()
        dialect = self._dialect
        assert dialect is not None
        body = dialect.body(request)
        _set(body, "id_slot", request.slot)
        _set(body, "max_tokens", request.max_tokens)
        if request.temperature is not None:
            body["temperature"] = request.temperature
        decoder = dialect.decoder(request)
        pieces: list[str] = []
        async with aclosing(self._transport.complete(body, frozenset(tool.name for tool in request.tools))) as stream:
            async for item in stream:
                if isinstance(item, Completed):
                    yield decoder.finish(item)
                    return
                if isinstance(item, Text):
                    pieces.append(item.text)
                for shown in decoder.feed(item):
                    yield shown
                if decoder.stop():
                    yield decoder.finish(Completed(text="".join(pieces), finish="repetition"))
                    return

    async def count_tokens(self, text: str) -> int | None:
        """Tokens of `text` by the model's tokenizer."""
        return await self._transport.tokenize(text)

    async def close(self) -> None:
        """Close the transport."""
        await self._transport.close()


def _set(body: dict[str, Any], key: str, value: int | None) -> None:
    if value is not None:
        body[key] = value
