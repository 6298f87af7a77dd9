"""Wraps a caller's own generator as a backend: an object or function that turns texts into vectors.

Accepted are a backend, `generate_embeddings(texts)`, `generate_embedding(text)`, `generate(text)`,
`embed_batch(texts)`, `encode(texts)`, and a plain function of one text; each may be a coroutine function.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError, EmbeddingError
from .backends.backend import Backend
from .backends.token_batches import normalize_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["GeneratorBackend", "as_backend"]

_BACKEND = ("name", "model_name", "dimensions", "max_tokens", "fingerprint", "loaded", "count_tokens", "embed")
_MANY = ("generate_embeddings", "embed_batch", "encode")
_ONE = ("generate_embedding", "generate")
# A text has no more tokens than characters; how a generator treats long texts is up to it.
_MAX_TOKENS = 1 << 20


def as_backend(generator: Any) -> Backend:
    """The generator itself if it is a backend, else a backend around it."""
    # Looked up statically: a backend's properties may need files that are not installed yet.
    if all(inspect.getattr_static(generator, name, None) is not None for name in _BACKEND):
        backend: Backend = generator
        return backend
    return GeneratorBackend(generator)


class GeneratorBackend:
    """Calls a generator that Cortex knows nothing about. Its vectors are cached only as long as it lives."""

    name = "generator"
    max_tokens = _MAX_TOKENS
    loaded = True

    def __init__(self, generator: Any) -> None:
        self._ask = _asker(generator)
        self._asking = threading.Lock()
        self._dimensions = 0
        named = getattr(generator, "model_name", None) or getattr(generator, "__name__", None)
        self.model_name = str(named or type(generator).__name__)
        # Two generators cannot be compared, so they never share a vector.
        self.fingerprint = f"generator:{uuid.uuid4().hex}"

    @property
    def dimensions(self) -> int:
        """Known once the first vector was made; 0 before."""
        return self._dimensions

    def count_tokens(self, text: str) -> int:
        return 1 + len(text) // 4

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        import numpy as np

        # The generator may not be thread-safe.
        with self._asking:
            answer = self._ask(list(texts))
        try:
            with np.errstate(over="ignore"):
                found = np.asarray(answer, np.float32)
        except (TypeError, ValueError) as error:
            raise EmbeddingError(f"The generator returned no usable vectors: {error}.") from error
        if found.ndim != 2 or len(found) != len(texts) or not found.shape[1] or not np.isfinite(found).all():
            raise EmbeddingError("The generator returned no usable vectors: one row of numbers per text was expected.")
        if self._dimensions not in (0, found.shape[1]):
            raise EmbeddingError(
                f"The generator gave vectors of {found.shape[1]} dimensions; before, they had {self._dimensions}."
            )
        self._dimensions = found.shape[1]
        return normalize_rows(found) if normalize else found


def _asker(generator: Any) -> Callable[[list[str]], Any]:
    if many := _method(generator, _MANY):
        return lambda texts: _settled(many(texts))
    if one := _method(generator, _ONE) or (generator if callable(generator) else None):
        return lambda texts: [_settled(one(text)) for text in texts]
    raise ConfigurationError(
        f"{type(generator).__name__} is no generator.",
        remedy="Give a function of one text, or an object with generate_embeddings(texts).",
        field="generator",
    )


def _method(generator: Any, names: Sequence[str]) -> Callable[[Any], Any] | None:
    return next((method for name in names if callable(method := getattr(generator, name, None))), None)


def _settled(value: Any) -> Any:
    """The value, or the result of a coroutine. Runs in a thread without an event loop."""
    return asyncio.run(value) if inspect.iscoroutine(value) else value
