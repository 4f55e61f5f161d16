"""read_file, write_file and target_edit as an agent meets them: each call is previewed and run, as the gate does."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from late.errors import ToolError
from late.tools.base import ToolContext, ToolResult
from late.tools.read_file import ReadFile
from late.tools.registry import Registry, schema_of
from late.tools.target_edit import TargetEdit
from late.tools.write_file import WriteFile
from support.tool_context import context_for


class Agent:
    """One agent's calls, with its stamps."""

    def __init__(self, root: Path, cap_chars: int = 8_000) -> None:
        self.root = root
        self.context = context_for(root, cap_chars=cap_chars)
        self._calls = 0

    def call(self) -> ToolContext:
        self._calls += 1
        return replace(self.context, call_id=f"call_{self._calls}")

    async def run(self, tool: Any, **arguments: Any) -> ToolResult:
        context, args = self.call(), tool.Args(**arguments)
        tool.preview(args, context)
        result = await tool.run(args, context)
        assert len(result.content) <= context.cap_chars
        result.content.encode("utf-8")
        return result

    async def read(self, path: str, **arguments: Any) -> str:
        return (await self.run(ReadFile(), path=path, **arguments)).content

    async def write(self, path: str, content: str) -> str:
        return (await self.run(WriteFile(), path=path, content=content)).content

    async def edit(self, path: str, search: str, new: str) -> str:
        return (await self.run(TargetEdit(), path=path, search=search, replace=new)).content

    async def refused(self, tool: Any, **arguments: Any) -> str:
        """What is said; the call must already fail before a person would be asked."""
        args = tool.Args(**arguments)
        with pytest.raises(ToolError) as error:
            await tool.run(args, self.call())
        with pytest.raises(ToolError):
            tool.preview(args, self.call())
        told = f"{error.value}\n{error.value.hint}"
        told.encode("utf-8")
        return told


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    (tmp_path / "proj").mkdir()
    return Agent(tmp_path / "proj")


SHOP = """\
import os


class Inventory:
    def __init__(self):
        self.items = {}

    def restock(self, name, count):
        self.items[name] = count


class Shop:
    def restock(self):
        return os.name


def main():
    return Shop()
"""


# read_file


async def test_lines_are_numbered_and_empty_ones_are_bare(agent: Agent) -> None:
    (agent.root / "a.py").write_bytes(b"\xef\xbb\xbfone\r\n\r\n  two\r\n")
    assert await agent.read("a.py") == "1| one\n2|\n3|   two"


async def test_a_range_is_clamped_to_the_file(agent: Agent) -> None:
    (agent.root / "a").write_text("1\n2\n3\n4\n")
    assert await agent.read("a", start_line=3, end_line=99) == "3| 3\n4| 4"
    assert await agent.read("a", start_line=-5, end_line=2) == "1| 1\n2| 2\n(a has 4 lines)"
    assert await agent.read("a", end_line=0) == "1| 1\n2| 2\n3| 3\n4| 4"


async def test_lines_beyond_the_file_and_a_range_that_runs_backwards_are_explained(agent: Agent) -> None:
    (agent.root / "a").write_text("1\n2\n")
    with pytest.raises(ToolError, match="a has 2 lines; there is no line 3"):
        await agent.read("a", start_line=3)
    with pytest.raises(ToolError, match="start_line 2 comes after end_line 1"):
        await agent.read("a", start_line=2, end_line=1)


async def test_what_does_not_fit_is_announced_and_can_be_read_on(agent: Agent) -> None:
    lines = [f"line number {number}" for number in range(1, 401)]
    (agent.root / "a.txt").write_text("\n".join(lines) + "\n")
    agent.context.cap_chars = 2_000
    seen: list[str] = []
    start: int | None = None
    for _ in range(20):
        result = await agent.run(ReadFile(), path="a.txt", **({"start_line": start} if start else {}))
        *shown, notice = result.content.split("\n")
        if not notice.startswith("("):
            shown.append(notice)
        seen.extend(line.split("| ", 1)[1] for line in shown)
        if result.details["end"] == 400:
            break
        start = result.details["end"] + 1
        assert notice == f"(lines {start}–400 of 400 not shown: read_file path=a.txt start_line={start})"
    assert seen == lines


