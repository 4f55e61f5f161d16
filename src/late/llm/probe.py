"""Which dialect does a model speak? One small request at first use, remembered per endpoint and model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, Literal

from late.llm.provider import Completed, DialectName, Text
from late.llm.transport import ServerInfo, Transport

DialectChooser = Callable[[Transport, ServerInfo], Awaitable[DialectName]]

SMALL_MODEL = 8_000_000_000
"""Weights below which code is asked for in plain text: what smaller models write inside JSON was well-formed and wrong
in all of eight measured edits of a 1.5B, right at the first try as a fenced block."""

_PROBE_TOKENS = 60
_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}


async def calls_natively(transport: Transport) -> bool:
    """Ask for one call and see whether it arrives as one.

    Raises:
        ProviderError: the request failed.
    """
    body: dict[str, Any] = {
        "tools": [_TOOL],
        "messages": [{"role": "user", "content": "Read the file notes.txt. Use the tool."}],
        "max_tokens": _PROBE_TOKENS,
        "temperature": 0,
    }
    async with aclosing(transport.complete(body, frozenset({"read_file"}))) as stream:
        text = ""
        async for item in stream:
            if isinstance(item, Completed):
                return bool(item.calls)
            if isinstance(item, Text):
                text += item.text
                if text.lstrip().startswith(("```", "<tools", "{")):
                    return False  # it writes the call, or the tools, as text
    return False


async def choose_dialect(
    transport: Transport, server: ServerInfo, setting: Literal["auto", "native", "constrained", "plain"]
) -> DialectName:
    """The setting, or for `auto` what the model can do.

    Only servers that can constrain decoding and say what they run are probed: llama.cpp and the in-process runtime.
    Everybody else is taken to speak natively, which is what a cloud endpoint does, until a setting says otherwise.
    """
    if setting != "auto":
        return setting
    if server.server == "in-process":
        return "plain"
    if server.server != "llama.cpp" or server.parameters is None:
        return "native"
    if await calls_natively(transport):
        return "native"
    return "plain" if server.parameters < SMALL_MODEL else "constrained"
