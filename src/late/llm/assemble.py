"""From the chunks of a chat completion to `StreamItem`s and one `Completed`.

Whatever servers do to the format is dealt with here: missing and repeated ids, shared indices, split and repeated
names, arguments as objects, thinking in three places, usage in every chunk or in none. An answer that was not streamed
is the same thing in one chunk.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from late.events import FinishReason, ToolCall, Usage
from late.llm.loose import as_int, as_list, as_number, as_object, as_text
from late.llm.provider import CallFragment, Completed, Counted, Progress, Reasoning, StreamItem, Text
from late.llm.think import Piece, ThinkSplitter

_FINISH: dict[str, FinishReason] = {
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "error",
    "error": "error",
    "abort": "error",
}
"""Other words (`stop`, `eos`, `end_turn`, …) mean `stop`."""


class Assembler:
    """Takes the chunks of one answer in order."""

    def __init__(
        self,
        known_tools: Collection[str] = frozenset(),
        *,
        max_tokens: int | None = None,
        taken_ids: Collection[str] = frozenset(),
    ) -> None:
        """Begin an answer.

        Args:
            known_tools: Names by which split names are put together.
            max_tokens: The limit that was sent: an answer of that many tokens was cut, whatever its finish reason says
                (vllm-project/vllm#58228).
            taken_ids: Call ids that the conversation has already; a server that counts from 0 in each answer would
                otherwise give one id to two calls.
        """
        self._known = frozenset(known_tools)
        self._max_tokens = max_tokens
        self._ids = set(taken_ids)
        self._splitter = ThinkSplitter()
        self._reasoning: list[str] = []
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._finish = ""
        self._usage = Usage()
        self._seen = False

    @property
    def ended(self) -> bool:
        """Did the server say why the answer ended?"""
        return bool(self._finish)

    @property
    def empty(self) -> bool:
        """Nothing arrived that belongs to an answer."""
        return not self._seen

    @property
    def partial(self) -> str:
        """The answer's text so far."""
        return self._splitter.text

    def feed(self, chunk: Mapping[str, Any]) -> Iterator[StreamItem]:
        """Take one chunk, or a whole answer that was not streamed. Read the items to the end: they are its effect."""
        yield from self._progress(as_object(chunk.get("prompt_progress")))
        for entry in as_list(chunk.get("choices")):
            choice = as_object(entry)
            if as_int(choice.get("index")) not in (None, 0):
                continue
            self._seen = True
            whole = as_object(choice.get("message"))
            yield from self._delta(as_object(choice.get("delta")) or whole, whole=bool(whole))
            self._finish = as_text(choice.get("finish_reason")) or self._finish
        yield from self._count(chunk)

    def finish(self) -> Iterator[StreamItem]:
        """The last items, `Completed` being the very last. Call it once, when the answer is whole."""
        yield from map(_item, self._splitter.finish())
        for found in self._splitter.calls:
            self._calls.append(_Call(name=found.name, arguments=[found.arguments]))
        reasoning = "".join(self._reasoning)
        tagged = self._splitter.reasoning
        calls = tuple(self._tool_call(call) for call in self._calls if call.name)
        yield Completed(
            text=self._splitter.text,
            reasoning=f"{reasoning}\n{tagged}" if reasoning and tagged else reasoning or tagged,
            calls=calls,
            finish=self._finish_reason(bool(calls)),
            usage=self._usage,
        )

    def _progress(self, report: Mapping[str, Any]) -> Iterator[Progress]:
        total = as_int(report.get("total"))
        if total is not None:
            yield Progress(
                total=total,
                cached=as_int(report.get("cache")) or 0,
                processed=as_int(report.get("processed")) or 0,
                elapsed_ms=as_number(report.get("time_ms")) or 0.0,
            )

    def _delta(self, delta: Mapping[str, Any], *, whole: bool) -> Iterator[StreamItem]:
        thought = as_text(delta.get("reasoning_content")) or as_text(delta.get("reasoning"))
        text, thought_part = _content(delta.get("content"))
        thought += thought_part
        text += as_text(delta.get("refusal"))
        if thought:
            self._reasoning.append(thought)
            yield Reasoning(thought)
        if text:
            yield from map(_item, self._splitter.feed(text))
        parts = as_list(delta.get("tool_calls"))
        if not parts and (legacy := as_object(delta.get("function_call"))):
            parts = [{"index": 0, "function": legacy}]
        for position, part in enumerate(parts):
            yield from self._call_part(as_object(part), position if whole else None)

    def _call_part(self, part: Mapping[str, Any], position: int | None) -> Iterator[CallFragment]:
        function = as_object(part.get("function")) or part
        call_id = _identifier(part.get("id"))
        name = as_text(function.get("name")).partition("<|")[0].strip()
        arguments = function.get("arguments")
        if arguments is None:
            fragment = ""
        elif isinstance(arguments, str):
            fragment = arguments
        else:
            fragment = json.dumps(arguments, ensure_ascii=False)
        index = as_int(part.get("index"))
        call = self._find(index if position is None else position, call_id, name, fragment)
        call.id = call.id or call_id
        call.name = self._join_name(call.name, name)
        call.arguments.append(fragment)
        yield CallFragment(self._calls.index(call), call.name if name else "", fragment)

    def _find(self, index: int | None, call_id: str, name: str, fragment: str) -> _Call:
        """The call that a fragment belongs to, a new one if it begins one."""
        if index is not None:
            call = self._by_index.get(index)
        elif call_id:
            call = next((c for c in self._calls if c.id == call_id), None)
            if call is None and self._calls and not self._calls[-1].id and not name:
                call = self._calls[-1]
        else:
            call = self._calls[-1] if self._calls else None
        if call is None or self._begins_another(call, call_id, name, fragment):
            call = _Call()
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def _begins_another(self, call: _Call, call_id: str, name: str, fragment: str) -> bool:
        """Does a fragment under the index (or in the place) of `call` begin another call?

        A new id with a name does (apache/maka#1976), except in mid-arguments, where some servers repeat the name and
        make up an id for each fragment. Without ids, a name does after arguments that are whole, and another tool's
        name always.
        """
        if not name or not call.name or (call_id and call_id == call.id):
            return False
        if name != call.name and {name, call.name} <= self._known:
            return True
        starts_object = fragment.lstrip().startswith("{")
        if call_id and call.id:
            begun = any(part.strip() for part in call.arguments)
            return starts_object or not begun or call.complete()
        return starts_object and call.complete()

    def _join_name(self, so_far: str, name: str) -> str:
        if not name or name == so_far:
            return so_far
        joined = so_far + name
        return joined if any(tool.startswith(joined) for tool in self._known) else name

    def _tool_call(self, call: _Call) -> ToolCall:
        call_id = call.id
        while not call_id or call_id in self._ids:
            # Nine letters and digits: the one form that every server takes, Mistral's included.
            call_id = uuid.uuid4().hex[:9]
        self._ids.add(call_id)
        name = call.name
        if name not in self._known and name.removeprefix("functions.") in self._known:
            name = name.removeprefix("functions.")
        return ToolCall(id=call_id, name=name, arguments=_decode_once("".join(call.arguments)))

    def _count(self, chunk: Mapping[str, Any]) -> Iterator[Counted]:
        usage, timings = as_object(chunk.get("usage")), as_object(chunk.get("timings"))
        figures = (*_from_usage(usage).items(), *_from_timings(timings).items())
        known = {name: value for name, value in figures if value is not None}
        self._seen = self._seen or bool(known)
        # While llama.cpp works on the prompt its timings are of the part that is done: no count of the prompt yet.
        if not known or chunk.get("prompt_progress"):
            return
        counted = self._usage.model_copy(update=known)
        if counted != self._usage:
            self._usage = counted
            yield Counted(counted)

    def _finish_reason(self, has_calls: bool) -> FinishReason:
        reason = _FINISH.get(self._finish, "stop")
        made = self._usage.completion_tokens
        if self._max_tokens is not None and made is not None and made >= self._max_tokens:
            return "length"
        if reason in ("stop", "tool_calls"):
            return "tool_calls" if has_calls else "stop"
        return reason


@dataclass(slots=True, eq=False)
class _Call:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])

    def complete(self) -> bool:
        """Are the arguments so far a whole JSON object? Only asked where another one may begin."""
        text = "".join(self.arguments).strip()
        if not text.endswith("}"):
            return False
        try:
            return isinstance(json.loads(text), dict)
        except ValueError:
            return False


