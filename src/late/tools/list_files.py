"""A folder as a tree, without what ignore files leave out."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from late.tools.base import Effect, Preview, ToolArgs, ToolContext, ToolResult
from late.workspace.area import Area, area_of
from late.workspace.ripgrep import MAX_FILES, list_files
from late.workspace.terminal_text import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MAX_DEPTH = 20
_MAX_LINKS = 100
_ENTRIES_PER_FOLDER = (1_000, 100, 40, 20, 10, 5, 2)
"""Files shown of one folder, tried in this order until the tree fits; then the depth gets smaller."""


class Args(ToolArgs):
    """Which folder, and how deep."""

    path: str = "."
    depth: int = 2


class ListFiles:
    """The files of a folder; what is not shown is counted."""

    name: ClassVar[str] = "list_files"
    description: ClassVar[str] = "List a folder as a tree, without ignored files. Deeper folders are counted."
    Args: ClassVar[type[ToolArgs]] = Args
    effect: ClassVar[Effect] = "read"

    def label(self, args: Args) -> str:
        """The folder."""
        return f"List {escaped(args.path or '.')}"

    def paths(self, args: Args) -> tuple[str, ...]:
        """The folder."""
        return (args.path or ".",)

    def preview(self, args: Args, context: ToolContext) -> Preview:
        """The folder is checked, nothing is read."""
        area_of(context.workspace, args.path)
        return Preview(self.label(args))

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        """List."""
        area = area_of(context.workspace, args.path)
        name = area.shown(area.relative) if area.relative or area.prefix else "."
        if not area.is_dir:
            size = (area.cwd / area.relative).stat().st_size
            return ToolResult(f"{name} is a file of {size:,} bytes; read it with read_file.", {"files": 1})
        files = await list_files(area)
        start = len(area.relative) + 1 if area.relative else 0
        tree = _Tree(area)
        for path in files:
            tree.root.add(path[start:].split("/"))
        if not files and not tree.links(""):
            return ToolResult(_empty(area, name), {"files": 0})
        depth = min(max(args.depth, 1), _MAX_DEPTH)
        more = " or more" if len(files) >= MAX_FILES else ""
        head = f"{name.rstrip('/')}/ ({len(files):,}{more} {'file' if len(files) == 1 else 'files'})"
        return ToolResult(tree.text(head, depth, context.cap_chars), {"files": len(files)})


@dataclass(slots=True)
class _Folder:
    folders: dict[str, _Folder] = field(default_factory=dict[str, "_Folder"])
    files: list[str] = field(default_factory=list[str])
    count: int = 0

    def add(self, parts: list[str]) -> None:
        """Add a file by the parts of its path."""
        folder = self
        for part in parts[:-1]:
            folder.count += 1
            folder = folder.folders.setdefault(part, _Folder())
        folder.count += 1
        folder.files.append(parts[-1])


class _Tree:
    def __init__(self, area: Area) -> None:
        self._area = area
        self._hidden = area.filter()
        self._links: dict[str, list[str]] = {}
        self.root = _Folder()

    def text(self, head: str, depth: int, cap: int) -> str:
        """The deepest and widest tree that fits, `head` above it."""
        note = "[cut: list one of these folders for more]"
        room = cap - len(note) - 1
        for level in range(depth, 0, -1):
            for entries in _ENTRIES_PER_FOLDER:
                text = "\n".join((head, *self._lines(self.root, "", level, entries, 0)))
                if len(text) <= room:
                    whole = level == depth and entries == _ENTRIES_PER_FOLDER[0]
                    return text if whole else f"{text}\n{note}"
        lines = [head, *self._lines(self.root, "", 1, _ENTRIES_PER_FOLDER[-1], 0)]
        while len(lines) > 1 and len("\n".join(lines)) > room:
            lines.pop()
        return "\n".join((*lines, note))[:cap]

    def links(self, path: str) -> list[str]:
        """The symbolic links of a folder: ripgrep passes over them, and people link files that matter."""
        if path not in self._links:
            folder = self._area.cwd / self._area.relative / path
            below = f"{self._area.relative}/{path}" if self._area.relative else path
            try:
                with os.scandir(folder) as scan:
                    names = [one.name for one in scan if one.is_symlink() and not self._hidden(below + one.name)]
            except OSError:  # gone since it was listed
                names = []
            self._links[path] = [_link(folder, name) for name in sorted(names)[:_MAX_LINKS]]
        return self._links[path]

    def _lines(self, folder: _Folder, path: str, depth: int, entries: int, indent: int) -> Iterator[str]:
        """The lines of a folder's content; a chain of folders with nothing else in them is one line."""
        pad = "  " * indent
        for first, child in sorted(folder.folders.items()):
            name, inner = first, child
            while len(inner.folders) == 1 and not inner.files:
                below, inner = next(iter(inner.folders.items()))
                name = f"{name}/{below}"
            if depth <= 1:
                yield f"{pad}{escaped(name)}/ ({inner.count:,} {'file' if inner.count == 1 else 'files'})"
            else:
                yield f"{pad}{escaped(name)}/"
                yield from self._lines(inner, f"{path}{name}/", depth - 1, entries, indent + 1)
        files = sorted([*map(escaped, folder.files), *self.links(path)])
        yield from (pad + name for name in files[:entries])
        if len(files) > entries:
            yield f"{pad}… {len(files) - entries:,} more"


def _link(folder: Path, name: str) -> str:
    try:
        return f"{escaped(name)} -> {escaped(str((folder / name).readlink()))}"
    except OSError:
        return escaped(name)


def _empty(area: Area, name: str) -> str:
    with os.scandir(area.cwd / area.relative) as scan:
        entries = sum(1 for entry in scan if entry.name != ".git")
    if not entries:
        return f"{name} is empty."
    return f"{name} has {entries:,} entries, but no file that .gitignore and .llmignore do not leave out."
