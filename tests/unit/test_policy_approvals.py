from __future__ import annotations

import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from late.policy.approvals import Approvals


class Time:
    """A clock and a calendar that move when told."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.date = datetime(2026, 5, 1, 12, tzinfo=UTC)

    def clock(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return self.date

    def pass_(self, **parts: float) -> None:
        self.seconds += timedelta(**parts).total_seconds()
        self.date += timedelta(**parts)


@pytest.fixture
def time() -> Time:
    return Time()


def _open(tmp_path: Path, time: Time, project: str = "project") -> Approvals:
    (tmp_path / project).mkdir(exist_ok=True)
    return Approvals(tmp_path / project, tmp_path / "data" / "approvals", clock=time.clock, now=time.now)


def _file(tmp_path: Path) -> Path:
    return next(path for path in (tmp_path / "data" / "approvals").glob("*.json") if path.name != "global.json")


def test_a_session_approval_lasts_thirty_minutes_and_is_not_stored(tmp_path: Path, time: Time) -> None:
    approvals = _open(tmp_path, time)
    approvals.grant("run npm test", "npm test", "session")
    time.pass_(minutes=29, seconds=59)
    assert approvals.covers("run npm test") == "session"
    assert _open(tmp_path, time).covers("run npm test") is None
    time.pass_(seconds=1)
    assert approvals.covers("run npm test") is None
    assert approvals.list() == ()


@pytest.mark.parametrize("scope", ["project", "global"])
def test_a_stored_approval_lasts_thirty_days(tmp_path: Path, time: Time, scope: str) -> None:
    _open(tmp_path, time).grant("run npm test", "npm test", scope)  # type: ignore[arg-type]
    time.pass_(days=29, hours=23)
    assert _open(tmp_path, time).covers("run npm test") == scope
    time.pass_(hours=1)
    assert _open(tmp_path, time).covers("run npm test") is None


def test_a_project_approval_holds_in_its_project_only(tmp_path: Path, time: Time) -> None:
    _open(tmp_path, time).grant("a", "a", "project")
    assert _open(tmp_path, time, "other").covers("a") is None
    _open(tmp_path, time).grant("b", "b", "global")
    assert _open(tmp_path, time, "other").covers("b") == "global"


def test_a_project_is_known_by_its_real_path(tmp_path: Path, time: Time) -> None:
    _open(tmp_path, time).grant("a", "a", "project")
    (tmp_path / "link").symlink_to(tmp_path / "project")
    assert _open(tmp_path, time, "link").covers("a") == "project"


def test_once_is_not_remembered_and_an_empty_key_covers_nothing(tmp_path: Path, time: Time) -> None:
    approvals = _open(tmp_path, time)
    approvals.grant("a", "a", "once")
    approvals.grant("", "everything", "global")
    assert approvals.covers("a") is None
    assert approvals.covers("") is None
    assert approvals.list() == ()


def test_a_key_of_several_parts_is_covered_when_each_part_is(tmp_path: Path, time: Time) -> None:
    approvals = _open(tmp_path, time)
    approvals.grant("a\nb", "do a\ndo b", "project")
    approvals.grant("c", "do c", "session")
    assert approvals.covers("b") == "project"
    assert approvals.covers("b\nc") == "session"
    assert approvals.covers("b\nd") is None
    assert {entry.pattern for entry in approvals.list()} == {"do a", "do b", "do c"}


def test_a_revoked_approval_is_gone_in_every_scope(tmp_path: Path, time: Time) -> None:
    approvals = _open(tmp_path, time)
    for scope in ("session", "project", "global"):
        approvals.grant("a", "a", scope)
    approvals.grant("b", "b", "project")
    assert approvals.revoke("a")
    assert not approvals.revoke("a")
    assert [entry.key for entry in approvals.list()] == ["b"]


def test_granting_keeps_what_was_granted_before_and_by_other_instances(tmp_path: Path, time: Time) -> None:
    first, second = _open(tmp_path, time), _open(tmp_path, time)
    first.grant("a", "a", "project")
    second.grant("b", "b", "project")
    first.grant("c", "c", "project")
    assert {entry.key for entry in second.list()} == {"a", "b", "c"}


def test_the_files_are_the_owners_alone(tmp_path: Path, time: Time) -> None:
    _open(tmp_path, time).grant("a", "a", "project")
    path = _file(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir() if entry.name.endswith(".tmp")] == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: text.replace('"version": 1', '"version": 2'),
        lambda text: text.replace("2026-05-31", "2036-05-31"),
        lambda text: text.replace("2026-05-31", "someday"),
        lambda text: text.replace("2026-05-01", "2026-05-20").replace("2026-05-31", "2026-06-19"),
        lambda text: text.replace("Z", ""),
        lambda text: text.replace("/project", "/elsewhere"),
    ],
    ids=["cut", "list", "version", "too long", "no date", "from the future", "no zone", "other project"],
)
def test_what_is_damaged_or_odd_counts_as_not_granted(tmp_path: Path, time: Time, damage: object) -> None:
    _open(tmp_path, time).grant("a", "a", "project")
    path = _file(tmp_path)
    before = path.read_text()
    path.write_text(damage(before))  # type: ignore[operator]
    assert path.read_text() != before
    assert _open(tmp_path, time).covers("a") is None


def test_a_file_that_others_may_write_counts_for_nothing(tmp_path: Path, time: Time) -> None:
    _open(tmp_path, time).grant("a", "a", "project")
    _file(tmp_path).chmod(0o666)
    assert _open(tmp_path, time).covers("a") is None


def test_expired_entries_leave_the_file_when_it_is_written_again(tmp_path: Path, time: Time) -> None:
    approvals = _open(tmp_path, time)
    approvals.grant("a", "a", "project")
    time.pass_(days=31)
    approvals.grant("b", "b", "project")
    assert [entry["key"] for entry in json.loads(_file(tmp_path).read_text())["approvals"]] == ["b"]
