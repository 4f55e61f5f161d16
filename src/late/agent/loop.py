"""The turn loop of one agent: request → stream → calls → results, until it has nothing more to do."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Literal

from late.errors import ProviderError
from late.events import (
    AssistantMessage,
    MessageDelivered,
    PromptProgressed,
    ProviderWaited,
    ReasoningDelta,
    RequestRetried,
    TextDelta,
    TokensCounted,
    ToolCall,
    ToolCallDelta,
    TurnStarted,
)
from late.llm.dialects.base import rendered
from late.llm.messages import AgentMessage, Conversation, ToolMessage, UserMessage
from late.llm.provider import (
    CallFragment,
    Completed,
    Counted,
    Legal,
    ModelProvider,
    Progress,
    Reasoning,
    Retrying,
    StreamItem,
    Text,
    TurnRequest,
    Waiting,
)
from late.tools.runner import Emit, ToolRunner

Source = Literal["person", "harness", "planner"]

SAME_RESULT_LIMIT = 3
"""The same call with the same result this often in a row stops an agent."""
CUT_LIMIT = 3
"""Answers in a row that hit the length limit before an agent is stopped."""
HOLLOW_LIMIT = 2
"""Empty answers in a row before an agent is stopped; the first one is answered with a nudge."""

NUDGE = "Your answer was empty. Go on with the task: use a tool, or say what you found."
CUT = "Your answer was cut off at the length limit. Go on, more briefly; split long writes into smaller ones."
CUT_CALL = "Not run: the answer was cut off at the length limit. Send the call again, in smaller pieces."


@dataclass(frozen=True, slots=True)
class Finish:
    """A move of the harness: nothing is left to ask the model; this is the answer."""

    text: str


Move = Legal | Finish | None
"""What an agent may do next. `None`: whatever it likes, within its tools."""


@dataclass(frozen=True, slots=True)
class TurnsEnd:
    """Why the loop ended. `text` is the last answer, or what went wrong."""

    reason: Literal["answered", "out_of_turns", "looping", "cut", "hollow", "error"]
    text: str
    hint: str = ""


@dataclass(slots=True)
class Inbox:
    """Messages that wait for an agent's next turn boundary."""

    waiting: deque[tuple[str, str, Source]] = field(default_factory=deque[tuple[str, str, Source]])

    def put(self, message_id: str, text: str, source: Source) -> None:
        """Add a message."""
        self.waiting.append((message_id, text, source))


@dataclass(slots=True)
class Agent:
    """One agent at work. It owns its conversation; everything else is lent to it."""

    id: str
    role: str
    conversation: Conversation
    provider: ModelProvider
    runner: ToolRunner
    emit: Emit
    max_turns: int
    slot: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    inbox: Inbox = field(default_factory=Inbox)
    next_move: Callable[[], Move] | None = None
    """Narrows each turn where the model's dialect needs it."""
    turns: int = 0

    def tell(self, text: str, source: Source, message_id: str = "") -> None:
        """Put a message into the conversation."""
        self.emit(MessageDelivered(agent_id=self.id, message_id=message_id, text=text, source=source))
        self.conversation.append(UserMessage(text, source))


async def run_turns(agent: Agent) -> TurnsEnd:
    """Run turns until the agent answers in words, or is stopped by a limit.

    Cancelling the task stops it at once; the conversation is then still valid.
    """
    run = _Run(agent)
    # A resumed conversation may end with calls that nobody has answered yet.
    for call in agent.conversation.open_calls():
        await _run_call(agent, call)
    while True:
        try:
            end = await run.turn()
        except ProviderError as error:
            return TurnsEnd("error", str(error), error.hint)
        if end is not None:
            return end


async def run_turn(agent: Agent) -> TurnsEnd | None:
    """Run a single turn; `None` when the agent has not said its last word with it."""
    return await _Run(agent).turn()


