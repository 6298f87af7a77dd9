"""Shapes: rules for the names that labelled questions about code lack, as developers write them in notes and chat.

People by their given names, by what they do and by where they are from; organisations by their suffix and as
employers; products by the noun behind their name; files by path; listed names by their spelling. Every rule says
its name. How often each is right was measured on `bench/data/relations.json` and on training sentences left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from .gazetteer import Gazetteer, listed_names
from .tokens import Token
from .values import EntityType

__all__ = ["Shaped", "shaped"]


class Shaped(NamedTuple):
    """A name that a rule found: from and to which token, type, confidence, the rule, and its strength in a clash."""

    first: int
    last: int
    type: EntityType
    confidence: float
    method: str
    strength: int


_CUES = json.loads(Path(__file__).with_name("cues.json").read_text("utf-8"))


def _cue(name: str) -> frozenset[str]:
    return frozenset(_CUES[name].split())


_EXTENSIONS = _cue("extensions")
_BARE_FILES = frozenset(("dockerfile", "makefile", "rakefile", "gemfile", "procfile", "jenkinsfile", "vagrantfile"))
_ADDRESSING = frozenset(("ask", "ping", "cc", "thanks", "tell", "told", "colleague", "teammate"))
_FOLDERS = re.compile(
    r"(?:~|\.{1,2})/\w|/[\w.-]+/[\w.-]|[A-Za-z]:[/\\]\w"
    r"|(?:src|tests?|docs?|lib|bin|apps?|packages|cmd|internal|config|scripts|etc|usr|var|home|tmp|opt|bench|tools)/[\w.-]"
)
_LINE = re.compile(r"\d+\Z")
_CAPITAL = re.compile(r"[A-ZÀ-ÖØ-Þ][\w’'-]*\Z")
_PERSON_VERBS = _cue("person_verbs")
_BEFORE_PERSON = _cue("before_person")
_ROLES = _cue("roles")
_SUFFIXES = _cue("company_suffixes")
_PRODUCTS = _cue("product_nouns")
# Words that begin with a capital in such places without naming anyone or anything.
_NOBODY = _cue("nobody")
# Listed names that are plain words as well: the spelling alone says nothing.
_WORDS = _cue("plain_words")
_PLAIN_NAMES = _cue("plain_given_names")
_VERSION = re.compile(r"v?\d+(?:\.\d+)*(?:\.x|\+)?\Z")
_IN_LANGUAGE = _cue("before_language")
_DECORATORS = _cue("decorators")
_KIND_TYPE: dict[str, EntityType] = {
    "library": "Technology",
    "application": "Technology",
    "language": "Technology",
    "system": "Technology",
    "device": "Technology",
    "website": "Technology",
    "organization": "Organization",
}


@cache
def _listed() -> tuple[Gazetteer, frozenset[str]]:
    return Gazetteer(listed_names()), frozenset(listed_names()["given"])


def shaped(tokens: Sequence[Token], person_like: Callable[[str], bool]) -> list[Shaped]:
    """All that the rules find in a sentence. `person_like` tells whether a word is used as people's names are."""
    words = [token.text for token in tokens]
    lowered = [word.lower() for word in words]
    found = [*_files(tokens), *_mentions(tokens, lowered), *_dictionary(words, lowered)]
    found += _organisations(words, lowered)
    found += _people(words, lowered, found, person_like)
    found += _employers(words, lowered, found)
    found += _products(words, found)
    return found


