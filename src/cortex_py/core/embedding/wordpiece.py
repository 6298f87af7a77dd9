"""The tokeniser of BERT-uncased models: text to vocabulary ids, with the standard library only.

It gives the same ids as the reference implementation (the `tokenizers` package, whose import takes longer than
embedding a query): control characters are dropped, accents stripped, letters lowered, ideographs and punctuation
separated, and each word is cut greedily into the longest known pieces.
"""

from __future__ import annotations

import json
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

__all__ = ["WordPiece"]

_UNKNOWN, _CLASSIFY, _SEPARATE = "[UNK]", "[CLS]", "[SEP]"
_MAX_WORD = 100
_CACHED_CHUNK = 64
_CACHE_SIZE = 32_768

# Recognised in the raw text, before anything is cleaned or lowered.
_SPECIAL = re.compile(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])")

# `str.split` breaks at these, while the reference deletes them and joins their neighbours.
_JOINING = re.compile("[\x0b\x0c\x1c-\x1f\x85]")
_CHUNK = re.compile("(?:\\S|[\x0b\x0c\x1c-\x1f\x85])+")

_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)

# The reference classifies characters by Unicode 8. To it, marks, punctuation and controls that were added later (the
# ranges of `unicode_8.json`) are ordinary letters; four other characters have changed their category since.
_CATEGORY_THEN = {0x166D: "Po", 0x1734: "Mn", 0x111C9: "Po", 0x1171E: "Mn"}


def _later_letters() -> Iterator[tuple[int, str]]:
    lines = json.loads(Path(__file__).with_name("unicode_8.json").read_text("utf-8"))
    for text in " ".join(lines).split():
        first, _, last = text.partition("-")
        for point in range(int(first, 16), int(last or first, 16) + 1):
            yield point, "Lo"


_CATEGORY_THEN.update(_later_letters())


def _category(char: str) -> str:
    return _CATEGORY_THEN.get(ord(char)) or unicodedata.category(char)


class _CharacterTable(dict[int, str], ABC):
    """A table for `str.translate` that fills itself, for the basic multilingual plane only."""

    def __missing__(self, point: int) -> str:
        replacement = self.replacement(chr(point))
        if point < 0x10000:
            self[point] = replacement
        return replacement

    @abstractmethod
    def replacement(self, char: str) -> str:
        """What stands for a character that was not met before."""


class _Cleaned(_CharacterTable):
    """Drops what cannot be seen and sets ideographs apart; runs before decomposition."""

    def replacement(self, char: str) -> str:
        if char in "\t\n\r":
            return " "
        if char in "\0\ufffd" or _category(char) in ("Cc", "Cf", "Co", "Cs"):
            return ""
        if any(first <= ord(char) <= last for first, last in _IDEOGRAPHS):
            return f" {char} "
        return char


class _Folded(_CharacterTable):
    """Strips accents, lowers letters, sets punctuation apart; runs after decomposition."""

    def replacement(self, char: str) -> str:
        category = _category(char)
        if category == "Mn":
            return ""
        if category[0] == "P" or (char.isascii() and char.isprintable() and not char.isalnum() and char != " "):
            return f" {char} "
        return char.lower()


class WordPiece:
    """Cuts text into the pieces of one vocabulary. Safe to share between threads."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._heads = {piece: number for number, piece in enumerate(vocabulary)}
        self._tails = {piece[2:]: number for piece, number in self._heads.items() if piece.startswith("##")}
        self._longest_head = max(map(len, self._heads))
        self._longest_tail = max(map(len, self._tails))
        self._unknown = (self._heads[_UNKNOWN],)
        self._first = self._heads[_CLASSIFY]
        self._last = self._heads[_SEPARATE]
        self._cleaned = _Cleaned()
        self._folded = _Folded()
        self._cache: dict[str, tuple[int, ...]] = {}
        # By themselves, so that the whole text is counted by one call of `map`.
        self._lengths: dict[str, int] = {}

    def encode(self, text: str, limit: int) -> list[int]:
        """Ids of the text between the two marks, cut so that there are at most `limit` in all."""
        ids = [self._first]
        for chunk in _chunks(text):
            ids.extend(self._chunk_ids(chunk, limit))
            if len(ids) >= limit:
                del ids[limit - 1 :]
                break
        ids.append(self._last)
        return ids

    def count(self, text: str) -> int:
        """How many ids the whole text has, the two marks included."""
        chunks = _chunks(text)
        try:
            return 2 + sum(map(self._lengths.__getitem__, chunks))
        except KeyError:
            return 2 + sum(map(self._length, chunks))

    def _length(self, chunk: str) -> int:
        known = self._lengths.get(chunk)
        if known is None:
            known = len(self._chunk_ids(chunk, None))
            if len(chunk) <= _CACHED_CHUNK:
                if len(self._lengths) >= _CACHE_SIZE:
                    self._lengths = {}
                self._lengths[chunk] = known
        return known

    def _chunk_ids(self, chunk: str, limit: int | None) -> Sequence[int]:
        known = self._cache.get(chunk)
        if known is not None:
            return known
        if len(chunk) > _CACHED_CHUNK:
            return list(islice(self._tokens(chunk), limit))
        ids = tuple(self._tokens(chunk))
        if len(self._cache) >= _CACHE_SIZE:
            # No lock is needed: at worst another thread adds to the discarded dictionary.
            self._cache = {}
        self._cache[chunk] = ids
        return ids

    def _tokens(self, chunk: str) -> Iterator[int]:
        for part in _SPECIAL.split(chunk):
            if _SPECIAL.fullmatch(part):
                yield self._heads[part]
                continue
            visible = unicodedata.normalize("NFD", part.translate(self._cleaned))
            for word in visible.translate(self._folded).split():
                yield from self._word_ids(word)

    def _word_ids(self, word: str) -> tuple[int, ...]:
        whole = self._heads.get(word)
        if whole is not None:
            return (whole,)
        if len(word) > _MAX_WORD:
            return self._unknown
        ids: list[int] = []
        start, known, longest = 0, self._heads, self._longest_head
        while start < len(word):
            for end in range(min(len(word), start + longest), start, -1):
                piece = known.get(word[start:end])
                if piece is not None:
                    break
            else:
                return self._unknown
            ids.append(piece)
            start, known, longest = end, self._tails, self._longest_tail
        return tuple(ids)


def _chunks(text: str) -> list[str]:
    return _CHUNK.findall(text) if _JOINING.search(text) else text.split()
