"""The backends by name: which there are, whether each can run here, and how to open one.

Asking whether a backend is available imports nothing heavy: packages are looked for, not loaded.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from importlib.util import find_spec
from pathlib import Path

from ..config import Settings, load_settings
from ..errors import ConfigurationError
from ..paths import expanded
from .backend import Backend

__all__ = ["BACKENDS", "available_backends", "missing_for_cuda", "open_backend"]

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


def available_backends() -> dict[str, bool]:
    """Whether each backend has here what it needs."""
    return {name: _missing(name) is None for name in BACKENDS}


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
    from .traced_backend import TracedBackend

    return TracedBackend(backend)


def _opened(name: str, chosen: Settings, folder: Path | None) -> Backend:
    threads = chosen.threads or None
    match name:
        case "sentence_transformers":
            from .sentence_transformers_backend import SentenceTransformersBackend

            return SentenceTransformersBackend(chosen.embedding_model, chosen.embedding_device, threads)
        case "mlx":
            from .mlx_backend import MlxBackend

            return MlxBackend(chosen.embedding_model)
        case "openai":
            from .openai_backend import OpenAIBackend

            return OpenAIBackend(
                _needed(chosen.embedding_url, name, "embedding_url"),
                _needed(chosen.embedding_model, name, "embedding_model"),
                api_key=chosen.embedding_api_key,
                dimensions=chosen.embedding_dimensions,
            )
        case "onnx_folder":
            from .onnx_folder_backend import OnnxFolderBackend

            place = folder or expanded(_needed(chosen.embedding_model, name, "embedding_model"))
            return OnnxFolderBackend(place, threads, chosen.embedding_device)
    from .onnx_backend import OnnxBackend

    return OnnxBackend(chosen.models_dir, precision=chosen.precision, threads=threads, device=chosen.embedding_device)


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
        wanted = f"'cortex-py[{_EXTRAS[name]}]'" if name in _EXTRAS else missing
        raise ConfigurationError(
            f"The embedding backend {name!r} needs the package {missing!r}.",
            remedy=f"Install it: pip install {wanted}.",
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
    elif name == "onnx" and chosen.precision == "int8":
        problem, remedy = "the 8-bit model is made for processors", "Set precision to fp32"
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
