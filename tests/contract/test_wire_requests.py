"""What is sent: the bytes of a conversation only grow, and no server gets a key that it does not know."""

from __future__ import annotations

import json
from typing import Any

import pytest

from late.llm.body import encode_body
from support.scripted_server import Llama, ScriptedServer, say
from support.wire import QUESTION, ask, connected

TOOLS = [{"type": "function", "function": {"name": "bash", "description": "", "parameters": {"type": "object"}}}]
LLAMA = Llama()
LLAMA_CPP = {"cache_prompt": True, "return_progress": True, "timings_per_token": True}


async def sent(body: dict[str, Any], llama: Llama | None = LLAMA, **options: Any) -> dict[str, Any]:
    with ScriptedServer([say("ok")], llama=llama) as server:
        await ask(server, body, **options)
        return server.requests[0].json


async def test_the_bytes_of_a_request_begin_with_those_of_the_one_before():
    history: list[dict[str, Any]] = [{"role": "system", "content": "sé"}, {"role": "user", "content": "hi"}]
    turns = [
        {"temperature": 0.7, "messages": list(history), "tools": TOOLS, "max_tokens": 900, "id_slot": 0},
        {
            "response_format": {"type": "json_schema"},
            "id_slot": 1,
            "messages": [*history, {"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}],
            "tools": TOOLS,
        },
    ]
    with ScriptedServer([say("a"), say("b")]) as server:
        async with connected(server) as transport:
            for turn in turns:
                _ = [item async for item in transport.complete(turn)]
        first, second = (request.raw for request in server.requests)
    end = first.index(b"]", first.index(b'"hi"'))
    assert second.startswith(first[:end])
    assert first.index(b'"tools"') < first.index(b'"messages"') < first.index(b'"temperature"')
    assert json.loads(second)["response_format"] == {"type": "json_schema"}


async def test_llama_cpp_is_asked_for_its_extensions():
    body = await sent({**QUESTION, "id_slot": 1})
    assert body | LLAMA_CPP == body
    assert body["id_slot"] == 1
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})


async def test_other_servers_never_see_llama_cpps_keys():
    body = await sent({**QUESTION, "id_slot": 1, **LLAMA_CPP}, llama=None)
    assert set(body) == {"model", "stream", "stream_options", "messages"}


@pytest.mark.parametrize("slot", [2, 7, None])
async def test_a_slot_that_the_server_does_not_have_is_not_asked_for(slot: int | None):
    assert "id_slot" not in await sent({**QUESTION, "id_slot": slot}, llama=Llama(slots=2))


async def test_the_model_is_named_as_the_server_lists_it_or_as_the_person_wants():
    assert (await sent(QUESTION, llama=None))["model"] == "scripted-model"
    assert (await sent(QUESTION, llama=None, model="other"))["model"] == "other"


async def test_the_key_is_sent_as_a_bearer_token_and_only_if_there_is_one():
    with ScriptedServer([say("a"), say("b")]) as server:
        await ask(server, api_key="secret")
        await ask(server)
        with_key, without = (request.headers for request in server.requests)
    assert with_key["authorization"] == "Bearer secret"
    assert "authorization" not in without


async def test_a_proxy_of_the_environment_is_not_used_for_a_server_on_this_machine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert (await sent(QUESTION))["messages"] == QUESTION["messages"]


async def test_lone_surrogates_are_replaced_and_pairs_put_together():
    body = await sent({"messages": [{"role": "user", "content": "a\ud83d b\udced \ud83e\udd80 ü"}]})
    assert body["messages"][0]["content"] == "a\ufffd b\ufffd 🦀 ü"


def test_encoding_is_compact_utf8_and_the_same_each_time():
    body = {"messages": [{"role": "user", "content": "ü"}], "max_tokens": 1, "model": "m"}
    assert encode_body(body) == '{"model":"m","messages":[{"role":"user","content":"ü"}],"max_tokens":1}'.encode()
    assert encode_body({"content": "x", "parse_special": True}) == b'{"content":"x","parse_special":true}'
