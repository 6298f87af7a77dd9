"""Extracts the entities of a text and the relationships it states, locally and without a language model.

Names come from seven sources: the names of the project, stored entities, rules of shape and context, the list of names,
the trained tagger, repetition in the text, and a statement: a word that may be a name is one if the sentence states a
relationship between it and a sure name. If they overlap, the stronger source wins, and each entity says which found it.
If the project is named, "we" and "our project" mean it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from ....core.graph_values import ExtractedEntity, ExtractedRelationship, Extraction
from .entity_names import EntityLookup, match_entities
from .knowledge import NO_KNOWLEDGE, Knowledge
from .patterns import STANDS_FOR_PROJECT, SURE, relationships
from .repetition import RepeatedName, learned_names, names_elsewhere, open_names
from .shapes import NameMatch, match_rules
from .tagger import Floats, Tagger, load_tagger
from .tokens import MAX_CHARACTERS, WordToken, code_spans, sentences

__all__ = ["MAX_CHARACTERS", "MOST_CHARACTERS", "extract"]

_MOST_SENTENCES = 2_000
_BOTH = 0.65  # the confidence that the two names of a relationship must have together
_STATED = "rule:stated"
_IF_USED = (STANDS_FOR_PROJECT, _STATED)
_STATED_NAME, _STATED_RELATIONSHIP = 0.6, 0.7  # the confidence in what a statement alone makes a name
_KNOWN = 0.97  # the confidence in a name of the project
_LEAST_LIKE_PERSON = 1.5  # the leaning to people's names from which a word counts as one
_LISTED = "dictionary:technology"
_PERSON = 3  # the index of people among the leanings
_THINGS = frozenset(("project", "repo", "repository", "codebase"))
_OURS = {
    "our": _THINGS | {"team", "service", "app", "application", "backend", "frontend", "stack", "code", "server"},
    "this": _THINGS | {"package", "library"},
    "the": _THINGS,
}
_NAME = re.compile(r"[^\W\d_]")
MOST_CHARACTERS = 200_000  # of a text in which names are looked for that its first part has
_MOST_BEYOND = 2_000
_CARRIED = ("Technology", "Person", "Organization")
_WORD = re.compile(r"(?<![\w/@.\\-])\w(?:[\w.+#-]{0,80}[\w+#])?")


def extract(text: str, knowledge: Knowledge = NO_KNOWLEDGE, known: EntityLookup | None = None) -> Extraction:
    """The entities and relationships of the first MAX_CHARACTERS characters of a text, without its code.

    Up to MOST_CHARACTERS, further places of these names are found. `known` finds the entities that are stored already.
    """
    parts = [part for _, part in zip(range(_MOST_SENTENCES), sentences(text), strict=False)]
    found = _find_names(text, parts, load_tagger(), known)
    entities: list[ExtractedEntity] = []
    stated: list[ExtractedRelationship] = []
    for part, names in zip(parts, found, strict=True):
        first = len(entities)
        entities += (_entity(row, part, text, knowledge.project) for row in _resolve_overlaps(names, knowledge, part))
        stated += _confirmed(entities, relationships(part, list(enumerate(entities[first:], first)), text))
    return _drop_unused([*entities, *islice(_beyond(text, entities), _MOST_BEYOND)], stated)


def _confirmed(
    entities: list[ExtractedEntity], stated: Iterable[ExtractedRelationship]
) -> Iterator[ExtractedRelationship]:
    """The relationships between names that are sure enough; an unsure one becomes surer and takes a type that fits."""
    for row in stated:
        source, target = entities[row.source], entities[row.target]
        if source.confidence + target.confidence < _BOTH:
            continue
        if row.type == "Supersedes" and target.type == "Person":  # a thing with a person's name: Travis, Luigi
            entities[row.target] = replace(target, type=source.type)
        if row.type == "Created" and source.type == "Technology":
            if not source.name[0].isupper():
                continue  # made by a tool
            entities[row.source] = replace(source, type="Person")
        unsure = [place for place in (row.source, row.target) if entities[place].confidence < SURE]
        for place in unsure:
            entities[place] = replace(entities[place], confidence=_STATED_NAME)
        yield replace(row, confidence=min(row.confidence, _STATED_RELATIONSHIP)) if unsure else row


def _beyond(text: str, entities: Sequence[ExtractedEntity]) -> Iterator[ExtractedEntity]:
    """The names of the part that is read, in the part after it."""
    rest = text[MAX_CHARACTERS:MOST_CHARACTERS]
    if not rest:
        return
    named: dict[str, list[ExtractedEntity]] = {}
    for spelled, one in {text[one.start : one.end]: one for one in entities}.items():
        if one.type in _CARRIED and one.method not in _IF_USED:
            named.setdefault(spelled.split()[0], []).append(one)
    code, past = code_spans(rest), 0
    for match in _WORD.finditer(rest):
        while code and code[0][1] <= match.start():
            code.pop(0)
        if match.start() < past or (code and code[0][0] <= match.start()) or match[0] not in named:
            continue
        fitting = [one for one in named[match[0]] if _stands_at(rest, match.start(), text[one.start : one.end])]
        if fitting:
            best = max(fitting, key=lambda one: one.end - one.start)
            past = match.start() + best.end - best.start
            yield replace(best, start=MAX_CHARACTERS + match.start(), end=MAX_CHARACTERS + past)


def _stands_at(text: str, start: int, name: str) -> bool:
    past = start + len(name)
    return text.startswith(name, start) and not (text[past : past + 1].isalnum() or text[past : past + 1] in ("_", "-"))


def _find_names(
    text: str, parts: Sequence[Sequence[WordToken]], tagger: Tagger, known: EntityLookup | None
) -> list[list[NameMatch]]:
    """The names in each sentence by the tagger, by rules, among stored entities, and by their repetition."""
    vocabulary = tagger.model.tables.rows
    likely = tagger.likelihoods([[token.text for token in part] for part in parts])
    found = [[*_tagged(part, row, tagger), *_by_rules(part, tagger)] for part, row in zip(parts, likely, strict=True)]
    by_type = [tagger.by_type(row) for row in likely]
    _add(found, learned_names(text[:MAX_CHARACTERS], parts, by_type, vocabulary), "rule:repetition")
    if known is not None:
        for row, more in zip(found, match_entities(text, parts, known, vocabulary), strict=True):
            row += more
        _add(found, names_elsewhere(parts, by_type, _taken(found), known.texts), "rule:repetition")
    _add(found, open_names(parts, by_type, _taken(found), vocabulary), _STATED)
    return found


def _taken(found: Sequence[Sequence[NameMatch]]) -> list[set[int]]:
    return [{place for name in row for place in range(name.first, name.last)} for row in found]


def _tagged(part: Sequence[WordToken], likely: Floats, tagger: Tagger) -> Iterator[NameMatch]:
    for name in tagger.read(likely):
        if any(_NAME.search(token.text) for token in part[name.first : name.last]):
            yield NameMatch(name.first, name.last, name.type, tagger.sure(name.likelihood), "tagger", 2)


def _by_rules(part: Sequence[WordToken], tagger: Tagger) -> list[NameMatch]:
    return match_rules(part, lambda word: _like_person(tagger, word))


def _add(found: list[list[NameMatch]], names: Iterable[RepeatedName], method: str) -> None:
    for name in names:
        for number, first, last in name.places:
            found[number].append(NameMatch(first, last, name.type, name.confidence, method, 2))


def _drop_unused(entities: list[ExtractedEntity], stated: list[ExtractedRelationship]) -> Extraction:
    """Drop each "we", and each word that only may be a name, that is part of no relationship."""
    used = {place for row in stated for place in (row.source, row.target)}
    kept = [place for place, entity in enumerate(entities) if entity.method not in _IF_USED or place in used]
    places = {old: new for new, old in enumerate(kept)}
    return Extraction(
        tuple(entities[place] for place in kept),
        tuple(replace(row, source=places[row.source], target=places[row.target]) for row in stated),
    )


def _like_person(tagger: Tagger, word: str) -> bool:
    by_piece, by_word = tagger.features.leanings(word)
    leaning = by_word if by_word is not None else by_piece
    return leaning is not None and float(leaning[_PERSON]) > _LEAST_LIKE_PERSON


def _resolve_overlaps(found: list[NameMatch], knowledge: Knowledge, part: Sequence[WordToken]) -> list[NameMatch]:
    """Keep names that do not overlap: the stronger source, then the longer name, then the surer one."""
    if knowledge:
        found += [
            NameMatch(known.first, known.last, known.type, _KNOWN, f"dictionary:{known.source}", 6)
            for known in knowledge.matches(part)
        ]
    if knowledge.project:
        found += _pronouns(part, knowledge)
    tagged = {(row.first, row.last): row for row in found if row.method == "tagger"}
    # Drop a listed name inside a longer one that the tagger found ("Amazon" in "Amazon CloudFront").
    longer = [span for span in tagged if span[1] - span[0] > 1]
    found = [row for row in found if row.strength > 3 or not _within(row, longer)]
    # The tagger reads the type of a listed word from its sentence: JSON is a format and a technology.
    found = [row for row in found if row.method != _LISTED or _same_type(row, tagged.get((row.first, row.last)))]
    kept: list[NameMatch] = []
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


def _same_type(row: NameMatch, tagged: NameMatch | None) -> bool:
    return tagged is None or tagged.type == row.type


def _within(row: NameMatch, spans: Sequence[tuple[int, int]]) -> bool:
    size = row.last - row.first
    return row.method.startswith("dictionary:") and any(
        first <= row.first and row.last <= last and size < last - first for first, last in spans
    )


def _pronouns(part: Sequence[WordToken], knowledge: Knowledge) -> Iterator[NameMatch]:
    """Words that mean the project."""
    lowered = [token.text.lower() for token in part]
    for place, low in enumerate(lowered):
        after = lowered[place + 1] if place + 1 < len(lowered) else ""
        if low == "we" or (low in ("our", "this", "the") and after in _OURS[low]):
            yield NameMatch(
                place, place + (1 if low == "we" else 2), knowledge.project_type, 0.8, STANDS_FOR_PROJECT, 7
            )


def _entity(row: NameMatch, part: Sequence[WordToken], text: str, project: str) -> ExtractedEntity:
    start, end = part[row.first].start, part[row.last - 1].end
    if row.type == "Person" and text[start] == "@" and end - start > 1:
        start += 1  # the "@" is not part of the name
    name = project if row.method == STANDS_FOR_PROJECT else row.name or text[start:end]
    return ExtractedEntity(name, row.type, start, end, round(row.confidence, 3), row.method)
