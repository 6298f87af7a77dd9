"""Finds the names of stored entities in a text, in any case, in the plural, and with or without a hyphen.

Every word and every short run of words is a possible name. Their keys are looked up together, so the work depends on
the length of the text and not on the number of entities. A name that a user gave counts everywhere. One that was read
from a memory can be an ordinary word elsewhere, so it must be spelled like a name, or be known from several places.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from ....core.graph_values import EntityType, canonical, shared_spelling
from .shapes import NameMatch, cue_words
from .tokens import WordToken

__all__ = ["EntityLookup", "KnownEntity", "match_entities"]

_MOST_WORDS = 6
_LONGEST = 120  # characters of a name
_SEPARATORS = re.compile(r"[\s._-]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_GIVEN, _READ = 0.97, 0.9  # the confidence in names that a user gave, and in those read from memories
_STRENGTH_GIVEN, _STRENGTH_READ = 6, 3
_SMALL = cue_words("nobody") | cue_words("determiners")
_ALSO_WORDS = cue_words("plain_words") | cue_words("plain_given_names")


class KnownEntity(NamedTuple):
    """A stored entity: its name, all its spellings, whether a user gave it, and whether several places name it."""

    name: str
    type: EntityType
    spellings: frozenset[str]
    is_given: bool
    is_repeated: bool


class EntityLookup(Protocol):
    """Finds stored entities by the keys of their names, and texts that use a word."""

    def find(self, keys: Collection[str]) -> Mapping[str, Sequence[KnownEntity]]: ...

    def texts(self, word: str) -> Sequence[str]:
        """The contents of a few of the newest memories that contain a word."""
        ...


class _Span(NamedTuple):
    first: int
    last: int
    text: str
    keys: tuple[str, ...]


def match_entities(
    text: str, parts: Sequence[Sequence[WordToken]], lookup: EntityLookup, vocabulary: Collection[str]
) -> list[list[NameMatch]]:
    """The names of stored entities in each sentence. `vocabulary` has the ordinary words."""
    spans = [list(_spans(text, part)) for part in parts]
    known = lookup.find({key for row in spans for span in row for key in span.keys})
    if not known:
        return [[] for _ in parts]
    return [[match for span in row for match in _matches(span, known, vocabulary)] for row in spans]


def _spans(text: str, part: Sequence[WordToken]) -> Iterator[_Span]:
    """The runs of words of a sentence that can be a name: neither end is a small word or a sign."""
    ends = [_can_end(token) for token in part]
    for first, token in enumerate(part):
        if not ends[first]:
            continue
        for last in range(first + 1, min(first + _MOST_WORDS, len(part)) + 1):
            past = part[last - 1].end
            if past - token.start > _LONGEST or (last - first > 1 and part[last - 1].text in ".,;:!?()"):
                break
            if ends[last - 1]:
                spelled = text[token.start : past]
                yield _Span(first, last, spelled, tuple(_keys(spelled)))


def _can_end(token: WordToken) -> bool:
    word = token.text
    if token.kind not in ("", "path", "mention") or not any(char.isalnum() for char in word):
        return False
    # A name can be a small word, but only in its own spelling: "Next", "IT".
    return word.lower() not in _SMALL or not word.islower()


def _keys(spelled: str) -> Iterator[str]:
    """The keys that an entity of this name can have, with other endings."""
    folded = unicodedata.normalize("NFKC", spelled).casefold().removeprefix("@")
    if "/" in folded or "\\" in folded:
        yield canonical(spelled, "File")
        return
    forms = {_SEPARATORS.sub(" ", folded).strip(), _SEPARATORS.sub("", folded), folded}
    if _CAMEL.search(spelled) is not None:
        forms.add(_CAMEL.sub(" ", spelled).casefold())
    for form in sorted(forms):
        for one in (form, *_other_numbers(form)):
            yield shared_spelling(one)


def _other_numbers(form: str) -> Iterator[str]:
    """The singular of a plural, and the plural of a singular."""
    if len(form) < 4 or not form[-1].isalpha():
        return
    if form.endswith("ies"):
        yield form[:-3] + "y"
    elif form.endswith(("ses", "xes", "zes", "ches", "shes")):
        yield form[:-2]
    if form.endswith("s"):
        if not form.endswith("ss"):
            yield form[:-1]
    else:
        yield form + "s"


def _matches(
    span: _Span, known: Mapping[str, Sequence[KnownEntity]], vocabulary: Collection[str]
) -> Iterator[NameMatch]:
    found = [entity for key in span.keys for entity in known.get(key, ())]
    fitting = [entity for entity in found if _fits(span, entity, vocabulary)]
    if not fitting:
        return
    # A name that a user gave says more than one that was read.
    best = max(fitting, key=lambda entity: (entity.is_given, span.text in entity.spellings))
    same = any(canonical(span.text, best.type) == canonical(name, best.type) for name in (best.name, *best.spellings))
    yield NameMatch(
        span.first,
        span.last,
        best.type,
        _GIVEN if best.is_given else _READ,
        "dictionary:entity",
        _STRENGTH_GIVEN if best.is_given else _STRENGTH_READ,
        "" if same else best.name,
    )


def _fits(span: _Span, entity: KnownEntity, vocabulary: Collection[str]) -> bool:
    """Whether the words mean the entity, and not something else that is written alike."""
    exact, low = span.text in entity.spellings, span.text.lower()
    if entity.type == "File":
        return exact or "/" in span.text or "." in span.text
    if entity.is_given or span.last - span.first > 1:
        return exact or low not in _SMALL
    if low not in vocabulary and low.rstrip("s") not in vocabulary:
        return True
    if span.text.islower():
        # The tagger reads an ordinary word by its sentence, unless it is often a name here.
        return exact and entity.is_repeated and entity.type != "Concept"
    return low not in _SMALL and (span.first > 0 or low not in _ALSO_WORDS)
