"""Judges one simple command: the program, its options, what it reads and what it writes."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from late.events import Scope as ApprovalScope
from late.policy import special
from late.policy.arguments import Oddity, Parsed, split_arguments
from late.policy.expand import Argument, Scope, Unknown
from late.policy.judging import Call, Prefix, Scripts
from late.policy.paths import FREE_DEVICES, Place, Places, secret_name
from late.policy.table import Role, lookup
from late.policy.verdicts import ONCE, SCOPES, Verdict, never, outside_verdict, secret_verdict

REMEMBERED: Final[tuple[ApprovalScope, ...]] = ("once", "session", "project")
SYSTEM_FOLDERS: Final = frozenset(
    {"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin"}
)
"""Where a program of a known name is what its name says."""
MAX_LOOKED_AT: Final = 4000
"""Entries of a folder that are looked at for secrets before it is read as a whole."""
MAX_WRAPPERS: Final = 32
"""Programs that run each other in one command."""
_SKIPPED_FOLDERS: Final = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".mypy_cache"})
_ONLY_A_RUN: Final = "only a run can tell"


class Commands:
    """Judges simple commands in one workspace."""

    def __init__(self, places: Places, scripts: Scripts) -> None:
        self.places = places
        self.scripts = scripts
        self._depth = 0

    def judge(self, arguments: list[Argument], prefix: Prefix, scope: Scope) -> list[Verdict]:
        """All that a command gives reason to say. An empty list means that it only reads what may be read."""
        if self._depth >= MAX_WRAPPERS:
            return [Verdict("ask", "the command runs too many programs through each other", "shell.too-long")]
        self._depth += 1
        try:
            return self._judge(arguments, prefix, scope)
        finally:
            self._depth -= 1

    def _judge(self, arguments: list[Argument], prefix: Prefix, scope: Scope) -> list[Verdict]:
        program = arguments[0]
        if program.value is None or program.from_pattern:
            return [
                Verdict("ask", f"{_ONLY_A_RUN} which program `{program.text}` is", "shell.hidden-command"),
                *self._secrets(arguments[1:], scope),
            ]
        folder, _, base = program.value.rpartition("/")
        spec = lookup(base)
        findings: list[Verdict] = []
        if spec is None and (spec := lookup(base.lower())) is not None:
            findings.append(Verdict("ask", f"`{base}` is no program that late knows", "shell.unknown-command"))
        if folder and os.path.normpath(folder) not in SYSTEM_FOLDERS:
            findings.append(self._project_program(arguments, prefix, scope))
            strict = [] if spec is None else self._known(Call(arguments, prefix, scope, spec, base))
            return [*findings, *never(strict), *self._secrets(arguments[1:], scope), *self._hidden_rm(arguments, scope)]
        if spec is None:
            return [*findings, *self._unknown(arguments, prefix, scope)]
        return [*findings, *self._known(Call(arguments, prefix, scope, spec, base))]

    def _known(self, call: Call) -> list[Verdict]:
        if tuple(argument.value for argument in call.arguments[1:]) in call.spec.exact:
            return []
        skip = 1
        while call.spec.special != "git" and len(call.arguments) > skip:
            sub = call.spec.subs.get(call.arguments[skip].value or "")
            if sub is None:
                break
            call = replace(call, spec=sub, name=sub.name)
            skip += 1
        handler = special.HANDLERS.get(call.spec.special)
        return handler(self, call) if handler else self.plain(call, skip=skip)

    def plain(self, call: Call, *, skip: int = 1) -> list[Verdict]:
        """Judge by the table alone; the first `skip` arguments name the command."""
        spec = call.spec
        if spec.wraps is not None:
            return self.wrapped(call)
        if spec.tier == "auto":
            return self.reader(call, split_arguments(call.arguments[skip:], spec))
        return self.changer(call, skip=skip)

    def reader(self, call: Call, parsed: Parsed) -> list[Verdict]:
        """Judge a command that only reads if all of its options are harmless."""
        spec = call.spec
        findings = [*self._open_ended(call, parsed), *self._oddities(call, parsed)]
        findings += self.values(call, parsed)
        findings += self._operands(call, parsed)
        if spec.needs and not parsed.has(spec.needs):
            findings.append(self.ask(call, spec.does or "changes something", "shell.changes"))
        if spec.most is not None and len(parsed.operands) > spec.most:
            findings.append(
                self.ask(call, "writes to its last argument, or does more than show something", "shell.writes")
            )
        if spec.listing and parsed.operands and not parsed.has(spec.listing):
            findings.append(self.ask(call, "makes or changes something when it is given a name", "shell.writes"))
        if spec.recursive and (parsed.has(spec.recursive) or spec.special == "rg"):
            findings += self._recursive(call, parsed)
        return findings

    def values(self, call: Call, parsed: Parsed) -> list[Verdict]:
        """What a command learns from the values of its harmless options."""
        return [
            finding
            for option in parsed.options
            for value in option.values
            for finding in self.check(value, option.flag.role, call.scope)
        ]

    def _open_ended(self, call: Call, parsed: Parsed) -> list[Verdict]:
        unsure = [argument for argument in call.arguments[1:] if argument.value is None and argument.many]
        unsure += [argument for argument in parsed.open if argument not in unsure]
        if call.spec.style == "none" or not unsure:
            return []
        if all(argument.unknown is Unknown.DEVICE for argument in unsure):
            return []
        return [Verdict("ask", f"{_ONLY_A_RUN} what `{unsure[0].text}` becomes", "shell.expansion")]

    def _oddities(self, call: Call, parsed: Parsed) -> list[Verdict]:
        findings: list[Verdict] = []
        for oddity in parsed.oddities:
            findings.append(self._oddity(call, oddity))
            for value in oddity.values:
                findings += self.written(value, call.scope) if oddity.effect == "writes" else []
                findings += never(self.check(value, "content", call.scope))
        if any(oddity.effect == "writes" for oddity in parsed.oddities):
            findings += [finding for operand in parsed.operands for finding in self.written(operand, call.scope)]
        return findings

    def _oddity(self, call: Call, oddity: Oddity) -> Verdict:
        name = f"`{call.name} {oddity.name}`"
        if oddity.effect == "writes":
            return self.ask(call, "writes or changes files", "shell.writes", subject=name)
        if oddity.effect == "runs":
            return Verdict("ask", f"{name} can run another program", "shell.runs", call.spec.teach)
        return self.ask(call, "is an option that late does not know", "shell.unknown-option", subject=name)

    def _operands(self, call: Call, parsed: Parsed) -> list[Verdict]:
        roles = list(call.spec.operands)
        if parsed.has(call.spec.first_from) and len(roles) > 1:
            roles.pop(0)
        findings: list[Verdict] = []
        for index, operand in enumerate(parsed.operands):
            findings += self.check(operand, roles[min(index, len(roles) - 1)], call.scope)
        return findings

    def _recursive(self, call: Call, parsed: Parsed) -> list[Verdict]:
        globs = _values(parsed, {"-g", "--glob", "--iglob"})
        excluded = _values(parsed, {"--exclude"}) + [glob[1:] for glob in globs if glob.startswith("!")]
        only = _values(parsed, {"--include"}) + [glob for glob in globs if not glob.startswith("!")]
        all_files = parsed.has(call.spec.recursive)
        start = 0 if parsed.has(call.spec.first_from) or call.spec.operands == ("content",) else 1
        folders = [operand.value for operand in parsed.operands[start:] if operand.value is not None] or ["."]
        for folder in folders:
            place = self.places.look(folder, call.scope.cwd)
            found = secret_below(place.real, excluded, only, all_files=all_files)
            if not found and place.real.is_dir() and self.places.hides_files:
                found = "what .llmignore hides"
            if found:
                teaching = "Use the search tool, or name the files."
                return [Verdict("ask", f"`{call.name}` would also read {found}", "shell.recursive-secret", teaching)]
        return []

    def check(self, argument: Argument, role: Role, scope: Scope) -> list[Verdict]:
        """Judge what a command learns from one argument."""
        if argument.value is None:
            return self._check_unknown(argument, role, scope)
        if role == "text" or (role == "content" and argument.value == "-"):
            return []
        if role == "revision":
            return self._check_revision(argument.value, scope)
        if role == "write":
            return self.written(argument, scope)
        return self._check_path(argument.value, role, scope)

    def _check_unknown(self, argument: Argument, role: Role, scope: Scope) -> list[Verdict]:
        match argument.unknown:
            case Unknown.SECRET:
                return [Verdict("never", f"`{argument.text}` shows a key or a password", "secret.variable")]
            case Unknown.CODE:
                return [Verdict("ask", f"expanding `{argument.text}` can run something", "shell.expansion")]
            case Unknown.ENVIRONMENT:
                reason = f"{_ONLY_A_RUN} what `{argument.text}` is"
                return [Verdict("ask", reason, "shell.expansion"), *self._shaped(argument, scope)]
            case Unknown.DEVICE:
                return []
            case _ if role == "text":
                return []
            case _:
                reason = f"{_ONLY_A_RUN} which file `{argument.text}` is"
                return [Verdict("ask", reason, "shell.expansion"), *self._shaped(argument, scope)]

    def _shaped(self, argument: Argument, scope: Scope) -> list[Verdict]:
        return never(self._check_path(argument.shape, "content", scope)) if "/" in argument.shape else []

    def _check_path(self, path: str, role: Role, scope: Scope) -> list[Verdict]:
        if path.startswith(("/dev/tcp/", "/dev/udp/")):
            return [Verdict("ask", f"{path} reaches the network", "shell.network")]
        place = self.places.look(path, scope.cwd)
        if place.hidden:
            return [Verdict("never", f"{path} is not available", "path.hidden", "Go on without it.")]
        if place.secret and role != "names":
            return [secret_verdict(path, place.secret)]
        if place.kind == "inside" or str(place.real) in FREE_DEVICES:
            return []
        return [outside_verdict(self.places.shown(place), str(place.real))]

    def _check_revision(self, text: str, scope: Scope) -> list[Verdict]:
        findings: list[Verdict] = []
        for piece in dict.fromkeys((text, text.partition(":")[2])):
            if piece and not piece.startswith((":", "!")):
                findings += self._check_path(piece, "content", scope)
        return findings

    def changer(self, call: Call, *, skip: int = 1) -> list[Verdict]:
        """Judge a command that is asked about, whatever its options are."""
        spec = call.spec
        tier = spec.tier
        if tier == "never":
            return [Verdict("never", f"`{call.name}` {spec.does}", "shell.forbidden", spec.teach)]
        findings = [self.ask(call, spec.does or "is asked about", "shell.changes")]
        if spec.secrets:
            findings += self._secrets(call.arguments[skip:], call.scope)
        findings += self._targets(call, skip)
        findings += self._hidden_rm(call.arguments, call.scope)
        return findings

    def _targets(self, call: Call, skip: int) -> list[Verdict]:
        spec = call.spec
        words = [argument for argument in call.arguments[skip:] if argument.value != "--"]
        if spec.targets == "none":
            return []
        if spec.targets == "last":
            chosen = [argument for argument in words if not _looks_like_option(argument)][-1:]
            chosen += [
                argument for argument in words if (argument.value or "").startswith(("-t", "--target-directory"))
            ]
            chosen += [words[i + 1] for i in range(len(words) - 1) if words[i].value in {"-t", "--target-directory"}]
        else:
            chosen = words
        return [finding for argument in chosen for finding in never(self.written(argument, call.scope))]

    def written(self, argument: Argument, scope: Scope) -> list[Verdict]:
        """Judge a file that a command writes to: what lies in a forbidden place is refused."""
        for candidate in _candidates(argument):
            place = self.places.look(candidate, scope.cwd)
            if place.guarded and (_path_like(candidate, place) or place.kind != "inside"):
                shown = self.places.shown(place)
                return [
                    Verdict(
                        "never", f"{shown} is not written to: {place.guarded}", "path.guarded", "Leave it as it is."
                    )
                ]
        return []

    def _secrets(self, arguments: list[Argument], scope: Scope) -> list[Verdict]:
        """What names a secret in the arguments of a program that may read them."""
        for argument in arguments:
            if argument.unknown is Unknown.SECRET:
                return [Verdict("never", f"`{argument.text}` passes on a key or a password", "secret.variable")]
            for candidate in _candidates(argument):
                place = self.places.look(candidate, scope.cwd)
                if place.secret and _path_like(candidate, place):
                    return [secret_verdict(candidate, place.secret)]
        return []

    def _unknown(self, arguments: list[Argument], prefix: Prefix, scope: Scope) -> list[Verdict]:
        name = arguments[0].value or arguments[0].text
        key, pattern = remembered(arguments, prefix, scope)
        asked = Verdict(
            "ask",
            f"`{name}` is no program that late knows",
            "shell.unknown-command",
            pattern=pattern,
            key=key,
            scopes=REMEMBERED[:2] if key else ONCE,
        )
        return [asked, *self._secrets(arguments[1:], scope), *self._hidden_rm(arguments, scope)]

    def _project_program(self, arguments: list[Argument], prefix: Prefix, scope: Scope) -> Verdict:
        key, pattern = remembered(arguments, prefix, scope)
        return Verdict(
            "ask",
            f"`{arguments[0].value}` is a program of the project, or lies in an unusual place",
            "shell.project-program",
            pattern=pattern,
            key=key,
            scopes=REMEMBERED if key else ONCE,
        )

    def _hidden_rm(self, arguments: list[Argument], scope: Scope) -> list[Verdict]:
        """An `rm` behind a program that may run what follows it."""
        for index, argument in enumerate(arguments[1:], 1):
            if (argument.value or "").rpartition("/")[2].lower() == "rm":
                return never(self.judge(arguments[index:], (), scope))
        return []

    def wrapped(self, call: Call) -> list[Verdict]:
        """Judge a program that runs the command behind its own arguments."""
        spec = call.spec
        parsed = split_arguments(call.arguments[1:], spec, stop_at_operand=True)
        own, inner = parsed.operands[: spec.wraps], parsed.operands[spec.wraps :]
        findings = [*self._oddities(call, Parsed(oddities=parsed.oddities)), *self.values(call, parsed)]
        if any(argument.value is None for argument in own):
            findings.append(Verdict("ask", f"{_ONLY_A_RUN} what `{call.name}` runs", "shell.hidden-command"))
        judged = self.judge(inner, call.prefix, call.scope) if inner else []
        if spec.tier == "auto":
            return [*findings, *judged]
        return [*findings, self.ask(call, spec.does, "shell.wrapper"), *never(judged)]

    def ask(self, call: Call, does: str, rule: str, *, subject: str = "") -> Verdict:
        """A question about this command, with what an approval would cover."""
        key, pattern = (
            ("", "")
            if call.spec.remember == "never"
            else remembered(call.arguments, call.prefix, call.scope, self._free_operands(call))
        )
        return Verdict(
            "ask",
            f"{subject or f'`{call.name}`'} {does}",
            rule,
            call.spec.teach,
            pattern=pattern,
            key=key,
            scopes=SCOPES if key else ONCE,
        )

    def _free_operands(self, call: Call) -> frozenset[int] | None:
        """Positions of arguments that may differ under the same approval: other files of the project."""
        if call.spec.remember != "paths":
            return None
        skip = len(call.name.split())
        parsed = split_arguments(call.arguments[skip:], call.spec)
        if parsed.oddities or parsed.open:
            return None
        free = [operand for operand in parsed.operands if operand.value is not None]
        inside = [self.places.look(operand.value or "", call.scope.cwd).kind == "inside" for operand in free]
        if len(free) != len(parsed.operands) or not all(inside):
            return None
        return frozenset(index for index, argument in enumerate(call.arguments) if any(argument is one for one in free))


def remembered(
    arguments: list[Argument],
    prefix: Prefix,
    scope: Scope,
    free: frozenset[int] | None = None,
) -> tuple[str, str]:
    """Key and pattern of an approval for this command, whatever the arguments at the positions `free` are.

    Both are empty where the command is not known exactly.
    """
    if any(argument.value is None for argument in arguments) or any(value is None for _, value in prefix):
        return "", ""
    words = [f"{name}={shlex.quote(value or '')}" for name, value in prefix]
    words += [
        shlex.quote(argument.value or "") for index, argument in enumerate(arguments) if index not in (free or ())
    ]
    pattern = " ".join(words)
    if "\n" in pattern:
        return "", ""
    open_end = "" if free is None else " …"
    return f"run in {scope.cwd}: {pattern}{open_end}", f"{pattern}{open_end}"


def secret_below(folder: Path, excluded: list[str], only: list[str], *, all_files: bool) -> str:
    """The first secret that reading a whole folder would show, or what keeps late from knowing; empty for none.

    Without `all_files`, the program leaves out what begins with a dot and what `.gitignore` names.
    """
    for looked, base in enumerate(_walk(folder, all_files=all_files)):
        if looked > MAX_LOOKED_AT:
            return "so many files that late does not look for secrets in them" if all_files else ""
        if not secret_name(base) or any(fnmatchcase(base, pattern) for pattern in excluded):
            continue
        if not only or any(fnmatchcase(base, pattern) for pattern in only):
            return base
    return ""


def _values(parsed: Parsed, names: set[str]) -> list[str]:
    given = [value.value for option in parsed.options if option.name in names for value in option.values]
    return [value for value in given if value]


def _walk(folder: Path, *, all_files: bool) -> Iterator[str]:
    if not folder.is_dir():
        return
    for _, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED_FOLDERS and (all_files or name[0] != ".")]
        yield from (name for name in files if all_files or name[0] != ".")


def _candidates(argument: Argument) -> list[str]:
    """What in an argument may be a path: the whole, and what stands behind `=`, `@`, `:` or a short option's letter."""
    text = argument.shape if argument.value is None else argument.value
    found = [text, *re.split(r"[=@:,]", text)]
    if text.startswith("-") and not text.startswith("--"):
        found.append(text[2:])
    return [piece for piece in dict.fromkeys(found) if piece and "\n" not in piece and not piece.startswith("-")]


def _path_like(text: str, place: Place) -> bool:
    return "/" in text or "." in text or "~" in text or place.real.exists()


def _looks_like_option(argument: Argument) -> bool:
    return (argument.value or argument.start).startswith("-") and argument.value != "-"
