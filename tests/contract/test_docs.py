"""What the documentation says is what the code does, as far as a program can tell."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from late import events
from late.cli import parse
from late.config.settings import VARIABLES, Endpoint, Settings, load_settings

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
DOCUMENTS = ["README.md", "AGENTS.md", "CHANGELOG.md", "docs/architecture.md"]


def section(text: str, heading: str) -> str:
    return text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def cells(row: str) -> list[str]:
    return [cell.strip().strip("`") for cell in row.strip().strip("|").split("|")]


def documented_settings() -> dict[str, tuple[str, str]]:
    rows = [row for row in section(README, "Settings").splitlines() if row.startswith("| `")]
    return {key: (variable, default) for key, variable, default, _ in map(cells, rows)}


def settings() -> dict[str, tuple[str, str]]:
    """Key → variable and default, as the code has them."""
    variable_of = {field: variable for variable, field in VARIABLES.items()}
    defaults: dict[str, object] = {}
    for inner in Endpoint.model_fields:
        defaults[f"main.{inner}"] = getattr(Endpoint(), inner)
        defaults[f"subagent.{inner}"] = None  # that of `main`
    for name in Settings.model_fields:
        if name not in ("main", "subagent", "warnings", "sources"):
            defaults[name] = getattr(Settings(), name)
    return {key: (variable_of.get(key, ""), shown(default)) for key, default in defaults.items()}


def shown(default: object) -> str:
    if default is None:
        return ""
    return default if isinstance(default, str) else json.dumps(default)


def test_the_table_of_settings_is_that_of_the_code() -> None:
    assert documented_settings() == settings()


def test_the_example_of_a_settings_file_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    example = re.search(r"```json\n(.*?)```", section(README, "Settings"), re.DOTALL)
    assert example
    (tmp_path / ".late").mkdir()
    (tmp_path / ".late" / "config.json").write_text(example[1], encoding="utf-8")

    found = load_settings(tmp_path, {})

    assert found.warnings == ()
    assert found.check_timeout_s == 600


def test_the_settings_for_working_on_late_with_late_are_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    own = json.loads((ROOT / ".late" / "config.json").read_text(encoding="utf-8"))

    found = load_settings(ROOT, {})

    assert found.warnings == ()
    assert {key: getattr(found, key) for key in own} == own


def test_every_event_is_documented_and_every_documented_event_exists() -> None:
    rows = [row for row in section(ARCHITECTURE, "Events").splitlines() if row.startswith("| `")]
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert documented == events.KNOWN_TYPES


@pytest.mark.parametrize("line", sorted(set(re.findall(r"^ +(late .*?)(?: +#.*)?$", README, re.MULTILINE))))
def test_every_command_in_the_readme_is_understood(line: str) -> None:
    words = re.sub(r" < .*", "", line).replace('"fix the failing test"', "task").split()[1:]
    arguments = parse(words)
    assert arguments.command


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    file = ROOT / document
    text = file.read_text(encoding="utf-8")
    headings = {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    }
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in headings, target
        elif not target.startswith("http"):
            assert (file.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS)
def test_modules_that_are_named_exist(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    for name in re.findall(r"`late((?:\.[a-z_]+)+)", text):
        parts = name.strip(".").split(".")
        base = ROOT / "src" / "late"
        assert (base.joinpath(*parts).with_suffix(".py")).exists() or base.joinpath(*parts).is_dir(), name
    for path in re.findall(r"`((?:tests|scripts|benchmarks|examples|prompts|src|docs)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), path


def test_targets_of_make_that_are_named_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for document in DOCUMENTS:
        for target in re.findall(r"(?:`|^    )make ([a-z-]+)", (ROOT / document).read_text(encoding="utf-8"), re.M):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
