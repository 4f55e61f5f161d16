"""The one gate: validate → policy → approval → run → record. No tool runs in any other way."""

from __future__ import annotations

import asyncio
import difflib
import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, cast

from pydantic import ValidationError

from late.errors import ToolError
from late.events import (
    ApprovalDecided,
    ApprovalRequested,
    Event,
    FileChanged,
    PolicyDecided,
    ToolCall,
    ToolFinished,
    ToolOutput,
    ToolStarted,
)
from late.policy.approvals import Approvals
from late.policy.gate import Policy, Question, Verdict
from late.tools.base import Review, Tool, ToolArgs, ToolContext, ToolResult
from late.tools.registry import Registry, schema_of
from late.workspace.files import FileChange, ReadStamps
from late.workspace.workspace import Workspace

Emit = Callable[[Event], None]
Status = Literal["ok", "error", "refused", "denied", "cancelled", "interrupted"]


class Approver(Protocol):
    """Whoever brings a question before a person and waits for the answer."""

    async def ask(self, request: ApprovalRequested) -> ApprovalDecided:
        """Publish the request and wait. The decision is published before it is returned."""
        ...


@dataclass(slots=True)
class ToolRunner:
    """Runs the calls of one agent."""

    agent_id: str
    role: str
    registry: Registry
    workspace: Workspace
    policy: Policy
    approvals: Approvals
    approver: Approver
    emit: Emit
    stamps: ReadStamps
    cap_chars: int
    step_files: tuple[str, ...] | None = None
    """A coder's write scope; `None` where there is no step."""
    approved_commands: frozenset[str] = frozenset()
    """Commands that the person approved with the plan: the checks of its steps."""
    review: Review | None = None
    """Refuses edits before they are written."""
    remark: Callable[[FileChange], str] | None = None
    """What the model should hear about an edit that was written; empty for nothing."""
    reminder: Callable[[], str] | None = None
    """Added to what is read: the request again, for models that forget it over a file."""

    _began: float = field(default=0.0, init=False)

    async def run(self, call: ToolCall) -> ToolFinished:
        """Take a call through the gate. Every failure becomes a result that the model can act on.

        A cancelled run is recorded with a result before the cancellation goes on.
        """
        self._began = time.monotonic()
        try:
            status, result = await self._run(call)
        except asyncio.CancelledError:
            self._finish(call, "cancelled", "Cancelled by the person before it ended.")
            raise
        except ToolError as error:
            return self._finish(call, "error", f"{error}\n{error.hint}" if error.hint else str(error))
        return self._finish(call, status, result.content, result.details)

    async def _run(self, call: ToolCall) -> tuple[Status, ToolResult]:
        tool = self.registry.get(call.name)
        if tool is None:
            return "error", ToolResult(self._unknown(call.name))
        args = parse_arguments(tool, call.arguments)
        context = ToolContext(
            workspace=self.workspace,
            agent_id=self.agent_id,
            call_id=call.id,
            stamps=self.stamps,
            cap_chars=self.cap_chars,
            output=lambda text: self.emit(ToolOutput(agent_id=self.agent_id, call_id=call.id, text=text)),
            review=self.review,
        )
        verdict = self.policy.decide(
            Question(
                role=self.role,
                tool=tool.name,
                effect=tool.effect,
                paths=tool.paths(args),
                command=getattr(args, "command", None),
                cwd=getattr(args, "cwd", None),
                step_files=self.step_files,
            )
        )
        if verdict.tier == "ask" and getattr(args, "command", None) in self.approved_commands:
            verdict = replace(verdict, tier="auto", reason="the approved plan names this command", rule="plan.verify")
        self.emit(
            PolicyDecided(
                agent_id=self.agent_id, call_id=call.id, tier=verdict.tier, reason=verdict.reason, rule=verdict.rule
            )
        )
        context.only_reads = verdict.tier == "auto" and verdict.rule != "plan.verify"
        if verdict.tier == "never":
            return "refused", ToolResult(f"Refused: {verdict.reason}. {verdict.teaching}".strip())
        preview = tool.preview(args, context)
        if verdict.tier == "ask":
            decision = await self._ask(call, verdict, preview.title, preview.detail)
            if not decision.approved:
                words = f" They say: {decision.words}" if decision.words else ""
                return "denied", ToolResult(f"The person did not allow this.{words}")
            if decision.scope != "once" and verdict.key:
                self.approvals.grant(verdict.key, verdict.pattern, decision.scope)
        self.emit(
            ToolStarted(
                agent_id=self.agent_id,
                call_id=call.id,
                name=tool.name,
                label=tool.label(args),
                arguments=args.model_dump(mode="json", exclude_none=True),
            )
        )
        self._began = time.monotonic()  # the time that a person took to answer is not the tool's
        result = await tool.run(args, context)
        for change in result.changes:
            self.emit(
                FileChanged(
                    agent_id=self.agent_id,
                    call_id=call.id,
                    path=change.path,
                    kind=change.kind,
                    before_sha256=change.before_sha256,
                    after_sha256=change.after_sha256,
                    diff=change.diff,
                    added=change.added,
                    removed=change.removed,
                )
            )
        remarks = [self.remark(change) for change in result.changes] if self.remark else []
        if noted := "\n".join(filter(None, remarks)):
            result = replace(result, content=f"{result.content}\n{noted}")
        if self.reminder is not None and tool.effect == "read":
            result = replace(result, content=f"{result.content}\n\n{self.reminder()}".rstrip())
        return ("error" if result.failed else "ok"), result

    async def _ask(self, call: ToolCall, verdict: Verdict, title: str, detail: str) -> ApprovalDecided:
        return await self.approver.ask(
            ApprovalRequested(
                agent_id=self.agent_id,
                request_id=f"ask_{uuid.uuid4().hex[:12]}",
                call_id=call.id,
                kind="tool",
                title=title,
                reason=verdict.reason,
                detail=detail,
                pattern=verdict.pattern,
                scopes=verdict.scopes,
            )
        )

    def refuse(self, call: ToolCall, text: str, status: Status = "error") -> ToolFinished:
        """Record a result for a call that was never taken up (cut off, interrupted, not legal now)."""
        self._began = time.monotonic()
        return self._finish(call, status, text)

    def _finish(
        self, call: ToolCall, status: Status, content: str, details: dict[str, Any] | None = None
    ) -> ToolFinished:
        event = ToolFinished(
            agent_id=self.agent_id,
            call_id=call.id,
            name=call.name,
            status=status,
            content=content or "(no output)",
            details=details or {},
            duration_ms=round((time.monotonic() - self._began) * 1000, 1),
        )
        self.emit(event)
        return event

    def _unknown(self, name: str) -> str:
        names = self.registry.names()
        near = difflib.get_close_matches(name, names, 1)
        guess = f" Did you mean {near[0]}?" if near else ""
        return f"There is no tool {name!r}.{guess} Your tools: {', '.join(names)}."


