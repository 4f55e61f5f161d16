"""Calls constrained, code in plain text: for small models, whose code inside JSON is bad code.

In a turn that is for code (`Legal.edit`) the answer is free text with a fenced block: the whole file, the whole
symbol, or search/replace pairs. It is read as a `write_file` or `target_edit` call. Every other turn is the
constrained dialect's.
"""

from __future__ import annotations

import json
import re
import textwrap
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from late.events import ToolCall
from late.llm.dialects.base import Decoder
from late.llm.dialects.constrained import CALL_FORMAT, DEFAULT_TEMPERATURE, JsonDecoder, response_format, text_messages
from late.llm.dialects.repetition import Repetition
from late.llm.provider import Completed, DialectName, EditTarget, Legal, StreamItem, Text, TurnRequest

_CODE_TOOLS = {"write_file", "target_edit"}
_PAIR = re.compile(r"^<{5,9} ?SEARCH[^\n]*\n(.*?)^={5,9}[^\n]*\n(.*?)^>{5,9} ?REPLACE[^\n]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class PlainDialect:
    """Constrained for everything but code."""

    name: DialectName = "plain"

    def body(self, request: TurnRequest) -> dict[str, Any]:
        """As the constrained dialect, but without a schema in a turn for code."""
        codes = any(tool.name in _CODE_TOOLS for tool in request.tools)
        shown = replace(request, tools=[tool for tool in request.tools if tool.name not in _CODE_TOOLS])
        tail = CODE_FORMAT if codes else CALL_FORMAT
        body: dict[str, Any] = {
            "messages": text_messages(shown, tail),
            "temperature": request.temperature if request.temperature is not None else DEFAULT_TEMPERATURE,
        }
        if request.legal is None or request.legal.edit is None:
            legal = request.legal or Legal(calls={tool.name: tool.parameters for tool in shown.tools})
            body["response_format"] = response_format(legal)
        return body

    def decoder(self, request: TurnRequest) -> Decoder:
        """A reader of fences in a turn for code, of JSON in every other."""
        if request.legal is not None and request.legal.edit is not None:
            return FenceDecoder(request.legal.edit)
        return JsonDecoder()


CODE_FORMAT = (
    "When you are asked for code, answer with the file's path on a line of its own and then one fenced block that "
    "holds the complete new text: nothing left out, no comments in place of code, no diff."
)


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block of an answer; `path` is what its surroundings say it is for."""

    path: str | None
    text: str


_OPEN = re.compile(r"^(?P<indent> {0,3})(?P<ticks>`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)$")
_PATH = re.compile(
    r"^[#>*\s`\-]*(?:(?:file|path|filename)\s*:\s*)?[*`\"']*(?P<path>[\w./\\+@-]*[\w-]\.?[\w-]*)[`*\"']*:?\s*$", re.I
)
_PATH_COMMENT = re.compile(
    r"^\s*(?:#|//|--|/\*|<!--|;)\s*(?:file|path|filename)?:?\s*(?P<path>[\w./-]+\.\w+)\s*(?:\*/|-->)?\s*$", re.I
)


def fences(text: str) -> list[Fence]:
    """The fenced blocks of an answer, with the path before the fence, in its info string or in a first comment.

    A block that is never closed (a cut answer) is none.
    """
    found: list[Fence] = []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        opening = _OPEN.match(lines[at])
        if not opening:
            at += 1
            continue
        end = _closing(lines, at + 1, opening["ticks"])
        if end is None:
            break
        body = lines[at + 1 : end]
        found.append(Fence(_path_of(lines, at, opening["info"]), "".join(f"{line}\n" for line in body)))
        at = end + 1
    return found


def _closing(lines: list[str], start: int, ticks: str) -> int | None:
    """The line that closes a fence. Blocks inside a Markdown file nest: an opening with an info string is counted."""
    depth = 1
    last: int | None = None
    for at in range(start, len(lines)):
        stripped = lines[at].strip()
        if stripped.startswith(ticks[:3]) and set(stripped) <= {ticks[0]} and len(stripped) >= len(ticks):
            depth -= 1
            last = at
            if depth == 0:
                return at
        elif re.match(rf"^ {{0,3}}{re.escape(ticks)}\w", lines[at]):
            depth += 1
    return last


def _path_of(lines: list[str], opening: int, info: str) -> str | None:
    words = info.replace(":", " ").split()
    for word in words:
        if "." in word or "/" in word:
            return word.strip("`\"'")
    before = next((lines[i] for i in range(opening - 1, max(-1, opening - 3), -1) if lines[i].strip()), "")
    if (match := _PATH.match(before)) and ("." in match["path"] or "/" in match["path"]):
        return match["path"]
    if opening + 1 < len(lines) and (match := _PATH_COMMENT.match(lines[opening + 1])):
        return match["path"]
    return None


class FenceDecoder:
    """Reads the answer to a turn for code as calls."""

    def __init__(self, target: EditTarget) -> None:
        self._target = target
        self._repetition = Repetition()

    def feed(self, item: StreamItem) -> Iterable[StreamItem]:
        """Everything is shown as it comes."""
        if isinstance(item, Text):
            self._repetition.feed(item.text)
        return (item,)

    def stop(self) -> bool:
        """True when the answer runs in circles: it would go on to its limit for minutes."""
        return self._repetition.found

    def finish(self, completed: Completed) -> Completed:
        """The answer with its calls; without a usable block it has none."""
        raw = completed.text
        calls: list[tuple[str, dict[str, str]]] = []
        if completed.finish in {"stop", "tool_calls"}:
            calls = code_calls(raw, self._target)
        if not calls:
            return replace(completed, raw=raw)
        return replace(
            completed,
            raw=raw,
            text=_prose(raw),
            final=True,
            finish="tool_calls",
            calls=tuple(
                ToolCall(
                    id=f"call_{uuid.uuid4().hex[:12]}", name=name, arguments=json.dumps(arguments, ensure_ascii=False)
                )
                for name, arguments in calls
            ),
        )


def code_calls(answer: str, target: EditTarget) -> list[tuple[str, dict[str, str]]]:
    """The calls that an answer in plain text stands for: (tool, arguments).

    With one file in scope the block needs no path, and a block for another file is left out.
    """
    blocks = fences(answer)
    named = [block for block in blocks if block.path is not None and _same(block.path, target.path)]
    chosen = named[-1:] or [block for block in blocks if block.path is None or _is_language(block.path)][-1:]
    if not chosen and len(blocks) == 1:
        chosen = blocks
    pairs = [pair for block in (named or chosen) for pair in _PAIR.finditer(block.text)] or list(_PAIR.finditer(answer))
    if pairs:
        return [
            ("target_edit", {"path": target.path, "search": pair[1].rstrip("\n"), "replace": pair[2].rstrip("\n")})
            for pair in pairs
        ]
    if not chosen:
        return []
    text = _unwrapped(chosen[0].text, target)
    if target.region is not None:
        imports, text = _imports_apart(text, target.region)
        text = _without_class_line(text, target.region)
        fitted = _fit(text, target.region)
        replace_by = f"{target.region.rstrip()}\n\n{fitted}" if target.insert else fitted
        edit = {"path": target.path, "search": target.region, "replace": replace_by}
        return [*_import_edit(imports, target), ("target_edit", edit)]
    return [("write_file", {"path": target.path, "content": text})]


def _same(named: str, path: str) -> bool:
    named = named.strip("./").replace("\\", "/")
    return named == path or path.endswith("/" + named) or named.endswith("/" + path)


def _is_language(word: str) -> bool:
    return "/" not in word and "." not in word


def _unwrapped(text: str, target: EditTarget) -> str:
    """The code of a block: without a first line that only repeats the path, and out of a fence within the fence.

    A line that the old text began with stays.
    """
    first, _, rest = text.lstrip("\n").partition("\n")
    match = _PATH_COMMENT.match(first) or _PATH.match(first)
    if match and _same(match["path"], target.path) and not (target.text or "").startswith(first):
        text = rest.lstrip("\n")
    head, _, body = text.partition("\n")
    if _OPEN.match(head) and not (target.text or "").startswith(head):
        inner = fences(text)
        return inner[0].text if inner else body
    return text


_IMPORT = re.compile(r"(?:import|from) [\w.]+[^\n]*$")


def _imports_apart(text: str, region: str) -> tuple[list[str], str]:
    """Take import lines that stand before a rewritten symbol out of it: they belong to the top of the file."""
    lines = text.strip("\n").split("\n")
    head = next((at for at, line in enumerate(lines) if line.strip() and not _IMPORT.match(line)), len(lines))
    if head == len(lines) or _IMPORT.match(region.lstrip()):
        return [], text
    return [line for line in lines[:head] if line.strip()], "\n".join(lines[head:]) + "\n"


def _import_edit(imports: list[str], target: EditTarget) -> list[tuple[str, dict[str, str]]]:
    """Put imports that the file does not have before its first one, else before its first definition."""
    lines = (target.text or "").split("\n")
    missing = [line for line in imports if line not in lines]
    if not missing:
        return []
    first = next((line for line in lines if _IMPORT.match(line)), None)
    anchor = first or next((line for line in lines if re.match(r"(?:async def|class|def|@)\b?", line)), None)
    if anchor is None or lines.count(anchor) > 1:
        return []
    gap = "\n" if first else "\n\n\n"
    return [("target_edit", {"path": target.path, "search": anchor, "replace": "\n".join(missing) + gap + anchor})]


def _without_class_line(text: str, region: str) -> str:
    """A method that comes inside of its class is taken out of it."""
    head, _, body = text.lstrip("\n").partition("\n")
    if not re.match(r"class \w+.*:\s*$", head) or re.match(r"\s*(?:@|class )", region):
        return text
    return textwrap.dedent(body)


def _fit(text: str, region: str) -> str:
    """Give a rewritten symbol the indentation and the final line ending of the old one."""
    lines = text.strip("\n").split("\n")
    wanted = len(region) - len(region.lstrip(" \t"))
    have = len(lines[0]) - len(lines[0].lstrip(" \t"))
    if wanted > have:
        pad = region[: wanted - have]
        lines = [pad + line if line.strip() else line for line in lines]
    return "\n".join(lines) + ("\n" if region.endswith("\n") else "")


def _prose(answer: str) -> str:
    """What the answer says besides its code."""
    return re.sub(r"(?ms)^[^\n]*\n?```.*?^```[ \t]*$", "", answer).strip()
