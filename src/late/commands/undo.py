"""`late undo`: takes back what a step changed."""

from __future__ import annotations

import argparse
import asyncio
import sys

from late.commands.options import chosen_session, open_store
from late.commands.transcript import visible
from late.config.paths import data_dir
from late.errors import UserError
from late.events import StepUndone
from late.session.undo import StepChanges, changes_of, undo
from late.workspace.snapshots import Snapshots

DONE, REFUSED = 0, 1


def run(arguments: argparse.Namespace) -> int:
    """Undo a step, or list those that can be undone; the exit status is 1 if a file was left as it is.

    Raises:
        UserError: there is no such session or step, or the session is open elsewhere.
        LateError: git failed, or a snapshot is gone.
    """
    arguments.continue_ = arguments.resume is None
    session_id, directory = chosen_session(arguments)
    assert session_id is not None
    with open_store() as store:
        if arguments.list:
            _list(session_id, changes_of(store.events(session_id)))
            return DONE
        with store.lock(session_id):
            step = _chosen(session_id, changes_of(store.events(session_id)), arguments.step)
            snapshots = Snapshots(directory, data_dir() / "snapshots")
            undone = asyncio.run(undo(store, session_id, step, snapshots))
    _print(step, undone)
    return REFUSED if undone.refused else DONE


def _chosen(session_id: str, steps: list[StepChanges], number: int | None) -> StepChanges:
    for step in reversed(steps):
        if number in (None, step.step):
            return step
    what = "nothing" if number is None else f"no step {number}"
    raise UserError(
        f"session {session_id} has {what} to undo",
        "`late undo --list` shows the steps that changed something; `late session list` the sessions.",
    )


def _list(session_id: str, steps: list[StepChanges]) -> None:
    for step in steps:
        paths = ", ".join(file.path for file in step.changed)
        print(visible(f"step {step.step}  {step.outcome:<10}  {step.title}  ({paths})"))
    if not steps:
        print(f"There is nothing to undo in session {session_id}.", file=sys.stderr)


def _print(step: StepChanges, undone: StepUndone) -> None:
    print(visible(f"step {step.step}: {step.title}"))
    for path in undone.restored:
        print(visible(f"  put back {path}"))
    for file in undone.refused:
        print(visible(f"  left alone {file.path}: {file.why}"), file=sys.stderr)
