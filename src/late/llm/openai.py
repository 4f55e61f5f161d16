"""The transport over HTTP: llama-server and every other server with OpenAI's chat completions.

Time is not an error here. A prefill may take many minutes, so nothing but the connecting has a limit by default; a
model that loads is waited for; a server that goes away in mid-run is waited for, and the request is sent again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, cast
from urllib.request import getproxies

import httpx

from late.errors import ProviderError
from late.llm.assemble import Assembler
from late.llm.body import call_ids, encode_body, request_body
from late.llm.discovery import Endpoint, Found, Reply, discover
from late.llm.failures import SERVER_HINT, Failure, RequestFailed, error_in, read_failure
from late.llm.loose import as_list, as_object, first_int
from late.llm.provider import CallFragment, Completed, Reasoning, Retrying, StreamItem, Text, Waiting
from late.llm.retry import Retries, unreachable_waits
from late.llm.sse import SseDecoder
from late.llm.transport import ServerInfo, Transport

T = TypeVar("T")
_log = logging.getLogger(__name__)

_LOOKUP_S = 30.0
"""For `/props` and the like: answered at once by a server that is well, late by one on a machine that is not."""
_SLOT_LOOKS, _SLOT_WAIT_S = 25, 0.1
"""How often a busy slot is looked at again, and seconds between: two and a half seconds, a batch on a slow machine."""
_KEEP_ALIVE_S = 4.0
"""Below the 5 s after which llama-server closes an idle connection, so that a request never meets one that closes."""
_DRAIN_S = 0.25
"""For the end of a body after `[DONE]`, without which the connection cannot be used again."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits in seconds, each on its own; `None` is no limit."""

    connect_s: float | None = 10.0
    first_byte_s: float | None = None
    """For the head of an answer, and again for the first byte of its body: includes the whole prefill where the server
    does not report it."""
    between_bytes_s: float | None = None


