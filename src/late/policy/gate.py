"""The policy: what a role may do with a tool, decided before anything runs."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from late.events import Scope
from late.policy.approvals import Approvals
from late.policy.paths import Places, Workspace
from late.policy.verdicts import Verdict, outside_verdict, secret_verdict, strictest

if TYPE_CHECKING:
    from late.policy.line import CommandLines

__all__ = ["Policy", "Question", "Verdict"]

NOT_AVAILABLE = "not available"
_PLANNER = "Say what has to change with write_implementation_plan; once it is approved, a coder does it."
_RESEARCHER = "You only read. Report what has to change, and where."
_READ_SIMPLY = "To read, use read_file, search and list_files, or a simpler command."
_WRITE_SCOPES: tuple[Scope, ...] = ("once", "session")


@dataclass(frozen=True, slots=True)
class Question:
    """A call that is to be judged."""

    role: str
    """`planner`, `researcher` or `coder`; any other role may do what a researcher may."""
    tool: str
    effect: str
    """`read`, `write`, `execute`, `plan` or `spawn`."""
    paths: tuple[str, ...] = ()
    """As given by the model."""
    command: str | None = None
    cwd: str | None = None
    step_files: tuple[str, ...] | None = None
    """A coder's write scope; `None` where there is no step."""


class Policy:
    """The rules of one workspace."""

    def __init__(self, workspace: Workspace, approvals: Approvals) -> None:
        self._approvals = approvals
        data = approvals.directory.parent
        own = approvals.directory if workspace.root.is_relative_to(data) else data
        self._places = Places(workspace, own=(own,))

    def decide(self, question: Question) -> Verdict:
        """Judge a call. A question that the person has answered before comes back as `auto`."""
        match question.effect:
            case "read":
                verdict = self._read(question)
            case "write":
                verdict = self._write(question)
            case "execute":
                verdict = self._execute(question)
            case "plan" | "spawn" if question.role == "planner":
                verdict = Verdict("auto", "the planner plans", "role.planner")
            case _:
                verdict = Verdict(
                    "never", f"{question.tool} is the planner's", "role.planner", "Do the work you were given yourself."
                )
        scope = self._approvals.covers(verdict.key) if verdict.tier == "ask" else None
        if scope is None:
            return verdict
        return replace(
            verdict, tier="auto", reason=f"allowed by you ({scope}): {verdict.reason}", rule=f"approval.{scope}"
        )

    def _read(self, question: Question) -> Verdict:
        return strictest(filter(None, [self._read_path(path) for path in question.paths])) or Verdict(
            "auto", "it reads inside of the project", "path.inside"
        )

    def _read_path(self, path: str) -> Verdict | None:
        place = self._places.look(path)
        if place.hidden:
            return Verdict("never", f"{path} is {NOT_AVAILABLE}", "path.hidden", "Go on without it.")
        if place.secret:
            return secret_verdict(path, place.secret)
        if place.kind == "inside" or str(place.real) == "/dev/null":
            return None
        if Path(place.real).is_relative_to(self._approvals.directory.parent / "output"):
            return None  # late's own: the rest of an output that was cut
        return outside_verdict(self._places.shown(place), str(place.real))

    def _write(self, question: Question) -> Verdict:
        if question.role != "coder":
            teaching = _PLANNER if question.role == "planner" else _RESEARCHER
            return Verdict("never", f"a {question.role} changes no files", "role.read-only", teaching)
        if not question.paths:
            return Verdict("ask", f"{question.tool} does not say what it changes", "path.unknown")
        return strictest(
            filter(None, [self._write_path(path, question.step_files) for path in question.paths])
        ) or Verdict("auto", "the step names the file", "scope.step")

    def _write_path(self, path: str, step_files: tuple[str, ...] | None) -> Verdict | None:
        place = self._places.look(path)
        shown = self._places.shown(place)
        if place.hidden:
            return Verdict("never", f"{path} is {NOT_AVAILABLE}", "path.hidden", "Go on without it.")
        if place.guarded:
            return Verdict("never", f"{shown} is not written to: {place.guarded}", "path.guarded", "Leave it as it is.")
        if place.secret:
            return secret_verdict(path, place.secret)
        if place.kind != "inside":
            return Verdict(
                "ask", f"{shown} lies outside of the project", "path.outside", "Write inside of the project."
            )
        if place.delicate:
            return Verdict("ask", f"{shown} changes more than itself: {place.delicate}", "path.delicate")
        if step_files is not None and in_scope(shown, step_files):
            return None
        reason = (
            f"{shown} is not among the files of the step ({', '.join(step_files) or 'none'})"
            if step_files is not None
            else f"no step of a plan names {shown}"
        )
        return Verdict(
            "ask",
            reason,
            "scope.outside-step",
            "Change only the files of your step; if it cannot be done without this one, say so in your report.",
            pattern=f"write {shown}",
            key=f"write {shown}",
            scopes=_WRITE_SCOPES,
        )

    @cached_property
    def _lines(self) -> CommandLines:
        from late.policy.line import CommandLines  # with the table of programs: not before a command comes

        return CommandLines(self._places)

    def _execute(self, question: Question) -> Verdict:
        verdict = strictest(
            verdict for verdict in (self._read_cwd(question), self._command(question)) if verdict is not None
        ) or Verdict("auto", "it only reads", "shell.read-only")
        if question.role == "coder" or verdict.tier in {"auto", "never"}:
            return verdict
        teaching = _PLANNER if question.role == "planner" else _RESEARCHER
        return Verdict(
            "never",
            f"a {question.role} runs only what provably reads, and {verdict.reason}",
            verdict.rule,
            f"{_READ_SIMPLY} {teaching}",
        )

    def _read_cwd(self, question: Question) -> Verdict | None:
        return self._read_path(question.cwd) if question.cwd else None

    def _command(self, question: Question) -> Verdict | None:
        if question.command is None or not question.command.strip():
            return Verdict("never", "the command is empty", "shell.empty", "Say what to run.")
        cwd = self._places.look(question.cwd or ".").real
        return self._lines.judge(question.command, cwd)


def in_scope(path: str, step_files: tuple[str, ...]) -> bool:
    """Whether a step that names these files may write `path`; a folder's name covers what lies in it."""
    target = PurePosixPath(path)
    named = [PurePosixPath(os.path.normpath(name)) for name in step_files if name.strip()]
    return any(target == name or (name in target.parents and name != PurePosixPath()) for name in named)
