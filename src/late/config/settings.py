"""The settings of one run and where each of them came from.

Precedence, for each field on its own: flags > environment > the project's `.late/config.json` > the person's
`config.json` > default. An empty variable counts as unset. Files are only ever read.

A field that a file gets wrong is passed over with a warning, so that the rest still counts; a wrong flag or variable,
which the person can correct on the spot, is an error.

A key that the person gave (by flag, variable or their own file) is for the endpoint that they meant: it is not sent
to an address that only a project's file names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from late.config.paths import project_config_file, user_config_file
from late.errors import UserError

DialectName = Literal["native", "constrained", "plain"]
DialectSetting = Literal["auto", "native", "constrained", "plain"]
Source = Literal["flag", "environment", "project", "user", "default"]

Turns = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]
BaseUrl = Annotated[str, Field(pattern=r"^https?://[^/\s]+")]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Endpoint(_Frozen):
    """A model server and what it is asked for."""

    base_url: BaseUrl = "http://localhost:8080"
    """Without a path it gets `/v1`; with one it is used as it is."""
    api_key: SecretStr | None = None
    model: str | None = None
    """`None`: the model that the server offers first."""
    dialect: DialectSetting = "auto"
    """How tool calls travel; `auto` asks the memory of earlier probes, or probes."""


class Settings(_Frozen):
    """What a run is set to. Each field is a key of `config.json`, those of `main` and `subagent` nested below them."""

    main: Endpoint = Endpoint()
    """The planner's endpoint, and that of all agents for which nothing else is set."""
    subagent: Endpoint = Endpoint()
    """The endpoint of coders and researchers; what is not set is taken over from `main`, field by field."""
    local: bool = False
    """Run the model in this process instead of asking an endpoint."""
    local_model: Path | None = None
    """The GGUF file to run in this process. Set in a file or a variable, it also sets `local`, unless that is set."""
    dialects: dict[str, DialectName] = {}
    """Model name → dialect. Files add to each other's entries; see `dialect_for`."""
    context_window: Annotated[int, Field(ge=1024)] | None = None
    """Tokens, in place of what the server says."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """`None`: the server's own."""
    subagent_max_turns: Turns = 60
    planner_max_turns: Turns = 200
    bash_timeout_s: Seconds = 120
    check_timeout_s: Seconds = 300
    """The most that a step's verify command may take."""
    output_share: Annotated[float, Field(gt=0, le=0.5)] = 0.12
    """The share of the context window that one tool result may take."""
    system_prompt: str | None = None
    """Replaces the planner's prompt."""
    append_system_prompt: str | None = None
    """Goes at the end of the planner's prompt."""
    enable_bash: bool = True
    enable_subagents: bool = True
    mouse: bool = True
    theme: str | None = None

    warnings: tuple[str, ...] = ()
    """What a person should know about their settings, one line each."""
    sources: dict[str, str] = {}
    """Field, dotted below an endpoint (`main.base_url`) → `flag`, `default`, the variable's name or the file's path."""

    def dialect_for(self, role: Literal["main", "subagent"], model: str) -> DialectSetting:
        """The dialect that is set for a model: by flag or variable, else by its name, else for its endpoint."""
        endpoint = self.main if role == "main" else self.subagent
        if self.sources.get(f"{role}.dialect") in ("flag", "LATE_DIALECT", "LATE_SUBAGENT_DIALECT"):
            return endpoint.dialect
        return self.dialects.get(model) or endpoint.dialect


_ENDPOINTS = ("main", "subagent")
_FIELDS = frozenset(
    [f"{name}.{inner}" for name in _ENDPOINTS for inner in Endpoint.model_fields]
    + [name for name in Settings.model_fields if name not in (*_ENDPOINTS, "warnings", "sources")]
)
_FLAT_KEYS = {
    "openai_base_url": "main.base_url",
    "openai_api_key": "main.api_key",
    "openai_model": "main.model",
    "dialect": "main.dialect",
    # The first of two keys for one field wins; those without `late_` are Late's old spelling.
    "late_subagent_base_url": "subagent.base_url",
    "late_subagent_api_key": "subagent.api_key",
    "late_subagent_model": "subagent.model",
    "subagent_base_url": "subagent.base_url",
    "subagent_api_key": "subagent.api_key",
    "subagent_model": "subagent.model",
    "subagent_dialect": "subagent.dialect",
}
"""Keys of a file that are not named like their field; those of Late's `config.json` among them."""
VARIABLES = {
    "OPENAI_BASE_URL": "main.base_url",
    "OPENAI_API_KEY": "main.api_key",
    "OPENAI_MODEL": "main.model",
    "LATE_DIALECT": "main.dialect",
    **{f"LATE_SUBAGENT_{inner.upper()}": f"subagent.{inner}" for inner in Endpoint.model_fields},
    **{f"LATE_{name.upper()}": name for name in sorted(_FIELDS) if "." not in name and name != "dialects"},
}
"""Environment variable → field."""


