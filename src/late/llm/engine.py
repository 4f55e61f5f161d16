"""llama.cpp in this process: one model, several sequences that keep their state apart.

Built on the C functions that llama-cpp-python exports (its `Llama` class holds a single sequence and cannot be stopped
in the middle of a prefill). Everything here blocks and belongs to one thread; only `Engine.interrupt` may be called
from another. `late.llm.local` puts it behind the `Transport` interface.

Switching between planner and coder costs nothing, since both live in one context: copying a state of 900 tokens out
and in took 2.3 s where this was measured (1.5B model, two cores).
"""

from __future__ import annotations

import codecs
import ctypes
import json
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from late.errors import ContextOverflow, ProviderError, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_BATCH = 256
"""Prompt tokens per batch. Progress is known once a batch: 512 gains 7 % of speed, but shows half as often."""
_SIMILAR = 0.1
"""Share of a prompt that a sequence must hold already to be taken for its continuation; llama-server's default."""
_DONE, _ABORTED = 0, 2
_NO_SLOT = 1
_LOG_WARN, _LOG_ERROR = 3, 4
_PIECE_BYTES = 256
_GGUF_MAGIC = b"GGUF"


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen; the defaults are those of llama.cpp's server."""

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    seed: int | None = None
    grammar: str | None = None
    """GBNF that the answer must match."""


@dataclass(frozen=True, slots=True)
class Prefilled:
    """A batch of the prompt was processed. `processed` includes `cached`."""

    total: int
    cached: int
    processed: int
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class Piece:
    """A fragment of the answer, and the tokens generated so far."""

    text: str
    tokens: int
    elapsed_ms: float
    """Since the prompt was processed."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The answer is complete: by the model's own end, or cut by a limit or by `interrupt`."""

    reason: Literal["stop", "length", "interrupted"]


@dataclass(slots=True, eq=False)
class _Sequence:
    tokens: list[int] = field(default_factory=list[int])
    """What the context holds for this sequence, in order."""
    used: float = 0.0


