"""Finds claims that exclude each other, within one text or between a claim and a memory. Pure.

Claims are compared only if they have the same subject and differ in one thing: a denial, an opposite, a number, a
version, a place, an order, a test result, or whether something exists. "It was so, now it is so" contradicts nothing,
so the order of the claims matters. A false alarm is worse than a miss: hedged, limited and unclear claims are skipped.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Literal

from ..claims.claims import Claim, read_claims
from ..claims.mentions import Mention
from ..claims.verbs import CHANGES
from ..words import load_pattern, load_words
from .frames import (
    Amount,
    ClaimFrame,
    FrameConflict,
    FramePair,
    Kind,
    build_frame,
    find_sections,
    same_place,
    same_section,
    stems,
)

__all__ = [
    "Contradiction", "FrameConflict", "Key", "Kind", "conflict_keys", "find_conflict", "find_contradictions",
    "find_exclusion", "may_conflict",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two statements that cannot both be true; `source` is where the second comes from, "" within one text."""

    left: str
    right: str
    reason: str
    kind: Kind
    between: Literal["text", "evidence", "memory"]
    source: str


_MOVES = load_pattern("contradictions", "moves")
_MENDS = re.compile(r"\b(?:fix\w*|solution|resolv\w*|instead|therefore|that['’]?s why|chang\w+|patch\w*)\b", re.I)
_MOST = 32  # claims of one subject that are compared with each other, which bounds the time


def find_contradictions(claims: Sequence[Claim], text: str = "") -> list[Contradiction]:
    """The contradictions within one text, in its order.

    With `text`, claims under different headings ("Backend", "Frontend") are not compared.
    """
    sections = find_sections(text, claims) if text else {}
    frames = _frames(claims, sections)
    changes = _changes(frames)
    groups: dict[Key, list[ClaimFrame]] = defaultdict(list)
    for frame in frames:
        for key in conflict_keys(frame):
            if len(groups[key]) < _MOST:
                groups[key].append(frame)
    found: dict[tuple[int, int], FrameConflict] = {}
    moved = _moved(frames)
    for key, members in groups.items():
        if len(members) < 2 or (key[0] == "existence" and key[1] in moved) or not may_conflict(key, members):
            continue
        for first, second in combinations(members, 2):
            pair = (first.at, second.at)
            if pair in found or not (conflict := find_exclusion(key, first, second)):
                continue
            if _fixed_between(text, first, second) or _changed_between(changes, first, second):
                continue
            if same_section(first.section, second.section):
                found[pair] = conflict
    return [
        Contradiction(frames[a].text, frames[b].text, conflict.reason, conflict.kind, "text", "")
        for (a, b), conflict in sorted(found.items())
    ]


def find_conflict(claim: Claim, sentences: Sequence[str]) -> tuple[int, str, Kind] | None:
    """The index of the first sentence that excludes the claim, with the reason and its kind.

    The sentences count as older: the state before a change does not exclude the claim of that change.
    """
    own = build_frame(claim, 1)
    keys = conflict_keys(own)
    for number, sentence in enumerate(sentences) if keys else ():
        for other in _sentence_frames(sentence):
            for key in conflict_keys(other):
                if key in keys and (conflict := find_exclusion(key, other, own, apart=True)):
                    return number, conflict.reason, conflict.kind
    return None


@lru_cache(maxsize=1024)  # many claims are compared with the same few memories
def _sentence_frames(sentence: str) -> tuple[ClaimFrame, ...]:
    return tuple(_frames(read_claims(sentence).claims, {}))


def _frames(claims: Sequence[Claim], sections: dict[int, tuple[str, ...]]) -> list[ClaimFrame]:
    """The frames of the claims in order; of repeated claims only the first."""
    first = {claim.text: claim for claim in reversed(claims)}
    ordered = sorted(first.values(), key=lambda claim: (claim.start, claim.end, claim.text))
    return [build_frame(claim, at, sections.get(claim.start, ())) for at, claim in enumerate(ordered)]


