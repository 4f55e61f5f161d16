"""Making a file, or replacing all of one that was read."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, ClassVar

from late.errors import ToolError
from late.tools.base import Effect, Preview, ToolArgs, ToolContext, ToolResult
from late.workspace.files import FileChange, TextFile, check_writable, read_bytes, write_atomic
from late.workspace.locate import refuse_hidden
from late.workspace.text import refuse_surrogates

if TYPE_CHECKING:
    from pathlib import Path


class Args(ToolArgs):
    """What to write where."""

    path: str
    content: str


class WriteFile:
    """A new file holds exactly what was given.

    An existing file keeps its byte order mark, encoding, prevailing line ending, mode, and whether its last line is
    ended; nothing else of it.
    """

    name: ClassVar[str] = "write_file"
    description: ClassVar[str] = "Create a file with its folders, or replace the whole content of one you have read."
    Args: ClassVar[type[ToolArgs]] = Args
    effect: ClassVar[Effect] = "write"

    def label(self, args: Args) -> str:
        """E.g. `Write src/app.py`."""
        return f"Write {args.path}"

    def paths(self, args: Args) -> tuple[str, ...]:
        """The file."""
        return (args.path,)

    def preview(self, args: Args, context: ToolContext) -> Preview:
        """The diff; `run` will only make this very change.

        Raises:
            ToolError: the file cannot be written, or must be read first.
        """
        path, before, after = _plan(args, context)
        context.stamps.pin(context.call_id, before)
        return Preview(self.label(args), FileChange(context.workspace.relative(path), before, after).diff)

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        """Write it. Nothing is awaited, so that a cancelled call has either changed nothing or has its record.

        Raises:
            ToolError: the file cannot be written, must be read first, or changed after a person was shown the diff.
        """
        path, before, after = _plan(args, context)
        name = context.workspace.relative(path)
        if not context.stamps.unpin(context.call_id, before):
            raise ToolError(f"{name} was changed while the write waited: nothing was written.", "Read it again.")
        new = TextFile.decode(after, name).plain
        if context.review:
            context.review(name, None if before is None else TextFile.decode(before, name).plain, new)
        made = _make_folders(path, name)
        try:
            write_atomic(path, after, expect=before, name=name)
        except ToolError:
            _remove(made)
            raise
        context.stamps.record(path, after)
        change = FileChange(name, before, after)
        lines = new.count("\n") + (not new.endswith("\n") and new != "")
        verb = "Created" if before is None else "Replaced"
        counted = "" if before is None else f" (+{change.added} −{change.removed})"
        return ToolResult(
            f"{verb} {name}: {lines} line{'' if lines == 1 else 's'}{counted}.",
            {"path": name, "diff": change.diff},
            (change,),
        )


def _plan(args: Args, context: ToolContext) -> tuple[Path, bytes | None, bytes]:
    """The real path, and the file's bytes before and after."""
    path = context.workspace.resolve(args.path)
    name = context.workspace.relative(path)
    refuse_hidden(context.workspace, path, name)
    if path == context.workspace.root or args.path.endswith("/"):
        raise ToolError(f"{args.path} is a folder.", "Give the path of a file; missing folders are created.")
    check_writable(path, name)
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        refuse_surrogates(args.content)
        after = args.content.encode()
        TextFile.decode(after, "The content")
        return path, None, after
    before = read_bytes(path, name)
    file = TextFile.decode(before, name)
    if before:
        _require_read(path, name, before, file, context)
        if not args.content:
            raise ToolError(f"The content is empty; that would delete all of {name}.", "Send the whole new content.")
    after = _in_style_of(file, args.content)
    if after == before:
        raise ToolError(f"{name} has this content already: nothing would change.")
    return path, before, after


def _require_read(path: Path, name: str, data: bytes, file: TextFile, context: ToolContext) -> None:
    if not context.stamps.seen(path):
        raise ToolError(
            f"{name} exists and you have not read it: nothing was written.",
            "Read it first, or use target_edit for a small change.",
        )
    if not context.stamps.current(path, data):
        raise ToolError(f"{name} was changed since you read it: nothing was written.", "Read it again.")
    total = file.text.count("\n") + (not file.final_newline)
    if part := context.stamps.unseen(path, total):
        raise ToolError(
            f"You have not read lines {part[0]}–{part[1]} of {name}, and they would be lost: nothing was written.",
            f"Use target_edit, or read_file path={name} start_line={part[0]} first.",
        )


def _in_style_of(file: TextFile, content: str) -> bytes:
    """The content with the file's mark, encoding, line endings and end."""
    if not file.text:
        return file.mark + file.encode(content.removeprefix("\ufeff") if file.mark else content)
    text = content.removeprefix("\ufeff")
    if newline := file.newline:
        text = text.replace("\r\n", "\n")
        if file.final_newline and not text.endswith("\n"):
            text += "\n"
        text = text.replace("\n", newline)
    if not file.final_newline:
        text = text.removesuffix("\n").removesuffix("\r")
    return file.mark + file.encode(text)


def _make_folders(path: Path, name: str) -> list[Path]:
    """Make the folders that are missing; returned are those, the deepest first."""
    missing: list[Path] = []
    folder = path.parent
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _remove(missing)
        raise ToolError(f"The folder of {name} cannot be made: {error.strerror or error}.") from error
    return missing


def _remove(folders: list[Path]) -> None:
    """Take back folders that were made for nothing; one that somebody uses by now stays."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()
