"""Calls as JSON that the server forces with a schema: for models that understand but do not keep to the format.

The schema is no part of the prompt, so the set of legal calls may change at every turn without touching the cached
prefix. The tools are described in the system prompt, once.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, cast

from late.events import ToolCall
from late.llm.dialects.base import Decoder, answered, as_text, joined, system_text
from late.llm.dialects.partial import PartialJson
from late.llm.dialects.repetition import Repetition
from late.llm.messages import Message, SystemMessage
from late.llm.provider import (
    CallFragment,
    Completed,
    DialectName,
    JsonSchema,
    Legal,
    StreamItem,
    Text,
    ToolSpec,
    TurnRequest,
)

SAY = "say"
DEFAULT_TEMPERATURE = 0.2
"""Where a person set none: weak models keep to a task better when cool (measured on `benchmarks/tasks`)."""


@dataclass(frozen=True, slots=True)
class ConstrainedDialect:
    """One JSON object per turn: `{"name": …, "arguments": …}`, or `{"say": …}` for plain speech."""

    name: DialectName = "constrained"

    def body(self, request: TurnRequest) -> dict[str, Any]:
        """Messages as text, and the schema of what is legal now."""
        return {
            "messages": text_messages(request, self._tail(request)),
            "temperature": request.temperature if request.temperature is not None else DEFAULT_TEMPERATURE,
            "response_format": response_format(request.legal or _everything(request)),
        }

    def decoder(self, request: TurnRequest) -> Decoder:
        """A reader of the one JSON object."""
        return JsonDecoder(final=request.legal is not None and request.legal.edit is not None)

    def _tail(self, request: TurnRequest) -> str:
        return CALL_FORMAT if request.tools else ""


CALL_FORMAT = (
    "Answer with one JSON object on one line and nothing else.\n"
    'To use a tool, for example: {"name":"read_file","arguments":{"path":"src/app.py"}}\n'
    'To answer the person: {"say":ANSWER}, ANSWER being a sentence in quotes.'
)


def text_messages(request: TurnRequest, tail: str) -> list[dict[str, Any]]:
    """The messages as text, the tools described at the end of the system message."""
    parts = [system_text(request.messages)]
    if request.tools:
        parts.append("Tools:\n" + "\n".join(describe(tool) for tool in request.tools))
    if tail:
        parts.append(tail)
    messages: list[Message] = [SystemMessage("\n\n".join(parts)), *answered(request.messages)[1:]]
    return joined(as_text(message) for message in messages)


def describe(tool: ToolSpec) -> str:
    """One line: `name(arg, other?) – description`."""
    required = set(cast("list[str]", tool.parameters.get("required", [])))
    names = cast("dict[str, Any]", tool.parameters.get("properties", {}))
    arguments = ", ".join(name if name in required else f"{name}?" for name in names)
    return f"- {tool.name}({arguments}): {tool.description}"


def _everything(request: TurnRequest) -> Legal:
    return Legal(calls={tool.name: tool.parameters for tool in request.tools})


def response_format(legal: Legal) -> dict[str, Any]:
    """The schema of one turn: one alternative per legal call, and one for speech."""
    alternatives: list[JsonSchema] = [
        {
            "type": "object",
            "properties": {"name": {"const": name}, "arguments": arguments},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for name, arguments in legal.calls.items()
    ]
    if legal.speech or not alternatives:
        alternatives.append(
            {
                "type": "object",
                "properties": {SAY: {"type": "string", "minLength": 4}},
                "required": [SAY],
                "additionalProperties": False,
            }
        )
    schema = alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives}
    return {"type": "json_schema", "json_schema": {"name": "turn", "schema": schema}}


class JsonDecoder:
    """Shows speech and arguments while the JSON streams, and makes the call at its end."""

    def __init__(self, *, final: bool = False) -> None:
        """`final`: the answer's call is all that is wanted of this turn."""
        self._partial = PartialJson()
        self._final = final
        self._said: list[str] = []
        self._repetition = Repetition()

    def feed(self, item: StreamItem) -> Iterable[StreamItem]:
        """Text becomes speech or fragments of a call; everything else passes."""
        if not isinstance(item, Text):
            yield item
            return
        for kind, value in self._partial.feed(item.text):
            if kind == SAY:
                self._said.append(value)
                self._repetition.feed(value)
                yield Text(value)
            else:
                yield CallFragment(0, value if kind == "name" else "", value if kind == "arguments" else "")

    def stop(self) -> bool:
        """True when it speaks in circles; everything else is ended by the grammar."""
        return self._repetition.found

    def finish(self, completed: Completed) -> Completed:
        """The call, or the speech; broken JSON (cut by a limit) stays text without a call."""
        raw = completed.text
        try:
            data: Any = json.loads(raw)
        except ValueError:
            if self._said:
                # Speech that was cut is an answer all the same: another turn would only say it again.
                said = "".join(self._said) + " …"
                return replace(completed, raw=json.dumps({SAY: said}, ensure_ascii=False), text=said, finish="stop")
            return replace(completed, raw=raw, text="" if raw.lstrip().startswith("{") else raw)
        if not isinstance(data, dict):
            return replace(completed, raw=raw)
        answer = cast("dict[str, Any]", data)
        if isinstance(answer.get("name"), str):
            call = ToolCall(
                id=f"call_{uuid.uuid4().hex[:12]}",
                name=answer["name"],
                arguments=json.dumps(answer.get("arguments") or {}, ensure_ascii=False),
            )
            finish = "tool_calls" if completed.finish == "stop" else completed.finish
            return replace(completed, raw=raw, text="", calls=(call,), finish=finish, final=self._final)
        return replace(completed, raw=raw, text=str(answer.get(SAY, "")))
