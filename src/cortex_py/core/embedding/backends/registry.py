"""The backends by name: which exist, whether each can run here, and how to open one.

Checking availability imports nothing heavy: packages are looked up, not loaded.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...config import Settings, load_settings
from ...errors import ConfigurationError, extra_remedy
from ...jobs import span
from ...paths import expanded
from ..shipped_model import FORMER, RECALL
from .backend import Backend

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "BACKENDS",
    "TracedBackend",
    "available_backends",
    "missing_for_cuda",
    "open_backend",
]

# Name → the packages it needs.
BACKENDS: dict[str, tuple[str, ...]] = {
    "onnx": ("onnxruntime", "numpy"),
    "onnx_folder": ("onnxruntime", "numpy"),
    "sentence_transformers": ("sentence_transformers", "torch"),
    "mlx": ("mlx", "numpy"),
    "openai": ("httpx2", "numpy"),
}

# The others need nothing that Cortex does not bring.
_EXTRAS = {"sentence_transformers": "sentence-transformers", "mlx": "mlx"}

_WINDOWS = sys.platform == "win32"
_DRIVER = "nvcuda.dll" if _WINDOWS else "libcuda.so.1"
# Package → the part of it that is there only in builds for CUDA, and how to come by such a build.
_CUDA_PARTS = {
    "onnxruntime": (
        "capi/onnxruntime_providers_cuda.dll" if _WINDOWS else "capi/libonnxruntime_providers_cuda.so",
        "Install onnxruntime-gpu in place of onnxruntime",
    ),
    "torch": (
        "lib/torch_cuda.dll" if _WINDOWS else "lib/libtorch_cuda.so",
        "Install a build of torch for CUDA",
    ),
}


def available_backends(used: str | None = None) -> dict[str, bool]:
    """Whether each backend has here what it needs. A remote one needs an endpoint, so it must be the one `used`."""
    return {name: _missing(name) is None and (name != "openai" or name == used) for name in BACKENDS}


def missing_for_cuda(package: str) -> tuple[str, str] | None:
    """What a package lacks to compute on an NVIDIA card, with the remedy; none if it can be tried."""
    part, remedy = _CUDA_PARTS[package]
    spec = find_spec(package)
    if not any((Path(folder) / part).is_file() for folder in (spec and spec.submodule_search_locations) or ()):
        return f"the installed {package} is built without it (no {Path(part).name})", remedy
    try:
        ctypes.CDLL(_DRIVER)
    except OSError:
        return f"there is no NVIDIA driver ({_DRIVER})", "Install the driver"
    return None


def open_backend(name: str | None = None, settings: Settings | None = None) -> Backend:
    """A backend by its name, or the folder of a model in ONNX form; without a name, the configured one."""
    chosen = settings or load_settings()
    wanted = name or chosen.embedding_backend
    folder = None
    if wanted not in BACKENDS:
        folder = expanded(wanted)
        if not folder.is_dir():
            raise ConfigurationError(
                f"Unknown embedding backend {wanted[:80]!r}.",
                remedy=f"Choose one of {', '.join(BACKENDS)}, or the folder of an ONNX model.",
                field="embedding_backend",
            )
        wanted = "onnx_folder"
    _check_installed(wanted)
    _check_device(wanted, chosen)
    backend = _opened(wanted, chosen, folder)
    if not chosen.otel_endpoint:
        return backend

    return TracedBackend(backend)


def _opened(name: str, chosen: Settings, folder: Path | None) -> Backend:
    threads = chosen.threads or None
    match name:
        case "sentence_transformers":
            from .sentence_transformers import SentenceTransformersBackend

            return SentenceTransformersBackend(chosen.embedding_model, chosen.embedding_device, threads)
        case "mlx":
            from .mlx import MlxBackend

            return MlxBackend(chosen.embedding_model)
        case "openai":
            from .openai import OpenAIBackend

            return OpenAIBackend(
                _needed(chosen.embedding_url, name, "embedding_url"),
                _needed(chosen.embedding_model, name, "embedding_model"),
                api_key=chosen.embedding_api_key,
                dimensions=chosen.embedding_dimensions,
            )
        case "onnx_folder":
            from .onnx_folder import OnnxFolderBackend

            place = folder or expanded(_needed(chosen.embedding_model, name, "embedding_model"))
            return OnnxFolderBackend(place, threads, chosen.embedding_device)
    from .onnx import OnnxBackend

    return OnnxBackend(threads=threads, model=_onnx_model(chosen.embedding_model or RECALL))


def _onnx_model(name: str) -> str:
    bare = name.removeprefix("sentence-transformers/")
    # The former model opens and then says that it is gone, so that a store that names it is searched by words.
    if bare not in (RECALL, FORMER):
        raise ConfigurationError(
            f"The backend onnx has no model {name[:80]!r}.",
            remedy=f"Set embedding_model to {RECALL}, or choose another embedding_backend.",
            field="embedding_model",
        )
    return bare


def _needed(value: str | None, name: str, setting: str) -> str:
    if not value:
        raise ConfigurationError(
            f"The embedding backend {name!r} needs the setting {setting}.",
            remedy=f"Set {setting}.",
            field=setting,
        )
    return value


def _check_installed(name: str) -> None:
    missing = _missing(name)
    if missing == "Apple silicon":
        raise ConfigurationError(
            f"The embedding backend {name!r} runs on Apple silicon only; this machine is {platform.machine()}.",
            remedy="Choose another backend.",
            field="embedding_backend",
        )
    if missing:
        raise ConfigurationError(
            f"The embedding backend {name!r} needs the package {missing!r}.",
            remedy=extra_remedy(_EXTRAS[name]) if name in _EXTRAS else f"Install it: pip install {missing}.",
            field="embedding_backend",
        )


def _missing(name: str) -> str | None:
    """The first thing a backend needs and does not have."""
    if name == "mlx" and not (sys.platform == "darwin" and platform.machine() == "arm64"):
        return "Apple silicon"
    return next((package for package in BACKENDS[name] if not find_spec(package)), None)


def _check_device(name: str, chosen: Settings) -> None:
    if chosen.embedding_device == "cpu":
        return
    package = next((package for package in BACKENDS[name] if package in _CUDA_PARTS), None)
    if package is None:
        problem, remedy = f"the backend {name!r} does not use it", "Choose another backend"
    elif name == "onnx":
        problem, remedy = "the model that comes with Cortex is made for processors", "Choose another backend"
    else:
        found = missing_for_cuda(package)
        if found is None:
            return
        problem, remedy = found
    raise ConfigurationError(
        f"The embedding device {chosen.embedding_device!r} cannot be used: {problem}.",
        remedy=f"{remedy}, or set embedding_device to cpu.",
        field="embedding_device",
    )


# -- Tracing: how many texts were embedded, never which --------------------------------------------


class TracedBackend:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def name(self) -> str:
        return self._backend.name

    @property
    def model_name(self) -> str:
        return self._backend.model_name

    @property
    def dimensions(self) -> int:
        return self._backend.dimensions

    @property
    def max_tokens(self) -> int:
        return self._backend.max_tokens

    @property
    def fingerprint(self) -> str:
        return self._backend.fingerprint

    @property
    def loaded(self) -> bool:
        return self._backend.loaded

    def count_tokens(self, text: str) -> int:
        return self._backend.count_tokens(text)

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        with span("embed", {"cortex.embedding.texts": len(texts), "cortex.embedding.backend": self.name}):
            return self._backend.embed(texts, normalize=normalize)

    def __getattr__(self, name: str) -> Any:
        # What a backend can beyond the protocol, such as closing.
        return getattr(self._backend, name)
