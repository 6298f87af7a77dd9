"""Learns names from their repetition in one text: a word that comes back like a name is one wherever it stands.

A sentence says little about a name that nobody listed; the whole text says more. Each repeated word is weighed by how
the text uses it: in the title, in addresses and code, marked or capitalised, defined or owned, and by what the tagger
made of all its places. `training/repetition/train_repetition.py` fits the weights on descriptions of packages.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core.graph_values import EntityType
from .shapes import cue_words
from .tagger import TYPES
from .tokens import WordToken, code_spans

__all__ = [
    "FEATURES", "WEIGHTS_FILE", "Candidate", "RepeatedName", "candidates", "learned_names", "names_elsewhere",
    "open_names",
]  # fmt: skip

WEIGHTS_FILE = Path(__file__).with_name("repetition.json")
FEATURES = (
    "count", "title", "heading", "address", "code", "installed", "marked", "capital", "inner_capital", "unknown",
    "mixed", "mean", "best", "defined", "owner", "determined", "hyphenated",
)  # fmt: skip
_LEAST_SENTENCES = 2
_MOST_CANDIDATES = 200
_LONGEST_RUN = 3
_OPEN = 0.1  # the likelihood of a name from which a word is worth a look at other texts
_MOST_OPEN = 5  # such words of a text that are looked up
_LEAST_TEXTS = 2  # other texts that must use the word as a name
_ELSEWHERE = 0.7
# The likelihood from which a word may be a name; inside a sentence a capital says much.
_POSSIBLE, _CAPITAL_POSSIBLE = 0.12, 0.01
_UNSURE = 0.3
_TYPED = 0.3  # the likelihood from which the tagger's type counts
_NAME = re.compile(r"[A-Za-zÀ-ÿ][\w.+#-]*\Z")
_WORD = re.compile(r"[A-Za-z][\w-]*")
_ADDRESS = re.compile(r"(?:https?://|www\.)[^\s<>\"'`)\]]{1,500}")
_INSTALLED = re.compile(
    r"\b(?:install|add|import|from|require|use|using|get|crate|gem|package)[ \t(\"'`]{1,4}([A-Za-z][\w-]{1,60})"
)
# The first heading, or the first line of a text without one.
_TITLE = re.compile(
    r"^#{1,2}[ ](?P<hashes>[^\n]{1,200})|^(?P<underlined>\w[^\n]{0,200})\n(?:={3,}|-{3,})[ ]*$"
    r"|\A\s*(?P<first>\w[^\n]{0,200})",
    re.M,
)
_MARKS = frozenset("`*_")
_MIXED = re.compile(r"[a-z][A-Z]|[A-Za-z]\d|\w[-_]\w")
_DEFINING = cue_words("defining_words")
_DETERMINERS = cue_words("determiners")
_COMMON = cue_words("nobody")


class RepeatedName(NamedTuple):
    """A name that a text repeats: its places as (sentence, first, last), its type and the confidence in it."""

    places: tuple[tuple[int, int, int], ...]
    type: EntityType
    confidence: float


class Candidate(NamedTuple):
    """A repeated word or run of capitalised words, with its features and the summed likelihoods of the types."""

    key: str
    places: tuple[tuple[int, int, int], ...]
    values: tuple[float, ...]
    by_type: NDArray[np.float32]


def learned_names(
    text: str, parts: Sequence[Sequence[WordToken]], by_type: Sequence[NDArray[np.float32]], vocabulary: Collection[str]
) -> Iterator[RepeatedName]:
    """The names that a text repeats. `by_type` has the tagger's likelihood of each type for each word."""
    weights, offset, least = _weights()
    for one in candidates(text, parts, by_type, vocabulary):
        score = offset + sum(weight * value for weight, value in zip(weights, one.values, strict=True))
        sure = 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))
        if sure >= least:
            type = TYPES[int(one.by_type.argmax())] if float(one.by_type.max()) >= _TYPED else "Technology"
            confidence = round(0.6 + 0.35 * (sure - least) / (1 - least), 3)
            yield RepeatedName(_alike(one, parts, vocabulary), type, confidence)


