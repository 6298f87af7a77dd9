"""Reads an answer into atomic, typed claims, and lists what in it cannot be checked. Pure.

A claim has all that belongs to it: the file in the heading above a bullet, the kind of change that "Changes:"
announces, the place that two claims share. A hedge does not drop a claim, it is measured. Questions, plans, opinions,
instructions and quotations cannot be checked and are listed with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..words import distinctive_words, load_pattern
from .clauses import Clause, split_clauses
from .mentions import Mention, mentions
from .passages import Passage, Span, read_passages
from .phrases import Reason, heading_type, hedging, is_absent, is_doubt, is_negated, is_removal, reason_for
from .verbs import CHANGES, ClaimType, Verb, begins_with_action, find_verb, has_finite_verb

__all__ = ["Claim", "Uncheckable", "read_claims"]


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement that can be checked.

    `start` to `end` is its place; `text` is the claim in full, with the words that it shares with others. The offsets
    of its mentions refer to the whole text, since some are in a heading. `hedge` is 0 for a plain claim.
    """

    text: str
    start: int
    end: int
    type: ClaimType
    mentions: tuple[Mention, ...]
    negated: bool
    hedge: float
    subject: str

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(mention.value for mention in self.mentions if mention.kind == "file"))


@dataclass(frozen=True, slots=True)
class Uncheckable:
    """A statement that cannot be checked, and why."""

    text: str
    start: int
    end: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class ParsedClaims:
    """What a text says, both parts in its order."""

    claims: tuple[Claim, ...]
    uncheckable: tuple[Uncheckable, ...]


def read_claims(text: str) -> ParsedClaims:
    """Read the claims of a text, and what in it cannot be checked."""
    # The target of a link is not part of the statement. Spaces replace it, so that offsets stay.
    return _Reader(_LINK.sub(lambda found: "]" + " " * (len(found[0]) - 1), text)).read()


_SUBORDINATE = re.compile(r"\b(?:ever since|as soon as|after|until|once|when|if|because|where)\s", re.I)
_WORD_END = re.compile(r"\w\s")
_LINK = re.compile(r"\]\([^()\s]{1,500}(?:\s\"[^\"\n]{0,200}\")?\)")
# What can be done was not done.
_MODAL = load_pattern("claims", "modal")
_A_COMMIT = re.compile(r"^commit\s+(?=`?[0-9a-f]{7,40}\b)", re.I)
_PRESENCE = ("exists", "behaviour", "reference")
_LETTER = re.compile(r"[^\W\d_]")
_SHORTEST = 3  # characters of a sentence that may claim something
_DEFINITION = load_pattern("claims", "definition", re.MULTILINE)
_COMMENT = re.compile(r"\s*(?:#|//|/\*|<!--|--)")
_COMMIT_PREFIX = re.compile(r"(feat|fix|refactor|perf|docs|chore|test|style)(?:\([^)]{1,40}\))?!?:\s", re.I)
_PREFIX_TYPES: dict[str, ClaimType] = {"feat": "implemented", "fix": "fixed"}
_VALUE = load_pattern("claims", "value")
_THERE = load_pattern("claims", "there")
_NEW = re.compile(r"(?:[^\s:]{1,80}:\s+)?new\b", re.I)
_HERE = re.compile(r"\W*here(?:['’]s|\s+(?:is|are))\b", re.I)
_LEAD = load_pattern("claims", "lead")
_REPORTS = load_pattern("claims", "reports")
_THERE_IS = load_pattern("claims", "there_is")
_ADJUNCT = re.compile(r"^\W*(?:in|inside|within|for|under)\s+[^,]{1,120},\s*", re.I)
_IN = re.compile(r"\s(?:in|into|to|from|within|inside|under|of|on)\s+(?:the\s+)?(?:file\s+|module\s+)?`?$", re.I)
_ANAPHORA = load_pattern("claims", "anaphora")
_FIRST_PERSON = re.compile(r"\b(?:I|we)(?:['’]ve)?(?:\s|$)", re.I)
_BE = load_pattern("claims", "be")
_TO_READER = re.compile(r"\b(?:you|your|please|yourself|let['’]s)\b", re.I)


