from __future__ import annotations

import pytest

from late.policy.languages import awk_is_plain, jq_is_plain, read_sed
from late.policy.shell import Background, Command, Either, ForEach, Pipeline, Redirected, Subshell, parse
from late.policy.words import Substitution, Text, Variable


def _only(source: str) -> object:
    script = parse(source)
    assert script.problems == ()
    assert len(script.body.items) == 1
    return script.body.items[0]


def _texts(source: str) -> list[str]:
    command = _only(source)
    assert isinstance(command, Command)
    return ["".join(part.text for part in word.parts if isinstance(part, Text)) for word in command.words]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("ls -la", ["ls", "-la"]),
        ("r'm' -\"r\"f $'\\x73rc'", ["rm", "-rf", "src"]),
        ("r\\\nm -r\\\nf", ["rm", "-rf"]),
        ('echo "a \\$b" \'c\'"d" e\\ f', ["echo", "a $b", "cd", "e f"]),
        ("touch$'\\t'pwn", ["touch\tpwn"]),
        ("echo a#b # c", ["echo", "a#b"]),
        ("echo $\"hi\" ''", ["echo", "hi", ""]),
        ("echo { a }", ["echo", "{", "a", "}"]),
        ("echo if then", ["echo", "if", "then"]),
    ],
)
def test_words_are_read_as_bash_reads_them(source: str, words: list[str]) -> None:
    assert _texts(source) == words


def test_a_command_has_its_assignments_and_redirects_apart() -> None:
    command = _only("A=1 B+=$x >out cmd 2>&1 arg <<< text")
    assert isinstance(command, Command)
    assert [(each.name, each.append) for each in command.assignments] == [("A", False), ("B", True)]
    assert [word.text for word in command.words] == ["cmd", "arg"]
    assert [(each.descriptor, each.operator, each.target.text) for each in command.redirects] == [
        ("", ">", "out"),
        ("2", ">&", "1"),
        ("", "<<<", "text"),
    ]


def test_structure_is_kept() -> None:
    assert isinstance(_only("a | b | c"), Pipeline)
    assert isinstance(_only("a && b || c"), Either)
    assert isinstance(_only("(a; b)"), Subshell)
    assert isinstance(_only("a &"), Background)
    loop = _only("for f in x y; do a; done < in")
    assert isinstance(loop, Redirected)
    assert isinstance(loop.body, ForEach)
    assert [word.text for word in loop.body.words or ()] == ["x", "y"]


def test_expansions_are_found_wherever_they_stand() -> None:
    command = _only('echo "a $(one "two") ${x:-$(three)} `four`" <(five)')
    assert isinstance(command, Command)
    kinds = [type(part) for word in command.words for part in word.parts]
    assert kinds.count(Substitution) == 3
    assert kinds.count(Variable) == 1


def test_a_heredoc_belongs_to_its_command_and_the_next_line_does_not() -> None:
    script = parse("cat <<'A' - <<B | wc\n$(one)\nA\n$(two)\nB\nrm x")
    assert script.problems == ()
    pipeline, command = script.body.items
    assert isinstance(pipeline, Pipeline)
    assert isinstance(command, Command)
    assert [word.text for word in command.words] == ["rm", "x"]
    cat = pipeline.items[0]
    assert isinstance(cat, Command)
    quoted, open_ = (redirect.target for redirect in cat.redirects)
    assert quoted.parts == (Text("$(one)\n", quoted=True),)
    assert isinstance(open_.parts[0], Substitution)


@pytest.mark.parametrize(
    "source",
    [
        "echo 'open", 'echo "open', "echo $(open", "echo `open", "if true; then ls", "cat <<EOF\nnever ends", "ls;;",
        "ls ) x",
        "a=(1 2", "echo ${x", "ls\0", "echo $\\\n(a)", "[[ a =~ (b|c) ]]", "for ((i=0;i<2;i++)); do ls; done", "ls &&",
        "| ls", "ls\u200b", "ls\u00a0-la", "ls \rx", "$" + "(" * 300, "{ " * 200 + "ls" + "; }" * 200, "x" * 30_000,
        "cat <<E\na\\\nE\nE",
    ],
)  # fmt: skip
def test_what_cannot_be_read_with_certainty_is_a_problem(source: str) -> None:
    assert parse(source).problems


def test_what_must_not_run_is_seen_in_a_line_that_cannot_be_read() -> None:
    script = parse("rm -rf src; echo 'open")
    assert any(isinstance(item, Command) and item.text == "rm -rf src" for item in script.body.items)


@pytest.mark.parametrize("source", ["", "  \n", "# a note", "\n# a note\n"])
def test_nothing_is_nothing(source: str) -> None:
    script = parse(source)
    assert (script.body.items, script.problems) == ((), ())


def test_a_long_list_is_read_as_well_as_a_short_one() -> None:
    command = _only(" && ".join(["true"] * 1500))
    assert isinstance(command, Either)
    assert len(command.rest) == 1499


@pytest.mark.parametrize(
    "script",
    [
        "1,5p", "$p", "/a/,/b/p", "/a\\/b/!d", "s/a/b/gI", "s|a|b|2", "1,3p;5q", "y/ab/cd/", "/x/{p;d}", "$!N;P;D",
        "1~2p", "5,+2p", "=", "s/[^x]*//", "\\,x,p", "# note\np",
    ],
)  # fmt: skip
def test_sed_scripts_that_only_print_are_known(script: str) -> None:
    assert read_sed(script).plain


@pytest.mark.parametrize(
    "script",
    [
        "w out", "s/a/b/w out", "s/a/b/e", "e cmds", "1e cmds", "r file", "R file", "W out", "1r /etc/hostname",
        "s/a/b/;w out", "s/a/b/\nw out", "/x/w out", "{w out\n}", "a text", "s/a/b", "b end", "F", "v", "p w",
        "y/a/b/w out", "1!w out", "$!{w x\n}",
    ],
)  # fmt: skip
def test_sed_scripts_that_do_more_are_not(script: str) -> None:
    assert not read_sed(script).plain


def test_the_file_that_a_sed_script_writes_is_named() -> None:
    assert read_sed("s/a/b/w /etc/x").files == ("/etc/x",)


@pytest.mark.parametrize(
    "program",
    [
        "{print $1}",
        "NR>=10 && NR<=20",
        "$1 > 5",
        "{ if ($1 > 5) print }",
        '{print $1" | "$2}',
        "/a/ || /b/",
        "END{print NR}",
    ],
)
def test_awk_programs_that_only_print_are_known(program: str) -> None:
    assert awk_is_plain(program)


@pytest.mark.parametrize(
    "program",
    [
        '{print > "out"}', '{print ($1) >> "out"}', '{print | "sh"}', 'BEGIN{system("x")}', '"x" | getline',
        "{print ENVIRON[1]}",
        '@load "x"', '/"/ {print > "f"} /"/', '{ # (\nprint > "f"\n# )\n}', '{printf("x") > "f"}',
        'BEGIN{while((getline l < "f")>0) print l}',
        'BEGIN{ARGV[1]="x"}', '(\n{print > "f"}', '/(/{print > "f"}/)/',
    ],
)  # fmt: skip
def test_awk_programs_that_do_more_are_not(program: str) -> None:
    assert not awk_is_plain(program)


def test_jq_filters_may_not_look_at_the_environment() -> None:
    assert jq_is_plain(".scripts | keys[]")
    assert not any(map(jq_is_plain, ["$ENV.KEY", "env.KEY", 'import "a" as a; .', "input_filename"]))
