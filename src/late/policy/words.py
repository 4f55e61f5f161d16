"""The words of a shell command: how bash reads quotes, escapes and expansions.

A `Word` keeps what it is made of. What a program will get is decided later, by `late.policy.expand`, because that
depends on variables and files.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

BLANKS: Final = " \t"
METACHARACTERS: Final = " \t\n|&;()<>"
MAX_DEPTH: Final = 24
"""Of expansions within expansions; nobody writes deeper ones by hand."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIAL: Final = "@*#?-$!0123456789"
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_ANSI_SIMPLE: Final = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ANSI_NUMBER = re.compile(
    r"([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})",
)


class Unreadable(Exception):
    """The text cannot be read with certainty; the message says which part, as "it has …"."""


@dataclass(frozen=True, slots=True)
class Text:
    """Characters as they are. Unquoted ones may still be patterns, braces or a tilde."""

    text: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name` or `${name…}`. `operator` is what follows the name, with `operand` for what it holds itself."""

    name: str
    operator: str
    operand: Word | None
    quoted: bool


@dataclass(frozen=True, slots=True)
class Substitution:
    """`$(…)`, backticks, `<(…)` or `>(…)`: `source` is a script of its own."""

    source: str
    kind: Literal["command", "input", "output"]
    quoted: bool


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`$((…))`; `operand` holds the expansions in it."""

    source: str
    operand: Word
    quoted: bool


Part = Text | Variable | Substitution | Arithmetic


@dataclass(frozen=True, slots=True)
class Word:
    """One word; `text` is as it was written, without continued lines."""

    parts: tuple[Part, ...]
    text: str

    @property
    def plain(self) -> str | None:
        """The text of a word without any quoting or expansion; only such words are reserved words."""
        if len(self.parts) == 1 and isinstance(self.parts[0], Text) and not self.parts[0].quoted:
            return self.parts[0].text
        return None

    @property
    def assignment(self) -> Assignment | None:
        """The word as `name=value`, where it has that form."""
        first = self.parts[0] if self.parts else None
        if not isinstance(first, Text) or first.quoted or not (match := _ASSIGNMENT.match(first.text)):
            return None
        rest = first.text[match.end() :]
        head: tuple[Part, ...] = (Text(rest, quoted=False),) if rest else ()
        value = Word((*head, *self.parts[1:]), self.text[match.end() :])
        return Assignment(match[1], value, append=bool(match[2]))


@dataclass(frozen=True, slots=True)
class Assignment:
    """`name=value` or `name+=value`."""

    name: str
    value: Word
    append: bool


def is_invisible(char: str) -> bool:
    """Whether a character hides what a line says: control and format characters, blanks that bash does not know."""
    return char not in "\n\t " and unicodedata.category(char) in {"Cc", "Cf", "Co", "Cs", "Cn", "Zs", "Zl", "Zp"}


FindEnd = Callable[[str, int, int], int]
"""Finds the parenthesis that closes a script: source, where the script starts, how deep it lies."""


class WordReader:
    """Reads words from `source`. `position` is where it stands; `oddities` collects what a person should know."""

    def __init__(self, source: str, find_end: FindEnd, position: int = 0, depth: int = 0) -> None:
        if depth > MAX_DEPTH:
            raise Unreadable("expansions nested too deeply")
        self.source = source
        self.position = position
        self.depth = depth
        self._find_end = find_end
        self.oddities: list[str] = []

    def at(self, text: str) -> bool:
        """Whether the source goes on with `text`."""
        return self.source.startswith(text, self.position)

    def peek(self) -> str:
        """The next character; empty at the end."""
        return self.source[self.position : self.position + 1]

    def word(self, stop: str = METACHARACTERS) -> Word:
        """Read one word, up to an unquoted character of `stop`.

        Raises:
            Unreadable: it is not closed, or bash may read it in another way.
        """
        start = self.position
        parts: list[Part] = []
        while char := self.peek():
            if self.at("\\\n"):
                self.position += 2
            elif self.at("<(") or self.at(">("):
                if parts:
                    raise Unreadable("a process substitution inside of a word")
                parts.append(self._process_substitution())
            elif char == "(" and self._opens_array(parts):
                parts.append(self._array())
            elif char in stop:
                break
            else:
                self._unquoted(char, parts)
        return Word(_merged(parts), self.source[start : self.position].replace("\\\n", ""))

    def expansions_in(self, text: str) -> Word:
        """Read a text of its own, such as a heredoc's, with the rules of double quotes.

        Raises:
            Unreadable: bash may read it in another way.
        """
        return Word(WordReader(text, self._find_end, 0, self.depth + 1).quoted_text(), text)

    def quoted_text(self, end: str = "") -> tuple[Part, ...]:
        """Read text with the rules of double quotes up to `end`, or to the end of the source.

        Raises:
            Unreadable: `end` is missing, or bash may read it in another way.
        """
        parts: list[Part] = []
        while char := self.peek():
            if end and char == end:
                return _merged(parts)
            if char == "\\":
                self._escape_in_quotes(parts, end)
            elif char == "$":
                parts.append(self._dollar(quoted=True))
            elif char == "`":
                parts.append(self._backticks(quoted=True))
            else:
                parts.append(Text(char, quoted=True))
                self.position += 1
        if end:
            raise Unreadable(f"a {end} that is not closed")
        return _merged(parts)

    def _unquoted(self, char: str, parts: list[Part]) -> None:
        if char == "\\":
            escaped = self.source[self.position + 1 : self.position + 2]
            if not escaped:
                raise Unreadable("a backslash at its end")
            self._notice(escaped)
            parts.append(Text(escaped, quoted=True))
            self.position += 2
        elif char == "'":
            parts.append(Text(self._single_quotes(), quoted=True))
        elif char == '"':
            parts.extend(self._double_quotes())
        elif char == "`":
            parts.append(self._backticks(quoted=False))
        elif char == "$":
            self._unquoted_dollar(parts)
        else:
            self._notice(char)
            parts.append(Text(char, quoted=False))
            self.position += 1

    def _unquoted_dollar(self, parts: list[Part]) -> None:
        if self.at("$'"):
            parts.append(Text(self._ansi_quotes(), quoted=True))
        elif self.at('$"'):
            self.position += 1
            parts.extend(self._double_quotes())
        else:
            parts.append(self._dollar(quoted=False))

    def _notice(self, char: str) -> None:
        if is_invisible(char):
            self.oddities.append(f"an invisible character (U+{ord(char):04X})")

    def _opens_array(self, parts: list[Part]) -> bool:
        first = parts[0] if parts else None
        if not all(isinstance(part, Text) and not part.quoted for part in parts) or not isinstance(first, Text):
            return False
        return bool(_ASSIGNMENT.fullmatch("".join(part.text for part in parts if isinstance(part, Text))))

    def _array(self) -> Variable:
        self.position += 1
        held: list[Part] = []
        start = self.position
        while not self.at(")"):
            if not self.peek():
                raise Unreadable("an array that is not closed")
            if self.peek() in " \t\n":
                self.position += 1
                continue
            before = self.position
            held.extend(self.word().parts)
            if self.position == before:
                raise Unreadable("an array of an unusual form")
        self.position += 1
        return Variable("", "array", Word(tuple(held), self.source[start : self.position - 1]), quoted=True)

    def _single_quotes(self) -> str:
        end = self.source.find("'", self.position + 1)
        if end < 0:
            raise Unreadable("a ' that is not closed")
        text = self.source[self.position + 1 : end]
        self.position = end + 1
        return text

    def _double_quotes(self) -> tuple[Part, ...]:
        self.position += 1
        parts = self.quoted_text('"')
        self.position += 1
        return parts or (Text("", quoted=True),)

    def _escape_in_quotes(self, parts: list[Part], end: str) -> None:
        escaped = self.source[self.position + 1 : self.position + 2]
        if escaped == "\n":
            self.position += 2
        elif escaped and escaped in ('$`\\"' if end else "$`\\"):
            parts.append(Text(escaped, quoted=True))
            self.position += 2
        else:
            parts.append(Text("\\", quoted=True))
            self.position += 1

    def _ansi_quotes(self) -> str:
        self.position += 2
        out: list[str] = []
        while (char := self.peek()) != "'":
            if not char:
                raise Unreadable("a $' that is not closed")
            if char != "\\":
                out.append(char)
                self.position += 1
                continue
            self.position += 1
            escaped = self.peek()
            if escaped in _ANSI_SIMPLE and escaped:
                out.append(_ANSI_SIMPLE[escaped])
                self.position += 1
            elif match := _ANSI_NUMBER.match(self.source, self.position):
                out.append(_ansi_character(match))
                self.position = match.end()
            else:
                raise Unreadable("an unusual escape in $'…'")
        self.position += 1
        return "".join(out)

    def _dollar(self, *, quoted: bool) -> Part:
        if self.at("$\\\n"):
            raise Unreadable("a line that is continued inside of an expansion")
        if self.at("$(("):
            return self._arithmetic(quoted=quoted)
        if self.at("$("):
            self.position += 2
            return Substitution(self._nested(), "command", quoted)
        if self.at("${"):
            return self._braced(quoted=quoted)
        if self.at("$["):
            raise Unreadable("the old arithmetic form $[…]")
        if match := _NAME.match(self.source, self.position + 1):
            self.position = match.end()
            if self.at("\\\n"):
                raise Unreadable("a line that is continued inside of an expansion")
            return Variable(match[0], "", None, quoted)
        following = self.source[self.position + 1 : self.position + 2]
        if following and following in _SPECIAL:
            self.position += 2
            return Variable(following, "", None, quoted)
        self.position += 1
        return Text("$", quoted=True)

    def _nested(self) -> str:
        """The script up to the parenthesis that closes it."""
        start = self.position
        end = self._find_end(self.source, start, self.depth + 1)
        self.position = end + 1
        return self.source[start:end]

    def _process_substitution(self) -> Substitution:
        kind: Literal["input", "output"] = "input" if self.peek() == "<" else "output"
        self.position += 2
        return Substitution(self._nested(), kind, quoted=True)

    def _backticks(self, *, quoted: bool) -> Substitution:
        self.position += 1
        out: list[str] = []
        while (char := self.peek()) != "`":
            if not char:
                raise Unreadable("a ` that is not closed")
            following = self.source[self.position + 1 : self.position + 2]
            if char == "\\" and following and following in ('`$\\"' if quoted else "`$\\"):
                out.append(following)
                self.position += 2
            else:
                out.append(char)
                self.position += 1
        self.position += 1
        return Substitution("".join(out), "command", quoted)

    def _arithmetic(self, *, quoted: bool) -> Arithmetic:
        self.position += 3
        source = arithmetic_source(self)
        return Arithmetic(source, self.expansions_in(source), quoted)

    def _braced(self, *, quoted: bool) -> Variable:
        start = self.position
        self.position += 2
        prefix = ""
        if self.peek() in {"!", "#"} and self.peek() and not self.at("#}") and not self.at("!}"):
            prefix = self.peek()
            self.position += 1
        if match := _NAME.match(self.source, self.position):
            name = match[0]
            self.position = match.end()
        elif self.peek() and self.peek() in _SPECIAL:
            name = self.peek()
            self.position += 1
            while name.isdigit() and self.peek().isdigit():
                name += self.peek()
                self.position += 1
        else:
            raise Unreadable("an unusual ${…}")
        first = self.position
        parts: list[Part] = []
        while not self.at("}"):
            char = self.peek()
            if not char or char in "'\"\\\n{":
                raise Unreadable("an unusual ${…}")
            if char == "$":
                parts.append(self._dollar(quoted=True))
            elif char == "`":
                parts.append(self._backticks(quoted=True))
            else:
                parts.append(Text(char, quoted=True))
                self.position += 1
        operator = prefix + self.source[first : self.position]
        self.position += 1
        operand = Word(_merged(parts), self.source[start : self.position]) if parts else None
        return Variable(name, operator, operand, quoted)


