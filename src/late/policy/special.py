"""Rules for programs that a table of options cannot describe: little languages, wrappers, and git's subjudge."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from late.policy.arguments import Parsed, split_arguments
from late.policy.environment import is_harmless_prefix
from late.policy.expand import Argument, Unknown
from late.policy.judging import Call, Judge
from late.policy.languages import awk_is_plain, jq_is_plain, read_sed
from late.policy.table import Spec, lookup
from late.policy.verdicts import Verdict, never

Handler = Callable[[Judge, Call], list[Verdict]]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_BASH_ENVIRONMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(%%)?=|BASH_FUNC_.*")
_TOKENS: Final = re.compile(
    r"\bauth (token|print|status .*--?(show-token|t)\b)|show-token|print-(access|identity)-token|get-access-token"
    r"|export-secret|\bsecrets? (view|get|show|access|read|list-values)|\bget secrets?\b"
    r"|find-(generic|internet)-password"
    r"|\bconfig (view .*--raw|get-contexts .*--raw)|\bconfigure (get|export-credentials)|\blogin .*--show"
)


def echo(judge: Judge, call: Call) -> list[Verdict]:
    """All arguments are text."""
    return [finding for argument in call.arguments[1:] for finding in judge.check(argument, "text", call.scope)]


def printf(judge: Judge, call: Call) -> list[Verdict]:
    """As `echo`, but `-v` assigns to a variable, whose subscript is evaluated."""
    first = call.arguments[1] if len(call.arguments) > 1 else None
    text = "" if first is None else first.start if first.value is None else first.value
    findings = echo(judge, call)
    if first is not None and (text.startswith("-v") or (first.value is None and not text)):
        findings.append(Verdict("ask", "`printf -v` sets a variable", "shell.environment"))
    return findings


def test(judge: Judge, call: Call) -> list[Verdict]:
    """`[ … ]`: `-v` evaluates a subscript, and an unknown argument may become one."""
    words = call.arguments[1:]
    if call.arguments[0].value == "[":
        if not words or words[-1].value != "]":
            return [Verdict("ask", "the [ is not closed", "shell.unreadable")]
        words = words[:-1]
    if any(argument.value in {"-v", "-R"} for argument in words):
        return [Verdict("ask", "bash evaluates what stands behind -v as code", "shell.arithmetic")]
    findings = [finding for argument in words for finding in judge.check(argument, "text", call.scope)]
    if not _safe_test(words):
        findings.append(Verdict("ask", "only a run can tell what is tested", "shell.expansion"))
    for argument in words:
        if argument.value is not None and "/" in argument.value:
            findings += [found for found in judge.check(argument, "names", call.scope) if found.tier == "ask"]
    return findings


def _safe_test(words: list[Argument]) -> bool:
    while words and words[0].value == "!":
        words = words[1:]
    known = [argument.value for argument in words]
    if any(argument.value is None and argument.many for argument in words):
        return False
    match known:
        case [_] | [str(), _] | [_, str(), _]:
            return True
        case _:
            return None not in known


def read(judge: Judge, call: Call) -> list[Verdict]:
    """Sets variables from its input; their names must be plain, because a subscript is evaluated."""
    parsed = split_arguments(call.arguments[1:], call.spec)
    findings = judge.reader(call, parsed)
    for operand in parsed.operands:
        if operand.value is None or not _NAME.fullmatch(operand.value):
            findings.append(Verdict("ask", f"`read {operand.text}` may evaluate code", "shell.arithmetic"))
        else:
            call.scope.values[operand.value] = Unknown.DATA
            if not operand.value.islower():
                findings.append(
                    Verdict("ask", f"setting {operand.value} can change later commands", "shell.environment")
                )
    return findings


def set_options(judge: Judge, call: Call) -> list[Verdict]:
    """`set -euo pipefail` and its like; anything else shows the environment or changes more."""
    words = [argument.value for argument in call.arguments[1:]]
    harmless = {"-e", "-u", "-f", "-eu", "-ue", "+e", "+u"}
    names = {"pipefail", "errexit", "nounset", "noglob"}
    plain = [word for word in words if word not in harmless]
    takes_name = {"-o", "+o", "-eo", "-uo", "-euo", "-ueo"}
    pairs = list(zip(plain[::2], plain[1::2], strict=False))
    if words and len(plain) % 2 == 0 and all(flag in takes_name and name in names for flag, name in pairs):
        return []
    return [judge.ask(call, "shows the shell's variables or changes how it works", "shell.environment")]


def date(judge: Judge, call: Call) -> list[Verdict]:
    """Without `+` an operand sets the clock."""
    parsed = split_arguments(call.arguments[1:], call.spec)
    findings = judge.reader(call, parsed)
    if any(not (operand.value or operand.start).startswith("+") for operand in parsed.operands):
        findings.append(judge.ask(call, "sets the clock when it is given a time", "shell.writes"))
    return findings


def cd(judge: Judge, call: Call) -> list[Verdict]:
    """Refused in any form."""
    return judge.changer(call)


def evaluate(judge: Judge, call: Call) -> list[Verdict]:
    """`eval` and `trap`: text that is a script."""
    words = call.arguments[1:]
    while words and (words[0].value or "").startswith("-"):
        words = words[1:]
    if call.name == "trap":
        words = words[:1]
    findings = [judge.ask(call, call.spec.does, "shell.eval")]
    known = [argument.value for argument in words if argument.value is not None]
    return findings + never(judge.scripts.judge_script(" ".join(known), call.scope.copy()))


def declare(judge: Judge, call: Call) -> list[Verdict]:
    """Builtins that change the shell; what they set is not known afterwards."""
    for argument in call.arguments[1:]:
        name = _NAME.match(argument.value or "")
        if name:
            call.scope.values[name[0]] = Unknown.ENVIRONMENT
    return judge.changer(call)


def printenv(judge: Judge, call: Call) -> list[Verdict]:
    """Asked about, and refused where the name says that the value is a secret."""
    findings = judge.changer(call)
    for argument in call.arguments[1:]:
        if argument.value and call.scope.lookup(argument.value) is Unknown.SECRET:
            findings.append(Verdict("never", f"{argument.value} is a key or a password", "secret.variable"))
    return findings


def command(judge: Judge, call: Call) -> list[Verdict]:
    """`command -v name` only looks a name up."""
    parsed = split_arguments(call.arguments[1:], call.spec, stop_at_operand=True)
    if parsed.has(frozenset({"-v", "-V"})) and not parsed.oddities:
        return [finding for operand in parsed.operands for finding in judge.check(operand, "text", call.scope)]
    return judge.wrapped(call)


def env(judge: Judge, call: Call) -> list[Verdict]:
    """`env NAME=value … command`."""
    parsed = split_arguments(call.arguments[1:], call.spec, stop_at_operand=True)
    findings: list[Verdict] = []
    for oddity in parsed.oddities:
        findings.append(Verdict("ask", f"`env {oddity.name}` runs a command in another way", "shell.wrapper"))
        if oddity.name in {"-S", "--split-string"}:
            text = " ".join(value.value or "" for value in [*oddity.values, *parsed.operands])
            findings += never(judge.scripts.judge_script(text, call.scope.copy()))
    words = parsed.operands
    prefix = list(call.prefix)
    while words and _is_environment(words[0]):
        name, _, value = (words[0].value or words[0].start).partition("=")
        prefix.append((name, value if words[0].value is not None else None))
        findings += _environment(name, value if words[0].value is not None else None)
        words = words[1:]
    if not words:
        return [*findings, judge.ask(call, call.spec.does, "shell.environment")]
    return findings + judge.judge(words, tuple(prefix), call.scope)


def _is_environment(argument: Argument) -> bool:
    return bool(_BASH_ENVIRONMENT.match(argument.value or argument.start))


def _environment(name: str, value: str | None) -> list[Verdict]:
    if value is not None and is_harmless_prefix(name, value):
        return []
    return [Verdict("ask", f"setting {name} can change what the command does", "shell.environment")]


def xargs(judge: Judge, call: Call) -> list[Verdict]:
    """What it adds to the command is known to a run only, so it is asked about; what must not run is refused."""
    parsed = split_arguments(call.arguments[1:], call.spec, stop_at_operand=True)
    findings = [judge.ask(call, call.spec.does, "shell.wrapper")]
    findings += [Verdict("ask", f"`xargs {odd.name}` is not known", "shell.unknown-option") for odd in parsed.oddities]
    findings += never(judge.values(call, parsed))
    if parsed.operands:
        added = Argument("…", None, Unknown.DATA, many=True)
        findings += never(judge.judge([*parsed.operands, added], (), call.scope))
        findings += never(judge.judge(parsed.operands, (), call.scope))
    return findings


def shell(judge: Judge, call: Call) -> list[Verdict]:
    """`bash -c 'script'` is what the script is; any other way to start a shell is asked about."""
    words = call.arguments[1:]
    plain = len(words) > 1 and words[0].value == "-c" and words[1].value is not None
    if plain and not call.prefix:
        return judge.scripts.judge_script(words[1].value or "", call.scope.copy())
    findings = judge.changer(call)
    for flag, script in itertools.pairwise(words):
        if re.fullmatch(r"-[a-z]*c", flag.value or "") and script.value is not None:
            findings += never(judge.scripts.judge_script(script.value, call.scope.copy()))
    return findings


def python(judge: Judge, call: Call) -> list[Verdict]:
    """`python -m tool` is judged as the tool: what an approval covers is the tool's to say."""
    words = call.arguments[1:]
    spec = lookup(words[1].value or "") if len(words) > 1 and words[0].value == "-m" else None
    if spec is None or spec.tier != "ask":
        return judge.changer(call)
    return judge.plain(replace(call, spec=spec, name=f"{call.name} -m {words[1].value}"), skip=3)


