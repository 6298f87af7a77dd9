"""The words of a merged or summarised memory: by a language model where one is configured, else by rule.

What a model writes is taken only if no fact of the originals is missing from it and no number is in it that they do
not have. The method is always told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..errors import InvalidInput, LLMError
from .keyphrases import key_phrases
from .merging import Piece, added_numbers, digest, lost_facts, merge

if TYPE_CHECKING:
    from ..llm.client import LanguageModel

__all__ = ["METHODS", "Method", "Strategy", "Worded", "Wording", "check_faithful", "check_method"]

Strategy = Literal["merge", "summarize", "dedupe"]
# By the best means there is, by rule alone, or by the language model or not at all.
Method = Literal["auto", "local", "llm"]
METHODS: tuple[Method, ...] = ("auto", "local", "llm")
LOCAL = "local"

_TASKS = {
    "merge": (
        "The data are notes that say the same thing in different words. Write one note that says it once, in plain "
        "sentences. Keep every number, version, date, name, identifier, path, address, quotation and negation exactly "
        "as written. Add nothing that the notes do not say."
    ),
    "summarize": (
        "The data are notes on one subject, oldest first. Write one note that sums them up as a short list of "
        "statements. Keep every number, version, date, name, identifier, path, address, quotation and negation exactly "
        "as written; where notes disagree, say which is newer. Add nothing that the notes do not say."
    ),
}
_SCHEMA = {
    "type": "object",
    "properties": {"content": {"type": "string", "minLength": 1}},
    "required": ["content"],
    "additionalProperties": False,
}
_LOST_SHOWN = 3
_NOT_TEXT = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Worded:
    """A text, who made it (`local` or `llm:MODEL`), and what was not as wanted."""

    content: str
    method: str
    warning: str | None = None


class Wording:
    """`model` gives the language model, or None where none is configured; it is asked for only when needed."""

    def __init__(self, model: Callable[[], LanguageModel | None] = lambda: None) -> None:
        self._model = model

    def of(self, pieces: Sequence[Piece], strategy: Strategy, method: Method = "auto") -> Worded:
        """One text of several. Nothing of what they tell is lost, whoever writes it."""
        if method == "local" or strategy == "dedupe":
            return Worded(_by_rule(pieces, strategy), LOCAL)
        model = self._model()
        if model is None:
            if method == "llm":
                raise LLMError("No language model is configured.", remedy="Set llm_provider and llm_model.")
            return Worded(_by_rule(pieces, strategy), LOCAL)
        try:
            return _by_model(model, pieces, strategy)
        except LLMError as error:
            if method == "llm":
                raise
            return Worded(_by_rule(pieces, strategy), LOCAL, f"The language model was not used: {error}")


def check_method(method: str) -> Method:
    for known in METHODS:
        if method == known:
            return known
    raise InvalidInput(
        f"Unknown method {method[:40]!r}.", remedy=f"Choose one of {', '.join(METHODS)}.", field="method"
    )


def _by_rule(pieces: Sequence[Piece], strategy: Strategy) -> str:
    if strategy != "summarize":
        return merge(pieces)
    return digest(pieces, _shared_topics(pieces))


def _shared_topics(pieces: Sequence[Piece], most: int = 3) -> list[str]:
    """What at least half of the texts speak of."""
    counted: dict[str, int] = {}
    for piece in pieces:
        for found in key_phrases(piece.text):
            counted[found.phrase.casefold()] = counted.get(found.phrase.casefold(), 0) + 1
    shared = [phrase for phrase, count in counted.items() if 2 * count >= len(pieces)]
    return sorted(shared, key=lambda phrase: (-counted[phrase], phrase))[:most]


def _by_model(model: LanguageModel, pieces: Sequence[Piece], strategy: Strategy) -> Worded:
    from ..llm.values import Budget, Passage, Prompt

    ordered = sorted(pieces, key=lambda one: (one.created_at, one.text))
    data = [Passage(f"note of {one.created_at.date().isoformat()}", one.text) for one in ordered]
    reply = model.complete(Prompt(_TASKS[strategy], data), _SCHEMA, Budget(input_tokens=16_000, output_tokens=2_000))
    content = str(reply.value["content"]).strip()
    check_faithful(reply.model, [piece.text for piece in pieces], content, allowed=[one.label for one in data])
    return Worded(content, f"llm:{reply.model}")


def check_faithful(model: str, originals: Sequence[str], content: str, allowed: Sequence[str] = ()) -> None:
    """Refuse what a model made of texts if it is empty, lacks a fact of theirs or has a number that is not theirs.

    Numbers may also come from `allowed`.
    """
    if not content or _NOT_TEXT.search(content):
        raise LLMError(f"{model} gave no text.")
    if lost := lost_facts(originals, content):
        raise LLMError(f"{model} left out {len(lost)} facts, such as {_some(lost)}.")
    if made_up := added_numbers([*originals, *allowed], content):
        raise LLMError(f"{model} made up {_some(made_up)}.")


def _some(found: Collection[str]) -> str:
    return ", ".join(sorted(found, key=lambda fact: (len(fact), fact))[:_LOST_SHOWN])[:200]
