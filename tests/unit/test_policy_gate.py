from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from late.policy.gate import Question
from support.policy import Bench


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return Bench(home)


@pytest.mark.parametrize("role", ["planner", "researcher", "coder"])
@pytest.mark.parametrize("path", ["a.txt", "src/app.py", "src", ".", "src/../a.txt", "not/there.py"])
def test_reading_inside_of_the_project_needs_no_question(bench: Bench, role: str, path: str) -> None:
    assert bench.read(path, role).tier == "auto"


@pytest.mark.parametrize("role", ["planner", "researcher", "coder"])
def test_reading_outside_of_the_project_is_asked_about(bench: Bench, role: str) -> None:
    (bench.home / "notes.md").write_text("mine")
    for path in ("../notes.md", str(bench.home / "notes.md"), "/usr/share/dict", "/tmp/x"):
        verdict = bench.read(path, role)
        assert (verdict.tier, verdict.rule) == ("ask", "path.outside")
        assert verdict.key
        assert verdict.pattern.startswith("read /")


def test_a_folder_whose_name_begins_like_the_project_is_outside(bench: Bench) -> None:
    (bench.home / "proj-other").mkdir()
    assert bench.read("../proj-other/x").tier == "ask"


@pytest.mark.parametrize(
    "path",
    [
        ".env", "src/.env.local", ".ENV", "config/prod.env", "deploy.pem", "server.key", "id_ed25519",
        "credentials.json", ".netrc", "../.ssh/config", "../.aws/credentials", "/proc/self/environ", "/proc/1/environ",
        "/etc/shadow", "src/../.env", "../.npmrc", "config/secrets.yml",
    ],
)  # fmt: skip
def test_secrets_are_never_read_and_never_written(bench: Bench, path: str) -> None:
    assert bench.read(path).tier == "never"
    assert bench.write(path, (path,)).tier == "never"


@pytest.mark.parametrize(
    "path",
    [".env.example", ".env.sample", "env.py", "src/environment.ts", "src/credentials.py", "cacert.pem", "id_rsa.pub"],
)
def test_what_only_looks_like_a_secret_may_be_read(bench: Bench, path: str) -> None:
    assert bench.read(path).tier == "auto"


def test_a_link_is_judged_by_where_it_leads(bench: Bench) -> None:
    (bench.home / ".ssh").mkdir()
    (bench.home / ".ssh" / "id_rsa").write_text("key")
    (bench.root / "notes.txt").symlink_to(bench.home / ".ssh" / "id_rsa")
    (bench.root / "elsewhere").symlink_to(bench.home)
    assert bench.read("notes.txt").tier == "never"
    assert bench.read("elsewhere/x").tier == "ask"
    assert bench.write("elsewhere/x", ("elsewhere/x",)).tier == "never"
    assert bench.run("cat notes.txt").tier == "never"


def test_what_llmignore_hides_is_not_available_to_any_tool(bench: Bench) -> None:
    (bench.root / ".llmignore").write_text("private/\n")
    (bench.root / "private").mkdir()
    (bench.root / "private" / "plan.md").write_text("secret plan")
    for verdict in (
        bench.read("private/plan.md"),
        bench.write("private/plan.md", ("private/plan.md",)),
        bench.run("cat private/plan.md"),
        bench.run("ls private"),
    ):
        assert verdict.tier == "never"
        assert "not available" in verdict.reason


@pytest.mark.parametrize("role", ["planner", "researcher", "stranger"])
def test_only_a_coder_writes(bench: Bench, role: str) -> None:
    verdict = bench.write("a.txt", ("a.txt",), role)
    assert (verdict.tier, verdict.rule) == ("never", "role.read-only")
    assert verdict.teaching


def test_a_coder_writes_the_files_of_its_step(bench: Bench) -> None:
    step = ("src/app.py", "./docs/", "src/../a.txt")
    assert [bench.write(path, step).tier for path in ("src/app.py", "docs/new.md", "a.txt", "./src/app.py")] == [
        "auto"
    ] * 4


