"""The tasks as they lie on disk, and the judge."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
_JUDGE_TIMEOUT_S = 60
_IDENTITY = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false")


@dataclass(frozen=True, slots=True)
class Task:
    """One task. A harness sees `files/` and the request, and nothing else."""

    name: str
    about: str
    ask: str
    folder: Path

    @property
    def solution(self) -> Path:
        """A patch that solves it: proof that the hidden tests can pass."""
        return self.folder / "solution.patch"

    def start(self, work: Path) -> None:
        """Make `work` a git repository that holds the task's files in one commit."""
        shutil.copytree(self.folder / "files", work)
        for command in (
            ("init", "-q", "-b", "main"),
            ("add", "-A"),
            (*_IDENTITY, "commit", "-q", "--allow-empty", "-m", "start"),
        ):
            subprocess.run(["git", *command], cwd=work, check=True, capture_output=True)

    def judge(self, work: Path) -> tuple[bool, str]:
        """Put the hidden tests in and run them: do they pass, and what did they print?

        Whatever a harness wrote may run here, endless loops included, hence the time limit.
        """
        for test in (self.folder / "hidden").glob("test_*.py"):
            shutil.copy(test, work)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"test_hidden_{self.name}.py"]
        try:
            done = subprocess.run(
                command,
                cwd=work,
                capture_output=True,
                text=True,
                env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
                timeout=_JUDGE_TIMEOUT_S,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False, f"the hidden tests did not end within {_JUDGE_TIMEOUT_S} s"
        return done.returncode == 0, done.stdout + done.stderr


def load_tasks() -> list[Task]:
    """All tasks, by name."""
    tasks: list[Task] = []
    for file in sorted(FOLDER.glob("*/task.toml")):
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        tasks.append(Task(file.parent.name, data["about"], data["ask"].strip(), file.parent))
    return tasks
