"""What an agent may do next, where its model's dialect needs to be told: the harness's rules, enforced at decode time.

Everything is read off the conversation and the plan's board, so a resumed session continues in the same place. A model
with native calls is not narrowed; the gate holds the same rules for it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from late.agent.board import PlanBoard
from late.agent.checks import is_test
from late.agent.focus import concerns_all, defining_files, named_files, tests_wanted
from late.agent.intent import plain_intent
from late.agent.loop import Finish, Move
from late.agent.plan import PLAN_FILE
from late.events import ToolCall
from late.llm.messages import AgentMessage, Conversation, Message, ToolMessage, UserMessage
from late.llm.provider import EditTarget, JsonSchema, Legal
from late.workspace.files import TextFile
from late.workspace.outline import Symbol, find_symbol, symbols

MOST_READS = 3
"""Files that a narrowed planner reads before it has to write the plan: weak models go on reading for ever."""
MOST_STEPS = 3
MOST_CODERS = 2
"""For one step: a fresh conversation often does what a third try in the old one does not."""
MOST_CHOICES = 12
"""Files to choose from, the likeliest ones: weak models take the first that looks right."""
MOST_UNREAD = 4
"""Likely files that a plan may name although they were not read."""
MOST_SYMBOLS = 150
"""In an enumeration; the grammar is compiled at every turn."""
WHOLE_FILE_LINES = 60
"""Up to here a weak model rewrites a whole file reliably (measured); above, one symbol at a time."""


def _since_person(conversation: Conversation) -> list[Message]:
    messages = conversation.messages
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if isinstance(message, UserMessage) and message.source == "person":
            return messages[at:]
    return list(messages)


@dataclass(frozen=True, slots=True)
class _Done:
    """A call and its result."""

    name: str
    arguments: dict[str, Any]
    content: str


def _done(messages: Sequence[Message]) -> list[_Done]:
    calls = {call.id: call for m in messages if isinstance(m, AgentMessage) for call in m.calls}
    out: list[_Done] = []
    for message in messages:
        if isinstance(message, ToolMessage) and message.call_id in calls:
            arguments: Any = {}
            with suppress(ValueError):
                arguments = json.loads(calls[message.call_id].arguments)
            out.append(_Done(message.name, arguments, message.content))
    return out


def _call(name: str, arguments: dict[str, Any]) -> ToolCall:
    return ToolCall(id=f"call_{uuid.uuid4().hex[:12]}", name=name, arguments=json.dumps(arguments, ensure_ascii=False))


def _object(**properties: JsonSchema) -> JsonSchema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def planner_move(
    conversation: Conversation, board: PlanBoard, files: Sequence[str], proposals: int, root: Path
) -> Move:
    """The planner's next move.

    Args:
        conversation: What was said so far.
        board: The plan in force.
        files: The project's files, the likeliest for this request first.
        proposals: Plans decided on since the person's last message.
        root: The workspace's folder.
    """
    messages = _since_person(conversation)
    request = next((m.text for m in messages if isinstance(m, UserMessage) and m.source == "person"), "")
    done = _done(messages)
    kind = next((str(call.arguments.get("kind")) for call in done if call.name == "classify_request"), None)
    if kind is None and (plain := plain_intent(request)):
        return Legal({}, forced=_call("classify_request", {"kind": plain}))
    if kind is None:
        return Legal(
            {"classify_request": _object(kind={"type": "string", "enum": ["question", "change"]})}, speech=False
        )
    reads = [call for call in done if call.name in {"read_file", "search", "outline"}]
    seen = {str(call.arguments.get("path")) for call in reads if call.name == "read_file"}
    files = [path for path in files if path != PLAN_FILE]
    unread = [path for path in files if path not in seen][:MOST_CHOICES]
    looking = _reads(unread) if len(reads) < MOST_READS and unread else {}
    focus = named_files(request, files) or defining_files(request, files, root)
    if kind == "question":
        return Legal(looking, speech=True)
    if proposals and board.approved:
        return _carry_out(board)
    if proposals and not any("They say:" in call.content for call in done if call.name == "write_implementation_plan"):
        return Finish("The plan was rejected; nothing was changed.")
    if looking and not seen and files:
        return Legal(looking, speech=False)
    if focus:
        # What is new is written first, while what it is made from still stands where it was.
        focus.sort(key=lambda path: path in files)
        plan = _plan_schema(focus, all_of_them=concerns_all(request))
        return Legal({"write_implementation_plan": plan}, speech=False)
    paths = [*(path for path in files if path in seen), *unread[:MOST_UNREAD]]
    if not tests_wanted(request):
        paths = [path for path in paths if not is_test(path)] or paths
    return Legal({**looking, "write_implementation_plan": _plan_schema(paths)}, speech=False)


def _carry_out(board: PlanBoard) -> Move:
    if board.in_state("cancelled"):
        return Finish(f"I stopped where you stopped me.\n{board.summary()}")
    failed = board.in_state("failed")
    if any(board.tries.get(number, 0) >= MOST_CODERS for number in failed):
        return Finish(f"I stopped at a step that failed.\n{board.summary()}")
    for number in sorted([*failed, *board.pending]):
        arguments = {"agent_type": "coder", "goal": board.step(number).title, "step": number}
        return Legal({}, forced=_call("spawn_subagent", arguments))
    return Finish(f"The plan is carried out.\n{board.summary()}")


def _reads(paths: Sequence[str]) -> dict[str, JsonSchema]:
    return {
        "read_file": _object(path={"type": "string", "enum": list(paths)}),
        "search": _object(pattern={"type": "string", "minLength": 2, "maxLength": 40}),
    }


def _plan_schema(paths: Sequence[str], *, all_of_them: bool = False) -> JsonSchema:
    """A plan over these files; `all_of_them`: one step for each, in this order."""

    def step(path: JsonSchema) -> JsonSchema:
        return _object(
            title={"type": "string", "minLength": 3, "maxLength": 60},
            files={"type": "array", "items": path, "minItems": 1, "maxItems": 1},
            instruction={"type": "string", "minLength": 10, "maxLength": 200},
        )

    steps: JsonSchema
    if all_of_them and 1 < len(paths) <= MOST_STEPS + 1:
        steps = {"type": "array", "prefixItems": [step({"const": path}) for path in paths]}
    else:
        path: JsonSchema = {"type": "string", "enum": list(paths)} if paths else {"type": "string"}
        most = min(MOST_STEPS, max(1, len(paths)))
        steps = {"type": "array", "items": step(path), "minItems": 1, "maxItems": most}
    return _object(title={"type": "string", "minLength": 3, "maxLength": 60}, steps=steps)


def choose_symbol_move(target: str, choices: Sequence[Symbol]) -> Legal:
    """A coder's first move on a large file: which symbol has to be changed?"""
    names: JsonSchema = {"type": "string", "enum": [symbol.name for symbol in choices]}
    return Legal({"read_file": _object(path={"const": target}, symbol=names)}, speech=False)


