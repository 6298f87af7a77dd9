"""Patterns: relationships that a sentence states between the names found in it.

A sentence is read as a row of words in which each name is one sign. A verb, or a phrase used as one, joins what
stands before it to what stands after it; which types it may join is written beside it. Denied, doubted and asked
things state nothing. "We" is the project, where the caller says what the project is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .tokens import Token
from .values import EntityType, ExtractedEntity, ExtractedRelationship, RelationshipType

__all__ = ["STANDS_FOR_PROJECT", "relationships"]

_EVIDENCE = 240  # characters of a sentence that are kept
_LETTER: dict[EntityType, str] = {"Person": "P", "Organization": "O", "Technology": "T", "Concept": "C", "File": "F"}
_PROJECT = "W"  # words that stand for the project
STANDS_FOR_PROJECT = "rule:project"

_ONE = r"§\d+[POTCFW]"
_FILL = (
    r"(?:(?!(?:not|no|n't|never|to|for|with|by|from|in|on|at|of|and|or|but|when|if|as|than|without|instead)\b)[\w'-]+ )"
)
_LIST = (
    rf"{_ONE}(?: version)?(?: \d[\w.]*)?"
    rf"(?:(?: ,)?(?: (?:and|or|plus|&|/))?(?: also)?(?: (?:the|a|an|its|our|some))? {_ONE}(?: \d[\w.]*)?)*"
)
_AFTER = re.compile(rf" {_FILL}{{0,3}}({_LIST})")
_AUX = (
    r"(?: (?:has|have|had|is|are|was|were|been|be|also|now|currently|recently|then|still|just|already|originally|mostly"
    r"|primarily|internally|heavily|both|all|'s|'ve|'re|team|engineers|developers|people|itself|finally|successfully"
    r"|later|since|only|always|did|does|do|today|v?\d[\w.]*))*"
)
# What may stand between a subject and its verb: where it is from, or an aside.
_ASIDE = (
    rf"(?: (?:from|at|of|in|on|for) (?:the )?{_ONE}| \( [^()§]*(?:{_ONE})?[^()§]* \)| , [^,§]*(?:{_ONE})?[^,§]* ,)?"
)
_BEFORE = re.compile(
    rf"(?:^|[^§\w])({_LIST})(?: 's)?(?: (?:team|service|library|project|module|package|backend))?{_ASIDE}{_AUX}$"
)
_CARRIED = re.compile(rf"(?: and| ,| then| to| by| , and| but){_AUX}$")
_DENIED = re.compile(
    r"(?:\bnot|n't|\bnever|\bno longer|\bstopped|\bwithout|\binstead of|\bavoid(?:s|ed)?|\bcannot|\bneither)(?: \w+)?$"
)
_DOUBTED = re.compile(
    r"\b(?:if|whether|might|may|could|would|should|maybe|perhaps|plans?|planned|planning|consider(?:s|ed|ing)?|wants?|wanted"
    r"|hopes?|proposed?|tried|unless|shall|will|can)\b[^,;§]*$"
)
_ALONE = re.compile(
    r" (?:$|[^\w§]|(?:and|or|to|for|in|with|on|at|as|by|from|using|which|that|last|this|when|because|before|after|since"
    r"|itself|today|yesterday|v?\d[\w.]*)\b)"
)
_CLAUSE = re.compile(r" (?:;|\.|!|\?|:|—|–|because|although|while|whereas|so that|which means) ")


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to state a relationship. `turned` where the source stands after the phrase."""

    name: str
    stems: tuple[str, ...]  # of which a word must be there for the phrase to be: quicker to see
    type: RelationshipType
    phrase: re.Pattern[str]
    before: str
    after: str
    confidence: float
    turned: bool = False


def _way(
    name: str,
    stems: str,
    type: RelationshipType,
    phrase: str,
    before: str,
    after: str,
    confidence: float,
    *,
    turned: bool = False,
) -> _Way:
    return _Way(name, tuple(stems.split()), type, re.compile(rf" (?:{phrase})(?= )"), before, after, confidence, turned)


