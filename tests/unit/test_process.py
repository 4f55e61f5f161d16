"""Commands end with everything they started, whatever they print or wait for."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from late.errors import ToolError
from late.workspace import process as process_module
from late.workspace.process import CommandResult, clean_environment, run_command
from late.workspace.terminal_text import clean, escaped

Runner = Callable[..., "asyncio.Task[CommandResult]"]
LINUX = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    def start(
        command: str, timeout_s: float = 20, cap_chars: int = 4_000, output: Callable[[str], None] = lambda _: None
    ) -> asyncio.Task[CommandResult]:
        return asyncio.create_task(
            run_command(
                command,
                cwd=tmp_path,
                timeout_s=timeout_s,
                env=clean_environment(os.environ),
                output=output,
                log_file=tmp_path / "logs" / "output.log",
                cap_chars=cap_chars,
            )
        )

    return start


def running(argument: str) -> list[str]:
    """The processes, zombies left out, that have the argument."""
    found: list[str] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if argument.encode() in command.split(b"\0"):
            found.append(folder.name)
    return found


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_status_and_both_streams_in_order(run: Runner) -> None:
    result = await run("echo one; echo two >&2; echo three; exit 3")
    assert (result.exit_code, result.output) == (3, "one\ntwo\nthree\n")
    assert not result.timed_out
    assert result.log_file is None
    assert result.ended == ()


async def test_a_shell_that_was_killed_reports_as_a_shell_does(run: Runner) -> None:
    assert (await run("kill -KILL $$")).exit_code == 137


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("read x; echo [$x]", "[]"),
        ("cat; echo end", "end"),
        ("tty", "not a tty"),
        ("(exec < /dev/tty) 2>/dev/null || echo none", "none"),
        ("python3 || true; echo end", "end"),
        ("git init -q . && git -c user.name=a -c user.email=a@b commit --allow-empty; echo end", "end"),
        ("git clone -q https://127.0.0.1:1/x; echo end", "end"),
    ],
)
async def test_nothing_waits_for_input_or_finds_a_terminal(run: Runner, command: str, expected: str) -> None:
    result = await run(command)
    assert result.output.endswith(f"{expected}\n")
    assert not result.timed_out


@LINUX
@pytest.mark.parametrize(
    "command",
    [
        "sleep {} & echo done",
        "setsid sleep {} & echo done",
        "sleep {} </dev/null >/dev/null 2>&1 & echo done",
        "(setsid sh -c 'sleep {} & sleep {}' </dev/null >/dev/null 2>&1 &); echo done",
    ],
)
async def test_a_background_process_neither_holds_the_call_nor_outlives_it(run: Runner, command: str) -> None:
    seconds = f"6{time.time_ns() % 10**8}.5"
    started = time.monotonic()
    result = await run(command.replace("{}", seconds))
    assert time.monotonic() - started < 4
    assert (result.exit_code, result.output) == (0, "done\n")
    assert any("sleep" in name for name in result.ended)
    assert running(seconds) == []


@LINUX
async def test_a_background_process_that_ends_soon_may_finish(run: Runner) -> None:
    result = await run("(sleep 0.2; echo late) & echo first")
    assert (result.output, result.ended) == ("first\nlate\n", ())


@LINUX
@pytest.mark.parametrize(
    "command", ['sh -c "trap : TERM; while :; do sleep {}; done" | cat', "setsid sleep {}; true", "exec sleep {}"]
)
async def test_the_time_limit_ends_the_whole_tree(run: Runner, command: str) -> None:
    seconds = f"6{time.time_ns() % 10**8}.5"
    result = await run(f"echo begun; {command.replace('{}', seconds)}", timeout_s=0.5)
    assert result.timed_out
    assert result.exit_code is None
    assert result.output.startswith("begun\n")
    assert result.duration_s < 4
    assert running(seconds) == []


@LINUX
async def test_cancelling_ends_the_whole_tree(run: Runner) -> None:
    seconds = f"6{time.time_ns() % 10**8}.5"
    begun = asyncio.Event()
    task = run(f"echo begun; setsid sleep {seconds} & sleep {seconds}", output=lambda _: begun.set())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert running(seconds) == []


@pytest.mark.parametrize("command", ["yes", "cat /dev/zero", "cat /dev/urandom | base64 -w0"])
async def test_a_flood_stops_at_the_limit_in_little_memory(run: Runner, tmp_path: Path, command: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    shown: list[str] = []
    result = await run(command, timeout_s=1.0, output=shown.append)
    assert result.timed_out
    assert len(result.output) <= 4_000
    assert "characters left out" in result.output or command == "cat /dev/zero"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000
    assert sum(map(len, shown)) < 200_000
    assert all(log.stat().st_size < 30_000_000 for log in (tmp_path / "logs").glob("*"))


async def test_head_and_tail_are_kept_with_the_count_of_what_is_not(run: Runner) -> None:
    result = await run("seq 1 20000", cap_chars=1_000)
    assert result.output.startswith("1\n2\n3\n")
    assert result.output.endswith("\n19999\n20000\n")
    assert len(result.output) <= 1_000
    head, rest = result.output.split("[… ")
    tail = rest.split("…]\n")[1]
    whole = "".join(f"{number}\n" for number in range(1, 20_001))
    assert rest.startswith(f"{len(whole) - len(head) - len(tail):,} characters left out")
    assert result.log_file is not None
    assert str(result.log_file) in rest
    assert result.log_file.read_text() == whole


async def test_the_log_of_a_flood_is_cut_and_says_so(run: Runner) -> None:
    result = await run("yes 0123456789 | head -c 21000000; echo end", cap_chars=1_000)
    assert result.output.endswith("end\n")
    assert result.log_file is not None
    text = result.log_file.read_text()
    assert text.startswith("0123456789\n")
    assert text.endswith("[… cut: only the first 20,000,000 characters are kept …]\n")
    assert len(text) < 20_000_100


async def test_a_log_that_cannot_be_written_is_said_and_costs_nothing_else(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("in the way")
    result = await run("seq 1 20000", cap_chars=1_000)
    assert result.exit_code == 0
    assert result.log_file is None
    assert "the whole could not be kept" in result.output


async def test_output_is_shown_while_the_command_runs(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "gate").mkdir()
    os.mkfifo(tmp_path / "go")

    def shown(text: str) -> None:
        assert text == "begun\n"
        gate.set()

    gate = asyncio.Event()
    task = run("echo begun; read line < go; exit $line", output=shown)
    await gate.wait()
    await asyncio.to_thread((tmp_path / "go").write_text, "7\n")
    assert (await task).exit_code == 7


async def test_what_a_terminal_would_obey_is_cleaned(run: Runner) -> None:
    result = await run(
        r"printf '10%%\r50%%\r100%%\r\n\033[31mred\033[0m\033]52;c;QUJD\007\033[2J\033[?1049l \377\000ok\n'"
    )
    assert result.output == "100%\nred � ok\n"


async def test_the_command_is_bash_without_anybodys_start_files(run: Runner, tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("echo from bashrc")
    result = await run('[[ -n $BASH_VERSION ]] && echo "${BASH##*/}"; arr=(a b); echo ${arr[1]}')
    assert result.output == "bash\nb\n"


@pytest.mark.parametrize(("command", "message"), [("echo a\0b", "NUL"), ("echo " + "x" * 200_000, "cannot be started")])
async def test_what_cannot_be_started_is_an_error_for_the_model(run: Runner, command: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        await run(command)


async def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(ToolError, match=str(gone)):
        await run_command(
            "true",
            cwd=gone,
            timeout_s=5,
            env=clean_environment(os.environ),
            output=lambda _: None,
            log_file=tmp_path / "log",
            cap_chars=1_000,
        )


@LINUX
async def test_no_zombies_and_no_open_files_are_left(run: Runner) -> None:
    await run("true")
    before = open_files()
    for _ in range(20):
        await run("(sleep 0 &) ; true")
    assert open_files() == before
    children = await run(f"ps -o stat= --ppid {os.getpid()}")
    assert "Z" not in children.output


@LINUX
def test_as_process_one_of_a_container_orphans_are_waited_for(tmp_path: Path) -> None:
    script = f"""
