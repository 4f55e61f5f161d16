"""What the terminal interface costs, measured from outside in a pseudo-terminal of 120×40.

    python benchmarks/tui_terminal.py -- late            # start, first key, idle CPU, memory
    python benchmarks/tui_terminal.py --stream -- late   # also sends a message, counts bytes and CPU until it is quiet

CPU and memory are those of the whole process tree, read from /proc, so this runs on Linux only.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


class Terminal:
    """A program in a pseudo-terminal."""

    def __init__(self, command: list[str], columns: int = 120, rows: int = 40) -> None:
        self.started = time.perf_counter()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
            os.execvp(command[0], command)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.output = bytearray()

    def read(self, seconds: float, until: bytes | None = None, quiet: float | None = None) -> bool:
        """Collect output for a time, or until `until` is in it, or until nothing came for `quiet` seconds."""
        start, last = len(self.output), time.perf_counter()
        end = last + seconds
        while (now := time.perf_counter()) < end:
            if quiet is not None and now - last > quiet:
                return True
            ready, _, _ = select.select([self.master], [], [], 0.002 if until else 0.05)
            if not ready:
                continue
            try:
                data = os.read(self.master, 1 << 16)
            except OSError:
                return False
            self.output += data
            last = time.perf_counter()
            if until is not None and until in self.output[start:]:
                return True
        return until is None

    def write(self, data: bytes) -> None:
        os.write(self.master, data)

    def cpu(self) -> float:
        """Seconds of CPU of the process and its children so far."""
        return sum(_cpu_of(pid) for pid in _tree(self.pid))

    def memory_mb(self) -> float:
        pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in _tree(self.pid))
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def end(self) -> int:
        os.kill(self.pid, signal.SIGTERM)
        self.read(3)
        return os.waitpid(self.pid, 0)[1]


def _tree(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in _tree(int(child)))]


def _cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--idle", type=float, default=10.0, help="seconds to watch the idle program")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    command = arguments.command

    terminal = Terminal(command)
    first_paint = None
    if terminal.read(10, until=b"late"):
        first_paint = time.perf_counter() - terminal.started
    painted_cpu = terminal.cpu()
    terminal.write(b"#")
    echoed = terminal.read(10, until=b"#")
    first_key = time.perf_counter() - terminal.started
    print(f"first paint        {first_paint:.3f} s ({painted_cpu:.2f} s CPU)")
    print(f"start to first key {first_key:.3f} s{'' if echoed else ' (never echoed)'}")
    terminal.read(4, quiet=2.0)
    print(f"CPU until settled  {terminal.cpu():.2f} s")
    terminal.write(b"\x7f")
    terminal.read(1)
    before = terminal.cpu()
    terminal.read(arguments.idle)
    print(f"idle CPU           {(terminal.cpu() - before) / arguments.idle:.2%}")
    print(f"idle memory        {terminal.memory_mb():.0f} MB")
    if arguments.stream:
        before, sent = terminal.cpu(), len(terminal.output)
        start = time.perf_counter()
        terminal.write(b"go\r")
        terminal.read(120, quiet=1.5)
        took = time.perf_counter() - start - 1.5
        print(
            f"streamed answer    {terminal.cpu() - before:.2f} s CPU, {len(terminal.output) - sent} bytes, {took:.1f} s"
        )
    print(f"exit status        {terminal.end()}")


if __name__ == "__main__":
    sys.exit(main())