def arithmetic_source(reader: WordReader) -> str:
    """What stands between `((` and `))`; the reader stands behind the opening and is left behind the closing.

    Raises:
        Unreadable: it is not closed by `))`, so bash may read two subshells.
    """
    start, open_count = reader.position, 0
    while char := reader.peek():
        if char in "'\"\\\n#":
            raise Unreadable("an unusual arithmetic expression")
        if char == ")" and open_count == 0:
            if not reader.at("))"):
                raise Unreadable("a (( that is not closed by ))")
            source = reader.source[start : reader.position]
            reader.position += 2
            return source
        open_count += (char == "(") - (char == ")")
        reader.position += 1
    raise Unreadable("a (( that is not closed")


def _ansi_character(match: re.Match[str]) -> str:
    octal, *hexadecimal = match.groups()
    code = int(octal, 8) & 0xFF if octal else int(next(digits for digits in hexadecimal if digits), 16)
    if code == 0 or code > 0x10FFFF or (code > 0x7F and not (match[3] or match[4])):
        raise Unreadable("an unusual character in $'…'")
    return chr(code)


def _merged(parts: list[Part]) -> tuple[Part, ...]:
    out: list[Part] = []
    for part in parts:
        last = out[-1] if out else None
        if isinstance(part, Text) and isinstance(last, Text) and part.quoted == last.quoted:
            out[-1] = Text(last.text + part.text, part.quoted)
        else:
            out.append(part)
    return tuple(out)
