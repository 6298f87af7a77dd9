"""Which backends there are, which can run here, what is said where one cannot; nothing heavy is imported to know."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from model_folders import WIDTH, describe, export

from cortex_py.core.config import Settings, load_settings
from cortex_py.core.embedding.backends import registry as backends
from cortex_py.core.embedding.backends.onnx import OnnxBackend
from cortex_py.core.embedding.backends.onnx_folder import OnnxFolderBackend
from cortex_py.core.embedding.backends.openai import OpenAIBackend
from cortex_py.core.embedding.backends.registry import BACKENDS, available_backends, missing_for_cuda, open_backend
from cortex_py.core.embedding.backends.sentence_transformers import SentenceTransformersBackend
from cortex_py.core.errors import ConfigurationError, EmbeddingError

HEAVY = {
    "numpy",
    "onnxruntime",
    "torch",
    "sentence_transformers",
    "transformers",
    "tokenizers",
    "huggingface_hub",
    "mlx",
    "httpx2",
    "pydantic",
    "apsw",
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(tmp_path_factory.mktemp("exported"))


@pytest.fixture
def everything_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "find_spec", lambda name: ModuleSpec(name, None))


def _settings(**values: Any) -> Settings:
    return load_settings(**values)


def _loaded_after(code: str) -> set[str]:
    script = f"import json, sys\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout.splitlines()[-1]))


def test_the_probes_tell_what_is_so() -> None:
    apple = sys.platform == "darwin" and platform.machine() == "arm64"
    assert available_backends() == {
        "onnx": True,
        "onnx_folder": True,
        "sentence_transformers": bool(find_spec("sentence_transformers") and find_spec("torch")),
        "mlx": apple and bool(find_spec("mlx")),
        "openai": False,
    }
    # It needs an endpoint, which only the backend in use has.
    assert available_backends("openai")["openai"] is bool(find_spec("httpx2"))


def test_probing_imports_nothing_heavy() -> None:
    code = (
        "from cortex_py.core.embedding.backends.registry import available_backends, missing_for_cuda\n"
        "available_backends(), missing_for_cuda('onnxruntime'), missing_for_cuda('torch')"
    )
    assert not _loaded_after(code) & HEAVY


@pytest.mark.slow
def test_opening_a_backend_and_asking_about_it_imports_nothing_heavy(exported: Path) -> None:
    code = f"""
from cortex_py.core.config import load_settings
from cortex_py.core.embedding.backends.registry import open_backend
for more in ({{}}, {{"embedding_backend": {str(exported)!r}}},
             {{"embedding_backend": "openai", "embedding_url": "http://localhost/v1", "embedding_model": "m"}}):
    backend = open_backend(settings=load_settings(**more))
    backend.dimensions, backend.max_tokens, backend.fingerprint, backend.count_tokens("text"), backend.model_name
    assert not backend.loaded
"""
    assert not _loaded_after(code) & HEAVY


def test_information_and_health_load_nothing(exported: Path) -> None:
    code = f"""
from cortex_py.core.embedding.service import EmbeddingService
for backend in ("onnx", {str(exported)!r}):
    with EmbeddingService(backend=backend) as service:
        info, health = service.info(), service.health()
        assert not info.model_loaded and info.dimensions and info.fingerprint
        assert info.extras["onnx_available"] and "mlx_available" in info.extras
        assert health.status == "healthy" and set(health.backends_available) == {set(BACKENDS)!r}
