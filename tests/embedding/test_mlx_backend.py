"""The MLX backend: refused where it cannot run, and what its files say."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from model_folders import WIDTH, with_weights

from cortex_py.core.embedding.backends.mlx import MlxBackend
from cortex_py.core.errors import ConfigurationError, ModelCorrupt, ModelMissing

needs_mlx = pytest.mark.skipif(not find_spec("mlx"), reason="MLX is not installed: it is made for Apple silicon")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_weights(tmp_path_factory.mktemp("mlx"))


def test_what_its_files_say_is_known_without_mlx(folder: Path) -> None:
    backend = MlxBackend(str(folder))
    assert (backend.name, backend.model_name) == ("mlx", folder.name)
    assert (backend.dimensions, backend.max_tokens, backend.loaded) == (WIDTH, 256, False)
    assert backend.count_tokens("two words") == 4
    assert backend.fingerprint.startswith(f"mlx:{folder.name}:")


def test_a_model_that_is_not_here_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    for model in (None, "some/model", str(tmp_path)):
        with pytest.raises(ModelMissing) as caught:
            MlxBackend(model)
        assert "hf download" in str(caught.value.remedy)


def test_a_model_of_another_kind_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()
    (tmp_path / "config.json").write_text('{"model_type": "mpnet"}')
    with pytest.raises(ConfigurationError, match="no BERT model"):
        MlxBackend(str(tmp_path))


@needs_mlx
def test_weights_that_do_not_match_are_refused(folder: Path, tmp_path: Path) -> None:
    for name in ("model.safetensors", "vocab.txt"):
        (tmp_path / name).symlink_to(folder / name)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 12}))
    with pytest.raises(ModelCorrupt, match="layers"):
        MlxBackend(str(tmp_path)).embed(["x"])
