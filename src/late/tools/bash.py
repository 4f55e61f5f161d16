"""Running a shell command. Whether it may run is decided before; here it is made harmless to late itself."""

from __future__ import annotations

import os
import re
import signal
import tempfile
import time
import uuid
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from late.config.paths import data_dir
from late.errors import ToolError, UserError
from late.tools.base import Effect, Preview, ToolArgs, ToolContext, ToolResult
from late.workspace.area import area_of
from late.workspace.process import CommandResult, clean_environment, run_command
from late.workspace.terminal_text import escaped

_DEFAULT_TIMEOUT_S = 120
_MAX_TIMEOUT_S = 3_600
_KEEP_LOGS_S = 14 * 24 * 3_600
_HEAD_ROOM = 700
"""Characters of a result that are not output: exit status, notes."""


class Args(ToolArgs):
    """What to run, and where."""

    command: str
    cwd: str = "."
    timeout: int | None = Field(None, description="seconds")


class Bash:
    """bash without a terminal, with an empty stdin and a short environment."""

    name: ClassVar[str] = "bash"
    description: ClassVar[str] = (
        "Run a shell command; use cwd, not cd. stdin is empty; background processes end with the command."
    )
    Args: ClassVar[type[ToolArgs]] = Args
    effect: ClassVar[Effect] = "execute"

    def __init__(self, timeout_s: int = _DEFAULT_TIMEOUT_S) -> None:
        """`timeout_s`: the limit of calls that name none."""
        self._timeout_s = timeout_s

    def label(self, args: Args) -> str:
        """The command on one line."""
        line = escaped(args.command.strip().split("\n", 1)[0])
        more = "" if line == escaped(args.command.strip()) else " …"
        return f"$ {line[:160]}{'…' if len(line) > 160 else more}"

    def paths(self, args: Args) -> tuple[str, ...]:
        """The folder that it runs in."""
        return (args.cwd or ".",)

    def preview(self, args: Args, context: ToolContext) -> Preview:
        """The whole command."""
        _folder(args, context)
        return Preview(self.label(args), args.command)

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        """Run it to its end or to its time limit; cancelling ends everything it started."""
        if not args.command.strip():
            raise ToolError("`command` is empty", "Give the command to run.")
        cwd = _folder(args, context)
        timeout_s = min(max(args.timeout or self._timeout_s, 1), _MAX_TIMEOUT_S)
        result = await run_command(
            args.command,
            cwd=cwd,
            timeout_s=timeout_s,
            env=clean_environment(os.environ, read_only=context.only_reads),
            output=context.output,
            log_file=_log_file(context.call_id),
            cap_chars=max(context.cap_chars - _HEAD_ROOM, context.cap_chars // 2),
        )
        return ToolResult(
            _report(result, timeout_s)[: context.cap_chars],
            details={
                "command": args.command,
                "cwd": str(cwd),
                "exit_code": result.exit_code,
                "timed_out": result.timed_out,
                "output_file": None if result.log_file is None else str(result.log_file),
                "duration_s": round(result.duration_s, 3),
            },
            failed=result.exit_code != 0,
        )


def _folder(args: Args, context: ToolContext) -> Path:
    root = context.workspace.root
    if not root.is_dir():
        raise ToolError(f"the workspace's folder {escaped(str(root))} does not exist any more", "Tell the person.")
    real = context.workspace.resolve(args.cwd or ".")
    if not context.workspace.contains(real):
        raise ToolError(
            f"cwd {escaped(args.cwd)} lies outside of the workspace", f"Leave it out to run in {escaped(str(root))}."
        )
    try:
        area = area_of(context.workspace, args.cwd or ".")
    except ToolError as error:
        raise ToolError(f"cwd {error}", error.hint) from error
    if not area.is_dir:
        raise ToolError(f"cwd {escaped(args.cwd)} is a file", "Give a folder, or leave it out.")
    return real


def _report(result: CommandResult, timeout_s: int) -> str:
    seconds = f"{result.duration_s:.1f} s"
    if result.timed_out:
        head = (
            f"exit none: stopped at its time limit of {timeout_s} s, with everything that it had started; "
            "run less, or give a longer timeout"
        )
    else:
        head = f"exit {result.exit_code} ({seconds}){_signal_name(result.exit_code)}"
    notes = ""
    if result.ended:
        names = ", ".join(result.ended[:5]) + (f" and {len(result.ended) - 5} more" if len(result.ended) > 5 else "")
        notes = f"\n[still running when the shell ended, so it was ended: {names[:300]}]"
    return f"{head}\n{result.output.rstrip() or '(no output)'}{notes}"


def _signal_name(code: int | None) -> str:
    try:
        return f", {signal.Signals((code or 0) - 128).name}"
    except ValueError:
        return ""


def _log_file(call_id: str) -> Path:
    """Where a long output goes: into the data folder, or the temporary one where there is no home."""
    try:
        folder = data_dir() / "output"
    except UserError:
        folder = Path(tempfile.gettempdir()) / f"late-{os.getuid()}"
    oldest = time.time() - _KEEP_LOGS_S
    for old in folder.glob("*.log"):
        try:
            if old.stat().st_mtime < oldest:
                old.unlink()
        except OSError:  # another instance was faster, or it is not ours
            continue
    name = re.sub(r"[^\w-]", "_", call_id)[:60]
    return folder / f"{name}-{uuid.uuid4().hex[:8]}.log"
