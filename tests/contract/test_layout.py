"""What is shipped: the wheel holds everything that the package needs, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from late import __version__

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist, and the wheel that was built out of it."""
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(next(built.glob("*.whl")))


def test_the_wheel_holds_the_package_and_its_prompts(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    sources = {
        f"late/{file.relative_to(ROOT / 'src' / 'late').as_posix()}"
        for file in (ROOT / "src" / "late").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    prompts = {f"late/prompts/{file.name}" for file in (ROOT / "prompts").glob("*.md")}
    assert "late/prompts/planner.md" in prompts
    assert "late/py.typed" in sources
    info = {name for name in names if name.startswith(f"late-{__version__}.dist-info/")}
    assert names == sources | prompts | info
    assert any(name.endswith("/licenses/LICENSE") for name in info)


def test_the_wheel_works_without_the_checkout(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path / "site")
    probe = (
        "import late; from late.config.prompts import load_prompt, prompt_names; from late.cli import main; "
        "print(late.__file__, *prompt_names()); load_prompt('planner'); main(['--version'])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", probe],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site"), "LATE_DATA_DIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    file, *prompts = done.stdout.splitlines()[0].split()
    assert Path(file).is_relative_to(tmp_path)
    assert {"planner", "coder", "researcher"} <= set(prompts)
    assert done.stdout.splitlines()[-1] == f"late {__version__}"


def test_the_sdist_holds_what_make_needs(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {
        "Makefile",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "docs/architecture.md",
        "prompts/planner.md",
        "scripts/demo.py",
        "examples/cart/shop/cart.py",
        "tests/contract/test_layout.py",
        "benchmarks/tasks/find_it/files/shop/__init__.py",
    } <= names
    assert not {name for name in names if name.startswith((".venv", ".git/", "dist"))}
