from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from late.cli import main, parse
from late.commands.options import chosen_session, directory_of, settings_of, task_of
from late.errors import UserError
from late.events import (
    AgentStarted,
    ApprovalDecided,
    ApprovalRequested,
    AssistantMessage,
    CheckFinished,
    CheckResult,
    FileChanged,
    MessageDelivered,
    MessageQueued,
    Plan,
    PlanStep,
    PlanWritten,
    RunFinished,
    ToolFinished,
    ToolStarted,
    parse_event,
)
from late.session.store import SessionStore


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith(("LATE_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    path = tmp_path / "data"
    monkeypatch.setenv("LATE_DATA_DIR", str(path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return path


@pytest.fixture
def project(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    monkeypatch.chdir(path)
    return path


@pytest.fixture
def store(data: Path) -> SessionStore:
    data.mkdir()
    return SessionStore(data / "sessions.db")


def late(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "late", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
    )


def session(store: SessionStore, directory: Path, text: str) -> str:
    session_id = store.create(directory)
    store.append(session_id, MessageQueued(message_id="1", text=text))
    store.append(session_id, MessageDelivered(message_id="1", text=text))
    return session_id


@pytest.mark.parametrize(
    "arguments",
    [
        ["sesion"],
        ["session"],
        ["session", "lst"],
        ["worktree"],
        ["worktree", "destroy"],
        ["session", "show"],
        ["session", "list", "extra"],
        ["run", "a", "b"],
        ["run", "a", "--approve", "some"],
        ["--cont"],
        ["--continue", "--resume", "x"],
        ["--subagent-max-turns", "0"],
        ["--dialect", "fluent"],
        ["--system-prompt", "a", "--system-prompt-file", "b"],
        ["--continue", "session", "list"],
        ["--prompt", "x", "run", "y"],
    ],
)
def test_wrong_usage_ends_with_status_2_and_a_word_about_it(project: Path, arguments: list[str]) -> None:
    done = late(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].strip()
    assert "Traceback" not in done.stderr


def test_version_and_help_go_to_stdout(project: Path) -> None:
    assert late("--version").stdout.startswith("late 0.")
    for arguments in ([], ["run"], ["session"], ["worktree"]):
        done = late(*arguments, "--help")
        assert done.returncode == 0
        assert "examples:" in done.stdout


def test_flags_count_before_and_after_the_subcommand() -> None:
    assert parse(["--no-bash", "-C", "x", "run", "t"]).enable_bash is False
    assert parse(["-C", "x", "session", "list"]).directory == Path("x")
    assert parse(["session", "list", "-C", "x"]).directory == Path("x")
    assert parse(["run", "--no-bash", "t"]).enable_bash is False
    assert parse(["run", "t"]).enable_bash is None
    assert parse(["--resume", "a", "run"]).resume == "a"
    assert parse(["run", "--resume", "a"]).resume == "a"
    assert parse([]).command == "tui"


@pytest.mark.parametrize(
    ("argv", "local", "task"),
    [
        (["run", "--local", "fix it"], "", "fix it"),
        (["run", "--local", "m.GGUF", "fix it"], "m.GGUF", "fix it"),
        (["run", "--local=m", "fix it"], "m", "fix it"),
        (["run", "fix it", "--local"], "", "fix it"),
        (["--local", "run", "fix it"], "", "fix it"),
        (["run", "--", "--local"], None, "--local"),
    ],
)
def test_local_takes_a_model_file_and_never_the_task(argv: list[str], local: str | None, task: str) -> None:
    parsed = parse(argv)
    assert (parsed.local, parsed.task) == (local, task)


def test_flags_become_settings(project: Path) -> None:
    (project / "prompt.txt").write_text("Be brief.")
    parsed = parse(
        [
            *("--dialect", "plain", "--no-bash", "--no-subagents", "--subagent-max-turns", "7"),
            *("--system-prompt-file", "prompt.txt", "--append-system-prompt", "x", "--local", "m.gguf"),
        ]
    )
    settings = settings_of(parsed, project)
    assert settings.main.dialect == settings.subagent.dialect == "plain"
    assert (settings.enable_bash, settings.enable_subagents, settings.subagent_max_turns) == (False, False, 7)
    assert (settings.system_prompt, settings.append_system_prompt) == ("Be brief.", "x")
    assert (settings.local, settings.local_model) == (True, project / "m.gguf")
    bare = settings_of(parse(["--local"]), project)
    assert (bare.local, bare.local_model) == (True, None)
    plain = settings_of(parse([]), project)
    assert set(plain.sources.values()) == {"default"}
    with pytest.raises(UserError, match="nowhere"):
        settings_of(parse(["--system-prompt-file", "nowhere"]), project)


def test_the_directory_must_exist(project: Path) -> None:
    (project / "sub").mkdir()
    assert directory_of(parse(["-C", "sub"])) == project / "sub"
    assert directory_of(parse([])) == project
    with pytest.raises(UserError, match="is not a folder"):
        directory_of(parse(["-C", "nowhere"]))


def test_a_deleted_current_folder_is_named(project: Path) -> None:
    gone = project / "gone"
    gone.mkdir()
    done = subprocess.run(
        [
            sys.executable,
            "-P",  # as for the installed program, whose modules are not looked for in the current folder
            "-c",
            f"import os; os.rmdir({str(gone)!r}); from late.cli import main; exit(main(['session', 'list']))",
        ],
        cwd=gone,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("late: the current folder does not exist any more")


def test_continue_means_the_newest_session_of_this_folder_only(
    project: Path, store: SessionStore, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="there is no session in"):
        chosen_session(parse(["--continue"]))
    here = session(store, project, "here")
    elsewhere = session(store, tmp_path, "elsewhere")
    assert chosen_session(parse(["--continue"])) == (here, project)
    assert chosen_session(parse(["--continue", "-C", str(tmp_path)])) == (elsewhere, tmp_path)
    assert chosen_session(parse([])) == (None, project)


def test_a_named_session_is_opened_where_it_was_held(project: Path, store: SessionStore, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    elsewhere, lost = session(store, tmp_path, "x"), session(store, gone, "y")
    gone.rmdir()
    assert chosen_session(parse(["--resume", elsewhere])) == (elsewhere, tmp_path)
    assert chosen_session(parse(["--resume", elsewhere, "-C", "."])) == (elsewhere, project)
    with pytest.raises(UserError, match="is gone"):
        chosen_session(parse(["--resume", lost]))
    assert chosen_session(parse(["run", "--resume", lost, "-C", "."])) == (lost, project)


def test_a_task_of_one_dash_comes_from_stdin(project: Path) -> None:
    script = (
        "from late.cli import parse; from late.commands.options import task_of; print(task_of(parse(['run', '-'])))"
    )
    done = subprocess.run([sys.executable, "-c", script], input="fix\nit é".encode(), capture_output=True)
    assert done.stdout.decode() == "fix\nit é\n"
    assert task_of(parse(["run", "fix it"])) == "fix it"
    assert task_of(parse(["run", "--resume", "x"])) is None
    with pytest.raises(UserError, match="the task is empty"):
        task_of(parse(["run", "  "]))


def test_sessions_of_this_folder_are_listed_the_newest_last(project: Path, store: SessionStore, tmp_path: Path) -> None:
    first, second = session(store, project, "first task"), session(store, project, "second 仕事")
    other = session(store, tmp_path, "elsewhere")
    done = late("session", "list")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [first, second]
    assert lines[1].endswith("1 message   second 仕事")
    assert [line.split()[0] for line in late("session", "list", "--all").stdout.splitlines()] == [first, second, other]
    as_json = [json.loads(line) for line in late("session", "list", "--json").stdout.splitlines()]
    assert [entry["title"] for entry in as_json] == ["first task", "second 仕事"]
    with store.lock(second):
        assert late("session", "list").stdout.splitlines()[1].endswith("[open]")


def test_an_empty_list_is_no_failure(project: Path) -> None:
    done = late("session", "list")
    assert (done.returncode, done.stdout) == (0, "")
    assert str(project) in done.stderr


def test_a_session_is_shown_as_text_in_which_nothing_acts_on_the_terminal(project: Path, store: SessionStore) -> None:
    session_id = session(store, project, "fix \x1b[2Jit\nplease")
    plan = Plan(title="The fix", steps=(PlanStep(title="Change a.py"), PlanStep(title="Test it")))
    for event in (
        AssistantMessage(text="I will look.\nThen plan."),
        ToolStarted(call_id="1", name="read_file", label="Read a.py"),
        ToolFinished(call_id="1", name="read_file", status="error", content="a\nb\nc\nd\ne \x1b]52;c;x\x07"),
        PlanWritten(call_id="2", plan=plan, plan_hash="h", path="p"),
        ApprovalRequested(request_id="r", call_id="3", kind="tool", title="Run make", reason="unknown command"),
        ApprovalDecided(request_id="r", call_id="3", approved=False, words="not now"),
        AgentStarted(agent_id="coder-1", role="coder", parent_id="planner", goal="Step 1", system_prompt="secret"),
        FileChanged(
            agent_id="coder-1",
            call_id="4",
            path="a.py",
            kind="modified",
            before_sha256="x",
            after_sha256="y",
            diff="-old\n+new\u202e",
            added=1,
            removed=1,
        ),
        CheckFinished(step=1, check=CheckResult(command="make test", exit_code=1)),
        RunFinished(reason="failed", message="the check failed"),
    ):
        store.append(session_id, event)
    done = late("session", "show", session_id[:8])
    assert done.returncode == 0
    assert session_id in done.stdout.splitlines()[0]
    assert done.stdout.split("\n\n", 1)[1] == (
        "> fix \\x1b[2Jit\n> please\n\n"
        "I will look.\nThen plan.\n\n"
        "* Read a.py\n\n"
        "  error: a\n  b\n  c\n  … 2 more lines\n\n"
        "plan: The fix\n  1. Change a.py\n  2. Test it\n\n"
        "? Run make (unknown command)\n\n"
        "denied by person: not now\n\n"
        "coder-1 | started: Step 1\n\n"
        "coder-1 | modified a.py (+1 -1)\ncoder-1 | -old\ncoder-1 | +new\\u202e\n\n"
        "check `make test`: exit status 1\n\n"
        "failed: the check failed\n"
    )


def test_the_events_of_a_session_are_printed_one_a_line(project: Path, store: SessionStore) -> None:
    session_id = session(store, project, "fix it")
    lines = late("session", "show", session_id, "--json").stdout.splitlines()
    assert [parse_event(line) for line in lines] == list(store.events(session_id))


def test_delete_says_what_it_deleted_and_wants_an_unambiguous_id(project: Path, store: SessionStore) -> None:
    first, second = session(store, project, "one"), session(store, project, "two")
    ambiguous = late("session", "delete", first[:6])
    assert ambiguous.returncode == 2
    assert first in ambiguous.stderr
    assert second in ambiguous.stderr
    done = late("session", "delete", first)
    assert done.returncode == 0
    assert done.stdout.startswith(f"deleted {first}")
    assert [summary.id for summary in store.list()] == [second]


@pytest.mark.parametrize("word", ["show", "delete", "load"])
def test_an_unknown_id_is_one_line_and_a_hint(project: Path, word: str) -> None:
    done = late("session", word, "zzz")
    assert done.returncode == 2
    assert done.stderr == ("late: there is no session 'zzz'\n      `late session list --all` shows all sessions.\n")


def test_a_broken_database_is_status_1_and_no_traceback(project: Path, data: Path) -> None:
    data.mkdir()
    (data / "sessions.db").write_bytes(b"no database at all, really " * 100)
    done = late("session", "list")
    assert done.returncode == 1
    assert done.stderr.startswith("late: cannot open ")
    assert "Traceback" not in done.stderr


def test_a_data_folder_that_cannot_be_made_is_named(project: Path) -> None:
    (project / "file").write_text("")
    done = late("session", "list", LATE_DATA_DIR=str(project / "file" / "data"))
    assert done.returncode == 2
    assert "LATE_DATA_DIR" in done.stderr
    assert sorted(path.name for path in project.iterdir()) == ["file"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_terminal_that_cannot_show_a_character_gets_another_one(
    project: Path, store: SessionStore, encoding: str
) -> None:
    session(store, project, "仕事 ┌─┐")
    done = late("session", "list", LC_ALL="C", PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert done.returncode == 0
    assert "??" in done.stdout


def large_session(store: SessionStore, directory: Path) -> str:
    session_id = session(store, directory, "large")
    for _ in range(50):
        store.append(session_id, AssistantMessage(text="x" * 100_000))
    return session_id


def test_a_reader_that_goes_away_is_no_traceback(project: Path, store: SessionStore) -> None:
    shown = subprocess.Popen(
        [sys.executable, "-m", "late", "session", "show", large_session(store, project)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert shown.stdout
    assert shown.stderr
    shown.stdout.readline()
    shown.stdout.close()
    assert shown.stderr.read() == b""
    assert shown.wait() == 1
    shown.stderr.close()


def test_an_interrupt_is_status_130_and_no_traceback(project: Path, store: SessionStore) -> None:
    shown = subprocess.Popen(
        [sys.executable, "-m", "late", "session", "show", large_session(store, project)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert shown.stdout
    shown.stdout.readline()
    shown.send_signal(signal.SIGINT)
    _, errors = shown.communicate()
    assert errors == b""
    assert shown.returncode == 130


def test_main_takes_arguments_and_returns_the_status(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["session", "list", "--json"]) == 0
    assert main(["session", "show", "zzz"]) == 2
    assert "there is no session" in capsys.readouterr().err
