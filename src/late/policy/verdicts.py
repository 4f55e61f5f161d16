"""What the policy says about a call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from late.events import Scope, Tier

TIERS: tuple[Tier, ...] = ("auto", "restricted", "ask", "never")
"""From the laxest to the strictest."""
SCOPES: tuple[Scope, ...] = ("once", "session", "project", "global")
"""From the shortest-lived to the longest-lived."""
ONCE: tuple[Scope, ...] = ("once",)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to happen with a call, and why."""

    tier: Tier
    reason: str
    """For a person; no full stop at the end."""
    rule: str
    """A short stable name of the rule, e.g. `shell.redirect`."""
    teaching: str = ""
    """For the model: what to do instead."""
    pattern: str = ""
    """What an approval would cover, in words; empty where it covers this one time only."""
    key: str = ""
    """Under which an approval is remembered; empty where it is not."""
    scopes: tuple[Scope, ...] = ONCE


def never(findings: Iterable[Verdict]) -> list[Verdict]:
    """Only what must not be done at all."""
    return [finding for finding in findings if finding.tier == "never"]


def strictest(findings: Iterable[Verdict]) -> Verdict | None:
    """The strictest of several verdicts, the first of its kind."""
    return max(findings, key=lambda finding: TIERS.index(finding.tier), default=None)


def secret_verdict(path: str, what: str) -> Verdict:
    """The refusal of what no agent may see; `what` says why it is a secret."""
    return Verdict(
        "never",
        f"{path} is {what}, which no agent reads or writes",
        "path.secret",
        "Work without it: ask for the names of the values you need, or read an example file such as .env.example.",
    )


def outside_verdict(shown: str, real: str) -> Verdict:
    """The question about reading what lies outside of the project."""
    return Verdict(
        "ask",
        f"{shown} lies outside of the project",
        "path.outside",
        "Stay inside of the project, or say why you need it.",
        pattern=f"read {shown}",
        key=f"read {real}",
        scopes=("once", "session", "project"),
    )
