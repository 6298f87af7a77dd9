"""Lines and messages: any bytes in any pieces, the right code for every fault, bounded memory."""

import json
import tracemalloc
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.surfaces.mcp.stdio.frames import (
    INVALID_REQUEST,
    PARSE_ERROR,
    Malformed,
    MessageFrame,
    TooLong,
    error_line,
    read_frame,
    read_lines,
    result_line,
)

MOST = 12

texts = st.text(st.characters(exclude_categories=["Cs"]))
ids = texts | st.integers(-(2**63) + 1, 2**63 - 1)
plain_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**40), 10**40) | st.floats(-1e300, 1e300) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(texts, plain_values, max_size=4)
# Ends of lines, spaces and long runs come up often enough to meet each other and the bound.
pieces = st.sampled_from([b"\n", b"\r\n", b" ", b"\n\n", b"a" * (MOST - 1), b"a" * MOST, b"b" * (2 * MOST)])
streams = st.lists(pieces | st.binary(max_size=2 * MOST), max_size=12).map(b"".join)


def _lines(chunks: Iterable[bytes], most: int = MOST) -> list[bytes | None]:
    """What is read when the source gives these chunks; nothing stands for a line that was too long."""
    given = iter([*(chunk for chunk in chunks if chunk), b""])
    return [None if isinstance(line, TooLong) else line for line in read_lines(lambda _: next(given), most)]


def _fault(line: bytes) -> tuple[int, str | int | None]:
    with pytest.raises(Malformed) as caught:
        read_frame(line)
    return caught.value.code, caught.value.id


@given(streams, st.data())
def test_lines_are_the_same_in_whatever_pieces_they_come(stream: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=8)))
    chunks = [stream[low:high] for low, high in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    expected = [None if len(line) > MOST else line.strip() for line in stream.split(b"\n")]
    assert _lines(chunks) == [line for line in expected if line != b""]
    assert _lines(stream[at : at + 1] for at in range(len(stream))) == _lines([stream])


def test_a_line_of_exactly_the_bound_is_read_and_one_byte_more_is_not() -> None:
    assert _lines([b"a" * MOST, b"\n", b"b" * MOST, b"b\nc"]) == [b"a" * MOST, None, b"c"]


def test_an_endless_line_takes_no_more_memory_than_the_bound() -> None:
    left = 300

    def source(size: int) -> bytes:
        nonlocal left
        left -= 1
        # Every piece is a new object: to keep them would take twenty megabytes.
        return bytes(bytearray(size)) if left > 0 else b"\nafter" if left == 0 else b""

    tracemalloc.start()
    try:
        lines = list(read_lines(source, 200_000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [type(line) for line in lines] == [TooLong, bytes]
    assert lines[1] == b"after"
    assert peak < 1_000_000


@given(st.binary() | plain_values.map(lambda value: json.dumps(value).encode()))
def test_whatever_comes_is_a_message_or_a_known_fault(line: bytes) -> None:
    try:
        frame = read_frame(line)
    except Malformed as fault:
        assert fault.code in (PARSE_ERROR, INVALID_REQUEST)
        assert str(fault)
    else:
        assert frame.message["jsonrpc"] == "2.0"


@given(st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]), plain_values))
def test_a_message_of_wrong_parts_is_an_invalid_request(message: dict[str, Any]) -> None:
    # No value but one says which protocol this is, and it is not among these.
    message = {**message, "jsonrpc": "1.0"} if "jsonrpc" in message else message
    id = message.get("id")
    usable = isinstance(id, str) or (type(id) is int and abs(id) < 2**63)
    assert _fault(json.dumps(message).encode()) == (INVALID_REQUEST, id if usable else None)


@given(ids, texts, objects, st.booleans())
def test_requests_are_read_as_they_are(id: str | int, method: str, params: dict[str, Any], escaped: bool) -> None:
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    frame = read_frame(json.dumps(message, ensure_ascii=escaped).encode())
    assert frame == MessageFrame(message)
    assert (frame.id, frame.method, frame.params, frame.is_request) == (id, method, params, True)


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 3, "result": {}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "?"}},
    ],
)
def test_notifications_and_responses_are_messages_but_no_requests(message: dict[str, Any]) -> None:
    frame = read_frame(json.dumps(message).encode())
    assert frame.message == message
    assert not frame.is_request
    assert frame.params == {}


