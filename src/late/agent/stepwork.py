"""A coder's work on one step: let it work, check, feed back, and judge by the record alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from late.agent.brief import check_failed
from late.agent.checks import run_check
from late.agent.crew import Crew
from late.agent.loop import Agent, TurnsEnd, run_turns
from late.events import CheckFinished, CheckResult, Event, FileChanged, Outcome, PlanStep, ToolOutput
from late.llm.provider import ModelInfo
from late.policy.gate import Question

CHECK_TRIES = 3
"""How often a coder may run into its check before the step has failed."""


@dataclass(slots=True)
class WorkRecord:
    """What really happened, as the events tell it."""

    changed: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Path → lines added and removed."""
    checks: list[CheckResult] = field(default_factory=list[CheckResult])
    changed_since_check: bool = False

    def note(self, event: Event) -> None:
        """Take an event into account."""
        if isinstance(event, FileChanged):
            added, removed = self.changed.get(event.path, (0, 0))
            self.changed[event.path] = (added + event.added, removed + event.removed)
            self.changed_since_check = True
        elif isinstance(event, CheckFinished):
            self.checks.append(event.check)
            self.changed_since_check = False


@dataclass(slots=True)
class StepWork:
    """One coder at one step."""

    crew: Crew
    agent: Agent
    step: PlanStep
    number: int
    info: ModelInfo
    record: WorkRecord

    async def attempts(self) -> tuple[Outcome, str]:
        """Let a coder with tools of its own work until it says it is done, then check; returns its last words too."""
        for left in range(CHECK_TRIES - 1, -1, -1):
            end = await run_turns(self.agent)
            if end.reason != "answered":
                return outcome_of(end), f"{end.text} {end.hint}".strip()
            if _blocked(end.text):
                return "blocked", end.text
            outcome = await self.verdict()
            if outcome != "failed" or not left:
                return outcome, end.text
            self.agent.tell(check_failed(self.record.checks[-1], left), "harness")
        return "failed", ""

    async def verdict(self) -> Outcome:
        """What the record proves: `done` only by a check that passed after the last edit."""
        nothing_proven: Outcome = "unverified" if self.record.changed else "blocked"
        if self.step.verify is None:
            return nothing_proven
        check = await self._check(self.step.verify)
        self.agent.emit(CheckFinished(agent_id=self.agent.id, step=self.number, check=check))
        if check.exit_code is None:
            return nothing_proven
        return "done" if check.exit_code == 0 else "failed"

    async def _check(self, command: str) -> CheckResult:
        agent = self.agent
        verdict = self.crew.policy.decide(Question(role="coder", tool="bash", effect="execute", command=command))
        if verdict.tier == "never":
            return CheckResult(command=command, exit_code=None, output=f"Not run: {verdict.reason}")
        return await run_check(
            command,
            root=self.crew.workspace.root,
            timeout_s=self.crew.limits.check_timeout_s,
            environment=self.crew.environment,
            log_file=self.crew.log_dir / f"check-{agent.id}-{agent.turns}.log",
            output=lambda text: agent.emit(ToolOutput(agent_id=agent.id, call_id="check", text=text)),
        )


def outcome_of(end: TurnsEnd) -> Outcome:
    """What an end that is no answer means for the agent's work."""
    return "out_of_turns" if end.reason == "out_of_turns" else "failed"


def _blocked(text: str) -> bool:
    return any(line.strip(" *#`").upper().startswith("BLOCKED:") for line in text.splitlines())
