"""Where paths lead, what is inside, what is hidden, and what an agent has seen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from late.errors import ToolError
from late.workspace.files import FileChange, ReadStamps, plan_edit
from late.workspace.workspace import Workspace


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "proj"
    (root / "src").mkdir(parents=True)
    (root / "src" / "app.py").write_text("x\n")
    (tmp_path / "proj-private").mkdir()
    (tmp_path / "proj-private" / "x").write_text("secret\n")
    return root


@pytest.mark.parametrize(
    "path", ["src/app.py", "./src/app.py", "src//app.py", "src/../src/app.py", "../proj/src/app.py", "src/./app.py"]
)
def test_all_spellings_of_a_path_lead_to_one_file(project: Path, path: str) -> None:
    workspace = Workspace(project)
    assert workspace.resolve(path) == project.resolve() / "src" / "app.py"
    assert workspace.relative(workspace.resolve(path)) == "src/app.py"


def test_a_sibling_whose_name_begins_alike_is_outside(project: Path) -> None:
    workspace = Workspace(project)
    real = workspace.resolve("../proj-private/x")
    assert not workspace.contains(real)
    assert workspace.relative(real) == (project.parent / "proj-private" / "x").resolve().as_posix()


def test_links_that_lead_out_are_outside_also_for_files_that_do_not_exist_yet(project: Path) -> None:
    (project / "out").symlink_to("../proj-private")
    (project / "in").symlink_to("src")
    workspace = Workspace(project)
    assert not workspace.contains(workspace.resolve("out/x"))
    assert not workspace.contains(workspace.resolve("out/new/deep.txt"))
    assert workspace.contains(workspace.resolve("in/new/deep.txt"))
    assert workspace.relative(workspace.resolve("in/app.py")) == "src/app.py"


def test_a_root_behind_a_link_is_the_real_folder(project: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("proj")
    workspace = Workspace(tmp_path / "link")
    assert workspace.root == project.resolve()
    assert workspace.contains(tmp_path / "link" / "src" / "app.py")


def test_a_tilde_is_an_ordinary_character(project: Path) -> None:
    workspace = Workspace(project)
    assert workspace.resolve("~/.bashrc") == workspace.root / "~" / ".bashrc"


@pytest.mark.parametrize("path", ["", "  ", "a\0b", "a\ud800"])
def test_what_cannot_be_a_path_is_refused(project: Path, path: str) -> None:
    with pytest.raises(ToolError, match="path"):
        Workspace(project).resolve(path)


def test_what_llmignore_hides_is_hidden_behind_links_too(project: Path) -> None:
    (project / ".llmignore").write_text("secret/\n*.pem\n")
    (project / "secret").mkdir()
    (project / "secret" / "a").write_text("a")
    (project / "way").symlink_to("secret/a")
    workspace = Workspace(project)
    hidden = {path: workspace.hidden(workspace.resolve(path)) for path in ("secret/a", "way", "k.pem", "src/app.py")}
    assert hidden == {"secret/a": True, "way": True, "k.pem": True, "src/app.py": False}
    assert not workspace.hidden(workspace.root)
    assert not workspace.hidden(workspace.resolve("../proj-private/k.pem"))


def test_a_stamp_is_of_the_file_and_not_of_its_spelling(project: Path) -> None:
    (project / "link.py").symlink_to("src/app.py")
    stamps = ReadStamps()
    stamps.record(project / "link.py", b"x\n")
    assert stamps.seen(project / "src" / ".." / "src" / "app.py")
    assert stamps.current(project / "src" / "app.py", b"x\n")
    assert not stamps.current(project / "src" / "app.py", b"y\n")
    assert not stamps.seen(project / "other.py")


def test_lines_that_were_not_shown_are_known_also_after_edits(tmp_path: Path) -> None:
    file, stamps = tmp_path / "f", ReadStamps()
    data = b"".join(b"line %d\n" % number for number in range(1, 21))
    assert stamps.unseen(file, 20) == (1, 20)
    stamps.record(file, data, [(1, 5)])
    stamps.record(file, data, [(11, 20)])
    assert stamps.unseen(file, 20) == (6, 10)
    edit = plan_edit(data, "line 2\n", "two\nand a half\n")
    stamps.edited(file, data, edit)
    assert stamps.current(file, edit.after)
    assert stamps.unseen(file, 21) == (7, 11)
    stamps.record(file, edit.after, [(7, 11)])
    assert stamps.unseen(file, 21) is None
    edit2 = plan_edit(edit.after, "line 8\nline 9\n", "")
    stamps.edited(file, edit.after, edit2)
    assert stamps.unseen(file, 19) is None


def test_after_a_foreign_change_only_the_own_edit_is_seen(tmp_path: Path) -> None:
    file, stamps = tmp_path / "f", ReadStamps()
    stamps.record(file, b"a\nb\nc\n")
    foreign = b"a\nb\nc\nd\n"
    edit = plan_edit(foreign, "b", "B")
    stamps.edited(file, foreign, edit)
    assert stamps.unseen(file, 4) == (1, 1)


def test_a_change_tells_its_kind_and_its_lines() -> None:
    change = FileChange("a.py", b"one\ntwo\nthree\n", b"one\n2\nthree\nfour")
    assert (change.kind, change.added, change.removed) == ("modified", 2, 1)
    assert change.diff == (
        "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n three\n+four\n\\ No newline at end of file\n"
    )
    created, deleted = FileChange("n", None, b"x\n"), FileChange("n", b"x\n", None)
    assert (created.kind, created.diff) == ("created", "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n")
    assert (deleted.kind, deleted.diff) == ("deleted", "--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n")
    assert created.before_sha256 is None
    assert created.after_sha256 == deleted.before_sha256 == FileChange("n", None, b"x\n").after_sha256


def test_git_applies_the_diffs_of_changes(tmp_path: Path) -> None:
    import subprocess

    before = b"".join(b"line %d\n" % number for number in range(60))
    after = before.replace(b"line 3\n", b"").replace(b"line 30\n", b"thirty\nand more\n") + b"end"
    (tmp_path / "f").write_bytes(before)
    subprocess.run(
        ["git", "apply", "--unidiff-zero"],
        input=FileChange("f", before, after).diff.encode(),
        cwd=tmp_path,
        check=True,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)},
    )
    assert (tmp_path / "f").read_bytes() == after


def test_a_change_of_line_endings_is_seen_and_equal_ones_are_not() -> None:
    mixed = FileChange("f", b"a\nb\n", b"a\r\nb\n").diff
    assert "-a\n+a␍\n b" in mixed
    crlf = FileChange("f", b"a\r\nb\r\n", b"a\r\nc\r\n").diff
    assert "\r" not in crlf
    assert "␍" not in crlf


def test_a_diff_stays_short_and_quick_for_long_files_and_binary_data() -> None:
    long = FileChange("f", b"a\n" * 200_000, b"b\n" * 200_000)
    assert long.diff.count("\n") < 450
    assert "more lines of diff" in long.diff
    assert (long.added, long.removed) == (200_000, 200_000)
    assert len(FileChange("f", b"", b"x" * 1_000_000).diff) < 1000
    assert FileChange("f", b"\0", b"\0\0").diff == "Binary file f: 1 → 2 bytes\n"
