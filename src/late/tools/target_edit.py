"""Replacing one exact piece of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from late.errors import ToolError
from late.tools.base import Effect, Preview, ToolArgs, ToolContext, ToolResult
from late.workspace.files import Edit, FileChange, TextFile, check_writable, plan_edit, read_bytes, write_atomic
from late.workspace.locate import locate

if TYPE_CHECKING:
    from pathlib import Path


class Args(ToolArgs):
    """What to replace by what."""

    path: str
    search: str
    replace: str


class TargetEdit:
    """An exact match proves that the text is known, so a file needs not have been read, and may have changed since."""

    name: ClassVar[str] = "target_edit"
    description: ClassVar[str] = "Replace one piece of a file. `search` is its exact text and must be there only once."
    Args: ClassVar[type[ToolArgs]] = Args
    effect: ClassVar[Effect] = "write"

    def label(self, args: Args) -> str:
        """E.g. `Edit src/app.py`."""
        return f"Edit {args.path}"

    def paths(self, args: Args) -> tuple[str, ...]:
        """The file."""
        return (args.path,)

    def preview(self, args: Args, context: ToolContext) -> Preview:
        """The diff; `run` will only make this very change.

        Raises:
            ToolError: the edit is not possible.
        """
        path, data, edit = _plan(args, context)
        context.stamps.pin(context.call_id, data)
        return Preview(self.label(args), FileChange(context.workspace.relative(path), data, edit.after).diff)

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        """Make the edit. Nothing is awaited, so that a cancelled call has either changed nothing or has its record.

        Raises:
            ToolError: the edit is not possible, or the file changed after a person was shown the diff.
        """
        path, data, edit = _plan(args, context)
        name = context.workspace.relative(path)
        if not context.stamps.unpin(context.call_id, data):
            raise ToolError(f"{name} was changed while the edit waited: nothing was written.", "Read it again.")
        if context.review:
            context.review(name, TextFile.decode(data, name).plain, TextFile.decode(edit.after, name).plain)
        foreign = context.stamps.seen(path) and not context.stamps.current(path, data)
        linked = _has_other_links(path)
        write_atomic(path, edit.after, expect=data, name=name)
        context.stamps.edited(path, data, edit)
        change = FileChange(name, data, edit.after)
        notes = list(edit.notes)
        if foreign:
            notes.append("The file was changed by somebody else since you read it; their changes were kept.")
        if linked:
            notes.append("The file had other hard links; they keep the old content.")
        return ToolResult(
            " ".join([f"Edited {name}, {_where(edit)}.", *notes]),
            {"path": name, "diff": change.diff},
            (change,),
        )


def _plan(args: Args, context: ToolContext) -> tuple[Path, bytes, Edit]:
    path = locate(context.workspace, args.path)
    name = context.workspace.relative(path)
    data = read_bytes(path, name)
    edit = plan_edit(data, args.search, args.replace, name)
    check_writable(path, name)
    return path, data, edit


def _has_other_links(path: Path) -> bool:
    try:
        return path.stat().st_nlink > 1
    except OSError:  # gone: writing will say so
        return False


def _where(edit: Edit) -> str:
    if edit.first_line == edit.last_line:
        return f"line {edit.first_line}"
    return f"lines {edit.first_line}–{edit.last_line}"