def code_move(target: str, root: Path, symbol: str | None, *, insert: bool = False) -> Legal:
    """A coder's move for code: the whole file, or one symbol of it, as it is now on disk.

    `insert`: the answer is new code that goes behind the symbol.
    """
    text = _text(root / target)
    region = None
    if text is not None and symbol is not None and (found := find_symbol(root / target, symbol)):
        region = region_of(text, found)
    path: JsonSchema = {"const": target}
    if region is None:
        call = {"write_file": _object(path=path, content={"type": "string"})}
    else:
        call = {"target_edit": _object(path=path, search={"const": region}, replace={"type": "string"})}
    return Legal(call, speech=False, edit=EditTarget(target, text, region, insert=insert))


def symbol_choices(target: str, root: Path) -> list[Symbol]:
    """The symbols of a file that is too large to be rewritten whole; empty where it is not, or has none.

    Symbols that are too large themselves are left out where others lie inside of them.
    """
    text = _text(root / target)
    if text is None or text.count("\n") <= WHOLE_FILE_LINES:
        return []
    found = symbols(root / target)

    def small_or_leaf(symbol: Symbol) -> bool:
        size = symbol.end_line - symbol.start_line + 1
        return size <= WHOLE_FILE_LINES or not any(other.name.startswith(symbol.name + ".") for other in found)

    return [symbol for symbol in found if small_or_leaf(symbol)][:MOST_SYMBOLS]


def chosen_symbol(conversation: Conversation, target: str) -> str | None:
    """The symbol that the last `read_file` of this file named."""
    for call in reversed(_done(conversation.messages)):
        if call.name == "read_file" and call.arguments.get("path") == target:
            symbol = call.arguments.get("symbol")
            return str(symbol) if symbol else None
    return None


def region_of(text: str, symbol: Symbol) -> str:
    """The exact lines of a symbol."""
    return "".join(text.splitlines(keepends=True)[symbol.start_line - 1 : symbol.end_line])


def _text(path: Path) -> str | None:
    try:
        return TextFile.decode(path.read_bytes()).plain
    except FileNotFoundError:
        return None