def _files(tokens: Sequence[Token]) -> Iterator[Shaped]:
    for place, token in enumerate(tokens):
        name = token.text
        if token.kind != "path" and "." not in name and name.lower() not in _BARE_FILES:
            continue
        last = re.split(r"[/\\]", name.rstrip("/\\"))[-1]
        stem, dot, ending = last.rpartition(".")
        known = bool(dot and stem and ending.lower() in _EXTENSIONS and not _VERSION.match(last))
        known = known and last.lower() != "console.log" and not _listed()[0].lists(last)
        if token.kind == "path":
            if known or last.lower() in _BARE_FILES or _FOLDERS.match(name):
                yield Shaped(place, place + 1, "File", 0.9 if known else 0.75, "rule:path", 4)
        elif token.kind == "" and name.lower() in _BARE_FILES and name[0].isupper():
            yield Shaped(place, place + 1, "File", 0.9, "rule:file-name", 3)
        elif token.kind == "" and known and "(" not in name:
            followed = place + 2 < len(tokens) and tokens[place + 1].text == ":" and _LINE.match(tokens[place + 2].text)
            if followed or name[0].islower() or ending.lower() not in ("js", "io", "net", "db", "h", "c", "r"):
                yield Shaped(place, place + 1, "File", 0.85, "rule:file-name", 3)


def _mentions(tokens: Sequence[Token], lowered: Sequence[str]) -> Iterator[Shaped]:
    for place, token in enumerate(tokens):
        if token.kind != "mention" or "/" in token.text:
            continue
        name = token.text[1:]
        before = lowered[place - 1] if place else ""
        after = lowered[place + 1] if place + 1 < len(tokens) else ""
        cued = before in _BEFORE_PERSON or after in _PERSON_VERBS
        # Annotations of code begin with a capital; who is addressed out of the blue seldom does.
        code = name.lower() in _DECORATORS or not name[0].islower() or after in ("(", "annotation", "decorator")
        if not code or (cued and name.lower() not in _DECORATORS):
            yield Shaped(place, place + 1, "Person", 0.9 if cued else 0.8, "rule:mention", 4)


def _dictionary(words: Sequence[str], lowered: Sequence[str]) -> Iterator[Shaped]:
    """Listed names, spelled as listed; those that are plain words too need a sign that they are meant as names."""
    gazetteer, _ = _listed()
    for first, last, listed in gazetteer.matches(words, lowered):
        kinds = [kind for kind, exact in listed if exact and kind in _KIND_TYPE]
        if not kinds:
            continue
        organisation = kinds == ["organization"]
        source = "dictionary:organisation" if organisation else "dictionary:technology"
        type: EntityType = "Organization" if organisation else "Technology"
        if last - first > 1:
            yield Shaped(first, last, type, 0.9, source, 3)
            continue
        low = lowered[first]
        after = words[last] if last < len(words) else ""
        if not organisation and _VERSION.match(after):
            yield Shaped(first, last, type, 0.95, "rule:version", 4)
        elif low in _WORDS or len(low) == 1:
            before = lowered[first - 1] if first else ""
            named = words[first][0].isupper() and first > 0 and before in _IN_LANGUAGE and not _CAPITAL.match(after)
            if named and (len(low) > 1 or before in ("in", "written")):
                yield Shaped(first, last, type, 0.8, source, 2)
            elif organisation and first > 0 and words[first][0].isupper():
                yield Shaped(first, last, type, 0.7, source, 2)
        elif words[first] != low or len(low) > 4:
            # In lower case the tagger is left to decide: its sentence tells more than the list.
            yield Shaped(first, last, type, 0.85, source, 3 if organisation else 2 if words[first] != low else 1)


def _organisations(words: Sequence[str], lowered: Sequence[str]) -> Iterator[Shaped]:
    for place, word in enumerate(words):
        if word in _SUFFIXES and place:
            first = place
            while place - first < 3 and first and _named(words[first - 1]):
                first -= 1
            if first < place:
                yield Shaped(first, place + 1, "Organization", 0.85, "rule:company-suffix", 5)
        elif word == "University" and lowered[place + 1 : place + 2] == ["of"] and _capital(words, place + 2):
            yield Shaped(place, place + 3, "Organization", 0.9, "rule:company-suffix", 5)


