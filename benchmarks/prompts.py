"""How much of each agent's prompt is ours: the system prompt and the schemas of its tools, as they are sent.

Every token of it is prefilled before the first answer of every agent.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.timing import tell
from late.config.settings import Settings
from late.llm.dialects.base import Dialect
from late.llm.dialects.native import NativeDialect
from late.llm.dialects.plain import PlainDialect
from late.llm.messages import SystemMessage
from late.llm.provider import TurnRequest
from late.session.open import open_session
from late.session.store import SessionStore
from late.tools.registry import Registry

BUDGETS = {"planner": 1800, "coder": 1200, "researcher": 1200}
"""Tokens of prompt and schemas together, by the model's tokenizer."""
LED = ("planner", "coder")
"""Roles that have a short form for models whose turns are narrowed."""
CHARS_PER_TOKEN = 3.2
"""On the safe side: prompts and schemas of ours have about four in the tokenizers of Qwen."""


@dataclass(frozen=True, slots=True)
class Head:
    """What all requests of an agent begin with."""

    role: str
    led: bool
    body: dict[str, Any]
    """`messages` with the system message alone, and `tools` where the dialect sends them."""

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.role}, led" if self.led else self.role

    @property
    def budget(self) -> int:
        """The most tokens."""
        return BUDGETS[self.role]

    @property
    def text(self) -> str:
        """All that a template is given."""
        system: str = self.body["messages"][0]["content"]
        return system + "\n" + "\n".join(json.dumps(tool, ensure_ascii=False) for tool in self.body.get("tools", []))


def heads(directory: Path) -> list[Head]:
    """The heads of all roles for a project in `directory`, with the settings as they are by default."""
    crew = open_session(Settings(), directory, store=SessionStore(None)).crew
    dialects: list[tuple[bool, Dialect]] = [(False, NativeDialect()), (True, PlainDialect())]
    found: list[Head] = []
    for led, dialect in dialects:
        for name in LED if led else BUDGETS:
            role = crew.role(name, led)
            tools = Registry(tool for tool in map(crew.toolbox, role.tools) if tool is not None)
            body = dialect.body(TurnRequest(messages=[SystemMessage(role.prompt)], tools=tools.specs()))
            found.append(Head(name, led, {key: body[key] for key in ("tools", "messages") if key in body}))
    return found


def main() -> None:
    """Print the table."""
    print("System prompts with what the tools are described by")
    with tempfile.TemporaryDirectory(prefix="late-bench-") as folder:
        for head in heads(Path(folder)):
            estimate = len(head.text) / CHARS_PER_TOKEN
            tell(head.name, f"≈ {estimate:,.0f} tokens", f"{estimate / head.budget:.0%} of {head.budget:,}")


if __name__ == "__main__":
    main()
