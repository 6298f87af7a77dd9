"""`cortex.grounding`: is what a text says true of this project?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ..errors import LimitExceeded
from ..memory.service import Memories
from ..security.secrets import redact
from ..worktree.git import Repository
from .check_text import Remembered, check_memories
from .claims import Claim, read_claims
from .contradictions import Contradiction, Kind, against, inside
from .hedging import confidence
from .judging import judge
from .lookup import Lookup
from .passages import read_passages
from .project_index import ProjectIndex, Standing, index_path
from .rejudging import Judge, rejudge
from .report_finding import find_reports
from .sources import Sources, read_sources
from .verification import Finding, Verification, verification

__all__ = ["Grounding"]

_LONGEST = 1_000_000
_READ = 200_000  # characters that are read for claims: far more than anybody's answer
_MOST_CLAIMS = 300
_MOST_ASKED = 12  # claims for which memories are looked through
_MEMORIES = 5
_SENTENCES = 40


class Grounding:
    """Checks claims against the files, the history and the memories of one project."""

    def __init__(
        self,
        home: Path,
        root: Path | None,
        repository: Repository | None,
        memories: Memories,
        judge: Callable[[], Judge | None] = lambda: None,
    ) -> None:
        """`judge` gives the model for claims that stay open, where one is configured."""
        self._root = root
        self._memories = memories
        self._judge = judge
        self._index = ProjectIndex(index_path(home, root), root, repository) if root is not None else None

    def verify(
        self, text: str, *, evidence_sources: Sequence[str] | None = None, seconds: float | None = None
    ) -> Verification:
        """Check what a text claims.

        `evidence_sources` narrows what may count: paths and patterns, "git log", "memories", "test report". `seconds`
        bounds the time for reading what changed in the project; what was not read by then proves nothing.
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
        findings, more = self._findings(claims, sources, seconds)
        contradictions = [*inside(reading.claims, text), *self._denied(findings)]
        contradictions += self._against_memories(findings, sources)
        return verification(
            [_told(finding) for finding in findings],
            [replace(one, text=_safe(one.text)) for one in reading.uncheckable],
            confidence(text),
            [replace(one, left=_safe(one.left), right=_safe(one.right), reason=_safe(one.reason),
                     source=_safe(one.source)) for one in contradictions],
            [*notes, *map(_safe, more)],
        )  # fmt: skip

    def refresh(self, stop: Callable[[], bool] = lambda: False) -> Standing | None:
        """Read what changed in the project, so that the next verification need not; None without a folder."""
        return self._index.refresh((), stop) if self._index is not None else None

    def close(self) -> None:
        """Let go of the index's file."""
        if self._index is not None:
            self._index.close()

    def _findings(
        self, claims: Sequence[Claim], sources: Sources, seconds: float | None
    ) -> tuple[list[Finding], list[str]]:
        if not claims:
            return [], []
        index, root = self._index, self._root
        if index is None or root is None or not root.is_dir():
            note = "The folder of the project is not there: only memories were looked at."
            return [self._by_memory(claim, sources) for claim in claims], [note]
        return index.guarded(lambda: self._judged(claims, index, root, sources, seconds))

    def _judged(
        self, claims: Sequence[Claim], index: ProjectIndex, root: Path, sources: Sources, seconds: float | None
    ) -> tuple[list[Finding], list[str]]:
        named = [path for claim in claims for path in claim.files]
        standing = index.refresh(named, _until(seconds), seconds)
        lookup = Lookup(index, standing, sources)
        reports = find_reports(root, lookup)
        asked = {claim: self._remembered(claim, sources) for claim in _asked(claims)}
        findings = [_checkable(judge(claim, lookup, reports, asked.get(claim, ())), lookup) for claim in claims]
        notes = [f"Nothing matches the source {name!r}." for name in _unmatched(sources, lookup)]
        if not standing.complete:
            notes.append("The project was not read to the end yet: what was not found may still be there.")
        # Whoever gave a time cannot wait for a model.
        if seconds is None and (other := self._judge()) is not None:
            findings, note = rejudge(findings, other, lookup)
            notes += [note] if note else []
        return findings, notes

    def _by_memory(self, claim: Claim, sources: Sources) -> Finding:
        """A claim about a project whose folder is not here."""
        checks = tuple(check_memories(claim, self._remembered(claim, sources)))
        best = max((check.sure for check in checks), default=0.0)
        if best < 0.7:
            return Finding(claim, "not checkable", 0.5, (), "the project's folder is not on this machine", checks)
        places = tuple(check.evidence for check in checks if check.evidence)
        return Finding(claim, "supported", round(best, 4), places, checks[0].reason, checks)

    def _remembered(self, claim: Claim, sources: Sources) -> list[Remembered]:
        """Stored memories about what a claim says. What an assistant said before proves nothing about it."""
        if not sources.memories:
            return []
        found = self._memories.related(claim.text[:500], _MEMORIES, filter="kind:note -role:assistant")
        return [Remembered(hit.memory.id, _sentences(hit.memory.content)) for hit in found]

    def _denied(self, findings: Sequence[Finding]) -> list[Contradiction]:
        """What the project says against claims, with where it says so."""
        return [
            Contradiction(
                finding.claim.text, finding.reason, "the project says otherwise", _kind(finding), "evidence",
                finding.evidence[0].location if finding.evidence else "",
            )
            for finding in findings
            if finding.verdict == "contradicted"
        ]  # fmt: skip

    def _against_memories(self, findings: Sequence[Finding], sources: Sources) -> list[Contradiction]:
        found = []
        for finding in findings[:_MOST_ASKED]:
            for memory in self._remembered(finding.claim, sources):
                if (denied := against(finding.claim, memory.sentences)) is not None:
                    at, reason, kind = denied
                    other = memory.sentences[at]
                    found.append(
                        Contradiction(finding.claim.text, other, reason, kind, "memory", f"Memory: {memory.id}")
                    )
                    break
        return found


