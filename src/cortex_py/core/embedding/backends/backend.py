"""The protocol of an embedding backend. Importing this module loads neither numpy nor a runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Backend"]


class Backend(Protocol):
    """Turns texts into vectors. Safe to share between threads; loads its model when first used."""

    @property
    def name(self) -> str:
        """The kind of backend, such as `onnx`."""

    @property
    def model_name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    @property
    def max_tokens(self) -> int:
        """Tokens beyond this many are not read; `count_tokens` counts in the same unit."""

    @property
    def fingerprint(self) -> str:
        """Names model, weights and arithmetic. Vectors of different fingerprints cannot be compared."""

    @property
    def loaded(self) -> bool:
        """Whether the model is in memory already."""

    def count_tokens(self, text: str) -> int:
        """Tokens of the whole text, with those the model adds itself; not cut at `max_tokens`."""

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        """One row per text, in the order given; rows have length 1 if `normalize`."""
