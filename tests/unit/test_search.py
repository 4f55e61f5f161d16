"""Searching and listing with the real ripgrep."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from late.errors import ToolError
from late.tools.list_files import ListFiles
from late.tools.search import Search, split_globs
from late.workspace import ripgrep
from support.tool_context import run_tool


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    files = {
        "README.md": "# Shop\nneedle in the docs\n",
        "src/app.py": "import os\n\n\ndef needle(cart):\n    return cart[0].price\n\n\nneedle([])\n",
        "src/deep/util.py": "NEEDLE = 'a.b*c'\n",
        "web/app.ts": "const needle = (1 + 2)\n",
        "build/out.py": "needle = 'generated'\n",
        ".hidden.cfg": "needle = hidden\n",
        ".gitignore": "build/\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("needle = 1\n")
    return root


async def search(root: Path, pattern: str, cap_chars: int = 8_000, **arguments: object) -> str:
    return (await run_tool(Search(), root, cap_chars=cap_chars, pattern=pattern, **arguments)).content


async def test_matches_are_grouped_by_file_with_line_numbers(project: Path) -> None:
    assert await search(project, "needle", path="src/app.py") == (
        "2 matches in 1 file:\nsrc/app.py\n4| def needle(cart):\n8| needle([])"
    )


async def test_context_lines_are_marked_and_gaps_are_shown(project: Path) -> None:
    text = await search(project, "import|price|needle\\(\\[", path="src/app.py", context=1)
    assert text.split("\n")[1:] == [
        "src/app.py",
        "1| import os",
        "2- ",
        "--",
        "4- def needle(cart):",
        "5|     return cart[0].price",
        "6- ",
        "7- ",
        "8| needle([])",
    ]


async def test_ignored_files_are_left_out_and_dot_files_are_not(project: Path) -> None:
    text = await search(project, "needle", mode="files")
    assert text.split("\n")[1:] == [".hidden.cfg", "README.md", "src/app.py", "src/deep/util.py", "web/app.ts"]


async def test_ignore_files_count_without_a_repository(project: Path) -> None:
    (project / ".git" / "config").unlink()
    (project / ".git").rmdir()
    assert "build" not in await search(project, "needle", mode="files")


async def test_an_ignored_folder_is_searched_when_it_is_named(project: Path) -> None:
    assert "build/out.py" in await search(project, "needle", path="build")


async def test_llmignore_hides_at_every_level_and_cannot_be_asked_around(project: Path) -> None:
    (project / ".llmignore").write_text("web/\n")
    (project / "src" / ".llmignore").write_text("deep/\n")
    text = await search(project, "needle", mode="files")
    assert "web" not in text
    assert "deep" not in text
    assert "web/app.ts" not in await search(project, "app", mode="names")
    for path in ("web", "web/app.ts", "src/deep/util.py"):
        with pytest.raises(ToolError, match=r"hidden by \.llmignore"):
            await search(project, "needle", path=path)


async def test_llmignore_shows_again_what_gitignore_leaves_out(project: Path) -> None:
    (project / ".llmignore").write_text("!build/\n")
    assert "build/out.py" in await search(project, "needle")
    assert (await search(project, "needle", mode="files")).count("src/app.py") == 1
    assert "build/out.py" in await search(project, "*.py", mode="names")
    assert "build/out.py" not in await search(project, "needle", glob="*.ts", mode="files")


async def test_count_mode_gives_lines_per_file(project: Path) -> None:
    text = await search(project, "needle", mode="count", glob="*.py")
    assert text == "3 matching lines in 2 files:\nsrc/app.py: 2\nsrc/deep/util.py: 1"


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*.ts", ["web/app.ts"]),
        ("*.{ts,md}", ["README.md", "web/app.ts"]),
        ("*.ts,*.md", ["README.md", "web/app.ts"]),
        ("src/**/*.py", ["src/app.py", "src/deep/util.py"]),
        ("!*.py", [".hidden.cfg", "README.md", "web/app.ts"]),
    ],
)
async def test_globs_limit_the_files(project: Path, glob: str, expected: list[str]) -> None:
    assert (await search(project, "needle", mode="files", glob=glob)).split("\n")[1:] == expected


async def test_a_glob_may_be_relative_to_the_path(project: Path) -> None:
    assert "src/deep/util.py" in await search(project, "needle", path="src", glob="deep/*.py")


def test_globs_are_split_outside_of_braces() -> None:
    assert split_globs("*.py, *.{ts,tsx},") == ["*.py", "*.{ts,tsx}"]


async def test_smart_case_and_the_two_others(project: Path) -> None:
    assert "util.py" in await search(project, "needle")
    assert "app.py" not in await search(project, "NEEDLE")
    assert "util.py" not in await search(project, "needle", case="sensitive")
    assert "app.py" in await search(project, "NEEDLE", case="insensitive")


async def test_a_literal_that_a_regex_misses_is_pointed_out(project: Path) -> None:
    text = await search(project, "(1 + 2)")
    assert text.startswith("No matches for '(1 + 2)' (regex, 6 files searched).")
    assert "as plain text (fixed=true) it is in web/app.ts" in text
    assert "web/app.ts" in await search(project, "(1 + 2)", fixed=True)


async def test_other_cases_and_globs_that_would_match_are_pointed_out(project: Path) -> None:
    assert "with case=insensitive it is in README.md" in await search(project, "SHOP")
    assert "without the glob it is in README.md" in await search(project, "Shop", glob="*.py")


async def test_a_bad_regex_is_an_error_that_says_how_to_search_literally(project: Path) -> None:
    with pytest.raises(ToolError, match="unclosed group") as error:
        await search(project, "needle(")
    assert "fixed=true" in error.value.hint
    assert "app.py" in await search(project, "needle(", fixed=True)


async def test_a_bad_glob_is_an_error_about_the_glob(project: Path) -> None:
    with pytest.raises(ToolError, match="glob") as error:
        await search(project, "needle", glob="*.{py")
    assert "glob" in error.value.hint


async def test_a_path_that_does_not_exist_is_an_error_with_near_names(project: Path) -> None:
    with pytest.raises(ToolError, match=r"srv/app\.py does not exist") as error:
        await search(project, "needle", path="srv/app.py")
    assert "src/" in error.value.hint
    (project / ".llmignore").write_text("src/\n")
    with pytest.raises(ToolError) as error:
        await search(project, "needle", path="srv/app.py")
    assert "src" not in error.value.hint, "what is hidden is not suggested either"


async def test_no_match_among_nothing_says_that_all_is_ignored(project: Path) -> None:
    text = await search(project, "needle", glob="*.zig")
    assert "0 files matching *.zig searched" in text
    assert "there is no such file" in text


async def test_a_pattern_over_two_lines_matches(project: Path) -> None:
    text = await search(project, r"needle\(cart\):\n\s+return")
    assert text.endswith("src/app.py\n4| def needle(cart):\n5|     return cart[0].price")
    assert "5|" in await search(project, "cart):\n    return", fixed=True)


async def test_windows_text_is_shown_without_its_marks_and_matched_at_line_ends(project: Path) -> None:
    (project / "dos.txt").write_bytes(b"\xef\xbb\xbffirst end\r\nsecond end\r\n")
    assert await search(project, "end$", path="dos.txt") == (
        "2 matches in 1 file:\ndos.txt\n1| first end\n2| second end"
    )


async def test_control_sequences_of_a_file_do_not_reach_anybody(project: Path) -> None:
    (project / "evil.txt").write_bytes(b"needle \x1b[2J\x1b]52;c;QUJD\x07 end\n")
    assert (await search(project, "needle", path="evil.txt")).endswith("1| needle  end")


async def test_a_long_line_is_clipped_around_its_match(project: Path) -> None:
    (project / "min.js").write_text("é" * 5_000 + "needle" + "y" * 5_000)
    line = (await search(project, "needle", path="min.js")).split("\n")[-1]
    assert len(line) < 300
    assert "needle" in line
    assert line.startswith("1| …é")
    assert line.endswith("y…")


async def test_one_file_with_many_matches_does_not_hide_the_others(project: Path) -> None:
    (project / "a.log").write_text("needle\n" * 5_000)
    text = await search(project, "needle")
    assert "… 4970 more in this file" in text
    assert "web/app.ts" in text


async def test_a_cut_result_says_how_much_there_is_and_how_to_narrow(project: Path) -> None:
    for number in range(50):
        (project / f"f{number:02}.txt").write_text("needle and some more text in this line\n" * 10)
    text = await search(project, "needle", cap_chars=1_500)
    match = re.match(r"506 matches in 55 files, (\d+) shown:", text)
    assert match
    assert int(match[1]) == len(re.findall(r"^\d+\|", text, re.MULTILINE)) > 5
    assert "narrow with path, glob or a longer pattern" in text
    listed = await search(project, "needle", mode="files", cap_chars=600)
    assert re.search(r"\[\d+ more files not shown", listed)


async def test_counting_stops_at_a_bound(project: Path) -> None:
    (project / "flood.txt").write_text("needle\n" * 60_000)
    assert (await search(project, "needle", path="flood.txt")).startswith("10,000 or more matches in 1 file")


async def test_a_line_of_megabytes_costs_neither_memory_nor_the_other_matches(project: Path) -> None:
    (project / "big.json").write_text("needle" + "x" * 6_000_000 + "\n")
    text = await search(project, "needle")
    assert "src/app.py" in text
    assert "extremely long line passed over" in text


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"\.py$", ["src/app.py", "src/deep/util.py"]),
        ("*.py", ["src/app.py", "src/deep/util.py"]),
        ("^app", ["src/app.py", "web/app.ts"]),
        ("app", ["src/app.py", "web/app.ts"]),
        ("deep", ["src/deep/util.py"]),
        ("src/*.py", ["src/app.py"]),
        ("src/**/*.py", ["src/app.py", "src/deep/util.py"]),
        (r"src/.*\.py$", ["src/app.py", "src/deep/util.py"]),
        ("app.*", ["src/app.py", "web/app.ts"]),
        ("(app|util).py", ["src/app.py", "src/deep/util.py"]),
        ("readme*", ["README.md"]),
    ],
)
async def test_names_are_found_by_glob_regex_or_part(project: Path, pattern: str, expected: list[str]) -> None:
    assert (await search(project, pattern, mode="names")).split("\n")[1:] == expected


async def test_names_can_be_limited_by_path_and_glob(project: Path) -> None:
    assert (await search(project, "app", mode="names", path="web")).split("\n")[1:] == ["web/app.ts"]
    assert (await search(project, "app", mode="names", glob="*.py")).split("\n")[1:] == ["src/app.py"]
    assert "No file name matches 'nowhere' (text, 6 files looked at)" in await search(project, "nowhere", mode="names")


async def test_pipes_loops_and_links_out_of_the_project_are_not_followed(project: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("needle outside\n")
    os.mkfifo(project / "pipe")
    (project / "loop").symlink_to(".")
    (project / "out").symlink_to(tmp_path)
    text = await search(project, "needle", mode="files")
    assert "outside" not in text
    assert "loop" not in text
    with pytest.raises(ToolError, match="pipe, socket or device"):
        await search(project, "needle", path="pipe")


async def test_odd_names_are_found_and_shown_on_one_line(project: Path) -> None:
    for name in (b"\xff.txt", b"a\nb.txt", b"-rf", b" x ", b"\x1b[2K.txt", b"n" * 255):
        (project / os.fsdecode(name)).write_text("odd\n")
    text = await search(project, "odd", mode="files")
    assert text.split("\n")[1:] == [r"\x1b[2K.txt", " x ", "-rf", r"a\nb.txt", "n" * 255, r"\xff.txt"]
    assert r"a\nb.txt" in await search(project, "odd")
    assert r"a\nb.txt: 1" in await search(project, "odd", mode="count")
    assert r"a\nb.txt" in await search(project, "a?b.txt", mode="names")
    assert r"\xff.txt" in await list_tree(project)
    assert "1| odd" in await search(project, "odd", path="-rf")


async def test_nobodys_ripgrep_configuration_counts(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = project / "rc"
    config.write_text("--invert-match\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(config))
    assert (await search(project, "needle", path="README.md")).endswith("2| needle in the docs")


async def test_a_file_of_the_project_cannot_pose_as_ripgrep(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = project / "rg"
    fake.write_text("#!/bin/sh\necho ripgrep 99.0.0\ntouch posed\n")
    fake.chmod(0o755)
    monkeypatch.chdir(project)
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.environ['PATH']}")
    ripgrep.ripgrep.cache_clear()
    try:
        assert Path(ripgrep.ripgrep()).is_absolute()
        await search(project, "needle")
    finally:
        ripgrep.ripgrep.cache_clear()
    assert not (project / "posed").exists()


def test_without_a_usable_ripgrep_the_error_says_how_to_get_one(tmp_path: Path) -> None:
    old = tmp_path / "rg"
    old.write_text("#!/bin/sh\necho ripgrep 13.0.0\n")
    old.chmod(0o755)
    script = (
        "from late.errors import ToolError\n"
        "from late.workspace.ripgrep import ripgrep\n"
        "try: ripgrep()\n"
        "except ToolError as error: print(error, error.hint)\n"
    )
    source = str(Path(ripgrep.__file__).parents[2])
    without_packages = [sys.executable, "-S", "-c", script]
    told = subprocess.run(
        without_packages, env={"PATH": str(tmp_path), "PYTHONPATH": source}, capture_output=True, text=True, check=True
    ).stdout
    assert f"not installed ({old} is older)" in told
    assert "pip install ripgrep" in told


def test_the_wheel_brings_a_usable_ripgrep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    ripgrep.ripgrep.cache_clear()
    try:
        path = ripgrep.ripgrep()
    finally:
        ripgrep.ripgrep.cache_clear()
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    assert version.startswith("ripgrep ")


async def test_a_run_that_is_left_early_is_ended(project: Path) -> None:
    (project / "flood.txt").write_text("needle\n" * 200_000)
    async with ripgrep.run_ripgrep(["--json", "needle", "./"], project) as run:
        async for _ in run.records(b"\n"):
            break
    assert run.process.returncode == -signal.SIGKILL


async def test_a_cancelled_search_ends_its_ripgrep(project: Path) -> None:
    (project / "flood.txt").write_text("needle\n" * 200_000)
    begun: asyncio.Future[asyncio.subprocess.Process] = asyncio.get_running_loop().create_future()

    async def read() -> None:
        async with ripgrep.run_ripgrep(["--json", "needle", "./"], project) as run:
            begun.set_result(run.process)
            await asyncio.Event().wait()

    task = asyncio.create_task(read())
    process = await begun
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert process.returncode == -signal.SIGKILL


async def list_tree(root: Path, cap_chars: int = 8_000, **arguments: object) -> str:
    return (await run_tool(ListFiles(), root, cap_chars=cap_chars, **arguments)).content


async def test_a_folder_is_listed_as_a_tree_with_counts_below_its_depth(project: Path) -> None:
    (project / "AGENTS.md").symlink_to("README.md")
    assert await list_tree(project) == "\n".join(
        [
            "./ (6 files)",
            "src/",
            "  deep/ (1 file)",
            "  app.py",
            "web/",
            "  app.ts",
            ".gitignore",
            ".hidden.cfg",
            "AGENTS.md -> README.md",
            "README.md",
        ]
    )
    assert await list_tree(project, path="src", depth=1) == "src/ (2 files)\ndeep/ (1 file)\napp.py"


async def test_a_listing_hides_what_llmignore_hides(project: Path) -> None:
    (project / ".llmignore").write_text("deep/\n")
    assert "deep" not in await list_tree(project, depth=5)
    with pytest.raises(ToolError, match="hidden"):
        await list_tree(project, path="src/deep")


async def test_a_listing_that_is_too_long_gets_narrower_and_says_so(project: Path) -> None:
    for number in range(300):
        (project / "src" / f"module_{number:03}.py").write_text("")
    text = await list_tree(project, cap_chars=500)
    assert "web/" in text
    assert re.search(r"… \d+ more", text)
    assert text.endswith("[cut: list one of these folders for more]")


async def test_empty_and_ignored_folders_and_files_are_told_apart(project: Path) -> None:
    (project / "empty").mkdir()
    (project / "caches").mkdir()
    (project / "caches" / "x.cache").write_text("")
    (project / "caches" / ".gitignore").write_text("*\n")
    assert await list_tree(project, path="empty") == "empty is empty."
    assert "2 entries, but no file" in await list_tree(project, path="caches")
    assert "is a file of 26 bytes" in await list_tree(project, path="README.md")


async def test_very_deep_folders_end_and_are_one_line(project: Path) -> None:
    deep = project / "/".join(["d"] * 900)
    deep.mkdir(parents=True)
    (deep / "x.txt").write_text("needle at the bottom\n")
    assert "1 file" in await list_tree(project, depth=1)
    assert "1 match in 1 file" in await search(project, "at the bottom")
