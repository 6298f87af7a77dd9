"""Rules for names as developers write them in notes and chat, which the tagger's training data lack.

People by given name, by verbs and by employer; organisations by suffix and as employers; files by path; listed names
by spelling. Confidences were measured on `bench/data/relations.json` and on held-out training sentences. The word lists
are in `cues.json`, the names in `names.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ....core.graph_values import EntityType
from ....core.jobs import load_once
from .tokens import WordToken

__all__ = ["NAMES_FILE", "Gazetteer", "NameMatch", "cue_words", "listed_names", "match_rules"]

NAMES_FILE = Path(__file__).with_name("names.json")
KINDS = ("library", "application", "language", "system", "device", "website", "organization", "given")


class Gazetteer:
    """Listed names of technologies, organisations and people. They are hints: the tagger decides by the sentence."""

    def __init__(self, names: dict[str, list[str]]) -> None:
        self._names: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        self._longest: dict[str, int] = {}
        for kind in KINDS:
            for name in names[kind]:
                words = tuple(name.lower().split())
                self._names.setdefault(words, []).append((kind, name))
                self._longest[words[0]] = max(self._longest.get(words[0], 0), len(words))

    def lists(self, name: str) -> bool:
        """Whether the name is listed, in any case."""
        return tuple(name.lower().split()) in self._names

    def matches(
        self, words: Sequence[str], lowered: Sequence[str]
    ) -> Iterator[tuple[int, int, list[tuple[str, bool]]]]:
        """The listed names among the words, longest first: start, end, and the kinds with whether the case matches."""
        place, count = 0, len(words)
        while place < count:
            step = 1
            for length in range(min(self._longest.get(lowered[place], 0), count - place), 0, -1):
                listed = self._names.get(tuple(lowered[place : place + length]))
                if listed:
                    spelled = " ".join(words[place : place + length])
                    yield place, place + length, [(kind, spelled == name) for kind, name in listed]
                    step = length
                    break
            place += step


@load_once
def listed_names() -> dict[str, list[str]]:
    """The names of the list, by kind."""
    names: dict[str, list[str]] = json.loads(NAMES_FILE.read_text("utf-8"))
    return names


class NameMatch(NamedTuple):
    """A name that was found: its tokens, type, confidence, what found it, and its strength if names overlap.

    `name` is that of a known entity which the text spells in another way; usually the text itself is the name.
    """

    first: int
    last: int
    type: EntityType
    confidence: float
    method: str
    strength: int
    name: str = ""


_CUES = json.loads(Path(__file__).with_name("cues.json").read_text("utf-8"))


def cue_words(name: str) -> frozenset[str]:
    return frozenset(_CUES[name].split())


_EXTENSIONS = cue_words("extensions")
_BARE_FILES = frozenset(("dockerfile", "makefile", "rakefile", "gemfile", "procfile", "jenkinsfile", "vagrantfile"))
_ADDRESSING = frozenset(("ask", "ping", "cc", "thanks", "tell", "told", "colleague", "teammate"))
_FOLDERS = re.compile(
    r"(?:~|\.{1,2})/\w|/[\w.-]+/[\w.-]|[A-Za-z]:[/\\]\w"
    r"|(?:src|tests?|docs?|lib|bin|apps?|packages|cmd|internal|config|scripts|etc|usr|var|home|tmp|opt|bench|tools)/[\w.-]"
)
_LINE = re.compile(r"\d+\Z")
_CAPITAL = re.compile(r"[A-ZÀ-ÖØ-Þ][\w’'-]*\Z")
_PERSON_VERBS = cue_words("person_verbs")
_MAKING, _MADE = cue_words("making_verbs"), cue_words("made_participles")
_PARTICLES = cue_words("surname_particles")
_ROLES = cue_words("roles")
_SUFFIXES = cue_words("company_suffixes")
_SERVICE_KINDS = cue_words("service_kinds")
_GROUP_KINDS = cue_words("group_kinds")
# Capitalised words that name nobody and nothing.
_NOBODY = cue_words("nobody")
# Listed names that are also ordinary words.
_WORDS = cue_words("plain_words")
_PLAIN_NAMES = cue_words("plain_given_names")
_VERSION = re.compile(r"v?\d+(?:\.\d+)*(?:\.x|\+)?\Z")
_IN_LANGUAGE = cue_words("before_language")
_KIND_TYPE: dict[str, EntityType] = {
    "library": "Technology",
    "application": "Technology",
    "language": "Technology",
    "system": "Technology",
    "device": "Technology",
    "website": "Technology",
    "organization": "Organization",
}


@load_once
def _listed() -> tuple[Gazetteer, frozenset[str]]:
    return Gazetteer(listed_names()), frozenset(listed_names()["given"])


def match_rules(tokens: Sequence[WordToken], person_like: Callable[[str], bool]) -> list[NameMatch]:
    """Apply all rules to a sentence. `person_like` says whether a word is used like people's names."""
    words = [token.text for token in tokens]
    lowered = [word.lower() for word in words]
    found = [*_files(tokens), *_dictionary(words, lowered)]
    found += _organisations(words, lowered)
    found += _services(words)
    found += _people(words, lowered, found, person_like)
    found += _employers(words, lowered, found)
    return found


