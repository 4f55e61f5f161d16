"""What a file declares, read with tree-sitter; broken code gives what can be made out of it and never an error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from late.workspace.grammars import grammar_of, language_of, parser_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tree_sitter import Node

    from late.workspace.grammars import Grammar

MAX_BYTES = 2_000_000
"""Of one file; longer ones are generated and have no outline worth its time (about 0.3 s a megabyte)."""
_MAX_SIGNATURE = 160
_MAX_ERRORS = 20
_SCOPES = frozenset({"class", "struct", "union", "interface", "trait", "impl", "module", "enum", "function", "type"})
_FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "generator_function"})


@dataclass(frozen=True, slots=True)
class Symbol:
    """A declaration. Lines count from 1 and are inclusive."""

    name: str
    """Qualified with `.` in every language: `Inventory.restock`."""
    kind: str
    start_line: int
    """The first line of what belongs to it: decorators, attributes, the comment right above."""
    end_line: int
    signature: str
    """Its head on one line, clipped."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A node on its way to becoming a symbol."""

    node: Node
    scope: str
    scope_kind: str
    start_line: int
    end_line: int
    """Of the wrapper, where there is one."""
    head: int
    """The byte at which the signature starts."""


def symbols(path: Path) -> list[Symbol]:
    """The declarations of a file in the order of their lines; empty for a language that is not understood.

    Raises:
        OSError: the file cannot be read.
    """
    language = language_of(path.name)
    if language is None or not path.is_file() or path.stat().st_size > MAX_BYTES:
        return []
    return symbols_of(path.read_bytes().decode("utf-8-sig", "replace"), language)


def symbols_of(text: str, language: str) -> list[Symbol]:
    """The declarations of a text.

    Raises:
        KeyError: `language` is none that `language_of` gives.
    """
    source = text.encode("utf-8", "replace")
    if len(source) > MAX_BYTES:
        return []
    grammar = grammar_of(language)
    root = parser_of(language).parse(source).root_node
    found: list[Symbol] = []
    stack = list(_children(root, grammar, "", ""))[::-1]
    while stack:
        place = stack.pop()
        node = place.node
        kind = grammar.kinds.get(node.type)
        if kind is None:
            inner = _unwrapped(place, grammar)
        else:
            name, kind = _declared(node, kind, place, source)
            if name and kind != "impl":
                found.append(Symbol(name, kind, place.start_line, place.end_line, _signature(node, place.head, source)))
            inner = _inside(place, grammar, name, kind)
        stack.extend(inner[::-1])
    return sorted(found, key=lambda symbol: (symbol.start_line, -symbol.end_line))


def find_symbol(path: Path, name: str) -> Symbol | None:
    """The declaration of a qualified name, or of a shorter one that fits only one declaration.

    `::` and `#` are taken for `.`, and `()` behind the name is passed over. Neighbours of the same name (overloads,
    the getter and the setter of a property) are one; of several that lie apart, none is meant.

    Raises:
        OSError: the file cannot be read.
    """
    wanted = name.strip().removesuffix("()").replace("::", ".").replace("#", ".").strip(".")
    if not wanted:
        return None
    listed = symbols(path)
    fitting = [index for index, symbol in enumerate(listed) if symbol.name == wanted]
    fitting = fitting or [i for i, symbol in enumerate(listed) if symbol.name.endswith("." + wanted)]
    if not fitting or len({listed[index].name for index in fitting}) > 1:
        return None
    first, last = listed[fitting[0]], listed[fitting[-1]]
    if fitting[-1] - fitting[0] >= len(fitting):
        return None
    return replace(first, end_line=max(first.end_line, last.end_line))


def parse_errors(text: str, language: str) -> list[tuple[int, str]]:
    """Where the parser stumbles: line from 1, and the text it could not place or what is missing there.

    Grammars are not compilers: a few valid texts have errors too, so compare before and after an edit.

    Raises:
        KeyError: `language` is none that `language_of` gives.
    """
    source = text.encode("utf-8", "replace")
    if len(source) > MAX_BYTES:
        return []
    found: list[tuple[int, str]] = []
    stack = [parser_of(language).parse(source).root_node]
    while stack and len(found) < _MAX_ERRORS:
        node = stack.pop()
        if node.is_missing:
            found.append((node.start_point.row + 1, f"missing `{node.type}`"))
        elif node.is_error and not any(child.has_error or child.is_missing for child in node.children):
            first = _text(source, node.start_byte, node.end_byte).strip().split("\n", 1)[0]
            found.append((node.start_point.row + 1, _clipped(first.strip(), 80)))
        else:
            stack.extend(child for child in reversed(node.children) if child.has_error or child.is_missing)
    return found


