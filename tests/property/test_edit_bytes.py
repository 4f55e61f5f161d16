"""Whatever a file holds: an edit is refused, or it changes the piece that was named and not one byte besides."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from late.errors import ToolError
from late.workspace.files import FileChange, TextFile, apply_edit

_PIECES = st.lists(
    st.sampled_from(
        ["a", "b", "ab", "x = 1", " ", "\t", "\n", "\r\n", "\r", "é", "世", "😀", "e\u0301", "\u00a0", "12| ", "\\n"]
    ),
    max_size=30,
).map("".join)
_ENCODINGS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "latin-1", "cp1252", "gbk", "shift-jis"])


@st.composite
def _files(draw: st.DrawFn) -> bytes:
    if draw(st.booleans()):
        return draw(st.binary(max_size=60))
    encoding = draw(_ENCODINGS)
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    return mark + draw(_PIECES).encode(encoding, "ignore")


@st.composite
def _edits(draw: st.DrawFn) -> tuple[bytes, str, str]:
    """A file, a text that often is in it, and a new text."""
    data = draw(_files())
    search = draw(_PIECES)
    with suppress(ToolError):
        plain = TextFile.decode(data).plain
        if plain and draw(st.integers(0, 4)):
            start = draw(st.integers(0, len(plain) - 1))
            search = plain[start : draw(st.integers(start + 1, len(plain)))]
    return data, search, draw(_PIECES)


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n")


def _in_file_encoding(data: bytes, text: str) -> bytes:
    """By the encodings' own rules, without late's code."""
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8")):
        if data.startswith(mark):
            return text.encode(encoding)
    return text.encode("utf-8") if data.isascii() or _decodes(data) else b""


def _decodes(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


@given(_edits())
def test_an_edit_is_refused_or_changes_one_piece_only(edit: tuple[bytes, str, str]) -> None:
    data, search, replace = edit
    try:
        after = apply_edit(data, search, replace)
    except ToolError as refused:
        f"{refused}{refused.hint}".encode()
        return
    assert after != data
    old, new = TextFile.decode(data).plain, TextFile.decode(after).plain
    wanted, given_text = _plain(search), _plain(replace)
    if wanted in old:
        at = old.index(wanted)
        assert old.find(wanted, at + 1) < 0, "an ambiguous text was replaced"
        # Compared in the encoding's own units: a joined "\r" + "\n" may read as one ending afterwards.
        head, tail = _head_and_tail(data, old, at, at + len(wanted))
        assert after.startswith(head)
        assert after.endswith(tail)
        middle = after[len(head) : len(after) - len(tail)]
        if "\r" not in given_text and (expected := _in_file_encoding(data, given_text)):
            assert middle.replace(*_crlf(data)) == expected
    else:
        assert len(new) <= len(old) + len(given_text)


def _crlf(data: bytes) -> tuple[bytes, bytes]:
    encoding = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(data[:2], "utf-8")
    return "\r\n".encode(encoding), "\n".encode(encoding)


def _head_and_tail(data: bytes, plain: str, start: int, end: int) -> tuple[bytes, bytes]:
    """The bytes before and after the piece, found by counting characters and not with late's offsets."""
    file = TextFile.decode(data)
    units: list[str] = []
    for char in file.text:
        if char == "\n" and units and units[-1] == "\r":
            units[-1] = "\r\n"
        else:
            units.append(char)
    assert len(units) == len(plain)
    return file.mark + file.raw("".join(units[:start])), file.raw("".join(units[end:]))


@given(_files())
def test_reading_text_and_writing_it_back_gives_the_same_bytes(data: bytes) -> None:
    with suppress(ToolError):
        file = TextFile.decode(data)
        assert file.mark + file.raw(file.text) == data


@given(_edits())
def test_an_edit_can_be_taken_back(edit: tuple[bytes, str, str]) -> None:
    data, search, replace = edit
    if "\r" in search + replace or b"\r" in data:
        return
    with suppress(ToolError):
        after = apply_edit(data, search, replace)
        was, now = TextFile.decode(data), TextFile.decode(after)
        if search in was.plain and was.encoding == now.encoding:
            with suppress(ToolError):
                assert apply_edit(after, replace, search) == data


@given(_files(), _files())
def test_a_diff_counts_what_it_shows(before: bytes, after: bytes) -> None:
    change = FileChange("f", before, after)
    body = [line for line in change.diff.split("\n")[2:] if not line.startswith("@@")]
    assert change.added == sum(line.startswith("+") for line in body)
    assert change.removed == sum(line.startswith("-") for line in body)
    change.diff.encode("utf-8")
