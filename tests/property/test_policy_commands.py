"""Quoting, wrapping and chaining must never make a verdict laxer."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from late.policy.shell import parse
from support.policy import STRICTNESS, Bench

DATA = Path(__file__).parents[1] / "data" / "policy" / "commands.jsonl"
ROWS = [json.loads(line) for line in DATA.read_text().splitlines()]
LINES = [
    row["command"]
    for row in ROWS
    if "setup" not in row
    and "auto" not in row["accept"]
    and not any(char in row["command"] for char in "#\n<\0@")
    and not parse(row["command"]).problems
]
WORDS = [words for line in LINES if shlex.join(words := shlex.split(line)) == line]
HARMLESS = ["ls", "git status", "pwd", "cat a.txt", "grep -n x a.txt", "echo 'a; b'", "true"]

AROUND: list[Callable[[str, str], str]] = [
    lambda line, other: f"{other}; {line}",
    lambda line, other: f"{line}; {other}",
    lambda line, other: f"{other} && {line}",
    lambda line, other: f"{other} || {line}",
    lambda line, other: f"{other} | {line}",
    lambda line, other: f"{line} | {other}",
    lambda line, other: f"{other} & {line}",
    lambda line, other: f"{other}\n{line}",
    lambda line, other: f"{other} # a note\n{line}",
    lambda line, other: f"# {other}\n\n  {line}\n",
    lambda line, other: f"( {other}; {line} )",
    lambda line, other: f"{{ {other}; {line}; }}",
    lambda line, other: f"if {other}; then {line}; fi",
    lambda line, other: f"if {line}; then {other}; fi",
    lambda line, other: f"if {other}; then {other}; else {line}; fi",
    lambda line, other: f"for i in 1 2; do {other}; {line}; done",
    lambda line, other: f"while {other}; do {line}; break; done",
    lambda line, other: f"until {line}; do {other}; done",
    lambda line, other: f"case x in a) {other};; *) {line};; esac",
    lambda line, other: f"! {line}",
    lambda line, other: f"echo $( {line} )",
    lambda line, other: f'echo "a $({other}; {line} ) b"',
    lambda line, other: f"cat <( {line} )",
    lambda line, other: f"x=$( {line} )",
    lambda line, other: f'[ -n "$( {line} )" ] && {other}',
    lambda line, other: f"f() {{ {line}; }}; f",
    lambda line, other: f"cat <<EOF\n$( {line} )\nEOF",
    lambda line, other: f"bash -c {shlex.quote(line)}",
    lambda line, other: f"sh -c {shlex.quote(f'{other}; {line}')}",
    lambda line, other: f"eval {shlex.quote(line)}",
]
BEFORE = [
    "env", "command", "exec", "nohup", "nice", "nice -n 5", "time", "timeout 5", "timeout -s KILL 5", "stdbuf -o0",
    "env -i", "env LC_ALL=C", "sudo", "sudo -u root", "setsid", "ionice -c3", "xargs", "xargs -n1", "command env nice",
    "\\command", "/usr/bin/env",
]  # fmt: skip


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        return Bench(home)


def _strictness(bench: Bench, command: str) -> int:
    return STRICTNESS.index(bench.run(command).tier)


_SETTINGS = settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@_SETTINGS
@given(
    line=st.sampled_from(LINES),
    other=st.sampled_from(HARMLESS),
    wraps=st.lists(st.sampled_from(AROUND), min_size=1, max_size=3),
)
def test_no_structure_around_a_command_makes_its_verdict_laxer(
    bench: Bench, line: str, other: str, wraps: list[Callable[[str, str], str]]
) -> None:
    wrapped = line
    for wrap in wraps:
        wrapped = wrap(wrapped, other)
    if parse(wrapped).problems:  # e.g. a heredoc's end with something behind it: no shell runs that
        assert bench.run(wrapped).tier != "auto", wrapped
        return
    assert _strictness(bench, wrapped) >= _strictness(bench, line), wrapped


@_SETTINGS
@given(
    words=st.sampled_from(WORDS),
    before=st.lists(st.sampled_from(BEFORE), min_size=1, max_size=3),
    prefix=st.sampled_from(["", "LC_ALL=C", "FOO=1", ">/dev/null"]),
)
def test_no_program_in_front_of_a_command_makes_its_verdict_laxer(
    bench: Bench, words: list[str], before: list[str], prefix: str
) -> None:
    line = shlex.join(words)
    wrapped = f"{prefix} {' '.join(before)} {line}"
    assert _strictness(bench, wrapped) >= _strictness(bench, line), wrapped


@st.composite
def _quoted(draw: st.DrawFn) -> tuple[list[str], str]:
    words = draw(st.sampled_from(WORDS))
    return words, draw(st.sampled_from([" ", "  ", "\t", " \\\n "])).join(_spelled(draw, word) for word in words)


def _spelled(draw: st.DrawFn, word: str) -> str:
    out: list[str] = []
    rest = word
    while rest:
        size = draw(st.integers(1, len(rest)))
        piece, rest = rest[:size], rest[size:]
        out.append(_spell_piece(draw(st.integers(0, 7)), piece))
    return "".join(out) or "''"


def _spell_piece(way: int, piece: str) -> str:
    match way:
        case 0:
            return shlex.quote(piece)
        case 1:
            return '"' + "".join(f"\\{char}" if char in '"$`\\' else char for char in piece) + '"'
        case 2:
            return "".join(f"\\{char}" for char in piece)
        case 3:
            return "$'" + "".join(f"\\x{ord(char):02x}" if char.isascii() else char for char in piece) + "'"
        case 4:
            return "$'" + "".join(f"\\{ord(char):03o}" if char.isascii() else char for char in piece) + "'"
        case 5:
            return "''" + shlex.quote(piece) + '""'
        case 6:
            return "\\\n" + shlex.quote(piece)
        case _:
            return '$"' + "".join(f"\\{char}" if char in '"$`\\' else char for char in piece) + '"'


@_SETTINGS
@given(_quoted())
@example((["rm", "-rf", "src"], "$'\\x72'm -\"r\"f src"))
@example((["rm", "-rf", "src"], "r\\\nm -r\\\nf src"))
def test_no_spelling_of_its_words_makes_a_verdict_laxer(bench: Bench, case: tuple[list[str], str]) -> None:
    words, spelled = case
    assert _strictness(bench, spelled) >= _strictness(bench, shlex.join(words)), spelled


@_SETTINGS
@given(st.text(alphabet=st.sampled_from("abrmf -\\'\"$(){}[]<>|&;`#!*?~=\n\t.,/@:%+012é\u200b"), max_size=40))
def test_whatever_is_written_gets_a_verdict(bench: Bench, text: str) -> None:
    assert bench.run(text).tier in STRICTNESS
    assert bench.run(f"rm -rf src; {text}").tier in {"ask", "never"}
