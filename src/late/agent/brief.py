"""What a subagent is told at its start: everything that it will know."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from late.events import CheckResult, Plan
from late.workspace.files import ReadStamps, TextFile, binary_kind
from late.workspace.outline import Symbol, language_of
from late.workspace.workspace import Workspace


def coder_brief(request: str, plan: Plan, number: int, goal: str) -> str:
    """The step, and the person's request word for word.

    With the step alone a coder follows a planner's slip, with the request alone it forgets half of the step
    (measured on weak models).
    """
    step = plan.steps[number - 1]
    parts = [
        f"The person asked:\n{request.strip()}",
        f"Your step, {number} of {len(plan.steps)}: {step.title}",
    ]
    if step.instruction:
        parts.append(step.instruction)
    if goal.strip() and goal.strip() not in {step.title, step.instruction}:
        parts.append(f"The planner adds: {goal.strip()}")
    if step.files:
        parts.append(f"Files of this step: {', '.join(step.files)}")
    if step.verify:
        parts.append(f"It is checked with: {step.verify}")
    return "\n\n".join(parts)


def show_files(paths: Sequence[str], workspace: Workspace, stamps: ReadStamps, cap_chars: int) -> str:
    """The files' contents as far as they fit together, else where to find them. What is shown counts as read."""
    parts: list[str] = []
    left = cap_chars
    for path in paths:
        real = workspace.resolve(path)
        if not real.exists():
            parts.append(f"{path} does not exist yet.")
            continue
        data = real.read_bytes() if real.is_file() else b""
        text = TextFile.decode(data).plain if real.is_file() and not binary_kind(data) else ""
        if not real.is_file() or binary_kind(data) or len(text) > left:
            parts.append(f"{path} is not shown here ({len(data)} bytes): use read_file or outline.")
            continue
        left -= len(text)
        stamps.record(real, data)
        parts.append(fenced(path, text))
    return "\n\n".join(parts)


def fenced(path: str, text: str) -> str:
    """A file in a fence that is longer than any inside."""
    ticks = "`" * max(3, max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    body = text
    end = "" if body.endswith("\n") or not body else "\n"
    return f"{path}\n{ticks}{language_of(path) or ''}\n{body}{end}{ticks}"


def led_brief(request: str, plan: Plan, number: int, failure: str) -> str:
    """What a coder with a weak model is to do.

    In a plan of one step the request says it all, and a weak planner's instruction only leads astray (measured); a
    second coder gets it all the same, because the first one failed without.
    """
    step = plan.steps[number - 1]
    parts = [f"The person asked:\n{request.strip()}"]
    if len(plan.steps) > 1:
        parts.append(f"You do step {number} of {len(plan.steps)} of it: {step.title}\n{step.instruction}".strip())
    elif failure:
        parts.append(step.instruction)
    if failure:
        parts.append(f"A first try was not good: {failure}")
    return "\n\n".join(filter(None, parts))


def ask_for_file(path: str, root: Path, brief: str) -> str:
    """The one file that a led coder works on, then what to do with it: what comes last counts most."""
    file = root / path
    if not file.exists():
        return f"{brief}\n\nWrite the new file {path}. {ask_for_code(path, None)}"
    shown = fenced(path, TextFile.decode(file.read_bytes()).plain)
    return f"{shown}\n\n{brief}\n\nChange {path} so. {ask_for_code(path, None)}"


def ask_for_code(path: str, symbol: str | None) -> str:
    """The form of the answer to a turn for code."""
    if symbol is not None:
        return (
            f"Answer with the complete new text of {symbol} in one fenced block; new code goes behind it in the block."
        )
    return f"Answer with the line {path} and then the complete new content of the file in one fenced block."


def ask_for_symbol_name(path: str, choices: Sequence[Symbol], brief: str) -> str:
    """The symbols of a large file, of which one is to be chosen."""
    names = "\n".join(symbol.name for symbol in choices)
    return f"{path} is long. It holds:\n{names}\n\n{brief}\n\nWhich one of them has to be changed? Read it."


def ask_for_symbol(path: str, symbol: str, text: str, brief: str) -> str:
    """The one symbol that a led coder rewrites."""
    return f"{fenced(path, text)}\n\n{brief}\n\nChange {symbol} so. {ask_for_code(path, symbol)}"


def ask_for_new_code(path: str, name: str, shown: str, brief: str) -> str:
    """New code that goes into a large file; `shown` is what it has to fit to."""
    return (
        f"From {path}:\n{fenced(path, shown)}\n\n{brief}\n\n"
        f"Write {name} now. Answer with the complete code of {name} alone in one fenced block."
    )


def with_references(text: str, paths: Sequence[str], root: Path) -> str:
    """A request for a new file, behind the existing files that the person names: what it has to be made from."""
    shown = [fenced(path, TextFile.decode((root / path).read_bytes()).plain) for path in paths]
    return "\n\n".join([*shown, text])


def check_failed(check: CheckResult, left: int) -> str:
    """What a coder hears when its step's check failed."""
    tries = "This is the last try." if left == 1 else f"{left} tries are left."
    return (
        f"The check failed: `{check.command}` ended with exit status {check.exit_code}.\n\n{check.output.strip()}\n\n"
        f"Find the reason and put it right, in the files of your step. {tries}"
    )