def parse_arguments(tool: Tool, arguments: str) -> ToolArgs:
    """Read and validate a call's arguments.

    Raises:
        ToolError: they are no JSON object or do not fit; the text names what is wrong and gives a valid example.
    """
    try:
        data: Any = json.loads(arguments or "{}", strict=False)
    except ValueError as error:
        raise ToolError(f"The arguments of {tool.name} are not valid JSON: {error}.", _example(tool)) from None
    if not isinstance(data, dict):
        raise ToolError(f"The arguments of {tool.name} must be a JSON object.", _example(tool))
    given = _known_names(tool, cast("dict[str, Any]", data))
    try:
        return tool.Args.model_validate(given)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {item['msg']}" for item in error.errors()[:4]
        )
        raise ToolError(f"The arguments of {tool.name} do not fit: {problems}.", _example(tool)) from None


ALIASES = {
    "file": "path",
    "file_path": "path",
    "filepath": "path",
    "filePath": "path",
    "filename": "path",
    "old_string": "search",
    "old_str": "search",
    "old_text": "search",
    "new_string": "replace",
    "new_str": "replace",
    "new_text": "replace",
    "text": "content",
    "contents": "content",
    "cmd": "command",
    "query": "pattern",
    "regex": "pattern",
    "directory": "path",
    "dir": "path",
}
"""Argument names that models are known to use in place of ours, taken only where ours is missing."""


def _known_names(tool: Tool, given: dict[str, Any]) -> dict[str, Any]:
    fields = tool.Args.model_fields
    out: dict[str, Any] = {}
    for name, value in given.items():
        ours = ALIASES.get(name, name)
        out[name if name in fields or ours not in fields or ours in given else ours] = value
    return {name: value for name, value in out.items() if not (value is None and name in fields)}


def _example(tool: Tool) -> str:
    schema = schema_of(tool)
    required = cast("list[str]", schema.get("required", []))
    properties = cast("dict[str, dict[str, Any]]", schema.get("properties", {}))
    samples: dict[str, Any] = {"string": "…", "integer": 1, "boolean": True, "array": [], "object": {}}
    example: dict[str, Any] = {name: samples.get(str(properties[name].get("type")), "…") for name in required}
    return f"A valid call: {tool.name}({json.dumps(example, ensure_ascii=False)})."
