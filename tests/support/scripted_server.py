"""A real HTTP server that plays a model: it answers from a script and keeps every request it got.

    with ScriptedServer([call("read_file", {"path": "a.py"}), say("It adds two numbers.")]) as server:
        ...  # point late at server.base_url (a subprocess can, too)
    assert server.requests[1].json["messages"][-1]["role"] == "tool"

Each chat request takes the next item of the script: a `Step`, or a function that gets the `Recorded` request and
returns a `Step`. A single function instead of a list answers all requests. A request for which nothing is left, or
whose function raised, is answered with status 400 and fails the test when the `with` block is left.

The server runs in a thread of its own, so it serves sync tests, async tests and subprocesses alike. It poses as
llama.cpp (`Llama(...)`: `/props`, `/health`, `/tokenize`) unless `llama=None`, which leaves a plain OpenAI-compatible
server.

Time is in the test's hand: a `Signal` inside a step holds the stream until the test sets it.

    gate = Signal()
    with ScriptedServer([sse(text("par"), gate, text("tial"), finish())]) as server:
        ...
        server.arrived(1).wait()           # the request is there   (async: `await server.arrived(1).seen()`)
        gate.set()                         # let it go on
        server.requests[0].disconnected.wait()   # the client closed its connection
"""

from __future__ import annotations

import asyncio
import json as jsonlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Literal

Json = dict[str, Any]

_ID_MARK = "call_@_"
"""Becomes `call_<number of the request>_` when served, so that ids are unique in a run and the same in every run."""


class Signal:
    """Something that happens once; settable and waitable from any thread and any event loop."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []

    def set(self) -> None:
        """Let it happen."""
        with self._lock:
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    @property
    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, timeout: float = 20.0) -> None:
        """Block until it happened; fails the test after `timeout` seconds."""
        if not self._event.wait(timeout):
            raise AssertionError(f"did not happen within {timeout} s")

    async def seen(self, timeout: float | None = 20.0) -> None:  # noqa: ASYNC109 - a test's guard, not an API
        """Wait on the running loop until it happened; fails the test after `timeout` seconds."""
        loop = asyncio.get_running_loop()
        happened = asyncio.Event()

        def notify() -> None:
            loop.call_soon_threadsafe(happened.set)

        with self._lock:
            if self._event.is_set():
                return
            self._callbacks.append(notify)
        try:
            await asyncio.wait_for(happened.wait(), timeout)
        except TimeoutError:
            raise AssertionError(f"did not happen within {timeout} s") from None
        finally:
            with self._lock:
                if notify in self._callbacks:
                    self._callbacks.remove(notify)


@dataclass(frozen=True, slots=True)
class Step:
    """One answer. Build it with `say`, `call`, `sse`, `json`, `raw` or `hang_up`, and vary it with the methods."""

    parts: tuple[bytes | Signal, ...] = ()
    """Written one by one, each in a network write of its own; a `Signal` is waited for."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    ending: Literal["clean", "cut", "reset"] = "clean"
    """`clean`: the body ends as HTTP says. `cut`: the connection closes in mid-body. `reset`: and before any header."""
    before_head: Signal | None = None

    def held(self, gate: Signal) -> Step:
        """The same, with nothing sent, not even the status line, until `gate` is set."""
        return replace(self, before_head=gate)

    def cut(self) -> Step:
        """The same, but the connection breaks where the body would end."""
        return replace(self, ending="cut")

    def pieces(self, size: int) -> Step:
        """The same bytes in network writes of `size` bytes each."""
        cut: list[bytes | Signal] = []
        for part in self.parts:
            if isinstance(part, Signal):
                cut.append(part)
            else:
                cut.extend(part[i : i + size] for i in range(0, len(part), size))
        return replace(self, parts=tuple(cut))


ScriptItem = Step | Callable[["Recorded"], Step]
Script = Sequence[ScriptItem] | Callable[["Recorded"], Step]


# --- chunks: the dictionaries that a server streams -------------------------------------------------------------------


