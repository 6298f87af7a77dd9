"""Lines and entries of JSON files one at a time, however large the file, and the values that programs write in them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, BinaryIO, NamedTuple

from .....core.clock import in_utc
from .files import SourceFile
from .records import Found, Skipped, SourceReader

__all__ = [
    "JsonItem", "first_objects", "json_entries", "json_reader", "json_values", "mapped", "moment", "parse", "text_of",
]  # fmt: skip

_LINE_MOST = 64_000_000
_ENTRY_MOST = 256_000_000
_CHUNK = 1 << 20
# Seconds of the year 5138; larger numbers count milliseconds, and far larger ones microseconds.
_SECONDS_MOST = 100_000_000_000
_QUOTE = ord('"')
_BOM = b"\xef\xbb\xbf"
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{},]|"', re.DOTALL)


class JsonItem(NamedTuple):
    """A value of a file: its number among the lines or the entries of an array, from 1, and the line it begins on."""

    value: Any
    number: int
    line: int

    @property
    def object(self) -> dict[str, Any]:
        """The value if it is an object, else an empty one."""
        return self.value if isinstance(self.value, dict) else {}


Wanted = Callable[[bytes], bool]


def json_reader(
    kind: str,
    recognises: Callable[[SourceFile], bool],
    take: Callable[[JsonItem, SourceFile], Iterable[Found]],
    *,
    is_lines: Callable[[SourceFile], bool] = lambda _file: True,
    wanted: Wanted = lambda _line: True,
) -> SourceReader:
    """A reader that takes each value of a file by itself."""

    def read(file: SourceFile) -> Iterator[Found]:
        for value in json_values(file, is_lines=is_lines(file), wanted=wanted):
            if isinstance(value, Skipped):
                yield value
            else:
                yield from take(value, file)

    return SourceReader(kind, recognises, read)


def json_values(
    file: SourceFile, *, is_lines: bool = True, wanted: Wanted = lambda _line: True
) -> Iterator[JsonItem | Skipped]:
    """The values of a file, one at a time: of its lines, or of its outermost array."""
    with file.open() as stream:
        yield from _json_lines(stream, wanted) if is_lines else json_entries(stream)


def parse(data: bytes) -> Any:
    """A JSON value. ValueError with a reason for people."""

    def constant(word: str) -> object:
        raise ValueError(f"{word} is not a number in JSON")

    try:
        return json.loads(data.decode("utf-8"), parse_constant=constant)
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not valid JSON ({error.msg}, column {error.colno})") from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except ValueError as error:
        if "digits" in str(error):
            raise ValueError("it holds a number with thousands of digits") from error
        raise


def _json_lines(stream: BinaryIO, wanted: Wanted) -> Iterator[JsonItem | Skipped]:
    """The values of JSON Lines. Lines that are not `wanted` are not parsed, only checked to be whole."""
    number = 0
    while raw := stream.readline(_LINE_MOST):
        number += 1
        if len(raw) >= _LINE_MOST and not raw.endswith(b"\n"):
            while (rest := stream.readline(_LINE_MOST)) and not rest.endswith(b"\n"):
                pass
            yield Skipped(f"line {number}", f"it is longer than {_LINE_MOST:,} bytes")
            continue
        line = raw.strip().removeprefix(_BOM)
        if not line or (not wanted(line) and line.endswith(b"}") and _BETWEEN not in line):
            continue
        try:
            yield JsonItem(parse(line), number, number)
        except ValueError as error:
            together = _objects_in(line)
            yield from (JsonItem(value, number, number) for value in together)
            if not together:
                yield Skipped(f"line {number}", str(error))


# Between two objects that were written at the same time; inside a text the quotation mark would be escaped.
_BETWEEN = b'}{"'


def _objects_in(line: bytes) -> list[dict[str, Any]]:
    """The objects on a line that holds several and nothing else; otherwise none."""
    found: list[dict[str, Any]] = []
    if _BETWEEN not in line:
        return found
    text, at = line.decode("utf-8", "replace"), 0
    try:
        while at < len(text):
            value, at = _DECODER.raw_decode(text, at)
            if not isinstance(value, dict):
                return []
            found.append(value)
    except (ValueError, RecursionError):
        return []
    return found


_DECODER = json.JSONDecoder()


def json_entries(stream: BinaryIO) -> Iterator[JsonItem | Skipped]:
    """The entries of the outermost array, or the one value of the file, without reading the file as a whole.

    A damaged entry is skipped; where the end of one cannot be found, the rest of the file is.
    """
    start = stream.read(_CHUNK).removeprefix(_BOM)
    if not start.lstrip().startswith(b"["):
        yield from _whole(start + stream.read(_ENTRY_MOST))
        return
    cutter, number = _ArrayCutter(), 0
    chunk = start
    while chunk and not cutter.is_done:
        for piece, line in cutter.feed(chunk):
            number += 1
            yield _value(piece, number, line, f"entry {number}")
        if cutter.waiting > _ENTRY_MOST:
            yield Skipped(f"entry {number + 1}", f"it is longer than {_ENTRY_MOST:,} bytes; the rest is not read")
            return
        chunk = stream.read(_CHUNK)
    if not cutter.is_done:
        yield Skipped(f"entry {number + 1}", "the file ends inside it")


def _whole(data: bytes) -> Iterator[JsonItem | Skipped]:
    if len(data) > _ENTRY_MOST:
        yield Skipped("line 1", f"it is longer than {_ENTRY_MOST:,} bytes")
    elif data.strip():
        yield _value(data, 1, 1, "line 1")


def _value(data: bytes, number: int, line: int, place: str) -> JsonItem | Skipped:
    try:
        return JsonItem(parse(data.strip()), number, line)
    except ValueError as error:
        return Skipped(place, str(error))


class _ArrayCutter:
    """Cuts the bytes of an array into those of its entries, as they come in."""

    def __init__(self) -> None:
        self.is_done = False
        self._buffer = b""
        self._depth = 0
        self._line = 1
        # Where the entry begins that is not complete yet, and how far it was looked through.
        self._begin = 0
        self._at = 0

    @property
    def waiting(self) -> int:
        return len(self._buffer)

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, int]]:
        """The entries that are complete now, each with its line."""
        self._buffer += chunk
        for found in _STRUCTURE.finditer(self._buffer, self._at):
            token = found.group()
            if token == b'"':
                # A text that goes on in the next chunk.
                self._at = found.start()
                break
            self._at = found.end()
            if token[0] == _QUOTE:
                continue
            self._depth += (token in b"{[") - (token in b"]}")
            if self._depth == 1 and token == b"[" and not self._begin:
                self._begin = found.end()
            elif self._depth == 0 or (self._depth == 1 and token == b","):
                piece = self._buffer[self._begin : found.start()]
                blank = piece[: len(piece) - len(piece.lstrip())]
                line = self._line + self._buffer.count(b"\n", 0, self._begin) + blank.count(b"\n")
                self._begin = found.end()
                if piece.strip():
                    yield piece, line
                if self._depth == 0:
                    self.is_done = True
                    return
        self._line += self._buffer.count(b"\n", 0, self._begin)
        self._buffer, self._at, self._begin = self._buffer[self._begin :], self._at - self._begin, 0


def first_objects(head: bytes, most: int = 20) -> list[dict[str, Any]]:
    """The objects in the first whole lines of a file, to recognise its kind."""
    found = []
    for line in head.split(b"\n")[:most]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            found += _objects_in(line)
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def moment(value: object) -> datetime | None:
    """The moment that a text, or a number of seconds, milliseconds or microseconds, names; None if it names none."""
    try:
        if isinstance(value, str) and value.strip():
            return in_utc(datetime.fromisoformat(value.strip()))
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            while abs(value) >= _SECONDS_MOST:
                value /= 1_000
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def text_of(value: object) -> str | None:
    """A text that is not blank, or None."""
    return value if isinstance(value, str) and value.strip() else None


def mapped(value: Mapping[str, Any], **fields: str) -> dict[str, Any]:
    """Fields of a record from the fields that another program names so: `at` as a moment, the others as texts."""
    return {
        name: moment(value.get(field)) if name == "at" else text_of(value.get(field)) for name, field in fields.items()
    }