class Engine:
    """A loaded model.

    Args:
        path: a GGUF file.
        window: tokens per sequence.
        sequences: how many conversations keep their state.
        threads: for computing.
        on_load: is told the share of the model that is loaded, 0 to 1; answering False stops loading.

    Raises:
        UserError: no llama-cpp-python, no such file, or no model that llama.cpp can load.
    """

    def __init__(
        self,
        path: Path,
        *,
        window: int,
        sequences: int,
        threads: int,
        on_load: Callable[[float], bool] | None = None,
    ) -> None:
        _require_gguf(path)
        self._llama = _llama_cpp()
        self._stop_flag = ctypes.create_string_buffer(2)
        self._sequences = [_Sequence() for _ in range(sequences)]
        self._model = self._load(path, on_load)
        self._vocab = self._llama.llama_model_get_vocab(self._model)
        self._context = self._new_context(path, window, sequences, threads)
        self._memory = self._llama.llama_get_memory(self._context)
        self._batch = self._llama.llama_batch_init(_BATCH, 0, 1)
        self.window = int(self._llama.llama_n_ctx_seq(self._context))

    def close(self) -> None:
        """Free the model's memory; nothing else may be called afterwards."""
        if self._model is None:
            return
        self._llama.llama_batch_free(self._batch)
        self._llama.llama_free(self._context)
        self._llama.llama_model_free(self._model)
        self._model = None

    def interrupt(self) -> None:
        """Stop what is computed now, within milliseconds; callable from any thread. Holds until `rearm`."""
        self._stop_flag[0] = b"\1"

    def rearm(self) -> None:
        """Forget an earlier `interrupt`."""
        self._stop_flag[0] = b"\0"

    @property
    def weights(self) -> int:
        """How many the model has."""
        return int(self._llama.llama_model_n_params(self._model))

    @property
    def chat_template(self) -> str:
        """The model's own template in Jinja, or an empty text."""
        text = self._llama.llama_model_chat_template(self._model, None)
        return text.decode() if text else ""

    def special_text(self, which: Literal["bos", "eos"]) -> str:
        """The text of a special token, empty where the model has none."""
        get = self._llama.llama_vocab_bos if which == "bos" else self._llama.llama_vocab_eos
        token = int(get(self._vocab))
        return self._llama.llama_vocab_get_text(self._vocab, token).decode() if token >= 0 else ""

    def tokenize(self, text: str, *, beginning: bool = False) -> list[int]:
        """Tokens of `text`, special tokens parsed.

        With `beginning` the one that opens a prompt is added, if the model has one.
        """
        data = text.encode()
        tokens = (self._llama.llama_token * (len(data) + 8))()
        found = self._llama.llama_tokenize(self._vocab, data, len(data), tokens, len(tokens), beginning, True)
        return list(tokens[:found])

    def pick_sequence(self, prompt: Sequence[int], wanted: int | None) -> int:
        """The sequence for `prompt`: the wanted one, or the one that shares most with it, or the one longest unused."""
        if wanted is not None and 0 <= wanted < len(self._sequences):
            return wanted
        nearest = max(self._sequences, key=lambda sequence: _common(sequence.tokens, prompt))
        if _common(nearest.tokens, prompt) < _SIMILAR * len(prompt):
            nearest = min(self._sequences, key=lambda sequence: sequence.used)
        return self._sequences.index(nearest)

    def generate(
        self, prompt: Sequence[int], *, sequence: int, sampling: Sampling, max_tokens: int | None
    ) -> Iterator[Prefilled | Piece | Ended]:
        """Continue `prompt` in `sequence`, whose tokens in common with it are not computed again.

        The last item is `Ended`. Whatever happened, the sequence's record matches the context afterwards.

        Raises:
            ContextOverflow: the prompt leaves no room in the window.
            ProviderError: the grammar cannot be read, or llama.cpp failed.
        """
        if len(prompt) >= self.window:
            raise ContextOverflow(
                f"The prompt has {len(prompt)} tokens, and the window holds {self.window}.",
                "Use a larger context, or shorten the conversation.",
                prompt_tokens=len(prompt),
                window=self.window,
            )
        with _Sampler(self._llama, self._vocab, self._context, sampling) as sampler:
            yield from self._prefill(prompt, sequence)
            if self._stopped:
                yield Ended("interrupted")
                return
            room = self.window - len(prompt)
            yield from self._decode(sequence, sampler, min(room, max_tokens or room))

    @property
    def _stopped(self) -> bool:
        return self._stop_flag[0] != b"\0"

    def _prefill(self, prompt: Sequence[int], sequence: int) -> Iterator[Prefilled]:
        started = time.monotonic()
        record = self._sequences[sequence]
        record.used = started
        # The last token is always computed: its logits are what the answer starts from.
        cached = min(_common(record.tokens, prompt), len(prompt) - 1)
        cached = self._rewind(sequence, cached)
        yield Prefilled(len(prompt), cached, cached, 0.0)
        for start in range(cached, len(prompt), _BATCH):
            if not self._compute(prompt[start : start + _BATCH], sequence):
                return
            elapsed_ms = (time.monotonic() - started) * 1000
            yield Prefilled(len(prompt), cached, len(record.tokens), elapsed_ms)

    def _decode(self, sequence: int, sampler: _Sampler, limit: int) -> Iterator[Piece | Ended]:
        started = time.monotonic()
        text = codecs.getincrementaldecoder("utf-8")("replace")
        for count in range(1, limit + 1):
            token = sampler.next()
            if self._llama.llama_vocab_is_eog(self._vocab, token):
                yield Ended("stop")
                return
            elapsed_ms = (time.monotonic() - started) * 1000
            yield Piece(text.decode(self._piece(token)), count, elapsed_ms)
            if self._stopped or (count < limit and not self._compute([token], sequence)):
                yield Ended("interrupted")
                return
        yield Ended("length")

    def _rewind(self, sequence: int, length: int) -> int:
        """Shorten a sequence to `length` tokens; a recurrent model, which cannot, loses all. Returns what is left."""
        record = self._sequences[sequence]
        if len(record.tokens) > length and not self._llama.llama_memory_seq_rm(self._memory, sequence, length, -1):
            self._llama.llama_memory_seq_rm(self._memory, sequence, -1, -1)
            length = 0
        del record.tokens[length:]
        return length

    def _compute(self, tokens: Sequence[int], sequence: int) -> bool:
        """Append `tokens` to a sequence; False if that was interrupted."""
        record = self._sequences[sequence]
        batch = self._batch
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i] = token
            batch.pos[i] = len(record.tokens) + i
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = sequence
            batch.logits[i] = i == len(tokens) - 1
        code = _ABORTED if self._stopped else self._llama.llama_decode(self._context, batch)
        if code == _DONE:
            record.tokens.extend(tokens)
            return True
        if not self._llama.llama_memory_seq_rm(self._memory, sequence, len(record.tokens), -1):
            self._llama.llama_memory_seq_rm(self._memory, sequence, -1, -1)
            record.tokens.clear()
        if code == _ABORTED:
            return False
        what = "there was no room left in the context" if code == _NO_SLOT else "it is a fault of its own"
        raise ProviderError(
            f"llama.cpp could not compute a batch of {len(tokens)} tokens: {what} (code {code}). {_reason()}"
        )

    def _piece(self, token: int) -> bytes:
        buffer = ctypes.create_string_buffer(_PIECE_BYTES)
        size = self._llama.llama_token_to_piece(self._vocab, token, buffer, _PIECE_BYTES, 0, True)
        return buffer.raw[: max(size, 0)]

    def _load(self, path: Path, on_load: Callable[[float], bool] | None) -> Any:
        params = self._llama.llama_model_default_params()
        stopped = False

        @self._llama.llama_progress_callback
        def progressed(share: float, _: int | None) -> bool:
            nonlocal stopped
            stopped = on_load is not None and not on_load(share)
            return not stopped

        params.progress_callback = progressed
        _log.clear()
        model = self._llama.llama_model_load_from_file(os.fsencode(path), params)
        if model is None:
            reason = "Loading was stopped." if stopped else _reason()
            raise UserError(
                f"{path} cannot be loaded. {reason}",
                "The file may be damaged or incomplete, or of a kind that this llama.cpp does not know yet.",
            )
        return model

    def _new_context(self, path: Path, window: int, sequences: int, threads: int) -> Any:
        params = self._llama.llama_context_default_params()
        params.n_ctx = window * sequences
        params.n_seq_max = sequences
        params.kv_unified = False
        params.n_batch = params.n_ubatch = _BATCH
        params.n_threads = params.n_threads_batch = threads
        params.abort_callback = self._abort_callback()
        params.abort_callback_data = ctypes.cast(self._stop_flag, ctypes.c_void_p)
        _log.clear()
        context = self._llama.llama_init_from_model(self._model, params)
        if context is None:
            self._llama.llama_model_free(self._model)
            self._model = None
            raise UserError(
                f"{path} was loaded, but there is no room for {sequences} × {window} tokens of context. {_reason()}",
                "Ask for a smaller context.",
            )
        return context

    def _abort_callback(self) -> Any:
        """What llama.cpp asks before each operation if it should stop: the C library's `strlen` of the stop flag.

        A function written in Python would need the interpreter's lock a thousand times a token, and wait for it
        whenever the screen is being drawn.
        """
        return ctypes.cast(ctypes.CDLL(None).strlen, self._llama.ggml_abort_callback)


