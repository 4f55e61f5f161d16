"""Whatever a server streams becomes one clean answer: calls, thinking, finish reasons, figures."""

from __future__ import annotations

import gzip
import json
import time
from typing import Any

import pytest

from late.llm.provider import CallFragment, Counted, Progress, Reasoning, Text
from support import scripted_server as wire
from support.scripted_server import ScriptedServer, Step, call_part, chunk, finish, say, sse, text, usage
from support.wire import ask, completed, only, recorded

TOOLS = frozenset({"read_file", "write_file", "bash", "search", "read"})
Calls = list[tuple[str, str]]


async def answer(step: Step, **options: Any):
    with ScriptedServer([step]) as server:
        return await ask(server, tools=TOOLS, **options)


async def calls_of(*events: Any, **options: Any) -> Calls:
    done = completed(await answer(sse(*events), **options))
    return [(call.name, call.arguments) for call in done.calls]


def parts(*tool_calls: dict[str, Any]) -> dict[str, Any]:
    return chunk({"tool_calls": list(tool_calls)})


async def test_an_answer_in_words_is_streamed_and_then_given_whole():
    items = await answer(say("Hello big world.", reasoning="short thought"))
    assert [t.text for t in only(Text, items)] == ["Hello", " big", " world."]
    assert [r.text for r in only(Reasoning, items)] == ["short", " thought"]
    done = completed(items)
    assert (done.text, done.reasoning, done.finish, done.calls) == ("Hello big world.", "short thought", "stop", ())
    assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (100, 10)
    assert done.first_byte_ms is not None
    assert done.first_byte_ms > 0


# --- recorded from a real llama-server --------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_a_recorded_native_call_is_put_together_however_the_bytes_arrive(size: int):
    items = await answer(wire.raw(recorded("chat-stream-tool-call-native")).pieces(size))
    done = completed(items)
    assert [(c.name, c.arguments) for c in done.calls] == [("get_weather", '{"city": "Paris"}')]
    assert done.calls[0].id == "5Pmutbm1GlzUkYiLDYCdRiThUrxoVAdP"
    assert done.finish == "tool_calls"
    assert "".join(f.arguments for f in only(CallFragment, items)) == '{"city": "Paris"}'


async def test_recorded_parallel_calls_are_two_calls():
    done = completed(await answer(wire.raw(recorded("chat-stream-tool-calls-parallel"))))
    assert [json.loads(c.arguments)["city"] for c in done.calls] == ["Paris", "Rome"]


async def test_a_recorded_call_that_was_cut_keeps_its_arguments_as_they_are():
    done = completed(await answer(wire.raw(recorded("chat-stream-tool-call-cut"))))
    assert (done.finish, done.calls[0].arguments) == ("length", '{"city')


@pytest.mark.parametrize("size", [1, 3])
async def test_recorded_text_in_many_scripts_survives_bytes_that_come_one_by_one(size: int):
    done = completed(await answer(wire.raw(recorded("chat-stream-utf8")).pieces(size)))
    assert done.text == "你好，世界 — 🦊🚀 — naïve café"


async def test_recorded_prefill_is_reported_with_its_cached_part():
    items = await answer(wire.raw(recorded("chat-stream-cached")))
    assert [(p.total, p.cached, p.processed) for p in only(Progress, items)] == [(1212, 1198, 1198), (1212, 1198, 1212)]
    used = completed(items).usage
    assert (used.prompt_tokens, used.cached_tokens, used.completion_tokens) == (1212, 1198, 2)
    assert used.prompt_ms == pytest.approx(207.322)
    assert used.completion_ms == pytest.approx(42.799)
    assert {c.usage.prompt_tokens for c in only(Counted, items)} == {1212}


async def test_recorded_answers_without_extensions_and_without_streaming_are_answers_too():
    assert completed(await answer(wire.raw(recorded("chat-stream-plain-openai")))).text == "Hello!"
    whole = completed(await answer(wire.raw(recorded("chat-tool-required"), content_type="application/json")))
    assert whole.text.startswith("```json")
    assert whole.finish == "length"


async def test_the_recorded_end_by_the_token_limit_is_told():
    assert completed(await answer(wire.raw(recorded("chat-stream-length")))).finish == "length"


