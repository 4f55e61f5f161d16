"""The main job on a sample project, with nothing set up: what `make run` runs.

Copies `examples/cart` into a fresh git repository and opens `late` there with a suggested task; without a terminal
does the task headless and prints plan, diff and test result. The model comes from, in this order:

    server       the endpoint of OPENAI_BASE_URL (default http://localhost:8080), if one answers
    in-process   llama.cpp inside `late`, compiled once, with a pinned model of 1.1 GB, fetched once
    prebuilt     a prebuilt llama-server with the same model (Linux x86-64), where there is no compiler

Exit status: 0 when the sample's tests pass afterwards, 1 when they do not, 2 when no engine can be had.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from late.errors import LateError, UserError
from late.llm import artifacts, runtime
from late.llm.local import available_cores, prepare_local
from late.llm.progress import Progress, ProgressPrinter, Report
from late.llm.provider import Waiting
from late.llm.server import LlamaServer, find_server

SAMPLE = Path(__file__).resolve().parent.parent / "examples" / "cart"
TASK = "The total in shop/cart.py ignores the quantity: three apples cost 40 cents instead of 120. Fix it."
TEST = [sys.executable, "-m", "unittest", "tests/test_cart.py"]
DEFAULT_BASE_URL = "http://localhost:8080"

Engine = Literal["server", "in-process", "prebuilt"]


@dataclass(frozen=True, slots=True)
class Way:
    """How `late` is told where its model is."""

    description: str
    flags: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    server: LlamaServer | None = None
    """To be started for it."""


def main() -> int:
    """Run the demo and return its exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--engine", choices=("auto", "server", "in-process", "prebuilt"), default="auto")
    parser.add_argument("--headless", action="store_true", help="without the interface, even on a terminal")
    parser.add_argument("--directory", type=Path, help="put the sample there (default: a temporary folder)")
    arguments = parser.parse_args()
    headless = arguments.headless or not (sys.stdin.isatty() and sys.stdout.isatty())
    printer = ProgressPrinter(sys.stderr)
    try:
        engine = choose_engine(arguments.engine)
        way = prepare(engine, printer)
        printer.end()
        return asyncio.run(demo(way, arguments.directory, headless=headless))
    except KeyboardInterrupt:
        printer.end()
        say("Stopped. What is finished is kept; the same command goes on.")
        return 130
    except LateError as error:
        printer.end()
        say(f"{error}\n{error.hint}".strip())
        return 2 if isinstance(error, UserError) else 1


def choose_engine(wanted: Literal["auto"] | Engine) -> Engine:
    """The engine asked for, or the first that is possible here.

    Raises:
        UserError: none is.
    """
    if wanted != "auto":
        return wanted
    if server_answers(base_url()):
        return "server"
    if os.environ.get("OPENAI_BASE_URL"):
        say(f"No server answers at {base_url()} (OPENAI_BASE_URL).")
    obstacle = None if runtime.runtime_installed() or runtime.cached_wheel() else runtime.build_obstacle()
    if obstacle is None:
        return "in-process"
    other = artifacts.prebuilt_server_obstacle()
    if other is None or find_server() is not None:
        return "prebuilt"
    raise UserError(
        f"No model can be run here: no server answers at {base_url()}; llama.cpp cannot be compiled ({obstacle}); "
        f"and of the prebuilt llama-server: {other}.",
        "Install a C++ compiler, or set OPENAI_BASE_URL to a model server.",
    )


def prepare(engine: Engine, report: ProgressPrinter) -> Way:
    """Fetch and build whatever `engine` needs, and say so."""
    if engine == "server":
        return Way(f"the server at {base_url()}")
    announce_model()
    if engine == "in-process":
        if not runtime.runtime_installed() and runtime.cached_wheel() is None:
            say("llama.cpp is compiled for this machine, once: about three minutes on two cores.")
        model = prepare_local(None, report)
        return Way(f"{model.name}, in process", flags=("--local", str(model)))
    binary = find_server() or artifacts.fetch_server(report)
    model = artifacts.fetch_model(artifacts.CODER_1_5B, report)
    server = LlamaServer(binary, model, threads=available_cores(), report=waiting_reporter(report))
    return Way(f"{model.name} on {binary}", environment={"OPENAI_BASE_URL": server.base_url}, server=server)


async def demo(way: Way, directory: Path | None, *, headless: bool) -> int:
    """Copy the sample and run `late` on it."""
    async with way.server or contextlib.nullcontext():
        say(f"Model: {way.description}")
        project = copy_sample(directory)
        say(f"Sample project: {project}\n")
        environment = {**os.environ, **way.environment}
        # `python` and `python3` mean this one, also where the system has neither.
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment.get('PATH', '')}"
        run = run_headless if headless else run_interface
        return await run(project, way, environment)


