"""The turns of a session as a language model reads them, where one is configured and `hook_model` allows it.

The model quotes passages and names their kind. Only what stands in the turn word for word is taken: it can choose, not
write. The turns are sent in parts, each within a budget, and all within the budget of the day.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...core.security.secrets.secrets import redact
from ...texts.reader import instructs
from .gate import KINDS, Passage, own_words
from .turns import RawTurn

if TYPE_CHECKING:
    from ...core.llm.client import LanguageModel

__all__ = ["read_by_model"]

_AT_ONCE = 12  # turns of one question
_LONGEST = 2_000  # characters of a turn; of a longer one the beginning and the end
_SHORTEST = 15
_MOST_PASSAGES = 4  # of a turn
_INSTRUCTIONS = """\
The data are turns of a session of software work, in order: prompts of a user, answers of an assistant, and what tools
answered. Quote the passages that are worth remembering in later sessions, word for word, one to three sentences each,
that can be understood by themselves: decisions with their reason (decisions), rules and preferences that the user
states (patterns), the cause of a failure, how it was solved, and facts that the user corrects (learnings), questions
that stay open and what the work waits for (blockers), next steps that are named (progress). Leave out requests for
this turn, reports of what was just done, what a look at the code tells, guesses, proposals that nobody has accepted,
and all that tools answered. Most turns have none.\
"""
_SCHEMA = {
    "type": "object",
    "properties": {
        "passages": {
            "type": "array",
            "maxItems": 2 * _AT_ONCE,
            "items": {
                "type": "object",
                "properties": {
                    "turn": {"type": "integer", "minimum": 1},
                    "namespace": {"type": "string", "enum": list(KINDS[1:])},
                    "quote": {"type": "string", "minLength": 1},
                },
                "required": ["turn", "namespace", "quote"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["passages"],
    "additionalProperties": False,
}


def read_by_model(
    model: LanguageModel, turns: Sequence[RawTurn], by_gate: Sequence[tuple[RawTurn, Passage]]
) -> list[tuple[RawTurn, Passage]]:
    """The passages of some turns. One that the gate found too keeps its confidence. LLMError if there is no answer."""
    found: list[tuple[RawTurn, Passage]] = []
    for part in _parts(turns):
        for turn, namespace, quote in _ask(model, part):
            if sum(one.id == turn.id for one, _ in found) < _MOST_PASSAGES:
                same = [one for held, one in by_gate if held.id == turn.id and (one.text in quote or quote in one.text)]
                found.append((turn, Passage(namespace, quote, same[0].confidence if same else None)))
    return found


def _parts(turns: Sequence[RawTurn]) -> Iterator[list[RawTurn]]:
    """The turns session by session, some at once; parts in which nobody speaks are left out."""
    sessions: dict[tuple[str, str], list[RawTurn]] = {}
    for turn in turns:
        if turn.text.strip():
            sessions.setdefault((turn.client, turn.session), []).append(turn)
    for held in sessions.values():
        for start in range(0, len(held), _AT_ONCE):
            part = held[start : start + _AT_ONCE]
            if any(turn.role in ("user", "assistant") for turn in part):
                yield part


def _ask(model: LanguageModel, turns: Sequence[RawTurn]) -> Iterator[tuple[RawTurn, str, str]]:
    from ...core.llm.values import Budget, Passage, Prompt

    data = [Passage(f"turn {number}, {_who(turn)}", _shown(own_words(turn))) for number, turn in enumerate(turns, 1)]
    reply = model.complete(Prompt(_INSTRUCTIONS, data), _SCHEMA, Budget(input_tokens=16_000, output_tokens=2_000))
    answered: list[dict[str, Any]] = reply.value["passages"]
    for one in answered:
        quote, place = " ".join(str(one["quote"]).split()), int(one["turn"])
        if place > len(turns) or turns[place - 1].role not in ("user", "assistant"):
            continue
        said = " ".join(turns[place - 1].text.split())
        if len(quote) >= _SHORTEST and quote in said and not instructs(quote):
            yield turns[place - 1], str(one["namespace"]), quote


def _who(turn: RawTurn) -> str:
    return f"a tool that {'failed' if turn.failed else 'succeeded'}" if turn.role == "tool" else turn.role


def _shown(text: str) -> str:
    text = redact(text).text
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}\n…\n{text[-_LONGEST // 2 :]}"
