"""`make run` as a person without a terminal meets it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.model import STEADY

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]

DEMO = Path(__file__).parents[2] / "scripts" / "demo.py"


@pytest.fixture
def demo(tmp_path: Path):
    """Runs the demo headless on a sample in `tmp_path`; the model's files come from the shared cache."""
    project = tmp_path / "cart"

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **STEADY, "LATE_DATA_DIR": str(tmp_path / "data"), **variables}
        return subprocess.run(
            [sys.executable, str(DEMO), "--directory", str(project), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )

    run.project = project
    return run


def sample_test_passes(project: Path) -> bool:
    command = [sys.executable, "-m", "unittest", "tests/test_cart.py"]
    return subprocess.run(command, cwd=project, capture_output=True, check=False).returncode == 0


def assert_proof(done: subprocess.CompletedProcess[str], project: Path) -> None:
    """Plan, diff and test result are shown, and the exit status is the test's."""
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert sample_test_passes(project)
    plan, diff, test = (done.stdout.index(f"── {title} ──") for title in ("Plan", "Diff", "Test"))
    assert "- [x] 1. " in done.stdout[plan:diff]
    assert "+++ b/shop/cart.py" in done.stdout[diff:test]
    assert done.stdout.rstrip().endswith("unittest tests/test_cart.py: passed")


def test_a_server_that_answers_does_the_job(demo, llama_server):
    done = demo(OPENAI_BASE_URL=llama_server)

    assert f"Model: the server at {llama_server}" in done.stdout
    assert_proof(done, demo.project)


def test_without_a_server_it_is_done_in_process(demo, model_path):
    pytest.importorskip("llama_cpp", reason="the `local` extra is not installed")
    done = demo(OPENAI_BASE_URL="http://127.0.0.1:9")

    assert "No server answers at http://127.0.0.1:9" in done.stdout
    assert f"Model: {model_path.name}, in process" in done.stdout
    assert_proof(done, demo.project)


def test_the_prebuilt_server_is_started_and_ended(demo, server_binary):
    """An engine that fails right away still ends the server: the folder is in use, so nothing is copied."""
    demo.project.mkdir()
    (demo.project / "mine").touch()
    done = demo("--engine", "prebuilt")

    assert done.returncode == 2
    assert f"on {server_binary}" in done.stdout
    assert "is not empty" in done.stdout
    assert not list((demo.project.parent / "data" / "logs").glob("*"))  # kept only for a server that failed


def test_an_engine_that_cannot_be_had_here_says_what_is_missing(demo, tmp_path):
    done = demo(
        "--engine", "in-process", PYTHONPATH=hide_llama_cpp(tmp_path), CXX="/nowhere", XDG_CACHE_HOME=str(tmp_path)
    )

    assert done.returncode == 2
    assert "there is no C++ compiler" in done.stdout


def hide_llama_cpp(folder: Path) -> str:
    """A `sitecustomize` that makes llama-cpp-python look as if it were not installed."""
    (folder / "sitecustomize.py").write_text("import sys\nsys.modules['llama_cpp'] = None\n")
    return str(folder)
