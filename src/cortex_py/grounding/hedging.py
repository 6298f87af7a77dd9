"""How sure a text sounds: hedges take confidence away, boosters give a little. Pure.

A hedge counts for what it weighs against the sentences that have none, so that one doubt in a long answer is a small
one. Adding a hedge, inside a sentence or as one of its own, never raises the result: all hedges are single words, and
nothing that a hedge adds to a text makes another one disappear or a booster count.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from ..memory.opposites import NEGATIONS, word_set

__all__ = ["BOOSTERS", "HEDGES", "confidence", "hedging"]

_PLAIN = 0.9  # a plain statement; only boosters come nearer to one


def _weights(rows: dict[float, str]) -> dict[str, float]:
    return {word: weight for weight, words in rows.items() for word in words.split()}


HEDGES = _weights(
    {
        0.8: "untested unverified unsure uncertain unclear guess guessing",
        0.5: """maybe perhaps possibly might hopefully presumably supposedly theoretically conceivably untried assume
            assuming assumed suspect tentatively""",
        0.4: """probably likely should think believe may could seems seem seemed appears appear apparently attempt
            attempted tried theory doubt afraid expect plausibly""",
        0.2: "mostly partly partially somewhat largely basically generally usually typically arguably would suggests",
        0.1: "roughly approximately nearly almost essentially",
    }
)
BOOSTERS = word_set(
    """definitely certainly surely verified confirmed tested guaranteed proven undoubtedly sure certain indeed checked
    absolutely"""
)
_WEIGHT_OF_DENIED = 0.5  # "not verified", "not sure"
_LIKE_A_MONTH = "May"
_CODE = re.compile(r"`[^`\n]*`")
_SENTENCE = re.compile(r"[^.!?\n。！？]+(?:\.(?=\w)[^.!?\n。！？]+)*")
_WORD = re.compile(r"\w+(?:['’]\w+)?")
_ABOUT = re.compile(r"\b(?:about|around)\s+\d|~\d")


class _Tone(NamedTuple):
    weight: float
    boosted: bool


def confidence(text: str) -> float:
    """How sure the text sounds, from 0 to 1; a text that says nothing sounds plain."""
    tones = _tones(text)
    boosted = sum(tone.boosted for tone in tones)
    base = _PLAIN + (1 - _PLAIN) * boosted / max(1, len(tones))
    return base * (1 - _hedged(tones))


def hedging(text: str) -> float:
    """How much of what the text says is taken back by hedges: 0 for none, never quite 1."""
    return _hedged(_tones(text))


def _hedged(tones: list[_Tone]) -> float:
    # Only sentences without a hedge thin the doubt out; counting the hedged ones would let a mild hedge raise the mean.
    plain = sum(not tone.weight for tone in tones)
    total = sum(tone.weight for tone in tones)
    return 1 - math.exp(-total / (1 + plain))


def _tones(text: str) -> list[_Tone]:
    return [tone for found in _SENTENCE.finditer(_CODE.sub(" ", text)) if (tone := _tone(found[0])) is not None]


def _tone(sentence: str) -> _Tone | None:
    written = _WORD.findall(sentence)
    if not written:
        return None
    weight, denied, boosted = 0.0, False, 0
    for word in written:
        lower = word.lower()
        denied = denied or lower in NEGATIONS or lower.endswith(("n't", "n’t"))
        boosted += lower in BOOSTERS
        if word != _LIKE_A_MONTH:
            weight += HEDGES.get(lower, 0.0)
    if _ABOUT.search(sentence):
        weight += 0.1
    # A negation anywhere turns the boosters of its sentence, wherever it stands: what comes between does not matter.
    return _Tone(weight + (_WEIGHT_OF_DENIED * boosted if denied else 0.0), bool(boosted) and not denied)
