"""Builds llama-cpp-python, the in-process runtime, once for this machine, and installs it where `late` runs.

Its sources on PyPI take about three minutes to compile on two cores, tuned to the processor at hand; so the wheel
is kept in the user's cache under its version and the processor. It loads llama.cpp through ctypes (its tag is
`py3-none`), so one wheel serves every Python and every later environment.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from late.config import paths
from late.errors import UserError
from late.llm import pip
from late.llm.artifacts import fetch_lock
from late.llm.progress import Progress, Report

VERSION = "0.3.36"
REQUIREMENT = f"llama-cpp-python=={VERSION}"
_NINJA_STEP = re.compile(r"^\[(\d+)/(\d+)\] ")
_SOURCE = re.compile(r" -c (\S+)$")
_DETAIL_WIDTH = 100


def runtime_installed() -> bool:
    """Can this Python import llama-cpp-python?"""
    return importlib.util.find_spec("llama_cpp") is not None


def build_obstacle() -> str | None:
    """Why llama-cpp-python cannot be compiled here, or `None`; cmake and ninja come from the registry if need be."""
    for variable, names in (("CC", ("cc", "gcc", "clang")), ("CXX", ("c++", "g++", "clang++"))):
        chosen = os.environ.get(variable, "").split()
        if not any(shutil.which(name) for name in (chosen[:1] or names)):
            language = "C" if variable == "CC" else "C++"
            return f"there is no {language} compiler ({', '.join(chosen[:1] or names)})"
    return None


def cached_wheel() -> Path | None:
    """The wheel that was built for this processor, if there is one."""
    return next(iter(_wheel_folder().glob("*.whl")), None)


def ensure_runtime(report: Report) -> None:
    """Make `import llama_cpp` work: install the cached wheel, or build it first.

    Raises:
        UserError: no compiler, no pip, no network, or the build failed; the message holds its last words.
    """
    if runtime_installed():
        return
    with fetch_lock(report):
        wheel = cached_wheel() or _build(report)
        pip.install(wheel, _reporter("installing llama-cpp-python", report))
    if not runtime_installed():
        raise UserError(f"pip installed {wheel.name}, but {sys.executable} does not find llama_cpp.")


def _build(report: Report) -> Path:
    if obstacle := build_obstacle():
        raise UserError(
            f"llama-cpp-python has to be compiled here, and {obstacle}.",
            "Install one (Debian: `apt install build-essential`, macOS: `xcode-select --install`), "
            "or use a llama-server.",
        )
    folder = _wheel_folder()
    workshop = paths.cache_dir() / "build" / folder.name
    sources = workshop / "sources"
    if not sources.is_dir():
        archive = _fetch_archive(workshop, report)
        if archive.suffix == ".whl":
            return _keep(archive, folder, workshop)
        _unpack(archive, sources)
    # Sources and build folder stay where they are until the wheel is there: a build that was stopped goes on.
    shutil.rmtree(workshop / "wheel", ignore_errors=True)
    settings = {"build-dir": str(workshop / "objects")}
    wheel = pip.build_wheel(sources, workshop / "wheel", _reporter("compiling llama.cpp", report), settings)
    return _keep(wheel, folder, workshop)


def _fetch_archive(workshop: Path, report: Report) -> Path:
    shutil.rmtree(workshop / "archive", ignore_errors=True)
    on_output = _reporter("fetching llama-cpp-python", report)
    return pip.download(REQUIREMENT, workshop / "archive", on_output, sources=True)


def _unpack(archive: Path, sources: Path) -> None:
    """Unpack an archive of sources; the folder is there only when all of it is."""
    unfinished = sources.with_name("sources.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    with tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):  # Python 3.11.4
            tar.extractall(unfinished, filter="data")
        else:
            tar.extractall(unfinished)  # noqa: S202 -- pip has just run this archive's own build code
    (inner,) = unfinished.iterdir()
    inner.rename(sources)
    unfinished.rmdir()


def _keep(wheel: Path, folder: Path, workshop: Path) -> Path:
    """Move the wheel to where later environments find it, and clean up."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = wheel.replace(folder / wheel.name)
    shutil.rmtree(workshop)
    return kept


def _reporter(what: str, report: Report) -> pip.OnOutput:
    """Shows the builder's own count of steps once there is one, and the last line that it wrote."""
    step: tuple[float, float] | None = None
    detail = ""

    def on_output(output: pip.PipOutput) -> None:
        nonlocal step, detail
        if match := _NINJA_STEP.match(output.line):
            step = float(match[1]), float(match[2])
            source = _SOURCE.search(output.line)
            detail = Path(source[1]).name if source else detail
        elif output.line and step is None:
            detail = output.line[:_DETAIL_WIDTH]
        if step is None:
            report(Progress(what, output.elapsed_s, None, "seconds", detail, output.elapsed_s))
        else:
            report(Progress(what, *step, "steps", detail, output.elapsed_s))

    return on_output


def _wheel_folder() -> Path:
    system = f"{sys.platform}-{platform.machine()}"
    return paths.cache_dir() / "wheels" / f"llama-cpp-python-{VERSION}-{system}-{_processor_key()}"


def _processor_key() -> str:
    """A short name for what the compiler tunes its code to."""
    return hashlib.sha256(_processor().encode()).hexdigest()[:12]


def _processor() -> str:
    if sys.platform == "darwin":
        done = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=False
        )
        return done.stdout.strip()
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    wanted = re.findall(r"^(?:flags|Features)\s*:.*$", text, re.MULTILINE)
    return wanted[0] if wanted else text
