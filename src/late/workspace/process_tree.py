"""Finding and ending everything that a command started, on Linux also what left its process group."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROC = Path("/proc")
_HAS_PROC = (_PROC / "self" / "stat").exists()
_GRACE_S = 0.5
"""Between SIGTERM and SIGKILL."""
_GIVE_UP_S = 2.0
"""After SIGKILL: what is left then hangs in the kernel."""
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Process:
    """One line of the process table, see proc_pid_stat(5)."""

    pid: int
    parent: int
    group: int
    session: int
    state: str
    started: int
    """Clock ticks since boot."""
    command: str

    @property
    def runs(self) -> bool:
        """Not a zombie."""
        return self.state not in "ZX"


class ProcessTree:
    """The processes of one command: its leader's session, group and descendants, and whoever carries the mark."""

    def __init__(self, leader: int, mark: str) -> None:
        """Take a leader that has a session of its own, with `mark` in a variable of its environment."""
        self._leader = leader
        self._mark = mark.encode()
        process = _process(leader)
        self._started = process.started if process else 0
        self.leader_reaped = False
        """To be set when somebody waited for the leader: from then on its number may belong to a stranger."""

    def left(self) -> list[Process]:
        """What runs, without the leader.

        Without /proc only the group can be asked, and there is at most one entry, without a name.
        """
        if not _HAS_PROC:
            alone = not self.leader_reaped or not self._group_lives()
            return (
                [] if alone else [Process(-self._leader, 0, self._leader, self._leader, "?", 0, "a background process")]
            )
        table = {process.pid: process for process in _processes()}
        # A number stays taken while it names a group or a session: a new process of that number means both are gone.
        known = self._leader not in table if self.leader_reaped else True
        found = {self._leader} if known and not self.leader_reaped else set[int]()
        found |= {
            process.pid
            for process in table.values()
            if (known and self._leader in {process.group, process.session}) or self._carries_mark(process)
        }
        while more := {process.pid for process in table.values() if process.parent in found} - found:
            found |= more
        found -= {self._leader, os.getpid()}
        return [process for pid, process in sorted(table.items()) if pid in found and process.runs]

    async def end(self) -> None:
        """SIGTERM to everything, SIGKILL to what is left half a second later, until nothing is left."""
        try:
            if not self._signal(signal.SIGTERM):
                return
            deadline = time.monotonic() + _GRACE_S
            while time.monotonic() < deadline:
                await asyncio.sleep(_POLL_S)
                if not self._leader_runs() and not self.left():
                    return
            deadline = time.monotonic() + _GIVE_UP_S
            while self._signal(signal.SIGKILL) and time.monotonic() < deadline:  # noqa: ASYNC110 - nothing to wait on
                await asyncio.sleep(_POLL_S)
        except asyncio.CancelledError:
            self._signal(signal.SIGKILL)
            raise

    def _signal(self, number: signal.Signals) -> bool:
        """Signal all that is there; whether there was anything."""
        targets = [process.pid for process in self.left()]
        if self._leader_runs():
            targets.append(-self._leader)
        for pid in targets:
            try:
                if pid < 0:
                    os.killpg(-pid, number)
                else:
                    os.kill(pid, number)
            except (ProcessLookupError, PermissionError):  # it ended by itself, or became somebody else (setuid)
                continue
        return bool(targets)

    def _leader_runs(self) -> bool:
        if self.leader_reaped:
            return False
        if not _HAS_PROC:
            return self._group_lives()
        process = _process(self._leader)
        return process is not None and process.runs

    def _group_lives(self) -> bool:
        try:
            os.killpg(self._leader, 0)
        except (ProcessLookupError, PermissionError):  # macOS says EPERM of a group of zombies
            return False
        return True

    def _carries_mark(self, process: Process) -> bool:
        if process.started < self._started:
            return False
        try:
            return self._mark in (_PROC / str(process.pid) / "environ").read_bytes()
        except OSError:
            return False


_seen_zombies: set[int] = set()


def reap_orphans() -> None:
    """As process 1 of a container, wait for what nobody else waits for; elsewhere that is init's work."""
    if os.getpid() != 1:
        return
    zombies = {process.pid for process in _processes() if process.parent == 1 and process.state == "Z"}
    for pid in zombies & _seen_zombies:  # a zombie for the second time: nobody of ours is about to ask for it
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue
    _seen_zombies.clear()
    _seen_zombies.update(zombies)


def _processes() -> Iterator[Process]:
    for entry in os.scandir(_PROC):
        if entry.name.isdigit() and (process := _process(int(entry.name))):
            yield process


def _process(pid: int) -> Process | None:
    try:
        text = (_PROC / str(pid) / "stat").read_bytes().decode("utf-8", "replace")
    except OSError:
        return None
    command = text[text.index("(") + 1 : text.rindex(")")]
    fields = text[text.rindex(")") + 2 :].split()
    return Process(pid, int(fields[1]), int(fields[2]), int(fields[3]), fields[0], int(fields[19]), command)
