"""sentence-transformers as a backend. What needs the library itself is skipped where it is not installed.

It brings torch, a gigabyte and more, so it is no requirement of development. To run all of this, install it
beside the others in an environment of its own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from model_folders import WIDTH, with_weights

from cortex_py.core.embedding.backends.sentence_transformers import SentenceTransformersBackend
from cortex_py.core.errors import EmbeddingError, ModelCorrupt, ModelMissing

# Other makers' libraries warn about themselves and each other.
pytestmark = pytest.mark.filterwarnings("default")
needs_library = pytest.mark.skipif(
    not find_spec("sentence_transformers"),
    reason="sentence-transformers is not installed: it brings torch, which development does not",
)

TEXTS = ["Use PostgreSQL for JSONB", "naïve café", "日本語のテキスト", "", "word " * 300]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_weights(tmp_path_factory.mktemp("hub") / "all-MiniLM-L6-v2")


@pytest.fixture
def own(folder: Path, tmp_path: Path) -> Path:
    shutil.copytree(folder, tmp_path / "own", copy_function=os.link)
    return tmp_path / "own"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of downloads, as the hub's library lays it out."""
    for name in ("SENTENCE_TRANSFORMERS_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    return tmp_path / "hf" / "hub"


def _store(cache: Path, name: str, folder: Path) -> Path:
    stored = cache / f"models--{name.replace('/', '--')}"
    shutil.copytree(folder, stored / "snapshots" / COMMIT, copy_function=os.link)
    (stored / "refs").mkdir()
    (stored / "refs" / "main").write_text(COMMIT)
    return stored / "snapshots" / COMMIT


def _rewrite(path: Path, content: str) -> None:
    path.unlink()
    path.write_text(content)


def test_what_its_files_say_is_known_without_the_library(folder: Path) -> None:
    script = f"""
import json, sys
from cortex_py.core.embedding.backends.sentence_transformers import SentenceTransformersBackend
backend = SentenceTransformersBackend({str(folder)!r})
print(backend.name, backend.model_name, backend.dimensions, backend.max_tokens, backend.loaded)
print(backend.count_tokens("two words"), backend.fingerprint)
print(json.dumps(sorted(name for name in sys.modules if "." not in name)))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    known, counted, modules = run.stdout.splitlines()
    assert known == "sentence_transformers all-MiniLM-L6-v2 32 256 False"
    assert re.fullmatch("4 sentence_transformers:all-MiniLM-L6-v2:[0-9a-f]{16}:float32", counted)
    assert not set(json.loads(modules)) & {"torch", "numpy", "sentence_transformers", "transformers", "tokenizers"}


def test_the_default_model_is_taken_from_the_cache(cache: Path, folder: Path) -> None:
    _store(cache, "sentence-transformers/all-MiniLM-L6-v2", folder)
    backend = SentenceTransformersBackend()
    assert backend.model_name == "sentence-transformers/all-MiniLM-L6-v2"
    assert (backend.dimensions, backend.max_tokens) == (WIDTH, 256)
    assert backend.fingerprint.split(":")[2] == SentenceTransformersBackend(str(folder)).fingerprint.split(":")[2]


def test_a_name_without_owner_is_understood_as_the_library_does(cache: Path, folder: Path) -> None:
    _store(cache, "sentence-transformers/all-MiniLM-L6-v2", folder)
    assert SentenceTransformersBackend("all-MiniLM-L6-v2").dimensions == WIDTH


def test_a_model_that_is_not_here_says_how_to_get_it(cache: Path) -> None:
    backend = SentenceTransformersBackend()
    assert (backend.dimensions, backend.max_tokens, backend.loaded) == (0, 0, False)
    for use in (lambda: backend.fingerprint, lambda: backend.count_tokens("x"), lambda: backend.embed(["x"])):
        with pytest.raises(ModelMissing) as caught:
            use()
        assert "hf download sentence-transformers/all-MiniLM-L6-v2" in str(caught.value.remedy)


@pytest.mark.parametrize("name", [None, "some/model", "models"])
def test_no_model_is_taken_from_the_current_folder(
    cache: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str | None
) -> None:
    """It may be a stranger's repository, and the library runs the code that a folder brings with its model."""
    clone = tmp_path / "clone"
    planted = clone / (name or "sentence-transformers/all-MiniLM-L6-v2")
    planted.parent.mkdir(parents=True)
    shutil.copytree(folder, planted, copy_function=os.link)
    monkeypatch.chdir(clone)
    backend = SentenceTransformersBackend(name)
    assert backend.dimensions == 0
    with pytest.raises(ModelMissing):
        backend.embed(["x"])
    assert SentenceTransformersBackend(str(planted)).dimensions == WIDTH


def test_a_model_that_has_come_since_is_seen(cache: Path, folder: Path) -> None:
    backend = SentenceTransformersBackend("some/model")
    assert backend.dimensions == 0
    _store(cache, "some/model", folder)
    assert backend.dimensions == WIDTH
    assert backend.fingerprint.startswith("sentence_transformers:some/model:")


def test_the_fingerprint_changes_with_whatever_changes_vectors(own: Path) -> None:
    def told() -> str:
        return SentenceTransformersBackend(str(own)).fingerprint

    seen = {told(), SentenceTransformersBackend(str(own), width="float16").fingerprint}
    assert SentenceTransformersBackend(str(own), device="cuda").fingerprint in seen
    (own / "README.md").write_text("words")
    assert told() in seen
    _rewrite(own / "sentence_bert_config.json", '{"max_seq_length": 128}')
    seen.add(told())
    _rewrite(own / "model.safetensors", "other weights")
    seen.add(told())
    assert len(seen) == 4


def test_the_length_of_a_model_with_a_last_layer_is_that_layers(own: Path) -> None:
    modules = [{"type": "x.Transformer", "path": ""}, {"type": "x.Dense", "path": "2_Dense"}]
    _rewrite(own / "modules.json", json.dumps(modules))
    (own / "2_Dense").mkdir()
    (own / "2_Dense" / "config.json").write_text('{"in_features": 384, "out_features": 128}')
    assert SentenceTransformersBackend(str(own)).dimensions == 128


@needs_library
def test_weights_stored_short_are_computed_long(own: Path, folder: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    short = {n: t.half() if t.is_floating_point() else t for n, t in tensors.items()}
    (own / "model.safetensors").unlink()
    save_file(short, own / "model.safetensors", metadata={"format": "pt"})
    backend = SentenceTransformersBackend(str(own))
    found = backend.embed(TEXTS)
    assert {parameter.dtype for parameter in backend._loaded_model().parameters()} == {torch.float32}
    cosines = (found * SentenceTransformersBackend(str(folder)).embed(TEXTS)).sum(axis=1)
    assert 0.9999 < cosines.min() < cosines.max() < 1.00001


@needs_library
def test_half_the_width_is_near(folder: Path) -> None:
    half = SentenceTransformersBackend(str(folder), width="float16").embed(TEXTS)
    assert half.dtype == np.float32
    assert ((half * SentenceTransformersBackend(str(folder)).embed(TEXTS)).sum(axis=1) > 0.9999).all()


@needs_library
def test_a_model_on_the_machine_is_loaded_without_the_network(
    cache: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    _store(cache, "sentence-transformers/all-MiniLM-L6-v2", folder)
    assert SentenceTransformersBackend().embed(["x"]).shape == (1, WIDTH)
    assert SentenceTransformersBackend("sentence-transformers/all-MiniLM-L6-v2").embed(["x"]).shape == (1, WIDTH)


@needs_library
def test_only_a_name_the_user_gave_is_looked_for_elsewhere(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sentence_transformers

    asked = []

    def library(name: str, **options: object) -> object:
        asked.append((name, options["local_files_only"]))
        raise OSError("cannot reach the hub")

    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", library)
    with pytest.raises(ModelMissing):
        SentenceTransformersBackend().embed(["x"])
    assert asked == []
    with pytest.raises(EmbeddingError, match="cannot reach the hub"):
        SentenceTransformersBackend("some/model").embed(["x"])
    assert asked == [("some/model", False)]


@needs_library
def test_a_model_changed_since_the_fingerprint_was_told_is_refused(own: Path) -> None:
    backend = SentenceTransformersBackend(str(own))
    assert backend.fingerprint
    _rewrite(own / "config.json", (own / "config.json").read_text() + " ")
    with pytest.raises(ModelCorrupt, match=r"config\.json changed"):
        backend.embed(["x"])
    assert not backend.loaded


@needs_library
def test_weights_that_are_not_whole_are_an_error(own: Path) -> None:
    _rewrite(own / "model.safetensors", "no weights")
    backend = SentenceTransformersBackend(str(own))
    with pytest.raises(EmbeddingError, match="own"):
        backend.embed(["x"])
    assert not backend.loaded