def script_arguments(judge: Judge, call: Call) -> list[Verdict]:
    """Programs that run text; each argument is looked through for what must not run."""
    findings = judge.changer(call)
    for argument in call.arguments[1:]:
        if argument.value and " " in argument.value:
            findings += never(judge.scripts.judge_script(argument.value, call.scope.copy()))
    return findings


def suffixes(judge: Judge, call: Call) -> list[Verdict]:
    """Programs that run what follows, behind arguments of their own that are not looked at."""
    findings = judge.changer(call)
    for index, argument in enumerate(call.arguments[1:], 1):
        if lookup((argument.value or "").rpartition("/")[2]) is not None:
            findings += never(judge.judge(call.arguments[index:], (), call.scope))
            break
    return findings


def tokens(judge: Judge, call: Call) -> list[Verdict]:
    """Programs with a subcommand that shows a key."""
    findings = judge.changer(call)
    line = " ".join(argument.value or "" for argument in call.arguments)
    if _TOKENS.search(line):
        findings.append(Verdict("never", f"`{call.name}` would show a key or a password", "secret.token"))
    return findings


def rm(judge: Judge, call: Call) -> list[Verdict]:
    """`rm` with both recursive and force is refused, however it is spelled."""
    recursive = force = False
    for argument in call.arguments[1:]:
        text = argument.start if argument.value is None else argument.value
        if text == "--":
            break
        if text.startswith("--"):
            recursive = recursive or (len(text) > 3 and "--recursive".startswith(text))
            force = force or (len(text) > 2 and "--force".startswith(text))
        elif text.startswith("-"):
            recursive = recursive or "r" in text.lower()
            force = force or "f" in text
    findings = judge.changer(call)
    if recursive and force:
        reason = "`rm` with -r and -f deletes whole folders without a question"
        teaching = "Leave the files, or say in your report which ones are in the way."
        findings.append(Verdict("never", reason, "shell.rm-rf", teaching))
    return findings


