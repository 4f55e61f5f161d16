from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from late.errors import ProviderError
from late.llm.sse import SseDecoder

lines = st.sampled_from(
    [
        "data: {}",
        "data:{}",
        "data: ",
        "data",
        "data: : PROCESSING",
        "data: [DONE]",
        "data: 你好 🦀",
        "data:  two spaces",
        ": comment",
        "event: message",
        "",
        "",
        "id: 7",
        "unknown field",
        "\ufeffdata: bom",
    ]
)
streams = st.lists(st.tuples(lines, st.sampled_from(["\n", "\r\n", "\r"]))).map(
    lambda pairs: "".join(line + end for line, end in pairs).encode()
)


def decode(*fragments: bytes) -> list[str]:
    decoder = SseDecoder()
    payloads = [payload for fragment in fragments for payload in decoder.feed(fragment)]
    return payloads + decoder.finish()


@given(streams | st.binary(max_size=200), st.lists(st.integers(0, 400), max_size=20))
def test_payloads_do_not_depend_on_where_the_bytes_are_split(stream: bytes, cuts: list[int]):
    bounds = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    fragments = [stream[a:b] for a, b in itertools.pairwise(bounds)]
    assert decode(*fragments) == decode(stream)
    assert decode(*(bytes([b]) for b in stream)) == decode(stream)


@given(st.lists(st.text(min_size=1).filter(lambda t: not t.startswith(":") and not set(t) & {"\r", "\n"}), max_size=6))
def test_what_was_sent_as_data_comes_out_again(payloads: list[str]):
    wire = b"".join(b"data: " + p.encode() + b"\n\n" for p in payloads)
    assert decode(wire) == payloads


@pytest.mark.parametrize(
    ("wire", "payloads"),
    [
        (b"data: a\n\ndata: b\n\n", ["a", "b"]),
        (b"data:a\r\n\r\ndata:b\r\n\r\n", ["a", "b"]),
        (b"data: a\r\rdata: b\r\r", ["a", "b"]),
        (b'data: {"a":\ndata: 1}\n\n', ['{"a":\n1}']),
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b": ping\n\ndata: a\n\n", ["a"]),
        (b"data: : OPENROUTER PROCESSING\n\ndata: a\n\n", ["a"]),
        (b'data: {"a"\ndata: :1}\n\n', ['{"a"\n:1}']),
        (b"event: error\nid: 1\ndata: a\n\n", ["a"]),
        (b"data: no blank line", ["no blank line"]),
        (b"data: a\n", ["a"]),
        (b"\n\n\n", []),
        (b"", []),
        (b"data\n\n", [""]),
    ],
)
def test_lines_and_fields_are_read_as_the_standard_says(wire: bytes, payloads: list[str]):
    assert decode(wire) == payloads


def test_a_line_of_eight_megabytes_in_small_pieces_takes_linear_time():
    wire = b"data: " + b"x" * (8 * 1024 * 1024) + b"\n\n"
    start = time.perf_counter()
    [payload] = decode(*(wire[i : i + 1024] for i in range(0, len(wire), 1024)))
    assert len(payload) == 8 * 1024 * 1024
    assert time.perf_counter() - start < 5


def test_an_event_over_the_limit_is_a_clear_error():
    decoder = SseDecoder(max_event_bytes=1024 * 1024)
    for _ in range(1024):
        decoder.feed(b"x" * 1024)
    with pytest.raises(ProviderError, match="more than 1 MB"):
        decoder.feed(b"x")


def test_the_limit_is_for_one_event_and_not_for_the_stream():
    decoder = SseDecoder(max_event_bytes=100)
    assert [decoder.feed(b"data: " + b"x" * 50 + b"\n\n") for _ in range(10)] == [["x" * 50]] * 10
