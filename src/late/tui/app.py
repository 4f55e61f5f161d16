"""The application: one screen, one session, and the way between them.

What happened comes as events through `Session.subscribe` and is folded by `late.tui.present`; what the person wants
goes out through the session's methods. The engine is imported after the first paint.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from textual import on
from textual.app import App, SuspendNotSupported
from textual.binding import Binding
from textual.widgets import TextArea

from late import __version__
from late.errors import LateError, ProviderError
from late.tui.blocks import Block, ErrorBlock, Fact, NoteBlock, PlanBlock, UserBlock, WelcomeBlock
from late.tui.state import ARMING_S, PLANNER, ScreenState
from late.tui.statusline import TICK_S
from late.tui.theme import DARK, THEMES, palette_of
from late.tui.widgets.bars import StatusBar, Tabs
from late.tui.widgets.prompt import Prompt
from late.tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from textual.app import ComposeResult
    from textual.driver import Driver
    from textual.timer import Timer

    from late.events import Event
    from late.session.session import Session
    from late.tui.present import Presenter
    from late.tui.state import AgentView, Approval
    from late.tui.widgets.approval import ApprovalCard

FLUSH_S = 0.1
"""Least seconds between two repaints while events stream in; the first of a burst is shown at once."""
RETRY_S = 3.0
"""Seconds between two looks for a server that does not answer."""
TWICE_S = 2.0
"""Seconds in which a key that asks for confirmation has to be pressed again."""
FLASH_S = 3.0
LEFT_ALONE_S = 3600.0
"""How long a card that was left with Esc does not take the focus by itself."""
PAINTED_S = 0.05
"""Seconds between the first paint and the import of the engine, so that a key that waits is shown first."""
QUIET_S = 10.0
"""After so many seconds without a key the bell says that a decision is needed or that the work is done."""


class Opened(NamedTuple):
    """A session, and what a person should know about the settings it was opened with."""

    session: Session
    warnings: tuple[str, ...] = ()


class Open(Protocol):
    """Opens the session of this process, or with `fresh` another new one."""

    def __call__(self, *, fresh: bool = False) -> Coroutine[Any, Any, Opened]: ...  # noqa: D102


class LateApp(App[int]):
    """The terminal interface of `late`."""

    TITLE = "late"
    CSS_PATH = "late.tcss"
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = "Prompt"
    BINDINGS: ClassVar[list[Any]] = [
        Binding("escape", "stop_or_close", show=False),
        Binding("ctrl+g", "stop_now", show=False, priority=True),
        Binding("f1", "help", show=False),
        Binding("f2,ctrl+t", "to_approval", show=False, priority=True),
        Binding("tab", "cycle_agent(1)", show=False),
        Binding("shift+tab", "cycle_agent(-1)", show=False, priority=True),
        Binding("ctrl+o", "toggle_details", show=False, priority=True),
        Binding("ctrl+r", "retry", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "transcript_start", show=False),
        Binding("end", "transcript_end", show=False),
        Binding("ctrl+c", "copy_clear_or_quit", show=False),
        Binding("ctrl+d,ctrl+q", "leave", show=False, priority=False),
    ]

    def __init__(
        self, open_session: Open, *, directory: str, first_message: str | None = None, theme: str = DARK.name
    ) -> None:
        super().__init__(driver_class=_driver_class())
        self.failure: LateError | None = None
        """Why the session could not be opened; for the caller to tell once the screen is gone."""
        self.clock: Callable[[], float] = time.monotonic
        self._open = open_session
        self._directory = directory
        self._first_message = first_message
        for one in THEMES:
            self.register_theme(one)
        self.theme = theme
        self.state = ScreenState()
        self.state.planner.activity = "starting"
        self._session: Session | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._presenter: Presenter | None = None
        self._connected = False
        self._held: list[str] = []
        """Messages that were written before a server answered."""
        self.card: ApprovalCard | None = None
        """The card for decisions, once there was something to decide."""
        self._welcome = WelcomeBlock(__version__)
        self._welcome.facts = [Fact("directory", directory)]
        self._trouble: Block | None = None
        """The block that says that no server answers."""
        self._retry = asyncio.Event()
        self._flush_handle: asyncio.TimerHandle | None = None
        self._last_flush = 0.0
        self._last_key = -QUIET_S
        self._asked: dict[str, float] = {}
        """Keys that wait to be pressed again, and until when."""
        self._clock_timer: Timer | None = None
        self._flash_timer: Timer | None = None
        self._focus_timer: Timer | None = None
        self._seen_approvals: set[str] = set()
        self._was_running = False
        self._came_from: str | None = None
        """Where the person was before a decision was asked for elsewhere; the view returns there by itself."""

    # Screen

    def compose(self) -> ComposeResult:  # noqa: D102
        palette = palette_of(self.current_theme)
        view = self.state.planner
        view.blocks.append(self._welcome)
        yield Tabs(self.state, palette)
        yield Transcript(view, palette)
        yield Prompt(placeholder="Ask for a change, or a question. Enter sends, Ctrl+J breaks the line.")
        status = StatusBar(self.state, palette, self._directory)
        status.clock = self.clock
        yield status

    def on_mount(self) -> None:
        """Take the terminal's signals; open the session once the first screen is painted."""
        self._clock_timer = self.set_interval(TICK_S, self._tick, pause=True)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, self._terminated, number)
        self.theme_changed_signal.subscribe(self, self._theme_changed)
        self.call_after_refresh(self.set_timer, PAINTED_S, self._after_first_paint)

    def _after_first_paint(self) -> None:
        self.run_worker(self._start(), name="session", group="session", exit_on_error=True)

    def _theme_changed(self, _theme: object) -> None:
        palette = palette_of(self.current_theme)
        self.transcript.set_palette(palette)
        for widget in (self.tabs, self.status):
            widget.palette = palette
            widget.refresh()
        if self.card is not None:
            self.card.palette = palette
            self.card.draw()

    @property
    def transcript(self) -> Transcript:
        """The transcript of the agent in front."""
        return self.screen_stack[0].query_one(Transcript)

    @property
    def tabs(self) -> Tabs:
        """The row of agents."""
        return self.screen_stack[0].query_one(Tabs)

    @property
    def status(self) -> StatusBar:
        """The status line."""
        return self.screen_stack[0].query_one(StatusBar)

    @property
    def prompt(self) -> Prompt:
        """The input."""
        return self.screen_stack[0].query_one(Prompt)

    @property
    def view(self) -> AgentView:
        """The agent in front."""
        return self.transcript.view

    # Session

    async def _start(self, *, fresh: bool = False) -> None:
        try:
            session, warnings = await self._open(fresh=fresh)
        except LateError as error:
            self.failure = error
            self.exit(return_code=1)
            return
        presenter_class = (await asyncio.to_thread(_import_presenter)).Presenter
        self._session = session
        presenter: Presenter = presenter_class(self.state, self.clock)
        self._presenter = presenter
        history = session.history()
        presenter.fold(history)
        for block in self.state.planner.blocks:
            if isinstance(block, UserBlock) and block.source == "person":
                self.prompt.remember(block.content)
        self._unsubscribe = session.subscribe(self._receive)
        if history:
            self._welcome.facts = [Fact("directory", str(session.directory)), Fact("session", session.id or "")]
        self._welcome.changed()
        self.state.planner.blocks.extend(NoteBlock(warning, "warning") for warning in warnings)
        if self._first_message is not None:
            message, self._first_message = self._first_message, None
            self._submit(message)
        await self._connect(session)

    async def _connect(self, session: Session) -> None:
        """Ask for the model until somebody answers."""
        self.state.planner.begin("connecting", self.clock())
        self._bring_up()
        while session is self._session:
            try:
                await session.connect()
            except ProviderError as error:
                self._no_server(error)
            else:
                break
            self._retry.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._retry.wait(), RETRY_S)
        if session is not self._session:
            return
        self._server_found()
        held, self._held = self._held, []
        for number, text in enumerate(held):
            self.state.planner.queued.pop(f"held-{number}", None)
            await session.submit(text)
        if not held and session.interrupted:
            self._note("The last run was interrupted. /continue goes on with it; or write what to do now.")
        self._bring_up()

    def _no_server(self, error: ProviderError) -> None:
        self.state.planner.begin("unreachable", self.clock(), "looking again every few seconds")
        if self._trouble is None:
            from late.tui.noserver import NoServerBlock

            self._trouble = NoServerBlock(str(error), error.hint)
            self.state.planner.blocks.append(self._trouble)
        elif isinstance(self._trouble, ErrorBlock) and self._trouble.message != str(error):
            self._trouble.message, self._trouble.hint = str(error), error.hint
            self._trouble.changed()
        self._bring_up()

    def _server_found(self) -> None:
        self._connected = True
        planner = self.state.planner
        if self._trouble in planner.blocks:
            planner.blocks.remove(self._trouble)
        self._trouble = None
        if planner.activity in {"connecting", "unreachable", "loading", "starting", "paused"}:
            planner.begin("idle", self.clock())
        self._welcome.facts = self._facts()
        self._welcome.advice = [
            "Say what you want changed. A plan comes first; nothing is touched before you approve it.",
            "F1 shows all keys.",
        ]
        self._welcome.changed()

    def _facts(self) -> list[Fact]:
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
        self._soon()

    def _soon(self) -> None:
        """Repaint: at once if the last time was long enough ago, else as soon as it is."""
        if self._flush_handle is None:
            wait = self._last_flush + FLUSH_S - time.monotonic()
            self._flush_handle = asyncio.get_running_loop().call_later(max(0.0, wait), self._bring_up)

    def _bring_up(self) -> None:
        """Bring the widgets up to the state."""
        if self._flush_handle is not None:
            self._flush_handle.cancel()
            self._flush_handle = None
        if not self.is_running or not self.screen_stack:
            return
        self._last_flush = time.monotonic()
        if self._came_from is not None and self.view.outcome is not None:
            self._show_agent(self._came_from)
            return
        self.transcript.sync()
        several = len(self.state.agents) > 1
        if several != self.tabs.has_class("-several"):
            self.tabs.set_class(several, "-several")
        if several:
            self.tabs.renew()
        self.status.renew()
        self._show_approval()
        if self._was_running and not self.state.running:
            self._ring()
        self._was_running = self.state.running
        if self._clock_timer is not None:
            (self._clock_timer.resume if self.state.moving else self._clock_timer.pause)()

    def _tick(self) -> None:
        self.status.renew()

    # Messages

    @on(Prompt.Submitted)
    def _submitted(self, event: Prompt.Submitted) -> None:
        from late.tui import slash

        command = slash.parse(event.text)
        if command is None:
            self._submit(event.text.strip())
        elif not slash.known(command[0]):
            self._note(f"There is no command {command[0]}. With a blank before it, it is sent as a message.")
            self.prompt.insert(event.text)
        else:
            self._command(command[0])

    def _submit(self, text: str) -> None:
        self.transcript.to_end()
        if self.view.agent_id != PLANNER:
            self._show_agent(PLANNER)
        if self._session is None or not self._connected:
            self.state.planner.queued[f"held-{len(self._held)}"] = UserBlock(text, queued=True)
            self._held.append(text)
            self._bring_up()
            return
        self.run_worker(self._session.submit(text), group="submit")

    def _command(self, name: str) -> None:
        if name == "/help":
            self.action_help()
        elif name == "/quit":
            self.action_leave()
        elif name == "/stop":
            self._stop(None)
        elif name == "/details":
            self.action_toggle_details()
        elif name == "/new":
            self._new_session()
        elif name == "/continue":
            self._go_on()
        elif name == "/model":
            self._note("\n".join(f"{fact.name}: {fact.value}" for fact in self._facts()))
        else:
            session_id = self._session.id if self._session else None
            self._note(
                f"This is session {session_id}. `late --resume {session_id}` comes back to it."
                if session_id
                else "The session gets its id with the first message."
            )

    def _go_on(self) -> None:
        if self._session is None or not self._connected or not self._session.interrupted:
            self.flash("Nothing was interrupted.")
            return
        self.run_worker(self._session.go_on(), group="submit")

    def _new_session(self) -> None:
        if self._session is None or self._session.busy:
            self.flash("An agent works here: stop it first with Esc.")
            return
        self.run_worker(self._replace_session(), group="session")

    async def _replace_session(self) -> None:
        old, self._session = self._session, None
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        self._retry.set()
        if old is not None:
            await old.close()
        self._connected = False
        self.state = ScreenState()
        self._welcome = WelcomeBlock(__version__)
        self._welcome.facts = [Fact("directory", self._directory)]
        self._trouble = None
        self.state.planner.blocks.append(self._welcome)
        self.status.state = self.tabs.state = self.state
        self._show_agent(PLANNER)
        await self._start(fresh=True)

    def _note(self, words: str) -> None:
        self.view.blocks.append(NoteBlock(words))
        self._bring_up()

    # Agents

    def _show_agent(self, agent_id: str) -> None:
        view = self.state.agents[agent_id]
        self._came_from = None
        self.tabs.front = agent_id
        self.status.view = view
        self.transcript.show(view)
        self._bring_up()

    def action_cycle_agent(self, direction: int) -> None:
        """Bring the next agent to the front."""
        names = list(self.state.agents)
        if len(names) > 1:
            self._show_agent(names[(names.index(self.view.agent_id) + direction) % len(names)])

    @on(Tabs.Chosen)
    @on(Transcript.AgentOpened)
    def _agent_chosen(self, event: Tabs.Chosen | Transcript.AgentOpened) -> None:
        if event.agent_id in self.state.agents:
            self._show_agent(event.agent_id)

    # Approvals

    def _show_approval(self) -> None:
        mine = next((a for a in self.state.approvals.values() if a.agent_id == self.view.agent_id), None)
        if self.card is None:
            if mine is not None:
                self._mount_card()
            else:
                self._announce(None)
            return
        if self.card.approval is not mine:
            had_focus = self.card.approval is not None and self.card.holds_focus
            self.card.show(mine)
            if mine is None and had_focus:
                self._to_prompt()
        self._announce(mine)
        if mine is not None and not self.card.holds_focus:
            self._focus_card_when_quiet()

    def _mount_card(self) -> None:
        from late.tui.widgets.approval import ApprovalCard

        self.card = ApprovalCard(palette_of(self.current_theme), self._overtyped)
        self.card.clock = self.clock
        self.screen_stack[0].mount(self.card, before=self.prompt)
        self.call_after_refresh(self._bring_up)

    def _announce(self, mine: Approval | None) -> None:
        new = self.state.approvals.keys() - self._seen_approvals
        if not new:
            return
        self._seen_approvals |= new
        self._ring()
        if mine is not None and mine.request_id in new and mine.kind == "plan":
            self.call_after_refresh(self._show_plan)

    def _show_plan(self) -> None:
        plan = next((block for block in reversed(self.view.blocks) if isinstance(block, PlanBlock)), None)
        if plan is not None:
            self.transcript.show_block(plan)

    def _focus_card_when_quiet(self) -> None:
        """Give the card the focus once the input is empty and no key was pressed for a moment."""
        card = self.card
        if card is None or card.approval is None or card.holds_focus:
            return
        if self.prompt.text or len(self.screen_stack) > 1:
            return
        wait = self._last_key + ARMING_S - self.clock()
        if wait <= 0:
            card.take_focus(by_itself=True)
            return
        if self._focus_timer is not None:
            self._focus_timer.stop()
        self._focus_timer = self.set_timer(wait, self._focus_card_when_quiet)

    def action_to_approval(self) -> None:
        """Go to the decision that is waited for, in whatever agent."""
        waiting = next(iter(self.state.approvals.values()), None)
        if waiting is None:
            self.flash("Nobody waits for a decision.")
            return
        if not any(a.agent_id == self.view.agent_id for a in self.state.approvals.values()):
            came_from = self.view.agent_id
            self._show_agent(waiting.agent_id)
            self._came_from = came_from
        if self.card is not None:
            self.card.take_focus(by_itself=False)

    def _overtyped(self, character: str) -> None:
        """A letter that was no answer goes to the input, where the person thought to be."""
        self._last_key = self.clock()
        self._to_prompt()
        self.prompt.insert(character)

    def _to_prompt(self) -> None:
        self.screen_stack[0].set_focus(self.prompt)

    @on(Prompt.Typed)
    def _typed(self) -> None:
        self._last_key = self.clock()

    @on(TextArea.Changed, "Prompt")
    def _prompt_changed(self) -> None:
        from late.tui import slash

        matches = slash.matching(self.prompt.text) if self.prompt.text.startswith("/") else []
        words = "   ".join(f"{c.name} {c.words}" if len(matches) < 3 else c.name for c in matches)
        if words or self.status.words.startswith("/"):
            self.status.words = words
            self.status.renew()
        card = self.card
        if self.prompt.text:
            if card is not None and card.has_focus and card.by_itself:
                self._to_prompt()
        elif self.state.approvals:
            self._focus_card_when_quiet()

    @on(Prompt.Refused)
    def _paste_refused(self) -> None:
        self.flash("That is no text: it was not pasted.")

    def on_approval_card_decided(self, event: ApprovalCard.Decided) -> None:
        """Take the person's answer to the session."""
        from late.session.session import Decision

        assert self._session is not None
        card = event.card
        if event.choice == "edit":
            self._edit_plan(card, event.approval)
            return
        if event.choice == "approve":
            scope: Any = event.detail
            decision = Decision(approved=True, scope=scope, edited=card.edited)
        else:
            decision = Decision(approved=False, words=event.detail)
        try:
            self._session.decide(event.approval.request_id, decision)
        except LateError as error:
            card.problem = f"{error} {error.hint}".strip()
            card.draw()
            return
        self._to_prompt()

    def _edit_plan(self, card: ApprovalCard, approval: Approval) -> None:
        """Open the plan's file in the person's editor; what they make of it is approved afterwards, with `y`."""
        import shlex
        import subprocess
        from pathlib import Path

        assert self._session is not None
        path = self._session.directory / (approval.plan_path or "implementation_plan.md")
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        before = path.read_bytes() if path.is_file() else b""
        try:
            with self._terminal_lent():
                status = subprocess.run([*shlex.split(editor), str(Path(path))], check=False).returncode
        except (OSError, ValueError) as error:
            card.problem = f"The editor `{editor}` could not be started: {error}. Set EDITOR to another one."
        else:
            changed = (path.read_bytes() if path.is_file() else b"") != before
            card.edited = card.edited or changed
            card.problem = "" if status == 0 else f"`{editor}` ended with exit status {status}."
        self.refresh(layout=True)
        card.draw()
        card.take_focus(by_itself=False)

    @contextmanager
    def _terminal_lent(self) -> Iterator[None]:
        """Give the terminal to another program, where there is one to give; an editor may have its own window."""
        with ExitStack() as stack:
            with suppress(SuspendNotSupported):
                stack.enter_context(self.suspend())
            yield

    # Keys

    def flash(self, words: str, seconds: float = FLASH_S) -> None:
        """Show a few words in the status line for a moment."""
        if self._flash_timer is not None:
            self._flash_timer.stop()
        self.status.words = words
        self.status.renew()
        self._flash_timer = self.set_timer(seconds, self._end_flash)

    def _end_flash(self) -> None:
        self.status.words = ""
        self.status.renew()

    def _ring(self) -> None:
        if self.clock() - self._last_key > QUIET_S:
            self.bell()

    def _confirmed(self, key: str, question: str) -> bool:
        """Whether a key was pressed for the second time; the first time it asks."""
        now = self.clock()
        if self._asked.pop(key, -1.0) >= now:
            self._end_flash()
            return True
        self._asked[key] = now + TWICE_S
        self.flash(question, TWICE_S)
        return False

    def action_focus_prompt(self) -> None:
        """Put the cursor into the input."""
        self._to_prompt()

    def action_stop_or_close(self) -> None:
        """Esc: leave the card, or ask before the agent in front is stopped."""
        if self.card is not None and self.card.has_focus:
            self._to_prompt()
            self._last_key = self.clock() + LEFT_ALONE_S
            return
        if self.screen.get_selected_text():
            self.screen.clear_selection()
            return
        if not self.state.running:
            return
        who = self.view.agent_id
        if self.view.outcome is not None:
            self.flash(f"{who} has ended. Tab goes to the planner.")
            return
        if self._confirmed("escape", f"Esc again stops {who}" + ("" if who == PLANNER else " (its report says so)")):
            self._stop(who)

    def action_stop_now(self) -> None:
        """Stop the agent in front without asking."""
        if self.state.running:
            self._stop(self.view.agent_id)

    def _stop(self, agent_id: str | None) -> None:
        if self._session is None or not self._session.busy:
            self.flash("Nothing runs.")
            return
        self.flash(f"Stopping {agent_id or 'all agents'}")
        self.run_worker(self._session.stop(agent_id), group="stop")

    def action_help(self) -> None:
        """Show all keys and commands."""
        from late.tui.screens.help import HelpScreen

        self.push_screen(HelpScreen(palette_of(self.current_theme)))

    def action_toggle_details(self) -> None:
        """Open or close all results and thoughts."""
        self.transcript.toggle_details()

    def action_retry(self) -> None:
        """Look for the server now."""
        if not self._connected:
            self._retry.set()
            self.flash("Looking for the server")

    def action_page(self, pages: int) -> None:
        """Move the transcript by screens."""
        self.transcript.scroll_pages(pages)

    def action_transcript_start(self) -> None:
        """Go to the start of the transcript."""
        self.transcript.to_start()

    def action_transcript_end(self) -> None:
        """Go to the end of the transcript and follow it."""
        self.transcript.to_end()

    def action_copy_clear_or_quit(self) -> None:
        """Ctrl+C: copy what is selected, else clear the input, else ask before leaving."""
        selected = self.screen.get_selected_text() or self.prompt.selected_text
        if selected:
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
            self.flash(f"Sent {len(selected)} characters to the terminal's clipboard")
        elif self.prompt.text:
            self.prompt.remember(self.prompt.text.strip())
            self.prompt.clear()
        elif self._confirmed("ctrl+c", "Ctrl+C again quits" + self._consequence()):
            self._leave_now()

    def action_leave(self) -> None:
        """Quit; ask first while an agent works."""
        if not self.state.running or self._confirmed("quit", "Again to quit" + self._consequence()):
            self._leave_now()

    def _consequence(self) -> str:
        return ": `late --continue` takes the work up again" if self.state.running else ""

    def _leave_now(self, status: int = 0) -> None:
        self.run_worker(self._close(status), group="leave", exclusive=True)

    async def _close(self, status: int) -> None:
        session, self._session = self._session, None
        self._retry.set()
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        if session is not None:
            self.session_id = session.id
            # What runs is left as the log has it: a decision that was waited for is asked for again.
            await (session.suspend() if session.busy else session.close())
        self.exit(return_code=status)

    session_id: str | None = None
    """The session that was open when the person left."""

    def _terminated(self, number: int) -> None:
        self._leave_now(128 + number)


def _driver_class() -> type[Driver] | None:
    """Our own driver where Textual would take the one it is made from; `None` leaves the choice to Textual."""
    if sys.platform == "win32" or "TEXTUAL_DRIVER" in os.environ:
        return None
    from late.tui.driver import CompactDriver

    return CompactDriver


def _import_presenter() -> Any:
    from late.tui import present

    return present
