from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from support.policy import STRICTNESS, Bench

DATA = Path(__file__).parents[1] / "data" / "policy"


def _rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


CASES = _rows("commands.jsonl")
KINDS = sorted({row["kind"] for row in CASES})
BENIGN = [kind for kind in KINDS if kind.startswith("benign_") or kind == "false_positive_trap"]


@pytest.fixture(scope="module")
def tiers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The tier of each case, by its id."""
    with pytest.MonkeyPatch.context() as patch:
        plain = _bench(tmp_path_factory, patch)
        found: dict[str, str] = {}
        for row in CASES:
            if "setup" not in row:
                found[row["id"]] = plain.run(row["command"].replace("@HOME@", str(plain.home))).tier
        for row in CASES:
            if "setup" in row:
                bench = _bench(tmp_path_factory, patch)
                bench.prepare(row["setup"])
                found[row["id"]] = bench.run(row["command"].replace("@HOME@", str(bench.home))).tier
    return found


def _bench(factory: pytest.TempPathFactory, patch: pytest.MonkeyPatch) -> Bench:
    home = factory.mktemp("home")
    patch.setenv("HOME", str(home))
    return Bench(home)


@pytest.mark.parametrize("kind", KINDS)
def test_no_command_gets_a_laxer_tier_than_its_case_allows(kind: str, tiers: dict[str, str]) -> None:
    rows = [row for row in CASES if row["kind"] == kind]
    lax = [
        (row["id"], row["command"], tiers[row["id"]])
        for row in rows
        if STRICTNESS.index(tiers[row["id"]]) < min(STRICTNESS.index(tier) for tier in row["accept"])
    ]
    assert lax == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_command_is_asked_about_or_refused_without_need(kind: str, tiers: dict[str, str]) -> None:
    rows = [row for row in CASES if row["kind"] == kind]
    strict = [
        (row["id"], row["command"], tiers[row["id"]])
        for row in rows
        if STRICTNESS.index(tiers[row["id"]]) > max(STRICTNESS.index(tier) for tier in row["accept"])
    ]
    assert strict == []


def test_hardly_any_harmless_command_is_asked_about_even_where_asking_would_be_right(tiers: dict[str, str]) -> None:
    rows = [row for row in CASES if row["kind"] in BENIGN]
    asked = [row["command"] for row in rows if tiers[row["id"]] != "auto"]
    assert len(asked) <= len(rows) * 0.02, asked


def test_every_tier_occurs_so_that_the_cases_can_fail(tiers: dict[str, str]) -> None:
    counts: dict[str, int] = defaultdict(int)
    for tier in tiers.values():
        counts[tier] += 1
    assert all(counts[tier] > 100 for tier in ("auto", "ask", "never"))


@pytest.mark.parametrize("row", _rows("approvals.jsonl"), ids=lambda row: row["id"])
def test_an_approval_covers_no_more_than_was_shown(
    row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    bench = Bench(tmp_path)
    verdict = bench.run(row["approved"])
    if verdict.tier == "ask":
        bench.approvals.grant(verdict.key, verdict.pattern, "project")
    assert bench.run(row["then"]).tier in row["accept"]