"""
    assert not _loaded_after(code) & {"onnxruntime", "torch", "tokenizers", "httpx2"}


@pytest.mark.parametrize("name", ["onnx", "sentence_transformers", "openai"])
def test_a_backend_without_its_package_is_not_available_and_says_which(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = BACKENDS[name][0]
    monkeypatch.setattr(backends, "find_spec", lambda package: None if package == missing else find_spec("json"))
    assert not available_backends(name)[name]
    with pytest.raises(ConfigurationError, match=f"'{name}' needs the package '{missing}'.*pip install") as caught:
        open_backend(name)
    assert caught.value.field == "embedding_backend"


def test_an_extra_is_named_as_pip_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"pip install '\.\[sentence-transformers\]'"):
        open_backend("sentence_transformers")


@pytest.mark.usefixtures("everything_installed")
@pytest.mark.parametrize(("system", "machine"), [("linux", "x86_64"), ("darwin", "x86_64"), ("linux", "arm64")])
def test_mlx_is_for_apple_silicon_even_where_it_is_installed(
    system: str, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert not available_backends()["mlx"]
    with pytest.raises(ConfigurationError, match=f"Apple silicon only; this machine is {machine}"):
        open_backend("mlx")


@pytest.mark.usefixtures("everything_installed")
def test_mlx_is_available_on_apple_silicon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert available_backends()["mlx"]


def test_each_name_opens_its_backend(exported: Path) -> None:
    assert isinstance(open_backend(), OnnxBackend)
    for settings in (
        _settings(embedding_backend=str(exported)),
        _settings(embedding_backend="onnx_folder", embedding_model=str(exported)),
    ):
        assert isinstance(open_backend(settings=settings), OnnxFolderBackend)
    remote = _settings(
        embedding_backend="openai", embedding_url="http://h/v1", embedding_model="m", embedding_dimensions=8
    )
    opened = open_backend(settings=remote)
    assert isinstance(opened, OpenAIBackend)
    assert (opened.fingerprint, opened.dimensions) == ("openai:h:m:8", 8)


@pytest.mark.usefixtures("everything_installed")
def test_settings_reach_the_backend(tmp_path: Path) -> None:
    folder = describe(tmp_path)
    backend = open_backend("sentence_transformers", _settings(embedding_model=str(folder), threads=3))
    assert isinstance(backend, SentenceTransformersBackend)
    assert (backend.model_name, backend.dimensions, backend.max_tokens) == (folder.name, WIDTH, 256)


def test_a_name_that_is_neither_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="Unknown embedding backend 'onxx'") as caught:
        open_backend("onxx")
    assert "sentence_transformers" in str(caught.value.remedy)


@pytest.mark.parametrize("missing", ["embedding_url", "embedding_model"])
def test_an_endpoint_needs_its_settings(missing: str) -> None:
    values = {"embedding_url": "http://h/v1", "embedding_model": "m"}
    del values[missing]
    with pytest.raises(ConfigurationError, match=f"needs the setting {missing}") as caught:
        open_backend("openai", _settings(**values))
    assert caught.value.field == missing


# The card.


@pytest.fixture
def cuda_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Packages that look like builds for CUDA."""
    for package, (part, _) in backends._CUDA_PARTS.items():
        path = tmp_path / package / part
        path.parent.mkdir(parents=True)
        path.touch()

    def found(name: str) -> ModuleSpec:
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(tmp_path / name)]
        return spec

    monkeypatch.setattr(backends, "find_spec", found)
    return tmp_path


def _no_driver(name: str) -> None:
    raise OSError(f"{name}: cannot open shared object file")


def test_a_build_without_cuda_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = ModuleSpec("onnxruntime", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(backends, "find_spec", lambda _: spec)
    with pytest.raises(ConfigurationError, match=r"onnxruntime is built without it.*onnxruntime-gpu") as caught:
        open_backend("onnx_folder", _settings(embedding_device="cuda"))
    assert caught.value.field == "embedding_device"
    with pytest.raises(ConfigurationError, match=r"torch is built without it.*build of torch for CUDA"):
        open_backend("sentence_transformers", _settings(embedding_device="cuda"))


@pytest.mark.usefixtures("cuda_builds")
def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends.ctypes, "CDLL", _no_driver)
    for name in ("onnx_folder", "sentence_transformers"):
        with pytest.raises(ConfigurationError, match=r"no NVIDIA driver \((libcuda\.so\.1|nvcuda\.dll)\)"):
            open_backend(name, _settings(embedding_device="cuda"))


@pytest.mark.slow
@pytest.mark.usefixtures("cuda_builds")
def test_where_all_is_there_the_backend_is_for_the_card(monkeypatch: pytest.MonkeyPatch, exported: Path) -> None:
    monkeypatch.setattr(backends.ctypes, "CDLL", lambda _: object())
    assert missing_for_cuda("torch") is None
    on_card = open_backend(str(exported), _settings(embedding_device="cuda"))
    assert on_card.fingerprint == open_backend(str(exported)).fingerprint + ":cuda"
    assert not on_card.loaded


@pytest.mark.usefixtures("cuda_builds")
def test_the_shipped_model_is_not_for_cards() -> None:
    with pytest.raises(ConfigurationError, match=r"comes with Cortex is made for processors.*another backend"):
        open_backend("onnx", _settings(embedding_device="cuda"))


def test_a_backend_that_uses_no_card_says_so() -> None:
    settings = _settings(embedding_device="cuda", embedding_url="http://h/v1", embedding_model="m")
    with pytest.raises(ConfigurationError, match="'openai' does not use it"):
        open_backend("openai", settings)


@pytest.mark.skipif(missing_for_cuda("onnxruntime") is None, reason="this machine can compute on a card")
def test_a_card_that_does_not_start_is_an_error_not_a_slow_answer(exported: Path) -> None:
    backend = OnnxFolderBackend(exported, device="cuda")
    with pytest.raises(EmbeddingError, match="CUDA provider did not start"):
        backend.embed(["x"])
    assert not backend.loaded
