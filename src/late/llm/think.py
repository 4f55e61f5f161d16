"""Telling thinking from answer where a server leaves the model's own marks in the content.

Two families of marks are read: `<think>…</think>` (and `<thinking>`), and the channels of the harmony format, with
their marks (`<|channel|>analysis<|message|>…<|end|>`) or with the marks lost (`analysis…assistantfinal…`). Marks are
left alone in fenced code, in inline code, in an answer that is JSON, and inside a call written as text. What turns out
in the end not to have been a mark is given back as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Kind = Literal["text", "reasoning"]


class Piece(NamedTuple):
    """A fragment of the answer or of the thinking."""

    kind: Kind
    text: str


class TextCall(NamedTuple):
    """A call that was found in the content, in harmony's form."""

    name: str
    arguments: str


_THINK = ("<think>", "<thinking>")
_THINK_END = ("</think>", "</thinking>")
_HARMONY = ("<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>")
_WRITTEN_CALLS = {"<tool_call>": "</tool_call>", "<function=": "</function>"}
_GLUED_START = "analysis"
_GLUED_FINAL = "assistantfinal"

_Mode = Literal["start", "text", "json", "written_call", "think", "glued", "header", "channel"]
_MARKS: dict[_Mode, tuple[str, ...]] = {
    "text": (*_THINK, *_THINK_END, *_HARMONY, *_WRITTEN_CALLS),
    "written_call": tuple(_WRITTEN_CALLS.values()),
    "think": _THINK_END,
    "glued": (_GLUED_FINAL,),
    "header": _HARMONY,
    "channel": _HARMONY,
}
_PATTERNS = {mode: re.compile("|".join(map(re.escape, marks))) for mode, marks in _MARKS.items()}


def split_thinking(content: str) -> tuple[str, str]:
    """Thinking and answer of a whole content."""
    splitter = ThinkSplitter()
    splitter.feed(content)
    splitter.finish()
    return splitter.reasoning, splitter.text


