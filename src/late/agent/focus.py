"""What a request says in plain words about where to work: files, names, and whether something new is to be added.

A weak model that may choose freely plans for the wrong file; where the request names it, there is nothing to choose.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from late.agent.checks import is_test
from late.agent.plan import PLAN_FILE
from late.workspace.outline import Symbol, symbols

MOST_SHOWN = 6_000
"""Bytes of a file that is shown besides the one that is written."""
MOST_SEARCHED = 300
"""Files whose symbols are looked at for a name of the request."""

_NEW_PATH = re.compile(r"(?<![\w/.-])[\w-][\w./-]*\.[A-Za-z][A-Za-z0-9]{0,7}\b")
_SUFFIXES = frozenset(
    "py pyi js jsx mjs cjs ts tsx go rs java kt c h cc cpp hpp cs rb php sh bash sql html css scss json toml yaml yml "
    "ini cfg conf md rst txt csv xml lua swift scala ex exs vue svelte tf proto".split()
)
_WIDE = re.compile(
    r"\b(?:everywhere|throughout|all (?:the )?(?:files|callers|uses|usages|places)|whole project)\b", re.IGNORECASE
)
_TESTS_WANTED = re.compile(r"\b(?:add|extend|write|create|update)\b[^.]{0,40}\btests?\b", re.IGNORECASE)
_CONCERNS_ALL = re.compile(r"\b(?:move|rename|extract|split|replace|import)\b", re.IGNORECASE)
_IDENTIFIER = re.compile(r"\b(?:[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|[A-Za-z_]\w*(?=\())")
_ADDS = re.compile(
    r"\badd (?:a |an |the )?(?:new )?(?P<kind>method|function)\s+(?:called |named )?`?(?P<name>[A-Za-z_]\w*)",
    re.IGNORECASE,
)


def tests_wanted(request: str) -> bool:
    """Are tests themselves what is asked for?"""
    return _TESTS_WANTED.search(request) is not None


def concerns_all(request: str) -> bool:
    """Is every file that the request names to be changed (something is moved or renamed between them)?"""
    return _CONCERNS_ALL.search(request) is not None


def named_paths(request: str, files: Sequence[str]) -> list[str]:
    """Paths that a request names and that do not exist: what a step may create."""
    known = set(files) | {path.rsplit("/", 1)[-1] for path in files}
    found = (match[0].rstrip(".") for match in _NEW_PATH.finditer(request))
    return [
        path
        for path in dict.fromkeys(found)
        if path not in known and ".." not in path and path != PLAN_FILE and not _is_prose(path)
    ]


def named_files(request: str, files: Sequence[str]) -> list[str]:
    """The files that a request says are to be changed or created; empty where it leaves that open.

    A test that is named besides them is taken for the measure, unless tests are what is asked for.
    """
    if _WIDE.search(request):
        return []
    named = [path for path in files if re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w/-])", request)]
    if not named:
        bare = {path: path.rsplit("/", 1)[-1] for path in files}
        unique = [path for path, name in bare.items() if list(bare.values()).count(name) == 1]
        named = [path for path in unique if re.search(rf"(?<![\w./-]){re.escape(bare[path])}(?![\w/-])", request)]
    named += named_paths(request, files)
    wanted = named if tests_wanted(request) else [path for path in named if not is_test(path)]
    return sorted(wanted, key=lambda path: request.find(path.rsplit("/", 1)[-1]))


def existing_files(request: str, root: Path) -> list[str]:
    """The files that a request names and that are there, as long as they are short enough to be shown along."""
    found = dict.fromkeys(match[0].rstrip(".") for match in _NEW_PATH.finditer(request))
    return [path for path in found if ".." not in path and not is_test(path) and _is_short(root / path)]


def _is_short(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= MOST_SHOWN


def defining_files(request: str, files: Sequence[str], root: Path) -> list[str]:
    """The files that define a name of the request which can only be a name in code, such as `MAX_RETRIES`."""
    names = set(_IDENTIFIER.findall(request))
    if not names or _WIDE.search(request) or concerns_all(request):
        return []
    return [path for path in files[:MOST_SEARCHED] if not is_test(path) and names & _defined(root / path)]


def _defined(path: Path) -> set[str]:
    try:
        return {symbol.name.rsplit(".", 1)[-1] for symbol in symbols(path)}
    except OSError:
        return set()


def insertion_point(request: str, found: Sequence[Symbol]) -> tuple[str, Symbol] | None:
    """The new name that a request wants added, and the symbol behind which it belongs; `None` for a change.

    A method goes to the end of the class that the request names, a function behind the last one of the file.
    """
    match = _ADDS.search(request)
    if match is None or any(symbol.name.rsplit(".", 1)[-1] == match["name"] for symbol in found):
        return None
    classes = [symbol for symbol in found if symbol.kind == "class" and re.search(rf"\b{symbol.name}\b", request)]
    if match["kind"].lower() == "method" and classes:
        inside = [symbol for symbol in found if symbol.name.rpartition(".")[0] == classes[-1].name]
        return (match["name"], inside[-1]) if inside else None
    functions = [symbol for symbol in found if symbol.kind == "function" and "." not in symbol.name]
    return (match["name"], functions[-1]) if functions else None


def _is_prose(word: str) -> bool:
    """`e.g`, `Account.withdraw`, `self.total`: dotted words that are no file names."""
    return "/" not in word and word.rsplit(".", 1)[-1] not in _SUFFIXES
