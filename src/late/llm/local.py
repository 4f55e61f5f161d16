"""A `Transport` over llama.cpp in this process: no server, nothing to install but the `local` extra.

All computing is done by one thread of its own, so that the event loop stays responsive (ctypes releases the
interpreter's lock while llama.cpp computes). Requests are served one after the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

from late.errors import ProviderError, UserError
from late.events import Usage
from late.llm.artifacts import CODER_1_5B, fetch_model
from late.llm.chat_template import ChatTemplate
from late.llm.engine import Ended, Engine, Piece, Prefilled, Sampling, grammar_of
from late.llm.progress import ProgressPrinter, Report
from late.llm.provider import Completed, Counted, Progress, StreamItem, Text, Waiting
from late.llm.runtime import ensure_runtime
from late.llm.transport import ServerInfo

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
    from pathlib import Path

    from late.events import FinishReason

_T = TypeVar("_T")
_WAITING_EVERY_S = 0.5
_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "seed")


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def prepare_local(model: Path | None, report: Report) -> Path:
    """Fetch and build what running `model` in this process needs; at once when all is there. Returns the model's path.

    `None` stands for the pinned small coder model (1.1 GB, fetched once).

    Raises:
        UserError: it cannot be had; the message says why, and what is finished is kept.
    """
    if model is not None and not model.is_file():
        raise UserError(f"There is no model file {model}.", "Give the path of a GGUF file.")
    ensure_runtime(report)
    return model or fetch_model(CODER_1_5B, report)


def open_local(model: Path | None) -> LocalTransport:
    """The in-process transport, prepared; progress is written to standard error, so call it before a TUI starts.

    Raises:
        UserError: as `prepare_local`.
    """
    printer = ProgressPrinter(sys.stderr)
    try:
        with _stopped_by_ctrl_c():
            return LocalTransport(prepare_local(model, printer))
    finally:
        printer.end()


@contextlib.contextmanager
def _stopped_by_ctrl_c() -> Generator[None, None, None]:
    """Let Ctrl-C end a preparation at once, also where a running event loop would only take note of it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class LocalTransport:
    """Runs a GGUF file.

    Args:
        path: the file.
        ctx: tokens of context, shared out among the slots as a llama-server does.
        slots: conversations that keep their state; `id_slot` in a request's body selects one.
        threads: for computing; `None`: all cores but one from three cores on, so that a TUI stays smooth.
    """

    def __init__(self, path: Path, *, ctx: int = 32768, slots: int = 2, threads: int | None = None) -> None:
        self._path = path
        self._slots = slots
        self._window = ctx // slots
        cores = available_cores()
        self._threads = threads or (cores if cores < 3 else cores - 1)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="llama.cpp")
        self._engine: Engine | None = None
        self._template: ChatTemplate | None = None
        self._lock = threading.Lock()
        self._current: _Job | None = None
        self._loaded_share = 0.0
        self._closed = False

    async def describe(self) -> ServerInfo:
        """Load the model if need be, and say what it is.

        Raises:
            UserError: no llama-cpp-python, no such file, or no model that llama.cpp can load.
        """
        engine = await self._in_thread(self._loaded)
        return ServerInfo(
            endpoint=str(self._path),
            server="in-process",
            model=self._path.stem,
            context_window=engine.window,
            slots=self._slots,
            vision=False,
            parameters=engine.weights,
            chat_template=engine.chat_template,
            build=f"llama-cpp-python {version('llama-cpp-python')}",
        )

    async def complete(
        self, body: dict[str, Any], known_tools: frozenset[str] = frozenset()
    ) -> AsyncGenerator[StreamItem, None]:
        """Run one request; see `Transport.complete`. Calls and thinking come as the text that the model writes.

        Raises:
            UserError: the model cannot be loaded.
            ContextOverflow: the prompt does not fit into the slot's window.
            ProviderError: the messages or the schema cannot be used, or llama.cpp failed.
        """
        loop = asyncio.get_running_loop()
        items: asyncio.Queue[StreamItem | None] = asyncio.Queue()
        job = _Job(body, lambda item: loop.call_soon_threadsafe(items.put_nowait, item))
        future = loop.run_in_executor(self._thread, self._run, job)
        future.add_done_callback(lambda _: items.put_nowait(None))
        started = time.monotonic()
        try:
            while True:
                try:
                    item = await asyncio.wait_for(items.get(), None if job.begun else _WAITING_EVERY_S)
                except TimeoutError:
                    yield self._waiting(time.monotonic() - started)
                    continue
                if item is None:
                    break
                yield item
            await future
        finally:
            if not future.done():
                future.add_done_callback(_look_at)
                self._cancel(job)
                if job.begun:
                    await asyncio.wait([future])

    async def tokenize(self, text: str) -> int | None:
        """Number of tokens of `text`, special tokens parsed.

        Raises:
            UserError: the model cannot be loaded.
        """
        return await self._in_thread(lambda: len(self._loaded().tokenize(text)))

    async def close(self) -> None:
        """Stop what is running and free the model's memory."""
        if self._closed:
            return
        self._closed = True
        if self._engine is not None:
            self._engine.interrupt()
        await self._in_thread(self._free)
        self._thread.shutdown(wait=False)

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _waiting(self, elapsed_s: float) -> Waiting:
        if self._engine is None:
            share = f" ({self._loaded_share:.0%})" if self._loaded_share else ""
            return Waiting("loading", f"loading {self._path.name}{share}", elapsed_s)
        return Waiting("loading", "the model is busy with another agent's turn", elapsed_s)

    def _cancel(self, job: _Job) -> None:
        """Stop `job`, and no other that may run by now."""
        with self._lock:
            job.cancelled = True
            if self._current is job and self._engine is not None:
                self._engine.interrupt()

    # What follows runs in the model's thread.

    def _loaded(self) -> Engine:
        if self._engine is None:
            self._engine = Engine(
                self._path,
                window=self._window,
                sequences=self._slots,
                threads=self._threads,
                on_load=self._on_load,
            )
        return self._engine

    def _on_load(self, share: float) -> bool:
        self._loaded_share = share
        return not self._closed

    def _free(self) -> None:
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _run(self, job: _Job) -> None:
        if job.cancelled or self._closed:
            return
        engine = self._loaded()
        with self._lock:
            if job.cancelled or self._closed:
                return
            engine.rearm()
            self._current = job
        job.begun = True
        try:
            self._answer(engine, job)
        finally:
            with self._lock:
                self._current = None

    def _answer(self, engine: Engine, job: _Job) -> None:
        body = job.body
        if self._template is None:
            self._template = ChatTemplate(
                engine.chat_template, bos=engine.special_text("bos"), eos=engine.special_text("eos")
            )
        prompt = engine.tokenize(
            self._template.render(body["messages"], body.get("tools")),
            beginning=not self._template.opens_prompt,
        )
        sequence = engine.pick_sequence(prompt, body.get("id_slot"))
        answer = _Answer(len(prompt), _stops(body))
        for item in engine.generate(
            prompt, sequence=sequence, sampling=_sampling(body), max_tokens=body.get("max_tokens")
        ):
            for out in answer.take(item):
                job.put(out)
            if job.cancelled:
                return
            if answer.finish is not None:
                break
        job.put(answer.completed())


