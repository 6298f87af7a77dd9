"""What the answers to suggestions teach: how a reason for a refusal is understood, and whose trust an answer changes.

A reason is a short phrase, so rules on English stems are enough; one that is not understood is `unclear`, which still
counts against the source. Several kinds may apply. What a reason denies ("not outdated but irrelevant") does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from ...core.records import Memory
from ...core.store.tables.suggestions import SuggestedRow, TrustRow
from .candidates import describe
from .ranking import BINS, Counts, Cues, TrustKind, bin_of, trust_keys
from .usage_log import fade

__all__ = ["ACCEPTANCE", "KINDS", "RejectionKind", "apply_answer", "classify", "read_trust", "trust_changes"]

# -- why a suggestion was refused ----------------------------------------------------------------

RejectionKind = Literal["wrong phase", "wrong area", "outdated", "duplicate", "already known", "irrelevant", "unclear"]
KINDS: tuple[RejectionKind, ...] = get_args(RejectionKind)

_DATA = json.loads(Path(__file__).with_name("feedback.json").read_text("utf-8"))

# Whose trust a refusal lowers, and how much of one answer it is worth. A fault of the place is no fault of the record,
# and the other way round. What many records share (an age, a branch) is lowered less than what is one record's own,
# except where the reason names it.
EFFECTS: Mapping[RejectionKind, Mapping[TrustKind, float]] = _DATA["effects"]
# Whose trust an acceptance raises, and by how much.
ACCEPTANCE: Mapping[TrustKind, float] = _DATA["acceptance"]

_LONGEST = 2_000
_PLACE = f"(?:{'|'.join(_DATA['places'])})"
_PHASE = f"(?:{'|'.join(_DATA['phases'])})"
_ASIDE = r"(?:[\w'/-]+ ){0,2}?"
_WORKING = re.compile(
    r"\b(?:i|we) (?:am|are|was|were) (?:only |now |just )?(?:in|on|working|fixing|changing|editing)\b"
)
_SOMEWHERE = re.compile(rf"\b{_PLACE}\b|\w/\w")


def _rule(words: Sequence[str]) -> re.Pattern[str]:
    text = "|".join(words).replace("%place%", _PLACE).replace("%phase%", _PHASE).replace("%aside%", _ASIDE)
    return re.compile(rf"(?<![\w-])(?:{text})(?![\w-])")


# In the order of KINDS. Text that one rule matched is hidden from later ones: "a different project phase" names no
# project.
_RULES = [(kind, _rule(_DATA["rules"][kind])) for kind in KINDS if kind in _DATA["rules"]]
# Plain dismissals say no more than `irrelevant`, and that only where nothing better was said.
_DISMISSED = _rule(_DATA["dismissals"])
_BREAK = re.compile(
    r"[.,;:!?()\n—–]|(?<!\w)(?:but|because|however|although|though|since|just|simply|merely|instead|so|and)(?!\w)"
)
# A "no" before a pronoun is an answer: "no this is outdated".
_DENIES = re.compile(
    r"(?<!\w)(?:not|no(?! (?:it|this|that|these|they))|nor|neither|never|without|hardly)(?: [\w'-]+){0,5} *$"
)
_NOT_ONLY = re.compile(r"\bnot (?:only|just|merely|simply)\b")
_CONTRACTED = (
    (re.compile(r"n't\b"), " not"), (re.compile(r"'m\b"), " am"), (re.compile(r"'re\b"), " are"),
    (re.compile(r"'ve\b"), " have"), (re.compile(r"\b(it|that|this)'s\b"), r"\1 is"),
)  # fmt: skip
_SPACES = re.compile(r"[ \t\r\f\v]+")
# Words that are spelled like English ones ("irrelevant", "relevant") mean nothing certain in another language.
_FOREIGN = re.compile(rf"\b(?:{'|'.join(_DATA['foreign'])})\b")
_ENGLISH = re.compile(rf"\b(?:{'|'.join(_DATA['english'])})\b")


def classify(reason: str) -> tuple[RejectionKind, ...]:
    """The kinds of refusal that a reason states, in the order of `KINDS`; `unclear` where none is understood."""
    text = _plain(reason)
    if len(_FOREIGN.findall(text)) > len(_ENGLISH.findall(text)):
        return ("unclear",)
    rest, found = text, set[RejectionKind]()
    for kind, pattern in _RULES:
        if any(not _denied(match) for match in pattern.finditer(rest)):
            found.add(kind)
        rest = pattern.sub("·", rest)
    if not found and _WORKING.search(text) and _SOMEWHERE.search(text):
        found.add("wrong area")  # "that's the frontend, I'm working on the backend"
    if not found and any(not _denied(match) for match in _DISMISSED.finditer(rest)):
        found.add("irrelevant")
    return tuple(kind for kind in KINDS if kind in found) or ("unclear",)


def _plain(reason: str) -> str:
    text = reason[:_LONGEST].lower().replace("’", "'")
    for pattern, whole in _CONTRACTED:
        text = pattern.sub(whole, text)
    return _SPACES.sub(" ", _NOT_ONLY.sub("also", text)).strip()


def _denied(match: re.Match[str]) -> bool:
    """Whether a "not" stands shortly before the match in its clause."""
    before = match.string[: match.start()]
    clause = _BREAK.split(before)[-1]
    return _DENIES.search(clause) is not None


# -- what an answer changes ----------------------------------------------------------------------

Rows = dict[tuple[str, str], TrustRow]
# A suggestion that was passed over beside an accepted one was seen and found less useful.
_PASSED_OVER = 0.3
# One half of what an answer teaches applies to all tasks, the other to those of its kind.
_HALF = 0.5
_KINDS: tuple[str, ...] = get_args(TrustKind)


def trust_changes(
    keys: Mapping[TrustKind, str], kinds: Iterable[RejectionKind] | None
) -> dict[tuple[TrustKind, str], Counts]:
    """What one answer adds to the trust in each key of a suggestion; `kinds` is None for an acceptance.

    Several kinds are still one answer: each trust is lowered by the strongest of them.
    """
    accepted = kinds is None
    parts = [ACCEPTANCE] if kinds is None else [EFFECTS[kind] for kind in kinds]
    weights: dict[TrustKind, float] = {}
    for trust, weight in (pair for part in parts for pair in part.items()):
        weights[trust] = max(weights.get(trust, 0.0), weight)
    return {
        (trust, keys[trust]): Counts(weight, 0.0) if accepted else Counts(0.0, weight)
        for trust, weight in weights.items()
        if keys.get(trust)
    }


@dataclass(frozen=True, slots=True)
class TrustState:
    """The trust by key, and the accepted and refused suggestions by raw score: of all sources, and by source."""

    trust: dict[tuple[TrustKind, str], Counts]
    bins: list[tuple[float, float]]
    own: dict[str, list[tuple[float, float]]]


def read_trust(rows: Mapping[tuple[str, str], TrustRow], kind: str, now: int) -> TrustState:
    """The trust that answers have built, for a task of a kind."""
    trust: dict[tuple[TrustKind, str], Counts] = {}
    bins = [(0.0, 0.0)] * BINS
    own: dict[str, list[tuple[float, float]]] = {}
    for (name, key), row in rows.items():
        left = _left(row, now)
        plain, _, about = key.partition("@")
        if name == "bin":
            of = own.setdefault(about, [(0.0, 0.0)] * BINS) if about else bins
            of[int(plain)] = (left.accepted, left.refused)
        elif name in _KINDS and about in ("", kind):
            place: tuple[TrustKind, str] = (name, plain)  # type: ignore[assignment]  # one of the kinds, as asked above
            before = trust.get(place, Counts())
            trust[place] = Counts(before.accepted + left.accepted, before.refused + left.refused)
    return TrustState(trust, bins, own)


def apply_answer(
    rows: Mapping[tuple[str, str], TrustRow],
    shown: Sequence[SuggestedRow],
    memories: Mapping[str, Memory],
    taken: Sequence[str],
    reason: str | None,
    kind: str,
    now: int,
) -> Rows:
    """The rows that an answer changes; a reason means that nothing was accepted."""
    changed = dict(rows)
    kinds = None if reason is None else classify(reason)
    for one in shown:
        keys = _keys(one, memories.get(one.memory_id), now)
        accepted = one.memory_id in taken
        if kinds is None and not accepted:
            passed: dict[TrustKind, str] = {"source": keys["source"], "memory": keys["memory"]}
            found = trust_changes(passed, ("irrelevant",))
            part = _HALF * _PASSED_OVER
        else:
            found, part = trust_changes(keys, kinds), _HALF
        for (name, key), counts in found.items():
            new = Counts(part * counts.accepted, part * counts.refused)
            for place in ((name, key), (name, f"{key}@{kind}")):
                changed[place] = _added(changed.get(place), new, now)
        number = str(bin_of(one.raw))
        for bin in (("bin", number), ("bin", f"{number}@{one.source}")):
            before = _left(changed.get(bin, TrustRow(0.0, 0.0, now)), now)
            changed[bin] = TrustRow(before.accepted + accepted, before.refused + (not accepted), now)
    return {place: row for place, row in changed.items() if rows.get(place) != row}


def _keys(shown: SuggestedRow, memory: Memory | None, now: int) -> dict[TrustKind, str]:
    signals = Cues(shown.memory_id) if memory is None else describe(memory, now)
    return trust_keys(signals, shown.source)  # type: ignore[arg-type]  # only sources are stored


def _left(row: TrustRow, now: int) -> Counts:
    return Counts(fade(row.accepted, row.at, now), fade(row.refused, row.at, now))


def _added(row: TrustRow | None, new: Counts, now: int) -> TrustRow:
    after = (_left(row, now) if row is not None else Counts()).plus(new)
    return TrustRow(after.accepted, after.refused, now)
