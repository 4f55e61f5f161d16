"""Files as agents see them: what was read, what was changed. Text, edits and writing are next door and offered here."""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Literal

from late.errors import ToolError
from late.workspace.atomic import check_writable, read_bytes, write_atomic
from late.workspace.edits import Edit, apply_edit, plan_edit
from late.workspace.text import TextFile, binary_kind

__all__ = [
    "Edit",
    "FileChange",
    "ReadStamps",
    "TextFile",
    "apply_edit",
    "binary_kind",
    "check_writable",
    "plan_edit",
    "read_bytes",
    "write_atomic",
]

_MOST_DIFF_LINES = 400
_MOST_DIFF_LINE_CHARS = 500
_MOST_COMPARED_LINES = 4000
"""Between the first and the last difference; comparing more takes seconds and nobody reads it."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file before and after; `None` where it did not exist."""

    path: str
    """As `Workspace.relative` gives it."""
    before: bytes | None
    after: bytes | None

    @property
    def kind(self) -> Literal["created", "modified", "deleted"]:
        """What happened to the file."""
        if self.before is None:
            return "created"
        return "deleted" if self.after is None else "modified"

    @property
    def before_sha256(self) -> str | None:
        """In hex."""
        return None if self.before is None else sha256(self.before).hexdigest()

    @property
    def after_sha256(self) -> str | None:
        """In hex."""
        return None if self.after is None else sha256(self.after).hexdigest()

    @property
    def diff(self) -> str:
        """Unified, with three lines around, cut where it is very long."""
        return _compared(self.path, self.before, self.after).diff

    @property
    def added(self) -> int:
        """Lines that are new."""
        return _compared(self.path, self.before, self.after).added

    @property
    def removed(self) -> int:
        """Lines that are gone."""
        return _compared(self.path, self.before, self.after).removed


@dataclass(frozen=True, slots=True)
class _Compared:
    diff: str
    added: int = 0
    removed: int = 0


@lru_cache(maxsize=1)
def _compared(path: str, before: bytes | None, after: bytes | None) -> _Compared:
    try:
        old, new = TextFile.decode(before or b""), TextFile.decode(after or b"")
    except ToolError:
        sizes = f"{len(before or b''):,} → {len(after or b''):,} bytes"
        return _Compared(f"Binary file {path}: {sizes}\n")
    only_crlf = all(file.text.count("\n") == file.text.count("\r\n") for file in (old, new))
    one, two = (_lines(file, only_crlf) for file in (old, new))
    head = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    rest = min(len(one), len(two)) - head
    tail = next((i for i in range(rest) if one[-1 - i] != two[-1 - i]), rest)
    start = max(0, head - 3)
    a, b = one[start : len(one) - max(0, tail - 3)], two[start : len(two) - max(0, tail - 3)]
    names = ("/dev/null" if before is None else f"a/{path}", "/dev/null" if after is None else f"b/{path}")
    lines = [f"--- {names[0]}", f"+++ {names[1]}"]
    added = removed = 0
    for group in _groups(a, b, head - start, min(tail, 3)):
        first, last = group[0], group[-1]
        old_part, new_part = _part(start, first[1], last[2]), _part(start, first[3], last[4])
        lines.append(f"@@ -{old_part} +{new_part} @@")
        for tag, a1, a2, b1, b2 in group:
            if tag == "equal":
                lines.extend(_marked(" ", a[a1:a2]))
                continue
            removed += a2 - a1
            added += b2 - b1
            lines.extend(_marked("-", a[a1:a2]))
            lines.extend(_marked("+", b[b1:b2]))
    if len(lines) == 2:
        lines.append("(an empty file)" if before is None or after is None else "(the text is the same)")
    cut = len(lines) - _MOST_DIFF_LINES
    if cut > 0:
        lines[_MOST_DIFF_LINES:] = [f"… {cut} more lines of diff"]
    return _Compared("\n".join(lines) + "\n", added, removed)


_Opcode = tuple[str, int, int, int, int]


def _groups(a: list[str], b: list[str], head: int, tail: int) -> list[list[_Opcode]]:
    if max(len(a), len(b)) <= _MOST_COMPARED_LINES:
        return [list(group) for group in difflib.SequenceMatcher(None, a, b, autojunk=False).get_grouped_opcodes(3)]
    a_end, b_end = len(a) - tail, len(b) - tail
    return [
        [
            ("equal", 0, head, 0, head),
            ("replace", head, a_end, head, b_end),
            ("equal", a_end, len(a), b_end, len(b)),
        ]
    ]


