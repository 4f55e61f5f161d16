"""A session for tests of the front end: it has the interface of `late.session.session.Session` and replays real events.

Nothing of the engine is in it. An act is a list of events that a message sets off; where an act asks for approval the
fake waits for `decide`, publishes the answer, and goes on with the act, or with what was given for a no.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from late.errors import ProviderError, UserError
from late.events import (
    ApprovalDecided,
    ApprovalRequested,
    Event,
    MessageDelivered,
    MessageQueued,
    ModelConnected,
    RunFinished,
    RunStarted,
)
from late.tui.link import Opened

if TYPE_CHECKING:
    from late.session.session import Decision

MODEL = ModelConnected(
    role="planner",
    endpoint="http://localhost:8080/v1",
    model="qwen2.5-coder-7b-instruct",
    server="llama.cpp",
    context_window=32768,
    slots=2,
    vision=False,
    dialect="native",
)


class FakeSession:
    """Replays acts, one for each message; a message after the last act is only delivered."""

    def __init__(
        self,
        acts: Sequence[Sequence[Event]] = (),
        *,
        history: Sequence[Event] = (),
        otherwise: Sequence[Event] = (),
        model: ModelConnected = MODEL,
        refusals: Sequence[ProviderError] = (),
        pace: float = 0.0,
        directory: Path = Path("/home/ada/sample"),
    ) -> None:
        self.id: str | None = "20260101-120000-abcd" if history else None
        self.directory = directory
        self.interrupted = False
        self.submitted: list[str] = []
        self.decisions: list[tuple[str, Decision]] = []
        self.stopped: list[str | None] = []
        self.closed = False
        self.suspended = False
        self.went_on = False
        self.connects = 0
        self.refuse_decisions: UserError | None = None
        self._acts = [list(act) for act in acts]
        self._history = list(history)
        self._otherwise = list(otherwise)
        self._model = model
        self._refusals = list(refusals)
        self._pace = pace
        self._receivers: list[Callable[[Event], None]] = []
        self._run: asyncio.Task[None] | None = None
        self._questions: dict[str, asyncio.Future[Decision]] = {}

    @property
    def busy(self) -> bool:
        return self._run is not None and not self._run.done()

    def subscribe(self, receive: Callable[[Event], None]) -> Callable[[], None]:
        self._receivers.append(receive)
        return lambda: self._receivers.remove(receive)

    def history(self) -> list[Event]:
        return self._history

    def publish(self, event: Event) -> None:
        for receive in tuple(self._receivers):
            receive(event)

    async def connect(self) -> ModelConnected:
        self.connects += 1
        if self._refusals:
            raise self._refusals.pop(0)
        self.publish(self._model)
        return self._model

    async def submit(self, text: str) -> None:
        message_id = f"msg_{len(self.submitted)}"
        self.submitted.append(text)
        self.id = self.id or "20260101-120000-abcd"
        self.publish(MessageQueued(message_id=message_id, text=text))
        if not self.busy:
            self._run = asyncio.get_running_loop().create_task(self._play(message_id, text))

    async def _play(self, message_id: str, text: str) -> None:
        self.publish(MessageDelivered(message_id=message_id, text=text))
        self.publish(RunStarted())
        act = self._acts.pop(0) if self._acts else []
        try:
            while act:
                event = act.pop(0)
                if isinstance(event, ApprovalRequested):
                    if not await self._ask(event):
                        act = list(self._otherwise)
                    continue
                self.publish(event)
                if event.transient and self._pace:
                    await asyncio.sleep(self._pace)
        except asyncio.CancelledError:
            self.publish(RunFinished(reason="cancelled"))
            return
        self.publish(RunFinished(reason="done"))

    async def _ask(self, request: ApprovalRequested) -> bool:
        question = self._questions[request.request_id] = asyncio.get_running_loop().create_future()
        self.publish(request)
        decision = await question
        self.publish(
            ApprovalDecided(
                agent_id=request.agent_id,
                request_id=request.request_id,
                call_id=request.call_id,
                approved=decision.approved,
                scope=decision.scope,
                words=decision.words,
            )
        )
        return decision.approved

    def decide(self, request_id: str, decision: Decision) -> None:
        if self.refuse_decisions is not None:
            raise self.refuse_decisions
        question = self._questions.pop(request_id, None)
        if question is None:
            raise UserError("That question is not open any more.")
        self.decisions.append((request_id, decision))
        question.set_result(decision)

    async def stop(self, agent_id: str | None = None) -> None:
        self.stopped.append(agent_id)
        if self._run is not None and not self._run.done():
            self._run.cancel()
            await asyncio.wait([self._run])

    async def go_on(self) -> None:
        self.interrupted = False
        self.went_on = True

    async def suspend(self) -> None:
        self.suspended = True
        await self.close()

    async def wait_idle(self) -> None:
        if self._run is not None:
            await asyncio.wait([self._run])

    async def close(self) -> None:
        self.closed = True
        if self._run is not None and not self._run.done():
            self._run.cancel()
            await asyncio.wait([self._run])


def opener(session: FakeSession, warnings: tuple[str, ...] = ()) -> Callable[..., Coroutine[object, object, Opened]]:
    """What `LateApp` is given to open its session with."""

    async def open_session(*, fresh: bool = False) -> Opened:
        return Opened(session, warnings)  # type: ignore[arg-type]

    return open_session