def _children(node: Node, grammar: Grammar, scope: str, scope_kind: str) -> Iterator[_Place]:
    """The children that may declare something, each with the lines that belong to it."""
    children = node.children
    for index, child in enumerate(children):
        if not child.is_named or child.type in grammar.lead:
            continue
        start = child.start_point.row
        before = index - 1
        while before >= 0 and _leads(children, before, start, grammar):
            start = children[before].start_point.row
            before -= 1
        yield _Place(child, scope, scope_kind, start + 1, _end_line(child), child.start_byte)


def _leads(children: list[Node], index: int, row: int, grammar: Grammar) -> bool:
    node = children[index]
    if node.type not in grammar.lead or _end_line(node) != row:
        return False
    behind_code = index > 0 and children[index - 1].end_point.row == node.start_point.row
    behind_code = behind_code and children[index - 1].end_point.column > 0
    shebang = node.start_byte == 0 and (node.text or b"").startswith(b"#!")
    return not behind_code and not shebang


def _end_line(node: Node) -> int:
    end = node.end_point
    return end.row if end.column == 0 and end.row > node.start_point.row else end.row + 1


def _unwrapped(place: _Place, grammar: Grammar) -> list[_Place]:
    """What lies below a node that declares nothing itself."""
    node = place.node
    if node.type in grammar.wrappers:
        return [
            replace(place, node=child, head=place.head if node.type != "decorated_definition" else child.start_byte)
            for child in node.named_children
            if child.type in grammar.kinds or child.type in grammar.through or child.type in grammar.wrappers
        ]
    if node.type not in grammar.through and not node.is_error:
        return []
    inner = list(_children(node, grammar, place.scope, place.scope_kind))
    statement = node.type.endswith("_declaration") or node.type == "expression_statement"
    if statement and len(inner) == 1 and inner[0].node.start_point.row == node.start_point.row:
        return [replace(place, node=inner[0].node)]
    return inner


def _inside(place: _Place, grammar: Grammar, name: str, kind: str) -> list[_Place]:
    """The declarations within a declaration."""
    node = place.node
    if node.type in {"declaration", "field_declaration", "type_definition"}:
        declared = node.child_by_field_name("type")
        return [] if declared is None else [replace(place, node=declared)]
    if kind == "module" and not name:
        name = place.scope
    elif not name or kind not in _SCOPES:
        return []
    body = node.child_by_field_name("body") or node.child_by_field_name("type") or _value_of(node)
    if body is None or (body.type not in grammar.through and body.type not in _FUNCTION_VALUES):
        return []
    if body.type in _FUNCTION_VALUES:
        body = body.child_by_field_name("body")
        if body is None or body.type not in grammar.through:
            return []
    return list(_children(body, grammar, name, kind))


def _declared(node: Node, kind: str, place: _Place, source: bytes) -> tuple[str, str]:
    """Qualified name and final kind; no name where the node declares nothing that is worth a line."""
    match node.type:
        case "assignment" | "const_spec" | "var_spec" | "const_item" | "static_item":
            name = "" if place.scope_kind not in {"", "module"} else _field(node, "left") or _field(node, "name")
            name = name if name.isidentifier() else ""
        case "variable_declarator" | "assignment_expression" | "pair" | "field_definition" | "public_field_definition":
            name, kind = _script_value(node, kind, place)
        case "arrow_function" | "function_expression" | "class":
            name = _field(node, "name") or ("default" if _text(source, place.head, place.head + 6) == "export" else "")
        case "method_declaration" if node.child_by_field_name("receiver"):
            name = _go_method(node)
        case "type_spec":
            name, kind = _field(node, "name"), _go_kind(node)
        case "impl_item":
            name = _plain_type(_field(node, "type"))
        case "function_definition" | "declaration" | "field_declaration" | "type_definition" if not _field(
            node, "name"
        ):
            name, kind = _c_declared(node, kind, place)
        case "struct_specifier" | "union_specifier" | "enum_specifier" | "class_specifier":
            name = _plain_type(_field(node, "name")) if node.child_by_field_name("body") else ""
        case _:
            name = _field(node, "name").strip("\"'`")
    if kind == "function" and place.scope_kind in {"class", "struct", "union", "trait", "impl", "interface"}:
        kind = "method"
    name = name.replace("::", ".")
    return (f"{place.scope}.{name}" if name and place.scope else name), kind


