"""The protobuf wire format, writing only: enough to write an ONNX file without the `onnx` package.

A message keeps its parts as they came, so a tensor of many megabytes is never copied on its way to the
file. What the field numbers mean is the business of `onnx_writer`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

__all__ = ["Message"]

_VARINT, _BYTES, _FIXED32 = 0, 2, 5


class Message:
    """The fields of one message, in the order in which they were added."""

    def __init__(self) -> None:
        self._parts: list[bytes | memoryview] = []
        self.size = 0

    def integer(self, field: int, value: int) -> Message:
        return self._append(_key(field, _VARINT) + _varint(value))

    def real(self, field: int, value: float) -> Message:
        return self._append(_key(field, _FIXED32) + struct.pack("<f", value))

    def text(self, field: int, value: str) -> Message:
        return self.data(field, value.encode())

    def data(self, field: int, value: bytes | memoryview) -> Message:
        return self._append(_key(field, _BYTES) + _varint(len(value)))._append(value)

    def message(self, field: int, value: Message) -> Message:
        self._append(_key(field, _BYTES) + _varint(value.size))
        self._parts.extend(value._parts)
        self.size += value.size
        return self

    def parts(self) -> Iterator[bytes | memoryview]:
        return iter(self._parts)

    def _append(self, part: bytes | memoryview) -> Message:
        self._parts.append(part)
        self.size += len(part)
        return self


def _key(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
