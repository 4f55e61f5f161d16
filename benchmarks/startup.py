"""How long a start takes: `late --version` against the bare interpreter, the first screen against the smallest app.

The figures to reach are those of the smallest Textual app in the same run: what is above it is ours.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.timing import command_seconds, tell

_ROUNDS = 5
_SMALLEST_APP = """
from textual.app import App
from textual.widgets import Static, TextArea

class Smallest(App):
    def compose(self):
        yield Static("late")
        yield TextArea()

    def on_mount(self):
        self.query_one(TextArea).focus()

Smallest().run()
"""


def main() -> None:
    """Print the table."""
    print("Start-up (best of several, warm)")
    with tempfile.TemporaryDirectory(prefix="late-bench-") as folder:
        environment = os.environ | {"LATE_DATA_DIR": folder, "OPENAI_BASE_URL": "http://127.0.0.1:9"}
        python = [sys.executable, "-P"]
        bare = command_seconds([*python, "-c", "pass"], environment)
        tell("python -c pass", f"{bare * 1000:.0f} ms")
        for arguments in (["--version"], ["--help"], ["session", "list", "--all"]):
            seconds = command_seconds([*python, "-m", "late", *arguments], environment)
            tell(f"late {' '.join(arguments)}", f"{seconds * 1000:.0f} ms", f"{seconds / bare:.1f} × python")
        if sys.platform == "linux":
            _screens(Path(folder), environment)
        else:
            print("  (first screens are measured on Linux only)")


def _screens(folder: Path, environment: dict[str, str]) -> None:
    """Time from the start to the first key that is echoed, with `late` and the smallest app in turn."""
    smallest = folder / "smallest.py"
    smallest.write_text(_SMALLEST_APP)
    work = folder / "project"
    work.mkdir()
    commands = {"smallest Textual app": [sys.executable, str(smallest)], "late": [sys.executable, "-P", "-m", "late"]}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    before, old = Path.cwd(), dict(os.environ)
    os.chdir(work)
    os.environ.update(environment)
    try:
        for _ in range(_ROUNDS):
            for name, command in commands.items():
                found[name].append(_first_key(command))
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(old)
    for at, what in enumerate(("first key", "CPU until it settled")):
        smallest_s, late_s = (statistics.median(run[at] for run in found[name]) for name in commands)
        tell(f"smallest Textual app: {what}", f"{smallest_s:.2f} s")
        tell(f"late: {what}", f"{late_s:.2f} s", f"{late_s / max(smallest_s, 0.01):.1f} × smallest")


def _first_key(command: list[str]) -> tuple[float, float]:
    from benchmarks.tui_terminal import Terminal

    terminal = Terminal(command)
    painted = terminal.read(20, until=b"late")
    terminal.write(b"#")
    echoed = terminal.read(20, until=b"#")
    seconds = time.perf_counter() - terminal.started
    if not (painted and echoed):
        raise SystemExit(f"{command} painted nothing:\n{bytes(terminal.output[-2000:])!r}")
    terminal.read(4, quiet=1.0)
    cpu = terminal.cpu()
    terminal.end()
    return seconds, cpu


if __name__ == "__main__":
    main()