def _lines(file: TextFile, only_crlf: bool) -> list[str]:
    """Lines with their LF; a CR before it only where both kinds of endings occur, so that a difference is seen."""
    text = (file.plain if only_crlf else file.text).encode("utf-8", "replace").decode()
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _part(start: int, first: int, last: int) -> str:
    length = last - first
    return f"{start + first + (1 if length else 0)}" + ("" if length == 1 else f",{length}")


def _marked(mark: str, lines: list[str]) -> list[str]:
    out: list[str] = []
    for line in lines[: _MOST_DIFF_LINES + 1]:
        text = line.removesuffix("\n").replace("\r", "␍")
        if len(text) > _MOST_DIFF_LINE_CHARS:
            text = f"{text[:_MOST_DIFF_LINE_CHARS]}… ({len(text):,} characters)"
        out.append(mark + text)
        if not line.endswith("\n"):
            out.append("\\ No newline at end of file")
    return out


@dataclass(slots=True)
class _Stamp:
    digest: bytes
    seen: list[tuple[int, int]] | None
    """Ranges of lines, from 1 and inclusive; `None` for the whole file."""


class ReadStamps:
    """What one agent has read, in which state, and how much of it. Files are known by their real path."""

    def __init__(self) -> None:
        self._stamps: dict[str, _Stamp] = {}
        self._pinned: dict[str, bytes] = {}

    def record(self, path: Path, data: bytes, lines: Sequence[tuple[int, int]] | None = None) -> None:
        """The agent was shown the file, or only some ranges of its lines (from 1, inclusive)."""
        key, digest = self._key(path), sha256(data).digest()
        known = self._stamps.get(key)
        if lines is None:
            self._stamps[key] = _Stamp(digest, None)
        elif known is None or known.digest != digest:
            self._stamps[key] = _Stamp(digest, _merged(lines))
        elif known.seen is not None:
            known.seen = _merged([*known.seen, *lines])

    def edited(self, path: Path, before: bytes, edit: Edit) -> None:
        """The agent changed some lines: what it saw before is still seen, lower down or higher up."""
        key = self._key(path)
        known = self._stamps.get(key)
        fresh = (edit.first_line, edit.last_line)
        if known is None or known.digest != sha256(before).digest():
            self._stamps[key] = _Stamp(sha256(edit.after).digest(), [fresh])
            return
        if known.seen is None:
            self._stamps[key] = _Stamp(sha256(edit.after).digest(), None)
            return
        shift = edit.last_line - edit.last_line_before
        kept = [fresh]
        for first, last in known.seen:
            kept.append((first, min(last, edit.first_line - 1)))
            kept.append((max(first, edit.last_line_before + 1) + shift, last + shift))
        self._stamps[key] = _Stamp(sha256(edit.after).digest(), _merged([part for part in kept if part[0] <= part[1]]))

    def seen(self, path: Path) -> bool:
        """Whether the agent has read the file, in whatever state."""
        return self._key(path) in self._stamps

    def current(self, path: Path, data: bytes) -> bool:
        """Whether this content is the one that the agent last saw."""
        known = self._stamps.get(self._key(path))
        return known is not None and known.digest == sha256(data).digest()

    def unseen(self, path: Path, total: int) -> tuple[int, int] | None:
        """The first lines of `total` that the agent was not shown; `None` when it knows them all."""
        known = self._stamps.get(self._key(path))
        if known is None:
            return (1, total)
        if known.seen is None:
            return None
        line = 1
        for first, last in known.seen:
            if first > line:
                return (line, first - 1)
            line = last + 1
        return (line, total) if line <= total else None

    def pin(self, call_id: str, data: bytes | None) -> None:
        """Remember what a person is shown a change of; `None` for a file that is to be made."""
        self._pinned[call_id] = b"" if data is None else sha256(data).digest()

    def unpin(self, call_id: str, data: bytes | None) -> bool:
        """Whether the content still is what was pinned for this call, or nothing was."""
        pinned = self._pinned.pop(call_id, None)
        return pinned is None or pinned == (b"" if data is None else sha256(data).digest())

    def _key(self, path: Path) -> str:
        """On a disk that does not tell cases apart, two spellings are one file."""
        real = os.path.realpath(path)
        if real in self._stamps:
            return real
        folded = real.casefold()
        for key in self._stamps:
            if key.casefold() == folded:
                with contextlib.suppress(OSError):
                    if Path(key).samefile(real):
                        return key
        return real


def _merged(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if out and first <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], last))
        else:
            out.append((first, last))
    return out
