"""`cortex embed`: texts in, one vector each out, in their order."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from cases import each
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.surfaces.cli import cli

from forking import cortex_command
from stub_backend import StubBackend

TEXTS = ["rotate the signing keys", "Grüße aus 東京", "def main() -> None: ..."]


def _run(*words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [*cortex_command(), "embed", *words]
    return subprocess.run(command, input=given, capture_output=True, timeout=120, check=False)


def _rows(*words: str, given: bytes = b"") -> list[dict[str, Any]]:
    done = _run(*words, given=given)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return [json.loads(line) for line in done.stdout.decode("utf-8").splitlines()]


def _are_the_vectors_of(rows: list[dict[str, Any]], texts: list[str], model: Backend, **options: bool) -> None:
    np.testing.assert_allclose([row["embedding"] for row in rows], model.embed(texts, **options), atol=1e-5)


def test_texts_as_arguments(model: Backend) -> None:
    rows = _rows(*TEXTS)
    _are_the_vectors_of(rows, TEXTS, model)
    assert [row["tokens"] for row in rows] == [model.count_tokens(text) for text in TEXTS]
    assert all(row.keys() == {"embedding", "tokens", "truncated"} for row in rows)


@pytest.mark.slow
def test_a_line_is_a_text(tmp_path: Path, model: Backend) -> None:
    file = tmp_path / "texts.txt"
    file.write_bytes("\ufeff".encode() + "\r\n".join(TEXTS).encode())
    from_file = _rows("--file", str(file), "--with-text")
    assert [row["text"] for row in from_file] == TEXTS
    _are_the_vectors_of(from_file, TEXTS, model)
    for words in ((), ("-",)):
        rows = _rows(*words, given="".join(f"{text}\n" for text in TEXTS).encode())
        assert [row["embedding"] for row in rows] == [row["embedding"] for row in from_file]


def test_the_whole_input_as_one_text(tmp_path: Path, model: Backend) -> None:
    whole = "\n".join(TEXTS) + "\n"
    file = tmp_path / "texts.txt"
    file.write_text(whole, encoding="utf-8")
    (from_file,) = _rows("--file", str(file), "--whole", "--with-text")
    assert from_file["text"] == whole
    (row,) = _rows("--whole", given=whole.encode())
    _are_the_vectors_of([from_file, row], [whole, whole], model)


def test_one_array(model: Backend) -> None:
    done = _run(*TEXTS, "--json")
    _are_the_vectors_of(json.loads(done.stdout), TEXTS, model)


def test_vectors_as_the_model_makes_them(model: Backend) -> None:
    rows = _rows(TEXTS[0], "--no-normalize")
    _are_the_vectors_of(rows, TEXTS[:1], model, normalize=False)
    assert abs(float(np.linalg.norm(rows[0]["embedding"])) - 1) > 0.1


def test_a_text_that_is_not_read_to_its_end(model: Backend) -> None:
    short, long = _rows("word", "word " * model.max_tokens)
    assert (short["truncated"], long["truncated"]) == (False, True)
    assert long["tokens"] > model.max_tokens


def test_many_texts_in_their_order_and_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []

    @contextmanager
    def bar(label: str, *, hidden: bool) -> Iterator[Callable[[int, int], None]]:
        assert (label, hidden) == ("Embedding", False)
        yield lambda done, total: told.append((done, total))

    monkeypatch.setattr("cortex_py.surfaces.cli.embed.progress_bar", bar)
    monkeypatch.setattr("cortex_py.core.embedding.backends.registry.open_backend", lambda settings: StubBackend())
    texts = [f"word {number}" for number in range(600)]
    done = CliRunner().invoke(cli, ["embed"], input="\n".join(texts), catch_exceptions=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    _are_the_vectors_of(rows, texts, StubBackend())
    assert told == [(256, 600), (512, 600), (600, 600)]


@each(
    ("words", "given", "told"),
    [
        ((), b"", "There is no text in standard input."),
        ((), b"one\n\nthree\n", "line 2 of standard input is empty."),
        (("one", " "), b"", "text 2 is empty."),
        ((), b"one\ntw\0o\n", "line 2 of standard input holds a null byte"),
        ((), b"one\n" + b"x" * 9000, "line 2 of standard input has 9000 characters"),
        ((), b"one\n\xff\n", "byte 4"),
        (("--whole",), b" ", "standard input is empty."),
        (("one", "--whole"), b"", "Leave out --file and --whole."),
        (("--file", "missing.txt"), b"", "does not exist"),
    ],
)
def test_what_cannot_be_embedded_is_named(words: tuple[str, ...], given: bytes, told: str) -> None:
    done = _run(*words, given=given)
    assert done.returncode == (5 if "null" in told else 2)
    assert not done.stdout
    assert told in done.stderr.decode()


def test_a_missing_model_is_told_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORTEX_EMBEDDING_MODEL", "all-MiniLM-L6-v2")
    done = _run("text")
    assert done.returncode == 8
    assert b"Remove embedding_model from the settings" in done.stderr
