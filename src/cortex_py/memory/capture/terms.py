"""Terms: the words that text search compares.

Records and queries are tokenised the same way for every database engine. The engines only see opaque ASCII words made
here, so query text cannot reach their operators. Identifiers are found whole and by part, scripts without spaces by
overlapping pairs; case, accents and English endings do not matter.
"""

from __future__ import annotations

import json
import re
import threading
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache
from hashlib import blake2s
from itertools import pairwise
from pathlib import Path
from typing import Any

import Stemmer

from ...lazy import regex

__all__ = [
    "MAX_TERM",
    "UNSPACED",
    "leading_query_terms",
    "query_terms",
    "stem",
    "stop_words",
    "terms",
    "word_list",
    "word_tables",
]

MAX_TERM = 64

# Scripts written without spaces (Thai, Lao, Myanmar, Khmer, Han, Kana), and Hangul, whose particles are joined to the
# noun. Khmer's full stops are left out.
UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ede\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u17d7\u17dc\u17dd"
    "\u1100-\u11ff\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b\u3041-\u3096\u3099-\u309a\u309d-\u309f"
    "\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U000323af"
)

# Vowel signs and viramas: parts of a word that `\w` does not match.
_SIGNS = (
    "\u0780-\u07bf\u0900-\u0963\u0970-\u09e3\u0a00-\u0a75\u0a80-\u0ae3\u0b00-\u0b63\u0b80-\u0bd7\u0c00-\u0c63"
    "\u0c80-\u0ce3\u0d00-\u0d63\u0d80-\u0df3\u0f71-\u0f84\u0f90-\u0fbc\u1a00-\u1a1b\u1b00-\u1b44\u1b80-\u1bf3"
    "\ua980-\ua9c0"
)
_COUNTRY = "\U0001f1e6-\U0001f1ff"
_SKIN = "\U0001f3fb-\U0001f3ff"
_PICTURE = (
    "\U0001f000-\U0001f1e5\U0001f200-\U0001faff\u2194-\u21aa\u231a-\u23ff\u25aa-\u25fe\u2600-\u27bf\u2934\u2935"
    "\u2b05-\u2b55\u3030\u303d"
)
_PICTURE_ONE = rf"[{_PICTURE}][{_SKIN}]?"
_EMOJI = rf"[{_COUNTRY}]{{1,2}}|{_PICTURE_ONE}[\U000e0020-\U000e007f]*(?:\u200d{_PICTURE_ONE})*"


def _token_pattern(word: str) -> str:
    """A run of words joined as parts of names are, with its sigil and its ending."""
    joint = r"(?:::|->|\?\.|/\.|[./\\:@#&'\-]|\+\+(?=[0-9])|(?<=[0-9]),(?=[0-9]{3}(?![0-9])))"
    return rf"(?:(?<![A-Za-z0-9_.\-])(?:--?|[@#.$])(?={word}))?{word}(?:{joint}{word})*+(?:\+\+|#)?"


_ASCII_TOKEN = regex(_token_pattern("[A-Za-z0-9_]++"))
_EMOJI_WHOLE = regex(_EMOJI)
_EMOJI_BASE = regex(rf"(?![{_SKIN}\u2640\u2642])[{_PICTURE}]")
_STRAY_JOINER = regex(rf"(?<![{_PICTURE}\ufe0f])\u200d")
# A cluster is what a reader sees as one character, with stacked consonants (Khmer, Myanmar).
_CLUSTER = regex(
    r".(?:[\u0e31\u0e33-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb3-\u0ebc\u0ec8-\u0ece\u102b-\u1038\u103a-\u103e"
    r"\u1056-\u1059\u17b4-\u17d1\u17d3\u17dd\u3099\u309a]|[\u17d2\u1039].?)*",
    re.DOTALL,
)

