"""However the program ends, the terminal is as it was: line mode and echo on, no mouse codes, the normal screen."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path

import pytest

PROGRAM = """
import sys
sys.path[:0] = {paths!r}
from late.tui.app import LateApp
from support.fake_session import FakeSession, opener

class Failing(FakeSession):
    async def submit(self, text):
        raise RuntimeError("a bug of the engine")

app = LateApp(opener(Failing()), directory="~/sample")
app.run()
sys.exit(app.return_code)
"""
ROOT = Path(__file__).parents[2]


class Terminal:
    def __init__(self) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.slave = slave
        self.before = termios.tcgetattr(slave)
        self.output = b""
        code = PROGRAM.format(paths=[str(ROOT / "src"), str(ROOT / "tests")])
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color"},
        )  # fmt: skip

    def read_until(self, words: bytes, seconds: float = 40) -> None:
        end = time.monotonic() + seconds
        while words not in self.output:
            assert time.monotonic() < end, f"never saw {words!r} in {self.output[-600:]!r}"
            self.drain(0.1)

    def drain(self, wait: float = 0.0) -> None:
        while select.select([self.master], [], [], wait)[0]:
            try:
                self.output += os.read(self.master, 65536)
            except OSError:
                return
            wait = 0.0

    def ended(self, seconds: float = 20) -> int:
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < end, "it does not end"
            self.drain(0.05)
        self.drain()
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for fd in (self.master, self.slave):
            with suppress(OSError):
                os.close(fd)


@pytest.fixture
def terminal():
    terminal = Terminal()
    yield terminal
    terminal.close()


def assert_restored(terminal: Terminal) -> None:
    assert termios.tcgetattr(terminal.slave) == terminal.before
    for mode in (b"1000", b"1003", b"1006", b"2004", b"1049", b"1004"):
        on, off = terminal.output.rfind(b"\x1b[?" + mode + b"h"), terminal.output.rfind(b"\x1b[?" + mode + b"l")
        assert off > on, f"mode {mode!r} is still on"
    assert terminal.output.rfind(b"\x1b[?25h") > terminal.output.rfind(b"\x1b[?25l"), "the cursor is still hidden"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_the_terminal_restored(terminal: Terminal, number: signal.Signals) -> None:
    terminal.read_until(b"qwen2.5")
    terminal.process.send_signal(number)
    assert terminal.ended() == 128 + number
    assert_restored(terminal)


def test_a_bug_ends_it_with_the_terminal_restored_and_its_words_readable(terminal: Terminal) -> None:
    terminal.read_until(b"qwen2.5")
    os.write(terminal.master, b"hello\r")
    assert terminal.ended() != 0
    assert_restored(terminal)
    after = terminal.output.rpartition(b"\x1b[?1049l")[2]
    assert b"a bug of the engine" in after


def test_a_closed_terminal_ends_it(terminal: Terminal) -> None:
    terminal.read_until(b"qwen2.5")
    os.close(terminal.slave)
    os.close(terminal.master)
    terminal.process.send_signal(signal.SIGHUP)
    terminal.process.wait(timeout=20)