async def test_a_range_that_does_not_fit_says_where_it_goes_on(agent: Agent) -> None:
    (agent.root / "a").write_text("x" * 90 + "\n" + ("x" * 90 + "\n") * 99)
    agent.context.cap_chars = 1_000
    text = await agent.read("a", start_line=10, end_line=50)
    assert text.endswith("–50 of 100 not shown: read_file path=a start_line=17 end_line=50)")


async def test_a_line_of_five_megabytes_is_clipped_and_measured(agent: Agent) -> None:
    (agent.root / "a").write_text("before\n" + "x" * 5_000_000 + "\nafter\n")
    text = await agent.read("a")
    assert text.startswith("1| before\n2| xxxxx")
    assert "3| after" in text
    assert text.endswith("x…\n3| after\n(line 2 has 5,000,000 characters, only the first 2,000 are shown)")
    assert "not shown: read_file" not in text


async def test_three_million_lines_are_no_problem(agent: Agent) -> None:
    (agent.root / "a").write_text("\n".join(map(str, range(1, 3_000_001))) + "\n")
    first = await agent.run(ReadFile(), path="a")
    end = first.details["end"]
    assert 700 < end < 1_000
    assert first.content.endswith(
        f"{end}| {end}\n(lines {end + 1}–3000000 of 3000000 not shown: read_file path=a start_line={end + 1})"
    )
    assert await agent.read("a", start_line=2_999_999) == "2999999| 2999999\n3000000| 3000000"


async def test_characters_of_several_parts_are_not_cut_apart(agent: Agent) -> None:
    (agent.root / "a").write_text("a" * 1_999 + "👩\u200d💻" + "b" * 50, encoding="utf-8")
    shown = (await agent.read("a")).split("\n")[0]
    assert shown == "1| " + "a" * 1_999 + "…"


async def test_the_whole_result_stays_below_the_cap_whatever_the_lines_are(agent: Agent) -> None:
    (agent.root / "a").write_text("".join("y" * length + "\n" for length in (3000, 0, 2500, 1, 9000, 5, 7000, 40)))
    for cap in (400, 700, 1500, 3000, 6000, 20000):
        agent.context.cap_chars = cap
        await agent.read("a")


async def test_an_empty_file_and_a_missing_last_line_ending_are_told(agent: Agent) -> None:
    (agent.root / "empty").write_bytes(b"")
    (agent.root / "open").write_bytes(b"a\nb")
    assert await agent.read("empty") == "empty is empty."
    assert await agent.read("open") == "1| a\n2| b\n(the last line has no line ending)"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("größe\n".encode("utf-16"), "1| größe\n(not UTF-8 but utf-16-le, which edits keep)"),
        (b"r\xe9sum\xe9 \x93x\x94\n", "1| résumé “x”\n(not UTF-8 but windows-1252, which edits keep)"),
        ("ä ö\n".encode() + b"\xff\n", "1| ä ö\n2| \ufffd\n(U+FFFD stands for bytes that are no UTF-8)"),
        (b"a\rb\n", "1| a␍b"),
    ],
)
async def test_other_encodings_are_shown_and_named(agent: Agent, data: bytes, text: str) -> None:
    (agent.root / "a").write_bytes(data)
    assert await agent.read("a") == text


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (bytes(range(256)) * 16, "a.bin is not text: binary data, 4,096 bytes."),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 12, "a.bin is not text: PNG image, 20 bytes."),
        (b"%PDF-1.7\nabc", "a.bin is not text: PDF document, 12 bytes."),
        (b"\x01\x02\x03\x04\xff" * 40, "a.bin is not text: binary data, 200 bytes."),
    ],
)
async def test_binary_files_are_refused_in_one_line(agent: Agent, data: bytes, said: str) -> None:
    (agent.root / "a.bin").write_bytes(data)
    with pytest.raises(ToolError) as refused:
        await agent.read("a.bin")
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("symbol", "first", "last"),
    [("Inventory.restock", 8, 9), ("Shop", 12, 14), ("main", 17, 18), ("Shop::restock()", 13, 14)],
)
async def test_a_symbol_is_read_alone(agent: Agent, symbol: str, first: int, last: int) -> None:
    (agent.root / "shop.py").write_text(SHOP)
    result = await agent.run(ReadFile(), path="shop.py", symbol=symbol)
    lines = SHOP.split("\n")
    expected = [f"{number}| {lines[number - 1]}" for number in range(first, last + 1)]
    assert result.content.split("\n")[: last - first + 1] == expected
    assert (result.details["start"], result.details["end"], result.details["total"]) == (first, last, 18)


