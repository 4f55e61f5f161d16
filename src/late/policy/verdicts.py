"""From a command line to a verdict."""

from __future__ import annotations

from dataclasses import dataclass

from late.events import Scope, Tier

TIERS: tuple[Tier, ...] = ("auto", "restricted", "ask", "never")
"""From the laxest to the strictest."""
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
