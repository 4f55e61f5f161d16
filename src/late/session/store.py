"""The session log on disk: one SQLite database for all sessions, to which events are only ever added.

Several processes may use it at once. Durability is that of WAL with `synchronous=NORMAL`
(https://www.sqlite.org/pragma.html#pragma_synchronous): a commit survives the end of the process, however it ends; a
power failure may cost the last commits, and never the database.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, cast

from late.errors import StoreError, UserError
from late.events import (
    PLANNER,
    AssistantMessage,
    ErrorRaised,
    Event,
    MessageDelivered,
    MessageQueued,
    parse_event,
)

E = TypeVar("E", bound=Event)
TITLE_CHARS = 100
_BUSY_S = 10.0
"""How long a writer waits for another process; one append takes well under a millisecond."""
_BATCH_ROWS = 256
_LOCK_TRIES = 20
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]*")

# Step n brings a database of version n-1 to version n; steps are added and never changed.
_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE sessions (
            id TEXT PRIMARY KEY,
            directory TEXT NOT NULL,
            title TEXT NOT NULL DEFAULT '',
            created_at REAL NOT NULL,
            updated_at REAL NOT NULL,
            messages INTEGER NOT NULL DEFAULT 0,
            last_event INTEGER NOT NULL DEFAULT 0
        )""",
        "CREATE INDEX sessions_by_directory ON sessions (directory, last_event)",
        """CREATE TABLE events (
            id INTEGER PRIMARY KEY,
            session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
            seq INTEGER NOT NULL,
            time REAL NOT NULL,
            type TEXT NOT NULL,
            agent_id TEXT NOT NULL,
            body TEXT NOT NULL,
            UNIQUE (session_id, seq)
        )""",
    ),
)


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session as a list shows it."""

    id: str
    directory: Path
    title: str
    """The person's first message on one line, cut to `TITLE_CHARS`; empty before it."""
    created_at: float
    updated_at: float
    """Unix time in seconds of the last event."""
    messages: int
    """Messages of the person and answers of the planner."""
    open: bool
    """Some process holds the session's lock."""


