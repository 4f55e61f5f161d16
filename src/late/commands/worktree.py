"""`late worktree create|list|remove|active`."""

from __future__ import annotations

import argparse
import json
import sys

from late.commands.options import directory_of
from late.commands.transcript import visible
from late.workspace.worktrees import Worktree, Worktrees


def run(arguments: argparse.Namespace) -> int:
    """Do what the second word says and return the exit status."""
    worktrees = Worktrees(directory_of(arguments))
    match arguments.word:
        case "create":
            print(f"created {_line(worktrees.create(arguments.path, arguments.branch))}")
        case "remove":
            removed = worktrees.remove(arguments.path, force=arguments.force)
            print(f"removed {_line(removed)}" + ("; the branch stays" if removed.branch else ""))
        case "list":
            for worktree in worktrees.list():
                print(json.dumps(_as_json(worktree)) if arguments.json else _line(worktree))
        case _:
            active = worktrees.active()
            if active is None:
                print("late: this folder is in no worktree", file=sys.stderr)
                return 1
            print(_line(active))
    return 0


def _line(worktree: Worktree) -> str:
    at = "bare" if worktree.bare else worktree.branch or f"detached at {(worktree.commit or '')[:12]}"
    notes = [
        *(["locked" + (f": {worktree.locked}" if worktree.locked else "")] if worktree.locked is not None else []),
        *(["its folder is gone"] if worktree.missing else []),
    ]
    return visible(f"{worktree.path}  {at}" + (f"  [{'; '.join(notes)}]" if notes else ""))


def _as_json(worktree: Worktree) -> dict[str, object]:
    return {
        "path": str(worktree.path),
        "commit": worktree.commit,
        "branch": worktree.branch,
        "bare": worktree.bare,
        "locked": worktree.locked,
        "missing": worktree.missing,
    }
