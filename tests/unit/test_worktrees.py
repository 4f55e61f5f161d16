from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from late.errors import LateError, UserError
from late.workspace.worktrees import Worktrees, unsaved_work


def git(directory: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *arguments],
        cwd=directory,
        check=True,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@example.org",
        },
    ).stdout


def late(directory: Path, *arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "late", "worktree", *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        env={**os.environ, **({"PATH": path} if path else {})},
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / 'my proj "x" 仕事'
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    (path / "a.txt").write_text("one\n")
    (path / ".gitignore").write_text("*.log\n")
    git(path, "add", ".")
    git(path, "commit", "-q", "-m", "first")
    return path


def test_a_worktree_without_a_branch_gets_a_new_one_named_like_its_folder(repository: Path) -> None:
    created = Worktrees(repository).create(Path("../fix-login"))
    assert created.branch == "fix-login"
    assert created.path == repository.parent / "fix-login"
    assert (created.path / "a.txt").read_text() == "one\n"
    assert git(created.path, "branch", "--show-current").strip() == "fix-login"


def test_an_existing_branch_is_checked_out(repository: Path) -> None:
    git(repository, "branch", "topic/deep")
    assert Worktrees(repository).create(Path("../w"), "topic/deep").branch == "topic/deep"


def test_a_branch_that_only_a_remote_has_is_tracked(repository: Path, tmp_path: Path) -> None:
    git(repository, "branch", "theirs")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(repository), str(clone))
    Worktrees(clone).create(Path("../w"), "theirs")
    assert git(clone, "config", "branch.theirs.remote").strip() == "origin"


def test_a_new_branch_is_created_under_the_name_that_is_given(repository: Path) -> None:
    assert Worktrees(repository).create(Path("../w"), "feature/x").branch == "feature/x"


def test_a_folder_named_like_a_branch_does_not_take_that_branch_silently(repository: Path) -> None:
    git(repository, "branch", "taken")
    with pytest.raises(UserError, match="there is a branch taken already"):
        Worktrees(repository).create(Path("../taken"))


def test_a_worktree_starts_from_a_detached_commit(repository: Path) -> None:
    git(repository, "checkout", "-q", "--detach")
    created = Worktrees(repository).create(Path("../w"))
    assert created.branch == "w"
    assert created.commit == git(repository, "rev-parse", "HEAD").strip()


def test_paths_with_blanks_quotes_and_cjk_are_created_listed_and_removed(repository: Path) -> None:
    worktrees = Worktrees(repository)
    created = worktrees.create(Path('../tree "y" 樹 x'), "t")
    assert created in worktrees.list()
    assert len(worktrees.list()) == 2
    worktrees.remove(created.path)
    assert not created.path.exists()
    assert len(worktrees.list()) == 1


