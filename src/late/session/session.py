"""The facade between the engine and its front ends: one session, its log, its questions and its agents."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from late import __version__
from late.agent.crew import Crew
from late.agent.history import agents_of
from late.agent.loop import TurnsEnd
from late.agent.planner import Planner, overview
from late.agent.subagents import Subagents
from late.errors import LateError, UserError
from late.events import (
    PLANNER,
    ApprovalDecided,
    ApprovalRequested,
    ErrorRaised,
    Event,
    MessageDelivered,
    MessageQueued,
    ModelConnected,
    RunFinished,
    RunStarted,
    Scope,
    SessionResumed,
    SessionStarted,
    ToolFinished,
    ToolStarted,
)
from late.llm.messages import ToolMessage
from late.llm.provider import ModelInfo, ModelProvider
from late.session.store import SessionStore

E = TypeVar("E", bound=Event)
Receive = Callable[[Event], None]

UNSAFE_TO_REPEAT = frozenset({"write_file", "target_edit", "bash"})
"""Tools that are never run again by themselves when a log ends in the middle of them."""
INTERRUPTED = "Interrupted: late was stopped while this ran. Look at the state of the files before doing it again."


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's answer to an `ApprovalRequested`."""

    approved: bool
    scope: Scope = "once"
    words: str = ""
    """For the model; a rejected plan's words go back to the planner."""
    edited: bool = False
    """A plan's file was edited by the person while answering: what it says now is approved."""
    by_flag: bool = False
    """Answered by `--approve` and not by a person at this moment."""


