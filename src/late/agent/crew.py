"""What the agents of one session share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from late.agent.board import PlanBoard
from late.agent.history import AgentRecord
from late.agent.loop import Agent, Inbox
from late.agent.roles import Role
from late.events import AgentStarted, Event
from late.llm.messages import Conversation, SystemMessage
from late.llm.provider import ModelInfo, ModelProvider
from late.policy.approvals import Approvals
from late.policy.gate import Policy
from late.tools.base import Review, Tool
from late.tools.registry import Registry
from late.tools.runner import Approver, ToolRunner
from late.workspace.files import FileChange, ReadStamps
from late.workspace.snapshots import Snapshots
from late.workspace.workspace import Workspace

CHARS_PER_TOKEN = 3.3
"""Code and prose of these tokenizers, on the safe side; only used where nothing better is known."""
UNKNOWN_WINDOW = 32_768
"""Tokens that are assumed where a server does not say what it serves."""
WEAK_OUTPUT_CHARS = 4_000
"""A weak model finds nothing in more than this, and its user waits for every line of it."""
PLANNER_SLOT, SUBAGENT_SLOT = 0, 1


@dataclass(frozen=True, slots=True)
class Limits:
    """What a session allows its agents."""

    planner_turns: int = 200
    subagent_turns: int = 60
    check_timeout_s: float = 300.0
    output_share: float = 0.12
    """Share of the context window that one tool result may take."""
    temperature: float | None = None


@dataclass(slots=True)
class Crew:
    """The planner, its subagents and what they have in common."""

    workspace: Workspace
    policy: Policy
    approvals: Approvals
    approver: Approver
    publish: Callable[[Event], object]
    planner_provider: ModelProvider
    subagent_provider: ModelProvider
    limits: Limits
    log_dir: Path
    """Where the whole output of checks is kept."""
    environment: Mapping[str, str]
    """For checks."""
    role: Callable[[str, bool], Role]
    """A role by name, in the form for models that are led or in the full one."""
    toolbox: Callable[[str], Tool | None]
    """A tool by name; `None` where a setting switched it off."""
    snapshots: Snapshots | None = None
    session_id: Callable[[], str] = lambda: ""
    """For the names of snapshots; known once the first event is stored."""
    board: PlanBoard = field(default_factory=PlanBoard)
    records: dict[str, AgentRecord] = field(default_factory=dict[str, AgentRecord])
    """Agents of earlier processes, from the log."""
    request: str = ""
    """The person's last message, word for word."""
    overview: str = ""
    """Of the project, made while the person still types, so that the first request need not wait for it."""
    spawned: int = 0
    narrow: bool = False
    """The planner's model is led turn by turn, and its plans are tidied."""

    def emit(self, event: Event) -> None:
        """Publish an event, then take it into account."""
        self.publish(event)
        self.board.apply(event)

    def cap_chars(self, info: ModelInfo) -> int:
        """The most characters of one tool result."""
        window = info.context_window or UNKNOWN_WINDOW
        cap = int(window * self.limits.output_share * CHARS_PER_TOKEN)
        return min(cap, WEAK_OUTPUT_CHARS) if info.weak else cap

    def make_agent(
        self,
        agent_id: str,
        role: Role,
        info: ModelInfo,
        *,
        parent: tuple[str, str] | None = None,
        goal: str = "",
        step: int | None = None,
        step_files: tuple[str, ...] | None = None,
        review: Review | None = None,
        remark: Callable[[FileChange], str] | None = None,
    ) -> Agent:
        """Build an agent, or bring back the one of that id from the log."""
        tools = [tool for name in role.tools if (tool := self.toolbox(name)) is not None]
        registry = Registry(tools)
        record = self.records.pop(agent_id, None)
        if record is None:
            self.emit(
                AgentStarted(
                    agent_id=agent_id,
                    role=role.name,
                    parent_id=parent[0] if parent else None,
                    parent_call_id=parent[1] if parent else None,
                    goal=goal,
                    step=step,
                    system_prompt=role.prompt,
                    tools=registry.names(),
                )
            )
        is_planner = parent is None
        return Agent(
            id=agent_id,
            role=role.name,
            conversation=record.conversation if record else Conversation(SystemMessage(role.prompt)),
            provider=self.planner_provider if is_planner else self.subagent_provider,
            runner=ToolRunner(
                agent_id=agent_id,
                role=role.name,
                registry=registry,
                workspace=self.workspace,
                policy=self.policy,
                approvals=self.approvals,
                approver=self.approver,
                emit=self.emit,
                stamps=ReadStamps(),
                cap_chars=self.cap_chars(info),
                step_files=step_files,
                review=review,
                remark=remark,
            ),
            emit=self.emit,
            max_turns=self.limits.planner_turns if is_planner else self.limits.subagent_turns,
            slot=self._slot(is_planner, info),
            temperature=self.limits.temperature,
            turns=record.turns if record else 0,
            inbox=Inbox(),
        )

    def _slot(self, is_planner: bool, info: ModelInfo) -> int | None:
        """Planner and subagents hold different slots, so that a coder never costs the planner its prefix."""
        if info.slots is None or info.slots < 2:
            return None
        return PLANNER_SLOT if is_planner else SUBAGENT_SLOT