class OpenAITransport(Transport):
    """One endpoint. It may serve several agents at once, all on one event loop."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        model: str | None = None,
        *,
        timeouts: Timeouts = Timeouts(),
        on_wait: Callable[[Waiting], None] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        client_factory: Callable[[], httpx.AsyncClient] | None = None,
    ) -> None:
        """Nothing is sent before the first call.

        Args:
            base_url: As a person writes it; see `Endpoint.parse`.
            api_key: Sent as a bearer token.
            model: Which model to ask for, where the server has several.
            timeouts: Limits; only connecting has one by default.
            on_wait: Told while `describe` waits; `complete` yields its waits.
            sleep: How to wait.
            clock: Seconds on a clock that only goes forward.
            client_factory: Makes the HTTP client.

        Raises:
            UserError: `base_url` is no HTTP URL.
        """
        self._endpoint = Endpoint.parse(base_url)
        self._api_key = api_key
        self._model = model
        self._timeouts = timeouts
        self._on_wait = on_wait
        self._sleep = sleep
        self._clock = clock
        self._shows_slots = True
        self._client_factory = client_factory or self._new_client
        self._client: httpx.AsyncClient | None = None
        self._found: Found | None = None
        self._reached = False

    async def describe(self) -> ServerInfo:
        """See `Transport.describe`; a model that loads is waited for."""
        async with aclosing(self._discovered()) as waits:
            async for waiting in waits:
                if self._on_wait is not None:
                    self._on_wait(waiting)
        return self._server.info

    async def complete(
        self, body: dict[str, Any], known_tools: frozenset[str] = frozenset()
    ) -> AsyncGenerator[StreamItem]:
        """See `Transport.complete`."""
        async with aclosing(self._discovered()) as waits:
            async for waiting in waits:
                yield waiting
        retries = Retries()
        loading: _Elapsed | None = None
        while True:
            assembler = Assembler(known_tools, max_tokens=_limit(body), taken_ids=call_ids(body))
            try:
                async with aclosing(self._attempt(body, assembler)) as items:
                    async for item in items:
                        yield item
                return
            except RequestFailed as failed:
                failure = failed.failure
            wait = retries.wait_before_next(failure)
            if wait is None:
                raise failure.as_error(assembler.partial)
            if failure.kind == "loading":
                loading = loading or _Elapsed(self._clock)
                yield Waiting("loading", failure.message, loading.seconds)
                loading.waited += wait
            else:
                yield Retrying(retries.count, failure.message, wait, assembler.partial)
                if failure.kind == "rate_limited":
                    yield Waiting("rate_limited", failure.message)
            await self._sleep(wait)
            if failure.kind == "lost":
                self._found = None
                try:
                    async with aclosing(self._discovered()) as waits:
                        async for waiting in waits:
                            yield waiting
                except ProviderError as error:
                    error.partial = assembler.partial
                    raise

    async def tokenize(self, text: str) -> int | None:
        """See `Transport.tokenize`; only llama.cpp can say. `None` as well if it does not answer."""
        await self.describe()
        found = self._server
        if not found.llama_cpp:
            return None
        content = encode_body({"content": text, "add_special": False, "parse_special": True})
        try:
            reply = await self._lookup("POST", f"{found.root}/tokenize", content)
        except RequestFailed as failed:
            _log.debug("no token count: %s", failed.failure.message)
            return None
        tokens = reply.object().get("tokens")
        return len(as_list(tokens)) if isinstance(tokens, list) else None

    async def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    @property
    def _server(self) -> Found:
        assert self._found is not None
        return self._found

    @property
    def _http(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = self._client_factory()
        return self._client

    def _new_client(self) -> httpx.AsyncClient:
        headers = {"accept-encoding": "identity", "user-agent": "late"}
        if self._api_key:
            headers["authorization"] = f"Bearer {self._api_key}"
        timeout = httpx.Timeout(None, connect=self._timeouts.connect_s)
        limits = httpx.Limits(max_connections=None, keepalive_expiry=_KEEP_ALIVE_S)
        if not self._endpoint.local and getproxies():
            return httpx.AsyncClient(headers=headers, timeout=timeout, limits=limits)
        # A proxy of the environment is for the world outside, and would break a server on this machine.
        # Loading the certificates takes 0.1 s, which plain HTTP need not wait for; the empty context trusts nobody.
        secure = self._endpoint.base.startswith("https:")
        verify = True if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        transport = httpx.AsyncHTTPTransport(verify=verify, limits=limits, socket_options=_dead_peer_options())
        return httpx.AsyncClient(headers=headers, timeout=timeout, transport=transport, trust_env=False)

    async def _discovered(self) -> AsyncGenerator[Waiting]:
        """Make sure that the server is known, and yield the waits until it is.

        Raises:
            ProviderError: there is no server, it refuses, or it stayed away for too long.
        """
        retries, elapsed = Retries(), _Elapsed(self._clock)
        unreachable = iter(unreachable_waits())
        while self._found is None:
            try:
                self._found = await discover(self._get, self._endpoint, self._model)
                return
            except RequestFailed as failed:
                failure = failed.failure
            if failure.kind == "lost" and not self._reached:
                raise ProviderError(failure.message, _first_contact_hint(self._endpoint))
            wait = next(unreachable, None) if failure.kind == "lost" else retries.wait_before_next(failure)
            if wait is None:
                raise failure.as_error()
            yield Waiting(_WAITING.get(failure.kind, "connecting"), failure.message, elapsed.seconds)
            elapsed.waited += wait
            await self._sleep(wait)

    async def _attempt(self, body: Mapping[str, Any], assembler: Assembler) -> AsyncGenerator[StreamItem]:
        """Send the request once.

        Raises:
            RequestFailed: there is no whole answer.
        """
        found = self._server
        complete = request_body(body, model=found.model, llama_cpp=found.llama_cpp, slots=found.info.slots)
        if await self._in_use(complete.get("id_slot")):
            del complete["id_slot"]
        started = self._clock()
        first_ms: float | None = None
        try:
            async with aclosing(self._answer(encode_body(complete), assembler)) as items:
                async for item in items:
                    if first_ms is None and isinstance(item, Text | Reasoning | CallFragment):
                        first_ms = (self._clock() - started) * 1000
                    yield item
        except httpx.RequestError as error:
            if not assembler.ended:
                raise RequestFailed(self._lost(error)) from error
        if assembler.empty:
            raise RequestFailed(Failure("server", "The server ended its answer before it began.", SERVER_HINT))
        for item in assembler.finish():
            yield replace(item, first_byte_ms=first_ms) if isinstance(item, Completed) else item

    async def _answer(self, content: bytes, assembler: Assembler) -> AsyncGenerator[StreamItem]:
        headers = {"content-type": "application/json", "accept": "text/event-stream"}
        url = f"{self._endpoint.base}/chat/completions"
        request = self._http.build_request("POST", url, content=content, headers=headers)
        response = await self._within(self._timeouts.first_byte_s, self._http.send(request, stream=True))
        try:
            self._reached = True
            if not response.is_success:
                raise RequestFailed(read_failure(response.status_code, await response.aread(), response.headers))
            kind = response.headers.get("content-type", "")
            if "html" in kind:
                raise RequestFailed(_web_page(self._endpoint))
            async with aclosing(self._events(response, assembler, whole="json" in kind)) as events:
                async for event in events:
                    for item in assembler.feed(event):
                        yield item
        finally:
            await response.aclose()

    async def _events(
        self, response: httpx.Response, assembler: Assembler, *, whole: bool
    ) -> AsyncGenerator[Mapping[str, Any]]:
        """The JSON objects of a stream, or the one of an answer that is not streamed.

        Raises:
            RequestFailed: one tells of an error, or the end came without `[DONE]` and without a finish reason.
        """
        decoder, body, begun = SseDecoder(), list[bytes](), False
        async with aclosing(self._bytes(response)) as fragments:
            async for data in fragments:
                whole = whole or (not begun and data.lstrip().startswith(b"{"))
                begun = begun or not data.isspace()
                if whole:
                    body.append(data)
                    continue
                for payload in decoder.feed(data):
                    content, done = _cut_done(payload)
                    for event in _parse(content):
                        yield event
                    if done:
                        await _drain(fragments)
                        return
        if whole:
            yield _parse_whole(b"".join(body))
            return
        for payload in decoder.finish():
            if assembler.ended:
                return
            content, done = _cut_done(payload)
            for event in _parse(content):
                yield event
            if done:
                return
        if not assembler.ended and not assembler.empty:
            raise RequestFailed(Failure("server", "The answer broke off before its end.", SERVER_HINT))

    async def _bytes(self, response: httpx.Response) -> AsyncGenerator[bytes]:
        limit = self._timeouts.first_byte_s
        async with aclosing(cast("AsyncGenerator[bytes]", response.aiter_bytes())) as fragments:
            while data := await self._within(limit, anext(fragments, b"")):
                limit = self._timeouts.between_bytes_s
                yield data

    async def _within(self, limit_s: float | None, awaitable: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(limit_s):
                return await awaitable
        except TimeoutError:
            message = f"{self._endpoint.shown} sent nothing for {limit_s:g} s."
            raise RequestFailed(Failure("lost", message, _LOST_HINT)) from None

    async def _in_use(self, slot: int | None) -> bool:
        """Is somebody else's request running in that slot?

        Two requests of different clients that meet in one pinned slot were answered from each other's prompts
        (llama-server b10434, two clients, nine conversations, seven mixed up); requests that the server places itself
        were not. A request of ours that has just ended, or that was cancelled, keeps its slot for a moment; that one
        is waited for, because the slot holds what we need. A server that does not show its slots is taken at its word.
        """
        if slot is None:
            return False
        for _ in range(_SLOT_LOOKS):
            if not await self._busy(slot):
                return False
            await self._sleep(_SLOT_WAIT_S)
        return True

    async def _busy(self, slot: int) -> bool:
        if not self._shows_slots:
            return False
        reply = await self._get(f"{self._server.root}/slots")
        self._shows_slots = reply.status == 200
        return any(
            as_object(shown).get("id") == slot and as_object(shown).get("is_processing") is True
            for shown in reply.list()
        )

    async def _get(self, url: str) -> Reply:
        return await self._lookup("GET", url)

    async def _lookup(self, method: str, url: str, content: bytes | None = None) -> Reply:
        headers = {"content-type": "application/json"} if content else {}
        timeout = httpx.Timeout(_LOOKUP_S, connect=self._timeouts.connect_s)
        try:
            response = await self._http.request(method, url, content=content, headers=headers, timeout=timeout)
        except httpx.RequestError as error:
            raise RequestFailed(self._lost(error)) from error
        self._reached = True
        return Reply(response.status_code, response.content, response.headers)

    def _lost(self, error: httpx.RequestError) -> Failure:
        where, reason = self._endpoint.shown, str(error)
        match error:
            case httpx.ConnectTimeout():
                message = f"No connection to {where} within {self._timeouts.connect_s:g} s."
            case httpx.ConnectError():
                known = "" if reason in ("", "All connection attempts failed") else f" ({reason})"
                message = f"Nothing answers at {where}{known}."
            case httpx.ReadTimeout():
                message = f"{where} did not answer within {_LOOKUP_S:g} s."
            case _:
                message = f"The connection to {where} broke off" + (f": {reason}" if reason else ".")
        return Failure("lost", message, _LOST_HINT)


_WAITING: dict[str, Literal["loading", "unreachable", "rate_limited"]] = {
    "loading": "loading",
    "lost": "unreachable",
    "rate_limited": "rate_limited",
}
_LOST_HINT = "The session is kept: start the server again, then send the message once more."


@dataclass(slots=True)
class _Elapsed:
    """Seconds since it was made, by the clock or by the sum of the waits, whichever is more."""

    clock: Callable[[], float]
    waited: float = 0.0
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock()

    @property
    def seconds(self) -> float:
        return max(self.waited, self.clock() - self.started)


def _limit(body: Mapping[str, Any]) -> int | None:
    return first_int(body, "max_tokens", "max_completion_tokens")


def _cut_done(payload: str) -> tuple[str, bool]:
    """The payload without the mark of the stream's end, and whether that was there."""
    head, _, last = payload.rstrip().rpartition("\n")
    return (head, True) if last.strip() == "[DONE]" else (payload, False)


