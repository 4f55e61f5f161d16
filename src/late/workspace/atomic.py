"""Reading and writing whole files so that nothing hangs, nothing is half written and no update is lost."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING

from late.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Generator

MAX_BYTES = 64_000_000
"""Of a file that is read whole. Longer ones are data; search and the shell reach into them."""
_MAX_PSEUDO_BYTES = 1_000_000
"""Files of the kernel say that they are empty, and some never end."""
_LOCK_WAIT_S = 5.0
_SECRET_PROC = re.compile(r"/proc/[^/]+/(task/[^/]+/)?(environ|mem|auxv)|/proc/(kcore|kmsg|sysrq-trigger|keys)")
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def read_bytes(path: Path, name: str = "") -> bytes:
    """The content of a regular file; `name` is what errors call it.

    Raises:
        ToolError: it does not exist, is none (folder, pipe, socket, device), would tell secrets of a process, is too
            long, or cannot be read. This is known at once: nothing is waited for.
    """
    real, name = os.path.realpath(path), name or str(path)
    if _SECRET_PROC.fullmatch(real):
        raise ToolError(f"{name} is not read: it holds secrets of a process or of the kernel.")
    try:
        _refuse_special(name, os.stat(real))  # noqa: PTH116
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            status = os.fstat(descriptor)
            _refuse_special(name, status)
            limit = MAX_BYTES if status.st_size else _MAX_PSEUDO_BYTES
            if status.st_size > limit:
                raise ToolError(
                    f"{name} has {status.st_size:,} bytes, which is too much to be read whole.",
                    "Use search, or `sed -n` or `tail` in bash.",
                )
            parts: list[bytes] = []
            length = 0
            while (part := file.read(min(1_048_576, limit + 1 - length))) != b"":
                if part is None:
                    raise ToolError(f"{name} has nothing to read now and is not waited for.")
                parts.append(part)
                length += len(part)
                if length > limit:
                    raise ToolError(f"{name} does not end within {limit:,} bytes and is not read.")
            return b"".join(parts)
    except OSError as error:
        raise _refusal(name, error, "read") from error


def _refuse_special(name: str, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{name} is a folder.", "Use list_files to see what is in it.")
    for test, kind in _KINDS:
        if test(status.st_mode):
            raise ToolError(f"{name} is {kind}, not a file: it is not read or written.")


def _refusal(name: str, error: OSError, verb: str) -> ToolError:
    if isinstance(error, FileNotFoundError):
        return ToolError(f"{name} does not exist.")
    return ToolError(f"{name} cannot be {verb}: {error.strerror or error}.")


def check_writable(path: Path, name: str = "") -> None:
    """Whether a file may be written or made, its missing folders included.

    A rename could replace a read-only file; whoever took away the write permission did not want that.

    Raises:
        ToolError: it may not, and why.
    """
    target, name = Path(os.path.realpath(path)), name or str(path)
    folder = target.parent
    try:
        status = _status(target)
        while _status(folder) is None:
            folder = folder.parent
        above = folder.stat()
    except OSError as error:
        raise _refusal(name, error, "written") from error
    if status is not None:
        _refuse_special(name, status)
        if not status.st_mode & 0o222 or not os.access(target, os.W_OK):
            raise ToolError(
                f"{name} is read-only (mode {stat.S_IMODE(status.st_mode):o}): nothing was written.",
                "Ask the person whether it may be changed.",
            )
    if not stat.S_ISDIR(above.st_mode):
        raise ToolError(f"{folder} is a file, so nothing can be written below it.", "Choose another path.")
    if not above.st_mode & 0o222 or not os.access(folder, os.W_OK | os.X_OK):
        raise ToolError(
            f"The folder {folder} is read-only, and files are only replaced whole: nothing was written.",
            "Ask the person whether it may be changed.",
        )


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def write_atomic(path: Path, data: bytes, *, expect: bytes | None, name: str = "") -> None:
    """Replace a file's content, or make a new file (`expect` is `None`) in a folder that exists.

    The file is replaced in one step or not at all. A link stays and what it leads to is written. Mode and owner of an
    existing file are kept, without set-user-id and set-group-id; a new file follows the umask. Processes of late
    exclude each other with a lock on the folder, so that the comparison with `expect` and the replacement are one;
    where a file system has no such locks, a moment between the two remains.

    Raises:
        ToolError: the file is not as expected, is read-only or no regular file, or the disk refuses. The file is then
            as it was, and no other file is left behind.
    """
    target, name = Path(os.path.realpath(path)), name or str(path)
    check_writable(target, name)
    temporary = target.with_name(f".late-{secrets.token_hex(8)}.tmp")
    try:
        _write_new(temporary, data, _status(target))
        with _locked(target.parent):
            _compare(name, target, expect)
            if expect is None:
                _link_new(name, temporary, target)
            else:
                temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise _write_failure(name, target, error) from error
    finally:
        with contextlib.suppress(OSError):  # mostly it is gone; a disk that became read-only keeps it
            temporary.unlink()


def _write_new(temporary: Path, data: bytes, like: os.stat_result | None) -> None:
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if like is not None:
            made = os.fstat(descriptor)
            if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
                _keep_owner(descriptor, like)
            os.fchmod(descriptor, stat.S_IMODE(like.st_mode) & 0o777)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _keep_owner(descriptor: int, like: os.stat_result) -> None:
    """As far as the system lets this user: giving a file away is root's right, and a group must be one's own."""
    for owner in (like.st_uid, -1):
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, owner, like.st_gid)
            return


def _compare(name: str, target: Path, expect: bytes | None) -> None:
    exists = _status(target) is not None
    if expect is None and exists:
        raise ToolError(f"{name} was created by somebody else in the meantime: nothing was written.", "Read it first.")
    if expect is None:
        return
    if not exists:
        raise ToolError(f"{name} was deleted in the meantime: nothing was written.", "Ask the person what happened.")
    if read_bytes(target, name) != expect:
        raise ToolError(f"{name} was changed by somebody else in the meantime: nothing was written.", "Read it again.")


def _link_new(name: str, temporary: Path, target: Path) -> None:
    """Give the file its name only if nobody has it; not all file systems have links, and those get a rename."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise ToolError(f"{name} was created by somebody else in the meantime.", "Read it first.") from None
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}:
            raise
        temporary.replace(target)


@contextlib.contextmanager
def _locked(folder: Path) -> Generator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        deadline = time.monotonic() + _LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ToolError(
                        f"Another program has locked the folder {folder}: nothing was written.", "Try again."
                    ) from None
                time.sleep(0.005)
            except OSError as error:
                if error.errno not in {errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}:
                    raise
                break
        yield
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Make the new name durable; some file systems cannot, and the content is safe all the same."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_failure(name: str, target: Path, error: OSError) -> ToolError:
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        disk = target.parent
        while not disk.is_mount():
            disk = disk.parent
        return ToolError(
            f"{name} was not written, the disk mounted at {disk} refused it: {error.strerror}. The file is as it was.",
            "Ask the person to make room.",
        )
    return _refusal(name, error, "written")
