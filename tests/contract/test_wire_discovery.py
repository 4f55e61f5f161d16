"""What an endpoint serves: found on every kind of server, whatever the base URL looks like."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from late.errors import ProviderError, UserError
from late.llm.discovery import Endpoint, Reply, discover
from late.llm.failures import RequestFailed
from late.llm.openai import OpenAITransport
from late.llm.transport import ServerInfo
from support.scripted_server import Llama, ScriptedServer, error
from support.wire import Naps, connected, recorded

Answers = dict[str, Any]


def served(answers: Answers) -> tuple[Callable[[str], Any], list[str]]:
    """A site with JSON at some paths, and the list of the paths that were asked for."""
    asked: list[str] = []

    async def get(url: str) -> Reply:
        path = url.removeprefix("http://host:1")
        asked.append(path)
        answer = answers.get(path, (404, {"error": {"message": "not found"}}))
        status, body = answer if isinstance(answer, tuple) else (200, answer)
        return Reply(status, body if isinstance(body, bytes) else json.dumps(body).encode())

    return get, asked


async def found(answers: Answers, url: str = "http://host:1/v1", model: str | None = None) -> ServerInfo:
    get, _ = served(answers)
    return (await discover(get, Endpoint.parse(url), model)).info


def props(n_ctx: int = 16384, **fields: Any) -> Answers:
    return {"default_generation_settings": {"n_ctx": n_ctx}, "total_slots": 2, **fields}


def models(*entries: Any) -> Answers:
    return {"object": "list", "data": [e if isinstance(e, dict) else {"id": e} for e in entries]}


async def test_a_recorded_llama_server_is_described_by_what_it_serves():
    get, _ = served({"/props": recorded("props"), "/v1/models": recorded("models")})
    discovered = await discover(get, Endpoint.parse("http://host:1"), None)
    info = discovered.info
    assert info.server == "llama.cpp"
    assert info.context_window == 16384, "the window of a slot, and neither the total nor the trained one"
    assert (info.slots, info.vision, info.parameters) == (2, False, 1777088000)
    assert info.model == "qwen2.5-coder-1.5b-q4_k_m.gguf"
    assert info.build == "b1-7e4c0a9"
    assert "<|im_start|>" in info.chat_template
    assert discovered.model == "models/qwen2.5-coder-1.5b-q4_k_m.gguf"


@pytest.mark.parametrize(
    ("url", "base", "shown"),
    [
        ("http://host:1", "http://host:1/v1", "http://host:1/v1"),
        ("http://host:1/", "http://host:1/v1", "http://host:1/v1"),
        ("http://host:1/v1/", "http://host:1/v1", "http://host:1/v1"),
        ("http://host:1/api/v3", "http://host:1/api/v3", "http://host:1/api/v3"),
        ("http://host:1/v1/chat/completions", "http://host:1/v1", "http://host:1/v1"),
        ("host:1", "http://host:1/v1", "http://host:1/v1"),
        ("https://me:pw@host/v1", "https://me:pw@host/v1", "https://host/v1"),
        ("http://[::1]:8080", "http://[::1]:8080/v1", "http://[::1]:8080/v1"),
    ],
)
def test_a_base_url_is_read_as_people_write_it(url: str, base: str, shown: str):
    endpoint = Endpoint.parse(url)
    assert (endpoint.base, endpoint.shown) == (base, shown)


@pytest.mark.parametrize("url", ["", "ftp://host", "http://", "http://host:port", "http://host:99999"])
def test_what_is_no_base_url_is_told_to_the_person(url: str):
    with pytest.raises(UserError, match="no base URL"):
        OpenAITransport(url)


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:8080", True),
        ("http://127.0.0.1", True),
        ("http://192.168.1.5:8080", True),
        ("http://[::1]", True),
        ("http://gpu-box:8080", True),
        ("http://gpu.local", True),
        ("https://api.openai.com/v1", False),
        ("http://8.8.8.8", False),
    ],
)
def test_local_servers_are_known_by_their_address(url: str, local: bool):
    assert Endpoint.parse(url).local is local


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://host:1/v1", "/props"),
        ("http://host:1/llama/v1", "/llama/props"),
        ("http://host:1/llama/v1", "/llama/v1/props"),
        ("http://host:1/llama/v1", "/props"),
    ],
)
async def test_llama_cpp_is_found_below_at_or_above_the_base(url: str, path: str):
    info = await found({path: props(), urlsplit(url).path + "/models": models("m")}, url)
    assert (info.server, info.context_window) == ("llama.cpp", 16384)


async def test_a_proxy_that_wants_the_models_name_is_told_it():
    get, asked = served({"/props?model=big%2Fone": props(8192), "/v1/models": models("small", "big/one")})
    info = (await discover(get, Endpoint.parse("http://host:1"), "big/one")).info
    assert (info.server, info.context_window) == ("llama.cpp", 8192)
    assert parse_qs(urlsplit(asked[1]).query) == {"model": ["big/one"]}


async def test_of_several_models_the_wanted_one_is_described_else_a_loaded_one_else_the_first():
    listing = models(
        {"id": "a", "max_model_len": 1000},
        {"id": "b", "max_model_len": 2000, "status": {"value": "loaded"}},
        {"id": "dir/c", "max_model_len": 3000},
    )
    assert (await found({"/v1/models": listing})).context_window == 2000
    assert (await found({"/v1/models": listing}, model="a")).context_window == 1000
    assert (await found({"/v1/models": listing}, model="c")).context_window == 3000
    unlisted = await found({"/v1/models": listing}, model="d")
    assert (unlisted.model, unlisted.context_window) == ("d", None)
    assert (await found({"/v1/models": models("x", "y")})).model == "x"


@pytest.mark.parametrize(
    "entry",
    [
        {"id": "m", "max_model_len": 4096},
        {"id": "m", "context_length": 4096},
        {"id": "m", "context_window": 4096},
        {"id": "m", "max_context_length": 131072, "loaded_context_length": 4096},
        {"id": "m", "meta": {"n_ctx": 4096, "n_ctx_train": 131072}},
    ],
)
async def test_the_window_is_read_where_each_server_tells_it(entry: Answers):
    assert (await found({"/v1/models": models(entry)})).context_window == 4096


async def test_a_server_that_names_only_the_trained_window_has_told_nothing():
    entry = {"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131072}}
    info = await found({"/v1/models": models(entry)})
    assert (info.server, info.context_window) == ("llama.cpp", None)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v0/models", {"data": [{"id": "m", "max_context_length": 131072, "loaded_context_length": 4096}]}),
        ("/api/ps", {"models": [{"name": "m", "model": "m", "context_length": 4096}]}),
    ],
)
async def test_the_loaded_window_of_lm_studio_and_ollama_is_found(path: str, body: Answers):
    assert (await found({"/v1/models": models("m"), path: body})).context_window == 4096


async def test_a_plain_server_says_nothing_of_its_window():
    with ScriptedServer(llama=None) as server:
        async with connected(server) as transport:
            info = await transport.describe()
    assert info == ServerInfo(server.base_url, "openai", "scripted-model")


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({}, "lists no models"),
        ({"/v1/models": (200, b"<html>hello</html>")}, "not like a model server"),
        ({"/v1/models": models()}, "has no model"),
        ({"/v1/models": (401, {"error": {"message": "no key"}})}, "API key"),
        ({"/props": (401, {}), "/v1/models": models({"id": "m", "owned_by": "llamacpp"})}, "API key"),
        ({"/v1/models": (502, b"<html><title>Bad Gateway</title>")}, "Bad Gateway"),
    ],
)
async def test_what_is_no_model_server_is_told_apart(answers: Answers, words: str):
    with pytest.raises(RequestFailed) as raised:
        await found(answers)
    assert words in raised.value.failure.message
    assert raised.value.failure.hint


async def test_a_server_without_a_list_is_used_if_the_person_names_a_model():
    info = await found({}, model="mine")
    assert (info.server, info.model, info.context_window) == ("openai", "mine", None)


async def test_a_description_is_asked_for_once():
    with ScriptedServer(llama=Llama(n_ctx=4096, slots=1)) as server:
        async with connected(server) as transport:
            first = await transport.describe()
            asked = len(server.lookups)
            assert await transport.describe() is first
        assert len(server.lookups) == asked
    assert (first.context_window, first.slots) == (4096, 1)


async def test_tokens_are_counted_by_llama_cpp_and_by_no_other():
    with ScriptedServer() as llama, ScriptedServer(llama=None) as plain:
        async with connected(llama) as transport:
            assert await transport.tokenize("x" * 40) == 10
        assert llama.lookups[-1].json == {"content": "x" * 40, "add_special": False, "parse_special": True}
        async with connected(plain) as transport:
            assert await transport.tokenize("x") is None


async def test_a_gateway_without_its_server_is_asked_again():
    def nap(naps: Naps) -> None:
        if len(naps.taken) == 2:
            server.others.clear()

    with ScriptedServer(llama=None) as server:
        server.others["/v1/models"] = error(502, "no upstream")
        naps = Naps(nap)
        async with connected(server, naps) as transport:
            assert (await transport.describe()).model == "scripted-model"
        server.others["/v1/models"] = error(502, "no upstream")
        async with connected(server) as transport:
            with pytest.raises(ProviderError, match="no upstream"):
                await transport.describe()
    assert naps.taken == [1.0, 2.0]
