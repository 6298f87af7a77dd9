"""What a record is about, told from its words and its vector when it is written: its category, and where the caller
leaves it open, its namespace."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from ..embedding.backend import Backend
from ..records import NewMemory
from ..store.rows import Prepared

if TYPE_CHECKING:
    from .classifier import Classified, Classifier

__all__ = ["Labels"]


class Labels:
    """Labels for records whose vectors come from one embedding model."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def given_to(self, record: Prepared, item: NewMemory) -> Prepared:
        """The record with what its giver left open; parts of files are filed by their path and need no category."""
        memory = record.memory
        if memory.kind == "file" or (memory.category and item.namespace):
            return record
        found = self.of(record)
        namespace = memory.namespace if item.namespace else self._namespace(found, memory.namespace)
        return replace(record, memory=replace(memory, category=memory.category or found.category, namespace=namespace))

    def of(self, record: Prepared) -> Classified:
        """What a record is about; for a long one, its beginning decides."""
        import numpy as np

        vector = record.chunks[0].vector if record.chunks else None
        return self._classifier.classify(
            record.memory.content, None if vector is None else np.frombuffer(vector, np.float32)
        )

    def _namespace(self, found: Classified, otherwise: str) -> str:
        from .filing import namespace_for

        return namespace_for(found) or otherwise

    @cached_property
    def _classifier(self) -> Classifier:
        from .classifier import Classifier

        return Classifier(self._backend.fingerprint)
