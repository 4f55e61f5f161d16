"""One line of an ignore file, with exactly the verdict of git (gitignore(5), wildmatch.c).

Written out because pathspec answers another question: its patterns also match what lies below a match, so that `!b`
shows `b/x.txt` again and `b/**` hides the folder `b` itself. What must not be shown to a model needs git's answer.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

_FOLDS_CASE = sys.platform in {"darwin", "win32"}
_POSIX = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f", "digit": "0-9",
    "graph": r"\x21-\x7e", "lower": "a-z", "print": r"\x20-\x7e", "punct": r"!-/:-@\[-`{-~", "space": r"\s",
    "upper": "A-Z", "xdigit": "0-9a-fA-F",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pattern:
    """A line that says something."""

    glob: str
    """As it stands there, without `!`."""
    negated: bool
    folders_only: bool
    regex: re.Pattern[str]

    def matches(self, path: str, *, is_dir: bool) -> bool:
        """Whether it names this very path, relative to the folder of the file that the line is from."""
        return (is_dir or not self.folders_only) and self.regex.fullmatch(path) is not None


def parse_line(line: str) -> Pattern | None:
    """Read a line; `None` for a blank one, a comment, and what git never matches."""
    text = _without_trailing_blanks(line)
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    glob = text = text.removeprefix("!")
    folders_only = text.endswith("/")
    text = text.removesuffix("/")
    anchored = "/" in text
    text = text.removeprefix("/")
    if not text:
        return None
    translated = _translate(text)
    if translated is None:
        return None
    flags = re.DOTALL | (re.IGNORECASE if _FOLDS_CASE else 0)
    return Pattern(glob, negated, folders_only, re.compile(translated if anchored else f"(?:.*/)?{translated}", flags))


def _without_trailing_blanks(line: str) -> str:
    stripped = line.rstrip(" ")
    escaped = (len(stripped) - len(stripped.rstrip("\\"))) % 2
    return stripped + " " if escaped and len(stripped) < len(line) else stripped


def _translate(glob: str) -> str | None:
    segments = _segments(glob)
    out = ""
    for index, segment in enumerate(segments):
        last = index == len(segments) - 1
        if segment == "**":
            out += ".+" if last and index else ".*" if last else "(?:.*/)?"
            continue
        translated = _translate_segment(segment)
        if translated is None:
            return None
        out += translated + ("" if last else "/")
    return out


def _segments(glob: str) -> list[str]:
    """Cut at `/`; `**` repeated, or with more stars, is the same as once."""
    found: list[str] = []
    for segment in glob.split("/"):
        plain = "**" if len(segment) > 1 and not segment.strip("*") else segment
        if plain != "**" or found[-1:] != ["**"]:
            found.append(plain)
    return found


def _translate_segment(segment: str) -> str | None:
    """Between two `/`. What a `*` takes is never tried twice, so that no pattern is slow on any name."""
    chunks = [""]
    at = 0
    while at < len(segment):
        char = segment[at]
        at += 1
        if char == "*":
            if at < 2 or segment[at - 2] != "*" or len(chunks) == 1:
                chunks.append("")
        elif char == "?":
            chunks[-1] += "[^/]"
        elif char == "[":
            found = _translate_class(segment, at)
            if found is None:
                return None
            translated, at = found
            chunks[-1] += translated
        elif char == "\\":
            if at == len(segment):
                return None
            chunks[-1] += re.escape(segment[at])
            at += 1
        else:
            chunks[-1] += re.escape(char)
    if len(chunks) == 1:
        return chunks[0]
    middle = "".join(f"(?>[^/]*?{chunk})" for chunk in chunks[1:-1])
    return f"{chunks[0]}{middle}[^/]*{chunks[-1]}"


def _translate_class(text: str, at: int) -> tuple[str, int] | None:
    """`[…]` from behind the bracket; `None` where it is not closed."""
    negated = text[at : at + 1] in {"!", "^"}
    at += negated
    body = ""
    first = True
    while at < len(text) and (first or text[at] != "]"):
        first = False
        if text.startswith("[:", at) and (end := text.find(":]", at)) > 0:
            known = _POSIX.get(text[at + 2 : end])
            if known is None:
                return None
            body += known
            at = end + 2
            continue
        start, at = _class_char(text, at)
        if text[at : at + 1] == "-" and text[at + 1 : at + 2] not in {"]", ""}:
            end_char, at = _class_char(text, at + 1)
            if start <= end_char:
                body += f"{re.escape(start)}-{re.escape(end_char)}"
        else:
            body += re.escape(start)
    if at >= len(text):
        return None
    if not body:
        return ("[^/]" if negated else "(?!)"), at + 1
    return f"(?!/)[{'^' if negated else ''}{body}]", at + 1


def _class_char(text: str, at: int) -> tuple[str, int]:
    if text[at] == "\\" and at + 1 < len(text):
        at += 1
    return text[at], at + 1
