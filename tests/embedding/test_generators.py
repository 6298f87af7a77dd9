"""Generators of every usual shape become backends; what they give is checked before anybody sees it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cases import each
from cortex_py.core.embedding.backends.onnx import OnnxBackend
from cortex_py.core.embedding.backends.token_batches import normalize_rows
from cortex_py.core.embedding.generators import GeneratorBackend, as_backend
from cortex_py.core.errors import ConfigurationError, EmbeddingError

from stub_backend import StubBackend


def _lengths(text: str) -> list[float]:
    return [float(len(text)), 1.0]


async def _lengths_later(text: str) -> list[float]:
    await asyncio.sleep(0)
    return _lengths(text)


class Many:
    def generate_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [_lengths(text) for text in texts]


class ManyLater:
    async def generate_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [await _lengths_later(text) for text in texts]


class InBatches:
    def embed_batch(self, texts: list[str]) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(_lengths(text)) for text in texts)


class Encoder:
    """As of sentence-transformers: an array of floats, and callable for something else."""

    def encode(self, texts: list[str]) -> Any:
        return np.array([_lengths(text) for text in texts], np.float64)

    def __call__(self, features: object) -> None:
        raise AssertionError("not this one")


class One:
    def generate_embedding(self, text: str) -> Any:
        return np.array(_lengths(text), np.float16)


class OneLater:
    async def generate(self, text: str) -> list[float]:
        return await _lengths_later(text)


class Called:
    def __call__(self, text: str) -> list[float]:
        return _lengths(text)


SHAPES = [Many(), ManyLater(), InBatches(), Encoder(), One(), OneLater(), Called(), _lengths, _lengths_later]


@each("generator", SHAPES, ids=lambda shape: getattr(shape, "__name__", type(shape).__name__))
def test_every_usual_shape_is_understood(generator: Any) -> None:
    found = as_backend(generator).embed(["four", "sixsix", "four"], normalize=False)
    assert found.tolist() == [[4, 1], [6, 1], [4, 1]]
    assert found.dtype == np.float32


def test_one_that_takes_many_is_asked_once_for_many() -> None:
    asked: list[list[str]] = []

    class Both:
        def generate_embeddings(self, texts: list[str]) -> list[list[float]]:
            asked.append(texts)
            return [[1.0]] * len(texts)

        def generate_embedding(self, text: str) -> list[float]:
            raise AssertionError("not this one")

    GeneratorBackend(Both()).embed(["a", "b"])
    assert asked == [["a", "b"]]


@each("nothing", [5, object(), ["a"], {"generate": 1}])
def test_what_is_no_generator_is_refused_at_once(nothing: object) -> None:
    with pytest.raises(ConfigurationError, match="is no generator") as caught:
        as_backend(nothing)
    assert caught.value.field == "generator"


@each(
    "answer",
    [
        None,
        5.0,
        [],
        "vectors",
        [1.0, 2.0],
        [[1.0, 2.0]],
        [[1.0], [2.0], [3.0]],
        [[1.0, 2.0], [3.0]],
        [[], []],
        [[[1.0]], [[2.0]]],
        [[1.0, float("nan")], [1.0, 2.0]],
        [[1.0, float("-inf")], [1.0, 2.0]],
        [[1.0, None], [1.0, 2.0]],
        [[1.0, "x"], [1.0, 2.0]],
        [[1e300], [1.0]],
        np.array([[1e300], [1.0]]),
        [[1j], [2j]],
        [{"a": 1}, {"b": 2}],
    ],
    ids=lambda answer: str(answer).replace("\n", "")[:40],
)
def test_an_answer_that_is_no_row_of_numbers_per_text_is_an_error(answer: Any) -> None:
    class Odd:
        def generate_embeddings(self, texts: list[str]) -> Any:
            return answer

    backend = GeneratorBackend(Odd())
    with pytest.raises(EmbeddingError, match="The generator returned no usable vectors"):
        backend.embed(["a", "b"])
    assert backend.dimensions == 0


def test_vectors_keep_the_dimensions_of_the_first() -> None:
    backend = GeneratorBackend(lambda text: [1.0] * len(text))
    assert backend.dimensions == 0
    backend.embed(["abc"])
    assert backend.dimensions == 3
    with pytest.raises(EmbeddingError, match="vectors of 4 dimensions; before, they had 3"):
        backend.embed(["abcd"])
    assert backend.embed(["xyz"]).shape == (1, 3)


def test_normalising_is_done_if_asked() -> None:
    backend = GeneratorBackend(lambda text: [3, 4])
    assert backend.embed(["a"]).tolist() == [[np.float32(0.6), np.float32(0.8)]]
    assert backend.embed(["a"], normalize=False).tolist() == [[3, 4]]


@each("scale", [1e-40, 1e-30, 1e-12, 1.0, 1e12, 1e30])
def test_every_vector_but_zero_gets_length_one(scale: float) -> None:
    found = normalize_rows(np.array([[3 * scale, 4 * scale], [0, 0]], np.float32))
    assert found.dtype == np.float32
    assert found[0] == pytest.approx([0.6, 0.8], rel=1e-4)
    assert found[1].tolist() == [0, 0]


def test_a_generator_is_asked_by_one_thread_at_a_time() -> None:
    meeting = threading.Barrier(2)
    met: list[str] = []

    def sociable(text: str) -> list[float]:
        with suppress(threading.BrokenBarrierError):
            meeting.wait(0.2)
            met.append(text)
        return [1.0]

    backend = GeneratorBackend(sociable)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(backend.embed, [["a"], ["b"]]))
    assert met == []


def test_a_generator_is_named_as_it_names_itself() -> None:
    class Named:
        model_name = "my-model"

        def generate(self, text: str) -> list[float]:
            return [1.0]

    assert GeneratorBackend(Named()).model_name == "my-model"
    assert GeneratorBackend(_lengths).model_name == "_lengths"
    assert GeneratorBackend(Many()).model_name == "Many"
    assert GeneratorBackend(Many()).name == "generator"
    assert GeneratorBackend(Many()).loaded
    assert GeneratorBackend(Many()).fingerprint != GeneratorBackend(Many()).fingerprint


def test_a_backend_is_taken_as_it_is() -> None:
    stub = StubBackend()
    assert as_backend(stub) is stub


def test_a_backend_without_its_model_is_a_backend_nevertheless(tmp_path: Path) -> None:
    backend = OnnxBackend(tmp_path / "none")
    assert as_backend(backend) is backend


def test_half_a_backend_is_a_generator_if_it_can_be_one() -> None:
    class Half:
        fingerprint = "half"
        dimensions = 1

        def count_tokens(self, text: str) -> int:
            return 1

        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            return [[1.0]]

    with pytest.raises(ConfigurationError):
        as_backend(Half())

    class More(Half):
        def generate(self, text: str) -> list[float]:
            return [2.0]

    assert as_backend(More()).embed(["a"], normalize=False).tolist() == [[2.0]]
