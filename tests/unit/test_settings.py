from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from late.config.models import ModelMemory
from late.config.paths import cache_dir, config_dir, data_dir, home_dir
from late.config.settings import VARIABLES, Settings, load_settings
from late.errors import StoreError, UserError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith(("XDG_", "LATE_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    path = tmp_path / "home"
    path.mkdir()
    monkeypatch.setenv("HOME", str(path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(path / ".config"))
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    (path / ".late").mkdir(parents=True)
    return path


def write_user(home: Path, content: dict[str, Any] | str) -> Path:
    file = home / ".config" / "late" / "config.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    file.chmod(0o600)
    return file


def write_project(project: Path, content: dict[str, Any] | str) -> Path:
    file = project / ".late" / "config.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def key_of(settings: Settings, role: str = "main") -> str | None:
    key = getattr(settings, role).api_key
    return key and key.get_secret_value()


def test_without_anything_the_defaults_hold(project: Path) -> None:
    settings = load_settings(project, {})
    assert settings.main.base_url == "http://localhost:8080"
    assert settings.main.api_key is None
    assert settings.main.model is None
    assert settings.main.dialect == "auto"
    assert settings.subagent == settings.main
    assert (settings.subagent_max_turns, settings.planner_max_turns) == (60, 200)
    assert (settings.bash_timeout_s, settings.check_timeout_s) == (120, 300)
    assert (settings.output_share, settings.mouse, settings.local) == (0.12, True, False)
    assert settings.warnings == ()
    assert set(settings.sources.values()) == {"default"}


def test_each_field_takes_its_highest_source(home: Path, project: Path) -> None:
    user = write_user(home, {"openai_model": "user", "theme": "user", "bash_timeout_s": 5, "mouse": False})
    of_project = write_project(project, {"openai_model": "project", "theme": "project", "bash_timeout_s": 6})
    settings = load_settings(
        project, {"OPENAI_MODEL": "variable", "LATE_THEME": "variable"}, overrides={"main.model": "flag"}
    )
    assert settings.main.model == "flag"
    assert settings.theme == "variable"
    assert settings.bash_timeout_s == 6
    assert settings.mouse is False
    assert settings.sources["main.model"] == "flag"
    assert settings.sources["theme"] == "LATE_THEME"
    assert settings.sources["bash_timeout_s"] == str(of_project)
    assert settings.sources["mouse"] == str(user)
    assert settings.sources["temperature"] == "default"


def test_an_empty_variable_and_a_flag_that_is_not_given_count_as_unset(home: Path, project: Path) -> None:
    write_user(home, {"openai_base_url": "http://user:1", "openai_model": ""})
    environ = {"OPENAI_BASE_URL": "", "OPENAI_MODEL": "  ", "LATE_MOUSE": ""}
    settings = load_settings(project, environ, overrides={"theme": None, "main": {"model": None}})
    assert settings.main.base_url == "http://user:1"
    assert settings.main.model is None
    assert settings.mouse is True


def test_the_subagents_endpoint_inherits_field_by_field(home: Path, project: Path) -> None:
    write_user(home, {"openai_model": "big", "late_subagent_base_url": "http://small:1"})
    settings = load_settings(project, {"OPENAI_API_KEY": "k", "LATE_SUBAGENT_MODEL": "little"})
    assert settings.subagent.base_url == "http://small:1"
    assert settings.subagent.model == "little"
    assert key_of(settings, "subagent") == "k"
    assert settings.main.model == "big"
    assert settings.main.base_url == "http://localhost:8080"


def test_lates_keys_and_its_old_spelling_are_read_and_the_new_key_wins(home: Path, project: Path) -> None:
    write_user(
        home,
        {
            "subagent_model": "old",
            "late_subagent_model": "new",
            "subagent_base_url": "http://old:1",
            "subagent_api_key": "old-key",
            "openai_api_key": "main-key",
        },
    )
    settings = load_settings(project, {})
    assert settings.subagent.model == "new"
    assert settings.subagent.base_url == "http://old:1"
    assert key_of(settings, "subagent") == "old-key"
    assert key_of(settings) == "main-key"
    assert settings.warnings == ()


def test_what_lates_own_defaults_contain_is_worth_no_word_but_a_tool_that_is_off_stays_off(
    home: Path, project: Path
) -> None:
    tools = {"bash": False, "read_file": True, "search_tool": False}
    write_user(home, {"enabled_tools": tools, "models": [], "agent_models": {}, "skills_dir": ""})
    settings = load_settings(project, {})
    assert settings.enable_bash is False
    assert len(settings.warnings) == 1
    assert "search_tool" in settings.warnings[0]


def test_unknown_keys_are_reported_with_their_file_and_the_rest_counts(home: Path, project: Path) -> None:
    file = write_project(project, {"wat": 1, "main": {"model": "m", "colour": 2}, "sources": {}, "theme": "x"})
    settings = load_settings(project, {})
    assert (settings.main.model, settings.theme) == ("m", "x")
    assert settings.warnings == tuple(
        f"{file}: the key {key} is not known and is ignored" for key in ("wat", "main.colour", "sources")
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("openai_base_url", "localhost:8080"),
        ("openai_base_url", 7),
        ("dialect", "fluent"),
        ("bash_timeout_s", -1),
        ("subagent_max_turns", 0),
        ("output_share", 0.9),
        ("temperature", "hot"),
        ("dialects", {"m": "fluent"}),
        ("local_model", 5),
    ],
)
def test_a_wrong_value_in_a_file_is_reported_and_the_next_source_counts(
    home: Path, project: Path, key: str, value: object
) -> None:
    file = write_project(project, {key: value})
    settings = load_settings(project, {})
    assert settings == load_settings(home, {}).model_copy(update={"warnings": settings.warnings})
    [warning] = settings.warnings
    assert warning.startswith(f"{file}: {key} is ignored: ")


def test_a_wrong_variable_or_flag_is_an_error_that_names_it(project: Path) -> None:
    with pytest.raises(UserError, match=r"OPENAI_BASE_URL: an address begins with http"):
        load_settings(project, {"OPENAI_BASE_URL": "localhost:8080"})
    with pytest.raises(UserError, match="LATE_SUBAGENT_MAX_TURNS"):
        load_settings(project, {"LATE_SUBAGENT_MAX_TURNS": "many"})
    with pytest.raises(UserError, match=r"main\.dialect"):
        load_settings(project, {}, overrides={"main.dialect": "fluent"})
    with pytest.raises(ValueError, match="nonsense"):
        load_settings(project, {}, overrides={"nonsense": 1})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{\n "theme": "x",\n "mouse": tru\n}', ":3: not valid JSON"),
        ("", ":1: not valid JSON"),
        ("[1, 2]", ":1: not a JSON object"),
        ("[" * 200_000, "nested too deep"),
        ("\0" * 50, ":1: not valid JSON"),
    ],
)
def test_a_malformed_file_is_reported_with_its_line_and_never_overwritten(
    home: Path, project: Path, content: str, said: str
) -> None:
    file = write_user(home, content)
    write_project(project, {"theme": "project"})
    settings = load_settings(project, {})
    assert settings.theme == "project"
    [warning] = settings.warnings
    assert warning.startswith(str(file))
    assert said in warning
    assert file.read_text() == content
    assert [path.name for path in file.parent.iterdir()] == ["config.json"]


