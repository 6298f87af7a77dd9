"""Merging the texts of memories: by a language model if one is configured, else by rules that lose no fact.

A fact is what a reader cannot infer from the other texts: a number, an identifier, an address, a quotation, a name, a
line of code, a clause with a negation. The rules keep the best worded text. Of a sentence that says the same in other
words they keep the clauses with a new fact, in brackets; any other sentence with a new fact stays word for word. The
text of a model is accepted only if it contains all facts and adds no number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ...errors import InvalidInput, LLMError
from ...lazy import regex
from ..comparison.conflicts import difference, likeness_features, replaced_word
from ..comparison.opposites import COMMON, FILLERS
from ..comparison.statements import Statement, read_statement
from ..comparison.synonyms import are_synonyms

if TYPE_CHECKING:
    from ...llm.client import LanguageModel
    from ...llm.values import Passage, Prompt, Schema

__all__ = [
    "LOCAL", "METHODS", "MergedText", "Method", "Piece", "Strategy", "TextMerger", "added_numbers", "check_faithful",
    "check_method", "choose_model", "digest", "facts", "lost_facts", "merge", "says_same", "task",
]  # fmt: skip

Strategy = Literal["merge", "summarize", "dedupe"]
# `auto` uses a language model if there is one, `local` only rules, `llm` a language model or nothing.
Method = Literal["auto", "local", "llm"]
METHODS: tuple[Method, ...] = ("auto", "local", "llm")
LOCAL = "local"

_LOST_SHOWN = 3
_NOT_TEXT = regex("[\ud800-\udfff]")

_FENCE = regex(r"^[ \t]*(`{3,}|~{3,})")
_BREAK = regex(r"(?<=[.!?。！？])[\"'”’)\]]*(?P<gap>\s+)(?=[^\sa-z])")
_QUOTED = regex(r"""`[^`\n]++`|"[^"\n]{1,200}+"|(?<!“)“[^”\n]{1,200}+”""")
_BULLET = regex(r"^\s*[-*+•]\s+")
_MARK = regex(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")
# Runs match only from their start or have a bounded length, so that a long run is read once.
_TOKEN = regex(
    r"""[a-z][a-z0-9+.-]{0,20}://[^\s<>"'`)\]]+"""  # addresses
    r"""|(?<![\w.@+-])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*"""  # paths
    r"""|`[^`\n]++`|"[^"\n]{1,200}+"|(?<!“)“[^”\n]{1,200}+”"""  # quotations
    r"""|--?[A-Za-z][\w-]*(?:=\S+)?"""  # flags
    r"""|\$?[\w$€£#@&%°]+(?:[.:,_'’/+-][\w%]+)*%?""",
    re.IGNORECASE,
)
_TELLING = regex(r"\d|_|://|/|^[`\"“]|^--?[A-Za-z]|[a-z][A-Z]|[A-Z]{2}|\w\.\w|\w::\w")
_NEGATION = regex(
    r"(?i)\b(?:not|no|never|none|neither|nor|nobody|nothing|nowhere|cannot|without|except|unless|avoid|forbidden)\b"
    r"|(?<=\w)n['’]t\b|\b(?:nicht|kein\w*|nie|ohne|pas|jamais|sans|ningún|nunca|sin)\b"
)
_NAME = regex(r"(?<![\w'’-])[^\W\d_a-z][\w'’-]+")
_CALL = regex(r"(?<![\w.])[\w.]+\([^()\n]{0,200}\)")
_CODE = regex(r"[{};]\s*$|[=!<>]=|=>|->|\w = |&&|\|\|")
_SPACES = regex(r"\s+")
_WORD = regex(r"\w+")
_CLAUSE = regex(
    r"[,;]\s+| (?=(?:since|because|in|on|at|for|with|by|from|to|until|till|after|before|via|using|when|while|if|and|but"
    r"|which|as|under|over|per|during|within|unless|so)\b)"
)
_LONGEST_CLAUSE, _MOST_OF = 100, 0.7  # characters of a clause, and its share of the sentence
_ALIKE = 0.34  # share of the words of two notes that were found to say the same
_OVERLAP = 0.6  # share of the words of two sentences that say the same
_COMPARED = 50  # lines that a line is compared with
_DENIED = "not: "
_STEM = 4
# The context block that enrichment appends. Every line must have a source, as a block of a person has not.