async def test_an_unknown_symbol_lists_those_that_there_are(agent: Agent) -> None:
    (agent.root / "shop.py").write_text(SHOP)
    with pytest.raises(ToolError) as unknown:
        await agent.read("shop.py", symbol="buy")
    assert str(unknown.value).split("\n") == [
        "shop.py has no symbol 'buy':", "4-9 Inventory", "5-6 Inventory.__init__", "8-9 Inventory.restock",
        "12-14 Shop", "13-14 Shop.restock", "17-18 main",
    ]  # fmt: skip
    with pytest.raises(ToolError) as several:
        await agent.read("shop.py", symbol="restock")
    assert "several symbols 'restock':\n8-9 Inventory.restock\n13-14 Shop.restock" in str(several.value)
    (agent.root / "notes.txt").write_text("restock\n")
    with pytest.raises(ToolError, match="no symbols"):
        await agent.read("notes.txt", symbol="restock")


@pytest.mark.parametrize(
    ("wrong", "offered"),
    [
        ("src\\app.py", "src/app.py"),
        ("C:\\src\\app.py", "src/app.py"),
        ("/src/app.py", "src/app.py"),
        ("proj/src/app.py", "src/app.py"),
        ("SRC/App.py", "src/app.py"),
        ("src/ap.py", "src/app.py"),
        ("app.py", "src/app.py"),
        ("lib/app.py", "src/app.py"),
        ("`src/app.py`\n", "src/app.py"),
        ("Screen shot.txt", "Screen\u00a0shot.txt (with U+00A0)"),
        ("caf\u00e9.txt", "cafe\u0301.txt (with U+0301)"),
    ],
)
async def test_near_names_are_offered_for_a_wrong_path(agent: Agent, wrong: str, offered: str) -> None:
    (agent.root / "src").mkdir()
    for name in ("src/app.py", "src/other.py", "Screen\u00a0shot.txt", "cafe\u0301.txt"):
        (agent.root / name).write_text("text\n")
    for tool, arguments in ((ReadFile(), {}), (TargetEdit(), {"search": "text", "replace": "x"})):
        told = await agent.refused(tool, path=wrong, **arguments)
        assert told.endswith(f"does not exist.\nDid you mean {offered}?")
    assert await agent.read(offered.split(" (with")[0]) == "1| text"


async def test_nothing_near_means_no_offer(agent: Agent) -> None:
    (agent.root / "a.py").write_text("x\n")
    told = await agent.refused(ReadFile(), path="zebra/quux.rs")
    assert told == "zebra/quux.rs does not exist.\nUse list_files or search to find it."


async def test_hidden_files_are_neither_shown_nor_changed_nor_offered(agent: Agent) -> None:
    (agent.root / ".llmignore").write_text("secret.txt\n")
    (agent.root / "secret.txt").write_text("password\n")
    (agent.root / "way").symlink_to("secret.txt")
    for path in ("secret.txt", "./secret.txt", "way"):
        for tool, arguments in (
            (ReadFile(), {}),
            (WriteFile(), {"content": "x"}),
            (TargetEdit(), {"search": "password", "replace": "x"}),
        ):
            told = await agent.refused(tool, path=path, **arguments)
            assert "hidden by .llmignore" in told
            assert "password" not in told
    assert "secret.txt" not in (await agent.refused(ReadFile(), path="Secret.txt")).split("\n")[1]
    assert (agent.root / "secret.txt").read_text() == "password\n"


