"""`cortex.grounding`: checks whether what a text says is true of this project."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

from ...core.clock import current_limit
from ...core.errors import InvalidInput, LimitExceeded
from ...core.memory.service import Memories
from ...core.security.secrets.secrets import redact
from ...worktree.files.files import FileRef, read_file
from ...worktree.git.repository import Repository
from .checks.check import Evidence
from .checks.text import RelatedMemory, check_memories
from .checks.values import find_reports
from .claims.claims import Claim, read_claims
from .claims.passages import read_passages
from .claims.phrases import confidence
from .contradictions.contradictions import Contradiction, Kind, find_conflict, find_contradictions
from .index.lookup import Lookup
from .index.project_index import IndexState, ProjectIndex
from .judges.judge import NOT_INDEXED, ConfiguredJudge, claim_passages, judge_claim, judge_open_findings
from .review import MemoryReview, review_memories
from .sources import EVERYTHING, Sources, read_sources
from .verification import Finding, Verification, build_verification

__all__ = ["Excerpt", "Grounding"]

_LONGEST = 1_000_000
_READ = 50_000  # characters that are read for claims
_MOST_CLAIMS = 300
_MOST_WITH_MEMORIES = 12  # claims for which memories are recalled
_MEMORIES = 5
_SENTENCES = 40
_SENTENCE = 300  # characters of one sentence of a memory
_READING_SHARE = 0.8
_REVIEW_SECONDS = 60.0  # for reading; with a limit no model is asked
_MOST_CHANGED = 500  # files whose memories are reviewed at once
_AROUND = 12  # lines before and after the one that is shown
_LONGEST_LINE = 400
_MEMORY = 20_000  # characters of a memory that are read

_FindMemories = Callable[[Claim], list[RelatedMemory]]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a file, the first of which has the number `first_line`."""

    path: str
    first_line: int
    lines: tuple[str, ...]


