"""Snapshots of a workspace's files, as git commits that nobody but `late` sees.

The files are listed by the person's own git, so that every ignore rule of theirs holds, and recorded through a git
folder of late's own: its index remembers what is unchanged, and its attributes switch every conversion (line endings,
LFS and other filters) off, so that what comes back is byte for byte what was there. In a repository the objects go into
that repository and `refs/late/snapshots/<name>` keeps them alive there; where there is none, late's folder holds both.
The person's index, stash, branches, hooks and configuration are not touched.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
import subprocess
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Literal

from late.errors import LateError
from late.workspace.atomic import MAX_BYTES, read_bytes, write_atomic
from late.workspace.process import clean_environment

REF_PREFIX = "refs/late/snapshots/"
MOST_BYTES = 10_000_000
"""Of a file that is recorded unasked: longer ones are data, which would only swell the repository."""
MOST_FILES = 20_000
MOST_TOTAL_BYTES = 500_000_000
"""Without a repository, a folder beyond this is no project but a home folder: only what is asked for is recorded."""
TIMEOUT_S = 60.0
"""Of one git command; a file system that hangs must not stop a session."""

Kind = Literal["created", "modified", "deleted"]
_KINDS: dict[str, Kind] = {"A": "created", "D": "deleted"}
_UNWANTED = "node_modules/\n.venv/\nvenv/\n__pycache__/\n.tox/\n.mypy_cache/\n.ruff_cache/\n.pytest_cache/\n"
"""What no project keeps; only needed where nobody wrote a `.gitignore`."""
_NO_CONVERSION = "* -text -eol -crlf -ident -filter -working-tree-encoding\n"
_SETTINGS = {
    "core.attributesFile": os.devnull,
    "core.autocrlf": "false",
    "core.excludesFile": os.devnull,
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.logAllRefUpdates": "false",
    "core.protectHFS": "false",  # names that only other systems cannot have are names
    "core.protectNTFS": "false",
    "core.splitIndex": "false",
    "core.untrackedCache": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "late"), ("EMAIL", "late@localhost"))
}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The workspace's files at one moment."""

    commit: str
    """Its tree begins at the workspace's root, also where that is a sub-folder of a repository."""
    ref: str
    left_out: tuple[str, ...] = ()
    """Files that were too large or cannot be read; what lies in nested repositories is not listed."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What a `restore` did."""

    restored: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]
    """Path and reason."""