def test_a_file_in_another_encoding_is_reported_and_a_byte_order_mark_is_not(home: Path, project: Path) -> None:
    write_user(home, "\ufeff" + json.dumps({"theme": "x"}))
    (project / ".late" / "config.json").write_bytes(b'{"theme": "\xff"}')
    settings = load_settings(project, {})
    assert settings.theme == "x"
    assert "no UTF-8 text" in settings.warnings[0]


def test_a_file_that_is_a_folder_or_a_pipe_does_not_stop_the_start(home: Path, project: Path) -> None:
    os.mkfifo(project / ".late" / "config.json")
    (home / ".config" / "late" / "config.json").mkdir(parents=True)
    assert load_settings(project, {}).warnings == ()


@pytest.mark.parametrize("key_from", ["variable", "user"])
@pytest.mark.parametrize("field", ["openai_base_url", "late_subagent_base_url"])
def test_the_persons_key_is_not_sent_to_an_address_that_only_the_project_names(
    home: Path, project: Path, key_from: str, field: str
) -> None:
    write_user(home, {"openai_api_key": "mine"} if key_from == "user" else {})
    file = write_project(project, {field: "https://collector.example/v1"})
    environ = {"OPENAI_API_KEY": "mine"} if key_from == "variable" else {}
    settings = load_settings(project, environ)
    for role in ("main", "subagent"):
        if getattr(settings, role).base_url == "https://collector.example/v1":
            assert key_of(settings, role) is None
            assert settings.sources[f"{role}.api_key"] == "withheld"
        else:
            assert key_of(settings, role) == "mine"
    [warning] = settings.warnings
    variable = "OPENAI_BASE_URL" if field == "openai_base_url" else "LATE_SUBAGENT_BASE_URL"
    assert f"set {variable} yourself" in warning
    assert str(file) in warning
    assert "mine" not in warning


