"""Short-lived agents: one step or one question, a fresh conversation, one report."""

from __future__ import annotations

import asyncio
from functools import partial

from late.agent.brief import coder_brief, show_files
from late.agent.crew import CHARS_PER_TOKEN, Crew
from late.agent.desk import Desk
from late.agent.led import led_attempts, refuse_slips
from late.agent.loop import Agent, run_turns
from late.agent.stepwork import StepWork, WorkRecord, outcome_of
from late.errors import LateError, ToolError
from late.events import (
    AgentFinished,
    ErrorRaised,
    Event,
    Outcome,
    SnapshotTaken,
    StepFinished,
    StepStarted,
)
from late.llm.provider import ModelInfo
from late.tools.base import ToolContext, ToolResult
from late.tools.spawn_subagent import Args
from late.workspace.files import FileChange, TextFile
from late.workspace.review import review_edit
from late.workspace.snapshots import Snapshot

REPORT_CHARS = 1500
"""Of a coder's own words; a researcher's answer may take a whole tool result."""
SHOWN_SHARE = 0.25
"""Share of the window that files shown at the start may take."""


class Subagents:
    """Implements `Spawner` for a session."""

    def __init__(self, crew: Crew, desk: Desk) -> None:
        self._crew = crew
        self._desk = desk
        self.running: dict[str, asyncio.Task[ToolResult]] = {}
        """By agent id, so that one can be stopped alone."""
        self._failures: dict[int, str] = {}
        """Why the last coder of a step failed, for the next one."""
        self._cancelled: dict[str, ToolResult] = {}
        """Reports of agents that were stopped."""
        self._told: set[str] = set()
        """Why no snapshot could be taken."""

    async def spawn(self, args: Args, context: ToolContext) -> ToolResult:
        """Run a subagent to its end. An unfinished one of the same call (from a log) is taken up again.

        Raises:
            ToolError: a coder without an approved plan, or for a step that is not pending.
        """
        number = self._step_of(args) if args.agent_type == "coder" else None
        agent_id = self._agent_id(args.agent_type, context.call_id)
        run = self._coder(args, number, agent_id, context) if number else self._researcher(args, agent_id, context)
        task = asyncio.ensure_future(run)
        self.running[agent_id] = task
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
            report = self._cancelled.pop(agent_id, None)
            if report is None or _stopped_by_us():
                raise
            return report
        finally:
            self.running.pop(agent_id, None)

    def _step_of(self, args: Args) -> int:
        board = self._crew.board
        if not board.approved:
            raise ToolError(
                "No plan is approved, so no coder may start.",
                "Call write_implementation_plan first and wait for the decision.",
            )
        free = board.in_state("pending", "running", "failed", "cancelled")
        if args.step is None:
            if not free:
                raise ToolError("All steps of the approved plan are done.", "A new change needs a new plan.")
            return free[0]
        if args.step not in board.states:
            raise ToolError(f"The plan has no step {args.step}.", f"Its steps are 1 to {len(board.states)}.")
        if args.step not in free:
            raise ToolError(f"Step {args.step} is already done.", f"Pending: {_numbers(board.pending)}.")
        return args.step

    def _agent_id(self, role: str, call_id: str) -> str:
        for agent_id, record in self._crew.records.items():
            if record.started.parent_call_id == call_id and record.finished is None:
                return agent_id
        self._crew.spawned += 1
        return f"{role}-{self._crew.spawned}"

    async def _researcher(self, args: Args, agent_id: str, context: ToolContext) -> ToolResult:
        info = await self._crew.subagent_provider.connect()
        role = self._crew.role("researcher", False)
        resumed = agent_id in self._crew.records
        agent = self._crew.make_agent(agent_id, role, info, parent=(context.agent_id, context.call_id), goal=args.goal)
        if not resumed:
            shown = self._shown(tuple(args.ctx_files), agent, info)
            agent.tell("\n\n".join(filter(None, [args.goal, shown])), "planner")
        try:
            end = await run_turns(agent)
        except asyncio.CancelledError:
            report = "Cancelled by the person."
            self._crew.emit(AgentFinished(agent_id=agent.id, outcome="cancelled", report=report))
            self._cancelled[agent.id] = ToolResult(report, {"outcome": "cancelled"}, failed=True)
            raise
        outcome: Outcome = "done" if end.reason == "answered" else outcome_of(end)
        text = end.text if end.reason == "answered" else f"{outcome}: {end.text} {end.hint}".strip()
        report = text[: context.cap_chars]
        self._crew.emit(AgentFinished(agent_id=agent_id, outcome=outcome, report=report))
        return ToolResult(report, {"agent_id": agent_id, "outcome": outcome}, failed=outcome != "done")

    async def _coder(self, args: Args, number: int, agent_id: str, context: ToolContext) -> ToolResult:
        crew = self._crew
        info = await crew.subagent_provider.connect()
        step = crew.board.step(number)
        record = WorkRecord()
        resumed = agent_id in crew.records
        for event in crew.records[agent_id].work if resumed else ():
            record.note(event)
        snapshot = None if resumed else await self._snapshot(number, agent_id)
        agent = crew.make_agent(
            agent_id,
            crew.role("coder", info.weak),
            info,
            parent=(context.agent_id, context.call_id),
            goal=args.goal,
            step=number,
            step_files=step.files,
            review=partial(refuse_slips, f"{crew.request}\n{step.title}\n{step.instruction}") if info.weak else None,
            remark=None if info.weak else self._remark,
        )
        assert crew.board.plan is not None
        checks = (other.verify for other in crew.board.plan.steps)
        agent.runner.approved_commands = frozenset(command for command in checks if command)
        publish = agent.emit

        def emit(event: Event) -> None:
            publish(event)
            record.note(event)

        agent.emit = agent.runner.emit = emit
        if not resumed:
            crew.emit(StepStarted(agent_id=agent_id, step=number, title=step.title, coder_id=agent_id))
            if snapshot is not None:
                crew.emit(SnapshotTaken(agent_id=agent_id, step=number, commit=snapshot.commit, ref=snapshot.ref))
            if not info.weak:
                brief = coder_brief(crew.request, crew.board.plan, number, args.goal)
                shown = self._shown((*step.files, *args.ctx_files), agent, info)
                agent.tell("\n\n".join(filter(None, [brief, shown])), "planner")
        work = StepWork(crew, agent, step, number, info, record)
        try:
            if info.weak:
                outcome, words = await led_attempts(work, self._failures.get(number, ""))
            else:
                outcome, words = await work.attempts()
        except asyncio.CancelledError:
            self._cancelled[agent.id] = self._end(work, "cancelled", "")
            raise
        return self._end(work, outcome, words)

    async def _snapshot(self, number: int, agent_id: str) -> Snapshot | None:
        """Record the files before a step. What prevents it is told once and does not stop the work."""
        snapshots = self._crew.snapshots
        if snapshots is None:
            return None
        name = f"{self._crew.session_id()}/step-{number}-{agent_id}"
        try:
            taken = await snapshots.take(name, include=self._crew.board.step(number).files)
            problem = "" if taken else "git was not found"
            hint = "Install git, or put it on PATH."
        except LateError as error:
            taken, problem, hint = None, str(error), error.hint
        if problem and problem not in self._told:
            self._told.add(problem)
            message = f"The files could not be recorded before step {number}, which cannot be undone: {problem}"
            self._crew.emit(ErrorRaised(agent_id=agent_id, message=message, hint=hint))
        return taken

    def _end(self, work: StepWork, outcome: Outcome, words: str) -> ToolResult:
        """Write the report from the record, tick the checkbox, and hand it to the planner."""
        agent, number, record = work.agent, work.number, work.record
        check = record.checks[-1] if record.checks else None
        self._crew.emit(StepFinished(agent_id=agent.id, step=number, outcome=outcome, check=check))
        if outcome == "failed":
            self._failures[number] = check.output.strip()[-REPORT_CHARS:] if check else words
        self._desk.save_states()
        lines = [f"Step {number}, {work.step.title}: {outcome}."]
        changes = ", ".join(f"{path} (+{added} -{removed})" for path, (added, removed) in record.changed.items())
        lines.append(f"Changed: {changes or 'nothing'}.")
        if check is not None:
            ended = "could not be run" if check.exit_code is None else f"exit status {check.exit_code}"
            lines.append(f"Check `{check.command}`: {ended}.")
            if check.exit_code != 0 and outcome != "cancelled":
                lines.append(check.output.strip()[-REPORT_CHARS:])
        if words.strip():
            lines.append(f"The coder says: {words.strip()[:REPORT_CHARS]}")
        if pending := self._crew.board.pending:
            lines.append(f"Still pending: {_numbers(pending)}.")
        report = "\n".join(lines)
        self._crew.emit(
            AgentFinished(agent_id=agent.id, outcome=outcome, report=report, changed_files=tuple(record.changed))
        )
        details = {"agent_id": agent.id, "outcome": outcome, "step": number}
        return ToolResult(report, details, failed=outcome not in {"done", "unverified"})

    def _shown(self, paths: tuple[str, ...], agent: Agent, info: ModelInfo) -> str:
        cap = int((info.context_window or 8192) * SHOWN_SHARE * CHARS_PER_TOKEN)
        return show_files(tuple(dict.fromkeys(paths)), self._crew.workspace, agent.runner.stamps, cap)

    def _remark(self, change: FileChange) -> str:
        """Tell at once what an edit broke."""
        if change.after is None:
            return ""
        before = TextFile.decode(change.before).plain if change.before is not None else None
        facts = review_edit(change.path, before, TextFile.decode(change.after).plain)
        return "\n".join(f"Note: {fact}" for fact in facts)


def _numbers(steps: list[int]) -> str:
    return ", ".join(map(str, steps)) or "none"


def _stopped_by_us() -> bool:
    """Is the surrounding task itself being cancelled, rather than only the subagent?"""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
