"""The summary of a branch: sentences taken from its turns, none of them reworded.

`advance` reads further turns into a small state that can be stored: what is wanted, decided, done, blocked, open and
next. A later turn takes out what it answers, finishes, resolves or reverses. `render` writes the state as text within
a budget of tokens. Both are pure: the same turns give the same summary, however they are split among calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ....core.memory.text import split_turns
from ....texts.reader import (
    ALTERNATIVES,
    ANSWER,
    BLOCKERS,
    DECISIONS,
    DONE,
    GOAL,
    NEXT,
    OPEN,
    RECENT,
    SECTIONS,
    UNVERIFIED,
    Cue,
    abandoned_words,
    all_words,
    awaited_words,
    chooses,
    content_words,
    counts,
    hedges,
    instructs,
    learns,
    read,
    refused_words,
    refuses,
    replies,
    resolves,
    shares,
    takes_all_back,
    takes_back,
    touches,
    troubles,
)
from ....texts.sentences import HEAD, TAIL, Sentence, one_line, sentences, shorten
from .verdicts import Doubt, find_doubt

__all__ = ["EMPTY", "SaidTurn", "Summary", "SummaryState", "advance", "render"]

# -- state ---------------------------------------------------------------------------------------
# The kept sentences of a branch, stored as versioned text of at most 32 KB, whatever its length and script.

VERSION = 3

# How many items of a section are kept. With the cost of one they bound the state.
KEPT = {GOAL: 6, DECISIONS: 20, DONE: 20, BLOCKERS: 8, OPEN: 12, NEXT: 10, RECENT: 4, UNVERIFIED: 4}
LONGEST_ID = 128
_LONGEST = 240  # characters of an item
_COSTLIEST = 300  # bytes of an item in the state
_PLAIN_CUE = 3  # turns by which a plainer cue outweighs a newer one


@dataclass(frozen=True, slots=True)
class SaidTurn:
    """What one side said, and what its check doubted; `role` is "user", "assistant" or None for a note."""

    id: str
    role: str | None
    content: str
    created_at: datetime
    doubts: tuple[Doubt, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """A sentence that is kept: where it belongs, how plain its cue is, in which turn and by whom it was said.

    `doubt` is why the check did not confirm it.
    """

    section: str
    text: str
    strength: int
    turn: int
    role: str | None
    doubt: str = ""

    @property
    def words(self) -> frozenset[str]:
        """What later sentences are compared with; all words where each of them is a common one."""
        return content_words(self.text) or all_words(self.text)

    @property
    def worth(self) -> int:
        return self.turn + _PLAIN_CUE * self.strength


@dataclass(frozen=True, slots=True)
class SummaryState:
    """What is known after some turns: items in the order they were said, and how many more there were.

    `said` holds words of the last turn, which the next may take up.
    """

    turns: int = 0
    dropped: int = 0
    last_id: str | None = None
    items: tuple[Item, ...] = ()
    said: frozenset[str] = frozenset()

    def to_json(self) -> str:
        items = [[item.section, item.text, item.strength, item.turn, item.role, item.doubt] for item in self.items]
        value = {"version": VERSION, "turns": self.turns, "dropped": self.dropped, "last_id": self.last_id}
        last = {"items": items, "said": sorted(self.said)}
        return json.dumps(value | last, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> SummaryState:
        """The state that was stored; ValueError for anything else, upon which the branch is read from its start."""
        try:
            value: Any = json.loads(text)
            if value["version"] != VERSION:
                raise ValueError(f"summary state has version {value['version']}, not {VERSION}: read the turns again")
            items = tuple(_item(*row) for row in value["items"])
            said = frozenset(str(word) for word in value["said"])
            last = _text_or_none(value["last_id"])
            return cls(int(value["turns"]), int(value["dropped"]), last, items, said)
        except (KeyError, TypeError, RecursionError) as damage:
            raise ValueError("summary state is damaged: read the turns again") from damage


EMPTY = SummaryState()


def fit_item(text: str) -> str:
    """The text cut to the longest item of a state, whatever its script costs in bytes."""
    text = shorten(text, _LONGEST)
    while (cost := len(json.dumps(text, ensure_ascii=False).encode())) > _COSTLIEST:
        text = shorten(text, min(len(text) - 1, len(text) * _COSTLIEST // cost))
    return text


def _item(section: object, text: object, strength: object, turn: object, role: object, doubt: object) -> Item:
    if section not in KEPT or not isinstance(text, str) or not isinstance(strength, int) or not isinstance(turn, int):
        raise TypeError(section)
    return Item(str(section), text, strength, turn, _text_or_none(role), _text_or_none(doubt) or "")


def _text_or_none(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise TypeError(value)


_SHOWN = {GOAL: 3, DECISIONS: 8, DONE: 8, BLOCKERS: 4, OPEN: 5, NEXT: 4, RECENT: 3, UNVERIFIED: 2}
_PER_TURN = 8  # of one section: one long list must not push out everything else
_FEW = 3  # with fewer items than this, sentences without any cue are shown too
_SHORT = 100
_PLAIN = 2  # strength of a cue that needs no content words beside it
_SAID, _WORD = 120, 24  # words of a turn that are kept for the next, and the letters of one
_TELLING = 2  # content words without which a sentence needs the one before it

_ORDER = (GOAL, DECISIONS, DONE, UNVERIFIED, RECENT, BLOCKERS, OPEN, NEXT)
_BEST_FIRST = (GOAL, NEXT, BLOCKERS, DECISIONS, DONE, OPEN, UNVERIFIED, RECENT)
_LABELS = {
    DECISIONS: "Decided", DONE: "Done", UNVERIFIED: "Unverified", RECENT: "Recent", BLOCKERS: "Blocked", OPEN: "Open",
    NEXT: "Next",
}  # fmt: skip
_VERB_FIRST = re.compile(
    r"(?:working|work) on\b|(?:add|build|create|debug|design|develop|fix|implement|improve|investigate|integrate|make|"
    r"migrate|move|optimi[sz]e|port|refactor|remove|replace|rewrite|set up|support|test|update|upgrade|write)(?:ing)? ",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"^\s*[*_>]{0,3}[^\W\d][\w .'’-]{0,30}?[*_]{0,3}:[*_]{0,3}\s+")


@dataclass(frozen=True, slots=True)
class Summary:
    """A rendered summary; `left_out` counts the items of the state that are not shown."""

    text: str
    sections: dict[str, list[str]]
    left_out: int
    tokens: int


def advance(state: SummaryState, turns: Iterable[SaidTurn]) -> SummaryState:
    """The state after further turns, oldest first."""
    for turn in turns:
        state = _Reader(state, turn).after()
    return state


class _Reader:
    """Reads one turn into the items of the earlier turns."""

    def __init__(self, state: SummaryState, turn: SaidTurn) -> None:
        self.turn = turn
        self.number = state.turns + 1
        self.dropped = state.dropped
        self.items = list(state.items)
        self.said_before = state.said

    def after(self) -> SummaryState:
        first = ""
        for role, content in _voices(self.turn):
            said = _harmless(sentences(content))
            chosen = self._chosen(said, role)
            if replies(said, role):
                self._drop_questions_to(role)
            for place, sentence in enumerate(said):
                cue = read(sentence, role)
                doubt = self._doubt(sentence, cue)
                if doubt is not None and doubt.rejected:
                    self._add(Cue(UNVERIFIED, 1, sentence.text), role, doubt.reason)
                    continue
                if not first and len(content_words(sentence.text)) > 1:
                    first = sentence.text
                if sentence is chosen and (cue is None or cue.section == GOAL):
                    cue = Cue(DECISIONS, _PLAIN, sentence.text)
                self._take(sentence, cue, role, _leading_up(said, place), doubt)
        self._fall_back(first)
        if self.number == 1:
            self._open()
        for section in KEPT:
            self._evict(section)
        last_id = one_line(self.turn.id)[:LONGEST_ID]
        said = sentences(self.turn.content)
        words = sorted({word for sentence in said for word in content_words(sentence.text) if len(word) <= _WORD})
        return SummaryState(self.number, self.dropped, last_id, tuple(self.items), frozenset(words[:_SAID]))

    def _doubt(self, sentence: Sentence, cue: Cue | None) -> Doubt | None:
        """The doubt about a report; a decision, a plan or a question claims nothing that could be false."""
        if not self.turn.doubts or (cue is not None and cue.section in (DECISIONS, NEXT, OPEN)):
            return None
        return find_doubt(sentence.text, self.turn.doubts)

    def _open(self) -> None:
        """Keep the first sentences of the first turn as the goal: a task and its reason are one."""
        goals = [item for item in self.items if item.section == GOAL]
        if self.turn.role != "user" or not goals:
            return
        others = {item.text for item in self.items if item.section != GOAL}
        whole = ""
        for sentence in _harmless(sentences(self.turn.content)):
            longer = f"{whole} {sentence.text}".strip()
            known = any(
                sentence.text.endswith(other) for other in others
            )  # a label such as "Decided:" may stand before
            if known or fit_item(longer) != longer or (whole and not sentence.follows):
                break
            whole = longer
        if goals[0].text in whole:
            self._drop(lambda old: old.section == GOAL and old.text in whole)
            self.items.insert(0, replace(goals[0], text=whole))

    def _fall_back(self, first: str) -> None:
        """Keep the first sentence of a turn where no sentence has a cue, or where no goal was stated yet."""
        said = [item.text for item in self.items if item.turn == self.number]
        opens = self.turn.role == "user" and self.number < _FEW and self._main_goal() is None
        if first and not said:
            self._add(Cue(GOAL if opens else RECENT, 1, first), None)
        elif first and opens and not any(text.casefold() in fit_item(first).casefold() for text in said):
            self._add(Cue(GOAL, 1, first), None)

    def _take(self, sentence: Sentence, cue: Cue | None, role: str | None, before: str, doubt: Doubt | None) -> None:
        section = cue.section if cue else ""
        if section == ANSWER:
            self._drop_last_question()
            return
        if role == "user":
            self._refuse(sentence.text)
        if section not in (OPEN, GOAL):
            self._settle(sentence.text, section, role)
        if cue is None:
            return
        both = f"{before} {sentence.text}"
        if (
            before
            and self._leans(cue)
            and fit_item(both) == both
            and not (cue.section == GOAL and self._decides(before))
        ):
            self._drop(lambda old: old.turn == self.number and old.text in before)
            cue = cue._replace(text=both)
        if not content_words(cue.text) and (cue.strength < _PLAIN or len(all_words(cue.text)) < _TELLING):
            return
        self._add(cue, role, doubt.mark if doubt else "")

    def _decides(self, text: str) -> bool:
        """Whether a decision of this turn stands in a text; a goal that follows it does not swallow it."""
        return any(old.section == DECISIONS and old.turn == self.number and old.text in text for old in self.items)

    def _leans(self, cue: Cue) -> bool:
        """Whether a sentence needs the one before it: a wish after its reason, "I'm stuck there"."""
        if cue.section == GOAL and self._main_goal() is None:
            return True
        return cue.section in (BLOCKERS, DECISIONS) and len(content_words(cue.text)) < _TELLING

    def _refuse(self, text: str) -> None:
        """Drop what a person refuses, wherever it stands, and plans that they see trouble with."""
        words, gone = all_words(text), refused_words(text)
        plain, undone, trouble = refuses(text), takes_all_back(text), troubles(text)

        def refused(old: Item) -> bool:
            if old.turn == self.number or old.section not in (DECISIONS, DONE, NEXT, RECENT):
                return False
            if gone and gone <= old.words - abandoned_words(old.text):
                return True
            if old.turn < self.number - 1 or old.role == "user":
                return False
            if old.section in (NEXT, RECENT):
                return (plain and not gone) or (trouble and bool(old.words & words))
            return old.section == DONE and undone

        self._drop(refused)

    def _settle(self, text: str, section: str, role: str | None) -> None:
        """Drop the items that this sentence answers, finishes, resolves or reverses."""
        words, gone = all_words(text), abandoned_words(text)
        stated = section in (DECISIONS, DONE)
        freed = section not in (BLOCKERS, NEXT) and resolves(text)
        plain = section not in (BLOCKERS, NEXT) and not hedges(text)
        taken_back, main, counted = takes_back(text), self._main_goal(), counts(text)

        def settled(old: Item) -> bool:
            earlier = old.turn < self.number
            if old.section == OPEN:
                answered = self._answers(old, words, role) or (learns(text) and earlier and touches(old.words, words))
                return (stated and shares(old.words, words, 0.5)) or (plain and answered)
            if old.section == BLOCKERS:
                worked = section == DONE and earlier and shares(old.words, words, 0.4)
                return worked or (freed and self._frees(old, text, words))
            if old.section == UNVERIFIED:
                return section == DONE and earlier and shares(old.words, words, 0.4)
            if old.section == NEXT and section == DONE and earlier:
                return shares(old.words, words, 0.5)
            if old.section == GOAL and section == DONE and earlier:
                return old is not main and shares(old.words, words, 0.5)
            if old.section in (DECISIONS, NEXT) and stated and gone and earlier:
                # What an older decision already gave up is not what it decided.
                stands = old.words - abandoned_words(old.text)
                return shares(gone, stands, 0.5) if old.section == DECISIONS else gone <= stands
            if old.section != DONE or not earlier:
                return False
            undone = taken_back and gone and gone <= old.words - abandoned_words(old.text)
            return bool(undone) or (stated and _recounted(old.text, counted))

        self._drop(settled)

    def _answers(self, question: Item, words: frozenset[str], role: str | None) -> bool:
        """Whether a plain statement by the other side answers a question; the next turn mostly does."""
        if question.turn == self.number or (question.role == role and role is not None):
            return False
        if question.turn < self.number - 1:
            return shares(question.words, words, 0.6)
        return self._picks(question, words) or touches(question.words, words)

    def _picks(self, question: Item, words: frozenset[str]) -> bool:
        return bool(ALTERNATIVES.search(question.text) and question.words & words)

    def _chosen(self, said: list[Sentence], role: str | None) -> Sentence | None:
        """The sentence in which a person decides what was just laid before them, however short it is."""
        first = next((sentence for sentence in said if content_words(sentence.text)), None)
        if role != "user" or first is None or refuses(first.text):
            return None
        words = content_words(first.text)
        picked = any(self._just_asked(old, role) and self._picks(old, words) for old in self.items)
        return first if picked or (self.number > 1 and chooses(first.text, self.said_before)) else None

    def _frees(self, blocker: Item, text: str, words: frozenset[str]) -> bool:
        """Whether a sentence that reports a solution is about this blocker, or about what it waits for."""
        if touches(blocker.words, words) or touches(awaited_words(blocker.text), words):
            return True
        return "unblocked" in text.casefold() and self._only(blocker)

    def _just_asked(self, old: Item, role: str | None) -> bool:
        return old.section == OPEN and old.turn == self.number - 1 and old.role != role

    def _drop_questions_to(self, role: str | None) -> None:
        self._drop(lambda old: self._just_asked(old, role))

    def _only(self, old: Item) -> bool:
        return sum(item.section == old.section for item in self.items) == 1

    def _main_goal(self) -> Item | None:
        return next((item for item in self.items if item.section == GOAL), None)

    def _drop(self, gone: Callable[[Item], bool]) -> None:
        self.items = [item for item in self.items if not gone(item)]

    def _drop_last_question(self) -> None:
        for place in range(len(self.items) - 1, -1, -1):
            if self.items[place].section == OPEN:
                del self.items[place]
                return

    def _add(self, cue: Cue, role: str | None, doubt: str = "") -> None:
        item = Item(cue.section, fit_item(cue.text), cue.strength, self.number, role, doubt)
        if not item.text:
            return
        main = self._main_goal()
        if item.section == GOAL and main is not None and _same(main, item):
            return
        self._drop(lambda old: old.section == item.section and _same(old, item))
        if sum(old.section == item.section and old.turn == self.number for old in self.items) >= _PER_TURN:
            self.dropped += 1
            return
        if item.section != RECENT or not any(_same(old, item) for old in self.items):
            self.items.append(item)

    def _evict(self, section: str) -> None:
        main = self._main_goal()
        held = [item for item in self.items if item.section == section and item is not main]
        excess = len(held) + (section == GOAL and main is not None) - KEPT[section]
        if excess > 0:
            worst = {id(item) for item in sorted(held, key=lambda item: item.worth)[:excess]}
            self.items = [item for item in self.items if id(item) not in worst]
            # An entry without a cue makes no point; the count of entries covers it.
            self.dropped += 0 if section == RECENT else excess


def _leading_up(said: list[Sentence], place: int) -> str:
    """The one or two sentences right before this one."""
    first = place
    while first > max(0, place - 2) and said[first].follows:
        first -= 1
    return " ".join(sentence.text for sentence in said[first:place])


def _harmless(said: list[Sentence]) -> list[Sentence]:
    """The sentences without paragraphs that give instructions to the model."""
    harmful = {sentence.block for sentence in said if instructs(sentence.text)}
    return [sentence for sentence in said if sentence.block not in harmful]


def _voices(turn: SaidTurn) -> Iterator[tuple[str | None, str]]:
    """The speakers of a turn with their texts: a note may hold a whole conversation."""
    content = turn.content
    role = turn.role if turn.role in ("user", "assistant") else None
    parts = split_turns(content) if role is None and len(content) <= HEAD + TAIL else []
    if not any(part.by_assistant for part in parts):
        yield role, content
        return
    for part in parts:
        text = content[part.start : part.end]
        yield "assistant" if part.by_assistant else "user", _SPEAKER.sub("", text, count=1)


def _recounted(text: str, counted: dict[str, str]) -> bool:
    """Whether a text counts a thing of which there is another number now."""
    return any(counted.get(thing, number) != number for thing, number in counts(text).items())


def _same(one: Item, other: Item) -> bool:
    if one.text.casefold() == other.text.casefold():
        return True
    union = one.words | other.words
    return bool(union) and len(one.words & other.words) >= 0.75 * len(union)


def render(state: SummaryState, topic: str, *, max_tokens: int, count_tokens: Callable[[str], int]) -> Summary:
    """The summary as text of at most `max_tokens`; the plainest and newest items come first."""
    opening = _fitting_opening(one_line(topic), max_tokens, count_tokens)
    if opening is None:
        return _summary("", {}, state, count_tokens)
    shown: dict[int, Item] = {}
    if not state.turns:
        text = f"{opening} Nothing recorded yet.".lstrip()
        return _summary(text if count_tokens(text) <= max_tokens else opening, shown, state, count_tokens)
    text = _written(opening, shown, state)
    if count_tokens(text) > max_tokens:
        return _summary(opening, shown, state, count_tokens)
    for place in _candidates(state):
        for form in _forms(state.items[place]):
            grown = _written(opening, shown | {place: form}, state)
            if count_tokens(grown) <= max_tokens:
                text, shown = grown, shown | {place: form}
                break
    return _summary(text, shown, state, count_tokens)


def _summary(text: str, shown: dict[int, Item], state: SummaryState, count_tokens: Callable[[str], int]) -> Summary:
    sections = {section: _texts(shown, section) for section in SECTIONS}
    for section in (UNVERIFIED, RECENT):
        if texts := _texts(shown, section):
            sections[section] = texts
    return Summary(text, sections, _left_out(state, shown), count_tokens(text))


def _fitting_opening(topic: str, max_tokens: int, count_tokens: Callable[[str], int]) -> str | None:
    """The topic, cut until it fits; None where nothing does."""
    if not topic:
        return ""
    opening = topic if _VERB_FIRST.match(topic) else f"Working on {topic}"
    whole = opening if opening.endswith((".", "!", "?", "…", "。")) else f"{opening}."
    if count_tokens(whole) <= max_tokens:
        return whole
    length = len(topic)
    while length > 1:
        cut = shorten(topic, length)
        for form in (f"Working on {cut}" if opening is not topic else cut, cut):
            if count_tokens(form) <= max_tokens:
                return form
        length = length * 4 // 5
    return None


def _candidates(state: SummaryState) -> list[int]:
    """The indexes of the items to show: the best of each section in turn, so that no section is crowded out."""
    ranked: list[tuple[int, int, int]] = []
    few = sum(item.section != RECENT for item in state.items) < _FEW
    for order, section in enumerate(_BEST_FIRST):
        if section != RECENT or few:
            best = _ranked(state, [place for place, item in enumerate(state.items) if item.section == section])
            ranked += [(rank, order, place) for rank, place in enumerate(best[: _SHOWN[section]])]
    return [place for _, _, place in sorted(ranked)]


def _ranked(state: SummaryState, places: list[int]) -> list[int]:
    """The indexes of one section, best first: the main goal leads, and only the newest next steps count."""
    items = state.items
    if places and items[places[0]].section == NEXT:
        newest = items[places[-1]].turn
        return sorted((at for at in places if items[at].turn == newest), key=lambda at: (-items[at].strength, at))
    lead = places[:1] if places and items[places[0]].section == GOAL else []
    return lead + sorted(places[len(lead) :], key=lambda at: (-items[at].worth, -at))


def _forms(item: Item) -> Iterator[Item]:
    yield item
    if len(item.text) > _SHORT * 5 // 4:
        yield replace(item, text=shorten(item.text, _SHORT))


def _written(opening: str, shown: dict[int, Item], state: SummaryState) -> str:
    parts = [opening]
    for section in _ORDER:
        texts = _texts(shown, section)
        if texts and section == GOAL:
            parts += [_ended(text) for text in texts]
        elif texts:
            parts.append(f"{_LABELS[section]}: {_ended(_joined(texts))}")
    points, entries = _left_out(state, shown), state.turns - len({item.turn for item in shown.values()})
    left = [_counted(points, "earlier point" if shown else "point"), _counted(entries, "entry")]
    if mark := " and ".join(part for part in left if part):
        parts.append(f"(+{mark} not shown)")
    return " ".join(parts).lstrip()


def _texts(shown: dict[int, Item], section: str) -> list[str]:
    """The shown texts of a section in order, without the final punctuation, which the summary adds itself."""
    return [_with_doubt(shown[at]) for at in sorted(shown) if shown[at].section == section]


def _with_doubt(item: Item) -> str:
    text = item.text.rstrip(" .;,:。；，、")
    return f"{text} ({item.doubt})" if item.doubt else text


def _left_out(state: SummaryState, shown: dict[int, Item]) -> int:
    held = sum(item.section != RECENT for item in state.items)
    return state.dropped + held - sum(item.section != RECENT for item in shown.values())


def _counted(number: int, noun: str) -> str:
    if number < 1:
        return ""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def _joined(texts: list[str]) -> str:
    return "".join(f"{text} " if _ended(text) == text else f"{text}; " for text in texts[:-1]) + texts[-1]


def _ended(text: str) -> str:
    return text if text.endswith(("?", "!", "…", "？", "！")) else f"{text}."