def test_the_key_is_sent_where_the_person_names_the_address_or_the_project_brings_its_own_key(
    home: Path, project: Path
) -> None:
    write_project(project, {"openai_base_url": "https://host.example/v1"})
    assert (
        key_of(load_settings(project, {"OPENAI_API_KEY": "mine", "OPENAI_BASE_URL": "https://host.example/v1"}))
        == "mine"
    )
    assert key_of(load_settings(project, {}, overrides={"main": {"base_url": "http://a", "api_key": "k"}})) == "k"
    write_user(home, {"openai_api_key": "mine", "openai_base_url": "https://host.example/v1"})
    assert key_of(load_settings(project, {})) == "mine"
    write_project(project, {"openai_base_url": "https://other.example/v1", "openai_api_key": "theirs"})
    settings = load_settings(project, {})
    assert key_of(settings) == "theirs"
    assert settings.warnings == ()


def test_no_key_is_shown_when_settings_are_printed(project: Path) -> None:
    settings = load_settings(project, {"OPENAI_API_KEY": "sk-123", "LATE_SUBAGENT_API_KEY": "sk-456"})
    assert "sk-" not in repr(settings) + str(settings) + settings.model_dump_json()


def test_a_key_in_a_file_that_others_can_read_is_warned_about(home: Path, project: Path) -> None:
    file = write_user(home, {"openai_api_key": "k"})
    file.chmod(0o644)
    assert f"chmod 600 {file}" in load_settings(project, {}).warnings[0]


def test_a_model_file_means_the_provider_in_process_unless_a_higher_source_names_an_endpoint(
    home: Path, project: Path
) -> None:
    write_user(home, {"local_model": "models/m.gguf"})
    settings = load_settings(project, {})
    assert settings.local is True
    assert settings.local_model == home / ".config" / "late" / "models" / "m.gguf"
    assert load_settings(project, {"OPENAI_BASE_URL": "http://server:1"}).local is False
    assert load_settings(project, {"LATE_LOCAL": "false"}).local is False
    asked = load_settings(project, {"OPENAI_BASE_URL": "http://server:1"}, overrides={"local": True})
    assert asked.local is True
    assert asked.local_model == settings.local_model


def test_paths_of_models_are_relative_to_their_file_or_the_current_folder_and_know_the_home(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(project, {"local_model": "m.gguf"})
    assert load_settings(project, {}).local_model == project / "m.gguf"
    monkeypatch.chdir(home)
    assert load_settings(project, {}, overrides={"local_model": "x.gguf"}).local_model == home / "x.gguf"
    assert load_settings(project, {"LATE_LOCAL_MODEL": "~/x.gguf"}).local_model == home / "x.gguf"


def test_dialects_of_all_files_add_up_and_a_flag_beats_them(home: Path, project: Path) -> None:
    write_user(home, {"dialects": {"a": "plain", "b": "plain"}, "dialect": "native"})
    write_project(project, {"dialects": {"b": "constrained"}})
    settings = load_settings(project, {})
    assert settings.dialects == {"a": "plain", "b": "constrained"}
    assert [settings.dialect_for("main", model) for model in "abc"] == ["plain", "constrained", "native"]
    flagged = load_settings(project, {}, overrides={"main.dialect": "constrained"})
    assert flagged.dialect_for("main", "a") == "constrained"
    assert flagged.dialect_for("subagent", "a") == "constrained"
    environ = {"LATE_SUBAGENT_DIALECT": "native"}
    assert load_settings(project, environ).dialect_for("subagent", "a") == "native"
    assert load_settings(project, environ).dialect_for("main", "a") == "plain"


def test_every_field_but_the_dialects_by_model_has_a_variable() -> None:
    fields = {name for name in load_settings(Path("/"), {}).sources if name != "dialects"}
    assert fields == set(VARIABLES.values())


def test_folders_are_created_for_their_owner_and_moved_by_their_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    monkeypatch.setenv("LATE_DATA_DIR", str(tmp_path / "deep" / "data"))
    assert data_dir() == tmp_path / "deep" / "data"
    for folder in (data_dir(), config_dir(), cache_dir()):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_created_is_named_with_the_variable_that_moves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LATE_DATA_DIR", str(tmp_path / "file" / "data"))
    with pytest.raises(UserError, match=str(tmp_path / "file")) as caught:
        data_dir()
    assert "LATE_DATA_DIR" in caught.value.hint


@pytest.mark.parametrize("home_value", [None, "", "x", "/nonexistent", "/etc/passwd"])
def test_an_unusable_home_is_passed_over_for_the_user_database_and_never_for_the_current_folder(
    tmp_path: Path, home_value: str | None
) -> None:
    script = (
        "import os, pwd, sys\n"
        "from pathlib import Path\n"
        "pwd.getpwuid = lambda uid: pwd.struct_passwd(('a', 'x', uid, uid, '', sys.argv[1], '/bin/sh'))\n"
        "from late.config.paths import *\n"
        "print(home_dir()); print(data_dir()); print(config_dir()); print(cache_dir())\n"
    )
    real = tmp_path / "real home"
    real.mkdir()
    current = tmp_path / "current"
    (current / "x").mkdir(parents=True)
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "HOME"))}
    if home_value is not None:
        environ["HOME"] = home_value
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, str(real)],
        cwd=current,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    folders = [Path(line) for line in done.stdout.splitlines()]
    assert folders[0] == real
    assert all(folder.is_relative_to(real) for folder in folders)
    assert list(current.rglob("*")) == [current / "x"]


