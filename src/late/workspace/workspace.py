"""The folder that a session works in: where paths lead, what lies inside, what is hidden."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from late.errors import ToolError

if TYPE_CHECKING:
    from late.workspace.ignore import IgnoreRules


class Workspace:
    """One root. All comparisons are made on real paths and by component, so neither links nor names mislead them."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self._rules: IgnoreRules | None = None

    def resolve(self, path: str) -> Path:
        """The real path that a path given by a model leads to; relative ones count from the root.

        Links are followed, also those of the folders above a file that does not exist yet. `~` is an ordinary
        character.

        Raises:
            ToolError: the path is empty or cannot be the name of a file.
        """
        if not path.strip():
            raise ToolError("The path is empty.", "Give a path relative to the project's folder, e.g. src/app.py.")
        if "\0" in path:
            raise ToolError(f"The path {path!r} contains a NUL character.", "Send the path without it.")
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            raise ToolError(f"The path {path!a} contains half a character.", "Send the path again.") from None
        return Path(os.path.realpath(self.root / path))

    def relative(self, path: Path) -> str:
        """The path as a model is shown it: with `/` and from the root, or absolute where it lies outside."""
        real = Path(os.path.realpath(path))
        return real.relative_to(self.root).as_posix() if real.is_relative_to(self.root) else real.as_posix()

    def contains(self, path: Path) -> bool:
        """Whether the path leads to the root or below it."""
        return Path(os.path.realpath(path)).is_relative_to(self.root)

    def hidden(self, path: Path) -> bool:
        """Whether `.llmignore` hides the path. What lies outside of the root is not hidden but the policy's matter.

        Raises:
            ToolError: the rules cannot be read.
        """
        from late.workspace.ignore import IgnoreRules

        real = Path(os.path.realpath(path))
        if real == self.root or not real.is_relative_to(self.root):
            return False
        if self._rules is None:
            self._rules = IgnoreRules(self.root)
        return self._rules.hidden(real.relative_to(self.root).as_posix(), real.is_dir())
