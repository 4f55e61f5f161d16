"""Short-lived agents: one step or one question, a fresh conversation, one report."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from late.agent.brief import (
    ask_for_code,
    ask_for_file,
    ask_for_symbol,
    ask_for_symbol_name,
    check_failed,
    coder_brief,
    led_brief,
    show_files,
)
from late.agent.checks import is_test, run_check
from late.agent.crew import CHARS_PER_TOKEN, Crew
from late.agent.desk import Desk
from late.agent.loop import Agent, Move, TurnsEnd, run_turn, run_turns
from late.agent.moves import choose_symbol_move, chosen_symbol, code_move, region_of, symbol_choices
from late.errors import LateError, ToolError
from late.events import (
    AgentFinished,
    CheckFinished,
    CheckResult,
    ErrorRaised,
    Event,
    FileChanged,
    Outcome,
    PlanStep,
    SnapshotTaken,
    StepFinished,
    StepStarted,
    ToolOutput,
)
from late.llm.messages import AgentMessage, ToolMessage
from late.llm.provider import ModelInfo
from late.policy.gate import Question
from late.tools.base import Review, ToolContext, ToolResult
from late.tools.spawn_subagent import Args
from late.workspace.files import FileChange, TextFile
from late.workspace.outline import find_symbol
from late.workspace.review import review_edit
from late.workspace.snapshots import Snapshot

T = TypeVar("T")

CHECK_TRIES = 3
"""How often a coder may run into its check before the step has failed."""
WEAK_TURNS_PER_FILE = 3
WEAK_CHOICE_TOKENS = 120
REPORT_CHARS = 1500
"""Of a coder's own words; a researcher's answer may take a whole tool result."""
SHOWN_SHARE = 0.25
"""Share of the window that files shown at the start may take."""


@dataclass(slots=True)
class _Record:
    """What really happened, as the events tell it."""

    changed: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    checks: list[CheckResult] = field(default_factory=list[CheckResult])
    changed_since_check: bool = False

    def note(self, event: Event) -> None:
        if isinstance(event, FileChanged):
            added, removed = self.changed.get(event.path, (0, 0))
            self.changed[event.path] = (added + event.added, removed + event.removed)
            self.changed_since_check = True
        elif isinstance(event, CheckFinished):
            self.checks.append(event.check)
            self.changed_since_check = False


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
        end = await self._guarded(run_turns(agent), self._finish_cancelled(agent, None, _Record()))
        outcome: Outcome = "done" if end.reason == "answered" else _outcome_of(end)
        text = end.text if end.reason == "answered" else f"{outcome}: {end.text} {end.hint}".strip()
        report = text[: context.cap_chars]
        self._crew.emit(AgentFinished(agent_id=agent_id, outcome=outcome, report=report))
        return ToolResult(report, {"agent_id": agent_id, "outcome": outcome}, failed=outcome != "done")

    async def _coder(self, args: Args, number: int, agent_id: str, context: ToolContext) -> ToolResult:
        crew = self._crew
        info = await crew.subagent_provider.connect()
        step = crew.board.step(number)
        record = _Record()
        resumed = agent_id in crew.records
        snapshot = None if resumed else await self._snapshot(number, agent_id)
        agent = crew.make_agent(
            agent_id,
            crew.role("coder", info.weak),
            info,
            parent=(context.agent_id, context.call_id),
            goal=args.goal,
            step=number,
            step_files=step.files,
            review=self._review(step) if info.weak else None,
            remark=None if info.weak else self._remark,
        )
        publish = agent.emit

        def emit(event: Event) -> None:
            publish(event)
            record.note(event)

        agent.emit = agent.runner.emit = emit
        if not resumed:
            crew.emit(StepStarted(agent_id=agent_id, step=number, title=step.title, coder_id=agent_id))
            if snapshot is not None:
                crew.emit(SnapshotTaken(agent_id=agent_id, step=number, commit=snapshot.commit, ref=snapshot.ref))
            assert crew.board.plan is not None
            if not info.weak:
                brief = coder_brief(crew.request, crew.board.plan, number, args.goal)
                shown = self._shown((*step.files, *args.ctx_files), agent, info)
                agent.tell("\n\n".join(filter(None, [brief, shown])), "planner")
        cancelled = self._finish_cancelled(agent, number, record)
        if info.weak:
            outcome, words = await self._weak_attempts(agent, step, number, record, info, cancelled)
        else:
            outcome, words = await self._attempts(agent, step, number, record, cancelled)
        return self._end(agent, number, step, outcome, words, record)

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

    async def _attempts(
        self, agent: Agent, step: PlanStep, number: int, record: _Record, cancelled: Callable[[], None]
    ) -> tuple[Outcome, str]:
        """A coder with tools of its own: let it work until it says it is done, then check."""
        for left in range(CHECK_TRIES - 1, -1, -1):
            end = await self._guarded(run_turns(agent), cancelled)
            if end.reason != "answered":
                return _outcome_of(end), f"{end.text} {end.hint}".strip()
            if _blocked(end.text):
                return "blocked", end.text
            outcome = await self._verdict(agent, step, number, record, cancelled)
            if outcome != "failed" or not left:
                return outcome, end.text
            agent.tell(check_failed(record.checks[-1], left), "harness")
        return "failed", ""

    async def _weak_attempts(
        self,
        agent: Agent,
        step: PlanStep,
        number: int,
        record: _Record,
        info: ModelInfo,
        cancelled: Callable[[], None],
    ) -> tuple[Outcome, str]:
        """A coder that is led: one file at a time, whole file or one symbol, then the check."""
        end = TurnsEnd("hollow", "The step names no file.")
        plan = self._crew.board.plan
        assert plan is not None
        brief = led_brief(self._crew.request, plan, number, self._failures.get(number, ""))
        for path in step.files:
            end = await self._led(agent, path, info, cancelled, brief)
            if path not in record.changed:
                return "failed", f"No usable change of {path} came: {self._last_refusal(agent) or end.text[:300]}"
        for left in range(CHECK_TRIES - 1, -1, -1):
            outcome = await self._verdict(agent, step, number, record, cancelled)
            if outcome != "failed" or not left:
                return outcome, end.text
            path = next((path for path in reversed(step.files) if not is_test(path)), step.files[-1])
            failure = f"{brief}\n\n{check_failed(record.checks[-1], left)}"
            end = await self._led(agent, path, info, cancelled, failure, retry=CHECK_TRIES - left)
            if not record.changed_since_check:
                return "failed", f"No usable change of {path} came: {self._last_refusal(agent) or end.text[:300]}"
        return "failed", end.text

    async def _led(
        self,
        agent: Agent,
        path: str,
        info: ModelInfo,
        cancelled: Callable[[], None],
        brief: str,
        retry: int = 0,
    ) -> TurnsEnd:
        """Have one file rewritten, or one symbol of a large one; later tries are warmer, so that they differ."""
        root = self._crew.workspace.root
        file = self._crew.workspace.resolve(path)
        data = file.read_bytes() if file.is_file() else b""
        if data:
            agent.runner.stamps.record(file, data)
        agent.max_turns = agent.turns + WEAK_TURNS_PER_FILE
        agent.max_tokens = WEAK_CHOICE_TOKENS
        text = TextFile.decode(data).plain
        symbol: str | None = None
        if choices := symbol_choices(path, root):
            agent.tell(ask_for_symbol_name(path, choices, brief), "harness")
            agent.next_move = partial(choose_symbol_move, path, choices)
            await self._guarded(run_turn(agent), cancelled)
            symbol = chosen_symbol(agent.conversation, path)
        found = find_symbol(file, symbol) if symbol else None
        if symbol and found:
            text = region_of(text, found)
            agent.tell(ask_for_symbol(path, symbol, text, brief), "harness")
        else:
            agent.tell(ask_for_file(path, root, brief), "harness")
        window = info.context_window or 8192
        agent.max_tokens = min(int(len(text) / CHARS_PER_TOKEN * 1.5) + 700, window // 3)
        first = agent.turns

        def move() -> Move:
            tries = agent.turns - first + retry
            if tries and self._crew.limits.temperature is None:
                agent.temperature = min(0.2 + 0.3 * tries, 0.9)
            return code_move(path, root, symbol)

        agent.next_move = move
        end = await self._guarded(run_turns(agent), cancelled)
        while end.reason == "answered" and not self._wrote(agent) and agent.turns < agent.max_turns:
            agent.tell(f"That was no code. {ask_for_code(path, symbol)}", "harness")
            end = await self._guarded(run_turns(agent), cancelled)
        return end

    def _last_refusal(self, agent: Agent) -> str:
        last = agent.conversation.messages[-1]
        return last.content[:300] if isinstance(last, ToolMessage) else ""

    def _wrote(self, agent: Agent) -> bool:
        last = next((m for m in reversed(agent.conversation.messages) if isinstance(m, AgentMessage)), None)
        return last is not None and bool(last.calls)

    async def _verdict(
        self, agent: Agent, step: PlanStep, number: int, record: _Record, cancelled: Callable[[], None]
    ) -> Outcome:
        """What the record proves: `done` only by a check that passed after the last edit."""
        if step.verify is None:
            return "unverified" if record.changed else "blocked"
        check = await self._guarded(self._check(agent, step.verify), cancelled)
        agent.emit(CheckFinished(agent_id=agent.id, step=number, check=check))
        if check.exit_code is None:
            return "unverified" if record.changed else "blocked"
        return "done" if check.exit_code == 0 else "failed"

    async def _check(self, agent: Agent, command: str) -> CheckResult:
        verdict = self._crew.policy.decide(Question(role="coder", tool="bash", effect="execute", command=command))
        if verdict.tier == "never":
            return CheckResult(command=command, exit_code=None, output=f"Not run: {verdict.reason}")
        return await run_check(
            command,
            root=self._crew.workspace.root,
            timeout_s=self._crew.limits.check_timeout_s,
            environment=self._crew.environment,
            log_file=self._crew.log_dir / f"check-{agent.id}-{agent.turns}.log",
            output=lambda text: agent.emit(ToolOutput(agent_id=agent.id, call_id="check", text=text)),
        )

    def _end(
        self, agent: Agent, number: int, step: PlanStep, outcome: Outcome, words: str, record: _Record
    ) -> ToolResult:
        """Write the report from the record, tick the checkbox, and hand it to the planner."""
        check = record.checks[-1] if record.checks else None
        self._crew.emit(StepFinished(agent_id=agent.id, step=number, outcome=outcome, check=check))
        if outcome == "failed":
            self._failures[number] = check.output.strip()[-REPORT_CHARS:] if check else words
        self._desk.save_states()
        lines = [f"Step {number}, {step.title}: {outcome}."]
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

    async def _guarded(self, work: Awaitable[T], cancelled: Callable[[], None]) -> T:
        """Wait for the agent's work; a cancellation is recorded before it goes on."""
        try:
            return await work
        except asyncio.CancelledError:
            cancelled()
            raise

    def _finish_cancelled(self, agent: Agent, number: int | None, record: _Record) -> Callable[[], None]:
        """What is recorded when the agent is stopped: never success, and what was already changed."""

        def finish() -> None:
            if number is not None:
                report = self._end(agent, number, self._crew.board.step(number), "cancelled", "", record)
            else:
                report = ToolResult("Cancelled by the person.", {"outcome": "cancelled"}, failed=True)
                self._crew.emit(AgentFinished(agent_id=agent.id, outcome="cancelled", report=report.content))
            self._cancelled[agent.id] = report

        return finish

    def _shown(self, paths: tuple[str, ...], agent: Agent, info: ModelInfo) -> str:
        cap = int((info.context_window or 8192) * SHOWN_SHARE * CHARS_PER_TOKEN)
        return show_files(tuple(dict.fromkeys(paths)), self._crew.workspace, agent.runner.stamps, cap)

    def _review(self, step: PlanStep) -> Review:
        """Refuse what a weak model is known to get wrong; what the request names may vanish."""
        allowed = f"{self._crew.request}\n{step.title}\n{step.instruction}"
        return partial(_refuse_slips, allowed)

    def _remark(self, change: FileChange) -> str:
        """Tell at once what an edit broke."""
        if change.after is None:
            return ""
        before = TextFile.decode(change.before).plain if change.before is not None else None
        facts = review_edit(change.path, before, TextFile.decode(change.after).plain)
        return "\n".join(f"Note: {fact}" for fact in facts)


def _refuse_slips(allowed: str, path: str, before: str | None, after: str) -> None:
    facts = [fact for fact in review_edit(path, before, after) if not _was_asked(fact, allowed)]
    if facts:
        raise ToolError("Not written: " + " ".join(facts), "Send the complete text again, with that put right.")


def _was_asked(fact: str, allowed: str) -> bool:
    """Every definition that vanished is named in what was asked."""
    match = re.match(r"removed: (.*)", fact, re.IGNORECASE | re.DOTALL)
    if not match:
        return False
    names = [name.rsplit(".", 1)[-1] for name in re.findall(r"[\w.]+", match[1])]
    return bool(names) and all(re.search(rf"\b{re.escape(name)}\b", allowed) for name in names)


def _outcome_of(end: TurnsEnd) -> Outcome:
    return "out_of_turns" if end.reason == "out_of_turns" else "failed"


def _blocked(text: str) -> bool:
    return any(line.strip(" *#`").upper().startswith("BLOCKED:") for line in text.splitlines())


def _numbers(steps: list[int]) -> str:
    return ", ".join(map(str, steps)) or "none"


def _stopped_by_us() -> bool:
    """Is the surrounding task itself being cancelled, rather than only the subagent?"""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
