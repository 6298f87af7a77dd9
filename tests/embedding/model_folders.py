"""Small models as hubs hand them out, with weights drawn by chance: as safetensors, and as exporters write ONNX."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnx_writer import FLOAT, GraphWriter, Message
from tokenizers import BertWordPieceTokenizer

from cortex_py.core.embedding.shipped_model import RECALL, SHIPPED

INT64 = 7
WIDTH = 32
VOCABULARY = SHIPPED / RECALL / "vocab.txt"
_WORDS = 30_522
_POSITIONS = 512
_INNER = 64
_DESCRIPTIONS = {
    "config.json": {
        "architectures": ["BertModel"],
        "hidden_act": "gelu",
        "hidden_size": WIDTH,
        "intermediate_size": _INNER,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": _POSITIONS,
        "model_type": "bert",
        "num_attention_heads": 4,
        "num_hidden_layers": 1,
        "pad_token_id": 0,
        "type_vocab_size": 2,
        "vocab_size": _WORDS,
    },
    "modules.json": [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
    ],
    "sentence_bert_config.json": {"max_seq_length": 256, "do_lower_case": False},
    "tokenizer_config.json": {"do_lower_case": True, "model_max_length": 512, "tokenizer_class": "BertTokenizer"},
    "1_Pooling/config.json": {"pooling_mode_mean_tokens": True, "word_embedding_dimension": WIDTH},
}


def describe(folder: Path) -> Path:
    """The files beside the weights."""
    for name, content in _DESCRIPTIONS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), "utf-8")
    shutil.copy(VOCABULARY, folder / "vocab.txt")
    BertWordPieceTokenizer(str(VOCABULARY), lowercase=True).save(str(folder / "tokenizer.json"))
    return folder


def with_weights(folder: Path) -> Path:
    """A BERT model of one layer."""
    describe(folder)
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    parts: list[bytes] = []
    start = 0
    for name, values in _weights():
        parts.append(values.tobytes())
        end = start + len(parts[-1])
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [start, end]}
        start = end
    described = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(described)) + described + b"".join(parts))
    return folder


def _weights() -> Iterator[tuple[str, NDArray[np.float32]]]:
    random = np.random.default_rng(0)
    sizes = {"word": _WORDS, "position": _POSITIONS, "token_type": 2}
    for name, size in sizes.items():
        yield f"embeddings.{name}_embeddings.weight", random.normal(0, 0.5, (size, WIDTH)).astype(np.float32)
    layer = "encoder.layer.0"
    products = {
        **{f"{layer}.attention.self.{name}": (WIDTH, WIDTH) for name in ("query", "key", "value")},
        f"{layer}.attention.output.dense": (WIDTH, WIDTH),
        f"{layer}.intermediate.dense": (_INNER, WIDTH),
        f"{layer}.output.dense": (WIDTH, _INNER),
        "pooler.dense": (WIDTH, WIDTH),
    }
    for name, shape in products.items():
        yield f"{name}.weight", random.normal(0, 0.2, shape).astype(np.float32)
        yield f"{name}.bias", np.zeros(shape[0], np.float32)
    for name in ("embeddings", f"{layer}.attention.output", f"{layer}.output"):
        yield f"{name}.LayerNorm.weight", np.ones(WIDTH, np.float32)
        yield f"{name}.LayerNorm.bias", np.zeros(WIDTH, np.float32)


def word_table() -> NDArray[np.float32]:
    """The vector of each word in the ONNX model: the mean of its words' vectors is the vector of a text."""
    return np.random.default_rng(0).normal(0, 1, (_WORDS, WIDTH)).astype(np.float32)


def export(folder: Path, place: str = "model.onnx") -> Path:
    """A model in the form of the usual exporters: three 64-bit inputs, one vector for each token."""
    describe(folder)
    (folder / place).parent.mkdir(exist_ok=True)
    (folder / place).write_bytes(b"".join(_token_graph().parts()))
    return folder


def _token_graph() -> Message:
    graph = GraphWriter()
    hidden = graph.node("Gather", graph.constant("words", word_table()), "input_ids")
    shape = ("texts", "tokens")
    inputs = [(name, INT64, shape) for name in ("input_ids", "attention_mask", "token_type_ids")]
    return graph.model(inputs, (hidden, FLOAT, (*shape, WIDTH)))
