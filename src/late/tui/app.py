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
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.binding import Binding
from textual.widgets import TextArea

from late.errors import LateError
from late.tui.blocks import NoteBlock, UserBlock
from late.tui.deciding import Decisions
from late.tui.state import PLANNER
from late.tui.statusline import TICK_S
from late.tui.surface import Surface
from late.tui.theme import DARK, THEMES, palette_of, theme_named
from late.tui.widgets.bars import StatusBar, Tabs
from late.tui.widgets.prompt import Prompt
from late.tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.driver import Driver
    from textual.timer import Timer

    from late.tui.link import Open
    from late.tui.widgets.approval import ApprovalCard

FLUSH_S = 0.1
"""Least seconds between two repaints while events stream in."""
FIRST_S = 0.01
"""Seconds from the first event of a burst to its repaint: what follows at once is painted with it, and the engine is
not kept from sending a request."""
TWICE_S = 2.0
"""Seconds in which a key that asks for confirmation has to be pressed again."""
PAINTED_S = 0.05
"""Seconds between the first paint and the import of the engine, so that a key that waits is shown first."""


class LateApp(Surface):
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
        super().__init__(open_session, directory, _driver_class())
        self.failure: LateError | None = None
        """Why the session could not be opened; for the caller to tell once the screen is gone."""
        self._directory = directory
        self._first_message = first_message
        for one in THEMES:
            self.register_theme(one)
        self.theme = theme
        self.decisions = Decisions(self)
        self._flush_handle: asyncio.TimerHandle | None = None
        self._last_flush = 0.0
        self._asked: dict[str, float] = {}
        """Keys that wait to be pressed again, and until when."""
        self._clock_timer: Timer | None = None
        self._was_running = False

    # Screen

    def compose(self) -> ComposeResult:  # noqa: D102
        palette = palette_of(self.current_theme)
        view = self.state.planner
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
        self.decisions.set_palette(palette)

    @property
    def card(self) -> ApprovalCard | None:
        """The card for decisions, once there was something to decide."""
        return self.decisions.card

    # Session

    async def _start(self, *, fresh: bool = False) -> None:
        try:
            opened = await self.link.open(fresh=fresh)
        except LateError as error:
            self.failure = error
            self.exit(return_code=1)
            return
        if opened.theme is not None and (theme := theme_named(opened.theme)):
            self.theme = theme
        if not opened.mouse:
            _release_mouse(self._driver)
        for block in self.state.planner.blocks:
            if isinstance(block, UserBlock) and block.source == "person":
                self.prompt.remember(block.content)
        if self._first_message is not None:
            message, self._first_message = self._first_message, None
            self._submit(message)
        await self.link.connect()

    async def _start_anew(self) -> None:
        await self.link.replace()
        self.status.state = self.tabs.state = self.state
        self.show_agent(PLANNER)
        await self._start(fresh=True)

    def bring_up_soon(self) -> None:
        """Repaint: at once if the last time was long enough ago, else as soon as it is."""
        if self._flush_handle is None:
            wait = self._last_flush + FLUSH_S - time.monotonic()
            self._flush_handle = asyncio.get_running_loop().call_later(max(FIRST_S, wait), self.bring_up)

    def bring_up(self) -> None:
        """Bring the widgets up to the state."""
        if self._flush_handle is not None:
            self._flush_handle.cancel()
            self._flush_handle = None
        if not self.is_running or not self.screen_stack:
            return
        self._last_flush = time.monotonic()
        if self.decisions.came_from is not None and self.view.outcome is not None:
            self.show_agent(self.decisions.came_from)
            return
        self.transcript.sync()
        several = len(self.state.agents) > 1
        if several != self.tabs.has_class("-several"):
            self.tabs.set_class(several, "-several")
        if several:
            self.tabs.renew()
        self.status.renew()
        self.decisions.show()
        if self._was_running and not self.state.running:
            self.ring()
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
            self.show_agent(PLANNER)
        self.run_worker(self.link.submit(text), group="submit")

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
            self._note("\n".join(f"{fact.name}: {fact.value}" for fact in self.link.facts()))
        else:
            session_id = self.link.session.id if self.link.session else None
            self._note(
                f"This is session {session_id}. `late --resume {session_id}` comes back to it."
                if session_id
                else "The session gets its id with the first message."
            )

    def _go_on(self) -> None:
        session = self.link.session
        if session is None or not self.link.connected or not session.interrupted:
            self.flash("Nothing was interrupted.")
            return
        self.run_worker(session.go_on(), group="submit")

    def _new_session(self) -> None:
        if self.link.session is None or self.link.session.busy:
            self.flash("An agent works here: stop it first with Esc.")
            return
        self.run_worker(self._start_anew(), group="session")

    def _note(self, words: str) -> None:
        self.view.blocks.append(NoteBlock(words))
        self.bring_up()

    # Agents

    def show_agent(self, agent_id: str) -> None:
        """Bring an agent to the front."""
        view = self.state.agents[agent_id]
        self.decisions.came_from = None
        self.tabs.front = agent_id
        self.status.view = view
        self.transcript.show(view)
        self.bring_up()

    def action_cycle_agent(self, direction: int) -> None:
        """Bring the next agent to the front."""
        names = list(self.state.agents)
        if len(names) > 1:
            self.show_agent(names[(names.index(self.view.agent_id) + direction) % len(names)])

    @on(Tabs.Chosen)
    @on(Transcript.AgentOpened)
    def _agent_chosen(self, event: Tabs.Chosen | Transcript.AgentOpened) -> None:
        if event.agent_id in self.state.agents:
            self.show_agent(event.agent_id)

    # Approvals

    def action_to_approval(self) -> None:
        """Go to the decision that is waited for, in whatever agent."""
        if not self.decisions.go_to():
            self.flash("Nobody waits for a decision.")

    def on_app_focus(self) -> None:
        """The terminal's window is looked at again."""
        self.decisions.rearm()

    def on_approval_card_decided(self, event: ApprovalCard.Decided) -> None:
        """Take the person's answer to the session."""
        self.decisions.answer(event)

    @on(Prompt.Typed)
    def _typed(self) -> None:
        self.last_key = self.clock()

    @on(TextArea.Changed, "Prompt")
    def _prompt_changed(self) -> None:
        from late.tui import slash

        matches = slash.matching(self.prompt.text) if self.prompt.text.startswith("/") else []
        words = "   ".join(f"{c.name} {c.words}" if len(matches) < 3 else c.name for c in matches)
        if words or self.status.words.startswith("/"):
            self.status.words = words
            self.status.renew()
        self.decisions.prompt_changed()

    @on(Prompt.Refused)
    def _paste_refused(self) -> None:
        self.flash("That is no text: it was not pasted.")

    # Keys

    def _confirmed(self, key: str, question: str) -> bool:
        """Whether a key was pressed for the second time; the first time it asks."""
        now = self.clock()
        if self._asked.pop(key, -1.0) >= now:
            self.end_flash()
            return True
        self._asked[key] = now + TWICE_S
        self.flash(question, TWICE_S)
        return False

    def action_focus_prompt(self) -> None:
        """Put the cursor into the input."""
        self.to_prompt()

    def action_stop_or_close(self) -> None:
        """Esc: leave the card, or ask before the agent in front is stopped."""
        if self.decisions.leave():
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
        session = self.link.session
        if session is None or not session.busy:
            self.flash("Nothing runs.")
            return
        self.flash(f"Stopping {agent_id or 'all agents'}")
        self.run_worker(session.stop(agent_id), group="stop")

    def action_help(self) -> None:
        """Show all keys and commands."""
        from late.tui.screens.help import HelpScreen

        self.push_screen(HelpScreen(palette_of(self.current_theme)))

    def action_toggle_details(self) -> None:
        """Open or close all results and thoughts."""
        self.transcript.toggle_details()

    def action_retry(self) -> None:
        """Look for the server now."""
        if self.link.look_again():
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
        await self.link.leave()
        self.exit(return_code=status)

    def _terminated(self, number: int) -> None:
        self._leave_now(128 + number)


def _driver_class() -> type[Driver] | None:
    """Our own driver where Textual would take the one it is made from; `None` leaves the choice to Textual."""
    if sys.platform == "win32" or "TEXTUAL_DRIVER" in os.environ:
        return None
    from late.tui.driver import CompactDriver

    return CompactDriver


def _release_mouse(driver: Driver | None) -> None:
    """Leave the mouse to the terminal, where ours is the driver in use."""
    from late.tui.driver import CompactDriver

    if isinstance(driver, CompactDriver):
        driver.release_mouse()