@dataclass(frozen=True, slots=True)
class Piece:
    """A text to be merged, and its date."""

    text: str
    created_at: datetime


def facts(text: str) -> frozenset[str]:
    """The facts of a text: its distinctive tokens as written, and its clauses with a negation."""
    return frozenset(_facts(text).values())


def lost_facts(originals: Iterable[str], merged: str) -> frozenset[str]:
    """Facts of the originals that a merged text does not contain."""
    flat, said = _flat(merged), f" {' '.join(_words(merged))} "
    present, stems = {*_facts(merged), *_tokens(merged)}, _stems(merged)
    lost: set[str] = set()
    denials = [read_statement(part) for part in _segments(merged) if _NEGATION.search(part)]
    for text in originals:
        for key, written in _facts(text).items():
            denied = key.removeprefix(_DENIED)
            there = f" {denied} " in said if denied != key else _stands_in(written, flat)
            there = there or (denied != key and any(_denies(one, read_statement(written)) for one in denials))
            if key not in present and not there and not _is_synonym(written, merged):
                lost.add(written)
        openers = (word for part in _segments(text) if (word := _opener(part)))
        lost.update(word for word in openers if word.casefold()[:_STEM] not in stems and not _is_synonym(word, merged))
    return frozenset(lost)


def added_numbers(originals: Iterable[str], merged: str) -> frozenset[str]:
    """Tokens with digits that a merged text has and none of the originals has; list marks do not count."""
    texts = list(originals)
    known, flat = {token for text in texts for token in _tokens(text)}, _flat("\n".join(texts))
    numbered = (token for part in _segments(merged) for token in _tokens(_MARK.sub("", part)))
    return frozenset(
        token
        for token in numbered
        if token not in known and any(map(str.isdigit, token)) and not _stands_in(token, flat)
    )


def merge(pieces: Sequence[Piece]) -> str:
    """The text with the most facts (the best worded, then the newest of equals), with what only others have."""
    if not pieces:
        return ""
    ordered = sorted(
        pieces, key=lambda one: (-len(_facts(one.text)), _wordiness(one.text), -one.created_at.timestamp(), one.text)
    )
    result = _Merged(ordered[0].text.strip("\n"))
    for piece in ordered[1:]:
        segments = list(_segments(piece.text))
        for segment in segments:
            result.add(segment, alone=len(segments) == 1)
    return result.text()


