"""The state of the plan: a fold over the events, so that a resumed session stands where it stood."""

from __future__ import annotations

from late.agent.plan import StepState
from late.events import Event, Outcome, Plan, PlanDecided, PlanStep, PlanWritten, StepFinished, StepStarted, StepUndone

_STATE_OF: dict[Outcome, StepState] = {"done": "done", "unverified": "unverified", "cancelled": "cancelled"}


class PlanBoard:
    """The plan that is in force, and what became of its steps."""

    def __init__(self) -> None:
        self.plan: Plan | None = None
        self.approved_hash: str | None = None
        self.states: dict[int, StepState] = {}
        self.outcomes: dict[int, StepFinished] = {}
        self.tries: dict[int, int] = {}
        """Coders that took up a step."""
        self.coders: set[str] = set()
        """Those that worked on this plan."""
        self.proposed: dict[str, PlanWritten] = {}
        """Plans laid before the person, by the call that wrote them."""

    def apply(self, event: Event) -> None:
        """Take an event into account; the only way in which the board changes."""
        match event:
            case PlanWritten():
                self.proposed[event.call_id] = event
            case PlanDecided() if event.decision != "rejected":
                self.plan = event.plan
                self.approved_hash = event.plan_hash
                self.states = dict.fromkeys(range(1, len(event.plan.steps) + 1), "pending")
                self.outcomes = {}
                self.tries = {}
                self.coders = set()
            case StepStarted():
                self.states[event.step] = "running"
                self.coders.add(event.coder_id)
                self.tries[event.step] = self.tries.get(event.step, 0) + 1
            case StepFinished():
                self.states[event.step] = _STATE_OF.get(event.outcome, "failed")
                self.outcomes[event.step] = event
            case StepUndone() if event.restored and self.coders.intersection(event.coder_ids):
                self.states[event.step] = "pending"
                self.outcomes.pop(event.step, None)
                self.tries.pop(event.step, None)
            case _:
                pass

    @property
    def approved(self) -> bool:
        """Is there a plan that a person approved?"""
        return self.plan is not None

    def step(self, number: int) -> PlanStep:
        """The step of that number, from 1."""
        assert self.plan is not None
        return self.plan.steps[number - 1]

    def in_state(self, *states: StepState) -> list[int]:
        """Numbers of the steps in any of these states."""
        return [number for number, state in sorted(self.states.items()) if state in states]

    @property
    def pending(self) -> list[int]:
        """Approved steps that no coder has taken up."""
        return self.in_state("pending", "running")

    def summary(self) -> str:
        """What became of each step, from the record; empty without an approved plan."""
        if self.plan is None:
            return ""
        lines = [f"{number}. {step.title}: {self._words(number)}" for number, step in enumerate(self.plan.steps, 1)]
        return "\n".join(lines)

    def _words(self, number: int) -> str:
        finished = self.outcomes.get(number)
        if finished is None:
            return "not done"
        check = finished.check
        match finished.outcome:
            case "done" if check:
                return f"done, `{check.command}` passed"
            case "unverified" if check:
                return f"changed but unverified: `{check.command}` could not be run"
            case "unverified":
                return "changed but unverified: there is no check for it"
            case "failed" if check and check.exit_code:
                return f"FAILED: `{check.command}` exits with {check.exit_code}"
            case outcome:
                return outcome.replace("_", " ")
