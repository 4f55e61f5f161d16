"""Why a text is not in a file: what differs, where the nearest region is, or that the edit was made already."""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter

from late.errors import ToolError

_LONG_TEXT = 1_000_000
"""Characters; in longer files only the surroundings of lines that are found literally are looked at."""
_CONTEXT = 2
_MOST_LINES = 24
_MOST_LINE_CHARS = 200
_SIMILAR = 0.4
"""Share of the search text's words, weighted by how rare they are, that a region must have to be shown."""
_UNKNOWN = 0.5
"""Weight of a word that the file does not have: it tells less than one that is there once."""
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"))
_LOOKALIKES = str.maketrans("‘’‚‛“”„‟′″‐‑‒–—―−␍", "''''\"\"\"\"'\"-------\r")


def explain_miss(name: str, plain: str, wanted: str, new: str) -> ToolError:
    """The error for a text that `plain` does not contain; all three with LF for line endings."""
    miss = f"`search` was not found in {name}."
    if not plain:
        return ToolError(f"{miss} The file is empty.", "write_file writes its content.")
    if line := _applied(plain, new):
        return ToolError(
            f"{miss} The text of `replace` is already there, at line {line}: the edit seems to have been made.",
            "Read the lines if in doubt; do not repeat the edit.",
        )
    if found := _by_rewriting(plain, wanted):
        return ToolError(f"{miss} {found[0]}", found[1])
    first_line, lines = _excerpt(plain, wanted)
    at = _folded_at(lines, wanted)
    rows = wanted.strip("\n").split("\n")
    if at is not None:
        region = lines[at : at + len(rows)]
        differences = _differences(region, rows, first_line + at)
        visible = any("\t" in line for line in region)
        shown = _numbered(lines, first_line, at, at + len(region), tabs=visible)
        return ToolError(
            f"{miss} It is there with other characters: {'; '.join(differences)}.\n{shown}"
            + ("\n(→ is a tab)" if visible else ""),
            "Copy the characters exactly as the file has them.",
        )
    at = _similar_at(lines, rows)
    if at is None:
        return ToolError(f"{miss} Nothing in it is similar.", "Read the file, or search for a name that it contains.")
    shown = _numbered(lines, first_line, at, at + len(rows), tabs=False)
    return ToolError(
        f"{miss} The nearest lines are:\n{shown}{_first_difference(lines, rows, first_line, at)}",
        "Copy the lines exactly as they are in the file, without the numbers.",
    )


def _applied(plain: str, new: str) -> int | None:
    """The line at which the new text is, where that is no accident: whole lines or ten characters of it."""
    text = new.strip("\n")
    if not text.strip():
        return None
    pattern = re.escape(text) if len(text.strip()) >= 10 else rf"(?m)^[ \t]*{re.escape(text)}[ \t]*$"
    match = re.search(pattern, plain)
    return plain.count("\n", 0, match.start()) + 1 if match else None


def _by_rewriting(plain: str, wanted: str) -> tuple[str, str] | None:
    """Is it there when marks or escapes that do not belong to the text are undone?"""
    bare = "\n".join(re.sub(r"^[ \t]*\d+\| ?", "", line) for line in wanted.split("\n"))
    if bare != wanted and bare.strip() and bare in plain:
        return "Some lines begin with the line numbers of read_file.", "Leave the numbers out of both texts."
    lines = wanted.strip("\n").split("\n")
    if any(line[:1] in "-+" and line for line in lines) and all(line[:1] in {"-", "+", " ", "@", ""} for line in lines):
        old = "\n".join(line[1:] for line in lines if line[:1] in {"-", " ", ""})
        added = "\n".join(line[1:] for line in lines if line[:1] in {"+", " ", ""})
        if (old.strip() and old in plain) or (added.strip() and added in plain):
            return (
                "Its lines begin with the - and + marks of a diff.",
                "Put the old lines into `search` and the new ones into `replace`, both without marks.",
            )
    unescaped = wanted.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"').replace("\\\\", "\\")
    if unescaped != wanted and unescaped in plain:
        return (
            'It has escapes (\\n, \\t, \\" or \\\\) where the file has the characters themselves.',
            "Send line breaks, tabs, quotes and backslashes as they are in the file.",
        )
    escaped = wanted.replace("\n", "\\n").replace("\t", "\\t")
    if escaped != wanted and escaped in plain:
        return (
            "It has a line break or tab where the file has a backslash and a letter.",
            "Send the backslash and the letter, escaped once for JSON.",
        )
    decoded = html.unescape(wanted)
    if decoded != wanted and decoded in plain:
        return "It has HTML entities where the file has the characters.", "Send &, <, > and quotes as they are."
    return None


def _fold(line: str) -> str:
    """The line without what often goes wrong in copying: spaces, look-alikes, composition, case."""
    text = unicodedata.normalize("NFKC", line.translate(_INVISIBLE)).translate(_LOOKALIKES)
    return " ".join(text.split()).casefold()


def _folded_at(lines: list[str], wanted: str) -> int | None:
    rows = [_fold(row) for row in wanted.strip("\n").split("\n")]
    if not any(rows):
        return None
    folded = [_fold(line) for line in lines]
    if len(rows) == 1:
        row, starts, ends = rows[0], wanted.startswith("\n"), wanted.endswith("\n")
        for at, line in enumerate(folded):
            if row in line and (not starts or line.startswith(row)) and (not ends or line.endswith(row)):
                return at
        return None
    for at in range(len(folded) - len(rows) + 1):
        if (
            folded[at].endswith(rows[0])
            and folded[at + len(rows) - 1].startswith(rows[-1])
            and folded[at + 1 : at + len(rows) - 1] == rows[1:-1]
        ):
            return at
    return None