class Session:
    """One session. Everything in it happens on one event loop.

    Nothing is written before the first message; from then on the log is only ever appended to.
    """

    def __init__(self, store: SessionStore, directory: Path, *, session_id: str | None = None) -> None:
        self.directory = directory
        self.id = session_id
        self.interrupted = False
        """The log ends in the middle of a run: `go_on` takes it up."""
        self._store = store
        self._locks = ExitStack()
        self._receivers: list[Receive] = []
        self._crew: Crew | None = None
        self._subagents: Subagents | None = None
        self._planner: Planner | None = None
        self._providers: tuple[ModelProvider, ...] = ()
        self._run: asyncio.Task[None] | None = None
        self._questions: dict[str, asyncio.Future[Decision]] = {}
        self._queue: list[tuple[str, str]] = []
        self._connected: dict[str, ModelConnected] = {}
        self._suspended = False
        self._to_take_up = False
        self._cut_off: list[ToolStarted] = []

    def equip(self, crew: Crew, subagents: Subagents) -> None:
        """Hand over the agents' surroundings; done once, by `open_session`."""
        self._crew, self._subagents = crew, subagents
        self._providers = (crew.planner_provider, crew.subagent_provider)
        if self.id is not None:
            self._restore(self.id, crew)

    @property
    def busy(self) -> bool:
        """Is the planner at work (or waiting for a decision)?"""
        return self._run is not None and not self._run.done()

    def subscribe(self, receive: Receive) -> Callable[[], None]:
        """Get every event from now on: stored ones after their commit, deltas at once. Returns a way out."""
        self._receivers.append(receive)
        return lambda: self._receivers.remove(receive)

    def history(self) -> list[Event]:
        """The stored events so far."""
        return list(self._store.events(self.id)) if self.id else []

    def publish(self, event: E) -> E:
        """Store an event, unless it is a delta, and show it to everybody."""
        if self._suspended:
            return event
        if not event.transient:
            if self.id is None:
                self._begin()
            assert self.id is not None
            event = self._store.append(self.id, event)
        for receive in tuple(self._receivers):
            receive(event)
        return event

    async def connect(self) -> ModelInfo:
        """Ask the planner's endpoint what it serves, and make ready what the first request needs.

        Raises:
            ProviderError: nothing answers there.
        """
        info = await self.crew.planner_provider.connect()
        self._note_model("planner", info)
        if self._planner is None and not self.crew.records:
            self.crew.overview = await overview(self.crew, info)
        return info

    async def submit(self, text: str) -> None:
        """Give a message to the planner: at once when it is idle, else at its next turn boundary."""
        self._take_up()
        message_id = f"msg_{uuid.uuid4().hex[:12]}"
        self.publish(MessageQueued(message_id=message_id, text=text))
        if self.busy and self._planner is not None:
            self._planner.agent.inbox.put(message_id, text, "person")
            return
        self._queue.append((message_id, text))
        if not self.busy:
            self._start()

    async def go_on(self) -> None:
        """Take up a run that was interrupted: open questions are asked again, nothing is silently repeated."""
        if self.interrupted and not self.busy:
            self.interrupted = False
            self._take_up()
            self._start()

    def decide(self, request_id: str, decision: Decision) -> None:
        """Answer a question.

        Raises:
            UserError: nobody asks that, or not any more.
        """
        question = self._questions.get(request_id)
        if question is None or question.done():
            raise UserError("That question is not open any more.")
        question.set_result(decision)

    async def ask(self, request: ApprovalRequested) -> ApprovalDecided:
        """Publish a question and wait for its answer; implements `Approver`."""
        question: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._questions[request.request_id] = question
        try:
            self.publish(request)
            decision = await question
        finally:
            self._questions.pop(request.request_id, None)
        return self.publish(
            ApprovalDecided(
                agent_id=request.agent_id,
                request_id=request.request_id,
                call_id=request.call_id,
                approved=decision.approved,
                scope=decision.scope,
                words=decision.words,
                edited=decision.edited,
                by="flag" if decision.by_flag else "person",
            )
        )

    async def stop(self, agent_id: str | None = None) -> None:
        """Stop one subagent (the planner gets its report), or everything."""
        assert self._subagents is not None
        task = self._subagents.running.get(agent_id or "")
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        elif self._run is not None and agent_id in (None, PLANNER):
            self._run.cancel()
            await asyncio.wait([self._run])

    async def wait_idle(self) -> None:
        """Wait until the planner is idle."""
        while self.busy and self._run is not None:
            await asyncio.wait([self._run])

    async def suspend(self) -> None:
        """Leave everything as the log has it, open questions included, so that `--resume` goes on from there."""
        self._suspended = True
        await self.close()

    async def close(self) -> None:
        """Stop all work and give back the session's lock and the endpoints."""
        if self._run is not None and not self._run.done():
            self._run.cancel()
            await asyncio.wait([self._run])
        for provider in dict.fromkeys(self._providers):
            await provider.close()
        self._locks.close()

    @property
    def crew(self) -> Crew:
        """The agents' surroundings."""
        assert self._crew is not None
        return self._crew

    def _begin(self) -> None:
        self.id = self._store.create(self.directory)
        self._locks.enter_context(self._store.lock(self.id))
        self.publish(SessionStarted(session_id=self.id, directory=str(self.directory), late_version=__version__))
        for connected in self._connected.values():
            self.publish(connected)

    def _restore(self, session_id: str, crew: Crew) -> None:
        """Stand where the log ends."""
        self._locks.enter_context(self._store.lock(session_id))
        events = list(self._store.events(session_id))
        for event in events:
            crew.board.apply(event)
        crew.records = agents_of(events)
        crew.spawned = sum(record.started.parent_id is not None for record in crew.records.values())
        delivered = {event.message_id for event in events if isinstance(event, MessageDelivered)}
        self._queue = [
            (event.message_id, event.text)
            for event in events
            if isinstance(event, MessageQueued) and event.message_id not in delivered
        ]
        last = next((event for event in reversed(events) if isinstance(event, RunStarted | RunFinished)), None)
        self.interrupted = isinstance(last, RunStarted) or bool(self._queue)
        finished = {event.call_id for event in events if isinstance(event, ToolFinished)}
        self._cut_off = [
            event
            for event in events
            if isinstance(event, ToolStarted) and event.call_id not in finished and event.name in UNSAFE_TO_REPEAT
        ]
        self._to_take_up = True

    def _take_up(self) -> None:
        """Go on with a log: say so, and answer the calls that ended with the process. Looking alone writes nothing."""
        if not self._to_take_up:
            return
        self._to_take_up = False
        self.publish(SessionResumed(late_version=__version__))
        for started in self._cut_off:
            self.publish(
                ToolFinished(
                    agent_id=started.agent_id,
                    call_id=started.call_id,
                    name=started.name,
                    status="interrupted",
                    content=INTERRUPTED,
                )
            )
            if record := self.crew.records.get(started.agent_id):
                record.conversation.append(ToolMessage(started.call_id, started.name, INTERRUPTED))

    def _start(self) -> None:
        self._run = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        """Run the planner until nothing is left to do. Every end is recorded."""
        self.publish(RunStarted())
        try:
            end = await self._run_planner()
        except asyncio.CancelledError:
            self.publish(RunFinished(reason="cancelled", message="Stopped."))
            self._keep_queue()
            return
        except LateError as error:
            self._fail(str(error), error.hint)
            return
        except Exception as error:
            # The outermost frame of the engine: whatever it was, the log says so before it goes on as a bug.
            self._fail(f"late has a bug: {type(error).__name__}: {error}", "Please report it; the session is kept.")
            raise
        if end.reason == "error":
            self._fail(end.text, end.hint)
            return
        failed = bool(self.crew.board.in_state("failed"))
        match end.reason:
            case "answered":
                self.publish(RunFinished(reason="failed" if failed else "done", message=self.crew.board.summary()))
            case "out_of_turns":
                self.publish(RunFinished(reason="out_of_turns", message=end.text))
            case _:
                self.publish(RunFinished(reason="failed", message=end.text))

    async def _run_planner(self) -> TurnsEnd:
        planner = await self._ready_planner()
        end = TurnsEnd("answered", "")
        first = True
        while first or planner.agent.inbox.waiting or self._queue:
            first = False
            for message_id, text in self._queue:
                planner.agent.inbox.put(message_id, text, "person")
            self._queue.clear()
            end = await planner.run()
            if end.reason != "answered":
                break
        return end

    async def _ready_planner(self) -> Planner:
        info = await self.crew.planner_provider.connect()
        self._note_model("planner", info)
        if self.crew.subagent_provider is not self.crew.planner_provider:
            self._note_model("subagent", await self.crew.subagent_provider.connect())
        if self._planner is None:
            self._planner = Planner(self.crew, info)
            self.subscribe(self._planner.observe)
        return self._planner

    def _keep_queue(self) -> None:
        """Messages that were not delivered before a stop wait for the next run."""
        if self._planner is not None:
            waiting = self._planner.agent.inbox.waiting
            self._queue += [(message_id, text) for message_id, text, _ in waiting]
            waiting.clear()

    def _fail(self, message: str, hint: str) -> None:
        self._keep_queue()
        self.publish(ErrorRaised(message=message, hint=hint))
        self.publish(RunFinished(reason="error", message=message))

    def _note_model(self, role: str, info: ModelInfo) -> None:
        connected = ModelConnected(
            role=role,
            endpoint=info.endpoint,
            model=info.model,
            server=info.server,
            context_window=info.context_window,
            slots=info.slots,
            vision=info.vision,
            dialect=info.dialect,
        )
        if self._connected.get(role) == connected:
            return
        self._connected[role] = connected
        if self.id is not None:
            self.publish(connected)
        else:
            for receive in tuple(self._receivers):
                receive(connected)
