"""Writes ONNX graphs (constants, nodes, inputs and outputs) as protobuf messages, without the `onnx` package.

The field numbers are those of onnx.proto3. `onnx_graph` decides which nodes make up the model.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FLOAT", "INT32", "GraphWriter", "Message"]

# The protobuf wire format, writing only: enough to write an ONNX file without the `onnx` package.
#
# A message keeps its parts as they came, so a tensor of many megabytes is never copied on its way to the
# file. What the field numbers mean is the business of `onnx_writer`.

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


FLOAT, INT32 = 1, 6
_TENSOR_TYPES = {"float32": FLOAT, "uint8": 2, "int8": 3, "int32": INT32, "int64": 7}
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT = 1, 2

_IR_VERSION = 8
_OPSET = 17
_MICROSOFT = "com.microsoft"


class GraphWriter:
    """A graph under construction. Every node has one output, known by the name that `node` returns."""

    def __init__(self) -> None:
        self._nodes: list[Message] = []
        self._constants: dict[str, Message] = {}

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """A tensor stored in the file; the same name may be given again and is stored once."""
        if name not in self._constants:
            tensor = Message()
            for size in value.shape:
                tensor.integer(1, size)
            tensor.integer(2, _TENSOR_TYPES[value.dtype.name]).text(8, name)
            raw = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
            self._constants[name] = tensor.data(9, raw.reshape(-1).data.cast("B"))
        return name

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: int | float) -> str:
        output = f"{operator}_{len(self._nodes)}"
        node = Message()
        for name in inputs:
            node.text(1, name)
        node.text(2, output).text(3, output).text(4, operator)
        for key, value in attributes.items():
            node.message(5, _attribute(key, value))
        if domain:
            node.text(7, domain)
        self._nodes.append(node)
        return output

    def fused(self, operator: str, *inputs: str, **attributes: int | float) -> str:
        """A node that only onnxruntime knows, doing the work of several standard ones."""
        return self.node(operator, *inputs, domain=_MICROSOFT, **attributes)

    def model(
        self, inputs: Sequence[tuple[str, int, Sequence[str | int]]], output: tuple[str, int, Sequence[str | int]]
    ) -> Message:
        """The finished file; inputs and output are given as name, element type and shape."""
        graph = Message()
        for node in self._nodes:
            graph.message(1, node)
        graph.text(2, "encoder")
        for constant in self._constants.values():
            graph.message(5, constant)
        for declared in inputs:
            graph.message(11, _declaration(*declared))
        graph.message(12, _declaration(*output))
        return (
            Message()
            .integer(1, _IR_VERSION)
            .text(2, "cortex")
            .message(7, graph)
            .message(8, Message().integer(2, _OPSET))
            .message(8, Message().text(1, _MICROSOFT).integer(2, 1))
        )


def _attribute(key: str, value: int | float) -> Message:
    attribute = Message().text(1, key)
    if isinstance(value, float):
        return attribute.real(2, value).integer(20, _ATTRIBUTE_FLOAT)
    return attribute.integer(3, value).integer(20, _ATTRIBUTE_INT)


def _declaration(name: str, element: int, shape: Sequence[str | int]) -> Message:
    dimensions = Message()
    for size in shape:
        dimensions.message(1, Message().text(2, size) if isinstance(size, str) else Message().integer(1, size))
    tensor = Message().integer(1, element).message(2, dimensions)
    return Message().text(1, name).message(2, Message().message(1, tensor))
