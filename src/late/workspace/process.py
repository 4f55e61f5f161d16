"""Running a shell command so that nothing of it outlives the call, whatever it starts, prints or waits for."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import time
import uuid
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from late.errors import ToolError
from late.workspace.process_tree import ProcessTree, reap_orphans
from late.workspace.terminal_text import TerminalText, escaped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from io import TextIOWrapper

MAX_LOG_CHARS = 20_000_000
"""Of one command's log file; a flood is cut here, the command goes on."""
_CHUNK = 65_536
_LIVE_EVERY_S = 0.1
_LIVE_CHARS = 4_000
"""The most that is shown per tick while a command runs."""
_LINGER_S = 1.0
"""How long a background child may finish by itself after the shell ended."""
_KEPT = re.compile(
    r"""PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR
      | VIRTUAL_ENV|CONDA_PREFIX|CONDA_DEFAULT_ENV|PYENV_ROOT|PYENV_VERSION|POETRY_HOME|UV_CACHE_DIR|PIP_CACHE_DIR
      | NVM_DIR|NVM_BIN|VOLTA_HOME|PNPM_HOME|BUN_INSTALL|DENO_DIR|FNM_DIR|ASDF_DIR|ASDF_DATA_DIR|MISE_DATA_DIR
      | CARGO_HOME|RUSTUP_HOME|RUSTUP_TOOLCHAIN|GOPATH|GOROOT|GOCACHE|GOMODCACHE|GOBIN|GOPROXY|GONOSUMDB|GOSUMDB
      | JAVA_HOME|MAVEN_HOME|M2_HOME|GRADLE_HOME|GRADLE_USER_HOME|ANDROID_HOME|ANDROID_SDK_ROOT|DOTNET_ROOT
      | GEM_HOME|GEM_PATH|RBENV_ROOT|XDG_(?:CACHE|CONFIG|DATA|STATE)_HOME|XDG_RUNTIME_DIR
      | NIX_PATH|NIX_PROFILES|NIX_SSL_CERT_FILE|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE
      | PKG_CONFIG_PATH
      | https?_proxy|HTTPS?_PROXY|no_proxy|NO_PROXY|all_proxy|ALL_PROXY
    """,
    re.VERBOSE,
)
"""What a build needs to find its tools; so LD_*, BASH_ENV, PYTHON*, *_OPTIONS, keys and tokens are not passed on."""
_GIT_CONFIG: tuple[tuple[str, str], ...] = (
    ("core.fsmonitor", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("protocol.ext.allow", "never"),
)
_GIT_READS: tuple[tuple[str, str], ...] = (("core.hooksPath", os.devnull),)
_MARK = "LATE_COMMAND"
"""A variable by which processes that left the group are found again."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended."""

    exit_code: int | None
    """As a shell reports it, 128 + n for signal n; `None` when it was stopped at its time limit."""
    output: str
    """stdout and stderr in order, cleaned; head and tail where it is longer than the cap."""
    timed_out: bool
    duration_s: float
    log_file: Path | None
    """Where the whole output is, when `output` is not all of it."""
    ended: tuple[str, ...] = ()
    """Background processes that were still running after the shell had ended, and were ended."""


async def run_command(
    command: str,
    *,
    cwd: Path,
    timeout_s: float,
    env: Mapping[str, str],
    output: Callable[[str], None],
    log_file: Path,
    cap_chars: int,
) -> CommandResult:
    """Run `command` in bash (sh where there is none), without a terminal and with an empty stdin.

    It runs in its own session. When the shell ended, at the time limit and on cancellation everything that it started
    is ended: SIGTERM, then SIGKILL, also what left the process group as far as /proc shows it. `output` gets cleaned
    text about ten times a second. `log_file` is written (cleaned, at most `MAX_LOG_CHARS`) once the output is longer
    than `cap_chars`.

    Raises:
        ToolError: the command cannot be started.
    """
    mark = uuid.uuid4().hex
    capture = _Capture(cap_chars, log_file)
    live = _Live(output)
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    started = time.monotonic()
    try:
        process = await _start(command, cwd, {**env, _MARK: mark}, write_end)
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
    tree = ProcessTree(process.pid, mark)
    reader = _Reader(read_end, lambda text: (capture.add(text), live.add(text)))
    timed_out = False
    ended: tuple[str, ...] = ()
    try:
        try:
            async with asyncio.timeout(timeout_s):
                await process.wait()
        except TimeoutError:
            timed_out = True
        else:
            tree.leader_reaped = True
            ended = await _linger(tree, reader)
    finally:
        tree.leader_reaped = process.returncode is not None
        try:
            await tree.end()
            await process.wait()
            reader.drain()
        finally:
            reader.close()
            live.close()
            capture.close()
            reap_orphans()
    code = process.returncode
    return CommandResult(
        exit_code=None if timed_out or code is None else code if code >= 0 else 128 - code,
        output=capture.text(),
        timed_out=timed_out,
        duration_s=time.monotonic() - started,
        log_file=capture.log_file,
        ended=ended,
    )


def clean_environment(base: Mapping[str, str], *, read_only: bool = False) -> dict[str, str]:
    """The variables for a command: a short list out of `base`, and settings that keep programs from asking.

    Everything else is dropped, above all keys, tokens and what makes programs load code. PATH keeps absolute folders
    only, so that no file of the project poses as a program. `read_only` also switches git's hooks off.
    """
    env = {key: value for key, value in base.items() if _KEPT.fullmatch(key) and not _has_password(value)}
    folders = [folder for folder in env.get("PATH", "").split(os.pathsep) if Path(folder).is_absolute()]
    env["PATH"] = os.pathsep.join(folders) or os.defpath
    if not any(env.get(key) for key in ("LC_ALL", "LC_CTYPE", "LANG")):
        env["LANG"] = "C.UTF-8"
    env |= {
        "TERM": "dumb",
        "NO_COLOR": "1",
        "PAGER": "cat",
        "MANPAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_EDITOR": "true",
        "GIT_SEQUENCE_EDITOR": "true",
        "EDITOR": "true",
        "VISUAL": "true",
        # Two edits of one size within a second leave bytecode that Python takes for current.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    settings = (*_GIT_CONFIG, *(_GIT_READS if read_only else ()))
    env["GIT_CONFIG_COUNT"] = str(len(settings))
    for number, (key, value) in enumerate(settings):
        env[f"GIT_CONFIG_KEY_{number}"] = key
        env[f"GIT_CONFIG_VALUE_{number}"] = value
    return env


def _has_password(value: str) -> bool:
    """Whether it is an address with credentials, as those of proxies may be."""
    return "://" in value and "@" in value


async def _start(command: str, cwd: Path, env: Mapping[str, str], write_end: int) -> asyncio.subprocess.Process:
    if "\0" in command:
        raise ToolError("the command holds a NUL character", "Write it without.")
    bash = shutil.which("bash", path=env.get("PATH"))
    shell = [bash, "--noprofile", "--norc"] if bash else [shutil.which("sh", path=env.get("PATH")) or "/bin/sh"]
    try:
        return await asyncio.create_subprocess_exec(
            *shell,
            "-c",
            command,
            cwd=cwd,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=write_end,
            stderr=write_end,
            start_new_session=True,
        )
    except UnicodeEncodeError as error:
        raise ToolError("the command holds characters that cannot be encoded", "Write it in valid Unicode.") from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ToolError(
            f"the command cannot be started: the folder {escaped(str(cwd))} or the shell {shell[0]} does not exist",
            "Give another `cwd`.",
        ) from error
    except OSError as error:
        raise ToolError(
            f"the command cannot be started: {error.strerror or error}",
            "Shorten it, or write a script into a file and run that." if len(command) > _CHUNK else "",
        ) from error


async def _linger(tree: ProcessTree, reader: _Reader) -> tuple[str, ...]:
    """Give background children a moment; what is still there then."""
    deadline = time.monotonic() + _LINGER_S
    while left := tree.left():
        if time.monotonic() > deadline:
            return tuple(f"{escaped(child.command)} (pid {child.pid})" for child in left)
        await asyncio.sleep(0.03)
    try:
        async with asyncio.timeout(_LINGER_S):
            await reader.at_end.wait()
    except TimeoutError:  # held by somebody whom the process table does not show
        return ("a process that holds the output open",)
    return ()


class _Reader:
    """Reads the pipe as the loop finds time, so that a flood neither blocks the loop nor the time limit."""

    def __init__(self, descriptor: int, take: Callable[[str], object]) -> None:
        self._descriptor = descriptor
        self._take = take
        self._text = TerminalText()
        self._loop = asyncio.get_running_loop()
        self.at_end = asyncio.Event()
        self._loop.add_reader(descriptor, self._read)

    def _read(self) -> bool:
        """Take one chunk; False when there is none now."""
        try:
            data = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return False
        if text := self._text.feed(data):
            self._take(text)
        if not data:
            self._loop.remove_reader(self._descriptor)
            self.at_end.set()
        return bool(data)

    def drain(self) -> None:
        """Take what lies in the pipe now that nobody should write to it any more."""
        for _ in range(64):
            if self.at_end.is_set() or not self._read():
                return

    def close(self) -> None:
        """Give the pipe back."""
        if not self.at_end.is_set():
            self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        if text := self._text.finish():
            self._take(text)


class _Live:
    """Passes output on, a few times a second and never more than a screen can use."""

    def __init__(self, output: Callable[[str], None]) -> None:
        self._output = output
        self._parts: deque[str] = deque()
        self._size = 0
        self._skipped = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, text: str) -> None:
        self._parts.append(text)
        self._size += len(text)
        while self._size - len(self._parts[0]) >= _LIVE_CHARS:
            dropped = len(self._parts.popleft())
            self._size -= dropped
            self._skipped += dropped
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LIVE_EVERY_S, self._flush)

    def _flush(self) -> None:
        self._timer = None
        text = "".join(self._parts)
        skipped = self._skipped + max(0, len(text) - _LIVE_CHARS)
        self._parts.clear()
        self._size = self._skipped = 0
        if text:
            note = f"[… {skipped:,} characters not shown …]\n" if skipped else ""
            self._output(note + text[-_LIVE_CHARS:])

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._flush()


