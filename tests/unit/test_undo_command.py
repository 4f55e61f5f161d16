"""`late undo` after real runs of the engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from late.events import ErrorRaised, SnapshotTaken, StepFinished, StepStarted, StepUndone
from late.session.store import SessionStore
from support.project import BROKEN, CART, FIXED, Driver, drive, make_project
from support.scripted_server import ScriptedServer, Step, call, say

TWO_STEPS: dict[str, Any] = {
    "title": "Count the quantity",
    "summary": "The total ignores it.",
    "steps": [
        {"title": "Multiply", "files": ["cart.py", "lib/new.py"], "instruction": "Multiply.", "verify": "true"},
        {"title": "Tell", "files": ["README.md", "cart.py"], "instruction": "Say so.", "verify": "true"},
    ],
}


def spawn(step: int) -> Step:
    return call("spawn_subagent", {"agent_type": "coder", "goal": f"Do step {step}.", "step": step})


def edit(path: str, search: str, replace: str) -> Step:
    return call("target_edit", {"path": path, "search": search, "replace": replace})


FIRST = [
    spawn(1),
    call("read_file", {"path": "cart.py"}),
    edit("cart.py", BROKEN, FIXED),
    call("write_file", {"path": "lib/new.py", "content": "NEW = 1\n"}),
    say("Multiplied."),
]
SCRIPT = [
    call("write_implementation_plan", TWO_STEPS),
    *FIRST,
    spawn(2),
    call("read_file", {"path": "README.md"}),
    edit("README.md", "# Cart", "# Cart that counts"),
    say("Told."),
    say("Both are done."),
]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("LATE_DATA_DIR", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "work")


def late(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "late", *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )


async def carry_out(project: Path, data: Path, script: list[Step] = SCRIPT) -> Driver:
    with ScriptedServer(script) as server:
        driver = drive(project, server.base_url, data)
        await driver.say("The total ignores the quantity.")
        await driver.session.close()
    return driver


def git(project: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=project, check=True, capture_output=True, text=True).stdout


def stored(data: Path, session_id: str | None) -> list[Any]:
    assert session_id is not None
    with SessionStore(data / "sessions.db") as store:
        return list(store.events(session_id))


async def test_a_snapshot_is_taken_before_each_step(project: Path, data: Path) -> None:
    driver = await carry_out(project, data)
    kinds = [type(event) for event in driver.events if isinstance(event, StepStarted | SnapshotTaken | StepFinished)]
    assert kinds == [StepStarted, SnapshotTaken, StepFinished] * 2
    one, two = driver.of(SnapshotTaken)
    assert one.ref == f"refs/late/snapshots/{driver.session.id}/step-1-coder-1"
    assert (one.step, two.step, one.agent_id) == (1, 2, "coder-1")
    shown = git(project, "diff", "--stat", one.ref, two.ref)
    assert "cart.py" in shown
    assert "lib/new.py" in shown


async def test_steps_are_taken_back_one_after_the_other_until_nothing_is_left(project: Path, data: Path) -> None:
    driver = await carry_out(project, data)
    listed = late(project, "undo", "--list")
    assert [line.split("  ")[0] for line in listed.stdout.splitlines()] == ["step 1", "step 2"]
    assert "(cart.py, lib/new.py)" in listed.stdout

    second = late(project, "undo")
    assert (second.returncode, second.stderr) == (0, "")
    assert second.stdout == "step 2: Tell\n  put back README.md\n"
    assert (project / "README.md").read_text() == CART["README.md"]
    assert FIXED in (project / "cart.py").read_text()
    plan = (project / "implementation_plan.md").read_text()
    assert "- [x] 1. Multiply" in plan
    assert "- [ ] 2. Tell" in plan

    first = late(project, "undo")
    assert (first.returncode, first.stderr) == (0, "")
    assert (project / "cart.py").read_text() == CART["cart.py"]
    assert not (project / "lib").exists()
    assert git(project, "status", "--porcelain") == "?? implementation_plan.md\n"

    nothing = late(project, "undo")
    assert nothing.returncode == 2
    assert "has nothing to undo" in nothing.stderr
    undone = [event for event in stored(data, driver.session.id) if isinstance(event, StepUndone)]
    assert [(event.step, event.coder_ids) for event in undone] == [(2, ("coder-2",)), (1, ("coder-1",))]
    assert "step 1: undone" in late(project, "session", "show", str(driver.session.id)).stdout


async def test_an_earlier_step_is_taken_back_on_its_own(project: Path, data: Path) -> None:
    driver = await carry_out(project, data)
    done = late(project.parent, "undo", str(driver.session.id), "--step", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert (project / "cart.py").read_text() == CART["cart.py"]
    assert (project / "README.md").read_text() == "# Cart that counts\n"
    assert late(project, "undo", "--step", "1").returncode == 2


async def test_later_work_is_left_alone_and_can_be_taken_back_once_it_is_out_of_the_way(
    project: Path, data: Path
) -> None:
    await carry_out(project, data)
    ours = (project / "cart.py").read_text()
    (project / "cart.py").write_text(ours + "# mine\n")
    done = late(project, "undo", "--step", "1")
    assert done.returncode == 1
    assert done.stdout == "step 1: Multiply\n  put back lib/new.py\n"
    assert done.stderr == "  left alone cart.py: it was changed since\n"
    assert (project / "cart.py").read_text() == ours + "# mine\n"
    (project / "cart.py").write_text(ours)
    again = late(project, "undo", "--step", "1")
    assert (again.returncode, again.stdout) == (0, "step 1: Multiply\n  put back cart.py\n")


async def test_what_a_later_step_changed_is_left_alone_until_that_one_is_undone(project: Path, data: Path) -> None:
    script = [
        call("write_implementation_plan", TWO_STEPS),
        *FIRST,
        spawn(2),
        call("read_file", {"path": "cart.py"}),
        edit("cart.py", "class Cart:", "class Cart:  # counts"),
        say("Told."),
        say("Both are done."),
    ]
    await carry_out(project, data, script)
    refused = late(project, "undo", "--step", "1")
    assert refused.returncode == 1
    assert "left alone cart.py: step 2 (Tell) changed it later; undo that one first" in refused.stderr
    assert late(project, "undo", "--step", "2").returncode == 0
    assert late(project, "undo", "--step", "1").returncode == 0
    assert (project / "cart.py").read_text() == CART["cart.py"]


async def test_all_coders_of_a_step_are_taken_back_together(project: Path, data: Path) -> None:
    plan = {**TWO_STEPS, "steps": [{**TWO_STEPS["steps"][0], "verify": "test -e lib/new.py"}]}
    script = [
        call("write_implementation_plan", plan),
        spawn(1),
        call("read_file", {"path": "cart.py"}),
        edit("cart.py", BROKEN, "0"),
        say("BLOCKED: I do not know more."),
        spawn(1),
        call("read_file", {"path": "cart.py"}),
        edit("cart.py", "return 0", f"return {FIXED}"),
        call("write_file", {"path": "lib/new.py", "content": "NEW = 1\n"}),
        say("Multiplied."),
        say("It is done."),
    ]
    driver = await carry_out(project, data, script)
    assert len(driver.of(SnapshotTaken)) == 2
    done = late(project, "undo")
    assert (done.returncode, done.stderr) == (0, "")
    assert (project / "cart.py").read_text() == CART["cart.py"]
    assert not (project / "lib").exists()


async def test_an_undone_step_is_pending_again_and_the_planner_knows(project: Path, data: Path) -> None:
    driver = await carry_out(project, data)
    assert late(project, "undo").returncode == 0
    with ScriptedServer([say("Step 2 is open.")]) as server:
        resumed = drive(project, server.base_url, data, resume=driver.session.id)
        assert resumed.session.crew.board.pending == [2]
        await resumed.say("What is open?")
        await resumed.session.close()
    told = json.dumps(server.requests[0].json["messages"])
    assert "took step 2 (Tell) back. As before the step: README.md." in told


async def test_deleting_a_session_drops_its_snapshots(project: Path, data: Path) -> None:
    driver = await carry_out(project, data)
    assert late(project, "undo").returncode == 0
    assert len(git(project, "for-each-ref", "refs/late").splitlines()) == 3
    assert late(project, "session", "delete", str(driver.session.id)).returncode == 0
    assert git(project, "for-each-ref", "refs/late") == ""


async def test_without_a_repository_steps_are_undone_as_well(tmp_path: Path, data: Path) -> None:
    project = make_project(tmp_path / "plain", git=False)
    await carry_out(project, data)
    assert late(project, "undo").returncode == 0
    assert late(project, "undo").returncode == 0
    assert {name: (project / name).read_text() for name in CART} == CART
    assert sorted(path.name for path in project.iterdir()) == sorted([*CART, "implementation_plan.md"])


async def test_a_session_that_is_open_is_not_undone(project: Path, data: Path) -> None:
    with ScriptedServer(SCRIPT) as server:
        driver = drive(project, server.base_url, data)
        await driver.say("The total ignores the quantity.")
        done = late(project, "undo")
        await driver.session.close()
    assert done.returncode == 2
    assert "is open in another late" in done.stderr
    assert FIXED in (project / "cart.py").read_text()


async def test_without_git_the_work_goes_on_and_the_person_is_told_once(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(tmp_path / "plain", git=False)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "sh", "true"):
        (tools / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(tools))
    driver = await carry_out(project, data)
    assert [event.message for event in driver.of(ErrorRaised)] == [
        "The files could not be recorded before step 1, which cannot be undone: git was not found"
    ]
    assert driver.of(SnapshotTaken) == []
    assert [event.outcome for event in driver.of(StepFinished)] == ["done", "done"]
    refused = late(project, "undo")
    assert refused.returncode == 1
    assert "git was not found" in refused.stderr
    monkeypatch.undo()
    monkeypatch.setenv("LATE_DATA_DIR", str(data))
    refused = late(project, "undo")
    assert refused.returncode == 1
    assert "left alone README.md: no snapshot was taken before the step" in refused.stderr


def test_a_folder_without_a_session_and_wrong_words_are_told(project: Path, data: Path) -> None:
    nothing = late(project, "undo")
    assert nothing.returncode == 2
    assert "there is no session in" in nothing.stderr
    assert late(project, "undo", "--step", "0").returncode == 2
    assert late(project, "undo", "--step", "1", "--list").returncode == 2