class _Reader:
    """Reads the passages of one text in order, and remembers the file that was mentioned last."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.claims: list[Claim] = []
        self.uncheckable: list[Uncheckable] = []
        self.files_of: dict[Span, tuple[Mention, ...]] = {}
        self.asked: set[Span] = set()  # lead-ins that ask for something

    def read(self) -> ParsedClaims:
        for passage in read_passages(self.text):
            if passage.kind == "code":
                self._code(passage)
            elif passage.kind == "quotation":
                self._set_aside((passage.start, passage.end), "quotation")
            elif _LETTER.search(self.text, passage.start, passage.end):
                self._sentence(passage)
        return ParsedClaims(tuple(self.claims), tuple(self.uncheckable))

    def _sentence(self, passage: Passage) -> None:
        span = (passage.start, passage.end)
        if passage.end - passage.start < _SHORTEST:
            self._set_aside(span, "not understood")
            return
        found = mentions(self.text, *span)
        if passage.introduces and all(mention.kind in ("file", "line") for mention in found):
            self._set_aside(span, "heading")
            return
        if (reason := self._under(passage)) is not None:
            self._set_aside(span, reason)
            return
        inherited = self._inherited(passage)
        listed = passage.listed and (inherited is not None or passage.box is True)
        clauses, carried = self._clauses(span, found, listed), self._carried(passage)
        doubt = " ".join(words.rstrip(".!") for clause in clauses if is_doubt(words := self._shown(clause)))
        for clause in clauses:
            doubt = self._clause(clause, found, carried, inherited, listed, doubt)

    def _clauses(self, span: Span, found: Sequence[Mention], listed: bool) -> list[Clause]:
        """Split a sentence without its "I think that", which then goes back to the first clause."""
        lead = _LEAD.match(self.text, *span)
        begin = lead.end() if lead and lead.end() < span[1] else span[0]
        clauses = split_clauses(self.text, (begin, span[1]), found, listed)
        if begin == span[0]:
            return clauses
        return [
            replace(clause, pieces=tuple((span[0] if a == begin else a, b) for a, b in clause.pieces))
            for clause in clauses
        ]

    def _under(self, passage: Passage) -> Reason | None:
        """Why nothing in a list can be checked: it lists plans, or steps for the reader."""
        if passage.box is False:
            return "plan"
        if passage.box is None and passage.listed and passage.context:
            kinds = [heading_type(self.text[start:end]) for start, end in self._above(passage)]
            nearest = next((kind for kind in reversed(kinds) if kind is not None), None)
            verb = find_verb(self.text, passage.start, passage.end)
            if verb is not None and verb.form == "past":
                return None  # a past tense is a claim under any heading
            return "plan" if nearest == "plan" else "instruction" if nearest == "instruction" else None
        return None

    def _above(self, passage: Passage) -> list[Span]:
        """The headings above the passage, without its own line."""
        return [span for span in passage.context if not span[0] <= passage.start < span[1]][-8:]

    def _inherited(self, passage: Passage) -> tuple[ClaimType | None] | None:
        """The kind of change that a heading announces (None for any kind)."""
        for span in reversed(self._above(passage)) if passage.listed else ():
            kind = heading_type(self.text[span[0] : span[1]])
            if kind is not None and kind != "plan" and kind != "instruction":
                return (None if kind == "report" else kind,)
        return ("implemented",) if passage.box else None

    def _carried(self, passage: Passage) -> tuple[Mention, ...]:
        """The files of the nearest heading that names one."""
        for span in reversed(self._above(passage)):
            if span not in self.files_of:
                near = mentions(self.text, span[0], min(span[1], span[0] + 1_000))
                self.files_of[span] = tuple(mention for mention in near if mention.kind in ("file", "line"))
            if any(mention.kind == "file" for mention in self.files_of[span]):
                return self.files_of[span]
        return ()

    def _clause(
        self,
        clause: Clause,
        found: Sequence[Mention],
        carried: tuple[Mention, ...],
        inherited: tuple[ClaimType | None] | None,
        listed: bool,
        doubt: str,
    ) -> str:
        """Read one clause; returns the words before its verb, because a doubt there applies to the next clause too."""
        words, start, end = self._shown(clause), clause.pieces[0][0], clause.pieces[-1][1]
        if not _LETTER.search(words):
            return doubt
        lead = _LEAD.match(words)
        core = _A_COMMIT.sub("the commit ", words[lead.end() :] if lead else words)
        verb = find_verb(core, 0, len(core), listed)
        reason = "opinion" if is_doubt(words) else reason_for(core, listed, inherited is not None, verb)
        if reason == "instruction" and self._is_subject(core, found):
            reason, verb = None, find_verb(core, 0, len(core), listed=True)
        if reason is not None:
            self._set_aside((start, end), reason)
            return doubt
        own = [m for m in found if any(a <= m.start and m.end <= b for a, b in clause.pieces)]
        kind = _type(core, own, verb, inherited[0] if inherited else None)
        if kind is None:
            self._set_aside((start, end), "not understood")
            return doubt
        if not own and not distinctive_words(core):
            self._set_aside((start, end), "not understood")  # "but it doesn't now": its subject is in another clause
            return doubt
        named = sum(mention.kind in ("file", "symbol") for mention in own)
        in_table = " | " in words  # a cell does not deny another
        absent = kind in _PRESENCE and named > 0 and not in_table and is_absent(words, named)
        if not any(mention.kind == "file" for mention in own):
            own = [*(carried or self._spoken_of(words)), *own]
        denied = absent or (not in_table and is_negated(words))
        self.claims.append(
            Claim(
                words, min(a for a, _ in clause.pieces), max(b for _, b in clause.pieces), "exists" if absent else kind,
                tuple(own), denied, hedging(f"{doubt} {words}"), _subject(core, verb, own),
            )
        )  # fmt: skip
        return f"{doubt} {lead[0] if lead else ''} {core[: verb.start]}" if verb else doubt

    def _is_subject(self, core: str, found: Sequence[Mention]) -> bool:
        """Whether the text is one line like the subject of a commit: "Add `close` to `Session`" reports, alone."""
        verb = find_verb(core, 0, len(core), listed=True)
        named = any(mention.kind in ("symbol", "version", "number") for mention in found)
        is_alone = "\n" not in self.text.strip() and self.text.strip().startswith(core[:_SHORTEST])
        is_change = verb is not None and verb.start == 0 and verb.form == "base" and verb.type in CHANGES
        return named and is_alone and is_change and not _TO_READER.search(self.text)

    def _shown(self, clause: Clause) -> str:
        words = " ".join(self.text[start:end] for start, end in clause.pieces)
        return " ".join(words.replace("**", "").split()).strip(" ,;|")

    def _spoken_of(self, words: str) -> tuple[Mention, ...]:
        """The file of the claim before, for "it" and "the same file"."""
        if self.claims and _ANAPHORA.search(words):
            return tuple(mention for mention in self.claims[-1].mentions if mention.kind == "file")[:1]
        return ()

    def _set_aside(self, span: Span, reason: Reason) -> None:
        self.uncheckable.append(Uncheckable(" ".join(self.text[span[0] : span[1]].split()), *span, reason))
        if reason in ("plan", "instruction", "question"):
            self.asked.add(span)

    def _code(self, block: Passage) -> None:
        """A code block under the name of a file claims that the file defines what the block defines."""
        if not block.context or any(span in self.asked for span in block.context):
            return
        line_end = self.text.find("\n", block.start, block.end)
        first = (block.start, line_end if line_end >= 0 else block.end)
        spans = [*block.context, *([first] if _COMMENT.match(self.text, *first) else [])]
        files = self._carried(Passage("code", block.end, block.end, tuple(spans)))
        for match in _DEFINITION.finditer(self.text, block.start, block.end) if files else ():
            group = 1 if match[1] else 2
            symbol = Mention("symbol", match[group], match.start(group), match.end(group), match[group])
            start = match.start() + len(match[0]) - len(match[0].lstrip("+ \t"))
            shown = " ".join(self.text[start : match.end()].split())
            self.claims.append(Claim(shown, start, match.end(), "exists", (*files, symbol), False, 0.0, match[group]))


def _type(words: str, found: Sequence[Mention], verb: Verb | None, inherited: ClaimType | None) -> ClaimType | None:
    kinds = {mention.kind for mention in found}
    if prefix := _COMMIT_PREFIX.match(words):
        return _PREFIX_TYPES.get(prefix[1].lower(), "modified")
    if "tests" in kinds:
        return "test_result"
    if is_removal(words) or _changes_aside(words, verb):
        return "removed" if not _changes_aside(words, verb) else "behaviour"
    if "dependency" in kinds:
        return "dependency"
    stated = verb is not None or has_finite_verb(words)
    if "version" in kinds and (stated or begins_with_action(words, 0, len(words))):
        return "version"
    if "number" in kinds and _VALUE.search(words) and (stated or "=" in words):
        return "value"
    # A later "exists" belongs to a subordinate clause: "returns 404 when the user does not exist".
    if (there := _THERE.search(words)) and (verb is None or there.start() <= verb.start):
        return "exists"
    if verb is not None:
        done = verb.type not in CHANGES or not _MODAL.search(words[: verb.start])
        return verb.type if done else "behaviour"
    if inherited is not None:
        return inherited
    if _NEW.match(words):
        return "implemented"
    if has_finite_verb(words) and not _HERE.match(words):
        return "behaviour"
    return "reference" if kinds - {"number", "quote"} else None


def _changes_aside(words: str, verb: Verb | None) -> bool:
    """Whether the change is in a subordinate clause: "`f` has used it ever since the flag was removed"."""
    if verb is None or verb.type not in CHANGES:
        return False
    before = words[: verb.start]
    opened = _SUBORDINATE.search(before, max(before.rfind(","), before.rfind(";")) + 1)
    return opened is not None and _WORD_END.search(before, 0, opened.start()) is not None


def _subject(words: str, verb: Verb | None, found: Sequence[Mention]) -> str:
    """What the claim is about, without its file."""
    subject = _about(words, verb)
    for mention in found:
        if mention.kind == "file" and (at := subject.find(mention.text)) > 0 and (place := _IN.search(subject, 0, at)):
            subject = subject[: place.start()]
    return subject.strip(" .,:")


def _about(words: str, verb: Verb | None) -> str:
    """The object of a change, or the subject of a statement."""
    if there := _THERE_IS.match(words):
        return words[there.end() :].strip(" .,:")
    if verb is None:
        place = _BE.search(words)
        return words[: place.start()].strip(" ,:") if place else words.strip(" .,:")
    before = _ADJUNCT.sub("", _REPORTS.sub("", words[: verb.start])).strip(" ,:")
    bare = _BE.split(before, maxsplit=1)[0].strip(" ,:–—-|")
    if "." in bare and " " not in bare and before.strip(" ,:–—-|") == bare:
        bare = ""  # "auth.py – added login" is about the login
    if verb.type in CHANGES and (not bare or _FIRST_PERSON.search(before) or verb.form == "s"):
        return words[verb.end :].strip(" .,:")
    return bare or words[verb.end :].strip(" .,:")
