"""The events of a session: the one stream that every front end, the log and the replay consume.

An event is a fact, named in the past tense, with JSON-only fields. `DELTAS` are transient: they are shown as they
come and never stored, and the stored event that follows them holds the whole. All other events are committed to
the session log before their effect is visible. A conversation, a plan's state and the screen are folds over them.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

Outcome = Literal["done", "unverified", "blocked", "failed", "cancelled", "out_of_turns"]
"""How a subagent ended. `done` is only said when a check passed after the last edit, seen by the harness; or, for
an agent that changes nothing, when it gave its answer."""

FinishReason = Literal["stop", "tool_calls", "length", "cancelled", "repetition", "error"]
Tier = Literal["auto", "restricted", "ask", "never"]
Scope = Literal["once", "session", "project", "global"]
PLANNER = "planner"
"""The id of the root agent; subagents are `coder-1`, `researcher-1`, …"""


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class ToolCall(_Value):
    """A request by the model to run a tool. `arguments` is the JSON text as it was received."""

    id: str
    name: str
    arguments: str


class Usage(_Value):
    """Tokens and speed of one request; `None` where the server did not say."""

    prompt_tokens: int | None = None
    """All tokens of the prompt, cached ones included."""
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_ms: float | None = None
    completion_ms: float | None = None
    estimated: bool = False
    """True when the counts are late's estimate and not the server's word; shown with `≈`."""


class PlanStep(_Value):
    """One step of a plan: what a single coder does."""

    title: str
    files: tuple[str, ...] = ()
    """Paths relative to the workspace: the write scope of the coder that does the step."""
    instruction: str = ""
    verify: str | None = None
    """A shell command whose exit status 0 proves the step, run by the harness."""


class Plan(_Value):
    """What a person approves before anything is changed."""

    title: str
    summary: str = ""
    steps: tuple[PlanStep, ...] = ()


class CheckResult(_Value):
    """The run of a step's verify command by the harness."""

    command: str
    exit_code: int | None
    """`None`: the command could not be run, so it says nothing about the step."""
    output: str = ""


class Event(_Value):
    """What all events share."""

    seq: int = 0
    """Position in the session's log, from 1; 0 for a delta."""
    time: float = 0.0
    """Unix time in seconds, set when the event is published."""
    agent_id: str = PLANNER
    transient: ClassVar[bool] = False


class _Delta(Event):
    transient: ClassVar[bool] = True


class SessionStarted(Event):
    """The first event of every log."""

    type: Literal["session_started"] = "session_started"
    session_id: str
    directory: str
    """Real path of the workspace's first root."""
    late_version: str


class SessionResumed(Event):
    """The session was opened again by a new process."""

    type: Literal["session_resumed"] = "session_resumed"
    late_version: str


class ModelConnected(Event):
    """An endpoint was asked what it serves; written again whenever the answer changed."""

    type: Literal["model_connected"] = "model_connected"
    role: str
    endpoint: str
    """Base URL, or the path of a model file that runs in process."""
    model: str
    server: str
    """`llama.cpp`, `openai` or `in-process`."""
    context_window: int | None
    """Tokens served per slot."""
    slots: int | None
    vision: bool | None
    dialect: str


class MessageQueued(Event):
    """A person's message was taken; it enters the conversation at the next turn boundary."""

    type: Literal["message_queued"] = "message_queued"
    message_id: str
    text: str


class MessageDelivered(Event):
    """A user message entered an agent's conversation. `source` says who wrote it."""

    type: Literal["message_delivered"] = "message_delivered"
    message_id: str
    text: str
    source: Literal["person", "harness", "planner"] = "person"


class AgentStarted(Event):
    """An agent began. Everything that its prompt starts with is kept, so that a resumed prefix is the same bytes."""

    type: Literal["agent_started"] = "agent_started"
    role: str
    parent_id: str | None = None
    parent_call_id: str | None = None
    goal: str = ""
    step: int | None = None
    """Number of the plan's step, from 1."""
    system_prompt: str
    tools: tuple[str, ...] = ()
    """Names of its tools in the order in which they are sent."""


class AgentFinished(Event):
    """A subagent ended. `report` is what its parent is told; `changed_files` comes from the record."""

    type: Literal["agent_finished"] = "agent_finished"
    outcome: Outcome
    report: str
    changed_files: tuple[str, ...] = ()