_BUILT = "created|built|wrote|developed|made|designed|authored|invented|founded|released|published|introduced|started"
_BUILT_BY = (
    "created|built|written|developed|made|designed|authored|invented|founded|released|published|introduced|started"
    "|maintained|implemented|owned"
)
_BE = "(?:(?:is|are|was|were|been|being|gets|got) )?(?:\\w+ly )?"
_WAYS: tuple[_Way, ...] = (
    _way(
        "passive-use",
        "used",
        "Uses",
        f"{_BE}used (?:\\w+ly )?(?:by|in|at|within|inside)",
        "TCF",
        "POTFW",
        0.9,
        turned=True,
    ),
    _way(
        "use",
        "us utili rel depend run adopt leverag requir import prefer built based written implemented "
        "coded deployed hosted powered developed",
        "Uses",
        f"uses|used|using|use|utili[sz]es|relies on|rely on|relied on|depends on|depend on|depended on|runs on|run on"
        f"|runs atop|adopted|adopts|leverages|requires|imports|prefers|{_BE}(?:built|based|written|implemented|coded"
        f"|deployed|hosted|powered|running|developed) (?:with|on|in|by|using|on top of|atop)",
        "POTFW",
        "TC",
        0.9,
    ),
    _way(
        "employment",
        "work employed joined",
        "WorksAt",
        "works? (?:at|for)|worked (?:at|for)|working (?:at|for)|employed (?:at|by)|joined",
        "P",
        "O",
        0.95,
    ),
    _way("employment", "at from", "WorksAt", "(?:(?:is|was) (?:an?|the) (?:[\\w-]+ ){1,3})?(?:at|from)", "P", "O", 0.9),
    _way("employer-s-person", "'s", "WorksAt", "'s(?: [\\w-]+){0,2}", "O", "P", 0.85, turned=True),
    _way(
        "employer-person",
        "engineer developer researcher employee founder cto ceo contractor",
        "WorksAt",
        "(?:engineer|developer|researcher|employee|founder|cto|ceo|contractor)s?",
        "O",
        "P",
        0.85,
        turned=True,
    ),
    _way(
        "passive-creation",
        "by",
        "Created",
        f"{_BE}(?:originally |first )?(?:{_BUILT_BY}) by",
        "TCFO",
        "POW",
        0.9,
        turned=True,
    ),
    _way(
        "creator",
        "creator author maintainer inventor founder developer",
        "Created",
        "(?:is |was )?(?:the )?(?:creator|author|maintainer|inventor|founder|developer) of",
        "PO",
        "TCFO",
        0.9,
    ),
    _way(
        "creation",
        "created built buil wrote develop made design author invent found releas publish introduc start "
        "creat writ mak maintain implemented ship",
        "Created",
        f"{_BUILT}|builds?|creates?|writes?|develops?|makes|maintains|maintain|implemented|building|ships|shipped",
        "POW",
        "TCF",
        0.9,
    ),
    _way(
        "implementation",
        "implement conforms provides",
        "Implements",
        "implements?|conforms to|is an? (?:\\w+ )?implementation of|provides an? implementation of",
        "TCFW",
        "TC",
        0.9,
    ),
    _way(
        "part",
        "part component module plugin subproject submodule member feature belongs lives ships included "
        "bundled shipped contained",
        "PartOf",
        f"{_BE}(?:an? )?(?:part|component|module|plugin|subproject|submodule|member|feature) (?:of|for|in)|belongs to"
        f"|lives in|ships with|{_BE}(?:included in|bundled with|shipped with|contained in)",
        "TCFO",
        "TCFOW",
        0.85,
    ),
    _way(
        "whole",
        "contain include consists comprises bundle",
        "PartOf",
        "contains?|includes?|consists of|comprises|bundles?",
        "TCFOW",
        "TCF",
        0.8,
        turned=True,
    ),
    _way(
        "replacement",
        "replace supersede obsoletes",
        "Supersedes",
        "replaces|supersedes|replaced|superseded|obsoletes",
        "TCF",
        "TCF",
        0.9,
    ),
    _way(
        "passive-replacement",
        "replaced superseded deprecated dropped retired abandoned",
        "Supersedes",
        f"{_BE}(?:replaced|superseded) (?:by|with)|{_BE}(?:deprecated|dropped|retired|abandoned) (?:for|in favou?r of)",
        "TCF",
        "TCF",
        0.9,
        turned=True,
    ),
    _way(
        "conflict",
        "conflict clash breaks work incompatible compatible",
        "ConflictsWith",
        "conflicts? with|conflicted with|clash(?:es|ed)? with|breaks with|(?:does|do|did) (?:not|n't) work with"
        "|(?:is|are|was|were) (?:\\w+ly )?(?:incompatible|not compatible|n't compatible) with",
        "TCF",
        "TCF",
        0.9,
    ),
    _way(
        "relation",
        "related similar alternative compared inspired compatible integrates connects talks communicates "
        "relates interacts complements",
        "RelatesTo",
        f"{_BE}(?:related to|similar to|an alternative to|compared (?:to|with)|inspired by|compatible with)"
        "|integrates with|connects to|talks to|communicates with|relates to|interacts with|complements",
        "TCFO",
        "TCFO",
        0.6,
    ),
)
# Ways in which both names stand after the verb.
_MOVED = re.compile(
    rf" (?:(?:replac(?:ed?|es|ing)|swapp?(?:ed|ing)?|deprecat(?:ed|ing)) (?:{_FILL}){{0,3}}?(?P<old>{_LIST})"
    rf" (?:{_FILL}){{0,2}}?(?:with|by|for|in favou?r of)"
    rf"|(?:migrat(?:ed?|es|ing)|mov(?:ed?|ing)|switch(?:ed|ing)?|port(?:ed|ing)?|upgrad(?:ed?|ing)"
    rf"|chang(?:ed|ing)|went|converted) (?:(?!not\b)[\w§'-]+ ){{0,4}}?from (?:{_FILL}){{0,3}}?(?P<from>{_LIST})"
    rf" (?:over )?to"
    rf"|dropped (?:{_FILL}){{0,2}}?(?P<dropped>{_LIST}) (?:for|in favou?r of)) (?:{_FILL}){{0,3}}?(?P<new>{_LIST})"
)
_MOVING = re.compile(
    r" (?:replac|swap|deprecat|migrat|mov|switch|port|upgrad|chang|went|converted|dropped|instead|rather|in place)"
)
_MOVED_TO = re.compile(
    rf" (?:switched|moved|migrated) to (?:{_FILL}){{0,3}}?(?P<new>{_LIST}) from (?:{_FILL}){{0,3}}?(?P<old>{_LIST})"
)
_INSTEAD = re.compile(rf" (?P<new>{_LIST}) (?:instead of|rather than|in place of) (?:{_FILL}){{0,2}}?(?P<old>{_LIST})")
_TOGETHER = re.compile(
    rf" ({_ONE}) and (?:the )?({_ONE})(?: versions?)? (?:conflict|clash|are (?:\w+ly )?(?:incompatible|in conflict)"
    rf"|(?:do not|do n't|can not|cannot) work together)(?= )"
)
_OF_PERSON = re.compile(r" (§\d+P)(?: (?:from|at|of)| ,(?: [\w-]+){1,4} at| \() (?:the )?(§\d+O)")


