"""What a tool is: an argument model, a description for the model, and an async function. No permission, no display."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from late.workspace.files import FileChange, ReadStamps
from late.workspace.workspace import Workspace

Effect = Literal["read", "write", "execute", "plan", "spawn"]


class ToolArgs(BaseModel):
    """Base of all argument models; unknown arguments are an error that the model is told about."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a run gave: `content` goes to the model, `details` to front ends, `changes` into the record."""

    content: str
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    changes: tuple[FileChange, ...] = ()
    failed: bool = False
    """The tool ran and its outcome is a failure (a command's exit status); still a normal result."""


class Review(Protocol):
    """Looks at what an edit would make of a file."""

    def __call__(self, path: str, before: str | None, after: str) -> None:
        """Let it pass.

        Raises:
            ToolError: the edit must not be written; the text tells the model what is wrong with it.
        """
        ...


@dataclass(slots=True)
class ToolContext:
    """What a run may use."""

    workspace: Workspace
    agent_id: str
    call_id: str
    stamps: ReadStamps
    """What this agent has read, and in which state."""
    cap_chars: int
    """The most characters that a result may have: a share of the served context window."""
    output: Callable[[str], None]
    """Shows output while the tool runs; transient."""
    only_reads: bool = False
    """The policy let the call pass because it changes nothing; commands then run without the repository's hooks."""
    review: Review | None = None
    """Called by tools that write, before they write."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a person is shown before a call is allowed."""

    title: str
    detail: str = ""


class Tool(Protocol):
    """One tool. Instances hold no state of a run."""

    name: ClassVar[str]
    description: ClassVar[str]
    Args: ClassVar[type[ToolArgs]]
    effect: ClassVar[Effect]

    def label(self, args: Any) -> str:
        """One line for a person, e.g. `Read src/app.py:1-80`."""
        ...

    def paths(self, args: Any) -> tuple[str, ...]:
        """The paths that the call touches, as given by the model; the policy judges them."""
        ...

    def preview(self, args: Any, context: ToolContext) -> Preview:
        """What would happen, e.g. a diff; changes nothing.

        Raises:
            ToolError: the call could not succeed, so nobody needs to be asked.
        """
        ...

    def run(self, args: Any, context: ToolContext) -> Awaitable[ToolResult]:
        """Do it.

        Raises:
            ToolError: the model is told, and the turn goes on.
        """
        ...
