"""What a small program inside of an argument does: sed, awk and jq scripts, as far as they only read and print."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_AWK_ACTS: Final = re.compile(
    r"\b(system|getline|close|fflush|ENVIRON|PROCINFO|ARGV|ARGC|SYMTAB|FUNCTAB|extension|printf?\s*>|function|func)\b|@"
)
_AWK_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_JQ_ACTS: Final = re.compile(
    r"\$ENV\b|\benv\b|\binput_filename\b|\bimport\b|\bmodulemeta\b|\binclude\b|\b(debug|stderr|halt_error)\b|\$__prog"
)
_SED_FLAGS: Final = frozenset("gpIiMm0123456789")
_SED_PLAIN: Final = frozenset("pPdDnNhHgGxl=")
_SED_ENDS: Final = " \t\n;"


@dataclass(frozen=True, slots=True)
class SedScript:
    """What a sed script does besides printing."""

    plain: bool
    """Every command of it is known to only change what is printed."""
    files: tuple[str, ...] = ()
    """What seems to be written or read."""


def awk_is_plain(program: str) -> bool:
    """Whether an awk program only prints: no files, no commands, no environment."""
    if _AWK_ACTS.search(program):
        return False
    # In a regular expression or a comment, quotes and brackets mean nothing: where one may be, nothing is left out.
    certain = "/" not in program and "#" not in program
    rest = _AWK_STRING.sub('""', program) if certain else program
    rest = rest.replace("||", "  ").replace(">=", "  ")
    if "|" in rest:
        return False
    return "print" not in rest or ">" not in (_redirecting(rest) if certain else rest)


def _redirecting(program: str) -> str:
    """Where `>` may send output to a file: inside of braces and outside of parentheses; elsewhere it compares."""
    out: list[str] = []
    braces = parentheses = 0
    for char in program:
        braces += (char == "{") - (char == "}")
        parentheses += (char == "(") - (char == ")")
        if braces > 0 and parentheses <= 0:
            out.append(char)
    return "".join(out) if braces == parentheses == 0 else program


def jq_is_plain(program: str) -> bool:
    """Whether a jq filter reads nothing but its input."""
    return not _JQ_ACTS.search(program)


def read_sed(script: str) -> SedScript:
    """Read a sed script. Whatever is unusual is not plain."""
    try:
        _Sed(script).run()
    except _NotPlainError as error:
        return SedScript(plain=False, files=error.files)
    return SedScript(plain=True)


class _NotPlainError(Exception):
    def __init__(self, *files: str) -> None:
        super().__init__()
        self.files = tuple(name.strip() for name in files if name.strip())


class _Sed:
    def __init__(self, script: str) -> None:
        self._script = script
        self._at = 0
        self._open = 0

    def run(self) -> None:
        while self._at < len(self._script):
            if self._peek() in _SED_ENDS:
                self._at += 1
            elif self._peek() == "#":
                self._at = self._line_end()
            else:
                self._addresses()
                self._command()

    def _peek(self) -> str:
        return self._script[self._at : self._at + 1]

    def _line_end(self) -> int:
        end = self._script.find("\n", self._at)
        return len(self._script) if end < 0 else end

    def _blanks(self) -> None:
        while self._peek() in {" ", "\t"} and self._peek():
            self._at += 1

    def _addresses(self) -> None:
        self._address()
        self._blanks()
        if self._peek() == ",":
            self._at += 1
            self._blanks()
            if self._peek() in {"+", "~"}:
                self._at += 1
            self._address()
            self._blanks()
        while self._peek() == "!":
            self._at += 1
            self._blanks()

    def _address(self) -> None:
        if match := re.compile(r"\d+(~\d+)?|\$").match(self._script, self._at):
            self._at = match.end()
        elif self._peek() == "/":
            self._at += 1
            self._until("/")
            while self._peek() in {"I", "M"}:
                self._at += 1
        elif self._peek() == "\\":
            delimiter = self._script[self._at + 1 : self._at + 2]
            self._at += 2
            self._until(delimiter)

    def _until(self, delimiter: str) -> str:
        """Read up to an unescaped delimiter. A bracket expression may hold one in some seds: not plain."""
        if not delimiter or delimiter in "\n\\":
            raise _NotPlainError
        start = self._at
        while (char := self._peek()) != delimiter:
            if not char:
                raise _NotPlainError
            self._at += 2 if char == "\\" else 1
        text = self._script[start : self._at]
        if "[" in text and delimiter in text:
            raise _NotPlainError
        self._at += 1
        return text

    def _command(self) -> None:
        command = self._peek()
        self._at += 1
        if command == "{":
            self._open += 1
        elif command == "}" and self._open:
            self._open -= 1
        elif command in _SED_PLAIN and command:
            self._end()
        elif command in {"q", "Q"}:
            self._blanks()
            while self._peek().isdigit():
                self._at += 1
            self._end()
        elif command == "s":
            self._substitute()
        elif command == "y":
            delimiter = self._peek()
            self._at += 1
            self._until(delimiter)
            self._until(delimiter)
            self._end()
        else:
            line = self._script[self._at : self._line_end()]
            raise _NotPlainError(line if command in "rRwW" else "")

    def _substitute(self) -> None:
        delimiter = self._peek()
        self._at += 1
        self._until(delimiter)
        self._until(delimiter)
        while (flag := self._peek()) and flag in _SED_FLAGS:
            self._at += 1
        if self._peek() == "w":
            raise _NotPlainError(self._script[self._at + 1 : self._line_end()])
        self._end()

    def _end(self) -> None:
        self._blanks()
        if self._peek() not in {"", ";", "\n", "}", "#"}:
            raise _NotPlainError