import asyncio, os
from pathlib import Path
from late.workspace.process import clean_environment, run_command

async def main():
    for _ in range(12):
        await run_command("(sleep 0 & sleep 0 &); true", cwd=Path({str(tmp_path)!r}), timeout_s=5,
            env=clean_environment(os.environ), output=print, log_file=Path({str(tmp_path / "log")!r}), cap_chars=1000)
    stats = [Path(f"/proc/{{pid}}/stat").read_text() for pid in os.listdir("/proc") if pid.isdigit()]
    states = [stat.rsplit(")", 1)[1].split()[0] for stat in stats]
    print(os.getpid(), states.count("Z"))

asyncio.run(main())
"""
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("needs unshare")
    command = [unshare, "--pid", "--fork", "--mount-proc", sys.executable, "-c", script]
    source = str(Path(process_module.__file__).parents[2])
    ended = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": source}, capture_output=True, text=True, check=False
    )
    if "Operation not permitted" in ended.stderr:
        pytest.skip("needs the right to make a PID namespace")
    pid, zombies = ended.stdout.split()
    assert pid == "1"
    assert int(zombies) <= 4, "those of the last two commands at most"


SECRETS = """OPENAI_API_KEY GITHUB_TOKEN AWS_SECRET_ACCESS_KEY SSH_AUTH_SOCK LD_PRELOAD BASH_ENV ENV PYTHONPATH
    NODE_OPTIONS GIT_DIR GIT_EXTERNAL_DIFF LESSOPEN PS4 SHELLOPTS PERL5OPT RUBYOPT BASH_FUNC_ls%% RIPGREP_CONFIG_PATH
    TAR_OPTIONS JAVA_TOOL_OPTIONS BROWSER PROMPT_COMMAND""".split()


def test_the_environment_is_a_short_list_without_keys() -> None:
    base = {
        "PATH": f"/usr/bin{os.pathsep}.{os.pathsep}node_modules/.bin{os.pathsep}/bin",
        "HOME": "/home/dev",
        "LC_TIME": "C",
        "VIRTUAL_ENV": "/venv",
        "HTTPS_PROXY": "http://user:secret@proxy:1",
        "http_proxy": "http://proxy:1",
        **dict.fromkeys(SECRETS, "secret"),
    }
    env = clean_environment(base)
    assert "secret" not in " ".join(env.values())
    assert env["PATH"] == f"/usr/bin{os.pathsep}/bin"
    assert (env["HOME"], env["LC_TIME"], env["VIRTUAL_ENV"], env["http_proxy"]) == (
        "/home/dev",
        "C",
        "/venv",
        "http://proxy:1",
    )
    assert (env["TERM"], env["PAGER"], env["GIT_TERMINAL_PROMPT"], env["LANG"]) == ("dumb", "cat", "0", "C.UTF-8")
    assert clean_environment({})["PATH"]


def test_git_reads_run_nothing_that_the_repository_names(tmp_path: Path) -> None:
    env = {**clean_environment(os.environ, read_only=True), "HOME": str(tmp_path)}

    def git(*arguments: str) -> str:
        ended = subprocess.run(["git", *arguments], cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
        return ended.stdout

    git("init", "-q")
    (tmp_path / "a.txt").write_text("a\n")
    git("add", "a.txt")
    (tmp_path / "a.txt").write_text("b\n")
    git("config", "core.fsmonitor", "touch fsmonitor-ran; false")
    git("config", "core.pager", "touch pager-ran; cat")
    hook = tmp_path / ".git" / "hooks" / "post-index-change"
    hook.write_text("#!/bin/sh\ntouch hook-ran\n")
    hook.chmod(0o755)
    assert "a.txt" in git("status", "--short")
    assert "+b" in git("diff")
    assert not list(tmp_path.glob("*-ran"))


def test_names_are_escaped_onto_one_line() -> None:
    assert escaped("a\nb\x1b[2K\u202e\udcff\u200b") == r"a\nb\x1b[2K\u202e\xff\u200b"
    assert escaped("größe 日本.txt") == "größe 日本.txt"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\r\nb\r\n", "a\nb\n"),
        ("1%\r2%\r3%", "3%"),
        ("N\x08NA\x08AM\x08ME\x08E", "NAME"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;never ended\nnext", "]52;c;never ended\nnext"),
        ("a\0\0b", "a b"),
        ("\x9b31mred", "red"),
    ],
)
def test_terminal_text_is_made_plain(text: str, expected: str) -> None:
    assert clean(text) == expected


def test_hostile_sequences_take_no_time() -> None:
    started = time.monotonic()
    for piece in ("\x1b]", "\x9d", "\x1b[", "\x9b", "\x1b", "\x1b[1;", "\x08", "\r"):
        clean(piece * 100_000)
    assert time.monotonic() - started < 5
