"""Reading `{"say": "…"}` or `{"name": "…", "arguments": {…}}` while it streams, for display only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_HEAD = re.compile(r'\s*\{\s*"(say|name)"\s*:\s*"')
_ARGUMENTS = re.compile(r'\s*,\s*"arguments"\s*:\s*')


class PartialJson:
    """Yields `("say", text)`, `("name", name)` and `("arguments", JSON text)` as soon as they are certain."""

    def __init__(self) -> None:
        self._pending = ""
        self._state = "head"

    def feed(self, fragment: str) -> Iterator[tuple[str, str]]:
        """Take the next fragment of the answer."""
        self._pending += fragment
        if self._state == "head" and (match := _HEAD.match(self._pending)):
            self._state = match[1]
            self._pending = self._pending[match.end() :]
        if self._state in {"say", "name"}:
            yield from self._string(self._state)
        if self._state == "between" and (match := _ARGUMENTS.match(self._pending)):
            self._state = "arguments"
            self._pending = self._pending[match.end() :]
        if self._state == "arguments" and self._pending:
            yield "arguments", self._pending
            self._pending = ""

    def _string(self, kind: str) -> Iterator[tuple[str, str]]:
        end = _string_end(self._pending)
        whole = self._pending[: end if end >= 0 else _safe_length(self._pending)]
        if kind == "name" and end < 0:
            return
        if whole:
            yield kind, json.loads(f'"{whole}"', strict=False)
        if end >= 0:
            self._pending = self._pending[end + 1 :]
            self._state = "between" if kind == "name" else "done"
        else:
            self._pending = self._pending[len(whole) :]


def _string_end(text: str) -> int:
    """Index of the closing quote, or -1."""
    at = 0
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == '"':
            return at
        else:
            at += 1
    return -1


def _safe_length(text: str) -> int:
    """How much of an unfinished JSON string can be decoded: not half an escape, not half a surrogate pair."""
    at = 0
    while at < len(text):
        if text[at] != "\\":
            at += 1
            continue
        length = 6 if text[at + 1 : at + 2] == "u" else 2
        if re.match(r"\\u[dD][89abAB]", text[at:]):
            length = 12
        if at + length > len(text):
            return at
        at += length
    return at