class RunStarted(Event):
    """The planner went to work on a person's message."""

    type: Literal["run_started"] = "run_started"


class RunFinished(Event):
    """The planner is idle again."""

    type: Literal["run_finished"] = "run_finished"
    reason: Literal["done", "failed", "cancelled", "error", "out_of_turns"]
    message: str = ""


class TurnStarted(Event):
    """A request is about to be sent. Turns are counted from 1 per agent."""

    type: Literal["turn_started"] = "turn_started"
    turn: int


class AssistantMessage(Event):
    """A model's answer, whole. The authority over the deltas before it."""

    type: Literal["assistant_message"] = "assistant_message"
    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    raw: str | None = None
    """The answer's exact text where a dialect read calls out of it: this is what later requests replay."""
    finish: FinishReason = "stop"
    final: bool = False
    """The answer's calls are all that the model wants to do: no further turn is needed if they succeed."""
    author: Literal["model", "harness"] = "model"
    """`harness`: nothing else was possible in this turn, so the model was not asked."""
    usage: Usage = Usage()
    first_byte_ms: float | None = None


class PolicyDecided(Event):
    """The policy's verdict on a call."""

    type: Literal["policy_decided"] = "policy_decided"
    call_id: str
    tier: Tier
    reason: str
    rule: str


class ApprovalRequested(Event):
    """A person's decision is needed; the agent waits."""

    type: Literal["approval_requested"] = "approval_requested"
    request_id: str
    call_id: str
    kind: Literal["tool", "plan"]
    title: str
    """One line: what is about to happen."""
    reason: str = ""
    detail: str = ""
    """The command, or the diff, or the plan's Markdown: what the person should read."""
    pattern: str = ""
    """What a session, project or global approval would cover, in words."""
    scopes: tuple[Scope, ...] = ("once",)
    plan_hash: str | None = None


class ApprovalDecided(Event):
    """The answer to an `ApprovalRequested`, by the person or by a rule they set."""

    type: Literal["approval_decided"] = "approval_decided"
    request_id: str
    call_id: str
    approved: bool
    scope: Scope = "once"
    words: str = ""
    """What the person wants the model to know."""
    edited: bool = False
    """The plan's file was edited in answering; what it says now is what was approved."""
    by: Literal["person", "rule", "flag"] = "person"


class ToolStarted(Event):
    """Intent: the tool is about to run. A start without a finish in a log means that it was interrupted."""

    type: Literal["tool_started"] = "tool_started"
    call_id: str
    name: str
    label: str
    """One line for a person: what the call does, e.g. `Read src/app.py:1-80`."""
    arguments: dict[str, Any] = Field(default_factory=dict)


class ToolFinished(Event):
    """The result of a call, also of one that never ran (refused, denied, malformed, cancelled)."""

    type: Literal["tool_finished"] = "tool_finished"
    call_id: str
    name: str
    status: Literal["ok", "error", "refused", "denied", "cancelled", "interrupted"]
    content: str
    """What the model is told."""
    details: dict[str, Any] = Field(default_factory=dict)
    """For front ends: `diff`, `exit_code`, `output_file`, `path`, … as far as they apply."""
    duration_ms: float = 0.0


class FileChanged(Event):
    """A tool changed a file. The record from which reports are written."""

    type: Literal["file_changed"] = "file_changed"
    call_id: str
    path: str
    kind: Literal["created", "modified", "deleted"]
    before_sha256: str | None
    after_sha256: str | None
    diff: str
    """Unified diff, cut for display where it is very long."""
    added: int = 0
    removed: int = 0


class PlanWritten(Event):
    """The planner wrote a plan and asks for approval."""

    type: Literal["plan_written"] = "plan_written"
    call_id: str
    plan: Plan
    plan_hash: str
    path: str


class PlanDecided(Event):
    """The person's decision. `plan` is what was approved, with their edits."""

    type: Literal["plan_decided"] = "plan_decided"
    call_id: str
    decision: Literal["approved", "approved_with_edits", "rejected"]
    plan: Plan
    plan_hash: str
    words: str = ""


class SnapshotTaken(Event):
    """The workspace's files were recorded before a step, as a git commit outside of the person's branches."""

    type: Literal["snapshot_taken"] = "snapshot_taken"
    step: int
    commit: str
    ref: str


class StepStarted(Event):
    """A coder was bound to a step of the approved plan."""

    type: Literal["step_started"] = "step_started"
    step: int
    title: str
    coder_id: str