@dataclass(slots=True)
class _Job:
    """One request on its way through the model's thread."""

    body: dict[str, Any]
    put: Callable[[StreamItem], object]
    begun: bool = False
    cancelled: bool = False


class _Answer:
    """Turns what the engine yields into the items of a stream."""

    def __init__(self, prompt_tokens: int, stops: Sequence[str]) -> None:
        self.finish: FinishReason | None = None
        self._usage = Usage(prompt_tokens=prompt_tokens)
        self._stops = stops
        self._text = ""
        self._sent = 0
        self._started = time.monotonic()
        self._first_ms: float | None = None

    def take(self, item: Prefilled | Piece | Ended) -> Iterator[StreamItem]:
        """What is to be told of `item`."""
        match item:
            case Prefilled():
                self._usage = self._usage.model_copy(
                    update={"cached_tokens": item.cached, "prompt_ms": item.elapsed_ms}
                )
                yield Progress(item.total, item.cached, item.processed, item.elapsed_ms)
            case Piece():
                if self._first_ms is None:
                    self._first_ms = (time.monotonic() - self._started) * 1000
                self._usage = self._usage.model_copy(
                    update={"completion_tokens": item.tokens, "completion_ms": item.elapsed_ms}
                )
                self._text += item.text
                yield from self._fresh(_held_back(self._text, self._stops))
                yield Counted(self._usage)
            case Ended():
                self.finish = "cancelled" if item.reason == "interrupted" else item.reason
                yield from self._fresh(0)

    def completed(self) -> Completed:
        """The whole."""
        return Completed(
            text=self._text,
            finish=self.finish or "stop",
            usage=self._usage,
            first_byte_ms=self._first_ms,
        )

    def _fresh(self, held_back: int) -> Iterator[Text]:
        """The text that was not sent yet, but for its last `held_back` characters, which may begin a stop word."""
        for stop in self._stops:
            if (at := self._text.find(stop)) >= 0:
                self._text = self._text[:at]
                self.finish = "stop"
                held_back = 0
        end = len(self._text) - held_back
        if end > self._sent:
            yield Text(self._text[self._sent : end])
            self._sent = end


def _held_back(text: str, stops: Sequence[str]) -> int:
    """Length of the longest end of `text` that a stop word starts with."""
    return max((size for stop in stops for size in range(1, len(stop)) if text.endswith(stop[:size])), default=0)


def _stops(body: dict[str, Any]) -> tuple[str, ...]:
    stop = body.get("stop") or ()
    return (stop,) if isinstance(stop, str) else tuple(stop)


def _sampling(body: dict[str, Any]) -> Sampling:
    """The request's sampling settings under the names that llama.cpp's server gives them."""
    chosen = {name: body[name] for name in _SAMPLING if body.get(name) is not None}
    return Sampling(**chosen, grammar=_grammar(body))


def _grammar(body: dict[str, Any]) -> str | None:
    form: dict[str, Any] = body.get("response_format") or {}
    match form.get("type"):
        case "json_schema":
            return grammar_of(form["json_schema"]["schema"])
        case "json_object":
            return grammar_of(form.get("schema") or {"type": "object"})
        case None | "text":
            return body.get("grammar")
        case other:
            raise ProviderError(f"The in-process runtime knows no response format {other!r}.")


def _look_at(future: asyncio.Future[None]) -> None:
    """Take the error of a request that nobody waits for any more."""
    if not future.cancelled():
        future.exception()
