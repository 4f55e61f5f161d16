"""Server-sent events: bytes in, data payloads out.

Follows the WHATWG standard (html.spec.whatwg.org/multipage/server-sent-events.html) in how lines and fields are read,
and deviates where servers do: the last event counts without a blank line after it, and a comment that was wrapped as
data (`data: : PROCESSING`) is skipped. Event names and ids are of no use to chat completions and are ignored.
"""

from __future__ import annotations

from late.errors import ProviderError

MAX_EVENT_BYTES = 256 * 1024 * 1024
"""Far above any answer; a stream that exceeds it is not a chat completion."""

_BOM = b"\xef\xbb\xbf"


class SseDecoder:
    """Incremental decoder. The payloads do not depend on where the bytes were split, and the time is linear in them."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max = max_event_bytes
        self._size = 0
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._after_cr = False
        self._first = True

    def feed(self, data: bytes) -> list[str]:
        """Payloads of the events that `data` completes.

        Raises:
            ProviderError: an event is larger than the limit.
        """
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if not data:
            return []
        self._after_cr = data.endswith(b"\r")
        payloads: list[str] = []
        for piece in data.splitlines(keepends=True):
            self._size += len(piece)
            if self._size > self._max:
                raise ProviderError(
                    f"The server sent an event of more than {self._max // (1024 * 1024)} MB.",
                    "Look at the server's log: this is no chat completion.",
                )
            content = piece.rstrip(b"\r\n")
            self._line.append(content)
            if len(content) < len(piece):
                self._end_line(payloads)
        return payloads

    def finish(self) -> list[str]:
        """The payload that is left when the stream ends without a blank line."""
        payloads: list[str] = []
        if self._line:
            self._end_line(payloads)
        self._dispatch(payloads)
        return payloads

    def _end_line(self, payloads: list[str]) -> None:
        line = b"".join(self._line)
        self._line.clear()
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        if not line:
            self._dispatch(payloads)
            return
        name, _, value = line.partition(b":")
        if name != b"data":
            return
        value = value.removeprefix(b" ")
        if self._data or not value.startswith(b":"):
            self._data.append(value)

    def _dispatch(self, payloads: list[str]) -> None:
        self._size = 0
        if self._data:
            payloads.append(b"\n".join(self._data).decode("utf-8", "replace"))
            self._data.clear()
