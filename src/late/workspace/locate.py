"""From a path that a model wrote to a file, or to the names that it may have meant."""

from __future__ import annotations

import difflib
import os
import unicodedata
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from late.errors import ToolError
from late.workspace.text import shown

if TYPE_CHECKING:
    from late.workspace.workspace import Workspace

_MOST_NAMES = 3
_MOST_ENTRIES = 5000
"""Looked at in search of a file that lies elsewhere: some tens of milliseconds."""
_NOT_SEARCHED = frozenset({"node_modules", "__pycache__", "venv", "target", "dist", "build"})


def locate(workspace: Workspace, path: str) -> Path:
    """The real path of something that exists and is not hidden.

    Raises:
        ToolError: there is no such file (names that are near are offered), or `.llmignore` hides it.
    """
    real = workspace.resolve(path)
    refuse_hidden(workspace, real, path)
    try:
        real.lstat()
    except OSError as error:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise ToolError(f"{path} cannot be opened: {error.strerror or error}.") from error
        near = near_names(workspace, path)
        offer = f"Did you mean {' or '.join(map(_named, near))}?" if near else "Use list_files or search to find it."
        raise ToolError(f"{path} does not exist.", offer) from None
    return real


def refuse_hidden(workspace: Workspace, real: Path, path: str) -> None:
    """Refuse what no tool may show.

    Raises:
        ToolError: `.llmignore` hides it.
    """
    if workspace.hidden(real):
        raise ToolError(f"{path} is hidden by .llmignore: it is not read or written.", "Do the work without it.")


def near_names(workspace: Workspace, path: str) -> list[str]:
    """What a wrong path may stand for in the workspace, the likeliest first; hidden files are not named."""
    found: list[Path] = [real for text in _spellings(workspace, path) if (real := _existing(workspace, text))]
    if not found:
        wanted = _spellings(workspace, path)[0]
        found = _beside(workspace, wanted) or _elsewhere(workspace, wanted)
    names = [workspace.relative(real) for real in found if not workspace.hidden(real)]
    return [name for name in dict.fromkeys(names) if shown(name) == name][:_MOST_NAMES]


def _spellings(workspace: Workspace, path: str) -> list[str]:
    """The path as it is written here, without what models put around it."""
    text = path.strip().strip("`'\"<>").strip().removeprefix("file://").removeprefix("a/").removeprefix("b/")
    drive = len(text) > 2 and text[0].isalpha() and text[1] == ":" and text[2] in "\\/"
    plain = (text[2:] if drive else text).replace("\\", "/")
    bare = plain.lstrip("/")
    without_root = bare.removeprefix(workspace.root.name + "/")
    return list(dict.fromkeys(spelling for spelling in (plain, text, bare, without_root) if spelling)) or [path]


def _existing(workspace: Workspace, text: str) -> Path | None:
    real = workspace.resolve(text)
    inside = real != workspace.root and workspace.contains(real)
    return real if inside and os.path.lexists(real) else None


def _beside(workspace: Workspace, wanted: str) -> list[Path]:
    """Names in the folder that differ in spaces, case, composition or a few letters."""
    real = workspace.resolve(wanted)
    folder = real.parent
    if not workspace.contains(folder):
        return []
    try:
        names = [entry.name for entry, _ in zip(os.scandir(folder), range(_MOST_ENTRIES), strict=False)]
    except OSError:
        return []
    alike = [name for name in names if _fold(name) == _fold(real.name)]
    if not alike:
        folded = {_fold(name): name for name in names}
        close = difflib.get_close_matches(_fold(real.name), folded, _MOST_NAMES, 0.75)
        alike = [folded[name] for name in close]
    return [folder / name for name in alike]


def _elsewhere(workspace: Workspace, wanted: str) -> list[Path]:
    """Files of that name in other folders, those with the most folders in common first."""
    parts = tuple(_fold(part) for part in Path(wanted).parts)
    found: list[Path] = []
    folders = deque([workspace.root])
    left = _MOST_ENTRIES
    while folders and left > 0:
        try:
            entries = sorted(os.scandir(folders.popleft()), key=lambda entry: entry.name)
        except OSError:
            continue
        left -= len(entries)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith(".") and entry.name not in _NOT_SEARCHED:
                    folders.append(Path(entry.path))
            elif _fold(entry.name) == parts[-1]:
                found.append(Path(entry.path))
    return sorted(found, key=lambda path: -len({_fold(part) for part in path.parts} & set(parts)))


def _fold(name: str) -> str:
    """The name without case, composition and the kind of its spaces."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().replace("_", "-").split())


def _named(name: str) -> str:
    odd = sorted({char for char in name if unicodedata.category(char) in {"Zs", "Cf", "Mn"} and char != " "})
    return name + (f" (with {', '.join(f'U+{ord(char):04X}' for char in odd)})" if odd else "")
