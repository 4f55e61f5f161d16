"""The plan as a file: rendering, reading back, and the hash that an approval names.

`implementation_plan.md` is Markdown that a person can edit in any editor::

    # Count the quantity

    The cart adds prices without the quantity.

    ## Steps

    - [ ] 1. Multiply by the quantity
      Files: `cart.py`
      Verify: `python -m pytest -q`

      In `Cart.total_cents` multiply each price by the item's quantity.

`parse_plan(render_plan(plan))` gives `normalise(plan)` back for every plan.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from late.errors import PlanError
from late.events import Plan, PlanStep

PLAN_FILE = "implementation_plan.md"

StepState = Literal["pending", "running", "done", "unverified", "failed", "cancelled"]
_MARKS: dict[StepState, str] = {
    "pending": " ",
    "running": " ",
    "done": "x",
    "unverified": "?",
    "failed": "!",
    "cancelled": " ",
}

_STEPS_HEADING = "## Steps"
_STEP = re.compile(r"^[-*] \[(.)\] (?:\d+\. ?)?(.*)$")
_FIELD = re.compile(r"^(Files|Verify):(?: +(.*))?$")
_CODE_SPAN = re.compile(r"(`+) ?(.+?) ?\1(?!`)")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _block(text: str) -> str:
    """Lines without trailing blanks, no empty lines at either end, only line feeds between them."""
    lines = [line.rstrip() for line in re.split(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", text)]
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines)


def normalise(plan: Plan) -> Plan:
    """The form in which a plan is compared, hashed and shown: no stray white space, no empty or double files."""
    steps = [
        PlanStep(
            title=_one_line(step.title),
            files=tuple(dict.fromkeys(filter(None, (_one_line(path) for path in step.files)))),
            instruction=_block(step.instruction),
            verify=_one_line(step.verify or "") or None,
        )
        for step in plan.steps
    ]
    return Plan(title=_one_line(plan.title), summary=_block(plan.summary), steps=tuple(steps))


def plan_hash(plan: Plan) -> str:
    """SHA-256 of the normalised plan, the first 16 hex digits: what an approval is given for."""
    text = json.dumps(normalise(plan).model_dump(), ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _span(text: str) -> str:
    """A Markdown code span: one backtick more than the longest run inside, blanks where it starts or ends with one."""
    fence = "`" * (max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _escape(line: str) -> str:
    """Keep a summary's line from being read as a heading of ours."""
    return "\\" + line if line.startswith(("\\", "# ", "## ")) or line == "#" else line


def _unescape(line: str) -> str:
    return line[1:] if line.startswith("\\") else line


def render_plan(plan: Plan, states: Sequence[StepState] | Mapping[int, StepState] = ()) -> str:
    """The plan as Markdown; `states` (by step, from 1) decide the checkboxes."""
    plan = normalise(plan)
    lines = [f"# {plan.title}".rstrip(), ""]
    if plan.summary:
        lines += [_escape(line) for line in plan.summary.split("\n")]
        lines.append("")
    lines += [_STEPS_HEADING, ""]
    by_step = states if isinstance(states, Mapping) else dict(enumerate(states, 1))
    for number, step in enumerate(plan.steps, 1):
        lines.append(f"- [{_MARKS[by_step.get(number, 'pending')]}] {number}. {step.title}".rstrip())
        if step.files:
            lines.append("  Files: " + ", ".join(_span(path) for path in step.files))
        if step.verify:
            lines.append("  Verify: " + _span(step.verify))
        lines.append("")
        if step.instruction:
            lines += [("  " + line).rstrip() for line in step.instruction.split("\n")]
            lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def parse_plan(text: str) -> Plan:
    """Read a plan that `render_plan` wrote and a person may have edited.

    Raises:
        PlanError: it has no title, no `## Steps` heading or no step; the message names the line.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    start = next((i for i, line in enumerate(lines) if line.strip()), None)
    if start is None or not re.match(r"#(\s|$)", lines[start]):
        raise PlanError(
            f"{PLAN_FILE} must begin with `# ` and the plan's title.", "Restore the heading, or reject the plan."
        )
    heading = next((i for i in range(start + 1, len(lines)) if lines[i].rstrip() == _STEPS_HEADING), None)
    if heading is None:
        raise PlanError(
            f"{PLAN_FILE} has no line `{_STEPS_HEADING}`.", "Put the heading back in front of the list of steps."
        )
    summary = "\n".join(_unescape(line) for line in lines[start + 1 : heading])
    steps = _parse_steps(lines[heading + 1 :], heading + 2)
    if not steps:
        raise PlanError(f"{PLAN_FILE} lists no step under `{_STEPS_HEADING}`.", "A step is a line `- [ ] 1. Title`.")
    return normalise(Plan(title=lines[start][1:], summary=summary, steps=tuple(steps)))


def _parse_steps(lines: list[str], first_line: int) -> list[PlanStep]:
    blocks: list[tuple[str, list[str]]] = []
    for number, line in enumerate(lines, first_line):
        if match := _STEP.match(line):
            blocks.append((match[2], []))
        elif blocks:
            blocks[-1][1].append(line)
        elif line.strip():
            raise PlanError(
                f"{PLAN_FILE}, line {number}: text before the first step: {line.strip()[:60]!r}.",
                "Move it above `## Steps` (the summary) or below a step's title (its instruction).",
            )
    return [_parse_step(title, body) for title, body in blocks]


def _parse_step(title: str, body: list[str]) -> PlanStep:
    files: tuple[str, ...] = ()
    verify: str | None = None
    rest = 0
    for rest, line in enumerate(body):  # noqa: B007 -- the index is where the instruction starts
        match = _FIELD.match(line.strip())
        if not match:
            break
        value = match[2] or ""
        spans = [span[2] for span in _CODE_SPAN.finditer(value)]
        if match[1] == "Files":
            files = tuple(spans) if spans else tuple(part.strip() for part in value.split(","))
        else:
            verify = spans[0] if spans else value
    else:
        rest = len(body)
    instruction = "\n".join(line.removeprefix("  ") for line in body[rest:])
    return PlanStep(title=title, files=files, instruction=instruction, verify=verify)
