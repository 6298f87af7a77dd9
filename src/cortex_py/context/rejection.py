"""Why a suggestion was refused: what the words of a reason say, and whose trust that lowers.

Rules on English stems, without a model: a reason is a short phrase, and what is not understood is `unclear`, which
still counts against the source. Several kinds may apply; what a reason denies ("not outdated but irrelevant") does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from .suggesting import Counts, TrustKind

__all__ = ["ACCEPTANCE", "KINDS", "RejectionKind", "classify", "effects", "lessons"]

RejectionKind = Literal["wrong phase", "wrong area", "outdated", "duplicate", "already known", "irrelevant", "unclear"]
KINDS: tuple[RejectionKind, ...] = (
    "wrong phase",
    "wrong area",
    "outdated",
    "duplicate",
    "already known",
    "irrelevant",
    "unclear",
)

# A fault of the place is no fault of the record, and the other way round. What many records share (an age, a branch)
# is lowered less than what is one record's own, except where the reason names it.
_EFFECTS: Mapping[RejectionKind, tuple[tuple[TrustKind, float], ...]] = {
    "wrong phase": (("branch", 1.0), ("age", 0.3)),
    "wrong area": (("area", 1.0), ("branch", 0.3)),
    "outdated": (("memory", 1.0), ("age", 0.5)),
    "duplicate": (("memory", 0.5),),
    "already known": (("memory", 0.3),),
    "irrelevant": (("source", 1.0), ("memory", 0.5), ("category", 0.2)),
    "unclear": (("source", 1.0), ("memory", 0.25)),
}
# What an acceptance says of everything that the suggestion was made of.
ACCEPTANCE: tuple[tuple[TrustKind, float], ...] = (
    ("source", 1.0),
    ("memory", 1.0),
    ("branch", 0.5),
    ("area", 0.5),
    ("age", 0.5),
    ("category", 0.2),
)

_LONGEST = 2_000
_PLACE = (
    r"(?:modules?|components?|services?|subsystems?|systems?|folders?|director(?:y|ies)|packages?|librar(?:y|ies)"
    r"|repos?|repositor(?:y|ies)|projects?|code ?bases?|parts?|layers?|tiers?|areas?|domains?|features?|teams?"
    r"|apps?|applications?|front-? ?ends?|back-? ?ends?|clients?|servers?|cli|ui|platforms?|products?|plugins?|files?"
    r"|languages?|frameworks?|environments?)"
)
_PHASE = r"(?:phases?|stages?|milestones?|sprints?|iterations?)"
_ASIDE = r"(?:[\w'/-]+ ){0,2}?"
_WORKING = re.compile(
    r"\b(?:i|we) (?:am|are|was|were) (?:only |now |just )?(?:in|on|working|fixing|changing|editing)\b"
)
_SOMEWHERE = re.compile(rf"\b{_PLACE}\b|\w/\w")


def _rule(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{words})(?![\w-])")


# In this order; what one rule has read, the later ones do not see ("a different project phase" names no project).
_RULES: tuple[tuple[RejectionKind, re.Pattern[str]], ...] = (
    (
        "wrong phase",
        _rule(
            rf"not (?:(?:in|for|from|at|the|that|this|our|right|same|current) ){{1,4}}{_PHASE}"
            rf"|(?:(?!no[rt]? |never )[\w'/-]+ ){{0,2}}?(?<!same )(?<!right )(?<!current ){_PHASE}"
            rf"|(?:that|wrong|different|another|other|earlier|previous|later|next) step"
            rf"|(?:too|much too) (?:early|soon|late)|premature(?:ly)?|not (?:[\w'-]+ ){{0,4}}yet"
            rf"|(?:for|from|during|of) (?:the|our|an?|that) (?:\w+ )?(?:prototype|proof of concept|poc|mvp|beta|spike)"
            rf"|not now|(?:maybe|perhaps|needed|useful|relevant) later"
            rf"|already (?:done|finished|implemented|shipped|released|merged)"
            rf"|once we (?:get|reach|are|start|have)|when we get to"
        ),
    ),
    (
        "wrong area",
        _rule(
            rf"(?:wrong|different|another|other|unrelated|separate|some other) {_ASIDE}{_PLACE}"
            rf"|not (?:in|from|part of|for|about) (?:the|this|my|our|that) {_ASIDE}{_PLACE}"
            rf"|(?:belongs?|belonging) (?:to|in) (?:the |a |an |our |another )?{_ASIDE}{_PLACE}"
            rf"|not (?:this|my|our|the same) {_ASIDE}{_PLACE}|elsewhere in the code"
        ),
    ),
    (
        "outdated",
        _rule(
            r"out-?dated|out[ -]of[ -]date|obsolete\w*|stale|superseded|deprecated|expired|old|older|ancient"
            r"|no longer(?: \w+)?|not (?:[\w'-]+ ){0,4}any ?(?:more|longer)|not (?:up to date|current)"
            r"|(?:has|have|had) (?:since )?(?:been )?(?:changed|moved on|replaced|removed|deleted|rewritten|dropped)"
            r"|(?:was|were|got|been|since|we|i) (?:since )?(?:removed|deleted|replaced|rewritten|dropped|reverted)"
            r"|used to|(?:replaced|overruled) by|newer (?:version|decision|one|note|record)"
        ),
    ),
    (
        "duplicate",
        _rule(
            r"duplicat\w+|dupes?|redundan\w+|identical|(?:the )?same (?:thing |content |information )?as|says? the same"
            r"|repeat(?:s|ed|ing)?|repetiti\w+|twice|cop(?:y|ies) of|overlap\w*|(?:already )?covered (?:by|in)"
            r"|already (?:been )?(?:suggested|proposed|offered|listed|shown|mentioned|covered|included|contained)"
        ),
    ),
    (
        "already known",
        _rule(
            r"already (?:know\w*|knew|read|seen|saw|aware|familiar|loaded|open|have|had|got|us(?:e|ing)"
            r"|in (?:my|our|the|this) (?:\w+ )?(?:context|window|head|prompt|session|conversation))"
            r"|(?:loaded|known|read|seen|open) already|(?:have|had|got) (?:this|it|that|them|these) (?:loaded|open)"
            r"|aware of|familiar with|nothing new|remember"
            r"|(?:i|we) (?:have )?(?:just |only just )?(?:know|knew|read|saw|seen|wrote)"
        ),
    ),
    (
        "irrelevant",
        _rule(
            r"irrelevan(?:t|ce)|unrelated|off-? ?topic|nothing to do with|beside the point|out of scope"
            r"|(?:not|no|hardly|barely|without|little) (?:[\w'-]+ ){0,2}?"
            r"(?:relevan(?:t|ce)|relat(?:ed|e|es|ion)|connect(?:ed|ion)|pertinent|pertain|appl(?:y|ies|icable)|bearing)"
            r"|not (?:at all )?(?:what|about what) (?:i|we)|something else(?: entirely)?"
            r"|(?:wrong|different|another|other) (?:topic|subject|matter|problem|question|issue|task|thing)"
        ),
    ),
)
# Plain dismissals say no more than `irrelevant`, and that only where nothing better was said.
_DISMISSED = _rule(
    r"useless|noise|unhelpful|unneeded|unnecessary"
    r"|(?:not|no) (?:[\w'-]+ ){0,3}?(?:help\w*|useful|use|need(?:ed)?|matter|interest(?:ed|ing)|fit|about)"
)
_BREAK = re.compile(
    r"[.,;:!?()\n—–]|(?<!\w)(?:but|because|however|although|though|since|just|simply|merely|instead|so|and)(?!\w)"
)
# A "no" before a pronoun is an answer: "no this is outdated".
_DENIES = re.compile(
    r"(?<!\w)(?:not|no(?! (?:it|this|that|these|they))|nor|neither|never|without|hardly)(?: [\w'-]+){0,5} *$"
)
_NOT_ONLY = re.compile(r"\bnot (?:only|just|merely|simply)\b")
_CONTRACTED = (
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"'m\b"), " am"),
    (re.compile(r"'re\b"), " are"),
    (re.compile(r"'ve\b"), " have"),
    (re.compile(r"\b(it|that|this)'s\b"), r"\1 is"),
)
_SPACES = re.compile(r"[ \t\r\f\v]+")
# Words that are spelled like English ones ("irrelevant", "relevant") mean nothing certain in another language.
_FOREIGN = re.compile(
    r"\b(?:das|ist|nicht|der|und|ein|eine|mehr|schon|für|mit|zu|est|pas|le|les|une|des|ce|cette|pour|dans|déjà|ne"
    r"|el|los|las|es|una|por|que|para|ya|muy|del|não|é|um|uma|já|isso|il|di|che|è|della|het|niet|een|dit|det|är|inte"
    r"|som|jest|nie)\b"
)
_ENGLISH = re.compile(
    r"\b(?:the|an?|is|are|was|were|this|that|these|it|its|i|we|you|of|in|on|for|from|with|and|not|no)\b"
)


def classify(reason: str) -> tuple[RejectionKind, ...]:
    """What a reason says, in the order of `KINDS`; `unclear` where it says nothing that is understood."""
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


def effects(kind: RejectionKind) -> tuple[tuple[TrustKind, float], ...]:
    """Whose trust a refusal of that kind lowers, and how much of one answer it is worth."""
    return _EFFECTS[kind]


def lessons(
    keys: Mapping[TrustKind, str], kinds: Iterable[RejectionKind] | None
) -> dict[tuple[TrustKind, str], Counts]:
    """What one answer adds to the trust in what a suggestion was made of; no kinds means that it was accepted.

    Several kinds are one answer still: each trust is lowered by the strongest of them.
    """
    accepted = kinds is None
    weights: dict[TrustKind, float] = {}
    for trust, weight in ACCEPTANCE if kinds is None else (one for kind in kinds for one in effects(kind)):
        weights[trust] = max(weights.get(trust, 0.0), weight)
    return {
        (trust, keys[trust]): Counts(weight, 0.0) if accepted else Counts(0.0, weight)
        for trust, weight in weights.items()
        if keys.get(trust)
    }


def _plain(reason: str) -> str:
    text = reason[:_LONGEST].lower().replace("’", "'")
    for pattern, whole in _CONTRACTED:
        text = pattern.sub(whole, text)
    return _SPACES.sub(" ", _NOT_ONLY.sub("also", text)).strip()


def _denied(match: re.Match[str]) -> bool:
    """Whether a "not" stands before it in its clause, and not too far away."""
    before = match.string[: match.start()]
    clause = _BREAK.split(before)[-1]
    return _DENIES.search(clause) is not None
