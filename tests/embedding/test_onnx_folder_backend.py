"""A user's own model in ONNX form: what is found in its folder, what is refused, and the vectors it makes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from model_folders import INT64, VOCABULARY, WIDTH, export, word_table
from onnx_writer import FLOAT, GraphWriter, Message

from cortex_py.core.embedding.backends.onnx import OnnxBackend
from cortex_py.core.embedding.backends.onnx_folder import GraphSlot, OnnxFolderBackend, read_signature
from cortex_py.core.embedding.shipped_model import RECALL, SHIPPED
from cortex_py.core.embedding.wordpiece import WordPiece
from cortex_py.core.errors import ConfigurationError, EmbeddingError, ModelCorrupt, ModelMissing

TEXTS = ["Use PostgreSQL for JSONB", "naïve café", "日本語のテキスト", "", "word " * 300, "x" * 101, "lone \ud800 half"]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(tmp_path_factory.mktemp("exported"), "onnx/model.onnx")


@pytest.fixture
def own(exported: Path, tmp_path: Path) -> Path:
    """A copy that a test may change; the large file is shared."""
    shutil.copytree(exported, tmp_path / "own", copy_function=os.link)
    return tmp_path / "own"


def _replace(path: Path, content: bytes | str) -> None:
    """Write anew, and not through the link."""
    path.unlink(missing_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def _graph(folder: Path, **inputs: int) -> Path:
    """A graph that gives four numbers for each text, each the sum of its ids."""
    graph = GraphWriter()
    ids = graph.node("Cast", next(iter(inputs)), to=FLOAT)
    total = graph.node("ReduceSum", ids, graph.constant("axis", np.array([1])), keepdims=1)
    wide = graph.node("MatMul", total, graph.constant("wide", np.ones((1, 4), np.float32)))
    shape = ("texts", "tokens")
    message = graph.model([(name, kind, shape) for name, kind in inputs.items()], (wide, FLOAT, ("texts", 4)))
    _replace(folder / "model.onnx", b"".join(message.parts()))
    return folder


def _check_vectors(backend: OnnxFolderBackend, tokeniser: WordPiece) -> None:
    table = word_table()
    expected = np.stack([table[tokeniser.encode(text, 256)].mean(0) for text in TEXTS])
    assert np.abs(backend.embed(TEXTS, normalize=False) - expected).max() < 1e-5
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.abs(backend.embed(TEXTS) - expected).max() < 1e-5
    assert [backend.count_tokens(text) for text in TEXTS] == [tokeniser.count(text) for text in TEXTS]


def test_vectors_of_tokens_are_pooled(exported: Path, tokeniser: WordPiece) -> None:
    backend = OnnxFolderBackend(exported)
    assert (backend.name, backend.model_name) == ("onnx_folder", exported.name)
    assert (backend.dimensions, backend.max_tokens) == (WIDTH, 256)
    _check_vectors(backend, tokeniser)


def test_the_full_tokeniser_gives_the_same(own: Path, tokeniser: WordPiece) -> None:
    (own / "vocab.txt").unlink()
    _check_vectors(OnnxFolderBackend(own), tokeniser)


@pytest.mark.slow
def test_the_graph_of_cortex_itself_is_understood(tmp_path: Path, model: OnnxBackend) -> None:
    shutil.copy(VOCABULARY, tmp_path / "vocab.txt")
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 256}')
    shutil.copy(SHIPPED / RECALL / "int8.onnx", tmp_path / "model.onnx")
    backend = OnnxFolderBackend(tmp_path)
    assert (backend.dimensions, backend.max_tokens) == (384, 256)
    assert np.abs(backend.embed(TEXTS) - model.embed(TEXTS)).max() < 1e-4


def test_what_the_file_says_is_read_without_a_runtime(exported: Path) -> None:
    script = f"""
