"""Pairs of memories that the local comparison leaves uncertain, judged by a language model.

Only pairs without any difference that the comparison knows are asked about: a changed number, name or negation is never
overruled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...errors import LLMError
from ...security.secrets.secrets import redact
from ...store.database import batched
from ..comparison.conflicts import Judgement
from .merging import task

if TYPE_CHECKING:
    from ...llm.client import LanguageModel

__all__ = ["PairJudge", "judge_pairs"]

_MOST = 60  # pairs of one run
_AT_ONCE = 8
_LONGEST = 1_500  # characters of a note
# Between these probabilities of saying the same, the local comparison is often wrong.
_LOW, _HIGH = 0.15, 0.75


class PairJudge:
    """Remembers what the model said of pairs of texts, by their contents. Without a model it says nothing."""

    def __init__(self, model: LanguageModel | None, *, needed: bool) -> None:
        """`needed`: a failure of the model is an error, else a `warning`."""
        self._model = model
        self._needed = needed
        self._left = _MOST
        self._verdicts: dict[tuple[str, str], bool] = {}
        self.warning: str | None = None

    @property
    def active(self) -> bool:
        return self._model is not None and self._left > 0

    def ask(self, pairs: Iterable[tuple[str, str, Judgement]]) -> None:
        """Have the uncertain ones among these pairs judged, the likeliest first, within the bound of a run."""
        open_ones = {
            _key(one, other): found.probability
            for one, other, found in pairs
            if found.reason is None and _LOW <= found.probability <= _HIGH and _key(one, other) not in self._verdicts
        }
        wanted = sorted(open_ones, key=lambda key: (-open_ones[key], key))[: self._left]
        if not wanted or self._model is None:
            return
        self._left -= len(wanted)
        try:
            self._verdicts |= dict(zip(wanted, judge_pairs(self._model, wanted), strict=True))
        except LLMError as error:
            if self._needed:
                raise
            self.warning, self._model = f"The language model was not used: {error}", None

    def verdict(self, one: str, other: str) -> bool | None:
        """Whether the model found that two texts say the same; None if it was not asked."""
        return self._verdicts.get(_key(one, other))


def _key(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one <= other else (other, one)


def judge_pairs(model: LanguageModel, pairs: Sequence[tuple[str, str]]) -> list[bool]:
    """Whether the two texts of each pair say the same; what has no clear answer does not. LLMError if it fails."""
    from ...llm.values import Budget, Passage

    answers: list[bool] = []
    for some in batched(pairs, _AT_ONCE):
        data = [
            Passage(f"pair {number}, {which}", redact(text[:_LONGEST]).text)
            for number, pair in enumerate(some, 1)
            for which, text in zip(("first", "second"), pair, strict=True)
        ]
        entries = model.complete(*task("judge", data), Budget(input_tokens=10_000, output_tokens=1_000)).value[
            "answers"
        ]
        counts = Counter(int(entry["number"]) for entry in entries)
        same = {int(entry["number"]) for entry in entries if entry["verdict"] == "same"}
        # Two answers to one pair are both ignored.
        answers += [number in same and counts[number] == 1 for number in range(1, len(some) + 1)]
    return answers
