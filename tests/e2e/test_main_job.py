"""The main job on the real small model: plan, approval, coder, check, through the real command."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from late.events import (
    AssistantMessage,
    CheckFinished,
    Event,
    FileChanged,
    ModelConnected,
    PlanDecided,
    RunFinished,
    SessionResumed,
    StepStarted,
    ToolStarted,
    parse_event,
)
from support.model import STEADY
from support.project import make_project

pytestmark = [pytest.mark.model, pytest.mark.timeout(420)]

LATE = [sys.executable, "-m", "late"]
TASK = "Cart.total in cart.py ignores the quantity. Fix it so that test_cart.py passes."


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "work")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LATE_", "OPENAI_"))}
    return {**kept, **STEADY, "LATE_DATA_DIR": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(home)}


def late(*arguments: str, cwd: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LATE, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


def test_passes(project: Path) -> bool:
    return (
        subprocess.run([sys.executable, "-m", "unittest", "test_cart"], cwd=project, capture_output=True).returncode
        == 0
    )


test_passes.__test__ = False


def of(events: list[Event], kind: type[Event]) -> list:
    return [event for event in events if isinstance(event, kind)]


def check_prefixes(events: list[Event]) -> None:
    """From one turn of an agent to the next the server computed only what was new, give or take a template's end."""
    for agent in {event.agent_id for event in events}:
        asked = [e for e in of(events, AssistantMessage) if e.agent_id == agent and e.usage.prompt_tokens]
        for before, after in itertools.pairwise(asked):
            assert after.usage.cached_tokens >= before.usage.prompt_tokens - 8, (agent, before.usage, after.usage)


def test_the_model_fixes_the_sample_and_the_check_proves_it(llama_server, project, environment):
    environment["OPENAI_BASE_URL"] = llama_server
    run = late("run", "--json", "--approve", "all", TASK, cwd=project, environment=environment)
    events = [parse_event(line) for line in run.stdout.splitlines()]
    assert run.returncode == 0, run.stderr + run.stdout[-4000:]
    assert test_passes(project)
    assert of(events, ModelConnected)[0].dialect == "plain"
    assert of(events, PlanDecided)[0].decision == "approved"
    assert of(events, FileChanged)
    assert of(events, CheckFinished)[-1].check.exit_code == 0
    assert of(events, RunFinished)[-1].reason == "done"
    assert (project / "implementation_plan.md").read_text().count("- [x]") >= 1
    check_prefixes(events)


def test_the_same_in_process_with_no_server_at_all(model_path, project, environment):
    run = late(
        "run", "--json", "--approve", "all", "--local", str(model_path), TASK, cwd=project, environment=environment
    )
    events = [parse_event(line) for line in run.stdout.splitlines()]
    assert run.returncode == 0, run.stderr + run.stdout[-4000:]
    assert of(events, ModelConnected)[0].server == "in-process"
    assert test_passes(project)
    check_prefixes(events)


def test_a_question_is_answered_without_a_plan(llama_server, project, environment):
    environment["OPENAI_BASE_URL"] = llama_server
    run = late("run", "Which method of Cart computes the sum? Change nothing.", cwd=project, environment=environment)
    assert run.returncode == 0, run.stderr
    assert "total" in run.stdout
    assert not (project / "implementation_plan.md").exists()


def test_without_approval_it_saves_says_how_to_go_on_and_goes_on(llama_server, project, environment):
    environment["OPENAI_BASE_URL"] = llama_server
    stopped = late("run", "--json", TASK, cwd=project, environment=environment)
    assert stopped.returncode == 3, stopped.stderr
    session = json.loads(stopped.stdout.splitlines()[0])["session_id"]
    assert f"late run --resume {session} --approve plan" in stopped.stderr
    assert not test_passes(project)
    resumed = late("run", "--resume", session, "--approve", "plan", cwd=project, environment=environment)
    assert resumed.returncode == 0, resumed.stderr
    assert test_passes(project)


@pytest.mark.parametrize("moment", [StepStarted, ToolStarted])
def test_killed_in_the_middle_it_is_all_there_and_goes_on(llama_server, project, environment, moment):
    environment["OPENAI_BASE_URL"] = llama_server
    process = subprocess.Popen(
        [*LATE, "run", "--json", "--approve", "all", TASK],
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    seen: list[Event] = []
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            seen.append(parse_event(line))
            if isinstance(seen[-1], moment):
                break
        process.send_signal(signal.SIGKILL)
    process.wait()
    session = seen[0].session_id
    shown = late("session", "show", session, "--json", cwd=project, environment=environment)
    stored = [parse_event(line) for line in shown.stdout.splitlines()]
    assert stored[: len(seen)] == seen
    resumed = late("run", "--json", "--resume", session, "--approve", "all", cwd=project, environment=environment)
    assert resumed.returncode == 0, resumed.stderr + resumed.stdout[-3000:]
    events = [parse_event(line) for line in resumed.stdout.splitlines()]
    assert of(events, SessionResumed)
    assert of(events, RunFinished)[-1].reason == "done"
    assert test_passes(project)
