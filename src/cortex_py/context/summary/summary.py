"""The summary of a line of work: taken from its turns sentence by sentence, nothing put in other words.

`advance` reads further turns into a small state that can be stored: what is wanted, decided, done, blocked, open and
next. A later turn takes out what it answers, finishes, resolves or reverses. `render` writes the state as text within
a budget of tokens. Both are pure: the same turns give the same summary, however they are divided among calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ..memory.dialogue import turns as dialogue_turns
from .sentences import HEAD, TAIL, Sentence, one_line, sentences, shorten
from .summary_cues import ALTERNATIVES, ANSWER, BLOCKERS, DECISIONS, DONE, GOAL, NEXT, OPEN, RECENT, SECTIONS
from .summary_reading import (
    Cue,
    agrees,
    all_words,
    awaited,
    content_words,
    hedges,
    instructs,
    read,
    replies,
    resolves,
    shares,
    takes_back,
    touches,
    undone,
)
from .summary_state import EMPTY, KEPT, LONGEST_ID, Item, SummaryState, Turn, affordable

__all__ = ["EMPTY", "Item", "Summary", "SummaryState", "Turn", "advance", "render"]

_SHOWN = {GOAL: 3, DECISIONS: 8, DONE: 8, BLOCKERS: 4, OPEN: 5, NEXT: 4, RECENT: 3}
_PER_TURN = 8  # of one section: one long list must not push out everything else
_FEW = 3  # with fewer items than this, sentences without any cue are shown too
_SHORT = 100
_PLAIN = 2  # strength of a cue that needs no content words beside it
_TELLING = 2  # content words without which a sentence needs the one before it

_ORDER = (GOAL, DECISIONS, DONE, RECENT, BLOCKERS, OPEN, NEXT)
_BEST_FIRST = (GOAL, NEXT, BLOCKERS, DECISIONS, DONE, OPEN, RECENT)
_LABELS = {DECISIONS: "Decided", DONE: "Done", RECENT: "Recent", BLOCKERS: "Blocked", OPEN: "Open", NEXT: "Next"}
_VERB_FIRST = re.compile(
    r"(?:working|work) on\b|(?:add|build|create|debug|design|develop|fix|implement|improve|investigate|integrate|make|"
    r"migrate|move|optimi[sz]e|port|refactor|remove|replace|rewrite|set up|support|test|update|upgrade|write)(?:ing)? ",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"^\s*[*_>]{0,3}[^\W\d][\w .'’-]{0,30}?[*_]{0,3}:[*_]{0,3}\s+")


@dataclass(frozen=True, slots=True)
class Summary:
    """A rendered summary; `left_out` counts the items found in the turns, still standing, and not shown."""

    text: str
    sections: dict[str, list[str]]
    left_out: int
    tokens: int


def advance(state: SummaryState, turns: Iterable[Turn]) -> SummaryState:
    """The state after further turns, oldest first."""
    for turn in turns:
        state = _Reader(state, turn).after()
    return state


class _Reader:
    """Reads one turn into the items of the turns before it."""

    def __init__(self, state: SummaryState, turn: Turn) -> None:
        self.turn = turn
        self.number = state.turns + 1
        self.dropped = state.dropped
        self.items = list(state.items)

    def after(self) -> SummaryState:
        first = ""
        for role, content in _voices(self.turn):
            said = _harmless(sentences(content))
            chosen = said[:1] if said and self._chooses(said[0], role) else []
            if agrees(content) or replies(said, role):
                self._drop_questions_to(role)
            for place, sentence in enumerate(said):
                if not first and len(content_words(sentence.text)) > 1:
                    first = sentence.text
                cue = read(sentence, role)
                if sentence in chosen and (cue is None or cue.section == GOAL):
                    cue = Cue(DECISIONS, _PLAIN, sentence.text)
                self._take(sentence, cue, role, _leading_up(said, place))
        self._fall_back(first)
        for section in KEPT:
            self._evict(section)
        return SummaryState(self.number, self.dropped, one_line(self.turn.id)[:LONGEST_ID], tuple(self.items))

    def _fall_back(self, first: str) -> None:
        """What a turn says first counts for something where nothing in it has a cue, or where nobody said the goal."""
        said = [item.text for item in self.items if item.turn == self.number]
        opens = self.turn.role == "user" and self.number < _FEW and self._main_goal() is None
        if first and not said:
            self._add(Cue(GOAL if opens else RECENT, 1, first), None)
        elif first and opens and affordable(first) not in said:
            self._add(Cue(GOAL, 1, first), None)

    def _take(self, sentence: Sentence, cue: Cue | None, role: str | None, before: str) -> None:
        section = cue.section if cue else ""
        if section == ANSWER:
            self._drop_last_question()
            return
        if section not in (OPEN, GOAL):
            self._settle(sentence.text, section, role)
        if cue is None:
            return
        both = f"{before} {sentence.text}"
        if before and self._leans(cue) and affordable(both) == both:
            self._drop(lambda old: old.turn == self.number and old.text in before)
            cue = cue._replace(text=both)
        if not content_words(cue.text) and (cue.strength < _PLAIN or len(all_words(cue.text)) < _TELLING):
            return
        if section != OPEN or cue.text.endswith(("?", "？")) or not self._asked_by_other(role):
            self._add(cue, role)

    def _leans(self, cue: Cue) -> bool:
        """Whether a sentence says too little without the one before it: a wish after its reason, "I'm stuck there"."""
        if cue.section == GOAL and self._main_goal() is None:
            return True
        return cue.section in (BLOCKERS, DECISIONS) and len(content_words(cue.text)) < _TELLING

    def _settle(self, text: str, section: str, role: str | None) -> None:
        """Takes out what this sentence answers, finishes, resolves or reverses."""
        words, gone = all_words(text), undone(text)
        told = section in (DECISIONS, DONE)
        freed = section not in (BLOCKERS, NEXT) and resolves(text)
        plain = section not in (BLOCKERS, NEXT) and not hedges(text)
        taken_back, main = takes_back(text), self._main_goal()

        def settled(old: Item) -> bool:
            earlier = old.turn < self.number
            if old.section == OPEN:
                return (told and shares(old.words, words, 0.5)) or (plain and self._answers(old, words, role))
            if old.section == BLOCKERS:
                return freed and self._frees(old, text, words)
            if old.section == NEXT and section == DONE and earlier:
                return shares(old.words, words, 0.5)
            if old.section == GOAL and section == DONE and earlier:
                return old is not main and shares(old.words, words, 0.5)
            if old.section in (DECISIONS, NEXT) and told and gone and earlier:
                # What an older decision already gave up is not what it decided.
                stands = old.words - undone(old.text)
                return shares(gone, stands, 0.5) if old.section == DECISIONS else gone <= stands
            return old.section == DONE and taken_back and earlier and shares(old.words, gone, 0.5)

        self._drop(settled)

    def _answers(self, question: Item, words: frozenset[str], role: str | None) -> bool:
        """Whether a plain statement by the other side answers; the turn right after the question mostly does."""
        if question.turn == self.number or (question.role == role and role is not None):
            return False
        if question.turn < self.number - 1:
            return shares(question.words, words, 0.6)
        return self._picks(question, words) or shares(question.words, words, 0.4)

    def _picks(self, question: Item, words: frozenset[str]) -> bool:
        return bool(ALTERNATIVES.search(question.text) and question.words & words)

    def _chooses(self, sentence: Sentence, role: str | None) -> bool:
        """Whether a person names one of the alternatives just asked about: that decides, however short it is."""
        words = content_words(sentence.text)
        return role == "user" and any(self._just_asked(old, role) and self._picks(old, words) for old in self.items)

    def _frees(self, blocker: Item, text: str, words: frozenset[str]) -> bool:
        """Whether a sentence that says something works again speaks of this blocker, or of what it waits for."""
        if touches(blocker.words, words) or touches(awaited(blocker.text), words):
            return True
        return "unblocked" in text.casefold() and self._only(blocker)

    def _just_asked(self, old: Item, role: str | None) -> bool:
        return old.section == OPEN and old.turn == self.number - 1 and old.role != role

    def _asked_by_other(self, role: str | None) -> bool:
        """Whether the turn before asks something: "not clear yet" is then no question of its own."""
        return any(self._just_asked(item, role) for item in self.items)

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

    def _add(self, cue: Cue, role: str | None) -> None:
        item = Item(cue.section, affordable(cue.text), cue.strength, self.number, role)
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
            # An entry without a cue makes no point; that it is not shown is told by the count of entries.
            self.dropped += 0 if section == RECENT else excess


def _leading_up(said: list[Sentence], place: int) -> str:
    """The one or two sentences right before this one, as they stand in the text."""
    first = place
    while first > max(0, place - 2) and said[first].follows:
        first -= 1
    return " ".join(sentence.text for sentence in said[first:place])


def _harmless(said: list[Sentence]) -> list[Sentence]:
    """The sentences without those that command the model, and without what stands in one paragraph with them."""
    harmful = {sentence.block for sentence in said if instructs(sentence.text)}
    return [sentence for sentence in said if sentence.block not in harmful]


def _voices(turn: Turn) -> Iterator[tuple[str | None, str]]:
    """The sides that speak in a turn: a note may hold a whole conversation."""
    content = turn.content
    role = turn.role if turn.role in ("user", "assistant") else None
    parts = dialogue_turns(content) if role is None and len(content) <= HEAD + TAIL else []
    if not any(part.by_assistant for part in parts):
        yield role, content
        return
    for part in parts:
        text = content[part.start : part.end]
        yield "assistant" if part.by_assistant else "user", _SPEAKER.sub("", text, count=1)


def _same(one: Item, other: Item) -> bool:
    if one.text.casefold() == other.text.casefold():
        return True
    union = one.words | other.words
    return bool(union) and len(one.words & other.words) >= 0.75 * len(union)


def render(state: SummaryState, topic: str, *, max_tokens: int, count_tokens: Callable[[str], int]) -> Summary:
    """The summary as text of at most `max_tokens`; what is plainest and newest is taken first."""
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
    sections = {section: _told(shown, section) for section in SECTIONS}
    if recent := _told(shown, RECENT):
        sections[RECENT] = recent
    return Summary(text, sections, _left_out(state, shown), count_tokens(text))


def _fitting_opening(topic: str, max_tokens: int, count_tokens: Callable[[str], int]) -> str | None:
    """Says the topic, cut until it fits; None where nothing does."""
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
    """The places of the items worth showing: the best of each section in turn, so that none is crowded out."""
    ranked: list[tuple[int, int, int]] = []
    few = sum(item.section != RECENT for item in state.items) < _FEW
    for order, section in enumerate(_BEST_FIRST):
        if section != RECENT or few:
            best = _ranked(state, [place for place, item in enumerate(state.items) if item.section == section])
            ranked += [(rank, order, place) for rank, place in enumerate(best[: _SHOWN[section]])]
    return [place for _, _, place in sorted(ranked)]


def _ranked(state: SummaryState, places: list[int]) -> list[int]:
    """One section's places, best first: the main goal leads, and only the newest next steps count."""
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
        told = _told(shown, section)
        if told and section == GOAL:
            parts += [_ended(text) for text in told]
        elif told:
            parts.append(f"{_LABELS[section]}: {_ended(_joined(told))}")
    points, entries = _left_out(state, shown), state.turns - len({item.turn for item in shown.values()})
    left = [_counted(points, "earlier point" if shown else "point"), _counted(entries, "entry")]
    if mark := " and ".join(part for part in left if part):
        parts.append(f"(+{mark} not shown)")
    return " ".join(parts).lstrip()


def _told(shown: dict[int, Item], section: str) -> list[str]:
    """What is shown of a section, in the order it was said, without the stops that the summary sets itself."""
    return [shown[at].text.rstrip(" .;,:。；，、") for at in sorted(shown) if shown[at].section == section]


def _left_out(state: SummaryState, shown: dict[int, Item]) -> int:
    held = sum(item.section != RECENT for item in state.items)
    return state.dropped + held - sum(item.section != RECENT for item in shown.values())


def _counted(number: int, noun: str) -> str:
    if number < 1:
        return ""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def _joined(told: list[str]) -> str:
    return "".join(f"{text} " if _ended(text) == text else f"{text}; " for text in told[:-1]) + told[-1]


def _ended(text: str) -> str:
    return text if text.endswith(("?", "!", "…", "？", "！")) else f"{text}."