def _files(tokens: Sequence[WordToken]) -> Iterator[NameMatch]:
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
                yield NameMatch(place, place + 1, "File", 0.9 if known else 0.75, "rule:path", 4)
        elif token.kind == "" and name.lower() in _BARE_FILES and name[0].isupper():
            yield NameMatch(place, place + 1, "File", 0.9, "rule:file-name", 3)
        elif token.kind == "" and known and "(" not in name:
            followed = place + 2 < len(tokens) and tokens[place + 1].text == ":" and _LINE.match(tokens[place + 2].text)
            if followed or name[0].islower() or ending.lower() not in ("js", "io", "net", "db", "h", "c", "r"):
                yield NameMatch(place, place + 1, "File", 0.85, "rule:file-name", 3)


def _dictionary(words: Sequence[str], lowered: Sequence[str]) -> Iterator[NameMatch]:
    """Listed names in their listed spelling; those that are ordinary words need further context."""
    gazetteer, _ = _listed()
    for first, last, listed in gazetteer.matches(words, lowered):
        kinds = [kind for kind, exact in listed if exact and kind in _KIND_TYPE]
        if not kinds:
            continue
        organisation = kinds == ["organization"]
        source = "dictionary:organisation" if organisation else "dictionary:technology"
        type: EntityType = "Organization" if organisation else "Technology"
        if last - first > 1:
            yield NameMatch(first, last, type, 0.9, source, 3)
            continue
        low = lowered[first]
        after = words[last] if last < len(words) else ""
        if not organisation and _VERSION.match(after):
            yield NameMatch(first, last, type, 0.95, "rule:version", 4)
        elif low in _WORDS or len(low) == 1:
            before = lowered[first - 1] if first else ""
            named = words[first][0].isupper() and first > 0 and before in _IN_LANGUAGE and not _CAPITAL.match(after)
            if named and (len(low) > 1 or before in ("in", "written")):
                yield NameMatch(first, last, type, 0.8, source, 2)
            elif organisation and first > 0 and words[first][0].isupper():
                yield NameMatch(first, last, type, 0.7, source, 2)
        elif words[first] != low or len(low) > 4:
            # In lower case the tagger decides: the sentence says more than the list.
            yield NameMatch(first, last, type, 0.85, source, 3 if organisation else 2 if words[first] != low else 1)


def _organisations(words: Sequence[str], lowered: Sequence[str]) -> Iterator[NameMatch]:
    for place, word in enumerate(words):
        if word in _SUFFIXES and place:
            first = place
            while place - first < 3 and first and _named(words[first - 1]):
                first -= 1
            if first < place:
                yield NameMatch(first, place + 1, "Organization", 0.85, "rule:company-suffix", 5)
        elif word == "University" and lowered[place + 1 : place + 2] == ["of"] and _capital(words, place + 2):
            yield NameMatch(place, place + 3, "Organization", 0.9, "rule:company-suffix", 5)