def announce_model() -> None:
    """Say that the model is about to be fetched, if it is."""
    path = artifacts.model_path(artifacts.CODER_1_5B)
    if not path.exists():
        say(f"{artifacts.CODER_1_5B.title}, 1.1 GB, is fetched once into {path.parent}.")


def waiting_reporter(report: Report) -> Callable[[Waiting], None]:
    """Shows a server that loads its model as progress."""

    def show(waiting: Waiting) -> None:
        report(Progress(waiting.message, waiting.elapsed_s, None, "seconds", elapsed_s=waiting.elapsed_s))

    return show


def copy_sample(directory: Path | None) -> Path:
    """The sample as a git repository with one commit.

    Raises:
        UserError: there is no git, or the folder is in use.
    """
    if shutil.which("git") is None:
        raise UserError("There is no git, which `late` works with.", "Install git.")
    project = (directory or Path(tempfile.mkdtemp(prefix="late-sample-")) / "cart").absolute()
    if project.exists() and any(project.iterdir()):
        raise UserError(f"{project} is not empty.", "Name another folder.")
    ignored = shutil.ignore_patterns("__pycache__", "implementation_plan.md")
    shutil.copytree(SAMPLE, project, dirs_exist_ok=True, ignore=ignored)
    identity = ["-c", "user.name=late", "-c", "user.email=late@localhost", "-c", "commit.gpgsign=false"]
    for command in (["init", "--quiet"], ["add", "."], [*identity, "commit", "--quiet", "-m", "A small shop"]):
        subprocess.run(["git", *command], cwd=project, check=True)
    return project


async def run_headless(project: Path, way: Way, environment: Mapping[str, str]) -> int:
    """Do the task without a screen and show what came of it."""
    say(f"Task: {TASK}\n")
    command = [sys.executable, "-m", "late", "run", *way.flags, "--approve", "all", "-C", str(project), TASK]
    status = await run_child(command, environment)
    plan = project / "implementation_plan.md"
    heading("Plan")
    say(plan.read_text(encoding="utf-8").strip() if plan.exists() else "There is none.")
    heading("Diff")
    await run_child(["git", "--no-pager", "-C", str(project), "diff"], environment)
    return await show_test(project, environment, f"late run ended with exit status {status}")


async def run_interface(project: Path, way: Way, environment: Mapping[str, str]) -> int:
    """Open `late` on the sample."""
    command = [sys.executable, "-m", "late", *way.flags, "-C", str(project), "--prompt", TASK]
    await run_child(command, environment)
    say(f"\nThe sample stays at {project}; `git diff` there shows what changed.")
    return await show_test(project, environment, "")


async def show_test(project: Path, environment: Mapping[str, str], remark: str) -> int:
    """Run the sample's tests and say whether they pass."""
    heading("Test")
    status = await run_child(TEST, {**environment, "PYTHONDONTWRITEBYTECODE": "1"}, cwd=project)
    say(f"\n{shlex.join(['python', *TEST[1:]])}: {'passed' if status == 0 else 'failed'}")
    if status != 0 and remark:
        say(remark)
    return 0 if status == 0 else 1


async def run_child(command: list[str], environment: Mapping[str, str], cwd: Path | None = None) -> int:
    """Run a program on this terminal. The loop goes on, so that a server of ours is looked after."""
    sys.stdout.flush()
    process = await asyncio.create_subprocess_exec(*command, env=dict(environment), cwd=cwd)
    try:
        return await process.wait()
    except asyncio.CancelledError:
        await process.wait()  # Ctrl-C reached it as well: let it end in order
        raise


def base_url() -> str:
    """Where a model server is looked for."""
    return os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL


def server_answers(url: str) -> bool:
    """Does a model server answer there? One that still loads its model does."""
    import httpx

    path = "/models" if httpx.URL(url).path.strip("/") else "/v1/models"
    key = os.environ.get("OPENAI_API_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        status = httpx.get(url.rstrip("/") + path, headers=headers, timeout=3.0).status_code
    except (httpx.HTTPError, httpx.InvalidURL):
        return False
    return status in (httpx.codes.OK, httpx.codes.SERVICE_UNAVAILABLE)


def heading(text: str) -> None:
    """A title in the output."""
    say(f"\n── {text} ──")


def say(text: str) -> None:
    """Print for the person, in order with what child programs print."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