class _Sampler:
    """Chooses tokens.

    With a grammar, a token is chosen freely first and only replaced if the grammar forbids it: asking the grammar
    about one token is a thousand times cheaper than about the whole vocabulary.
    """

    def __init__(self, llama: Any, vocab: Any, context: Any, sampling: Sampling) -> None:
        self._llama = llama
        self._context = context
        self._free = self._chain(sampling)
        self._grammar: Any = None
        self._strict: Any = None
        if sampling.grammar is not None:
            _log.clear()
            self._grammar = llama.llama_sampler_init_grammar(vocab, sampling.grammar.encode(), b"root")
            if not self._grammar:
                llama.llama_sampler_free(self._free)
                raise ProviderError(f"llama.cpp cannot read the grammar. {_reason()}")
            self._strict = self._chain(sampling, self._grammar)

    def __enter__(self) -> _Sampler:
        return self

    def __exit__(self, *_: object) -> None:
        self._llama.llama_sampler_free(self._free)
        if self._strict is not None:
            self._llama.llama_sampler_free(self._strict)  # and the grammar, which it owns

    def next(self) -> int:
        """The next token, after the last one that was computed."""
        token = int(self._llama.llama_sampler_sample(self._free, self._context, -1))
        if self._strict is None:
            return token
        if self._permitted(token):
            self._llama.llama_sampler_accept(self._strict, token)
            return token
        return int(self._llama.llama_sampler_sample(self._strict, self._context, -1))

    def _permitted(self, token: int) -> bool:
        candidate = self._llama.llama_token_data(id=token, logit=1.0, p=0.0)
        array = self._llama.llama_token_data_array(data=ctypes.pointer(candidate), size=1, selected=-1, sorted=False)
        self._llama.llama_sampler_apply(self._grammar, ctypes.byref(array))
        return candidate.logit == 1.0

    def _chain(self, sampling: Sampling, first: Any = None) -> Any:
        llama = self._llama
        chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
        if first is not None:
            llama.llama_sampler_chain_add(chain, first)
        if sampling.temperature <= 0:
            llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_greedy())
            return chain
        seed = int.from_bytes(os.urandom(4)) if sampling.seed is None else sampling.seed & 0xFFFF_FFFF
        for sampler in (
            llama.llama_sampler_init_top_k(sampling.top_k),
            llama.llama_sampler_init_top_p(sampling.top_p, 1),
            llama.llama_sampler_init_min_p(sampling.min_p, 1),
            llama.llama_sampler_init_temp(sampling.temperature),
            llama.llama_sampler_init_dist(seed),
        ):
            llama.llama_sampler_chain_add(chain, sampler)
        return chain


