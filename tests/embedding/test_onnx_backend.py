"""The backend: shapes, order, batches, laziness, memory, and a model that is not there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex_py.core.clock import Limit, apply_limit
from cortex_py.core.embedding.backends.onnx import OnnxBackend, threads_beside_others
from cortex_py.core.embedding.backends.token_batches import group_by_length
from cortex_py.core.embedding.shipped_model import FORMER, RECALL
from cortex_py.core.errors import DeadlineExceeded, ModelCorrupt, ModelMissing

SENTENCE = "Agents keep decisions, patterns, lessons and the reasons behind them in one place. "
# 3 to about 250 tokens, in no order of length.
MIXED = [f"{n}: " + (SENTENCE * 20)[: n * 37 % 40 * 30] for n in range(20)]


def _same(left: np.ndarray, right: np.ndarray) -> bool:
    return bool((np.abs(left - right) < 1e-4).all())


def test_without_normalising_only_the_length_differs(model: OnnxBackend) -> None:
    raw = model.embed(MIXED[:3], normalize=False)
    lengths = np.linalg.norm(raw, axis=1, keepdims=True)
    assert (np.abs(lengths - 1) > 0.1).all()
    assert _same(raw / lengths, model.embed(MIXED[:3]))


def test_like_texts_lie_closer(model: OnnxBackend) -> None:
    query, near, far = model.embed(
        ["Which database did we choose?", "Use PostgreSQL for JSONB queries.", "The cat sleeps on the sofa."]
    )
    assert query @ near > query @ far + 0.2


def test_tokens_beyond_the_limit_are_not_read(model: OnnxBackend) -> None:
    text = "word " * 400
    assert model.count_tokens("word " * 254) == 256
    assert model.count_tokens(text) == 402
    assert _same(model.embed([text]), model.embed(["word " * 254]))
    assert not _same(model.embed([text]), model.embed(["word " * 100]))


@given(lengths=st.lists(st.integers(2, 256), max_size=80))
def test_batches_take_every_text_once_and_stay_within_their_size(lengths: list[int]) -> None:
    groups = list(group_by_length(lengths, 1024))
    assert sorted(index for group in groups for index in group) == list(range(len(lengths)))
    assert all(len(group) * max(lengths[index] for index in group) <= 1024 for group in groups)


def test_a_text_longer_than_a_batch_goes_alone() -> None:
    assert list(group_by_length([5, 3, 50, 4], 10)) == [[1, 3], [0], [2]]


@pytest.mark.slow
def test_a_long_batch_ends_when_its_time_is_over(model: OnnxBackend) -> None:
    with apply_limit(Limit(0.0)), pytest.raises(DeadlineExceeded):
        model.embed(MIXED)
    assert model.embed(MIXED[:2]).shape == (2, 384)


def test_it_loads_when_first_asked_to_embed() -> None:
    backend = OnnxBackend()
    assert backend.fingerprint == "cortex-recall:c731b0f4a10b:int8.1"
    assert backend.count_tokens("two words") == 4
    assert not backend.loaded
    backend.embed(["two words"])
    assert backend.loaded


def _modules_after(code: str) -> set[str]:
    script = f"""
import json, sys
from cortex_py.core.embedding.backends.onnx import OnnxBackend
import cortex_py.core.embedding.backends.backend
backend = OnnxBackend()
{code}
print(json.dumps(sorted(sys.modules)))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout))


def test_nothing_heavy_is_imported_before_embedding() -> None:
    code = "backend.fingerprint; backend.count_tokens('text'); backend.dimensions; backend.loaded"
    assert not _modules_after(code) & {"numpy", "onnxruntime"}


def test_embedding_needs_neither_torch_nor_its_kin() -> None:
    modules = _modules_after("backend.embed(['text'])")
    assert modules >= {"numpy", "onnxruntime"}
    assert not modules & {"torch", "onnx", "safetensors", "tokenizers", "transformers"}


@pytest.mark.slow
def test_memory_does_not_grow_with_the_batch() -> None:
    script = """
import resource
from cortex_py.core.embedding.backends.onnx import OnnxBackend
backend = OnnxBackend()
texts = [f"{n} " + "word " * 300 for n in range(32)]
backend.embed(texts[:8])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
backend.embed(texts)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / before)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    # In one run, these 32 texts would take 200 MB more.
    assert float(run.stdout) < 1.15


@pytest.mark.parametrize(
    ("name", "message", "remedy"),
    [
        (RECALL, "cortex-recall is not installed in", "install Cortex again"),
        (FORMER, "all-MiniLM-L6-v2 is not part of Cortex any more", "Remove embedding_model from the settings"),
    ],
)
def test_a_missing_model_says_what_to_do(tmp_path: Path, name: str, message: str, remedy: str) -> None:
    backend = OnnxBackend(tmp_path, model=name)
    for use in (lambda: backend.fingerprint, lambda: backend.count_tokens("x"), lambda: backend.embed(["x"])):
        with pytest.raises(ModelMissing, match=message) as caught:
            use()
        assert remedy in str(caught.value.remedy)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"name": "x"}', "\x00"])
def test_a_damaged_manifest_is_told_as_such(own_copy: Path, content: str) -> None:
    (own_copy / RECALL / "int8.json").write_text(content, "utf-8")
    with pytest.raises(ModelCorrupt, match=r"int8\.json"):
        _ = OnnxBackend(own_copy).fingerprint


@pytest.mark.parametrize("damage", ["cut", "flipped", "gone"])
@pytest.mark.parametrize("name", ["int8.onnx", "vocab.txt"])
def test_a_damaged_file_is_refused(name: str, damage: str, own_copy: Path) -> None:
    path = own_copy / RECALL / name
    content = bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[:-1])
    else:
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    with pytest.raises(ModelCorrupt) as caught:
        OnnxBackend(own_copy).embed(["x"])
    assert str(path) in caught.value.message
    assert "install Cortex again" in str(caught.value.remedy)


def test_a_graph_changed_since_the_fingerprint_was_told_is_refused(own_copy: Path) -> None:
    backend = OnnxBackend(own_copy)
    assert backend.fingerprint
    (own_copy / RECALL / "int8.onnx").write_bytes(b"another graph")
    with pytest.raises(ModelCorrupt):
        backend.embed(["x"])


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 1), (4, 2), (64, 2)])
def test_two_runs_of_a_server_share_the_cores(cores: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(cores), raising=False)
    assert threads_beside_others() == threads