class SessionStore:
    """All sessions of one database.

    Usable from any thread; calls wait for each other.
    """

    def __init__(self, path: Path | None) -> None:
        """Open a database, creating or upgrading it as needed; `None` keeps everything in memory only.

        Raises:
            StoreError: it cannot be opened, is no database, or was written by a newer version.
        """
        self.path = path
        self._mutex = threading.RLock()
        self._name = str(path) if path else "the database in memory"
        with self._translated("open"):
            if path:
                # SQLite gives its -wal and -shm files the mode of the database.
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._db = sqlite3.connect(
                path or ":memory:", timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
        try:
            with self._translated("open"):
                self._configure()
                self._migrate()
        except StoreError:
            self._db.close()
            raise

    def close(self) -> None:
        """Close the database; what was appended is on disk already."""
        with self._mutex:
            self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create(self, directory: Path) -> str:
        """Start a log for a workspace and return its id. Ids sort by the time of their creation.

        Raises:
            StoreError: the database cannot be written.
        """
        now = time.time()
        while True:
            session_id = _new_id(now)
            try:
                with self._translated("write"), self._transaction():
                    self._db.execute(
                        "INSERT INTO sessions (id, directory, created_at, updated_at) VALUES (?, ?, ?, ?)",
                        (session_id, _key(directory), now, now),
                    )
            except sqlite3.IntegrityError:
                continue
            return session_id

    def append(self, session_id: str, event: E) -> E:
        """Commit an event and return it with its place in the log and the time.

        Raises:
            StoreError: the session is gone, or the database cannot be written; nothing was stored.
            ValueError: a delta, which is never stored.
        """
        if event.transient:
            raise ValueError(f"{type(event).__name__} is a delta and is never stored")
        with self._translated("write"), self._transaction():
            row = self._db.execute(
                "SELECT s.title, s.updated_at, (SELECT MAX(seq) FROM events WHERE session_id = s.id)"
                " FROM sessions s WHERE s.id = ?",
                (session_id,),
            ).fetchone()
            if row is None:
                raise StoreError(f"session {session_id} does not exist any more", "It was deleted meanwhile.")
            title, updated_at, last = row
            stored, body = _serialised(event.model_copy(update={"seq": (last or 0) + 1, "time": time.time()}))
            inserted = self._db.execute(
                "INSERT INTO events (session_id, seq, time, type, agent_id, body) VALUES (?, ?, ?, ?, ?, ?)",
                (session_id, stored.seq, stored.time, getattr(stored, "type", ""), stored.agent_id, body),
            )
            self._db.execute(
                "UPDATE sessions SET title = ?, updated_at = ?, messages = messages + ?, last_event = ? WHERE id = ?",
                (
                    title or _title_of(stored),
                    max(updated_at, stored.time),  # the clock may have been set back
                    _is_message(stored),
                    inserted.lastrowid,
                    session_id,
                ),
            )
        return stored

    def events(self, session_id: str, after: int = 0) -> Iterator[Event]:
        """Read a log in its order, from the event that follows number `after`.

        Memory stays bounded however long the log is. A type that this version does not know comes as an
        `UnknownEvent`. A damaged row comes as an `ErrorRaised` in its place and is left as it is on disk.

        Raises:
            StoreError: the database cannot be read.
        """
        while True:
            with self._translated("read"):
                # Cast: a text that is no UTF-8 would fail in the fetch and hide all rows behind it.
                rows = self._db.execute(
                    "SELECT seq, time, CAST(body AS BLOB) FROM events WHERE session_id = ? AND seq > ?"
                    " ORDER BY seq LIMIT ?",
                    (session_id, after, _BATCH_ROWS),
                ).fetchall()
            if not rows:
                return
            for seq, when, body in rows:
                yield _parsed(seq, when, body, session_id)
            after = rows[-1][0]

    def list(self, directory: Path | None = None) -> list[SessionSummary]:
        """Sessions of one workspace, or all; the one with the newest event is last.

        Raises:
            StoreError: the database cannot be read.
        """
        where, values = ("WHERE directory = ?", (_key(directory),)) if directory else ("", ())
        with self._translated("read"):
            rows = self._db.execute(
                f"SELECT id, directory, title, created_at, updated_at, messages FROM sessions {where}"  # noqa: S608
                " ORDER BY last_event, created_at, id",
                values,
            ).fetchall()
        return [
            SessionSummary(
                id=row[0],
                directory=Path(row[1]),
                title=row[2],
                created_at=row[3],
                updated_at=row[4],
                messages=row[5],
                open=self._is_locked(row[0]),
            )
            for row in rows
        ]

    def newest(self, directory: Path) -> str | None:
        """The session of this workspace to which an event was added last, whatever the clock said then.

        Raises:
            StoreError: the database cannot be read.
        """
        with self._translated("read"):
            row = self._db.execute(
                "SELECT id FROM sessions WHERE directory = ? ORDER BY last_event DESC, created_at DESC LIMIT 1",
                (_key(directory),),
            ).fetchone()
        return row[0] if row else None

    def resolve(self, prefix: str) -> str:
        """The id that a person means by the beginning of an id, or by the beginning of its last part.

        Raises:
            UserError: no session matches, or several do; the message lists them.
            StoreError: the database cannot be read.
        """
        with self._translated("read"):
            rows = self._db.execute("SELECT id, title FROM sessions ORDER BY last_event").fetchall()
        matches: list[tuple[str, str]] = [
            (found, title)
            for found, title in rows
            if prefix and (found.startswith(prefix) or found.rpartition("-")[2].startswith(prefix))
        ]
        if len(matches) == 1:
            return matches[0][0]
        if any(found == prefix for found, _ in matches):
            return prefix
        if not matches:
            raise _missing(prefix)
        shown = "\n".join(f"  {found}  {title}" for found, title in matches[-10:])
        raise UserError(f"{prefix!r} is the beginning of {len(matches)} sessions:\n{shown}", "Give more of the id.")

    def summary(self, session_id: str) -> SessionSummary:
        """One session as `list` shows it.

        Raises:
            UserError: there is no such session.
            StoreError: the database cannot be read.
        """
        for found in self.list():
            if found.id == session_id:
                return found
        raise _missing(session_id)

    def delete(self, session_id: str) -> None:
        """Remove a session and all its events for good.

        Raises:
            UserError: there is no such session, or it is open in another process.
            StoreError: the database cannot be written.
        """
        with self.lock(session_id), self._translated("write"), self._transaction():
            self._db.execute("DELETE FROM events WHERE session_id = ?", (session_id,))
            if self._db.execute("DELETE FROM sessions WHERE id = ?", (session_id,)).rowcount == 0:
                raise _missing(session_id)

    @contextmanager
    def lock(self, session_id: str) -> Generator[None]:
        """Keep other writers out of a session. The kernel gives the lock back when the process ends, however it ends.

        Raises:
            UserError: another process, or another owner in this one, has it.
            StoreError: the lock file cannot be written.
        """
        path = self._lock_path(session_id)
        if path is None:
            yield
            return
        descriptor = self._take_lock(path, session_id)
        try:
            yield
        finally:
            with suppress(OSError):  # a leftover file is harmless: the lock is what counts
                path.unlink()
            os.close(descriptor)

    def _take_lock(self, path: Path, session_id: str) -> int:
        for _ in range(_LOCK_TRIES):
            try:
                path.parent.mkdir(mode=0o700, exist_ok=True)
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise StoreError(
                    f"the lock {path} cannot be created: {error.strerror}",
                    "Make the folder writable, or set LATE_DATA_DIR to one that is.",
                ) from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                time.sleep(0.005)  # `list` probes a lock by holding it for a moment
                continue
            if _same_file(descriptor, path):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, str(os.getpid()).encode())
                return descriptor
            os.close(descriptor)  # its owner removed the file between our open and our lock
        owner = ""
        with suppress(OSError):
            owner = path.read_text(encoding="ascii", errors="replace")
        raise UserError(
            f"session {session_id} is open in another late" + (f" (process {owner})" if owner else ""),
            "Close it there first, or start a new session.",
        )

    def _is_locked(self, session_id: str) -> bool:
        path = self._lock_path(session_id)
        if path is None:
            return False
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False

    def _lock_path(self, session_id: str) -> Path | None:
        if not _ID.fullmatch(session_id):  # it becomes a file's name, and that file is removed again
            raise _missing(session_id)
        return self.path.parent / "locks" / session_id if self.path else None

    def _configure(self) -> None:
        self._db.execute("PRAGMA synchronous = NORMAL")
        deadline = time.monotonic() + _BUSY_S
        while self._db.execute("PRAGMA journal_mode").fetchone()[0] not in ("wal", "memory"):
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                return  # a file system without shared memory keeps its own mode, which is as safe
            except sqlite3.OperationalError as error:
                # SQLite does not wait by itself when two processes open a new database at once.
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _migrate(self) -> None:
        if self._version() == len(_MIGRATIONS):
            return
        with self._transaction():
            found = self._version()  # another process may have been faster
            if found > len(_MIGRATIONS):
                raise StoreError(
                    f"{self._name} was written by a newer late (format {found}; this one knows {len(_MIGRATIONS)})",
                    "Update late, or set LATE_DATA_DIR to another folder.",
                )
            for statements in _MIGRATIONS[found:]:
                for statement in statements:
                    self._db.execute(statement)
            self._db.execute(f"PRAGMA user_version = {len(_MIGRATIONS)}")

    def _version(self) -> int:
        return self._db.execute("PRAGMA user_version").fetchone()[0]

    @contextmanager
    def _transaction(self) -> Generator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # some failures have rolled back already
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def _translated(self, doing: Literal["open", "read", "write"]) -> Generator[None]:
        """One caller at a time, and the errors of the file in words."""
        with self._mutex:
            try:
                yield
            except sqlite3.IntegrityError:
                raise
            except sqlite3.DatabaseError as error:
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # extended codes keep the kind in the low byte
                message, hint = _EXPLAINED.get(code, (str(error), ""))
                raise StoreError(f"cannot {doing} {self._name}: {message}", hint) from error
            except OSError as error:
                raise StoreError(
                    f"cannot {doing} {self._name}: {error.strerror}",
                    "Make the folder writable, or set LATE_DATA_DIR to one that is.",
                ) from error


