"""Whose a session of suggestions is, told by its id; and what an answer to one names."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress

from ..errors import AmbiguousId, InvalidId, InvalidInput
from ..ids import IdMaker, parse_ref
from ..security.callers import current_caller

__all__ = ["is_own", "matched", "new_session_id"]

_PREFIX = "suggestion_session_"


def new_session_id(ids: IdMaker) -> str:
    # The end of an id is random: its beginning would be that of others made in the same moment.
    return _own_prefix() + ids.new()[-12:]


def is_own(session_id: str) -> bool:
    """Whether a session is the caller's. What it suggested may be private; whoever has the machine has all."""
    return session_id.startswith(_own_prefix())


def _own_prefix() -> str:
    caller = current_caller()
    return _PREFIX if caller is None else f"{_PREFIX}{hashlib.sha256(caller.user.encode()).hexdigest()[:16]}"


def matched(given: Sequence[str], shown: Sequence[str]) -> list[str]:
    """The suggestions that ids name; one that was not suggested is an error, and nothing is taken."""
    taken: dict[str, None] = {}
    for one in given:
        found: list[str] = []
        with suppress(InvalidId):
            prefix = parse_ref(one).prefix
            found = [memory_id for memory_id in shown if memory_id.startswith(prefix)]
        if len(found) > 1:
            raise AmbiguousId(
                f"{one[:80]!r} names {len(found)} of the suggestions.",
                candidates=tuple(found),
                remedy="Give more digits.",
            )
        if not found:
            raise InvalidInput(
                f"The context {one[:80]!r} is not among the suggestions of this session.",
                remedy="Give the context_ids that suggest_contexts returned.",
                field="context_ids",
            )
        taken[found[0]] = None
    return list(taken)
