"""What programs print for a terminal, made plain: for a model, for a screen that must not obey it, and for a log."""

from __future__ import annotations

import codecs
import re

_STRING = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\n\x90\x98\x9c-\x9f]*"
"""OSC, DCS and their like up to their end: clipboard, titles, links."""
_SEQUENCE = re.compile(
    rf"""(?:\x1b\[|\x9b)[0-?]*[\ -/]*[@-~]    # CSI: colours, cursor, modes
      | {_STRING}(?:\x07|\x1b\\|\x9c)
      | \x1b[\ -/]*[0-Z\\^-~]                 # the short ones
    """,
    re.VERBOSE,
)
_UNFINISHED = re.compile(rf"(?:\x1b\[|\x9b)[0-?]*[ -/]*\Z|{_STRING}\x1b?\Z|\x1b[ -/]*\Z")
_CONTROL = re.compile(r"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+")
_OVERSTRUCK = re.compile(r"[^\n\x08]\x08")
_NULS = re.compile(r"\x00+")
_ESCAPED = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_MAX_HELD = 8_192
"""Characters that wait for their end: of an escape sequence, or of a line that a carriage return may still replace."""


class TerminalText:
    """Cleans a stream: bytes in, text out, at any cut.

    Escape sequences and control characters go, invalid UTF-8 becomes U+FFFD, runs of NUL become a blank, and of a line
    that was rewritten with carriage returns (a progress bar) its last state remains.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, data: bytes) -> str:
        """The text that is settled by now; whole lines, unless a line is very long."""
        text = self._held + self._decoder.decode(data)
        cut = text.rfind("\n") + 1
        if len(text) - cut > _MAX_HELD:
            unfinished = _UNFINISHED.search(text, len(text) - _MAX_HELD // 4)
            cut = unfinished.start() if unfinished else len(text)
            cut -= text.endswith("\r", 0, cut)
        self._held = text[cut:]
        return _clean(text[:cut])

    def finish(self) -> str:
        """What was held back."""
        text = self._held + self._decoder.decode(b"", final=True)
        self._held = ""
        return _clean(text)


def clean(text: str) -> str:
    """`TerminalText` for a text that is there as a whole."""
    return _clean(text)


def escaped(name: str) -> str:
    r"""A file name or other short text on one line and harmless: control, bidi and undecodable characters as `\x1b`.

    Undecodable bytes of a name, which Python holds as lone surrogates, are shown as the bytes they are.
    """
    return _ESCAPED.sub(_escape, name)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if match.group() in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[match.group()]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _clean(text: str) -> str:
    if "\x1b" in text or _CONTROL.search(text):
        text = _SEQUENCE.sub("", text)
    if "\r" in text:
        text = "\n".join(_last_state(line) if "\r" in line else line for line in text.split("\n"))
    if "\x08" in text:
        text = _OVERSTRUCK.sub("", text)
    if "\x00" in text:
        text = _NULS.sub(" ", text)
    return _CONTROL.sub("", text)


def _last_state(line: str) -> str:
    return next((part for part in reversed(line.split("\r")) if part.strip()), "")