# --- calls ------------------------------------------------------------------------------------------------------------


async def test_a_call_without_an_id_gets_a_unique_one():
    events = (call_part(name="search", arguments=""), call_part(arguments='{"pattern":"x"}'), finish("tool_calls"))
    with ScriptedServer([sse(*events), sse(*events)]) as server:
        first = completed(await ask(server)).calls
        second = completed(await ask(server)).calls
    assert [(c.name, c.arguments) for c in first] == [("search", '{"pattern":"x"}')]
    assert len(first[0].id) == 9
    assert first[0].id.isalnum()
    assert first[0].id != second[0].id


async def test_an_id_that_the_conversation_has_already_is_replaced():
    history = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "call_0", "function": {"name": "bash"}}]},
        {"role": "tool", "tool_call_id": "call_0", "content": "ok"},
    ]
    with ScriptedServer([sse(call_part(call_id="call_0", name="bash", arguments="{}"))]) as server:
        done = completed(await ask(server, {"messages": history}))
    assert done.calls[0].id not in ("", "call_0")


async def test_two_calls_with_one_id_get_two():
    events = (
        call_part(0, call_id="same", name="bash", arguments="{}"),
        call_part(1, call_id="same", name="bash", arguments="{}"),
    )
    done = completed(await answer(sse(*events)))
    assert len({call.id for call in done.calls}) == 2


async def test_an_empty_id_counts_as_absent():
    done = completed(
        await answer(
            sse(
                call_part(call_id="call_9", name="bash", arguments=""),
                parts({"index": 0, "id": "", "function": {"name": "", "arguments": '{"command":"ls"}'}}),
            )
        )
    )
    assert [(c.id, c.name, c.arguments) for c in done.calls] == [("call_9", "bash", '{"command":"ls"}')]


READ_A, READ_B = '{"path":"a"}', '{"path":"b"}'


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(
            [
                call_part(0, call_id="a1", name="read_file", arguments=READ_A),
                call_part(0, call_id="b2", name="read_file", arguments=READ_B),
            ],
            id="one index, two ids",
        ),
        pytest.param(
            [
                call_part(0, call_id="a1", name="read_file", arguments=""),
                call_part(0, arguments=READ_A),
                call_part(0, call_id="b2", name="read_file", arguments=""),
                call_part(0, arguments=READ_B),
            ],
            id="one index, two ids, arguments later",
        ),
        pytest.param(
            [call_part(0, name="read_file", arguments=READ_A), call_part(0, name="read_file", arguments=READ_B)],
            id="one index, no ids",
        ),
        pytest.param(
            [
                parts(
                    {"function": {"name": "read_file", "arguments": READ_A}},
                    {"function": {"name": "read_file", "arguments": READ_B}},
                )
            ],
            id="neither index nor id",
        ),
        pytest.param(
            [
                parts({"id": "a", "function": {"name": "read_file", "arguments": '{"path"'}}),
                parts({"id": "b", "function": {"name": "read_file", "arguments": '{"path"'}}),
                parts({"id": "a", "function": {"arguments": ':"a"}'}}),
                parts({"id": "b", "function": {"arguments": ':"b"}'}}),
            ],
            id="ids without index, interleaved",
        ),
        pytest.param(
            [
                call_part(3, call_id="a", name="read_file", arguments='{"path"'),
                call_part(7, call_id="b", name="read_file", arguments='{"path"'),
                call_part(3, arguments=':"a"}'),
                call_part(7, arguments=':"b"}'),
            ],
            id="indices with gaps, interleaved",
        ),
        pytest.param(
            [
                {
                    "choices": [
                        {
                            "message": {
                                "tool_calls": [
                                    {"function": {"name": "read_file", "arguments": {"path": "a"}}},
                                    {"function": {"name": "read_file", "arguments": {"path": "b"}}},
                                ]
                            }
                        }
                    ]
                }
            ],
            id="whole message, objects",
        ),
    ],
)
async def test_two_calls_stay_two_calls(events: list[dict[str, Any]]):
    found = await calls_of(*events, finish("tool_calls"))
    assert [(name, json.loads(arguments)) for name, arguments in found] == [
        ("read_file", {"path": "a"}),
        ("read_file", {"path": "b"}),
    ]


