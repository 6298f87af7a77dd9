"""The tokeniser of BERT-uncased models: text in, vocabulary ids out, standard library only.

It gives the same ids as the reference implementation (the `tokenizers` package, which would cost more
to import than a query costs to embed): control characters are dropped, accents stripped, letters
lowered, ideographs and punctuation stand alone, and each word is cut greedily into the longest known
pieces. Models, batches and padding live elsewhere.
"""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice

__all__ = ["WordPiece"]

_UNKNOWN, _CLASSIFY, _SEPARATE = "[UNK]", "[CLS]", "[SEP]"
_MAX_WORD = 100
_CACHED_CHUNK = 64
_CACHE_SIZE = 32_768

# Recognised in the raw text, before anything is cleaned or lowered.
_SPECIAL = re.compile(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])")

# `str.split` breaks at these, while the reference deletes them and joins what they part.
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

# The reference classifies characters by Unicode 8. Marks, punctuation and controls that came later are
# ordinary letters to it, whatever the interpreter's own tables say; four others have changed since.
_LATER_RANGES = """
5c8-5c9 61d 7fd 890-891 897-89f 8ca-8e2 9fd-9fe a76 afa-aff b53-b55 c04 c3c c77 c84 d00 d3b-d3c d81 eba
ece 180f 1885-1886 1abf-1af0 1b4e-1b4f 1b7d-1b7f 1df6-1dfb 2e43-2e4f 2e52-2e5d 2e60-2e63 a82c a8c5 a8ff
a9bd 10d24-10d27 10d69-10d6e 10eab-10ead 10ecb-10ed0 10ef0-10eff 10f46-10f50 10f55-10f59 10f82-10f89
11070 11073-11074 110c2 110cd 111cf 1123e 11241 1133b 113bb-113c0 113ce 113d0 113d2 113d4-113d5
113d7-113d8 113e1-113e2 11438-1143f 11442-11444 11446 1144b-1144f 1145a-1145b 1145d-1145e 11660-1166c
116b9 1182f-11837 11839-1183b 1193b-1193c 1193e 11943-11946 119d4-119d7 119da-119db 119e0 119e2
11a01-11a0a 11a33-11a38 11a3b-11a47 11a51-11a56 11a59-11a5b 11a8a-11a96 11a98-11a9c 11a9e-11aa2
11b00-11b09 11b60 11b62-11b64 11b66 11be1 11c30-11c36 11c38-11c3d 11c3f 11c41-11c45 11c70-11c71
11c92-11ca7 11caa-11cb0 11cb2-11cb3 11cb5-11cb6 11d31-11d36 11d3a 11d3c-11d3d 11d3f-11d45 11d47
11d90-11d91 11d95 11d97 11df0 11ef3-11ef4 11ef7-11ef8 11f00-11f01 11f36-11f3a 11f40 11f42-11f4f 11f5a
11fff 12ff1-12ff2 13430-13440 13447-13455 1611e-16129 1612d-1612f 16d6d-16d6f 16e97-16e9a 16f4f 16fe2
16fe4 1cf00-1cf2d 1cf30-1cf46 1d127-1d128 1d25b-1d25c 1e000-1e006 1e008-1e018 1e01b-1e021 1e023-1e024
1e026-1e02a 1e08f 1e130-1e136 1e2ae 1e2ec-1e2ef 1e4ec-1e4ef 1e5ee-1e5ef 1e5ff 1e6e3 1e6e6 1e6ee-1e6ef
1e6f5 1e944-1e94a 1e95e-1e95f
"""
_CATEGORY_THEN = {0x166D: "Po", 0x1734: "Mn", 0x111C9: "Po", 0x1171E: "Mn"}


def _later_letters() -> Iterator[tuple[int, str]]:
    for text in _LATER_RANGES.split():
        first, _, last = text.partition("-")
        for point in range(int(first, 16), int(last or first, 16) + 1):
            yield point, "Lo"


_CATEGORY_THEN.update(_later_letters())


def _category(char: str) -> str:
    return _CATEGORY_THEN.get(ord(char)) or unicodedata.category(char)


class _CharacterTable(dict[int, str], ABC):
    """A table for `str.translate` that fills itself, and never beyond the basic plane."""

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
        return 2 + sum(len(self._chunk_ids(chunk, None)) for chunk in _chunks(text))

    def _chunk_ids(self, chunk: str, limit: int | None) -> Sequence[int]:
        known = self._cache.get(chunk)
        if known is not None:
            return known
        if len(chunk) > _CACHED_CHUNK:
            return list(islice(self._tokens(chunk), limit))
        ids = tuple(self._tokens(chunk))
        if len(self._cache) >= _CACHE_SIZE:
            # Starting afresh needs no lock: another thread at worst adds to the dictionary let go here.
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