# write_file


async def test_a_new_file_gets_its_folders_and_exactly_what_was_given(agent: Agent) -> None:
    assert await agent.write("a/b/c.txt", "x\r\ny") == "Created a/b/c.txt: 2 lines."
    assert (agent.root / "a/b/c.txt").read_bytes() == b"x\r\ny"
    assert await agent.write("pkg/__init__.py", "") == "Created pkg/__init__.py: 0 lines."
    assert (agent.root / "pkg/__init__.py").read_bytes() == b""


async def test_what_an_agent_wrote_it_may_write_again(agent: Agent) -> None:
    await agent.write("a.txt", "one\ntwo\n")
    assert await agent.write("a.txt", "one\n2\n3\n") == "Replaced a.txt: 3 lines (+2 −1)."
    assert await agent.edit("a.txt", "one", "1") == "Edited a.txt, line 1."
    await agent.write("a.txt", "all new\n")
    assert (agent.root / "a.txt").read_text() == "all new\n"


async def test_a_file_that_was_not_read_is_not_overwritten(agent: Agent) -> None:
    (agent.root / "a.txt").write_text("precious\n")
    assert "you have not read it" in await agent.refused(WriteFile(), path="a.txt", content="new\n")
    assert (agent.root / "a.txt").read_text() == "precious\n"
    await agent.read("./a.txt")
    await agent.write("a.txt", "new\n")
    assert (agent.root / "a.txt").read_text() == "new\n"


async def test_another_agents_reading_does_not_count(agent: Agent) -> None:
    (agent.root / "a.txt").write_text("precious\n")
    await Agent(agent.root).read("a.txt")
    assert "you have not read it" in await agent.refused(WriteFile(), path="a.txt", content="new\n")


async def test_lines_that_were_not_shown_are_not_overwritten(agent: Agent) -> None:
    (agent.root / "a.txt").write_text("".join(f"{number}\n" for number in range(1, 101)))
    await agent.read("a.txt", end_line=40)
    told = await agent.refused(WriteFile(), path="a.txt", content="new\n")
    assert "not read lines 41–100" in told
    await agent.read("a.txt", start_line=41)
    await agent.write("a.txt", "new\n")


async def test_a_line_that_was_clipped_counts_as_not_read(agent: Agent) -> None:
    (agent.root / "a.txt").write_text("a\n" + "x" * 5_000 + "\nb\n")
    await agent.read("a.txt")
    assert "not read lines 2–2" in await agent.refused(WriteFile(), path="a.txt", content="new\n")


async def test_a_file_that_changed_since_it_was_read_is_not_overwritten(agent: Agent) -> None:
    (agent.root / "a.txt").write_text("old\n")
    await agent.read("a.txt")
    with (agent.root / "a.txt").open("a") as file:
        file.write("by a person\n")
    assert "changed since you read it" in await agent.refused(WriteFile(), path="a.txt", content="new\n")
    assert (agent.root / "a.txt").read_text() == "old\nby a person\n"


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"\xef\xbb\xbfold\n", "new\n", b"\xef\xbb\xbfnew\n"),
        (b"\xef\xbb\xbfold\n", "\ufeffnew\n", b"\xef\xbb\xbfnew\n"),
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", "x\r\ny", b"x\r\ny\r\n"),
        (b"a\nb\n", "x\r\ny", b"x\ny\n"),
        (b"a\nb", "x\ny\n", b"x\ny"),
        (b"a", "x\ny\n", b"x\ny"),
        (b"a\r\nb\r\nc\n", "x\ny\n", b"x\r\ny\r\n"),
        ("größe\r\n".encode("utf-16"), "länge\n", b"\xff\xfe" + "länge\r\n".encode("utf-16-le")),
        (b"caf\xe9\n", "th\u00e9\n", b"th\xe9\n"),
    ],
)
async def test_a_file_keeps_its_mark_encoding_line_endings_and_end(
    agent: Agent, before: bytes, content: str, after: bytes
) -> None:
    (agent.root / "a").write_bytes(before)
    (agent.root / "a").chmod(0o640)
    await agent.read("a")
    await agent.write("a", content)
    assert (agent.root / "a").read_bytes() == after
    assert stat.S_IMODE((agent.root / "a").stat().st_mode) == 0o640


