"""Checks: the commands whose exit status proves a step, proposed from the project and run by the harness."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from late.events import CheckResult, PlanStep
from late.workspace.outline import test_files_for
from late.workspace.process import run_command

CHECK_OUTPUT_CHARS = 4000
"""How much of a failing check's output a coder is shown: head and tail, some 1,000 tokens."""

_CANNOT_RUN = (126, 127)
"""Bash's own exit statuses for a command that is not executable or not found."""
_MISSING_RUNNER = re.compile(r"No module named '?(pytest|unittest)'?\b|No tests ran|no tests ran|NO TESTS RAN")


async def run_check(
    command: str,
    *,
    root: Path,
    timeout_s: float,
    environment: Mapping[str, str],
    log_file: Path,
    output: Callable[[str], None],
) -> CheckResult:
    """Run a verify command in the workspace. A command that could not run proves nothing: its exit code is `None`."""
    result = await run_command(
        command,
        cwd=root,
        timeout_s=timeout_s,
        env=environment,
        output=output,
        log_file=log_file,
        cap_chars=CHECK_OUTPUT_CHARS,
    )
    code = result.exit_code
    if code in _CANNOT_RUN or (code not in (0, None) and _MISSING_RUNNER.search(result.output)):
        code = None
    text = result.output
    if result.timed_out:
        code, text = 124, f"{text}\n(stopped after {timeout_s:.0f} s)"
    return CheckResult(command=command, exit_code=code, output=text)


def propose_check(step: PlanStep, files: Sequence[str], root: Path) -> str | None:
    """A verify command for a step that has none: the project's tests that import what it changes."""
    tests: list[str] = []
    for path in step.files:
        found = (
            [path] if is_test(path) and path.endswith(".py") and path in files else test_files_for(path, files, root)
        )
        tests += [test for test in found if test not in tests]
    python = [test for test in tests if test.endswith(".py")]
    if not python:
        return None
    quoted = " ".join(shlex.quote(test) for test in python[:8])
    if all("import unittest" in _text(root / test) for test in python):
        return f"{_python(root)} -m unittest {quoted}"
    return f"{_python(root)} -m pytest -q {quoted}"


def is_test(path: str) -> bool:
    """Does the path look like a test's?"""
    name = path.rsplit("/", 1)[-1]
    stem = name.partition(".")[0]
    return stem.startswith("test_") or stem.endswith(("_test", "Test")) or ".test." in name or ".spec." in name


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _python(root: Path) -> str:
    """The project's interpreter where it has one, else the one on PATH, else the one that runs late."""
    for folder in (".venv", "venv"):
        if (root / folder / "bin" / "python").exists():
            return f"{folder}/bin/python"
    return next((name for name in ("python3", "python") if shutil.which(name)), shlex.quote(sys.executable))
