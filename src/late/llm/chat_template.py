"""Renders a conversation with the chat template that a GGUF file carries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from late.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Sequence

_Wire = dict[str, Any]


class ChatTemplate:
    """A model's template.

    Args:
        source: the template, in Jinja.
        bos: text of the token that opens a prompt.
        eos: text of the token that ends one.

    Raises:
        ProviderError: the model brings no template, or one that is no Jinja.
    """

    def __init__(self, source: str, *, bos: str, eos: str) -> None:
        from jinja2 import TemplateError
        from llama_cpp.llama_chat_format import Jinja2ChatFormatter

        if not source:
            raise ProviderError(
                "The model file has no chat template, so it cannot be talked to.",
                "Use the instruct version of the model.",
            )
        try:
            self._formatter = Jinja2ChatFormatter(source, eos_token=eos, bos_token=bos)
        except TemplateError as error:
            raise ProviderError(f"The model's chat template cannot be read: {error}") from error
        self.opens_prompt = bool(bos) and "bos_token" in source
        """Does the template write the opening token itself?"""

    def render(self, messages: Sequence[_Wire], tools: Sequence[_Wire] | None = None) -> str:
        """The prompt's text. A last message of the assistant is left open, so that the model goes on with it.

        Raises:
            ProviderError: the template refuses the messages, or they hold something else than text.
        """
        from jinja2 import TemplateError

        plain = [_plain(message) for message in messages]
        prefill = plain.pop()["content"] if plain and plain[-1]["role"] == "assistant" else ""
        try:
            # The formatter's types are those of its own requests; a template takes any mapping.
            prompt = self._formatter(messages=plain, tools=list(tools) if tools else None).prompt  # pyright: ignore[reportArgumentType]
        except (TemplateError, ValueError, TypeError) as error:
            raise ProviderError(f"The model's chat template refuses the conversation: {error}") from error
        return prompt + prefill


def _plain(message: _Wire) -> _Wire:
    """A message as templates expect it: content a text, arguments an object."""
    content: str | list[_Wire] | None = message.get("content")
    if isinstance(content, list):
        content = "".join(_text_part(part) for part in content)
    out = {**message, "content": content or ""}
    if calls := message.get("tool_calls"):
        out["tool_calls"] = [_with_object(call) for call in calls]
    return out


def _text_part(part: _Wire) -> str:
    if part.get("type") != "text":
        raise ProviderError(
            "The in-process runtime takes text only, and the message holds an image or a file.",
            "Use a llama-server with a vision model.",
        )
    return part["text"]


def _with_object(call: _Wire) -> _Wire:
    function = call["function"]
    arguments = function["arguments"]
    if isinstance(arguments, str):
        arguments = json.loads(arguments)
    return {**call, "function": {**function, "arguments": arguments}}
