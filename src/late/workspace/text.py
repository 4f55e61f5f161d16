"""Bytes of a file as text, and back, without changing a byte that nobody meant to change."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from late.errors import ToolError

Encoding = Literal["utf-8", "utf-16-le", "utf-16-be", "windows-1252", "unknown 8-bit"]

_MARKS: tuple[tuple[bytes, Encoding], ...] = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_NO_MARK: tuple[bytes, Encoding] = (b"", "utf-8")
_SNIFFED = 8192
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"\x1f\x8b", "gzip archive"),
    (b"BZh", "bzip2 archive"),
    (b"\xfd7zXZ\x00", "xz archive"),
    (b"\x28\xb5\x2f\xfd", "zstd archive"),
    (b"7z\xbc\xaf\x27\x1c", "7z archive"),
    (b"\x7fELF", "ELF program or library"),
    (b"\xcf\xfa\xed\xfe", "Mach-O program or library"),
    (b"\xca\xfe\xba\xbe", "Java class or Mach-O program"),
    (b"\x00asm", "WebAssembly module"),
    (b"SQLite format 3\x00", "SQLite database"),
    (b"GGUF", "GGUF model"),
    (b"OggS", "Ogg media"),
    (b"ID3", "MP3 audio"),
    (b"wOFF", "WOFF font"),
    (b"wOF2", "WOFF2 font"),
)
_UTF32_MARKS = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")
_ODD_CONTROLS = bytes(sorted({*range(0x20), 0x7F} - set(b"\t\n\r\f\b\x1b")))
# What Windows-1252 has in place of the C1 controls; the five bytes that it leaves free stay controls, as on the web
# (WHATWG Encoding, index windows-1252), so that every byte has exactly one character.
_C1 = {code: char for code in range(0x80, 0xA0) if (char := bytes([code]).decode("cp1252", "ignore"))}
_TO_C1 = {ord(char): code for code, char in _C1.items()}
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def binary_kind(data: bytes) -> str | None:
    """What kind of binary data this is, or `None` where it is text.

    A NUL anywhere makes it binary, except in UTF-16 with a byte order mark.
    """
    for magic, kind in _MAGIC:
        if data.startswith(magic) and (b"\0" in data or magic[0] >= 0x7F or kind == "PDF document"):
            return kind
    if data.startswith(_UTF32_MARKS):
        return "UTF-32 text"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        little = data.startswith(b"\xff\xfe")
        try:
            text = data[2:].decode("utf-16-le" if little else "utf-16-be")
        except UnicodeDecodeError:
            return "damaged UTF-16 text"
        return "binary data" if "\0" in text else None
    if b"\0" in data:
        return "binary data"
    head = data[:_SNIFFED]
    controls = len(head) - len(head.translate(None, _ODD_CONTROLS))
    if controls * 20 > len(head) and not _is_utf8(data):
        return "binary data"
    return None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file's text with all that is needed to write it back as it was."""

    text: str
    """Without the byte order mark; line endings as they are; a byte that is no UTF-8 as a lone surrogate."""
    encoding: Encoding
    """What is no UTF-8 and mostly has single bytes above 127 is taken for Windows-1252; where they come in rows it
    may be any encoding, and its bytes are kept but no new ones written."""
    mark: bytes = b""
    """The byte order mark."""

    @classmethod
    def decode(cls, data: bytes, name: str = "The file") -> TextFile:
        """Read bytes.

        Raises:
            ToolError: they are binary data.
        """
        if kind := binary_kind(data):
            raise ToolError(f"{name} is not text: {kind}, {len(data):,} bytes.")
        mark, encoding = next((known for known in _MARKS if data.startswith(known[0])), _NO_MARK)
        body = data[len(mark) :]
        if encoding != "utf-8":
            return cls(body.decode(encoding), encoding, mark)
        try:
            return cls(body.decode(), encoding, mark)
        except UnicodeDecodeError:
            text = body.decode("utf-8", "surrogateescape")
        damaged = len(_SURROGATE.findall(text))
        if mark or len(re.findall(r"[^\0-\x7f\ud800-\udfff]", text)) > damaged:
            return cls(text, encoding, mark)
        rows = re.findall(rb"[\x80-\xff]+", body)
        if sum(map(len, rows)) < 1.5 * len(rows):
            return cls(body.decode("latin-1").translate(_C1), "windows-1252")
        return cls(body.decode("latin-1"), "unknown 8-bit")

    @property
    def plain(self) -> str:
        """The text with LF for every line ending; a lone CR is none."""
        return self.text.replace("\r\n", "\n")

    @property
    def newline(self) -> str | None:
        """The prevailing line ending; `None` where there is none."""
        endings = self.text.count("\n")
        if not endings:
            return None
        return "\r\n" if self.text.count("\r\n") * 2 > endings else "\n"

    @property
    def final_newline(self) -> bool:
        """Whether the last line is ended."""
        return self.text.endswith("\n")

    def raw(self, text: str) -> bytes:
        """The bytes that a piece of this file's own text came from."""
        if self.encoding == "windows-1252":
            return text.translate(_TO_C1).encode("latin-1")
        if self.encoding == "unknown 8-bit":
            return text.encode("latin-1")
        return text.encode(self.encoding, "surrogateescape" if self.encoding == "utf-8" else "strict")

    def encode(self, text: str) -> bytes:
        """The bytes of new text, without the mark, in the file's encoding.

        Raises:
            ToolError: it has a character that cannot be written into this file.
        """
        refuse_surrogates(text)
        if "\ufffd" in text and "\ufffd" not in self.text and _SURROGATE.search(self.text):
            raise ToolError(
                "The file has bytes that are no UTF-8 and were shown as U+FFFD; writing U+FFFD would destroy them.",
                "Leave the lines with U+FFFD out of the edit.",
            )
        if self.encoding == "unknown 8-bit":
            foreign = {char for char in set(text) - set(self.text) if char > "\x7f"}
        else:
            foreign = {char for char in set(text) if char > "\x7f" and not self._has(char)}
        if foreign:
            char = min(foreign)
            raise ToolError(
                f"The file is not UTF-8 ({self.encoding} encoding), and {char!r} (U+{ord(char):04X}) cannot be "
                "written into it safely.",
                "Use ASCII characters in the new text, or an escape of the language.",
            )
        return self.raw(text)

    def _has(self, char: str) -> bool:
        if self.encoding != "windows-1252":
            return True
        return ord(char) in _TO_C1 or 0xA0 <= ord(char) < 0x100


def shown(text: str) -> str:
    """Text as it is sent to a model: what is half a character as U+FFFD, a CR as `␍`."""
    return _SURROGATE.sub("\ufffd", text).replace("\r", "␍")


def refuse_surrogates(text: str) -> None:
    """Refuse text that cannot be stored.

    Raises:
        ToolError: it has half a character (a lone surrogate, which JSON escapes can spell).
    """
    if match := _SURROGATE.search(text):
        raise ToolError(
            f"The text has half a character (U+{ord(match[0]):04X}), which no file can hold.",
            "Send the character itself and not its escapes.",
        )
