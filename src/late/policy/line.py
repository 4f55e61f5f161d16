"""Judges a whole command line: every command in it, in every branch, and takes the strictest answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from late.events import Scope as ApprovalScope
from late.policy.approvals import SEPARATOR
from late.policy.commands import Commands
from late.policy.environment import is_harmless_name, is_harmless_prefix
from late.policy.expand import (
    PLAIN_ARITHMETIC,
    Argument,
    Scope,
    Unknown,
    expand,
    single_value,
    substitutions,
    unknown_of,
)
from late.policy.paths import FREE_DEVICES, Places
from late.policy.shell import (
    Background,
    Branches,
    Calculation,
    Command,
    Either,
    ForEach,
    Function,
    Loop,
    Node,
    Pipeline,
    Redirect,
    Redirected,
    Sequence,
    Subshell,
    Test,
    parse,
)
from late.policy.verdicts import ONCE, SCOPES, Verdict, never, strictest
from late.policy.words import Assignment, Word

MAX_COMMANDS: Final = 7000
"""That are judged in one line: more than fit into the longest one, but loops count again for each of their values."""
MAX_NESTED_SCRIPTS: Final = 12
USE_FILE_TOOLS: Final = (
    "Change files with write_file or target_edit. "
    "Do not send output to a file to keep it: the tool keeps long output in one by itself."
)

_ASSIGNING: Final = frozenset(
    {
        "read",
        "export",
        "declare",
        "typeset",
        "local",
        "readonly",
        "unset",
        "let",
        "mapfile",
        "readarray",
        "printf",
        "getopts",
    }
)
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER: Final = re.compile(r"-?\d+")
_COMPARING_NUMBERS: Final = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_EVALUATING: Final = frozenset({"-v", "-R", "=~"})


class CommandLines:
    """The shell's part of the policy, for one workspace."""

    def __init__(self, places: Places) -> None:
        self._places = places

    def judge(self, command: str, cwd: Path) -> Verdict | None:
        """The verdict on a command line that runs in `cwd`; `None` where it only reads what may be read."""
        findings = _Line(self._places).judge_script(command, Scope(cwd, self._places.home))
        verdict = strictest(findings)
        if verdict is None or verdict.tier == "never":
            return verdict
        return _together([finding for finding in findings if finding.tier == "ask"])


def _together(asked: list[Verdict]) -> Verdict:
    """One question about all parts of a line. It is remembered only if each part can be."""
    first = asked[0]
    reasons = list(dict.fromkeys(finding.reason for finding in asked))
    more = f", and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    keys = dict.fromkeys((finding.key, finding.pattern) for finding in asked)
    known = all(key for key, _ in keys)
    scopes: tuple[ApprovalScope, ...] = tuple(
        scope for scope in SCOPES if all(scope in finding.scopes for finding in asked)
    )
    return Verdict(
        "ask",
        f"{reasons[0]}{more}",
        first.rule,
        first.teaching,
        pattern=SEPARATOR.join(pattern for _, pattern in keys) if known else "",
        key=SEPARATOR.join(key for key, _ in keys) if known else "",
        scopes=scopes if known and scopes else ONCE,
    )


