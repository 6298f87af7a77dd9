"""No reader of text takes long over any text of 100 KB, however odd it is."""

from __future__ import annotations

import warnings

import pytest

from cases import each
from cortex_py.core.errors import CortexError
from hostile_texts import HOSTILE, hostile
from text_readers import READERS
from timing import explodes

_CEILING = 2.0  # seconds of CPU for one reader and one text
# The everyday run reads less: what is quadratic takes eleven times less there, and what is linear a third.
_SHORT = 30_000
_SHORT_CEILING = _CEILING / 2
# Parsers of source code stop by the clock; the rest reads to the end.
_SOURCES = sorted(name for name in READERS if name.startswith(("source-", "facts-")))
_PLAIN = sorted(READERS.keys() - set(_SOURCES))
# Those that were slow in some reader once, with one of each kind beside them.
_WORST = ("open-square", "blank", "question-blank", "random-text")


def _read(reader: str, text: str) -> None:
    """It may refuse the text."""
    try:
        with warnings.catch_warnings():
            # Python warns of odd escapes in the source that it is asked to compile.
            warnings.simplefilter("ignore")
            READERS[reader](text)
    except (CortexError, ValueError, RecursionError):
        pass


def _slow(reader: str, patterns: tuple[str, ...], ceiling: float, size: int = 100_000) -> list[str]:
    _read(reader, "Tables are loaded by the first call.")

    def slow(name: str) -> bool:
        return explodes(lambda length: _read(reader, hostile(name, length)), size, ceiling)

    return [name for name in patterns if slow(name)]


def test_there_are_enough_hostile_texts_and_readers() -> None:
    assert len(HOSTILE) >= 110
    assert len(READERS) >= 110
    assert all(90_000 <= len(hostile(name)) <= 110_000 for name in HOSTILE)


@pytest.mark.slow
@each("reader", _PLAIN)
def test_a_reader_is_quick_with_the_worst_texts(reader: str) -> None:
    assert _slow(reader, _WORST, _SHORT_CEILING, _SHORT) == []


@pytest.mark.soak
@pytest.mark.parametrize("reader", [*_PLAIN, *_SOURCES])
def test_a_reader_is_quick_with_every_text(reader: str) -> None:
    assert _slow(reader, tuple(HOSTILE), _CEILING) == []