def _changes(frames: Sequence[ClaimFrame]) -> dict[str, list[int]]:
    """The positions of claims of a change, by each word of what changed; under "" all of them."""
    places: dict[str, list[int]] = defaultdict(list)
    for frame in frames:
        if frame.claim.type in CHANGES and frame.time == "event" and not frame.denied:
            for word in {"", *frame.subject, *(mention.value for mention in frame.claim.mentions)}:
                places[word].append(frame.at)
    return places


def _moved(frames: Sequence[ClaimFrame]) -> set[object]:
    """Names that were only moved, so that their removal is no contradiction."""
    return {
        mention.value
        for frame in frames
        if _MOVES.search(frame.text)
        for mention in frame.claim.mentions
        if mention.kind in ("symbol", "file")
    }


def _changed_between(changes: dict[str, list[int]], first: ClaimFrame, second: ClaimFrame) -> bool:
    """Whether the first may describe the state before a change that is mentioned between the two."""
    if first.time == "event":
        return False
    tested = first.claim.type == "test_result" == second.claim.type
    if tested and not any("failed" in mention.value for mention in first.claim.mentions):
        return False
    return any(_between(changes.get(word, ()), first.at, second.at) for word in _touched(first, tested))


def _fixed_between(text: str, first: ClaimFrame, second: ClaimFrame) -> bool:
    """Whether the text between a denial and its opposite mentions a fix, as a claim or not."""
    if not text or not first.denied or second.denied or first.time == "event":
        return False
    return _MENDS.search(text, first.claim.end, max(first.claim.end, second.claim.start)) is not None


def _touched(frame: ClaimFrame, tested: bool) -> Iterator[str]:
    if tested:
        yield ""  # any change may have fixed the tests
    yield from frame.subject
    yield from (mention.value for mention in frame.claim.mentions if mention.kind in ("symbol", "file"))


def _between(places: Sequence[int], low: int, high: int) -> bool:
    at = bisect_right(places, low)
    return at < len(places) and places[at] < high


# The ways in which two claims about one thing exclude each other, each a check of two frames. Pure.
#
# A frame has a key for each way in which its claim can be excluded; only frames that share a key are compared. The
# first of a pair comes first in the text, or is the older one.

Key = tuple[object, ...]  # the check, and what must be the same in both


def _stem_words(name: str) -> frozenset[str]:
    return frozenset(stems(" ".join(load_words("contradictions", name))))


_PAIR = 2
_SETTING = _stem_words("setting")
_CODES = _stem_words("codes")
_DEFINED = re.compile(r"\b(?:defined|declared|located|lives?|resides?|implemented)\s+(?:in|at|inside|under)\b", re.I)
_ALSO = re.compile(r"\b(?:also|both|re-?export\w*|overrid\w*|each|every|again|partly|as well|too)\b", re.I)
_MANY_TIMES = load_words("contradictions", "common_names")
_ORDER = load_pattern("contradictions", "order")
_INHERITS = load_pattern("contradictions", "inherits")
_FROM_TO = re.compile(r"\bfrom\b.+\bto\b", re.I)
_PINS = load_pattern("contradictions", "pins")
_NEEDS = re.compile(r"\b(?:requires?|required|needs?|minimum|at least|or (?:newer|later|higher))\b|>=|\d\+", re.I)
_NOT_PINNED = load_pattern("contradictions", "not_pinned")
_PROJECT = _stem_words("project")


def conflict_keys(frame: ClaimFrame) -> tuple[Key, ...]:
    """The keys that another frame must share to be compared with this one, the most specific check first."""
    if not frame.firm:
        return ()
    return tuple(dict.fromkeys((name, *key) for name, (keys, _) in _CHECKS.items() for key in keys(frame)))


def find_exclusion(key: Key, first: ClaimFrame, second: ClaimFrame, apart: bool = False) -> FrameConflict | None:
    """Why both cannot be true; `apart` for claims of two texts, whose order means nothing."""
    if not same_place(first.files, second.files) and key[0] != "place":
        return None
    if first.kinds and second.kinds and not first.kinds & second.kinds:
        return None
    return _CHECKS[str(key[0])][1](FramePair(first, second, apart))