class Grounding:
    """Checks claims against the files, the history and the memories of one project."""

    def __init__(
        self,
        index: Path | None,
        root: Path | None,
        repository: Repository | None,
        memories: Memories,
        judge: ConfiguredJudge,
        key: bytes | None = None,
        home: Path | None = None,
    ) -> None:
        """`index` is the index file of the folder `root`, encrypted with `key`; `home` is the home of Cortex.

        `judge` decides claims that the checks leave open.
        """
        self._root = root
        self._memories = memories
        self._judge = judge
        self._reviewed: dict[str, str] | None = None  # the files as they were at the last review
        self._index = ProjectIndex(index, root, repository, key, home) if index and root else None

    def verify(
        self, text: str, *, evidence_sources: Sequence[str] | None = None, seconds: float | None = None
    ) -> Verification:
        """Check the claims of a text.

        `evidence_sources` limits what counts: paths and patterns, "git log", "memories", "test report". `seconds`
        bounds the time for reading what changed in the project; unread files neither confirm nor refute anything.
        """
        if len(text) > _LONGEST:
            raise LimitExceeded(
                f"The text has {len(text):,} characters.", remedy=f"Give at most {_LONGEST:,}.", field="response_text"
            )
        sources = read_sources(evidence_sources)
        reading = read_claims(_beginning(text))
        claims = reading.claims[:_MOST_CLAIMS]
        notes = [f"Only the first {_READ:,} characters were read."] if len(text) > _READ else []
        if len(reading.claims) > len(claims):
            notes.append(f"Only the first {len(claims)} of {len(reading.claims)} claims were checked.")
        find_memories = cache(lambda claim: self._find_memories(claim, sources))
        findings, more = self._findings(claims, sources, find_memories, seconds)
        contradictions = [*find_contradictions(reading.claims, text), *self._project_contradictions(findings)]
        contradictions += self._memory_contradictions(findings, find_memories)
        return build_verification(
            [_redact_finding(finding) for finding in findings],
            [replace(one, text=_redact(one.text)) for one in reading.uncheckable],
            confidence(text),
            [replace(one, left=_redact(one.left), right=_redact(one.right), reason=_redact(one.reason),
                     source=_redact(one.source)) for one in contradictions],
            [*notes, *map(_redact, more)],
        )  # fmt: skip

    def passages(self, text: str) -> list[Evidence]:
        """The passages of the project that bear on the claims of a text, as a judge would get them."""
        claims = read_claims(_beginning(text)).claims[:_MOST_CLAIMS]
        index = self._index
        if index is None or self._root is None or not self._root.is_dir():
            return []

        def look() -> list[Evidence]:
            lookup = Lookup(index, index.refresh(), EVERYTHING)
            return [place for claim in claims for place in claim_passages(claim, lookup)]

        return index.guarded(look)

    def excerpt(self, path: str, line: int) -> Excerpt:
        """The lines of a file around one, without secrets; only of files that count as evidence."""
        index, root = self._index, self._root
        known = index.marks() if index is not None and root is not None and root.is_dir() else {}
        data = read_file(root, FileRef(path, 0, None)) if root is not None and path in known else None
        if data is None:
            raise InvalidInput(
                f"{path[:200]!r} is no file that claims are compared with.",
                remedy="Give the path of an evidence, below the folder of the project.",
                field="path",
            )
        lines = data.decode("utf-8", "replace").splitlines()
        first = max(0, min(line, len(lines)) - 1 - _AROUND)
        shown = "\n".join(one[:_LONGEST_LINE] for one in lines[first : first + 2 * _AROUND + 1])
        return Excerpt(path, first + 1, tuple(_redact(shown).split("\n")))

    def review_memories(self, stop: Callable[[], bool] = lambda: False, *, changed_only: bool = False) -> MemoryReview:
        """Check the project's memories against its files and history, and mark those they contradict as stale.

        With `changed_only`, only the memories that name files, or definitions of files, that changed since the last
        review.
        """
        index = self._index
        if index is None or self._root is None or not self._root.is_dir():
            return MemoryReview(0, (), ())
        changed = self._changed_names(index) if changed_only else None
        if changed is not None and not changed:
            return MemoryReview(0, (), ())
        sources = ["files", "git log", "test report"]
        return review_memories(
            self._memories,
            lambda text: self.verify(text, evidence_sources=sources, seconds=_REVIEW_SECONDS),
            changed=changed,
            stop=stop,
        )

    def _changed_names(self, index: ProjectIndex) -> set[str]:
        """The names of the files that changed since the last call, and of what they define."""
        index.refresh()
        marks = index.marks()
        before, self._reviewed = self._reviewed, marks
        if before is None:
            return set()
        paths = [path for path in {*marks, *before} if marks.get(path) != before.get(path)]
        defined = index.defined_names(paths[:_MOST_CHANGED])
        return {*(path.rpartition("/")[2] for path in paths), *defined}

    def refresh(self, stop: Callable[[], bool] = lambda: False) -> IndexState | None:
        """Bring the index up to date ahead of the next verification; None without a folder."""
        return self._index.refresh((), stop) if self._index is not None else None

    def close(self) -> None:
        """Close the index file."""
        if self._index is not None:
            self._index.close()

    def _findings(
        self, claims: Sequence[Claim], sources: Sources, find_memories: _FindMemories, seconds: float | None
    ) -> tuple[list[Finding], list[str]]:
        if not claims:
            return [], []
        index, root = self._index, self._root
        if index is None or root is None or not root.is_dir():
            note = "The project folder does not exist: only memories were searched."
            return [_judge_by_memory(claim, find_memories) for claim in claims], [note]
        return index.guarded(lambda: self._judge_all(claims, index, root, sources, find_memories, seconds))

    def _judge_all(
        self,
        claims: Sequence[Claim],
        index: ProjectIndex,
        root: Path,
        sources: Sources,
        find_memories: _FindMemories,
        seconds: float | None,
    ) -> tuple[list[Finding], list[str]]:
        named = [path for claim in claims for path in claim.files]
        words = {one.value.rpartition(".")[2] for claim in claims for one in claim.mentions if one.kind == "symbol"}
        limit = _reading_seconds(seconds)
        state = index.refresh(named, _deadline(limit), limit, words)
        lookup = Lookup(index, state, sources)
        reports = find_reports(root, lookup)
        memories = {claim: find_memories(claim) for claim in _with_memories(claims)}
        findings = [judge_claim(claim, lookup, reports, memories.get(claim, ())) for claim in claims]
        findings = [_checkable(finding, lookup) for finding in findings]
        notes = [f"Nothing matches the source {name!r}." for name in _unmatched(sources, lookup)]
        if not state.complete:
            notes.append("The project is not fully indexed yet: what was not found may still exist.")
        # A caller with a time limit cannot wait for a model.
        if seconds is None and (other := self._judge.get()) is not None:
            findings, note = judge_open_findings(findings, other, lookup)
            notes += [note] if note else []
        return findings, notes

    def _find_memories(self, claim: Claim, sources: Sources) -> list[RelatedMemory]:
        """Stored memories about a claim, without those of an assistant, which prove nothing."""
        if not sources.memories:
            return []
        found = self._memories.related(claim.text[:500], _MEMORIES, filter="kind:note -role:assistant")
        return [RelatedMemory(hit.memory.id, _sentences(hit.memory.content[:_MEMORY])) for hit in found]

    def _project_contradictions(self, findings: Sequence[Finding]) -> list[Contradiction]:
        """The claims that the project contradicts, with the place."""
        return [
            Contradiction(
                finding.claim.text,
                finding.reason,
                "the project says otherwise",
                _contradiction_kind(finding),
                "evidence",
                finding.evidence[0].location if finding.evidence else "",
            )
            for finding in findings
            if finding.verdict == "contradicted"
        ]  # fmt: skip

    def _memory_contradictions(self, findings: Sequence[Finding], find_memories: _FindMemories) -> list[Contradiction]:
        found = []
        for finding in findings[:_MOST_WITH_MEMORIES]:
            for memory in find_memories(finding.claim):
                if (denied := find_conflict(finding.claim, memory.sentences)) is not None:
                    at, reason, kind = denied
                    other = memory.sentences[at]
                    found.append(
                        Contradiction(finding.claim.text, other, reason, kind, "memory", f"Memory: {memory.id}")
                    )
                    break
        return found


