from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from late.config.prompts import Prompt, load_prompt, parse_prompt, prompt_names
from late.errors import UserError


def test_every_prompt_that_late_brings_along_can_be_read() -> None:
    assert {"planner", "coder", "researcher"} <= set(prompt_names())
    for name in prompt_names():
        prompt = load_prompt(name)
        assert prompt.name == name.removesuffix("-led")
        assert prompt.description
        assert prompt.tools
        assert prompt.text
        assert "---" not in prompt.text.splitlines()[:1]


def test_front_matter_is_keys_and_comma_lists_and_the_rest_is_text() -> None:
    front = "---\nname: x\ndescription: a: b, c\ntools:  read_file ,bash,, \nextra: kept quiet\n---\n"
    text = front + "\nFirst.\n\n---\nLast.\n"
    assert parse_prompt(text, "x.md") == Prompt("x", "a: b, c", ("read_file", "bash"), "First.\n\n---\nLast.")


def test_line_endings_do_not_matter() -> None:
    assert parse_prompt("---\r\nname: x\r\n---\r\nText.\r\n", "x.md") == Prompt("x", "", (), "Text.")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x.md:1: the file does not begin"),
        ("name: x\n---\n", "x.md:1: the file does not begin"),
        ("---\nname: x\n", "x.md: no second"),
        ("---\nname: x\noops\n---\n", "x.md:3: not of the form"),
        ("---\ndescription: x\n---\n", "x.md: the front matter has no `name`"),
    ],
)
def test_a_malformed_file_is_named_with_its_line(text: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_prompt(text, "x.md")
    assert str(caught.value).startswith(said)


def test_a_projects_own_prompt_is_read_only_when_the_project_is_trusted(tmp_path: Path) -> None:
    agents = tmp_path / ".late" / "agents"
    agents.mkdir(parents=True)
    (agents / "coder.md").write_text("---\nname: coder\n---\nMine.\n")
    (agents / "poet.md").write_text("---\nname: poet\n---\nRoses.\n")
    assert load_prompt("coder").text != "Mine."
    assert load_prompt("coder", tmp_path).text == "Mine."
    assert load_prompt("poet", tmp_path).text == "Roses."
    assert load_prompt("planner", tmp_path) == load_prompt("planner")


@pytest.mark.parametrize("name", ["../README", "", "/etc/passwd", "Coder", "a/b"])
def test_a_name_that_is_a_path_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="is no name of a prompt"):
        load_prompt(name)


def test_a_missing_prompt_says_which_there_are() -> None:
    with pytest.raises(UserError) as caught:
        load_prompt("poet")
    assert "planner" in caught.value.hint


def test_an_installed_package_reads_the_prompts_that_are_shipped_in_it(tmp_path: Path) -> None:
    checkout = Path(__file__).parents[2]
    site = tmp_path / "site.zip"
    with zipfile.ZipFile(site, "w") as wheel:
        for file in (checkout / "src" / "late").rglob("*.py"):
            wheel.write(file, file.relative_to(checkout / "src"))
        wheel.writestr("late/prompts/poet.md", "---\nname: poet\n---\nRoses.\n")
    script = "from late.config.prompts import *; print(prompt_names(), load_prompt('poet').text)"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(site)!r}); {script}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "('poet',) Roses.\n"
