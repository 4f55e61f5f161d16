"""The roles' prompts: files with a few lines of front matter and the text that the model reads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from late.errors import UserError

_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_FENCE = "---"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One role as its file describes it."""

    name: str
    description: str
    """For whoever chooses between roles."""
    tools: tuple[str, ...]
    """Names of the tools in the order in which the model is told of them."""
    text: str


def load_prompt(name: str, project: Path | None = None) -> Prompt:
    """Read `prompts/<name>.md`.

    Args:
        name: The role, e.g. `planner`.
        project: A folder that the person trusts; its `.late/agents/<name>.md` then comes first. What a project brings
            along is not read without that trust.

    Raises:
        UserError: there is no such prompt, or its file is malformed.
    """
    if not _NAME.fullmatch(name):
        raise UserError(f"{name!r} is no name of a prompt", "Names are lower-case letters, digits, - and _.")
    if project and (own := project / ".late" / "agents" / f"{name}.md").is_file():
        return parse_prompt(own.read_text(encoding="utf-8-sig"), str(own))
    shipped = _folder() / f"{name}.md"
    if not shipped.is_file():
        raise UserError(f"there is no prompt {name!r}", f"There are: {', '.join(prompt_names())}.")
    return parse_prompt(shipped.read_text(encoding="utf-8"), str(shipped))


def prompt_names() -> tuple[str, ...]:
    """The names of the prompts that `late` brings along."""
    return tuple(sorted(file.name.removesuffix(".md") for file in _folder().iterdir() if file.name.endswith(".md")))


def parse_prompt(text: str, origin: str) -> Prompt:
    """Split a prompt file into its front matter and its text.

    The front matter stands between two `---` lines, one `key: value` a line; `tools` is a list with commas.

    Raises:
        UserError: a line is malformed, or `name` is missing; the message says where.
    """
    lines = text.splitlines()
    if not lines or lines[0].strip() != _FENCE:
        raise UserError(f"{origin}:1: the file does not begin with a `---` line")
    fields: dict[str, str] = {}
    for number, line in enumerate(lines[1:], 2):
        if line.strip() == _FENCE:
            break
        key, colon, value = line.partition(":")
        if not colon:
            raise UserError(f"{origin}:{number}: not of the form `key: value`")
        fields[key.strip()] = value.strip()
    else:
        raise UserError(f"{origin}: no second `---` line ends the front matter")
    if not fields.get("name"):
        raise UserError(f"{origin}: the front matter has no `name`")
    return Prompt(
        name=fields["name"],
        description=fields.get("description", ""),
        tools=tuple(tool for part in fields.get("tools", "").split(",") if (tool := part.strip())),
        text="\n".join(lines[number:]).strip(),
    )


@cache
def _folder() -> Traversable:
    """Inside the package where it is installed, beside `src` in a checkout."""
    installed = files("late") / "prompts"
    return installed if installed.is_dir() else Path(__file__).parents[3] / "prompts"
