"""What a program gets for a word: braces, `~`, variables and patterns, as far as they can be known before a run."""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from late.policy.words import Arithmetic, Part, Substitution, Text, Unreadable, Variable, Word

MAX_WORDS: Final = 512
"""That one word may become. More are not looked through."""
MAX_BRACES: Final = 32
MAX_PATTERN_FOLDERS: Final = 2
"""Of wildcards in the folders of a path: each of them multiplies what has to be listed."""


class Unknown(Enum):
    """Why a value is not known."""

    DATA = "data"
    """It comes from a command of the line that was judged itself."""
    ENVIRONMENT = "environment"
    """It comes from outside of the line."""
    SECRET = "secret"  # noqa: S105
    """A variable whose name says that it holds a key or a password."""
    CODE = "code"
    """Expanding it may run something."""
    DEVICE = "device"
    """The pipe of a process substitution."""
    FILES = "files"
    """A pattern whose files were not looked up."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One word as a program gets it."""

    text: str
    """As it was written."""
    value: str | None
    """`None` where only a run can tell."""
    unknown: Unknown | None = None
    """Why, where `value` is `None`."""
    many: bool = False
    """It may become no word or several."""
    start: str = ""
    """How an unknown value begins for certain."""
    shape: str = ""
    """An unknown value with `0` for what is not known."""
    from_pattern: bool = False
    """It is the name of a file that a pattern found."""


_HARMLESS_TO_SHOW: Final = frozenset(
    {
        "SHELL", "USER", "LOGNAME", "LANG", "TERM", "HOSTNAME", "UID", "EUID", "PPID", "RANDOM", "SECONDS", "LINENO",
        "BASH_VERSION", "BASHPID", "OSTYPE", "HOSTTYPE", "MACHTYPE", "PATH", "VIRTUAL_ENV", "TMPDIR", "OLDPWD",
        "EDITOR", "?", "!", "#", "$", "0", "-",
    }
)  # fmt: skip
_SECRET_VARIABLE = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH|DATABASE_URL|_DSN|_PAT$", re.IGNORECASE
)
_RUNS_NOTHING = re.compile(r"(:?[-+?]|##?|%%?|//?|\^\^?|,,?)")
_SLICE = re.compile(r":\d+(:\d+)?")
PLAIN_ARITHMETIC: Final = re.compile(r"[\d\s+\-*/%()<>=!&|^~?:,]*")
_SEQUENCE = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.(-?\d+))?")
_ASSIGNED_TILDE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=~")
_FIELD_SEPARATORS: Final = re.compile(r"[ \t\n]+")
_DOTTED_SECRETS: Final = (
    ".env",
    ".env.local",
    ".envrc",
    ".netrc",
    ".pgpass",
    ".pypirc",
    ".git-credentials",
    ".ssh",
    ".aws",
)


@dataclass(slots=True)
class Scope:
    """The variables of a shell and its working folder."""

    cwd: Path
    home: Path
    values: dict[str, str | Unknown] = field(default_factory=dict[str, str | Unknown])

    def copy(self) -> Scope:
        """A shell of its own, with the same values."""
        return replace(self, values=dict(self.values))

    def lookup(self, name: str) -> str | Unknown:
        """A variable's value."""
        known = {"HOME": str(self.home), "PWD": str(self.cwd)}
        value = self.values.get(name, known.get(name, Unknown.ENVIRONMENT))
        if value is not Unknown.ENVIRONMENT:
            return value
        if name not in self.values and (name in _HARMLESS_TO_SHOW or name.startswith("LC_")):
            return Unknown.DATA
        return Unknown.SECRET if _SECRET_VARIABLE.search(name) else Unknown.ENVIRONMENT

    def merge(self, other: Scope) -> None:
        """Either of both may be what holds from here on."""
        for name in self.values.keys() | other.values.keys():
            mine, theirs = self.lookup(name), other.lookup(name)
            if mine != theirs:
                self.values[name] = worst(Unknown.DATA if isinstance(value, str) else value for value in (mine, theirs))


_SEVERITY: Final = (
    Unknown.DEVICE, Unknown.DATA, Unknown.FILES, Unknown.ENVIRONMENT, Unknown.SECRET, Unknown.CODE,
)  # fmt: skip


def worst(found: Iterator[Unknown]) -> Unknown:
    """The one to be most careful with."""
    return max(found, key=_SEVERITY.index)


def substitutions(word: Word) -> Iterator[Substitution]:
    """All that a word runs while it is expanded, at any depth."""
    for part in word.parts:
        match part:
            case Substitution():
                yield part
            case Variable(operand=Word() as operand) | Arithmetic(operand=operand):
                yield from substitutions(operand)
            case _:
                pass


def unknown_of(part: Part, scope: Scope) -> Unknown | None:
    """Why a part's value is not known; `None` where it is."""
    match part:
        case Text():
            return None
        case Substitution(kind="command"):
            return Unknown.DATA
        case Substitution():
            return Unknown.DEVICE
        case Arithmetic():
            return Unknown.DATA if PLAIN_ARITHMETIC.fullmatch(part.source) else Unknown.CODE
        case Variable():
            value = _variable(part, scope)
            return value if isinstance(value, Unknown) else None


