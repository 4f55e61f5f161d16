from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time

import httpx
import pytest

from late.errors import ProviderError, UserError
from late.llm.artifacts import server_path
from late.llm.server import LlamaServer, find_server

pytestmark = [pytest.mark.model, pytest.mark.timeout(180)]


@pytest.fixture(autouse=True)
def own_data_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("LATE_DATA_DIR", str(tmp_path / "data"))


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def closes_within(port: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while is_open(port):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_the_shared_server_serves_two_slots(llama_server):
    props = httpx.get(f"{llama_server}/props").json()

    assert props["total_slots"] == 2
    assert props["default_generation_settings"]["n_ctx"] == 16384


async def test_a_server_is_ready_when_started_and_gone_when_stopped(server_binary, model_path):
    waits = []
    async with LlamaServer(server_binary, model_path, ctx=2048, report=waits.append) as server:
        async with httpx.AsyncClient() as client:
            health = await client.get(f"{server.base_url}/health")
        assert health.status_code == 200
        assert server.log.is_file()

    assert not is_open(server.port)
    assert not server.log.exists()
    assert all(wait.state == "loading" for wait in waits)


async def test_a_damaged_model_is_told_with_the_end_of_the_log(server_binary, tmp_path):
    model = tmp_path / "damaged.gguf"
    model.write_bytes(b"this is no model")
    server = LlamaServer(server_binary, model)
    with pytest.raises(ProviderError, match="invalid magic") as failure:
        await server.start()
    assert str(server.log) in failure.value.hint
    assert "damaged.gguf" in server.log.read_text()


async def test_a_missing_model_is_told(server_binary, tmp_path):
    with pytest.raises(UserError, match=r"no model file .*missing\.gguf"):
        await LlamaServer(server_binary, tmp_path / "missing.gguf").start()


async def test_a_flag_that_the_server_refuses_is_told(server_binary, model_path):
    with pytest.raises(ProviderError, match="--no-such-flag"):
        await LlamaServer(server_binary, model_path, extra=("--no-such-flag",)).start()


async def test_a_program_that_does_not_run_is_told(model_path, tmp_path):
    binary = tmp_path / "llama-server"
    binary.write_text("#!/bin/sh\necho 'error while loading shared libraries: libggml.so' >&2\nexit 127\n")
    binary.chmod(0o755)
    with pytest.raises(UserError, match=r"libggml\.so"):
        await LlamaServer(binary, model_path).start()


async def test_flags_that_an_older_server_does_not_know_are_left_out(model_path, tmp_path):
    """A server whose help lists no `--no-webui`; it writes down how it was called and ends."""
    binary = tmp_path / "llama-server"
    binary.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = --help ]; then echo "-c, --ctx-size N  context\n-np, --parallel N  slots"; exit 0; fi\n'
        f'echo "$@" > {tmp_path}/called\nexit 1\n'
    )
    binary.chmod(0o755)
    with pytest.raises(ProviderError, match="ended with status 1"):
        await LlamaServer(binary, model_path, ctx=4096, slots=3).start()

    called = (tmp_path / "called").read_text()
    assert "--ctx-size 4096 --parallel 3" in called
    assert "--no-webui" not in called


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "terminated"])
def test_a_server_does_not_outlive_the_process_that_started_it(server_binary, model_path, how):
    script = textwrap.dedent(f"""
        import asyncio
        from pathlib import Path
        from late.llm.server import LlamaServer

        async def main():
            async with LlamaServer(Path({str(server_binary)!r}), Path({str(model_path)!r}), ctx=2048) as server:
                print(server.port, flush=True)
                await asyncio.Event().wait()

        asyncio.run(main())
    """)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        port = int(parent.stdout.readline())
        assert is_open(port)
        parent.send_signal(how)
    assert closes_within(port, 10.0)


def test_a_server_of_the_person_goes_before_the_prebuilt_one(server_binary, tmp_path, monkeypatch):
    own = tmp_path / "llama-server"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert find_server() == own

    monkeypatch.setenv("PATH", "/nonexistent")
    prebuilt = server_path()
    assert find_server() == (prebuilt if prebuilt.exists() else None)