def tee(judge: Judge, call: Call) -> list[Verdict]:
    """Only its copies to the terminal's own streams are no files."""
    parsed = split_arguments(call.arguments[1:], call.spec)
    targets = [judge.places.look(operand.value, call.scope.cwd) for operand in parsed.operands if operand.value]
    free = len(targets) == len(parsed.operands) and all(target.kind == "device" for target in targets)
    return [] if free and not parsed.oddities else judge.changer(call)


def tar(judge: Judge, call: Call) -> list[Verdict]:
    """A colon in the archive's name means another machine, reached through a program."""
    parsed = split_arguments(call.arguments[1:], call.spec)
    findings = judge.reader(call, parsed)
    for option in parsed.options:
        if option.name in {"-f", "--file"} and any(":" in (value.value or ":") for value in option.values):
            findings.append(
                Verdict("ask", "an archive whose name has a colon lies on another machine", "shell.network")
            )
    return findings


def sed(judge: Judge, call: Call) -> list[Verdict]:
    """Scripts may print and change what is printed, not read or write files, nor run anything."""
    parsed = split_arguments(call.arguments[1:], call.spec)
    findings = judge.reader(call, parsed)
    for script in _scripts(parsed, call.spec):
        if script.value is None:
            findings.append(Verdict("ask", f"only a run can tell what `{script.text}` does", "shell.expansion"))
            continue
        found = read_sed(script.value)
        if not found.plain:
            findings.append(judge.ask(call, "has a script that is not known to only print", "shell.script"))
        for name in found.files:
            target = Argument(name, name)
            findings += [*judge.written(target, call.scope), *never(judge.check(target, "content", call.scope))]
    return findings


