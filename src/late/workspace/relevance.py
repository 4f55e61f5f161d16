"""Which files does a request concern? A guess from its words, for models that cannot search well by themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

MOST_FILES = 400
"""Files whose content is looked at; more than that are judged by their paths alone."""
MOST_BYTES = 200_000
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*|\d{2,}")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_COMMON = frozenset(
    "the a an is are be it its this that these those and or not no in of on to for from with by as at if when then "
    "must should can could will would has have had do does did done add fix make change file files code project "
    "function method class so which what where who how some all any only one two new use used using say says".split()
)


def words_of(text: str) -> set[str]:
    """The words of a text, identifiers taken apart (`total_cents` → total, cents), in lower case."""
    return {
        part.lower()
        for word in _WORD.findall(text)
        for part in (word, *_PARTS.findall(word))
        if len(part) > 1 and part.lower() not in _COMMON
    }


def rank_files(request: str, files: Sequence[str], root: Path) -> list[str]:
    """The files, the likeliest first; empty files and binaries last. Deterministic.

    A file counts for each of the request's words that it holds, the more the fewer files hold that word; a name that
    the request mentions counts most.
    """
    wanted = words_of(request)
    texts = {path: _text(root / path) if len(files) <= MOST_FILES else None for path in files}
    held = {path: wanted & words_of(f"{path} {text or ''}") for path, text in texts.items()}
    spread = {word: sum(word in words for words in held.values()) for word in wanted}

    def score(path: str) -> float:
        named = 100.0 if path in request or re.search(rf"(?<![\w.]){re.escape(Path(path).name)}\b", request) else 0.0
        in_path = float(len(wanted & words_of(path)))
        return named + in_path + sum(1.0 / spread[word] for word in held[path]) - (50.0 if texts[path] == "" else 0.0)

    return sorted(files, key=lambda path: (-score(path), path))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES)
    except OSError:
        return ""
    return "" if b"\0" in data[:8192] else data.decode("utf-8", "replace").strip()
