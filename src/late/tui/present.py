"""Folds events into what the screen shows.

The same fold serves a live session and a resumed one: deltas only bring forward what the stored event after them says
whole. Nothing here decides anything, and nothing here knows a widget.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from late import events as e
from late.tui.blocks import (
    Block,
    ErrorBlock,
    NoteBlock,
    PlanBlock,
    PlanView,
    StepView,
    TextBlock,
    ThoughtBlock,
    ToolBlock,
    UserBlock,
)
from late.tui.plain import cleaned, one_line
from late.tui.state import AgentView, Approval, ModelView, ScreenState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LIVE_FRAGMENTS = 200
"""Fragments of a running tool's output that are kept; its result has the rest."""
_FINISH_WORDS = {
    "length": "The answer was cut: it reached the limit of tokens.",
    "cancelled": "Stopped; what came until then is kept.",
    "repetition": "Stopped: the model repeated itself.",
    "error": "The answer broke off; what came until then is kept.",
}
_RUN_WORDS = {
    "failed": "The run failed",
    "cancelled": "Stopped",
    "error": "The run ended with an error",
    "out_of_turns": "The run used up its turns",
    "interrupted": "The run was interrupted",
}
_PROVIDER_ACTIVITY: dict[str, Any] = {
    "connecting": "connecting",
    "loading": "loading",
    "unreachable": "unreachable",
    "rate_limited": "paused",
    "probing": "connecting",
}


class _Live:
    """What an agent's model is writing at the moment."""

    def __init__(self) -> None:
        self.text: TextBlock | None = None
        self.thought: ThoughtBlock | None = None
        self.calls: dict[int, ToolBlock] = {}