@each(
    "line",
    [
        b"",
        b"hello",
        b"{",
        b'{"jsonrpc": "2.0",}',
        b'{"jsonrpc": "2.0"} {}',
        b"{\"jsonrpc\": '2.0'}",
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        b'{"jsonrpc": "2.0", "id": "\xed\xa0\x80", "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "a\nb"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "\\x00"}',
        b'{"jsonrpc": "2.0", "id": NaN, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": [Infinity]}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": -Infinity}}',
        b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": ["\\uDFFF\\uD800"]}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"\\udc00": 1}}',
        b'{"jsonrpc": "2.0", "id": ' + b"9" * 5000 + b', "method": "ping"}',
    ],
)
def test_what_is_no_json_text_is_a_parse_error(line: bytes) -> None:
    assert _fault(line) == (PARSE_ERROR, None)


def test_a_whole_surrogate_pair_is_one_character() -> None:
    frame = read_frame(b'{"jsonrpc": "2.0", "id": "\\ud83d\\ude00", "method": "ping"}')
    assert frame.id == "😀"


@each(
    ("line", "id"),
    [
        (b"[]", None),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', None),
        (b"5", None),
        (b"null", None),
        (b'"ping"', None),
        (b"{}", None),
        (b'{"id": 4, "method": "ping"}', 4),
        (b'{"jsonrpc": 2.0, "id": 4, "method": "ping"}', 4),
        (b'{"jsonrpc": "2.0", "id": "four"}', "four"),
        (b'{"jsonrpc": "2.0", "id": 4, "method": null}', 4),
        (b'{"jsonrpc": "2.0", "id": 4, "method": ["ping"]}', 4),
        (b'{"jsonrpc": "2.0", "id": 4, "method": "ping", "params": []}', 4),
        (b'{"jsonrpc": "2.0", "id": 4, "method": "ping", "params": null}', 4),
        (b'{"jsonrpc": "2.0", "method": "ping", "params": "x"}', None),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', None),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', None),
        (b'{"jsonrpc": "2.0", "id": 1.0, "method": "ping"}', None),
        (b'{"jsonrpc": "2.0", "id": 1e999, "method": "ping"}', None),
        (b'{"jsonrpc": "2.0", "id": [1], "method": "ping"}', None),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', None),
        (b'{"jsonrpc": "2.0", "id": 9223372036854775808, "method": "ping"}', None),
        (b'{"jsonrpc": "2.0", "id": -9223372036854775808, "method": "ping"}', None),
        (b'{"jsonrpc": "2.0", "id": null, "result": {}}', None),
    ],
)
def test_json_that_is_no_message_is_an_invalid_request(line: bytes, id: str | int | None) -> None:
    assert _fault(line) == (INVALID_REQUEST, id)


def _nested(depth: int, open: bytes, close: bytes) -> bytes:
    """A request whose arguments make the whole message this deep; message and params are two of it."""
    inner = open * (depth - 2) + b"1" + close * (depth - 2)
    return b'{"jsonrpc": "2.0", "id": 4, "method": "ping", "params": {"a": ' + inner + b"}}"


@pytest.mark.parametrize(("open", "close"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_nesting_is_bounded(open: bytes, close: bytes) -> None:
    assert read_frame(_nested(64, open, close)).id == 4
    assert _fault(_nested(65, open, close)) == (INVALID_REQUEST, 4)
    # So deep that the parser gives up, and the id with it.
    assert _fault(_nested(100_000, open, close)) == (INVALID_REQUEST, None)


def test_many_brackets_side_by_side_are_not_deep() -> None:
    wide = b"[" + b"[]," * 500 + b"[]]"
    assert read_frame(b'{"jsonrpc": "2.0", "id": 4, "method": "ping", "params": {"a": ' + wide + b"}}").id == 4


@given(ids, plain_values)
def test_a_result_is_one_line_that_says_the_same(id: str | int, result: Any) -> None:
    line = result_line(id, result)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert json.loads(line) == {"jsonrpc": "2.0", "id": id, "result": result}
    assert _lines([line], len(line)) == [line[:-1]]


@given(st.none() | ids, st.integers(-33000, 33000), texts, st.none() | objects)
def test_an_error_is_one_line_that_says_the_same(
    id: str | int | None, code: int, message: str, data: dict[str, Any] | None
) -> None:
    line = error_line(id, code, message, data)
    error = {"code": code, "message": message} if data is None else {"code": code, "message": message, "data": data}
    assert line.count(b"\n") == 1
    assert read_frame(line.strip()) == MessageFrame({"jsonrpc": "2.0", "id": id, "error": error})


def test_what_no_text_can_hold_is_replaced_on_the_way_out() -> None:
    assert error_line("a\ud800", -32602, "\udfff is bad") == (
        b'{"jsonrpc":"2.0","id":"a?","error":{"code":-32602,"message":"? is bad"}}\n'
    )
