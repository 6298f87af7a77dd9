"""How much a language model was used, kept in the store so that all processes count together."""

from __future__ import annotations

from .store import Store

__all__ = ["StoreLedger"]


class StoreLedger:
    def __init__(self, store: Store) -> None:
        self._store = store

    def spent(self, day: str) -> int:
        """Tokens of a day, asked and answered."""
        with self._store.database.read() as session:
            return self._store.llm_use.spent(session, day)

    def record(self, day: str, model: str, calls: int, input_tokens: int, output_tokens: int, failed: int) -> None:
        with self._store.database.write() as session:
            self._store.llm_use.add(session, day, model, calls, input_tokens, output_tokens, failed)
