"""Symbols in nine languages, the map of a project, and which tests belong to a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from late.errors import ToolError
from late.tools.outline import Outline
from late.workspace import outline
from late.workspace.outline import find_symbol, language_of, parse_errors, symbols, symbols_of, workspace_map
from support.tool_context import run_tool

PYTHON = '''"""Stock."""
import os

LIMIT = 10


# Kept for the old callers.
@final
class Inventory(Base):
    """Things."""

    size: int = 0

    @property
    def total(self) -> int:
        return 1

    @total.setter
    def total(self, value: int) -> None:
        self.value = value

    async def restock(
        self,
        name: str,
        count: int = 1,
    ) -> None:  # adds
        def check() -> None:
            pass


def main():
    def inner():
        pass
'''

SOURCES = {
    "python": (
        PYTHON,
        ["LIMIT", "Inventory", "Inventory.total", "Inventory.total", "Inventory.restock", "main", "main.inner"],
    ),
    "javascript": (
        "/** doc */\nexport default class A { #x() {} get y() { return 1 } }\nconst f = async (a) => {}\n"
        "module.exports.g = function () {}\nA.prototype.h = function () {}\nfunction* k() {}\nconst MAX = 3\n",
        ["A", "A.#x", "A.y", "f", "g", "A.h", "k", "MAX"],
    ),
    "typescript": (
        "interface I { m(): void }\ntype T = string\nenum E { A }\nnamespace N { export function h() {} }\n"
        "abstract class Q<T> { abstract m(): void; n = (x: T) => x }\ndeclare function z(): void\n",
        ["I", "I.m", "T", "E", "N", "N.h", "Q", "Q.m", "Q.n", "z"],
    ),
    "tsx": ("export const App = () => <div>{1}</div>\nfunction B() { return <p/> }\n", ["App", "B"]),
    "go": (
        "package m\n\n// S is\ntype S struct{ a int }\ntype I interface{ M() }\n"
        "func (s *S[T]) Start() error { return nil }\n"
        "func F() {}\nconst (\n\tA = 1\n\tB\n)\nvar C int\n",
        ["S", "I", "I.M", "S.Start", "F", "A", "B", "C"],
    ),
    "rust": (
        "/// doc\n#[derive(Debug)]\npub struct S<T> { a: T }\ntrait Tr { fn m(&self); }\n"
        "impl<T> Tr for S<T> { fn m(&self) {} }\n"
        "mod tests { fn x() {} }\nmacro_rules! mac { () => {} }\nconst A: i32 = 1;\n",
        ["S", "Tr", "Tr.m", "S.m", "tests", "tests.x", "mac", "A"],
    ),
    "java": (
        "package a;\n@X public class A<T> { A() {} @Override public void m(int a) {} "
        "enum E { P } record R(int a) {} }\n"
        "interface J { void z(); }\n",
        ["A", "A.A", "A.m", "A.E", "A.R", "J", "J.z"],
    ),
    "c": (
        "#define M(x) x\n#ifdef Q\nstruct S { int a; };\n#endif\ntypedef struct { int b; } T;\n"
        "static int *f(int a) { return 0; }\nint g(void);\nint n = 1;\n",
        ["M", "S", "T", "f", "g", "n"],
    ),
    "cpp": (
        "namespace n { class A { A(); ~A() {} virtual int v() = 0; int field; }; }\nvoid n::A::m() {}\n"
        "template <class T> T id(T x) { return x; }\nnamespace { void hidden() {} }\n",
        ["n", "n.A", "n.A.A", "n.A.~A", "n.A.v", "n.A.m", "id", "hidden"],
    ),
    "bash": ("#!/bin/bash\nfoo() { :; }\nfunction bar { :; }\nif true; then baz() { :; }; fi\n", ["foo", "bar", "baz"]),
}


@pytest.mark.parametrize("language", SOURCES)
def test_declarations_are_found_with_qualified_names(language: str) -> None:
    text, expected = SOURCES[language]
    assert [symbol.name for symbol in symbols_of(text, language)] == expected
    assert parse_errors(text, language) == []


def test_lines_include_what_belongs_to_a_declaration() -> None:
    found = {symbol.name: symbol for symbol in symbols_of(PYTHON, "python")}
    lines = PYTHON.split("\n")
    assert lines[found["Inventory"].start_line - 1] == "# Kept for the old callers."
    assert lines[found["Inventory.restock"].end_line - 1].strip() == "pass"
    assert found["Inventory.restock"].signature == "async def restock( self, name: str, count: int = 1, ) -> None"
    assert found["Inventory"].signature == "class Inventory(Base)"
    assert found["Inventory.restock"].kind == "method"


def test_comments_and_attributes_above_belong_to_it_in_every_language() -> None:
    rust, go = symbols_of(SOURCES["rust"][0], "rust")[0], symbols_of(SOURCES["go"][0], "go")[0]
    assert (rust.start_line, rust.end_line) == (1, 3)
    assert (go.start_line, go.end_line) == (3, 4)
    assert symbols_of(SOURCES["bash"][0], "bash")[0].start_line == 2, "the first line names the shell"
    assert symbols_of("x = 1  # of x\ndef f(): pass\n", "python")[1].start_line == 2


@pytest.mark.parametrize(
    ("path", "language"),
    [("a/b.py", "python"), ("x.TSX", "tsx"), ("m.mjs", "javascript"), ("h.hpp", "cpp"), ("a.md", None), ("py", None)],
)
def test_the_language_comes_from_the_name(path: str, language: str | None) -> None:
    assert language_of(path) == language


def test_a_symbol_is_found_by_its_name_or_a_part_that_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "stock.py"
    path.write_text(PYTHON)
    for name in ("Inventory.restock", "restock", "restock()", "Inventory::restock", "Inventory#restock"):
        found = find_symbol(path, name)
        assert found is not None
        assert found.name == "Inventory.restock"
    total = find_symbol(path, "total")
    assert total is not None
    assert PYTHON.split("\n")[total.start_line - 1 : total.end_line] == PYTHON.split("\n")[13:20]
    assert find_symbol(path, "nothing") is None
    assert find_symbol(path, "") is None


def test_a_name_that_fits_several_is_no_symbol(tmp_path: Path) -> None:
    path = tmp_path / "two.py"
    path.write_text("class A:\n  def run(self): pass\nclass B:\n  def run(self): pass\n")
    assert find_symbol(path, "run") is None
    found = find_symbol(path, "B.run")
    assert found is not None
    assert found.start_line == 4


@pytest.mark.parametrize(
    ("text", "language", "line"),
    [
        ("def f():\n    x = (1\n", "python", 2),
        ("def ok(): pass\ndef f(:\n  pass\n", "python", 2),
        ("function f() {\n  return 1\n", "javascript", 2),
        ("package m\nfunc F( {\n}\n", "go", 2),
    ],
)
def test_broken_code_says_where_and_keeps_its_symbols(text: str, language: str, line: int) -> None:
    errors = parse_errors(text, language)
    assert errors
    assert errors[0][0] <= line + 1
    assert all(said for _, said in errors)


@given(st.sampled_from(sorted(SOURCES)), st.integers(0, 600), st.integers(0, 600), st.text(max_size=5))
@settings(max_examples=150, deadline=None)
def test_nothing_that_is_broken_raises(language: str, start: int, end: int, inserted: str) -> None:
    text = SOURCES[language][0]
    broken = text[:start] + inserted + text[end:]
    lines = broken.count("\n") + 1
    for symbol in symbols_of(broken, language):
        assert 1 <= symbol.start_line <= symbol.end_line <= lines
        assert symbol.name
    parse_errors(broken, language)


def test_deep_nesting_and_huge_files_do_no_harm(tmp_path: Path) -> None:
    assert symbols_of("(" * 50_000, "python") == []
    deep = "".join("  " * level + f"class C{level}:\n" for level in range(300)) + "  " * 300 + "pass\n"
    assert len(symbols_of(deep, "python")) == 300
    huge = tmp_path / "huge.py"
    huge.write_text("def f(): pass\n" * 200_000)
    assert symbols(huge) == []


def test_the_map_shows_paths_with_their_symbols(tmp_path: Path) -> None:
    (tmp_path / "stock.py").write_text(PYTHON)
    (tmp_path / "README.md").write_text("# x")
    (tmp_path / "consts.py").write_text("A = 1\nB = 2\n")
    files = ["stock.py", "README.md", "consts.py", "gone.py"]
    expected = "README.md\nconsts.py: A, B\ngone.py\nstock.py: Inventory, main"
    assert workspace_map(files, tmp_path, 2_000) == expected
    assert workspace_map(files[::-1], tmp_path, 2_000) == expected
    assert workspace_map([], tmp_path, 2_000) == ""


@given(st.integers(20, 3_000), st.integers(1, 120))
@settings(max_examples=60, deadline=None)
def test_the_map_never_exceeds_its_cap(cap: int, count: int) -> None:
    files = [f"pkg{number % 7}/sub{number % 3}/module_{number}.py" for number in range(count)]
    text = workspace_map(files, Path("/nonexistent"), cap)
    assert len(text) <= cap
    assert workspace_map(files, Path("/nonexistent"), cap) == text


def test_a_map_that_is_cut_counts_what_it_leaves_out(tmp_path: Path) -> None:
    files = [f"src/module_{number:03}.py" for number in range(100)] + ["README.md"]
    text = workspace_map(files, tmp_path, 300)
    assert text.startswith("README.md\n")
    shown = text.count("module_")
    assert f"src/… {100 - shown} more" in text


def write(root: Path, files: dict[str, str]) -> list[str]:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return list(files)


def test_python_tests_are_found_by_what_they_import(tmp_path: Path) -> None:
    files = write(
        tmp_path,
        {
            "src/shop/__init__.py": "",
            "src/shop/cart.py": "",
            "src/shop/tax/__init__.py": "",
            "tests/test_a.py": "from shop.cart import Cart\n",
            "tests/test_b.py": "import shop.cart as c\n",
            "tests/test_c.py": "from shop import cart, other\n",
            "tests/test_d.py": "import cart\n",
            "tests/test_e.py": "from shop.tax import rate\n",
            "tests/test_broken.py": "from shop.cart import Cart\ndef f(:\n",
            "tests/test_cart.py": "",
            "tests/helpers.py": "import shop.cart\n",
        },
    )
    tests = ["a", "b", "broken", "c", "cart"]
    assert outline.test_files_for("src/shop/cart.py", files, tmp_path) == [f"tests/test_{name}.py" for name in tests]
    assert outline.test_files_for("src/shop/tax/__init__.py", files, tmp_path) == ["tests/test_e.py"]
    assert outline.test_files_for("tests/test_a.py", files, tmp_path) == ["tests/test_a.py"]


def test_relative_imports_of_a_test_in_the_package_count(tmp_path: Path) -> None:
    files = write(
        tmp_path, {"shop/__init__.py": "", "shop/cart.py": "", "shop/tests/test_x.py": "from ..cart import Cart\n"}
    )
    assert outline.test_files_for("shop/cart.py", files, tmp_path) == ["shop/tests/test_x.py"]


@pytest.mark.parametrize(
    ("changed", "test"),
    [
        ("src/cart.ts", "src/cart.test.ts"),
        ("src/cart.tsx", "src/__tests__/cart.tsx"),
        ("src/cart.js", "test/cart.spec.js"),
        ("pkg/cart.go", "pkg/cart_test.go"),
        ("pkg/cart.go", "pkg/all_test.go"),
        ("src/main/java/a/Cart.java", "src/test/java/a/CartTest.java"),
        ("src/cart.rs", "tests/cart.rs"),
        ("src/cart.cc", "src/cart_unittest.cc"),
        ("lib/cart.sh", "test/cart.bats"),
        ("src/cart/index.ts", "src/cart.test.ts"),
    ],
)
def test_other_tests_are_found_by_their_names(tmp_path: Path, changed: str, test: str) -> None:
    files = [changed, test, "src/other.test.ts", "docs/cart.md", "other/other_test.go"]
    assert outline.test_files_for(changed, files, tmp_path) == [test]


async def test_the_tool_lists_a_file_with_line_ranges(tmp_path: Path) -> None:
    (tmp_path / "stock.py").write_text(PYTHON)
    result = await run_tool(Outline(), tmp_path, path="stock.py")
    assert result.content.split("\n")[:3] == ["stock.py", "4 LIMIT = 10", "7-28 class Inventory(Base)"]
    assert "14-16   def total(self) -> int" in result.content


async def test_the_tool_lists_a_folder_and_bounds_each_file(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("build/\n")
    write(
        tmp_path,
        {"a.py": "".join(f"def f{n}(): pass\n" for n in range(50)), "b/c.go": SOURCES["go"][0], "build/x.py": ""},
    )
    result = await run_tool(Outline(), tmp_path, cap_chars=600, path=".")
    shown = result.content.count("def f")
    assert f"  … {50 - shown} more" in result.content
    assert "func (s *S[T]) Start() error" in result.content
    assert "build" not in result.content
    tiny = await run_tool(Outline(), tmp_path, cap_chars=95, path=".")
    assert "a.py (50 symbols)" in tiny.content


async def test_the_tool_says_why_there_is_no_outline(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# x")
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(ToolError, match="no language") as error:
        await run_tool(Outline(), tmp_path, path="README.md")
    assert "read_file" in error.value.hint
    assert "declares nothing" in (await run_tool(Outline(), tmp_path, path="empty.py")).content
    (tmp_path / "empty.py").unlink()
    with pytest.raises(ToolError, match="no code file"):
        await run_tool(Outline(), tmp_path, path=".")
