"""A backend whose work is seen in traces: how many texts, never which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..tracing import span
from .backend import Backend

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["TracedBackend"]


class TracedBackend:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def name(self) -> str:
        return self._backend.name

    @property
    def model_name(self) -> str:
        return self._backend.model_name

    @property
    def dimensions(self) -> int:
        return self._backend.dimensions

    @property
    def max_tokens(self) -> int:
        return self._backend.max_tokens

    @property
    def fingerprint(self) -> str:
        return self._backend.fingerprint

    @property
    def loaded(self) -> bool:
        return self._backend.loaded

    def count_tokens(self, text: str) -> int:
        return self._backend.count_tokens(text)

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        with span("embed", {"cortex.embedding.texts": len(texts), "cortex.embedding.backend": self.name}):
            return self._backend.embed(texts, normalize=normalize)

    def __getattr__(self, name: str) -> Any:
        # What a backend can beyond the protocol, such as closing.
        return getattr(self._backend, name)
