"""Entities that are likely one and the same under several names: candidates with a reason, for someone to judge.

Only entities of one type are compared, and only those that share a block: a folded spelling, initials, a stem, a
person's name, or what is left of a long name without one of its signs. Nothing is compared with everything.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

from .values import Entity, EntityType

__all__ = ["Duplicates", "Reason", "find_duplicates", "folded"]

Reason = Literal["same spelling", "acronym", "short form", "part of a name", "typing error"]

_SHORT_FORMS = {
    "Technology": ("sql", "ql", "js", "db", "lang", "py", "io", "framework", "language", "database"),
    "Organization": (
        *("inc", "incorporated", "ltd", "limited", "llc", "gmbh", "ag", "se", "sa", "bv", "plc"),
        *("corp", "corporation", "co", "company", "group", "labs", "hq"),
    ),
}
_SMALL_WORDS = frozenset(("a", "and", "de", "for", "in", "of", "on", "the", "to", "und"))
_NUMERONYM = re.compile(r"([a-z])(\d{1,2})([a-z])\Z")
# Names below this length are too easily another word.
_LONG = 8
# What more names than this are left with is a pattern, not a slip.
_BLOCK = 40


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Entities that may be one, by id; `names` are theirs, in the same order."""

    type: EntityType
    ids: tuple[str, ...]
    names: tuple[str, ...]
    reason: Reason
    confidence: float


class _Name(NamedTuple):
    """All entities of one folded spelling: the spelling, its words, and who they are."""

    key: str
    words: tuple[str, ...]
    shown: str
    members: tuple[tuple[str, str], ...]


def folded(name: str, type: EntityType) -> str:
    """A spelling without case, accents and punctuation. What tells C from C++ and C# stays, and so does a path."""
    if type == "File":
        return name.strip().replace("\\", "/").removeprefix("./")
    plain = unicodedata.normalize("NFKD", name.casefold())
    kept = "".join(sign for sign in plain if sign.isalnum() or sign in "+#")
    return kept or name.casefold().strip()


def find_duplicates(entities: Iterable[Entity], limit: int = 1_000) -> list[Duplicates]:
    """Groups of entities that are likely the same, the likeliest first."""
    by_type: dict[EntityType, dict[str, list[Entity]]] = defaultdict(lambda: defaultdict(list))
    for entity in sorted(entities, key=lambda one: one.id):
        by_type[entity.type][folded(entity.name, entity.type)].append(entity)
    found: dict[tuple[str, ...], Duplicates] = {}
    for type, spellings in sorted(by_type.items()):
        names = [_name(key, members) for key, members in sorted(spellings.items())]
        for group in _groups(type, names):
            # The first reason is the strongest; a pair has one.
            found.setdefault(tuple(sorted(group.ids)), group)
    return sorted(found.values(), key=lambda one: (-one.confidence, one.ids))[:limit]


def _name(key: str, members: Sequence[Entity]) -> _Name:
    shown = members[0].name
    plain = unicodedata.normalize("NFKD", shown)
    words = tuple(re.findall(r"[^\W_]+", "".join(sign for sign in plain if not unicodedata.combining(sign)).casefold()))
    return _Name(key, words, shown, tuple((one.id, one.name) for one in members))


def _groups(type: EntityType, names: Sequence[_Name]) -> Iterator[Duplicates]:
    for name in names:
        if len(name.members) > 1:
            yield _group(type, [name], "same spelling", 0.95)
    # A letter of a path makes another file of it.
    if type == "File":
        return
    if type == "Person":
        yield from _parts_of_names(type, names)
    else:
        yield from _acronyms(type, names)
        yield from _short_forms(type, names)
    for a, b in _slips(names):
        # Mario is seldom a slip for Maria.
        certain = 0.5 if type == "Person" else 0.8 if len(a.key) >= 12 else 0.6
        yield _group(type, [a, b], "typing error", certain)


def _group(type: EntityType, names: Sequence[_Name], reason: Reason, confidence: float) -> Duplicates:
    members = [member for name in names for member in name.members]
    return Duplicates(
        type=type,
        ids=tuple(one for one, _ in members),
        names=tuple(shown for _, shown in members),
        reason=reason,
        confidence=confidence,
    )


