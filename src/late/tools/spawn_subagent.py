"""Handing work to a short-lived agent with a fresh context."""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol

from pydantic import Field

from late.tools.base import Effect, Preview, ToolArgs, ToolContext, ToolResult


class Args(ToolArgs):
    """Who, and for what."""

    agent_type: Literal["coder", "researcher"]
    goal: str = Field(description="everything it needs to know; it sees nothing else")
    step: int | None = Field(None, description="coder: number of the approved step")
    ctx_files: list[str] = Field(default_factory=list, description="files to show it at once")


class Spawner(Protocol):
    """Whoever runs subagents."""

    async def spawn(self, args: Args, context: ToolContext) -> ToolResult:
        """Run one to its end and return its report.

        Raises:
            ToolError: it may not start (no approved plan, no such pending step, …).
        """
        ...


class SpawnSubagent:
    """Depth one: what is spawned has no such tool."""

    name: ClassVar[str] = "spawn_subagent"
    description: ClassVar[str] = "Run a researcher (reads, answers one question) or a coder (does one approved step)."
    Args: ClassVar[type[ToolArgs]] = Args
    effect: ClassVar[Effect] = "spawn"

    def __init__(self, spawner: Spawner) -> None:
        self._spawner = spawner

    def label(self, args: Args) -> str:
        """E.g. `Coder, step 2: …`."""
        step = f", step {args.step}" if args.step else ""
        return f"{args.agent_type.capitalize()}{step}: {' '.join(args.goal.split())[:80]}"

    def paths(self, args: Args) -> tuple[str, ...]:
        """The files that are read for it."""
        return tuple(args.ctx_files)

    def preview(self, args: Args, context: ToolContext) -> Preview:
        """Its goal."""
        return Preview(self.label(args), args.goal)

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        """Wait for its report."""
        return await self._spawner.spawn(args, context)
