"""The commands that can be typed into the input."""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """A command's name and what it does."""

    name: str
    words: str


COMMANDS = (
    Command("/help", "keys and commands"),
    Command("/new", "leave this session as it is and start another"),
    Command("/continue", "go on with a run that was interrupted"),
    Command("/stop", "stop all agents"),
    Command("/model", "show what serves the agents"),
    Command("/session", "show the session's id and how to come back to it"),
    Command("/details", "open or close all results and thoughts"),
    Command("/quit", "leave; the session is kept"),
)


def parse(content: str) -> tuple[str, str] | None:
    """Split a message that begins with `/word` into that word and the rest; paths such as `/usr/bin` are no command."""
    first, _, rest = content.partition(" ")
    return (first, rest.strip()) if first.startswith("/") and first[1:].isalpha() else None


def known(name: str) -> bool:
    """Whether late has this command."""
    return any(command.name == name for command in COMMANDS)


def matching(content: str) -> list[Command]:
    """The commands that begin with what was typed so far."""
    if not content.startswith("/") or any(character.isspace() for character in content):
        return []
    return [command for command in COMMANDS if command.name.startswith(content)]


def completed(content: str) -> str | None:
    """The command that begins with what was typed, if there is only one."""
    commands = matching(content)
    return commands[0].name if len(commands) == 1 else None