def _variable(part: Variable, scope: Scope) -> str | Unknown:
    if not part.operator:
        return scope.lookup(part.name)
    if part.operator == "#":
        return Unknown.DATA
    if not (_RUNS_NOTHING.match(part.operator) or _SLICE.fullmatch(part.operator)):
        return Unknown.CODE
    value = scope.lookup(part.name)
    found = [Unknown.DATA if isinstance(value, str) else value]
    if part.operand is not None:
        found += [cause for inner in part.operand.parts if (cause := unknown_of(inner, scope))]
    return worst(iter(found))


def single_value(word: Word, scope: Scope) -> str | Unknown:
    """The value of an assignment or a redirect's target: no splitting, no patterns."""
    parts = _tilde(list(word.parts), scope)
    out: list[str] = []
    found: list[Unknown] = []
    for part in parts:
        if isinstance(part, Text):
            out.append(part.text)
        elif isinstance(part, Variable) and isinstance(value := _variable(part, scope), str):
            out.append(value)
        elif cause := unknown_of(part, scope):
            found.append(cause)
    return worst(iter(found)) if found else "".join(out)


def expand(word: Word, scope: Scope) -> list[Argument]:
    """The words that one word becomes."""
    try:
        variants = _braces(_atoms(word.parts))
    except Unreadable:
        return [Argument(word.text, None, Unknown.DATA, many=True)]
    many = len(variants) > 1
    arguments: list[Argument] = []
    for variant in variants:
        arguments += _Fields(word.text if not many else "", scope).run(_tilde(variant, scope))
    if len(arguments) > MAX_WORDS:
        return [Argument(word.text, None, Unknown.FILES, many=True)]
    return arguments


class _Fields:
    """Joins the parts of a word and splits what is not quoted."""

    def __init__(self, text: str, scope: Scope) -> None:
        self._text = text
        self._scope = scope
        self._done: list[Argument] = []
        self._start()

    def _start(self) -> None:
        self._value: list[str] = []
        self._pattern: list[str] = []
        self._causes: list[Unknown] = []
        self._known_start = ""
        self._many = self._is_pattern = self._exists = False

    def run(self, parts: list[Part]) -> list[Argument]:
        """The arguments that the parts become."""
        for part in parts:
            if isinstance(part, Text):
                self._add(part.text, quoted=part.quoted)
            elif isinstance(part, Variable) and isinstance(value := _variable(part, self._scope), str):
                if part.quoted:
                    self._add(value, quoted=True)
                else:
                    self._split(value)
            elif cause := unknown_of(part, self._scope):
                self._open(cause, many=not part.quoted)
        self._finish()
        return self._done

    def _add(self, text: str, *, quoted: bool) -> None:
        self._exists = self._exists or quoted or bool(text)
        self._value.append(text)
        self._pattern.append(glob.escape(text) if quoted else text)
        self._is_pattern = self._is_pattern or (not quoted and any(char in text for char in "*?["))

    def _split(self, value: str) -> None:
        for index, piece in enumerate(_FIELD_SEPARATORS.split(value)):
            if index:
                self._finish()
            self._add(piece, quoted=False)

    def _open(self, cause: Unknown, *, many: bool) -> None:
        if not self._causes:
            self._known_start = "".join(self._value)
        self._causes.append(cause)
        self._value.append("0")
        self._many = self._many or many
        self._exists = True

    def _finish(self) -> None:
        if self._exists:
            value = "".join(self._value)
            text = self._text or value
            if self._causes:
                self._done.append(
                    Argument(text, None, worst(iter(self._causes)), self._many, self._known_start, shape=value)
                )
            elif self._is_pattern:
                self._done += _files(text, value, "".join(self._pattern), self._scope.cwd)
            else:
                self._done.append(Argument(text, value))
        self._start()


def _files(text: str, value: str, pattern: str, cwd: Path) -> list[Argument]:
    *folders, _ = pattern.split("/")
    wild = [folder for folder in folders if glob.has_magic(folder)]
    unsure = Argument(text, None, Unknown.FILES, many=True, start=re.split(r"[*?\[]", value)[0], shape=value)
    odd = "[^" in pattern or "[:" in pattern or "[." in pattern or "[=" in pattern or "**" in pattern
    if odd or len(wild) > MAX_PATTERN_FOLDERS or _may_name_secrets(pattern):
        return [unsure]
    try:
        matches = glob.iglob(pattern, root_dir=cwd)  # noqa: PTH207 — Path.glob has other rules than a shell
        found = list(itertools.islice(matches, MAX_WORDS + 1))
    except (OSError, re.error):
        return [unsure]
    if len(found) > MAX_WORDS:
        return [unsure]
    if not found:
        return [Argument(text, value)]
    return [Argument(text, os.fsdecode(name), from_pattern=True) for name in sorted(found)]


