from __future__ import annotations

import asyncio
import json
import time
from contextlib import aclosing
from pathlib import Path

import pytest

from late.errors import ContextOverflow, ProviderError, UserError
from late.llm.local import LocalTransport, available_cores
from late.llm.provider import Completed, Progress, Text

pytestmark = [pytest.mark.model, pytest.mark.timeout(300)]
pytest.importorskip("llama_cpp", reason="the `local` extra is not installed")

SYSTEM = {"role": "system", "content": "You are a coding agent. You read files before you answer."}
LONG = "\n".join(f"Line {number}: the quick brown fox jumps over the lazy dog." for number in range(300))
CALLS = {
    "type": "json_schema",
    "json_schema": {
        "name": "turn",
        "schema": {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {
                        "name": {"const": "read_file"},
                        "arguments": {
                            "type": "object",
                            "properties": {"path": {"enum": ["cart.py", "README.md"]}},
                            "required": ["path"],
                            "additionalProperties": False,
                        },
                    },
                    "required": ["name", "arguments"],
                    "additionalProperties": False,
                }
            ]
        },
    },
}


@pytest.fixture(scope="module")
def transport(model_path: Path):
    transport = LocalTransport(model_path, ctx=8192, slots=2, threads=available_cores())
    yield transport
    asyncio.run(transport.close())


async def answer(transport: LocalTransport, **body) -> Completed:
    async with aclosing(transport.complete({"max_tokens": 60, "temperature": 0, **body})) as stream:
        async for item in stream:
            if isinstance(item, Completed):
                return item
    raise AssertionError("the stream ended without Completed")


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


async def test_it_says_what_it_serves(transport, model_path):
    info = await transport.describe()

    assert (info.server, info.slots, info.context_window) == ("in-process", 2, 4096)
    assert info.endpoint == str(model_path)
    assert info.parameters is not None
    assert 1e9 < info.parameters < 2e9
    assert "<|im_start|>" in info.chat_template


async def test_an_answer_streams_and_is_counted(transport):
    body = {"messages": [user("Count from 1 to 5.")], "max_tokens": 40}
    pieces = [item async for item in transport.complete(body)]

    completed = pieces[-1]
    texts = [item.text for item in pieces if isinstance(item, Text)]
    assert isinstance(completed, Completed)
    assert "".join(texts) == completed.text
    assert len(texts) > 5
    assert completed.usage.completion_tokens is not None
    assert completed.usage.completion_tokens >= len(texts)


async def test_a_constrained_answer_matches_its_schema_whatever_is_asked(transport):
    completed = await answer(
        transport, messages=[SYSTEM, user("Write me a poem about autumn.")], response_format=CALLS, temperature=1.5
    )

    call = json.loads(completed.text)
    assert call["name"] == "read_file"
    assert call["arguments"]["path"] in {"cart.py", "README.md"}
    assert completed.finish == "stop"


async def test_a_later_turn_computes_only_what_is_new(transport):
    first = [
        SYSTEM,
        user(LONG[:4000]),
    ]
    one = await answer(transport, messages=first, id_slot=0, max_tokens=8)
    two = await answer(
        transport,
        messages=[*first, {"role": "assistant", "content": one.text}, user("Go on.")],
        id_slot=0,
        max_tokens=8,
    )

    assert one.usage.prompt_tokens is not None
    assert two.usage.cached_tokens is not None
    assert two.usage.cached_tokens >= one.usage.prompt_tokens - 1


async def test_a_coder_in_between_leaves_the_planners_state_alone(transport):
    planner = [SYSTEM, user(f"{LONG[:2000]}\nThe code word is walrus.")]
    one = await answer(transport, messages=planner, id_slot=0, max_tokens=4)
    await answer(transport, messages=[user(f"The code word is tomato. {LONG[:2000]}")], id_slot=1, max_tokens=4)
    two = await answer(
        transport,
        messages=[*planner, {"role": "assistant", "content": one.text}, user("What is the code word?")],
        id_slot=0,
    )

    assert two.usage.cached_tokens is not None
    assert one.usage.prompt_tokens is not None
    assert two.usage.cached_tokens >= one.usage.prompt_tokens - 1  # the last is computed for its logits
    assert "walrus" in two.text.lower()


