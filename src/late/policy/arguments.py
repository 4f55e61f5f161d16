"""Splits a program's arguments into options, their values and operands, as its entry in the table describes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Literal

from late.policy.expand import Argument
from late.policy.table import Flag, Spec

Effect = Literal["writes", "runs", "unknown"]
_NUMBER: Final = re.compile(r"-\d+")


@dataclass(frozen=True, slots=True)
class Option:
    """A harmless option and its values."""

    name: str
    flag: Flag
    values: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Oddity:
    """An option that is not harmless, or not known."""

    name: str
    effect: Effect
    values: tuple[Argument, ...]


@dataclass(slots=True)
class Parsed:
    """The arguments of one command."""

    options: list[Option] = field(default_factory=list[Option])
    oddities: list[Oddity] = field(default_factory=list[Oddity])
    operands: list[Argument] = field(default_factory=list[Argument])
    open: list[Argument] = field(default_factory=list[Argument])
    """Operands that may turn out to be options when it runs."""

    def has(self, names: frozenset[str]) -> bool:
        """Whether one of these options is given."""
        return any(option.name in names for option in self.options)


def split_arguments(arguments: list[Argument], spec: Spec, *, stop_at_operand: bool = False) -> Parsed:
    """Split. With `stop_at_operand`, everything from the first operand on is one."""
    parsed = Parsed()
    if spec.style == "none":
        parsed.operands = list(arguments)
        return parsed
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument.value == "--":
            parsed.operands += rest
            break
        if _is_option(argument):
            _Reader(spec, parsed, rest).read(argument)
            continue
        parsed.operands.append(argument)
        if argument.value is None and not argument.start:
            parsed.open.append(argument)
        if stop_at_operand or spec.options_first:
            parsed.operands += rest
            break
    return parsed


def _is_option(argument: Argument) -> bool:
    text = argument.start if argument.value is None else argument.value
    return len(text) > 1 and text.startswith("-")


@dataclass(slots=True)
class _Reader:
    spec: Spec
    parsed: Parsed
    rest: list[Argument]

    def read(self, argument: Argument) -> None:
        text = argument.start if argument.value is None else argument.value
        name, equals, attached = text.partition("=")
        whole = text.startswith("--") or self.spec.style == "long"
        if argument.value is None and not (equals and whole):
            self._odd(text, "unknown", (argument,))
        elif not whole and _NUMBER.fullmatch(text) and "-#" in self.spec.flags:
            self.parsed.options.append(Option("-#", self.spec.flags["-#"], ()))
        elif not whole and text not in self.spec.flags:
            self._bundle(text, argument)
        else:
            value = (_part(argument, attached),) if equals else ()
            self._one(name, value, argument)

    def _one(self, name: str, attached: tuple[Argument, ...], argument: Argument) -> None:
        flag, effect = self._find(name)
        if flag is None:
            self._odd(name, "unknown", attached)
            return
        if attached and not flag.values:
            self._odd(argument.text, "unknown", attached)
            return
        values = attached
        if not flag.optional:
            values += tuple(self._take(flag.values - len(attached)))
        self._add(name, flag, effect, values)

    def _bundle(self, text: str, argument: Argument) -> None:
        for index in range(1, len(text)):
            name = f"-{text[index]}"
            flag, effect = self._find(name)
            if flag is None:
                self._odd(name if index == 1 else f"{name} (in {text})", "unknown", ())
                return
            if not flag.values:
                self._add(name, flag, effect, ())
                continue
            rest = text[index + 1 :]
            values = (_part(argument, rest),) if rest else ()
            if not flag.optional:
                values += tuple(self._take(flag.values - len(values)))
            self._add(name, flag, effect, values)
            return

    def _find(self, name: str) -> tuple[Flag | None, Effect | None]:
        if name in self.spec.flags:
            return self.spec.flags[name], None
        if name in self.spec.writes:
            return self.spec.writes[name], "writes"
        if name in self.spec.runs:
            return self.spec.runs[name], "runs"
        return None, None

    def _take(self, count: int) -> list[Argument]:
        taken, self.rest[:count] = self.rest[:count], []
        return taken

    def _add(self, name: str, flag: Flag, effect: Effect | None, values: tuple[Argument, ...]) -> None:
        if effect is None:
            self.parsed.options.append(Option(name, flag, values))
        else:
            self._odd(name, effect, values)

    def _odd(self, name: str, effect: Effect, values: tuple[Argument, ...]) -> None:
        self.parsed.oddities.append(Oddity(name, effect, values))


def _part(argument: Argument, value: str) -> Argument:
    """What is attached to an option."""
    if argument.value is not None:
        return Argument(argument.text, value)
    shape = argument.shape.partition("=")[2]
    return Argument(argument.text, None, argument.unknown, argument.many, value, shape)
