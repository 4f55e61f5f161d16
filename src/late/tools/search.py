"""Finding text in files, and files by their names."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict, cast

from late.errors import ToolError
from late.tools.base import Effect, Preview, ToolArgs, ToolContext, ToolResult
from late.workspace.area import Area, area_of
from late.workspace.ripgrep import BadPattern, list_files, listing_arguments, readmitted_files, run_ripgrep
from late.workspace.terminal_text import clean, escaped

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_LINE = 250
"""Characters of one shown line; the match is in its middle where the line is longer."""
_BEFORE_MATCH = 80
_PER_FILE = 30
"""Matches shown of one file where there are several, so that one of them cannot hide the others."""
_COUNTED = 10_000
"""Matches that are counted beyond what is shown."""
_MAX_CONTEXT = 20
_NOTES_ROOM = 400
_TIME_LIMIT_S = 60.0
_HINTS_WITHIN_S = 2.0
"""Further searches, for a better "no matches", are only made where the first one was faster than this."""
_REGEX_SIGNS = re.compile(r"[\\^$|()+]|\.\*(?!$)")
_GLOB_SIGNS = re.compile(r"[*?\[{]")

Case = Literal["smart", "sensitive", "insensitive"]


class Args(ToolArgs):
    """What to look for, and where."""

    pattern: str
    path: str = "."
    mode: Literal["content", "files", "count", "names"] = "content"
    glob: str = ""
    fixed: bool = False
    case: Case = "smart"
    context: int = 0


class Search:
    """ripgrep, with results for a model: grouped by file, bounded, and never silent about what was left out."""

    name: ClassVar[str] = "search"
    description: ClassVar[str] = (
        "Search file contents by regex (fixed=true: plain text), or file names (mode=names: glob or regex). "
        "glob limits the files, context adds lines."
    )
    Args: ClassVar[type[ToolArgs]] = Args
    effect: ClassVar[Effect] = "read"

    def label(self, args: Args) -> str:
        """The pattern and the place."""
        what = "files named" if args.mode == "names" else "for"
        where = "" if args.path in {"", "."} else f" in {escaped(args.path)}"
        return f"Search {what} {escaped(args.pattern)!r}{where}"

    def paths(self, args: Args) -> tuple[str, ...]:
        """Where it searches."""
        return (args.path or ".",)

    def preview(self, args: Args, context: ToolContext) -> Preview:
        """The place is checked, nothing is read."""
        area_of(context.workspace, args.path)
        return Preview(self.label(args))

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        """Search."""
        if not args.pattern:
            raise ToolError("`pattern` is empty", "Give a text or regex; for a folder's files use list_files.")
        query = _Query(args, area_of(context.workspace, args.path), context.cap_chars)
        try:
            if args.mode == "names":
                return await _names(query)
            result = await (_content(query) if args.mode == "content" else _listed(query))
            return result or await _nothing(query)
        except BadPattern as error:
            raise ToolError(str(error), _repair(args, str(error))) from error


@dataclass(frozen=True, slots=True)
class _Query:
    args: Args
    area: Area
    cap: int

    @property
    def room(self) -> int:
        """Characters for what was found, beside the head and the notes."""
        return self.cap - min(_NOTES_ROOM, self.cap // 3)

    @property
    def globs(self) -> list[str]:
        return split_globs(self.args.glob)

    def matching(self) -> list[str]:
        """The options that say what matches."""
        args = self.args
        options = ["--crlf", f"--regexp={args.pattern}"]
        options.append(
            {"smart": "--smart-case", "sensitive": "--case-sensitive", "insensitive": "--ignore-case"}[args.case]
        )
        if args.fixed:
            options.append("--fixed-strings")
        if "\n" in args.pattern or (not args.fixed and re.search(r"(?<!\\)(?:\\\\)*\\n", args.pattern)):
            options.append("--multiline")
        return options

    async def arguments(self, options: Sequence[str]) -> list[str]:
        """The whole command line."""
        readmitted = await readmitted_files(self.area, self.globs)
        return [
            *options,
            *self.matching(),
            *listing_arguments(self.area, self.globs),
            "--",
            self.area.start,
            *(f"./{path}" for path in readmitted),
        ]


def split_globs(text: str) -> list[str]:
    """`*.py,*.{ts,tsx}` → `*.py` and `*.{ts,tsx}`."""
    return [part for raw in re.split(r",(?![^{]*\})", text) if (part := raw.strip())]


def _repair(args: Args, message: str) -> str:
    if "glob" in message:
        return "Repair the glob, e.g. *.py or src/**/*.ts."
    return "" if args.fixed else "To search for the text as it is, use fixed=true."


class _Text(TypedDict, total=False):
    text: str
    bytes: str


@dataclass(slots=True)
class _FileHits:
    path: str
    lines: list[str] = field(default_factory=list[str])
    matches: int = 0
    shown: int = 0
    last_line: int = 0


class _ContentHits:
    """Folds ripgrep's JSON into lines for a model."""

    def __init__(self, query: _Query) -> None:
        self._hidden = query.area.filter()
        self._area = query.area
        self._room = query.room
        self._per_file = _PER_FILE if query.area.is_dir else _COUNTED
        self._context = query.args.context > 0
        self._file: _FileHits | None = None
        self._seen: set[str] = set()
        self.files: list[_FileHits] = []
        self.matches = 0

    @property
    def shown(self) -> int:
        """Matches that are shown."""
        return sum(file.shown for file in self.files)

    def take(self, record: bytes) -> None:
        """Take one message of ripgrep."""
        message = cast("dict[str, Any]", json.loads(record))
        data = cast("dict[str, Any]", message["data"])
        match message["type"]:
            case "begin":
                path = os.fsdecode(_bytes(data["path"])).removeprefix("./")
                skip = path in self._seen or self._hidden(path)
                self._file = None if skip else _FileHits(path)
                self._seen.add(path)
            case "match" | "context" if self._file:
                self._add(self._file, data, is_match=message["type"] == "match")
            case "end" if self._file:
                self._end(self._file, binary=data["binary_offset"] is not None)
                self._file = None
            case _:
                pass

    def close(self) -> None:
        """Keep what was found of a file that was not read to its end."""
        if self._file:
            self._end(self._file, binary=False)

    def text(self) -> str:
        """All files with something to show."""
        return "\n\n".join("\n".join((self._area.shown(file.path), *file.lines)) for file in self.files if file.lines)

    def _end(self, file: _FileHits, *, binary: bool) -> None:
        if binary:
            file.lines, file.shown = ["(a binary file that matches)"], file.matches
        elif file.shown < file.matches and file.lines:
            file.lines.append(f"… {file.matches - file.shown} more in this file")
        if file.matches:
            self.files.append(file)

    def _add(self, file: _FileHits, data: dict[str, Any], *, is_match: bool) -> None:
        file.matches += is_match
        self.matches += is_match
        if self._room <= 0 or file.shown >= self._per_file or (file.shown < file.matches - 1 and is_match):
            return
        number = int(data["line_number"] or 0)
        lines = _bytes(data["lines"]).decode("utf-8", "replace").removesuffix("\n").split("\n")
        starts = [int(match["start"]) for match in data["submatches"]]
        new: list[str] = ["--"] if self._context and file.last_line and number > file.last_line + 1 else []
        for offset, line in enumerate(lines):
            start = starts[0] if starts and not offset else 0
            new.append(f"{number + offset}{'|' if is_match else '-'} {_shown_line(line, start, number + offset)}")
        file.lines.extend(new)
        file.last_line = number + len(lines) - 1
        file.shown += is_match
        size = sum(len(line) + 1 for line in new) + (len(file.path) + 2 if len(file.lines) == len(new) else 0)
        self._room -= size
        if self._room < 0:  # the line that does not fit any more is not shown
            del file.lines[-len(new) :]
            file.shown -= is_match