def test_a_coder_is_asked_about_other_files_of_the_project(bench: Bench) -> None:
    verdict = bench.write("src/other.py", ("src/app.py",))
    assert (verdict.tier, verdict.rule) == ("ask", "scope.outside-step")
    assert "src/app.py" in verdict.reason
    assert bench.write("src/app.py.bak", ("src/app.py",)).tier == "ask"
    assert bench.write("docs2/x", ("docs",)).tier == "ask"


def test_without_a_step_a_coder_is_asked_about_every_file(bench: Bench) -> None:
    assert bench.write("a.txt").tier == "ask"
    assert bench.write("a.txt", ()).tier == "ask"


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit", ".git/config", "sub/.git/config", ".GIT/config", "../.bashrc",
        "../.config/fish/config.fish",
        "/etc/profile.d/x.sh", "/usr/local/bin/ls", ".late/config.json", ".claude/settings.json", ".mcp.json",
        "../.local/share/late/approvals/global.json", "../.config/late/config.json",
    ],
)  # fmt: skip
def test_guarded_files_are_never_written_even_if_the_step_names_them(bench: Bench, path: str) -> None:
    assert bench.write(path, (path,)).tier == "never"


@pytest.mark.parametrize("path", [".vscode/tasks.json", ".llmignore", ".husky/pre-commit"])
def test_files_that_reach_further_than_they_look_are_asked_about_in_every_step(bench: Bench, path: str) -> None:
    verdict = bench.write(path, (path,))
    assert (verdict.tier, verdict.scopes) == ("ask", ("once",))


def test_only_the_planner_plans_and_spawns(bench: Bench) -> None:
    for effect in ("plan", "spawn"):
        for role, tier in (("planner", "auto"), ("researcher", "never"), ("coder", "never")):
            assert bench.policy.decide(Question(role=role, tool="x", effect=effect)).tier == tier


@pytest.mark.parametrize("role", ["planner", "researcher"])
@pytest.mark.parametrize("command", ["npm test", "touch x", "echo $(touch x)", "cat ../x", "./run.sh", "echo 'open"])
def test_who_only_reads_is_refused_where_a_coder_would_be_asked(bench: Bench, role: str, command: str) -> None:
    assert bench.run(command).tier == "ask"
    verdict = bench.run(command, role)
    assert verdict.tier == "never"
    assert verdict.teaching
    assert verdict.key == ""


@pytest.mark.parametrize("role", ["planner", "researcher", "coder"])
@pytest.mark.parametrize("command", ["git status", "ls -lah src", "sed -n 1,5p a.txt | sort", "rg foo src", "/bin/ls"])
def test_everybody_may_run_what_only_reads(bench: Bench, role: str, command: str) -> None:
    assert bench.run(command, role).tier == "auto"


def test_refusals_say_what_to_use_instead(bench: Bench) -> None:
    assert "cwd" in bench.run("cd src && ls").teaching
    assert "write_file" in bench.run("echo x > a.txt").teaching
    assert "write_file" in bench.run("cat <<EOF > a.txt\nx\nEOF").teaching


def test_a_command_runs_in_its_cwd(bench: Bench) -> None:
    (bench.root / "src" / ".env").write_text("KEY=1")
    assert bench.run("cat app.py", cwd="src").tier == "auto"
    assert bench.run("cat .env", cwd="src").tier == "never"
    assert bench.run("cat ../../x", cwd="src").tier == "ask"
    assert bench.run("ls", cwd="..").tier == "ask"
    assert bench.run("ls", cwd="../.ssh").tier == "never"


@pytest.mark.parametrize("command", ["", "   \n"])
def test_an_empty_command_is_refused(bench: Bench, command: str) -> None:
    assert bench.run(command).tier == "never"


def test_an_approved_command_runs_until_the_approval_ends(bench: Bench) -> None:
    asked = bench.run("npm test")
    assert (asked.tier, asked.pattern) == ("ask", "npm test")
    bench.approvals.grant(asked.key, asked.pattern, "session")
    again = bench.run("npm test")
    assert (again.tier, again.rule) == ("auto", "approval.session")
    assert bench.run("npm run test").tier == "ask"
    assert bench.run("npm test", cwd="src").tier == "ask"
    assert bench.run("npm test", role="planner").tier == "never"
    bench.approvals.revoke(asked.key)
    assert bench.run("npm test").tier == "ask"