class Snapshots:
    """The snapshots of one workspace."""

    def __init__(self, root: Path, shadow_dir: Path) -> None:
        """Nothing is read or written yet.

        Args:
            root: The workspace.
            shadow_dir: Where late's own git folders are kept, one for each workspace; created when needed.
        """
        self.root = Path(os.path.realpath(root))
        self._folder = shadow_dir / sha256(os.fsencode(self.root)).hexdigest()[:32]

    async def take(self, name: str, *, include: Collection[str] = ()) -> Snapshot | None:
        """Record all files that git does not ignore, tracked or not; `None` where git is not installed.

        Files of nested repositories, over `MOST_BYTES`, and pipes, sockets and devices are left out.

        Args:
            name: Below `refs/late/snapshots/`, e.g. `<session>/step-1-coder-1`.
            include: Files (relative to the root) that are recorded even so: ignored, large or in a nested repository.

        Raises:
            LateError: git failed, in its own words.
        """
        return await asyncio.to_thread(self._take, name, include)

    async def changed_since(self, commit: str) -> list[tuple[str, Kind]]:
        """How the files of now differ from a snapshot, sorted by path.

        Raises:
            LateError: there is no such snapshot, or git failed.
        """
        return await asyncio.to_thread(self._changed_since, commit)

    async def restore(
        self,
        commit: str,
        paths: Sequence[str],
        *,
        expect: Mapping[str, str | None],
        before: Mapping[str, str | None] | None = None,
    ) -> Restored:
        """Put files back as the snapshot has them: content and mode; what it does not have is removed.

        Each file is replaced in one step or refused; a file that is back already counts as restored. Folders that
        become empty and that the snapshot does not know are removed.

        Args:
            commit: The snapshot.
            paths: Relative to the root.
            expect: sha256 (hex) of the content that each path has now, `None`: no file. A file that is different is
                refused, so that nobody's later work is overwritten.
            before: sha256 of the content that each path is to get. A file of which the snapshot has another content,
                or none because it was left out, is refused.

        Raises:
            LateError: there is no such snapshot, or git failed before anything was restored.
        """
        return await asyncio.to_thread(self._restore, commit, paths, expect, before or {})

    async def forget(self, name: str) -> int:
        """Drop a snapshot, or all whose names begin with `name` and a slash; returns how many.

        Raises:
            LateError: git failed.
        """
        return await asyncio.to_thread(self._forget, name)

    def _take(self, name: str, include: Collection[str]) -> Snapshot | None:
        store = self._store()
        if store is None:
            return None
        tree, left_out = store.record(include)
        message = f"The files of the workspace, recorded by late: {name}\n"
        commit = store.own.line("commit-tree", tree, data=message.encode())
        # A person may log all references; this one would show up in `git reflog --all`.
        store.refs.run("-c", "core.logAllRefUpdates=false", "update-ref", f"{REF_PREFIX}{name}", commit)
        return Snapshot(commit, f"{REF_PREFIX}{name}", left_out)

    def _changed_since(self, commit: str) -> list[tuple[str, Kind]]:
        store = self._holding(commit)
        tree, _ = store.record(store.tree(commit))
        fields = _split(store.own.run("diff-tree", "-r", "-z", "--no-renames", "--name-status", commit, tree))
        return sorted((path, _KINDS.get(status, "modified")) for status, path in zip(*[iter(fields)] * 2, strict=True))

    def _restore(
        self, commit: str, paths: Sequence[str], expect: Mapping[str, str | None], before: Mapping[str, str | None]
    ) -> Restored:
        store = self._holding(commit)
        entries = store.tree(commit)
        known_folders = {folder for path in entries for folder in PurePosixPath(path).parents}
        restored: list[str] = []
        refused: list[tuple[str, str]] = []
        for path in paths:
            target = self.root / path
            entry = entries.get(path)
            data = store.content(entry) if entry else None
            try:
                _check_inside(self.root, path)
                if path in before and before[path] != _digest(data):
                    raise _Refused(_why_not_held(data))
                _put_back(target, entry, data, expect[path])
                if data is None:
                    _remove_empty(self.root, path, known_folders)
            except (LateError, OSError) as error:
                refused.append((path, str(error)))
            else:
                restored.append(path)
        return Restored(tuple(restored), tuple(refused))

    def _forget(self, name: str) -> int:
        total = 0
        for store in self._stores():
            refs = store.refs.run("for-each-ref", "--format=%(refname)", f"{REF_PREFIX}{name}").decode().split()
            store.refs.run("update-ref", "--stdin", data="".join(f"delete {ref}\n" for ref in refs).encode())
            total += len(refs)
        return total

    def _store(self) -> _Store | None:
        return next(iter(self._stores()), None)

    def _holding(self, commit: str) -> _Store:
        for store in self._stores():
            if store.own.succeeds("cat-file", "-e", f"{commit}^{{commit}}"):
                return store
        raise LateError(
            f"the snapshot {commit[:12]} of {self.root} is not there any more",
            "It was removed, or the repository was replaced, or git is not installed.",
        )

    def _stores(self) -> Iterable[_Store]:
        """The repository's objects where there is a repository, and late's own, where earlier snapshots may be."""
        environment = clean_environment(os.environ, read_only=True) | {"LC_ALL": "C"}
        program = shutil.which("git", path=environment["PATH"])
        if program is None:
            return
        theirs = _Git(program, self.root, environment)
        if (repository := _repository(theirs)) is not None:
            yield _Store(self.root, self._folder, theirs, *repository)
        yield _Store(self.root, self._folder, theirs)


