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
from late.llm.dialects.native import NativeDialect
from late.llm.messages import SystemMessage
from late.llm.provider import TurnRequest
from late.session.open import open_session
from late.session.store import SessionStore
from late.tools.registry import Registry

BUDGETS = {"planner": 1800, "coder": 1200, "researcher": 1200}
"""Tokens of prompt and schemas together, by the model's tokenizer."""
CHARS_PER_TOKEN = 3.2
"""On the safe side: prompts and schemas of ours have about four in the tokenizers of Qwen."""


@dataclass(frozen=True, slots=True)
class Head:
    """What all requests of an agent begin with."""

    role: str
    body: dict[str, Any]
    """`tools` and `messages`, the system message alone."""

    @property
    def text(self) -> str:
        """All that a template is given."""
        system: str = self.body["messages"][0]["content"]
        return system + "\n" + "\n".join(json.dumps(tool, ensure_ascii=False) for tool in self.body.get("tools", []))


def heads(directory: Path) -> list[Head]:
    """The heads of all roles for a project in `directory`, with the settings as they are by default."""
    crew = open_session(Settings(), directory, store=SessionStore(None)).crew
    found: list[Head] = []
    for name in BUDGETS:
        role = crew.role(name)
        tools = Registry(tool for tool in map(crew.toolbox, role.tools) if tool is not None)
        request = TurnRequest(messages=[SystemMessage(role.prompt)], tools=tools.specs())
        found.append(Head(name, NativeDialect().body(request)))
    return found


def main() -> None:
    """Print the table."""
    print("Prompts and tool schemas (native calls)")
    with tempfile.TemporaryDirectory(prefix="late-bench-") as folder:
        for head in heads(Path(folder)):
            estimate = len(head.text) / CHARS_PER_TOKEN
            share = estimate / BUDGETS[head.role]
            tell(head.role, f"≈ {estimate:,.0f} tokens", f"{share:.0%} of its budget of {BUDGETS[head.role]:,}")


if __name__ == "__main__":
    main()
