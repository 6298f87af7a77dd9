"""What a text is for search: its terms, its chunks and snippets, and its traits.

Terms are opaque ASCII words for every database engine, so query text cannot reach its operators. Identifiers are found
whole and by part, scripts without spaces by overlapping pairs; case, accents and English endings do not matter.
Chunks end where the text pauses. Each turn of a dialogue is indexed separately and those of the assistant are marked,
because they are a different kind of evidence. A record's traits are a bit mask and the name that signs it; a query's
are the kind of answer it wants, the names in it and the dates it mentions. The cues of traits are English.
"""

from __future__ import annotations

import json
import re
import threading
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cache, lru_cache
from hashlib import blake2s
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import Stemmer

from ..lazy import regex

__all__ = [
    "ABOUT_ONE_MATTER", "MAX_TERM", "MONTHS", "UNSPACED", "Chunk", "QueryKind", "QueryTraits", "Trait", "Turn", "chunk",
    "leading_query_terms", "query_terms", "query_traits", "record_traits", "snippet", "split_turns",
    "stem", "stop_words", "terms", "word_list", "word_tables",
]  # fmt: skip

# The cosine of two notes below which neither replaces the other. Of 87 written pairs, 27 of the 29 in which the newer
# one replaces the older have more, and 28 of the other 58 less.
ABOUT_ONE_MATTER = 0.5


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
_SHORTEST_DIGEST = 32
_DIGEST = regex(rf"[0-9a-f]{{{_SHORTEST_DIGEST},}}")
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
    if len(token) < _SHORTEST_DIGEST and token.isascii() and token.isalpha() and token.islower():
        return {token: None}  # a plain word has no parts
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


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of some content: `content[start:end]`."""

    start: int
    end: int


# How good a place for a cut the start of a piece is, worst first.
_AFTER_HEADING, _INSIDE_WORD, _WORD_START, _LINE, _SENTENCE_START, _ITEM, _PARAGRAPH, _HEADING = range(8)

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r" {0,3}(`{3,}(?![^\n]*`)|~{3,})")
_HEADING_LINE = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_BULLET = re.compile(r"\s*(?:[-*+•]|\d{1,4}[.)])\s")
_PAUSE = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]*+\s++(?=[^a-z])|[。！？｡．।॥؟۔።။។]++[\"'”’」』）】]*+\s*+")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|cf|vs|approx|no|fig|dr|mrs?|ms|prof|st|[a-z])\.\s+$", re.IGNORECASE
)
_WORD_ENDS = (" ", "\t", "\u3000", "，", "、", "；")
_SHORT_SENTENCE = 40
# A record with more characters per allowed token is certainly too long; counting its tokens would be wasted.
_SPARSE = 40


class _Piece(NamedTuple):
    start: int
    end: int
    rank: int
    tokens: int


def chunk(
    content: str, *, count_tokens: Callable[[str], int], window: int = 256, target: int = 200, overlap: int = 32
) -> list[Chunk]:
    """Chunks of about `target` tokens, none above `window`, that cover every visible character in order.

    Consecutive chunks share whole sentences or lines of about `overlap` tokens, except before a heading. Content that
    fits the window is one chunk. A window below the target lowers the target.
    """
    if min(window, target) < 1 or overlap < 0:
        raise ValueError(f"window {window}, target {target}, overlap {overlap}: want at least 1, 1 and 0 tokens")
    target = min(target, window)
    overlap = min(overlap, target // 2)
    everything = Chunk(0, len(content))
    if not content.strip() or (len(content) <= _SPARSE * window and count_tokens(content) <= window):
        return [everything]
    # The tokens that a counter adds to any text, such as a model's opening and closing tokens, count once per chunk.
    fixed = count_tokens("")
    fixed = fixed if fixed < target - overlap else 0
    cutter = _Cutter(content, count_tokens, fixed, window - fixed, target - fixed, overlap)
    pieces = list(cutter.pieces())
    if sum(piece.tokens for piece in pieces) <= cutter.window and count_tokens(content) <= window:
        return [everything]
    return list(cutter.pack(pieces))


@dataclass(frozen=True, slots=True)
class _Cutter:
    """Splits one content; `window` and `target` are without the `fixed` tokens that every count includes."""

    content: str
    count_tokens: Callable[[str], int]
    fixed: int
    window: int
    target: int
    overlap: int

    def pieces(self) -> Iterator[_Piece]:
        """The smallest passages that should stay whole, end to end over the content."""
        for start, end, rank, fenced in _blocks(self.content):
            if fenced:
                yield from self._fit(start, end, rank, self.window)
                continue
            for at, until in _sentences(self.content, start, end):
                yield from self._fit(at, until, rank if at == start else _SENTENCE_START, self.target)

    def _fit(self, start: int, end: int, rank: int, limit: int) -> Iterator[_Piece]:
        tokens = self.count_tokens(self.content[start:end]) - self.fixed
        if tokens <= limit or end - start == 1:
            yield _Piece(start, end, rank, tokens)
            return
        grain = max(1, self.target // 6)
        for at, until, cut_rank in _cuts(self.content, start, end, max(1, (end - start) * grain // tokens)):
            yield from self._fit(at, until, rank if at == start else cut_rank, self.target)

    def pack(self, pieces: list[_Piece]) -> Iterator[Chunk]:
        sums = [0, *accumulate(piece.tokens for piece in pieces)]
        first = fresh = 0
        shown = Chunk(0, 0)
        while fresh < len(pieces):
            last = self._break(pieces, sums, first, fresh)
            for found in self._within_window(pieces[first].start, pieces[last - 1].end):
                # Blank pieces after an overlap would only repeat the overlap.
                if found.end > shown.end:
                    shown = found
                    yield found
            first, fresh = self._overlapping(pieces, sums, last, shown.start), last

    def _break(self, pieces: list[_Piece], sums: list[int], first: int, fresh: int) -> int:
        """The end (exclusive) of the chunk that starts at `first` and must contain piece `fresh`."""
        before = sums[first]
        if sums[-1] - before <= self.window:
            return len(pieces)
        last = fresh + 1
        while last < len(pieces):
            taken, grown = sums[last] - before, sums[last + 1] - before
            # A few words that introduce a long piece may exceed the target, up to the window.
            if grown > (self.window if taken < self.target // 4 else self.target):
                break
            last += 1
        if last == len(pieces):
            return last
        enough = [end for end in range(fresh + 1, last + 1) if sums[end] - before >= self.target // 2]
        return max(enough or [last], key=lambda end: (pieces[end].rank, end))

    def _overlapping(self, pieces: list[_Piece], sums: list[int], last: int, floor: int) -> int:
        """The first piece of the chunk that continues with piece `last`, after the position `floor`."""
        start = last
        if last < len(pieces):
            most = min(self.overlap * 3 // 2, self.window - pieces[last].tokens)
            while (
                pieces[start - 1].start > floor
                and pieces[start].rank != _HEADING
                and sums[last] - sums[start] < self.overlap
                and sums[last] - sums[start - 1] <= most
            ):
                start -= 1
        return start

    def _within_window(self, start: int, end: int) -> Iterator[Chunk]:
        """The span without blank edges, halved while it exceeds the window: a whole may count more than its parts."""
        text = self.content[start:end]
        start, end = start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
        if start >= end:
            return
        if end - start == 1 or self.count_tokens(self.content[start:end]) - self.fixed <= self.window:
            yield Chunk(start, end)
            return
        for at, until, _ in _cuts(self.content, start, end, (end - start + 1) // 2):
            yield from self._within_window(at, until)


def _blocks(content: str) -> Iterator[tuple[int, int, int, bool]]:
    """The blocks of a Markdown text: start, end, rank of the start, whether it is fenced code."""
    start, rank, fence, blank = 0, _PARAGRAPH, "", False
    for match in _LINES.finditer(content):
        at, line = match.start(), match[0]
        if fence:
            closing = _FENCE.match(line)
            if closing and closing[1].startswith(fence) and not line[closing.end() :].strip():
                yield start, match.end(), rank, True
                start, rank, fence, blank = match.end(), _PARAGRAPH, "", False
            continue
        if not line.strip():
            blank = True
            continue
        opening = _FENCE.match(line)
        found = _line_rank(line, after_blank=blank, fenced=bool(opening))
        titled = rank == _HEADING and start < at
        if found is not None or titled:
            if start < at:
                yield start, at, rank, False
            start, rank = at, _AFTER_HEADING if titled and found != _HEADING else found or _PARAGRAPH
        fence, blank = opening[1] if opening else "", False
    if start < len(content):
        yield start, len(content), rank, bool(fence)


def _line_rank(line: str, *, after_blank: bool, fenced: bool) -> int | None:
    """How good a cut before this line is; None inside a paragraph."""
    if _HEADING_LINE.match(line):
        return _HEADING
    if after_blank or fenced:
        return _PARAGRAPH
    return _ITEM if _BULLET.match(line) else None


def _sentences(content: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The sentences of a block; a short one is joined to the next."""
    at = start
    for match in _PAUSE.finditer(content, start, end):
        until = match.end()
        if until - at < _SHORT_SENTENCE or until == end:
            continue
        if _ABBREVIATION.search(content, max(at, match.start() - 12), until):
            continue
        yield at, until
        at = until
    if at < end:
        yield at, end


