"""Runs the pip of this Python as a child process and tells how far it is.

A package registry is the one place to fetch from that every Python installation already knows how to reach, with
the person's proxies, mirrors and certificates; hence pip, and no downloader of our own.
"""

from __future__ import annotations

import importlib.util
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from late.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_TAIL = 200
_TOLD = 8
_ERROR = re.compile(r"^error\b|: (fatal )?error:", re.IGNORECASE)
_SAYS_NOTHING = re.compile(
    r"subprocess-exited|metadata-generation-failed|failed-wheel-build|Failed building wheel|Failed to build"
)
_RAW_PROGRESS = re.compile(r"^Progress (\d+) of (\d+)$")
_RAW_PROGRESS_SINCE = (24, 1)
_KILL_AFTER_S = 5.0


@dataclass(frozen=True, slots=True)
class PipOutput:
    """What a running pip says; `line` is empty when a second passed without a word."""

    line: str
    elapsed_s: float
    received: int | None = None
    """Bytes of the current download, where this pip tells (24.1 and later)."""
    expected: int | None = None


class OnOutput(Protocol):
    """Is called for each line of pip's output, and once a second without one."""

    def __call__(self, output: PipOutput, /) -> None:
        """Take note of `output`."""
        ...


def require_pip() -> None:
    """Make sure that this Python has pip.

    Raises:
        UserError: it has none.
    """
    if importlib.util.find_spec("pip") is None:
        raise UserError(
            f"The Python that runs late ({sys.executable}) has no pip, and late fetches through pip.",
            f"Run `{sys.executable} -m ensurepip`, or with uv: `uv pip install pip` into this environment.",
        )


def download(requirement: str, into: Path, on_output: OnOutput, *, sources: bool = False) -> Path:
    """Download `requirement` (`name==version`, without its dependencies) and return the file's path.

    It is a wheel; with `sources` it may be an archive of sources where the registry has no wheel for this machine.

    Raises:
        UserError: there is no pip, or it failed; the message holds its own words.
    """
    into.mkdir(parents=True, exist_ok=True)
    wheels_only = [] if sources else ["--only-binary", ":all:"]
    _run(["download", "--no-deps", *wheels_only, "--dest", str(into), requirement], on_output)
    return _only_file(into)


def build_wheel(sources: Path, into: Path, on_output: OnOutput, settings: Mapping[str, str]) -> Path:
    """Build the project in the folder `sources` and return its wheel's path. `settings` go to its build backend.

    Raises:
        UserError: there is no pip, or the build failed; the message holds its last words.
    """
    into.mkdir(parents=True, exist_ok=True)
    chosen = [f"--config-settings={name}={value}" for name, value in settings.items()]
    _run(["wheel", "--no-deps", "--verbose", "--wheel-dir", str(into), *chosen, str(sources)], on_output)
    return _only_file(into)


def install(wheel: Path, on_output: OnOutput) -> None:
    """Install `wheel` and what it depends on into the environment that runs late.

    Raises:
        UserError: there is no pip, or it failed; the message holds its own words.
    """
    _run(["install", str(wheel)], on_output)
    importlib.invalidate_caches()


def _only_file(folder: Path) -> Path:
    files = list(folder.iterdir())
    if len(files) != 1:
        raise UserError(f"pip reported success, but left {len(files)} files in {folder} instead of one.")
    return files[0]


def _run(arguments: Sequence[str], on_output: OnOutput) -> None:
    require_pip()
    command, *rest = arguments
    bar = ["--progress-bar", "raw" if _pip_version() >= _RAW_PROGRESS_SINCE else "off"]
    argv = [sys.executable, "-m", "pip", command, "--no-input", "--disable-pip-version-check", *bar, *rest]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}
    # A session of its own: Ctrl-C reaches late alone, which then ends pip together with the compilers below it.
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    tail: deque[str] = deque(maxlen=_TAIL)
    started = time.monotonic()
    try:
        for line in _lines_or_ticks(process):
            elapsed = time.monotonic() - started
            if progress := _RAW_PROGRESS.match(line):
                on_output(PipOutput("", elapsed, int(progress[1]), int(progress[2])))
            else:
                if line:
                    tail.append(line)
                on_output(PipOutput(line, elapsed))
        code = process.wait()
    finally:
        _end(process)
    if code != 0:
        raise _failure(rest, code, tail)


def _lines_or_ticks(process: subprocess.Popen[str]) -> Iterator[str]:
    """The process's lines, and an empty one after each second without any."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def pump() -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                lines.put(line.strip())
        lines.put(None)

    threading.Thread(target=pump, name="pip-output", daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=1.0)
        except queue.Empty:
            line = ""
        if line is None:
            return
        yield line


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(_KILL_AFTER_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _pip_version() -> tuple[int, ...]:
    from importlib.metadata import version

    return tuple(int(number) for number in re.findall(r"\d+", version("pip"))[:2])


def _failure(arguments: Sequence[str], code: int, tail: Sequence[str]) -> UserError:
    what = arguments[-1]
    telling = [line for line in tail if _ERROR.search(line) and not _SAYS_NOTHING.search(line)]
    said = "\n".join(telling[:_TOLD] or list(tail)[-_TOLD:])
    text = "\n".join(tail)
    if "externally-managed-environment" in text:
        hint = "This Python belongs to the operating system: install late into a virtual environment or with pipx."
    elif "No space left" in text:
        hint = "Free some disk space and start again: what is finished is kept."
    elif "No matching distribution" in text:
        hint = "The package index that pip is configured for has it not (`pip config list` shows which one that is)."
    elif any(word in text for word in ("Connection", "resolve", "timed out", "Retrying")):
        hint = "The package index cannot be reached: check the network and start again; what is finished is kept."
    else:
        hint = "Start again to go on; what is finished is kept."
    return UserError(f"pip could not get {what} (exit status {code}):\n{said}", hint)
