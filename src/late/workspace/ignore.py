"""`.llmignore`: what no tool may show to a model.

The files have the syntax of `.gitignore` and may lie in any folder of the workspace; deeper files win over higher ones,
the last matching line wins within a file, and nothing below a hidden folder can be shown again. `.gitignore` is a
different thing: it only tells search and listing what is not worth looking at (see `late.workspace.ripgrep`).
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from late.errors import ToolError
from late.workspace.gitignore import Pattern, parse_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_Rules = tuple[Pattern, ...]
NAME = ".llmignore"
_MAX_BYTES = 1_000_000
"""Of one ignore file; longer ones are a mistake and refused rather than half applied."""


class IgnoreRules:
    """The rules of all `.llmignore` files below `root`, read again whenever one changed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read: dict[str, tuple[tuple[int, int], _Rules]] = {}

    def hidden(self, relative_posix: str, is_dir: bool = False) -> bool:
        """Whether a path, relative to the root and with `/`, is hidden by itself or by a folder above it.

        Raises:
            ToolError: a `.llmignore` that may hide it cannot be read.
        """
        return self._hidden(relative_posix, is_dir=is_dir, folders={}, rules={})

    def filter(self) -> Callable[[str], bool]:
        """`hidden` for many files at once: rules are read once, folders are decided once. For one listing only."""
        folders: dict[str, bool] = {}
        rules: dict[str, _Rules] = {}
        return lambda path: self._hidden(path, is_dir=False, folders=folders, rules=rules)

    def readmitted_globs(self) -> tuple[str, ...]:
        """The `!` lines of the root's file as globs: candidates for `readmits`."""
        return tuple(pattern.glob for pattern in self._rules("", {}) if pattern.negated)

    def readmits(self, relative_posix: str) -> bool:
        """Whether the root's file shows a file that `.gitignore` leaves out.

        A `!` line means that only where no other line of the file matches: behind `*` or `*.log` it takes back
        that line and says nothing about `.gitignore`.
        """
        parts = relative_posix.split("/")
        paths = [("/".join(parts[:count]), count < len(parts)) for count in range(1, len(parts) + 1)]
        matching = [
            pattern
            for pattern in self._rules("", {})
            if any(pattern.matches(path, is_dir=is_dir) for path, is_dir in paths)
        ]
        return bool(matching) and all(pattern.negated for pattern in matching)

    def _hidden(self, path: str, *, is_dir: bool, folders: dict[str, bool], rules: dict[str, _Rules]) -> bool:
        parts = [part for part in path.split("/") if part not in {"", "."}]
        for count in range(1, len(parts)):
            folder = "/".join(parts[:count])
            if folder not in folders:
                folders[folder] = self._matched(parts[:count], is_dir=True, rules=rules)
            if folders[folder]:
                return True
        return bool(parts) and self._matched(parts, is_dir=is_dir, rules=rules)

    def _matched(self, parts: list[str], *, is_dir: bool, rules: dict[str, _Rules]) -> bool:
        for depth in range(len(parts) - 1, -1, -1):
            path = "/".join(parts[depth:])
            for pattern in reversed(self._rules("/".join(parts[:depth]), rules)):
                if pattern.matches(path, is_dir=is_dir):
                    return not pattern.negated
        return False

    def _rules(self, folder: str, memo: dict[str, _Rules]) -> _Rules:
        if folder in memo:
            return memo[folder]
        path = self._root / folder / NAME
        try:
            status = path.stat()
        except OSError:
            status = None
        if status is None or not stat.S_ISREG(status.st_mode):
            rules = ()
        else:
            stamp = (status.st_mtime_ns, status.st_size)
            cached = self._read.get(folder)
            rules = cached[1] if cached and cached[0] == stamp else _parse(path, status.st_size)
            self._read[folder] = (stamp, rules)
        memo[folder] = rules
        return rules


def _parse(path: Path, size: int) -> _Rules:
    if size > _MAX_BYTES:
        raise ToolError(f"{path} has {size:,} bytes and cannot be applied", "Shorten it; until then nothing is read.")
    try:
        text = path.read_bytes().decode("utf-8-sig", "surrogateescape")
    except OSError as error:
        raise ToolError(
            f"{path} cannot be read, so it is not known what it hides: {error.strerror}", "Ask the person to repair it."
        ) from error
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return tuple(pattern for line in lines if (pattern := parse_line(line)))
