"""Starts and stops a llama-server of our own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from late.config import paths
from late.errors import ProviderError, UserError
from late.llm import artifacts
from late.llm.provider import Waiting

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

_BATCH = 512
"""Prompt tokens per batch: a server reports prefill once a batch, and its default of 2048 leaves a bar standing."""
_POLL_S = 0.1
_REPORT_EVERY_S = 0.5
_STOP_S = 8.0
_HELP_S = 20.0
_TAIL_LINES = 15


def find_server() -> Path | None:
    """The person's own `llama-server` on PATH, else the prebuilt one if it was fetched before, else `None`."""
    if own := shutil.which("llama-server"):
        return Path(own)
    prebuilt = artifacts.server_path()
    return prebuilt if os.access(prebuilt, os.X_OK) else None


class LlamaServer:
    """A llama-server on a free loopback port, alive within `async with` and never longer than this process.

    Args:
        binary: the program.
        model: a GGUF file.
        ctx: tokens of context, shared out among the slots.
        slots: requests that the server keeps apart; two, so that the planner's cache survives its coders.
        port: 0 for any free one.
        threads: `None` for the server's own choice.
        extra: further flags, e.g. `("--n-cpu-moe", "40")`; passed on unchecked, so that the server reports a wrong one.
        report: is called while the server loads its model.
    """

    def __init__(
        self,
        binary: Path,
        model: Path,
        *,
        ctx: int = 32768,
        slots: int = 2,
        port: int = 0,
        threads: int | None = None,
        extra: Sequence[str] = (),
        report: Callable[[Waiting], None] | None = None,
    ) -> None:
        self.binary = binary
        self.model = model
        self.port = port or _free_port()
        self.log = paths.data_dir() / "logs" / f"llama-server-{self.port}.log"
        self._options = _options(ctx, slots, threads)
        self._extra = tuple(extra)
        self._report = report
        self._process: asyncio.subprocess.Process | None = None

    @property
    def base_url(self) -> str:
        """The endpoint, without a path."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Start the server and wait until it has loaded its model.

        Raises:
            UserError: there is no such model file or program.
            ProviderError: the server ended before it was ready; the message holds the end of its log.
        """
        if not self.model.is_file():
            raise UserError(f"There is no model file {self.model}.", "Give the path of a GGUF file.")
        environment = _environment(self.binary)
        known = await asyncio.to_thread(_known_flags, self.binary, environment)
        argv = [
            str(self.binary),
            *("--model", str(self.model), "--host", "127.0.0.1", "--port", str(self.port)),
            *(word for option in self._options if option[0] in known for word in option),
            *self._extra,
        ]
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(Path(__file__).with_name("supervisor.py")), *argv),
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,  # a Ctrl-C in the terminal is late's to handle
            )
        try:
            await self._wait_until_healthy(self._process)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End the server; nothing happens when it does not run. The log of one that had to be ended is not kept."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _STOP_S)
        except TimeoutError:
            process.kill()
            await process.wait()
        self.log.unlink(missing_ok=True)

    async def __aenter__(self) -> Self:
        """Start it."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it."""
        await self.stop()

    def log_tail(self) -> str:
        """The last lines that the server wrote."""
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        return "\n".join(lines[-_TAIL_LINES:])

    async def _wait_until_healthy(self, process: asyncio.subprocess.Process) -> None:
        import httpx

        started = reported = time.monotonic()
        async with httpx.AsyncClient(trust_env=False, timeout=5.0) as client:
            while True:
                healthy = False
                with contextlib.suppress(httpx.TransportError):
                    healthy = (await client.get(f"{self.base_url}/health")).is_success
                if process.returncode is not None:
                    raise self._ended(process.returncode)
                if healthy:
                    return
                now = time.monotonic()
                if self._report is not None and now - reported >= _REPORT_EVERY_S:
                    reported = now
                    self._report(Waiting("loading", f"llama-server loads {self.model.name}", now - started))
                await asyncio.sleep(_POLL_S)

    def _ended(self, code: int) -> ProviderError:
        return ProviderError(
            f"llama-server ended with status {code} before it was ready ({self.model}). "
            f"The end of its log:\n{self.log_tail()}",
            f"The whole log: {self.log}",
        )


def _options(ctx: int, slots: int, threads: int | None) -> list[tuple[str, ...]]:
    options: list[tuple[str, ...]] = [
        ("--ctx-size", str(ctx)),
        ("--parallel", str(slots)),
        ("--batch-size", str(_BATCH)),
        ("--jinja",),
        ("--no-webui",),
    ]
    if threads is not None:
        options.append(("--threads", str(threads)))
    return options


def _known_flags(binary: Path, environment: dict[str, str]) -> frozenset[str]:
    """The flags that this build lists in its help.

    Raises:
        UserError: it cannot be started.
    """
    try:
        done = subprocess.run(
            [str(binary), "--help"],
            capture_output=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=_HELP_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{binary} cannot be started: {error}", "Check the program, or its path.") from error
    text = (done.stdout + done.stderr).decode(errors="replace")
    if done.returncode != 0:
        raise UserError(
            f"{binary} does not run here (exit status {done.returncode}):\n{text.strip()[-800:]}",
            "It may be built for another system; `late --local` runs the model in process.",
        )
    return frozenset(re.findall(r"(?<![\w-])--?[a-z][\w-]*", text))


def _environment(binary: Path) -> dict[str, str]:
    """The environment in which `binary` finds the libraries that lie beside it."""
    environment = dict(os.environ)
    folder = binary.parent
    if sys.platform == "linux" and next(folder.glob("lib*.so*"), None) is not None:
        before = environment.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = f"{folder}:{before}" if before else str(folder)
    return environment


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
