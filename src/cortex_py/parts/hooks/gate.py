"""The gate of what is kept of a session: which passages of a turn state something worth remembering.

A logistic model reads each sentence: its words and pairs of words, its shape, who says it, and what happened before in
the session, such as a command that failed and then succeeded. It gives the probability of each kind of memory, and of
none. A sentence above the floor is kept, together with neighbours that belong to it, such as its reason.

`training/gate/train_gate.py` writes the coefficients and both floors to `gate_model.json`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from ...core.security.spoken import spoken
from ...texts.reader import COMPLAINT, hedges, instructs, read
from ...texts.sentences import Sentence, one_line, sentences, shorten, typed
from .turns import RawTurn

__all__ = [
    "KINDS", "GateModel", "Passage", "PassageGate", "Scored", "SessionState", "default_gate", "features", "own_words",
    "score_turn",
]  # fmt: skip

# The first is "nothing to keep".
KINDS = ("", "decisions", "patterns", "learnings", "blockers", "progress")
_MOST_SENTENCES = 3  # of a passage
_MOST_PASSAGES = 4  # of a turn
_SHORTEST = 15  # characters
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|[?!:;]|\d+")
_CODE = re.compile(r"`[^`]*`")
_WHY = re.compile(r"\bwhy\b", re.IGNORECASE)
_ERROR = re.compile(r"error|fail|exception|cannot|not found|denied|refused", re.IGNORECASE)
# Tools that change files, as clients name them.
_CHANGES = re.compile(r"edit|write|patch|replace|create|insert", re.IGNORECASE)
_LEADS = frozenset(("sudo", "env", "time", "nice", "exec", "nohup"))
_MOST_CHANGED = 5
_LONGEST_COMMAND, _LONGEST_ERROR = 100, 200
_CUES = json.loads(Path(__file__).with_name("gate_cues.json").read_text("utf-8"))
# How people write in a hurry.
_FORMS: dict[str, tuple[str, ...]] = {word: tuple(form.split()) for word, form in _CUES["forms"].items()}
_SAYS: dict[str, tuple[str, ...]] = {name: tuple(f" {cue} " for cue in cues) for name, cues in _CUES["says"].items()}
_LENGTHS = (5, 8, 12, 20, 35)  # words


@dataclass(frozen=True, slots=True)
class Passage:
    """What is kept of a turn: one to three sentences in their own words."""

    namespace: str
    text: str
    confidence: float | None  # None if only a language model found it


@dataclass(slots=True)
class SessionState:
    """What the gate remembers of a session from turn to turn. Texts of the session are not written to disk."""

    prompts: int = 0
    prompt_asks: bool = False
    prompt_complains: bool = False
    answer_asks: bool = False
    trouble: bool = False  # somebody complained, or a tool failed, at any time
    failed: bool = False  # a tool failed since the last prompt
    fixed: bool = False  # and after that, the same program succeeded
    fetched: bool = False  # a tool brought something from outside since the last prompt
    # Not written to disk: the program or tool that failed last, what it said, and the files that were changed since.
    program: str = ""
    failure: str = ""
    changed: list[str] = field(default_factory=list)

    def follow(self, turn: RawTurn) -> None:
        """Take note of a turn that was read."""
        asks = turn.text.rstrip().endswith("?")
        if turn.role == "tool":
            self._follow_tool(turn)
        elif turn.role == "user":
            self.prompts += 1
            self.prompt_asks = asks
            self.prompt_complains = bool(_WHY.search(turn.text) or COMPLAINT.search(turn.text))
            self.trouble = self.trouble or self.prompt_complains
            self.failed = self.fixed = self.fetched = False
            self.changed = []
        elif turn.role == "assistant":
            self.answer_asks = asks

    def _follow_tool(self, turn: RawTurn) -> None:
        self.fetched = self.fetched or turn.fetched
        if turn.failed:
            self.failed = self.trouble = True
            self.fixed = False
            self.program, self.failure, self.changed = _program(turn), _failure(turn), []
        elif self.failed and turn.path and _CHANGES.search(turn.tool) and len(self.changed) < _MOST_CHANGED:
            self.changed.append(one_line(turn.path))
        elif self.failed and not self.fixed:
            words = turn.command.split() if turn.command else [turn.tool]
            self.fixed = self.program in words or not self.program

    def repaired(self) -> str:
        """The failure that was repaired since the last prompt, and what was changed for it; empty if there is none."""
        if not (self.fixed and self.failure):
            return ""
        files = ", ".join(dict.fromkeys(self.changed))
        return f"{self.failure}\nChanged: {files}" if files else self.failure

    def traits(self, role: str) -> Iterator[str]:
        """What the model is given of the session so far."""
        user = role == "user"
        if self.prompts <= (0 if user else 1):
            yield "first"
        if self.answer_asks if user else self.prompt_asks:
            yield "was_asked"
        if self.trouble:
            yield "trouble"
        if not user:
            yield from (name for name in ("prompt_complains", "failed", "fixed") if getattr(self, name))


def _program(turn: RawTurn) -> str:
    """The program that a command runs, without what only leads to it; the tool, where there is no command."""
    words = [word for word in turn.command.split() if word not in _LEADS and "=" not in word]
    return words[0] if words else turn.tool


def _failure(turn: RawTurn) -> str:
    """What failed, in one line: the command or file, and the line that names the error."""
    lines = [line for line in map(one_line, turn.text.splitlines()) if line]
    error = next((line for line in lines if _ERROR.search(line)), lines[-1] if lines else "")
    what = one_line(turn.command or turn.path or turn.tool)
    return f"{shorten(what, _LONGEST_COMMAND)}: {shorten(error, _LONGEST_ERROR)}" if what and error else ""


def features(sentence: Sentence, role: str) -> tuple[list[str], list[str]]:
    """The traits and the words of a sentence, by themselves."""
    text = sentence.text
    words = [word for found in _WORD.findall(_CODE.sub(" CODE ", text)) for word in _terms(found)]
    said = f" {' '.join(words)} "
    traits = [f"says {name}" for name, cues in _SAYS.items() if any(cue in said for cue in cues)]
    traits += [f"words>={length}" for length in _LENGTHS if len(words) >= length]
    seen = {
        "asks": text.rstrip().endswith("?"),
        "code": "`" in text,
        "digits": any(one.isdigit() for one in text),
        "hedges": hedges(text),
    }
    traits += [name for name, is_so in seen.items() if is_so]
    if cue := read(sentence, role):
        traits.append(f"cue {cue.section}")
    pairs = [f"{one} {other}" for one, other in pairwise(words)]
    opening = [f"^{' '.join(words[:count])}" for count in (1, 2) if len(words) >= count]
    return traits, list(dict.fromkeys((*words, *pairs, *opening)))


def _terms(word: str) -> Sequence[str]:
    """A word in its usual form, or the words that it is short for."""
    if word == "CODE" or word.isdigit():
        return ("CODE" if word == "CODE" else "NUMBER",)
    word = word.lower().replace("’", "'")
    return _FORMS.get(word) or (word,)


def placed(said: Sequence[Sentence], place: int, role: str) -> Iterator[str]:
    """Traits of where a sentence stands in its turn."""
    sentence = said[place]
    seen = {
        "opens": place == 0,
        "closes": place == len(said) - 1,
        "alone": len(said) == 1,
        "many": len(said) > 3,
        "listed": sentence.listed,
        "follows": sentence.follows,
        "then_asks": place + 1 < len(said) and said[place + 1].text.rstrip().endswith("?"),
        "goes_on": place > 0 and role != "user",
    }
    return (name for name, is_so in seen.items() if is_so)


@dataclass(frozen=True, slots=True)
class GateModel:
    """The weights of traits and words for each of `KINDS`, and the floors."""

    traits: Mapping[str, Sequence[float]]
    words: Mapping[str, Sequence[float]]
    offset: Sequence[float]
    word_scale: float
    floor: float
    near: float

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> GateModel:
        return cls(**{name: content[name] for name in cls.__slots__})

    def probabilities(self, traits: Sequence[str], words: Sequence[str], role: str) -> list[float]:
        """The probability of each kind."""
        logits = list(self.offset)
        for name in (role, *traits, *(f"{role} {one}" for one in traits)):
            _add(logits, self.traits.get(name), 1.0)
        known = [self.words[word] for word in words if word in self.words]
        for weights in known:
            _add(logits, weights, self.word_scale / math.sqrt(len(known)))
        top = max(logits)
        raised = [math.exp(one - top) for one in logits]
        return [one / sum(raised) for one in raised]


def _add(logits: list[float], weights: Sequence[float] | None, share: float) -> None:
    for place, weight in enumerate(weights or ()):
        logits[place] += share * weight


@cache
def default_gate() -> PassageGate:
    return PassageGate(GateModel.from_json(json.loads(Path(__file__).with_name("gate_model.json").read_text("utf-8"))))


@dataclass(frozen=True, slots=True)
class Scored:
    """A sentence of a turn with the probability of each kind."""

    sentence: Sentence
    by_kind: Sequence[float]

    @property
    def worth(self) -> float:
        return 1.0 - self.by_kind[0]


def own_words(turn: RawTurn) -> str:
    """What the speaker of a turn wrote there, without what a person pasted."""
    # Turns that earlier versions kept hold what clients added.
    said = spoken(turn.text)
    return typed(said) if turn.role == "user" else said


def score_turn(model: GateModel, turn: RawTurn, before: SessionState) -> list[Scored]:
    """The sentences of a prompt or an answer, scored."""
    said = sentences(own_words(turn))
    around = list(before.traits(turn.role))
    found = []
    for place, sentence in enumerate(said):
        traits, words = features(sentence, turn.role)
        traits += [*around, *placed(said, place, turn.role)]
        found.append(Scored(sentence, model.probabilities(traits, words, turn.role)))
    return found


class PassageGate:
    """Reads turns in their order; a session's state is given along and brought up to date."""

    def __init__(self, model: GateModel) -> None:
        self._model = model

    def read(self, turn: RawTurn, state: SessionState) -> list[Passage]:
        """What is worth keeping of a turn."""
        found = self.passages(score_turn(self._model, turn, state)) if turn.role in ("user", "assistant") else []
        state.follow(turn)
        return found

    def passages(self, scored: Sequence[Scored]) -> list[Passage]:
        """Sentences above the floor, each with the neighbours that belong to it."""
        taken: set[int] = set()
        found: list[tuple[int, Passage]] = []
        for place in sorted(range(len(scored)), key=lambda place: -scored[place].worth):
            if scored[place].worth < self._model.floor or len(found) == _MOST_PASSAGES:
                break
            if place in taken:
                continue
            reach = self._reach(scored, place, taken)
            taken.update(reach)
            text = " ".join(scored[one].sentence.text for one in reach)
            if len(text) >= _SHORTEST and not instructs(text):
                sums = [sum(scored[one].by_kind[kind] for one in reach) for kind in range(1, len(KINDS))]
                namespace = KINDS[1 + sums.index(max(sums))]
                found.append((place, Passage(namespace, text, round(scored[place].worth, 2))))
        return [passage for _, passage in sorted(found, key=lambda one: one[0])]

    def _reach(self, scored: Sequence[Scored], place: int, taken: set[int]) -> range:
        """The sentences around one that are likely parts of the same statement."""
        first = last = place
        while last - first + 1 < _MOST_SENTENCES:
            after, before = last + 1, first - 1
            if after < len(scored) and after not in taken and self._joins(scored, last, after):
                last = after
            elif before >= 0 and before not in taken and self._joins(scored, before, first):
                first = before
            else:
                break
        return range(first, last + 1)

    def _joins(self, scored: Sequence[Scored], one: int, other: int) -> bool:
        same = scored[one].sentence.block == scored[other].sentence.block
        return same and min(scored[one].worth, scored[other].worth) >= self._model.near