class CheckFinished(Event):
    """The harness ran a step's verify command."""

    type: Literal["check_finished"] = "check_finished"
    step: int | None
    check: CheckResult


class StepFinished(Event):
    """A step ended; `done` and `unverified` tick its checkbox."""

    type: Literal["step_finished"] = "step_finished"
    step: int
    outcome: Outcome
    check: CheckResult | None = None


class RefusedFile(_Value):
    """A file that an undo left alone."""

    path: str
    why: str


class StepUndone(Event):
    """A person took a step back: its files are as they were before it, but for those that were refused."""

    type: Literal["step_undone"] = "step_undone"
    step: int
    coder_ids: tuple[str, ...]
    """The coders that had done the step; they say which plan's step it was."""
    restored: tuple[str, ...]
    refused: tuple[RefusedFile, ...] = ()


class ErrorRaised(Event):
    """Something went wrong that a person should know: what happened, to what, what to do next."""

    type: Literal["error_raised"] = "error_raised"
    message: str
    hint: str = ""


class RequestRetried(Event):
    """A request failed and is sent again; what was streamed before is kept here."""

    type: Literal["request_retried"] = "request_retried"
    attempt: int
    reason: str
    wait_s: float = 0.0
    partial_text: str = ""


class TextDelta(_Delta):
    """A fragment of the answer."""

    type: Literal["text_delta"] = "text_delta"
    text: str


class ReasoningDelta(_Delta):
    """A fragment of the thinking."""

    type: Literal["reasoning_delta"] = "reasoning_delta"
    text: str


class ToolCallDelta(_Delta):
    """A fragment of a call's arguments."""

    type: Literal["tool_call_delta"] = "tool_call_delta"
    index: int
    name: str = ""
    arguments: str = ""


class ToolOutput(_Delta):
    """Output of a running tool."""

    type: Literal["tool_output"] = "tool_output"
    call_id: str
    text: str


class PromptProgressed(_Delta):
    """The server's prefill. `processed` includes `cached`."""

    type: Literal["prompt_progressed"] = "prompt_progressed"
    total: int
    cached: int
    processed: int
    elapsed_ms: float


class TokensCounted(_Delta):
    """Running figures while an answer streams."""

    type: Literal["tokens_counted"] = "tokens_counted"
    usage: Usage


class ProviderWaited(_Delta):
    """The endpoint is not ready: it loads a model, is unreachable or asked for a pause."""

    type: Literal["provider_waited"] = "provider_waited"
    state: Literal["connecting", "loading", "unreachable", "rate_limited", "probing"]
    message: str
    elapsed_s: float = 0.0


DELTAS = TextDelta | ReasoningDelta | ToolCallDelta | ToolOutput | PromptProgressed | TokensCounted | ProviderWaited

STORED = (
    SessionStarted
    | SessionResumed
    | ModelConnected
    | MessageQueued
    | MessageDelivered
    | AgentStarted
    | AgentFinished
    | RunStarted
    | RunFinished
    | TurnStarted
    | AssistantMessage
    | PolicyDecided
    | ApprovalRequested
    | ApprovalDecided
    | ToolStarted
    | ToolFinished
    | FileChanged
    | PlanWritten
    | PlanDecided
    | SnapshotTaken
    | StepStarted
    | CheckFinished
    | StepFinished
    | StepUndone
    | ErrorRaised
    | RequestRetried
)

AnyEvent = Annotated[STORED | DELTAS, Field(discriminator="type")]
EVENTS: TypeAdapter[Any] = TypeAdapter(AnyEvent, config=ConfigDict(defer_build=True))
"""Reads an event back from its JSON: `EVENTS.validate_json(text)`."""


class UnknownEvent(Event):
    """An event type that this version does not know, kept as it is so that an older `late` opens a newer log."""

    type: str
    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)


def parse_event(text: str | bytes) -> Event:
    """Read one event from JSON.

    Raises:
        pydantic.ValidationError: the text is no event of a known type, or not JSON.
    """
    kind = _Kind.model_validate_json(text).type
    return EVENTS.validate_json(text) if kind in KNOWN_TYPES else UnknownEvent.model_validate_json(text)


class _Kind(BaseModel):
    type: str


KNOWN_TYPES = frozenset(cls.model_fields["type"].default for cls in (*STORED.__args__, *DELTAS.__args__))
