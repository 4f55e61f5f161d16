"""How an answer is cut into fragments says nothing about the answer."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from late.llm.assemble import Assembler
from late.llm.provider import CallFragment, Completed, Reasoning, StreamItem, Text
from late.llm.think import ThinkSplitter, split_thinking

snippets = st.sampled_from(
    [
        "<think>",
        "</think>",
        "<thinking>",
        "</thinking>",
        "<|start|>",
        "<|channel|>",
        "<|message|>",
        "<|end|>",
        "<|call|>",
        "analysis",
        "assistantfinal",
        "final",
        "commentary to=functions.bash ",
        "```",
        "~~~",
        "`",
        "\n",
        " ",
        "<",
        "<t",
        "<|",
        "{",
        "<tool_call>",
        "</tool_call>",
        "word",
        "ü🦀",
    ]
)
contents = st.lists(snippets, max_size=14).map("".join)
cuts = st.lists(st.integers(0, 120), max_size=30)


def pieces(whole: str, at: list[int]) -> list[str]:
    bounds = [0, *sorted(min(cut, len(whole)) for cut in at), len(whole)]
    return [whole[a:b] for a, b in itertools.pairwise(bounds)]


def split(*fragments: str) -> tuple[str, str, list[Any]]:
    splitter = ThinkSplitter()
    for fragment in fragments:
        splitter.feed(fragment)
    splitter.finish()
    return splitter.reasoning, splitter.text, splitter.calls


@given(contents, cuts)
def test_thinking_and_answer_do_not_depend_on_the_fragments(content: str, at: list[int]):
    assert split(*pieces(content, at)) == split(content) == split(*content)
    assert split(content)[:2] == split_thinking(content)


@given(st.text().filter(lambda t: "<" not in t and not t.lstrip().startswith("analysis")), cuts)
def test_an_answer_without_marks_is_left_as_it_is(content: str, at: list[int]):
    assert split(*pieces(content, at)) == ("", content, [])


@given(
    st.text(st.characters(exclude_characters="<`~"), min_size=1), st.text(st.characters(exclude_characters="<")), cuts
)
def test_what_stands_in_think_tags_is_thinking(thought: str, said: str, at: list[int]):
    reasoning, text, _ = split(*pieces(f"<think>{thought}</think>{said}", at))
    assert (reasoning, text) == (thought.strip(), said.lstrip())


def run(chunks: list[dict[str, Any]]) -> tuple[list[StreamItem], Completed]:
    assembler = Assembler({"read_file", "write_file"})
    items = [item for chunk in chunks for item in assembler.feed(chunk)]
    *rest, done = assembler.finish()
    assert isinstance(done, Completed)
    return [*items, *rest], done


arguments = st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=4).map(
    lambda value: json.dumps(value, ensure_ascii=False)
)


@given(st.lists(st.tuples(arguments, cuts), min_size=1, max_size=4), st.booleans())
def test_calls_in_any_number_of_fragments_are_the_calls_that_were_made(calls: list[tuple[str, list[int]]], ids: bool):
    chunks: list[dict[str, Any]] = []
    for index, (text, at) in enumerate(calls):
        first: dict[str, Any] = {"index": index, "function": {"name": "write_file", "arguments": ""}}
        if ids:
            first["id"] = f"id{index}"
        parts = [first, *({"index": index, "function": {"arguments": piece}} for piece in pieces(text, at))]
        chunks += [{"choices": [{"delta": {"tool_calls": [part]}}]} for part in parts]
    items, done = run(chunks)
    assert [call.arguments for call in done.calls] == [text for text, _ in calls]
    assert len({call.id for call in done.calls}) == len(calls)
    fragments = [item for item in items if isinstance(item, CallFragment)]
    for index, (text, _) in enumerate(calls):
        assert "".join(f.arguments for f in fragments if f.index == index) == text


KEYS = (
    "choices delta message tool_calls function name arguments id index content finish_reason usage prompt_tokens "
    "timings prompt_n prompt_progress total type"
).split()
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(st.sampled_from(["choices", "usage", "timings", "prompt_progress"]), json_values)))
def test_no_chunk_however_odd_breaks_the_assembly(chunks: list[dict[str, Any]]):
    items, done = run(chunks)
    assert all(isinstance(item.text, str) for item in items if isinstance(item, Text | Reasoning))
    assert all(call.name and call.id for call in done.calls)