async def test_writes_that_cannot_be_meant_are_explained(agent: Agent) -> None:
    (agent.root / "a.txt").write_text("x\n")
    (agent.root / "bin").write_bytes(b"a\0b")
    (agent.root / "empty").write_bytes(b"")
    await agent.read("a.txt")
    problems = {
        ("a.txt", "x\n"): "nothing would change",
        ("a.txt", ""): "The content is empty",
        ("a.txt/b", "x"): "a.txt is a file",
        ("bin", "x"): "not text",
        ("empty", ""): "nothing would change",
        ("new/", "x"): "is a folder",
        (".", "x"): "is a folder",
        ("n", "half \ud83d"): "half a character",
        ("n", "a\0b"): "not text",
    }
    for (path, content), said in problems.items():
        assert said in await agent.refused(WriteFile(), path=path, content=content)
    assert sorted(path.name for path in agent.root.iterdir()) == ["a.txt", "bin", "empty"]
    await agent.write("empty", "content\n")


async def test_a_write_that_fails_leaves_no_folders_behind(agent: Agent) -> None:
    context = agent.call()
    tool, name = WriteFile(), "x" * 300
    with pytest.raises(ToolError, match="name too long"):
        await tool.run(tool.Args(path=f"a/b/{name}", content="x"), context)
    assert list(agent.root.iterdir()) == []


@pytest.mark.parametrize("tool", [WriteFile(), TargetEdit()])
async def test_read_only_files_are_refused_before_anybody_is_asked(agent: Agent, tool: Any) -> None:
    (agent.root / "a").write_text("x\n")
    (agent.root / "a").chmod(0o444)
    await agent.read("a")
    arguments = {"content": "y\n"} if tool.name == "write_file" else {"search": "x", "replace": "y"}
    assert "read-only" in await agent.refused(tool, path="a", **arguments)
    assert (agent.root / "a").read_text() == "x\n"


# target_edit


async def test_an_edit_reports_its_lines_its_diff_and_its_change(agent: Agent) -> None:
    (agent.root / "a").write_text("1\n2\n3\n4\n")
    result = await agent.run(TargetEdit(), path="a", search="2\n3\n", replace="two\nthree\nmore\n")
    assert result.content == "Edited a, lines 2–4."
    assert result.details == {
        "path": "a",
        "diff": "--- a/a\n+++ b/a\n@@ -1,4 +1,5 @@\n 1\n-2\n-3\n+two\n+three\n+more\n 4\n",
    }
    assert [(change.path, change.kind, change.added, change.removed) for change in result.changes] == [
        ("a", "modified", 3, 2)
    ]


async def test_a_foreign_change_elsewhere_is_kept_and_told_once(agent: Agent) -> None:
    (agent.root / "a").write_text("one\ntwo\n")
    await agent.read("a")
    (agent.root / "a").write_text("one\ntwo\nby a person\n")
    assert "their changes were kept" in await agent.edit("a", "one", "1")
    assert (agent.root / "a").read_text() == "1\ntwo\nby a person\n"
    assert await agent.edit("a", "1\n", "uno\n") == "Edited a, line 1."
    assert "not read lines 2–3" in await agent.refused(WriteFile(), path="a", content="new\n")


async def test_a_foreign_change_of_the_piece_refuses_the_edit(agent: Agent) -> None:
    (agent.root / "a").write_text("value = 1\n")
    await agent.read("a")
    (agent.root / "a").write_text("value = 2\n")
    told = await agent.refused(TargetEdit(), path="a", search="value = 1", replace="value = 3")
    assert "1| value = 2" in told
    assert (agent.root / "a").read_text() == "value = 2\n"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [(TargetEdit(), {"search": "one", "replace": "1"}), (WriteFile(), {"content": "all\n"})],
)
async def test_what_a_person_saves_while_they_are_asked_survives(
    agent: Agent, tool: Any, arguments: dict[str, str]
) -> None:
    (agent.root / "a").write_text("one\ntwo\n")
    await agent.read("a")
    context, args = agent.call(), tool.Args(path="a", **arguments)
    assert "one" in tool.preview(args, context).detail
    (agent.root / "a").write_text("one\nsaved\n")
    with pytest.raises(ToolError, match="changed"):
        await tool.run(args, context)
    assert (agent.root / "a").read_text() == "one\nsaved\n"


