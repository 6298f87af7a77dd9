"""Lexical cues of a note: word groups in a few languages and shapes such as error text, measures and code.

A cue says only that something was seen; what it is worth for a category is learned by `bench/train_ontology.py`.
The words themselves are in `cue_words` and `cue_translations`.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import pairwise

import numpy as np
import Stemmer
from numpy.typing import NDArray

from .cue_translations import TRANSLATIONS
from .cue_words import WORDS

__all__ = ["CUE_NAMES", "Lexicon", "cues_digest", "default_lexicon"]

HEAD = 1200  # characters that are looked at: about what the embedding model reads as well
OPENING = 3  # tokens at the start, where people say what they are about to tell
UNSPACED_OPENING = 12  # the same in characters, for scripts without spaces

# Shapes of one token between spaces: those that hold a digit, and others. Plain words have none and are not tried.
_DIGIT_SHAPES: dict[str, str] = {
    "http_status": r"^[45]\d\d\W*$",
    "cve": r"^CVE-\d{4}-\d+",
    "duration": r"\d(?:ms|µs|ns|s|sec|min|h)\b",
    "size": r"\d(?:[KMGT]i?[Bb]|kb|mb|gb)\b",
    "rate": r"\d/s\b|\d(?:rps|qps)\b|^p(?:50|90|95|99)\b",
    "percent": r"\d%",
    "version": r"^v?\d+\.\d+\.\d+\b|^v\d",
    "ip": r"^\W?\d{1,3}(?:\.\d{1,3}){3}\b",
    "ticket": r"^\W?#\d+\b|^\W?[A-Z]{2,6}-\d+\b",
    "quarter": r"^Q[1-4]\b",
    "number": r"\d",
}
_SHAPES: dict[str, str] = {
    "error_name": r"[A-Z]\w{0,60}(?:Error|Exception)\b|^Traceback|^panic:|^SIG(?:SEGV|KILL|ABRT)\b",
    "inline_code": r"`",
    "call": r"\w\([^)]{0,60}\)",
    "identifier": r"[a-z]_[a-z]|[a-z][A-Z][a-z]",
    "source_file": r"\w\.(?:py|[jt]sx?|go|rs|rb|java|kt|swift|c|cc|cpp|h|cs|php|sh|lua|exs?|scala|vue|html|css)\b",
    "text_file": r"\w\.(?:md|rst|txt|adoc)\b|README|CHANGELOG",
    "settings_file": r"\w\.(?:ya?ml|toml|json|ini|cfg|conf|tf|lock)\b|^\.\w+rc\b",
    "option": r"^\W?--?[a-z][\w\-]*",
    "sql": r"^\W?(?:SELECT|INSERT|UPDATE|ALTER|CREATE|NULL|LIKE|EXPLAIN|ORDER|GROUP|JOIN)\b",
    "address": r"://|[a-z0-9]\.(?:com|org|net|io|dev|internal)\b",
    "path": r"^\W?/[a-z{]|\w/\w+/",
    "arrow": r"->|=>|→",
    "exclamation": r"!$",
}
# A measure is often written with a space: "820 ms". The unit is then a token of its own.
_UNITS = {
    "duration": ("ms", "µs", "ns", "s", "sec", "second", "seconds", "min", "minutes", "h", "hours", "Sekunden"),
    "size": ("KB", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "bytes", "Mo", "Go"),
    "rate": ("rps", "qps", "req/s"),
    "percent": ("%",),
}
_WHOLE = ("asks", "opens_with_question_word", "brief", "long")

CUE_NAMES: tuple[str, ...] = (*WORDS, *(f"opens_with_{name}" for name in WORDS), *_DIGIT_SHAPES, *_SHAPES, *_WHOLE)

_AT = {name: number for number, name in enumerate(CUE_NAMES)}
_DIGIT_PATTERNS = tuple((_AT[name], re.compile(pattern)) for name, pattern in _DIGIT_SHAPES.items())
_PATTERNS = tuple((_AT[name], re.compile(pattern)) for name, pattern in _SHAPES.items())
_DIGIT = re.compile(r"[0-9]")
_UNIT_CUES = {unit: _AT[name] for name, units in _UNITS.items() for unit in units}
_TOKEN = re.compile(r"[^\W_]+(?:['’./+\-][^\W_]+)*")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_QUESTION_WORD = re.compile(r"\W*(?:how|what|which|why|where|who|when|can|could|should|is|are|does|do|was|warum|wie)\b")


@dataclass(frozen=True, slots=True)
class _Token:
    """What one token between spaces shows by itself, and what its neighbours need to know of it."""

    seen: tuple[int, ...]
    stems: tuple[str, ...]
    first: str
    last: str
    ends_in_digit: bool


_NOTHING = _Token((), (), "", "", False)


class _Stemming(threading.local):
    """A stemmer per thread: Stemmer objects may not be shared."""

    def __init__(self) -> None:
        stemmer = Stemmer.Stemmer("english", 0)
        self.stem: Callable[[str], str] = stemmer.stemWord


_stemming = _Stemming()


class _Tokens(dict[str, _Token]):
    """Tokens met before, as far as that costs little memory: a note is mostly words of earlier notes."""

    def __init__(self, read: Callable[[str], _Token]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, raw: str) -> _Token:
        token = self._read(raw)
        if len(raw) <= 32:
            if len(self) >= 1 << 14:
                self.clear()
            self[raw] = token
        return token


class Lexicon:
    """Reads cues by the words of `cue_words`, all of them or only `among` some. Safe to share between threads.

    A word goes by its entry: the stem, or the stems of a pair. A translation goes by the entry of its headword.
    """

    def __init__(self, among: Container[str] | None = None) -> None:
        self._words: dict[str, tuple[int, ...]] = {}
        self._pairs: dict[tuple[str, str], tuple[int, ...]] = {}
        self._unspaced: dict[str, tuple[int, ...]] = {}
        self._entries: dict[str, str] = {}
        self._tokens = _Tokens(self._read)
        groups: dict[str, tuple[int, ...]] = {}
        for cue, listed in enumerate(WORDS.values()):
            for entry in map(_entry, listed.split()):
                groups[entry] = (*groups.get(entry, ()), cue)
        for entry, cues in groups.items():
            if among is None or entry in among:
                self._add(entry, entry, cues)
        for headword, listed in TRANSLATIONS.items():
            entry = _entry(headword)
            if among is None or entry in among:
                for word in listed.split():
                    self._add(_entry(word), entry, groups[entry])

    def _add(self, form: str, entry: str, cues: tuple[int, ...]) -> None:
        self._entries.setdefault(form, entry)
        first, _, second = form.partition("_")
        if _UNSPACED.search(form):
            self._unspaced[form] = tuple({*self._unspaced.get(form, ()), *cues})
        elif second:
            self._pairs[first, second] = tuple({*self._pairs.get((first, second), ()), *cues})
        else:
            self._words[form] = tuple({*self._words.get(form, ()), *cues})

    def cues(self, text: str) -> NDArray[np.float64]:
        """How strongly each of `CUE_NAMES` is seen in a text, from 0 to 2; any string is valid."""
        return self.read(text)[0]

    def read(self, text: str) -> tuple[NDArray[np.float64], set[str]]:
        """The cues of a text and the stems of all its words, listed in the vocabulary or not."""
        stems: set[str] = set()
        head = text[:HEAD].strip()
        found = [0.0] * len(CUE_NAMES)
        asks = head.endswith(("?", "？"))
        if not head.isascii() and _UNSPACED.search(head):
            for piece, seen in self._unspaced.items():
                place = head.find(piece)
                for cue in seen if place >= 0 else ():
                    found[cue] += 1
                    found[len(WORDS) + cue] += place < UNSPACED_OPENING
            head = _UNSPACED.sub(" ", head)
        count, before = 0, _NOTHING
        for place, raw in enumerate(head.split()):
            token = self._tokens[raw]
            seen = token.seen + self._pairs.get((before.last, token.first), ())
            for cue in seen:
                found[cue] += 1
                if place < OPENING and cue < len(WORDS):
                    found[len(WORDS) + cue] += 1
            if before.ends_in_digit and (unit := _UNIT_CUES.get(raw.rstrip(".,;:)"))) is not None:
                found[unit] += 1
            stems.update(token.stems)
            count += len(token.stems)
            before = token
        # A second sighting says less than the first, and a tenth nothing.
        result = np.minimum(np.sqrt(found), 2.0)
        opens = "?" in head and _QUESTION_WORD.match(head.lower()) is not None
        result[-len(_WHOLE) :] = float(asks), float(opens), max(0.0, 1.0 - count / 12), min(2.0, count / 40)
        return result, stems

    def entries(self, text: str) -> Iterator[str]:
        """The entries of the words in a text, perhaps several times; `among` takes such entries."""
        head = text[:HEAD]
        yield from (self._entries[piece] for piece in self._unspaced if piece in head)
        stems = [stem for raw in _UNSPACED.sub(" ", head).split() for stem in _stems(raw)]
        yield from (self._entries[stem] for stem in stems if stem in self._words)
        yield from (self._entries["_".join(pair)] for pair in pairwise(stems) if pair in self._pairs)

    def _read(self, raw: str) -> _Token:
        stems = _stems(raw)
        seen = [cue for stem in stems for cue in self._words.get(stem, ())]
        seen += [cue for pair in pairwise(stems) for cue in self._pairs.get(pair, ())]
        bare = raw.rstrip(".,;:?")
        if not bare.isalpha() or not bare[1:].islower():
            patterns = _DIGIT_PATTERNS + _PATTERNS if _DIGIT.search(raw) else _PATTERNS
            seen += [cue for cue, pattern in patterns if pattern.search(raw)]
        first, last = (stems[0], stems[-1]) if stems else ("", "")
        return _Token(tuple(seen), tuple(stems), first, last, raw[-1:].isdigit())


@cache
def default_lexicon() -> Lexicon:
    """The lexicon of all words."""
    return Lexicon()


def cues_digest() -> str:
    """Names the definitions of all cues: weights learned with other definitions mean nothing."""
    defined = (WORDS, TRANSLATIONS, _DIGIT_SHAPES, _SHAPES, _UNITS, CUE_NAMES, HEAD, OPENING, UNSPACED_OPENING)
    return sha256(repr(defined).encode()).hexdigest()[:16]


def _entry(word: str) -> str:
    return word if _UNSPACED.search(word) else "_".join(_stems(part)[0] for part in word.split("_"))


def _stems(raw: str) -> list[str]:
    """The stems of a token; of an identifier those of its parts."""
    parts = _HUMP.sub(" ", raw.replace("_", " "))
    return [_stemming.stem(word) for word in _TOKEN.findall(_plain(parts))]


def _plain(text: str) -> str:
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))
