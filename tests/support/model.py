"""The real small model, and a real llama-server with it, for tests marked `model`.

Both come out of the user's cache; what is missing there is fetched first. `tests/e2e/conftest.py` offers them.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from late.llm import artifacts
from late.llm.server import LlamaServer, find_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


STEADY = {"LATE_TEMPERATURE": "0"}
"""For processes of late in tests: the likeliest token always, so that a run today is the run of tomorrow."""


def _tell(progress: artifacts.Progress) -> None:
    print(progress.what, progress.done, progress.total, progress.unit, progress.detail, file=sys.stderr)


@pytest.fixture(scope="session")
def model_path() -> Path:
    """The 1.5B coder model's file, verified."""
    return artifacts.fetch_model(artifacts.CODER_1_5B, _tell)


@pytest.fixture(scope="session")
def server_binary() -> Path:
    """A llama-server that runs here; where none can be had, the test is skipped with the reason."""
    if found := find_server():
        return found
    if obstacle := artifacts.prebuilt_server_obstacle():
        pytest.skip(f"no llama-server: {obstacle}")
    return artifacts.fetch_server(_tell)


@pytest.fixture(scope="session")
def llama_server(server_binary: Path, model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Base URL of a llama-server with the 1.5B: two slots of 16,384 tokens each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LATE_DATA_DIR", str(tmp_path_factory.mktemp("server")))
        server = LlamaServer(server_binary, model_path, ctx=32768, slots=2, threads=2)
    with _LoopThread() as loop:
        loop.run(server.start())
        try:
            yield server.base_url
        finally:
            loop.run(server.stop())


class _LoopThread:
    """An event loop that outlives the loops of single tests."""

    def __enter__(self) -> _LoopThread:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        return self

    def run(self, coroutine) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
