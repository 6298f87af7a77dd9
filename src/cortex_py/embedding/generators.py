"""A caller's own generator as a backend: an object or a function that turns texts into vectors, in any usual shape.

Understood are a backend, `generate_embeddings(texts)`, `generate_embedding(text)`, `generate(text)`,
`embed_batch(texts)`, `encode(texts)`, and a plain function of one text; each may be a coroutine.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError, EmbeddingError
from .backend import Backend

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["GeneratorBackend", "as_backend", "of_length_one"]

_BACKEND = ("name", "model_name", "dimensions", "max_tokens", "fingerprint", "loaded", "count_tokens", "embed")
_MANY = ("generate_embeddings", "embed_batch", "encode")
_ONE = ("generate_embedding", "generate")
# A text has no more tokens than characters; what the generator does with long ones is its own affair.
_MAX_TOKENS = 1 << 20


def as_backend(generator: Any) -> Backend:
    """The generator itself if it is a backend, else a backend around it."""
    # Looked up, not asked for: what a backend tells of itself may need files that are not there yet.
    if all(inspect.getattr_static(generator, name, None) is not None for name in _BACKEND):
        backend: Backend = generator
        return backend
    return GeneratorBackend(generator)


class GeneratorBackend:
    """Asks a generator that Cortex knows nothing about. Its vectors are kept no longer than it is."""

    name = "generator"
    max_tokens = _MAX_TOKENS
    loaded = True

    def __init__(self, generator: Any) -> None:
        self._ask = _asker(generator)
        self._asking = threading.Lock()
        self._dimensions = 0
        named = getattr(generator, "model_name", None) or getattr(generator, "__name__", None)
        self.model_name = str(named or type(generator).__name__)
        # Nobody can tell two generators apart, so no two share a vector.
        self.fingerprint = f"generator:{uuid.uuid4().hex}"

    @property
    def dimensions(self) -> int:
        """Known once the first vector was made; 0 before."""
        return self._dimensions

    def count_tokens(self, text: str) -> int:
        return 1 + len(text) // 4

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        import numpy as np

        # Nothing is known about its safety between threads.
        with self._asking:
            answer = self._ask(list(texts))
        try:
            with np.errstate(over="ignore"):
                found = np.asarray(answer, np.float32)
        except (TypeError, ValueError) as error:
            raise EmbeddingError(f"The generator gave no usable vectors: {error}.") from error
        if found.ndim != 2 or len(found) != len(texts) or not found.shape[1] or not np.isfinite(found).all():
            raise EmbeddingError("The generator gave no usable vectors: one row of numbers per text was expected.")
        if self._dimensions not in (0, found.shape[1]):
            raise EmbeddingError(
                f"The generator gave vectors of {found.shape[1]} dimensions; before, they had {self._dimensions}."
            )
        self._dimensions = found.shape[1]
        return of_length_one(found) if normalize else found


def of_length_one(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row scaled to length 1; a row of zeros has no direction and stays. Squares may need a wider range."""
    import numpy as np

    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)


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
    """The value, after waiting for it if it is a coroutine. Runs in a thread that has no loop of its own."""
    return asyncio.run(value) if inspect.iscoroutine(value) else value
