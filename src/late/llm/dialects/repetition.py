"""Noticing an answer that repeats itself, before it runs to its limit."""

from __future__ import annotations

_BLOCK = 12
_TIMES = 3


class Repetition:
    """True in `found` once the last lines stand for the third time in a row, in blocks of up to twelve lines.

    Short and blank lines alone do not count: tables, closing brackets and data repeat in honest code.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._pending: list[str] = []
        self.found = False

    def feed(self, fragment: str) -> None:
        """Take the next fragment of the answer."""
        self._pending.append(fragment)
        if "\n" not in fragment:
            return
        *done, rest = "".join(self._pending).split("\n")
        self._pending = [rest]
        for line in done:
            self._lines.append(line.strip())
            self.found = self.found or self._repeats()

    def _repeats(self) -> bool:
        for size in range(1, _BLOCK + 1):
            times = max(_TIMES, -(-8 // size))
            if len(self._lines) < size * times:
                return False
            tail = self._lines[-size * times :]
            block = tail[:size]
            if sum(map(len, block)) >= 8 * size and all(tail[i] == block[i % size] for i in range(len(tail))):
                return True
        return False
