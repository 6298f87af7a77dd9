"""How states of a document from several machines become one. Nothing here reads or writes.

Every machine comes to the same result in whatever order it hears of the states: counts of changes are only ever
joined, and states that count the same changes either hold the same text or come to none.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..store.document import Document
from .replica import Entry, Name

__all__ = ["CONFLICT_MAKER", "Settled", "copy_entry", "local_changes", "local_entry", "settle"]

# The maker of all conflict copies: whoever makes one makes the same change, and a later change supersedes it.
CONFLICT_MAKER = "~conflict"


@dataclass(frozen=True, slots=True)
class Settled:
    """What several states come to. `winner` is the place, in what was given, of the one that stays, None where the
    document is gone; `losers` are the places of its live rivals, each text once."""

    entry: Entry
    winner: int | None
    losers: tuple[int, ...]


def settle(states: Sequence[Entry]) -> Settled:
    """One state of several: a text stays unless somebody who knew it has another or none; of rivals the later.

    The result counts the changes of all of them, so that what is left out here is left out everywhere: of a
    rival that lost there is a copy, made by whoever saw both.
    """
    versions = _joined(state.versions for state in states)
    floor = max(state.floor for state in states)
    alive = [place for place, state in enumerate(states) if state.digest is not None and not _left_out(state, states)]
    if not alive:
        return Settled(Entry(versions, floor, floor, None), None, ())
    winner = max(alive, key=lambda place: _rank(states[place]))
    won = states[winner]
    losers: dict[str | None, int] = {}
    for place in alive:
        if states[place].digest != won.digest:
            losers.setdefault(states[place].digest, place)
    # Were more changes of its maker counted than this one, the count would no longer tell which one it is.
    maker = won.maker if won.maker and versions[won.maker] == won.versions[won.maker] else ""
    entry = replace(won, versions=versions, floor=floor, maker=maker)
    return Settled(entry, winner, tuple(sorted(losers.values())))


def local_entry(known: Entry | None, actor: str, digest: str | None, changed_at: int) -> Entry:
    """The state after what a user did here: the known one where nothing changed, else one that supersedes it."""
    if known is not None and known.digest == digest:
        return known
    versions = dict(known.versions) if known is not None else {}
    versions[actor] = versions.get(actor, 0) + 1
    stamp = max(changed_at, known.floor + 1 if known is not None else 1)
    # Nobody has to know of a deletion itself, only of what it deleted.
    return Entry(versions, stamp, stamp, digest, maker=actor if digest is not None else "")


def local_changes(
    documents: Iterable[Document],
    known: Mapping[Name, Entry],
    actor: str,
    *,
    changed_at: Callable[[Document], int],
    now: int,
) -> Generator[tuple[Name, Entry, Document | None]]:
    """The present state of every document that is or was here: first those that are, then those that are gone."""
    seen: set[Name] = set()
    for document in documents:
        name = Name(document.kind, document.key)
        seen.add(name)
        before = known.get(name)
        unchanged = before is not None and before.digest == document.digest
        yield name, local_entry(before, actor, document.digest, 0 if unchanged else changed_at(document)), document
    for name, before in known.items():
        if name not in seen:
            yield name, local_entry(before, actor, None, now), None


def copy_entry(copy: Document, loser: Entry) -> Entry:
    """The state of a conflict copy, the same on every machine."""
    return Entry({CONFLICT_MAKER: 1}, loser.stamp, loser.stamp, copy.digest, maker=CONFLICT_MAKER)


def _left_out(state: Entry, states: Sequence[Entry]) -> bool:
    return any(_knows(other, state) and not _is_one_change(other, state) for other in states)


def _knows(state: Entry, other: Entry) -> bool:
    """Whether a state counts the change that the other one is."""
    if other.maker:
        return state.versions.get(other.maker, 0) >= other.versions[other.maker]
    return all(state.versions.get(machine, 0) >= count for machine, count in other.versions.items())


def _is_one_change(state: Entry, other: Entry) -> bool:
    """Whether both hold what one change made. Only a copied home gives one count to two texts."""
    if state.digest is None or state.maker != other.maker:
        return False
    maker = state.maker
    return state.versions[maker] == other.versions[maker] if maker else state.versions == other.versions


def _rank(state: Entry) -> tuple[int, str, int, str]:
    return state.stamp, state.digest or "", state.versions.get(state.maker, 0), state.maker


def _joined(all_versions: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    joined: dict[str, int] = {}
    for versions in all_versions:
        for machine, count in versions.items():
            if count > joined.get(machine, 0):
                joined[machine] = count
    return joined
