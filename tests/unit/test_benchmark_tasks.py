"""The small tasks of the benchmark judge what they say they judge."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.tasks.tasks import FOLDER, Task, load_tasks
from support.scripted_server import ScriptedServer, say
from support.scripted_server import json as whole_answer

TASKS = load_tasks()
NOTHING_TO_DO = {"question_only"}


@pytest.fixture(params=TASKS, ids=lambda task: task.name)
def task(request: pytest.FixtureRequest) -> Task:
    return request.param


def test_there_are_eleven_tasks() -> None:
    assert len(TASKS) == 11


def test_a_task_is_open_at_its_start_and_solved_by_its_solution(task: Task, tmp_path: Path) -> None:
    work = tmp_path / "work"
    task.start(work)

    solved, output = task.judge(work)
    assert solved == (task.name in NOTHING_TO_DO), output

    if not solved:
        subprocess.run(["git", "apply", str(task.solution)], cwd=work, check=True)
        solved, output = task.judge(work)
        assert solved, output


def test_a_task_starts_as_a_clean_repository_without_the_hidden_tests(task: Task, tmp_path: Path) -> None:
    work = tmp_path / "work"
    task.start(work)

    status = subprocess.run(["git", "status", "--porcelain"], cwd=work, capture_output=True, text=True, check=True)
    assert status.stdout == ""
    assert not list(work.rglob("*hidden*"))


def run(server: ScriptedServer, out: Path, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.tasks", "--base", server.base_url, "--json", str(out), *arguments]
    done = subprocess.run(command, cwd=FOLDER.parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(out.read_text())


@pytest.mark.parametrize(
    ("body", "solved"),
    [("return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)", True), ("return year % 400 == 0", False)],
)
def test_the_bare_model_s_files_are_written_and_judged(tmp_path: Path, body: str, solved: bool) -> None:
    source = (FOLDER / "leap_year" / "files" / "calendar_tools.py").read_text()
    answer = f"calendar_tools.py\n```python\n{source.replace('return year % 4 == 0', body)}```\n"

    with ScriptedServer([whole_answer({"choices": [{"message": {"content": answer}}]})]) as server:
        report = run(server, tmp_path / "out.json", "--harness", "bare", "--only", "leap_year")

    assert [task["solved"] for task in report["tasks"]] == [solved]
    assert source in server.requests[0].messages[-1]["content"]


def test_late_is_run_in_a_fresh_home_and_judged(tmp_path: Path) -> None:
    with ScriptedServer(lambda request: say("It is gross_price in shop.py.")) as server:
        report = run(server, tmp_path / "out.json", "--only", "question_only")

    (task,) = report["tasks"]
    assert (task["solved"], task["exit_status"]) == (True, 0), task["output"]
    assert "gross_price" in task["output"]