def test_an_approval_of_a_line_covers_each_of_its_commands(bench: Bench) -> None:
    asked = bench.run("npm test && npm run build")
    bench.approvals.grant(asked.key, asked.pattern, "session")
    assert bench.run("npm run build").tier == "auto"
    assert bench.run("ls; npm test | tail -5").tier == "auto"
    assert bench.run("npm test && npm run deploy").tier == "ask"


def test_an_approved_test_run_covers_other_files_of_the_project_but_no_other_options(bench: Bench) -> None:
    asked = bench.run("pytest -q tests/test_a.py")
    assert asked.pattern == "pytest -q …"
    bench.approvals.grant(asked.key, asked.pattern, "project")
    assert bench.run("pytest -q tests/test_b.py").tier == "auto"
    assert bench.run("pytest -q -p evil tests/test_b.py").tier == "ask"
    assert bench.run("pytest -q ../other").tier == "ask"
    assert bench.run("python -m pytest -q").tier == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "python x.py", "python -c 'print(1)'", "node x.js", "rm a.txt", "git push", "git reset --hard", "sudo ls",
        "curl https://x", "bash x.sh", "npm install x", "echo $UNKNOWN", "ls | xargs rm", "X=1 npm test",
        "find . -delete -exec touch x ';'",
    ],
)  # fmt: skip
def test_some_commands_are_asked_about_every_time(bench: Bench, command: str) -> None:
    verdict = bench.run(command)
    assert (verdict.tier, verdict.scopes, verdict.key) == ("ask", ("once",), "")


def test_a_step_names_no_folder_above_the_project(bench: Bench) -> None:
    assert bench.write("../x", ("..",)).tier == "never"
    assert bench.write("a.txt", (".",)).tier == "ask"


def test_odd_paths_are_never_taken_for_harmless_ones(bench: Bench) -> None:
    for path in ("a\0b", "x" * 5000, "\ud800"):
        assert bench.write(path, (path,)).tier in {"ask", "never"}
    os.mkfifo(bench.root / "pipe")
    assert bench.read("pipe").tier == "auto"


@pytest.mark.parametrize("command", ["xxd a.txt -g", "uniq a.txt -c", "cat < .e*", "xargs -a .env echo", "ls > >(cat)"])
def test_commands_that_once_passed_are_stopped(bench: Bench, command: str) -> None:
    (bench.root / ".env").write_text("KEY=1")
    assert bench.run(command).tier in {"ask", "never"}


@pytest.mark.parametrize(
    "command", ["grep -rn KEY .", "rg --hidden KEY", "rg -uu KEY", "diff -r . src", "git grep --untracked KEY"]
)
def test_reading_a_whole_folder_with_a_secret_in_it_is_asked_about(bench: Bench, command: str) -> None:
    assert bench.run(command).tier == "auto"
    (bench.root / ".env").write_text("KEY=1")
    assert bench.run(command).tier == "ask"


def test_a_recursive_search_may_leave_the_secrets_out(bench: Bench) -> None:
    (bench.root / ".env").write_text("KEY=1")
    for command in (
        "grep -rn KEY . --exclude='.env*'",
        "grep -rn KEY --include='*.py' .",
        "rg --hidden -g '!.env*' KEY",
        "rg KEY",
    ):
        assert bench.run(command).tier == "auto"


@pytest.mark.parametrize(
    "command",
    [
        "ls; " * 4000, "true && " * 2000 + "true", "env " * 4000, "{" * 19_000, "$(" * 9000, "cat <<A\n" * 2000,
        "sudo " * 3000,
        "for i in {1..500}; do for j in {1..500}; do ls; done; done", "echo " + "{a,b}" * 200, "if true; then " * 1200,
    ],
    ids=lambda command: command[:12],
)  # fmt: skip
def test_no_line_keeps_the_policy_busy(bench: Bench, command: str) -> None:
    start = time.perf_counter()
    bench.run(command)
    assert time.perf_counter() - start < 5
