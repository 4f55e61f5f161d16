"""Reading JSON of which nothing is certain: each function takes anything and answers with its type, or with nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def as_object(value: Any) -> dict[str, Any]:
    """`value` if it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """`value` if it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """`value` if it is a string, else the empty one."""
    return value if isinstance(value, str) else ""


def as_int(value: Any) -> int | None:
    """`value` as an integer if it is a whole number, also one written as a string."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) and value.isdecimal() else None


def as_number(value: Any) -> float | None:
    """`value` if it is a number."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def first_int(source: Mapping[str, Any], *keys: str) -> int | None:
    """The first of `keys` that holds a positive whole number."""
    for key in keys:
        number = as_int(source.get(key))
        if number is not None and number > 0:
            return number
    return None