def test_without_any_home_only_what_needs_one_fails(tmp_path: Path) -> None:
    script = (
        "import pwd\n"
        "def nobody(uid): raise KeyError(uid)\n"
        "pwd.getpwuid = nobody\n"
        "from pathlib import Path\n"
        "from late.config.paths import *\n"
        "from late.config.settings import load_settings\n"
        "from late.errors import UserError\n"
        "print(data_dir())\n"
        "print(load_settings(Path.cwd()).warnings[0])\n"
        "try: config_dir()\n"
        "except UserError as error: print(error.hint)\n"
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "HOME"))}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**environ, "LATE_DATA_DIR": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        check=True,
    )
    data, warning, hint = done.stdout.splitlines()
    assert data == str(tmp_path / "data")
    assert "there is no home folder" in warning
    assert "HOME" in hint


def test_a_relative_xdg_folder_is_ignored(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert data_dir().is_relative_to(home)
    assert home_dir() == home


def test_facts_about_models_are_remembered_per_endpoint_and_model(tmp_path: Path) -> None:
    memory = ModelMemory(tmp_path / "models.json")
    assert memory.get("http://a", "m") is None
    memory.put("http://a", "m", {"dialect": "plain"})
    memory.put("http://a", "n", {"dialect": "native"})
    memory.put("http://b", "m", {"dialect": "constrained"})
    again = ModelMemory(tmp_path / "models.json")
    assert again.get("http://a", "m") == {"dialect": "plain"}
    assert again.get("http://b", "m") == {"dialect": "constrained"}
    assert again.get("http://b", "n") is None
    assert (tmp_path / "models.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["", "{", "[]", '{"http://a": 5}', '{"http://a": {"m": 5}}'])
def test_a_damaged_memory_counts_as_empty(tmp_path: Path, content: str) -> None:
    memory = ModelMemory(tmp_path / "models.json")
    memory.path.write_text(content)
    assert memory.get("http://a", "m") is None
    memory.put("http://a", "m", {"x": 1})
    assert memory.get("http://a", "m") == {"x": 1}


def test_processes_that_remember_at_once_lose_nothing_and_show_no_half_file(tmp_path: Path) -> None:
    path = tmp_path / "models.json"
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from late.config.models import ModelMemory\n"
        "for number in range(40): ModelMemory(Path(sys.argv[1])).put(sys.argv[2], str(number), {'n': number})\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", script, str(path), name]) for name in "ab"]
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            json.loads(path.read_text())
    assert [writer.returncode for writer in writers] == [0, 0]
    memory = ModelMemory(path)
    assert all(memory.get(name, str(n)) == {"n": n} for name in "ab" for n in range(40))


def test_a_memory_that_cannot_be_written_says_where(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"models\.json"):
        ModelMemory(tmp_path / "none" / "models.json").put("a", "b", {})
