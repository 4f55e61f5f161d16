"""What every agent's requests begin with stays small: on a local machine all of it is prefilled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from benchmarks.prompts import BUDGETS, CHARS_PER_TOKEN, LED, Head, heads
from support.model import llama_server as llama_server
from support.model import model_path as model_path
from support.model import server_binary as server_binary
from support.scripted_server import ScriptedServer, say

FIRST_REQUEST_CHARS = 6_000


@pytest.fixture(params=[*BUDGETS, *(f"{role}, led" for role in LED)])
def head(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Head:
    monkeypatch.setenv("LATE_DATA_DIR", str(tmp_path / "data"))
    project = tmp_path / "project"
    project.mkdir()
    return next(head for head in heads(project) if head.name == request.param)


def test_prompt_and_schemas_are_within_the_role_s_budget_by_a_cautious_estimate(head: Head) -> None:
    assert len(head.text) / CHARS_PER_TOKEN <= head.budget


@pytest.mark.model
@pytest.mark.timeout(180)
def test_prompt_and_schemas_are_within_the_role_s_budget_by_the_model_s_tokenizer(
    head: Head, llama_server: str
) -> None:
    prompt = httpx.post(f"{llama_server}/apply-template", json=head.body).raise_for_status().json()["prompt"]
    tokens = httpx.post(f"{llama_server}/tokenize", json={"content": prompt, "parse_special": True}).json()["tokens"]

    assert "read_file" in prompt
    assert len(tokens) <= head.budget


def test_the_first_request_of_a_small_project_is_short(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "cart.py").write_text("class Cart:\n    def total(self) -> int:\n        return 0\n")
    (project / "test_cart.py").write_text("from cart import Cart\n\n\ndef test_it():\n    assert Cart().total() == 0\n")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)

    with ScriptedServer([say("It is a cart.")]) as server:
        subprocess.run(
            [sys.executable, "-P", "-m", "late", "run", "--dialect", "native", "What does the cart do?"],
            cwd=project,
            check=True,
            env={
                **os.environ,
                "HOME": str(tmp_path),
                "LATE_DATA_DIR": str(tmp_path / "data"),
                "OPENAI_BASE_URL": server.base_url,
            },
        )
        first = server.requests[0].raw.decode()

    assert '"tools"' in first
    assert len(first) <= FIRST_REQUEST_CHARS
