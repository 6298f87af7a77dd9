"""The ways in which two claims about one thing exclude each other, each a check of two frames. Pure.

A frame has keys, one for each way that its claim could be excluded; only frames that share a key are compared. The
first of a pair is the one that is told first, or the older one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from ..memory.opposites import word_set
from .claim_frames import Amount, Frame, same_place, stems
from .claim_words import CHANGES
from .frame_pairs import Conflict, Kind, Pair
from .outcomes import Outcome, outcome_of, outcomes_differ
from .presence import existence, existence_keys

__all__ = ["Conflict", "Key", "Kind", "exclusion", "is_open", "keys_of"]

Key = tuple[object, ...]  # the check, and what must be the same in both


_PAIR = 2
_SETTING = frozenset(stems("changed set increased decreased reduced raised lowered bumped updated configured made"))
_CODES = frozenset(stems("return handle support respond accept catch raise log print throw see map match use version"))
_DEFINED = re.compile(r"\b(?:defined|declared|located|lives?|resides?|implemented)\s+(?:in|at|inside|under)\b", re.I)
_ALSO = re.compile(r"\b(?:also|both|re-?export\w*|overrid\w*|each|every|again|partly|as well|too)\b", re.I)
_MANY_TIMES = word_set(
    "main setup run init index handler config test app render create update get post start stop __init__"
)
_ORDER = re.compile(
    r"^(?P<x>[^,;:]{1,80}?)\s+(?P<verb>(?:is|are|gets?)\s+\w+|\w+)\s+(?P<how>before|after|prior to)\s+"
    r"(?P<y>[^,;:]{1,80}?)[.!]*$",
    re.I,
)
_INHERITS = re.compile(
    r"^(?:the\s+)?(?:class\s+)?`(?P<x>[\w.]+)`\s+(?:class\s+)?(?:inherits\s+from|extends|subclasses|is\s+a\s+subclass\s+of)"
    r"\s+(?:the\s+)?`(?P<y>[\w.]+)`",
    re.I,
)
_FROM_TO = re.compile(r"\bfrom\b.+\bto\b", re.I)
_PINS = re.compile(
    r"\b(?:pin\w*|uses?|using|bump\w*|upgrad\w+|downgrad\w+|updat\w+|runs? on|installs?|installed|set|depends?"
    r"|switch\w*|migrat\w+|version (?:is|of))\b",
    re.I,
)
_NEEDS = re.compile(r"\b(?:requires?|required|needs?|minimum|at least|or (?:newer|later|higher))\b|>=|\d\+", re.I)
_NOT_PINNED = re.compile(
    r"\b(?:support\w*|compatib\w+|since|test\w*|works?|until|deprecat\w+|drop\w*|remov\w+|introduc\w+|fix\w*|older|prior"
    r"|below|e\.g|recommend\w*|available|for)\b|[<!~^]",
    re.I,
)
_PROJECT = frozenset(stems("project package repo repository app application codebase requirements library I we it"))


def keys_of(frame: Frame) -> tuple[Key, ...]:
    """What another claim must share with this one to be compared with it; the most telling check first."""
    if not frame.firm:
        return ()
    return tuple(dict.fromkeys((name, *key) for name, (keys, _) in _CHECKS.items() for key in keys(frame)))


def exclusion(key: Key, first: Frame, second: Frame, apart: bool = False) -> Conflict | None:
    """Why the two cannot both be so; `apart` for claims of different texts, where nothing is told in a row."""
    if not same_place(first.files, second.files) and key[0] != "place":
        return None
    if first.kinds and second.kinds and not first.kinds & second.kinds:
        return None
    return _CHECKS[str(key[0])][1](Pair(first, second, apart))


def is_open(key: Key, frames: Sequence[Frame]) -> bool:
    """Whether any two of these that share the key could exclude each other, as far as that is seen at a glance.

    Claims that go through more than two values of one thing make a series, as the entries of a changelog do.
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
            values.add((_pinned(frame) or ("",))[-1])
        elif check == "place":
            values.add(frame.files)
    return len(values) <= _PAIR


# Denials and opposites


def _said_keys(frame: Frame) -> Iterator[Key]:
    if frame.subject and (frame.words or frame.amounts):
        yield (frame.subject, frame.words, frame.amounts)


def _polarity(pair: Pair) -> Conflict | None:
    first, second, _ = pair
    if not _turned(first, second) or not pair.in_turn:
        return None
    return Conflict("polarity", _turned_reason(first, second))


def _turned(first: Frame, second: Frame) -> bool:
    """An even number of turns cancels out: "not allowed" is "rejected"."""
    turns = first.denied != second.denied
    if first.sides or second.sides:
        mine, others = {side.axis: side.side for side in first.sides}, {side.axis: side.side for side in second.sides}
        if mine.keys() != others.keys() or len(mine) != len(first.sides) or len(others) != len(second.sides):
            return False
        turns ^= sum(mine[axis] != others[axis] for axis in mine) % 2 == 1
        if first.denied and second.denied:
            return False  # neither enabled nor disabled
    return turns


def _turned_reason(first: Frame, second: Frame) -> str:
    about = _shown(first)
    for mine in first.sides:
        for other in second.sides:
            if mine.axis == other.axis and mine.side != other.side:
                return f"{about} is said to be “{mine.word}” here and “{other.word}” there"
    return f"the same is said of {about} and denied"


def _shown(frame: Frame) -> str:
    subject = frame.claim.subject.strip() or " ".join(frame.subject)
    return f"`{frame.name}`" if frame.name else f"“{subject[:80]}”"