async def test_another_tools_name_under_one_index_begins_another_call():
    assert await calls_of(call_part(0, name="bash", arguments=""), call_part(0, name="search", arguments=READ_A)) == [
        ("bash", ""),
        ("search", READ_A),
    ]


@pytest.mark.parametrize("ids", [("c", "c", "c"), (None, None, None), ("c", "d", "e")])
async def test_a_name_repeated_in_every_fragment_is_one_name(ids: tuple[str | None, ...]):
    fragments = ('{"path":', '"a","content":', '"x"}')
    events = [call_part(0, call_id=i, name="write_file", arguments=f) for i, f in zip(ids, fragments, strict=True)]
    assert await calls_of(*events) == [("write_file", '{"path":"a","content":"x"}')]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("read_", "file"), "read_file"),
        (("read", "_file"), "read_file"),
        (("read_", "read_file"), "read_file"),
        (("nothing", "bash"), "bash"),
        (("read_file<|channel|>commentary",), "read_file"),
        (("functions.read_file",), "read_file"),
        (("read_file.path",), "read_file.path"),
        (("bashbash",), "bashbash"),
    ],
)
async def test_a_name_in_fragments_is_joined_only_to_a_known_one(names: tuple[str, ...], expected: str):
    events = [call_part(0, call_id="c" if i == 0 else None, name=name) for i, name in enumerate(names)]
    assert await calls_of(*events, call_part(0, arguments=READ_A)) == [(expected, READ_A)]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({"path": "ä"}, '{"path": "ä"}'),
        ('"{\\"path\\":\\"a\\"}"', '{"path":"a"}'),
        ('"just text"', '"just text"'),
        ('"[1]"', '"[1]"'),
        ('{"text": "{\\"path\\": 1}"}', '{"text": "{\\"path\\": 1}"}'),
        ('{"command":"a\nb\tc"}', '{"command":"a\nb\tc"}'),
        ('{"path":"a.py","content":"def f(', '{"path":"a.py","content":"def f('),
        ("", ""),
    ],
)
async def test_arguments_are_kept_as_text_and_unwrapped_only_where_they_were_wrapped(sent: Any, kept: str):
    assert await calls_of(call_part(call_id="c", name="bash", arguments=sent)) == [("bash", kept)]


async def test_a_call_without_a_name_is_dropped():
    done = completed(await answer(sse(call_part(call_id="", name="", arguments="{}"), finish("tool_calls"))))
    assert (done.calls, done.finish) == ((), "stop")


async def test_the_old_form_of_a_call_is_understood():
    assert await calls_of(
        chunk({"function_call": {"name": "bash", "arguments": '{"command"'}}),
        chunk({"function_call": {"arguments": ':"ls"}'}}),
        finish("function_call"),
    ) == [("bash", '{"command":"ls"}')]


async def test_eight_megabytes_of_arguments_are_put_together_in_linear_time():
    big = json.dumps({"content": "x}" * (4 * 1024 * 1024)})
    start = time.perf_counter()
    [(_, one_line)] = await calls_of(call_part(call_id="c", name="write_file", arguments=big))
    pieces = [call_part(name="write_file", arguments=big[i : i + 4096]) for i in range(0, len(big), 4096)]
    [(_, many)] = await calls_of(*pieces)
    assert one_line == many == big
    assert time.perf_counter() - start < 20


