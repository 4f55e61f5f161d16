"""How fast the session log is: appending and reading back, against the same rows in plain SQLite in the same run."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.timing import tell
from late.events import AssistantMessage, Event, parse_event
from late.session.store import SessionStore

EVENTS = 5_000
_TEXT = "A sentence as a model writes it, of a common length. " * 6


def main() -> None:
    """Print the table."""
    events: list[Event] = [AssistantMessage(text=f"{number} {_TEXT}") for number in range(EVENTS)]
    with tempfile.TemporaryDirectory(prefix="late-bench-") as folder:
        plain_append, plain_read = _plain(Path(folder) / "plain.db", events)
        store = SessionStore(Path(folder) / "sessions.db")
        session_id = store.create(Path(folder))
        append = _rate(lambda: [store.append(session_id, event) for event in events])
        read = _rate(lambda: list(store.events(session_id)))
        store.close()
    print(f"Session log ({EVENTS:,} events of {len(events[0].model_dump_json())} bytes, each committed on its own)")
    tell("plain SQLite: append", f"{plain_append:,.0f} /s")
    tell("late: append", f"{append:,.0f} /s", f"{plain_append / append:.1f} × the time of plain SQLite")
    tell("plain SQLite and pydantic: read", f"{plain_read:,.0f} /s")
    tell("late: read", f"{read:,.0f} /s", f"{plain_read / read:.1f} × the time of plain SQLite")


def _plain(path: Path, events: list[Event]) -> tuple[float, float]:
    """The floor: the same bytes into one table, each row its own transaction, in the same mode."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=NORMAL")
    database.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")

    def append() -> None:
        for event in events:
            database.execute("INSERT INTO events (body) VALUES (?)", (event.model_dump_json(),))

    def read() -> None:
        for (body,) in database.execute("SELECT body FROM events ORDER BY id"):
            parse_event(body)

    rates = _rate(append), _rate(read)
    database.close()
    return rates


def _rate(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return EVENTS / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
