"""How far something is that takes a while: fetching, verifying, compiling."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TextIO

_LINE_EVERY_S = 10.0
_REDRAW_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Progress:
    """One report."""

    what: str
    """The same words for as long as the same thing goes on."""
    done: float
    total: float | None
    """`None` where nobody knows."""
    unit: Literal["bytes", "parts", "steps", "seconds"]
    detail: str = ""
    elapsed_s: float = 0.0

    def __str__(self) -> str:
        """One line for a person."""
        if self.total is None or self.unit == "seconds":
            amount = f"{self.elapsed_s:.0f} s"
        elif self.unit == "bytes":
            amount = f"{self.done / 1e6:.0f} of {self.total / 1e6:.0f} MB"
        else:
            amount = f"{self.done:.0f} of {self.total:.0f} {self.unit}"
            if self.elapsed_s >= 1 and self.unit == "steps":
                amount += f", {self.elapsed_s:.0f} s"
        return f"{self.what}: {amount}" + (f" · {self.detail}" if self.detail else "")


Report = Callable[[Progress], None]


class ProgressPrinter:
    """Shows reports on a stream: one line that is redrawn on a terminal, else a plain line now and then.

    Used as a `Report`; `end` leaves the last line standing.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._what = ""
        self._complete = False
        self._shown_at = 0.0
        self._open_line = False

    def __call__(self, progress: Progress) -> None:
        """Show `progress`, unless something was shown a moment ago."""
        now = time.monotonic()
        is_new = progress.what != self._what
        complete = progress.total is not None and progress.done >= progress.total
        is_last = complete and not self._complete
        pause = _REDRAW_EVERY_S if self._live else _LINE_EVERY_S
        if not (is_new or is_last or now - self._shown_at >= pause):
            return
        if is_new:
            self.end()
        self._what = progress.what
        self._complete = complete
        self._shown_at = now
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{str(progress)[:width]}")
            self._open_line = True
        else:
            self._stream.write(f"{progress}\n")
        self._stream.flush()

    def end(self) -> None:
        """End the line that is being redrawn."""
        if self._open_line:
            self._stream.write("\n")
            self._stream.flush()
            self._open_line = False