import json, sys
from pathlib import Path
from cortex_py.core.embedding.backends.onnx_folder import OnnxFolderBackend
backend = OnnxFolderBackend(Path({str(exported)!r}))
backend.fingerprint, backend.dimensions, backend.max_tokens, backend.loaded, backend.count_tokens("text")
print(json.dumps(sorted(sys.modules)))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not set(json.loads(run.stdout)) & {"numpy", "onnxruntime", "tokenizers"}


def test_the_signature(exported: Path) -> None:
    found = read_signature(exported / "onnx" / "model.onnx")
    shape = (None, None)
    assert found.inputs == tuple(GraphSlot(n, INT64, shape) for n in ("input_ids", "attention_mask", "token_type_ids"))
    assert [slot.shape for slot in found.outputs] == [(None, None, WIDTH)]
    assert found.external == ()


def test_pooling_by_the_first_token(own: Path, exported: Path) -> None:
    _replace(own / "1_Pooling" / "config.json", '{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}')
    first, mean = OnnxFolderBackend(own), OnnxFolderBackend(exported)
    assert first.fingerprint.split(":")[2] != mean.fingerprint.split(":")[2]
    cosines = (first.embed(TEXTS[:5]) * mean.embed(TEXTS[:5])).sum(axis=1)
    assert (cosines < 0.99).all()


def test_an_output_for_whole_texts_is_taken_as_it_is(own: Path) -> None:
    backend = OnnxFolderBackend(_graph(own, input_ids=INT64))
    assert backend.dimensions == 4
    assert backend.embed(["one"], normalize=False).tolist() == [[101 + 2028 + 102] * 4]


def test_the_fingerprint_changes_with_whatever_changes_vectors(own: Path) -> None:
    def told() -> str:
        return OnnxFolderBackend(own).fingerprint

    seen = {told()}
    _replace(own / "sentence_bert_config.json", '{"max_seq_length": 128}')
    seen.add(told())
    _replace(own / "vocab.txt", (own / "vocab.txt").read_text("utf-8") + "more\n")
    seen.add(told())
    _graph(own, input_ids=INT64)
    seen.add(told())
    assert len(seen) == 4
    (own / "README.md").write_text("words")
    assert told() in seen


@pytest.mark.parametrize(
    ("told", "config", "tokeniser", "limit"),
    [
        (None, None, None, 512),
        (None, 512, 256, 256),
        (None, 128, 10**30, 128),
        (None, 8192, 8192, 512),
        (1024, 8192, 8192, 1024),
        (1024, 256, 8192, 256),
    ],
)
def test_how_far_the_model_reads(
    own: Path, told: int | None, config: int | None, tokeniser: int | None, limit: int
) -> None:
    files = {
        "sentence_bert_config.json": ("max_seq_length", told),
        "config.json": ("max_position_embeddings", config),
        "tokenizer_config.json": ("model_max_length", tokeniser),
    }
    for name, (key, value) in files.items():
        _replace(own / name, json.dumps({} if value is None else {key: value}))
    assert OnnxFolderBackend(own).max_tokens == limit


def test_a_file_changed_since_the_fingerprint_was_told_is_refused(own: Path) -> None:
    backend = OnnxFolderBackend(own)
    assert backend.fingerprint
    _replace(own / "vocab.txt", "[UNK]")
    with pytest.raises(ModelCorrupt, match=r"vocab\.txt changed"):
        backend.embed(["x"])
    assert not backend.loaded


def test_a_folder_without_a_model_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"neither model.onnx nor onnx/model.onnx"):
        OnnxFolderBackend(tmp_path)


def test_a_folder_without_a_tokeniser_says_so(own: Path) -> None:
    (own / "vocab.txt").unlink()
    (own / "tokenizer.json").unlink()
    with pytest.raises(ConfigurationError, match=r"neither tokenizer.json nor vocab.txt"):
        OnnxFolderBackend(own)


