"""Reading and writing all that is meant, also where a stream does less at a time."""

from __future__ import annotations

from typing import BinaryIO

__all__ = ["read_exactly", "write_fully"]


def read_exactly(source: BinaryIO, size: int) -> bytes:
    """As many bytes as asked for, or all there are before the end; a pipe may give them in pieces."""
    data = source.read(size)
    if len(data) == size or not data:
        return data
    pieces = [data]
    missing = size - len(data)
    while missing and (data := source.read(missing)):
        pieces.append(data)
        missing -= len(data)
    return b"".join(pieces)


def write_fully(target: BinaryIO, data: bytes | memoryview) -> None:
    """Write all of the data; a stream without a buffer may take it in pieces."""
    written = target.write(data)
    while written < len(data):
        data = memoryview(data)[written:]
        written = target.write(data)
