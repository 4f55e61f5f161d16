"""Replacing one exact, unique piece of a file's text.

The comparison is literal, with one exception: CRLF and LF are the same line ending. There are two tolerances, both
only where the text itself is not found and both reported: the `12| ` that `read_file` puts before lines is taken off
when every line has it, and a final line ending of the search text may be missing at the end of the file.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from difflib import SequenceMatcher

from late.errors import ToolError
from late.workspace.near import explain_miss
from late.workspace.text import TextFile, refuse_surrogates

_MOST_MATCHES = 100
_NUMBER = re.compile(r"[ \t]*(\d+)\| ?")


@dataclass(frozen=True, slots=True)
class Edit:
    """What an edit makes of a file. Lines count from 1 and are inclusive; a deletion leaves the line it was at."""

    after: bytes
    first_line: int
    last_line_before: int
    last_line: int
    notes: tuple[str, ...] = ()
    """Which tolerance was used, for the model."""


def apply_edit(data: bytes, search: str, replace: str) -> bytes:
    """The file's bytes with the piece replaced; all others are the same.

    Raises:
        ToolError: see `plan_edit`.
    """
    return plan_edit(data, search, replace).after


def plan_edit(data: bytes, search: str, replace: str, name: str = "The file") -> Edit:
    """Find the piece and replace it. New lines get the line ending of the piece, or of the line that it is in.

    Raises:
        ToolError: nothing would change, the file is binary, the piece is not there (the text shows the region that is
            nearest to it), it is there several times (the text names the lines), or the new text does not go into the
            file's encoding.
    """
    file = TextFile.decode(data, name)
    wanted, new = search.replace("\r\n", "\n"), replace.replace("\r\n", "\n")
    if not wanted:
        raise ToolError("`search` is empty.", "Put the lines to be replaced into it; write_file writes whole files.")
    if wanted == new:
        raise ToolError("`search` and `replace` are the same: nothing would change.", "Send the new text in `replace`.")
    refuse_surrogates(wanted)
    plain = file.plain
    for variant in _variants(plain, wanted, new):
        starts = [len(plain) - len(variant.wanted)] if variant.at_end else _occurrences(plain, variant.wanted)
        if len(starts) > 1:
            raise _ambiguous(name, plain, variant.wanted, starts)
        if starts:
            return _replaced(data, file, starts[0], variant)
    raise explain_miss(name, plain, wanted, new)


@dataclass(frozen=True, slots=True)
class _Variant:
    wanted: str
    new: str
    notes: tuple[str, ...] = ()
    at_end: bool = False


def _variants(plain: str, wanted: str, new: str) -> list[_Variant]:
    """The texts as they were given and, for want of these, with the tolerances."""
    found = [_Variant(wanted, new)]
    if bare := _without_numbers(wanted, new):
        found.append(_Variant(*bare, ("The line numbers in `search` were left out; they are not in the file.",)))
    for given in tuple(found):
        text = given.wanted.removesuffix("\n")
        if text and text != given.wanted and plain.endswith(text):
            notes = (*given.notes, "The last line of the file has no line ending.")
            found.append(_Variant(text, given.new.removesuffix("\n"), notes, at_end=True))
    return found


def _replaced(data: bytes, file: TextFile, at: int, variant: _Variant) -> Edit:
    text, plain, wanted, new = file.text, file.plain, variant.wanted, variant.new
    start, end = _offsets(text, plain, at, at + len(wanted))
    region = text[start:end]
    head = len(file.mark) + len(file.raw(text[:start]))
    tail = head + len(file.raw(region))
    after = data[:head] + file.encode(_with_endings(new, region, text, start, end)) + data[tail:]
    if after == data:
        raise ToolError("The file would be the same: nothing would change.", "Send the new text in `replace`.")
    first = plain.count("\n", 0, at) + 1
    return Edit(after, first, first + _more_lines(wanted), first + _more_lines(new), variant.notes)


def _offsets(text: str, plain: str, *places: int) -> list[int]:
    """Where places in `plain` are in `text`; a place before an LF is one before its CR."""
    endings, crlf = text.count("\n"), text.count("\r\n")
    if crlf in {0, endings}:
        return [place + (plain.count("\n", 0, place) if crlf else 0) for place in places]
    before = [match.start() - index for index, match in enumerate(re.finditer("\r\n", text))]
    return [place + bisect_left(before, place) for place in places]


def _more_lines(text: str) -> int:
    return max(0, text.count("\n") - text.endswith("\n"))


def _occurrences(plain: str, wanted: str) -> list[int]:
    """Where it is found, overlapping ones included; no more than it takes to say that there are too many."""
    found: list[int] = []
    at = plain.find(wanted)
    while at >= 0 and len(found) < _MOST_MATCHES:
        found.append(at)
        at = plain.find(wanted, at + 1)
    return found


def _without_numbers(wanted: str, new: str) -> tuple[str, str] | None:
    """Both texts without line numbers, where every line of `wanted` has one and they go up by one.

    The new text may have none at all; where only some of its lines have one, it cannot be told what is meant.
    """
    lines = wanted.split("\n")
    heads = [_NUMBER.match(line) for line in (lines[:-1] if lines[-1] == "" else lines)]
    numbers = [int(head[1]) for head in heads if head]
    if not numbers or len(numbers) < len(heads) or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return None
    bare = "\n".join(_NUMBER.sub("", line, count=1) for line in lines)
    marked = [bool(_NUMBER.match(line)) for line in new.split("\n") if line]
    if any(marked) and not all(marked):
        return None
    if any(marked):
        new = "\n".join(_NUMBER.sub("", line, count=1) for line in new.split("\n"))
    return (bare, new) if bare else None


def _with_endings(new: str, region: str, text: str, start: int, end: int) -> str:
    """New text with line endings as they are around it."""
    if "\n" not in new:
        return new
    endings = re.findall("\r?\n", region)
    if not endings:
        return new.replace("\n", _ending_at(text, start, end))
    if len(set(endings)) == 1:
        return new.replace("\n", endings[0])
    old, lines = region.replace("\r\n", "\n").split("\n"), new.split("\n")
    like: list[int] = []
    for _, old_start, old_end, first, last in SequenceMatcher(None, old, lines, autojunk=False).get_opcodes():
        like.extend(min(old_start + offset, max(0, old_end - 1)) for offset in range(last - first))
    ended = [line + endings[min(at, len(endings) - 1)] for line, at in zip(lines[:-1], like, strict=False)]
    return "".join(ended) + lines[-1]


def _ending_at(text: str, start: int, end: int) -> str:
    at = text.find("\n", end)
    if at < 0:
        at = text.rfind("\n", 0, start)
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def _ambiguous(name: str, plain: str, wanted: str, starts: list[int]) -> ToolError:
    lines = [plain.count("\n", 0, at) + 1 for at in starts[:20]]
    count = f"more than {_MOST_MATCHES - 1}" if len(starts) == _MOST_MATCHES else str(len(starts))
    places = ", ".join(map(str, dict.fromkeys(lines))) + (", …" if len(starts) > len(lines) else "")
    noun = "lines" if len(set(lines)) > 1 else "line"
    return ToolError(
        f"`search` is in {name} {count} times ({noun} {places}); it must be there once.",
        "Add the lines before or after the place that you mean to both texts.",
    )
