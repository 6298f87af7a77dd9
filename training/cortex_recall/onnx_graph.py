"""The MiniLM encoder as an ONNX graph: token ids and mask in, one pooled vector per text out.

Attention, normalisation and activation are single fused nodes of onnxruntime. Matrix products and the word table are in
8 bits, as `quantization` defines. The output is not normalised.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from onnx_writer import FLOAT, INT32, GraphWriter, Message
from quantization import Activation, Calibration, quantize_columns, quantize_rows

__all__ = ["HEADS", "INPUT_IDS", "INPUT_MASK", "WIDTH", "Parts", "Tensors", "hidden_state", "integer_graph"]

Tensors = Mapping[str, NDArray[np.float32]]

INPUT_IDS, INPUT_MASK = "ids", "mask"

WIDTH = 384
HEADS = 12
_LAYERS = 6
_POSITIONS = 256
_EPSILON = 1e-12


def integer_graph(tensors: Tensors, calibration: Calibration) -> Message:
    graph = GraphWriter()
    parts = Parts(graph, tensors, calibration)
    hidden = hidden_state(parts)
    present = graph.node("Cast", INPUT_MASK, to=FLOAT)
    axis = graph.constant("axis", np.array([1]))
    summed = graph.node("MatMul", graph.node("Unsqueeze", present, axis), hidden)
    mean = graph.node("Div", graph.node("Squeeze", summed, axis), graph.node("ReduceSum", present, axis, keepdims=1))
    shape = ("texts", "tokens")
    return graph.model([(INPUT_IDS, INT32, shape), (INPUT_MASK, INT32, shape)], (mean, FLOAT, ("texts", WIDTH)))


def hidden_state(parts: Parts) -> str:
    """One vector for each token."""
    hidden = _embeddings(parts)
    for layer in range(_LAYERS):
        hidden = _layer(parts, layer, hidden)
    return hidden


def _embeddings(parts: Parts) -> str:
    graph, tensors = parts.graph, parts.tensors
    prefix = "embeddings"
    words = parts.words(tensors[f"{prefix}.word_embeddings.weight"])
    # There is one segment only, so its embedding is part of the position's.
    segment = tensors[f"{prefix}.token_type_embeddings.weight"][0]
    positions = tensors[f"{prefix}.position_embeddings.weight"][:_POSITIONS] + segment
    length = graph.node(
        "Slice",
        graph.node("Shape", INPUT_IDS),
        graph.constant("length_from", np.array([1])),
        graph.constant("length_to", np.array([2])),
    )
    used = graph.node(
        "Slice", graph.constant("positions", positions), graph.constant("positions_from", np.array([0])), length
    )
    return graph.node(
        "LayerNormalization",
        graph.node("Add", words, used),
        _stored(parts, f"{prefix}.LayerNorm.weight"),
        _stored(parts, f"{prefix}.LayerNorm.bias"),
        axis=-1,
        epsilon=_EPSILON,
    )


def _layer(parts: Parts, layer: int, hidden: str) -> str:
    graph, tensors = parts.graph, parts.tensors
    prefix = f"encoder.layer.{layer}"
    projections = [f"{prefix}.attention.self.{name}" for name in ("query", "key", "value")]
    weights = np.concatenate([tensors[f"{name}.weight"].T for name in projections], axis=1)
    bias = graph.constant(f"{prefix}.attention.bias", np.concatenate([tensors[f"{name}.bias"] for name in projections]))
    context = parts.attention(layer, hidden, weights, bias)
    attended = parts.attention_output(layer, context, tensors[f"{prefix}.attention.output.dense.weight"].T)
    hidden = _add_and_normalise(parts, f"{prefix}.attention.output", attended, hidden)

    widened = parts.feed_forward_input(layer, hidden, tensors[f"{prefix}.intermediate.dense.weight"].T)
    inner = graph.fused("BiasGelu", widened, _stored(parts, f"{prefix}.intermediate.dense.bias"))
    narrowed = parts.feed_forward_output(layer, inner, tensors[f"{prefix}.output.dense.weight"].T)
    return _add_and_normalise(parts, f"{prefix}.output", narrowed, hidden)


def _add_and_normalise(parts: Parts, prefix: str, change: str, hidden: str) -> str:
    return parts.graph.fused(
        "SkipLayerNormalization",
        change,
        hidden,
        _stored(parts, f"{prefix}.LayerNorm.weight"),
        _stored(parts, f"{prefix}.LayerNorm.bias"),
        _stored(parts, f"{prefix}.dense.bias"),
        epsilon=_EPSILON,
    )


def _stored(parts: Parts, name: str) -> str:
    return parts.graph.constant(name, parts.tensors[name])


class Parts:
    """The word table and the matrix products in 8-bit integers."""

    def __init__(self, graph: GraphWriter, tensors: Tensors, calibration: Calibration) -> None:
        self.graph = graph
        self.tensors = tensors
        self.calibration = calibration

    def words(self, table: NDArray[np.float32]) -> str:
        integers, scales = quantize_rows(table)
        rows = self.graph.node("Gather", self.graph.constant("words", integers), INPUT_IDS)
        row_scales = self.graph.node("Gather", self.graph.constant("words.scale", scales), INPUT_IDS)
        return self.graph.node("Mul", self.graph.node("Cast", rows, to=FLOAT), row_scales)

    def attention(self, layer: int, hidden: str, weights: NDArray[np.float32], bias: str) -> str:
        rounded, scale, zero = self._rounded(self.calibration.attention_input, hidden)
        stored, column_scales = self._stored(f"attention.{layer}", self.calibration.attention_input, weights)
        return self.graph.fused(
            "QAttention", rounded, stored, bias, scale, column_scales, INPUT_MASK, zero, num_heads=HEADS
        )

    def attention_output(self, layer: int, context: str, weights: NDArray[np.float32]) -> str:
        return self.product(f"attention_output.{layer}", self.calibration.attention_output, context, weights)

    def feed_forward_input(self, layer: int, hidden: str, weights: NDArray[np.float32]) -> str:
        return self.product(f"feed_forward_input.{layer}", self.calibration.feed_forward_input, hidden, weights)

    def feed_forward_output(self, layer: int, inner: str, weights: NDArray[np.float32]) -> str:
        name = f"feed_forward_output.{layer}"
        channels = list(self.calibration.float_channels.get(layer, ()))
        if not channels:
            return self.product(name, self.calibration.feed_forward_inner, inner, weights)
        others = weights.copy()
        others[channels] = 0
        product = self.product(name, self.calibration.feed_forward_inner, inner, others)
        picked = self.graph.node("Gather", inner, self.graph.constant(f"{name}.channels", np.array(channels)), axis=2)
        beside = self.graph.node("MatMul", picked, self.graph.constant(f"{name}.float", weights[channels]))
        return self.graph.node("Add", product, beside)

    def product(self, name: str, activation: Activation, left: str, weights: NDArray[np.float32]) -> str:
        rounded, scale, zero = self._rounded(activation, left)
        stored, column_scales = self._stored(name, activation, weights)
        return self.graph.fused("MatMulIntegerToFloat", rounded, stored, scale, column_scales, zero)

    def _rounded(self, activation: Activation, values: str) -> tuple[str, str, str]:
        name = activation.name
        if activation.large:
            shrink = self.graph.constant(f"{name}.shrink", 1 / activation.stretch(WIDTH))
            values = self.graph.node("Mul", values, shrink)
        scale = self.graph.constant(f"{name}.scale", np.array(activation.scale))
        zero = self.graph.constant(f"{name}.zero", np.array(activation.zero_point))
        return self.graph.node("QuantizeLinear", values, scale, zero), scale, zero

    def _stored(self, name: str, activation: Activation, weights: NDArray[np.float32]) -> tuple[str, str]:
        stretched = weights * activation.stretch(len(weights))[:, np.newaxis]
        integers, scales = quantize_columns(stretched)
        return self.graph.constant(name, integers), self.graph.constant(f"{name}.scale", scales)