_EXPLAINED = {
    sqlite3.SQLITE_READONLY: (
        "it is read-only",
        "Make the file and its folder writable, or set LATE_DATA_DIR to a folder that is.",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "the file cannot be opened",
        "Make the file and its folder writable, or set LATE_DATA_DIR to a folder that is.",
    ),
    sqlite3.SQLITE_FULL: ("the disk is full", "Free some space; what was stored before is safe."),
    sqlite3.SQLITE_IOERR: (
        "the disk reports an error",
        "Check for free space and that the disk is still there; what was stored before is kept.",
    ),
    sqlite3.SQLITE_BUSY: (
        f"another process has kept it locked for {_BUSY_S:.0f} seconds",
        "Look for a late that hangs, and try again.",
    ),
    sqlite3.SQLITE_NOTADB: (
        "it is no SQLite database",
        "Move the file away to start with an empty one; late does not overwrite it.",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "it is damaged",
        "Keep a copy of it; `sqlite3 FILE .recover` saves what can be read. late does not overwrite it.",
    ),
}


def _missing(session_id: str) -> UserError:
    return UserError(f"there is no session {session_id!r}", "`late session list --all` shows all sessions.")


def _new_id(now: float) -> str:
    moment = datetime.fromtimestamp(now, UTC)
    return f"{moment:%Y%m%d-%H%M%S}-{moment.microsecond // 1000:03d}{secrets.token_hex(2)}"