def _alike(
    one: Candidate, parts: Sequence[Sequence[WordToken]], vocabulary: Collection[str]
) -> tuple[tuple[int, int, int], ...]:
    """The places of a name; if it is also an ordinary word, only those in the spelling that it has most often."""
    if one.key not in vocabulary:
        return one.places
    spelled = Counter(parts[number][first].text for number, first, _ in one.places)
    usual = max(spelled, key=lambda word: (spelled[word], word))
    return tuple(
        (number, first, last)
        for number, first, last in one.places
        if parts[number][first].text == usual or _is_marked(parts[number], first, last)
    )


def candidates(
    text: str, parts: Sequence[Sequence[WordToken]], by_type: Sequence[NDArray[np.float32]], vocabulary: Collection[str]
) -> Iterator[Candidate]:
    """Every word and every run of capitalised words that the text repeats, the most frequent first."""
    found: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for number, part in enumerate(parts):
        for place, token in enumerate(part):
            if _can_name(token):
                found[token.text.lower()].append((number, place, place + 1))
        for first, last in _runs(part):
            found[" ".join(token.text.lower() for token in part[first:last])].append((number, first, last))
    repeated = sorted(
        (
            (key, places)
            for key, places in found.items()
            if len({number for number, _, _ in places}) >= _LEAST_SENTENCES
        ),
        key=lambda row: (-len(row[1]), row[0]),
    )
    if not repeated:
        return
    around = _surroundings(text)
    for key, places in repeated[:_MOST_CANDIDATES]:
        likely = np.array([by_type[number][first:last].mean(axis=0) for number, first, last in places])
        values = (
            min(math.log2(len(places)), 5.0),
            *(float(key in around[name]) for name in ("title", "heading", "address", "code", "installed")),
            *_shares(places, parts),
            float(key not in vocabulary),
            float(any(_MIXED.search(parts[number][first].text) is not None for number, first, _ in places[:3])),
            float(likely.sum(axis=1).mean()),
            float(likely.sum(axis=1).max()),
            *_usage(places, parts),
            float("-" in key),
        )
        yield Candidate(key, tuple(places), values, likely.mean(axis=0))


def _can_name(token: WordToken) -> bool:
    word = token.text
    return token.kind == "" and len(word) > 1 and _NAME.match(word) is not None and word.lower() not in _COMMON


def _runs(part: Sequence[WordToken]) -> Iterator[tuple[int, int]]:
    """Two or three capitalised words in a row."""
    place = 0
    while place < len(part):
        last = place
        while (
            last < len(part) and last - place < _LONGEST_RUN and part[last].text[0].isupper() and _can_name(part[last])
        ):
            last += 1
        if last - place > 1:
            yield place, last
        place = max(last, place + 1)


def _surroundings(text: str) -> Mapping[str, Collection[str]]:
    """The words of the title, of addresses and of code, and those that are installed or imported."""
    title = next((match[match.lastgroup or 0] for match in _TITLE.finditer(text)), "")[:200]
    addresses = " ".join(_ADDRESS.findall(text))
    code = " ".join(text[first:last] for first, last in code_spans(text))
    words = [word.lower() for word in _WORD.findall(_ADDRESS.sub(" ", title))]
    return {
        "title": frozenset(words),
        "heading": frozenset((" ".join(words),)),
        "address": {word.lower() for word in re.split(r"[/?#=.:&]+", addresses.replace(" ", "/"))},
        "code": {word.lower() for word in _WORD.findall(code)},
        "installed": {word.lower() for word in _INSTALLED.findall(text)},
    }


def _shares(places: Sequence[tuple[int, int, int]], parts: Sequence[Sequence[WordToken]]) -> tuple[float, float, float]:
    """How many of the places are marked, capitalised, and capitalised inside a sentence."""
    capital = [parts[number][first].text[0].isupper() for number, first, _ in places]
    inner = [upper for upper, (_, first, _) in zip(capital, places, strict=True) if first > 0]
    marked = sum(_is_marked(parts[number], first, last) for number, first, last in places)
    return marked / len(places), sum(capital) / len(places), sum(inner) / len(inner) if inner else 0.0


