"""One claim against the project: the checks that it calls for, what they come to, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..worktree.reports import Report
from .check_changelog import check_changelog
from .check_changes import check_changes, check_commits
from .check_names import check_files, check_lines, check_names
from .check_relations import check_relations
from .check_text import Remembered, check_memories, check_text
from .check_values import check_dependencies, check_tests, check_values, check_versions
from .checks import Check, turned
from .claim_words import CHANGES
from .claims import Claim
from .evidence import Evidence
from .lookup import Lookup
from .resolving import Resolved, resolve
from .verification import ACCEPTED, Finding, Verdict
from .weighing import default_claim_model, features_of

__all__ = ["checks_of", "judge"]

_SHOWN = 3
# A claim that names nothing is never refuted by words that are not found, and hardly proven by those that are.
_WORDS_LEAST, _WORDS_MORE = 0.3, 0.45
_OF_FILES = frozenset(("file", "present", "touched", "commit", "words"))
_TOLD_LEAST, _TOLD_MORE = 0.2, 0.8
_REMEMBERED = 0.8
_UNPROVEN = 0.65  # the most for a claim that nothing can be shown for
# Which check's place a person would want to see first, for claims of change and for all others.
_FIRST_CHANGED = ("gone", "placed", "defined", "change", "touched", "value", "version", "dependency", "commit", "tests")
_FIRST = (
    "value", "version", "relation", "member", "line", "tests", "dependency", "placed", "used", "defined", "change",
    "touched", "gone", "changelog", "commit", "present", "file", "known", "memory", "words",
)  # fmt: skip


def judge(
    claim: Claim,
    lookup: Lookup,
    reports: Sequence[tuple[str, Report]] = (),
    remembered: Sequence[Remembered] = (),
) -> Finding:
    """What the project says of a claim."""
    found = resolve(claim, lookup)
    checks = checks_of(claim, found, lookup, reports, remembered)
    if claim.type == "test_result" and not any(check.name == "tests" for check in checks):
        reason = "no test report was found" if not reports else "the report does not say"
        return Finding(claim, "not checkable", 0.5, (), reason, tuple(checks))
    if not checks:
        return Finding(claim, "not checkable", 0.5, (), _why_none(lookup))
    probability = _probability(claim, checks)
    verdict = _verdict(checks, probability)
    if verdict != "supported":
        probability = min(probability, _UNPROVEN)
    holding = verdict == "supported"
    found_at: dict[str, Evidence] = {}
    for check in _ordered(claim, checks, holding):
        if check.evidence is not None:
            found_at.setdefault(check.evidence.location, check.evidence)
    places = tuple(found_at.values())
    return Finding(
        claim, verdict, round(probability, 4), places[:_SHOWN], _reason(claim, checks, verdict), tuple(checks)
    )


def _probability(claim: Claim, checks: Sequence[Check]) -> float:
    seen = [check for check in checks if check.name != "memory"]
    likely = _from_project(claim, seen) if seen else _WORDS_LEAST
    remembered = max((check.sure for check in checks if check.name == "memory" and check.holds), default=0.0)
    if any(not check.holds and check.name != "words" for check in seen):
        return likely  # what the project says goes before what was noted about it
    return 1 - (1 - likely) * (1 - _REMEMBERED * remembered)


def _from_project(claim: Claim, checks: Sequence[Check]) -> float:
    if all(check.name == "words" for check in checks):
        # Nothing that could be looked up: how much of it is said somewhere makes it more or less believable, no more.
        return _WORDS_LEAST + _WORDS_MORE * max(check.sure for check in checks)
    likely = default_claim_model().probability(features_of(checks, claim.negated))
    told = [check.sure for check in checks if check.name == "words"]
    if told and all(check.name in _OF_FILES for check in checks) and claim.type != "exists":
        # That a file is there and was changed proves nothing about what is said to have been done in it.
        return min(likely, _TOLD_LEAST + _TOLD_MORE * max(told))
    return likely


def checks_of(
    claim: Claim,
    found: Resolved,
    lookup: Lookup,
    reports: Sequence[tuple[str, Report]] = (),
    remembered: Sequence[Remembered] = (),
) -> list[Check]:
    """All that can be looked at for a claim; where not everything was read yet, what is missing proves nothing."""
    checks = list(_structural(claim, found, lookup, reports))
    if claim.negated and claim.type not in CHANGES:
        checks = turned(checks, of_presence=claim.type == "exists")
    if not lookup.standing.complete:
        checks = [check for check in checks if check.holds or check.evidence is not None]
    checks += check_text(claim, found, lookup)
    checks += check_memories(claim, remembered)
    return checks


def _structural(
    claim: Claim, found: Resolved, lookup: Lookup, reports: Sequence[tuple[str, Report]]
) -> Iterator[Check]:
    if claim.type == "test_result":
        yield from check_tests(claim, reports)
        return
    removed = claim.type == "removed"
    related: list[Check] = []
    if not removed:
        yield from check_files(claim, found, lookup)
        yield from check_names(claim, found, lookup)
        related = list(check_relations(claim, found, lookup))
        yield from related
    yield from check_lines(claim, found, lookup)
    yield from check_commits(claim, lookup)
    changed = list(check_changes(claim, found, lookup))
    yield from changed
    if not removed:
        yield from check_values(claim, found, lookup)
    packages = [] if any(one.name == "relation" for one in related) else list(check_dependencies(claim, found, lookup))
    yield from packages
    if not packages:
        if not changed:
            yield from check_versions(claim, found, lookup)
        yield from check_changelog(claim, found, lookup)


def _why_none(lookup: Lookup) -> str:
    if lookup.sources.narrowed:
        return "nothing in the given sources speaks of it"
    return "the project was not read to the end yet" if not lookup.standing.complete else "nothing to look up"


def _verdict(checks: Sequence[Check], probability: float) -> Verdict:
    if probability >= ACCEPTED and any(check.holds and check.evidence for check in checks):
        return "supported"
    failed = any(not check.holds and check.name not in ("words", "memory") for check in checks)
    return "contradicted" if failed and probability < 0.5 else "not found"


def _ordered(claim: Claim, checks: Sequence[Check], holding: bool) -> list[Check]:
    order = (*_FIRST_CHANGED, *_FIRST) if claim.type in CHANGES else _FIRST
    if claim.type == "implemented" and not any(mention.kind == "symbol" for mention in claim.mentions):
        order = ("words", *order)  # the place that says most of it
    return sorted((one for one in checks if one.holds == holding), key=lambda one: order.index(one.name))


def _reason(claim: Claim, checks: Sequence[Check], verdict: Verdict) -> str:
    wanted = _ordered(claim, checks, verdict == "supported")
    telling = [one for one in wanted if one.name != "words"] or wanted
    return (telling if verdict == "not found" else wanted)[0].reason if wanted else ""
