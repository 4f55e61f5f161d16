"""What is compared: `late`, and the bare model in one shot."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from late.llm.dialects.plain import fences

_BARE_PROMPT = (
    "You are a programmer. For each file that you change or create, answer with a line that holds only its path, "
    "then with its whole new content in a fenced block. If nothing has to change, just answer."
)
_BARE_TOKENS = 2500


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a harness did with one task."""

    exit_status: int | None
    """`None`: it was stopped at the time limit, or could not answer."""
    output: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a harness works."""

    ask: str
    work: Path
    home: Path
    base_url: str
    timeout_s: float


Harness = Callable[[Place], Awaitable[Attempt]]


async def late(place: Place) -> Attempt:
    """`late run --approve all` with a fresh home: what a person gets who has set nothing."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "late", "run", "--approve", "all", place.ask),
        cwd=place.work,
        env=environment(place),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    reading = asyncio.ensure_future(process.communicate())
    done, _ = await asyncio.wait([reading], timeout=place.timeout_s)
    if not done:
        os.killpg(process.pid, signal.SIGTERM)  # late ends what it started, and keeps its log
        await asyncio.wait([reading], timeout=10)
        if not reading.done():
            os.killpg(process.pid, signal.SIGKILL)
    output, _ = await reading
    return Attempt(process.returncode if done else None, output.decode(errors="replace"))


async def bare(place: Place) -> Attempt:
    """The model alone: all files in one prompt, whole files back, no tools and no checks."""
    import httpx

    names = sorted(
        path.relative_to(place.work).as_posix()
        for path in place.work.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(place.work).parts
    )
    files = "\n\n".join(f"{name}\n```\n{(place.work / name).read_text()}```" for name in names)
    body = {
        "messages": [
            {"role": "system", "content": _BARE_PROMPT},
            {"role": "user", "content": f"{place.ask}\n\n{files}"},
        ],
        "temperature": 0.2,
        "seed": 1,
        "max_tokens": _BARE_TOKENS,
    }
    url = place.base_url.rstrip("/").removesuffix("/v1") + "/v1/chat/completions"
    try:
        async with httpx.AsyncClient(timeout=place.timeout_s, trust_env=False) as client:
            answer = (await client.post(url, json=body)).raise_for_status().json()
    except httpx.HTTPError as error:
        return Attempt(None, f"{type(error).__name__}: {error}")
    text = str(answer["choices"][0]["message"]["content"])
    _write(text, names, place.work)
    return Attempt(0, text)


HARNESSES: dict[str, Harness] = {"late": late, "bare": bare}


def environment(place: Place) -> dict[str, str]:
    """The person's environment without their settings; `python` is this one, which has pytest."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LATE_", "OPENAI_", "XDG_", "PYTHON", "VIRTUAL_ENV"))
    }
    return kept | {
        "HOME": str(place.home),
        "LATE_DATA_DIR": str(place.home / "late"),
        "OPENAI_BASE_URL": place.base_url,
        "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}",
    }


def _write(answer: str, names: list[str], work: Path) -> None:
    """Put the answer's blocks into the files that it names; a block without a path is for the only file."""
    blocks = fences(answer)
    sources = [name for name in names if not name.startswith("test_")]
    for block in blocks:
        name = block.path or (sources[0] if len(blocks) == len(sources) == 1 else None)
        path = (work / name).resolve() if name else work
        if work.resolve() in path.parents:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
