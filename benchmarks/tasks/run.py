"""Runs a harness over the small tasks with a real model, and says which hidden tests pass and how long it took.

    python -m benchmarks.tasks                    late, with the pinned 1.5B on a server started for it
    python -m benchmarks.tasks --base URL         with the model that answers there; it should be idle otherwise
    python -m benchmarks.tasks --harness bare     the bare model in one shot: the baseline

Each task is done in a fresh git repository with a fresh home. Tasks run one after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.tasks.harnesses import HARNESSES, Attempt, Place
from benchmarks.tasks.tasks import Task, load_tasks
from late.errors import LateError
from late.llm import artifacts
from late.llm.local import available_cores
from late.llm.progress import ProgressPrinter
from late.llm.server import LlamaServer, find_server

KEPT_CHARS = 20_000
"""Of a harness's output, in the JSON."""


@dataclass(frozen=True, slots=True)
class Result:
    """How one task went."""

    task: str
    solved: bool
    seconds: float
    exit_status: int | None
    output: str
    judgement: str


def main() -> int:
    """Run the tasks and return the exit status: 0, or 1 when fewer were solved than `--at-least`."""
    arguments = _arguments()
    try:
        results = asyncio.run(_run(arguments))
    except LateError as error:
        print(f"{error}\n{error.hint}".strip(), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    solved = sum(result.solved for result in results)
    seconds = sum(result.seconds for result in results)
    print(f"{arguments.harness}: {solved} of {len(results)} solved, {seconds:.0f} s")
    if arguments.json:
        summary = {"harness": arguments.harness, "solved": solved, "of": len(results), "seconds": round(seconds, 1)}
        tasks = [asdict(result) for result in results]
        arguments.json.write_text(json.dumps({**summary, "tasks": tasks}, indent=2) + "\n", encoding="utf-8")
    return 0 if solved >= arguments.at_least else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tasks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--harness", choices=sorted(HARNESSES), default="late")
    parser.add_argument("--base", metavar="URL", help="a model server that is running")
    parser.add_argument("--only", metavar="NAME,…", help="only these tasks")
    parser.add_argument("--timeout", metavar="S", type=float, default=180, help="seconds per task (default: 180)")
    parser.add_argument("--json", metavar="OUT", type=Path, help="write everything to this file")
    parser.add_argument("--at-least", metavar="N", type=int, default=0, help="exit status 1 if fewer are solved")
    arguments = parser.parse_args()
    names = [task.name for task in load_tasks()]
    arguments.only = arguments.only.split(",") if arguments.only else names
    if unknown := sorted(set(arguments.only) - set(names)):
        parser.error(f"there is no task {', '.join(unknown)}; there are: {', '.join(names)}")
    return arguments


async def _run(arguments: argparse.Namespace) -> list[Result]:
    tasks = [task for task in load_tasks() if task.name in arguments.only]
    results: list[Result] = []
    async with model_server(arguments.base) as base_url:
        for task in tasks:
            result = await _attempt(task, arguments.harness, base_url, arguments.timeout)
            ended = "stopped" if result.exit_status is None else f"exit status {result.exit_status}"
            verdict = "solved" if result.solved else "NOT SOLVED"
            print(f"{task.name:18} {verdict:10} {result.seconds:6.1f} s   {ended}", flush=True)
            results.append(result)
    return results


@contextlib.asynccontextmanager
async def model_server(base: str | None) -> AsyncGenerator[str]:
    """The server that is named, or one of our own with the pinned model."""
    if base:
        yield base
        return
    printer = ProgressPrinter(sys.stderr)
    binary = find_server() or artifacts.fetch_server(printer)
    model = artifacts.fetch_model(artifacts.CODER_1_5B, printer)
    printer.end()
    async with LlamaServer(binary, model, threads=available_cores()) as server:
        yield server.base_url


async def _attempt(task: Task, harness: str, base_url: str, timeout_s: float) -> Result:
    with tempfile.TemporaryDirectory(prefix="late-bench-", ignore_cleanup_errors=True) as folder:
        work, home = Path(folder) / "work", Path(folder) / "home"
        home.mkdir()
        task.start(work)
        started = time.monotonic()
        attempt: Attempt = await HARNESSES[harness](Place(task.ask, work, home, base_url, timeout_s))
        seconds = time.monotonic() - started
        solved, judgement = task.judge(work)
    return Result(
        task=task.name,
        solved=solved,
        seconds=round(seconds, 1),
        exit_status=attempt.exit_status,
        output=attempt.output[-KEPT_CHARS:],
        judgement=judgement[-KEPT_CHARS:],
    )


if __name__ == "__main__":
    sys.exit(main())
