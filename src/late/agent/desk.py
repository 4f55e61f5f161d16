"""Laying a plan before the person: the file, the question, the decision."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

from late.agent.checks import propose_check
from late.agent.crew import Crew
from late.agent.plan import PLAN_FILE, StepState, normalise, parse_plan, plan_hash, render_plan
from late.errors import PlanError, ToolError
from late.events import ApprovalDecided, ApprovalRequested, ErrorRaised, Plan, PlanDecided, PlanStep, PlanWritten
from late.tools.base import ToolContext, ToolResult
from late.workspace.area import area_of
from late.workspace.files import write_atomic
from late.workspace.ripgrep import list_files


class Desk:
    """Implements `PlanDesk` for a session."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew

    @property
    def path(self) -> Path:
        """Where the plan's file is."""
        return self._crew.workspace.root / PLAN_FILE

    async def propose(self, plan: Plan, context: ToolContext) -> ToolResult:
        """Write the plan, ask, and return the decision.

        When this very call was already made (a session that was stopped while it waited), the file on disk is what is
        asked about: the person may have edited it in the meantime.

        Raises:
            ToolError: the plan cannot be carried out as it is.
        """
        earlier = self._crew.board.proposed.get(context.call_id)
        note = ""
        if earlier is None:
            plan = await self._checked(plan)
            self._save(plan)
            self._announce(plan, context.call_id)
        else:
            plan, note = self._from_disk(earlier.plan)
        shown = plan_hash(plan)
        while True:
            decision = await self._ask(plan, shown, note, context.call_id)
            if not decision.approved:
                self._decide(context.call_id, "rejected", plan, decision.words)
                words = f" They say: {decision.words}" if decision.words else ""
                return ToolResult(f"The person rejected the plan.{words}")
            plan, note = self._from_disk(plan)
            if note or (plan_hash(plan) != shown and not decision.edited):
                # Nothing is approved that the person has not seen.
                shown = plan_hash(plan)
                note = note or f"{PLAN_FILE} was changed since it was shown; this is what it says now."
                continue
            return self._approve(plan, earlier.plan_hash if earlier else shown, context.call_id, decision.words)

    def _approve(self, plan: Plan, proposed_hash: str, call_id: str, words: str) -> ToolResult:
        edited = plan_hash(plan) != self._crew.board.proposed[call_id].plan_hash or plan_hash(plan) != proposed_hash
        self._decide(call_id, "approved_with_edits" if edited else "approved", plan, words)
        self.save_states()
        text = "Approved. Spawn one coder per step, in order."
        if edited:
            text = f"Approved with the person's edits. The plan is now:\n\n{render_plan(plan)}\n{text}"
        if words:
            text += f" They say: {words}"
        return ToolResult(text, {"plan_hash": plan_hash(plan)})

    async def _ask(self, plan: Plan, shown: str, note: str, call_id: str) -> ApprovalDecided:
        return await self._crew.approver.ask(
            ApprovalRequested(
                request_id=f"ask_{uuid.uuid4().hex[:12]}",
                call_id=call_id,
                kind="plan",
                title=f"Plan: {plan.title}",
                reason=note,
                detail=render_plan(plan),
                plan_hash=shown,
            )
        )

    def _announce(self, plan: Plan, call_id: str) -> None:
        self._crew.emit(PlanWritten(call_id=call_id, plan=plan, plan_hash=plan_hash(plan), path=str(self.path)))

    def _decide(self, call_id: str, decision: str, plan: Plan, words: str) -> None:
        self._crew.emit(
            PlanDecided.model_validate(
                {
                    "call_id": call_id,
                    "decision": decision,
                    "plan": plan,
                    "plan_hash": plan_hash(plan),
                    "words": words,
                }
            )
        )

    async def _checked(self, plan: Plan) -> Plan:
        """The plan in normal form, with a check proposed for steps that have none.

        Raises:
            ToolError: a step has no files, or one that lies outside of the workspace or is hidden.
        """
        plan = normalise(plan)
        if self._crew.narrow:
            plan = plan.model_copy(update={"steps": merged(plan.steps)})
        workspace = self._crew.workspace
        files = await list_files(area_of(workspace, "."))
        steps = list(plan.steps)
        for at, step in enumerate(steps):
            if not step.files and not step.verify:
                raise ToolError(
                    f"Step {at + 1} names no files.", "List all files that it changes or creates; they limit its coder."
                )
            for path in step.files:
                real = workspace.resolve(path)
                if not workspace.contains(real) or workspace.hidden(real):
                    raise ToolError(f"Step {at + 1}: {path} is not in the workspace.", "Use paths below the folder.")
            names = tuple(workspace.relative(workspace.resolve(path)) for path in step.files)
            verify = step.verify or propose_check(step, files, workspace.root)
            steps[at] = step.model_copy(update={"files": names, "verify": verify})
        return normalise(plan.model_copy(update={"steps": tuple(steps)}))

    def _from_disk(self, fallback: Plan) -> tuple[Plan, str]:
        """What the file says now, and a note for the person where it cannot be used."""
        try:
            text = self.path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            self._save(fallback)
            return fallback, f"{PLAN_FILE} could not be read ({error}); it was written again."
        try:
            return parse_plan(text), ""
        except PlanError as error:
            return fallback, f"{error} {error.hint} Shown is the plan as it was before."

    def _save(self, plan: Plan, states: dict[int, StepState] | None = None) -> None:
        self._keep_foreign_file()
        data = render_plan(plan, states or {}).encode("utf-8", "replace")
        before = self.path.read_bytes() if self.path.exists() else None
        write_atomic(self.path, data, expect=before)

    def _keep_foreign_file(self) -> None:
        """A plan's file that this session did not write is kept beside the logs before it is replaced."""
        if not self.path.exists():
            return
        data = self.path.read_bytes()
        try:
            known = plan_hash(parse_plan(data.decode("utf-8")))
        except (PlanError, UnicodeDecodeError):
            known = ""
        ours = {written.plan_hash for written in self._crew.board.proposed.values()}
        if known in ours or known == self._crew.board.approved_hash:
            return
        self._crew.log_dir.mkdir(parents=True, exist_ok=True)
        (self._crew.log_dir / f"replaced-plan-{uuid.uuid4().hex[:8]}.md").write_bytes(data)

    def save_states(self) -> None:
        """Tick the checkboxes of the approved plan. A file that cannot be written does not stop the work."""
        board = self._crew.board
        if board.plan is None:
            return
        try:
            self._save(board.plan, board.states)
        except ToolError as error:
            self._crew.emit(ErrorRaised(message=f"The plan's checkboxes could not be written: {error}"))


_LOOKS_ONLY = re.compile(r"(?:check|confirm|ensure|run|test|validate|verify)\b", re.IGNORECASE)


def merged(steps: tuple[PlanStep, ...]) -> tuple[PlanStep, ...]:
    """Steps with the same files made one, and steps that only look dropped, as far as another one is left.

    Weak models like to split one change into looking, doing and verifying; the harness does the verifying.
    """
    by_files: dict[tuple[str, ...], PlanStep] = {}
    for step in steps:
        first = by_files.get(step.files)
        if first is None:
            by_files[step.files] = step
        else:
            instruction = "\n".join(dict.fromkeys(filter(None, [first.instruction, step.instruction])))
            by_files[step.files] = first.model_copy(
                update={"instruction": instruction, "verify": first.verify or step.verify}
            )
    together = tuple(by_files.values())
    return tuple(step for step in together if not _LOOKS_ONLY.match(step.title)) or together
