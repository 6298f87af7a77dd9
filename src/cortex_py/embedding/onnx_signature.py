"""What an ONNX file takes and gives, read without a runtime: its inputs, its outputs, the files it refers to.

Only the few fields that tell this are looked at; the weights between them are skipped. The field numbers
are those of onnx.proto3.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import ModelCorrupt, ModelMissing

__all__ = ["Signature", "Slot", "read_signature"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_GRAPH = 7
_INITIALIZER, _INPUT, _OUTPUT = 5, 11, 12
_TENSOR_NAME, _TENSOR_EXTERNAL = 8, 13


@dataclass(frozen=True, slots=True)
class Slot:
    """One input or output. `element` is the type's number; sizes that are not fixed are None."""

    name: str
    element: int
    shape: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    external: tuple[str, ...]


def read_signature(path: Path) -> Signature:
    """Raises ModelMissing where there is no such file, ModelCorrupt where it is no ONNX file."""
    try:
        with path.open("rb") as file:
            # Let go together with the last view into it.
            content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return _signature(content)
    except OSError as error:
        raise ModelMissing(f"The model file {path} cannot be read: {error.strerror}.") from error
    except (ValueError, IndexError) as error:
        raise ModelCorrupt(f"{path} is not an ONNX file.", remedy="Copy the model again.") from error


def _signature(content: memoryview) -> Signature:
    inputs, outputs = [], []
    stored: set[str] = set()
    external: dict[str, None] = {}
    for field, graph in _messages(content):
        if field != _GRAPH:
            continue
        for part, value in _messages(graph):
            if part == _INPUT:
                inputs.append(_slot(value))
            elif part == _OUTPUT:
                outputs.append(_slot(value))
            elif part == _INITIALIZER:
                name, location = _tensor(value)
                stored.add(name)
                external[location] = None
    if not outputs:
        raise ValueError("no graph")
    # Older files list their weights among the inputs.
    asked = tuple(slot for slot in inputs if slot.name not in stored)
    return Signature(asked, tuple(outputs), tuple(name for name in external if name))


def _slot(value: memoryview) -> Slot:
    name, element, shape = "", 0, []
    for field, part in _messages(value):
        if field == 1:
            name = _text(part)
        elif field == 2:
            for tensor in _nested(part, 1):
                element = next((number for field, number in _numbers(tensor) if field == 1), 0)
                for dimensions in _nested(tensor, 2):
                    shape = [
                        next((number for field, number in _numbers(size) if field == 1), None)
                        for size in _nested(dimensions, 1)
                    ]
    return Slot(name, element, tuple(shape))


def _tensor(value: memoryview) -> tuple[str, str]:
    """The tensor's name, and the file its numbers lie in if that is another one."""
    name = location = ""
    for field, part in _messages(value):
        if field == _TENSOR_NAME:
            name = _text(part)
        elif field == _TENSOR_EXTERNAL:
            entry = {key: _text(text) for key, text in _messages(part)}
            if entry.get(1) == "location":
                location = entry.get(2, "")
    return name, location


def _nested(content: memoryview, wanted: int) -> Iterator[memoryview]:
    return (value for field, value in _messages(content) if field == wanted)


def _messages(content: memoryview) -> Iterator[tuple[int, memoryview]]:
    return ((field, value) for field, value in _fields(content) if isinstance(value, memoryview))


def _numbers(content: memoryview) -> Iterator[tuple[int, int]]:
    return ((field, value) for field, value in _fields(content) if isinstance(value, int))


def _fields(content: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    place = 0
    while place < len(content):
        key, place = _varint(content, place)
        kind = key & 7
        if kind == _VARINT:
            number, place = _varint(content, place)
            yield key >> 3, number
            continue
        if kind == _BYTES:
            size, place = _varint(content, place)
        elif kind in (_FIXED32, _FIXED64):
            size = 4 if kind == _FIXED32 else 8
        else:
            raise ValueError(f"wire type {kind}")
        if place + size > len(content):
            raise ValueError("cut off")
        yield key >> 3, content[place : place + size]
        place += size


def _varint(content: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
        if shift > 63:
            raise ValueError("endless number")


def _text(value: memoryview) -> str:
    return bytes(value).decode("utf-8")
