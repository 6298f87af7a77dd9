"""What requests with a key have stored, for a day: a repeated request finds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..database import Session, replacing, rows_among

__all__ = ["RequestTable"]

# A day, in microseconds. A client repeats a request within minutes.
_KEPT = 86_400_000_000


class RequestTable:
    def results(self, session: Session, space: str, keys: Iterable[str]) -> dict[str, str]:
        """What earlier requests with these keys have stored in a space, as they recorded it."""
        statement = "SELECT key, result FROM kept_request WHERE space = ? AND key IN ({})"
        return dict(rows_among(session, statement, (space,), keys))

    def result(self, session: Session, space: str, key: str | None) -> str | None:
        """What an earlier request with this key has stored; None without a key too."""
        return None if key is None else self.results(session, space, [key]).get(key)

    def keep(self, session: Session, space: str, results: Mapping[str, str], at: int) -> None:
        """Record what was stored, in the transaction that stores it; what is older than a day goes."""
        if not results:
            return
        session.run("DELETE FROM kept_request WHERE space = ? AND at < ?", (space, at - _KEPT))
        rows = [(space, key, result, at) for key, result in results.items()]
        session.insert_many(
            "kept_request", ("space", "key", "result", "at"), rows, replacing("kept_request", "result", "at")
        )