async def test_a_file_that_appears_while_a_person_is_asked_survives(agent: Agent) -> None:
    tool, context = WriteFile(), agent.call()
    args = tool.Args(path="new", content="mine\n")
    tool.preview(args, context)
    (agent.root / "new").write_text("theirs\n")
    with pytest.raises(ToolError):
        await tool.run(args, context)
    assert (agent.root / "new").read_text() == "theirs\n"


async def test_an_edit_through_a_link_keeps_the_link(agent: Agent) -> None:
    (agent.root / "real").write_text("a\n")
    (agent.root / "link").symlink_to("real")
    assert await agent.edit("link", "a", "b") == "Edited real, line 1."
    assert (agent.root / "link").is_symlink()
    assert (agent.root / "real").read_text() == "b\n"


async def test_hard_links_are_told_of(agent: Agent) -> None:
    (agent.root / "a").write_text("x\n")
    os.link(agent.root / "a", agent.root / "b")
    assert "other hard links" in await agent.edit("a", "x", "y")
    assert (agent.root / "b").read_text() == "x\n"


@pytest.mark.parametrize("tool", [WriteFile(), TargetEdit()])
async def test_a_review_can_refuse_before_anything_is_written(agent: Agent, tool: Any) -> None:
    (agent.root / "a.py").write_bytes(b"x = 1\r\n")
    await agent.read("a.py")
    asked: list[tuple[str, str | None, str]] = []

    def review(path: str, before: str | None, after: str) -> None:
        asked.append((path, before, after))
        raise ToolError("no")

    arguments = {"content": "x = 2\n"} if tool.name == "write_file" else {"search": "1", "replace": "2"}
    with pytest.raises(ToolError, match="no"):
        await tool.run(tool.Args(path="./a.py", **arguments), replace(agent.call(), review=review))
    assert asked == [("a.py", "x = 1\n", "x = 2\n")]
    assert (agent.root / "a.py").read_bytes() == b"x = 1\r\n"


# all three


def test_a_preview_changes_nothing_and_shows_the_diff(agent: Agent) -> None:
    tool = WriteFile()
    preview = tool.preview(tool.Args(path="a/new.py", content="x\n"), agent.call())
    assert preview.title == "Write a/new.py"
    assert preview.detail == "--- /dev/null\n+++ b/a/new.py\n@@ -0,0 +1 @@\n+x\n"
    assert list(agent.root.iterdir()) == []


def test_labels_say_what_a_call_does() -> None:
    read, write, edit = ReadFile(), WriteFile(), TargetEdit()
    assert read.label(read.Args(path="src/app.py", start_line=1, end_line=80)) == "Read src/app.py:1-80"
    assert read.label(read.Args(path="src/app.py", start_line=5)) == "Read src/app.py:5-"
    assert read.label(read.Args(path="src/app.py")) == "Read src/app.py"
    assert read.label(read.Args(path="src/app.py", symbol="Cart.total")) == "Read src/app.py Cart.total"
    assert write.label(write.Args(path="src/app.py", content="")) == "Write src/app.py"
    assert edit.label(edit.Args(path="src/app.py", search="a", replace="b")) == "Edit src/app.py"
    assert read.paths(read.Args(path="./x")) == ("./x",)


def test_what_models_are_told_of_the_tools_is_short() -> None:
    tools = [ReadFile(), WriteFile(), TargetEdit()]
    assert all(len(tool.description) <= 160 for tool in tools)
    text = str(
        [
            (spec.name, spec.description, schema_of(tool))
            for tool, spec in zip(tools, Registry(tools).specs(), strict=True)
        ]
    )
    assert len(text) < 1_300