def _key(directory: Path) -> str:
    """A folder's real path as text; bytes that are no UTF-8 are written as escapes."""
    return os.fsencode(directory.resolve()).decode("utf-8", "backslashreplace")


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def _title_of(event: Event) -> str:
    match event:
        case MessageQueued(text=text) | MessageDelivered(text=text, source="person"):
            line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
            return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + "…"
        case _:
            return ""


def _is_message(event: Event) -> bool:
    match event:
        case MessageDelivered(source="person"):
            return True
        case AssistantMessage():
            return event.agent_id == PLANNER
        case _:
            return False


def _serialised(event: E) -> tuple[E, str]:
    """An event and its JSON. Half a surrogate pair, which no JSON consumer accepts, becomes U+FFFD in both."""
    try:
        return event, event.model_dump_json()
    except ValueError:
        clean = type(event).model_validate(_without_surrogates(event.model_dump()))
        return clean, clean.model_dump_json()


def _without_surrogates(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            items = cast("dict[Any, Any]", value).items()
            return {_without_surrogates(key): _without_surrogates(item) for key, item in items}
        case list() | tuple():
            return [_without_surrogates(item) for item in cast("list[Any]", value)]
        case _:
            return value


def _parsed(seq: int, when: float, body: bytes, session_id: str) -> Event:
    try:
        event = parse_event(body)
    except (ValueError, RecursionError) as error:  # ValidationError and JSONDecodeError are ValueErrors
        reason = str(error).partition("\n")[0]
        return ErrorRaised(
            seq=seq,
            time=when,
            message=f"event {seq} of session {session_id} is damaged and was passed over ({reason})",
            hint="It is kept in the database as it is.",
        )
    return event if (event.seq, event.time) == (seq, when) else event.model_copy(update={"seq": seq, "time": when})