def _denied_keys(frame: Frame) -> Iterator[Key]:
    if frame.subject and frame.verb and not frame.sides and not frame.amounts:
        yield (frame.subject, frame.verb)


def _more_said(pair: Pair) -> Conflict | None:
    """ "Does not validate the email" denies "validates the email address" as well."""
    first, second, _ = pair
    no, yes = (first, second) if first.denied else (second, first)
    if no.denied == yes.denied or len(no.words) < 2 or not no.words < yes.words or not pair.in_turn:
        return None
    further = yes.words - no.words
    if len(further) > 1 or further & yes.scoped:
        return None
    return Conflict("polarity", _turned_reason(first, second))


# Numbers


def _number_keys(frame: Frame) -> Iterator[Key]:
    countable = frame.claim.type not in CHANGES or frame.time == "state"
    if frame.subject and len(frame.amounts) == 1 and not frame.denied and countable and not frame.claim.hedge:
        words = frame.words - _SETTING
        if frame.claim.type == "value" or frame.amounts[0].unit or not words & _CODES:
            yield (frame.subject, words, frame.amounts[0].unit, tuple(side.side for side in frame.sides))


def _number(pair: Pair) -> Conflict | None:
    first, second, _ = pair
    mine, other = first.amounts[0], second.amounts[0]
    if not _apart(mine, other) or not pair.at_one_time:
        return None
    if first.time == second.time == "event" and _FROM_TO.search(second.text):
        return None  # one change after another
    return Conflict("number", f"says {_amount(first)} here and {_amount(second)} there of {_shown(first)}")


def _apart(mine: Amount, other: Amount) -> bool:
    if mine.sign == other.sign:
        return mine.value != other.value and not mine.sign
    if mine.sign and other.sign:
        low, high = (mine, other) if mine.sign == ">" else (other, mine)
        return low.value > high.value
    bound, exact = (mine, other) if mine.sign else (other, mine)
    return exact.value < bound.value if bound.sign == ">" else exact.value > bound.value


def _amount(frame: Frame) -> str:
    value = frame.amounts[0].value
    told = [mention.text for mention in frame.claim.mentions if mention.kind == "number"]
    return told[-1] if told else f"{value:g}"


# Versions


def _version_keys(frame: Frame) -> Iterator[Key]:
    if (pinned := _pinned(frame)) is not None:
        yield pinned[:-1]


def _pinned(frame: Frame) -> tuple[str, str, frozenset[str], str] | None:
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


def _version(pair: Pair) -> Conflict | None:
    first, second, _ = pair
    mine, other = _pinned(first), _pinned(second)
    if mine is None or other is None or not pair.at_one_state:
        return None
    left, right = mine[-1].split("."), other[-1].split(".")
    if all(a == b for a, b in zip(left, right, strict=False)):
        return None
    return Conflict("version", f"says version {mine[-1]} of `{mine[0]}` here and {other[-1]} there")


# Tests


def _test_keys(frame: Frame) -> Iterator[Key]:
    if (outcome := outcome_of(frame.claim)) is not None and frame.time != "before":
        yield (outcome.scope,)


def _tests(pair: Pair) -> Conflict | None:
    first, second, apart = pair
    mine, other = outcome_of(first.claim), outcome_of(second.claim)
    if mine is None or other is None or (reason := outcomes_differ(mine, other)) is None:
        return None
    if first.time == "state" and second.time == "after":
        return None
    return None if _mended(mine, other) and not apart else Conflict("tests", reason)


def _mended(first: Outcome, second: Outcome) -> bool:
    """Whether tests had failed in the first and pass in the second, as in a report of what was done."""
    return first.told_as_past and bool(first.failed) and not second.failed


# Places


def _place_keys(frame: Frame) -> Iterator[Key]:
    named = frame.name and frame.name not in _MANY_TIMES and len(frame.files) == 1 and not frame.denied
    if named and frame.claim.type == "exists" and _DEFINED.search(frame.text) and not _ALSO.search(frame.text):
        yield (frame.name, frame.files[0].rpartition(".")[2])


def _place(pair: Pair) -> Conflict | None:
    first, second, _ = pair
    if same_place(first.files, second.files) or not pair.at_one_time:
        return None
    files = (first.files[0], second.files[0])
    return Conflict("place", f"`{first.name}` is said to be defined in {files[0]} and in {files[1]}")


# Orders


def _order_keys(frame: Frame) -> Iterator[Key]:
    if (order := _order_of(frame)) is not None:
        yield (order[0], frozenset(order[1:]))


def _order_of(frame: Frame) -> tuple[str, tuple[str, ...], tuple[str, ...]] | None:
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


def _order(pair: Pair) -> Conflict | None:
    first, second, _ = pair
    mine, other = _order_of(first), _order_of(second)
    if mine is None or other is None or mine[1] == other[1] or not pair.at_one_time:
        return None
    if mine[0] == "inherits":
        return Conflict("order", f"`{mine[1][0]}` and `{mine[2][0]}` are each said to inherit from the other")
    return Conflict("order", f"“{' '.join(mine[1])}” comes before “{' '.join(mine[2])}” here and after it there")


_Check = tuple[Callable[[Frame], Iterator[Key]], Callable[[Pair], Conflict | None]]
_CHECKS: dict[str, _Check] = {
    "tests": (_test_keys, _tests),
    "existence": (existence_keys, existence),
    "place": (_place_keys, _place),
    "version": (_version_keys, _version),
    "order": (_order_keys, _order),
    "number": (_number_keys, _number),
    "polarity": (_said_keys, _polarity),
    "denied": (_denied_keys, _more_said),
}