def _script_value(node: Node, kind: str, place: _Place) -> tuple[str, str]:
    """JavaScript: a function that is the value of a name, and a constant of the module."""
    value = _value_of(node)
    function = value is not None and value.type in _FUNCTION_VALUES
    in_class = place.scope_kind in {"class", "interface"}
    match node.type:
        case "variable_declarator":
            name = _field(node, "name")
            holds = function or (value is not None and value.type == "class")
            if not name.replace("$", "_").isidentifier() or place.scope_kind not in {"", "module"}:
                return "", kind
            return name, ("function" if function else "class" if holds else kind)
        case "assignment_expression":
            left = _field(node, "left")
            for prefix in ("module.exports.", "exports."):
                left = left.removeprefix(prefix)
            return (left.replace(".prototype.", ".") if function and not place.scope else ""), kind
        case "pair":
            return (_field(node, "key").strip("\"'") if function else ""), kind
        case _:
            name = _field(node, "property") or _field(node, "name")
            return (name if function and in_class else ""), kind


def _value_of(node: Node) -> Node | None:
    return node.child_by_field_name("value") or node.child_by_field_name("right")


def _go_method(node: Node) -> str:
    receiver = _field(node, "receiver").strip("() ").rsplit(" ", 1)[-1]
    return f"{_plain_type(receiver.lstrip('*'))}.{_field(node, 'name')}"


def _go_kind(node: Node) -> str:
    declared = node.child_by_field_name("type")
    return {"struct_type": "struct", "interface_type": "interface"}.get(declared.type if declared else "", "type")


def _c_declared(node: Node, kind: str, place: _Place) -> tuple[str, str]:
    """C and C++: the name sits below pointers, references and parameter lists."""
    declarator = _declarator(node)
    function = pointer = False
    while declarator is not None and (deeper := _declarator_below(declarator)) is not None:
        pointer = pointer or (function and declarator.type == "parenthesized_declarator")
        function = function or declarator.type == "function_declarator"
        declarator = deeper
    name = "" if declarator is None else (declarator.text or b"").decode("utf-8", "replace")
    if node.type == "type_definition":
        return name, kind
    if function and not pointer:
        return _plain_type(name) if "operator" not in name else name, "function"
    shown = node.type == "declaration" and place.scope_kind in {"", "module"}
    return (name if shown else ""), kind


def _declarator(node: Node) -> Node | None:
    return node.child_by_field_name("declarator")


def _declarator_below(node: Node) -> Node | None:
    below = node.child_by_field_name("declarator")
    if below is None and node.type in {"parenthesized_declarator", "reference_declarator"}:
        below = node.named_children[0] if node.named_children else None
    return below


def _plain_type(name: str) -> str:
    return name.split("<", 1)[0].split("[", 1)[0].removeprefix("&").strip()


def _signature(node: Node, head: int, source: bytes) -> str:
    value = _value_of(node)
    holder = value if value is not None and value.type in _FUNCTION_VALUES else node
    body = holder.child_by_field_name("body")
    if body is not None and body.start_byte > head:
        comments = (child.start_byte for child in node.children if child.type.endswith("comment"))
        end = min((start for start in comments if head < start), default=body.start_byte)
        text = _text(source, head, min(end, body.start_byte))
    else:
        text = _text(source, head, node.end_byte).split("{", 1)[0].split("\n", 1)[0]
    return _clipped(" ".join(text.split()).rstrip("{:;= ").removesuffix("=>").rstrip(), _MAX_SIGNATURE)


def _field(node: Node, name: str) -> str:
    child = node.child_by_field_name(name)
    return "" if child is None else (child.text or b"").decode("utf-8", "replace")


def _text(source: bytes, start: int, end: int) -> str:
    return source[start:end].decode("utf-8", "replace")


def _clipped(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
