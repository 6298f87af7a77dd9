r"""Writes a trained encoder in the form that ships: 8-bit graph, vocabulary, manifest.

    python training/cortex_recall/export.py --folder FOLDER --data DATA --weights OUT/minilm-b \
        --models MODELS [--base-share 0.2]

FOLDER holds the packed base, DATA is the training data, on whose texts the activations are measured. `--base-share`
mixes the base's weights into the trained ones.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

from encoder import LAYERS, Base, Encoder, read_base, read_parts
from onnx_graph import integer_graph
from onnx_writer import Message
from quantization import MINILM, Activation, Calibration

from cortex_py.core.embedding.shipped_model import DIMENSIONS, RECALL, ModelManifest

# Increase this by hand whenever the graph computes other numbers from the same weights.
RECIPE = 1
TEXTS = 1500
# Channels of the feed-forward part beyond this are multiplied in float; all others stay well below.
FLOAT_FROM = 11.0
_SEGMENT = "embeddings.token_type_embeddings.weight"


def mixed(base: Base, trained: dict[str, np.ndarray[Any, Any]], base_share: float) -> Base:
    """The base with the trained layers in place of its own, or an average of the two."""
    own = dict(base.tensors)
    # Training keeps the one segment's vector inside the positions.
    own["embeddings.position_embeddings.weight"] = (own["embeddings.position_embeddings.weight"] + own[_SEGMENT][0])[
        :256
    ]
    own[_SEGMENT] = np.zeros_like(own[_SEGMENT])
    for name, values in trained.items():
        own[name] = base_share * own[name] + (1 - base_share) * values.astype(np.float32)
    return replace(base, tensors={name: np.asarray(values, np.float32) for name, values in own.items()})


def sample(data: Path, base: Base) -> list[list[int]]:
    """Token ids of texts from every collection, of single words and of random sequences."""
    with lzma.open(data, "rt", encoding="utf-8") as lines:
        collections = [json.loads(line) for line in lines]
    random = np.random.default_rng(0)
    texts = []
    for _ in range(TEXTS):
        records = collections[random.integers(len(collections))]["records"]
        texts.append(records[random.integers(len(records))][0])
    found = base.encode(texts, 256)
    words = len(base.tensors["embeddings.word_embeddings.weight"])
    for length in [1] * 400 + [6] * 100 + [30] * 30 + [120] * 8 + [254] * 4:
        found.append([101, *random.integers(999, words, length).tolist(), 102])
    return found


def calibrate(base: Base, texts: list[list[int]]) -> Calibration:
    """The limits of MiniLM with the channels of these weights that reach beyond them."""
    model = Encoder(base).eval()
    largest: dict[tuple[str, int], torch.Tensor] = {}

    def note(site: str, layer: int) -> Any:
        def hook(_: Any, given: tuple[torch.Tensor, ...]) -> None:
            found = given[0].abs().amax((0, 1))
            largest[site, layer] = torch.maximum(largest.get((site, layer), found), found)

        return hook

    for n, layer in enumerate(model.layers):
        layer.qkv.register_forward_pre_hook(note("attention_input", n))
        layer.attended.register_forward_pre_hook(note("attention_output", n))
        layer.inner.register_forward_pre_hook(note("feed_forward_input", n))
        layer.outer.register_forward_pre_hook(note("feed_forward_inner", n))
    with torch.inference_mode():
        # Only texts of one length go through together: padding has activations too.
        for length in sorted({len(ids) for ids in texts}):
            same = [ids for ids in texts if len(ids) == length]
            for first in range(0, len(same), 32):
                model(torch.tensor(same[first : first + 32]))

    def site(limits: Activation) -> Activation:
        over = torch.stack([largest[limits.name, n] for n in range(LAYERS)]).amax(0)
        large = {int(c): round(float(over[c]), 1) for c in torch.nonzero(over > limits.high).flatten()}
        return replace(limits, large=large)

    return Calibration(
        attention_input=site(MINILM.attention_input),
        attention_output=site(MINILM.attention_output),
        feed_forward_input=site(MINILM.feed_forward_input),
        feed_forward_inner=MINILM.feed_forward_inner,
        float_channels={
            n: tuple(torch.nonzero(largest["feed_forward_inner", n] > FLOAT_FROM).flatten().tolist())
            for n in range(LAYERS)
        },
    )


def write_model(folder: Path, graph: Message, vocabulary: bytes, weights_sha256: str) -> ModelManifest:
    """Write a graph, its vocabulary and its manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    content = b"".join(graph.parts())
    (folder / "int8.onnx").write_bytes(content)
    (folder / "vocab.txt").write_bytes(vocabulary)
    manifest = ModelManifest(
        name=RECALL,
        weights_sha256=weights_sha256,
        precision="int8",
        recipe=RECIPE,
        dimensions=DIMENSIONS,
        graph_sha256=hashlib.sha256(content).hexdigest(),
        graph_bytes=len(content),
        vocabulary_sha256=hashlib.sha256(vocabulary).hexdigest(),
    )
    (folder / "int8.json").write_text(json.dumps(asdict(manifest), indent=2))
    return manifest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, required=True, help="where the packed base is")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True, help="the trained weights, without .part0")
    parser.add_argument("--models", type=Path, required=True, help="the model's folder is made in here")
    parser.add_argument("--base-share", type=float, default=0.0)
    given = parser.parse_args()
    base = mixed(read_base("minilm", given.folder), read_parts(given.weights), given.base_share)
    calibration = calibrate(base, sample(given.data, base))
    print(calibration)
    digest = hashlib.sha256()
    for name in sorted(base.tensors):
        digest.update(name.encode() + base.tensors[name].astype("<f4").tobytes())
    with np.load(given.folder / "minilm.npz") as kept:
        vocabulary = bytes(kept["vocabulary"])
    weights = digest.hexdigest()
    print(write_model(given.models / RECALL, integer_graph(base.tensors, calibration), vocabulary, weights))


if __name__ == "__main__":
    main()