def _parse(payload: str) -> Iterator[Mapping[str, Any]]:
    """The object of an event; several where a server forgot the blank lines between its events."""
    try:
        event = as_object(json.loads(payload))
    except ValueError:
        lines = [line for line in payload.split("\n") if line.strip()]
        if len(lines) > 1:
            for line in lines:
                yield from _parse(line)
        elif payload.lstrip().startswith("{"):
            message = f"The server sent an event that is no JSON: {payload[:200]}"
            raise RequestFailed(Failure("server", message, SERVER_HINT)) from None
        else:
            _log.debug("skipped an event that is no JSON: %.200s", payload)
        return
    if failure := error_in(event):
        raise RequestFailed(failure)
    yield event


def _parse_whole(body: bytes) -> Mapping[str, Any]:
    try:
        answer = as_object(json.loads(body))
    except ValueError:
        message = f"The server's answer is no JSON: {body[:200].decode('utf-8', 'replace')}"
        raise RequestFailed(Failure("server", message, SERVER_HINT)) from None
    if failure := error_in(answer):
        raise RequestFailed(failure)
    return answer


async def _drain(fragments: AsyncGenerator[bytes]) -> None:
    """Read what follows `[DONE]`: nothing but the end, on which the connection's further use depends."""
    with suppress(TimeoutError, httpx.RequestError):
        async with asyncio.timeout(_DRAIN_S):
            async for _ in fragments:
                pass


def _web_page(endpoint: Endpoint) -> Failure:
    return Failure(
        "final", f"{endpoint.shown} answers with a web page.", "Check the base URL: it often ends in /v1.", 200
    )


def _first_contact_hint(endpoint: Endpoint) -> str:
    if not endpoint.local:
        return "Check the network, and the URL in OPENAI_BASE_URL."
    return (
        "Start a model server, e.g. `llama-server -m MODEL.gguf --jinja -c 32768 --port 8080`, "
        "or set OPENAI_BASE_URL to one that runs."
    )


def _dead_peer_options() -> list[tuple[int, int, int]]:
    """TCP keep-alive: notices within two minutes that the other machine is gone, and lets it be silent for hours."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPALIVE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        option = getattr(socket, name, None)
        if isinstance(option, int):
            options.append((socket.IPPROTO_TCP, option, value))
    return options
