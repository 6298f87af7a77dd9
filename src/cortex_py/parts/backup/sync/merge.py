"""How states of a document from several machines become one.

Every machine arrives at the same result in any order: counts of changes are only joined, and states that count the same
changes hold the same text or none. The functions are pure.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, NamedTuple

from ....core.store.documents.document import Document

__all__ = [
    "CONFLICT_MAKER", "Change", "DocumentState", "Name", "Settled", "conflict_copy", "copy_entry", "local_changes",
    "local_entry", "same_work", "settle",
]  # fmt: skip


class Name(NamedTuple):
    """The name of a document within its space."""

    kind: str
    key: str


@dataclass(frozen=True, slots=True)
class DocumentState:
    """The state of a document across machines, kept after its deletion (`digest` None).

    `versions` counts, per machine, the changes that this state includes. `maker` is the machine whose latest counted
    change is this state, empty if unknown. A state knows another if it counts the change that made it; two states are
    rivals if neither knows the other. `stamp` is the time of the change in microseconds, `floor` the latest stamp seen
    here, which the next change exceeds. `pack` holds the document in the target, empty if this machine has not pushed
    it.
    """

    versions: Mapping[str, int]
    stamp: int
    floor: int
    digest: str | None
    pack: str = ""
    maker: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """Replace the document with digest `expected` (None: no document) by the one that `load` reads, or delete it.

    `pack` orders changes so that each pack is opened once.
    """

    name: Name
    expected: str | None
    load: Callable[[], Document] | None = None
    pack: int = -1


# Kinds with text that someone wrote; of a losing version a copy is kept. Of the other, small kinds the later one wins.
COPIED_KINDS = frozenset(("memory", "saved"))
# Times and counts, which differ even if two machines did the same: such rivals are no conflict.
_MOMENTS = frozenset(("updated_at", "tombstoned_at", "saved_at", "version"))
_ID_DIGITS = 40
_MARK_DIGITS = 8
# The limit of names of saved texts; see `parts/prompts/checks.py`.
_NAME_LENGTH = 64


# The maker of all conflict copies: every machine makes the same change, and a later change supersedes it.
CONFLICT_MAKER = "~conflict"


@dataclass(frozen=True, slots=True)
class Settled:
    """The merge of several states.

    `winner` is the index of the state that stays, None if the document is deleted; `losers` are the indexes of its live
    rivals, each text once.
    """

    entry: DocumentState
    winner: int | None
    losers: tuple[int, ...]


def settle(states: Sequence[DocumentState]) -> Settled:
    """Merge several states: a text stays unless a state that knows it has another text or none; of rivals the later
    wins.

    The result counts the changes of all states, so that what is dropped here is dropped everywhere. Each machine that
    sees both rivals makes the same copy of the one that lost.
    """
    versions = _joined(state.versions for state in states)
    floor = max(state.floor for state in states)
    alive = [place for place, state in enumerate(states) if state.digest is not None and not _left_out(state, states)]
    if not alive:
        return Settled(DocumentState(versions, floor, floor, None), None, ())
    winner = max(alive, key=lambda place: _rank(states[place]))
    won = states[winner]
    losers: dict[str | None, int] = {}
    for place in alive:
        if states[place].digest != won.digest:
            losers.setdefault(states[place].digest, place)
    # With later changes of its maker counted, the count would no longer identify this one.
    maker = won.maker if won.maker and versions[won.maker] == won.versions[won.maker] else ""
    entry = replace(won, versions=versions, floor=floor, maker=maker)
    return Settled(entry, winner, tuple(sorted(losers.values())))


def local_entry(known: DocumentState | None, actor: str, digest: str | None, changed_at: int) -> DocumentState:
    """The state after local changes: the known one if nothing changed, else one that supersedes it."""
    if known is not None and known.digest == digest:
        return known
    versions = dict(known.versions) if known is not None else {}
    versions[actor] = versions.get(actor, 0) + 1
    stamp = max(changed_at, known.floor + 1 if known is not None else 1)
    # Other states need not know a deletion itself, only what it deleted.
    return DocumentState(versions, stamp, stamp, digest, maker=actor if digest is not None else "")


def local_changes(
    documents: Iterable[Document],
    known: Mapping[Name, DocumentState],
    actor: str,
    *,
    changed_at: Callable[[Document], int],
    now: int,
    withheld: Callable[[Document], bool] = lambda _document: False,
) -> Generator[tuple[Name, DocumentState, Document | None]]:
    """The current state of every document that is or was here: existing ones first, then deleted ones.

    `withheld` documents are skipped: nothing is recorded about them, not even a deletion.
    """
    seen: set[Name] = set()
    for document in documents:
        name = Name(document.kind, document.key)
        seen.add(name)
        if withheld(document):
            continue
        before = known.get(name)
        unchanged = before is not None and before.digest == document.digest
        yield name, local_entry(before, actor, document.digest, 0 if unchanged else changed_at(document)), document
    for name, before in known.items():
        if name not in seen:
            yield name, local_entry(before, actor, None, now), None


def copy_entry(copy: Document, loser: DocumentState) -> DocumentState:
    """The state of a conflict copy, the same on every machine."""
    return DocumentState({CONFLICT_MAKER: 1}, loser.stamp, loser.stamp, copy.digest, maker=CONFLICT_MAKER)


def _left_out(state: DocumentState, states: Sequence[DocumentState]) -> bool:
    return any(_knows(other, state) and not _is_one_change(other, state) for other in states)


def _knows(state: DocumentState, other: DocumentState) -> bool:
    """Whether a state counts the change that made the other one."""
    if other.maker:
        return state.versions.get(other.maker, 0) >= other.versions[other.maker]
    return all(state.versions.get(machine, 0) >= count for machine, count in other.versions.items())


def _is_one_change(state: DocumentState, other: DocumentState) -> bool:
    """Whether both hold the result of one change. Only a copied home gives one count to two texts."""
    if state.digest is None or state.maker != other.maker:
        return False
    maker = state.maker
    return state.versions[maker] == other.versions[maker] if maker else state.versions == other.versions


def _rank(state: DocumentState) -> tuple[int, str, int, str]:
    return state.stamp, state.digest or "", state.versions.get(state.maker, 0), state.maker


def _joined(all_versions: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    joined: dict[str, int] = {}
    for versions in all_versions:
        for machine, count in versions.items():
            if count > joined.get(machine, 0):
                joined[machine] = count
    return joined


# -- conflict copies --------------------------------------------------------------------------------


def conflict_copy(document: Document) -> Document | None:
    """The document as a separate one that names its rival, or None for kinds that keep no copies."""
    if document.kind not in COPIED_KINDS:
        return None
    mark = sha256(f"{document.kind}\n{document.key}\n{document.digest}".encode("utf-8", "surrogatepass")).hexdigest()
    data: dict[str, Any] = dict(document.data)
    tags = data.get("tags")
    data["tags"] = sorted({*(tags if isinstance(tags, list | tuple) else ()), "conflict"}, key=str)
    if document.kind == "memory":
        key = mark[:_ID_DIGITS]
        data["source"] = f"conflict:{document.key}"
        # The copy is another record than the one that a repeated request would find.
        if data.get("idempotency_key") is not None:
            data["idempotency_key"] = None
    else:
        shelf, slash, name = document.key.rpartition("/")
        ending = f"-conflict-{mark[:_MARK_DIGITS]}"
        name = name[: _NAME_LENGTH - len(ending)].rstrip("-") + ending
        key = f"{shelf}{slash}{name}"
        if "name" in data:
            data["name"] = name
    if "id" in data:
        data["id"] = key
    return Document(document.kind, key, data, document.vectors)


def same_work(left: Document, right: Document) -> bool:
    """Whether two rivals differ only in when something was done, not in what someone wrote or chose."""
    return left.kind == right.kind and _work(left) == _work(right)


def _work(document: Document) -> dict[str, Any]:
    data = {name: value for name, value in document.data.items() if name not in _MOMENTS and name != "versions"}
    versions = document.data.get("versions")
    if document.kind == "saved" and isinstance(versions, list) and versions and isinstance(versions[-1], dict):
        # The text of a saved document is in its last version.
        data["versions"] = {name: value for name, value in versions[-1].items() if name not in _MOMENTS}
    return data
