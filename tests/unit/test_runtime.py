from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import platformdirs
import pytest

import late
from late.llm import runtime

BACKEND = """
import pathlib, sys, zipfile
NAME, INFO = "llama_cpp_python-0.3.36-py3-none-any.whl", "llama_cpp_python-0.3.36.dist-info"
METADATA = "Metadata-Version: 2.1\\nName: llama-cpp-python\\nVersion: 0.3.36\\n"

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    (pathlib.Path(folder) / INFO).mkdir()
    (pathlib.Path(folder) / INFO / "METADATA").write_text(METADATA)
    return INFO

def build_wheel(folder, config_settings=None, metadata_directory=None):
    objects = pathlib.Path(config_settings["build-dir"])
    objects.mkdir(parents=True, exist_ok=True)
    print("[1/2] c++ -o llama.o -c llama.cpp", flush=True)
    if (pathlib.Path.home() / "break").exists():
        sys.exit("llama.cpp:1:1: error: the compiler gave up")
    (objects / "log").open("a").write("built\\n")
    print("[2/2] c++ -o llama.so llama.o", flush=True)
    with zipfile.ZipFile(pathlib.Path(folder) / NAME, "w") as wheel:
        wheel.writestr("llama_cpp/__init__.py", "")
        wheel.writestr(f"{INFO}/METADATA", METADATA)
        wheel.writestr(f"{INFO}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{INFO}/RECORD", "")
    return NAME
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "llama-cpp-python"
version = "0.3.36"
"""
ENSURE = """
from late.llm.runtime import ensure_runtime
from late.errors import UserError
try:
    ensure_runtime(lambda progress: print(progress, flush=True))
    import llama_cpp
    print("it is there")
except UserError as error:
    print(error)
    print(error.hint)
"""


@pytest.fixture
def machine(tmp_path: Path):
    """An index with a tiny source distribution under the runtime's name, an empty home, a bare environment."""
    assert runtime.REQUIREMENT.endswith("==0.3.36")
    index = tmp_path / "index"
    index.mkdir()
    with tarfile.open(index / "llama_cpp_python-0.3.36.tar.gz", "w:gz") as archive:
        metadata = "Metadata-Version: 2.1\nName: llama-cpp-python\nVersion: 0.3.36\n"
        for name, text in {"backend.py": BACKEND, "pyproject.toml": PROJECT, "PKG-INFO": metadata}.items():
            member = tarfile.TarInfo(f"llama_cpp_python-0.3.36/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    (libraries / "platformdirs").symlink_to(Path(platformdirs.__file__).parent)
    (libraries / "late").symlink_to(Path(late.__file__).parent)
    home = tmp_path / "home"
    home.mkdir()
    environment = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(libraries),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
    }
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)

    def ensure(**more: str) -> str:
        done = subprocess.run(
            [str(tmp_path / "venv/bin/python"), "-c", ENSURE],
            env=environment | more,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""
        return done.stdout

    ensure.home = home
    ensure.python = str(tmp_path / "venv/bin/python")
    return ensure


def test_the_runtime_is_compiled_once_and_kept_for_later_environments(machine):
    said = machine()
    assert "compiling llama.cpp: 1 of 2 steps · llama.cpp" in said
    assert said.endswith("it is there\n")
    kept = list((machine.home / ".cache/late/wheels").glob("llama-cpp-python-0.3.36-*/*.whl"))
    assert len(kept) == 1
    assert not list((machine.home / ".cache/late/build").glob("*"))

    subprocess.run([machine.python, "-m", "pip", "uninstall", "-qy", "llama-cpp-python"], check=True)
    said = machine()
    assert "compiling" not in said
    assert said.endswith("it is there\n")


def test_a_build_that_fails_says_why_and_goes_on_next_time(machine):
    (machine.home / "break").touch()
    said = machine()
    assert "llama.cpp:1:1: error: the compiler gave up" in said
    assert "it is there" not in said

    (machine.home / "break").unlink()
    said = machine()
    assert "fetching" not in said
    assert said.endswith("it is there\n")


def test_without_a_compiler_it_says_what_to_install(machine):
    said = machine(CXX="/nowhere/c++")
    assert "there is no C++ compiler (/nowhere/c++)" in said
    assert "build-essential" in said
