"""Where a search or a listing takes place: a file or folder, and the ignore rules that hold there."""

from __future__ import annotations

import difflib
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from late.errors import ToolError
from late.workspace.ignore import NAME, IgnoreRules
from late.workspace.terminal_text import escaped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from late.workspace.workspace import Workspace

_GLOB_CHARACTERS = frozenset("*?[{")
_MAX_SIBLINGS = 5_000
_NEAR = 3


@dataclass(frozen=True, slots=True)
class Area:
    """A file or folder as ripgrep is told of it. Paths in results are relative to `cwd`."""

    cwd: Path
    """The workspace's root; for a place outside of it, the place itself."""
    relative: str
    """The place, relative to `cwd`; empty for `cwd` itself."""
    is_dir: bool
    outside_git: bool
    """No ignore file above `cwd` counts, since no repository reaches that far."""
    rules: IgnoreRules | None
    prefix: str
    """What results are shown with: empty within the workspace, else the absolute folder."""

    @property
    def start(self) -> str:
        """The argument for ripgrep; never looks like an option."""
        return f"./{self.relative}"

    @property
    def ignore_files(self) -> tuple[str, ...]:
        """The root's `.llmignore`, by which ripgrep saves itself work; `filter` is what decides."""
        return (NAME,) if self.rules and (self.cwd / NAME).is_file() else ()

    def shown(self, path: str) -> str:
        """A path of a result, for a model or a screen."""
        return escaped(self.prefix + path)

    def filter(self) -> Callable[[str], bool]:
        """Whether a file is hidden from every tool; for one listing."""
        return self.rules.filter() if self.rules else lambda _: False

    def readmitted_globs(self) -> tuple[str, ...]:
        """Globs of what `.llmignore` shows although `.gitignore` does not."""
        globs = self.rules.readmitted_globs() if self.rules and self.is_dir else ()
        return tuple(one for glob in globs for one in (glob, f"{glob.rstrip('/')}/**"))

    def readmits(self, path: str) -> bool:
        """Whether a file is one of those."""
        return self.rules is not None and self.rules.readmits(path)

    def globs(self, globs: Iterable[str]) -> list[str]:
        """Globs as a model gives them, also relative to the place, as ripgrep takes them: relative to `cwd`."""
        found: list[str] = []
        for glob in globs:
            sign, rest = ("!", glob[1:]) if glob.startswith("!") else ("", glob)
            rest = rest.removeprefix("./")
            found.append(sign + rest)
            if self.relative and self.is_dir and "/" in rest.strip("/") and not rest.startswith("**/"):
                found.append(f"{sign}/{self.relative}/{rest.lstrip('/')}")
        return found


def area_of(workspace: Workspace, path: str) -> Area:
    """The place that a model's `path` names.

    Raises:
        ToolError: it does not exist, is hidden, or is neither a file nor a folder.
    """
    real = workspace.resolve(path or ".")
    try:
        mode = real.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ToolError(f"{escaped(path)} does not exist", _near(real, path, workspace)) from error
    except OSError as error:
        raise ToolError(f"{escaped(path)} cannot be opened: {error.strerror or error}") from error
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        raise ToolError(f"{escaped(path)} is a pipe, socket or device", "Only files and folders can be read.")
    is_dir = stat.S_ISDIR(mode)
    if not workspace.contains(real):
        cwd = real if is_dir else real.parent
        return Area(cwd, "" if is_dir else real.name, is_dir, not _in_git(cwd), None, f"{cwd}/".replace("//", "/"))
    relative = workspace.relative(real)
    relative = "" if relative == "." else relative
    rules = IgnoreRules(workspace.root)
    if rules.hidden(relative, is_dir):
        raise ToolError(f"{escaped(path)} is hidden by {NAME}", "Go on without it; the person wants it so.")
    # Folders above the place belong to the rules once it lies below the root, so they can only be left out there.
    outside_git = not relative and not _in_git(workspace.root)
    return Area(workspace.root, relative, is_dir, outside_git, rules, "")


def _in_git(folder: Path) -> bool:
    return any((parent / ".git").exists() for parent in (folder, *folder.parents))


def _near(real: Path, path: str, workspace: Workspace) -> str:
    if _GLOB_CHARACTERS & set(path):
        return "`path` takes one file or folder; give the pattern as `glob`, where there is one."
    parent = real.parent
    while not parent.is_dir():
        parent = parent.parent
    try:
        with os.scandir(parent) as entries:
            names = [entry.name for _, entry in zip(range(_MAX_SIBLINGS), entries, strict=False)]
    except OSError:
        return ""
    wanted = real.relative_to(parent).parts[0]
    folded = {name.lower(): name for name in names}
    near = difflib.get_close_matches(wanted.lower(), folded, n=_NEAR, cutoff=0.5)
    rules = IgnoreRules(workspace.root)
    inside = workspace.contains(parent)
    shown: list[str] = []
    for name in near:
        full = parent / folded[name]
        where = workspace.relative(full) if inside else str(full)
        if not inside or not rules.hidden(where, full.is_dir()):
            shown.append(escaped(where) + ("/" if full.is_dir() else ""))
    folder = escaped(workspace.relative(parent) if inside else str(parent))
    known = f"Near it: {', '.join(shown)}. " if shown else ""
    return f"{known}List {folder} or search with mode=names to find it."