def _services(words: Sequence[str]) -> Iterator[NameMatch]:
    """Services and groups by their kind: "Checkout Service", "Platform Team"."""
    for place, word in enumerate(words):
        if word not in _SERVICE_KINDS and word not in _GROUP_KINDS:
            continue
        first = place
        while place - first < 3 and first and _named(words[first - 1]) and words[first - 1] not in _SERVICE_KINDS:
            first -= 1
        # At the beginning of a sentence the capital says nothing: "Old Server", "Restart Worker".
        if first < place and (first > 0 or place - first > 1 or place + 1 == len(words) or words[place + 1].islower()):
            type: EntityType = "Organization" if word in _GROUP_KINDS else "Technology"
            yield NameMatch(first, place + 1, type, 0.8, "rule:kind", 2)


def _people(
    words: Sequence[str], lowered: Sequence[str], found: Sequence[NameMatch], person_like: Callable[[str], bool]
) -> Iterator[NameMatch]:
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
        surname = _surname_length(words, lowered, last, taken)
        after = lowered[last + surname] if last + surname < len(words) else ""
        before = lowered[place - 1] if place else ""
        from_one = after in ("from", "at") and _capital(words, last + surname + 1)
        if is_given and surname:
            if not plain or place or after in _PERSON_VERBS or from_one:
                yield NameMatch(place, last + surname, "Person", 0.9, "rule:full-name", 4)
                place += surname
            continue
        if surname and _is_maker(lowered, place, last + surname, person_like):
            yield NameMatch(place, last + surname, "Person", 0.8, "rule:full-name", 4)
            place += surname
            continue
        if is_given and (not plain or place):
            yield NameMatch(place, last, "Person", 0.85, "dictionary:given-name", 3)
        elif is_given and plain and (after in _PERSON_VERBS or from_one):
            yield NameMatch(place, last, "Person", 0.8, "rule:person-verb", 3)
        elif word.isupper() or word[1:].lower() != word[1:]:
            continue
        elif from_one and person_like(low) and lowered[last + surname + 1] not in _NOBODY:
            yield NameMatch(place, last + surname, "Person", 0.8, "rule:from-organisation", 3)
        elif after in _PERSON_VERBS and after not in ("works", "notes", "left", "fixed", "worked") and person_like(low):
            yield NameMatch(place, last + surname, "Person", 0.75, "rule:person-verb", 3)
        elif before in _ADDRESSING and person_like(low):
            yield NameMatch(place, last + surname, "Person", 0.75, "rule:addressed", 3)


def _employers(words: Sequence[str], lowered: Sequence[str], found: Sequence[NameMatch]) -> Iterator[NameMatch]:
    """Unlisted organisations: where someone works, comes from, or joined."""
    people = {row.last: row for row in found if row.type == "Person"}
    # A product's name can be that of its maker: someone who works at Docker works at a company.
    weak = ("dictionary:technology", "rule:person-verb")
    firm = [row for row in found if row.strength > 1 and row.method not in weak]
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
            yield NameMatch(after, last, "Organization", 0.85, rule, 4)


def _is_maker(lowered: Sequence[str], first: int, last: int, person_like: Callable[[str], bool]) -> bool:
    """Whether capitalised words name somebody who made something: "Rich Harris created", "built by Rich Harris"."""
    makes = lowered[last : last + 1] and lowered[last] in _MAKING
    made = first > 1 and lowered[first - 1] == "by" and lowered[first - 2] in _MADE
    return bool(makes or made) and (person_like(lowered[first]) or person_like(lowered[last - 1]))


def _surname_length(words: Sequence[str], lowered: Sequence[str], first: int, taken: Container[int]) -> int:
    """The number of words of a surname, if one begins there: "Chen", "van Rossum"."""
    last = first
    while last - first < 2 and last < len(words) and lowered[last] in _PARTICLES:
        last += 1
    is_one = last < len(words) and last not in taken and _surname(words[last], lowered[last])
    return last + 1 - first if is_one else 0


def _surname(word: str, low: str) -> bool:
    return bool(_CAPITAL.match(word)) and len(word) > 1 and not word.isupper() and low not in _NOBODY and word.isalpha()


def _named(word: str) -> bool:
    return bool(_CAPITAL.match(word)) and word.lower() not in _NOBODY


def _capital(words: Sequence[str], place: int) -> bool:
    return place < len(words) and bool(_CAPITAL.match(words[place]))
