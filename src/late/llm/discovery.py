"""What serves at an endpoint: which server, which model, and how many tokens a request may have there.

The window that counts is the served one, per slot, and not the one the model was trained with. llama.cpp tells it in
`/props` (`default_generation_settings.n_ctx`), vLLM and others in `/v1/models`, LM Studio and Ollama on paths of their
own.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

from late.errors import UserError
from late.llm.failures import Failure, RequestFailed, read_failure
from late.llm.loose import as_int, as_list, as_object, as_text, first_int
from late.llm.transport import ServerInfo


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A base URL, and the URLs that follow from it."""

    base: str
    """What the paths of the OpenAI interface are appended to; without a slash at the end."""
    shown: str
    """`base` without a user's name and password."""
    roots: tuple[str, ...]
    """Where the paths of the server's own interface may be, the most likely first."""
    local: bool
    """On this machine or in its network."""

    @classmethod
    def parse(cls, url: str) -> Endpoint:
        """Read a URL as people write it: a base without a path gets `/v1`; one with a path is kept.

        Raises:
            UserError: this is no HTTP URL.
        """
        parts = _split(url.strip())
        if parts is None:
            raise UserError(
                f"`{url}` is no base URL of a model server.",
                "Write it like http://127.0.0.1:8080/v1 (OPENAI_BASE_URL).",
            )
        path = parts.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
        base = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
        origin = f"{parts.scheme}://{parts.netloc}"
        roots = tuple(dict.fromkeys((base.removesuffix("/v1"), base, origin)))
        shown = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, "", ""))
        return cls(base, shown, roots, _is_local(parts.hostname or ""))


def _split(url: str) -> SplitResult | None:
    """The parts of an HTTP URL; a URL without a scheme is one."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        # `port` is only checked when it is read.
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if usable else None


def _is_local(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".local", ".localhost", ".lan", ".internal"))
    return address.is_private or address.is_loopback or address.is_link_local or address.is_unspecified


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to a lookup."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def object(self) -> dict[str, Any]:
        """The body, if all went well and it is a JSON object."""
        return as_object(self._json())

    def list(self) -> list[Any]:
        """The body, if all went well and it is a JSON list."""
        return as_list(self._json())

    def _json(self) -> object:
        if self.status != 200:
            return None
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    def failure(self) -> Failure:
        """What a reply that is not 200 means."""
        return read_failure(self.status, self.body, self.headers)


Get = Callable[[str], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of a server, and what it wants to be told."""

    info: ServerInfo
    model: str
    """The name to send; empty: send none."""
    root: str
    """Where `/tokenize` is, on llama.cpp."""

    @property
    def llama_cpp(self) -> bool:
        """Does it take llama.cpp's extensions?"""
        return self.info.server == "llama.cpp"


async def discover(get: Get, endpoint: Endpoint, model: str | None) -> Found:
    """Ask the server at `endpoint` what it is.

    Args:
        get: Fetches a URL; raises `RequestFailed` if there is no answer.
        endpoint: Where to ask.
        model: The model that the person wants, if they said so.

    Raises:
        RequestFailed: it loads a model (`loading`), it refuses, or it is no model server.
    """
    props_reply, root, props = await _props(get, endpoint, model)
    models_reply = await get(f"{endpoint.base}/models")
    _raise_if_loading(models_reply)
    entry = _choose(models_reply.object(), model)
    llama_cpp = bool(props) or entry.get("owned_by") == "llamacpp"
    if not props and (llama_cpp or not entry):
        for reply in (props_reply, models_reply):
            if reply.status in (401, 403):
                raise RequestFailed(reply.failure())
    if not props and not entry:
        _raise_unless_plausible(models_reply, endpoint, model)
    wire_model = model or as_text(entry.get("id"))
    meta = as_object(entry.get("meta"))
    info = ServerInfo(
        endpoint=endpoint.shown,
        server="llama.cpp" if llama_cpp else "openai",
        model=_shown_model(props, wire_model),
        context_window=_window(props) or _listed_window(entry),
        slots=first_int(props, "total_slots"),
        vision=_vision(props, entry),
        chat_template=as_text(props.get("chat_template")),
        build=as_text(props.get("build_info")),
        parameters=as_int(meta.get("n_params")),
    )
    if info.context_window is None and endpoint.local and not llama_cpp:
        window = await _window_elsewhere(get, root, wire_model)
        info = ServerInfo(info.endpoint, info.server, info.model, window, vision=info.vision)
    return Found(info, wire_model, root)