def relationships(
    tokens: Sequence[Token],
    entities: Sequence[tuple[int, ExtractedEntity]],
    text: str,
) -> Iterator[ExtractedRelationship]:
    """What one sentence states. Entities come with their places in the list of all."""
    if len(entities) < 2 or tokens[-1].text == "?":
        return
    read = _read(tokens, entities)
    start, end = tokens[0].start, tokens[-1].end
    evidence = " ".join(text[start : min(end, start + _EVIDENCE)].split())
    types = {number: _LETTER[entity.type] for number, entity in entities}
    found: dict[tuple[int, int, RelationshipType], ExtractedRelationship] = {}
    for clause in _CLAUSE.split(read):
        for source, target, way, confidence, name in _stated(f" {clause.strip()} "):
            if source == target or (source, target, way) in found:
                continue
            if way == "Supersedes" and types.get(source) != types.get(target):
                continue
            found[source, target, way] = ExtractedRelationship(
                source, target, way, confidence, f"pattern:{name}", evidence
            )
    strong = {frozenset(key[:2]) for key in found if key[2] != "RelatesTo"}
    yield from (row for key, row in found.items() if key[2] != "RelatesTo" or frozenset(key[:2]) not in strong)


def _read(tokens: Sequence[Token], entities: Sequence[tuple[int, ExtractedEntity]]) -> str:
    """The sentence with a sign for each name: its place in the list, and a letter for its type."""
    words: list[str] = []
    waiting = list(entities)
    for token in tokens:
        while waiting and waiting[0][1].end <= token.start:
            waiting.pop(0)
        if waiting and token.end > waiting[0][1].start:
            number, entity = waiting[0]
            letter = _PROJECT if entity.method == STANDS_FOR_PROJECT else _LETTER[entity.type]
            sign = f"§{number}{letter}"
            if not words or words[-1] != sign:
                words.append(sign)
        else:
            words.append(token.text.lower().replace("’", "'").replace("§", "$"))
    read = " ".join(word for word in words if word not in ("`", '"', "“", "”", "*", "**", "_"))
    return f" {read.strip()} "


