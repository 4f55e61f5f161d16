"""`.llmignore` hides from every tool what git would ignore with the same lines."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from late.errors import ToolError
from late.workspace.ignore import IgnoreRules


def rules(root: Path, top: str, **folders: str) -> IgnoreRules:
    for folder, text in {".": top, **folders}.items():
        (root / folder).mkdir(exist_ok=True)
        (root / folder / ".llmignore").write_text(text)
    return IgnoreRules(root)


def test_without_rules_nothing_is_hidden(tmp_path: Path) -> None:
    assert not IgnoreRules(tmp_path).hidden("a/b.txt", is_dir=False)


def test_a_rule_hides_at_any_depth_and_everything_below_a_folder(tmp_path: Path) -> None:
    found = rules(tmp_path, "*.pem\nsecrets/\n")
    assert found.hidden("deep/down/key.pem", is_dir=False)
    assert found.hidden("app/secrets", is_dir=True)
    assert found.hidden("app/secrets/a/b.txt", is_dir=False)
    assert not found.hidden("secrets", is_dir=False), "a file of that name is no folder"


@pytest.mark.parametrize("line", ["vendor/**", "/vendor", "vendor/", "vendor/*"])
def test_every_spelling_of_a_folder_hides_its_files(tmp_path: Path, line: str) -> None:
    assert rules(tmp_path, line).hidden("vendor/lib/x.py", is_dir=False)


def test_the_last_line_wins_and_a_deeper_file_wins_over_a_higher_one(tmp_path: Path) -> None:
    found = rules(tmp_path, "*.log\n!keep.log\n", sub="keep.log\n!other.log\n")
    assert found.hidden("a.log", is_dir=False)
    assert not found.hidden("keep.log", is_dir=False)
    assert found.hidden("sub/keep.log", is_dir=False)
    assert not found.hidden("sub/other.log", is_dir=False)


def test_nothing_below_a_hidden_folder_is_shown_again(tmp_path: Path) -> None:
    found = rules(tmp_path, "private/\n!private/open.txt\n", private="!*\n")
    assert found.hidden("private/open.txt", is_dir=False)


def test_windows_line_endings_a_byte_order_mark_and_bad_lines_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / ".llmignore").write_bytes(b"\xef\xbb\xbf*.pem\r\n!\r\n\r\n# words\r\n*.key\r\n")
    found = IgnoreRules(tmp_path)
    assert found.hidden("a.pem", is_dir=False)
    assert found.hidden("a.key", is_dir=False)
    assert not found.hidden("# words", is_dir=False)


def test_a_changed_file_counts_at_once(tmp_path: Path) -> None:
    found = rules(tmp_path, "*.pem\n")
    assert found.hidden("a.pem", is_dir=False)
    (tmp_path / ".llmignore").write_text("*.something-else\n")
    assert not found.hidden("a.pem", is_dir=False)
    (tmp_path / ".llmignore").unlink()
    assert not found.hidden("a.something-else", is_dir=False)


def test_a_file_that_cannot_be_applied_is_an_error_and_not_a_hole(tmp_path: Path) -> None:
    found = rules(tmp_path, "x" * 1_000_001)
    with pytest.raises(ToolError, match="cannot be applied"):
        found.hidden("a.txt", is_dir=False)


def test_undecodable_and_odd_names_are_matched(tmp_path: Path) -> None:
    found = rules(tmp_path, "*.txt\n")
    for name in ("\udcff.txt", "a\nb.txt", "-rf.txt", " x .txt"):
        assert found.hidden(name, is_dir=False)


def test_only_a_negation_of_its_own_shows_what_git_ignores(tmp_path: Path) -> None:
    found = rules(tmp_path, "*.log\n!keep.log\n!generated/\n")
    assert found.readmits("generated/api.py")
    assert not found.readmits("node_modules/keep.log"), "that line takes back `*.log` and nothing else"
    assert not found.readmits("other.py")


BODIES = ["a", "b", "*.txt", "a/b", "a/*", "c?", "[ab]", "[!a]", "a/**/c", "*", "**", "***", "x*t", "\\a", "[a"]
ENDS = ["", "", "/", "/**", "/**/", "/*", " ", "\\ "]
LINES = st.lists(
    st.tuples(*map(st.sampled_from, (["", "", "!"], ["", "/", "**/"], BODIES, ENDS))).map("".join), max_size=5
)
FILES = ["a/b/c", "a/c", "b/a", "b/x.txt", "x.txt", "c1", "a/b/x.txt", "d/a/b", "c/d"]


@given(LINES, LINES)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_verdicts_are_those_of_git(tmp_path: Path, top: list[str], nested: list[str]) -> None:
    if not (tmp_path / ".git").exists():
        subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "a").mkdir(exist_ok=True)
    for folder, lines in (("", top), ("a", nested)):
        for name in (".gitignore", ".llmignore"):
            (tmp_path / folder / name).write_text("\n".join(lines))
    asked = subprocess.run(
        ["git", "-c", "core.excludesFile=", "check-ignore", "--no-index", *FILES],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = IgnoreRules(tmp_path)
    assert [path for path in FILES if found.hidden(path, is_dir=False)] == asked.stdout.split()
