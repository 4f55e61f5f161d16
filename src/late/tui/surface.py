"""What the parts of the application share: the widgets of the first screen and a few gestures."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual.app import App

from late.tui.link import Link
from late.tui.widgets.bars import StatusBar, Tabs
from late.tui.widgets.prompt import Prompt
from late.tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.driver import Driver
    from textual.timer import Timer

    from late.tui.link import Open
    from late.tui.state import AgentView, ScreenState

FLASH_S = 3.0
"""Seconds for which a few words stand in the status line."""
QUIET_S = 10.0
"""After so many seconds without a key the bell says that a decision is needed or that the work is done."""


class Surface(App[int]):
    """The application as its parts see it."""

    def __init__(self, open_session: Open, directory: str, driver_class: type[Driver] | None) -> None:
        super().__init__(driver_class=driver_class)
        self.clock: Callable[[], float] = time.monotonic
        self.last_key = -QUIET_S
        """When a key was pressed last, by `clock`."""
        self.link = Link(open_session, directory, clock=self._now, renew=self.bring_up, received=self.bring_up_soon)
        self._flash_timer: Timer | None = None

    def bring_up(self) -> None:
        """Bring the widgets up to the state."""
        raise NotImplementedError

    def bring_up_soon(self) -> None:
        """The same, but not more often than the eye can follow."""
        raise NotImplementedError

    def show_agent(self, agent_id: str) -> None:
        """Bring an agent to the front."""
        raise NotImplementedError

    @property
    def state(self) -> ScreenState:
        """What is shown."""
        return self.link.state

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

    def to_prompt(self) -> None:
        """Put the cursor into the input."""
        self.screen_stack[0].set_focus(self.prompt)

    def flash(self, words: str, seconds: float = FLASH_S) -> None:
        """Show a few words in the status line for a moment."""
        if self._flash_timer is not None:
            self._flash_timer.stop()
        self.status.words = words
        self.status.renew()
        self._flash_timer = self.set_timer(seconds, self.end_flash)

    def end_flash(self) -> None:
        """Take them away again."""
        self.status.words = ""
        self.status.renew()

    def ring(self) -> None:
        """Ring the terminal's bell for somebody who does not seem to be there."""
        if self.clock() - self.last_key > QUIET_S:
            self.bell()

    def _now(self) -> float:
        return self.clock()