def _bytes(value: _Text) -> bytes:
    return base64.b64decode(value["bytes"]) if "bytes" in value else value.get("text", "").encode("utf-8", "replace")


def _shown_line(line: str, start: int, number: int) -> str:
    """A line without what is not text, clipped around byte `start`."""
    line = line.removesuffix("\r")
    if len(line) > _MAX_LINE:
        at = len(line.encode()[:start].decode("utf-8", "ignore"))
        first = max(0, min(at - _BEFORE_MATCH, len(line) - _MAX_LINE))
        clipped = line[first : first + _MAX_LINE]
        line = ("…" if first else "") + clipped + ("…" if first + _MAX_LINE < len(line) else "")
    return clean(line.removeprefix("\ufeff") if number == 1 else line)


async def _content(query: _Query) -> ToolResult | None:
    hits = _ContentHits(query)
    context = min(max(query.args.context, 0), _MAX_CONTEXT)
    arguments = await query.arguments(["--json", *([f"--context={context}"] if context else [])])
    notes: list[str] = []
    complete = True
    try:
        async with asyncio.timeout(_TIME_LIMIT_S), run_ripgrep(arguments, query.area.cwd) as run:
            async for record in run.records(b"\n"):
                hits.take(record)
                if hits.matches >= _COUNTED:
                    complete = False
                    break
        notes = _notes(run.unreadable, run.overlong)
    except TimeoutError:
        complete = False
        notes.append(f"stopped after {_TIME_LIMIT_S:.0f} s; narrow with path or glob")
    hits.close()
    if not hits.matches:
        return None if complete and not notes else _report("No matches so far", "", notes, query, {"matches": 0})
    total = f"{hits.matches:,}{'' if complete else ' or more'} {_plural(hits.matches, 'match', 'matches')}"
    head = f"{total} in {len(hits.files):,} {_plural(len(hits.files), 'file')}"
    hidden = sum(not file.lines for file in hits.files)
    if hits.shown < hits.matches:
        head += f", {hits.shown:,} shown"
        rest = f" ({hidden:,} {_plural(hidden, 'file')} not shown at all)" if hidden else ""
        notes.insert(0, f"cut{rest}: narrow with path, glob or a longer pattern, or use mode=files")
    details = {"matches": hits.matches, "files": len(hits.files)}
    return _report(head, hits.text(), notes, query, details)


