"""What a person did to a branch file, as changes to the store: computed here, made by the caller.

The rules, chosen so that nothing a person wrote and nothing the store has is lost:

- An entry changed in the file is an update while the store has the version that the file showed; once
  the store has moved on, the store stays and the person's text becomes an entry of its own.
- An entry whose text was emptied, or that is gone from the file, is removed if the store still has the
  version that the file showed. One that was never in the file is not missing from it.
- An entry that the store no longer has in this branch stays removed, for it may have been purged on
  purpose; only a text that a person changed since is kept, as an entry of its own.
- An entry that was never projected to this file was pasted from elsewhere: it is new text, as is all
  that stands outside entries.
- A text equal to what the store has is no change, so that a plan carried out by half can be made anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from .branch_file import Entry, Parsed

__all__ = ["Addition", "Kept", "Plan", "Removal", "Update", "plan"]


@dataclass(frozen=True, slots=True)
class Update:
    """A new text for a memory that must still be at `expected_version`."""

    id: str
    content: str
    expected_version: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A person's text for a memory that changed or vanished meanwhile, to be kept beside it.

    `key` is the same in every plan made from the same file: as an idempotency key it keeps a second
    attempt from adding the text twice.
    """

    id: str
    content: str
    key: str


@dataclass(frozen=True, slots=True)
class Removal:
    """A memory to take away, if it still is at `expected_version`."""

    id: str
    expected_version: int


@dataclass(frozen=True, slots=True)
class Addition:
    """A text that a person added; `key` as in `Kept`."""

    content: str
    key: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes, each kind in the order of the file; false where there is nothing to do."""

    updates: tuple[Update, ...] = ()
    conflicts: tuple[Kept, ...] = ()
    removals: tuple[Removal, ...] = ()
    additions: tuple[Addition, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.updates or self.conflicts or self.removals or self.additions)


def plan(parsed: Parsed, stored: Sequence[Entry]) -> Plan:
    """The changes that bring the edits of a file into the store, which now has `stored` in this branch."""
    known = {entry.id: entry for entry in stored}
    updates: list[Update] = []
    conflicts: list[Kept] = []
    removals: list[Removal] = []
    pasted: list[str] = []
    for found in parsed.entries:
        entry = known.get(found.id)
        if entry is None and not parsed.was_projected(found.id, found.version):
            pasted.append(found.content)
        elif not found.edited or (entry and entry.content == found.content):
            continue
        elif entry is None or entry.version != found.version:
            conflicts.append(Kept(found.id, found.content, _key(parsed, found.id, found.content)))
        elif _is_blank(found.content):
            removals.append(Removal(found.id, found.version))
        else:
            updates.append(Update(found.id, found.content, found.version))
    return Plan(
        updates=tuple(updates),
        # An emptied entry leaves no text to keep.
        conflicts=tuple(kept for kept in conflicts if not _is_blank(kept.content)),
        removals=(*removals, *_missing(parsed, stored)),
        additions=_additions(parsed, [*pasted, *parsed.loose]),
    )


def _missing(parsed: Parsed, stored: Sequence[Entry]) -> list[Removal]:
    """Entries that stood in the file as the store has them, and that a person took out of it."""
    present = {entry.id for entry in parsed.entries}
    return [
        Removal(entry.id, entry.version)
        for entry in stored
        if entry.id not in present and parsed.was_projected(entry.id, entry.version)
    ]


def _additions(parsed: Parsed, texts: Sequence[str]) -> tuple[Addition, ...]:
    additions: list[Addition] = []
    seen: dict[str, int] = {}
    for text in texts:
        if _is_blank(text):
            continue
        # The same words written twice are two entries.
        seen[text] = seen.get(text, 0) + 1
        additions.append(Addition(text, _key(parsed, f"addition {seen[text]}", text)))
    return tuple(additions)


def _is_blank(text: str) -> bool:
    return not text.strip()


def _key(parsed: Parsed, what: str, content: str) -> str:
    name = f"{parsed.branch.project_id}\n{parsed.branch.id}\n{parsed.revision}\n{what}\n{content}"
    return f"branch-file-{blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"