class _Merged:
    """A text that takes in what others have beyond it: a clause of a sentence that it has already, or a whole line."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._segments = list(_segments(base))
        prose = (one for one in self._segments[:_COMPARED] if not _FENCE.match(one))
        self._said = [(one, read_statement(one)) for one in prose]
        self._clauses: dict[str, list[str]] = {}
        self._more: list[str] = []
        self._known = set(_facts(base))
        self._stems = _stems(base)

    def add(self, segment: str, *, alone: bool) -> None:
        """Take in a sentence. `alone` means that it is a whole text, which says the same as the base as a whole."""
        own = _facts_of(segment)
        new = {key: fact for key, fact in own.items() if key not in self._known}
        opener = _opener(segment)
        if opener and opener.casefold()[:_STEM] not in self._stems:
            new.setdefault(opener, opener)
        if not new:
            return
        twin = self._twin(segment, alone)
        clauses = None if twin is None else _clauses_with(segment, new, twin)
        if twin is None or clauses is None:
            self._more.append(segment)
        else:
            self._clauses.setdefault(twin, []).extend(clauses)
        self._known.update(own)
        self._stems |= _stems(segment)

    def text(self) -> str:
        base = self._base
        for segment, clauses in self._clauses.items():
            if clauses:
                base = base.replace(segment, _with_clauses(segment, list(dict.fromkeys(clauses))), 1)
        return "\n".join([_close_fence(base), *self._more]) if self._more else base

    def _twin(self, segment: str, alone: bool) -> str | None:
        """The sentence of the base that says the same, if there is one."""
        if _FENCE.match(segment) or _CODE.search(segment):
            return None
        said = read_statement(segment)
        if _NEGATION.search(segment):  # what is denied must be denied of the same words
            return next((one for one, base in self._said if _denies(base, said)), None)
        if alone and len(self._segments) == 1:
            alike = (one for one, base in self._said if likeness_features(base, said, 1.0)[1] >= _ALIKE)
            return next(alike, None)
        return next((one for one, base in self._said if says_same(base, said)), None)


def says_same(a: Statement, b: Statement) -> bool:
    """Whether two sentences say the same by their words alone."""
    if a.plain == b.plain:
        return True
    if a.empty or b.empty or difference(a, b) is not None or replaced_word(a, b) is not None:
        return False
    return likeness_features(a, b, 1.0)[1] >= _OVERLAP


def _denies(a: Statement, b: Statement) -> bool:
    return set(a.words) == set(b.words) and says_same(a, b)


def _wordiness(text: str) -> tuple[int, bool]:
    """How badly a text is worded: its filler words, and whether it begins or ends carelessly."""
    lower = text.casefold()
    careless = not text.strip()[:1].isupper() or not text.rstrip().endswith((".", "!", "?", "。", "`", ")"))
    return sum(lower.count(filler) for filler in FILLERS), careless


def _clauses_with(segment: str, new: dict[str, str], twin: str) -> list[str] | None:
    """The clauses of a sentence that hold its new facts; None if they do not fit beside the other sentence."""
    body = _MARK.sub("", segment).strip().rstrip(".!")
    facts = [fact for key, fact in new.items() if not key.startswith(_DENIED) and not _is_synonym(fact, twin)]
    if len(facts) < len(new) and bool(_NEGATION.search(segment)) != bool(_NEGATION.search(twin)):
        return None
    parts = [part for part in _CLAUSE.split(body) if part.strip(" ,;:")]
    found: list[str] = []
    for fact in facts:
        part = next((part for part in parts if fact in part), None)
        if part is None or len(part) > min(_LONGEST_CLAUSE, _MOST_OF * len(body)) or "e.g" in part or "i.e" in part:
            return None
        found.append(part.strip(" ,;:"))
    flat = _flat("; ".join(found))
    return found if all(_stands_in(fact, flat) for fact in facts) else None


def _is_synonym(word: str, text: str) -> bool:
    """Whether a plain word is a form or a synonym of one of a text: "Fridays" is in "on a Friday"."""
    if not (word.isalpha() and word.istitle()):
        return False
    stems = read_statement(word).words
    return len(stems) == 1 and any(one == stems[0] or are_synonyms(stems[0], one) for one in read_statement(text).words)


def _with_clauses(segment: str, clauses: Sequence[str]) -> str:
    """A sentence with clauses in brackets before its final mark."""
    bare = segment.rstrip(" .!")
    return f"{bare} ({'; '.join(clauses)}){segment[len(bare) :].strip() or ''}"


def digest(pieces: Sequence[Piece], topics: Sequence[str] = ()) -> str:
    """A list of the statements of the texts, oldest first, each once and with its date."""
    about = f" on {', '.join(topics)}" if topics else ""
    lines = [f"Summary of {len(pieces)} notes{about}:"]
    known: set[str] = set()
    said: set[str] = set()
    stated: list[Statement] = []
    for piece in sorted(pieces, key=lambda one: (one.created_at, one.text)):
        day = piece.created_at.date().isoformat()
        for segment in _segments(piece.text):
            own, statement = _facts_of(segment), " ".join(_words(segment)) or _flat(segment)
            if known.issuperset(own) and (statement in said or _is_repeated(segment, stated)):
                continue
            if not _FENCE.match(segment):
                stated.append(read_statement(segment))
            lines.append(_entry(segment, day))
            known.update(own)
            said.add(statement)
    return "\n".join(lines)


def _is_repeated(segment: str, stated: Sequence[Statement]) -> bool:
    if _FENCE.match(segment):
        return False
    said = read_statement(segment)
    return any(says_same(one, said) for one in stated[-_COMPARED:])


def _entry(segment: str, day: str) -> str:
    if "\n" in segment:
        return f"- ({day})\n{segment}"
    return f"- ({day}) {_BULLET.sub('', segment).strip()}"


def _segments(text: str) -> Iterator[str]:
    """The sentences, list entries and code blocks of a text, as written."""
    block: list[str] = []
    fence = ""
    for line in text.splitlines():
        opened = _FENCE.match(line)
        if fence:
            block.append(line)
            if opened and opened[1].startswith(fence):
                yield "\n".join(block)
                block, fence = [], ""
        elif opened:
            block, fence = [line], opened[1]
        elif line.strip():
            yield from _sentences(line.rstrip())
    if block:
        # The block was never closed. It is closed here, so that what follows stays outside.
        yield "\n".join([*block, fence])


def _close_fence(text: str) -> str:
    """The text with its last code block closed, so that what follows stays outside."""
    fence = ""
    for line in text.splitlines():
        opened = _FENCE.match(line)
        if not fence:
            fence = opened[1] if opened else ""
        elif opened and opened[1].startswith(fence):
            fence = ""
    return f"{text}\n{fence}" if fence else text


def _sentences(line: str) -> Iterator[str]:
    """The sentences of a line. A list number stays with its entry, and quotations are not split."""
    mark = _MARK.match(line)
    quoted = _QUOTED.finditer(line)
    inside = next(quoted, None)
    start = 0
    for found in _BREAK.finditer(line):
        at = found.start("gap")
        while inside and inside.end() <= at:
            inside = next(quoted, None)
        if (mark and at < mark.end()) or (inside and inside.start() < at):
            continue
        yield line[start:at]
        start = found.end()
    yield line[start:]


def _facts(text: str) -> dict[str, str]:
    return {key: fact for segment in _segments(text) for key, fact in _facts_of(segment).items()}


def _facts_of(segment: str) -> dict[str, str]:
    """Facts as written, by the key that makes two the same."""
    if _FENCE.match(segment):
        lines = (_flat(line) for line in segment.splitlines()[1:-1])
        return {line: line for line in lines if line}
    body = _MARK.sub("", segment)
    found = [token for token in _tokens(body) if _TELLING.search(token)]
    # The first word is always capitalised, so a capital there does not show a name; see `_opener`.
    found += [name for name in _NAME.findall(body.partition(" ")[2]) if not name[0].islower()]
    found += [_flat(call) for call in _CALL.findall(body)]
    if _CODE.search(body):
        found.append(_flat(body))
    facts = {fact: fact for fact in found if fact}
    if _NEGATION.search(body):
        facts[_DENIED + " ".join(_words(body))] = _flat(body)
    return facts


def _tokens(text: str) -> Iterator[str]:
    return (token.rstrip(".,;:!?") for token in _TOKEN.findall(text))


def _opener(segment: str) -> str | None:
    """The first word if it may be a name: it counts as one if no other text has a word that begins alike."""
    found = _WORD.search(_MARK.sub("", segment)) if not _FENCE.match(segment) else None
    if not found or len(found[0]) < 3 or not found[0][0].isupper():
        return None
    return None if found[0].casefold() in COMMON or _NEGATION.match(found[0]) else found[0]


def _stems(text: str) -> set[str]:
    """The first letters of the words of a text."""
    words = set(_words(text))
    return {word[:_STEM] for word in words} | {word[: _STEM - 1] for word in words}


def _stands_in(fact: str, flat: str) -> bool:
    """Whether a fact occurs in a text on its own, not as part of a longer number, name or path."""
    inner = re.escape(_flat(fact).strip('`"“”'))
    return bool(re.search(rf"(?<!\w)(?<!\w[.,:/'’-]){inner}(?!\w)(?![.,:/'’-]\w)", flat))


def _words(segment: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(segment)]


def _flat(text: str) -> str:
    return _SPACES.sub(" ", text).strip().rstrip(".,;:!?")


@dataclass(frozen=True, slots=True)
class MergedText:
    """A merged text, its method (`local` or `llm:MODEL`), and a warning if the model was not used."""

    content: str
    method: str
    warning: str | None = None


class TextMerger:
    """Merges texts. `model` returns the language model, or None; it is called only when needed."""

    def __init__(self, model: Callable[[], LanguageModel | None] = lambda: None) -> None:
        self._model = model

    def choose(self, method: Method) -> LanguageModel | None:
        """The language model that the method uses; `LLMError` if it requires one and there is none."""
        return choose_model(self._model, method)

    def merge(self, pieces: Sequence[Piece], strategy: Strategy, method: Method = "auto") -> MergedText:
        """Merge several texts into one that contains all their facts."""
        model = None if strategy == "dedupe" else choose_model(self._model, method)
        if model is None:
            return MergedText(_by_rule(pieces, strategy), LOCAL)
        try:
            return _by_model(model, pieces, strategy)
        except LLMError as error:
            if method == "llm":
                raise
            return MergedText(_by_rule(pieces, strategy), LOCAL, f"The language model was not used: {error}")


def check_method(method: str) -> Method:
    """The method of this name; `InvalidInput` if there is none."""
    for known in METHODS:
        if method == known:
            return known
    raise InvalidInput(
        f"Unknown method {method[:40]!r}.", remedy=f"Choose one of {', '.join(METHODS)}.", field="method"
    )


def choose_model(configured: Callable[[], LanguageModel | None], method: Method) -> LanguageModel | None:
    """The language model to use, or None for rules; `LLMError` if the method requires one and there is none."""
    model = None if method == "local" else configured()
    if model is None and method == "llm":
        raise LLMError("No language model is configured.", remedy="Set llm_provider and llm_model.")
    return model


def _by_rule(pieces: Sequence[Piece], strategy: Strategy) -> str:
    if strategy != "summarize":
        return merge(pieces)
    return digest(pieces, _shared_topics(pieces))


def _shared_topics(pieces: Sequence[Piece], most: int = 3) -> list[str]:
    """The key phrases that at least half of the texts have."""
    # Imported on first use: its tables take a while to load.
    from ..labels.keyphrases import key_phrases

    counted: dict[str, int] = {}
    for piece in pieces:
        for found in key_phrases(piece.text):
            counted[found.phrase.casefold()] = counted.get(found.phrase.casefold(), 0) + 1
    shared = [phrase for phrase, count in counted.items() if 2 * count >= len(pieces)]
    return sorted(shared, key=lambda phrase: (-counted[phrase], phrase))[:most]


def _by_model(model: LanguageModel, pieces: Sequence[Piece], strategy: Strategy) -> MergedText:
    from ...llm.values import Budget, Passage

    ordered = sorted(pieces, key=lambda one: (one.created_at, one.text))
    data = [Passage(f"note of {one.created_at.date().isoformat()}", one.text) for one in ordered]
    prompt, schema = task(strategy, data)
    reply = model.complete(prompt, schema, Budget(input_tokens=16_000, output_tokens=2_000))
    content = str(reply.value["content"]).strip()
    check_faithful(reply.model, [piece.text for piece in pieces], content, allowed=[one.label for one in data])
    return MergedText(content, f"llm:{reply.model}")


def task(name: str, data: Sequence[Passage]) -> tuple[Prompt, Schema]:
    """What a language model is asked to do with some data, and the schema of its answer."""
    from ...llm.values import Prompt

    wanted = json.loads(Path(__file__).with_name("tasks.json").read_text("utf-8"))[name]
    return Prompt(wanted["instructions"], data), wanted["schema"]


def check_faithful(model: str, originals: Sequence[str], content: str, allowed: Sequence[str] = ()) -> None:
    """Refuse a model's text that is empty, lacks a fact of the originals or has a new number.

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