# --- thinking ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
@pytest.mark.parametrize(
    ("content", "thinking", "said"),
    [
        ("<think>plan</think>Done", "plan", "Done"),
        ("\n<think>\nplan\n</think>\n\nDone", "plan", "Done"),
        ("<thinking>plan</thinking>Done", "plan", "Done"),
        ("plan</think>\nDone", "plan", "Done"),
        ("<think>I will call read_file ...", "I will call read_file ...", ""),
        ("<think></think>Done", "", "Done"),
        ("a <think>b</think>c", "b", "a c"),
        ("So:\n```xml\n<think>x</think>\n```\nend", "", "So:\n```xml\n<think>x</think>\n```\nend"),
        ("~~~~\n```\n</think>\n~~~~\n", "", "~~~~\n```\n</think>\n~~~~\n"),
        ("<think>p</think>\n```\n</think>\n```", "p", "```\n</think>\n```"),
        ("use `<think>` to think", "", "use `<think>` to think"),
        ("the <think> tag opens it", "", "the <think> tag opens it"),
        ('{"content": "<think>x</think>"}', "", '{"content": "<think>x</think>"}'),
        ('<tool_call>{"a": "</think>"}</tool_call>', "", '<tool_call>{"a": "</think>"}</tool_call>'),
        ("1 < 2 <", "", "1 < 2 <"),
        ("<thi", "", "<thi"),
        (
            "<|channel|>analysis<|message|>think<|end|><|start|>assistant<|channel|>final<|message|>four<|return|>",
            "think",
            "four",
        ),
        ("analysisthink...assistantfinalfour", "think...", "four"),
        ("analysis of the code", "", "analysis of the code"),
        ("analysisresults are in", "", "analysisresults are in"),
        ("the mark <|start|> begins", "", "the mark <|start|> begins"),
        ("`<|end|>` ends", "", "`<|end|>` ends"),
    ],
)
async def test_thinking_in_the_content_is_told_from_the_answer(content: str, thinking: str, said: str, size: int):
    fragments = [text(content[i : i + size]) for i in range(0, len(content), size)]
    done = completed(await answer(sse(*fragments, finish())))
    assert (done.reasoning, done.text) == (thinking, said)


async def test_harmony_marks_never_reach_the_screen():
    content = "<|channel|>analysis<|message|>think<|end|><|start|>assistant<|channel|>final<|message|>four"
    items = await answer(sse(*[text(letter) for letter in content]))
    assert "".join(t.text for t in only(Text, items)) == "four"
    assert "".join(r.text for r in only(Reasoning, items)) == "think"


async def test_a_harmony_call_that_leaked_into_the_content_is_a_call():
    done = completed(
        await answer(
            sse(
                text("<|channel|>analysis<|message|>read it<|end|><|start|>assistant<|channel|>commentary "),
                text('to=functions.read_file <|constrain|>json<|message|>{"path":"a"}<|call|>'),
            )
        )
    )
    assert [(c.name, c.arguments) for c in done.calls] == [("read_file", READ_A)]
    assert (done.reasoning, done.text, done.finish) == ("read it", "", "tool_calls")


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
async def test_thinking_in_a_field_of_its_own_is_thinking(key: str):
    done = completed(await answer(sse(chunk({key: "pl"}), chunk({key: "an", "content": None}), text("Done"))))
    assert (done.reasoning, done.text) == ("plan", "Done")


async def test_thinking_sent_under_both_names_is_not_doubled():
    done = completed(await answer(sse(chunk({"reasoning": "plan", "reasoning_content": "plan"}), text("Done"))))
    assert done.reasoning == "plan"


@pytest.mark.parametrize(
    ("message", "said", "thinking"),
    [
        ({"role": "assistant", "content": None}, "", ""),
        ({"role": "assistant"}, "", ""),
        ({"content": [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]}, "hi", ""),
        ({"content": []}, "", ""),
        ({"content": ["h", "i"]}, "hi", ""),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}, {"text": "hi"}]}, "hi", "t"),
    ],
)
async def test_content_may_be_missing_or_a_list_of_parts(message: dict[str, Any], said: str, thinking: str):
    streamed = completed(await answer(sse(chunk(message), finish())))
    whole = completed(await answer(wire.json({"choices": [{"message": message, "finish_reason": "stop"}]})))
    assert (streamed.text, streamed.reasoning) == (whole.text, whole.reasoning) == (said, thinking)


# --- ends and figures -------------------------------------------------------------------------------------------------


async def test_a_second_finish_chunk_changes_nothing_but_the_figures():
    done = completed(
        await answer(
            sse(
                call_part(call_id="c", name="bash", arguments='{"command":"ls"}'),
                finish("tool_calls"),
                chunk({}, "tool_calls", usage={"prompt_tokens": 5, "completion_tokens": 7}),
            )
        )
    )
    assert len(done.calls) == 1
    assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (5, 7)


