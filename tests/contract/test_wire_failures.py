"""Failures: which are tried again, which are waited out, which are told, and in which words."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import aclosing
from typing import Any

import pytest

from late.errors import ContextOverflow, ProviderError
from late.llm.openai import OpenAITransport, Timeouts
from late.llm.provider import Progress, Retrying, Text, Waiting
from support import scripted_server as wire
from support.scripted_server import ScriptedServer, Signal, Step, chunk, error, finish, hang_up, prefill, say, sse, text
from support.wire import QUESTION, Naps, ask, completed, connected, only, recorded

# --- tried again ------------------------------------------------------------------------------------------------------

HTML = (
    b"<html><head><title>502 Bad\nGateway</title></head><body><h1>Sorry</h1>" + b"<p>x</p>" * 5000 + b"</body></html>"
)

PASSING = [
    pytest.param(error(500, "boom"), "boom", id="500"),
    pytest.param(wire.raw(HTML, status=502, content_type="text/html"), "502 Bad Gateway", id="502 with a page"),
    pytest.param(error(504, ""), "504", id="504"),
    pytest.param(hang_up(), "broke off", id="no answer at all"),
    pytest.param(sse(done=False), "before it began", id="empty stream"),
    pytest.param(sse(), "before it began", id="only [DONE]"),
    pytest.param(sse(text("par"), done=False), "broke off before its end", id="neither finish reason nor [DONE]"),
    pytest.param(sse(text("par"), done=False).cut(), "broke off", id="cut in mid-body"),
    pytest.param(sse(text("par"), b'data: {"choi', done=False), "no JSON", id="cut in mid-event"),
    pytest.param(sse(text("par"), {"error": {"message": "slot died", "code": 500}}), "slot died", id="error event"),
    pytest.param(sse(text("par"), {"error": "slot died"}), "slot died", id="error event, a string"),
    pytest.param(wire.json({"error": {"message": "overloaded", "type": "overloaded_error"}}), "overloaded", id="200"),
    pytest.param(wire.raw(b'{"choices":', content_type="application/json"), "no JSON", id="half a JSON body"),
]


@pytest.mark.parametrize(("failing", "reason"), PASSING)
async def test_a_passing_failure_is_tried_again_and_said_so(failing: Step, reason: str):
    with ScriptedServer([failing, say("ok")]) as server:
        items = await ask(server, naps=(naps := Naps()))
    assert completed(items).text == "ok"
    [retry] = only(Retrying, items)
    assert reason in retry.reason
    assert len(retry.reason) < 300
    assert (retry.attempt, retry.wait_s) == (1, 1.0)
    assert naps.taken == [1.0]
    assert server.requests[0].raw == server.requests[1].raw


async def test_what_was_streamed_before_a_failure_is_kept():
    broken = sse(text("one "), text("two"), done=False).cut()
    with ScriptedServer([broken] * 4) as server, pytest.raises(ProviderError) as raised:
        await ask(server)
    assert raised.value.partial == "one two"
    with ScriptedServer([broken, say("ok")]) as server:
        retries = only(Retrying, await ask(server))
    assert [r.partial for r in retries] == ["one two"]


async def test_retries_end_after_three_with_growing_waits():
    naps = Naps()
    with ScriptedServer([error(500, "boom")] * 4) as server:
        with pytest.raises(ProviderError, match="boom") as raised:
            await ask(server, naps=naps)
        assert len(server.requests) == 4
    assert naps.taken == [1.0, 2.0, 4.0]
    assert raised.value.hint


async def test_a_call_that_the_server_could_not_parse_is_asked_for_once_more_only():
    step = wire.raw(recorded("error-bad-json-arguments-in-history"), status=500, content_type="application/json")
    with ScriptedServer([step] * 2) as server:
        with pytest.raises(ProviderError, match="Failed to parse tool call arguments"):
            await ask(server)
        assert len(server.requests) == 2


async def test_an_end_without_done_is_an_end_if_a_finish_reason_came():
    whole = chunk({"content": "ok"}, "stop")
    with ScriptedServer([sse(whole, done=False), sse(whole, done=False).cut()]) as server:
        for _ in range(2):
            items = await ask(server)
            assert completed(items).text == "ok"
            assert only(Retrying, items) == []


# --- pauses -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limited", "wait"),
    [
        (error(429, "slow down", {"retry-after": "20"}), 20.0),
        (error(429, "slow down", {"retry-after-ms": "1500"}), 1.5),
        (error(429, "slow down"), 2.0),
        (error(429, "Quota exceeded for requests per minute. Please retry in 12.5s."), 12.5),
        (error(429, "slow down", {"retry-after": "soon"}), 2.0),
        (wire.json({"error": {"message": "Provider returned error", "code": 429}}), 2.0),
        (sse({"error": {"message": "Rate limit reached", "type": "rate_limit_exceeded"}}), 2.0),
        (error(503, "busy", {"retry-after": "7"}), 7.0),
    ],
)
async def test_a_pause_that_the_server_asks_for_is_kept(limited: Step, wait: float):
    naps = Naps()
    with ScriptedServer([limited, say("ok")]) as server:
        items = await ask(server, naps=naps)
    assert naps.taken == [wait]
    assert only(Retrying, items)[0].wait_s == wait
    assert completed(items).text == "ok"


async def test_a_pause_until_a_date_is_kept():
    with ScriptedServer([error(429, "x", {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}), say("ok")]) as server:
        assert only(Retrying, await ask(server))[0].wait_s == 0


async def test_a_limited_endpoint_is_shown_as_such():
    with ScriptedServer([error(429, "slow down", {"retry-after": "20"}), say("ok")]) as server:
        [waiting] = only(Waiting, await ask(server))
    assert waiting.state == "rate_limited"
    assert "slow down" in waiting.message


@pytest.mark.parametrize(
    "step",
    [
        error(429, "You exceeded your current quota, check your plan and billing", type="insufficient_quota"),
        error(402, "Insufficient credits"),
    ],
)
async def test_a_used_up_quota_is_not_tried_again(step: Step):
    with ScriptedServer([step]) as server, pytest.raises(ProviderError, match="quota is used up") as raised:
        await ask(server)
    assert "credit" in raised.value.hint


async def test_a_pause_of_hours_is_not_waited_for():
    with ScriptedServer([error(429, "tomorrow", {"retry-after": "40000"})]) as server, pytest.raises(ProviderError):
        await ask(server)


# --- not tried again --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "words", "hint"),
    [
        (error(400, "temperature must be below 2", type="invalid_request_error"), "temperature must be below 2", ""),
        (error(401, "Incorrect API key provided"), "Incorrect API key provided", "OPENAI_API_KEY"),
        (error(403, "not your model"), "not your model", "API key"),
        (error(404, "model `x` not found"), "model `x` not found", "model's name"),
        (wire.json({"detail": "Not authenticated"}, 401), "Not authenticated", "OPENAI_API_KEY"),
        (wire.json({"detail": [{"loc": ["body"], "msg": "field required"}]}, 422), "field required", ""),
        (wire.json({"error": "model is required"}, 400), "model is required", ""),
        (wire.json({"object": "error", "message": "bad thing", "code": 400}, 400), "bad thing", ""),
        (wire.json([{"error": {"message": "in a list", "code": 400}}], 400), "in a list", ""),
        (
            wire.json({"error": {"message": "Provider returned error", "metadata": {"raw": "why"}}}, 400),
            "error: why",
            "",
        ),
        (wire.raw(b"plain words", status=400, content_type="text/plain"), "plain words", ""),
        (wire.raw(b"", status=400, content_type="text/plain"), "status 400", ""),
        (wire.raw(recorded("error-not-json"), status=400), "'messages' is required", ""),
        (wire.raw(recorded("error-bad-schema"), status=400), "JSON schema conversion failed", ""),
        (wire.raw(recorded("error-image-without-vision"), status=500), "image input is not supported", ""),
        (wire.json({"error": {"message": "bad key", "type": "authentication_error"}}, 200), "bad key", "API_KEY"),
        (sse({"error": {"message": "bad words", "code": 400}}), "bad words", ""),
        (Step((b"",), 307, {"location": "http://127.0.0.1/"}), "redirect", "URL"),
        (wire.raw(b"<!doctype html><p>hi", content_type="text/html"), "web page", "/v1"),
    ],
)
async def test_a_refusal_is_told_once_in_the_servers_words(step: Step, words: str, hint: str):
    with ScriptedServer([step]) as server:
        with pytest.raises(ProviderError) as raised:
            await ask(server)
        assert len(server.requests) == 1
    assert words in str(raised.value)
    assert hint in raised.value.hint


# --- overflow ---------------------------------------------------------------------------------------------------------


def _error(status: int, body: Any) -> Step:
    return wire.json(body, status)


@pytest.mark.parametrize(
    ("step", "numbers"),
    [
        (wire.raw(recorded("error-context-overflow"), status=400), (20030, 16384)),
        (
            error(
                400,
                "the request exceeds the available context size",
                type="exceed_context_size_error",
                n_prompt_tokens=9001,
                n_ctx=8192,
            ),
            (9001, 8192),
        ),
        (
            _error(
                400,
                {
                    "object": "error",
                    "message": "This model's maximum context length is 8192 tokens. However, your prompt contains "
                    "at least 9001 input tokens",
                },
            ),
            (9001, 8192),
        ),
        (
            _error(
                400,
                {
                    "error": {
                        "message": "This model's maximum context length is 8192 tokens. However, you requested 9001 "
                        "tokens (8001 in the messages, 1000 in the completion)."
                    }
                },
            ),
            (9001, 8192),
        ),
        (
            _error(
                400,
                {"error": "The number of tokens to keep from the initial prompt is greater than the context length"},
            ),
            (None, None),
        ),
        (
            _error(
                400,
                {
                    "error": "Trying to keep the first 9001 tokens when context the overflows. However, the model is "
                    "loaded with context length of only 8192 tokens"
                },
            ),
            (None, None),
        ),
        (_error(400, {"error": {"code": "context_length_exceeded", "message": "..."}}), (None, None)),
        (
            error(400, "The input (9001 tokens) is longer than the model's context length (8192 tokens)."),
            (9001, 8192),
        ),
        (error(400, "prompt is too long: 9001 tokens > 8192 maximum"), (9001, 8192)),
        (
            error(400, "The input token count (9001) exceeds the maximum number of tokens allowed (8192)."),
            (9001, 8192),
        ),
        (error(500, "Context size has been exceeded."), (None, None)),
        (error(500, "context shift is disabled"), (None, None)),
        (wire.raw(b"Request Entity Too Large", status=413, content_type="text/plain"), (None, None)),
        (_error(422, {"detail": "input is too long for this model"}), (None, None)),
        (sse(text("par"), {"error": {"code": 500, "message": "Context size has been exceeded."}}), (None, None)),
    ],
)
async def test_overflow_is_recognised_in_the_words_of_each_server(step: Step, numbers: tuple[int | None, int | None]):
    with ScriptedServer([step]) as server:
        with pytest.raises(ContextOverflow) as raised:
            await ask(server)
        assert len(server.requests) == 1
    overflow = raised.value
    assert (overflow.prompt_tokens, overflow.window) == numbers
    assert "context window" in str(overflow)
    if numbers[0]:
        assert "9,001" in str(overflow) or "20,030" in str(overflow)


# --- waiting ----------------------------------------------------------------------------------------------------------


async def test_a_loading_model_is_waited_for_however_long_without_counting_as_a_retry():
    def nap(naps: Naps) -> None:
        server.loading = len(naps.taken) < 200

    with ScriptedServer([say("ok")], loading=True) as server:
        items = await ask(server, naps=Naps(nap))
    waits = only(Waiting, items)
    assert {w.state for w in waits} == {"loading"}
    assert len(waits) == 200
    assert waits[-1].elapsed_s >= 199
    assert "Loading model" in waits[0].message
    assert only(Retrying, items) == []
    assert completed(items).text == "ok"


async def test_a_model_that_loads_in_mid_session_is_waited_for():
    loading = error(503, "Loading model", type="unavailable_error")
    with ScriptedServer([*[loading] * 10, say("ok")]) as server:
        items = await ask(server)
    assert [w.elapsed_s >= i for i, w in enumerate(only(Waiting, items))] == [True] * 10
    assert completed(items).text == "ok"


async def test_waiting_for_the_description_is_told_to_whoever_wants_to_know():
    def nap(naps: Naps) -> None:
        server.loading = len(naps.taken) < 3

    told: list[Waiting] = []
    with ScriptedServer(loading=True) as server:
        async with connected(server, Naps(nap), on_wait=told.append) as transport:
            assert (await transport.describe()).context_window == 32768
    assert [w.state for w in told] == ["loading"] * 3


async def test_a_server_that_was_never_there_is_an_error_with_a_hint():
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        transport = OpenAITransport(f"http://127.0.0.1:{reserved.getsockname()[1]}", sleep=Naps())
        with pytest.raises(ProviderError, match=r"Nothing answers at http://127\.0\.0\.1") as raised:
            await transport.describe()
        await transport.close()
    assert "llama-server" in raised.value.hint
    assert "OPENAI_BASE_URL" in raised.value.hint


async def test_a_server_that_restarts_in_mid_run_gets_the_same_request_again():
    def nap(naps: Naps) -> None:
        if len(naps.taken) == 1:
            server.stop()
        if len(naps.taken) == 5:
            server.loading = True
            server.start()
        if len(naps.taken) == 8:
            server.loading = False

    with ScriptedServer([sse(text("par"), done=False).cut(), say("ok")]) as server:
        items = await ask(server, naps=Naps(nap))
        assert server.requests[0].raw == server.requests[1].raw
    states = [w.state for w in only(Waiting, items)]
    assert states[:4] == ["unreachable"] * 4
    assert states[4:] == ["loading"] * 3
    assert [r.partial for r in only(Retrying, items)] == ["par"]
    assert completed(items).text == "ok"


async def test_a_server_that_stays_away_is_given_up_after_two_minutes():
    naps = Naps(lambda naps: server.stop())
    cut = sse(text("par"), done=False).cut()
    with ScriptedServer([cut]) as server, pytest.raises(ProviderError, match="Nothing answers") as raised:
        await ask(server, naps=naps)
    assert 120 <= sum(naps.taken) < 130
    assert raised.value.partial == "par"
    assert "start the server again" in raised.value.hint


# --- time and cancelling ----------------------------------------------------------------------------------------------


async def test_closing_the_iterator_closes_the_connection_in_mid_prefill():
    never = Signal()
    with ScriptedServer([sse(prefill(1000, 0, 100), never)]) as server:
        async with connected(server) as transport:
            async with aclosing(transport.complete(QUESTION)) as items:
                assert isinstance(await anext(items), Progress)
            await server.requests[0].disconnected.seen(2)
        never.set()


@pytest.mark.parametrize("silent", ["before the head", "before the body", "in the body"])
async def test_cancelling_the_task_closes_the_connection(silent: str):
    never = Signal()
    step = {
        "before the head": sse().held(never),
        "before the body": sse(never),
        "in the body": sse(text("a"), never),
    }[silent]
    with ScriptedServer([step]) as server:
        async with connected(server) as transport:

            async def consume() -> None:
                async with aclosing(transport.complete(QUESTION)) as items:
                    async for _ in items:
                        pass

            task = asyncio.create_task(consume())
            await server.arrived(1).seen()
            start = time.perf_counter()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.requests[0].disconnected.seen(2)
            assert time.perf_counter() - start < 1
        never.set()


async def test_nothing_but_connecting_has_a_limit_by_default():
    transport = OpenAITransport("http://127.0.0.1:9")
    timeout = transport._new_client().timeout
    assert (timeout.connect, timeout.read, timeout.write, timeout.pool) == (10, None, None, None)


async def test_limits_for_the_first_byte_and_between_bytes_are_separate():
    never = Signal()
    quiet = sse(text("a"), never)
    with ScriptedServer([quiet, say("ok"), sse().held(never), say("ok")]) as server:
        between = await ask(server, timeouts=Timeouts(between_bytes_s=0.1))
        first = await ask(server, timeouts=Timeouts(first_byte_s=0.1))
        never.set()
    assert "sent nothing for 0.1 s" in only(Retrying, between)[0].reason
    assert "sent nothing for 0.1 s" in only(Retrying, first)[0].reason


async def test_connections_are_kept_alive_between_requests():
    with ScriptedServer([say("a"), say("b")]) as server:
        async with connected(server) as transport:
            for _ in range(2):
                _ = [item async for item in transport.complete(QUESTION)]
        assert server.requests[0].connection == server.requests[1].connection


async def test_a_server_that_keeps_the_connection_open_after_done_does_not_hold_the_answer_back():
    never = Signal()
    with ScriptedServer([sse(text("a"), finish(), "[DONE]", never, done=False)]) as server:
        start = time.perf_counter()
        items = await ask(server)
        assert time.perf_counter() - start < 2
        assert [t.text for t in only(Text, items)] == ["a"]
        completed(items)
        never.set()


async def test_several_answers_stream_at_once():
    gate = Signal()
    with ScriptedServer([sse(text("one"), gate, text(" two")), say("quick")]) as server:
        async with connected(server) as transport:
            slow = transport.complete(QUESTION)
            assert isinstance(await anext(slow), Text)
            assert completed([i async for i in transport.complete(QUESTION)]).text == "quick"
            gate.set()
            assert completed([i async for i in slow]).text == "one two"