def _identifier(value: Any) -> str:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else as_text(value)


def _item(piece: Piece) -> Text | Reasoning:
    return Text(piece.text) if piece.kind == "text" else Reasoning(piece.text)


def _content(value: Any) -> tuple[str, str]:
    """Answer and thinking in a message's content: a string, nothing, or a list of parts."""
    if isinstance(value, str):
        return value, ""
    texts: list[str] = []
    thoughts: list[str] = []
    for entry in as_list(value):
        if isinstance(entry, str):
            texts.append(entry)
            continue
        part = as_object(entry)
        if part.get("type") in ("thinking", "reasoning"):
            inner = part.get("thinking") or part.get("reasoning") or part.get("text")
            thoughts.append("".join(_content(inner)))
        else:
            texts.append(as_text(part.get("text")))
    return "".join(texts), "".join(thoughts)


_JSON_STRING = re.compile(r'\s*"')


def _decode_once(arguments: str) -> str:
    """Arguments that are a JSON string with an object's JSON in it: that object's JSON. All others as they are."""
    if not _JSON_STRING.match(arguments):
        return arguments
    try:
        inner = json.loads(arguments)
        return inner if isinstance(inner, str) and isinstance(json.loads(inner), dict) else arguments
    except ValueError:
        return arguments


def _from_usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    details = as_object(usage.get("prompt_tokens_details"))
    cached = as_int(details.get("cached_tokens"))
    if cached is None:
        cached = as_int(usage.get("prompt_cache_hit_tokens"))
    return {
        # Servers that do not count say 0 (pi#2128); no prompt has no tokens.
        "prompt_tokens": as_int(usage.get("prompt_tokens")) or None,
        "completion_tokens": as_int(usage.get("completion_tokens")),
        "cached_tokens": cached,
    }


def _from_timings(timings: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of llama.cpp: `prompt_n` counts only what was not in the cache."""
    cached, processed = as_int(timings.get("cache_n")), as_int(timings.get("prompt_n"))
    return {
        "prompt_tokens": None if processed is None else (cached or 0) + processed,
        "cached_tokens": cached,
        "completion_tokens": as_int(timings.get("predicted_n")),
        "prompt_ms": as_number(timings.get("prompt_ms")),
        "completion_ms": as_number(timings.get("predicted_ms")),
    }