@dataclass(frozen=True)
class _Layer:
    """What one source says. Its values have been checked one by one."""

    source: Source
    origins: Mapping[str, str]
    """Field → the variable's name or the file's path."""
    values: Mapping[str, Any]


_LEFT = "the file is ignored and left as it is"


def load_settings(
    directory: Path,
    environ: Mapping[str, str] | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """Settle every field for a run in `directory`.

    Args:
        directory: The workspace's first root, whose `.late/config.json` counts.
        environ: The variables to read; those of the process by default.
        overrides: What flags say: fields, nested or dotted, → values; `None` is not said.

    Raises:
        UserError: a flag or a variable has a value that cannot be used.
    """
    warnings: list[str] = []
    layers = [
        _overrides_layer(overrides or {}),
        _environment_layer(os.environ if environ is None else environ),
        _file_layer("project", project_config_file(directory), directory, warnings),
    ]
    try:
        user_file = user_config_file()
    except UserError as error:
        warnings.append(f"settings of your own are not read: {error}")
    else:
        user = _file_layer("user", user_file, user_file.parent, warnings)
        warnings.extend(_exposed_key(user_file, user))
        layers.append(user)

    return _settled(layers, warnings)


def _settled(layers: list[_Layer], warnings: list[str]) -> Settings:
    found: dict[str, tuple[Any, _Layer]] = {
        name: (layer.values[name], layer) for layer in reversed(layers) for name in layer.values
    }
    sources = dict.fromkeys(sorted(_FIELDS), "default")
    sources.update({name: layer.origins[name] for name, (_, layer) in found.items()})
    for inner in Endpoint.model_fields:
        if f"subagent.{inner}" not in found and f"main.{inner}" in found:
            found[f"subagent.{inner}"] = found[f"main.{inner}"]
            sources[f"subagent.{inner}"] = sources[f"main.{inner}"]

    for name in _ENDPOINTS:
        if _leaks_key(name, found, layers):
            del found[f"{name}.api_key"]
            sources[f"{name}.api_key"] = "withheld"
            variable = "OPENAI_BASE_URL" if name == "main" else "LATE_SUBAGENT_BASE_URL"
            if name == "main" or found["subagent.base_url"] != found.get("main.base_url"):
                warnings.append(
                    f"your API key is not sent to {found[f'{name}.base_url'][0]}, which only"
                    f" {sources[f'{name}.base_url']} names; set {variable} yourself if that address may have it"
                )
    if "local" not in found and _means_local(found, layers):
        found["local"] = (True, found["local_model"][1])
        sources["local"] = sources["local_model"]
    dialects = {model: name for layer in reversed(layers) for model, name in layer.values.get("dialects", {}).items()}

    settled: dict[str, Any] = {"dialects": dialects, "warnings": tuple(warnings), "sources": sources}
    endpoints: dict[str, dict[str, Any]] = {name: {} for name in _ENDPOINTS}
    for name, (value, _) in found.items():
        endpoint, _, field = name.rpartition(".")
        endpoints.get(endpoint, settled).setdefault(field, value)
    return Settings.model_validate(settled | endpoints)


def _leaks_key(name: str, found: Mapping[str, tuple[Any, _Layer]], layers: list[_Layer]) -> bool:
    """Would the person's own key go to an address that they did not choose?"""
    key, url = found.get(f"{name}.api_key"), found.get(f"{name}.base_url")
    if key is None or url is None or url[1].source != "project" or key[1].source == "project":
        return False
    own = [
        layer.values[field]
        for field in dict.fromkeys((f"{name}.base_url", "main.base_url"))
        for layer in layers
        if layer.source != "project" and field in layer.values
    ]
    return url[0] != (own[0] if own else Endpoint().base_url)


def _means_local(found: Mapping[str, tuple[Any, _Layer]], layers: list[_Layer]) -> bool:
    """A model file is set, and no source above it names an endpoint."""
    if "local_model" not in found:
        return False
    if "main.base_url" not in found:
        return True
    return layers.index(found["local_model"][1]) <= layers.index(found["main.base_url"][1])


def _overrides_layer(overrides: Mapping[str, Any]) -> _Layer:
    values: dict[str, Any] = {}
    for key, name, value in _flattened(overrides):
        if name is None:
            raise ValueError(f"there is no setting {key!r}")
        if value is not None:
            values[name] = _checked_or_raise(name, value, "the flag for " + name)
    return _Layer("flag", dict.fromkeys(values, "flag"), values)


def _environment_layer(environ: Mapping[str, str]) -> _Layer:
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for variable, name in VARIABLES.items():
        if text := environ.get(variable, "").strip():
            values[name] = _checked_or_raise(name, text, variable)
            origins[name] = variable
    return _Layer("environment", origins, values)


def _file_layer(source: Source, path: Path, base: Path, warnings: list[str]) -> _Layer:
    """Read a file; relative paths in it are relative to `base`."""
    values: dict[str, Any] = {}
    for key, name, value in _flattened(_read_object(path, warnings)):
        if name is None:
            warnings.extend(f"{path}: {text}" for text in _unknown(key, value, values))
            continue
        if value is None or value == "" or name in values:
            continue
        try:
            checked = _checked(name, value)
        except ValueError as error:
            warnings.append(f"{path}: {key} is ignored: {error}")
            continue
        values[name] = base / checked if isinstance(checked, Path) else checked
    return _Layer(source, dict.fromkeys(values, str(path)), values)


def _read_object(path: Path, warnings: list[str]) -> dict[str, Any]:
    try:
        data: object = json.loads(path.read_text(encoding="utf-8-sig")) if path.is_file() else {}
    except json.JSONDecodeError as error:
        warnings.append(f"{path}:{error.lineno}: not valid JSON ({error.msg}); {_LEFT}")
    except UnicodeDecodeError:
        warnings.append(f"{path}: no UTF-8 text; {_LEFT}")
    except RecursionError:
        warnings.append(f"{path}: nested too deep; {_LEFT}")
    except OSError as error:
        warnings.append(f"{path}: cannot be read ({error.strerror}); {_LEFT}")
    else:
        if isinstance(data, dict):
            return cast("dict[str, Any]", data)
        warnings.append(f"{path}:1: not a JSON object; {_LEFT}")
    return {}


def _flattened(data: Mapping[str, Any]) -> Iterator[tuple[str, str | None, Any]]:
    """Key as written, field or `None`, value; fields by their own name first."""
    keys = sorted(data, key=lambda key: list(_FLAT_KEYS).index(key) if key in _FLAT_KEYS else -1)
    for key in keys:
        value = data[key]
        if key in _ENDPOINTS and isinstance(value, dict):
            for inner, inner_value in cast("dict[str, Any]", value).items():
                dotted = f"{key}.{inner}"
                yield dotted, dotted if dotted in _FIELDS else None, inner_value
        else:
            yield key, key if key in _FIELDS else _FLAT_KEYS.get(key), value


def _unknown(key: str, value: Any, values: dict[str, Any]) -> Iterator[str]:
    """Late's other keys: what they switch off is kept or spoken of, and their empty defaults are not worth a word."""
    if key == "enabled_tools" and isinstance(value, dict):
        for tool, enabled in cast("dict[str, Any]", value).items():
            if enabled is False and tool == "bash":
                values.setdefault("enable_bash", False)
            elif enabled is False:
                yield f"enabled_tools: {tool} cannot be switched off"
    elif key not in ("models", "agent_models", "skills_dir") or value:
        yield f"the key {key} is not known and is ignored"


def _exposed_key(path: Path, layer: _Layer) -> Iterator[str]:
    if any(name.endswith(".api_key") for name in layer.values) and path.stat().st_mode & 0o077:
        yield f"{path} holds an API key and can be read by others: chmod 600 {path}"


def _checked_or_raise(name: str, value: Any, what: str) -> Any:
    try:
        checked = _checked(name, value)
    except ValueError as error:
        raise UserError(f"{what}: {error}") from error
    return checked.absolute() if isinstance(checked, Path) else checked


def _checked(name: str, value: Any) -> Any:
    """The value as the field's type.

    Raises:
        ValueError: it is none; the text says what would be.
    """
    model, _, field = name.rpartition(".")
    try:
        checked = getattr((Endpoint if model else Settings).model_validate({field: value}), field)
    except ValidationError as error:
        if field == "base_url":
            raise ValueError("an address begins with http:// or https:// and a host") from error
        raise ValueError(error.errors()[0]["msg"].lower()) from error
    return checked.expanduser() if isinstance(checked, Path) else checked