_KINDS: dict[str, Kind] = {
    "value": "number",
    "version": "version",
    "tests": "tests",
    "placed": "place",
    "line": "place",
}


def _kind(finding: Finding) -> Kind:
    """In what a claim and the project differ, by the check that speaks against it."""
    against_it = (check.name for check in finding.checks if not check.holds)
    return next((_KINDS[name] for name in against_it if name in _KINDS), "existence")


def _beginning(text: str) -> str:
    """What is read of a text, up to the end of a line where there is one."""
    if len(text) <= _READ:
        return text
    end = text.rfind("\n", _READ // 2, _READ)
    return text[: end if end > 0 else _READ]


def _until(seconds: float | None) -> Callable[[], bool]:
    if seconds is None:
        return lambda: False
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def _asked(claims: Sequence[Claim]) -> set[Claim]:
    """The claims that memories may tell something of: those that name least of what can be looked up."""
    open_ones = sorted(
        claims, key=lambda claim: (sum(m.kind in ("file", "symbol") for m in claim.mentions), claim.start)
    )
    return set(open_ones[:_MOST_ASKED])


def _sentences(text: str) -> tuple[str, ...]:
    spans = [passage for passage in read_passages(text[:20_000]) if passage.kind != "code"]
    return tuple(" ".join(text[one.start : one.end].split()) for one in spans[:_SENTENCES])


def _unmatched(sources: Sources, lookup: Lookup) -> list[str]:
    """Sources that name no file; where not all files are known yet, that cannot be told."""
    patterns = sources.patterns or () if lookup.standing.complete else ()
    return [
        one
        for one in patterns
        if not lookup.on_disk(one) and not any(Sources((one,)).takes(path) for path in lookup.paths)
    ]


def _checkable(finding: Finding, lookup: Lookup) -> Finding:
    """A finding, unless it rests on nothing that was read or may count: then the claim could not be checked."""
    whole = lookup.standing.complete and not lookup.sources.narrowed
    if whole or finding.verdict != "not found" or any(check.holds and check.evidence for check in finding.checks):
        return finding
    unread = "the project was not read to the end yet"
    reason = "nothing in the given sources speaks of it" if lookup.standing.complete else unread
    return replace(finding, verdict="not checkable", probability=0.5, evidence=(), reason=reason)


def _told(finding: Finding) -> Finding:
    """A finding as it may be shown and kept: what its claim, the files and the history hold of secrets stays there."""
    places = tuple(one if one.kind == "memory" else replace(one, detail=_safe(one.detail)) for one in finding.evidence)
    checks = tuple(
        replace(
            check,
            reason=_safe(check.reason),
            evidence=check.evidence and replace(check.evidence, detail=_safe(check.evidence.detail)),
        )
        for check in finding.checks
    )
    claim = replace(finding.claim, text=_safe(finding.claim.text))
    return replace(finding, claim=claim, reason=_safe(finding.reason), evidence=places, checks=checks)


def _safe(text: str) -> str:
    return redact(text).text
