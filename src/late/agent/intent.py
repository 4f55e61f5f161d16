"""Question or change? Where a request says it in so many words, nobody has to be asked."""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal["question", "change"]

_NO_CHANGE = re.compile(
    r"\b(?:only|just) (?:answer|explain|tell|describe)\b|\bchange nothing\b|\bno changes\b"
    r"|\b(?:do not|don't) (?:change|edit|modify) (?:anything|any file)|\bwithout changing anything\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"(?:which|what|where|when|who|why|how|is there|are there|does|do|explain|describe|tell me|summari[sz]e)\b",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"(?:please |now )?(?:add|change|convert|create|delete|document|extend|extract|fix|implement|improve|introduce|"
    r"make|move|refactor|remove|rename|replace|rewrite|simplify|split|update)\b",
    re.IGNORECASE,
)


def plain_intent(request: str) -> Kind | None:
    """What an English request plainly is; `None` where it takes understanding (or another language)."""
    text = request.strip()
    sentences = [part for part in re.split(r"(?<=[.!?])\s+|\n+", text) if part]
    if not sentences:
        return None
    orders = any(_ORDERS.match(sentence) for sentence in sentences)
    if _ASKS.match(text) and (_NO_CHANGE.search(text) or (len(sentences) == 1 and text.endswith("?"))):
        return "question"
    if orders and not _ASKS.match(text) and not _NO_CHANGE.search(text):
        return "change"
    return None
