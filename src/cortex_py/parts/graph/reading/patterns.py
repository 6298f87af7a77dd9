"""Finds the relationships that a sentence states between its names.

In the sentence each name is replaced by a marker with its type. A verb or phrase (`patterns.json`) connects the names
before it with those after it, if their types fit. Negations, doubts and questions state nothing. "We" means the
project, if the caller names it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....core.graph_values import EntityType, ExtractedEntity, ExtractedRelationship, RelationshipType
from .tokens import WordToken

__all__ = ["STANDS_FOR_PROJECT", "SURE", "relationships"]

_EVIDENCE = 240  # characters of a sentence that are kept
_LETTER: dict[EntityType, str] = {"Person": "P", "Organization": "O", "Technology": "T", "Concept": "C", "File": "F"}
_PROJECT = "W"  # words that mean the project
_UNSURE = "t"  # a name that may be a technology
SURE = 0.5  # the least confidence in a name that is certain
STANDS_FOR_PROJECT = "rule:project"

_ONE = r"§\d+[POTCFWt]"
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
# What may be between a subject and its verb: an origin or a parenthesis.
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
class _Pattern:
    """A way to state a relationship; `is_reversed` if the source follows the phrase."""

    name: str
    stems: tuple[str, ...]  # the clause must have a word with one of these: a quick test
    type: RelationshipType
    phrase: re.Pattern[str]
    before: str
    after: str
    confidence: float
    is_reversed: bool = False


def _read_patterns() -> tuple[_Pattern, ...]:
    table = json.loads(Path(__file__).with_name("patterns.json").read_text("utf-8"))

    def pattern(row: dict[str, Any]) -> _Pattern:
        phrase = row["phrase"]
        for name in ("be", "built_by", "built"):
            phrase = phrase.replace(f"<{name}>", table[name])
        return _Pattern(
            row["name"], tuple(row["stems"].split()), row["type"], re.compile(rf" (?:{phrase})(?= )"),
            row["before"], row["after"], row["confidence"], row["reversed"],
        )  # fmt: skip

    return tuple(map(pattern, table["patterns"]))


_PATTERNS = _read_patterns()
# Patterns with both names after the verb.
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
    tokens: Sequence[WordToken], entities: Sequence[tuple[int, ExtractedEntity]], text: str
) -> Iterator[ExtractedRelationship]:
    """The relationships that one sentence states. Entities come with their indexes in the list of all."""
    if len(entities) < 2 or tokens[-1].text == "?":
        return
    read = _read(tokens, entities)
    start, end = tokens[0].start, tokens[-1].end
    evidence = " ".join(text[start : min(end, start + _EVIDENCE)].split())
    types = {number: _LETTER[entity.type] for number, entity in entities}
    found: dict[tuple[int, int, RelationshipType], ExtractedRelationship] = {}
    for clause in _CLAUSE.split(read):
        for source, target, type, confidence, name in _stated(f" {clause.strip()} "):
            if source == target or (source, target, type) in found:
                continue
            if type == "Supersedes" and types.get(target) not in (types.get(source), "P"):
                continue
            found[source, target, type] = ExtractedRelationship(
                source, target, type, confidence, f"pattern:{name}", evidence
            )
    strong = {frozenset(key[:2]) for key in found if key[2] != "RelatesTo"}
    yield from (row for key, row in found.items() if key[2] != "RelatesTo" or frozenset(key[:2]) not in strong)


def _read(tokens: Sequence[WordToken], entities: Sequence[tuple[int, ExtractedEntity]]) -> str:
    """The sentence with a marker for each name: its index, and a letter for its type."""
    words: list[str] = []
    waiting = list(entities)
    for token in tokens:
        while waiting and waiting[0][1].end <= token.start:
            waiting.pop(0)
        if waiting and token.end > waiting[0][1].start:
            number, entity = waiting[0]
            sign = f"§{number}{_letter(entity)}"
            if not words or words[-1] != sign:
                words.append(sign)
        else:
            words.append(token.text.lower().replace("’", "'").replace("§", "$"))
    read = " ".join(word for word in words if word not in ("`", '"', "“", "”", "*", "**", "_"))
    return f" {read.strip()} "


def _letter(entity: ExtractedEntity) -> str:
    if entity.method == STANDS_FOR_PROJECT:
        return _PROJECT
    return _UNSURE if entity.type == "Technology" and entity.confidence < SURE else _LETTER[entity.type]


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
    if _MOVING.search(clause) is not None:
        yield from _moves(clause, taken)
    yield from _connections(clause, taken)


def _moves(clause: str, taken: list[tuple[int, int]]) -> Iterator[tuple[int, int, RelationshipType, float, str]]:
    """Replacements of one thing by another; the spans that state them are added to `taken`."""
    for moves, confidence in ((_MOVED, 0.9), (_MOVED_TO, 0.9), (_INSTEAD, 0.7)):
        for match in moves.finditer(clause):
            before = clause[: match.start()]
            if _DENIED.search(before) or _DOUBTED.search(before):
                continue
            parts = match.groupdict()
            old = next(parts[name] for name in ("old", "from", "dropped") if parts.get(name))
            taken.append(match.span())
            for new in _numbers(parts["new"], "TCF"):
                yield from ((new, gone, "Supersedes", confidence, "move") for gone in _numbers(old, "TCFP"))


def _connections(
    clause: str, taken: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int, RelationshipType, float, str]]:
    """What verbs connect, outside the spans that are taken."""
    subject = ""  # carried over to the next verb
    spent = 0
    for start, end, pattern in _verbs(clause):
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
        if pattern.name == "creation" and not _ALONE.match(clause, after.end()):
            continue  # building TypeScript tooling is not building TypeScript
        pairs = [(a, b) for a in _numbers(subject, pattern.before) for b in _numbers(after[1], pattern.after)]
        if pairs:
            spent = end
        for one, other in pairs:
            source, target = (other, one) if pattern.is_reversed else (one, other)
            yield source, target, pattern.type, pattern.confidence, pattern.name


def _verbs(clause: str) -> list[tuple[int, int, _Pattern]]:
    """The phrases in the clause that can connect names, in order; at one place the longer first."""
    words = clause.split()
    patterns = [pattern for pattern in _PATTERNS if any(word.startswith(pattern.stems) for word in words)]
    found = [(match.start(), match.end(), pattern) for pattern in patterns for match in pattern.phrase.finditer(clause)]
    return sorted(found, key=lambda row: (row[0], -row[1]))


def _numbers(names: str, allowed: str) -> list[int]:
    letters = allowed + _UNSURE if "T" in allowed else allowed
    return [int(sign[1:-1]) for sign in re.findall(_ONE, names) if sign[-1] in letters]
