"""What a coder should hear at once about a change: broken syntax, names that are defined nowhere, definitions gone."""

from __future__ import annotations

import ast
import json
import tomllib
import warnings
from collections import Counter
from pathlib import PurePosixPath

from late.workspace.outline import language_of, parse_errors, symbols_of
from late.workspace.text import shown

_MAX_CHARS = 200_000
"""Longer files are generated; all checks together take about a second for this many."""
_MOST = 3
_MOST_NAMES = 20
_DEFINITIONS = frozenset({"class", "struct", "union", "interface", "trait", "enum", "module", "type", "function"})
_COMMENTED_JSON = ("tsconfig", "jsconfig", ".vscode/", ".devcontainer/")
# What the interpreter that runs late says about syntax that only newer ones know. Where the grammar of tree-sitter
# finds nothing wrong, these prove nothing.
_MAYBE_NEWER_SYNTAX = ("invalid syntax", "f-string", "expected '('", "multiple exception types must be")


def review_edit(path: str, before: str | None, after: str) -> list[str]:
    """Facts about a change, the most important first; only what was not so before, and nothing where all seems well.

    `before` is `None` for a new file. Definitions that are gone are one fact, `removed: f, C.g`. Odd input gives fewer
    facts and never an error.
    """
    if max(len(before or ""), len(after)) > _MAX_CHARS or before == after:
        return []
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in {".json", ".toml"}:
        return _broken_data(path, suffix, before, after)
    language = language_of(path)
    if language is None:
        return []
    if broken := _syntax(language, before, after):
        return broken
    facts = _undefined(path, before, after) if language == "python" else []
    removed = _removed(language, before, after) if before else []
    if removed:
        more = ", …" if len(removed) > _MOST_NAMES else ""
        facts.append(f"removed: {', '.join(removed[:_MOST_NAMES])}{more}")
    return facts


def _broken_data(path: str, suffix: str, before: str | None, after: str) -> list[str]:
    if suffix == ".json" and any(part in path.lower() for part in _COMMENTED_JSON):
        return []
    problem = _data_error(suffix, after)
    if problem is None or (before and _data_error(suffix, before) is not None):
        return []
    return [f"not valid {suffix[1:].upper()}: {problem}"]


def _data_error(suffix: str, text: str) -> str | None:
    try:
        if suffix == ".json":
            json.loads(text)
        else:
            tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        return str(error)
    return None


def _syntax(language: str, before: str | None, after: str) -> list[str]:
    old = Counter(text for _, text in parse_errors(before or "", language))
    found: list[tuple[int, str]] = []
    for line, text in parse_errors(after, language):
        old[text] -= 1
        if old[text] < 0:
            found.append((line, text))
    if language == "python" and (error := _python_error(after)) and not (before and _python_error(before)):
        line, message = error
        if found or not message.startswith(_MAYBE_NEWER_SYNTAX):
            return [f"syntax error at line {line}: {message}: `{_line(after, line)}`"]
    return [
        f"syntax error at line {line}: {text if text.startswith('missing `') else f'`{_line(after, line)}`'}"
        for line, text in found[:_MOST]
    ]


def _line(text: str, number: int) -> str:
    lines = text.split("\n")
    line = shown(lines[number - 1]).strip() if 0 < number <= len(lines) else ""
    return line if len(line) <= 100 else line[:99] + "…"


def _python_error(text: str) -> tuple[int, str] | None:
    """What the parser of Python says; its warnings (invalid escapes) are no errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text.removeprefix("\ufeff"))
        except SyntaxError as error:
            return error.lineno or 1, error.msg
        except ValueError:
            return 1, "a character that cannot be in source code"
        except (RecursionError, MemoryError):
            return None
    return None


def _undefined(path: str, before: str | None, after: str) -> list[str]:
    new = _undefined_names(path, after)
    if not new:
        return []
    old = _undefined_names(path, before) if before else {}
    if old is None:
        return []
    fresh = [(line, name) for name, line in new.items() if name not in old]
    return [f"undefined name at line {line}: {name}" for line, name in sorted(fresh)[:_MOST]]


def _undefined_names(path: str, text: str) -> dict[str, int] | None:
    """Names that are used and defined nowhere, with their first lines; `None` for a text that is not Python."""
    from pyflakes.checker import Checker
    from pyflakes.messages import UndefinedLocal, UndefinedName

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            checker = Checker(ast.parse(text.removeprefix("\ufeff")), filename=path)
        except (RecursionError, MemoryError, SyntaxError, ValueError):
            return None
    names: dict[str, int] = {}
    for message in checker.messages:
        if isinstance(message, UndefinedName | UndefinedLocal):
            name = str(message.message_args[0])
            names[name] = min(message.lineno, names.get(name, message.lineno))
    return names


def _removed(language: str, before: str, after: str) -> list[str]:
    """Definitions at the top level and in classes that are gone; of a class that is gone only itself."""
    old, new = _definitions(language, before), set(_definitions(language, after))
    gone = [name for name in old if name not in new]
    return [name for name in gone if not any(name.startswith(f"{other}.") for other in gone)]


def _definitions(language: str, text: str) -> list[str]:
    kinds = {symbol.name: symbol.kind for symbol in symbols_of(text, language)}
    return [
        name
        for name, kind in kinds.items()
        if (kind in _DEFINITIONS or kind == "method") and not _in_function(name, kinds)
    ]


def _in_function(name: str, kinds: dict[str, str]) -> bool:
    parts = name.split(".")
    return any(kinds.get(".".join(parts[:count])) in {"function", "method"} for count in range(1, len(parts)))
