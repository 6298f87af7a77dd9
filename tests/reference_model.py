"""A plain model of the log of references, which keeps all events: what the log adds up step by step must equal it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations

from cortex_py.core.store.tables.suggestions import ReferenceRow
from cortex_py.parts.suggest.usage_log import BURST, BURST_EVENTS, WEIGHTS, Strength

__all__ = ["bursts", "coreferences", "pairs", "uses"]

# So many memories at once are an export or a scan: their pairs would cost much and say nothing.
_LARGEST = 200


def uses(events: Iterable[ReferenceRow]) -> dict[str, Strength]:
    """How strongly each memory was used."""
    found: dict[str, Strength] = {}
    for burst in bursts(events):
        seen: set[str] = set()
        for event in burst:
            before = found.get(event.memory_id, Strength())
            found[event.memory_id] = before.plus(WEIGHTS[event.kind], event.at, again=event.memory_id in seen)
            seen.add(event.memory_id)
    return found


def bursts(events: Iterable[ReferenceRow]) -> list[list[ReferenceRow]]:
    """Events of one line of work that belong together, the earliest bursts first.

    A burst is over when its first event is longer ago than the window, or when it is full; but events of one moment
    are never parted, because they are one act. Events without a branch belong together when their task is the same.
    """
    lines: defaultdict[tuple[str, str], list[ReferenceRow]] = defaultdict(list)
    for event in events:
        lines[("", event.task) if event.branch_id is None else (event.branch_id, "")].append(event)
    found: list[list[ReferenceRow]] = []
    for line in lines.values():
        line.sort(key=_order)
        burst: list[ReferenceRow] = []
        for event in line:
            full = len(burst) >= BURST_EVENTS and event.at > burst[-1].at
            if burst and (full or event.at - burst[0].at > BURST):
                found.append(burst)
                burst = []
            burst.append(event)
        found.append(burst)
    return sorted(found, key=lambda burst: _order(burst[0]))


def pairs(burst: Iterable[ReferenceRow]) -> dict[tuple[str, str], float]:
    """What one burst adds to each pair of its memories, the smaller id first.

    A pair is as strong as the weaker of its uses, and a memory divides its strength among its companions: a hundred
    loaded at once say little about any two of them.
    """
    weights: dict[str, float] = {}
    for event in burst:
        weights[event.memory_id] = max(weights.get(event.memory_id, 0.0), WEIGHTS[event.kind])
    if not 2 <= len(weights) <= _LARGEST:
        return {}
    shared = len(weights) - 1
    return {(a, b): min(weights[a], weights[b]) / shared for a, b in combinations(sorted(weights), 2)}


def coreferences(events: Iterable[ReferenceRow]) -> dict[tuple[str, str], Strength]:
    """How strongly memories were used together, the smaller id first; `times` counts the bursts they shared."""
    found: dict[tuple[str, str], Strength] = {}
    for burst in bursts(events):
        for pair, weight in pairs(burst).items():
            found[pair] = found.get(pair, Strength()).plus(weight, burst[-1].at)
    return found


def _order(event: ReferenceRow) -> tuple[int, str, str, str, str]:
    return event.at, event.memory_id, event.kind, event.branch_id or "", event.task
