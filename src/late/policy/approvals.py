"""What the person has allowed, for how long, and where that is kept.

| scope | lasts | kept in |
|---|---|---|
| session | 30 minutes | memory |
| project | 30 days | `<directory>/<sha256 of the project's real path>.json` |
| global | 30 days | `<directory>/global.json` |

The files lie outside of every repository, are readable by their owner only, and are written whole or not at all. What
is expired, damaged or odd (an end that lies further away than a grant can last, a file that others may write) counts
as not granted.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from late.config.paths import write_private
from late.events import Scope
from late.policy.verdicts import SCOPES

SESSION_SECONDS: Final = 30 * 60
STORED_DAYS: Final = 30
SEPARATOR: Final = "\n"
"""Between the parts of a key or a pattern: a command line is covered when each of its commands is."""

_Stored = Literal["project", "global"]
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Approval:
    """One thing that may be done without asking."""

    key: str
    pattern: str
    """What it covers, in words."""
    scope: Scope
    expires_at: datetime


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    key: str
    pattern: str
    granted_at: datetime
    expires_at: datetime


class _File(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)
    version: Literal[1] = _VERSION
    project: str | None = None
    approvals: tuple[_Entry, ...] = ()


class Approvals:
    """The approvals that hold in one project. `clock` counts seconds, `now` tells the date (both for tests)."""

    def __init__(
        self,
        project: Path,
        directory: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.directory = directory
        self._project = Path(os.path.realpath(project))
        self._clock = clock
        self._now = now
        self._session: dict[str, tuple[str, float]] = {}

    def covers(self, key: str) -> Scope | None:
        """The shortest-lived scope in which every part of `key` is allowed; `None` where one is not."""
        if not key:
            return None
        scopes: list[Scope] = []
        for part in key.split(SEPARATOR):
            scope = self._scope_of(part)
            if scope is None:
                return None
            scopes.append(scope)
        return min(scopes, key=SCOPES.index)

    def grant(self, key: str, pattern: str, scope: Scope) -> None:
        """Allow what `key` stands for. `once` and an empty key are not remembered.

        Raises:
            OSError: the file of the scope cannot be written.
        """
        if not key or scope == "once":
            return
        keys, patterns = key.split(SEPARATOR), pattern.split(SEPARATOR)
        if len(keys) != len(patterns):
            patterns = [pattern] * len(keys)
        if scope == "session":
            end = self._clock() + SESSION_SECONDS
            self._session.update({part: (text, end) for part, text in zip(keys, patterns, strict=True)})
            return
        start = self._now()
        end_at = start + timedelta(days=STORED_DAYS)
        new = {
            part: _Entry(key=part, pattern=text, granted_at=start, expires_at=end_at)
            for part, text in zip(keys, patterns, strict=True)
        }
        with self._locked():
            kept = tuple(entry for entry in self._read(scope) if entry.key not in new)
            self._write(scope, (*kept, *new.values()))

    def list(self) -> tuple[Approval, ...]:
        """What holds now, in the order session, project, global."""
        ticks, today = self._clock(), self._now()
        found = [
            Approval(key, pattern, "session", today + timedelta(seconds=end - ticks))
            for key, (pattern, end) in self._session.items()
            if ticks < end
        ]
        stored: tuple[_Stored, ...] = ("project", "global")
        for scope in stored:
            found += [Approval(entry.key, entry.pattern, scope, entry.expires_at) for entry in self._read(scope)]
        return tuple(found)

    def revoke(self, key: str) -> bool:
        """Forget an approval in every scope; whether there was one.

        Raises:
            OSError: a file cannot be written.
        """
        found = self._session.pop(key, None) is not None
        stored: tuple[_Stored, ...] = ("project", "global")
        with self._locked():
            for scope in stored:
                entries = self._read(scope)
                kept = tuple(entry for entry in entries if entry.key != key)
                if len(kept) != len(entries):
                    found = True
                    self._write(scope, kept)
        return found

    def _scope_of(self, part: str) -> Scope | None:
        granted = self._session.get(part)
        if granted and self._clock() < granted[1]:
            return "session"
        stored: tuple[_Stored, ...] = ("project", "global")
        return next((scope for scope in stored if any(entry.key == part for entry in self._read(scope))), None)

    def _path(self, scope: _Stored) -> Path:
        if scope == "global":
            return self.directory / "global.json"
        return self.directory / f"{hashlib.sha256(os.fsencode(self._project)).hexdigest()}.json"

    def _read(self, scope: _Stored) -> tuple[_Entry, ...]:
        path = self._path(scope)
        try:
            status = path.lstat()
            if not stat.S_ISREG(status.st_mode) or status.st_mode & 0o022 or status.st_uid != os.getuid():
                return ()
            file = _File.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            return ()
        if scope == "project" and file.project != str(self._project):
            return ()
        today = self._now()
        return tuple(entry for entry in file.approvals if _holds(entry, today))

    def _write(self, scope: _Stored, entries: tuple[_Entry, ...]) -> None:
        file = _File(project=str(self._project) if scope == "project" else None, approvals=entries)
        write_private(self._path(scope), json.dumps(file.model_dump(mode="json"), ensure_ascii=False, indent=2) + "\n")

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Keep other instances from writing between our reading and our writing."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.directory / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _holds(entry: _Entry, today: datetime) -> bool:
    longest = timedelta(days=STORED_DAYS)
    try:
        return entry.granted_at <= today < entry.expires_at <= entry.granted_at + longest
    except TypeError:  # a date without a time zone cannot be compared, so nothing says that it still holds
        return False
