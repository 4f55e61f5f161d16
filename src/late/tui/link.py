"""The front end's link to its session: opens it, looks for its server, keeps messages until one answers."""

from __future__ import annotations

import asyncio
import importlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from late import __version__
from late.errors import ProviderError
from late.tui.blocks import Block, ErrorBlock, Fact, NoteBlock, UserBlock, WelcomeBlock
from late.tui.state import PLANNER, ScreenState

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from late.events import Event
    from late.session.session import Decision, Session
    from late.tui.present import Presenter

RETRY_S = 3.0
"""Seconds between two looks for a server that does not answer."""
_ADVICE = [
    "Say what you want changed. A plan comes first; nothing is touched before you approve it.",
    "F1 shows all keys.",
]


class Opened(NamedTuple):
    """A session, and what a person should know about the settings it was opened with."""

    session: Session
    warnings: tuple[str, ...] = ()
    theme: str | None = None
    """A theme's short name (`dark`, `light`, `ansi`); `None` where the settings name none."""
    mouse: bool = True
    """Whether the mouse is ours, or the terminal's own for selecting text."""


class Open(Protocol):
    """Opens the session of this process, or with `fresh` another new one."""

    def __call__(self, *, fresh: bool = False) -> Coroutine[Any, Any, Opened]: ...  # noqa: D102


class Link:
    """One session at a time, and the state that its events are folded into.

    `renew` is called after every change that is no event, `received` after every event.
    """

    def __init__(
        self,
        open_session: Open,
        directory: str,
        *,
        clock: Callable[[], float],
        renew: Callable[[], None],
        received: Callable[[], None],
    ) -> None:
        self.state = ScreenState()
        self.session: Session | None = None
        self.session_id: str | None = None
        """The session that was left last."""
        self.connected = False
        self._open = open_session
        self._directory = directory
        self._clock = clock
        self._renew = renew
        self._received = received
        self._presenter: Presenter | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._held: list[str] = []
        """Messages that were written before a server answered."""
        self._trouble: Block | None = None
        """The block that says that no server answers."""
        self._retry = asyncio.Event()
        self._welcome = WelcomeBlock(__version__)
        self._begin()

    def _begin(self) -> None:
        self._welcome = WelcomeBlock(__version__)
        self._welcome.facts = [Fact("directory", self._directory)]
        self.state.planner.activity = "starting"
        self.state.planner.blocks.append(self._welcome)

    async def open(self, *, fresh: bool = False) -> Opened:
        """Open the session and show what was in it so far; `connect` comes after that.

        Raises:
            LateError: it cannot be opened.
        """
        opened = await self._open(fresh=fresh)
        session = opened.session
        presenter_class = (await asyncio.to_thread(_import_presenter)).Presenter
        presenter: Presenter = presenter_class(self.state, self._clock)
        history = session.history()
        presenter.fold(history)
        self.session, self._presenter = session, presenter
        self._unsubscribe = session.subscribe(self._receive)
        if history:
            self._welcome.facts = [Fact("directory", str(session.directory)), Fact("session", session.id or "")]
            self._welcome.changed()
        self.state.planner.blocks.extend(NoteBlock(warning, "warning") for warning in opened.warnings)
        return opened

    async def connect(self) -> None:
        """Ask for the model until somebody answers; then send what was written meanwhile."""
        session = self.session
        if session is None:
            return
        self.state.planner.begin("connecting", self._clock())
        self._renew()
        while session is self.session:
            try:
                await session.connect()
            except ProviderError as error:
                self._no_server(error)
            else:
                break
            self._retry.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._retry.wait(), RETRY_S)
        if session is not self.session:
            return
        self._server_found()
        held, self._held = self._held, []
        for number, text in enumerate(held):
            self.state.planner.queued.pop(f"held-{number}", None)
            await session.submit(text)
        if not held and session.interrupted:
            words = "The last run was interrupted. /continue goes on with it; or write what to do now."
            self.state.planner.blocks.append(NoteBlock(words))
        self._renew()

    def look_again(self) -> bool:
        """Look for the server now; false when it was found already."""
        self._retry.set()
        return not self.connected

    async def submit(self, text: str) -> None:
        """Send a message, or keep it until a server answers."""
        if self.session is None or not self.connected:
            self.state.planner.queued[f"held-{len(self._held)}"] = UserBlock(text, queued=True)
            self._held.append(text)
            self._renew()
        else:
            await self.session.submit(text)

    def decide(self, request_id: str, decision: Decision) -> None:
        """Answer an approval.

        Raises:
            LateError: it is not open any more, or the edited plan cannot be read.
        """
        assert self.session is not None
        self.session.decide(request_id, decision)

    async def replace(self) -> None:
        """Leave the session and open a new one."""
        await self.leave()
        self.connected = False
        self.state = ScreenState()
        self._trouble = None
        self._begin()

    async def leave(self) -> None:
        """Let the session go; what runs is left as the log has it, so that an open question is asked again."""
        session, self.session = self.session, None
        self._retry.set()
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        if session is not None:
            self.session_id = session.id
            await (session.suspend() if session.busy else session.close())

    def facts(self) -> list[Fact]:
        """What serves this session."""
        facts = [fact for fact in self._welcome.facts if fact.name in {"directory", "session"}]
        for role, model in self.state.models.items():
            parts = [model.model]
            if model.context_window:
                parts.append(f"{model.context_window:,} tokens")
            if model.slots:
                parts.append(f"{model.slots} slots" if model.slots != 1 else "1 slot")
            parts.append(f"{model.dialect} calls")
            facts.append(Fact("model" if role == PLANNER else role, " · ".join(parts)))
            facts.append(Fact("server", f"{model.server} at {model.endpoint}"))
        return facts

    def _receive(self, event: Event) -> None:
        assert self._presenter is not None
        self._presenter.apply(event)
        self._received()

    def _no_server(self, error: ProviderError) -> None:
        self.state.planner.begin("unreachable", self._clock(), "looking again every few seconds")
        if self._trouble is None:
            from late.tui.noserver import NoServerBlock

            self._trouble = NoServerBlock(str(error), error.hint)
            self.state.planner.blocks.append(self._trouble)
        elif isinstance(self._trouble, ErrorBlock) and self._trouble.message != str(error):
            self._trouble.message, self._trouble.hint = str(error), error.hint
            self._trouble.changed()
        self._renew()

    def _server_found(self) -> None:
        self.connected = True
        planner = self.state.planner
        if self._trouble in planner.blocks:
            planner.blocks.remove(self._trouble)
        self._trouble = None
        if planner.activity in {"connecting", "unreachable", "loading", "starting", "paused"}:
            planner.begin("idle", self._clock())
        self._welcome.facts = self.facts()
        self._welcome.advice = _ADVICE
        self._welcome.changed()


def _import_presenter() -> Any:
    importlib.import_module("markdown_it")  # so that the first answer is shown at once
    return importlib.import_module("late.tui.present")