def test_a_tokeniser_that_needs_a_package_names_it(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own / "vocab.txt").unlink()
    monkeypatch.setattr("cortex_py.core.embedding.backends.model_folder.find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"'tokenizers'. .*'\.\[onnx-folder\]'"):
        OnnxFolderBackend(own).count_tokens("x")


def test_a_model_with_a_step_of_its_own_is_refused(own: Path) -> None:
    _replace(own / "1_Pooling" / "config.json", '{"pooling_mode": "lasttoken"}')
    with pytest.raises(ConfigurationError, match="lasttoken"):
        OnnxFolderBackend(own)
    _replace(own / "modules.json", '[{"type": "a.Transformer", "path": ""}, {"type": "b.Dense", "path": "2_Dense"}]')
    with pytest.raises(ConfigurationError, match="Dense"):
        OnnxFolderBackend(own)


@pytest.mark.parametrize("inputs", [{"pixels": FLOAT}, {"input_ids": FLOAT}, {"attention_mask": INT64}])
def test_an_input_nobody_can_give_is_refused(own: Path, inputs: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError):
        OnnxFolderBackend(_graph(own, **inputs))


@pytest.mark.parametrize("content", [b"", b"no model", b"\x3a\xff\xff\xff\x0f", b"\x08\x08"])
def test_what_is_no_graph_is_refused(own: Path, content: bytes) -> None:
    _replace(own / "model.onnx", content)
    with pytest.raises(ModelCorrupt, match="not an ONNX file"):
        OnnxFolderBackend(own)


def test_a_graph_the_runtime_refuses_is_an_error_of_the_model(own: Path) -> None:
    graph = GraphWriter()
    shape = ("texts", "tokens")
    made = graph.node("NoSuchOperator", "input_ids")
    message = graph.model([("input_ids", INT64, shape)], (made, FLOAT, ("texts", 4)))
    _replace(own / "model.onnx", b"".join(message.parts()))
    with pytest.raises(EmbeddingError, match="cannot run"):
        OnnxFolderBackend(own).embed(["x"])


def test_weights_in_another_file_are_part_of_the_fingerprint(own: Path) -> None:
    def entry(key: str, value: str) -> Message:
        return Message().text(1, key).text(2, value)

    tensor = Message().text(8, "w").message(13, entry("location", "w.bin")).message(13, entry("offset", "0"))
    size = Message().message(1, Message().text(2, "texts")).message(1, Message().integer(1, 4))
    kind = Message().message(1, Message().integer(1, INT64).message(2, size))
    ids, weights, vectors = (Message().text(1, name).message(2, kind) for name in ("input_ids", "w", "y"))
    graph = Message().message(5, tensor).message(11, ids).message(11, weights).message(12, vectors)
    _replace(own / "model.onnx", b"".join(Message().integer(1, 8).message(7, graph).parts()))
    found = read_signature(own / "model.onnx")
    assert found.external == ("w.bin",)
    assert [slot.name for slot in found.inputs] == ["input_ids"]
    with pytest.raises(ModelMissing, match=r"w\.bin"):
        _ = OnnxFolderBackend(own).fingerprint
    (own / "w.bin").write_bytes(b"1")
    first = OnnxFolderBackend(own).fingerprint
    (own / "w.bin").write_bytes(b"2")
    assert OnnxFolderBackend(own).fingerprint != first


def test_a_file_that_is_gone_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing):
        read_signature(tmp_path / "model.onnx")


def test_a_broken_description_is_named(own: Path) -> None:
    _replace(own / "config.json", "{")
    with pytest.raises(ModelCorrupt, match=r"config\.json"):
        OnnxFolderBackend(own)


@pytest.mark.parametrize(("name", "content"), [("vocab.txt", "a\nb\n"), ("tokenizer.json", "{}")])
def test_a_broken_tokeniser_is_named(own: Path, name: str, content: str) -> None:
    if name == "tokenizer.json":
        (own / "vocab.txt").unlink()
    _replace(own / name, content)
    with pytest.raises(ModelCorrupt, match=name):
        OnnxFolderBackend(own).count_tokens("x")
