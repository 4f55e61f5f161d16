"""What the rules for programs have in common: a call as they see it, and what they may ask of the judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from late.policy.arguments import Parsed
from late.policy.expand import Argument, Scope
from late.policy.paths import Places
from late.policy.table import Role, Spec
from late.policy.verdicts import Verdict

Prefix = tuple[tuple[str, str | None], ...]
"""Variables set for one command only; `None` where only a run can tell the value."""


@dataclass(frozen=True, slots=True)
class Call:
    """A simple command whose words are known as far as they can be."""

    arguments: list[Argument]
    """The program is the first."""
    prefix: Prefix
    scope: Scope
    spec: Spec
    name: str
    """How the program or the subcommand is named to a person."""


class Scripts(Protocol):
    """Judges a script that stands inside of an argument."""

    def judge_script(self, source: str, scope: Scope) -> list[Verdict]:
        """All that the script gives reason to say."""
        ...


class Judge(Protocol):
    """Judges commands and what stands in them. Answers are findings; an empty list means: nothing to say."""

    @property
    def places(self) -> Places:
        """The rules for paths."""
        ...

    @property
    def scripts(self) -> Scripts:
        """For scripts in arguments."""
        ...

    def judge(self, arguments: list[Argument], prefix: Prefix, scope: Scope) -> list[Verdict]:
        """A simple command."""
        ...

    def plain(self, call: Call, *, skip: int = 1) -> list[Verdict]:
        """By the table alone; the first `skip` arguments name the command."""
        ...

    def reader(self, call: Call, parsed: Parsed) -> list[Verdict]:
        """A command that only reads if all of its options are harmless."""
        ...

    def changer(self, call: Call, *, skip: int = 1) -> list[Verdict]:
        """A command that is asked about, whatever its options are."""
        ...

    def wrapped(self, call: Call) -> list[Verdict]:
        """A program that runs the command behind its own arguments."""
        ...

    def check(self, argument: Argument, role: Role, scope: Scope) -> list[Verdict]:
        """What a command learns from one argument."""
        ...

    def values(self, call: Call, parsed: Parsed) -> list[Verdict]:
        """What a command learns from the values of its harmless options."""
        ...

    def written(self, argument: Argument, scope: Scope) -> list[Verdict]:
        """A file that a command writes to: what lies in a forbidden place is refused."""
        ...

    def ask(self, call: Call, does: str, rule: str, *, subject: str = "") -> Verdict:
        """A question about this command, with what an approval would cover."""
        ...
