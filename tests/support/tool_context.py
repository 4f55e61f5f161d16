"""A `ToolContext` on a real folder, and running one tool in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from late.tools.base import ToolContext, ToolResult
from late.workspace.files import ReadStamps
from late.workspace.workspace import Workspace


def context_for(root: Path, *, cap_chars: int = 8_000, shown: list[str] | None = None) -> ToolContext:
    return ToolContext(
        workspace=Workspace(root),
        agent_id="planner",
        call_id="call_1",
        stamps=ReadStamps(),
        cap_chars=cap_chars,
        output=(shown if shown is not None else []).append,
    )


async def run_tool(tool: Any, root: Path, *, cap_chars: int = 8_000, **arguments: Any) -> ToolResult:
    """Validate the arguments, run, and hold the result to its cap and to valid Unicode."""
    result = await tool.run(tool.Args(**arguments), context_for(root, cap_chars=cap_chars))
    assert len(result.content) <= cap_chars
    result.content.encode("utf-8")
    return result