class _Line:
    """One judgement. Counts what it looks at, so that no line can keep it busy."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._commands = Commands(places, self)
        self._left = MAX_COMMANDS
        self._depth = 0

    def judge_script(self, source: str, scope: Scope) -> list[Verdict]:
        """All that a script gives reason to say."""
        if self._depth >= MAX_NESTED_SCRIPTS:
            return [Verdict("ask", "the command has scripts nested too deeply", "shell.unreadable")]
        script = parse(source, self._depth)
        self._depth += 1
        try:
            findings = self._node(script.body, scope)
        finally:
            self._depth -= 1
        if not script.problems:
            return findings
        if "a NUL character" in script.problems:
            return [Verdict("never", "the command has a NUL character", "shell.nul", "Send it without.")]
        return [Verdict("ask", f"the command has {script.problems[0]}", "shell.unreadable"), *never(findings)]

    def _node(self, node: Node, scope: Scope) -> list[Verdict]:
        self._left -= 1
        if self._left < 0:
            return [Verdict("ask", "the command is too long to be looked through", "shell.too-long")]
        match node:
            case Command():
                return self._command(node, scope)
            case Test():
                return self._test(node, scope)
            case Calculation():
                return self._calculation(node.operand, scope)
            case Sequence():
                return [finding for item in node.items for finding in self._node(item, scope)]
            case Redirected():
                return [*self._redirects(node.redirects, scope), *self._node(node.body, scope)]
            case Background():
                asked = Verdict("ask", "a command in the background outlives the call", "shell.background")
                return [asked, *self._node(node.body, scope.copy())]
            case _:
                return self._compound(node, scope)

    def _compound(self, node: Node, scope: Scope) -> list[Verdict]:
        match node:
            case Either():
                findings = self._node(node.first, scope)
                return findings + [finding for rest in node.rest for finding in self._branch(rest, scope)]
            case Pipeline():
                return [finding for item in node.items for finding in self._node(item, scope.copy())]
            case Subshell():
                return self._node(node.body, scope.copy())
            case Branches():
                findings = [finding for word in node.words for finding in self._word(word, scope)]
                findings += self._node(node.first, scope)
                return findings + [finding for rest in node.rest for finding in self._branch(rest, scope)]
            case Loop():
                _forget(node.body, scope)
                return self._branch(node.body, scope)
            case ForEach():
                return self._for(node, scope)
            case Function():
                asked = Verdict("ask", f"the command defines a function {node.name}", "shell.function")
                inner = scope.copy()
                _forget(node.body, inner)
                return [asked, *self._node(node.body, inner)]
            case _:
                return []

    def _branch(self, node: Node, scope: Scope) -> list[Verdict]:
        """Judge what may or may not run."""
        inner = scope.copy()
        findings = self._node(node, inner)
        scope.merge(inner)
        return findings

    def _for(self, node: ForEach, scope: Scope) -> list[Verdict]:
        findings = [finding for word in node.words or () for finding in self._word(word, scope)]
        arguments = [argument for word in node.words or () for argument in expand(word, scope)]
        values: list[str | Unknown] = [
            argument.value if argument.value is not None else (argument.unknown or Unknown.DATA)
            for argument in arguments
        ]
        if node.words is None:
            values = [Unknown.ENVIRONMENT]
        _forget(node.body, scope)
        before = scope.copy()
        for value in dict.fromkeys(values):
            if self._left < 0:
                break
            scope.values[node.name] = value
            findings += self._branch(node.body, scope)
        scope.merge(before)
        return findings

    def _command(self, command: Command, scope: Scope) -> list[Verdict]:
        findings = self._redirects(command.redirects, scope)
        for word in [assignment.value for assignment in command.assignments] + list(command.words):
            findings += self._word(word, scope)
        arguments = [argument for word in command.words for argument in expand(word, scope)]
        if not arguments:
            return findings + [finding for each in command.assignments for finding in self._assign(each, scope)]
        prefix: list[tuple[str, str | None]] = []
        for each in command.assignments:
            findings += self._prefix(each, arguments, scope)
            value = single_value(each.value, scope)
            prefix.append((each.name, value if isinstance(value, str) else None))
        return findings + self._commands.judge(arguments, tuple(prefix), scope)

    def _word(self, word: Word, scope: Scope) -> list[Verdict]:
        """What runs while a word is expanded."""
        findings: list[Verdict] = []
        for each in substitutions(word):
            findings += self.judge_script(each.source, scope.copy())
        causes = {cause for part in word.parts if (cause := unknown_of(part, scope))}
        if Unknown.CODE in causes:
            findings.append(Verdict("ask", f"expanding `{word.text}` can run something", "shell.expansion"))
        return findings

    def _assign(self, assignment: Assignment, scope: Scope) -> list[Verdict]:
        value = single_value(assignment.value, scope)
        scope.values[assignment.name] = Unknown.DATA if assignment.append and isinstance(value, str) else value
        if is_harmless_name(assignment.name):
            return []
        reason = f"setting {assignment.name} can change what later commands do"
        return [Verdict("ask", reason, "shell.environment")]

    def _prefix(self, assignment: Assignment, arguments: list[Argument], scope: Scope) -> list[Verdict]:
        value = single_value(assignment.value, scope)
        name = assignment.name
        if isinstance(value, str) and (
            is_harmless_prefix(name, value) or (name == "IFS" and arguments[0].value == "read")
        ):
            return []
        reason = f"setting {name} can change what `{arguments[0].text}` does"
        return [Verdict("ask", reason, "shell.environment")]

    def _redirects(self, redirects: tuple[Redirect, ...], scope: Scope) -> list[Verdict]:
        return [finding for redirect in redirects for finding in self._redirect(redirect, scope)]

    def _redirect(self, redirect: Redirect, scope: Scope) -> list[Verdict]:
        findings = self._word(redirect.target, scope)
        if redirect.operator in {"<<", "<<-", "<<<"}:
            return findings + self._shown(redirect.target, scope)
        value = single_value(redirect.target, scope)
        if redirect.operator in {"<&", ">&"} and isinstance(value, str) and re.fullmatch(r"\d*-?", value):
            return findings
        if redirect.operator in {"<", "<&"}:
            sources = expand(redirect.target, scope)
            return findings + [found for each in sources for found in self._commands.check(each, "content", scope)]
        if isinstance(value, str) and str(self._places.look(value, scope.cwd).real) in FREE_DEVICES:
            return findings
        shown = redirect.target.text or "a file"
        reason = f"`{redirect.operator}{shown}` writes a file"
        return [*findings, Verdict("never", reason, "shell.redirect", USE_FILE_TOOLS)]

    def _shown(self, word: Word, scope: Scope) -> list[Verdict]:
        """What a heredoc or herestring gives away."""
        causes = [cause for part in word.parts if (cause := unknown_of(part, scope))]
        if Unknown.SECRET in causes:
            return [Verdict("never", "the command shows a key or a password", "secret.variable")]
        if Unknown.ENVIRONMENT in causes:
            return [Verdict("ask", "the command shows a variable of its environment", "shell.expansion")]
        return []

    def _calculation(self, word: Word, scope: Scope) -> list[Verdict]:
        findings = self._word(word, scope)
        if PLAIN_ARITHMETIC.fullmatch(word.text):
            return findings
        return [*findings, Verdict("ask", "bash evaluates variables in (( … )) as code", "shell.arithmetic")]

    def _test(self, test: Test, scope: Scope) -> list[Verdict]:
        findings = [finding for word in test.words for finding in self._word(word, scope)]
        plain = [word.plain for word in test.words]
        for index, text in enumerate(plain):
            sides = [plain[at] or "" for at in (index - 1, index + 1) if 0 <= at < len(plain)]
            numbers = len(sides) > 1 and all(_NUMBER.fullmatch(side) for side in sides)
            if text in _EVALUATING or (text in _COMPARING_NUMBERS and not numbers):
                findings.append(Verdict("ask", f"bash evaluates what stands beside {text} as code", "shell.arithmetic"))
        return findings


def _forget(node: Node, scope: Scope) -> None:
    """Variables that a body sets have no certain value in it: it may run again."""
    for name in _assigned(node):
        scope.values[name] = Unknown.ENVIRONMENT


def _assigned(node: Node) -> set[str]:
    match node:
        case Command():
            names = {assignment.name for assignment in node.assignments}
            if any(word.plain in _ASSIGNING for word in node.words):
                names |= {match[0] for word in node.words if (match := _VARIABLE.match(word.text))}
            return names
        case Sequence(items=items) | Pipeline(items=items):
            return set[str]().union(*(_assigned(item) for item in items))
        case Either(first=first, rest=rest) | Branches(first=first, rest=rest):
            return _assigned(first).union(*(_assigned(item) for item in rest))
        case ForEach(name=name, body=body):
            return {name} | _assigned(body)
        case (
            Subshell(body=body) | Background(body=body) | Loop(body=body) | Function(body=body) | Redirected(body=body)
        ):
            return _assigned(body)
        case Test() | Calculation():
            return set()