def _is_marked(part: Sequence[WordToken], first: int, last: int) -> bool:
    return first > 0 and last < len(part) and part[first - 1].text in _MARKS and part[last].text in _MARKS


def _usage(places: Sequence[tuple[int, int, int]], parts: Sequence[Sequence[WordToken]]) -> tuple[float, float, float]:
    """Whether a place defines the word; how many own something; how many follow a determiner."""
    defined = owner = determined = 0
    for number, first, last in places:
        part = parts[number]
        after = next((token.text.lower() for token in part[last:] if token.text not in _MARKS), "")
        before = next((token.text.lower() for token in reversed(part[:first]) if token.text not in _MARKS), "")
        defined += after in _DEFINING and before not in _DETERMINERS
        owner += after in ("'s", "’s")
        determined += before in _DETERMINERS
    count = len(places)
    return min(defined, 3) / 3, owner / count, determined / count


def names_elsewhere(
    parts: Sequence[Sequence[WordToken]],
    by_type: Sequence[NDArray[np.float32]],
    taken: Sequence[Collection[int]],
    texts: Callable[[str], Sequence[str]],
) -> Iterator[RepeatedName]:
    """Words that the sentence alone leaves open, and that other texts capitalise like names too.

    `taken` are the places that have a name already; `texts` gives a few texts that contain a word.
    """
    open_words: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for number, part in enumerate(parts):
        if sum(token.text[0].isupper() for token in part) * 2 > len(part):
            continue  # a heading capitalises every word
        for place, token in enumerate(part):
            likely = float(by_type[number][place].sum())
            if place and place not in taken[number] and likely >= _OPEN and _is_capitalised(token):
                open_words[token.text].append((number, place, place + 1))
    for word, places in list(open_words.items())[:_MOST_OPEN]:
        inside = re.compile(rf"[a-z,] {word}\b")
        spoken = [text for text in texts(word) if word.lower() in text.lower()]
        named = sum(inside.search(text) is not None for text in spoken)
        if named >= _LEAST_TEXTS and not any(re.search(rf"\b{word.lower()}\b", text) for text in spoken):
            total = sum(by_type[number][place] for number, place, _ in places)
            yield RepeatedName(tuple(places), TYPES[int(np.argmax(total))], _ELSEWHERE)


def open_names(
    parts: Sequence[Sequence[WordToken]],
    by_type: Sequence[NDArray[np.float32]],
    taken: Sequence[Collection[int]],
    vocabulary: Collection[str],
) -> Iterator[RepeatedName]:
    """Words that look like names and that the sentence alone leaves open; what it states about them may decide."""
    for number, part in enumerate(parts):
        is_open = [
            place not in taken[number] and _may_name(part, place, float(by_type[number][place].sum()), vocabulary)
            for place in range(len(part))
        ]
        place = 0
        while place < len(part):
            last = place
            while last < len(part) and is_open[last] and (last == place or part[last].text[0].isupper()):
                last += 1
            if last > place:
                likely = by_type[number][place:last].sum(axis=0)
                type = TYPES[int(likely.argmax())] if float(likely.max()) >= _TYPED else "Technology"
                yield RepeatedName(((number, place, last),), "Technology" if type == "Concept" else type, _UNSURE)
            place = max(last, place + 1)


def _may_name(part: Sequence[WordToken], place: int, likely: float, vocabulary: Collection[str]) -> bool:
    word = part[place].text
    if not _can_name(part[place]) or likely < _CAPITAL_POSSIBLE or word.lower().removesuffix("s") in _COMMON:
        return False
    if word[0].isupper():
        return place > 0 or likely >= _POSSIBLE
    determined = place > 0 and part[place - 1].text.lower() in _DETERMINERS
    return likely >= _POSSIBLE and word not in vocabulary and not determined


def _is_capitalised(token: WordToken) -> bool:
    word = token.text
    return word[0].isupper() and word[1:].islower() and word.isalpha() and _can_name(token)


@cache
def _weights() -> tuple[tuple[float, ...], float, float]:
    table = json.loads(WEIGHTS_FILE.read_text("utf-8"))
    return tuple(table["weights"][name] for name in FEATURES), table["offset"], table["least"]
