"""Extraction: the names a text holds and the relationships it states, found locally and without a language model.

Four sources are asked, and in a clash the surer one is kept: the names the project brings along, rules of shape and
context, the list of names, and the trained tagger. Each hit says which of them found it. An entity's name is what
stands at its place, but for the project: where the caller names it, "we" and "our project" stand for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from .knowledge import NOTHING, Knowledge
from .patterns import STANDS_FOR_PROJECT, relationships
from .shapes import Shaped, shaped
from .tagger import Tagger, shipped
from .tokens import LOOKED_AT, Token, sentences
from .values import EntityType, ExtractedEntity, ExtractedRelationship, Extraction

__all__ = ["LOOKED_AT", "extract"]

_MOST_SENTENCES = 2_000
_KNOWN = 0.97  # a name the project brings along, used as it is spelled there
_LEAST_LIKE_PERSON = 1.5  # spreads above the mean by which words lean to people's names
_PERSON = 3  # the place of people among the leanings
_THINGS = frozenset(("project", "repo", "repository", "codebase"))
_OURS = {
    "our": _THINGS | {"team", "service", "app", "application", "backend", "frontend", "stack", "code", "server"},
    "this": _THINGS | {"package", "library"},
    "the": _THINGS,
}
_NAME = re.compile(r"[^\W\d_]")


class _Found(NamedTuple):
    first: int
    last: int
    type: EntityType
    confidence: float
    method: str
    strength: int


def extract(text: str, knowledge: Knowledge = NOTHING) -> Extraction:
    """The entities and relationships of the first LOOKED_AT characters of a text; code in it is passed over."""
    tagger = shipped()
    parts = [part for _, part in zip(range(_MOST_SENTENCES), sentences(text), strict=False)]
    tagged = tagger.tag([[token.text for token in part] for part in parts])
    entities: list[ExtractedEntity] = []
    rows: list[tuple[list[Token], int, int]] = []
    for part, names in zip(parts, tagged, strict=True):
        found = [
            _Found(name.first, name.last, name.type, tagger.sure(name.likelihood), "tagger", 2)
            for name in names
            if any(_NAME.search(token.text) for token in part[name.first : name.last])
        ]
        rules: list[Shaped] = shaped(part, lambda word: _like_person(tagger, word))
        found = _settled([*found, *(_Found(*rule) for rule in rules)], knowledge, part)
        first = len(entities)
        entities += (_entity(row, part, text, knowledge.project) for row in found)
        rows.append((part, first, len(entities)))
    stated: list[ExtractedRelationship] = []
    for part, first, last in rows:
        stated += relationships(part, [(number, entities[number]) for number in range(first, last)], text)
    return _without_idle(entities, stated)


def _without_idle(entities: list[ExtractedEntity], stated: list[ExtractedRelationship]) -> Extraction:
    """A "we" that states nothing names nothing."""
    used = {place for row in stated for place in (row.source, row.target)}
    kept = [place for place, entity in enumerate(entities) if entity.method != STANDS_FOR_PROJECT or place in used]
    places = {old: new for new, old in enumerate(kept)}
    return Extraction(
        tuple(entities[place] for place in kept),
        tuple(replace(row, source=places[row.source], target=places[row.target]) for row in stated),
    )


def _like_person(tagger: Tagger, word: str) -> bool:
    by_piece, by_word = tagger.features.leanings(word)
    leaning = by_word if by_word is not None else by_piece
    return leaning is not None and float(leaning[_PERSON]) > _LEAST_LIKE_PERSON


def _settled(found: list[_Found], knowledge: Knowledge, part: Sequence[Token]) -> list[_Found]:
    """Names that do not overlap: the stronger source first, then the longer name, then the surer one."""
    if knowledge:
        found += [
            _Found(known.first, known.last, known.type, _KNOWN, f"dictionary:{known.source}", 6)
            for known in knowledge.matches(part)
        ]
    if knowledge.project:
        found += _pronouns(part, knowledge)
    tagged = {(row.first, row.last): row for row in found if row.method == "tagger"}
    # A listed name within a longer one that the tagger sees whole ("Amazon" in "Amazon CloudFront") is not meant.
    longer = [span for span in tagged if span[1] - span[0] > 1]
    found = [row for row in found if row.strength > 3 or not _within(row, longer)]
    kept: list[_Found] = []
    taken: set[int] = set()
    for row in sorted(found, key=lambda row: (-row.strength, row.first - row.last, -row.confidence, row.first)):
        places = range(row.first, row.last)
        if taken.isdisjoint(places):
            agreed = tagged.get((row.first, row.last))
            if agreed is not None and agreed.type == row.type and agreed.confidence > row.confidence:
                row = row._replace(confidence=agreed.confidence)
            kept.append(row)
            taken.update(places)
    return sorted(kept)


def _within(row: _Found, spans: Sequence[tuple[int, int]]) -> bool:
    size = row.last - row.first
    return row.method.startswith("dictionary:") and any(
        first <= row.first and row.last <= last and size < last - first for first, last in spans
    )


def _pronouns(part: Sequence[Token], knowledge: Knowledge) -> Iterator[_Found]:
    """Words that stand for the project."""
    lowered = [token.text.lower() for token in part]
    for place, low in enumerate(lowered):
        after = lowered[place + 1] if place + 1 < len(lowered) else ""
        if low == "we" or (low in ("our", "this", "the") and after in _OURS[low]):
            yield _Found(place, place + (1 if low == "we" else 2), knowledge.project_type, 0.8, STANDS_FOR_PROJECT, 7)


def _entity(row: _Found, part: Sequence[Token], text: str, project: str) -> ExtractedEntity:
    start, end = part[row.first].start, part[row.last - 1].end
    if row.type == "Person" and text[start] == "@" and end - start > 1:
        start += 1  # the sign addresses, it is no part of the name
    name = project if row.method == STANDS_FOR_PROJECT else text[start:end]
    return ExtractedEntity(name, row.type, start, end, round(row.confidence, 3), row.method)
