"""Taking a step back: its files as they were before it, and nothing else."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from late.agent.board import PlanBoard
from late.agent.plan import PLAN_FILE, render_plan
from late.errors import LateError, ToolError
from late.events import (
    PLANNER,
    Event,
    FileChanged,
    MessageDelivered,
    PlanDecided,
    RefusedFile,
    RunFinished,
    RunStarted,
    SnapshotTaken,
    StepFinished,
    StepStarted,
    StepUndone,
)
from late.session.store import SessionStore
from late.workspace.atomic import write_atomic
from late.workspace.snapshots import Snapshots


@dataclass(slots=True)
class ChangedFile:
    """What a step made of a file, all of its coders taken together."""

    path: str
    before: str | None
    """sha256 of what the step found; `None`: no file."""
    after: str | None
    """sha256 of what it left."""
    commit: str | None
    """The snapshot before the first coder that changed it; `None` where none was taken."""
    seq: int
    """Of the last change."""
    disturbed: bool = False
    """Between two edits of the step somebody else changed it."""


@dataclass(slots=True)
class StepChanges:
    """A step of an approved plan, and what it changed and nobody took back so far."""

    step: int
    title: str
    outcome: str = "running"
    coder_ids: list[str] = field(default_factory=list[str])
    files: dict[str, ChangedFile] = field(default_factory=dict[str, ChangedFile])

    @property
    def changed(self) -> list[ChangedFile]:
        """The files that are not what they were."""
        return [file for file in self.files.values() if file.before != file.after]

    @property
    def seq(self) -> int:
        """Of its last change."""
        return max((file.seq for file in self.changed), default=0)


def changes_of(events: Iterable[Event]) -> list[StepChanges]:
    """The steps of a log that can be undone, the one that changed something last at the end."""
    steps: dict[tuple[int, int], StepChanges] = {}
    of_coder: dict[str, StepChanges] = {}
    commits: dict[str, str] = {}
    plan = 0
    for event in events:
        match event:
            case PlanDecided() if event.decision != "rejected":
                plan += 1
            case StepStarted():
                of_coder[event.coder_id] = steps.setdefault((plan, event.step), StepChanges(event.step, event.title))
                of_coder[event.coder_id].coder_ids.append(event.coder_id)
            case SnapshotTaken():
                commits[event.agent_id] = event.commit
            case FileChanged() if event.agent_id in of_coder:
                _note(of_coder[event.agent_id], event, commits.get(event.agent_id))
            case StepFinished() if event.agent_id in of_coder:
                of_coder[event.agent_id].outcome = event.outcome
            case StepUndone() if (coder := next(iter(event.coder_ids), "")) in of_coder:
                for path in event.restored:
                    of_coder[coder].files.pop(path, None)
            case _:
                pass
    return sorted((step for step in steps.values() if step.changed), key=lambda step: step.seq)


def _note(step: StepChanges, event: FileChanged, commit: str | None) -> None:
    file = step.files.get(event.path)
    if file is None:
        step.files[event.path] = ChangedFile(event.path, event.before_sha256, event.after_sha256, commit, event.seq)
        return
    file.disturbed |= event.before_sha256 != file.after
    file.after, file.seq = event.after_sha256, event.seq


async def undo(store: SessionStore, session_id: str, step: StepChanges, snapshots: Snapshots) -> StepUndone:
    """Put the files of a step back, and record that. The caller holds the session's lock.

    A file that is not as the step left it is refused, whoever changed it. Before anything is put back, all files are
    recorded once more, so that an undo can be undone by hand. The planner is told; the step is pending again, and its
    checkbox in the plan's file is cleared where that file still belongs to this plan.

    Raises:
        LateError: git failed, or a snapshot is gone; nothing was changed.
        StoreError: the log cannot be written.
    """
    events = list(store.events(session_id))
    name = f"{session_id}/undo-{events[-1].seq + 1}"
    if await snapshots.take(name, include=list(step.files)) is None:
        raise LateError("git was not found", "Snapshots are git commits: install git, or put it on PATH.")
    restored: list[str] = []
    refused: dict[str, str] = {}
    sound: list[ChangedFile] = []
    for file in step.changed:
        if file.commit is None:
            refused[file.path] = "no snapshot was taken before the step"
        elif file.disturbed:
            refused[file.path] = "somebody else changed it while the step ran"
        else:
            sound.append(file)
    for commit, files in _by_commit(sound):
        done = await snapshots.restore(
            commit,
            [file.path for file in files],
            expect={file.path: file.after for file in files},
            before={file.path: file.before for file in files},
        )
        restored += done.restored
        refused |= dict(done.refused)
    later = _later_steps(events, step)
    undone = StepUndone(
        step=step.step,
        coder_ids=tuple(step.coder_ids),
        restored=tuple(restored),
        refused=tuple(RefusedFile(path=path, why=later.get(path, why)) for path, why in refused.items()),
    )
    if restored:
        undone = store.append(session_id, undone)
        if _idle(events):
            store.append(session_id, _told(step, undone))
        _clear_checkbox(snapshots.root, events, undone)
    return undone


def _by_commit(files: Sequence[ChangedFile]) -> list[tuple[str, list[ChangedFile]]]:
    def commit(file: ChangedFile) -> str:
        return file.commit or ""

    return [(key, list(group)) for key, group in groupby(sorted(files, key=commit), key=commit)]


def _later_steps(events: Iterable[Event], step: StepChanges) -> dict[str, str]:
    """Why files are refused that another step changed after this one."""
    return {
        path: f"step {other.step} ({other.title}) changed it later; undo that one first"
        for other in changes_of(events)
        for path, file in other.files.items()
        if path in step.files and other.coder_ids != step.coder_ids and file.seq > step.files[path].seq
    }


def _idle(events: Sequence[Event]) -> bool:
    """Whether the planner's conversation stands between two runs, where a message may be added."""
    last = next((event for event in reversed(events) if isinstance(event, RunStarted | RunFinished)), None)
    return isinstance(last, RunFinished)


def _told(step: StepChanges, undone: StepUndone) -> MessageDelivered:
    left = f" Left as they are: {', '.join(file.path for file in undone.refused)}." if undone.refused else ""
    text = (
        f"The person took step {step.step} ({step.title}) back. As before the step: {', '.join(undone.restored)}."
        f"{left} Do the step again only if they ask for it."
    )
    return MessageDelivered(agent_id=PLANNER, message_id=f"msg_{uuid.uuid4().hex[:12]}", text=text, source="harness")


def _clear_checkbox(root: Path, events: Iterable[Event], undone: StepUndone) -> None:
    """A file that a person edited, or that belongs to another plan by now, is left alone."""
    board = PlanBoard()
    for event in events:
        board.apply(event)
    if board.plan is None:
        return
    file = root / PLAN_FILE
    ticked = render_plan(board.plan, board.states).encode("utf-8", "replace")
    board.apply(undone)
    cleared = render_plan(board.plan, board.states).encode("utf-8", "replace")
    try:
        if cleared != ticked and file.read_bytes() == ticked:
            write_atomic(file, cleared, expect=ticked)
    except (OSError, ToolError):
        return  # the board knows better than the file, which is written anew with the next step