class _Capture:
    """Keeps the head and the tail, and writes the whole into a file once that is not all."""

    def __init__(self, cap_chars: int, log_file: Path) -> None:
        self._path = log_file
        room = max(200, cap_chars - 250 - len(str(log_file)))
        self._head_room = room // 3
        self._tail_room = room - self._head_room
        self._head = ""
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._total = self._written = 0
        self._log: TextIOWrapper | None = None
        self._problem = ""

    @property
    def log_file(self) -> Path | None:
        """The file, if there was reason to write it and it could be written."""
        return None if self._log is None or self._problem else self._path

    def add(self, text: str) -> None:
        if self._total + len(text) > self._head_room + self._tail_room:
            self._write(text)
        self._total += len(text)
        room = self._head_room - len(self._head)
        self._head += text[:room]
        if rest := text[room:]:
            self._tail.append(rest)
            self._tail_size += len(rest)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_room:
            self._tail_size -= len(self._tail.popleft())

    def _write(self, text: str) -> None:
        if self._problem or self._written >= MAX_LOG_CHARS:
            return
        try:
            if self._log is None:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._log = self._path.open("w", encoding="utf-8", errors="replace", newline="")
                text = self._head + "".join(self._tail) + text
            self._log.write(text[: MAX_LOG_CHARS - self._written])
            self._written += len(text)
            if self._written >= MAX_LOG_CHARS:
                self._log.write(f"\n[… cut: only the first {MAX_LOG_CHARS:,} characters are kept …]\n")
        except OSError as error:
            self._problem = f"the whole could not be kept: {error.strerror or error}"

    def close(self) -> None:
        if self._log is not None:
            try:
                self._log.close()
            except OSError as error:
                self._problem = f"the whole could not be kept: {error.strerror or error}"

    def text(self) -> str:
        """The output for a model."""
        tail = "".join(self._tail)
        if self._total <= self._head_room + self._tail_room:
            return self._head + tail
        head = self._head[: self._head.rfind("\n") + 1] or self._head
        if len(head) < len(self._head) // 2:
            head = self._head
        tail = tail[-self._tail_room :]
        cut = tail.find("\n") + 1
        tail = tail[cut:] if 0 < cut < len(tail) // 2 else tail
        dropped = self._total - len(head) - len(tail)
        where = self._problem or f"all of it is in {self._path}"
        gap = "" if head.endswith("\n") or not head else "\n"
        return f"{head}{gap}[… {dropped:,} characters left out; {where} …]\n{tail}"
