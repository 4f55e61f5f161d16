"""What the screen shows, as plain values. Filled by `late.tui.present`, read by the widgets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from late.tui.blocks import Block, UserBlock

PLANNER = "planner"
"""The id of the root agent; the same word as `late.events.PLANNER`, which the first paint does not import."""

ARMING_S = 0.7
"""Seconds without a key before a decision takes the focus, and before it answers to keys after it took it."""

Activity = Literal[
    "starting",
    "idle",
    "connecting",
    "loading",
    "unreachable",
    "paused",
    "prefill",
    "thinking",
    "answering",
    "calling",
    "tool",
    "waiting",
]
BUSY: frozenset[Activity] = frozenset({"connecting", "loading", "prefill", "thinking", "answering", "calling", "tool"})
"""The activities in which something moves; the screen's clock runs only in these."""


@dataclass
class Prefill:
    """The last word of the server about its reading of the prompt."""

    total: int
    cached: int
    processed: int
    elapsed_ms: float
    at: float
    """Monotonic time of the report."""

    @property
    def speed(self) -> float:
        """Tokens a second, cached ones not counted; 0 when not known yet."""
        read = self.processed - self.cached
        return read * 1000 / self.elapsed_ms if read > 0 and self.elapsed_ms > 0 else 0.0

    def expected(self, now: float) -> float:
        """Tokens that are probably read at a monotonic time, never all of them."""
        ahead = self.processed + self.speed * max(0.0, now - self.at)
        return min(ahead, max(float(self.processed), self.total * 0.99))

    def remaining_s(self, now: float) -> float | None:
        """Seconds to go, by the speed so far."""
        return max(0.0, self.total - self.expected(now)) / self.speed if self.speed else None


@dataclass
class AgentView:
    """One agent: its transcript and what it does now."""

    agent_id: str
    role: str = "planner"
    parent_id: str | None = None
    step: int | None = None
    blocks: list[Block] = field(default_factory=list["Block"])
    queued: dict[str, UserBlock] = field(default_factory=dict[str, "UserBlock"])
    """Messages that wait for the next turn, shown below everything else."""
    activity: Activity = "idle"
    doing: str = ""
    """The label of the running tool, or the provider's words while it is waited for."""
    since: float = 0.0
    """Monotonic time at which the activity began."""
    turn: int = 0
    outcome: str | None = None
    prefill: Prefill | None = None
    context_used: int | None = None
    estimated: bool = False
    prompt_speed: float | None = None
    """Tokens a second of the last prefill."""
    decode_speed: float | None = None

    def begin(self, activity: Activity, now: float, doing: str = "") -> None:
        """The agent does something else now."""
        if activity != self.activity or doing != self.doing:
            self.activity, self.doing, self.since = activity, doing, now


@dataclass
class Approval:
    """A decision that an agent waits for."""

    request_id: str
    agent_id: str
    kind: Literal["tool", "plan"]
    title: str
    reason: str = ""
    detail: str = ""
    pattern: str = ""
    scopes: tuple[str, ...] = ("once",)
    steps: int = 0
    plan_path: str = ""


@dataclass
class ModelView:
    """What serves the planner."""

    model: str
    endpoint: str
    server: str = ""
    context_window: int | None = None
    slots: int | None = None
    dialect: str = ""
    vision: bool | None = None


@dataclass
class ScreenState:
    """Everything at once."""

    agents: dict[str, AgentView] = field(default_factory=lambda: {PLANNER: AgentView(PLANNER)})
    approvals: dict[str, Approval] = field(default_factory=dict[str, Approval])
    """Not yet answered, oldest first."""
    models: dict[str, ModelView] = field(default_factory=dict[str, ModelView])
    """By role."""
    session_id: str | None = None
    running: bool = False

    @property
    def planner(self) -> AgentView:
        """The root agent."""
        return self.agents[PLANNER]

    @property
    def moving(self) -> bool:
        """Whether anything on the screen changes by itself."""
        return any(agent.activity in BUSY for agent in self.agents.values())

    def model_of(self, agent: AgentView) -> ModelView | None:
        """What serves an agent; subagents use the planner's model unless they have their own."""
        for role in (agent.role, "subagent", "planner"):
            if role in self.models and not (role == "subagent" and agent.role == "planner"):
                return self.models[role]
        return next(iter(self.models.values()), None)
