"""How the measurements are taken and told."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence


def best_of(times: int, work: Callable[[], object]) -> float:
    """The shortest of several runs, in seconds: what is left when nothing else disturbed it."""
    return min(_seconds(work) for _ in range(times))


def command_seconds(command: Sequence[str], environment: Mapping[str, str], times: int = 7) -> float:
    """The shortest wall time of a command, in seconds."""
    return best_of(
        times,
        lambda: subprocess.run(
            command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60
        ),
    )


def tell(what: str, value: str, ratio: str = "") -> None:
    """Print one line of a table."""
    print(f"  {what:44} {value:>14}   {ratio}".rstrip())


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
