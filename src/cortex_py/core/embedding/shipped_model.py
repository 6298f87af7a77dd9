"""The files of the model that comes with the package: graph, vocabulary and manifest.

    models/cortex-recall/int8.onnx  int8.json  vocab.txt

The manifest names the digests of the other two; `training/cortex_recall` writes all three.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import ModelCorrupt, ModelMissing
from ..paths import open_regular, read_whole

__all__ = [
    "DIMENSIONS",
    "FORMER",
    "MAX_TOKENS",
    "RECALL",
    "SHIPPED",
    "ModelManifest",
    "checked_graph",
    "read_manifest",
    "read_vocabulary",
]

RECALL = "cortex-recall"
# Earlier versions installed it on request. Its name may still stand in settings, and its vectors in stores.
FORMER = "all-MiniLM-L6-v2"
SHIPPED = Path(__file__).parent / "models"
DIMENSIONS = 384
MAX_TOKENS = 256

_MOST_MANIFEST = 100_000
_INSTALL_CORTEX = "It comes with the package: install Cortex again."
_FORMER_GONE = (
    f"Remove embedding_model from the settings: Cortex then embeds everything again with {RECALL}. "
    f"To keep {FORMER}, set embedding_backend to its folder in ONNX form and run `cortex reindex`."
)


@dataclass(frozen=True, slots=True)
class ModelManifest:
    """What the files are; `fingerprint` is stored with every vector of the graph."""

    name: str
    weights_sha256: str
    precision: str
    recipe: int
    dimensions: int
    graph_sha256: str
    graph_bytes: int
    vocabulary_sha256: str

    @property
    def fingerprint(self) -> str:
        return f"{self.name}:{self.weights_sha256[:12]}:{self.precision}.{self.recipe}"


def read_manifest(models: Path = SHIPPED, name: str = RECALL) -> ModelManifest:
    """Raises ModelMissing if the model is not in the folder, ModelCorrupt if the manifest cannot be read."""
    path = models / name / "int8.json"
    try:
        return ModelManifest(**json.loads(read_whole(path, _MOST_MANIFEST)))
    except (FileNotFoundError, NotADirectoryError) as error:
        if name == FORMER:
            raise ModelMissing(f"The model {FORMER} is not part of Cortex any more.", remedy=_FORMER_GONE) from error
        raise ModelMissing(f"The model {name} is not installed in {models}.", remedy=_INSTALL_CORTEX) from error
    except (OSError, ValueError, TypeError) as error:
        raise ModelCorrupt(f"The model's manifest {path} cannot be read.", remedy=_INSTALL_CORTEX) from error


def checked_graph(models: Path, manifest: ModelManifest) -> Path:
    """The graph's path, after its digest was checked; takes about 20 ms."""
    path = models / manifest.name / "int8.onnx"
    with _readable(path) as file:
        _compare(path, hashlib.file_digest(file, "sha256").hexdigest(), manifest.graph_sha256)
    return path


def read_vocabulary(models: Path, manifest: ModelManifest) -> list[str]:
    """The pieces in the order of their ids."""
    path = models / manifest.name / "vocab.txt"
    with _readable(path) as file:
        content = file.read()
    _compare(path, hashlib.sha256(content).hexdigest(), manifest.vocabulary_sha256)
    # Some pieces are line breaks to `splitlines`.
    return content.decode().removesuffix("\n").split("\n")


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[io.BufferedReader]:
    try:
        with open_regular(path) as file:
            yield file
    except OSError as error:
        raise ModelCorrupt(
            f"The model file {path} cannot be read: {error.strerror}.", remedy=_INSTALL_CORTEX
        ) from error


def _compare(path: Path, digest: str, expected: str) -> None:
    if digest != expected:
        raise ModelCorrupt(f"The model file {path} is damaged.", remedy=_INSTALL_CORTEX)
