"""What an edit makes of odd files. In the data, `before` and `after` have one character a byte (Latin-1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from late.errors import ToolError
from late.tools.target_edit import TargetEdit
from support.tool_context import context_for


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "edit_cases.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
async def test_target_edit(case: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "file.txt"
    before = case["before"].encode("latin-1")
    file.write_bytes(before)
    tool, context = TargetEdit(), context_for(tmp_path)
    args = tool.Args(path="file.txt", search=case["search"], replace=case["replace"])
    if case["after"] is None:
        with pytest.raises(ToolError) as refused:
            await tool.run(args, context)
        with pytest.raises(ToolError) as refused_before:
            tool.preview(args, context)
        assert str(refused_before.value) == str(refused.value)
        told = f"{refused.value}\n{refused.value.hint}"
        assert file.read_bytes() == before
        assert len(told) < 6000
        told.encode("utf-8")
    else:
        result = await tool.run(args, context)
        told = result.content
        assert file.read_bytes() == case["after"].encode("latin-1")
        assert [(change.before, change.after) for change in result.changes] == [(before, file.read_bytes())]
    for words in case["says"]:
        assert words in told
    assert names(tmp_path) == ["file.txt"]