def may_conflict(key: Key, frames: Sequence[ClaimFrame]) -> bool:
    """A quick test whether any two frames with this key can exclude each other.

    More than two values of one thing are a series, such as the entries of a changelog.
    """
    check = key[0]
    if check == "polarity":
        return len({(frame.denied, frame.sides) for frame in frames}) > 1
    if check == "denied":
        return len({frame.denied for frame in frames}) > 1
    if check == "existence":
        return any(frame.claim.type in ("removed", "exists") for frame in frames)
    values: set[object] = set()
    for frame in frames:
        if check == "number":
            values.add(frame.amounts)
        elif check == "version":
            values.add((_read_pin(frame) or ("",))[-1])
        elif check == "place":
            values.add(frame.files)
    return len(values) <= _PAIR


# Denials and opposites


def _polarity_keys(frame: ClaimFrame) -> Iterator[Key]:
    if frame.subject and (frame.words or frame.amounts):
        yield (frame.subject, frame.words, frame.amounts)


def _check_polarity(pair: FramePair) -> FrameConflict | None:
    first, second, _ = pair
    if not _is_opposed(first, second) or not pair.contradicts_in_order:
        return None
    return FrameConflict("polarity", _opposition_reason(first, second))


def _is_opposed(first: ClaimFrame, second: ClaimFrame) -> bool:
    """Whether one says the opposite of the other. Two oppositions cancel out: "not allowed" is "rejected"."""
    turns = first.denied != second.denied
    if first.sides or second.sides:
        mine, others = {side.axis: side.side for side in first.sides}, {side.axis: side.side for side in second.sides}
        if mine.keys() != others.keys() or len(mine) != len(first.sides) or len(others) != len(second.sides):
            return False
        turns ^= sum(mine[axis] != others[axis] for axis in mine) % 2 == 1
        if first.denied and second.denied:
            return False  # neither enabled nor disabled
    return turns


def _opposition_reason(first: ClaimFrame, second: ClaimFrame) -> str:
    about = _shown(first)
    for mine in first.sides:
        for other in second.sides:
            if mine.axis == other.axis and mine.side != other.side:
                return f"{about} is said to be “{mine.word}” here and “{other.word}” there"
    return f"the same is said of {about} and denied"


def _shown(frame: ClaimFrame) -> str:
    subject = frame.claim.subject.strip() or " ".join(frame.subject)
    return f"`{frame.name}`" if frame.name else f"“{subject[:80]}”"


def _denied_keys(frame: ClaimFrame) -> Iterator[Key]:
    if frame.subject and frame.verb and not frame.sides and not frame.amounts:
        yield (frame.subject, frame.verb)


def _check_denied(pair: FramePair) -> FrameConflict | None:
    """ "Does not validate the email" denies "validates the email address" as well."""
    first, second, _ = pair
    no, yes = (first, second) if first.denied else (second, first)
    if no.denied == yes.denied or len(no.words) < 2 or not no.words < yes.words or not pair.contradicts_in_order:
        return None
    further = yes.words - no.words
    if len(further) > 1 or further & yes.scoped:
        return None
    return FrameConflict("polarity", _opposition_reason(first, second))


# Numbers


def _number_keys(frame: ClaimFrame) -> Iterator[Key]:
    countable = frame.claim.type not in CHANGES or frame.time == "state"
    if frame.subject and len(frame.amounts) == 1 and not frame.denied and countable and not frame.claim.hedge:
        words = frame.words - _SETTING
        if frame.claim.type == "value" or frame.amounts[0].unit or not words & _CODES:
            yield (frame.subject, words, frame.amounts[0].unit, tuple(side.side for side in frame.sides))


def _check_number(pair: FramePair) -> FrameConflict | None:
    first, second, _ = pair
    mine, other = first.amounts[0], second.amounts[0]
    if not _apart(mine, other) or not pair.same_time:
        return None
    if first.time == second.time == "event" and _FROM_TO.search(second.text):
        return None  # one change after another
    return FrameConflict("number", f"says {_amount(first)} here and {_amount(second)} there of {_shown(first)}")


