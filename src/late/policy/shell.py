"""A command line as bash reads it, as a small tree of typed nodes.

The reading has two halves. A lexer finds words, operators, redirects, heredocs and reserved words, and is strict: what
bash might read in another way is `Unreadable`. It hands tree-sitter-bash a skeleton in which each word is an opaque
name, so that no quoting can mislead the grammar, and the grammar says how the commands hang together. Both halves have
to agree on every word. Whatever does not fit is a `Script.problems` entry, and a script with one is never run unasked;
its commands are still listed, so that what must not run is recognised in a line that cannot be read as a whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

from late.policy.words import (
    BLANKS,
    Assignment,
    Text,
    Unreadable,
    Word,
    WordReader,
    arithmetic_source,
    is_invisible,
)

if TYPE_CHECKING:
    from tree_sitter import Node as SyntaxNode
    from tree_sitter import Parser

MAX_CHARS: Final = 20_000
"""Of one command line. Nobody reviews longer ones; files are written with the tools for it."""
MAX_NESTING: Final = 60
"""Of compound commands."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """`2>file`, `<<EOF`, …; `operator` is without the descriptor. A heredoc's or herestring's word is its text."""

    operator: str
    descriptor: str
    target: Word


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command."""

    assignments: tuple[Assignment, ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Test:
    """`[[ … ]]`: its words, operators among them."""

    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Calculation:
    """`(( … ))`; `operand` holds the expansions in it."""

    operand: Word


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other, in the same shell."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """`first && … || …`: the rest may not run."""

    first: Node
    rest: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Each part in a shell of its own."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Subshell:
    """`( … )`."""

    body: Node


@dataclass(frozen=True, slots=True)
class Background:
    """`… &`."""

    body: Node


@dataclass(frozen=True, slots=True)
class Branches:
    """`if` and `case`: `first` always runs, of the rest some do. `words` are expanded on the way."""

    words: tuple[Word, ...]
    first: Node
    rest: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """`while` and `until`."""

    body: Node


@dataclass(frozen=True, slots=True)
class ForEach:
    """`for name in words`; `words` is `None` for the positional parameters. `select` counts as one."""

    name: str
    words: tuple[Word, ...] | None
    body: Node


@dataclass(frozen=True, slots=True)
class Function:
    """A definition. Whatever it is called, calls of that name are no longer what they seem."""

    name: str
    body: Node


@dataclass(frozen=True, slots=True)
class Redirected:
    """A compound command with redirects."""

    body: Node
    redirects: tuple[Redirect, ...]


Node = (
    Command
    | Test
    | Calculation
    | Sequence
    | Either
    | Pipeline
    | Subshell
    | Background
    | Branches
    | Loop
    | ForEach
    | Function
    | Redirected
)


@dataclass(frozen=True, slots=True)
class Script:
    """A command line that was read. `problems` says what is not certain, each as "it has …"."""

    body: Sequence
    problems: tuple[str, ...] = ()


def parse(source: str, depth: int = 0) -> Script:
    """Read a command line. Never raises; what cannot be read is a problem."""
    if "\0" in source:
        return Script(Sequence(_rough(source)), ("a NUL character",))
    if len(source) > MAX_CHARS:
        return Script(Sequence(_rough(source)), (f"more than {MAX_CHARS:,} characters",))
    try:
        lexer = _Lexer(source, depth=depth)
    except Unreadable as error:
        return Script(Sequence(_rough(source)), (str(error),))
    try:
        lexer.run()
    except Unreadable as error:
        rest = _rough(source[lexer.reader.position :]) + _rough(source)
        return Script(Sequence((*lexer.linear(), *rest)), (str(error),))
    problems = list(dict.fromkeys(lexer.reader.oddities))
    if not lexer.items:
        return Script(Sequence(()), tuple(problems))
    try:
        return Script(_Builder(lexer).build(), tuple(problems))
    except Unreadable as error:
        return Script(Sequence((*lexer.linear(), *_rough(source))), (*problems, str(error)))


def end_of_script(source: str, start: int, depth: int) -> int:
    """Where the parenthesis stands that closes a script which starts at `start`.

    Raises:
        Unreadable: there is none, or bash may see another one.
    """
    lexer = _Lexer(source, start, depth=depth)
    lexer.run(nested=True)
    if not lexer.reader.at(")"):
        raise Unreadable("a ( that is not closed")
    return lexer.reader.position


_CASE_MARKS: Final = frozenset({"|", "(", ")", ";;", ";&", ";;&"})
_OPERATORS: Final = ("&&", "||", ";;&", ";;", ";&", "|&", "|", ";", "&", "(", ")")
_REDIRECTS: Final = ("<<<", "<<-", "<<", "<&", "<>", "<", ">>", ">&", ">|", ">", "&>>", "&>")
_OPENING: Final = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{"})
_CLOSING: Final = frozenset({"fi", "done", "esac", "}"})
_LOOPING: Final = frozenset({"for", "select"})
_RESERVED: Final = _OPENING | _CLOSING | _LOOPING | {"case", "function"}
_DESCRIPTOR = re.compile(r"[0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\}")

_Item = Word | Redirect | Test | Calculation


@dataclass(slots=True)
class _Pending:
    """A heredoc whose text comes after the line."""

    delimiter: str
    quoted: bool
    strip_tabs: bool
    index: int


@dataclass(slots=True)
class _Lexer:
    source: str
    start: int = 0
    depth: int = 0
    reader: WordReader = field(init=False)
    items: list[_Item] = field(default_factory=list[_Item])
    skeleton: list[str] = field(default_factory=list[str])
    pending: list[_Pending] = field(default_factory=list[_Pending])
    command_position: bool = True
    """A reserved word may stand here."""
    after_compound: bool = False
    """A compound command has just ended: what follows can only be a redirect or an operator."""
    heads: list[str] = field(default_factory=list[str])
    """`for`, `case`, … whose `in` has not come yet, with the words that came since."""

    def __post_init__(self) -> None:
        self.reader = WordReader(self.source, end_of_script, self.start, self.depth)

    def run(self, *, nested: bool = False) -> None:
        """Read to the end; nested, to the parenthesis that closes."""
        open_count, cases = 0, 0
        reader = self.reader
        while char := reader.peek():
            if char in BLANKS:
                reader.position += 1
            elif reader.at("\\\n"):
                reader.position += 2
            elif char == "\n":
                reader.position += 1
                self._newline()
            elif char == "#":
                self._comment()
            elif nested and char == ")" and open_count == 0:
                if cases:
                    raise Unreadable("a case inside of a substitution")
                break
            elif self._redirect(""):
                continue
            elif operator := self._operator():
                open_count += (operator == "(") - (operator == ")")
            else:
                self._word()
                cases += self.skeleton[-1] == "case"
        if self.pending:
            raise Unreadable("a heredoc without its text")

    def linear(self) -> tuple[Command, ...]:
        """The simple commands as far as they were read, without how they hang together."""
        commands: list[Command] = []
        current: list[_Item] = []
        for piece in [*self.skeleton, ";"]:
            item = self._item(piece)
            if isinstance(item, Word | Redirect):
                current.append(item)
            elif current:
                commands.append(simple_command(current))
                current = []
        return tuple(commands)

    def _item(self, piece: str) -> _Item | None:
        match = _PLACEHOLDER.fullmatch(piece.lstrip(">"))
        return self.items[int(match[1])] if match else None

    def _comment(self) -> None:
        end = self.source.find("\n", self.reader.position)
        text = self.source[self.reader.position : end if end >= 0 else len(self.source)]
        if any(is_invisible(char) for char in text):
            self.reader.oddities.append("an invisible character in a comment")
        self.reader.position += len(text)

    def _newline(self) -> None:
        for heredoc in self.pending:
            self._heredoc_text(heredoc)
        self.pending.clear()
        open_ends = {"&&", "||", "|", "|&", "(", ";", ";;", ";&", ";;&", "&", "\n", *_OPENING, "in"}
        if self.skeleton and self.skeleton[-1] not in open_ends:
            self.skeleton.append("\n")
        self.command_position, self.after_compound = True, False

    def _heredoc_text(self, heredoc: _Pending) -> None:
        reader, lines = self.reader, list[str]()
        while True:
            if reader.position >= len(self.source):
                raise Unreadable("a heredoc that is not closed")
            end = self.source.find("\n", reader.position)
            line = self.source[reader.position : end if end >= 0 else len(self.source)]
            reader.position += len(line) + (end >= 0)
            shown = line.lstrip("\t") if heredoc.strip_tabs else line
            if shown == heredoc.delimiter:
                break
            if not heredoc.quoted and line.endswith("\\"):
                raise Unreadable("a heredoc with continued lines")
            lines.append(shown)
        text = "".join(f"{line}\n" for line in lines)
        body = Word((Text(text, quoted=True),), text) if heredoc.quoted else reader.expansions_in(text)
        self.items[heredoc.index] = Redirect("<<", "", body)

    def _operator(self) -> str:
        reader = self.reader
        if reader.at("((") and self.heads:
            raise Unreadable("a for loop that counts")
        if reader.at("((") and self.command_position:
            reader.position += 2
            source = arithmetic_source(reader)
            self._place(Calculation(reader.expansions_in(source)))
            self.after_compound = True
            return "(("
        for operator in _OPERATORS:
            if reader.at(operator):
                reader.position += len(operator)
                self.skeleton.append(operator)
                self.command_position = True
                self.after_compound = operator == ")"
                return operator
        return ""

    def _redirect(self, descriptor: str) -> bool:
        reader = self.reader
        if reader.at("<(") or reader.at(">("):
            return False
        operator = next((operator for operator in _REDIRECTS if reader.at(operator)), None)
        if operator is None:
            return False
        reader.position += len(operator)
        while reader.peek() in {" ", "\t"} or reader.at("\\\n"):
            reader.position += 2 if reader.at("\\\n") else 1
        target = reader.word()
        if not target.parts:
            raise Unreadable("a redirect without a target")
        index = len(self.items)
        if operator in {"<<", "<<-"}:
            self.pending.append(_heredoc(operator, target, index))
        self.items.append(Redirect(operator, descriptor, target))
        self.skeleton.append(f">{_name(index)}" if self.after_compound else _name(index))
        if not self.after_compound:
            self.command_position = False
        return True

    def _word(self) -> None:
        reader = self.reader
        before = reader.position
        word = reader.word()
        if reader.position == before:
            raise Unreadable(f"an unexpected {reader.peek()!r}")
        if self.pending and "\n" in word.text:
            raise Unreadable("a heredoc whose line goes on in quotes")
        plain = word.plain
        if plain and reader.peek() in {"<", ">"} and _DESCRIPTOR.fullmatch(plain) and self._redirect(plain):
            return
        if plain == "[[" and self.command_position:
            self._test()
        elif not self._reserved(plain):
            self._place(word)

    def _reserved(self, plain: str | None) -> bool:
        if plain is None:
            if self.heads:
                self.heads.append("word")
            return False
        if self.heads and plain == "in" and len(self.heads) == 2:
            self.command_position = self.heads[0] == "case"
            self.heads.clear()
            self.skeleton.append("in")
            return True
        if self.heads and len(self.heads) == 1:
            self.heads.append("word")
            return False
        self.heads.clear()
        if not self.command_position or plain not in _RESERVED:
            return False
        self.skeleton.append(plain)
        self.command_position = plain in _OPENING
        self.after_compound = plain in _CLOSING
        if plain in _LOOPING or plain == "case":
            self.heads.append(plain)
        return True

    def _place(self, item: _Item) -> None:
        self.skeleton.append(_name(len(self.items)))
        self.items.append(item)
        named_function = len(self.skeleton) > 1 and self.skeleton[-2] == "function"
        self.command_position, self.after_compound = named_function, False

    def _test(self) -> None:
        reader, words = self.reader, list[Word]()
        while True:
            if not reader.peek():
                raise Unreadable("a [[ that is not closed")
            if reader.peek() in " \t\n":
                reader.position += 1
                continue
            if reader.at("\\\n"):
                reader.position += 2
                continue
            operator = next((text for text in ("&&", "||", "(", ")", "<", ">") if reader.at(text)), None)
            if operator and not reader.at("<(") and not reader.at(">("):
                reader.position += len(operator)
                words.append(Word((Text(operator, quoted=False),), operator))
                continue
            before = reader.position
            word = reader.word()
            if reader.position == before:
                raise Unreadable("an unusual [[ … ]]")
            if word.plain == "]]":
                break
            words.append(word)
            if word.plain == "=~":
                raise Unreadable("a regular expression in [[ … ]]")
        self._place(Test(tuple(words)))
        self.after_compound = True


_PLACEHOLDER = re.compile(r"w([0-9]+)x")


def _name(index: int) -> str:
    return f"w{index}x"


def _heredoc(operator: str, target: Word, index: int) -> _Pending:
    texts = [part for part in target.parts if isinstance(part, Text)]
    if len(texts) != len(target.parts):
        raise Unreadable("a heredoc with an unusual delimiter")
    delimiter = "".join(part.text for part in texts)
    if "\n" in delimiter:
        raise Unreadable("a heredoc with an unusual delimiter")
    return _Pending(delimiter, any(part.quoted for part in texts), operator == "<<-", index)


def simple_command(items: list[_Item]) -> Command:
    """Put a simple command together: assignments come first, redirects may stand anywhere.

    Raises:
        Unreadable: something that is no part of a simple command stands among them.
    """
    assignments: list[Assignment] = []
    words: list[Word] = []
    redirects: list[Redirect] = []
    for item in items:
        if isinstance(item, Redirect):
            redirects.append(item)
        elif not isinstance(item, Word):
            raise Unreadable("words behind a compound command")
        elif not words and (assignment := item.assignment):
            assignments.append(assignment)
        else:
            words.append(item)
    text = " ".join(item.text for item in items if isinstance(item, Word))
    return Command(tuple(assignments), tuple(words), tuple(redirects), text)


_ROUGH_BREAK = re.compile(r"[\n;|&(){}`]+")
_ROUGH_NOISE = str.maketrans("", "", "\"'\\\0")


def _rough(source: str) -> tuple[Command, ...]:
    """What a text that cannot be read seems to run: only good for recognising what must not run."""
    commands: list[Command] = []
    for piece in _ROUGH_BREAK.split(source[:MAX_CHARS]):
        words = [word for raw in piece.split() if (word := raw.translate(_ROUGH_NOISE))]
        if words:
            made = tuple(Word((Text(word, quoted=True),), word) for word in words)
            commands.append(Command((), made, (), " ".join(words)))
    return tuple(commands)


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


class _Builder:
    """Makes nodes of what the grammar says about the skeleton."""

    def __init__(self, lexer: _Lexer) -> None:
        self._lexer = lexer
        self._used: list[int] = []

    def build(self) -> Sequence:
        """The whole script.

        Raises:
            Unreadable: the grammar does not accept the skeleton, or sees other words in it than the lexer.
        """
        text = " ".join(self._lexer.skeleton)
        root = _parser().parse(text.encode()).root_node
        if root.has_error:
            raise Unreadable("a syntax error")
        body = self._sequence(root.children, 0)
        if sorted(self._used) != list(range(len(self._lexer.items))):
            raise Unreadable("a form that can be read in two ways")
        return body

    def _sequence(self, nodes: list[SyntaxNode], depth: int) -> Sequence:
        if depth > MAX_NESTING:
            raise Unreadable("commands nested too deeply")
        items: list[Node] = []
        for node in nodes:
            if node.is_named:
                items.append(self._node(node, depth + 1))
            elif node.type == "&":
                if not items:
                    raise Unreadable("a stray &")
                items[-1] = Background(items[-1])
            elif node.type not in {";", "\n", "{", "}", "(", ")", "do", "done"}:
                raise Unreadable(f"an unexpected {node.type!r}")
        return Sequence(tuple(items))

    def _node(self, node: SyntaxNode, depth: int) -> Node:
        match node.type:
            case "command":
                return self._command(self._items(node))
            case "redirected_statement":
                return self._redirected(node, depth)
            case "list":
                return self._either(node, depth)
            case "pipeline":
                return Pipeline(tuple(self._node(child, depth + 1) for child in node.named_children))
            case "negated_command":
                return self._sequence(node.named_children, depth)
            case "compound_statement" | "do_group":
                return self._sequence(node.children, depth)
            case "subshell":
                return Subshell(self._sequence(node.children, depth))
            case _:
                return self._compound(node, depth)

    def _compound(self, node: SyntaxNode, depth: int) -> Node:
        match node.type:
            case "if_statement" | "elif_clause" | "else_clause":
                return self._if(node, depth)
            case "while_statement":
                keep = [child for child in node.children if child.type not in {"while", "until"}]
                return Loop(self._sequence(keep, depth))
            case "for_statement":
                return self._for(node, depth)
            case "case_statement":
                return self._case(node, depth)
            case "function_definition":
                return self._function(node, depth)
            case _:
                raise Unreadable(f"a form that is not known ({node.type})")

    def _either(self, node: SyntaxNode, depth: int) -> Either:
        rest: list[Node] = []
        while node.type == "list":  # long lists nest to the left, and may be longer than Python's stack
            if [child.type in {"&&", "||"} for child in node.children] != [False, True, False]:
                raise Unreadable("an unusual list")
            node, second = node.named_children
            rest.append(self._node(second, depth + 1))
        return Either(self._node(node, depth + 1), tuple(reversed(rest)))

    def _command(self, items: list[_Item]) -> Node:
        first = items[0] if items else None
        if isinstance(first, Test | Calculation):
            if len(items) > 1:
                raise Unreadable("words behind a compound command")
            return first
        return simple_command(items)

    def _redirected(self, node: SyntaxNode, depth: int) -> Node:
        body = node.child_by_field_name("body")
        items = [item for child in node.children if child != body for item in self._items(child)]
        redirects = tuple(item for item in items if isinstance(item, Redirect))
        if body is None or body.type == "command":
            own = self._items(body) if body is not None else []
            if any(isinstance(item, Test | Calculation) for item in own):
                return Redirected(self._command(own), redirects)
            return self._command([*own, *items])
        if len(redirects) != len(items):
            raise Unreadable("words behind a compound command")
        return Redirected(self._node(body, depth + 1), redirects)

    def _if(self, node: SyntaxNode, depth: int) -> Branches:
        groups: list[list[SyntaxNode]] = [[]]
        for child in node.children:
            if child.type in {"elif_clause", "else_clause"}:
                groups.append([child])
            elif child.type == "then":
                groups.append([])
            elif child.type not in {"if", "elif", "else", "fi"}:
                groups[-1].append(child)
        first, *rest = [self._sequence(group, depth) for group in groups]
        return Branches((), first, tuple(rest))

    def _for(self, node: SyntaxNode, depth: int) -> ForEach:
        variable = node.child_by_field_name("variable")
        body = node.child_by_field_name("body")
        if variable is None or body is None:
            raise Unreadable("an unusual for loop")
        name = self._word(variable).plain or ""
        words = tuple(self._word(child) for child in node.children_by_field_name("value"))
        listed = any(child.type == "in" for child in node.children)
        return ForEach(name, words if listed else None, self._node(body, depth + 1))

    def _case(self, node: SyntaxNode, depth: int) -> Branches:
        words: list[Word] = []
        rest: list[Node] = []
        for child in node.named_children:
            if child.type != "case_item":
                words.append(self._word(child))
                continue
            values = child.children_by_field_name("value")
            words += [self._word(value) for value in values]
            others = [part for part in child.children if part not in values and part.type not in _CASE_MARKS]
            rest.append(self._sequence(others, depth))
        return Branches(tuple(words), Sequence(()), tuple(rest))

    def _function(self, node: SyntaxNode, depth: int) -> Node:
        name = node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        if name is None or body is None:
            raise Unreadable("an unusual function")
        function = Function(self._word(name).plain or "", self._node(body, depth + 1))
        others = [child for child in node.children if child.is_named and child not in (name, body)]
        items = [item for child in others for item in self._items(child)]
        redirects = tuple(item for item in items if isinstance(item, Redirect))
        if len(redirects) != len(items):
            raise Unreadable("words behind a compound command")
        return Redirected(function, redirects) if redirects else function

    def _word(self, node: SyntaxNode) -> Word:
        items = self._items(node)
        if len(items) != 1 or not isinstance(items[0], Word):
            raise Unreadable("a form that can be read in two ways")
        return items[0]

    def _items(self, node: SyntaxNode) -> list[_Item]:
        """The lexer's items below a node, in their order."""
        if node.child_count:
            return [item for child in node.children for item in self._items(child)]
        text = (node.text or b"").decode()
        if not node.is_named and text in {">", ""}:
            return []
        match = _PLACEHOLDER.fullmatch(text)
        if match is None:
            raise Unreadable(f"an unexpected {text!r}")
        self._used.append(int(match[1]))
        return [self._lexer.items[int(match[1])]]
