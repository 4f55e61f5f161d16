"""Request bodies: what is sent, and in which order of bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from late.llm.loose import as_list, as_object, as_text

_BEFORE_MESSAGES = (
    "model",
    "stream",
    "stream_options",
    "cache_prompt",
    "return_progress",
    "timings_per_token",
    "chat_template_kwargs",
    "tools",
)
_LLAMA_CPP_ONLY = ("cache_prompt", "return_progress", "timings_per_token", "id_slot")


def request_body(body: Mapping[str, Any], *, model: str, llama_cpp: bool, slots: int | None) -> dict[str, Any]:
    """Complete a dialect's body with what the server understands.

    Servers other than llama.cpp never see its extensions: strict ones refuse unknown keys. A slot that the server does
    not have is left out.
    """
    complete: dict[str, Any] = {"model": model} if model else {}
    complete |= {"stream": True, "stream_options": {"include_usage": True}}
    if llama_cpp:
        complete |= {"cache_prompt": True, "return_progress": True, "timings_per_token": True}
    complete |= body
    slot = complete.get("id_slot")
    dropped = () if llama_cpp else _LLAMA_CPP_ONLY
    if slot is None or (isinstance(slot, int) and slots is not None and slot >= slots):
        dropped = (*dropped, "id_slot")
    return {key: value for key, value in complete.items() if key not in dropped}


def encode_body(body: Mapping[str, Any]) -> bytes:
    """The bytes of a request: compact UTF-8 JSON, the same for the same body.

    What is the same in every request of a conversation comes first, `tools` among it; then come the `messages`, which
    only grow; and last what may change from turn to turn (`id_slot`, `max_tokens`, `response_format`, `temperature`
    and all other keys). So the bytes of a request begin with those of the one before, up to the end of its last
    message. Within these groups the order of insertion is kept.

    Lone surrogates, which no UTF-8 can hold, become U+FFFD.
    """
    first = [key for key in _BEFORE_MESSAGES if key in body]
    rest = [key for key in body if key not in first and key != "messages"]
    middle = ["messages"] if "messages" in body else []
    ordered = {key: body[key] for key in (*first, *middle, *rest)}
    text = json.dumps(ordered, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def call_ids(body: Mapping[str, Any]) -> frozenset[str]:
    """The ids of all calls in a body's messages."""
    return frozenset(
        as_text(as_object(call).get("id"))
        for message in as_list(body.get("messages"))
        for call in as_list(as_object(message).get("tool_calls"))
    )
