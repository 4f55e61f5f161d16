"""Roles as data: a prompt and the names of the tools that belong to it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from late.config.prompts import load_prompt


@dataclass(frozen=True, slots=True)
class Role:
    """What makes a planner, a coder or a researcher."""

    name: str
    description: str
    tools: tuple[str, ...]
    """In the order in which they are sent."""
    prompt: str


def load_role(name: str, directory: Path, *, led: bool = False, override: str | None = None, append: str = "") -> Role:
    """The shipped role of that name. `override` replaces its prompt, `append` comes at its very end.

    `led`: the short form for a model whose turns are narrowed by the harness; it has less to be told.

    The folder is the only thing that is told about the surroundings: no clock, no state, so that the prompt's bytes
    are the same in every session of a project.
    """
    prompt = load_prompt(f"{name}-led" if led else name)
    text = (override if override is not None else prompt.text).strip()
    return Role(
        name=prompt.name,
        description=prompt.description,
        tools=prompt.tools,
        prompt="\n\n".join(filter(None, [text, "" if led else f"The folder: {directory}", append.strip()])),
    )