async def _listed(query: _Query) -> ToolResult | None:
    """Modes files and count: one line a file."""
    counting = query.args.mode == "count"
    options = ["--count", "--with-filename"] if counting else ["--files-with-matches"]
    try:
        found, notes = await _files(query, options)
    except TimeoutError as error:
        raise ToolError(
            f"the search was stopped after {_TIME_LIMIT_S:.0f} s", "Narrow it with path or glob."
        ) from error
    if not found:
        return _report("No matches so far", "", notes, query, {"matches": 0}) if notes else None
    matches = sum(found.values())
    head = f"{len(found):,} {_plural(len(found), 'file')}"
    head = f"{matches:,} matching {_plural(matches, 'line')} in {head}" if counting else f"{head} with matches"
    lines = [query.area.shown(path) + (f": {count}" if counting else "") for path, count in found.items()]
    body, left = _fitting(lines, query.room)
    if left:
        notes.insert(0, f"{left:,} more files not shown: narrow with path, glob or a longer pattern")
    details = {"files": len(found)} | ({"matches": matches} if counting else {})
    return _report(head, body, notes, query, details)


async def _files(query: _Query, options: list[str], most: int = 100_000) -> tuple[dict[str, int], list[str]]:
    """The files that match, with the number of lines where `options` ask for it."""
    hidden = query.area.filter()
    arguments = await query.arguments([*options, "--null"])
    counting = "--count" in options
    found: dict[str, int] = {}
    path = ""
    async with asyncio.timeout(_TIME_LIMIT_S), run_ripgrep(arguments, query.area.cwd) as run:
        async for record in run.records(b"\0"):
            count = 1
            following = record
            if counting:  # path NUL count LF path NUL count LF …
                number, _, following = record.partition(b"\n") if path else (b"", b"", record)
                count = int(number or b"0")
            if counting and path and not hidden(path):
                found[path] = count
            path = os.fsdecode(following).removeprefix("./")
            if not counting and not hidden(path):
                found[path] = count
            if len(found) >= most:
                break
    return found, _notes(run.unreadable, 0)