def _stated(clause: str) -> Iterator[tuple[int, int, RelationshipType, float, str]]:
    if clause.count("§") < 2:
        return
    for match in _TOGETHER.finditer(clause):
        both = [(a, b) for a in _numbers(match[1], "TCF") for b in _numbers(match[2], "TCF")]
        yield from ((a, b, "ConflictsWith", 0.9, "conflict") for a, b in both)
    for match in _OF_PERSON.finditer(clause):
        yield from (
            (a, b, "WorksAt", 0.9, "person-of") for a in _numbers(match[1], "P") for b in _numbers(match[2], "O")
        )
    taken: list[tuple[int, int]] = []
    moved = _MOVING.search(clause) is not None
    for pattern, confidence in ((_MOVED, 0.9), (_MOVED_TO, 0.9), (_INSTEAD, 0.7)) if moved else ():
        for match in pattern.finditer(clause):
            before = clause[: match.start()]
            if _DENIED.search(before) or _DOUBTED.search(before):
                continue
            parts = match.groupdict()
            old = next(parts[name] for name in ("old", "from", "dropped") if parts.get(name))
            taken.append(match.span())
            for new in _numbers(parts["new"], "TCF"):
                yield from ((new, gone, "Supersedes", confidence, "move") for gone in _numbers(old, "TCF"))
    subject = ""  # of the verb before, for the next one
    spent = 0
    for start, end, way in _verbs(clause):
        if start < spent or any(first <= start and end <= last for first, last in taken):
            continue
        before = clause[:start]
        after = _AFTER.match(clause, end)
        own = _BEFORE.search(before)
        if own:
            subject = own[1]
        elif not _CARRIED.search(before):
            subject = ""
        if not subject or not after or _DENIED.search(before) or _DOUBTED.search(before):
            continue
        if way.name == "creation" and not _ALONE.match(clause, after.end()):
            continue  # who built TypeScript tooling did not build TypeScript
        pairs = [(a, b) for a in _numbers(subject, way.before) for b in _numbers(after[1], way.after)]
        if pairs:
            spent = end
        for one, other in pairs:
            source, target = (other, one) if way.turned else (one, other)
            yield source, target, way.type, way.confidence, way.name


def _verbs(clause: str) -> list[tuple[int, int, _Way]]:
    """All phrases in the clause that may join names, in order; of those at one place, the longer first."""
    words = clause.split()
    ways = [way for way in _WAYS if any(word.startswith(way.stems) for word in words)]
    found = [(match.start(), match.end(), way) for way in ways for match in way.phrase.finditer(clause)]
    return sorted(found, key=lambda row: (row[0], -row[1]))


def _numbers(names: str, allowed: str) -> list[int]:
    return [int(sign[1:-1]) for sign in re.findall(_ONE, names) if sign[-1] in allowed]
