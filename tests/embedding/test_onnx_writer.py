"""The files that are written are protobuf, and ONNX: known bytes, and graphs that the runtime runs."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from cases import each
from cortex_py.embedding.backends.runtime import import_onnxruntime
from cortex_py.embedding.install.onnx_writer import FLOAT, GraphWriter, Message
from cortex_py.embedding.install.weights import parse_safetensors


def _bytes(message: Message) -> bytes:
    content = b"".join(message.parts())
    assert len(content) == message.size
    return content


@each(
    ("value", "expected"),
    [(0, "0800"), (1, "0801"), (127, "087f"), (128, "088001"), (300, "08ac02"), (-1, "08" + "ff" * 9 + "01")],
)
def test_integers(value: int, expected: str) -> None:
    assert _bytes(Message().integer(1, value)).hex() == expected


def test_text_data_floats_and_messages() -> None:
    assert _bytes(Message().text(2, "testing")) == b"\x12\x07testing"
    assert _bytes(Message().data(31, memoryview(b"ab"))) == b"\xfa\x01\x02ab"
    assert _bytes(Message().real(2, 1.5)) == b"\x15\x00\x00\xc0\x3f"
    assert _bytes(Message().message(3, Message().integer(1, 150))) == bytes.fromhex("1a03089601")


def test_the_runtime_runs_what_is_written() -> None:
    graph = GraphWriter()
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    product = graph.node("MatMul", "x", graph.constant("w", weights))
    shifted = graph.node("Add", product, graph.constant("w.0", np.array(0.5, dtype=np.float32)))
    summed = graph.node("ReduceMean", shifted, keepdims=1)
    model = graph.model([("x", FLOAT, ("n", 2))], (summed, FLOAT, (1, 1)))
    session = import_onnxruntime().InferenceSession(_bytes(model), providers=["CPUExecutionProvider"])
    x = np.array([[1, 2], [3, 4]], dtype=np.float32)
    assert session.run(None, {"x": x})[0] == pytest.approx((x @ weights + 0.5).mean())


def test_a_constant_is_stored_once() -> None:
    def size(times: int) -> int:
        graph = GraphWriter()
        for _ in range(times):
            graph.constant("w", np.zeros(1000, dtype=np.float32))
        return graph.model([], ("w", FLOAT, (1000,))).size

    assert size(3) == size(1)


def test_safetensors() -> None:
    header = (
        b'{"__metadata__":{"format":"pt"},'
        b'"a":{"dtype":"F32","shape":[2,1],"data_offsets":[8,16]},'
        b'"n":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}'
    )
    data = struct.pack("<Q", len(header)) + header + struct.pack("<qff", 7, 1.5, -2.0)
    tensors = parse_safetensors(data)
    assert list(tensors) == ["a"]
    assert tensors["a"].tolist() == [[1.5], [-2.0]]
