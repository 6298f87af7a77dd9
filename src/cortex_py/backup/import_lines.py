"""JSON Lines and JSON arrays as values with the lines they stand in. Files come from people and other programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from ..errors import InvalidInput
from ..prompts.structured import one_line

__all__ = ["Line", "fault", "json_values"]

# Above what any memory with its versions takes; it keeps a file without line ends from filling the memory.
_LINE_MOST = 256_000_000
_BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """A value and the line it stands in, or its number in an array."""

    value: object
    place: str


def fault(place: str, what: str, remedy: str | None = None) -> InvalidInput:
    return InvalidInput(f"{one_line(place)}: {what}.", remedy=remedy, field="file")


def json_values(file: BinaryIO, name: str) -> Iterator[Line]:
    """The values of a file: one in each line that is not blank, or those of one array."""
    number, begun = 0, False
    while raw := file.readline(_LINE_MOST + 1):
        number += 1
        place = f"{name}, line {number}"
        if len(raw) > _LINE_MOST:
            raise fault(place, f"the line is longer than {_LINE_MOST:,} bytes")
        line = raw.removeprefix(_BOM) if number == 1 else raw
        if not line.strip():
            continue
        if not begun and line.lstrip()[:1] == b"[":
            yield from _array(line + file.read(_LINE_MOST + 1 - len(line)), name, number)
            return
        begun = True
        yield Line(_parsed(line, place), place)


def _array(data: bytes, name: str, first: int) -> Iterator[Line]:
    if len(data) > _LINE_MOST:
        raise fault(name, f"the array is longer than {_LINE_MOST:,} bytes", "Write one object in each line.")
    values = _parsed(data, name, first)
    for number, value in enumerate(values if isinstance(values, list) else [], start=1):
        yield Line(value, f"{name}, entry {number}")


def _parsed(data: bytes, place: str, first: int | None = None) -> object:
    def constant(word: str) -> object:
        raise fault(place, f"{word} is no number in JSON")

    try:
        return json.loads(data.decode("utf-8"), parse_constant=constant)
    except UnicodeDecodeError as error:
        where = place if first is None else _at(place, first + data.count(b"\n", 0, error.start))
        raise fault(where, "it is not UTF-8", "Save the file as UTF-8.") from error
    except json.JSONDecodeError as error:
        where = place if first is None else _at(place, first + error.lineno - 1)
        raise fault(where, f"it is not valid JSON ({error.msg}, column {error.colno})") from error
    except RecursionError as error:
        raise fault(place, "it is nested too deeply") from error
    except ValueError as error:
        # More digits than Python reads.
        raise fault(place, "it holds a number with thousands of digits") from error


def _at(name: str, line: int) -> str:
    return f"{name}, line {line}"
