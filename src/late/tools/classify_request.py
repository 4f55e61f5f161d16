"""The first thing a weak model is made to say: does the person ask a question, or for a change?

Without it, such models plan changes for every question (measured on `benchmarks/tasks`). Only offered where turns are
constrained; a model with native calls decides this by what it does.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from late.tools.base import Effect, Preview, ToolArgs, ToolContext, ToolResult


class Args(ToolArgs):
    """The kind of the request."""

    kind: Literal["question", "change"]


class ClassifyRequest:
    """Notes the kind of the person's request."""

    name: ClassVar[str] = "classify_request"
    description: ClassVar[str] = (
        "Say first what the person wants. "
        '"Which function does X?", "How does Y work?", "Explain Z, change nothing": {"kind":"question"}. '
        '"Fix X", "Y is wrong", "Add Z", "Rename", "Create", "It should do X": {"kind":"change"}.'
    )
    Args: ClassVar[type[ToolArgs]] = Args
    effect: ClassVar[Effect] = "read"

    def label(self, args: Args) -> str:
        """What it was taken for."""
        return f"Understood as a {args.kind}"

    def paths(self, args: Args) -> tuple[str, ...]:
        """None."""
        return ()

    def preview(self, args: Args, context: ToolContext) -> Preview:
        """Nothing happens."""
        return Preview(self.label(args))

    async def run(self, args: Args, context: ToolContext) -> ToolResult:
        """Say what comes next."""
        if args.kind == "question":
            return ToolResult("A question: read what you need, then answer it. Change nothing.")
        return ToolResult("A change: read the files that it concerns, then write the plan.")
