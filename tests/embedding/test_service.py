"""The embedding service: what it answers, what it refuses and in which order, what it counts and what it keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.embedding.backends.onnx import OnnxBackend
from cortex_py.core.embedding.cache import VectorCache
from cortex_py.core.embedding.guards import SlidingWindow
from cortex_py.core.embedding.service import EmbeddingService, Metadata, Metrics
from cortex_py.core.embedding.sqlite_vectors import SqliteVectors
from cortex_py.core.errors import (
    ConfigurationError,
    ContentTooLarge,
    CortexError,
    EmbeddingError,
    InvalidInput,
    ModelMissing,
    RateLimited,
    wire_form,
)

from helpers import FakeClock
from stub_backend import StubBackend

Opened = Callable[..., EmbeddingService]


class Pythagoras:
    """Every vector is [3, 4] times the length of its text, and so 5 times that long. Remembers what it was asked."""

    model_name = "pythagoras"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fault: Exception | None = None

    def generate_embeddings(self, texts: list[str]) -> list[list[float]]:
        self.asked += texts
        if self.fault is not None:
            raise self.fault
        return [[3.0 * len(text), 4.0 * len(text)] for text in texts]


@pytest.fixture
def opened(clock: FakeClock) -> Iterator[Opened]:
    services: list[EmbeddingService] = []

    def make(generator: Any = None, **options: Any) -> EmbeddingService:
        services.append(EmbeddingService(generator, **{"clock": clock, **options}))
        return services[-1]

    yield make
    for service in services:
        service.close()


@pytest.fixture
def generator() -> Pythagoras:
    return Pythagoras()


@pytest.fixture
def service(opened: Opened, generator: Pythagoras) -> EmbeddingService:
    return opened(generator=generator)


def _code(call: Callable[[], object]) -> str:
    with pytest.raises(CortexError) as caught:
        call()
    return wire_form(caught.value).embedding


# Vectors


def test_a_text_becomes_a_vector_with_all_that_is_known_about_it(service: EmbeddingService) -> None:
    found = service.generate("ab cd")
    assert found.vector.dtype == np.float32
    assert found.vector.tolist() == [np.float32(0.6), np.float32(0.8)]
    assert found.metadata == Metadata(
        model_name="pythagoras",
        dimensions=2,
        backend="generator",
        cached=False,
        source="generator",
        generated_at=datetime(2026, 1, 2, 12, 34, 56, tzinfo=UTC),
        cache_metrics=Metrics(cache_hits=0, cache_misses=1, rate_limited=0),
        count=1,
        cached_hits=0,
        tokens=2,
        truncated=False,
    )


def test_asked_again_it_comes_from_the_cache(service: EmbeddingService, generator: Pythagoras) -> None:
    first, second = service.generate("ab"), service.generate("ab")
    assert second.vector.tolist() == first.vector.tolist()
    assert (second.metadata.cached, second.metadata.source, second.metadata.cached_hits) == (True, "cache", 1)
    assert second.metadata.cache_metrics == Metrics(cache_hits=1, cache_misses=1)
    assert generator.asked == ["ab"]


def test_normalising_is_left_out_if_not_wanted_and_both_are_kept_apart(
    service: EmbeddingService, generator: Pythagoras
) -> None:
    for _ in range(2):
        assert service.generate("ab", normalize=False).vector.tolist() == [6, 8]
        assert service.generate("ab", normalize=True).vector.tolist() == [np.float32(0.6), np.float32(0.8)]
        assert service.batch(["ab"], normalize=False).vectors.tolist() == [[6, 8]]
    assert generator.asked == ["ab", "ab"]


@pytest.mark.parametrize("normalize", [True, False])
def test_a_vector_of_zeros_stays_one(opened: Opened, normalize: bool) -> None:
    service = opened(lambda text: [0.0, 0.0, 0.0])
    assert service.generate("a", normalize=normalize).vector.tolist() == [0, 0, 0]


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_very_small_and_very_large_vectors_are_normalised_too(opened: Opened, scale: float) -> None:
    service = opened(lambda text: [3 * scale, 4 * scale])
    assert service.generate("a").vector == pytest.approx([0.6, 0.8])


def test_changing_an_answer_changes_no_other(service: EmbeddingService) -> None:
    for found in (service.generate("ab"), service.generate("ab")):
        found.vector[:] = 99
    batch = service.batch(["ab", "ab"])
    batch.vectors[0] = 99
    assert batch.vectors[1].tolist() == [np.float32(0.6), np.float32(0.8)]
    assert service.generate("ab").vector.tolist() == [np.float32(0.6), np.float32(0.8)]


def test_the_shipped_model_gives_the_vectors_it_gives_itself(opened: Opened, model: Backend) -> None:
    texts = ["Use PostgreSQL for JSONB", "word " * 300, "short"]
    found = opened(backend=model).batch(texts)
    assert found.vectors.shape == (3, 384)
    assert np.abs(found.vectors - model.embed(texts)).max() < 1e-4
    assert np.linalg.norm(found.vectors, axis=1) == pytest.approx([1, 1, 1], abs=1e-6)
    assert (found.metadata.model_name, found.metadata.backend) == ("cortex-recall", "onnx")
    assert found.metadata.truncated
    assert found.metadata.tokens == sum(model.count_tokens(text) for text in texts)


# Batches


def test_a_batch_keeps_the_order_and_computes_equal_texts_once(
    service: EmbeddingService, generator: Pythagoras
) -> None:
    found = service.batch(["ccc", "a", "ccc", "bb", "a"], normalize=False)
    assert found.vectors.tolist() == [[9, 12], [3, 4], [9, 12], [6, 8], [3, 4]]
    assert sorted(generator.asked) == ["a", "bb", "ccc"]
    assert (found.metadata.count, found.metadata.cached_hits) == (5, 0)
    assert found.metadata.cache_metrics == Metrics(cache_hits=0, cache_misses=3)


@pytest.mark.parametrize(
    ("texts", "source", "cached", "hits"),
    [
        (["new"], "generator", False, 0),
        (["new", "new", "newer"], "generator", False, 0),
        (["known"], "cache", True, 1),
        (["known", "other", "known"], "cache", True, 3),
        (["new", "known"], "mixed", False, 1),
        (["known", "new", "known", "new"], "mixed", False, 2),
    ],
)
def test_a_batch_tells_what_it_took_from_the_cache(
    service: EmbeddingService, generator: Pythagoras, texts: list[str], source: str, cached: bool, hits: int
) -> None:
    service.batch(["known", "other"])
    generator.asked.clear()
    found = service.batch(texts, normalize=True)
    assert (found.metadata.source, found.metadata.cached) == (source, cached)
    assert (found.metadata.count, found.metadata.cached_hits) == (len(texts), hits)
    new = {text for text in texts if text.startswith("new")}
    assert found.metadata.cache_metrics == Metrics(cache_hits=hits, cache_misses=2 + len(new))
    assert sorted(generator.asked) == sorted(new)


def test_a_large_batch_mixes_known_and_new_in_order(service: EmbeddingService) -> None:
    texts = ["x" * n for n in range(1, 2049)]
    service.batch(texts[::3])
    found = service.batch(texts, normalize=False).vectors
    assert found.tolist() == [[3.0 * n, 4.0 * n] for n in range(1, 2049)]


# Refusals


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (None, "VALIDATION_ERROR"),
        (5, "VALIDATION_ERROR"),
        ("", "VALIDATION_ERROR"),
        (" \n", "VALIDATION_ERROR"),
        ("x" * 8193, "TEXT_TOO_LONG"),
        ("a\x00b", "SECURITY_VIOLATION"),
    ],
)
def test_what_may_not_be_embedded_is_told_by_its_code(
    service: EmbeddingService, generator: Pythagoras, text: Any, code: str
) -> None:
    assert _code(lambda: service.generate(text)) == code
    assert _code(lambda: service.batch(["fine", text])) == code
    assert service.metrics == Metrics()
    assert generator.asked == []


def test_the_profile_is_code_unless_strict_is_asked_for(opened: Opened, generator: Pythagoras) -> None:
    text = "see ../a.py and <script>"
    assert opened(generator).generate(text).metadata.count == 1
    assert _code(lambda: opened(generator, profile="strict").generate(text)) == "SECURITY_VIOLATION"
    with pytest.raises(ConfigurationError):
        opened(generator, profile="lax")


@pytest.mark.parametrize("normalize", [None, 1, "yes"])
def test_normalize_is_true_or_false_and_that_is_checked_first(service: EmbeddingService, normalize: Any) -> None:
    with pytest.raises(InvalidInput, match="normalize"):
        service.generate("x" * 8193, normalize=normalize)
    with pytest.raises(InvalidInput, match="normalize"):
        service.batch(["a\x00"], normalize=normalize)


def test_all_checks_come_before_the_limit_and_the_limit_before_the_model(opened: Opened, generator: Pythagoras) -> None:
    service = opened(generator, rate_limit=1, profile="strict")
    service.generate("first")
    generator.fault = RuntimeError("never reached")
    assert _code(lambda: service.batch(["../", "x" * 9000, ""])) == "VALIDATION_ERROR"
    assert _code(lambda: service.batch(["../", "x" * 9000])) == "TEXT_TOO_LONG"
    assert _code(lambda: service.batch(["../"])) == "SECURITY_VIOLATION"
    assert _code(lambda: service.batch(["new"])) == "RATE_LIMITED"
    assert service.metrics == Metrics(cache_hits=0, cache_misses=1, rate_limited=1)


# The rate limit


def test_the_limit_is_120_a_minute_unless_told(opened: Opened, generator: Pythagoras) -> None:
    moment = [0.0]
    service = opened(generator, limiter=SlidingWindow(opened(generator).health().rate_limit, now=lambda: moment[0]))
    for number in range(120):
        service.generate(f"text {number}")
    with pytest.raises(RateLimited) as caught:
        service.generate("one more")
    assert caught.value.retry_after == 60
    moment[0] = 59.9
    assert _code(lambda: service.generate("one more")) == "RATE_LIMITED"
    moment[0] = 60
    service.generate("one more")
    assert service.metrics == Metrics(cache_hits=0, cache_misses=121, rate_limited=2)


def test_what_is_in_the_cache_is_free(opened: Opened, generator: Pythagoras) -> None:
    service = opened(generator, rate_limit=1)
    service.batch(["a", "b"])
    for _ in range(5):
        service.generate("a")
        service.batch(["b", "a"])
    assert _code(lambda: service.batch(["a", "new"])) == "RATE_LIMITED"
    assert service.metrics == Metrics(cache_hits=15, cache_misses=2, rate_limited=1)
    assert generator.asked == ["a", "b"]


def test_a_batch_counts_as_one_request_of_its_caller(opened: Opened, generator: Pythagoras) -> None:
    service = opened(generator, rate_limit=2, max_text_length=10, max_texts=100)
    service.batch([f"text {n}" for n in range(100)], caller="one")
    service.batch([f"more {n}" for n in range(100)], caller="one")
    assert _code(lambda: service.generate("x", caller="one")) == "RATE_LIMITED"
    service.generate("x", caller="two")
    with pytest.raises(ContentTooLarge):
        service.generate("x" * 11)
    with pytest.raises(InvalidInput, match="at most 100"):
        service.batch(["x"] * 101)


# Failures of the model


def test_a_model_that_fails_is_an_internal_error_and_leaves_nothing_behind(
    service: EmbeddingService, generator: Pythagoras
) -> None:
    service.generate("known")
    generator.fault = RuntimeError("out of memory")
    with pytest.raises(EmbeddingError) as caught:
        service.batch(["known", "new"])
    assert wire_form(caught.value).embedding == "INTERNAL_ERROR"
    assert caught.value.message == "The model failed: RuntimeError: out of memory"
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert service.metrics == Metrics(cache_hits=0, cache_misses=1)
    generator.fault = None
    assert service.generate("new").metadata.source == "generator"
    assert service.health().cache_size == 2


def test_a_missing_model_is_told_with_its_remedy_and_only_when_needed(opened: Opened, tmp_path: Path) -> None:
    service = opened(backend=OnnxBackend(tmp_path / "none"))
    assert _code(lambda: service.generate("")) == "VALIDATION_ERROR"
    with pytest.raises(ModelMissing) as caught:
        service.generate("text")
    assert caught.value.remedy == "It comes with the package: install Cortex again."
    health = service.health()
    assert health.status == "unhealthy"
    assert health.problem == str(caught.value)
    assert service.info().fingerprint is None
    assert not service.info().model_loaded


# Which model


def test_a_backend_can_be_chosen_by_name(opened: Opened) -> None:
    for service, model in (
        (opened("onnx"), "cortex-recall"),
        (opened(backend="onnx"), "cortex-recall"),
        (opened(), "cortex-recall"),
    ):
        assert (service.backend.name, service.backend.model_name) == ("onnx", model)
        assert not service.backend.loaded
    with pytest.raises(ConfigurationError, match="nonsense"):
        opened("nonsense")
    with pytest.raises(ConfigurationError, match="no generator"):
        opened(generator=object())


def test_info_and_health_load_nothing(opened: Opened) -> None:
    service = opened(backend=OnnxBackend())
    info, health = service.info(), service.health()
    assert (info.model_name, info.dimensions, info.backend, info.max_tokens) == ("cortex-recall", 384, "onnx", 256)
    assert info.fingerprint == service.backend.fingerprint
    assert health.status == "healthy"
    assert health.problem is None
    assert not info.model_loaded
    assert not service.backend.loaded


def test_health_tells_what_is_true(opened: Opened, generator: Pythagoras) -> None:
    service = opened(generator, rate_limit=2)
    service.batch(["a", "b", "c"])
    service.batch(["a", "d"])
    assert _code(lambda: service.generate("e")) == "RATE_LIMITED"
    health = service.health()
    assert health.status == "healthy"
    assert (health.rate_limit, health.cache_size) == (2, 4)
    assert health.metrics == Metrics(cache_hits=1, cache_misses=4, rate_limited=1)
    assert health.backends_available["onnx"] is True
    assert service.info().extras["onnx_available"] is True


# What is kept


def test_models_do_not_share_vectors_even_in_one_cache(opened: Opened) -> None:
    cache = VectorCache(1_000_000)
    first, second = opened(lambda text: [1.0, 0.0], cache=cache), opened(lambda text: [0.0, 1.0], cache=cache)
    assert first.generate("a").vector.tolist() == [1, 0]
    assert second.generate("a").vector.tolist() == [0, 1]
    assert second.generate("a").metadata.cached


def test_vectors_outlive_the_service(opened: Opened, home: Path) -> None:
    def service() -> EmbeddingService:
        return opened(backend=StubBackend(), cache=VectorCache(1_000_000, SqliteVectors(home / "v.db", 1_000_000)))

    first = service()
    made = first.batch(["one text", "another"]).vectors
    first.close()
    again = service().batch(["another", "one text"])
    assert again.metadata.source == "cache"
    assert again.vectors.tolist() == made[::-1].tolist()
    assert service().generate("another", normalize=False).metadata.source == "generator"


def test_a_damaged_entry_is_computed_again(opened: Opened, home: Path) -> None:
    def service() -> EmbeddingService:
        return opened(backend=StubBackend(), cache=VectorCache(1_000_000, SqliteVectors(home / "v.db", 1_000_000)))

    first = service()
    right = first.generate("one text").vector
    first.close()
    connection = apsw.Connection(str(home / "v.db"))
    connection.execute("UPDATE vector SET vector = zeroblob(length(vector))")
    connection.close()
    second = service()
    found = second.generate("one text")
    assert (found.metadata.source, found.vector.tolist()) == ("generator", right.tolist())
    second.close()
    assert service().generate("one text").metadata.source == "cache"


@pytest.mark.parametrize("kind", [np.float64, np.float16, list])
def test_a_backend_with_other_numbers_gives_the_same_from_the_file(opened: Opened, home: Path, kind: Any) -> None:
    class Wide(StubBackend):
        def embed(self, texts: Any, *, normalize: bool = True) -> Any:
            return [[3, 4]] * len(texts) if kind is list else np.array([[3, 4]] * len(texts), kind)

    def service() -> EmbeddingService:
        return opened(generator=Wide(), cache=VectorCache(0, SqliteVectors(home / "v.db", 1_000_000)))

    assert service().generate("a", normalize=False).vector.tolist() == [3, 4]
    again = service().generate("a", normalize=False)
    assert (again.metadata.source, again.vector.tolist()) == ("cache", [3, 4])


def test_a_service_that_cannot_keep_its_vectors_serves_all_the_same(opened: Opened, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    service = opened(backend=StubBackend(), cache=VectorCache(0, SqliteVectors(tmp_path / "file" / "v.db", 1_000)))
    assert [service.generate("a").metadata.source for _ in range(2)] == ["generator", "generator"]
    assert service.health().cache_size == 0


def test_a_closed_service_makes_no_new_vectors_and_opens_no_file(generator: Pythagoras, home: Path) -> None:
    with EmbeddingService(generator, cache=VectorCache(1_000_000, SqliteVectors(home / "v.db", 1_000_000))) as service:
        service.generate("a")
    with pytest.raises(EmbeddingError, match="closed"):
        service.generate("b")
    assert service.generate("a").metadata.source == "cache"
    assert [file.name for file in home.iterdir()] == ["v.db"]
    service.close()


def test_the_counts_of_a_tenant_do_not_show_what_others_embed() -> None:
    now = "one"
    with EmbeddingService(Pythagoras(), rate_limit=0, tenant=lambda: now) as service:
        service.generate("a text")
        before = service.health()
        now = "two"
        service.batch(["the text of another", "and one more"])
        assert service.generate("a text").metadata.cache_metrics == Metrics(cache_misses=3)
        now = "one"
        assert service.health() == before
        assert service.generate("a text").metadata.cache_metrics == Metrics(cache_hits=1, cache_misses=1)
        assert (service.all_metrics, service.cache_size) == (Metrics(cache_hits=1, cache_misses=4), 4)