async def _nothing(query: _Query) -> ToolResult:
    """Say what was searched, and which other search would find something."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    searched = len(await list_files(query.area, query.globs)) if query.area.is_dir else 1
    args = query.args
    how = "plain text" if args.fixed else "regex"
    where = f" in {query.area.shown(query.area.relative)}" if query.area.relative or query.area.prefix else ""
    looked = f"{searched:,} {_plural(searched, 'file')}" + (f" matching {args.glob}" if args.glob else "")
    head = f"No matches for {escaped(args.pattern)!r}{where} ({how}, {looked} searched)"
    notes: list[str] = []
    if not searched:
        notes.append("there is no such file that .gitignore and .llmignore do not leave out")
    for change, words in _alternatives(args):
        if loop.time() - started > _HINTS_WITHIN_S:
            break
        try:
            found, _ = await _files(replace(query, args=args.model_copy(update=change)), ["--files-with-matches"], 100)
        except (BadPattern, TimeoutError):
            continue
        if found:
            names = ", ".join(query.area.shown(path) for path in list(found)[:3])
            notes.append(f"{words} it is in {names}{', …' if len(found) > 3 else ''}")
    return _report(head, "", notes, query, {"matches": 0, "files": 0})


def _alternatives(args: Args) -> list[tuple[dict[str, Any], str]]:
    found: list[tuple[dict[str, Any], str]] = []
    if not args.fixed and re.search(r"[\\^$.|?*+()\[\]{}]", args.pattern):
        found.append(({"fixed": True}, "as plain text (fixed=true)"))
    if args.case != "insensitive" and args.pattern != args.pattern.lower():
        found.append(({"case": "insensitive"}, "with case=insensitive"))
    if args.case == "sensitive" and args.pattern != args.pattern.upper() and not found:
        found.append(({"case": "insensitive"}, "with case=insensitive"))
    if args.glob:
        found.append(({"glob": ""}, "without the glob"))
    return found


async def _names(query: _Query) -> ToolResult:
    """Files by name: the pattern is taken for what it looks like, and for the other where that finds nothing."""
    files = await list_files(query.area, query.globs)
    pattern = query.args.pattern
    looks_like_regex = _REGEX_SIGNS.search(pattern) is not None
    ways = ["regex", "glob"] if looks_like_regex else ["glob", "regex"]
    if query.args.fixed or not (looks_like_regex or _GLOB_SIGNS.search(pattern)):
        ways = ["text"]
    problem: BadPattern | None = None
    found: list[str] = []
    for way in ways:
        try:
            found = await _named(query, files, way)
        except BadPattern as error:
            problem = problem or error
        if found:
            break
    else:
        if problem and not found:
            raise problem
    if not found:
        head = f"No file name matches {escaped(pattern)!r} ({' or '.join(ways)}, {len(files):,} files looked at)"
        return _report(head, "", [], query, {"files": 0})
    body, left = _fitting([query.area.shown(path) for path in found], query.room)
    notes = [f"{left:,} more not shown: narrow with path or a longer pattern"] if left else []
    return _report(f"{len(found):,} {_plural(len(found), 'file')}", body, notes, query, {"files": len(found)})


async def _named(query: _Query, files: list[str], way: str) -> list[str]:
    pattern, case = query.args.pattern, query.args.case
    sensitive = case == "sensitive" or (case == "smart" and pattern != pattern.lower())
    if way == "text":
        wanted = pattern if sensitive else pattern.lower()
        return [path for path in files if wanted in (path if sensitive else path.lower())]
    if way == "glob":
        globs = split_globs(pattern)
        globs += [f"**/{glob.lstrip('/')}" for glob in globs if "/" in glob]
        area = replace(query.area, is_dir=query.area.is_dir)
        options = [] if sensitive else ["--glob-case-insensitive"]
        arguments = ["--files", "--null", "--no-ignore", *listing_arguments(area, globs), *options, "--", area.start]
        return await _listed_among(arguments, area, set(files))
    texts = [path if "/" in pattern.replace("\\/", "/") else PurePosixPath(path).name for path in files]
    stdin = b"\0".join(os.fsencode(text) for text in texts) + b"\0"
    options = ["--null-data", "--line-number", "--no-filename", f"--regexp={pattern}"]
    options.append("--case-sensitive" if sensitive else "--ignore-case")
    found: list[str] = []
    async with run_ripgrep([*options, "--text", "-"], query.area.cwd, stdin=stdin) as run:
        async for record in run.records(b"\0"):
            number = record.split(b":", 1)[0]
            if number.isdigit():
                found.append(files[int(number) - 1])
    return found


async def _listed_among(arguments: list[str], area: Area, files: set[str]) -> list[str]:
    found: list[str] = []
    async with run_ripgrep(arguments, area.cwd) as run:
        async for record in run.records(b"\0"):
            path = os.fsdecode(record).removeprefix("./")
            if path in files:
                found.append(path)
    return found


def _notes(unreadable: list[str], overlong: int) -> list[str]:
    notes: list[str] = []
    if unreadable:
        notes.append(f"{len(unreadable):,} places could not be read, e.g. {escaped(unreadable[0])[:200]}")
    if overlong:
        notes.append(f"{overlong:,} extremely long {_plural(overlong, 'line')} passed over")
    return notes


def _fitting(lines: list[str], room: int) -> tuple[str, int]:
    kept = 0
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept += 1
    return "\n".join(lines[:kept]), len(lines) - kept


def _report(head: str, body: str, notes: list[str], query: _Query, details: dict[str, Any]) -> ToolResult:
    parts = [f"{head}:" if body else f"{head}."]
    if body:
        parts.append(body)
    parts.extend(f"[{note}]" for note in notes)
    return ToolResult("\n".join(parts)[: query.cap], details={"mode": query.args.mode, **details})


def _plural(count: int, one: str, many: str = "") -> str:
    return one if count == 1 else many or one + "s"
