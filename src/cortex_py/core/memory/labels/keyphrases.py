"""Key phrases of a short technical note, and tags made from them, without a model.

A phrase is up to three consecutive words that are not stop words, verbs or numbers. Its score depends on how early and
how often it occurs, how its words are written, and how many there are. English is supported best; of other languages
only names are found, and nothing in scripts without spaces. The word lists are in `keyphrases.json`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log2
from pathlib import Path

from ...lazy import regex
from ...security.secrets.secrets import find_secrets, redact
from ...security.secrets.values import is_digest, is_random
from ..text import stem, stop_words, terms

__all__ = ["key_phrases", "suggest_tags", "tag_for"]

_READ = 20_000  # characters; the subject of a note is clear by then
_LONGEST_TAG = 40
_MOST_NEW = 5
_MOST_IN_ALL = 8
_LONGEST_PHRASE = 3
_LEAST_SHARE = 0.65  # of the best phrase's score; phrases below are not worth a tag

_TABLES = json.loads(Path(__file__).with_name("keyphrases.json").read_text("utf-8"))

_FENCE = regex(r"^[ \t]{0,3}(```|~~~)[^\n]*\n.*?(?:^[ \t]{0,3}\1[^\n]*$|\Z)", re.M | re.S)
_INLINE_CODE = regex(r"`(?![\w.-]+`)[^`\n]*`")
_MARKER = regex(r"\[REDACTED:[a-z0-9-]{1,40}\]")
_TOKEN = regex(
    r"(?P<gone>\w+://\S+|[\w.+-]{1,64}@[\w.-]+|(?:[~.]{0,2}[/\\])?(?:[\w.@+-]{1,80}[/\\])+[\w.@+-]*|--?[A-Za-z][\w-]*)"
    r"|(?P<word>[^\W\d]\w*(?:['’.-]\w+)*(?:\+\+|#)?)"
    r"|(?P<end>[.!?…](?=\s|$)|\n\s*\n|\n(?=[ \t]*[-*•#>\d]))"
    r"|(?P<gap>\w[\w.,:%-]*|[^\s\w])"
)
_DOTTED_NAME = regex(r"[^\W_]+\.(?:js|io|ai|net)", re.I)
_OWNER = regex(r"['’]s$")
_LATIN = regex(r"[A-Za-zÀ-ɏ0-9_.+#'’-]+")
_IDENTIFIER = regex(r"_|(?<=\w)[A-Z]|(?<=[A-Za-z])\d")
_NOUN = regex(r"(?:[st]ion|ment|[ae]nce)s?$")
_ADJECTIVE = regex(r"(?:[a-z]{3}(?:[ai]ble|ous|ful|ical|tial))(?<!variable)(?<!executable)(?<!credential)")


@dataclass(frozen=True, slots=True)
class KeyPhrase:
    """A phrase as it is first written, and its score; scores are comparable within one note."""

    phrase: str
    score: float


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    stem: str
    sentence: int
    opens: bool  # the first word of its sentence, where a capital means nothing
    doubt: bool = False  # possibly the verb of its sentence


@dataclass(frozen=True, slots=True)
class _Place:
    """An occurrence of a phrase: whether it is a whole run of words, and whether it opens the note."""

    words: tuple[_Word, ...]
    whole: bool
    opens: bool


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    return next(iter(terms(word)), word)


# Common verbs, and words that are never a subject: as they are listed, and by stem to find their other forms.
_VERB_STEMS = frozenset({*_TABLES["verbs"], *map(_stem, _TABLES["verbs"])})
_GENERIC_STEMS = frozenset({*_TABLES["generic"], *map(_stem, _TABLES["generic"])})
_STOPS_BY_LANGUAGE = {name: frozenset[str](words) for name, words in _TABLES["stop_words"].items()}
# Words around a word that show whether it is a noun.
_WORDS = {name: frozenset[str](words) for name, words in _TABLES["neighbours"].items()}


def key_phrases(text: str, *, most: int = 5) -> tuple[KeyPhrase, ...]:
    """The phrases that best describe a note, best first; no two share a word."""
    ranked = _ranked(list(_runs(_prose(text[:_READ]))))
    chosen: list[KeyPhrase] = []
    taken: set[str] = set()
    for phrase, stems in ranked:
        if len(chosen) >= most or phrase.score < _LEAST_SHARE * ranked[0][0].score:
            break
        if taken.isdisjoint(stems):
            chosen.append(phrase)
            taken.update(stems)
    return tuple(chosen)


def _prose(text: str) -> str:
    """The text with code and secrets replaced by full stops."""
    text = redact(text).text
    for pattern in (_FENCE, _INLINE_CODE, _MARKER):
        text = pattern.sub(" . ", text)
    return text


def _sentences(text: str) -> Iterator[list[str]]:
    """Each sentence as a list of words; an empty string separates words that are not adjacent."""
    sentence: list[str] = []
    for match in _TOKEN.finditer(text):
        word = match["word"]
        if word:
            owner = _OWNER.sub("", word)
            # A phrase does not span a possessive ("the balancer's timeout") or include an identifier.
            sentence += ("", word, "") if "_" in word else (owner, "") if owner != word else (word,)
        elif match["end"]:
            yield sentence
            sentence = []
        else:
            sentence.append("")
    yield sentence


def _runs(text: str) -> Iterator[list[_Word]]:
    """The runs of words that may form phrases."""
    sentences = [sentence for sentence in _sentences(text) if any(sentence)]
    lowered = [word.lower() for sentence in sentences for word in sentence if word]
    language = _language(lowered)
    stops = stop_words() | _STOPS_BY_LANGUAGE.get(language, frozenset())
    for number, sentence in enumerate(sentences):
        run: list[_Word] = []
        lowers = [word.lower() for word in sentence]
        for place, word in enumerate(sentence):
            opens = not any(sentence[max(0, place - 3) : place])
            if _is_telling(word, stops) and _fits(sentence, lowers, place, language, opens=opens):
                run.append(_Word(word, _stem(lowers[place]), number, opens, bool(run) and _may_be_verb(lowers, place)))
            elif run:
                yield run
                run = []
        if run:
            yield run


def _language(words: Sequence[str]) -> str:
    """The language with the most stop words in the text; `other` if a long text has hardly any."""
    counts = {name: sum(word in stops for word in words) for name, stops in _STOPS_BY_LANGUAGE.items()}
    counts["english"] = sum(word in stop_words() for word in words)
    best = max(counts, key=lambda name: (counts[name], name == "english"))
    return "other" if len(words) >= 12 and counts[best] * 12 < len(words) else best


def _is_telling(word: str, stops: frozenset[str]) -> bool:
    """Whether a word can be part of a subject, in any context."""
    lower = word.lower()
    if len(word) < 2 or len(word) > _LONGEST_TAG or not _LATIN.fullmatch(word) or lower.replace("’", "'") in stops:
        return False
    if "'" in word or "’" in word or ("." in word and not _DOTTED_NAME.fullmatch(word)):
        return False
    if is_random(word, least=12) or (len(word) >= 7 and is_digest(lower) and re.search(r"\d", word)):
        return False
    if lower in _GENERIC_STEMS or _stem(lower) in _GENERIC_STEMS:
        return False
    return len(word) > 2 or word.isupper() or not word.isalpha()


def _fits(sentence: list[str], lowers: list[str], place: int, language: str, *, opens: bool) -> bool:
    """Whether a word is a name or a noun in its context, as far as its neighbours show."""
    if _is_named(sentence[place], opens=opens):
        return True
    if language != "english":
        return False
    word = lowers[place]
    before = lowers[place - 1] if place else ""
    after = lowers[place + 1] if place + 1 < len(lowers) else ""
    if _is_predicate(lowers, place) or _is_verb(word) or (word.endswith("ly") and word not in _WORDS["no_adverbs"]):
        return False
    if word.endswith("ed") and len(word) > 4 and word not in _WORDS["no_past"]:
        return False
    if after in _WORDS["determiners"] and (
        before not in _WORDS["before_nouns"] | _WORDS["determiners"] or word.endswith("ing")
    ):
        return False
    if before in _WORDS["before_verbs"] and not (before == "to" and after not in _WORDS["determiners"]):
        return False
    if word.endswith("ing") and (before in _WORDS["being"] or _is_verb(before)):
        return False
    return before not in _WORDS["subjects"]


def _is_verb(word: str) -> bool:
    """Whether a word is a form of a common verb; "requirement" is not one of "require"."""
    return word in _VERB_STEMS or (_stem(word) in _VERB_STEMS and not _NOUN.search(word))


@lru_cache(maxsize=1)
def mostly_verbs() -> frozenset[str]:
    return frozenset(json.loads(Path(__file__).with_name("verbs.json").read_text("utf-8"))["verbs"])


def _is_predicate(lowers: list[str], place: int) -> bool:
    """Whether a word that is mostly a verb follows its subject: "the endpoint returns", "the clients retry"."""
    word, before = lowers[place], lowers[place - 1] if place else ""
    if not before or before in stop_words() or stem(word) not in mostly_verbs() or _NOUN.search(word):
        return False
    # "Deploys happen" and "the job deploys": one of the two has the ending.
    return word.endswith("s") != before.endswith("s") and not word.endswith(("ss", "ing", "ed", "er", "or"))


def _may_be_verb(lowers: list[str], place: int) -> bool:
    """Whether a word after a noun may be a verb: "the client converts to", but also "the client tokens in"."""
    word, after = lowers[place], lowers[place + 1] if place + 1 < len(lowers) else ""
    return after in _WORDS["after_verbs"] and word.endswith("s") and not word.endswith(("ss", "us", "is"))


def _is_named(word: str, *, opens: bool) -> bool:
    """Whether a word is written like a name."""
    if _IDENTIFIER.search(word) or word.endswith(("+", "#")) or (len(word) > 1 and word.isupper()):
        return True
    return word[0].isupper() and not opens


def _ranked(runs: list[list[_Word]]) -> list[tuple[KeyPhrase, tuple[str, ...]]]:
    """Every run of up to three words with its score and its stems, best first."""
    counts = Counter(word.stem for run in runs for word in run)
    named = {word.stem for run in runs for word in run if _is_named(word.text, opens=word.opens)}
    places: dict[tuple[str, ...], list[_Place]] = {}
    for number, run in enumerate(runs):
        for length in range(1, _LONGEST_PHRASE + 1):
            for start in range(len(run) - length + 1):
                words = tuple(run[start : start + length])
                stems = tuple(word.stem for word in words)
                if len(set(stems)) == length and not _ADJECTIVE.search(words[-1].text):
                    place = _Place(words, whole=length == len(run), opens=number == 0 and start == 0)
                    places.setdefault(stems, []).append(place)
    scored = [
        (KeyPhrase(" ".join(word.text for word in found[0].words), _score(found, counts, named)), stems)
        for stems, found in places.items()
    ]
    return sorted(scored, key=lambda entry: -entry[0].score)


def _score(found: list[_Place], counts: Counter[str], named: set[str]) -> float:
    words = found[0].words
    weights = [_weight(word, counts[word.stem], named=word.stem in named) for word in words]
    together = (1.0, 1.3, 1.3)[len(words) - 1]
    whole = 1.1 if any(place.whole for place in found) else 1.0
    first = 1.25 if found[0].opens else 1.0
    early = max(0.6, 1 - 0.12 * words[0].sentence)
    return sum(weights) / len(words) * together * whole * first * early


def _weight(word: _Word, count: int, *, named: bool) -> float:
    shape = 1.2 if "_" in word.text or "-" in word.text else 1.6 if named else 1.0
    return shape * (0.6 if word.doubt else 1.0) * (1 + 0.3 * log2(count))


# The language or tool that a file's ending or name stands for.
_ENDINGS: dict[str, str] = {ending: tag for tag, endings in _TABLES["endings"].items() for ending in endings}
_SPELLINGS: dict[str, str] = _TABLES["spellings"]
_APOSTROPHE = regex(r"['’]s?\b")
_PLURAL = regex(r"(?<=\w\w)(s|x|ch|sh)es$|(?<=\w\w[^\Wsui])s$")
_SEPARATOR = regex(r"[\s_/\\:\-‐-―]+")


def tag_for(phrase: str) -> str | None:
    """The phrase as a tag: lower case, joined by hyphens; None if nothing is left, it is too long or holds a secret."""
    if len(phrase) > 4 * _LONGEST_TAG:
        return None
    words = _SEPARATOR.split(_APOSTROPHE.sub("", unicodedata.normalize("NFKC", phrase)))
    spelled = (_SPELLINGS.get(word.lower(), word.lower()) for word in words)
    kept = ("".join(c for c in word if unicodedata.category(c)[0] in "LMN") for word in spelled)
    tag = unicodedata.normalize("NFKC", "-".join(word for word in kept if word))
    if len(tag) > _LONGEST_TAG or not any(map(str.isalpha, tag)) or any(map(_is_secret, [*words, *tag.split("-")])):
        return None
    return tag


def _is_secret(word: str) -> bool:
    return is_random(word, least=12) or (len(word) >= 16 and is_digest(word))


def suggest_tags(text: str, existing: Sequence[str], entities: Sequence[str] = ()) -> tuple[str, ...]:
    """Suggest tags that a note lacks: the given names first, then its key phrases.

    The candidates do not depend on the existing tags, so repeating the call suggests nothing more.
    """
    there = [_spelling(tag) for tag in existing]
    most = max(0, _MOST_IN_ALL - len(existing))
    new = [tag for tag in _wanted(text, entities) if not any(_covers(old, _spelling(tag)) for old in there)]
    return tuple(new[:most])


def _wanted(text: str, entities: Sequence[str]) -> list[str]:
    """The tags that suit a note, best first, none covered by a better one."""
    phrases = [tag_for(found.phrase) for found in key_phrases(text, most=_MOST_NEW)]
    names = [tag_for(name) for name in entities if not find_secrets(name)]
    wanted: list[str] = []
    for tag in [*names, *phrases]:
        if tag and not any(_covers(_spelling(better), _spelling(tag)) for better in wanted):
            wanted.append(tag)
    return wanted[:_MOST_NEW]


def _spelling(tag: str) -> tuple[str, ...]:
    """The words of a tag, with spelling variants made equal."""
    words = (tag_for(tag) or tag.casefold()).split("-")
    return tuple(_ENDINGS.get(word) or _PLURAL.sub(r"\1", word) for word in words)


def _covers(better: tuple[str, ...], tag: tuple[str, ...]) -> bool:
    """Whether a tag adds nothing to another: the same words, joined or not, or some of them."""
    if "".join(better) == "".join(tag):
        return True
    return any(better[start : start + len(tag)] == tag for start in range(len(better) - len(tag) + 1))
