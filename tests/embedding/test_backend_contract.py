"""What every backend promises, asked of every backend that can run on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from importlib.util import find_spec

import numpy as np
import pytest
from endpoint import Endpoint
from model_folders import export, with_weights

from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.embedding.backends.mlx import MlxBackend
from cortex_py.core.embedding.backends.onnx import OnnxBackend
from cortex_py.core.embedding.backends.onnx_folder import OnnxFolderBackend
from cortex_py.core.embedding.backends.openai import OpenAIBackend
from cortex_py.core.embedding.backends.sentence_transformers import SentenceTransformersBackend
from cortex_py.core.embedding.generators import as_backend

# Other makers' libraries warn about themselves and each other.
pytestmark = pytest.mark.filterwarnings("default")

SENTENCE = "Agents keep decisions, patterns, lessons and the reasons behind them in one place. "
TEXTS = [f"{n}: " + (SENTENCE * 12)[: n * 37 % 40 * 10] for n in range(12)]
UNICODE = ["naïve café", "日本語のテキスト", "🎉 emoji", "a\u0000b", "e\u0301", "\u202eright", "lone \ud800 half", ""]

Opener = Callable[[], Backend]


@pytest.fixture(scope="module", params=["onnx", "folder", "openai", "sentence_transformers", "mlx"])
def opener(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opener]:
    """Makes backends of one kind."""
    folder = tmp_path_factory.mktemp("model")
    with ExitStack() as stack:
        match request.param:
            case "onnx":
                yield OnnxBackend
            case "folder":
                export(folder)
                yield lambda: OnnxFolderBackend(folder)
            case "openai":
                endpoint = stack.enter_context(Endpoint())

                def connected() -> Backend:
                    return stack.enter_context(closing(OpenAIBackend(endpoint.url, "stub", dimensions=32)))

                yield connected
            case "sentence_transformers":
                if not find_spec("sentence_transformers"):
                    pytest.skip("sentence-transformers is not installed: it brings torch, which development does not")
                with_weights(folder)
                yield lambda: SentenceTransformersBackend(str(folder))
            case _:
                if not find_spec("mlx"):
                    pytest.skip("MLX is not installed: it is made for Apple silicon")
                with_weights(folder)
                yield lambda: MlxBackend(str(folder))


@pytest.fixture(scope="module")
def backend(opener: Opener) -> Backend:
    return opener()


def _same(left: np.ndarray, right: np.ndarray) -> bool:
    return bool((np.abs(left - right) < 1e-4).all())


def test_it_is_a_backend(backend: Backend) -> None:
    assert as_backend(backend) is backend
    assert backend.name
    assert backend.model_name
    assert backend.dimensions > 0
    assert backend.max_tokens > 0
    assert backend.fingerprint


def test_it_loads_when_first_asked_to_embed(opener: Opener) -> None:
    backend = opener()
    told = (backend.fingerprint, backend.dimensions, backend.max_tokens, backend.count_tokens("two words"))
    assert not backend.loaded
    backend.embed(["two words"])
    assert backend.loaded
    assert told == (backend.fingerprint, backend.dimensions, backend.max_tokens, backend.count_tokens("two words"))


def test_two_of_a_kind_make_the_same_vectors(opener: Opener, backend: Backend) -> None:
    assert opener().fingerprint == backend.fingerprint


@pytest.mark.slow
def test_one_row_of_length_one_per_text(backend: Backend) -> None:
    found = backend.embed(TEXTS)
    assert found.shape == (len(TEXTS), backend.dimensions)
    assert found.dtype == np.float32
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_no_texts_give_no_rows(backend: Backend) -> None:
    assert backend.embed([]).shape == (0, backend.dimensions)


@pytest.mark.slow
def test_raw_vectors_differ_in_length_only(backend: Backend) -> None:
    raw = backend.embed(TEXTS, normalize=False)
    assert _same(raw / np.linalg.norm(raw, axis=1, keepdims=True), backend.embed(TEXTS))


@pytest.mark.slow
def test_rows_are_in_the_order_of_the_texts(backend: Backend) -> None:
    together = backend.embed(TEXTS)
    assert _same(backend.embed(TEXTS[::-1])[::-1], together)
    assert _same(np.concatenate([backend.embed([text]) for text in TEXTS]), together)
    assert not _same(together[:-1], together[1:])


@pytest.mark.slow
def test_any_text_can_be_embedded(backend: Backend) -> None:
    found = backend.embed(UNICODE)
    assert np.isfinite(found).all()
    assert _same(found[0], backend.embed(["naïve café"])[0])
    assert all(backend.count_tokens(text) >= 2 for text in UNICODE)


def test_what_lies_beyond_the_limit_is_not_read(backend: Backend) -> None:
    text = "word " * 3000
    assert backend.count_tokens(text) >= 3000 > backend.max_tokens
    assert _same(backend.embed([text]), backend.embed([f"{text} and another end"]))
    assert backend.count_tokens("word " * (backend.max_tokens - 2)) == backend.max_tokens


@pytest.mark.slow
def test_threads_share_it(opener: Opener, backend: Backend) -> None:
    fresh = opener()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: fresh.embed([text])[0], TEXTS))
        counted = list(pool.map(fresh.count_tokens, TEXTS))
    assert _same(np.stack(found), backend.embed(TEXTS))
    assert counted == [backend.count_tokens(text) for text in TEXTS]
