"""The small tasks of the benchmark judge what they say they judge."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.tasks.tasks import Task, load_tasks

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