def _differences(region: list[str], rows: list[str], number: int) -> list[str]:
    """What differs between lines that are alike when folded."""
    found: list[str] = []
    for offset, (line, row) in enumerate(zip(region, rows, strict=True)):
        if line == row or (len(rows) == 1 and row in line):
            continue
        found.extend(f"{text} at line {number + offset}" for text in _line_differences(line, row, len(rows) == 1))
    return found[:6] or ["the blank lines around it differ"]


def _line_differences(line: str, row: str, partial: bool) -> list[str]:
    found: list[str] = []
    odd = {char for char in line if _is_odd(char)} - set(row)
    found.extend(f"the file has {_named(char)}" for char in sorted(odd))
    odd = {char for char in row if _is_odd(char)} - set(line)
    found.extend(f"yours has {_named(char)}" for char in sorted(odd))
    if unicodedata.normalize("NFC", line) != line and unicodedata.normalize("NFC", row) == row:
        found.append("the file has decomposed letters where yours are composed (Unicode normalisation)")
    elif unicodedata.normalize("NFC", row) != row and unicodedata.normalize("NFC", line) == line:
        found.append("the file has composed letters where yours are decomposed (Unicode normalisation)")
    if found:
        return found[:3]
    indent, mine = _indent(line), _indent(row)
    if indent != mine and (not partial or mine):
        found.append(f"the file is indented with {_counted(indent)}, yours with {_counted(mine)}")
    if _trailing(line) != _trailing(row) and not partial:
        found.append(f"the file ends with {_counted(_trailing(line))}, yours with {_counted(_trailing(row))}")
    core, own = " ".join(line.split()), " ".join(row.split())
    if own not in core and own.casefold() in core.casefold():
        found.append("upper and lower case differ")
    return found or [f"the file has {_clip(line.strip())!r}, yours {_clip(row.strip())!r}"]


def _is_odd(char: str) -> bool:
    """Easily mistaken for another character, or not seen at all."""
    if char < "\x7f":
        return char == "\r"
    return (
        ord(char) in _INVISIBLE
        or ord(char) in _LOOKALIKES
        or unicodedata.category(char) in {"Zs", "Cf", "Cc", "Mn"}
        or (unicodedata.normalize("NFKC", char) != char and unicodedata.normalize("NFC", char) == char)
    )


def _named(char: str) -> str:
    name = "CARRIAGE RETURN" if char == "\r" else unicodedata.name(char, "")
    return f"U+{ord(char):04X} {name}".rstrip()


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _trailing(line: str) -> str:
    return line[len(line.rstrip(" \t")) :]


def _counted(space: str) -> str:
    parts = [
        f"{count} {name}{'' if count == 1 else 's'}"
        for name, count in (("tab", space.count("\t")), ("space", space.count(" ")))
        if count
    ]
    return " and ".join(parts) or "nothing"


def _excerpt(plain: str, wanted: str) -> tuple[int, list[str]]:
    """The lines worth comparing and the number of the first: all, or in a long file those around a line of `wanted`."""
    if len(plain) <= _LONG_TEXT:
        return 1, plain.split("\n")
    rows = wanted.strip("\n").split("\n")
    for row in sorted({row.strip() for row in rows}, key=len, reverse=True)[:8]:
        at = plain.find(row) if row else -1
        if at >= 0:
            start = plain.rfind("\n", 0, max(0, at - 40_000)) + 1
            end = plain.find("\n", at + 40_000)
            lines = plain[start : end if end >= 0 else at + 80_000].split("\n")
            return plain.count("\n", 0, start) + 1, lines
    return 1, []


def _similar_at(lines: list[str], rows: list[str]) -> int | None:
    """The window of as many lines as `rows` that shares most words with them, rare words weighing more."""
    words = [set(re.findall(r"\w+", line.casefold())) for line in lines]
    known = Counter(word for line in words for word in line)
    wanted = Counter(word for row in rows for word in set(re.findall(r"\w+", row.casefold())))
    weight = {word: count / known[word] if word in known else _UNKNOWN * count for word, count in wanted.items()}
    total = sum(weight.values())
    if not total:
        return None
    scores = [sum(weight[word] / wanted[word] for word in line if word in weight) for line in words]
    size = min(len(rows), len(lines))
    best, at = sum(scores[:size]), 0
    current = best
    for start in range(1, len(lines) - size + 1):
        current += scores[start + size - 1] - scores[start - 1]
        if current > best + 1e-9:
            best, at = current, start
    return at if best >= _SIMILAR * total else None


def _first_difference(lines: list[str], rows: list[str], first_line: int, at: int) -> str:
    for offset, row in enumerate(rows):
        line = lines[at + offset] if at + offset < len(lines) else None
        if line is None:
            return f"\nThe file ends before {_clip(row.strip())!r}."
        if line != row:
            return f"\nLine {first_line + at + offset} is {_clip(line)!r}, yours {_clip(row)!r}."
    return ""


def _numbered(lines: list[str], first_line: int, at: int, end: int, *, tabs: bool) -> str:
    start, stop = max(0, at - _CONTEXT), min(len(lines), end + _CONTEXT)
    cut = stop - start > _MOST_LINES
    shown = [
        f"{first_line + index}| {_clip(lines[index].replace(chr(9), '→   ') if tabs else lines[index])}".rstrip()
        for index in range(start, min(stop, start + _MOST_LINES))
        if index < len(lines) - 1 or lines[index]
    ]
    return "\n".join(shown) + ("\n…" if cut else "")


def _clip(text: str) -> str:
    text = re.sub(r"[\ud800-\udfff]", "\ufffd", text)
    return text if len(text) <= _MOST_LINE_CHARS else text[: _MOST_LINE_CHARS - 1] + "…"