@dataclass(frozen=True, slots=True)
class _Entry:
    mode: str
    object: str


@dataclass(frozen=True, slots=True)
class _Git:
    """A git program, where it runs and with which variables."""

    program: str
    cwd: Path
    environment: Mapping[str, str]

    def run(self, *arguments: str, data: bytes = b"") -> bytes:
        """Its output.

        Raises:
            LateError: its words.
        """
        try:
            done = self._run(arguments, data)
        except subprocess.TimeoutExpired as error:
            raise LateError(f"git {arguments[0]} in {self.cwd} did not end within {TIMEOUT_S:.0f} seconds") from error
        except OSError as error:
            raise LateError(f"{self.program} cannot be run in {self.cwd}: {error.strerror or error}") from error
        if done.returncode:
            words = done.stderr.decode("utf-8", "replace").strip()
            raise LateError(words or f"git {arguments[0]} ended with status {done.returncode}")
        return done.stdout

    def line(self, *arguments: str, data: bytes = b"") -> str:
        """Its output, when that is one line."""
        return os.fsdecode(self.run(*arguments, data=data)).removesuffix("\n")

    def succeeds(self, *arguments: str) -> bool:
        """Whether it ends with status 0.

        Raises:
            LateError: it cannot be run at all.
        """
        try:
            return self._run(arguments, b"").returncode == 0
        except (OSError, subprocess.TimeoutExpired) as error:
            raise LateError(f"git {arguments[0]} in {self.cwd} could not be run: {error}") from error

    def _run(self, arguments: Sequence[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [self.program, *arguments],
            cwd=self.cwd,
            env=self.environment,
            input=data,
            capture_output=True,
            check=False,
            timeout=TIMEOUT_S,
            start_new_session=True,  # a Ctrl+C is for late, which ends in order
        )


class _Store:
    """Late's git folder for one workspace, over the objects of the person's repository or over its own."""

    def __init__(
        self, root: Path, folder: Path, theirs: _Git, objects: Path | None = None, object_format: str = "sha1"
    ) -> None:
        self._root = root
        self._folder = folder if object_format == "sha1" else folder.with_name(f"{folder.name}-{object_format}")
        self._theirs = theirs if objects else None
        self.own = replace(theirs, environment=self._environment(theirs.environment, objects))
        self._prepare(object_format)
        self.refs = theirs if objects else self.own
        """Where the references are kept."""

    def record(self, include: Collection[str]) -> tuple[str, tuple[str, ...]]:
        """Write the files of now as a tree; returns its id and what was left out.

        Raises:
            LateError: git's words.
        """
        chosen, left_out = self._choose(self._listed(), include)
        kept = self._folder / "index"
        try:
            return self._write_tree(kept, chosen), left_out
        except LateError:
            # The index may be damaged, or speak of objects that were pruned: it is only there for speed.
            kept.unlink(missing_ok=True)
            return self._write_tree(kept, chosen), left_out

    def tree(self, commit: str) -> dict[str, _Entry]:
        """All files of a snapshot."""
        entries: dict[str, _Entry] = {}
        for line in _split(self.own.run("ls-tree", "-r", "-z", "--full-tree", commit)):
            head, _, path = line.partition("\t")
            mode, _, found = head.split(" ")
            entries[path] = _Entry(mode, found)
        return entries

    def content(self, entry: _Entry) -> bytes:
        """A file's bytes, or where a link leads."""
        return self.own.run("cat-file", "blob", entry.object)

    def _environment(self, base: Mapping[str, str], objects: Path | None) -> dict[str, str]:
        kept = {key: value for key, value in base.items() if not key.startswith("GIT_CONFIG")}
        own = {
            "HOME": str(self._folder),
            "XDG_CONFIG_HOME": str(self._folder),
            "GIT_DIR": str(self._folder),
            "GIT_WORK_TREE": str(self._root),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
        }
        for number, (key, value) in enumerate(_SETTINGS.items()):
            own |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return kept | own | _IDENTITY | ({"GIT_OBJECT_DIRECTORY": str(objects)} if objects else {})

    def _prepare(self, object_format: str) -> None:
        """Make the git folder, if there is none yet: aside, so that of two processes one finds it whole."""
        if self._folder.exists():
            return
        aside = self._folder.with_name(f"{self._folder.name}.{uuid.uuid4().hex}.tmp")
        location = {"GIT_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY"}
        bare = {key: value for key, value in self.own.environment.items() if key not in location}
        try:
            aside.mkdir(mode=0o700, parents=True)
            git = replace(self.own, cwd=aside, environment=bare)
            git.run("init", "-q", "--bare", "--template=", f"--object-format={object_format}", ".")
            (aside / "info").mkdir(exist_ok=True)
            (aside / "info" / "exclude").write_text(_UNWANTED, encoding="ascii")
            (aside / "info" / "attributes").write_text(_NO_CONVERSION, encoding="ascii")
            aside.rename(self._folder)
        except OSError as error:
            if (
                error.errno not in {errno.ENOTEMPTY, errno.EEXIST} or not self._folder.is_dir()
            ):  # another process was faster
                raise LateError(
                    f"the folder for snapshots, {self._folder}, cannot be written: {error.strerror}",
                    "Make it writable, or set LATE_DATA_DIR to a folder that is.",
                ) from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def _with_index(self, index: Path) -> _Git:
        return replace(self.own, environment={**self.own.environment, "GIT_INDEX_FILE": str(index)})

    def _listed(self) -> list[str]:
        if self._theirs is not None:
            return _split(self._theirs.run("ls-files", "-z", "--cached", "--others", "--exclude-standard"))
        nothing = self._with_index(self._folder / "no-index")
        return _split(nothing.run("ls-files", "-z", "--others", "--exclude-standard"))

    def _choose(self, listed: Iterable[str], include: Collection[str]) -> tuple[list[str], tuple[str, ...]]:
        """Those that can be recorded, and those that are left out."""
        behind_link = _links_below(self._root)
        chosen: dict[str, int] = {}
        left_out: list[str] = []
        wanted = set(include)
        for path in {*listed, *wanted}:
            parts = path.split("/")
            if path.startswith("/") or ".." in parts or any(part.lower() == ".git" for part in parts):
                continue
            try:
                status = os.lstat(f"{self._root}/{path}")
            except OSError:
                continue
            if behind_link(path.rpartition("/")[0]):
                continue
            if stat.S_ISLNK(status.st_mode):
                chosen[path] = 0
            elif stat.S_ISREG(status.st_mode):
                most = MAX_BYTES if path in wanted else MOST_BYTES
                if status.st_size <= most and os.access(f"{self._root}/{path}", os.R_OK):
                    chosen[path] = status.st_size
                else:
                    left_out.append(path)
        if self._theirs is None and (len(chosen) > MOST_FILES or sum(chosen.values()) > MOST_TOTAL_BYTES):
            left_out += [path for path in chosen if path not in wanted]
            return sorted(wanted & chosen.keys()), tuple(sorted(left_out))
        return sorted(chosen), tuple(sorted(left_out))

    def _write_tree(self, kept: Path, chosen: Sequence[str]) -> str:
        """Two processes may record at once: each has an index of its own, and the last one's is kept."""
        index = self._folder / f"index-{uuid.uuid4().hex}"
        git = self._with_index(index)
        try:
            with suppress(FileNotFoundError):
                shutil.copy2(kept, index)  # with its time, by which git knows files written in the same moment
            if stale := set(_split(git.run("ls-files", "-z"))).difference(chosen):
                git.run("update-index", "--force-remove", "-z", "--stdin", data=_joined(stale))
            git.run("update-index", "--add", "--remove", "--replace", "-z", "--stdin", data=_joined(chosen))
            tree = git.line("write-tree")
            index.replace(kept)
        except OSError as error:
            raise LateError(f"the index of snapshots in {self._folder} cannot be written: {error.strerror}") from error
        finally:
            index.unlink(missing_ok=True)
        return tree


class _Refused(LateError):
    """A file is not restored."""


def _repository(git: _Git) -> tuple[Path, str] | None:
    """Where the objects are and how they are named; `None` where the folder is no part of a repository's files."""
    try:
        facts = git.line("rev-parse", "--is-inside-work-tree", "--show-object-format", "--git-path", "objects")
        inside, object_format, objects = facts.split("\n", 2)
        if inside != "true":
            return None
        prefix = git.line("rev-parse", "--show-prefix")
    except LateError:
        return None
    if prefix and git.succeeds("check-ignore", "-q", "--", "."):
        return None
    return git.cwd / objects, object_format


def _links_below(root: Path) -> Callable[[str], bool]:
    """A test whether a folder is reached through a link; answers are remembered."""
    known: dict[str, bool] = {"": False}

    def behind(folder: str) -> bool:
        if folder not in known:
            known[folder] = behind(folder.rpartition("/")[0]) or Path(root, folder).is_symlink()
        return known[folder]

    return behind


def _check_inside(root: Path, path: str) -> None:
    parts = path.split("/")
    if path.startswith("/") or ".." in parts or any(part.lower() == ".git" for part in parts):
        raise _Refused("it lies outside of the workspace")
    if _links_below(root)(path.rpartition("/")[0]):
        raise _Refused("its folder is a link now")


def _why_not_held(data: bytes | None) -> str:
    if data is None:
        return "the snapshot does not hold it: git ignores it, or it was too large"
    return "somebody else changed it between the snapshot and the step's first edit"


def _put_back(target: Path, entry: _Entry | None, data: bytes | None, expected: str | None) -> None:
    now = _present(target)
    if _same(target, entry, now, data):
        return
    if _digest(now) != expected:
        if now is None:
            raise _Refused("it was deleted since")
        raise _Refused("it was created again since" if expected is None else "it was changed since")
    if entry is None or data is None:
        target.unlink()
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if entry.mode == "120000":
        temporary = target.with_name(f".late-{uuid.uuid4().hex}.tmp")
        temporary.symlink_to(os.fsdecode(data))
        temporary.replace(target)
        return
    write_atomic(target, data, expect=now)
    _set_executable(target, entry.mode == "100755")


def _present(target: Path) -> bytes | None:
    try:
        mode = target.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISREG(mode):
        return read_bytes(target)
    raise _Refused("it is a link now" if stat.S_ISLNK(mode) else "it is no file any more")


def _same(target: Path, entry: _Entry | None, now: bytes | None, data: bytes | None) -> bool:
    if now is None or entry is None or now != data:
        return now is None and entry is None
    return entry.mode != "120000" and (entry.mode == "100755") == bool(target.stat().st_mode & stat.S_IXUSR)


def _set_executable(target: Path, executable: bool) -> None:
    mode = stat.S_IMODE(target.stat().st_mode)
    # As git does it: whoever may read may execute.
    wanted = mode | ((mode & 0o444) >> 2) if executable else mode & ~0o111
    if bool(mode & stat.S_IXUSR) != executable:
        target.chmod(wanted)


def _remove_empty(root: Path, path: str, known: Collection[PurePosixPath]) -> None:
    for folder in PurePosixPath(path).parents:
        if folder in known or folder == PurePosixPath("."):
            return
        try:
            (root / folder).rmdir()
        except OSError:  # not empty, or gone already
            return


def _digest(data: bytes | None) -> str | None:
    return None if data is None else sha256(data).hexdigest()


def _split(output: bytes) -> list[str]:
    return [os.fsdecode(part) for part in output.split(b"\0") if part]


def _joined(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)
