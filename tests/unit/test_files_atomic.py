"""Reading and writing whole files: nothing hangs, nothing is half written, no update is lost."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from late.errors import ToolError
from late.workspace.files import read_bytes, write_atomic


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def program(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_a_new_file_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        write_atomic(tmp_path / "new.txt", b"x", expect=None)
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "new.txt") == 0o664
    assert names(tmp_path) == ["new.txt"]


@pytest.mark.parametrize("mode", [0o755, 0o640, 0o600])
def test_the_mode_of_a_file_is_kept(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "run.sh"
    file.write_bytes(b"old")
    file.chmod(mode)
    write_atomic(file, b"new", expect=b"old")
    assert (mode_of(file), file.read_bytes()) == (mode, b"new")


def test_set_user_id_is_not_given_to_new_content(tmp_path: Path) -> None:
    file = tmp_path / "tool"
    file.write_bytes(b"old")
    file.chmod(0o6755)
    write_atomic(file, b"new", expect=b"old")
    assert mode_of(file) == 0o755


def test_a_link_stays_and_its_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    real, link = tmp_path / "sub" / "real", tmp_path / "link"
    real.write_bytes(b"a")
    link.symlink_to("sub/real")
    write_atomic(link, b"b", expect=b"a")
    assert link.is_symlink()
    assert real.read_bytes() == b"b"
    assert names(tmp_path / "sub") == ["real"]


@pytest.mark.parametrize(
    ("expect", "there", "said"),
    [
        (b"a", b"b", "changed by somebody else"),
        (b"a", None, "deleted"),
        (None, b"b", "created by somebody else"),
    ],
)
def test_a_file_that_is_not_as_expected_is_left_alone(
    tmp_path: Path, expect: bytes | None, there: bytes | None, said: str
) -> None:
    file = tmp_path / "f"
    if there is not None:
        file.write_bytes(there)
    with pytest.raises(ToolError, match=said):
        write_atomic(file, b"mine", expect=expect)
    assert (file.read_bytes() if file.exists() else None) == there
    assert names(tmp_path) == ([] if there is None else ["f"])


def test_a_read_only_file_is_refused_though_a_rename_would_work(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"a")
    file.chmod(0o444)
    with pytest.raises(ToolError, match=r"f is read-only \(mode 444\)"):
        write_atomic(file, b"b", expect=b"a")
    assert (file.read_bytes(), mode_of(file)) == (b"a", 0o444)


def test_a_read_only_folder_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    (folder / "f").write_bytes(b"a")
    folder.chmod(0o555)
    try:
        with pytest.raises(ToolError, match=r"The folder .*locked is read-only"):
            write_atomic(folder / "f", b"b", expect=b"a")
        assert (folder / "f").read_bytes() == b"a"
        assert names(folder) == ["f"]
    finally:
        folder.chmod(0o755)


FULL_DISK = """
import resource, sys
from pathlib import Path
from late.errors import ToolError
from late.workspace.files import write_atomic
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    write_atomic(Path(sys.argv[1]), b"n" * 300_000, expect=b"old")
except ToolError as error:
    print(error, error.hint)
"""


def test_a_disk_that_takes_only_a_part_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    """A limit on the size of files makes the system do what a full disk does: a short write, then an error."""
    file = tmp_path / "f"
    file.write_bytes(b"old")
    out, err = program(FULL_DISK, file).communicate(timeout=20)
    assert err == ""
    assert "was not written, the disk mounted at /" in out
    assert file.read_bytes() == b"old"
    assert names(tmp_path) == ["f"]


COUNTER = """
import sys
from pathlib import Path
from late.errors import ToolError
from late.workspace.files import read_bytes, write_atomic
file, told = Path(sys.argv[1]), 0
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    data = read_bytes(file)
    try:
        write_atomic(file, str(int(data) + 1).encode(), expect=data)
    except ToolError:
        continue
    told += 1
print(told)
"""


def test_two_processes_never_report_an_update_that_the_other_one_undid(tmp_path: Path) -> None:
    file = tmp_path / "counter"
    file.write_bytes(b"0")
    programs = [program(COUNTER, file, 150) for _ in range(2)]
    for each in programs:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in programs:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    told = [int(each.communicate(timeout=50)[0]) for each in programs]
    assert int(file.read_bytes()) == sum(told)
    assert all(told)


def test_only_one_of_many_makes_a_new_file(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom late.errors import ToolError\n"
        "from late.workspace.files import write_atomic\nprint('ready', flush=True)\nsys.stdin.readline()\n"
        "try:\n    write_atomic(Path(sys.argv[1]), sys.argv[2].encode(), expect=None)\n    print('made')\n"
        "except ToolError as error:\n    print(error)\n"
    )
    programs = [program(code, tmp_path / "new", number) for number in range(3)]
    for each in programs:
        assert each.stdout is not None
        each.stdout.readline()
    outs = [each.communicate("go\n", timeout=30)[0] for each in programs]
    winners = [str(number) for number, out in enumerate(outs) if out == "made\n"]
    assert winners == [(tmp_path / "new").read_text()]
    assert names(tmp_path) == ["new"]


def test_a_lock_of_another_program_is_waited_for_and_then_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("late.workspace.atomic._LOCK_WAIT_S", 0.1)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(ToolError, match="locked the folder"):
            write_atomic(tmp_path / "f", b"x", expect=None)
        assert names(tmp_path) == []
    finally:
        os.close(descriptor)
    write_atomic(tmp_path / "f", b"x", expect=None)
    assert (tmp_path / "f").read_bytes() == b"x"


def test_what_is_no_file_is_refused_at_once_and_by_its_kind(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "sock"))
        start = time.monotonic()
        for name, kind in {
            "pipe": "a named pipe",
            "link": "a named pipe",
            "sock": "a socket",
            "/dev/zero": "a device",
            "/dev/tty": "a device",
            ".": "a folder",
        }.items():
            with pytest.raises(ToolError, match=kind):
                read_bytes(tmp_path / name)
            with pytest.raises(ToolError, match=kind):
                write_atomic(tmp_path / name, b"x", expect=b"")
        assert time.monotonic() - start < 1


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc here")
def test_the_environment_of_a_process_is_never_read(tmp_path: Path) -> None:
    (tmp_path / "env").symlink_to("/proc/self/environ")
    paths = [
        "/proc/self/environ",
        "/proc/thread-self/environ",
        f"/proc/{os.getpid()}/environ",
        f"/proc/self/task/{os.getpid()}/environ",
        "/proc/self/root/proc/self/environ",
        "/proc/self/cwd/../../../../../../../proc/self/environ",
        tmp_path / "env",
        "/proc/self/mem",
    ]
    for path in map(Path, paths):
        with pytest.raises(ToolError, match=r"secrets|does not exist"):
            read_bytes(path)


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="no /proc here")
def test_a_file_that_says_it_is_empty_is_read_all_the_same() -> None:
    assert Path("/proc/version").stat().st_size == 0
    assert re.match(rb"\w+ version", read_bytes(Path("/proc/version")))


def test_a_file_that_is_far_too_long_is_refused_without_being_read(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        file.truncate(30_000_000_000)
    start = time.monotonic()
    with pytest.raises(ToolError, match="30,000,000,000 bytes"):
        read_bytes(tmp_path / "log")
    assert time.monotonic() - start < 1
