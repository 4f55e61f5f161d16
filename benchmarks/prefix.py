"""How much of each request the server had cached: one task with the real small model, counted by the server.

From an agent's second turn on, only what is new in the conversation should be processed; the planner's next turn after
its coders included.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from benchmarks.tasks.harnesses import Place, environment
from benchmarks.tasks.run import model_server
from benchmarks.tasks.tasks import load_tasks
from benchmarks.timing import tell
from late.events import AssistantMessage, parse_event

TASK = "cart_quantity"


def main() -> None:
    """Print the table."""
    answers = asyncio.run(_answers())
    print(f"Cached prefix (task {TASK}, llama-server with two slots)")
    again = cached_again = 0
    for agent, turns in groupby(sorted(answers, key=lambda answer: answer.agent_id), lambda answer: answer.agent_id):
        for turn, answer in enumerate(turns, 1):
            prompt, cached = answer.usage.prompt_tokens or 0, answer.usage.cached_tokens or 0
            tell(f"{agent}, request {turn}", f"{prompt:,} tokens", f"{cached:,} cached, {prompt - cached:,} processed")
            if turn > 1:
                again, cached_again = again + prompt, cached_again + cached
    if again:
        tell("after each agent's first request", f"{cached_again / again:.0%} cached")


async def _answers() -> list[AssistantMessage]:
    task = next(task for task in load_tasks() if task.name == TASK)
    with tempfile.TemporaryDirectory(prefix="late-bench-", ignore_cleanup_errors=True) as folder:
        work, home = Path(folder) / "work", Path(folder) / "home"
        home.mkdir()
        task.start(work)
        async with model_server(None) as base_url:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "late", "run", "--json", "--approve", "all", task.ask),
                cwd=work,
                env=environment(Place(task.ask, work, home, base_url, 0)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
            )
            output, _ = await process.communicate()
    return list(_asked(output.decode()))


def _asked(lines: str) -> Iterator[AssistantMessage]:
    """The answers that a model gave, in order."""
    for line in lines.splitlines():
        if json.loads(line).get("type") == "assistant_message":
            event = parse_event(line)
            if isinstance(event, AssistantMessage) and event.author == "model":
                yield event


if __name__ == "__main__":
    main()