def _may_name_secrets(pattern: str) -> bool:
    """Whether a pattern for dotted names would find secrets, were they there."""
    wild = [part for part in pattern.split("/") if glob.has_magic(part)]
    return any(part.startswith((".", "[.")) and fnmatchcase(name, part) for part in wild for name in _DOTTED_SECRETS)


def _tilde(parts: list[Part], scope: Scope) -> list[Part]:
    first = parts[0] if parts else None
    if not isinstance(first, Text) or first.quoted:
        return parts
    head = ""
    text = first.text
    if _ASSIGNED_TILDE.match(text):
        head, text = text[: text.index("~")], text[text.index("~") :]
    if not text.startswith("~"):
        return parts
    name, slash, rest = text[1:].partition("/")
    if not slash and len(parts) > 1:  # what follows belongs to the name, and then it is no user's
        return [Variable("~", "~", None, quoted=True), *parts]
    folder = _home_of(name, scope)
    if folder is None:
        return [
            Text(head, quoted=False),
            Variable("~", "", None, quoted=True),
            Text(slash + rest, quoted=False),
            *parts[1:],
        ]
    return [Text(head, quoted=False), Text(folder, quoted=True), Text(slash + rest, quoted=False), *parts[1:]]


def _home_of(name: str, scope: Scope) -> str | None:
    if not name:
        value = scope.lookup("HOME")
        return value if isinstance(value, str) else None
    if name == "+":
        return str(scope.cwd)
    try:
        import pwd

        return pwd.getpwnam(name).pw_dir
    except (ImportError, KeyError):
        return None


_Atom = str | Part
"""A single unquoted character, or anything else."""


def _atoms(parts: tuple[Part, ...]) -> list[_Atom]:
    out: list[_Atom] = []
    for part in parts:
        if isinstance(part, Text) and not part.quoted:
            out.extend(part.text)
        else:
            out.append(part)
    return out


def _braces(atoms: list[_Atom]) -> list[list[Part]]:
    if "{" not in atoms:
        return [_joined(atoms)]
    if atoms.count("{") > MAX_BRACES:
        raise Unreadable("too many braces")
    variants = _alternatives(atoms)
    if len(variants) == 1 and "," in atoms and "}" in atoms:
        raise Unreadable("braces of an unusual form")
    return [_joined(variant) for variant in variants]


def _alternatives(atoms: list[_Atom]) -> list[list[_Atom]]:
    for start, atom in enumerate(atoms):
        if atom != "{":
            continue
        inner = _brace_at(atoms, start)
        if inner is None:
            continue
        choices, end = inner
        tails = _alternatives(atoms[end + 1 :])
        out = [[*atoms[:start], *choice, *tail] for choice in choices for tail in tails]
        if len(out) > MAX_WORDS:
            raise Unreadable("braces that become too many words")
        return out
    return [atoms]


def _brace_at(atoms: list[_Atom], start: int) -> tuple[list[list[_Atom]], int] | None:
    depth, pieces = 0, [list[_Atom]()]
    for index in range(start, len(atoms)):
        atom = atoms[index]
        depth += (atom == "{") - (atom == "}")
        if depth == 0:
            if len(pieces) > 1:
                return [choice for piece in pieces for choice in _alternatives(piece)], index
            listed = _listed(pieces[0])
            return (listed, index) if listed else None
        if atom == "," and depth == 1:
            pieces.append([])
        elif index > start:
            pieces[-1].append(atom)
    return None


def _listed(atoms: list[_Atom]) -> list[list[_Atom]] | None:
    if not all(isinstance(atom, str) for atom in atoms):
        return None
    match = _SEQUENCE.fullmatch("".join(atom for atom in atoms if isinstance(atom, str)))
    if match is None:
        return None
    first, last, step = match.groups()
    numeric = first.lstrip("-").isdigit() and last.lstrip("-").isdigit()
    if not numeric and (first.lstrip("-").isdigit() or last.lstrip("-").isdigit()):
        return None
    low, high = (int(first), int(last)) if numeric else (ord(first), ord(last))
    stride = abs(int(step or 1)) or 1
    count = abs(high - low) // stride + 1
    if count > MAX_WORDS or (
        numeric and any(len(text.lstrip("-")) > 1 and text.lstrip("-")[0] == "0" for text in (first, last))
    ):
        raise Unreadable("braces that become too many words")
    numbers = range(low, high + (1 if high >= low else -1), stride if high >= low else -stride)
    return [list(str(number) if numeric else chr(number)) for number in numbers]


def _joined(atoms: list[_Atom]) -> list[Part]:
    out: list[Part] = []
    for atom in atoms:
        last = out[-1] if out else None
        if not isinstance(atom, str):
            out.append(atom)
        elif isinstance(last, Text) and not last.quoted:
            out[-1] = Text(last.text + atom, quoted=False)
        else:
            out.append(Text(atom, quoted=False))
    return out