def grammar_of(schema: dict[str, Any]) -> str:
    """GBNF for the JSON that `schema` describes.

    Raises:
        ProviderError: the schema uses what the conversion does not know.
    """
    from llama_cpp.llama_grammar import json_schema_to_gbnf

    try:
        return json_schema_to_gbnf(json.dumps(schema))
    except (AssertionError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProviderError(
            f"The schema of the answer cannot be turned into a grammar: {error!r}", "Simplify the tool's schema."
        ) from error


def _common(first: Sequence[int], second: Sequence[int]) -> int:
    """Length of the common prefix."""
    shorter = min(len(first), len(second))
    if first[:shorter] == second[:shorter]:
        return shorter
    return next(i for i in range(shorter) if first[i] != second[i])


def _require_gguf(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(len(_GGUF_MAGIC))
    except OSError as error:
        raise UserError(
            f"The model file {path} cannot be read: {error.strerror or error}.", "Give the path of a GGUF file."
        ) from error
    if magic != _GGUF_MAGIC:
        raise UserError(
            f"{path} is no GGUF file: it starts with {magic!r}.", "llama.cpp runs models in the GGUF format."
        )


_log: deque[str] = deque(maxlen=20)
"""The last warnings and errors of llama.cpp, which would else go to standard error, into the middle of a TUI."""
_log_callback: Any = None


def _llama_cpp() -> Any:
    """llama-cpp-python's C functions, with llama.cpp's log turned away from standard error.

    Raises:
        UserError: it is not installed, or its library does not load.
    """
    global _log_callback  # noqa: PLW0603 -- the library keeps a pointer to it for as long as the process lives
    try:
        from llama_cpp import llama_cpp
    except ImportError as error:
        raise UserError(
            "The in-process runtime is not installed: there is no llama-cpp-python.",
            "`pip install 'late[local]'` compiles it (some minutes), or start a llama-server.",
        ) from error
    except (OSError, RuntimeError) as error:
        raise UserError(
            f"llama-cpp-python is installed, but its library does not load: {error}",
            "Install it again for this machine: `pip install --force-reinstall --no-cache-dir llama-cpp-python`.",
        ) from error
    if _log_callback is None:

        @llama_cpp.llama_log_callback
        def keep(level: int, text: bytes, _: int | None) -> None:
            if level in (_LOG_WARN, _LOG_ERROR):
                _log.append(text.decode(errors="replace").strip())

        _log_callback = keep
        llama_cpp.llama_log_set(keep, ctypes.c_void_p(0))
    return llama_cpp


def _reason() -> str:
    """The first thing that llama.cpp complained of: what follows is mostly a consequence."""
    return f"llama.cpp says: {_log[0]}" if _log else ""
