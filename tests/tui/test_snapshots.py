"""Pictures of the screen's states.

`pytest tests/tui/test_snapshots.py --snapshot-update` takes new ones; look at them before they are committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from textual.pilot import Pilot

from late.errors import ProviderError
from late.events import Event, PromptProgressed, TurnStarted
from late.tui.app import LateApp
from support import scenes
from support.fake_session import FakeSession, opener

Step = tuple[str, str]
"""Words to wait for, and the key to press then."""
PLAN: Step = ("Approve this plan?", "y")
TOOL: Step = ("coder-1 waits for you", "f2")
PREFILL: list[Event] = [
    TurnStarted(turn=1),
    PromptProgressed(total=12_400, cached=4_100, processed=7_600, elapsed_ms=5_100),
]


@pytest.fixture
def shot(snap_compare: Callable[..., bool], monkeypatch: pytest.MonkeyPatch) -> Callable[..., bool]:
    monkeypatch.setattr("late.tui.link.__version__", "1.2.3")

    def take(
        session: FakeSession,
        *steps: Step,
        until: str,
        size: tuple[int, int] = (120, 40),
        first: str | None = "The invoice total is off by a cent. Fix it.",
        theme: str = "late-dark",
    ) -> bool:
        app = LateApp(opener(session), directory="~/sample", first_message=first, theme=theme)
        now = 1000.0
        app.clock = lambda: now

        async def prepare(pilot: Pilot[int]) -> None:
            nonlocal now
            for words, key in steps:
                await _until(pilot, lambda seen=words: seen in _screen(app))
                if words == PLAN[0]:
                    await _until(pilot, lambda: app.card is not None and app.card.has_focus)
                now += 5
                await pilot.press(key)
            await _until(pilot, lambda: until in _screen(app))
            await pilot.pause(0.3)

        return snap_compare(app, terminal_size=size, run_before=prepare)

    return take


def _screen(app: LateApp) -> str:
    rows = app.screen._compositor.render_strips(app.size)
    return "\n".join("".join(segment.text for segment in row) for row in rows)


async def _until(pilot: Pilot[int], true: Callable[[], bool]) -> None:
    for _ in range(300):
        await pilot.pause()
        if true():
            return
        await pilot.pause(0.01)
    pytest.fail("that never happened")


def _run() -> FakeSession:
    end = scenes.answered("Step 1 is **done**: `total()` adds up exact values.")
    return FakeSession([[*scenes.planned(), *scenes.coded(), *end]])


def _unanswered() -> FakeSession:
    return FakeSession(refusals=[ProviderError("Nothing answers at http://localhost:8080/v1.")] * 100)


def test_welcome(shot: Callable[..., bool]) -> None:
    assert shot(FakeSession(), until="F1 shows all keys.", first=None)


def test_answer(shot: Callable[..., bool]) -> None:
    session = FakeSession([scenes.answered(thought="It rounds per line.")])
    assert shot(session, until="ready", first="Why is the total wrong?")


def test_answer_in_the_light_theme(shot: Callable[..., bool]) -> None:
    session = FakeSession([scenes.answered(thought="It rounds per line.")])
    assert shot(session, until="ready", first="Why is the total wrong?", theme="late-light")


def test_prefill(shot: Callable[..., bool]) -> None:
    class Reading(FakeSession):
        async def _play(self, message_id: str, text: str) -> None:
            for event in PREFILL:
                self.publish(event)

    assert shot(Reading(), until="61%")


def test_plan_waits_for_approval(shot: Callable[..., bool]) -> None:
    assert shot(_run(), until=" y ")


def test_tool_waits_for_approval_in_a_small_window(shot: Callable[..., bool]) -> None:
    assert shot(_run(), PLAN, TOOL, until="allow once", size=(80, 24))


def test_coder_with_diff_and_check(shot: Callable[..., bool]) -> None:
    steps: Sequence[Step] = (PLAN, TOOL, ("allow once", "y"), ("adds up exact values.", "tab"))
    assert shot(_run(), *steps, until="Check passed")


def test_planner_at_the_end(shot: Callable[..., bool]) -> None:
    assert shot(_run(), PLAN, TOOL, ("allow once", "y"), until="adds up exact values.")


def test_no_server(shot: Callable[..., bool]) -> None:
    assert shot(_unanswered(), until="late --local", first=None, size=(80, 24))


def test_help(shot: Callable[..., bool]) -> None:
    assert shot(FakeSession(), ("F1 shows all keys.", "f1"), until="keys and commands", first=None)
