"""The languages whose declarations are understood, as data: which nodes of a tree-sitter grammar declare what.

One wheel a language is used because `tree-sitter-language-pack` downloads grammars at run time. Nothing of
tree-sitter is imported before a file of that language is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tree_sitter import Parser

_EXTENSIONS: Mapping[str, str] = {
    **dict.fromkeys(("py", "pyi", "pyw"), "python"),
    **dict.fromkeys(("js", "mjs", "cjs", "jsx"), "javascript"),
    **dict.fromkeys(("ts", "mts", "cts"), "typescript"),
    "tsx": "tsx",
    "go": "go",
    "rs": "rust",
    "java": "java",
    "c": "c",
    # A header may be either; the C++ grammar reads nearly all C, the C grammar hardly any C++.
    **dict.fromkeys(("h", "cpp", "cc", "cxx", "c++", "hpp", "hh", "hxx", "h++", "inl", "ipp", "tpp"), "cpp"),
    **dict.fromkeys(("sh", "bash"), "bash"),
}


@dataclass(frozen=True, slots=True)
class Grammar:
    """How one language is read."""

    module: str
    kinds: Mapping[str, str]
    """Node type → kind of symbol; whether and how it is named is decided by `late.workspace.outline`."""
    through: frozenset[str]
    """Nodes that declare nothing but hold declarations."""
    wrappers: frozenset[str] = frozenset()
    """Nodes around one declaration that belong to it: decorators, `export`, `template`."""
    factory: str = "language"
    lead: frozenset[str] = frozenset({"comment"})
    """Siblings that belong to the declaration that follows: comments and attributes."""


_SCRIPT_KINDS: Mapping[str, str] = {
    "class_declaration": "class",
    "abstract_class_declaration": "class",
    "class": "class",
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "function_signature": "function",
    "method_definition": "method",
    "method_signature": "method",
    "abstract_method_signature": "method",
    "interface_declaration": "interface",
    "type_alias_declaration": "type",
    "enum_declaration": "enum",
    "internal_module": "module",
    "module": "module",
    "variable_declarator": "constant",
    "assignment_expression": "function",
    "field_definition": "method",
    "public_field_definition": "method",
    "pair": "method",
    "arrow_function": "function",
    "function_expression": "function",
}
_SCRIPT_THROUGH = frozenset(
    {
        "program", "class_body", "interface_body", "statement_block", "expression_statement", "if_statement",
        "else_clause", "try_statement", "catch_clause", "finally_clause", "object", "lexical_declaration",
        "variable_declaration",
    }
)  # fmt: skip
_SCRIPT_WRAPPERS = frozenset({"export_statement", "ambient_declaration"})
_C_KINDS: Mapping[str, str] = {
    "function_definition": "function",
    "declaration": "variable",
    "field_declaration": "method",
    "struct_specifier": "struct",
    "union_specifier": "union",
    "enum_specifier": "enum",
    "class_specifier": "class",
    "namespace_definition": "module",
    "type_definition": "type",
    "alias_declaration": "type",
    "concept_definition": "type",
    "preproc_function_def": "macro",
}
_C_THROUGH = frozenset(
    {
        "translation_unit", "preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef",
        "linkage_specification", "declaration_list", "field_declaration_list",
    }
)  # fmt: skip

_GRAMMARS: Mapping[str, Grammar] = {
    "python": Grammar(
        "tree_sitter_python",
        {"class_definition": "class", "function_definition": "function", "assignment": "constant"},
        frozenset(
            {
                "module", "block", "if_statement", "elif_clause", "else_clause", "try_statement", "except_clause",
                "finally_clause", "with_statement", "for_statement", "while_statement", "match_statement",
                "case_clause", "expression_statement",
            }
        ),
        wrappers=frozenset({"decorated_definition"}),
    ),
    "javascript": Grammar("tree_sitter_javascript", _SCRIPT_KINDS, _SCRIPT_THROUGH, _SCRIPT_WRAPPERS),
    "typescript": Grammar(
        "tree_sitter_typescript", _SCRIPT_KINDS, _SCRIPT_THROUGH, _SCRIPT_WRAPPERS, "language_typescript"
    ),
    "tsx": Grammar("tree_sitter_typescript", _SCRIPT_KINDS, _SCRIPT_THROUGH, _SCRIPT_WRAPPERS, "language_tsx"),
    "go": Grammar(
        "tree_sitter_go",
        {
            "function_declaration": "function",
            "method_declaration": "method",
            "type_spec": "type",
            "type_alias": "type",
            "method_elem": "method",
            "const_spec": "constant",
            "var_spec": "variable",
        },
        frozenset(
            {
                "source_file", "type_declaration", "const_declaration", "var_declaration", "var_spec_list",
                "interface_type",
            }
        ),
    ),
    "rust": Grammar(
        "tree_sitter_rust",
        {
            "function_item": "function",
            "function_signature_item": "function",
            "struct_item": "struct",
            "union_item": "union",
            "enum_item": "enum",
            "trait_item": "trait",
            "impl_item": "impl",
            "mod_item": "module",
            "type_item": "type",
            "const_item": "constant",
            "static_item": "variable",
            "macro_definition": "macro",
        },
        frozenset({"source_file", "declaration_list", "foreign_mod_item"}),
        lead=frozenset({"line_comment", "block_comment", "attribute_item"}),
    ),
    "java": Grammar(
        "tree_sitter_java",
        {
            "class_declaration": "class",
            "interface_declaration": "interface",
            "enum_declaration": "enum",
            "record_declaration": "class",
            "annotation_type_declaration": "interface",
            "method_declaration": "method",
            "constructor_declaration": "method",
            "compact_constructor_declaration": "method",
        },
        frozenset(
            {
                "program", "class_body", "interface_body", "enum_body", "enum_body_declarations",
                "annotation_type_body",
            }
        ),
        lead=frozenset({"line_comment", "block_comment"}),
    ),
    "c": Grammar("tree_sitter_c", _C_KINDS, _C_THROUGH),
    "cpp": Grammar("tree_sitter_cpp", _C_KINDS, _C_THROUGH, frozenset({"template_declaration"})),
    "bash": Grammar(
        "tree_sitter_bash",
        {"function_definition": "function"},
        frozenset({"program", "if_statement", "else_clause", "elif_clause", "list", "compound_statement"}),
    ),
}  # fmt: skip


def language_of(path: str) -> str | None:
    """The language of a file by its name, or `None` where it is not one of those that are understood."""
    return _EXTENSIONS.get(PurePosixPath(path).suffix.removeprefix(".").lower())


def grammar_of(language: str) -> Grammar:
    """The grammar of a language that `language_of` gave.

    Raises:
        KeyError: there is no such language.
    """
    return _GRAMMARS[language]


@cache
def parser_of(language: str) -> Parser:
    """A parser, loaded at the first use of the language.

    Raises:
        KeyError: there is no such language.
    """
    from tree_sitter import Language, Parser

    grammar = _GRAMMARS[language]
    pointer: object = getattr(import_module(grammar.module), grammar.factory)()
    return Parser(Language(pointer))