def _apart(mine: Amount, other: Amount) -> bool:
    if mine.sign == other.sign:
        return mine.value != other.value and not mine.sign
    if mine.sign and other.sign:
        low, high = (mine, other) if mine.sign == ">" else (other, mine)
        return low.value > high.value
    bound, exact = (mine, other) if mine.sign else (other, mine)
    return exact.value < bound.value if bound.sign == ">" else exact.value > bound.value


def _amount(frame: ClaimFrame) -> str:
    value = frame.amounts[0].value
    numbers = [mention.text for mention in frame.claim.mentions if mention.kind == "number"]
    return numbers[-1] if numbers else f"{value:g}"


# Versions


def _version_keys(frame: ClaimFrame) -> Iterator[Key]:
    if (pinned := _read_pin(frame)) is not None:
        yield pinned[:-1]


def _read_pin(frame: ClaimFrame) -> tuple[str, str, frozenset[str], str] | None:
    """The package, whether it is a least or an exact version, the other words of the claim, and the version."""
    text = frame.text
    if frame.denied or _NOT_PINNED.search(text):
        return None
    how = "needs" if _NEEDS.search(text) else "pins" if _PINS.search(text) or "==" in text else ""
    versions = [mention for mention in frame.claim.mentions if mention.kind == "version"]
    packages = [mention.value for mention in frame.claim.mentions if mention.kind == "dependency"]
    moved = len(versions) == 2 and _FROM_TO.search(text)
    if not how or (len(versions) != 1 and not moved) or len(set(packages)) > 1:
        return None
    version = versions[-1]
    before = text[: text.rfind(version.text)].rstrip(" `=>v").split()
    name = packages[0] if packages else before[-1].strip("`").lower() if before else ""
    if name in ("version", "to", "at", "is", "of"):
        name = frame.subject[0].lower() if len(frame.subject) == 1 else ""
    if not re.fullmatch(r"[@a-z][\w./@-]*", name):
        return None
    bare = _NEEDS.sub(" ", _PINS.sub(" ", re.sub(r"`", " ", text)))
    words = {word for word in stems(bare) if not word[0].isdigit() and not re.fullmatch(r"v\d.*", word)}
    return name, how, frozenset(words - _PROJECT - set(stems(name)) - {name}), version.value


def _check_version(pair: FramePair) -> FrameConflict | None:
    first, second, _ = pair
    mine, other = _read_pin(first), _read_pin(second)
    if mine is None or other is None or not pair.same_state:
        return None
    left, right = mine[-1].split("."), other[-1].split(".")
    if all(a == b for a, b in zip(left, right, strict=False)):
        return None
    return FrameConflict("version", f"says version {mine[-1]} of `{mine[0]}` here and {other[-1]} there")


# Tests

_SUITE = _stem_words("test_words")
_PAST = re.compile(r"\b(?:failed|were|was|had|passed)\b", re.I)
_ALL = re.compile(r"\b(?:all|every)\b", re.I)


@dataclass(frozen=True, slots=True)
class PairOutcome:
    """Which tests, and how many passed and failed; None if unknown, -1 for some."""

    scope: frozenset[str]
    passed: int | None
    failed: int | None
    past: bool


def read_outcome(claim: Claim) -> PairOutcome | None:
    """The test result in a claim; None if it has none, or the same result for two kinds of tests."""
    found = [mention for mention in claim.mentions if mention.kind == "tests"]
    if claim.type != "test_result" or not found:
        return None
    results = [mention.value.partition(" ")[2] for mention in found]
    if len(set(results)) < len(results) or (len(found) > 1 and any(m.value.startswith("all ") for m in found)):
        return None
    passed: int | None = None
    failed: int | None = None
    for mention in found:
        more_passed, more_failed = _counted(mention)
        passed = passed if more_passed is None else more_passed
        failed = failed if more_failed is None else more_failed
    counts = {word for mention in found for word in stems(mention.text)}
    scope = {word for word in stems(claim.text) if word not in _SUITE and not (word in counts and word[0].isdigit())}
    return PairOutcome(frozenset(scope), passed, failed, _PAST.search(claim.text) is not None)