_STRONG = regex(r"::|->|\?\.|[/:@#&]|\+\+")
_DOT = regex(r"\.")
_HYPHEN = regex("-")
_UNDERSCORE = regex("_")
_LEVELS = (_STRONG, _DOT, _HYPHEN, _UNDERSCORE)
_CONTRACTION = regex(r"'(?:s|ll|re|ve|d|m)$", re.IGNORECASE)
_THOUSANDS = regex(r"(?<=[0-9]),")
_NUMBER = regex(r"(?:(?<=[vV])|(?<![A-Za-z0-9]))[0-9]+(?:[.:\-][0-9]+)+")
_NUMBER_JOINT = regex(r"[.:\-]")
_HUMP = regex(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_HEX = regex(r"(?=[a-f]*[0-9]+[a-f]+[0-9])[0-9a-f]{6,}")
_DIGEST = regex(r"[0-9a-f]{32,}")
_DIGEST_PREFIXES = (7, 8, 12)

_STRIPPED = regex(
    "[\u00ad\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u05f4\u0610-\u061a\u0640"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u093c\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200e\u200f"
    "\u202a-\u202e\u2060\u2066-\u2069\u20d0-\u20ff\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]"
)
_LETTERS = dict(zip("øØłŁđĐðÐħĦŧŦıىیةکھہ", "oOlLdDdDhHtTiييهكهه", strict=True))
_LETTERS |= {"þ": "th", "Þ": "TH", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE"}
_PUNCTUATION = dict(zip("‘’‛ʼ′׳‐‑‒–−־“”„‟«»—―•·\u00a0\u3000。、", "''''''------" + " " * 14, strict=True))


class _Folding(dict[int, str]):
    """A translation table that computes the folded form of a character on first use."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        folded = _PUNCTUATION.get(char)
        if folded is None and char.isdecimal():
            folded = str(unicodedata.decimal(char))
        if folded is None:
            kept = _STRIPPED.sub("", unicodedata.normalize("NFD", char))
            folded = unicodedata.normalize("NFC", "".join(_LETTERS.get(c, c) for c in kept))
        if len(self) < 1 << 16:
            self[code] = folded
        return folded


class _ThreadStemmer(threading.local):
    """A stemmer for each thread, because Stemmer objects cannot be shared."""

    def __init__(self) -> None:
        stemmer = Stemmer.Stemmer("english", 0)
        self.stem: Callable[[str], str] = stemmer.stemWord


class _Expansions(dict[str, tuple[str, ...]]):
    """A cache of what each token expands to, of 40 MB at most."""

    def __init__(self, expand: Callable[[str], Iterable[str]]) -> None:
        super().__init__()
        self._expand = expand

    def __missing__(self, token: str) -> tuple[str, ...]:
        found = tuple(self._expand(token))
        if len(token) <= 32 and len(found) <= 16:
            if len(self) >= 1 << 15:
                self.clear()
            self[token] = found
        return found


_folding = _Folding()
_stemmer = _ThreadStemmer()


@cache
def word_tables() -> dict[str, Any]:
    """The word lists of `words.json`, read on first use."""
    return dict(json.loads(Path(__file__).with_name("words.json").read_text("utf-8")))


@cache
def word_list(name: str) -> frozenset[str]:
    """One list of `words.json`."""
    return frozenset(word_tables()[name])


def stop_words() -> frozenset[str]:
    """English words that a search leaves out."""
    return word_list("stop_words")


def stem(word: str) -> str:
    """The English stem of a word in lower case."""
    return _stemmer.stem(word)


def terms(text: str) -> list[str]:
    """The terms of a record, in order and with repeats; any string is valid."""
    return [term for token in _tokens(text) for term in _record_terms[token]]


def query_terms(text: str) -> list[str]:
    """The terms to look up: `terms` without stop words and without single characters of longer runs.

    A query that consists of stop words keeps them.
    """
    kept = [term for token in _tokens(text) for term in _query_terms[token]]
    return kept or terms(text)


def leading_query_terms(text: str, most: int = 64) -> list[str]:
    """The first distinct `query_terms`; the rest of the text is not expanded."""
    found: dict[str, None] = {}
    for token in _tokens(text):
        found |= dict.fromkeys(_query_terms[token])
        if len(found) >= most:
            break
    return list(found or dict.fromkeys(terms(text)))[:most]


# These two patterns take milliseconds to compile, so they are compiled for the first text that is not ASCII.
@cache
def _any_token() -> re.Pattern[str]:
    return regex(rf"[{UNSPACED}]+|{_EMOJI}|" + _token_pattern(rf"(?:[^\W{UNSPACED}]++|[{_SIGNS}]++)++"))


@cache
def _unspaced() -> re.Pattern[str]:
    return regex(rf"[{UNSPACED}]")


def _tokens(text: str) -> list[str]:
    if not text.isascii():
        # NFKC would turn the trade mark sign into two letters and join them to the name before it.
        text = _STRAY_JOINER.sub("", text.replace("™", " "))
        text = unicodedata.normalize("NFKC", text).translate(_folding)
        if not text.isascii():
            return _any_token().findall(text)
    return _ASCII_TOKEN.findall(text)


def _fold(token: str) -> str:
    folded = token.casefold()
    return folded if folded.isascii() else folded.translate(_folding)


def _term(form: str) -> str:
    if len(form) > MAX_TERM:
        digest = blake2s(form.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        return f"{form[: MAX_TERM - 17]}~{digest}"
    return _stemmer.stem(form) if form.isalpha() and form.isascii() else form


def _expand_for_record(token: str) -> Iterable[str]:
    if not token.isascii() and _unspaced().match(token):
        clusters = _clusters(token)
        return clusters + _pairs(clusters)
    return dict.fromkeys(map(_term, _forms(token)))


def _expand_for_query(token: str) -> Iterable[str]:
    if not token.isascii() and _unspaced().match(token):
        clusters = _clusters(token)
        return _pairs(clusters) or clusters
    return dict.fromkeys(_term(form) for form in _forms(token) if form not in stop_words())


_record_terms = _Expansions(_expand_for_record)
_query_terms = _Expansions(_expand_for_query)


def _clusters(run: str) -> list[str]:
    return [_term(_fold(cluster)) for cluster in _CLUSTER.findall(run)]


def _pairs(clusters: list[str]) -> list[str]:
    return [_term(first + second) for first, second in pairwise(clusters)]


def _forms(token: str) -> dict[str, None]:
    """The folded forms by which a token is found: the whole first, then its parts."""
    if _EMOJI_WHOLE.fullmatch(token):
        return dict.fromkeys([token, *_EMOJI_BASE.findall(token)])
    forms: dict[str, None] = {}
    token = _THOUSANDS.sub("", _CONTRACTION.sub("", token)).replace("\\", "/")
    body = token.lstrip("-@#$")
    if body != token:
        forms[_fold(token)] = None
    if body.endswith(("++", "#")):
        forms[_fold(body)] = None
        body = body.rstrip("+#")
    elif "++" in body:
        forms[_fold(body[: body.index("++") + 2])] = None
    _add_parts(body, forms)
    for match in _NUMBER.finditer(token):
        number = match[0]
        # 3.11 must find 3.11.4, and 2024-05 must find 2024-05-01.
        for joint in list(_NUMBER_JOINT.finditer(number))[1:8]:
            forms[number[: joint.start()]] = None
        forms[number] = None
    forms.pop("", None)
    return forms


def _add_parts(piece: str, forms: dict[str, None]) -> None:
    for separator in () if piece.isalnum() else _LEVELS:
        parts = [part for part in separator.split(piece) if part]
        if len(parts) == 1 and parts[0] == piece:
            continue
        forms[_fold(piece)] = None
        if _also_written_joined(separator, parts):
            forms[_fold("".join(parts))] = None
        for part in dict.fromkeys(parts):
            _add_parts(part, forms)
        return
    if "'" in piece:
        _add_elision(piece, forms)
    else:
        _add_humps(piece, forms)


def _also_written_joined(separator: re.Pattern[str], parts: list[str]) -> bool:
    """Whether people also leave out the separator: e-mail, snake_case for snakeCase, 10_000, U.S.A., node.js."""
    if separator is _DOT:
        return parts[-1].casefold() == "js" or (max(map(len, parts)) == 1 and "".join(parts).isalpha())
    if separator is _HYPHEN:
        return not all(map(str.isdecimal, parts))
    return separator is _UNDERSCORE


def _add_elision(piece: str, forms: dict[str, None]) -> None:
    parts = piece.split("'")
    forms[_fold("".join(parts))] = None
    if parts[-1] not in "tT":
        forms.update(dict.fromkeys(_fold(part) for part in parts if len(part) > 1))


def _add_humps(piece: str, forms: dict[str, None]) -> None:
    """Add a word without separators, and its humps: getUserById, HTTP2, E1234."""
    whole = _fold(piece)
    forms[whole] = None
    if _DIGEST.fullmatch(whole):
        forms.update(dict.fromkeys(whole[:length] for length in _DIGEST_PREFIXES))
    if len(piece) > MAX_TERM or _HEX.fullmatch(whole):
        return
    shape = piece if piece.isascii() else "".join(map(_shape, piece))
    spans = [match.span() for match in _HUMP.finditer(shape)]
    # Random keys change between letters and digits at nearly every character; their pieces are noise.
    if len(spans) < 2 or (len(spans) > 3 and len(piece) < 2 * len(spans)):
        return
    numbered = any(map(str.isdecimal, shape))
    for start, end in spans:
        if end - start > 1 or not numbered or shape[start].isdecimal():
            forms[_fold(piece[start:end])] = None


def _shape(char: str) -> str:
    if char.isupper():
        return "A"
    return "0" if char.isdecimal() else "a"
