"""Writing the plan, which is asking for its approval."""

from __future__ import annotations

from typing import ClassVar, Protocol

from pydantic import Field

from late.events import Plan, PlanStep
from late.tools.base import Effect, Preview, ToolArgs, ToolContext, ToolResult


class PlanDesk(Protocol):
    """Where a plan is laid before the person."""

    async def propose(self, plan: Plan, context: ToolContext) -> ToolResult:
        """Write the plan's file, wait for the decision and say what it was.

        Raises:
            ToolError: the plan cannot be carried out as it is (no steps, a file outside of the workspace, …).
        """
        ...


class StepArgs(ToolArgs):
    """One step of the plan."""

    title: str
    files: list[str] = Field(description="all files that it changes or creates")
    instruction: str = Field(description="what exactly to do, for somebody who sees only this step")
    verify: str | None = Field(None, description="command that exits 0 when the step is right")


class Args(ToolArgs):
    """The plan."""

    title: str
    summary: str = ""
    steps: list[StepArgs] = Field(min_length=1)


class WriteImplementationPlan:
    """The planner's only way to get anything changed."""

    name: ClassVar[str] = "write_implementation_plan"
    description: ClassVar[str] = "Lay a plan before the person; returns their decision. Nothing changes without it."
    Args: ClassVar[type[ToolArgs]] = Args
    effect: ClassVar[Effect] = "plan"

    def __init__(self, desk: PlanDesk) -> None:
        self._desk = desk

    def label(self, args: Args) -> str:
        """The plan's title."""
        return f"Plan: {args.title}"

    def paths(self, args: Args) -> tuple[str, ...]:
        """None: the plan's own file belongs to the harness."""
        return ()

    def preview(self, args: Args, context: ToolContext) -> Preview:
        """The desk shows the plan itself."""
        return Preview(self.label(args))

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        """Propose it and return the decision."""
        plan = Plan(
            title=args.title,
            summary=args.summary,
            steps=tuple(
                PlanStep(title=s.title, files=tuple(s.files), instruction=s.instruction, verify=s.verify)
                for s in args.steps
            ),
        )
        return await self._desk.propose(plan, context)
