"""Asking the person: when the card for a decision comes up, when it takes the keys, and what becomes of the answer."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from textual.app import SuspendNotSupported

from late.errors import LateError
from late.tui.blocks import PlanBlock
from late.tui.state import ARMING_S

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from textual.timer import Timer

    from late.tui.state import Approval
    from late.tui.surface import Surface
    from late.tui.theme import Palette
    from late.tui.widgets.approval import ApprovalCard

LEFT_ALONE_S = 3600.0
"""How long a card that was left with Esc does not take the focus by itself."""


class Decisions:
    """The approvals that are waited for, and the card that asks for the one of the agent in front."""

    def __init__(self, app: Surface) -> None:
        self.card: ApprovalCard | None = None
        """Made when there is something to decide for the first time."""
        self.came_from: str | None = None
        """Where the person was before they went to a decision elsewhere; the view returns there by itself."""
        self._app = app
        self._timer: Timer | None = None
        self._announced: set[str] = set()

    def show(self) -> None:
        """Bring the card up to the state."""
        app = self._app
        mine = next((a for a in app.state.approvals.values() if a.agent_id == app.view.agent_id), None)
        card = self.card
        if card is None:
            if mine is not None:
                self._mount()
            else:
                self._announce(None)
            return
        if card.approval is not mine:
            had_focus = card.approval is not None and card.holds_focus
            card.show(mine)
            if mine is None and had_focus:
                app.to_prompt()
        self._announce(mine)
        if mine is not None and not card.holds_focus:
            self._focus_when_quiet()

    def set_palette(self, palette: Palette) -> None:
        """Draw the card in other colours."""
        if self.card is not None:
            self.card.palette = palette
            self.card.draw()

    def go_to(self) -> bool:
        """Show the decision that is waited for longest, unless one of the agent in front is; false if there is none."""
        app = self._app
        waiting = next(iter(app.state.approvals.values()), None)
        if waiting is None:
            return False
        if not any(a.agent_id == app.view.agent_id for a in app.state.approvals.values()):
            came_from = app.view.agent_id
            app.show_agent(waiting.agent_id)
            self.came_from = came_from
        if self.card is not None:
            self.card.take_focus(by_itself=False)
        return True

    def rearm(self) -> None:
        """Somebody came back to the terminal: their first keys are no answer to what came up meanwhile."""
        if self.card is not None:
            self.card.rearm()

    def leave(self) -> bool:
        """Take the focus from the card; false if it has none."""
        if self.card is None or not self.card.has_focus:
            return False
        self._app.to_prompt()
        self._app.last_key = self._app.clock() + LEFT_ALONE_S
        return True

    def prompt_changed(self) -> None:
        """Somebody writes, or does not any more."""
        card = self.card
        if self._app.prompt.text:
            if card is not None and card.has_focus and card.by_itself:
                self._app.to_prompt()
        elif self._app.state.approvals:
            self._focus_when_quiet()

    def answer(self, event: ApprovalCard.Decided) -> None:
        """Take the person's answer to the session; what is wrong with it is shown on the card."""
        from late.session.session import Decision

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
            self._app.link.decide(event.approval.request_id, decision)
        except LateError as error:
            card.problem = f"{error} {error.hint}".strip()
            card.draw()
            return
        self._app.to_prompt()

    def _mount(self) -> None:
        from late.tui.theme import palette_of
        from late.tui.widgets.approval import ApprovalCard

        app = self._app
        self.card = ApprovalCard(palette_of(app.current_theme), self._pass_on)
        self.card.clock = app.clock
        app.screen_stack[0].mount(self.card, before=app.prompt)
        app.call_after_refresh(app.bring_up)

    def _announce(self, mine: Approval | None) -> None:
        new = self._app.state.approvals.keys() - self._announced
        if not new:
            return
        self._announced |= new
        self._app.ring()
        if mine is not None and mine.request_id in new and mine.kind == "plan":
            self._app.call_after_refresh(self._show_plan)

    def _show_plan(self) -> None:
        blocks = self._app.view.blocks
        plan = next((block for block in reversed(blocks) if isinstance(block, PlanBlock)), None)
        if plan is not None:
            self._app.transcript.show_block(plan)

    def _focus_when_quiet(self) -> None:
        """Give the card the focus once the input is empty and no key was pressed for a moment."""
        app, card = self._app, self.card
        if card is None or card.approval is None or card.holds_focus:
            return
        if app.prompt.text or len(app.screen_stack) > 1:
            return
        wait = app.last_key + ARMING_S - app.clock()
        if wait <= 0:
            card.take_focus(by_itself=True)
            return
        if self._timer is not None:
            self._timer.stop()
        self._timer = app.set_timer(wait, self._focus_when_quiet)

    def _pass_on(self, character: str) -> None:
        """A letter that was no answer goes to the input, where the person thought to be."""
        self._app.last_key = self._app.clock()
        self._app.to_prompt()
        self._app.prompt.insert(character)

    def _edit_plan(self, card: ApprovalCard, approval: Approval) -> None:
        """Open the plan's file in the person's editor; what they make of it is approved afterwards, with `y`."""
        import shlex
        import subprocess

        session = self._app.link.session
        assert session is not None
        path = session.directory / (approval.plan_path or "implementation_plan.md")
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        before = _content(path)
        try:
            with self._terminal_lent():
                status = subprocess.run([*shlex.split(editor), str(path)], check=False).returncode
        except (OSError, ValueError) as error:
            card.problem = f"The editor `{editor}` could not be started: {error}. Set EDITOR to another one."
        else:
            card.edited = card.edited or _content(path) != before
            card.problem = "" if status == 0 else f"`{editor}` ended with exit status {status}."
        self._app.refresh(layout=True)
        card.draw()
        card.take_focus(by_itself=False)

    @contextmanager
    def _terminal_lent(self) -> Generator[None]:
        """Give the terminal to another program, where there is one to give; an editor may have its own window."""
        with ExitStack() as stack:
            with suppress(SuspendNotSupported):
                stack.enter_context(self._app.suspend())
            yield


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
