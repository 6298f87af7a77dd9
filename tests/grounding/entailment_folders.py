"""Folders with a small entailment model: "yes" in a passage supports any claim, "no" contradicts it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from onnx_writer import FLOAT, GraphWriter
from tokenizers import Tokenizer, models, pre_tokenizers, processors

INT64 = 7
CLS, SEP, PAD, YES, NO, WORD = range(6)
VOCABULARY = {"<cls>": CLS, "<sep>": SEP, "<pad>": PAD, "yes": YES, "no": NO, "word": WORD}
NAMES = ("input_ids", "attention_mask", "token_type_ids")
NLI = {"0": "entailment", "1": "neutral", "2": "contradiction"}
# What each word of a passage adds to the three numbers. Padding shouts, so that a test hears it.
TABLE = {YES: (3.0, 0.0, 0.0), NO: (0.0, 0.0, 4.0), PAD: (50.0, 50.0, 100.0)}


def _table(rows: Mapping[int, Sequence[float]], width: int) -> np.ndarray:
    table = np.zeros((len(VOCABULARY), width), np.float32)
    for row, numbers in rows.items():
        table[row] = numbers[:width]
    return table


def write_graph(
    folder: Path,
    rows: Mapping[int, Sequence[float]] = TABLE,
    *,
    width: int = 3,
    inputs: Sequence[str] = NAMES,
    element: int = INT64,
    shape: Sequence[str | int] = ("texts", "tokens"),
    declared: Sequence[str | int] | None = None,
    flat: bool = False,
) -> None:
    """A graph that adds up what the words of the first text say; those of the second count for nothing."""
    graph = GraphWriter()
    axis = graph.constant("axis", np.array([2], np.int64))
    told = graph.node("Gather", graph.constant("table", _table(rows, width)), "input_ids", axis=0)
    if "attention_mask" in inputs:
        told = graph.node("Mul", told, graph.node("Unsqueeze", graph.node("Cast", "attention_mask", to=FLOAT), axis))
    if "token_type_ids" in inputs:
        second = graph.node("Unsqueeze", graph.node("Cast", "token_type_ids", to=FLOAT), axis)
        told = graph.node("Mul", told, graph.node("Sub", graph.constant("one", np.ones(1, np.float32)), second))
    total = graph.node("ReduceSum", told, graph.constant("tokens", np.array([1, 2] if flat else [1])), keepdims=0)
    given = declared or (("texts",) if flat else ("texts", width))
    message = graph.model([(name, element, shape) for name in inputs], (total, FLOAT, given))
    (folder / "model.onnx").write_bytes(b"".join(message.parts()))


def write_config(folder: Path, labels: object = NLI, **more: object) -> None:
    (folder / "config.json").write_text(json.dumps({"id2label": labels, "pad_token_id": PAD, **more}))


PAIRED = processors.TemplateProcessing(
    single="<cls> $A <sep>",
    pair="<cls> $A <sep> $B:1 <sep>:1",
    special_tokens=[("<cls>", CLS), ("<sep>", SEP)],
)


def write_tokeniser(folder: Path, pairing: processors.PostProcessor = PAIRED) -> None:
    tokeniser = Tokenizer(models.WordLevel(VOCABULARY, unk_token="word"))
    tokeniser.pre_tokenizer = pre_tokenizers.Whitespace()
    tokeniser.post_processor = pairing
    # As files in circulation have it; nothing of this may count.
    tokeniser.enable_truncation(8)
    tokeniser.enable_padding(pad_id=PAD, pad_token="<pad>", length=8)
    tokeniser.save(str(folder / "tokenizer.json"))
