"""Fixtures for tests of the whole engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.project import make_project


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """late's data folder."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("LATE_DATA_DIR", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with a bug and a failing test, in git."""
    return make_project(tmp_path / "work")