def _acronyms(type: EntityType, names: Sequence[_Name]) -> Iterator[Duplicates]:
    """AWS and Amazon Web Services, K8s and Kubernetes; only where one name alone could be meant."""
    initials: dict[str, list[_Name]] = defaultdict(list)
    counted: dict[str, list[_Name]] = defaultdict(list)
    for name in names:
        if len(name.words) > 1:
            spelled = {"".join(word[0] for word in name.words)}
            spelled.add("".join(word[0] for word in name.words if word not in _SMALL_WORDS))
            for one in spelled:
                initials[one].append(name)
        elif len(name.key) > 4:
            counted[f"{name.key[0]}{len(name.key) - 2}{name.key[-1]}"].append(name)
    for name in names:
        if len(name.words) != 1:
            continue
        meant: Sequence[_Name] = ()
        if _NUMERONYM.match(name.key):
            meant = counted.get(name.key, ())
        elif 2 <= len(name.key) <= 6 and sum(sign.isupper() for sign in name.shown) >= 2:
            meant = initials.get(name.key, ())
        if len(meant) == 1:
            yield _group(type, [name, meant[0]], "acronym", 0.6 if len(name.key) == 2 else 0.75)


def _short_forms(type: EntityType, names: Sequence[_Name]) -> Iterator[Duplicates]:
    """Postgres and PostgreSQL, React and React.js, Acme and Acme Inc."""
    by_key = {name.key: name for name in names}
    for name in names:
        for ending in _SHORT_FORMS.get(type, ()):
            stem = by_key.get(name.key.removesuffix(ending)) if name.key.endswith(ending) else None
            if stem is None or len(stem.key) < 3:
                continue
            # An ending that is a word of its own is surely one; inside a word a stem must be long enough to be told.
            apart = len(name.words) > 1 and name.words[-1] == ending
            if apart or len(stem.key) >= 4:
                yield _group(type, [stem, name], "short form", 0.8 if apart or len(stem.key) >= 6 else 0.65)


def _parts_of_names(type: EntityType, names: Sequence[_Name]) -> Iterator[Duplicates]:
    """Maria, M. Lopez or Lopez and Maria Lopez, where nobody else could be meant."""
    fitting: dict[tuple[str, ...], list[_Name]] = defaultdict(list)
    for name in names:
        if len(name.words) > 1 and len(name.words[0]) > 1:
            first, last = name.words[0], name.words[-1]
            for part in {(first,), (last,), (first[0], last), (first, last[0])}:
                fitting[part].append(name)
            if len(name.words) > 2:
                fitting[first, last].append(name)
    for name in names:
        meant = [one for one in fitting.get(name.words, ()) if one.key != name.key]
        if len(meant) == 1:
            certain = 0.75 if len(name.words) > 1 else 0.7 if name.words[0] == meant[0].words[0] else 0.55
            yield _group(type, [name, meant[0]], "part of a name", certain)


def _slips(names: Sequence[_Name]) -> Iterator[tuple[_Name, _Name]]:
    """Long names that are one slip of the hand apart: a sign changed, left out, added, or swapped with the next.

    Such two become the same when each loses at most one sign, so what is left of them is the block. Numbers must be
    the same: another version is another thing.
    """
    by_length: dict[int, list[_Name]] = defaultdict(list)
    for name in names:
        if len(name.key) >= _LONG:
            by_length[len(name.key)].append(name)
    for length in sorted(by_length):
        blocks: dict[str, list[_Name]] = defaultdict(list)
        for name in by_length.get(length - 1, ()):
            blocks[name.key].append(name)
        for name in by_length[length]:
            for rest in {name.key[:i] + name.key[i + 1 :] for i in range(length)}:
                blocks[rest].append(name)
        pairs = {pair for block in blocks.values() if 1 < len(block) <= _BLOCK for pair in combinations(block, 2)}
        for a, b in sorted(pairs):
            if _one_slip(a.key, b.key) and _digits(a.key) == _digits(b.key):
                yield a, b


def _one_slip(a: str, b: str) -> bool:
    """Whether two that agree but for one sign of each are one slip apart, and not one lost here and another there."""
    if len(a) != len(b):
        return abs(len(a) - len(b)) == 1
    apart = [i for i, (one, other) in enumerate(zip(a, b, strict=True)) if one != other]
    return len(apart) == 1 or (
        len(apart) == 2 and apart[1] == apart[0] + 1 and a[apart[0] : apart[1] + 1] == b[apart[1]] + b[apart[0]]
    )


def _digits(key: str) -> str:
    return "".join(sign for sign in key if sign.isdigit())