async def test_closing_the_stream_stops_a_prefill_at_once_and_the_next_request_works(transport):
    stream = transport.complete({"messages": [user("Cancelled. " + LONG[:12000])], "id_slot": 1})
    async for item in stream:
        if isinstance(item, Progress):
            break
    started = time.monotonic()
    await stream.aclose()
    assert time.monotonic() - started < 1.0

    completed = await answer(transport, messages=[user("Say hello.")], id_slot=1, max_tokens=10)
    assert "hello" in completed.text.lower()


async def test_the_event_loop_stays_responsive_while_the_model_computes(transport):
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.02)
            beats += 1

    heart = asyncio.create_task(beat())
    started = time.monotonic()
    await answer(transport, messages=[user("Responsive. " + LONG[:3000])], id_slot=1, max_tokens=4)
    elapsed = time.monotonic() - started
    heart.cancel()
    assert beats > elapsed / 0.02 * 0.5


async def test_two_requests_at_once_are_both_answered(transport):
    both = await asyncio.gather(
        answer(transport, messages=[user("What is the capital of France?")], id_slot=0),
        answer(transport, messages=[user("What is the capital of Italy?")], id_slot=1),
    )
    assert "Paris" in both[0].text
    assert "Rome" in both[1].text


async def test_the_model_goes_on_with_an_answer_that_was_begun(transport):
    begun = {"role": "assistant", "content": "One, two, three,"}
    completed = await answer(transport, messages=[user("Count to five in words."), begun], max_tokens=6)
    assert completed.text.lstrip().lower().startswith("four")


async def test_a_stop_word_ends_the_answer_before_it(transport):
    completed = await answer(transport, messages=[user("Count from 1 to 9, separated by commas.")], stop=["4"])
    assert "3" in completed.text
    assert "4" not in completed.text
    assert completed.finish == "stop"


async def test_a_limit_of_tokens_is_told_as_such(transport):
    completed = await answer(transport, messages=[user("Count from 1 to 99.")], max_tokens=5)
    assert completed.finish == "length"
    assert completed.usage.completion_tokens == 5


async def test_a_prompt_over_the_window_is_refused_with_the_numbers(transport):
    with pytest.raises(ContextOverflow) as refusal:
        await answer(transport, messages=[user(LONG * 3)])

    assert refusal.value.window == 4096
    assert refusal.value.prompt_tokens > 4096


async def test_a_schema_that_cannot_be_used_is_told(transport):
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nonsense"}}}
    with pytest.raises(ProviderError, match="nonsense"):
        await answer(transport, messages=[user("Hi")], response_format=form)


async def test_a_grammar_that_cannot_be_read_is_told(transport):
    with pytest.raises(ProviderError, match="cannot read the grammar"):
        await answer(transport, messages=[user("Hi")], grammar="root ::= (")


async def test_tokens_are_counted_with_special_ones_parsed(transport):
    assert await transport.tokenize("<|im_start|>") == 1


async def test_llama_cpp_writes_nothing_on_standard_error(model_path, capfd):
    transport = LocalTransport(model_path, ctx=512, slots=1)
    await answer(transport, messages=[user("Hi")], max_tokens=2)
    await transport.close()

    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "cannot be read"), (b"hello world", "no GGUF"), (b"GGUF\x03\0\0\0" + b"\xff" * 40, "cannot be loaded")],
    ids=["missing", "other-file", "damaged"],
)
async def test_a_file_that_is_no_model_is_named_with_the_reason(tmp_path, content, words):
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    transport = LocalTransport(path)
    with pytest.raises(UserError, match=words) as refusal:
        await transport.describe()
    assert str(path) in str(refusal.value)
    await transport.close()


async def test_a_truncated_model_is_told(model_path, tmp_path):
    path = tmp_path / "half.gguf"
    with model_path.open("rb") as whole:
        path.write_bytes(whole.read(40_000_000))
    transport = LocalTransport(path)
    with pytest.raises(UserError, match=r"llama\.cpp says"):
        await transport.describe()
    await transport.close()