def _cuts(content: str, start: int, end: int, step: int) -> Iterator[tuple[int, int, int]]:
    """The span in parts of at most `step` characters, cut after a line, else a word, else anywhere."""
    at, rank = start, _LINE
    while end - at > step:
        until, next_rank = _cut(content, at, at + step)
        yield at, until, rank
        at, rank = until, next_rank
    yield at, end, rank


def _cut(content: str, start: int, limit: int) -> tuple[int, int]:
    newline = content.rfind("\n", start, limit)
    if newline >= 0:
        return newline + 1, _LINE
    word = max(content.rfind(mark, start, limit) for mark in _WORD_ENDS)
    if word >= 0:
        return word + 1, _WORD_START
    for until in range(limit, max(start, limit - 16), -1):
        if not _joins(content[until - 1], content[until]):
            return until, _INSIDE_WORD
    return limit, _INSIDE_WORD


def _joins(left: str, right: str) -> bool:
    """Whether two characters are shown as one: a letter with a mark, or an emoji sequence."""
    return "\u200d" in (left, right) or unicodedata.category(right)[0] == "M" or "\U0001f3fb" <= right <= "\U0001f3ff"


# -- snippets ------------------------------------------------------------------------------------


def snippet(content: str, span: Chunk, words: Collection[str] | None, length: int = 200) -> str:
    """At most `length` characters of a passage, around the place with the most words of the query.

    White space is collapsed, cuts are made between words if possible, and … marks where the content continues.
    """
    text = " ".join(content[span.start : span.end].split())
    before = bool(content[: span.start].strip())
    after = bool(content[span.end :].strip())
    if len(text) + before + after <= length:
        return "…" * before + text + "…" * after
    most = max(1, length - 2)
    start, end = _densest(text, _wanted_terms(words), most) if words else (0, 0)
    left = max(0, min(start - max(0, most - (end - start)) // 2, len(text) - most))
    return _with_ellipses(text, left, min(len(text), left + most), (start, end), before=before, after=after)


def matching_spans(text: str, words: Collection[str]) -> list[tuple[int, int]]:
    """Where a text has words of a query, in order and without overlaps, and without the signs around them."""
    found: list[tuple[int, int]] = []
    for start, end, _ in sorted(_hits(text, _wanted_terms(words))):
        piece = text[start:end]
        start += len(piece) - len(piece.lstrip(_AROUND))
        end -= len(piece) - len(piece.rstrip(_AROUND))
        if start < end and (not found or start >= found[-1][1]):
            found.append((start, end))
    return found


def _with_ellipses(text: str, left: int, right: int, kept: tuple[int, int], *, before: bool, after: bool) -> str:
    """The range cut back to whole words, if that loses little and nothing of `kept`, with its ellipses."""
    slack = (right - left) // 4
    if left > 0 and text[left - 1] != " ":
        left = max(left, text.find(" ", left, min(kept[0], left + slack)) + 1)
    if right < len(text) and text[right] != " ":
        space = text.rfind(" ", max(kept[1], right - slack), right)
        right = space if space >= 0 else right
    return "…" * (before or left > 0) + text[left:right].strip() + "…" * (after or right < len(text))


def _wanted_terms(words: Collection[str]) -> frozenset[str]:
    """The terms to look for, from words or terms of the query."""
    return frozenset(words).union(*map(terms, words))


def _densest(text: str, wanted: frozenset[str], most: int) -> tuple[int, int]:
    """The range of at most `most` characters with the most distinct wanted terms, then the most terms."""
    hits = sorted(_hits(text, wanted))
    best, best_score = (0, 0), (0, 0)
    counts: dict[str, int] = {}
    first = 0
    for last, (_, end, term) in enumerate(hits):
        counts[term] = counts.get(term, 0) + 1
        while end - hits[first][0] > most and first < last:
            gone = hits[first][2]
            counts[gone] -= 1
            if not counts[gone]:
                del counts[gone]
            first += 1
        score = (len(counts), last - first + 1)
        if score > best_score:
            best, best_score = (hits[first][0], end), score
    return best


def _hits(text: str, wanted: frozenset[str]) -> Iterator[tuple[int, int, str]]:
    for match in (_spaced() if not text.isascii() else _UNIT).finditer(text):
        for term in wanted.intersection(terms(match[0])):
            yield match.start(), match.end(), term
    if text.isascii():
        return
    for term in wanted:
        at = text.find(term) if _unspaced().search(term) else -1
        while at >= 0:
            yield at, at + len(term), term
            at = text.find(term, at + 1)


_UNIT = re.compile(r"\S+")
_AROUND = ".,;:!?()[]{}<>\"'`*_“”‘’…"


@cache
def _spaced() -> re.Pattern[str]:
    return re.compile(rf"[^\s{UNSPACED}]+")


# -- dialogues -----------------------------------------------------------------------------------

_TURN_LABEL = re.compile(r"^[ \t]*[*_>]{0,3}([^\W\d][\w .'’-]{0,30}?)[*_]{0,3}:(?=\s|[*_]{1,3}\s)", re.MULTILINE)
_FEW = 4


@dataclass(frozen=True, slots=True)
class Turn:
    """One speaker's words: `content[start:end]`."""

    start: int
    end: int
    by_assistant: bool


def split_turns(content: str) -> list[Turn]:
    """The turns of a dialogue in order, or the whole content as one turn if it is not a dialogue.

    A dialogue has few speakers, and one of them speaks more than once; a list of `Key: value` lines has neither.
    """
    labels = [(match.start(), match[1].strip().casefold()) for match in _TURN_LABEL.finditer(content)]
    names = [name for _, name in labels]
    if len(names) < 2 or len(set(names)) > max(_FEW, len(names) // 3) or len(set(names)) == len(names) > 2:
        return [Turn(0, len(content), False)]
    starts = [start for start, _ in labels]
    found = [
        Turn(start, end, name in _ASSISTANTS)
        for (start, name), end in zip(labels, [*starts[1:], len(content)], strict=True)
    ]
    return found if not content[: starts[0]].strip() else [Turn(0, starts[0], False), *found]


HEAD = 4000  # characters of a record or query that are read: longer ones have every cue anyway


class Trait(IntEnum):
    """Surface cues of a record, one bit each. They are stored: add new ones at the end and never renumber."""

    QUESTION = 1  # its last sentence asks something
    ONLY_ASKS = 2  # every sentence of some length asks something
    REPLY = 4  # opens with thanks, wow, great
    TIME = 8  # a date, a weekday, "last week", "since"
    DURATION = 16  # "for three years", "two hours"
    NUMBER = 32  # digits or number words
    NAME = 64  # a capitalised word inside a sentence
    PERSON = 128  # a relation: mother, friend, team, colleague
    PLACE = 256  # "in Paris", "office", "downtown"
    FIRST_PERSON = 512  # I, we, my, our
    REASON = 1024  # because, so that, due to
    FEELING = 2048  # love, glad, worried
    TITLE = 4096  # something in double quotes
    DIALOGUE = 8192  # several speakers in one record
    FROM_USER = 16384  # signed by a generic person: user, human, me
    FROM_ASSISTANT = 32768  # signed by a generic assistant
    SECOND_PERSON = 65536  # you, your
    CODE = 131072  # most of its lines are program text


class QueryKind(StrEnum):
    """The kind of answer a query asks for; `TOPIC` is a query that is not a question."""

    WHEN = "when"
    WHERE = "where"
    WHO = "who"
    HOW_MANY = "how_many"
    HOW_LONG = "how_long"
    WHY = "why"
    HOW = "how"
    WHAT = "what"
    WHICH = "which"
    YES_NO = "yes_no"
    TOPIC = "topic"


@dataclass(frozen=True, slots=True)
class RecordTraits:
    """The cues of one record; `author` is the folded first word of its leading "Name:" label."""

    flags: int
    author: str | None


@dataclass(frozen=True, slots=True)
class QueryTraits:
    """The cues of one query.

    `words` are all words, folded and without possessive, to compare with authors; `names` are those written as proper
    nouns. `dates` are (year, month, day) with 0 for unknown. `ago` is the range that "last week" or "two months ago"
    means, as the fewest and the most days before now.
    """

    kind: QueryKind
    words: frozenset[str]
    names: frozenset[str]
    dates: tuple[tuple[int, int, int], ...]
    ago: tuple[float, float] | None
    feeling: bool


MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_MONTHS = "|".join(MONTHS) + "|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec"
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"

_LABEL = regex(
    r"\s*+(?:[(\[][^)\]\n]{4,60}[)\]]\s*|\d{4}-\d\d-\d\d[T ,\d:.Z+-]*\s+)?"
    r"(?:\*\*)?([^\W\d_][\w.'-]*(?: [^\W\d_][\w.'-]*){0,2})(?:\*\*)?\s?:(?=\s|\*)"
)
_LINE_LABEL = regex(r"^([^\W\d_][\w.'-]{0,30}(?: [^\W\d_][\w.'-]{0,30})?):(?=\s)", re.MULTILINE)
_SENTENCE = regex(r"[^.!?\n]*[.!?\n]+|[^.!?\n]+$")
_WORD = regex(r"[^\W_]+(?:['’][^\W\d_]+)?")
_PROPER = regex(r"(?<=[\w,;'’\"(-] )(?!I\b)[A-Z][a-z]+")
_DATE_WORD = regex(rf"(?:{_MONTHS}|{_DAYS})$", re.IGNORECASE)
_PLACE = regex(r" (?:in|at|from|to|near|around|visited|visiting) (?:the )?(?!I\b)([A-Z]\w+)")
_TITLE = regex(r"[\"“][^\"”\n]{2,80}[\"”]")
_DIGIT = regex(r"\d")
_CODE_WIDTH = 200  # characters of a line that are read
# Openings and endings of lines that prose does not have. Indented lines count: prose in lists is marked by bullets.
_CODE_LINE = regex(
    r"\s*(?:def|class|return|import|from \S+ import|if .*[:{]$|else\b|elif\b|for .*[:{]$|while .*[:{]$|try\b|except\b|"
    r"raise\b|with .*:$|function\b|const\b|let\b|var\b|public\b|private\b|static\b|func\b|fn\b|package\b|#include|@\w+)"
    r"|.*[;{}]\s*$|.*[^\s.!?]\s*[-+*/|&]?=\s*\S|\s*[\w.]+\([^)]*\)?\s*[:,]?$|\s*[)\]}]|\s*(?:#|//|/\*|\"{3}|'{3})"
    r"|(?: {4}|\t)\s*(?![-*+•\d])\S"
)
_DATE = regex(r"(?<!\d)(?:(?:19|20)\d\d|\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4})(?!\d)")


_USERS = frozenset({"user", "human", "me", "i", "customer", "client"})
_ASSISTANTS = frozenset({"assistant", "ai", "bot", "agent", "claude", "gpt", "chatgpt", "system", "model"})


@cache
def _word_cues() -> dict[str, int]:
    """The traits of each cue word, as bits: one pass over the words of a record sets all of them."""
    cues: dict[str, int] = {}
    for name, words in word_tables()["trait_cues"].items():
        for word in words:
            cues[word] = cues.get(word, 0) | Trait[name.upper()]
    return cues


def record_traits(content: str) -> RecordTraits:
    """The cues of a record's text."""
    flags, author, body = _read_label(content[:HEAD])
    words = _WORD.findall(body.casefold())
    cues = _word_cues()
    for word in set(words):
        flags |= cues.get(word, 0)
    if words and words[0] in word_list("replies"):
        flags |= Trait.REPLY
    if "?" in body:
        flags |= _asking(body)
    if _DIGIT.search(body):
        flags |= Trait.NUMBER
        if _DATE.search(body):
            flags |= Trait.TIME
    for trait, pattern in ((Trait.NAME, _PROPER), (Trait.PLACE, _PLACE)):
        if any(not _DATE_WORD.match(found[found.re.groups]) for found in pattern.finditer(body)):
            flags |= trait
    if _TITLE.search(body):
        flags |= Trait.TITLE
    if _looks_like_code(body):
        flags |= Trait.CODE
    return RecordTraits(flags, author)


def _looks_like_code(body: str) -> bool:
    """Whether most lines are program text; a sentence with a call in it is none."""
    lines = [line[:_CODE_WIDTH] for line in body.split("\n") if line.strip()]
    return len(lines) > 1 and 2 * sum(_CODE_LINE.match(line) is not None for line in lines) > len(lines)


def _read_label(head: str) -> tuple[int, str | None, str]:
    """The traits and the author that a leading "Name:" label shows, and the text after it."""
    label = _LABEL.match(head)
    author, *rest = label[1].split(" ") if label else ("",)
    # "Anna Lee: ..." is signed, "Roles decide access: ..." is not.
    is_name = not any(word[0].islower() for word in rest)
    author = author.casefold()
    if label is None or not is_name or author in word_list("labels_without_author"):
        return 0, None, head
    body = head[label.end() :].lstrip("* ")
    if "\n" in body and any(other[1] != label[1] for other in _LINE_LABEL.finditer(body)):
        return Trait.DIALOGUE, None, body
    if author in _USERS:
        return Trait.FROM_USER, author, body
    return Trait.FROM_ASSISTANT if author in _ASSISTANTS else 0, author, body


def _asking(body: str) -> int:
    """The question traits of a text with a question mark in it."""
    sentences = [s for s in (part.strip() for part in _SENTENCE.findall(body)) if len(s) > 3]
    if not sentences:
        return 0
    found = 0
    if sentences[-1].endswith("?"):
        found |= Trait.QUESTION
    telling = sum(len(s) for s in sentences if not s.endswith("?") and len(s) > 25)
    if telling == 0:
        found |= Trait.ONLY_ASKS
    return found


_KINDS = (  # the more specific first
    (
        QueryKind.HOW_LONG,
        regex(r"\bhow long\b|\bhow (?:many |much )?(?:days|weeks|months|years|hours|minutes|time)\b|\bhow soon\b"),
    ),
    (QueryKind.HOW_MANY, regex(r"\bhow (?:many|much|often|old)\b|\bwhat (?:number|amount|percentage)\b")),
    (QueryKind.WHEN, regex(rf"\bwhen\b|\b(?:what|which) (?:date|day|month|year|time|weekend|week|season|{_DAYS})\b")),
    (
        QueryKind.WHERE,
        regex(r"\bwhere\b|\b(?:what|which) (?:city|country|state|place|location|town|area|folder|directory)\b"),
    ),
    (QueryKind.WHO, regex(r"\bwho(?:m|se|['’]s)?\b|\b(?:what|which) (?:person|friend|people)\b")),
    (QueryKind.WHY, regex(r"\bwhy\b|\bwhat (?:(?:was |is |were )?the reasons?|motivat|inspir|made|caused)")),
    (QueryKind.HOW, regex(r"\bhow\b")),
    (QueryKind.WHICH, regex(r"\bwhich\b")),
    (QueryKind.WHAT, regex(r"\bwhat\b")),
    (QueryKind.YES_NO, regex(r"^(?:is|are|was|were|do|does|did|has|have|had|can|could|would|will|should|may|might)\b")),
)
_FEELING = regex(
    r"\b(?:feel|feeling|feelings|felt|reaction|react|think|thoughts?|opinion|attitude|like|love|enjoy|favou?rite|prefer)"
)
_NAMES = regex(r"[A-Z][\w'’.-]*[\w]")
_MONTH_STEMS = "janfebmaraprmayjunjulaugsepoctnovdec"
_YEAR = r"(?P<{0}>(?:19|20)\d\d)"
_OPENERS = ("in", "of", "by", "last", "this", "since", "early", "late", "during", "until")
_BEFORE_MONTH = f"(?:{'|'.join(f'(?<={word} )' for word in _OPENERS)})"
_QUERY_DATE = regex(
    rf"\b(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m1>{_MONTHS})\b(?:,? {_YEAR.format('y1')})?"
    rf"|\b(?P<m2>{_MONTHS})\.? (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d)(?:,? {_YEAR.format('y2')})?"
    rf"|\b(?P<m3>{_MONTHS}),? {_YEAR.format('y3')}"
    rf"|\b{_YEAR.format('y4')}[-/](?P<m4>\d{{1,2}})(?:[-/](?P<d4>\d{{1,2}}))?\b"
    rf"|{_BEFORE_MONTH}\b(?P<m5>{_MONTHS})\b"
    rf"|\b{_YEAR.format('y6')}\b"
)
_SEASON = regex(
    r"\b(?:in|of|last|this|during|since|early|late) (?:the )?(spring|summer|autumn|fall|winter)\b(?: of)?"
    rf"(?: {_YEAR.format('y')})?"
)
_SEASON_MONTHS = {
    "spring": (3, 4, 5), "summer": (6, 7, 8), "autumn": (9, 10, 11), "fall": (9, 10, 11), "winter": (12, 1, 2),
}  # fmt: skip
_HOLIDAY = regex(r"\b(christmas(?: eve)?|new year'?s eve|new year'?s(?: day)?|halloween|valentine'?s|thanksgiving)\b")
# In every text with a date, a season or a holiday.
_DATED = regex(
    r"\d|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|spring|summer|autumn|fall|winter|christmas|new year|hallow"
    r"|valentine|thanksgiving"
)
_HOLIDAYS = {
    "christmas": (12, 25), "christmas eve": (12, 24), "new years eve": (12, 31), "new years": (1, 1),
    "new years day": (1, 1), "halloween": (10, 31), "valentines": (2, 14), "thanksgiving": (11, 0),
}  # fmt: skip
_COUNT_WORDS = {
    "a": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "an": 1, "one": 1, "couple of": 2, "few": 3, "several": 4,
}  # fmt: skip
_UNIT_DAYS = {"day": 1.0, "week": 7.0, "month": 30.5, "year": 365.0}
_COUNT = r"(?:a )?(\d{1,3}|" + "|".join(_COUNT_WORDS) + ")"
_AGO = regex(rf"\b{_COUNT} (day|week|month|year)s? ago\b")
_WITHIN = regex(rf"\b(?:last|past|previous) (?:{_COUNT} )?(day|week|month|year)s?\b")
_LAST_DAY = regex(rf"\blast (?:{_DAYS}|weekend|night)\b")
_LAST_TIME = regex(rf"\blast (?:{_MONTHS}|spring|summer|autumn|fall|winter)\b")
_THIS = regex(r"\bthis (week|month|year)\b")


def query_traits(query: str) -> QueryTraits:
    """The cues of a query's text."""
    return _traits(query.strip()[:HEAD])


@lru_cache(maxsize=256)
def _traits(text: str) -> QueryTraits:
    folded = text.casefold()
    kind = _kind(folded)
    names = {_bare(name) for name in _NAMES.findall(text)} - word_list("query_openers")
    return QueryTraits(
        kind=kind,
        words=frozenset(_bare(word) for word in _WORD.findall(folded)),
        names=frozenset(name for name in names if not _DATE_WORD.match(name)),
        dates=tuple(_dates(folded)),
        ago=_ago(folded),
        feeling=_FEELING.search(folded) is not None,
    )


def _kind(folded: str) -> QueryKind:
    """The kind of the first question word; of two at the same place, the more specific."""
    # All but the last kind need one of two beginnings of a word; to look for these takes less than all the patterns.
    kinds = _KINDS if "wh" in folded or "how" in folded else _KINDS[-1:]
    found = [(match.start(), n, kind) for n, (kind, p) in enumerate(kinds) if (match := p.search(folded))]
    return min(found)[2] if found else QueryKind.TOPIC


def _bare(word: str) -> str:
    folded = word.casefold().replace("’", "'")
    return folded[:-2] if folded.endswith("'s") else folded.rstrip("'.")


def _dates(folded: str) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    if not _DATED.search(folded):
        return found
    for match in _QUERY_DATE.finditer(folded):
        part = {name[0]: value for name, value in match.groupdict().items() if value is not None}
        month = part.get("m", "0")
        number = int(month) if month.isdigit() else _MONTH_STEMS.index(month[:3]) // 3 + 1
        day = int(part.get("d", "0"))
        if number <= 12 and day <= 31:
            found.append((int(part.get("y", "0")), number, day))
    for match in _SEASON.finditer(folded):
        # The months of a winter that has a number belong to two years.
        year = int(match["y"] or 0)
        months = _SEASON_MONTHS[match[1]]
        found += [(year + 1 if year and months[0] > month else year, month, 0) for month in months]
    for match in _HOLIDAY.finditer(folded):
        month, day = _HOLIDAYS[match[1].replace("'", "")]
        found.append((0, month, day))
    return found


def _ago(folded: str) -> tuple[float, float] | None:
    if not any(word in folded for word in (" ago", "last ", "past ", "previous ", "this ", "yesterday")):
        return None
    if match := _AGO.search(folded):
        unit = _UNIT_DAYS[match[2]]
        days = _count(match[1]) * unit
        return max(days - 0.6 * unit, 0.0), days + 0.6 * unit
    if match := _WITHIN.search(folded):
        unit = _UNIT_DAYS[match[2]]
        # "Last month" may reach back two months, "the last three months" hardly more than three.
        return 0.0, _count(match[1]) * unit + 1 if match[1] else 2 * unit
    if match := _THIS.search(folded):
        return 0.0, _UNIT_DAYS[match[1]]
    if "yesterday" in folded:
        return 0.0, 2.0
    if _LAST_TIME.search(folded):
        return 0.0, 400.0
    return (0.0, 8.0) if _LAST_DAY.search(folded) else None


def _count(text: str) -> int:
    return int(text) if text.isdigit() else _COUNT_WORDS[text]
