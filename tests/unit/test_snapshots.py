"""Snapshots against real repositories: exact, and without a trace in what is the person's."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pytest

from late.errors import LateError
from late.workspace import snapshots as module
from late.workspace.snapshots import Snapshot, Snapshots

PERSON = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def git(directory: Path, *arguments: str) -> str:
    return os.fsdecode(
        subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *arguments],
            cwd=directory,
            check=True,
            capture_output=True,
            env=os.environ | PERSON,
        ).stdout
    )


def repository(path: Path, files: Mapping[str, bytes | str] | None = None) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    git(path, "init", "-q", "-b", "main")
    for name, content in (files or {"a.py": "one\n", "pkg/b.py": "two\n"}).items():
        write(path / name, content)
    git(path, "add", "-A")
    git(path, "commit", "-qm", "start")
    return path


def write(path: Path, content: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def sha(content: bytes | str | None) -> str | None:
    if content is None:
        return None
    return sha256(content if isinstance(content, bytes) else content.encode()).hexdigest()


def held(directory: Path, snapshot: Snapshot) -> set[str]:
    return set(git(directory, "ls-tree", "-r", "-z", "--name-only", "--full-tree", snapshot.commit).split("\0")) - {""}


@pytest.fixture
def shadow(tmp_path: Path) -> Path:
    return tmp_path / "late" / "snapshots"


async def take(snapshots: Snapshots, name: str = "s/step-1-coder-1", include: tuple[str, ...] = ()) -> Snapshot:
    taken = await snapshots.take(name, include=include)
    assert taken is not None
    return taken


def listed(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def damage(shadow: Path) -> None:
    (index,) = shadow.glob("*/index")
    index.write_bytes(b"DIRC garbage")


def state(repo: Path) -> dict[str, object]:
    """Everything of a repository that is the person's: all of `.git` but objects and late's own references."""
    inner = Path(git(repo, "rev-parse", "--path-format=absolute", "--git-common-dir").strip())
    files = {
        str(path.relative_to(inner)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in inner.rglob("*")
        if path.is_file() and path.relative_to(inner).parts[0] != "objects" and "late" not in path.parts
    }
    return {
        "files": files,
        "status": git(repo, "--no-optional-locks", "status", "--porcelain=v2", "-z", "--branch", "--show-stash"),
        "stash": git(repo, "stash", "list"),
        "reflog": git(repo, "reflog", "--all"),
        "branches": git(repo, "branch", "-a", "-v"),
        "work": {
            str(path): path.read_bytes() for path in repo.rglob("*") if path.is_file() and ".git" not in path.parts
        },
    }


async def test_a_snapshot_leaves_everything_of_the_person_as_it_is(tmp_path: Path, shadow: Path) -> None:
    repo = repository(tmp_path / "r")
    write(repo / "a.py", "stashed\n")
    git(repo, "stash")
    write(repo / "a.py", "staged\n")
    git(repo, "add", "a.py")
    write(repo / "a.py", "staged, then changed\n")
    write(repo / "new.py", "new\n")
    (repo / "pkg/b.py").unlink()
    git(repo, "config", "commit.gpgSign", "true")
    git(repo, "config", "core.logAllRefUpdates", "always")
    marker = tmp_path / "hook-ran"
    for hook in ("reference-transaction", "post-commit", "post-index-change", "pre-commit"):
        write(repo / ".git/hooks" / hook, f"#!/bin/sh\ntouch '{marker}'\n")
        (repo / ".git/hooks" / hook).chmod(0o755)
    marker.unlink(missing_ok=True)
    before = state(repo)
    marker.unlink(missing_ok=True)
    taken = await take(Snapshots(repo, shadow))
    assert not marker.exists()
    assert state(repo) == before
    assert git(repo, "rev-parse", taken.ref).strip() == taken.commit
    assert git(repo, "show", f"{taken.ref}:a.py") == "staged, then changed\n"
    assert held(repo, taken) == {"a.py", "new.py"}
    assert git(repo, "show", "-s", "--format=%an <%ae> %cn", taken.ref).strip() == "late <late@localhost> late"


async def test_variables_of_the_person_do_not_leak_into_a_snapshot(
    tmp_path: Path, shadow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo, other = repository(tmp_path / "r"), repository(tmp_path / "other", {"x.py": "x"})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "somebody")
    taken = await take(Snapshots(repo, shadow))
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name)
    assert held(repo, taken) == {"a.py", "pkg/b.py"}
    assert git(other, "for-each-ref", "refs/late") == ""


async def test_ignored_files_are_left_out_unless_they_are_asked_for_or_tracked(tmp_path: Path, shadow: Path) -> None:
    repo = repository(tmp_path / "r", {"a.py": "a", ".gitignore": "*.log\n", "keep.txt": "k"})
    write(repo / "tracked.log", "t")
    git(repo, "add", "-f", "tracked.log")
    for name in ("x.log", "step.log", "deep/y.log"):
        write(repo / name, "ignored")
    write(repo / ".git/info/exclude", "private\n")
    write(repo / "private", "p")
    snapshots = Snapshots(repo, shadow)
    assert held(repo, await take(snapshots)) == {"a.py", ".gitignore", "keep.txt", "tracked.log"}
    asked = await take(snapshots, "s/2", ("step.log", "not-there.py"))
    assert held(repo, asked) == {"a.py", ".gitignore", "keep.txt", "tracked.log", "step.log"}
    write(repo / ".gitignore", "*.log\nkeep.txt\n")
    git(repo, "rm", "-q", "--cached", "keep.txt")
    assert "keep.txt" not in held(repo, await take(snapshots, "s/3"))


NAMES = [
    "with space",
    "new\nline",
    "-dash",
    ":colon",
    "*star",
    "ümläut",
    'quo"te',
    "back\\slash",
    "tab\t",
    "git~1",
    "CON",
]


@pytest.mark.parametrize("in_git", [True, False])
async def test_names_of_any_kind_come_back(tmp_path: Path, shadow: Path, in_git: bool) -> None:
    root = repository(tmp_path / "r") if in_git else tmp_path / "r"
    names = [*NAMES, os.fsdecode(b"latin-\xe9"), "dir */in\nside"]
    for name in names:
        write(root / name, f"content of {name!r}")
    snapshots = Snapshots(root, shadow)
    taken = await take(snapshots)
    for name in names:
        (root / name).unlink()
    assert {path for path, kind in await snapshots.changed_since(taken.commit) if kind == "deleted"} == set(names)
    done = await snapshots.restore(taken.commit, names, expect=dict.fromkeys(names))
    assert done.restored == tuple(names)
    assert [(root / name).read_bytes() for name in names] == [f"content of {name!r}".encode() for name in names]
    assert await snapshots.changed_since(taken.commit) == []


async def test_a_linked_worktree_and_a_sub_folder_are_workspaces(tmp_path: Path, shadow: Path) -> None:
    repo = repository(tmp_path / "r", {"a.py": "one\n", "pkg/b.py": "two\n", ".gitignore": "*.tmp\n"})
    git(repo, "worktree", "add", "-q", str(tmp_path / "w"))
    write(tmp_path / "w/only-here.py", "x")
    before = state(repo), state(tmp_path / "w")
    taken = await take(Snapshots(tmp_path / "w", shadow))
    assert held(repo, taken) == {"a.py", "pkg/b.py", ".gitignore", "only-here.py"}
    write(repo / "pkg/x.tmp", "ignored by the rule above")
    inner = await take(Snapshots(repo / "pkg", shadow), "s/2")
    assert held(repo, inner) == {"b.py"}
    (repo / "pkg/x.tmp").unlink()
    assert (state(repo), state(tmp_path / "w")) == before


async def test_a_folder_that_its_repository_ignores_gets_a_repository_of_its_own(tmp_path: Path, shadow: Path) -> None:
    repo = repository(tmp_path / "r", {"a.py": "a", ".gitignore": "/scratch\n"})
    write(repo / "scratch/x.py", "one")
    snapshots = Snapshots(repo / "scratch", shadow)
    taken = await take(snapshots)
    assert git(repo, "for-each-ref", "refs/late") == ""
    write(repo / "scratch/x.py", "two")
    done = await snapshots.restore(taken.commit, ["x.py"], expect={"x.py": sha("two")})
    assert (done.restored, (repo / "scratch/x.py").read_text()) == (("x.py",), "one")


async def test_a_repository_without_a_commit(tmp_path: Path, shadow: Path) -> None:
    repo = tmp_path / "r"
    repo.mkdir()
    git(repo, "init", "-q")
    empty = await take(Snapshots(repo, shadow), "s/0")
    assert held(repo, empty) == set()
    write(repo / "a.py", "a")
    assert held(repo, await take(Snapshots(repo, shadow))) == {"a.py"}
    assert not (repo / ".git/index").exists()


async def test_submodules_and_nested_repositories_stay_out_but_for_the_files_asked_for(
    tmp_path: Path, shadow: Path
) -> None:
    library = repository(tmp_path / "library", {"lib.py": "lib"})
    repo = repository(tmp_path / "r")
    git(repo, "submodule", "add", "-q", str(library), "vendor")
    repository(repo / "nested", {"n.py": "n"})
    snapshots = Snapshots(repo, shadow)
    assert held(repo, await take(snapshots)) == {"a.py", "pkg/b.py", ".gitmodules"}
    taken = await take(snapshots, "s/2", ("vendor/lib.py",))
    write(repo / "vendor/lib.py", "changed")
    write(repo / "nested/n.py", "changed")
    done = await snapshots.restore(
        taken.commit,
        ["vendor/lib.py", "nested/n.py"],
        expect={"vendor/lib.py": sha("changed"), "nested/n.py": sha("changed")},
        before={"vendor/lib.py": sha("lib"), "nested/n.py": sha("n")},
    )
    assert done.restored == ("vendor/lib.py",)
    assert done.refused[0][0] == "nested/n.py"
    assert (repo / "nested/n.py").read_text() == "changed"


async def test_bytes_are_exact_whatever_the_repository_converts(tmp_path: Path, shadow: Path) -> None:
    repo = repository(tmp_path / "r", {".gitattributes": "*.txt text eol=lf\n*.id ident\n*.f filter=up\n", "a": "a"})
    git(repo, "config", "core.autocrlf", "true")
    git(repo, "config", "filter.up.clean", "tr a-z A-Z")
    contents = {
        "mixed.txt": b"one\r\ntwo\nthree\r\n",
        "x.id": b"$Id: kept $\n",
        "y.f": b"lower\n",
        "plain": b"\r\n\n\r\n",
        "bin": bytes(range(256)),
    }
    for name, content in contents.items():
        write(repo / name, content)
    git(repo, "add", "-A")
    snapshots = Snapshots(repo, shadow)
    taken = await take(snapshots)
    for name in contents:
        write(repo / name, "gone")
    done = await snapshots.restore(taken.commit, list(contents), expect=dict.fromkeys(contents, sha("gone")))
    assert done.refused == ()
    assert {name: (repo / name).read_bytes() for name in contents} == contents


async def test_files_flagged_as_unchanged_are_recorded_as_they_are(tmp_path: Path, shadow: Path) -> None:
    repo = repository(tmp_path / "r")
    git(repo, "update-index", "--assume-unchanged", "a.py")
    write(repo / "a.py", "mine\n")
    taken = await take(Snapshots(repo, shadow))
    assert git(repo, "show", f"{taken.commit}:a.py") == "mine\n"


async def test_a_change_of_the_same_length_in_the_same_moment_is_seen(tmp_path: Path, shadow: Path) -> None:
    repo = repository(tmp_path / "r")
    snapshots = Snapshots(repo, shadow)
    for number in range(8):
        write(repo / "a.py", f"{number}\n")
        taken = await take(snapshots, f"s/{number}")
        assert git(repo, "show", f"{taken.commit}:a.py") == f"{number}\n"


async def test_a_folder_without_a_repository_gets_nothing_new_inside(tmp_path: Path, shadow: Path) -> None:
    root = tmp_path / "plain"
    write(root / "a.py", "one")
    write(root / "node_modules/x.js", "x")
    write(root / "big.bin", b"\0" * (module.MOST_BYTES + 1))
    snapshots = Snapshots(root, shadow)
    taken = await take(snapshots)
    assert taken.left_out == ("big.bin",)
    assert {path.name for path in root.iterdir()} == {"a.py", "node_modules", "big.bin"}
    write(root / "a.py", "two")
    write(root / "new.py", "new")
    assert await snapshots.changed_since(taken.commit) == [("a.py", "modified"), ("new.py", "created")]
    done = await snapshots.restore(taken.commit, ["a.py", "new.py"], expect={"a.py": sha("two"), "new.py": sha("new")})
    assert done.restored == ("a.py", "new.py")
    assert (root / "a.py").read_text() == "one"
    assert not (root / "new.py").exists()


async def test_snapshots_outlive_a_repository_that_is_made_later(tmp_path: Path, shadow: Path) -> None:
    root = tmp_path / "plain"
    write(root / "a.py", "one")
    snapshots = Snapshots(root, shadow)
    taken = await take(snapshots)
    write(root / "a.py", "two")
    repository(root)
    write(root / "a.py", "three")
    done = await snapshots.restore(taken.commit, ["a.py"], expect={"a.py": sha("three")})
    assert (done.restored, (root / "a.py").read_text()) == (("a.py",), "one")


async def test_restoring_refuses_what_is_not_as_expected(tmp_path: Path, shadow: Path) -> None:
    files: dict[str, bytes | str] = dict.fromkeys(
        ("same.py", "edited.py", "gone.py", "linked.py", "folder.py", "back.py"), "old"
    )
    repo = repository(tmp_path / "r", files)
    snapshots = Snapshots(repo, shadow)
    taken = await take(snapshots)
    for name in ("same.py", "edited.py", "created.py"):
        write(repo / name, "step")
    write(repo / "edited.py", "person")
    write(repo / "created.py", "person")
    for name in ("gone.py", "linked.py", "folder.py"):
        (repo / name).unlink()
    (repo / "linked.py").symlink_to("same.py")
    (repo / "folder.py").mkdir()
    paths = [*files, "created.py", "../outside.py", "/etc/hosts", ".git/config"]
    done = await snapshots.restore(taken.commit, paths, expect=dict.fromkeys(paths, sha("step")))
    assert done.restored == ("same.py", "back.py")
    assert dict(done.refused) == {
        "edited.py": "it was changed since",
        "gone.py": "it was deleted since",
        "linked.py": "it is a link now",
        "folder.py": "it is no file any more",
        "created.py": "it was changed since",
        "../outside.py": "it lies outside of the workspace",
        "/etc/hosts": "it lies outside of the workspace",
        ".git/config": "it lies outside of the workspace",
    }
    assert (repo / "edited.py").read_text() == (repo / "created.py").read_text() == "person"
    assert (repo / "same.py").read_text() == "old"


async def test_a_folder_that_became_a_link_leads_nowhere(tmp_path: Path, shadow: Path) -> None:
    repo = repository(tmp_path / "r")
    snapshots = Snapshots(repo, shadow)
    taken = await take(snapshots)
    write(tmp_path / "elsewhere/b.py", "step")
    (repo / "pkg/b.py").unlink()
    (repo / "pkg").rmdir()
    (repo / "pkg").symlink_to(tmp_path / "elsewhere")
    done = await snapshots.restore(taken.commit, ["pkg/b.py"], expect={"pkg/b.py": sha("step")})
    assert done.refused == (("pkg/b.py", "its folder is a link now"),)
    assert (tmp_path / "elsewhere/b.py").read_text() == "step"
    assert held(repo, await take(snapshots, "s/2")) == {"a.py", "pkg"}


async def test_a_file_changed_before_the_step_touched_it_is_refused(tmp_path: Path, shadow: Path) -> None:
    repo = repository(tmp_path / "r", {"a.py": "old", ".gitignore": "*.env\n"})
    write(repo / "x.env", "secret")
    snapshots = Snapshots(repo, shadow)
    taken = await take(snapshots)
    write(repo / "a.py", "step")
    write(repo / "x.env", "step")
    done = await snapshots.restore(
        taken.commit,
        ["a.py", "x.env"],
        expect={"a.py": sha("step"), "x.env": sha("step")},
        before={"a.py": sha("person, in between"), "x.env": sha("secret")},
    )
    assert done.restored == ()
    assert dict(done.refused) == {
        "a.py": "somebody else changed it between the snapshot and the step's first edit",
        "x.env": "the snapshot does not hold it: git ignores it, or it was too large",
    }
    assert (repo / "a.py").read_text() == (repo / "x.env").read_text() == "step"


async def test_modes_and_links_come_back_and_empty_folders_go(tmp_path: Path, shadow: Path) -> None:
    repo = repository(tmp_path / "r", {"run.sh": "#!/bin/sh\n", "lib/a.py": "a", "deleted.sh": "x"})
    for name in ("run.sh", "deleted.sh"):
        (repo / name).chmod(0o750)
    (repo / "link").symlink_to("lib/a.py")
    snapshots = Snapshots(repo, shadow)
    taken = await take(snapshots)
    write(repo / "run.sh", "step")
    (repo / "run.sh").chmod(0o640)
    (repo / "deleted.sh").unlink()
    (repo / "link").unlink()
    write(repo / "new/deep/x.py", "x")
    write(repo / "lib/new.py", "x")
    expect = {
        "run.sh": sha("step"),
        "deleted.sh": None,
        "link": None,
        "new/deep/x.py": sha("x"),
        "lib/new.py": sha("x"),
    }
    done = await snapshots.restore(taken.commit, list(expect), expect=expect)
    assert done.refused == ()
    assert (repo / "run.sh").stat().st_mode & 0o777 == 0o750
    assert (repo / "deleted.sh").stat().st_mode & 0o100
    assert str((repo / "link").readlink()) == "lib/a.py"
    assert not (repo / "new").exists()
    assert (repo / "lib/a.py").exists()


async def test_a_read_only_file_is_refused_and_the_others_are_restored(tmp_path: Path, shadow: Path) -> None:
    repo = repository(tmp_path / "r")
    snapshots = Snapshots(repo, shadow)
    taken = await take(snapshots)
    write(repo / "a.py", "step")
    write(repo / "pkg/b.py", "step")
    (repo / "a.py").chmod(0o444)
    expect = {"a.py": sha("step"), "pkg/b.py": sha("step")}
    done = await snapshots.restore(taken.commit, list(expect), expect=expect)
    assert done.restored == ("pkg/b.py",)
    assert "read-only" in done.refused[0][1]
    assert (repo / "a.py").read_text() == "step"


async def test_several_processes_may_record_at_once(tmp_path: Path, shadow: Path) -> None:
    root = tmp_path / "plain"
    write(root / "a.py", "one")
    taken = await asyncio.gather(*(take(Snapshots(root, shadow), f"s/{number}") for number in range(6)))
    inner = listed(shadow)
    assert len(inner) == 1
    assert [path.name for path in listed(inner[0]) if path.name.startswith("index")] == ["index"]
    assert all(held(inner[0], snapshot) == {"a.py"} for snapshot in taken)


async def test_damaged_memory_of_earlier_snapshots_is_built_anew(tmp_path: Path, shadow: Path) -> None:
    repo = repository(tmp_path / "r")
    snapshots = Snapshots(repo, shadow)
    first = await take(snapshots)
    damage(shadow)
    write(repo / "new.py", "x")
    second = await take(snapshots, "s/2")
    assert held(repo, second) == {"a.py", "pkg/b.py", "new.py"}
    git(repo, "update-ref", "-d", second.ref)
    git(repo, "update-ref", "-d", first.ref)
    git(repo, "gc", "-q", "--prune=now")
    assert held(repo, await take(snapshots, "s/3")) == {"a.py", "pkg/b.py", "new.py"}


async def test_forgetting_a_session_drops_its_references_and_no_others(tmp_path: Path, shadow: Path) -> None:
    repo = repository(tmp_path / "r")
    snapshots = Snapshots(repo, shadow)
    for name in ("one/step-1", "one/step-2", "one-more/step-1"):
        await take(snapshots, name)
    assert await snapshots.forget("one") == 2
    assert await snapshots.forget("one") == 0
    assert git(repo, "for-each-ref", "--format=%(refname)").split() == [
        "refs/heads/main",
        "refs/late/snapshots/one-more/step-1",
    ]


async def test_without_git_there_is_no_snapshot(tmp_path: Path, shadow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = repository(tmp_path / "r")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert await Snapshots(repo, shadow).take("s/1") is None
    assert [path.name for path in listed(tmp_path)] == ["r"]


async def test_errors_are_gits_words_or_say_what_is_missing(tmp_path: Path, shadow: Path) -> None:
    repo = repository(tmp_path / "r")
    snapshots = Snapshots(repo, shadow)
    with pytest.raises(LateError, match="is not there any more"):
        await snapshots.restore("0" * 40, ["a.py"], expect={"a.py": None})
    with pytest.raises(LateError, match=r"bad name|invalid|refusing"):
        await snapshots.take("not a..name")
    write(tmp_path / "file", "x")
    with pytest.raises(LateError, match="cannot be written"):
        await Snapshots(repo, tmp_path / "file").take("s/1")
