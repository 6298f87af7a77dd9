"""The verb of a clause, which decides what kind of claim it makes.

The verbs are English (`words.json`). A clause in another language has none: it counts as a reference if it mentions
code, and as not understood otherwise.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, get_args

from ....core.memory.comparison.opposites import COMMON, FOREIGN, word_set
from ..words import load_pattern, load_table, load_words

__all__ = ["CHANGES", "WORD", "ClaimType", "Verb", "begins_with_action", "find_verb", "has_finite_verb"]

ClaimType = Literal[
    "implemented", "modified", "fixed", "removed", "exists", "value", "version", "dependency", "test_result",
    "behaviour", "reference",
]  # fmt: skip
CHANGES = frozenset(("implemented", "modified", "fixed", "removed"))
WORD = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)?|`[^`\n]*`|\"[^\"\n]*\"|(?<!-)[A-Za-z0-9_./-]*[_./\d][A-Za-z0-9_./-]*")


class Verb(NamedTuple):
    """A verb and its position. The form "noun" marks a word that is a noun as often: the last choice for a verb."""

    start: int
    end: int
    type: ClaimType
    form: Literal["base", "s", "past", "noun"]


def _read_forms() -> dict[str, tuple[ClaimType, Literal["base", "s", "past"]]]:
    """Each form of each verb. A row has the verb, its -s form, its past and, if different, its participle."""
    rows = load_table("claims", "verbs")
    forms: dict[str, tuple[ClaimType, Literal["base", "s", "past"]]] = {}
    for kind in (kind for kind in get_args(ClaimType) if kind in rows):
        for row in rows[kind].split(","):
            base, s, *past = row.split()
            forms.setdefault(base, (kind, "base"))
            forms.setdefault(s, (kind, "s"))
            forms.update({word: (kind, "past") for word in past if forms.get(word, (kind, "base"))[1] != "past"})
    return forms


_FORMS = _read_forms()
_NOUNS_TOO = load_words("claims", "nouns_too")
_FINITE = load_words("claims", "finite")
_BEFORE_NOUNS = load_words("claims", "before_nouns")
_AUXILIARIES = load_words("claims", "auxiliaries")
_ADVERBS = load_words("claims", "adverbs")
_COMMON_VERBS = load_words("claims", "common_verbs")
_COMMON_S = frozenset(
    word[:-1] + "ies" if word[-1] == "y" and word[-2] not in "aeo" else word + ("es" if word[-1] in "shxo" else "s")
    for word in _COMMON_VERBS
)
_NO_SUBJECTS = _BEFORE_NOUNS - {"this", "that"}
_BEFORE_ACTION = word_set("now always never longer")  # "now compiles"
_ATTEMPTS = word_set("tried attempted managed able helped")
_LONG = 7  # words of a sentence whose subject may be far from its verb
_PLURAL = re.compile(r"[a-z]{2,}(?<!thi)(?<!\bi)(?<!s)s")
_IS = re.compile(r"\s+(?:is|are|was|were|have|aren['’]t|weren['’]t)\b", re.I)
_WE = re.compile(r"\b(?:I|we)\b", re.I)
_PRESENT_PASSIVE = re.compile(
    r"(?<!['’])\b(?:is|are|be|being|gets?)\s+(?:(?:not|then|also|always|never|simply|silently)\s+)?$", re.I
)
_THE_CHANGE = load_pattern("claims", "the_change")


def find_verb(text: str, start: int, end: int, listed: bool = False) -> Verb | None:
    """The verb that says what the clause claims. "The added test" has none; "Add a test" only as a list entry."""
    before, earlier, previous, weak = "", "", "", None
    for match in WORD.finditer(text, start, end):
        word = match[0].lower()
        known = _FORMS.get(word)
        if known is None and word in _NOUNS_TOO and weak is None and before and before not in _NO_SUBJECTS:
            weak = Verb(match.start(), match.end(), "behaviour", "noun")
        if known is not None and known[1] == "base" and before == "to" and earlier in _ATTEMPTS:
            return Verb(match.start(), match.end(), known[0], "past")
        after_pronoun = known is not None and known[1] == "s" and before in ("this", "that", "which")
        if known is not None and (after_pronoun or before not in _BEFORE_NOUNS):
            kind, form = known
            if form == "s" and not before and _IS.match(text, match.end(), end):
                continue  # "Retries are enabled"
            if form != "base" or before in _AUXILIARIES or (listed and not before):
                return _as_behaviour(text, start, Verb(match.start(), match.end(), kind, form))
            if weak is None and _PLURAL.fullmatch(before):
                weak = Verb(match.start(), match.end(), "behaviour", "s")
        if weak is None and previous in _BEFORE_ACTION and word.endswith("s"):
            weak = Verb(match.start(), match.end(), "behaviour", "s")
        previous = word
        if word not in _ADVERBS or not before:
            before, earlier = word, before
    return weak


def _as_behaviour(text: str, start: int, verb: Verb) -> Verb:
    """What code does is behaviour: "`login()` creates a session", unlike "this commit creates a table"."""
    before = text[start : verb.start]
    if verb.form == "past" and verb.type in CHANGES - {"fixed"} and _PRESENT_PASSIVE.search(before):
        return verb._replace(type="behaviour")  # "keys without a value are dropped"
    alone = not before.strip()  # "Fixes the crash", as in a commit message
    own = _THE_CHANGE.match(before) or (verb.form == "base" and _WE.search(before))
    if verb.form != "past" and verb.type in CHANGES and not alone and not own:
        return verb._replace(type="behaviour")
    return verb


def _has_common_verb(words: list[str]) -> bool:
    """Whether a subject comes before a verb in the present: "usage errors end the program", "a pipe ends it"."""
    for place, word in enumerate(words[1:], 1):
        before = words[place - 1]
        if before in _BEFORE_NOUNS or place + 1 >= len(words):
            continue
        follows = _PLURAL.fullmatch(before) is not None or (
            len(words) > _LONG and before != "to" and words[0][-1:] == "s"
        )
        if word in _COMMON_S or (word in _COMMON_VERBS and follows):
            return True
    return False


def begins_with_action(text: str, start: int, end: int, common: bool = False) -> bool:
    """Whether the first word says what something does: "drops an index"; with `common`, by any usual verb."""
    word = WORD.match(text, start, end)
    known = _FORMS.get(word[0].lower()) if word else None
    if word is None:
        return False
    if common and word[0].lower() in _COMMON_S and not text.startswith((" of ", ","), word.end()):
        return True
    return word[0].lower() in _NOUNS_TOO or (known is not None and known[1] == "s")


def has_finite_verb(text: str) -> bool:
    """Whether the text makes a statement in English; "will" and "was" are German words too."""
    words = [found[0].lower().replace("’", "'") for found in WORD.finditer(text)]
    if not _FINITE.intersection(words) and not _has_common_verb(words):
        return False
    return sum(word in FOREIGN for word in words) <= sum(word in COMMON or word in _FINITE for word in words) // 2
