"""Pasted text: long pieces become tokens in the input, binary ones are refused."""

from __future__ import annotations

import re

MANY_LINES = 4
"""From this many lines on a paste becomes a token."""
MANY_CHARACTERS = 600
"""From this many characters on a paste becomes a token, whatever its lines."""
_TEXT_CONTROLS = "\n\r\t\f\x1b"


def is_binary(content: str) -> bool:
    """Whether a paste is no text: a NUL, undecodable bytes, or more than a tenth control characters."""
    head = content[:8192]
    if "\0" in head:
        return True
    bad = sum(1 for character in head if character == "\ufffd" or (character < " " and character not in _TEXT_CONTROLS))
    return bad * 10 > len(head)


class Pastes:
    """The pasted texts of this process and the tokens that stand for them."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def take(self, content: str) -> str:
        """Return what goes into the input: the text itself when it is short, else a token for it."""
        content = content.replace("\r\n", "\n").replace("\r", "\n")
        lines = content.count("\n") + (not content.endswith("\n"))
        if lines < MANY_LINES and len(content) < MANY_CHARACTERS:
            return content
        what = f"{lines} lines" if lines > 1 else f"{len(content)} characters"
        token, number = f"[pasted {what}]", 1
        while token in self._texts and self._texts[token] != content:
            number += 1
            token = f"[pasted {what} #{number}]"
        self._texts[token] = content
        return token

    def expand(self, content: str) -> str:
        """Replace tokens by their texts in one pass from left to right; what was put in is not looked at again."""
        if not self._texts:
            return content
        tokens = "|".join(map(re.escape, sorted(self._texts, key=len, reverse=True)))
        return re.sub(tokens, lambda match: self._texts[match.group()], content)