def awk(judge: Judge, call: Call) -> list[Verdict]:
    """Programs may print, not read or write files, nor run anything."""
    return _little_language(judge, call, awk_is_plain)


def jq(judge: Judge, call: Call) -> list[Verdict]:
    """Filters may not look at the environment."""
    return _little_language(judge, call, jq_is_plain)


def _little_language(judge: Judge, call: Call, is_plain: Callable[[str], bool]) -> list[Verdict]:
    parsed = split_arguments(call.arguments[1:], call.spec)
    findings = judge.reader(call, parsed)
    for script in _scripts(parsed, call.spec):
        if script.value is None or not is_plain(script.value):
            findings.append(judge.ask(call, "has a script that is not known to only print", "shell.script"))
    return findings


def _scripts(parsed: Parsed, spec: Spec) -> list[Argument]:
    given = [value for option in parsed.options if option.name in spec.first_from for value in option.values]
    return given or parsed.operands[:1]


_FIND_TESTS: Final = {
    0: """-print -print0 -ls -depth -d -empty -executable -readable -writable -mount -xdev -not -a -and -o -or -true
        -false -prune -quit -daystart -follow -nouser -nogroup -noleaf -ignore_readdir_race -noignore_readdir_race
        ! ( ) ,""",
    1: """-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -maxdepth -mindepth
        -size -mtime -atime -ctime -mmin -amin -cmin -used -user -group -uid -gid -perm -links -inum -lname -ilname
        -fstype -printf""",
}
_FIND_ARITY: Final = {name: count for count, names in _FIND_TESTS.items() for name in names.split()}
_FIND_FILES: Final = re.compile(r"-(newer([aBcm][aBcmt])?|anewer|cnewer|samefile)")
_FIND_RUNS: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_FIND_WRITES: Final = {"-fprint": 1, "-fprint0": 1, "-fls": 1, "-fprintf": 2}


def find(judge: Judge, call: Call) -> list[Verdict]:
    """Start folders, then tests; actions that change or run something are asked about or refused."""
    words = call.arguments[1:]
    while words and words[0].value in {"-H", "-L", "-P"}:
        words = words[1:]
    starts: list[Argument] = []
    while words and not (words[0].value or words[0].start).startswith(("-", "(", "!")):
        starts.append(words.pop(0))
    findings = [finding for start in starts for finding in judge.check(start, "names", call.scope)]
    if any(start.value is None for start in starts):
        findings.append(Verdict("ask", "only a run can tell where `find` looks", "shell.expansion"))
    return findings + _find_expression(judge, call, starts, words)


def _find_expression(judge: Judge, call: Call, starts: list[Argument], words: list[Argument]) -> list[Verdict]:
    findings = [
        Verdict("ask", f"only a run can tell what `{word.text}` becomes", "shell.expansion")
        for word in words
        if word.value is None and word.many
    ]
    changes = False
    while words:
        word = words.pop(0)
        name = word.value or ""
        if word.from_pattern or word.value is None:
            findings.append(Verdict("ask", f"only a run can tell what `{word.text}` becomes", "shell.expansion"))
        elif name in _FIND_ARITY:
            del words[: _FIND_ARITY[name]]
        elif _FIND_FILES.fullmatch(name):
            findings += (
                []
                if name.endswith("t")
                else [found for value in words[:1] for found in judge.check(value, "names", call.scope)]
            )
            del words[:1]
        elif name in _FIND_RUNS:
            changes = True
            findings += _find_run(judge, call, words)
        elif name == "-delete":
            changes = True
            findings.append(judge.ask(call, "deletes what it finds", "shell.deletes", subject="`find -delete`"))
        elif name in _FIND_WRITES:
            findings.append(judge.ask(call, "writes a file", "shell.writes", subject=f"`find {name}`"))
            findings += [found for value in words[:1] for found in judge.written(value, call.scope)]
            del words[: _FIND_WRITES[name]]
        else:
            findings.append(judge.ask(call, "is not known", "shell.unknown-option", subject=f"`find {name}`"))
    if changes:
        findings += [found for start in starts for found in judge.written(start, call.scope)]
    return findings


