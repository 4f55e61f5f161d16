"""Text from outside, made safe for a terminal."""

from __future__ import annotations

import re

_ESCAPE_SEQUENCES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC, DCS, SOS, PM, APC up to their end, or the end of the line
    r"|\x1b[ -/]*[0-~]"  # two-character sequences
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]")
_VARIATION_SELECTORS = re.compile(r"[\ufe00-\ufe0f]")
TAB = 4
"""Cells between tab stops."""


def cleaned(text: str) -> str:
    """Text that can be shown: no escape sequences or control characters, tabs as blanks, overwritten lines gone.

    A carriage return inside a line starts that line anew, as it does on a terminal, so a progress bar shows its last
    state. Variation selectors go too: terminals do not agree about the width of what they select.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _ESCAPE_SEQUENCES.sub("", text.replace("\r\n", "\n"))
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    text = _CONTROLS.sub("", text)
    text = _VARIATION_SELECTORS.sub("", text)
    return text.expandtabs(TAB) if "\t" in text else text


def escaped(text: str) -> str:
    """Text with every control, invisible and direction-changing character spelled out, for what a person approves."""
    if text.isascii() and text.isprintable():
        return text
    text = _INVISIBLE.sub(lambda match: _spelled(match.group()), text)
    return text.expandtabs(TAB)


def one_line(text: str, limit: int = 200) -> str:
    """The text's first line that is not blank, cleaned, cut to `limit` characters."""
    for line in text[: limit * 8].splitlines():
        if line.strip():
            shown = cleaned(line.strip())
            return shown if len(shown) <= limit else shown[: limit - 1] + "…"
    return ""


def _spelled(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
