"""The bash tool: what a model is told of a command that ran."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from late.errors import ToolError
from late.tools.bash import Bash
from late.tools.list_files import ListFiles
from late.tools.outline import Outline
from late.tools.registry import Registry
from late.tools.search import Search
from support.tool_context import context_for, run_tool


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    monkeypatch.setenv("LATE_DATA_DIR", str(folder))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    return root


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


async def test_the_result_begins_with_the_exit_status(project: Path) -> None:
    result = await run_tool(Bash(), project, command="echo out; echo err >&2; exit 3")
    first, *rest = result.content.split("\n")
    assert first.startswith("exit 3 (")
    assert rest == ["out", "err"]
    assert result.failed
    assert result.details["exit_code"] == 3
    assert result.details["output_file"] is None
    assert result.details["cwd"] == str(project)


async def test_success_without_output_says_so(project: Path) -> None:
    result = await run_tool(Bash(), project, command="true")
    assert result.content.endswith("\n(no output)")
    assert not result.failed


async def test_a_signal_is_named(project: Path) -> None:
    assert ", SIGKILL" in (await run_tool(Bash(), project, command="kill -9 $$")).content


async def test_the_time_limit_is_a_failure_that_says_what_to_do(project: Path) -> None:
    result = await run_tool(Bash(), project, command="echo begun; sleep 60", timeout=1)
    assert result.content.startswith("exit none: stopped at its time limit of 1 s")
    assert "longer timeout" in result.content
    assert result.content.endswith("\nbegun")
    assert result.failed
    assert result.details["exit_code"] is None


async def test_a_long_output_is_cut_and_kept_in_a_file(project: Path, data_folder: Path) -> None:
    result = await run_tool(Bash(), project, cap_chars=2_000, command="seq 1 5000; echo the error at the end")
    assert result.content.endswith("5000\nthe error at the end")
    whole = Path(result.details["output_file"])
    assert whole.is_relative_to(data_folder)
    assert str(whole) in result.content
    assert read(whole).startswith("1\n2\n")
    assert read(whole).endswith("the error at the end\n")


async def test_old_output_files_are_removed(project: Path, data_folder: Path) -> None:
    await run_tool(Bash(), project, cap_chars=2_000, command="seq 1 5000")
    (old,) = (data_folder / "output").glob("*.log")
    os.utime(old, (0, 0))
    await run_tool(Bash(), project, cap_chars=2_000, command="seq 1 5000")
    assert not old.exists()


async def test_what_was_left_running_is_reported(project: Path) -> None:
    result = await run_tool(Bash(), project, command="sleep 300 & echo started")
    assert "\nstarted\n[still running when the shell ended, so it was ended: " in result.content


async def test_it_runs_in_the_project_or_in_a_folder_of_it(project: Path) -> None:
    assert (await run_tool(Bash(), project, command="pwd")).content.endswith(f"\n{project}")
    assert (await run_tool(Bash(), project, command="pwd", cwd="src")).content.endswith(f"\n{project / 'src'}")


@pytest.mark.parametrize("cwd", ["/", "..", "src/../..", "link"])
async def test_a_folder_outside_of_the_workspace_is_refused(project: Path, cwd: str) -> None:
    (project / "link").symlink_to(project.parent)
    with pytest.raises(ToolError, match="outside of the workspace") as error:
        await run_tool(Bash(), project, command="touch here", cwd=cwd)
    assert str(project) in error.value.hint


async def test_a_folder_that_does_not_exist_is_named_with_near_ones(project: Path) -> None:
    with pytest.raises(ToolError, match="cwd scr does not exist") as error:
        await run_tool(Bash(), project, command="true", cwd="scr")
    assert "src/" in error.value.hint


async def test_a_workspace_that_was_deleted_is_said(project: Path) -> None:
    context = context_for(project)
    shutil.rmtree(project)
    with pytest.raises(ToolError, match=f"{project} does not exist any more"):
        await Bash().run(Bash.Args(command="true"), context)


async def test_output_is_streamed(project: Path) -> None:
    shown: list[str] = []
    await Bash().run(Bash.Args(command="echo streamed"), context_for(project, shown=shown))
    assert "".join(shown) == "streamed\n"


async def test_keys_do_not_reach_the_command(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    assert "sk-very-secret" not in (await run_tool(Bash(), project, command="env; cat /proc/self/environ")).content


async def test_an_empty_command_is_refused(project: Path) -> None:
    with pytest.raises(ToolError, match="empty"):
        await run_tool(Bash(), project, command=" \n")


def test_the_label_is_one_harmless_line_and_the_preview_shows_all(project: Path) -> None:
    arguments = Bash.Args(command="echo \x1b[2J one\nrm two")
    assert Bash().label(arguments) == r"$ echo \x1b[2J one …"
    assert Bash().preview(arguments, context_for(project)).detail == "echo \x1b[2J one\nrm two"


def test_what_a_model_is_told_of_these_tools_is_short() -> None:
    tools = Registry([Search(), ListFiles(), Outline(), Bash()])
    specs = tools.specs()
    assert all(len(spec.description) <= 160 for spec in specs)
    assert len(json.dumps([[spec.name, spec.description, spec.parameters] for spec in specs])) < 1_300
