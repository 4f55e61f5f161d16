"""The tools by name, and how a model is told of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from late.llm.provider import JsonSchema, ToolSpec
from late.tools.base import Tool


class Registry:
    """The tools of one agent, in the fixed order in which they are sent."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def get(self, name: str) -> Tool | None:
        """The tool of that name."""
        return self._tools.get(name)

    def names(self) -> tuple[str, ...]:
        """All names, in order."""
        return tuple(self._tools)

    def specs(self) -> Sequence[ToolSpec]:
        """What is sent to a model."""
        return [ToolSpec(tool.name, tool.description, schema_of(tool)) for tool in self._tools.values()]


def schema_of(tool: Tool) -> JsonSchema:
    """The JSON schema of a tool's arguments, as short as it can be: every token of it is prefilled."""
    return _compact(tool.Args.model_json_schema())


def _compact(schema: JsonSchema) -> JsonSchema:
    definitions = cast("dict[str, JsonSchema]", schema.get("$defs", {}))

    def walk(node: Any) -> Any:
        if isinstance(node, list):
            return [walk(item) for item in cast("list[Any]", node)]
        if not isinstance(node, dict):
            return node
        node = cast("JsonSchema", node)
        if "$ref" in node:
            return walk(definitions[str(node["$ref"]).rsplit("/", 1)[-1]])
        kinds = cast("list[JsonSchema] | None", node.get("anyOf"))
        if kinds and (rest := [kind for kind in kinds if kind.get("type") != "null"]) and len(rest) == 1:
            node = {**rest[0], **{key: value for key, value in node.items() if key != "anyOf"}}
        out: JsonSchema = {}
        for key, value in node.items():
            if key in {"title", "$defs", "default", "additionalProperties"} and not _is_property(value, key):
                continue
            if key == "properties":
                out[key] = {name: walk(prop) for name, prop in cast("JsonSchema", value).items()}
            else:
                out[key] = walk(value)
        return out

    return walk({key: value for key, value in schema.items() if key not in {"description", "$defs"}})


def _is_property(value: Any, key: str) -> bool:
    """A property may be called `title`; its value is then a schema and not a string."""
    return key == "title" and isinstance(value, dict)