def _counted(mention: Mention) -> tuple[int | None, int | None]:
    """How many passed and how many failed, as far as one mention says."""
    count, _, result = mention.value.partition(" ")
    if "/" in count:
        part, total = (int(number) for number in count.split("/"))
        return (part, total - part) if result == "passed" else (total - part, part)
    number = int(count) if count.isdigit() else 0 if count == "no" else None
    if result == "failed":
        return None, -1 if number is None else number
    if result == "passed":
        return number, 0 if count == "all" or _ALL.search(mention.text) else -1 if count == "no" else None
    return None, None


def explain_difference(first: PairOutcome, second: PairOutcome) -> str | None:
    """Why both cannot be results of one run."""
    if first.failed is not None and second.failed is not None and bool(first.failed) != bool(second.failed):
        return "says that the tests pass here and that some fail there"
    if first.passed is not None and second.passed is not None and first.passed != second.passed:
        return f"says that {first.passed} tests pass here and {second.passed} there"
    return None


def _test_keys(frame: ClaimFrame) -> Iterator[Key]:
    if (outcome := read_outcome(frame.claim)) is not None and frame.time != "before":
        yield (outcome.scope,)


def _check_tests(pair: FramePair) -> FrameConflict | None:
    first, second, apart = pair
    mine, other = read_outcome(first.claim), read_outcome(second.claim)
    if mine is None or other is None or (reason := explain_difference(mine, other)) is None:
        return None
    if first.time == "state" and second.time == "after":
        return None
    return None if _was_fixed(mine, other) and not apart else FrameConflict("tests", reason)


def _was_fixed(first: PairOutcome, second: PairOutcome) -> bool:
    """Whether tests had failed in the first and pass in the second, as in a report of what was done."""
    return first.past and bool(first.failed) and not second.failed


# Places


def _place_keys(frame: ClaimFrame) -> Iterator[Key]:
    named = frame.name and frame.name not in _MANY_TIMES and len(frame.files) == 1 and not frame.denied
    if named and frame.claim.type == "exists" and _DEFINED.search(frame.text) and not _ALSO.search(frame.text):
        yield (frame.name, frame.files[0].rpartition(".")[2])


def _check_place(pair: FramePair) -> FrameConflict | None:
    first, second, _ = pair
    if same_place(first.files, second.files) or not pair.same_time:
        return None
    files = (first.files[0], second.files[0])
    return FrameConflict("place", f"`{first.name}` is said to be defined in {files[0]} and in {files[1]}")


# Existence: something is said to be removed or missing, and also to be there

_GONE = load_pattern("contradictions", "gone")
_CODE = re.compile(r"`[^`\n]*`|(?<![^\s`])\S*[./_]\w\S*")
_REMOVES = re.compile(r"\b(?:removed|deleted|dropped|eliminated)\b", re.I)
_ABSENT = load_pattern("contradictions", "absent")
_ELSEWHERE = re.compile(r"\b(?:read|taken|loaded|imported|provided|comes?|available|resolved|used|internal\w*)\b", re.I)
_INTO = re.compile(r"\b(?:to|in|into|inside)\s+(?:the\s+)?(?:file\s+)?`?$", re.I)


def existence_keys(frame: ClaimFrame) -> Iterator[tuple[str]]:
    if frame.name:
        yield (frame.name,)
    for file in _into(frame) if not frame.denied else ():
        yield (file,)


def _into(frame: ClaimFrame) -> list[str]:
    """The files that must exist for the claim to be true, because something is in them."""
    if frame.claim.type not in ("implemented", "exists") or frame.time == "before":
        return []
    found = []
    for mention in frame.claim.mentions:
        before, there, _ = frame.text.partition(mention.text) if mention.kind == "file" else ("", "", "")
        opens = frame.claim.type == "exists" and before.strip("` ").lower() in ("", "the", "the file")
        if there and (opens or _INTO.search(before)):
            found.append(mention.value)
    return found