def chunk(delta: Json | None = None, finish: str | None = None, **fields: Any) -> Json:
    """A chat.completion.chunk with one choice; `fields` go to the top level (`usage`, `timings`, …)."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "choices": [choice], **fields}


def text(fragment: str) -> Json:
    """A fragment of the answer."""
    return chunk({"content": fragment})


def thought(fragment: str) -> Json:
    """A fragment of the thinking."""
    return chunk({"reasoning_content": fragment})


def call_part(
    index: int = 0, *, call_id: str | None = None, name: str | None = None, arguments: str | Json | None = None
) -> Json:
    """A fragment of a tool call; what is `None` is left out."""
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    part: Json = {"index": index, "function": function}
    if call_id is not None:
        part |= {"id": call_id, "type": "function"}
    return chunk({"tool_calls": [part]})


def finish(reason: str = "stop") -> Json:
    """The chunk that ends an answer."""
    return chunk({}, reason)


def usage(prompt: int = 100, completion: int = 10, cached: int = 0) -> Json:
    """The last chunk of a stream, without choices."""
    counts: Json = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    counts["prompt_tokens_details"] = {"cached_tokens": cached}
    return {"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "choices": [], "usage": counts}


def prefill(total: int, cached: int, processed: int, time_ms: float = 0) -> Json:
    """A progress report of llama.cpp; `processed` includes `cached`."""
    progress = {"total": total, "cache": cached, "processed": processed, "time_ms": time_ms}
    return chunk({"role": "assistant", "content": None}, prompt_progress=progress)


# --- steps ------------------------------------------------------------------------------------------------------------


def sse(*events: Json | str | bytes | Signal, done: bool = True, status: int = 200) -> Step:
    """A streamed answer.

    A dictionary becomes one event with its JSON, a string one event with that data, bytes go out as they are, a
    `Signal` is waited for. `done`: end with `[DONE]`.
    """
    parts: list[bytes | Signal] = []
    for event in (*events, "[DONE]") if done else events:
        if isinstance(event, bytes | Signal):
            parts.append(event)
        else:
            data = event if isinstance(event, str) else jsonlib.dumps(event, ensure_ascii=False)
            parts.append(f"data: {data}\n\n".encode())
    return Step(tuple(parts), status, {"content-type": "text/event-stream"})


def say(
    answer: str, *, reasoning: str = "", finish_reason: str = "stop", prompt: int = 100, completion: int = 10
) -> Step:
    """An answer in words, streamed word by word, with usage figures."""
    thoughts = [thought(f) for f in _words(reasoning)]
    return sse(*thoughts, *[text(f) for f in _words(answer)], finish(finish_reason), usage(prompt, completion))


def call(
    name: str, arguments: Json | str, *, words: str = "", reasoning: str = "", finish_reason: str = "tool_calls"
) -> Step:
    """An answer that is one tool call, after some `words`. A string as `arguments` is sent as it is (say, broken)."""
    return calls((name, arguments), words=words, reasoning=reasoning, finish_reason=finish_reason)


def calls(
    *named: tuple[str, Json | str], words: str = "", reasoning: str = "", finish_reason: str = "tool_calls"
) -> Step:
    """An answer with several tool calls: `calls(("read_file", {"path": "a"}), ("read_file", {"path": "b"}))`."""
    events = [*[thought(f) for f in _words(reasoning)], *[text(f) for f in _words(words)]]
    for index, (name, arguments) in enumerate(named):
        body = arguments if isinstance(arguments, str) else jsonlib.dumps(arguments, ensure_ascii=False)
        events.append(call_part(index, call_id=f"{_ID_MARK}{index}", name=name, arguments=""))
        half = len(body) // 2
        events += [call_part(index, arguments=fragment) for fragment in (body[:half], body[half:]) if fragment]
    return sse(*events, finish(finish_reason), usage())


def json(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Step:
    """A JSON answer in one piece: an error, or a completion that is not streamed."""
    data = jsonlib.dumps(body, ensure_ascii=False).encode()
    return Step((data,), status, {"content-type": "application/json", **(headers or {})})


def error(status: int, message: str, headers: Mapping[str, str] | None = None, **fields: Any) -> Step:
    """An error in the form of llama.cpp and OpenAI; `fields` go into the error object."""
    return json({"error": {"code": status, "message": message, **fields}}, status, headers)


def raw(*parts: bytes | Signal, status: int = 200, content_type: str = "text/event-stream") -> Step:
    """Bytes as they are, each part in a network write of its own."""
    return Step(parts, status, {"content-type": content_type})


def hang_up() -> Step:
    """The connection is closed without a single byte of an answer."""
    return Step(ending="reset")


def _words(sentence: str) -> Iterator[str]:
    start = 0
    for end, letter in enumerate(sentence):
        if letter == " " and end > start:
            yield sentence[start:end]
            start = end
    if sentence[start:]:
        yield sentence[start:]


# --- the server -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Llama:
    """What the server says of itself when it poses as llama.cpp."""

    n_ctx: int = 32768
    """Tokens per slot."""
    slots: int = 2
    vision: bool = False
    chat_template: str = "{%- if tools %}{{ tools }}{%- endif %}{{ messages }}"
    build: str = "b1-scripted"

    def props(self, model: str) -> Json:
        """The answer to `/props`."""
        return {
            "default_generation_settings": {"n_ctx": self.n_ctx, "params": {}},
            "total_slots": self.slots,
            "model_alias": model,
            "model_path": f"/models/{model}.gguf",
            "modalities": {"vision": self.vision, "audio": False},
            "chat_template": self.chat_template,
            "chat_template_caps": {"supports_tools": True, "supports_tool_calls": True},
            "build_info": self.build,
        }


@dataclass(slots=True)
class Recorded:
    """A request as it arrived."""

    method: str
    path: str
    """With the query."""
    headers: dict[str, str]
    """Names in lower case."""
    raw: bytes
    connection: int
    """Number of the connection it came on: the same for two requests when it was kept alive."""
    disconnected: Signal = field(default_factory=Signal)
    """Set when the client closed the connection before the answer was out."""
    answered: Signal = field(default_factory=Signal)
    """Set when the whole answer was written."""

    @property
    def json(self) -> Json:
        """The body, decoded."""
        body = jsonlib.loads(self.raw)
        assert isinstance(body, dict)
        return body

    @property
    def messages(self) -> list[Json]:
        """The chat messages of the body."""
        return self.json["messages"]


class ScriptedServer:
    """See the module's text. All attributes may be read, and `loading` and `others` changed, while it runs."""

    def __init__(
        self,
        script: Script = (),
        *,
        llama: Llama | None = Llama(),
        model: str = "scripted-model",
        parameters: int = 30_000_000_000,
        loading: bool = False,
    ) -> None:
        """Nothing is served before the `with` block (or `start`).

        Args:
            script: What to answer to the chat requests.
            llama: What to pose as; `None` for a plain OpenAI-compatible server.
            model: The name in `/props` and `/v1/models`.
            parameters: Weights of the model, as `/v1/models` of llama.cpp tells them.
            loading: Answer 503 `Loading model` to everything until set to false.
        """
        self.requests: list[Recorded] = []
        """The chat requests, oldest first."""
        self.lookups: list[Recorded] = []
        """All other requests."""
        self.others: dict[str, Step] = {}
        """Answers for paths besides the chat's, by path without the query; they go before the usual ones."""
        self.loading = loading
        self.llama = llama
        self.model = model
        self.parameters = parameters
        self.port = 0
        self._script = script if callable(script) else list(script)
        self._problems: list[str] = []
        self._arrivals: dict[int, Signal] = {}
        self._lock = threading.Lock()
        self._connections: list[_Connection] = []
        self._accepted = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event | None = None

    @property
    def base_url(self) -> str:
        """What late is given: with `/v1`."""
        return f"{self.host_url}/v1"

    @property
    def host_url(self) -> str:
        """Without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def unused(self) -> int:
        """Items of the script that nobody asked for."""
        return 0 if callable(self._script) else len(self._script)

    def then(self, *items: ScriptItem) -> None:
        """Add to the end of the script."""
        assert not callable(self._script), "the script is a function"
        with self._lock:
            self._script.extend(items)

    def arrived(self, count: int) -> Signal:
        """A signal that is set as soon as `count` chat requests are there."""
        with self._lock:
            signal = self._arrivals.setdefault(count, Signal())
            if len(self.requests) >= count:
                signal.set()
        return signal

    def start(self) -> None:
        """Listen; after `stop` on the same port as before, so that a restart of the server can be played."""
        ready = threading.Event()
        # asyncio switches Nagle's algorithm off (40 ms a step) only where the protocol is named.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(listener, ready)), daemon=True)
        self._thread.start()
        ready.wait()

    def stop(self) -> None:
        """Close all connections and refuse new ones."""
        if self._thread and self._loop and self._stop:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
        self._thread = None

    def __enter__(self) -> ScriptedServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._problems and kind is None:
            raise AssertionError("; ".join(self._problems))

    async def _serve(self, listener: socket.socket, ready: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await self._loop.create_server(lambda: _Connection(self), sock=listener)
        ready.set()
        await self._stop.wait()
        server.close()
        for connection in list(self._connections):
            connection.abort()
        await server.wait_closed()

    def _joined(self, connection: _Connection) -> int:
        self._connections.append(connection)
        self._accepted += 1
        return self._accepted

    def _left(self, connection: _Connection) -> None:
        self._connections.remove(connection)

    def _answer(self, request: Recorded) -> Step:
        path = request.path.partition("?")[0]
        if request.method == "POST" and path.endswith("/chat/completions"):
            return self._play(request)
        self.lookups.append(request)
        if self.loading:
            return _LOADING
        return self._look_up(request, path)

    def _look_up(self, request: Recorded, path: str) -> Step:
        if path in self.others:
            return self.others[path]
        if path == "/v1/models":
            entry: Json = {"id": self.model, "object": "model", "owned_by": "llamacpp" if self.llama else "scripted"}
            if self.llama:
                entry["meta"] = {"n_ctx": self.llama.n_ctx, "n_ctx_train": 262144, "n_params": self.parameters}
            return json({"object": "list", "data": [entry]})
        if self.llama and path == "/props":
            return json(self.llama.props(self.model))
        if self.llama and path == "/health":
            return json({"status": "ok"})
        if self.llama and path == "/tokenize":
            return json({"tokens": list(range(-(-len(str(request.json["content"])) // 4)))})
        return error(404, "File Not Found", type="not_found_error")

    def _play(self, request: Recorded) -> Step:
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
            for count, signal in self._arrivals.items():
                if number >= count:
                    signal.set()
            if self.loading:
                return _LOADING
            item = self._script if callable(self._script) else self._script.pop(0) if self._script else None
        if item is None:
            return self._problem(f"the script has no answer for chat request {number}")
        if isinstance(item, Step):
            step = item
        else:
            try:
                step = item(request)
            except Exception as e:
                return self._problem(f"the script's function failed at chat request {number}: {e!r}")
        mark, ids = _ID_MARK.encode(), f"call_{number}_".encode()
        return replace(step, parts=tuple(p if isinstance(p, Signal) else p.replace(mark, ids) for p in step.parts))

    def _problem(self, message: str) -> Step:
        self._problems.append(message)
        return error(400, message, type="script_error")


_LOADING = error(503, "Loading model", type="unavailable_error")


class _Connection(asyncio.Protocol):
    """One connection: requests come in one after the other, each is answered before the next is read."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server
        self._buffer = bytearray()
        self._number = 0
        self._task: asyncio.Task[None] | None = None
        self._request: Recorded | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._number = self._server._joined(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server._left(self)
        if self._request is not None:
            self._request.disconnected.set()
        if self._task is not None:
            self._task.cancel()

    def eof_received(self) -> bool:
        return False

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()

    def _next(self) -> None:
        if self._request is not None:
            return
        head, separator, _ = bytes(self._buffer[:65536]).partition(b"\r\n\r\n")
        if not separator:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        start, length = len(head) + 4, int(headers.get("content-length", "0"))
        if len(self._buffer) < start + length:
            return
        body = bytes(self._buffer[start : start + length])
        del self._buffer[: start + length]
        method, path, _ = first.split(" ")
        self._request = Recorded(method, path, headers, body, self._number)
        self._task = asyncio.get_running_loop().create_task(self._write(self._request))

    async def _write(self, request: Recorded) -> None:
        transport = self._transport
        assert transport is not None
        step = self._server._answer(request)
        if step.before_head is not None:
            await step.before_head.seen(timeout=None)
        if step.ending == "reset":
            self._request = None
            transport.close()
            return
        head = [f"HTTP/1.1 {step.status} Scripted", "transfer-encoding: chunked"]
        head += [f"{name}: {value}" for name, value in step.headers.items()]
        transport.write("\r\n".join([*head, "", ""]).encode())
        for part in step.parts:
            if isinstance(part, Signal):
                await part.seen(timeout=None)
            elif part:
                transport.write(b"%x\r\n%b\r\n" % (len(part), part))
                await asyncio.sleep(0)
        self._request = None
        if step.ending == "cut":
            transport.close()
            request.answered.set()
        else:
            transport.write(b"0\r\n\r\n")
            request.answered.set()
            self._next()
