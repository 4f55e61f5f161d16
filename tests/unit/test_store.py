from __future__ import annotations

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from late.errors import StoreError, UserError
from late.events import (
    AssistantMessage,
    ErrorRaised,
    MessageDelivered,
    MessageQueued,
    RunStarted,
    SessionStarted,
    TextDelta,
    ToolCall,
    ToolFinished,
    UnknownEvent,
)
from late.session.store import TITLE_CHARS, SessionStore

APPEND_FOREVER = """
import sys
from pathlib import Path
from late.events import ToolFinished
from late.session.store import SessionStore

store = SessionStore(Path(sys.argv[1]))
while True:
    stored = store.append(sys.argv[2], ToolFinished(call_id="c", name="n", status="ok", content="x" * 2000))
    print(stored.seq, flush=True)
"""
APPEND_SOME = """
import sys
from pathlib import Path
from late.events import ToolFinished
from late.session.store import SessionStore

store = SessionStore(Path(sys.argv[1]))
session_id = sys.argv[2] or store.create(Path.cwd())
for number in range(int(sys.argv[3])):
    store.append(session_id, ToolFinished(call_id=sys.argv[4], name="n", status="ok", content=str(number)))
print(session_id)
"""
HOLD_LOCK = """
import sys
from pathlib import Path
from late.session.store import SessionStore

with SessionStore(Path(sys.argv[1])).lock(sys.argv[2]):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_events_come_back_as_they_were_appended_with_place_and_time(path: Path) -> None:
    before = time.time()
    with SessionStore(path) as store:
        session_id = store.create(path.parent)
        appended = [
            store.append(session_id, SessionStarted(session_id=session_id, directory="/x", late_version="1")),
            store.append(
                session_id,
                AssistantMessage(
                    agent_id="coder-1",
                    text="é 仕事 \0 😀",
                    calls=(ToolCall(id="1", name="bash", arguments='{"a": '),),
                ),
            ),
        ]
        assert [event.seq for event in appended] == [1, 2]
        assert all(before <= event.time <= time.time() for event in appended)
    with SessionStore(path) as store:
        assert list(store.events(session_id)) == appended
        assert list(store.events(session_id, after=1)) == appended[1:]


def test_a_log_longer_than_one_batch_is_read_in_order(path: Path) -> None:
    with SessionStore(path) as store:
        session_id = store.create(path.parent)
        for _ in range(700):
            store.append(session_id, RunStarted())
        assert [event.seq for event in store.events(session_id)] == list(range(1, 701))


def test_half_a_surrogate_pair_is_replaced_in_what_is_stored_and_returned(path: Path) -> None:
    with SessionStore(path) as store:
        session_id = store.create(path.parent)
        appended = store.append(
            session_id,
            ToolFinished(call_id="c", name="n", status="ok", content="cut \ud83d", details={"path": "\udcff.txt"}),
        )
        assert appended.content == "cut \ufffd"
        assert appended.details == {"path": "\ufffd.txt"}
        assert list(store.events(session_id)) == [appended]
        appended.content.encode()


def test_deltas_are_refused(path: Path) -> None:
    with SessionStore(path) as store:
        session_id = store.create(path.parent)
        with pytest.raises(ValueError, match="TextDelta"):
            store.append(session_id, TextDelta(text="x"))
        assert list(store.events(session_id)) == []


def test_an_unknown_type_is_kept_whole(path: Path) -> None:
    with SessionStore(path) as store:
        session_id = store.create(path.parent)
        store.append(session_id, UnknownEvent(type="from_the_future", colour="red"))
        [event] = store.events(session_id)
    assert isinstance(event, UnknownEvent)
    assert event.model_extra == {"colour": "red"}
    assert event.seq == 1


@pytest.mark.parametrize(
    "damage", [b"", b"\0" * 600, b'{"type": "run_sta', b'{"type": "tool_finished"}', b"\xff\xfe\xfd", b"[1]"]
)
def test_a_damaged_row_is_reported_in_its_place_and_left_alone(path: Path, damage: bytes) -> None:
    with SessionStore(path) as store:
        session_id = store.create(path.parent)
        for text in ("before", "damaged", "after"):
            store.append(session_id, MessageDelivered(message_id="m", text=text))
        with sqlite3.connect(path) as raw:
            raw.execute("UPDATE events SET body = CAST(? AS TEXT) WHERE seq = 2", (damage,))
        raw.close()
        store.append(session_id, MessageDelivered(message_id="m", text="later"))
        first, second, third, fourth = store.events(session_id)
    assert [getattr(event, "text", None) for event in (first, third, fourth)] == ["before", "after", "later"]
    assert isinstance(second, ErrorRaised)
    assert second.seq == 2
    assert "event 2" in second.message
    with sqlite3.connect(path) as raw:
        [stored] = raw.execute("SELECT CAST(body AS BLOB) FROM events WHERE seq = 2").fetchone()
    raw.close()
    assert stored == damage


def test_ids_are_unique_and_sort_by_creation(path: Path) -> None:
    with SessionStore(path) as store:
        ids = [store.create(path.parent) for _ in range(300)]
    assert len(set(ids)) == 300
    moments = [session_id[:-4] for session_id in ids]
    assert moments == sorted(moments)


def test_lists_are_per_directory_and_newest_last_by_the_order_of_events(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two 仕事"
    one.mkdir()
    two.mkdir()
    (tmp_path / "link").symlink_to(one)
    with SessionStore(tmp_path / "s.db") as store:
        first, second, other = store.create(one), store.create(one), store.create(two)
        for session_id in (first, second, other, first):
            store.append(session_id, RunStarted())
        assert [summary.id for summary in store.list(one)] == [second, first]
        assert [summary.id for summary in store.list(tmp_path / "link")] == [second, first]
        assert [summary.id for summary in store.list()] == [second, other, first]
        assert store.newest(one) == first
        assert store.newest(two) == other
        assert store.newest(tmp_path) is None
        assert store.list(two)[0].directory == two


def test_a_clock_that_is_set_back_does_not_change_the_order_or_give_negative_ages(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SessionStore(path) as store:
        older = store.create(path.parent)
        store.append(older, RunStarted())
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now - 86_400)
        newer = store.create(path.parent)
        store.append(newer, RunStarted())
        store.append(older, RunStarted())
        store.append(newer, RunStarted())
        assert store.newest(path.parent) == newer
        assert [event.seq for event in store.events(older)] == [1, 2]
        assert all(summary.updated_at >= summary.created_at for summary in store.list())


def test_the_title_is_the_persons_first_message_on_one_short_line(path: Path) -> None:
    with SessionStore(path) as store:
        session_id = store.create(path.parent)
        store.append(session_id, MessageDelivered(message_id="h", text="from the harness", source="harness"))
        store.append(session_id, MessageQueued(message_id="1", text="  fix\n\x1b[2J  " + "the test " * 40))
        store.append(session_id, MessageDelivered(message_id="1", text="other"))
        store.append(session_id, AssistantMessage(text="ok"))
        store.append(session_id, AssistantMessage(agent_id="coder-1", text="not counted"))
        [summary] = store.list()
    assert summary.title.startswith("fix [2J the test the test")
    assert len(summary.title) == TITLE_CHARS
    assert summary.messages == 2
    assert not summary.open


def test_resolve_takes_a_unique_beginning_or_last_part_and_explains_the_rest(path: Path) -> None:
    with SessionStore(path) as store:
        first, second = store.create(path.parent), store.create(path.parent)
        store.append(first, MessageQueued(message_id="1", text="the first one"))
        assert store.resolve(first) == first
        tail = first.rpartition("-")[2]
        if not second.rpartition("-")[2].startswith(tail):
            assert store.resolve(tail) == first
        with pytest.raises(UserError) as ambiguous:
            store.resolve(first[:4])
        assert first in str(ambiguous.value)
        assert second in str(ambiguous.value)
        assert "the first one" in str(ambiguous.value)
        for missing in ("zzz", "", "%", "_"):
            with pytest.raises(UserError, match="there is no session"):
                store.resolve(missing)


def test_delete_removes_one_session_and_only_that(path: Path) -> None:
    with SessionStore(path) as store:
        gone, kept = store.create(path.parent), store.create(path.parent)
        for session_id in (gone, kept):
            store.append(session_id, RunStarted())
        store.delete(gone)
        assert [summary.id for summary in store.list()] == [kept]
        assert list(store.events(gone)) == []
        assert len(list(store.events(kept))) == 1
        with pytest.raises(UserError, match="there is no session"):
            store.delete(gone)
        with pytest.raises(StoreError, match="does not exist any more"):
            store.append(gone, RunStarted())


def test_an_id_that_names_a_path_touches_no_file(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    with SessionStore(tmp_path / "s.db") as store:
        for name in ("../precious", "..", "", "/etc/passwd"):
            with pytest.raises(UserError, match="there is no session"):
                store.delete(name)
    assert (tmp_path / "precious").read_text() == "x"


def test_a_session_that_is_open_elsewhere_is_marked_and_can_be_neither_locked_nor_deleted(path: Path) -> None:
    with SessionStore(path) as store:
        session_id, other = store.create(path.parent), store.create(path.parent)
        holder = start(HOLD_LOCK, path, session_id)
        assert holder.stdout
        assert holder.stdout.readline() == "locked\n"
        assert [summary.open for summary in store.list()] == [True, False]
        with pytest.raises(UserError, match=f"process {holder.pid}"), store.lock(session_id):
            pytest.fail("two owners")
        with pytest.raises(UserError, match="is open"):
            store.delete(session_id)
        with store.lock(other):
            pass
        holder.kill()
        holder.communicate()
        assert [summary.open for summary in store.list()] == [False, False]
        with store.lock(session_id):
            assert store.list()[0].open
        store.delete(session_id)
    assert list((path.parent / "locks").iterdir()) == []


def test_listing_sessions_never_makes_a_lock_fail(path: Path) -> None:
    with SessionStore(path) as store:
        session_id = store.create(path.parent)
        stop = threading.Event()

        def probe() -> None:
            with SessionStore(path) as prober:
                while not stop.is_set():
                    prober.list()

        thread = threading.Thread(target=probe)
        thread.start()
        try:
            for _ in range(200):
                with store.lock(session_id):
                    pass
        finally:
            stop.set()
            thread.join()


def test_two_processes_append_to_one_database_and_nothing_is_lost(path: Path) -> None:
    with SessionStore(path) as store:
        shared = store.create(path.parent)
    processes = [start(APPEND_SOME, path, shared, 200, name) for name in ("a", "b")]
    for process in processes:
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 0, errors
    with SessionStore(path) as store:
        events = list(store.events(shared))
    assert [event.seq for event in events] == list(range(1, 401))
    for name in ("a", "b"):
        own = [e.content for e in events if isinstance(e, ToolFinished) and e.call_id == name]
        assert own == [str(number) for number in range(200)]


def test_a_new_database_can_be_opened_by_several_processes_at_once(path: Path) -> None:
    processes = [start(APPEND_SOME, path, "", 5, name) for name in "abcde"]
    for process in processes:
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 0, errors
    with SessionStore(path) as store:
        assert len(store.list()) == 5


@pytest.mark.parametrize("after_lines", [1, 50, 173])
def test_a_killed_process_loses_nothing_that_was_committed(path: Path, after_lines: int) -> None:
    with SessionStore(path) as store:
        session_id = store.create(path.parent)
    writer = start(APPEND_FOREVER, path, session_id)
    assert writer.stdout
    for _ in range(after_lines):
        writer.stdout.readline()
    writer.send_signal(signal.SIGKILL)
    rest, _ = writer.communicate()
    seen = [int(line) for line in rest.splitlines() if line.strip().isdigit() and rest.endswith("\n")]
    last = seen[-1] if seen else after_lines
    with SessionStore(path) as store:
        events = list(store.events(session_id))
        assert len(events) >= last
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert all(isinstance(event, ToolFinished) for event in events)
        assert store.append(session_id, RunStarted()).seq == len(events) + 1


def test_a_failed_append_stores_nothing_and_the_store_goes_on(path: Path) -> None:
    with SessionStore(path) as store:
        session_id = store.create(path.parent)
        store.append(session_id, RunStarted())
        raw = sqlite3.connect(path, isolation_level=None)
        [pages] = raw.execute("PRAGMA page_count").fetchone()
        raw.close()
        store._db.execute(f"PRAGMA max_page_count = {pages}")  # pyright: ignore[reportPrivateUsage] -- SQLite's own full disk
        with pytest.raises(StoreError, match="the disk is full"):
            store.append(session_id, ToolFinished(call_id="c", name="n", status="ok", content="x" * 1_000_000))
        store._db.execute("PRAGMA max_page_count = 1000000")  # pyright: ignore[reportPrivateUsage]
        assert store.append(session_id, RunStarted()).seq == 2
        assert store.list()[0].messages == 0


def test_a_newer_database_is_refused_and_left_alone(path: Path) -> None:
    SessionStore(path).close()
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA user_version = 99")
    raw.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="newer late") as caught:
        SessionStore(path)
    assert caught.value.hint
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.write_bytes(b"not a database, but long enough to be looked at" * 100)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="no SQLite database"):
        SessionStore(path)
    assert path.read_bytes() == before


def test_an_empty_file_is_an_empty_database(path: Path) -> None:
    path.touch()
    with SessionStore(path) as store:
        assert store.list() == []


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=str(tmp_path / "no" / "s.db")) as caught:
        SessionStore(tmp_path / "no" / "s.db")
    assert "LATE_DATA_DIR" in caught.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreError, match="Permission denied"):
            SessionStore(tmp_path / "s.db")
    finally:
        tmp_path.chmod(0o700)


def test_a_database_that_has_become_read_only_is_named(path: Path) -> None:
    with SessionStore(path) as store:
        session_id = store.create(path.parent)
        store._db.execute("PRAGMA query_only = ON")  # pyright: ignore[reportPrivateUsage] -- fails as a read-only mount does
        with pytest.raises(StoreError, match="read-only"):
            store.append(session_id, RunStarted())
        assert list(store.events(session_id)) == []


def test_the_files_are_for_their_owner_only(path: Path) -> None:
    with SessionStore(path) as store:
        store.append(store.create(path.parent), RunStarted())
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.glob("sessions.db*")}
    assert modes["sessions.db"] == 0o600
    assert set(modes.values()) == {0o600}


def test_a_store_in_memory_works_where_nothing_can_be_written(tmp_path: Path) -> None:
    with SessionStore(None) as store:
        session_id = store.create(tmp_path)
        with store.lock(session_id):
            store.append(session_id, MessageQueued(message_id="1", text="hello"))
        assert [summary.title for summary in store.list(tmp_path)] == ["hello"]
    assert list(tmp_path.iterdir()) == []


def test_a_directory_whose_name_is_no_utf8_has_sessions_too(tmp_path: Path) -> None:
    directory = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    directory.mkdir()
    with SessionStore(tmp_path / "s.db") as store:
        session_id = store.create(directory)
        assert store.newest(directory) == session_id


def test_threads_share_a_store(path: Path) -> None:
    with SessionStore(path) as store:
        session_id = store.create(path.parent)

        def append() -> None:
            for _ in range(50):
                store.append(session_id, RunStarted())

        threads = [threading.Thread(target=append) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [event.seq for event in store.events(session_id)] == list(range(1, 201))


def test_an_append_takes_less_than_a_millisecond_on_average(path: Path) -> None:
    event = ToolFinished(call_id="c", name="n", status="ok", content="x" * 2000, details={"a": [1, 2, 3]})
    with SessionStore(path) as store:
        session_id = store.create(path.parent)
        began = time.process_time()
        for _ in range(1000):
            store.append(session_id, event)
        assert (time.process_time() - began) / 1000 < 0.001


def test_what_is_stored_is_the_json_of_the_event(path: Path) -> None:
    with SessionStore(path) as store:
        session_id = store.create(path.parent)
        stored = store.append(session_id, MessageQueued(message_id="1", text="é"))
    raw = sqlite3.connect(path)
    [body] = raw.execute("SELECT body FROM events").fetchone()
    raw.close()
    assert json.loads(body) == stored.model_dump(mode="json")