class _Run:
    """The counters of one run of an agent."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._repeats = _Repeats()
        self._cut = 0
        self._hollow = 0

    async def turn(self) -> TurnsEnd | None:
        """One turn; `None` when another one has to follow."""
        agent = self._agent
        while agent.inbox.waiting:
            message_id, text, source = agent.inbox.waiting.popleft()
            agent.tell(text, source, message_id)
        if agent.turns >= agent.max_turns:
            return TurnsEnd("out_of_turns", f"It stopped after its limit of {agent.max_turns} turns.")
        answer = await _turn(agent, agent.next_move() if agent.next_move else None)
        if answer.finish in {"length", "repetition"}:
            return self._was_cut(answer)
        self._cut = 0
        if answer.calls:
            self._hollow = 0
            return await self._calls(answer)
        if answer.text.strip():
            return TurnsEnd("answered", answer.text)
        return self._was_hollow()

    def _was_cut(self, answer: AssistantMessage) -> TurnsEnd | None:
        """No call of a cut answer runs, also not one whose arguments happen to parse."""
        self._cut += 1
        self._refuse(answer.calls, CUT_CALL)
        if self._cut >= CUT_LIMIT:
            return TurnsEnd("cut", f"Its answers were cut off {self._cut} times in a row.")
        self._agent.tell(CUT, "harness")
        return None

    def _was_hollow(self) -> TurnsEnd | None:
        self._hollow += 1
        if self._hollow >= HOLLOW_LIMIT:
            return TurnsEnd("hollow", "It gave no answer, twice in a row.")
        self._agent.tell(NUDGE, "harness")
        return None

    async def _calls(self, answer: AssistantMessage) -> TurnsEnd | None:
        all_ok = True
        for call in answer.calls:
            status, content = await _run_call(self._agent, call)
            all_ok = all_ok and status == "ok"
            if self._repeats.count(call, content) >= SAME_RESULT_LIMIT:
                self._refuse(self._agent.conversation.open_calls(), "Not run: the agent was stopped.")
                return TurnsEnd(
                    "looping", f"It called {call.name} {SAME_RESULT_LIMIT} times in a row with the same result."
                )
        if answer.final and all_ok and not self._agent.inbox.waiting:
            return TurnsEnd("answered", answer.text)
        return None

    def _refuse(self, calls: Iterable[ToolCall], why: str) -> None:
        for call in calls:
            _record(self._agent, call, self._agent.runner.refuse(call, why).content)


async def _run_call(agent: Agent, call: ToolCall) -> tuple[str, str]:
    try:
        finished = await agent.runner.run(call)
    except asyncio.CancelledError:
        _record(agent, call, "Cancelled by the person before it ended.")
        for rest in agent.conversation.open_calls():
            _record(agent, rest, agent.runner.refuse(rest, "Not run: cancelled by the person.", "cancelled").content)
        raise
    _record(agent, call, finished.content)
    return finished.status, finished.content


def _record(agent: Agent, call: ToolCall, content: str) -> None:
    agent.conversation.append(ToolMessage(call.id, call.name, content))


async def _turn(agent: Agent, move: Move) -> AssistantMessage:
    """Ask the model once, or take the only possible move without asking."""
    agent.turns += 1
    if isinstance(move, Finish):
        return _commit(agent, _by_harness(agent, AgentMessage(text=move.text)))
    if isinstance(move, Legal) and move.forced is not None:
        return _commit(agent, _by_harness(agent, AgentMessage(calls=(move.forced,))))
    agent.emit(TurnStarted(agent_id=agent.id, turn=agent.turns))
    request = TurnRequest(
        messages=agent.conversation.all(),
        tools=agent.runner.registry.specs(),
        legal=move,
        slot=agent.slot,
        max_tokens=agent.max_tokens,
        temperature=agent.temperature,
    )
    shown: list[str] = []
    try:
        async with aclosing(agent.provider.stream(request)) as stream:
            async for item in stream:
                if isinstance(item, Completed):
                    return _commit(agent, _message(agent, item))
                _show(agent, item, shown)
    except asyncio.CancelledError:
        _keep_partial(agent, shown, "cancelled")
        raise
    except ProviderError:
        _keep_partial(agent, shown, "error")
        raise
    raise ProviderError("The model's stream ended without an answer.", "Send the message again.")


def _keep_partial(agent: Agent, shown: list[str], finish: Literal["cancelled", "error"]) -> None:
    """What was streamed before a failure stays visible and in the conversation."""
    if text := "".join(shown):
        _commit(agent, AssistantMessage(agent_id=agent.id, text=text, finish=finish))


def _message(agent: Agent, item: Completed) -> AssistantMessage:
    return AssistantMessage(
        agent_id=agent.id,
        text=item.text,
        reasoning=item.reasoning,
        calls=item.calls,
        raw=item.raw,
        finish=item.finish,
        final=item.final,
        usage=item.usage,
        first_byte_ms=item.first_byte_ms,
    )


def _by_harness(agent: Agent, message: AgentMessage) -> AssistantMessage:
    return AssistantMessage(
        agent_id=agent.id, text=message.text, calls=message.calls, raw=rendered(message), author="harness"
    )


def _commit(agent: Agent, message: AssistantMessage) -> AssistantMessage:
    agent.emit(message)
    agent.conversation.append(
        AgentMessage(text=message.text, reasoning=message.reasoning, calls=message.calls, raw=message.raw)
    )
    return message


def _show(agent: Agent, item: StreamItem, shown: list[str]) -> None:
    me = agent.id
    match item:
        case Text(text):
            shown.append(text)
            agent.emit(TextDelta(agent_id=me, text=text))
        case Reasoning(text):
            agent.emit(ReasoningDelta(agent_id=me, text=text))
        case CallFragment(index, name, arguments):
            agent.emit(ToolCallDelta(agent_id=me, index=index, name=name, arguments=arguments))
        case Progress(total, cached, processed, elapsed):
            agent.emit(
                PromptProgressed(agent_id=me, total=total, cached=cached, processed=processed, elapsed_ms=elapsed)
            )
        case Counted(usage):
            agent.emit(TokensCounted(agent_id=me, usage=usage))
        case Waiting(state, message, elapsed):
            agent.emit(ProviderWaited(agent_id=me, state=state, message=message, elapsed_s=elapsed))
        case Retrying(attempt, reason, wait, partial):
            shown.clear()
            agent.emit(RequestRetried(agent_id=me, attempt=attempt, reason=reason, wait_s=wait, partial_text=partial))
        case Completed():
            pass


class _Repeats:
    """Counts the same call with the same result in a row."""

    def __init__(self) -> None:
        self._last: tuple[str, str, str] | None = None
        self._times = 0

    def count(self, call: ToolCall, content: str) -> int:
        this = (call.name, call.arguments, content)
        self._times = self._times + 1 if this == self._last else 1
        self._last = this
        return self._times