async def _props(get: Get, endpoint: Endpoint, model: str | None) -> tuple[Reply, str, dict[str, Any]]:
    """llama.cpp's description of itself; empty for other servers.

    A proxy that serves several models (llama-swap) answers 404 without the model's name.
    """
    fallback: tuple[str, dict[str, Any]] = (endpoint.roots[0], {})
    first: Reply | None = None
    for root in endpoint.roots:
        for query in ("", f"?model={quote(model, safe='')}") if model else ("",):
            reply = await get(f"{root}/props{query}")
            _raise_if_loading(reply)
            first = first or reply
            props = reply.object()
            if _window(props):
                return reply, root, props
            if "total_slots" in props or "chat_template" in props or "build_info" in props:
                fallback = (root, props)
        if fallback[1]:
            break
    assert first is not None
    return first, *fallback


def _raise_if_loading(reply: Reply) -> None:
    if reply.status == 503 and (failure := reply.failure()).kind == "loading":
        raise RequestFailed(failure)


def _raise_unless_plausible(models: Reply, endpoint: Endpoint, model: str | None) -> None:
    """No list of models is fine where the person named one and the server speaks JSON, or knows no such path."""
    if models.status >= 500 or models.status == 429:
        raise RequestFailed(models.failure())
    listed = models.object()
    if model and (listed or models.status in (404, 405, 501)):
        return
    hint = "Check the base URL (it often ends in /v1) or start a model server there, e.g. llama-server."
    if isinstance(listed.get("data"), list):
        message, hint = f"{endpoint.shown} has no model.", "Load one there, or name it with --model."
    elif models.status in (404, 405, 501):
        message = f"{endpoint.shown} answers, but lists no models (status {models.status} for /models)."
    else:
        message = f"{endpoint.shown} answers, but not like a model server."
    raise RequestFailed(Failure("final", message, hint, models.status))


def _choose(listing: Mapping[str, Any], model: str | None) -> dict[str, Any]:
    """The entry of the wanted model; without a wish a loaded one, else the first."""
    entries = [entry for raw in as_list(listing.get("data")) if as_text((entry := as_object(raw)).get("id"))]
    if model:
        entries = [entry for entry in entries if model in _names(entry)]
    loaded = [entry for entry in entries if as_object(entry.get("status")).get("value") == "loaded"]
    return next(iter((*loaded, *entries)), dict[str, Any]())


def _names(entry: Mapping[str, Any]) -> set[str]:
    names = {as_text(entry.get("id")), *map(as_text, as_list(entry.get("aliases")))}
    return names | {_base_name(name) for name in names}


def _base_name(path: str) -> str:
    windows = "\\" in path
    return (PureWindowsPath(path) if windows else PurePosixPath(path)).name


def _shown_model(props: Mapping[str, Any], wire_model: str) -> str:
    """A name that fits into a status line: llama.cpp's alias and file names come with their folders."""
    name = as_text(props.get("model_alias")) or as_text(props.get("model_path"))
    if not props:
        return wire_model
    return _base_name(name or wire_model)


def _window(props: Mapping[str, Any]) -> int | None:
    return first_int(as_object(props.get("default_generation_settings")), "n_ctx")


def _listed_window(entry: Mapping[str, Any]) -> int | None:
    return first_int(as_object(entry.get("meta")), "n_ctx") or first_int(
        entry, "max_model_len", "loaded_context_length", "context_length", "context_window", "max_context_length"
    )


def _vision(props: Mapping[str, Any], entry: Mapping[str, Any]) -> bool | None:
    vision = as_object(props.get("modalities")).get("vision")
    if isinstance(vision, bool):
        return vision
    inputs = as_list(as_object(entry.get("architecture")).get("input_modalities"))
    return "image" in inputs if inputs else None


async def _window_elsewhere(get: Get, root: str, model: str) -> int | None:
    """The window of a loaded model on LM Studio (`/api/v0/models`) or Ollama (`/api/ps`)."""
    for path, key, names in (("/api/v0/models", "data", ("id",)), ("/api/ps", "models", ("name", "model"))):
        reply = await get(f"{root}{path}")
        for raw in as_list(reply.object().get(key)):
            entry = as_object(raw)
            if model in {as_text(entry.get(name)) for name in names}:
                return first_int(entry, "loaded_context_length", "context_length")
    return None
