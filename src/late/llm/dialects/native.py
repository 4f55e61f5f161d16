"""The server's own tool calls: for models that were trained on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from late.events import ToolCall
from late.llm.dialects.base import Decoder, WireMessage, answered, joined, valid_arguments
from late.llm.messages import AgentMessage, Message, SystemMessage, ToolMessage, UserMessage
from late.llm.provider import Completed, DialectName, StreamItem, TurnRequest


@dataclass(frozen=True, slots=True)
class NativeDialect:
    """Calls as `tool_calls`. `keep_reasoning`: thinking is sent back (one rule for a whole endpoint)."""

    keep_reasoning: bool = False
    name: DialectName = "native"

    def body(self, request: TurnRequest) -> dict[str, Any]:
        """Tools in fixed order, then the messages."""
        body: dict[str, Any] = {}
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
                }
                for tool in request.tools
            ]
        body["messages"] = joined(self._message(message) for message in answered(request.messages))
        return body

    def decoder(self, request: TurnRequest) -> Decoder:
        """Nothing to read: the transport has assembled the calls."""
        return _Verbatim()

    def _message(self, message: Message) -> WireMessage:
        match message:
            case SystemMessage():
                return {"role": "system", "content": message.text}
            case UserMessage():
                return {"role": "user", "content": message.text}
            case ToolMessage():
                return {"role": "tool", "tool_call_id": message.call_id, "content": message.content}
            case AgentMessage():
                wire: WireMessage = {"role": "assistant", "content": message.text}
                if self.keep_reasoning and message.reasoning:
                    wire["reasoning_content"] = message.reasoning
                if message.calls:
                    wire["tool_calls"] = [_call(call) for call in message.calls]
                return wire


def _call(call: ToolCall) -> WireMessage:
    # llama-server answers 500 to history whose arguments are no JSON; the call's result says what was wrong.
    arguments = call.arguments if valid_arguments(call) else "{}"
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


class _Verbatim:
    def feed(self, item: StreamItem) -> Iterable[StreamItem]:
        return (item,)

    def stop(self) -> bool:
        return False

    def finish(self, completed: Completed) -> Completed:
        return completed