def test_detached_locked_and_missing_worktrees_are_listed(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", "--detach", str(tmp_path / "detached"))
    git(repository, "worktree", "add", "-q", "-b", "b", str(tmp_path / "locked"))
    git(repository, "worktree", "lock", "--reason", "on a stick", str(tmp_path / "locked"))
    git(repository, "worktree", "add", "-q", "-b", "c", str(tmp_path / "gone"))
    (tmp_path / "gone").rename(tmp_path / "elsewhere")
    main, *others = Worktrees(repository).list()
    found = {worktree.path.name: worktree for worktree in others}
    assert (main.branch, main.bare, main.locked, main.missing) == ("main", False, None, False)
    assert found["detached"].branch is None
    assert found["detached"].commit == main.commit
    assert found["locked"].locked == "on a stick"
    assert found["gone"].missing


def test_a_bare_repository_is_listed_as_such(repository: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "-q", "--bare", str(repository), str(bare))
    worktrees = Worktrees(bare)
    assert [worktree.bare for worktree in worktrees.list()] == [True]
    assert worktrees.active() is None
    assert worktrees.create(Path("../from-bare")).branch == "from-bare"


def test_a_git_that_cannot_separate_by_nul_is_listed_all_the_same(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", "-b", "b", str(tmp_path / "with blank"))
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    old = tmp_path / "bin" / "git"
    old.parent.mkdir()
    old.write_text(
        "#!/bin/sh\n"
        'case "$*" in *-z*) echo "error: unknown switch" >&2; exit 129;; esac\n'
        'case "$1" in version|--version) echo "git version 2.34.1"; exit 0;; esac\n'
        f'exec {real} "$@"\n'
    )
    old.chmod(0o755)
    done = late(repository, "list", "--json", path=f"{old.parent}:{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr
    assert [Path(json.loads(line)["path"]).name for line in done.stdout.splitlines()][1] == "with blank"


@pytest.mark.parametrize(
    ("name", "content", "staged", "expected"),
    [
        ("a.txt", "two\n", False, " M a.txt"),
        ("a.txt", "two\n", True, "M  a.txt"),
        ("new dir/ä ö.txt", "x", False, "?? new dir/ä ö.txt"),
    ],
)
def test_a_worktree_with_unsaved_work_is_kept_and_the_work_is_listed(
    repository: Path, name: str, content: str, staged: bool, expected: str
) -> None:
    worktrees = Worktrees(repository)
    created = worktrees.create(Path("../w"))
    file = created.path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(content)
    if staged:
        git(created.path, "add", "-A")
    with pytest.raises(UserError) as caught:
        worktrees.remove(created.path)
    assert expected in str(caught.value)
    assert "--force" in caught.value.hint
    assert file.read_text() == content


def test_a_rename_is_listed_once(repository: Path) -> None:
    git(repository, "mv", "a.txt", "b c.txt")
    assert unsaved_work(repository) == ["R  b c.txt"]


def test_ignored_files_do_not_keep_a_worktree_and_its_branch_stays(repository: Path) -> None:
    worktrees = Worktrees(repository)
    created = worktrees.create(Path("../w"))
    (created.path / "x.log").write_text("")
    (created.path / "b.txt").write_text("b")
    git(created.path, "add", "b.txt")
    git(created.path, "commit", "-q", "-m", "unmerged")
    commit = git(created.path, "rev-parse", "HEAD").strip()
    worktrees.remove(created.path)
    assert not created.path.exists()
    assert git(repository, "rev-parse", "w").strip() == commit


def test_force_removes_a_worktree_with_unsaved_work(repository: Path) -> None:
    worktrees = Worktrees(repository)
    created = worktrees.create(Path("../w"))
    (created.path / "new.txt").write_text("x")
    worktrees.remove(created.path, force=True)
    assert not created.path.exists()


def test_a_commit_that_no_branch_holds_keeps_its_worktree(repository: Path, tmp_path: Path) -> None:
    path = tmp_path / "detached"
    git(repository, "worktree", "add", "-q", "--detach", str(path))
    worktrees = Worktrees(repository)
    (path / "a.txt").write_text("two\n")
    git(path, "commit", "-qam", "only here")
    with pytest.raises(UserError, match="which no branch holds"):
        worktrees.remove(path)
    git(path, "branch", "kept")
    worktrees.remove(path)
    assert not path.exists()


def test_a_locked_worktree_is_kept_without_force(repository: Path) -> None:
    worktrees = Worktrees(repository)
    created = worktrees.create(Path("../w"))
    git(repository, "worktree", "lock", str(created.path))
    with pytest.raises(UserError, match="is locked"):
        worktrees.remove(created.path)
    worktrees.remove(created.path, force=True)
    assert not created.path.exists()


def test_the_main_worktree_and_other_folders_are_never_removed(repository: Path, tmp_path: Path) -> None:
    worktrees = Worktrees(repository)
    with pytest.raises(UserError, match="main worktree"):
        worktrees.remove(repository, force=True)
    (tmp_path / "plain").mkdir()
    with pytest.raises(UserError, match="there is no worktree at"):
        worktrees.remove(tmp_path / "plain", force=True)
    assert (tmp_path / "plain").is_dir()
    assert (repository / "a.txt").is_file()


def test_dirt_and_unpushed_commits_in_a_submodule_keep_a_worktree(repository: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    git(tmp_path, "clone", "-q", str(repository), str(inner))
    git(repository, "submodule", "--quiet", "add", str(inner), "sub")
    git(repository, "commit", "-q", "-m", "submodule")
    worktrees = Worktrees(repository)
    created = worktrees.create(Path("../w"))
    git(created.path, "submodule", "--quiet", "update", "--init")
    with pytest.raises(UserError, match="holds submodules"):
        worktrees.remove(created.path)
    (created.path / "sub" / "a.txt").write_text("dirty\n")
    with pytest.raises(UserError, match=" M sub"):
        worktrees.remove(created.path)
    assert (created.path / "sub" / "a.txt").read_text() == "dirty\n"


def test_a_worktree_whose_git_entry_is_gone_is_not_removed_and_touches_no_parent(repository: Path) -> None:
    worktrees = Worktrees(repository)
    created = worktrees.create(Path("inside"))
    (created.path / ".git").unlink()
    with pytest.raises(LateError):
        worktrees.remove(created.path)
    assert (created.path / "a.txt").is_file()
    assert Worktrees(created.path).active() == worktrees.list()[0]


def test_active_names_the_worktree_of_a_subfolder(repository: Path) -> None:
    created = Worktrees(repository).create(Path("../w"))
    below = created.path / "deep" / "er"
    below.mkdir(parents=True)
    assert Worktrees(below).active() == created


def test_a_folder_outside_of_git_and_a_repository_without_commits_are_named(tmp_path: Path) -> None:
    plain = late(tmp_path, "list")
    assert plain.returncode == 2
    assert "is in no git repository" in plain.stderr
    git(tmp_path, "init", "-q")
    empty = late(tmp_path, "create", "../w")
    assert empty.returncode == 2
    assert "no commit yet" in empty.stderr
    assert "ambiguous" not in empty.stderr


def test_gits_own_words_are_shown_and_the_status_says_failed(repository: Path) -> None:
    done = late(repository, "create", "../w", "main")
    assert done.returncode == 1
    assert "main" in done.stderr
    assert "already" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (repository.parent / "w").exists()


def test_a_bad_branch_name_is_refused(repository: Path) -> None:
    done = late(repository, "create", "../w", "a..b")
    assert done.returncode == 2
    assert "'a..b' is no valid name for a branch" in done.stderr


def test_the_commands_print_what_they_did(repository: Path) -> None:
    created = late(repository, "create", "../w")
    assert created.returncode == 0, created.stderr
    assert created.stdout == f"created {repository.parent / 'w'}  w\n"
    assert late(repository.parent / "w", "active").stdout == f"{repository.parent / 'w'}  w\n"
    listed = late(repository, "list").stdout.splitlines()
    assert listed == [f"{repository}  main", f"{repository.parent / 'w'}  w"]
    removed = late(repository, "remove", "../w")
    assert removed.stdout.startswith("removed ")
    assert not (repository.parent / "w").exists()
