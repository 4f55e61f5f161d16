"""Worktrees of a git repository: each a folder with a branch of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from late.errors import LateError, UserError

if TYPE_CHECKING:
    from git import Git

_LISTED_FILES = 20
_LISTS_WITH_NUL = (2, 36)
"""The git that can list paths with line breaks in them."""


@dataclass(frozen=True, slots=True)
class Worktree:
    """One entry of `git worktree list`."""

    path: Path
    commit: str | None
    """`None` for a bare repository, and before the first commit."""
    branch: str | None
    """Short name; `None` when detached or bare."""
    bare: bool = False
    locked: str | None = None
    """The reason of a lock, empty where none was given; `None`: not locked."""
    missing: bool = False
    """Its folder is gone; `git worktree prune` forgets it."""


class Worktrees:
    """The worktrees of the repository that a folder belongs to."""

    def __init__(self, directory: Path) -> None:
        """Find the repository.

        Raises:
            UserError: the folder is in no git repository, or there is no git.
        """
        self._git = _git(directory)
        self.directory = directory
        try:
            self._run("rev-parse", "--git-dir")
        except LateError as error:
            raise UserError(
                f"{directory} is in no git repository", f"Worktrees need one: git init. ({error})"
            ) from error

    def list(self) -> list[Worktree]:
        """All worktrees; the main one first.

        Raises:
            LateError: git's own words.
        """
        if self._git.version_info < _LISTS_WITH_NUL:
            return list(_parsed(self._run("worktree", "list", "--porcelain").replace("\n", "\0")))
        return list(_parsed(self._run("worktree", "list", "--porcelain", "-z")))

    def active(self) -> Worktree | None:
        """The worktree that the folder lies in; `None` inside of a bare repository or a `.git` folder.

        Raises:
            LateError: git's own words.
        """
        if self._run("rev-parse", "--is-inside-work-tree").strip() != "true":
            return None
        top = Path(self._run("rev-parse", "--show-toplevel").removesuffix("\n")).resolve()
        return next((found for found in self.list() if found.path.resolve() == top), None)

    def create(self, path: Path, branch: str | None = None) -> Worktree:
        """Add a worktree.

        Args:
            path: A folder that does not exist yet, or is empty; relative to the folder of this object.
            branch: An existing branch, here or on the one remote that has it, which is checked out; or the name of a
                new one, which starts at the present commit. `None`: a new one named like the folder.

        Raises:
            UserError: the repository has no commit, or the folder's name is no name for a branch.
            LateError: git's own words.
        """
        target = self._absolute(path)
        if not self._succeeds("rev-parse", "--verify", "--quiet", "HEAD^{commit}"):
            raise UserError("the repository has no commit yet", "A worktree starts from one: commit something first.")
        name = branch or target.name
        if not self._succeeds("check-ref-format", "--branch", name):
            hint = "Name another one." if branch else "Name the branch: late worktree create PATH BRANCH"
            raise UserError(f"{name!r} is no valid name for a branch", hint)
        exists = self._succeeds("show-ref", "--verify", "--quiet", f"refs/heads/{name}")
        if exists and branch is None:
            raise UserError(
                f"there is a branch {name} already",
                f"To check it out: late worktree create {path} {name}. For a new one, give another name.",
            )
        if exists or self._run("for-each-ref", f"refs/remotes/*/{name}"):
            self._run("worktree", "add", "--", str(target), name)  # git tracks the one remote branch of that name
        else:
            self._run("worktree", "add", "-b", name, "--", str(target), "HEAD")
        return self._at(target)

    def remove(self, path: Path, *, force: bool = False) -> Worktree:
        """Remove a worktree's folder; its branch and commits stay.

        Args:
            path: The worktree's folder, relative to the folder of this object.
            force: Also when work in it is not committed, or it is locked.

        Raises:
            UserError: no worktree is there, or it is the main one, or it holds work that would be lost; the message
                lists the work.
            LateError: git's own words.
        """
        found = self._at(self._absolute(path))
        if found == self.list()[0]:
            raise UserError(f"{found.path} is the repository's main worktree and is not removed")
        if force:
            # Twice: git wants one for work that is lost, and a second one for a lock.
            self._run("worktree", "remove", "--force", "--force", "--", str(found.path))
            return found
        if found.locked is not None:
            raise UserError(
                f"{found.path} is locked" + (f": {found.locked}" if found.locked else ""),
                "Unlock it with `git worktree unlock`, or use --force.",
            )
        if not found.missing:
            self._refuse_loss(found)
        try:
            self._run("worktree", "remove", "--", str(found.path))
        except LateError as error:
            if "submodules" not in str(error):
                raise
            raise UserError(
                f"{found.path} holds submodules; commits in them that were not pushed would be lost",
                "Push them, then use --force.",
            ) from error
        return found

    def _refuse_loss(self, worktree: Worktree) -> None:
        work = unsaved_work(worktree.path)
        if work:
            shown = [f"  {line}" for line in work[:_LISTED_FILES]]
            if len(work) > _LISTED_FILES:
                shown.append(f"  … and {len(work) - _LISTED_FILES} more")
            raise UserError(
                "\n".join([f"{worktree.path} holds work that would be lost:", *shown]),
                "Commit or move it, or use --force.",
            )
        if worktree.branch is None and worktree.commit:
            holders = self._run("for-each-ref", "--count=1", f"--contains={worktree.commit}")
            if not holders.strip():
                raise UserError(
                    f"{worktree.path} is at commit {worktree.commit[:12]}, which no branch holds",
                    "Give it a branch (git branch NAME " + worktree.commit[:12] + "), or use --force.",
                )

    def _at(self, path: Path) -> Worktree:
        for found in self.list():
            if found.path.resolve() == path.resolve():
                return found
        raise UserError(f"there is no worktree at {path}", "`late worktree list` shows where they are.")

    def _absolute(self, path: Path) -> Path:
        return (self.directory / path.expanduser()).absolute()

    def _run(self, *arguments: str) -> str:
        return _call(self._git, *arguments)

    def _succeeds(self, *arguments: str) -> bool:
        from git import GitCommandError

        try:
            self._git.execute(["git", *arguments])
        except GitCommandError:
            return False
        return True


def unsaved_work(path: Path) -> list[str]:
    """What a worktree holds and no commit does: one line a file, `<status> <path>` as `git status --short` has it.

    Ignored files do not count. Work inside of submodules does.

    Raises:
        UserError: there is no git.
        LateError: git's own words.
    """
    entries = iter(
        _call(_git(path), "status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=none").split(
            "\0"
        )
    )
    lines: list[str] = []
    for entry in entries:
        if not entry:
            continue
        if entry[0] in "RC":  # the name before the move or copy follows as an entry of its own
            next(entries, "")
        lines.append(entry)
    return lines


def _parsed(porcelain: str) -> Iterator[Worktree]:
    """Read `git worktree list --porcelain -z`: `key[ value]` fields, an empty one after each worktree."""
    fields: dict[str, str] = {}
    for field in porcelain.split("\0"):
        if field:
            key, _, value = field.partition(" ")
            fields[key] = value
        elif fields:
            head = fields.get("HEAD", "")
            yield Worktree(
                path=Path(fields["worktree"]),
                commit=head if head.strip("0") else None,
                branch=fields["branch"].removeprefix("refs/heads/") if "branch" in fields else None,
                bare="bare" in fields,
                locked=fields.get("locked"),
                missing="prunable" in fields,
            )
            fields = {}


def _git(directory: Path) -> Git:
    try:
        from git import Git
    except ImportError as error:  # GitPython says so when there is no git program
        raise UserError("git was not found", "Install git, or put it on PATH.") from error
    if not directory.is_dir():
        raise UserError(f"there is no folder {directory}")
    return Git(str(directory))


def _call(git: Git, *arguments: str) -> str:
    from git import GitCommandError

    try:
        return str(git.execute(["git", *arguments], strip_newline_in_stdout=False))
    except GitCommandError as error:
        raise LateError(_words_of(error.stderr) or f"git {arguments[0]} ended with status {error.status}") from error


def _words_of(stderr: object) -> str:
    """Git's message without the quotes that GitPython puts around it."""
    text = str(stderr).strip()
    return text.removeprefix("stderr:").strip().strip("'").strip()
