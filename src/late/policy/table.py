"""The table of known programs, read from `commands.toml`, which explains its own form."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, cast

from late.events import Tier

Role = Literal["content", "names", "text", "revision", "write"]
"""What an operand or a flag's value is: a file that is read, a path of which only the name or the metadata is used,
text, a git revision or path, a file that is written."""
Style = Literal["gnu", "long", "none"]
Remember = Literal["exact", "paths", "never"]

PATH: Final = Path(__file__).with_name("commands.toml")


@dataclass(frozen=True, slots=True)
class Flag:
    """One option: how many values follow it, and what they are."""

    values: int
    optional: bool
    """A value only counts where it is attached (`--color=auto`, `-U3`)."""
    role: Role


@dataclass(frozen=True, slots=True)
class Spec:
    """What is known of a program, or of one of its subcommands."""

    name: str
    tier: Tier
    does: str
    flags: dict[str, Flag]
    writes: dict[str, Flag]
    runs: dict[str, Flag]
    operands: tuple[Role, ...]
    most: int | None
    options_first: bool
    needs: frozenset[str]
    first_from: frozenset[str]
    listing: frozenset[str]
    recursive: frozenset[str]
    exact: frozenset[tuple[str, ...]]
    special: str
    wraps: int | None
    style: Style
    remember: Remember
    targets: Literal["all", "last", "none"]
    teach: str
    secrets: bool
    subs: dict[str, Spec] = field(default_factory=dict[str, "Spec"])


def lookup(name: str) -> Spec | None:
    """The program of this name."""
    return _table().get(name)


@cache
def _table() -> dict[str, Spec]:
    with PATH.open("rb") as file:
        data = tomllib.load(file)
    table: dict[str, Spec] = {}
    for name, entry in data.items():
        for each in (name, *_strings(entry, "also")):
            table[each] = _spec(each, entry, None)
    return table


_KEYS: Final = frozenset(
    {
        "also", "does", "tier", "flags", "writes", "runs", "operands", "most", "options_first", "needs", "first_from",
        "listing", "recursive", "exact", "special", "wraps", "style", "remember", "targets", "teach", "secrets", "subs",
    }
)  # fmt: skip


def _spec(name: str, entry: dict[str, Any], parent: Spec | None) -> Spec:
    if unknown := entry.keys() - _KEYS:
        raise ValueError(f"{PATH.name}: {name} has unknown keys: {', '.join(sorted(unknown))}")
    spec = Spec(
        name=name,
        tier=entry.get("tier", parent.tier if parent else "auto"),
        does=entry.get("does", parent.does if parent else ""),
        flags=_flags(entry.get("flags", "")),
        writes=_flags(entry.get("writes", "")),
        runs=_flags(entry.get("runs", "")),
        operands=cast("tuple[Role, ...]", tuple(entry.get("operands", "content").split())),
        most=entry.get("most"),
        options_first=entry.get("options_first", False),
        needs=frozenset(_strings(entry, "needs")),
        first_from=frozenset(_strings(entry, "first_from")),
        listing=frozenset(_strings(entry, "listing")),
        recursive=frozenset(_strings(entry, "recursive")),
        exact=frozenset(tuple(words.split()) for words in entry.get("exact", [])),
        special=entry.get("special", ""),
        wraps=entry.get("wraps"),
        style=entry.get("style", "gnu"),
        remember=entry.get("remember", parent.remember if parent else "exact"),
        targets=entry.get("targets", "none"),
        teach=entry.get("teach", parent.teach if parent else ""),
        secrets=entry.get("secrets", True),
    )
    for key, sub in entry.get("subs", {}).items():
        for each in key.split():
            spec.subs[each] = _spec(f"{name} {each}", sub, spec)
    return spec


def _strings(entry: dict[str, Any], key: str) -> list[str]:
    return str(entry.get(key, "")).split()


_FLAG = re.compile(r"(?P<name>-[^=?\s]*)(?P<optional>\??)(?P<equals>=*)(?P<role>[a-z]*)")


def _flags(text: str) -> dict[str, Flag]:
    found: dict[str, Flag] = {}
    for item in text.split():
        match = _FLAG.fullmatch(item)
        if match is None:
            raise ValueError(f"{PATH.name}: {item!r} is no flag")
        optional = bool(match["optional"])
        role = cast("Role", match["role"] or "text")
        found[match["name"]] = Flag(len(match["equals"]) or int(optional), optional, role)
    return found
