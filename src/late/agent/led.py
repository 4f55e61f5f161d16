"""A coder with a weak model is led: one file at a time, whole or one symbol of it, then the check.

What this rests on was measured with a 1.5B model: with a second file in sight it wrote that one's content into the
first; a whole file in a fenced block was right where the same edit inside JSON was wrong; above some sixty lines it
has to be shown only the symbol that it rewrites.
"""

from __future__ import annotations

import re
from functools import partial

from late.agent.brief import (
    ask_for_code,
    ask_for_file,
    ask_for_new_code,
    ask_for_symbol,
    ask_for_symbol_name,
    check_failed,
    led_brief,
    with_references,
)
from late.agent.checks import is_test
from late.agent.crew import CHARS_PER_TOKEN
from late.agent.focus import existing_files, insertion_point
from late.agent.loop import Agent, Move, TurnsEnd, run_turn, run_turns
from late.agent.moves import choose_symbol_move, chosen_symbol, code_move, region_of, symbol_choices
from late.agent.stepwork import CHECK_TRIES, StepWork
from late.errors import ToolError
from late.events import Outcome
from late.llm.messages import AgentMessage, ToolMessage
from late.workspace.files import TextFile
from late.workspace.outline import Symbol, find_symbol, symbols
from late.workspace.review import review_edit

TURNS_PER_FILE = 3
CHOICE_TOKENS = 120
"""For the answer that chooses a symbol."""
MORE_TOKENS = 700
"""For code that is added, on top of half as much again as the old text."""
COOLEST, WARMER, WARMEST = 0.2, 0.3, 0.9
"""Temperature of the first try, what each further one adds, and the most: a retry must differ."""


async def led_attempts(work: StepWork, failure: str) -> tuple[Outcome, str]:
    """Do the step file by file; `failure` says why an earlier coder failed. Returns the last words too."""
    plan = work.crew.board.plan
    assert plan is not None
    brief = led_brief(work.crew.request, plan, work.number, failure)
    end = TurnsEnd("hollow", "The step names no file.")
    for path in work.step.files:
        if path in work.record.changed:
            continue  # by this coder, before it was interrupted
        end = await _file(work, path, brief)
        if path not in work.record.changed and not await _right_already(work):
            return "failed", _no_change(work, path, end)
    for left in range(CHECK_TRIES - 1, -1, -1):
        outcome = await work.verdict()
        if outcome != "failed" or not left:
            return outcome, end.text
        path = next((path for path in reversed(work.step.files) if not is_test(path)), work.step.files[-1])
        again = f"{brief}\n\n{check_failed(work.record.checks[-1], left)}"
        end = await _file(work, path, again, retry=CHECK_TRIES - left)
        if not work.record.changed_since_check:
            return "failed", _no_change(work, path, end)
    return "failed", end.text


async def _right_already(work: StepWork) -> bool:
    """A file that need not be changed: the step's check passes as it is."""
    return work.step.verify is not None and await work.verdict() == "done"


async def _file(work: StepWork, path: str, brief: str, retry: int = 0) -> TurnsEnd:
    """Have one file rewritten, or one symbol of a large one."""
    agent, crew = work.agent, work.crew
    root = crew.workspace.root
    file = crew.workspace.resolve(path)
    data = file.read_bytes() if file.is_file() else b""
    if data:
        agent.runner.stamps.record(file, data)
    text = TextFile.decode(data).plain
    agent.max_turns = agent.turns + TURNS_PER_FILE
    choices = symbol_choices(path, root)
    new = insertion_point(crew.request, symbols(file)) if choices else None
    symbol = new[1].name if new else await _symbol(agent, path, choices, brief)
    found = find_symbol(file, symbol) if symbol else None
    if new:
        text = _surroundings(text, new[1], symbols(file))
        agent.tell(ask_for_new_code(path, new[0], text, brief), "harness")
    elif symbol and found:
        text = region_of(text, found)
        agent.tell(ask_for_symbol(path, symbol, text, brief), "harness")
    else:
        sources = [] if data else existing_files(crew.request, root)
        agent.tell(with_references(ask_for_file(path, root, brief), sources, root), "harness")
    agent.max_tokens = int(len(text) / CHARS_PER_TOKEN * 1.5) + MORE_TOKENS
    if work.info.context_window:
        agent.max_tokens = min(agent.max_tokens, work.info.context_window // 3)
    first = agent.turns

    def move() -> Move:
        tries = agent.turns - first + retry
        if tries and crew.limits.temperature is None:
            agent.temperature = min(COOLEST + WARMER * tries, WARMEST)
        return code_move(path, root, symbol, insert=new is not None)

    agent.next_move = move
    end = await run_turns(agent)
    while end.reason == "answered" and not _wrote(agent) and agent.turns < agent.max_turns:
        agent.tell(f"That was no code. {ask_for_code(path, symbol)}", "harness")
        end = await run_turns(agent)
    return end


def _surroundings(text: str, anchor: Symbol, found: list[Symbol]) -> str:
    """What new code has to fit to: the head of its class with the first method, and the code it comes behind."""
    scope = anchor.name.rpartition(".")[0]
    parent = next((symbol for symbol in found if scope and symbol.name == scope), None)
    if parent is None:
        return region_of(text, anchor)
    first = next(symbol for symbol in found if symbol.name.rpartition(".")[0] == scope)
    head = "".join(text.splitlines(keepends=True)[parent.start_line - 1 : first.end_line])
    return head if first == anchor else f"{head}\n    ...\n\n{region_of(text, anchor)}"


async def _symbol(agent: Agent, path: str, choices: list[Symbol], brief: str) -> str | None:
    """The symbol of a large file that the model wants to change; `None` where the file is rewritten whole."""
    if not choices:
        return None
    agent.max_tokens = CHOICE_TOKENS
    agent.tell(ask_for_symbol_name(path, choices, brief), "harness")
    agent.next_move = partial(choose_symbol_move, path, choices)
    await run_turn(agent)
    return chosen_symbol(agent.conversation, path)


def _wrote(agent: Agent) -> bool:
    last = next((m for m in reversed(agent.conversation.messages) if isinstance(m, AgentMessage)), None)
    return last is not None and bool(last.calls)


def _no_change(work: StepWork, path: str, end: TurnsEnd) -> str:
    last = work.agent.conversation.messages[-1]
    why = last.content if isinstance(last, ToolMessage) else end.text
    return f"No usable change of {path} came: {why[:300]}"


def refuse_slips(allowed: str, path: str, before: str | None, after: str) -> None:
    """A `Review` that refuses what weak models are known to get wrong; what `allowed` names may vanish.

    Raises:
        ToolError: the edit breaks the syntax, uses an undefined name, or loses a definition that nobody mentioned.
    """
    facts = [fact for fact in review_edit(path, before, after) if not _was_asked(fact, allowed)]
    if not facts:
        return
    lost = [match[1] for fact in facts if (match := _REMOVED.match(fact))]
    hint = "Send the complete text again, with that put right."
    if lost:
        hint = f"{', '.join(lost)} must stay. Send the whole file again: all that it held, and your change in it."
    raise ToolError("Not written: " + " ".join(facts), hint)


_REMOVED = re.compile(r"removed: (.*)", re.IGNORECASE | re.DOTALL)


def _was_asked(fact: str, allowed: str) -> bool:
    """Every definition that vanished is named in what was asked."""
    match = _REMOVED.match(fact)
    if not match:
        return False
    names = [name.rsplit(".", 1)[-1] for name in re.findall(r"[\w.]+", match[1])]
    return bool(names) and all(re.search(rf"\b{re.escape(name)}\b", allowed) for name in names)
