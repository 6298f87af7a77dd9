"""Word lists for comparing statements: opposites, negations, hedges, environments, verbs and common words.

The lists are in `opposites.json`. An axis has two or more sides that exclude each other. Its kind is `things` where the
words may also name two different things ("client", "server"), and `scope` where they say how many are meant.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from ...lazy import regex

__all__ = [
    "CHANGES", "COMMON", "ENVIRONMENTS", "EXCLUSIVE", "FILLERS", "FOREIGN", "FOREIGN_NEGATIONS", "HEDGES", "HOLDERS",
    "LIGHT", "MANY", "NEGATIONS", "OPENERS", "PARTICIPLES", "RESERVED", "SCOPES", "SERIES", "SIDES", "THINGS", "VERBS",
    "word_set",
]  # fmt: skip


def word_set(text: str) -> frozenset[str]:
    """The words of a text as a set."""
    return frozenset(text.split())


def _phrases(phrases: list[str]) -> re.Pattern[str]:
    """An expression for any of these phrases, as whole words."""
    return regex(rf"(?<![\w-])(?:{'|'.join(map(re.escape, phrases))})(?![\w-])")


_TABLES = json.loads(Path(__file__).with_name("opposites.json").read_text("utf-8"))

# The (axis, side) pairs of each word.
SIDES: dict[str, tuple[tuple[int, int], ...]] = {}
for _axis, _row in enumerate(_TABLES["axes"]):
    for _side, _words in enumerate(_row["sides"]):
        for _word in _words.split():
            SIDES[_word] = (*SIDES.get(_word, ()), (_axis, _side))
THINGS = {axis for axis, row in enumerate(_TABLES["axes"]) if row.get("kind") == "things"}
SCOPES = {axis for axis, row in enumerate(_TABLES["axes"]) if row.get("kind") == "scope"}

# The environment that a word names, and whether it does so everywhere: "production" may be that of a film.
ENVIRONMENTS: dict[str, tuple[str, bool]] = {
    spelling: (row["name"], row["telling"]) for row in _TABLES["environments"] for spelling in row["spellings"]
}
NEGATIONS = frozenset[str](_TABLES["negations"])
HEDGES = frozenset[str](_TABLES["hedges"])
# The base form of irregular past tenses and participles.
VERBS: dict[str, str] = {past: verb for verb, pasts in _TABLES["irregular_verbs"].items() for past in pasts}
# After a form of "be" these mark a passive, as "-ed" does.
PARTICIPLES = frozenset({*VERBS, *_TABLES["participles"]})
# Words that carry grammar or introduce a note, and not its subject.
COMMON = frozenset[str](_TABLES["common"])
# Phrases that add nothing to a statement, and words that add nothing at the start of one.
FILLERS: list[str] = _TABLES["fillers"]
OPENERS: list[str] = _TABLES["openers"]
# Small words that show that a text is not English.
FOREIGN = frozenset[str](_TABLES["foreign"])
# Nouns of which several are numbered: note 1 and note 2 are two notes.
SERIES = frozenset[str](_TABLES["series"])
FOREIGN_NEGATIONS = frozenset[str](_TABLES["foreign_negations"])

# Words for contradictions; the verbs are stems.
# They only join a thing and its value: it "lives in", "runs on", "is set to".
LIGHT = word_set(_TABLES["light"])
# They say what, where or whose a thing is, of which there is one.
EXCLUSIVE = word_set(_TABLES["exclusive"])
# Verbs that open the line of a log: "update A to 2", "update A to 3".
CHANGES = word_set(_TABLES["changes"])
# Verbs of the one who is in charge.
HOLDERS = word_set(_TABLES["holders"])
# Of what these name, a thing can have several: it "needs" this and that, it is "used by" many.
MANY = _phrases(_TABLES["many"])
# A statement with one of these does not exclude another: a proposal, a condition, an example, a part of a history.
RESERVED = _phrases(_TABLES["reserved"])