@pytest.mark.parametrize("choices", [{"choices": []}, {"choices": None}, {}])
async def test_figures_may_come_without_choices(choices: dict[str, Any]):
    figures = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
    done = completed(await answer(sse(text("hi"), {**choices, "usage": figures})))
    assert (done.text, done.usage.prompt_tokens, done.usage.completion_tokens) == ("hi", 10, 3)
    alone = completed(await answer(sse({**choices, "usage": figures})))
    assert (alone.text, alone.usage.prompt_tokens) == ("", 10)


async def test_figures_in_every_chunk_are_not_added_up():
    done = completed(
        await answer(
            sse(
                chunk({"content": "a"}, usage={"prompt_tokens": 10, "completion_tokens": 1}),
                chunk({"content": "b"}, "stop", usage={"prompt_tokens": 10, "completion_tokens": 2}),
            )
        )
    )
    assert (done.text, done.usage.prompt_tokens, done.usage.completion_tokens) == ("ab", 10, 2)


async def test_a_server_that_counts_no_prompt_tokens_has_not_counted():
    done = completed(await answer(sse(text("a"), usage(prompt=0, completion=1))))
    assert done.usage.prompt_tokens is None


async def test_an_empty_finish_reason_is_none():
    items = await answer(sse(chunk({"content": "He"}, ""), chunk({"content": "llo"}, "stop")))
    assert completed(items).text == "Hello"


@pytest.mark.parametrize(
    ("said", "calls", "meant"),
    [
        ("stop", False, "stop"),
        ("eos", False, "stop"),
        ("stop", True, "tool_calls"),
        ("tool_calls", False, "stop"),
        ("length", True, "length"),
        ("max_tokens", False, "length"),
        ("content_filter", False, "error"),
    ],
)
async def test_finish_reasons_of_all_servers_are_read(said: str, calls: bool, meant: str):
    events = [call_part(call_id="c", name="bash", arguments="{}")] if calls else [text("x")]
    assert completed(await answer(sse(*events, finish(said)))).finish == meant


async def test_an_answer_as_long_as_its_limit_was_cut_whatever_the_server_says():
    step = sse(
        call_part(call_id="c", name="bash", arguments='{"commands":["npm install"]}'),
        finish("tool_calls"),
        usage(completion=64),
    )
    with ScriptedServer([step, step]) as server:
        limited = completed(await ask(server, {"messages": [], "max_tokens": 64}))
        roomy = completed(await ask(server, {"messages": [], "max_tokens": 65}))
    assert (limited.finish, roomy.finish) == ("length", "tool_calls")


async def test_only_the_first_choice_is_read():
    other = {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "length"}]}
    assert completed(await answer(sse(text("a"), other, finish()))).text == "a"


# --- framing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wire_bytes",
    [
        b'data: : OPENROUTER PROCESSING\n\ndata: {"choices":[{"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n',
        b'data: {"choices":[{"index":0,\ndata: "delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n',
        b': ping\r\n\r\ndata:{"choices":[{"delta":{"content":"hi"}}]}\r\n\r\ndata:[DONE]\r\n\r\n',
        b'\xef\xbb\xbfdata: {"choices":[{"delta":{"content":"hi"}}]}\r\rdata: [DONE]\r\r',
        b'data: {"choices":[{"delta":{"content":"h"}}]}\ndata: {"choices":[{"delta":{"content":"i"}}]}\ndata: [DONE]\n',
        b'event: ping\ndata: keep-alive\n\ndata: {"choices":[{"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n',
        b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}',
        b'  {"choices":[{"message":{"content":"hi"}}]}',
    ],
)
async def test_streams_are_read_in_every_form_that_servers_give_them(wire_bytes: bytes):
    assert completed(await answer(wire.raw(wire_bytes).pieces(5))).text == "hi"


async def test_a_compressed_stream_is_read_although_none_was_asked_for():
    stream = gzip.compress(b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n')
    step = Step((stream,), headers={"content-type": "text/event-stream", "content-encoding": "gzip"})
    with ScriptedServer([step.pieces(4)]) as server:
        assert completed(await ask(server)).text == "hi"
        assert server.requests[0].headers["accept-encoding"] == "identity"
