"""Examples made of others: bytes changed, parts moved, repeated or exchanged, words of the language put in."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

__all__ = ["LARGEST", "mutated", "smaller"]

LARGEST = 100_000

_ODD = (
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",
    b"\r",
    b"\n",
    b"\t",
    b" ",
    b'"',
    b"\\",
    b"-1",
    b"9" * 400,
    b"1e400",
    b"\xe2\x80\xa8",
)


def mutated(data: bytes, others: Sequence[bytes], words: Sequence[bytes], source: random.Random) -> bytes:
    """An example like another one, with one to six changes."""
    for _ in range(source.choice((1, 1, 2, 3, 6))):
        data = source.choice(_CHANGES)(data, others, words, source)[:LARGEST]
    return data


def smaller(data: bytes, fails: Callable[[bytes], bool], most_tries: int = 400) -> bytes:
    """A smaller example that fails too: ever shorter spans are left out."""
    span, tries = max(1, len(data) // 2), 0
    while tries < most_tries:
        at = 0
        while at < len(data) and tries < most_tries:
            tries += 1
            shorter = data[:at] + data[at + span :]
            if fails(shorter):
                data = shorter
            else:
                at += span
        if span == 1:
            break
        span //= 2
    return data


_Change = Callable[[bytes, Sequence[bytes], Sequence[bytes], random.Random], bytes]


def _span(data: bytes, source: random.Random, most: int = 64) -> tuple[int, int]:
    start = source.randint(0, len(data))
    return start, min(len(data), start + source.randint(0, most))


def _flip(data: bytes, others: Sequence[bytes], words: Sequence[bytes], source: random.Random) -> bytes:
    if not data:
        return source.randbytes(4)
    at = source.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << source.randrange(8))]) + data[at + 1 :]


def _remove(data: bytes, others: Sequence[bytes], words: Sequence[bytes], source: random.Random) -> bytes:
    start, end = _span(data, source)
    return data[:start] + data[end:]


def _insert(data: bytes, others: Sequence[bytes], words: Sequence[bytes], source: random.Random) -> bytes:
    at = source.randint(0, len(data))
    return data[:at] + source.choice((*words, *words, *_ODD, source.randbytes(3))) + data[at:]


def _repeat(data: bytes, others: Sequence[bytes], words: Sequence[bytes], source: random.Random) -> bytes:
    start, end = _span(data, source, 12)
    return data[:end] + data[start:end] * source.choice((1, 3, 70, 2_000)) + data[end:]


def _repeat_word(data: bytes, others: Sequence[bytes], words: Sequence[bytes], source: random.Random) -> bytes:
    at = source.randint(0, len(data))
    return data[:at] + source.choice((*words, *_ODD)) * source.choice((2, 70, 1_100, 20_000)) + data[at:]


def _exchange(data: bytes, others: Sequence[bytes], words: Sequence[bytes], source: random.Random) -> bytes:
    other = source.choice(others)
    start, end = _span(other, source, 400)
    at, to = _span(data, source, 400)
    return data[:at] + other[start:end] + data[to:]


def _cut(data: bytes, others: Sequence[bytes], words: Sequence[bytes], source: random.Random) -> bytes:
    return data[: source.randint(0, len(data))]


_CHANGES: tuple[_Change, ...] = (_flip, _flip, _remove, _insert, _insert, _repeat, _repeat_word, _exchange, _cut)
