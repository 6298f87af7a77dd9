"""What an answer to suggestions teaches: whom to trust more and whom less, for tasks of its kind first. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from ..records import Memory
from ..store.suggestions import SuggestedRow, TrustRow
from .candidates import described
from .references import faded
from .rejection import classify, lessons
from .suggesting import BINS, Counts, Signals, TrustKind, bin_of, trust_keys

__all__ = ["Learned", "learned", "share", "taught"]

Rows = dict[tuple[str, str], TrustRow]
# What is passed over beside something that was taken was looked at, and found less useful.
_PASSED_OVER = 0.3
# Nobody needs all of five suggestions: for how well a session went, what was left lying counts next to nothing.
_LEFT_LYING = 0.1
# Of what an answer teaches one half holds for all tasks, and one for those of its kind.
_HALF = 0.5
_KINDS: tuple[str, ...] = get_args(TrustKind)


@dataclass(frozen=True, slots=True)
class Learned:
    """Who is trusted how much, and how sure suggestions turned out to be by their raw worth: all, and by source."""

    trust: dict[tuple[TrustKind, str], Counts]
    bins: list[tuple[float, float]]
    own: dict[str, list[tuple[float, float]]]


def learned(rows: Mapping[tuple[str, str], TrustRow], kind: str, now: int) -> Learned:
    """What answers have taught for a task of a kind."""
    trust: dict[tuple[TrustKind, str], Counts] = {}
    bins = [(0.0, 0.0)] * BINS
    own: dict[str, list[tuple[float, float]]] = {}
    for (name, key), row in rows.items():
        left = _left(row, now)
        plain, _, about = key.partition("@")
        if name == "bin":
            of = own.setdefault(about, [(0.0, 0.0)] * BINS) if about else bins
            of[int(plain)] = (left.accepted, left.refused)
        elif name in _KINDS and about in ("", kind):
            place: tuple[TrustKind, str] = (name, plain)  # type: ignore[assignment]  # one of the kinds, as asked above
            before = trust.get(place, Counts())
            trust[place] = Counts(before.accepted + left.accepted, before.refused + left.refused)
    return Learned(trust, bins, own)


def taught(
    rows: Mapping[tuple[str, str], TrustRow],
    shown: Sequence[SuggestedRow],
    memories: Mapping[str, Memory],
    taken: Sequence[str],
    reason: str | None,
    kind: str,
    now: int,
) -> Rows:
    """The rows that an answer changes; a reason means that nothing was taken."""
    changed = dict(rows)
    kinds = None if reason is None else classify(reason)
    for one in shown:
        keys = _keys(one, memories.get(one.memory_id), now)
        accepted = one.memory_id in taken
        if kinds is None and not accepted:
            passed: dict[TrustKind, str] = {"source": keys["source"], "memory": keys["memory"]}
            found = lessons(passed, ("irrelevant",))
            part = _HALF * _PASSED_OVER
        else:
            found, part = lessons(keys, kinds), _HALF
        for (name, key), counts in found.items():
            new = Counts(part * counts.accepted, part * counts.refused)
            for place in ((name, key), (name, f"{key}@{kind}")):
                changed[place] = _added(changed.get(place), new, now)
        number = str(bin_of(one.raw))
        for bin in (("bin", number), ("bin", f"{number}@{one.source}")):
            before = _left(changed.get(bin, TrustRow(0.0, 0.0, now)), now)
            changed[bin] = TrustRow(before.accepted + accepted, before.refused + (not accepted), now)
    return {place: row for place, row in changed.items() if rows.get(place) != row}


def share(taken: int, shown: int) -> float:
    """How well a session was answered: 1 where all was taken, 0 where nothing; what was passed over weighs little."""
    return taken / (taken + _LEFT_LYING * (shown - taken)) if taken else 0.0


def _keys(shown: SuggestedRow, memory: Memory | None, now: int) -> dict[TrustKind, str]:
    signals = Signals(shown.memory_id) if memory is None else described(memory, now)
    return trust_keys(signals, shown.source)  # type: ignore[arg-type]  # only sources are stored


def _left(row: TrustRow, now: int) -> Counts:
    return Counts(faded(row.accepted, row.at, now), faded(row.refused, row.at, now))


def _added(row: TrustRow | None, new: Counts, now: int) -> TrustRow:
    after = (_left(row, now) if row is not None else Counts()).plus(new)
    return TrustRow(after.accepted, after.refused, now)
