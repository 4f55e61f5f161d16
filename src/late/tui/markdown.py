"""Markdown as lines.

A streamed answer is drawn by `StreamedMarkdown`: what stands before a safe boundary (a blank line outside of a fence,
a list and a table) is drawn once and kept; only the rest is drawn again. So the cost of a fragment does not grow with
the answer.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from late.tui.canvas import BLANK, Canvas, cut, folded, grounded, prefixed, strips, text, wrapped
from late.tui.plain import cleaned

if TYPE_CHECKING:
    from collections.abc import Callable

    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode
    from rich.style import Style
    from rich.text import Text
    from textual.strip import Strip

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`]*)$")
_LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
MIN_ROOM = 4
"""Cells that must be left for text beside a marker; in less room nothing is indented."""
MAX_DEPTH = 12
"""Levels of nesting that are indented; the rest is drawn at the last of them."""


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def markdown_lines(source: str, canvas: Canvas) -> list[Text]:
    """Draw a piece of Markdown; there is no blank line before or after it."""
    from markdown_it.tree import SyntaxTreeNode

    tree = SyntaxTreeNode(_parser().parse(cleaned(source)))
    return _Drawing(canvas).children(tree, canvas.width)


def code_lines(code: str, language: str, canvas: Canvas, *, highlighted: bool = True) -> list[Text]:
    """Draw a block of code on its own ground."""
    palette = canvas.palette
    width = max(1, canvas.width - 2)
    lines: list[Text] = []
    for line in _coloured(code, language, canvas) if highlighted else [text(row) for row in code.split("\n")]:
        pieces = [line] if line.cell_len <= width else _folded_text(line, width)
        lines.extend(grounded(prefixed([piece], text(" "))[0], canvas.width, palette.code_ground) for piece in pieces)
    return lines


def _folded_text(line: Text, width: int) -> list[Text]:
    offset = 0
    cuts: list[int] = []
    for piece in folded(line.plain, width):
        offset += len(piece.plain)
        cuts.append(offset)
    return list(line.divide(cuts[:-1]))


def _coloured(code: str, language: str, canvas: Canvas) -> list[Text]:
    from pygments.lexers import get_lexer_by_name  # pyright: ignore[reportUnknownVariableType]
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False) if language else None
    except ClassNotFound:
        lexer = None
    if lexer is None or len(code) > 60_000:
        return [text(row) for row in code.split("\n")]
    whole = text()
    style_of = _token_styles(canvas)
    for token, value in lexer.get_tokens(code):
        whole.append(value, style_of(token))
    return list(whole.split("\n", allow_blank=True))


def _token_styles(canvas: Canvas) -> Callable[[object], Style | None]:
    from pygments.token import Token

    palette = canvas.palette
    styles: dict[object, Style] = {
        Token.Comment: palette.muted,
        Token.Keyword: palette.secondary,
        Token.Operator.Word: palette.secondary,
        Token.Name.Builtin: palette.secondary,
        Token.Name.Function: palette.primary,
        Token.Name.Class: palette.primary,
        Token.Name.Decorator: palette.accent,
        Token.Name.Tag: palette.secondary,
        Token.Name.Attribute: palette.primary,
        Token.Literal.String: palette.success,
        Token.Literal.Number: palette.accent,
        Token.Generic.Inserted: palette.added,
        Token.Generic.Deleted: palette.removed,
        Token.Generic.Heading: palette.primary,
    }

    def style_of(token: object) -> Style | None:
        while token is not None and token not in styles:
            token = getattr(token, "parent", None)
        return styles.get(token)

    return style_of


class _Drawing:
    """One pass over a parsed document."""

    def __init__(self, canvas: Canvas) -> None:
        self.canvas = canvas
        self.palette = canvas.palette
        self._drawers: dict[str, Callable[[SyntaxTreeNode, int], list[Text]]] = {
            "paragraph": self._paragraph,
            "heading": self._heading,
            "fence": self._code,
            "code_block": self._code,
            "bullet_list": self._list,
            "ordered_list": self._list,
            "blockquote": self._quote,
            "hr": self._rule,
            "table": self._table,
            "html_block": self._raw,
        }
        self._depth = 0

    def children(self, node: SyntaxTreeNode, width: int) -> list[Text]:
        lines: list[Text] = []
        for child in node.children:
            drawn = self._drawers.get(child.type, self._raw)(child, width)
            if lines and drawn and not _tight(child):
                lines.append(text())
            lines.extend(drawn)
        return lines

    def _paragraph(self, node: SyntaxTreeNode, width: int) -> list[Text]:
        return wrapped(self._inline(node), width)

    def _heading(self, node: SyntaxTreeNode, width: int) -> list[Text]:
        level = int(node.tag[1:] or 1)
        style = self.palette.primary if level <= 2 else self.palette.text
        lines = wrapped(self._inline(node, style + self.palette.strong.without_color), width)
        if level == 1:
            lines.append(text("─" * min(width, max((line.cell_len for line in lines), default=0)), self.palette.faint))
        return lines

    def _code(self, node: SyntaxTreeNode, width: int) -> list[Text]:
        language = node.info.split()[0] if node.type == "fence" and node.info.split() else ""
        return code_lines(node.content.rstrip("\n"), language, Canvas(width, self.palette))

    def _list(self, node: SyntaxTreeNode, width: int) -> list[Text]:
        lines: list[Text] = []
        number = int(node.attrs.get("start", 1) or 0)
        ordered = node.type == "ordered_list"
        digits = len(str(number + len(node.children) - 1))
        self._depth += 1
        for item in node.children:
            marker = f"{number:>{digits}}. " if ordered else ("• " if self._depth % 2 else "◦ ")
            number += 1
            if self._depth > MAX_DEPTH or width - len(marker) < MIN_ROOM:
                marker = ""
            drawn = self.children(item, max(1, width - len(marker))) or [text()]
            if lines and not _is_tight_list(node):
                lines.append(text())
            lines.extend(prefixed(drawn, text(marker, self.palette.primary)))
        self._depth -= 1
        return lines

    def _quote(self, node: SyntaxTreeNode, width: int) -> list[Text]:
        self._depth += 1
        bar = text("│ " if self._depth <= MAX_DEPTH and width >= MIN_ROOM else "", self.palette.faint)
        drawn = self.children(node, max(1, width - bar.cell_len))
        self._depth -= 1
        for line in drawn:
            line.stylize_before(self.palette.muted)
        return prefixed(drawn, bar, bar)

    def _rule(self, _node: SyntaxTreeNode, width: int) -> list[Text]:
        return [text("─" * width, self.palette.faint)]

    def _raw(self, node: SyntaxTreeNode, width: int) -> list[Text]:
        content = node.content if not node.children else ""
        if node.type == "inline":
            return wrapped(self._spans(node), width)
        return wrapped(text(content.rstrip("\n"), self.palette.muted), width) if content else self.children(node, width)

    def _table(self, node: SyntaxTreeNode, width: int) -> list[Text]:
        rows = [
            [self._inline(cell, self.palette.strong if cell.type == "th" else None) for cell in row.children]
            for section in node.children
            for row in section.children
        ]
        columns = max((len(row) for row in rows), default=0)
        if not columns:
            return []
        widths = _column_widths(rows, columns, width)
        lines: list[Text] = []
        for index, row in enumerate(rows):
            cells = [wrapped(cell, widths[column]) or [text()] for column, cell in enumerate(row)]
            for height in range(max(len(cell) for cell in cells)):
                line = text()
                for column, cell in enumerate(cells):
                    part = cell[height].copy() if height < len(cell) else text()
                    part.pad_right(max(0, widths[column] - part.cell_len))
                    if column:
                        line.append(" │ ", self.palette.faint)
                    line.append_text(part)
                lines.append(cut(line, width))
            if index == 0:
                rule = "─┼─".join("─" * column_width for column_width in widths)
                lines.append(cut(text(rule, self.palette.faint), width))
        return lines

    def _inline(self, node: SyntaxTreeNode, style: Style | None = None) -> Text:
        whole = text()
        for child in node.children:
            if child.type == "inline":
                whole.append_text(self._spans(child))
        if style is not None:
            whole.stylize_before(style)
        return whole

    def _spans(self, node: SyntaxTreeNode) -> Text:
        from rich.style import Style

        palette = self.palette
        styles: dict[str, Style] = {
            "strong": Style(bold=True),
            "em": Style(italic=True),
            "s": Style(strike=True),
            "link": palette.secondary + Style(underline=True),
            "image": palette.secondary,
        }
        whole = text()
        for child in node.children:
            if child.type in {"softbreak", "hardbreak"}:
                whole.append(" " if child.type == "softbreak" else "\n")
            elif child.type == "code_inline":
                whole.append(child.content, palette.code)
            elif child.children:
                inner = self._spans(child)
                inner.stylize_before(styles.get(child.type, palette.text))
                whole.append_text(inner)
                if child.type == "link" and (target := str(child.attrs.get("href", ""))) not in {"", inner.plain}:
                    whole.append(f" ({target})", palette.muted)
            else:
                whole.append(child.content or str(child.attrs.get("src", "")), styles.get(child.type))
        return whole


def _is_tight_list(node: SyntaxTreeNode) -> bool:
    return all(_tight(child) for item in node.children for child in item.children if child.type == "paragraph")


def _tight(node: SyntaxTreeNode) -> bool:
    """True for what follows without a blank line: the content of a tight list."""
    if node.type == "paragraph":
        return node.hidden
    if node.type in {"bullet_list", "ordered_list"}:
        siblings = node.parent.children if node.parent is not None else []
        return any(sibling.type == "paragraph" and sibling.hidden for sibling in siblings)
    return False


def _column_widths(rows: list[list[Text]], columns: int, width: int) -> list[int]:
    """Natural widths where they fit; else the widest columns give way first."""
    widths = [max((row[column].cell_len for row in rows if column < len(row)), default=1) for column in range(columns)]
    widths = [max(1, natural) for natural in widths]
    room = max(columns, width - 3 * (columns - 1))
    excess = sum(widths) - room
    while excess > 0:
        widest = max(widths)
        if widest <= 1:
            break
        second = max((candidate for candidate in widths if candidate < widest), default=1)
        at_widest = [column for column, candidate in enumerate(widths) if candidate == widest]
        for column in at_widest:
            step = min(widest - second, -(-excess // len(at_widest)), excess)
            widths[column] -= step
            excess -= step
    return widths


class StreamedMarkdown:
    """Markdown that grows by fragments and is drawn as it grows."""

    def __init__(self, source: str = "", *, finished: bool = False, margin: int = 0) -> None:
        self._margin = margin
        self._chunks: list[str] = []
        """Finished pieces of the document; each is drawn on its own."""
        self._drawn: list[list[Strip]] = []
        self._canvas: Canvas | None = None
        self._pending: list[str] = []
        """Complete lines since the last boundary."""
        self._line = ""
        """The line that is still being written."""
        self._fence = ""
        self._finished = False
        self.append(source)
        if finished:
            self.finish()

    def append(self, fragment: str) -> None:
        """Take the next fragment."""
        *lines, self._line = (self._line + fragment).split("\n")
        for line in lines:
            self._take(line + "\n")

    def finish(self) -> None:
        """There is no more to come."""
        self._finished = True
        self._commit(self._line)
        self._line = ""

    def strips(self, canvas: Canvas) -> list[Strip]:
        """Draw what there is."""
        if canvas != self._canvas:
            self._canvas = canvas
            self._drawn = []
        for chunk in self._chunks[len(self._drawn) :]:
            self._drawn.append(self._strips(markdown_lines(chunk, canvas)))
        tail = self._tail(canvas)
        lines: list[Strip] = []
        for drawn in (*self._drawn, tail):
            if lines and drawn:
                lines.append(BLANK)
            lines.extend(drawn)
        return lines

    def _strips(self, lines: list[Text]) -> list[Strip]:
        margin = text(" " * self._margin)
        return strips(prefixed(lines, margin, margin) if self._margin else lines)

    def _tail(self, canvas: Canvas) -> list[Strip]:
        if not self._pending and not self._line:
            return []
        if not self._fence:
            return self._strips(markdown_lines("".join(self._pending) + self._line, canvas))
        code = "".join(self._pending[1:]) + self._line
        return self._strips(code_lines(cleaned(code).rstrip("\n"), "", canvas, highlighted=False))

    def _take(self, line: str) -> None:
        fence = _FENCE.match(line.rstrip("\n"))
        if self._fence:
            self._pending.append(line)
            if fence and fence[1].startswith(self._fence) and not fence[2].strip():
                self._fence = ""
                self._commit()
            return
        in_list = bool(self._pending) and _LIST_ITEM.match(self._pending[0]) is not None
        blank_before = bool(self._pending) and not self._pending[-1].strip()
        if fence and not (in_list and line.startswith(" ")):
            self._commit()
            self._fence = fence[1]
        elif blank_before and line.strip() and not (in_list and (line[0] == " " or _LIST_ITEM.match(line))):
            self._commit()
        elif not line.strip() and self._pending and not in_list:
            self._pending.append(line)
            self._commit()
            return
        if line.strip() or self._pending:
            self._pending.append(line)

    def _commit(self, rest: str = "") -> None:
        chunk = "".join(self._pending) + rest
        self._pending = []
        if chunk.strip():
            self._chunks.append(chunk)