def _people(
    words: Sequence[str], lowered: Sequence[str], found: Sequence[Shaped], person_like: Callable[[str], bool]
) -> Iterator[Shaped]:
    _, given = _listed()
    taken = {place for row in found if row.strength > 1 for place in range(row.first, row.last)}
    place = -1
    while (place := place + 1) < len(words):
        word, low = words[place], lowered[place]
        if place in taken or not _CAPITAL.match(word) or low in _NOBODY or not word.replace("-", "").isalpha():
            continue
        last = place + 1
        is_given = word in given
        plain = low in _PLAIN_NAMES
        surname = last < len(words) and last not in taken and _surname(words[last], lowered[last])
        after = lowered[last + surname] if last + surname < len(words) else ""
        before = lowered[place - 1] if place else ""
        if is_given and surname:
            if not plain or place or after in _PERSON_VERBS:
                yield Shaped(place, last + 1, "Person", 0.9, "rule:full-name", 4)
                place += 1
            continue
        from_one = after in ("from", "at") and last + 1 < len(words) and _capital(words, last + 1)
        if is_given and (not plain or place) and (place or after in _PERSON_VERBS or from_one or not plain):
            yield Shaped(place, last, "Person", 0.85, "dictionary:given-name", 3)
        elif is_given and plain and (after in _PERSON_VERBS or from_one):
            yield Shaped(place, last, "Person", 0.8, "rule:person-verb", 3)
        elif word.isupper() or word[1:].lower() != word[1:]:
            continue
        elif from_one and person_like(low) and lowered[last + 1] not in _NOBODY:
            yield Shaped(place, last + surname, "Person", 0.8, "rule:from-organisation", 3)
        elif after in _PERSON_VERBS and after not in ("works", "notes", "left", "fixed", "worked") and person_like(low):
            yield Shaped(place, last + surname, "Person", 0.75, "rule:person-verb", 3)
        elif before in _ADDRESSING and person_like(low):
            yield Shaped(place, last + surname, "Person", 0.75, "rule:addressed", 3)


def _employers(words: Sequence[str], lowered: Sequence[str], found: Sequence[Shaped]) -> Iterator[Shaped]:
    """Unlisted organisations: where someone is from, works or has joined."""
    people = {row.last: row for row in found if row.type == "Person"}
    # A product's name is its maker's too: who works at Docker does not work at a program.
    firm = [row for row in found if row.strength > 1 and row.method != "dictionary:technology"]
    taken = {place for row in firm for place in range(row.first, row.last)}
    for place, low in enumerate(lowered):
        after = place + 1
        if low in ("from", "at") and (place in people or (place > 1 and lowered[place - 1] in _ROLES)):
            rule = "rule:from-organisation"
        elif (low == "joined" and place in people) or (
            low in ("at", "for") and place and lowered[place - 1].startswith("work")
        ):
            rule = "rule:employer"
        else:
            continue
        last = after
        while last - after < 3 and _capital(words, last) and lowered[last] not in _NOBODY and last not in taken:
            last += 1
        if last > after:
            yield Shaped(after, last, "Organization", 0.85, rule, 4)


def _products(words: Sequence[str], found: Sequence[Shaped]) -> Iterator[Shaped]:
    """A name with a product's noun behind it: "Claude API", "Acme SDK"."""
    people = {place for row in found if row.type in ("Person", "File") for place in range(row.first, row.last)}
    listed = {row.last for row in found if row.method.startswith("dictionary:")} | {0}
    for place, word in enumerate(words):
        if word not in _PRODUCTS or not place:
            continue
        first = place
        while place - first < 2 and first and _named(words[first - 1]):
            first -= 1
        if first == place or people & set(range(first, place)):
            continue
        if word in ("API", "APIs", "SDK", "CLI") or place in listed:
            yield Shaped(first, place + 1, "Technology", 0.85, "rule:product", 5)


def _surname(word: str, low: str) -> bool:
    return bool(_CAPITAL.match(word)) and len(word) > 1 and not word.isupper() and low not in _NOBODY and word.isalpha()


def _named(word: str) -> bool:
    return bool(_CAPITAL.match(word)) and word.lower() not in _NOBODY


def _capital(words: Sequence[str], place: int) -> bool:
    return place < len(words) and bool(_CAPITAL.match(words[place]))
