"""What a coder hears about a change at once."""

from __future__ import annotations

import time

import pytest

from late.workspace.review import review_edit

GOOD = """\
import os


class Cart:
    def total(self):
        return os.name

    def empty(self):
        pass


def main():
    return Cart()
"""


@pytest.mark.parametrize(
    ("path", "before", "after", "facts"),
    [
        ("a.py", GOOD, GOOD.replace("return os.name", "return os.sep"), []),
        ("a.py", None, GOOD, []),
        ("a.py", GOOD, GOOD.replace("total(self):", "total(self)"), ["line 5", "expected ':'", "`def total(self)`"]),
        ("a.py", GOOD, GOOD.replace("        pass\n", "pass\n"), ["line 9", "indented block"]),
        ("a.py", GOOD, GOOD.replace("        return os.name", "        return os.name\n      x = 1"), ["unindent"]),
        ("a.py", None, "print 'x'\n", ["Missing parentheses"]),
        ("a.ts", "function f(): void { g() }\n", "function f(: void { g() }\n", ["syntax error at line 1"]),
        ("a.js", "const a = [1, 2];\n", "const a = [1, 2;\n", ["syntax error at line 1"]),
        ("a.go", "package a\n\nfunc f() {\n}\n", "package a\n\nfunc f() {\n", ["syntax error"]),
        ("a.rs", "fn f() -> u8 { 1 }\n", "fn f() -> u8 { 1 \n", ["syntax error"]),
        ("A.java", "class A { void f() {} }\n", "class A { void f() { }\n", ["syntax error"]),
        ("a.c", "int f(void) { return 1; }\n", "int f(void) { return 1; \n", ["syntax error"]),
        ("a.sh", "if true; then\n  echo a\nfi\n", "if true; then\n  echo a\n", ["syntax error"]),
        ("a.json", '{"a": 1}\n', '{"a": 1,}\n', ["not valid JSON", "line 1"]),
        ("a.toml", "a = 1\n", "a = \n", ["not valid TOML"]),
        ("tsconfig.json", "{}\n", "{ // why\n}\n", []),
        ("notes.md", "# a (\n", "# b ((\n", []),
    ],
)  # fmt: skip
def test_new_syntax_errors_are_told(path: str, before: str | None, after: str, facts: list[str]) -> None:
    told = review_edit(path, before, after)
    assert bool(told) == bool(facts)
    for fact in facts:
        assert fact in told[0]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(:\n    pass\n", "def f(:\n    return 1\n"),
        ("print 'x'\n", "print 'y'\n"),
        ("x = 1\n", "type X = int\n"),
        ("x = 1\n", "def f[T](a: T) -> T:\n    return a\n"),
        ("x = '\\d'\n", "x = '\\d\\w'\n"),
    ],
)
def test_old_errors_newer_syntax_and_warnings_are_not_told(before: str, after: str) -> None:
    assert review_edit("a.py", before, after) == []


def test_names_that_became_undefined_are_told_with_their_lines() -> None:
    assert review_edit("a.py", GOOD, GOOD.replace("import os\n", "")) == ["undefined name at line 5: os"]
    assert review_edit("a.py", "a = b\n", "a = b\nc = d\n") == ["undefined name at line 2: d"]
    assert review_edit("a.py", "a = b\n", "c = 1\na = b\n") == []
    assert review_edit("a.py", None, "print(nope, len, __file__)\n") == ["undefined name at line 1: nope"]
    assert review_edit("a.py", GOOD, "from os import *\n" + GOOD.replace("os.name", "name")) == []


def test_definitions_that_vanished_are_named() -> None:
    assert review_edit("a.py", GOOD, GOOD.split("    def empty")[0] + "\n\ndef main():\n    return Cart()\n") == [
        "removed: Cart.empty"
    ]
    assert review_edit("a.py", GOOD, "def main():\n    return 1\n") == ["removed: Cart"]
    assert review_edit("a.py", GOOD, "") == ["removed: Cart, main"]
    assert review_edit("a.py", "def f():\n    def g():\n        pass\n    g()\n", "def f():\n    pass\n") == []
    assert review_edit("a.ts", "export class A { b() {} c() {} }\n", "export class A { c() {} }\n") == ["removed: A.b"]
    assert review_edit("a.go", "package a\n\nfunc F() {}\n\nfunc G() {}\n", "package a\n\nfunc G() {}\n") == [
        "removed: F"
    ]


def test_a_list_of_what_vanished_ends_somewhere() -> None:
    before = "".join(f"def f{number}():\n    pass\n" for number in range(50))
    (fact,) = review_edit("a.py", before, "x = 1\n")
    assert fact.startswith("removed: f0, f1, ")
    assert fact.endswith("f19, …")


@pytest.mark.parametrize(
    "after",
    [
        "\0",
        "\udc80\ud800",
        "(" * 100_000,
        "[" * 5_000 + "]" * 5_000,
        "x = " + "-" * 20_000 + "1",
        "\ufeffx = 1\n",
        "if x:\r\n\ty\r\n",
        "a" * 3_000_000,
    ],
    ids=["nul", "surrogates", "open", "nested", "minus", "mark", "tabs", "long"],
)
@pytest.mark.parametrize("path", ["a.py", "a.ts", "a.json", "a.toml", "a.sh", "odd\udc80.c", ""])
def test_odd_input_is_no_error_and_takes_no_time(path: str, after: str) -> None:
    start = time.monotonic()
    for before in (None, "", "x = 1\n", after + "\n"):
        for fact in review_edit(path, before, after):
            fact.encode("utf-8")
            assert len(fact) < 500
    assert time.monotonic() - start < 5
