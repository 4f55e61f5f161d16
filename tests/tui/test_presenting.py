"""Events become what the screen shows, and as for every consumer of the log, deltas change nothing in the end."""

from __future__ import annotations

import pytest

from late.events import (
    ApprovalDecided,
    ApprovalRequested,
    AssistantMessage,
    Event,
    ModelConnected,
    PromptProgressed,
    ProviderWaited,
    RequestRetried,
    RunFinished,
    RunStarted,
    StepFinished,
    TextDelta,
    TokensCounted,
    ToolCall,
    ToolCallDelta,
    ToolFinished,
    ToolStarted,
    TurnStarted,
    Usage,
)
from late.tui.canvas import Canvas
from late.tui.present import Presenter
from late.tui.state import PLANNER, ScreenState
from late.tui.statusline import status_line, tokens
from late.tui.theme import DARK, palette_of
from support import scenes

PALETTE = palette_of(DARK)
CANVAS = Canvas(100, PALETTE)


def answered_by_person(events: list[Event]) -> list[Event]:
    """With the decisions that `FakeSession` would publish."""
    whole: list[Event] = []
    for event in events:
        whole.append(event)
        if isinstance(event, ApprovalRequested):
            whole.append(
                ApprovalDecided(
                    agent_id=event.agent_id, request_id=event.request_id, call_id=event.call_id, approved=True
                )
            )
    return whole


def folded(events: list[Event], *, now: float = 0.0) -> ScreenState:
    state = ScreenState()
    presenter = Presenter(state, lambda: now)
    for event in events:
        presenter.apply(event)
    return state


def transcript(state: ScreenState, agent_id: str = PLANNER) -> str:
    view = state.agents[agent_id]
    return "\n".join(strip.text.rstrip() for block in view.blocks for strip in block.strips(CANVAS))


def status(state: ScreenState, *, now: float = 0.0, width: int = 120) -> str:
    line = status_line(state, state.planner, now=now, width=width, directory="~/x", palette=PALETTE)
    assert line.cell_len <= width
    return line.plain


def test_deltas_change_nothing_in_the_end() -> None:
    events = answered_by_person(
        [*scenes.answered(thought="Where?"), *scenes.planned(), *scenes.coded(), *scenes.answered("Done.")]
    )
    events.insert(0, TurnStarted(turn=1))
    live, stored = folded(events), folded([event for event in events if not event.transient])
    for agent_id in live.agents:
        assert transcript(live, agent_id).replace(" for 4.0 s", "").replace(" for 3.2 s", "") == transcript(
            stored, agent_id
        )


def test_the_stored_message_has_the_last_word_about_what_was_streamed() -> None:
    state = folded([TurnStarted(turn=1), TextDelta(text="Helo"), AssistantMessage(text="Hello.")])
    assert transcript(state) == "  Hello."


def test_a_call_is_seen_while_it_is_written_and_goes_away_when_it_never_becomes_whole() -> None:
    writing = [TurnStarted(turn=1), ToolCallDelta(index=0, name="write_file", arguments='{"path": "a.py"')]
    assert "· write_file  writing, 15 characters" in transcript(folded(writing))
    retried = [*writing, RequestRetried(attempt=2, reason="The stream broke off", wait_s=3)]
    assert transcript(folded(retried)) == "  ! The stream broke off — trying again in 3 s (attempt 2)"


def test_a_call_without_a_start_still_shows_its_result() -> None:
    call = AssistantMessage(calls=(ToolCall(id="c", name="bash", arguments="{}"),))
    refused = ToolFinished(call_id="c", name="bash", status="refused", content="The planner changes nothing.")
    assert transcript(folded([call, refused])).split("\n") == [
        "  ✗ bash  refused",
        "  │ The planner changes nothing.",
    ]


def test_a_resumed_session_shows_what_was_running_as_interrupted_and_asks_nothing() -> None:
    state = ScreenState()
    call = AssistantMessage(calls=(ToolCall(id="c", name="bash", arguments="{}"),))
    started = ToolStarted(call_id="c", name="bash", label="$ make")
    question = ApprovalRequested(request_id="r", call_id="c", kind="tool", title="$ make")
    Presenter(state).fold([RunStarted(), call, question, started])
    assert "- $ make  interrupted" in transcript(state)
    assert not state.approvals
    assert not state.running
    assert not state.moving


def test_the_plan_shows_how_its_steps_stand() -> None:
    events = answered_by_person([*scenes.planned(), *scenes.coded(), StepFinished(step=2, outcome="unverified")])
    shown = transcript(folded(events))
    assert "✓ 1. Add up exact values in total()" in shown
    assert "~ 2. Say in the README how totals are rounded  unverified" in shown


def test_the_prefill_moves_between_reports_and_never_arrives_by_itself() -> None:
    report = PromptProgressed(total=12_000, cached=4_000, processed=8_000, elapsed_ms=4_000)
    state = folded([TurnStarted(turn=1), report], now=50.0)
    assert "67%  4 s left  33% cached" in status(state, now=50.0)
    assert "83%  2 s left" in status(state, now=52.0)
    assert "99%" in status(state, now=500.0)


@pytest.mark.parametrize(
    ("used", "style"), [(1_000, PALETTE.success), (7_000, PALETTE.warning), (9_000, PALETTE.error)]
)
def test_the_context_bar_changes_colour_as_the_window_fills(used: int, style: object) -> None:
    connected = ModelConnected(
        role="planner",
        endpoint="x",
        model="m",
        server="s",
        context_window=10_000,
        slots=1,
        vision=None,
        dialect="plain",
    )
    counted = TokensCounted(usage=Usage(prompt_tokens=used, estimated=True))
    state = folded([connected, counted])
    line = status_line(state, state.planner, now=0, width=100, directory="", palette=PALETTE)
    assert f"≈{tokens(used)}/10k" in line.plain
    bar = next(span for span in line.spans if line.plain[span.start : span.end].startswith("━"))
    assert bar.style == style


def test_what_the_provider_waits_for_is_said() -> None:
    state = folded([ProviderWaited(state="loading", message="40 % of the model is read")])
    assert "server loads the model: 40 % of the model is read" in status(state)


@pytest.mark.parametrize("width", range(0, 160, 7))
def test_the_status_line_fits_into_any_width(width: int) -> None:
    events = answered_by_person([*scenes.planned(), *scenes.coded()])
    status(folded([scenes_model(), *events]), width=width)


def test_an_ended_run_says_why_unless_it_is_done() -> None:
    assert transcript(folded([RunStarted(), RunFinished(reason="done")])) == ""
    shown = transcript(folded([RunStarted(), RunFinished(reason="out_of_turns", message="60 turns")]))
    assert shown == "  ! The run used up its turns: 60 turns"


def scenes_model() -> ModelConnected:
    from support.fake_session import MODEL

    return MODEL