def check_existence(pair: FramePair) -> FrameConflict | None:
    """Whether one claim says that the subject of the other is gone."""
    for gone, there in ((pair.first, pair.second), (pair.second, pair.first)):
        name = _common(gone, there)
        if not name or not _is_there(there, name):
            continue
        if _removed(gone) and _stays(gone, there, name, pair):
            return FrameConflict("existence", f"`{name}` is said to be removed, and yet that “{_quote(there)}”")
        if _absent(gone) and name == gone.name and pair.same_time and bool(gone.files) == bool(there.files):
            return FrameConflict("existence", f"`{name}` is said not to be there, and yet that “{_quote(there)}”")
    return None


def _stays(gone: ClaimFrame, there: ClaimFrame, name: str, pair: FramePair) -> bool:
    """Whether it is said to exist after its removal, in the same place."""
    if _GONE.search(_CODE.sub(" ", there.text)):
        return False
    if there is pair.first and (there.time != "event" or there.claim.type not in CHANGES):
        return False  # it existed before
    if there is pair.second and pair.apart and there.claim.type in CHANGES:
        return False  # created again since
    elsewhere = name.isupper() or _ELSEWHERE.search(there.text) is not None
    return not (gone.files and not there.files and elsewhere)


def _common(gone: ClaimFrame, there: ClaimFrame) -> str:
    return gone.name if gone.name and (gone.name == there.name or gone.name in _into(there)) else ""


def _removed(frame: ClaimFrame) -> bool:
    numbers = frame.claim.type == "removed" and not frame.denied and frame.time in ("event", "state", "after")
    return numbers and _REMOVES.search(frame.text) is not None


def _absent(frame: ClaimFrame) -> bool:
    return frame.claim.type == "exists" and frame.time == "state" and _ABSENT.search(frame.text) is not None


def _is_there(frame: ClaimFrame, name: str) -> bool:
    if frame.denied or frame.time == "before" or frame.claim.type in ("removed", "reference", "test_result"):
        return False
    return name in _into(frame) or frame.claim.type in ("exists", "behaviour", "value", "implemented")


def _quote(frame: ClaimFrame) -> str:
    return frame.text.rstrip(".!")[:120]


# Orders


def _order_keys(frame: ClaimFrame) -> Iterator[Key]:
    if (order := _order_of(frame)) is not None:
        yield (order[0], frozenset(order[1:]))


def _order_of(frame: ClaimFrame) -> tuple[str, tuple[str, ...], tuple[str, ...]] | None:
    """The verb, what comes first and what comes after it."""
    text = frame.text
    if frame.denied or frame.time == "before":
        return None
    if found := _INHERITS.match(text):
        return "inherits", (found["y"],), (found["x"],)
    found = _ORDER.match(text)
    if found is None or re.search(r"\d", text):
        return None
    earlier, later = tuple(stems(found["x"])), tuple(stems(found["y"]))
    if not 0 < len(earlier) <= 4 or not 0 < len(later) <= 4 or earlier == later:
        return None
    if found["how"].lower() == "after":
        earlier, later = later, earlier
    return " ".join(stems(found["verb"])), earlier, later


def _check_order(pair: FramePair) -> FrameConflict | None:
    first, second, _ = pair
    mine, other = _order_of(first), _order_of(second)
    if mine is None or other is None or mine[1] == other[1] or not pair.same_time:
        return None
    if mine[0] == "inherits":
        return FrameConflict("order", f"`{mine[1][0]}` and `{mine[2][0]}` are each said to inherit from the other")
    return FrameConflict("order", f"“{' '.join(mine[1])}” comes before “{' '.join(mine[2])}” here and after it there")


_Check = tuple[Callable[[ClaimFrame], Iterator[Key]], Callable[[FramePair], FrameConflict | None]]
_CHECKS: dict[str, _Check] = {
    "tests": (_test_keys, _check_tests),
    "existence": (existence_keys, check_existence),
    "place": (_place_keys, _check_place),
    "version": (_version_keys, _check_version),
    "order": (_order_keys, _check_order),
    "number": (_number_keys, _check_number),
    "polarity": (_polarity_keys, _check_polarity),
    "denied": (_denied_keys, _check_denied),
}