def _judge_by_memory(claim: Claim, find_memories: _FindMemories) -> Finding:
    """Judge a claim about a project whose folder is not on this machine."""
    checks = tuple(check_memories(claim, find_memories(claim)))
    best = max((check.sure for check in checks), default=0.0)
    if best < 0.7:
        return Finding(claim, "not checkable", 0.5, (), "the project's folder is not on this machine", checks)
    places = tuple(check.evidence for check in checks if check.evidence)
    return Finding(claim, "supported", round(best, 4), places, checks[0].reason, checks)


_KINDS: dict[str, Kind] = {
    "value": "number",
    "version": "version",
    "tests": "tests",
    "placed": "place",
    "line": "place",
}


def _contradiction_kind(finding: Finding) -> Kind:
    """In what the claim and the project differ, by the first failed check."""
    against_it = (check.name for check in finding.checks if not check.holds)
    return next((_KINDS[name] for name in against_it if name in _KINDS), "existence")


def _beginning(text: str) -> str:
    """The part of a text that is read, up to the end of a line if possible."""
    if len(text) <= _READ:
        return text
    end = text.rfind("\n", _READ // 2, _READ)
    return text[: end if end > 0 else _READ]


def _reading_seconds(seconds: float | None) -> float | None:
    """How long the project may be read: a call with a time limit keeps a part of it for its answer."""
    limit = current_limit()
    if limit is None or limit.left == math.inf:
        return seconds
    left = _READING_SHARE * limit.left
    return left if seconds is None else min(seconds, left)


def _deadline(seconds: float | None) -> Callable[[], bool]:
    if seconds is None:
        return lambda: False
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def _with_memories(claims: Sequence[Claim]) -> set[Claim]:
    """The claims to search memories for: those that name the fewest files and symbols."""
    open_ones = sorted(
        claims, key=lambda claim: (sum(m.kind in ("file", "symbol") for m in claim.mentions), claim.start)
    )
    return set(open_ones[:_MOST_WITH_MEMORIES])


@lru_cache(maxsize=64)  # many claims find the same few memories
def _sentences(text: str) -> tuple[str, ...]:
    spans = [passage for passage in read_passages(text) if passage.kind != "code"]
    return tuple(" ".join(text[one.start : one.end].split())[:_SENTENCE] for one in spans[:_SENTENCES])


def _unmatched(sources: Sources, lookup: Lookup) -> list[str]:
    """The sources that match no file; empty while the index is incomplete."""
    patterns = sources.patterns or () if lookup.state.complete else ()
    return [
        one
        for one in patterns
        if not lookup.on_disk(one) and not any(Sources((one,)).takes(path) for path in lookup.paths)
    ]


def _checkable(finding: Finding, lookup: Lookup) -> Finding:
    """Turn "not found" into "not checkable" if the sources or the index are incomplete and nothing was found."""
    whole = lookup.state.complete and not lookup.sources.narrowed
    if whole or finding.verdict != "not found" or any(check.holds and check.evidence for check in finding.checks):
        return finding
    reason = "nothing in the given sources mentions it" if lookup.state.complete else NOT_INDEXED
    return replace(finding, verdict="not checkable", probability=0.5, evidence=(), reason=reason)


def _redact_finding(finding: Finding) -> Finding:
    """A finding that can be shown and stored: without the secrets of its claim, the files and the history."""
    places = tuple(
        one if one.kind == "memory" else replace(one, detail=_redact(one.detail)) for one in finding.evidence
    )
    checks = tuple(
        replace(
            check,
            reason=_redact(check.reason),
            evidence=check.evidence and replace(check.evidence, detail=_redact(check.evidence.detail)),
        )
        for check in finding.checks
    )
    claim = replace(finding.claim, text=_redact(finding.claim.text))
    return replace(finding, claim=claim, reason=_redact(finding.reason), evidence=places, checks=checks)


def _redact(text: str) -> str:
    return redact(text).text
