"""The words of the text index: hashes of terms, written so that every engine takes them for plain words."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2s

__all__ = ["index_word", "space_word", "term_hash"]

_ALPHABET = "234567abcdefghijklmnopqrstuvwxyz"
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]


@lru_cache(maxsize=1 << 15)
def term_hash(term: str) -> int:
    """The stable hash of a term: 32 bits, never 0."""
    digest = blake2s(term.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "little") or 1


@lru_cache(maxsize=1 << 15)
def index_word(number: int) -> str:
    """The word for a term hash in a full-text engine: 7 ASCII letters and digits, a letter first.

    No engine takes such a word for a number, an operator or two words, and words sort as their hashes do.
    """
    pairs = _PAIRS[number >> 20 & 1023] + _PAIRS[number >> 10 & 1023] + _PAIRS[number & 1023]
    return "abcd"[number >> 30] + pairs


def space_word(space: str) -> str:
    """The index word of a space: one letter longer than any word of a term."""
    return "s" + index_word(term_hash(space))