class Presenter:
    """Holds the screen's state and moves it on, event by event."""

    def __init__(self, state: ScreenState, clock: Callable[[], float] = time.monotonic) -> None:
        self.state = state
        self._clock = clock
        self._live: dict[str, _Live] = {}
        self._tools: dict[str, ToolBlock] = {}
        """By call id."""
        self._plans: dict[str, PlanBlock] = {}
        """By call id of the plan."""
        self._plan: PlanBlock | None = None
        self._approved: PlanBlock | None = None
        self._handlers: dict[type[e.Event], Callable[[Any], None]] = {
            e.SessionStarted: self._session_started,
            e.SessionResumed: self._session_resumed,
            e.ModelConnected: self._model_connected,
            e.MessageQueued: self._message_queued,
            e.MessageDelivered: self._message_delivered,
            e.AgentStarted: self._agent_started,
            e.AgentFinished: self._agent_finished,
            e.RunStarted: self._run_started,
            e.RunFinished: self._run_finished,
            e.TurnStarted: self._turn_started,
            e.AssistantMessage: self._assistant_message,
            e.PolicyDecided: self._policy_decided,
            e.ApprovalRequested: self._approval_requested,
            e.ApprovalDecided: self._approval_decided,
            e.ToolStarted: self._tool_started,
            e.ToolFinished: self._tool_finished,
            e.FileChanged: self._file_changed,
            e.PlanWritten: self._plan_written,
            e.PlanDecided: self._plan_decided,
            e.SnapshotTaken: self._snapshot_taken,
            e.StepStarted: self._step_started,
            e.CheckFinished: self._check_finished,
            e.StepFinished: self._step_finished,
            e.ErrorRaised: self._error_raised,
            e.RequestRetried: self._request_retried,
            e.TextDelta: self._text_delta,
            e.ReasoningDelta: self._reasoning_delta,
            e.ToolCallDelta: self._tool_call_delta,
            e.ToolOutput: self._tool_output,
            e.PromptProgressed: self._prompt_progressed,
            e.TokensCounted: self._tokens_counted,
            e.ProviderWaited: self._provider_waited,
        }

    def apply(self, event: e.Event) -> None:
        """Take one event. Types that this version does not know change nothing."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)

    def fold(self, history: Iterable[e.Event]) -> None:
        """Take the stored events of a session that is opened again."""
        for event in history:
            self.apply(event)
        for agent in self.state.agents.values():
            agent.activity = "idle"
        self.state.running = False
        self.state.approvals.clear()
        self._settle("interrupted")

    def _agent(self, event: e.Event) -> AgentView:
        agent = self.state.agents.get(event.agent_id)
        if agent is None:
            agent = self.state.agents[event.agent_id] = AgentView(event.agent_id, role=event.agent_id.split("-")[0])
        return agent

    def _live_of(self, event: e.Event) -> _Live:
        return self._live.setdefault(event.agent_id, _Live())

    def _add(self, event: e.Event, block: Block) -> None:
        self._agent(event).blocks.append(block)

    def _begin(self, event: e.Event, activity: Any, doing: str = "") -> None:
        agent = self._agent(event)
        agent.begin(activity, self._clock(), doing)
        self._tell_parent(agent)

    def _tell_parent(self, agent: AgentView) -> None:
        """The card of the call that started a subagent says what it does."""
        for tool in self._tools.values():
            if tool.agent_id == agent.agent_id and tool.state == "running":
                words = {
                    "prefill": "reads the prompt",
                    "thinking": "thinks",
                    "answering": "answers",
                    "calling": "writes a call",
                    "tool": agent.doing,
                    "waiting": "waits for you",
                }.get(agent.activity, agent.activity)
                tool.progress = f"{agent.agent_id} · turn {agent.turn} · {words}"
                tool.changed()

    # Session, agents, runs

    def _session_started(self, event: e.SessionStarted) -> None:
        self.state.session_id = event.session_id

    def _session_resumed(self, event: e.SessionResumed) -> None:
        self._settle("interrupted")
        self._add(event, NoteBlock("Session opened again"))

    def _model_connected(self, event: e.ModelConnected) -> None:
        self.state.models[event.role] = ModelView(
            model=event.model,
            endpoint=event.endpoint,
            server=event.server,
            context_window=event.context_window,
            slots=event.slots,
            dialect=event.dialect,
            vision=event.vision,
        )
        for agent in self.state.agents.values():
            if agent.activity in {"connecting", "loading", "unreachable", "starting"}:
                agent.begin("prefill" if self.state.running else "idle", self._clock())

    def _message_queued(self, event: e.MessageQueued) -> None:
        self._agent(event).queued[event.message_id] = UserBlock(event.text, queued=True)

    def _message_delivered(self, event: e.MessageDelivered) -> None:
        agent = self._agent(event)
        agent.queued.pop(event.message_id, None)
        if event.source == "harness":
            agent.blocks.append(NoteBlock(event.text))
        else:
            agent.blocks.append(UserBlock(event.text, source="planner" if event.source == "planner" else "person"))

    def _agent_started(self, event: e.AgentStarted) -> None:
        agent = self._agent(event)
        agent.role, agent.parent_id, agent.step = event.role, event.parent_id, event.step
        agent.outcome = None
        agent.begin("prefill", self._clock())
        tool = self._tools.get(event.parent_call_id or "")
        if tool is not None:
            tool.agent_id = event.agent_id
            self._tell_parent(agent)

    def _agent_finished(self, event: e.AgentFinished) -> None:
        agent = self._agent(event)
        agent.begin("idle", self._clock())
        agent.outcome = event.outcome
        self._drop_live(event)
        tone = {"done": "success", "unverified": "warning", "cancelled": "muted"}.get(event.outcome, "error")
        words = event.outcome.replace("_", " ").capitalize()
        files = f" · changed {', '.join(event.changed_files)}" if event.changed_files else ""
        agent.blocks.append(NoteBlock(f"{words}{files}", tone))  # pyright: ignore[reportArgumentType]

    def _run_started(self, event: e.RunStarted) -> None:
        self.state.running = True
        self._begin(event, "prefill")

    def _run_finished(self, event: e.RunFinished) -> None:
        self.state.running = False
        self._drop_live(event)
        for agent in self.state.agents.values():
            agent.begin("idle", self._clock())
        self.state.approvals.clear()
        if event.reason == "done":
            return
        words = _RUN_WORDS[event.reason]
        planner = self._agent(event)
        last = planner.blocks[-1] if planner.blocks else None
        if event.message and not (isinstance(last, ErrorBlock) and last.message == event.message):
            words += f": {event.message}"
        planner.blocks.append(NoteBlock(words, "muted" if event.reason == "cancelled" else "warning"))

    # What the model writes

    def _turn_started(self, event: e.TurnStarted) -> None:
        agent = self._agent(event)
        agent.turn = event.turn
        agent.prefill = None
        self._drop_live(event)
        self._begin(event, "prefill")

    def _text_delta(self, event: e.TextDelta) -> None:
        live = self._live_of(event)
        if live.text is None:
            if not event.text.strip():
                return
            self._end_thought(live, event.time)
            live.text = TextBlock()
            self._add(event, live.text)
        live.text.append(event.text)
        self._begin(event, "answering")

    def _reasoning_delta(self, event: e.ReasoningDelta) -> None:
        live = self._live_of(event)
        if live.thought is None:
            if not event.text.strip():
                return
            live.thought = ThoughtBlock()
            live.thought.started = event.time
            self._add(event, live.thought)
        live.thought.append(event.text)
        self._begin(event, "thinking")

    def _tool_call_delta(self, event: e.ToolCallDelta) -> None:
        live = self._live_of(event)
        self._end_thought(live, event.time)
        tool = live.calls.get(event.index)
        if tool is None:
            tool = live.calls[event.index] = ToolBlock(event.name)
            self._add(event, tool)
        elif event.name:
            tool.name = event.name
        tool.written += len(event.arguments)
        tool.changed()
        self._begin(event, "calling", tool.name)

    def _assistant_message(self, event: e.AssistantMessage) -> None:
        agent = self._agent(event)
        live = self._live_of(event)
        self._settle_text(agent, live, event)
        for index, call in enumerate(event.calls):
            tool = live.calls.pop(index, None)
            if tool is None:
                tool = ToolBlock(call.name)
                agent.blocks.append(tool)
            tool.name = call.name
            tool.written = 0
            tool.changed()
            self._tools[call.id] = tool
        self._drop_live(event)
        if event.finish in _FINISH_WORDS:
            agent.blocks.append(NoteBlock(_FINISH_WORDS[event.finish], "warning"))
        self._count(agent, event.usage)
        self._begin(event, "tool" if event.calls else "prefill")

    def _settle_text(self, agent: AgentView, live: _Live, event: e.AssistantMessage) -> None:
        if event.reasoning.strip():
            if live.thought is None:
                live.thought = ThoughtBlock()
                position = agent.blocks.index(live.text) if live.text in agent.blocks else len(agent.blocks)
                agent.blocks.insert(position, live.thought)
            live.thought.finish(event.reasoning, event.time)
        if event.text.strip():
            if live.text is None:
                live.text = TextBlock()
                calls = [agent.blocks.index(tool) for tool in live.calls.values() if tool in agent.blocks]
                agent.blocks.insert(min(calls, default=len(agent.blocks)), live.text)
            live.text.finish(event.text)
        elif live.text is not None:
            agent.blocks.remove(live.text)
        live.text = live.thought = None

    def _drop_live(self, event: e.Event) -> None:
        """Close what the model was writing; calls that never became whole go away."""
        live = self._live.pop(event.agent_id, None)
        if live is None:
            return
        if live.text is not None:
            live.text.finish()
        self._end_thought(live, event.time)
        blocks = self._agent(event).blocks
        for tool in live.calls.values():
            if tool in blocks:
                blocks.remove(tool)

    @staticmethod
    def _end_thought(live: _Live, at: float) -> None:
        if live.thought is not None and not live.thought.finished:
            live.thought.finish(time=at)

    def _request_retried(self, event: e.RequestRetried) -> None:
        self._drop_live(event)
        wait = f" in {event.wait_s:.0f} s" if event.wait_s >= 1 else ""
        self._add(event, NoteBlock(f"{event.reason} — trying again{wait} (attempt {event.attempt})", "warning"))
        self._begin(event, "prefill")

    # Tools and approvals

    def _tool(self, event: Any, name: str = "") -> ToolBlock:
        tool = self._tools.get(event.call_id)
        if tool is None:
            tool = self._tools[event.call_id] = ToolBlock(name)
            self._add(event, tool)
        return tool

    def _policy_decided(self, event: e.PolicyDecided) -> None:
        tool = self._tools.get(event.call_id)
        if tool is not None:
            tool.reason = event.reason
            tool.changed()

    def _approval_requested(self, event: e.ApprovalRequested) -> None:
        plan = self._plans.get(event.call_id)
        self.state.approvals[event.request_id] = Approval(
            request_id=event.request_id,
            agent_id=event.agent_id,
            kind=event.kind,
            title=event.title,
            reason=event.reason,
            detail=event.detail,
            pattern=event.pattern,
            scopes=event.scopes,
            steps=len(plan.plan.steps) if plan else 0,
            plan_path=plan.plan.path if plan else "",
        )
        tool = self._tool(event)
        if event.kind == "tool":
            tool.label = event.title
            tool.reason = event.reason
        tool.state = "waiting"
        tool.changed()
        self._begin(event, "waiting", event.title)

    def _approval_decided(self, event: e.ApprovalDecided) -> None:
        self.state.approvals.pop(event.request_id, None)
        tool = self._tools.get(event.call_id)
        if tool is not None:
            tool.state = "running" if event.approved else "denied"
            tool.changed()
        self._begin(event, "tool", tool.label if tool else "")

    def _tool_started(self, event: e.ToolStarted) -> None:
        tool = self._tool(event, event.name)
        tool.label = event.label or event.name
        tool.state = "running"
        tool.changed()
        self._begin(event, "tool", tool.label)

    def _tool_output(self, event: e.ToolOutput) -> None:
        tool = self._tools.get(event.call_id)
        if tool is not None:
            tool.live.append(event.text)
            if len(tool.live) > 2 * LIVE_FRAGMENTS:
                del tool.live[:LIVE_FRAGMENTS]
            tool.changed()

    def _tool_finished(self, event: e.ToolFinished) -> None:
        tool = self._tool(event, event.name)
        details = event.details
        tool.state = event.status
        tool.label = tool.label or event.name
        tool.content = event.content
        tool.live.clear()
        tool.seconds = event.duration_ms / 1000
        diff, code, output_file = details.get("diff"), details.get("exit_code"), details.get("output_file")
        if isinstance(diff, str) and diff:
            tool.diff = diff
        tool.exit_code = code if isinstance(code, int) else None
        tool.output_file = output_file if isinstance(output_file, str) else ""
        tool.changed()
        plan = self._plans.get(event.call_id)
        if plan is not None and plan.decision == "waiting":
            plan.decision = "unanswered"
            plan.changed()
        self._begin(event, "tool")

    def _file_changed(self, event: e.FileChanged) -> None:
        tool = self._tools.get(event.call_id)
        if tool is not None and not tool.diff:
            tool.diff = event.diff
            tool.changed()

    def _settle(self, state: Any) -> None:
        """Nothing runs any more: a call without a result was interrupted."""
        for tool in self._tools.values():
            if tool.state in {"writing", "running", "waiting"}:
                tool.state = state
                tool.changed()

    # The plan and its steps

    def _plan_written(self, event: e.PlanWritten) -> None:
        block = PlanBlock(_plan_view(event.plan, event.path, event.plan_hash))
        tool = self._tools.get(event.call_id)
        blocks = self._agent(event).blocks
        if tool in blocks:
            blocks.remove(tool)
        self._plans[event.call_id] = self._plan = block
        self._add(event, block)

    def _plan_decided(self, event: e.PlanDecided) -> None:
        block = self._plans.get(event.call_id) or self._plan
        if block is None:
            return
        block.decision, block.words = event.decision, event.words
        block.plan = _plan_view(event.plan, block.plan.path, event.plan_hash)
        block.changed()
        if event.decision != "rejected":
            self._approved = block

    def _mark_step(self, step: int, state: Any) -> None:
        if self._approved is not None and 0 < step <= len(self._approved.plan.steps):
            self._approved.plan.steps[step - 1].state = state
            self._approved.changed()

    def _step_started(self, event: e.StepStarted) -> None:
        self._mark_step(event.step, "running")

    def _step_finished(self, event: e.StepFinished) -> None:
        self._mark_step(event.step, event.outcome)

    def _snapshot_taken(self, event: e.SnapshotTaken) -> None:
        self._add(event, NoteBlock(f"Files recorded before step {event.step}: {event.commit[:10]}"))

    def _check_finished(self, event: e.CheckFinished) -> None:
        check = event.check
        if check.exit_code is None:
            note = NoteBlock(f"Check could not be run: {check.command}", "warning")
        elif check.exit_code == 0:
            note = NoteBlock(f"Check passed: {check.command}", "success")
        else:
            note = NoteBlock(f"Check failed with exit status {check.exit_code}: {check.command}", "error")
        note.output = check.output
        self._add(event, note)

    # The provider

    def _error_raised(self, event: e.ErrorRaised) -> None:
        self._add(event, ErrorBlock(event.message, event.hint))

    def _prompt_progressed(self, event: e.PromptProgressed) -> None:
        from late.tui.state import Prefill

        agent = self._agent(event)
        agent.prefill = Prefill(event.total, event.cached, event.processed, event.elapsed_ms, self._clock())
        if agent.prefill.speed:
            agent.prompt_speed = agent.prefill.speed
        self._begin(event, "prefill")

    def _tokens_counted(self, event: e.TokensCounted) -> None:
        self._count(self._agent(event), event.usage)

    def _provider_waited(self, event: e.ProviderWaited) -> None:
        self._begin(event, _PROVIDER_ACTIVITY[event.state], one_line(event.message))

    @staticmethod
    def _count(agent: AgentView, usage: e.Usage) -> None:
        if usage.prompt_tokens is not None:
            agent.context_used = usage.prompt_tokens + (usage.completion_tokens or 0)
            agent.estimated = usage.estimated
        if usage.completion_tokens and usage.completion_ms:
            agent.decode_speed = usage.completion_tokens * 1000 / usage.completion_ms
        if usage.prompt_tokens and usage.prompt_ms:
            read = usage.prompt_tokens - (usage.cached_tokens or 0)
            agent.prompt_speed = read * 1000 / usage.prompt_ms if read > 0 else agent.prompt_speed


def _plan_view(plan: e.Plan, path: str, plan_hash: str) -> PlanView:
    steps = [StepView(cleaned(step.title), step.files, step.instruction, step.verify) for step in plan.steps]
    return PlanView(plan.title, plan.summary, steps, path, plan_hash)