def _find_run(judge: Judge, call: Call, words: list[Argument]) -> list[Verdict]:
    inner: list[Argument] = []
    while words:
        word = words.pop(0)
        if word.value == ";" or (word.value == "+" and inner and inner[-1].text == "{}"):
            break
        found = "{}" in (word.value or "")
        inner.append(Argument("{}", None, Unknown.FILES, start="./", shape="./0") if found else word)
    asked = judge.ask(call, "runs a command for what it finds", "shell.wrapper", subject="`find -exec`")
    return [
        replace(asked, key="", pattern="", scopes=("once",)),
        *never(judge.judge(inner, (), call.scope) if inner else []),
    ]


_GIT_GLOBAL_VALUES: Final = frozenset(
    {"-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix", "--attr-source"}
)


_GIT_KEY: Final = re.compile(r"(user|core|init|pull|push|branch|remote|merge|diff|color|log|status|format)\.[\w.\-/]+")
_GIT_OUTPUT: Final = re.compile(r"-o.|--(output|output-directory|separate-git-dir)=")


def git(judge: Judge, call: Call) -> list[Verdict]:
    """Options before the subcommand can run programs; the subcommand has an entry of its own."""
    words = call.arguments[1:]
    scope = call.scope
    findings: list[Verdict] = []
    while words and (words[0].value or words[0].start).startswith("-"):
        name, equals, _ = (words[0].value or words[0].start).partition("=")
        if name == "-C" and len(words) > 1 and words[1].value is not None:
            findings += judge.check(words[1], "names", scope)
            scope = replace(scope.copy(), cwd=judge.places.look(words[1].value, scope.cwd).real)
            words = words[2:]
            continue
        if words[0].value is None or name not in call.spec.flags or name == "-C":
            findings.append(Verdict("ask", f"`git {name}` can run programs or reach other places", "git.global-option"))
        words = words[2:] if name in _GIT_GLOBAL_VALUES and not equals else words[1:]
    if not words:
        return findings
    return findings + _git_sub(judge, replace(call, scope=scope), words)


def _git_sub(judge: Judge, call: Call, words: list[Argument]) -> list[Verdict]:
    spec = call.spec
    consumed = len(call.arguments) - len(words)
    name = call.name
    while words and words[0].value in spec.subs:
        spec = spec.subs[words[0].value or ""]
        name = spec.name
        words = words[1:]
        consumed += 1
    if words and spec is call.spec:
        if words[0].value is None:
            return [Verdict("ask", f"only a run can tell what `git {words[0].text}` does", "shell.hidden-command")]
        name = f"git {words[0].value}"
    inner = replace(call, spec=spec, name=name)
    if spec.special == "git-config":
        return _git_config(judge, inner, words)
    if spec.tier == "auto":
        return judge.reader(inner, split_arguments(words, spec))
    findings = [judge.ask(inner, spec.does, "git.changes")]
    outputs = [word for word in words if _GIT_OUTPUT.match(word.value or "")]
    return findings + [found for word in outputs for found in never(judge.written(word, call.scope))]


def _git_config(judge: Judge, call: Call, words: list[Argument]) -> list[Verdict]:
    parsed = split_arguments(words, call.spec)
    keys = [operand.value or "" for operand in parsed.operands]
    if parsed.has(call.spec.needs) and not parsed.oddities:
        return judge.reader(call, parsed)
    if not parsed.oddities and len(keys) == 1 and _GIT_KEY.fullmatch(keys[0]):  # one key without a value is shown
        return []
    findings = [judge.ask(call, call.spec.does, "git.changes")]
    if parsed.has(frozenset({"--global", "--system"})):
        findings.append(Verdict("never", "git's settings outside of the project are the person's", "path.guarded"))
    return findings


HANDLERS: Final[dict[str, Handler]] = {
    "echo": echo, "printf": printf, "test": test, "read": read, "set": set_options, "date": date, "cd": cd,
    "eval": evaluate, "declare": declare, "printenv": printenv, "command": command, "env": env, "xargs": xargs,
    "shell": shell, "python": python, "script-arguments": script_arguments, "suffixes": suffixes, "tokens": tokens,
    "rm": rm, "tee": tee, "tar": tar, "sed": sed, "awk": awk, "jq": jq, "find": find, "git": git,
}  # fmt: skip
