"""The verdict on a claim: the checks that apply, the probability that the claim model gives them, and the reason."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from ....core.config import Settings
from ....core.errors import ConfigurationError, CortexError
from ....worktree.test_reports import RunReport
from ..checks.bindings import (
    check_bindings,
    check_counts,
    check_guards,
    check_order,
    check_parameters,
)
from ..checks.changes import (
    LAST_COMMIT,
    check_changelog,
    check_changes,
    check_commits,
    check_moves,
    find_scope,
    is_rename,
)
from ..checks.check import CHECK_NAMES, Check, Evidence, negate_checks
from ..checks.environment import check_environment, check_libraries
from ..checks.excerpts import choose_passages
from ..checks.names import NamedSymbol, check_files, check_lines, check_names, resolve
from ..checks.relations import check_relations
from ..checks.routes import check_routes, check_status
from ..checks.scene import Scene
from ..checks.text import RelatedMemory, check_memories, check_text
from ..checks.traits import check_traits
from ..checks.values import (
    check_dependencies,
    check_earlier_value,
    check_no_dependencies,
    check_replacement,
    check_runtimes,
    check_tests,
    check_versions,
)
from ..claims.claims import Claim
from ..claims.phrases import is_absent, is_lacking
from ..claims.verbs import CHANGES
from ..index.lookup import Lookup
from ..verification import ACCEPTED, REJECTED, Finding, Verdict
from ..words import distinctive_words, load_pattern, load_words
from .answers import JudgeAnswer
from .support import LogisticModel, read_weights

if TYPE_CHECKING:
    from ....core.llm.client import LanguageModel

__all__ = [
    "FEATURES", "NOT_INDEXED", "ClaimModel", "Judge", "JudgeAnswer", "Question", "claim_features", "claim_passages",
    "default_claim_model", "judge_claim", "judge_open_findings", "open_judge",
]  # fmt: skip

_MOST_OPEN = 20  # claims given to a judge
_LONGEST = 3_000
_SHOWN = 3
NOT_INDEXED = "the project is not fully indexed yet"
# Checks that a thing is there. They read the relation only of a claim that says no more than that.
_PRESENCE = frozenset(("file", "present", "defined", "placed", "used", "known"))
# Checks whose answer no condition in the claim changes: what they make less likely than not is refuted.
_COMPARED = frozenset(("changelog", "count", "line", "relation", "signature", "tests", "value", "version"))
_UNSURE, _REFUTED = 0.5, 0.29
_OF_CHANGES = frozenset(("touched", "change", "gone"))
# Checks that find the place and say how likely the claim is, and never make it supported.
_ONLY_WORDS = frozenset(("words", "detail"))
_PROSE = frozenset(("documented", "message", "memory"))
_SAID = 0.75  # how well prose must support a claim
_UNPROVEN = 0.65  # the highest probability of a claim whose relation no check has read
# The checks in the order in which their evidence is shown, for claims of change and for all others.
_FIRST_CHANGED = ("gone", "placed", "defined", "change", "touched", "value", "version", "dependency", "commit", "tests")
_FIRST = (
    "raises", "catches", "returns", "inherits", "calls", "signature", "count", "value", "version", "relation", "member",
    "guard", "order", "library", "setting", "line", "tests", "dependency", "placed", "used", "defined", "change",
    "touched", "moved", "gone", "changelog", "message", "commit", "present", "file", "known", "memory", "documented",
    "detail", "words",
)  # fmt: skip


def judge_claim(
    claim: Claim, lookup: Lookup, reports: Sequence[tuple[str, RunReport]] = (), memories: Sequence[RelatedMemory] = ()
) -> Finding:
    """Check one claim against the project."""
    scene = Scene(claim, resolve(claim, lookup), lookup)
    checks = _run_checks(scene, reports, memories)
    if claim.type == "test_result" and not any(check.name == "tests" for check in checks):
        reason = "no test report was found" if not reports else "the report does not say"
        return Finding(claim, "not checkable", 0.5, (), reason, tuple(checks))
    if not checks:
        return Finding(claim, "not checkable", 0.5, (), _why_none(lookup))
    bare = is_bare(scene, spare=1 if claim.type in CHANGES else 0)
    if bare and any(one.holds and one.name in _OF_CHANGES for one in checks):
        # The history itself says more than an entry that shares some words with the claim.
        checks = [one for one in checks if one.holds or one.name != "changelog"]
    features = claim_features(checks, claim, bare)
    probability = default_claim_model().probability(features)
    read = _relation_checks(scene, checks, bare)
    if not read:
        probability = min(probability, _UNPROVEN)
        if not any(_refutes(check) for check in checks):
            probability = max(probability, REJECTED + probability / 7)  # silence rejects nothing
    if probability < _UNSURE and any(_refutes(check) and _is_exact(check, bare) for check in checks):
        probability = min(probability, _REFUTED)
    verdict = _verdict(checks, probability, bool(read))
    shown = _ordered(claim, read if verdict == "supported" else checks, verdict == "supported")
    if verdict in ("unverified", "not found"):
        # What speaks against it, then the best passage.
        shown = [*(one for one in shown if one.name not in _DEGREES), *(one for one in checks if one.name == "words")]
    places = _places(scene, shown, verdict)
    reason = _reason(scene, checks, verdict)
    return Finding(claim, verdict, round(probability, 4), places[:_SHOWN], reason, tuple(checks), features=features)


def _relation_checks(scene: Scene, checks: Sequence[Check], bare: bool) -> list[Check]:
    """The checks that hold and have read what the claim says."""
    claim = scene.claim
    # What is not there has no place.
    read = [one for one in checks if one.holds and (one.evidence or claim.negated) and reads_relation(one, bare)]
    if names_time(claim) or relates_names(scene) or claim.type in CHANGES:
        # That they are there does not say since when, by whose work, nor what one has to do with the other.
        read = [one for one in read if one.name not in _PRESENCE]
    scope = find_scope(claim, scene.lookup)
    if scope is not None and not scope.is_release:
        # What bears the claim out is what this commit did; that it is there says no more than that.
        own = [one for one in read if one.evidence is not None and one.evidence.commit == scope.id]
        read = [one for one in own if one.name != "commit" or claim.type in ("exists", "reference")]
    if any(not check.holds and check.name in _PRESENCE for check in checks):
        read = []  # what it names is not there
    if any(not check.holds and check.name in _OF_CHANGES for check in checks):
        read = [one for one in read if one.name != "message"]  # a message tells less than the change itself
    if _FROM_TO.search(claim.text):
        read = [
            one for one in read if one.name not in ("dependency", "version")
        ]  # which one it had before was not read
    if scene.numbers and any(one.name == "detail" and not one.holds for one in checks):
        read = [one for one in read if one.name in _COMPARED]  # a number that is not there may be what is wrong
    if not _OF_PACKAGES.search(claim.text):
        read = [one for one in read if one.name != "dependency"]  # a package that is there may be used in any way
    return read


def _places(scene: Scene, shown: Sequence[Check], verdict: Verdict) -> tuple[Evidence, ...]:
    """The places of the checks that are shown, each once."""
    found_at: dict[str, Evidence] = {}
    is_missing = bool(shown) and shown[0].name in ("defined", "dependency", "placed") and not _at_home(shown[0], scene)
    if verdict == "contradicted" and is_missing:
        # What is missing has no place: the passage where it would be, then the nearest name.
        named = choose_passages(scene, within=scene.found.paths) if scene.found.paths else []
        best = (named or choose_passages(scene))[:1]
        found_at = {(one := Evidence("line", row.path, row.first, end_line=row.last)).location: one for row in best}
    for check in shown:
        if check.evidence is not None:
            found_at.setdefault(check.evidence.location, check.evidence)
    return tuple(found_at.values())


def _at_home(check: Check, scene: Scene) -> bool:
    """Whether a check that fails shows where the thing itself is, and the claim says no more than where that is."""
    if check.name == "placed" and not is_bare(scene):
        return False
    return check.evidence is not None and not check.reason.startswith("no symbol")


def is_bare(scene: Scene, spare: int = 0) -> bool:
    """Whether a claim says nothing of the names in it but that they are there: "`f` resides in a.py".

    `spare` words more are allowed: "added the `f` helper".
    """
    claim = scene.claim
    if any(mention.kind == "number" and not _ORDINAL.match(mention.text) for mention in claim.mentions):
        return False
    dated = {mention.text.strip("`") for mention in claim.mentions if mention.kind in ("commit", "version")}
    if any(_LITERAL.match(item.text) and item.text not in dated for item in scene.objects):
        return False  # "`f` is `'x'`" says what it is
    if scene.condition[0] in ("when", "if", "unless", "while", "until"):
        return False
    if claim.type == "exists" and claim.negated:
        return True  # "there is no `f` anywhere"
    named = {stem for item in scene.objects for stem in distinctive_words(item.text)}
    named |= {stem for symbol in scene.found.names for stem in distinctive_words(symbol.name)}
    numbers = {
        stem for one in claim.mentions if one.kind in ("number", "version") for stem in distinctive_words(one.text)
    }
    text = LAST_COMMIT.sub(" ", _CALLED.sub(" ", claim.text))
    for mention in claim.mentions:
        text = text.replace(mention.text, " ") if mention.kind in ("file", "line", "version", "commit") else text
    known = named | numbers | _OF_PRESENCE | (_OF_CHANGE if names_time(claim) else frozenset())
    is_gone = not any(symbol.defined for symbol in scene.found.names)
    known |= _OF_PAST if is_gone and _PAST.search(claim.text) else frozenset()
    return sum(word not in known for word in distinctive_words(text)) <= spare


def names_time(claim: Claim) -> bool:
    """Whether a claim says when something was so: in a commit or a release."""
    return any(mention.kind in ("commit", "version") for mention in claim.mentions)


def relates_names(scene: Scene) -> bool:
    """Whether a claim says something of one name by another: "`C` holds `f`", unlike "`f` and `g` are in a.py"."""
    return not scene.claim.negated and any(
        distinctive_words(scene.text[left.at + len(left.name) : right.at])
        and not (_has_member(left, right) or _has_member(right, left))
        for left, right in pairwise(scene.found.names)
    )


def _has_member(owner: NamedSymbol, member: NamedSymbol) -> bool:
    return any(f".{one.qualified}".endswith(f".{owner.last}.{member.last}") for one in member.defined)


_PAST = load_pattern("checks", "past")
_OF_PACKAGES = re.compile(
    r"\b(?:depend|requir|need|install|pin(?:s|ned)?\b|list|extra|bundl|manifest|vendor|add|remov|drop|upgrad|bump"
    r"|us(?:es?|ed|ing)\b|with\b|by\b|via\b|through\b|packag|modul|librar)|\d",
    re.I,
)
_FROM_TO = re.compile(r"\bfrom\s+\S*\d\S*\s+to\s+\S*\d", re.I)
_LITERAL = re.compile(r"[\"'\d\[{(-]")
_CALLED = re.compile(r"\b(?:called|named|titled)\s+(?=`|\S*[\w)][._/(]\w*)")
_OF_CHANGE = load_words("checks", "change_words")
_OF_PAST = load_words("checks", "past_words")
_ORDINAL = re.compile(r"(?:first|second|third|once|twice)\b", re.I)
_OF_PRESENCE = load_words("checks", "presence_words") | load_words("checks", "work_words") - load_words(
    "checks", "act_words"
)


def reads_relation(check: Check, bare: bool) -> bool:
    """Whether a check has read what the claim asserts, and not only that its names are there."""
    if check.name in _ONLY_WORDS:
        return False
    if check.name in _PRESENCE:
        return bare and check.core and check.name not in ("known", "file")
    if check.name in _PROSE:
        return check.sure >= _SAID
    # That something was changed or released does not prove what the claim says was done to it.
    is_change = check.name == "commit" or check.name in _OF_CHANGES
    is_release = check.evidence is not None and check.evidence.kind == "log"
    return bare or not (is_change or is_release)


def _run_checks(
    scene: Scene, reports: Sequence[tuple[str, RunReport]] = (), memories: Sequence[RelatedMemory] = ()
) -> list[Check]:
    """All checks that apply to a claim. While the index is incomplete, a missing thing refutes nothing."""
    claim, lookup = scene.claim, scene.lookup
    checks = list(_structural(scene, reports))
    if claim.negated and claim.type not in CHANGES:
        named = len(scene.found.names) + len(scene.found.files)
        checks = negate_checks(checks, of_presence=claim.type == "exists" and is_absent(claim.text, named))
        if named == 1 and is_lacking(claim.text):
            # What it is missing from was not read, and something else may have it.
            checks = [one for one in checks if one.holds or one.name not in _PRESENCE]
    if not lookup.state.complete:
        checks = [check for check in checks if check.holds or check.evidence is not None]
    if claim.type != "test_result":
        # What the changelog says was read with its version; its words alone say less.
        known = any(check.name == "changelog" for check in checks)
        checks += [check for check in check_text(scene) if not known or check.name in _ONLY_WORDS]
    checks += check_memories(claim, memories)
    return checks


def _structural(scene: Scene, reports: Sequence[tuple[str, RunReport]]) -> Iterator[Check]:
    claim, found, lookup = scene.claim, scene.found, scene.lookup
    if claim.type == "test_result":
        yield from check_tests(claim, reports)
        return
    removed = claim.type == "removed"
    related: list[Check] = []
    renamed = is_rename(claim, found)
    if not removed:
        if found.names or not renamed:
            yield from check_files(claim, found, lookup)
        if not renamed:
            yield from check_names(claim, found, lookup)
        related = [] if _PAST.search(claim.text) else list(_behaviour(scene))
        yield from related
    yield from check_lines(claim, found, lookup)
    yield from check_commits(claim, lookup)
    changed = [*check_changes(claim, found, lookup), *check_replacement(claim, found, lookup)]
    yield from changed
    yield from check_earlier_value(claim, found, lookup)
    without = list(check_no_dependencies(claim, found, lookup))
    yield from without
    packages = (
        []
        if without or _PAST.search(claim.text) or any(one.name == "relation" for one in related)
        else list(check_dependencies(claim, found, lookup))
    )
    yield from packages
    runtimes = list(check_runtimes(claim, found, lookup))
    yield from runtimes
    if not packages and not runtimes and not changed:
        yield from check_versions(claim, found, lookup)
    if claim.type not in ("exists", "reference") or names_time(claim):
        yield from check_changelog(claim, lookup)
        yield from check_moves(claim, lookup)


def _behaviour(scene: Scene) -> Iterator[Check]:
    """The checks that read what a definition does."""
    answered = [*check_routes(scene), *check_status(scene)]
    yield from answered
    for check in (
        check_relations,
        check_traits,
        check_parameters,
        *(() if answered else (check_bindings,)),
        check_counts,
        check_libraries,
        check_environment,
        check_guards,
        check_order,
    ):
        yield from check(scene)


def _why_none(lookup: Lookup) -> str:
    if lookup.sources.narrowed:
        return "nothing in the given sources mentions it"
    return NOT_INDEXED if not lookup.state.complete else "nothing to look up"


def _is_exact(check: Check, bare: bool) -> bool:
    """Whether a check compares the very thing that the claim states, and not a part of what it says."""
    is_listed = check.name == "dependency" and check.evidence is not None
    return is_listed or check.name in _COMPARED or (bare and check.core and check.name in _PRESENCE | _OF_CHANGES)


def _refutes(check: Check) -> bool:
    return not check.holds and check.name not in _DEGREES


def _verdict(checks: Sequence[Check], probability: float, read: bool) -> Verdict:
    if probability >= ACCEPTED and read:
        return "supported"
    if any(_refutes(check) for check in checks) and probability < REJECTED:
        return "contradicted"
    return "unverified" if any(check.evidence is not None for check in checks) else "not found"


def _ordered(claim: Claim, checks: Sequence[Check], holding: bool) -> list[Check]:
    order = (*_FIRST_CHANGED, *_FIRST) if claim.type in CHANGES else _FIRST
    return sorted((one for one in checks if one.holds == holding), key=lambda one: order.index(one.name))


def _reason(scene: Scene, checks: Sequence[Check], verdict: Verdict) -> str:
    """One sentence: what was read, what is there instead, or that nothing speaks of it."""
    claim = scene.claim
    if verdict == "unverified":
        failed = [one for one in _ordered(claim, checks, False) if one.name not in _DEGREES]
        if failed:
            return failed[0].reason
        there = next((one.reason for one in checks if one.holds and one.name in _PRESENCE and one.evidence), "")
        return f"unverified: {there}; the rest cannot be checked" if there else "unverified: no check reads this"
    wanted = _ordered(claim, checks, verdict == "supported")
    specific = [one for one in wanted if one.name not in _DEGREES] or wanted
    return specific[0].reason if specific else ""


# The logistic model over which checks hold and which fail. `train_grounding.py` makes `claim_model.json` from
# labelled claims about other projects than those it is measured on.

# A matter of degree, whether it holds or not.
_DEGREES = frozenset(("words", "memory", "detail", "documented", "message"))
FEATURES: tuple[str, ...] = (
    *(f"{name}_{way}" for name in CHECK_NAMES if name not in _DEGREES for way in ("holds", "fails")),
    *sorted(_DEGREES), "details_missing", "several_fail", "all_hold", "denied", "universal", "named",
)  # fmt: skip
_UNIVERSAL = load_pattern("checks", "universal")


class ClaimModel(LogisticModel):
    @classmethod
    def from_json(cls, text: str) -> ClaimModel:
        return cls(*read_weights(json.loads(text), FEATURES))


@lru_cache(maxsize=1)
def default_claim_model() -> ClaimModel:
    """The model of the package."""
    return ClaimModel.from_json(
        resources.files("cortex_py.parts.verify.judges").joinpath("claim_model.json").read_text("utf-8")
    )


def claim_features(checks: Sequence[Check], claim: Claim, bare: bool) -> dict[str, float]:
    """The features by name: for each check the highest degree to which it holds and fails, and how they combine.

    That a thing is there counts for a claim that says no more than that.
    """
    found = dict.fromkeys(FEATURES, 0.0)
    for check in checks:
        if check.name in _DEGREES:
            found[check.name] = max(found[check.name], check.sure)
            continue
        if check.holds and not reads_relation(check, bare):
            continue
        key = f"{check.name}_{'holds' if check.holds else 'fails'}"
        found[key] = max(found[key], check.sure)
    plain = [check for check in checks if check.name not in _DEGREES]
    read = [check for check in plain if not check.holds or reads_relation(check, bare)]
    found["details_missing"] = float(any(check.name == "detail" and check.sure < 1 for check in checks))
    found["several_fail"] = float(sum(not check.holds for check in plain) > 1)
    found["all_hold"] = float(any(check.holds for check in read) and all(check.holds for check in read))
    found["denied"] = float(claim.negated)
    found["universal"] = float(_UNIVERSAL.search(claim.text) is not None)
    found["named"] = float(any(mention.kind in ("symbol", "file") for mention in claim.mentions))
    return found


# A second look, by a model that the user supplies, at the claims that the checks leave open.


@dataclass(frozen=True, slots=True)
class Question:
    """A claim, and the passages to judge it by."""

    claim: str
    passages: tuple[str, ...]
    places: tuple[Evidence, ...] = ()


class Judge(Protocol):
    """Returns for each question how likely the passages support the claim; None if it cannot say."""

    @property
    def name(self) -> str: ...

    def judge(self, questions: Sequence[Question]) -> Sequence[JudgeAnswer | float | None]: ...


def judge_open_findings(findings: Sequence[Finding], judge: Judge, lookup: Lookup) -> tuple[list[Finding], str]:
    """Ask the judge about the open findings; returns all findings, and a note if the judge failed."""
    open_ones = [
        (place, question)
        for place, finding in enumerate(findings)
        if _is_open(finding) and (question := _question(finding, lookup)).passages
    ][:_MOST_OPEN]
    result = list(findings)
    if not open_ones:
        return result, ""
    try:
        answers = judge.judge([question for _, question in open_ones])
    except CortexError as error:
        # The verdicts of the checks stand without the judge.
        return result, f"The claims left open were not judged by {judge.name}: {error}"
    for (place, question), answer in zip(open_ones, answers, strict=True):
        if answer is not None:
            given = answer if isinstance(answer, JudgeAnswer) else JudgeAnswer(answer)
            result[place] = _judged(findings[place], question, given, judge.name)
    return result, ""


def _is_open(finding: Finding) -> bool:
    return finding.verdict in ("not found", "unverified")


def _judged(finding: Finding, question: Question, answer: JudgeAnswer, method: str) -> Finding:
    probability = round(min(1.0, max(0.0, answer.probability)), 4)
    verdict: Verdict = (
        "supported" if probability >= ACCEPTED else "contradicted" if probability < REJECTED else "unverified"
    )
    place = question.places[answer.passage] if answer.passage is not None and question.places else None
    evidence = (place, *finding.evidence)[:_SHOWN] if place is not None else finding.evidence
    reason = f"{method} read {place.location}" if place is not None else f"{method} read the passages"
    return replace(finding, probability=probability, verdict=verdict, method=method, evidence=evidence, reason=reason)


def claim_passages(claim: Claim, lookup: Lookup) -> list[Evidence]:
    """The places of the passages that a judge gets for a claim."""
    return list(_question(Finding(claim, "unverified", 0.5, (), ""), lookup).places)


def _question(finding: Finding, lookup: Lookup) -> Question:
    """A claim with the passages that bear on it, each under its place."""
    scene = Scene(finding.claim, resolve(finding.claim, lookup), lookup)
    shown = [(f"{one.path} lines {one.first}-{one.last}", Evidence("line", one.path, one.first, end_line=one.last))
             for one in choose_passages(scene)]  # fmt: skip
    shown += [(one.location, one) for one in finding.evidence if one.commit is not None][:2]
    texts = [(place, evidence, _excerpt(evidence, lookup)) for place, evidence in shown]
    kept = [(evidence, f"{place}\n{text}") for place, evidence, text in texts if text.strip()]
    return Question(finding.claim.text, tuple(text for _, text in kept), tuple(evidence for evidence, _ in kept))


def _excerpt(evidence: Evidence, lookup: Lookup) -> str:
    """The text around a piece of evidence."""
    if evidence.commit is not None:
        revision = lookup.commit(evidence.commit)
        return f"{revision.subject}\n{revision.body}"[:_LONGEST] if revision else ""
    if evidence.path is None:
        return ""
    at = evidence.line or 1
    return "\n".join(lookup.lines(evidence.path)[at - 1 : evidence.end_line or at])[:_LONGEST]


class ConfiguredJudge:
    """The judge that the settings name, opened when it is first needed and then kept."""

    def __init__(self, settings: Settings, language_model: Callable[[], LanguageModel | None]) -> None:
        self._settings = settings
        self._language_model = language_model
        self._opened: list[Judge | None] = []

    def get(self) -> Judge | None:
        if not self._opened:
            self._opened.append(open_judge(self._settings, self._language_model))
        return self._opened[0]


def open_judge(settings: Settings, language_model: Callable[[], LanguageModel | None]) -> Judge | None:
    """The configured judge, or None if the checks alone decide. This loads no model and sends nothing.

    `language_model` returns the configured language model; it is called only if that is the judge.
    """
    if settings.grounding_judge == "onnx":
        if settings.grounding_model is None:
            raise ConfigurationError(
                "grounding_judge is onnx and grounding_model is not set.",
                remedy="Set grounding_model to the folder of an entailment model in ONNX format.",
                field="grounding_model",
            )
        from .entailment import EntailmentModel

        return EntailmentModel(settings.grounding_model, settings.threads or None)
    if settings.grounding_judge == "llm":
        model = language_model() if settings.llm_provider else None
        if model is None:
            raise ConfigurationError(
                "grounding_judge is llm and no language model is configured.",
                remedy="Set llm_provider and llm_model.",
                field="llm_provider",
            )
        from .llm import LanguageModelJudge

        return LanguageModelJudge(model)
    return None