class ThinkSplitter:
    """Incremental. `feed` answers with what may be shown at once; `text` and `reasoning` are right after `finish`."""

    def __init__(self) -> None:
        self.calls: list[TextCall] = []
        self._mode: _Mode = "start"
        self._held = ""
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._spoke = False
        self._thought = False
        self._swallow_space = False
        self._code = _CodeTracker()
        self._undo: _Undo | None = None
        self._header: list[str] = []
        self._channel: Kind | str = "text"
        self._body: list[str] = []

    @property
    def text(self) -> str:
        """The answer so far."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """The thinking so far."""
        return "".join(self._reasoning).strip()

    def feed(self, fragment: str) -> list[Piece]:
        """Take the next fragment of content."""
        self._held += fragment
        return list(self._drain(last=False))

    def finish(self) -> list[Piece]:
        """Take the end of the content."""
        pieces = list(self._drain(last=True))
        if self._undo is not None:
            pieces.extend(self._give_back(self._undo))
        elif self._mode == "channel":
            self._close_channel()
        return pieces

    def _drain(self, *, last: bool) -> Iterator[Piece]:
        if self._mode == "start" and not self._begin(last=last):
            return
        held, position = self._held, 0
        while self._mode != "json" and (match := _PATTERNS[self._mode].search(held, position)):
            yield from self._emit(held[position : match.start()])
            position = match.end()
            yield from self._meet(match.group())
        keep = 0 if last or self._mode == "json" else _possible_mark(held[position:], _MARKS[self._mode])
        self._held = held[len(held) - keep :]
        yield from self._emit(held[position : len(held) - keep])

    def _begin(self, *, last: bool) -> bool:
        """Decide by its first characters what kind of content this is; false: not yet."""
        start = self._held.lstrip()
        if not last and (not start or (len(start) <= len(_GLUED_START) and _GLUED_START.startswith(start))):
            return False
        if start.startswith(("{", "[")):
            self._mode = "json"
        elif start.startswith(_GLUED_START) and start[len(_GLUED_START) :][:1].isalpha():
            self._held = start[len(_GLUED_START) :]
            self._open_thought("glued", _GLUED_START)
        else:
            self._mode = "text"
        return True

    def _emit(self, content: str) -> Iterator[Piece]:
        if self._swallow_space:
            content = content.lstrip()
        if not content:
            return
        self._swallow_space = False
        if self._mode == "header":
            self._header.append(content)
            return
        if self._mode == "channel" and self._channel not in ("text", "reasoning"):
            self._body.append(content)
            return
        kind: Kind = "text"
        if self._mode in ("think", "glued") or (self._mode == "channel" and self._channel == "reasoning"):
            kind = "reasoning"
        if kind == "text":
            self._spoke = self._spoke or not content.isspace()
            self._code.feed(content)
            self._text.append(content)
        else:
            self._reasoning.append(content)
        yield Piece(kind, content)

    def _meet(self, mark: str) -> Iterator[Piece]:
        if self._mode in ("text", "channel") and self._code.inside and self._channel == "text":
            yield from self._emit(mark)
        elif self._mode == "text":
            yield from self._meet_in_text(mark)
        elif self._mode == "written_call":
            yield from self._emit(mark)
            self._mode = "text"
        elif self._mode in ("think", "glued"):
            self._close_thought()
        else:
            self._meet_harmony(mark)

    def _meet_in_text(self, mark: str) -> Iterator[Piece]:
        if mark in _WRITTEN_CALLS:
            yield from self._emit(mark)
            self._mode = "written_call"
        elif mark in _THINK:
            self._open_thought("think", mark)
        elif mark in _THINK_END:
            if not self._thought:
                self._reasoning[:0] = self._text
                self._text.clear()
                self._spoke = False
            self._close_thought()
        else:
            self._meet_harmony(mark)

    def _open_thought(self, mode: _Mode, mark: str) -> None:
        """Thinking that begins in mid-answer, and is never closed, was none: a model that talks about the tag."""
        if self._spoke:
            self._undo = _Undo(mark, self._reasoning, len(self._reasoning))
        else:
            self._text.clear()
            self._undo = _Undo(mark, self._reasoning, 0) if mode == "glued" else None
        self._mode, self._thought, self._swallow_space = mode, True, self._undo is None

    def _close_thought(self) -> None:
        self._undo = None
        self._mode, self._thought = "text", True
        self._swallow_space = not self._spoke

    def _give_back(self, undo: _Undo) -> Iterator[Piece]:
        restored = undo.restore() + "".join(self._header)
        self._undo = None
        self._header.clear()
        self._text.append(restored)
        yield Piece("text", restored)

    def _meet_harmony(self, mark: str) -> None:
        if self._mode == "header" and mark != "<|message|>":
            self._header.append(" " if mark in ("<|channel|>", "<|constrain|>") else "")
            return
        if self._mode == "channel":
            self._close_channel()
        if mark in ("<|start|>", "<|channel|>"):
            self._undo = _Undo(mark, self._reasoning, len(self._reasoning))
            self._mode = "header"
        elif mark == "<|message|>":
            self._open_channel()
        else:
            self._mode, self._channel = "text", "text"

    def _open_channel(self) -> None:
        header = "".join(self._header)
        self._header.clear()
        self._undo = None
        self._mode, self._thought, self._swallow_space = "channel", True, False
        recipient = re.search(r"to=(?:functions\.)?([\w.-]+)", header)
        if recipient:
            self._channel = f"call:{recipient.group(1)}"
        else:
            self._channel = "reasoning" if "analysis" in header.split() else "text"

    def _close_channel(self) -> None:
        if self._channel.startswith("call:"):
            self.calls.append(TextCall(self._channel.removeprefix("call:"), "".join(self._body).strip()))
            self._body.clear()
        self._mode, self._channel = "text", "text"


@dataclass(slots=True)
class _Undo:
    """How to turn a supposed mark and what followed it back into text."""

    mark: str
    reasoning: list[str]
    start: int

    def restore(self) -> str:
        taken = "".join(self.reasoning[self.start :])
        del self.reasoning[self.start :]
        return self.mark + taken


def _possible_mark(held: str, marks: tuple[str, ...]) -> int:
    """How many characters at the end of `held` may be the beginning of a mark."""
    longest = min(max(map(len, marks)) - 1, len(held))
    for size in range(longest, 0, -1):
        tail = held[-size:]
        if any(mark.startswith(tail) for mark in marks):
            return size
    return 0


_FENCE = re.compile(r"\s{0,12}(`{3,}|~{3,})")


@dataclass(slots=True)
class _CodeTracker:
    """Knows whether the text so far ends inside fenced or inline code."""

    fence: str = ""
    line: list[str] = field(default_factory=list[str])
    ticks: int = 0
    start: str = ""

    @property
    def inside(self) -> bool:
        return bool(self.fence) or self.ticks % 2 == 1 or _FENCE.match(self.start) is not None

    def feed(self, text: str) -> None:
        head, *rest = text.split("\n")
        self._add(head)
        for line in rest:
            self._end_line()
            self._add(line)

    def _add(self, text: str) -> None:
        self.line.append(text)
        self.ticks += text.count("`")
        if len(self.start) < 40:
            self.start += text[:40]

    def _end_line(self) -> None:
        match = _FENCE.match(self.start)
        if match:
            run = match.group(1)
            if not self.fence:
                self.fence = run
            elif run[0] == self.fence[0] and len(run) >= len(self.fence):
                rest = "".join(self.line)[match.end() :]
                if not rest.strip():
                    self.fence = ""
        self.line.clear()
        self.ticks, self.start = 0, ""
