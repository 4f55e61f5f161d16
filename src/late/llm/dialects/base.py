"""What a dialect is: how an agent's messages and calls become a request, and how the answer becomes calls again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from late.events import ToolCall
from late.llm.messages import AgentMessage, Message, SystemMessage, ToolMessage, UserMessage
from late.llm.provider import Completed, DialectName, StreamItem, TurnRequest

WireMessage = dict[str, Any]


class Decoder(Protocol):
    """Reads one answer."""

    def feed(self, item: StreamItem) -> Iterable[StreamItem]:
        """What of `item` is to be shown while the answer streams."""
        ...

    def stop(self) -> bool:
        """True when the rest of the answer is not worth waiting for (it repeats itself)."""
        ...

    def finish(self, completed: Completed) -> Completed:
        """The answer with its calls."""
        ...


class Dialect(Protocol):
    """One way for calls to travel. Stateless: the same conversation gives the same bytes, whoever asks."""

    @property
    def name(self) -> DialectName:
        """Its name in the settings."""
        ...

    def body(self, request: TurnRequest) -> dict[str, Any]:
        """The request's `messages`, and `tools` or `response_format` as far as the dialect uses them."""
        ...

    def decoder(self, request: TurnRequest) -> Decoder:
        """A reader for this request's answer."""
        ...


def valid_arguments(call: ToolCall) -> bool:
    """Are the call's arguments a JSON object?"""
    try:
        return isinstance(json.loads(call.arguments), dict)
    except ValueError:
        return False


def joined(messages: Iterable[WireMessage]) -> list[WireMessage]:
    """Merge neighbours of the role `user`: many chat templates demand that roles alternate."""
    out: list[WireMessage] = []
    for message in messages:
        if out and message["role"] == "user" == out[-1]["role"]:
            out[-1] = {"role": "user", "content": f"{out[-1]['content']}\n\n{message['content']}"}
        else:
            out.append(message)
    return out


def answered(messages: Sequence[Message]) -> list[Message]:
    """The messages with one result for each call, and no result without a call: what every server accepts.

    An agent's own conversation is already so; this holds for logs that were cut.
    """
    out: list[Message] = []
    open_calls: dict[str, ToolCall] = {}

    def close() -> None:
        text = "This call was cancelled and has no result."
        out.extend(ToolMessage(call.id, call.name, text) for call in open_calls.values())
        open_calls.clear()

    for message in messages:
        if isinstance(message, ToolMessage):
            if open_calls.pop(message.call_id, None) is not None:
                out.append(message)
            continue
        close()
        if isinstance(message, AgentMessage):
            if not (message.text or message.calls or message.raw):
                continue
            open_calls.update((call.id, call) for call in message.calls)
        out.append(message)
    close()
    return out


def system_text(messages: Sequence[Message]) -> str:
    """The text of the system message."""
    return next((message.text for message in messages if isinstance(message, SystemMessage)), "")


def as_text(message: Message) -> WireMessage:
    """A message for dialects that keep calls in the text: results come as user messages."""
    match message:
        case SystemMessage():
            return {"role": "system", "content": message.text}
        case UserMessage():
            return {"role": "user", "content": message.text}
        case ToolMessage():
            return {"role": "user", "content": f"Result of {message.name}:\n{message.content}"}
        case AgentMessage():
            return {"role": "assistant", "content": message.raw if message.raw is not None else rendered(message)}


def rendered(message: AgentMessage) -> str:
    """An answer of another dialect, in the JSON form of the constrained one."""
    if not message.calls:
        return json.dumps({"say": message.text}, ensure_ascii=False)
    call = message.calls[0]
    arguments: Any = json.loads(call.arguments) if valid_arguments(call) else {}
    return json.dumps({"name": call.name, "arguments": arguments}, ensure_ascii=False)
