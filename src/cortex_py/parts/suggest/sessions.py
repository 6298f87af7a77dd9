"""`cortex.suggestions`: suggests memories for a task in a session, and learns from the answer to it."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ...core.clock import IdMaker, from_micros, parse_ref, to_micros
from ...core.errors import (
    AmbiguousId,
    BranchNotFound,
    InvalidId,
    InvalidInput,
    StorageError,
    SuggestionClosed,
    SuggestionNotFound,
)
from ...core.records import Memory
from ...core.security.callers import current_caller
from ...core.security.policy import Screen
from ...core.store.database import Session
from ...core.store.tables.suggestions import ReferenceRow, SessionRow, SuggestedRow, TrustRow
from ...session import ProjectSession, ProjectSessions
from .automation import ACTIONS, WINDOW, PlanStatus, assess, fixed_plan
from .candidates import CandidateFinder, Gathered, task_kind
from .feedback import apply_answer, classify, read_trust
from .ranking import Near, RankedMemory, Source, rank

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Pending", "Suggestion", "SuggestionSession", "Suggestions"]

logger = logging.getLogger(__name__)

_PREFIX = "suggestion_session_"
_MINUTES = 30
_MOST = 50
_LONGEST_TASK = 10_000
_KEPT_TASK = 500
_LONGEST_REASON = 2_000
_KEPT = 180 * 86_400 * 1_000_000
# Sessions that ended long ago are deleted once per this period.
_TRIMMED = 86_400 * 1_000_000


@dataclass(frozen=True, slots=True)
class Suggestion:
    memory: Memory
    branch_topic: str
    source: Source
    confidence: float
    reason: str


@dataclass(frozen=True, slots=True)
class Pending:
    """A session that waits for an answer."""

    session_id: str
    task: str
    suggestions: int
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class SuggestionSession:
    """A new session, the others that wait for an answer, and whether a person must confirm."""

    session_id: str
    suggestions: tuple[Suggestion, ...]
    pending: tuple[Pending, ...]
    requires_confirmation: bool


@dataclass(frozen=True, slots=True)
class AutomationReport:
    """The plan of automation by kind of action, and what waits for an answer."""

    standing: PlanStatus
    actions: dict[str, PlanStatus]
    pending: tuple[Pending, ...]
    # Git branches whose memories wait for a confirmation, each with what became of it.
    held: dict[str, str]


class Suggestions:
    def __init__(self, sessions: ProjectSessions) -> None:
        self._sessions = sessions
        self._store = sessions.store
        self._clock = sessions.clock
        self._settings = sessions.settings
        self._trimmed: dict[str, int] = {}

    def suggest(
        self, task: str, *, top_k: int = 5, branch_id: str | None = None, project_id: str | None = None
    ) -> SuggestionSession:
        """Suggest memories for a task, best first, in a session that waits half an hour for an answer."""
        if not task.strip():
            raise InvalidInput("The task is empty.", remedy="Say what you are about to do.", field="current_context")
        if len(task) > _LONGEST_TASK:
            raise InvalidInput(
                f"The task has {len(task):,} characters.",
                remedy=f"Give at most {_LONGEST_TASK:,}.",
                field="current_context",
            )
        if not 1 <= top_k <= _MOST:
            raise InvalidInput(f"top_k is {top_k}.", remedy=f"Give a number from 1 to {_MOST}.", field="top_k")
        task = self._clean(task)
        project = self._sessions.get_writable(project_id)
        project.git.sync_git_state()
        project.references.write()
        now = to_micros(self._clock.now())
        branch_id = self._task_branch(project, branch_id)
        finder = CandidateFinder(self._store, project.memories, project.graph, project.repository, project.id)
        found = finder.gather(task, branch_id, now, top_k)
        kind = task_kind(task)
        with self._store.database.read() as session:
            keys = [key for one in found.signals for key in (one, f"{one}@{kind}")]
            rows = self._store.suggestions.trust(session, project.id, keys)
        known = read_trust(rows, kind, now)
        ranked = rank(
            list(found.signals.values()),
            known.trust,
            top_k,
            near=lambda best: _nearness(project.memories.vectors(best)),
            bins=known.bins,
            own=known.own,
        )
        return self._store_session(project, task, branch_id, now, found, ranked)

    def _store_session(
        self,
        project: ProjectSession,
        task: str,
        branch_id: str | None,
        now: int,
        found: Gathered,
        ranked: Sequence[RankedMemory],
    ) -> SuggestionSession:
        session_id, expires_at = _new_session_id(self._sessions.ids), now + _MINUTES * 60_000_000
        made = SessionRow(session_id, task[:_KEPT_TASK], branch_id, now, expires_at, "pending", None, "", None)
        shown = [SuggestedRow(one.memory_id, one.source, one.raw, round(one.confidence, 4), None) for one in ranked]
        with self._store.database.write(project.id) as session:
            waiting = self._pending(session, project.id, now)
            self._store.suggestions.open(session, project.id, made, shown)
            if now - self._trimmed.get(project.id, 0) >= _TRIMMED:
                self._store.suggestions.trim(session, project.id, now - _KEPT)
                self._trimmed[project.id] = now
            plan = self._standing(session, project.id, "suggest").plan
            topics = {one.id: one.topic for one in self._store.branches.all(session, project.id)}
        suggestions = []
        for one in ranked:
            memory = found.memories[one.memory_id]
            topic = topics.get(memory.branch_id or "", "")
            suggestions.append(Suggestion(memory, topic, one.source, round(one.confidence, 4), one.reason))
        return SuggestionSession(session_id, tuple(suggestions), waiting, plan == "B")

    def accept(
        self, session_id: str, context_ids: Sequence[str], *, by_hand: bool = False, project_id: str | None = None
    ) -> int:
        """Accept some of the suggestions of a session; returns how many. The others count as passed over.

        A person's choice `by_hand` weighs more than one made on their behalf.
        """
        project = self._sessions.get_writable(project_id)
        now = to_micros(self._clock.now())
        if not context_ids:
            raise InvalidInput(
                "No context is named.", remedy="Name those you take, or reject the suggestions.", field="context_ids"
            )
        log = project.references
        log.write()
        with self._store.database.write(project.id) as session:
            opened = self._open_session(session, project.id, session_id, now)
            shown = self._store.suggestions.suggested(session, project.id, opened.id)
            taken = _match_shown(context_ids, [one.memory_id for one in shown])
            self._answer(session, project, opened, shown, taken, None, now)
            log.accepted(session, taken, opened.branch_id, opened.task, now, by_hand=by_hand)
        return len(taken)

    def reject(self, session_id: str, reason: str, *, project_id: str | None = None) -> tuple[str, ...]:
        """Reject all suggestions of a session; returns what was understood of the reason.

        Nothing is learned, and nothing returned, where nothing was suggested.
        """
        if not reason.strip():
            raise InvalidInput("The reason is empty.", remedy="Say why they do not fit.", field="reason")
        reason = self._clean(reason)
        project = self._sessions.get_writable(project_id)
        now = to_micros(self._clock.now())
        with self._store.database.write(project.id) as session:
            opened = self._open_session(session, project.id, session_id, now)
            shown = self._store.suggestions.suggested(session, project.id, opened.id)
            self._answer(session, project, opened, shown, (), reason, now)
        return classify(reason) if shown else ()

    def automation(self, *, project_id: str | None = None) -> AutomationReport:
        """Whether Cortex acts by itself or asks first, and why."""
        project = self._sessions.get(project_id)
        with self._store.database.read() as session:
            actions = {action: self._standing(session, project.id, action) for action in ACTIONS}
            waiting = self._pending(session, project.id, to_micros(self._clock.now()))
        held = {name: str(fate) for name, fate in project.git.pending().items()}
        return AutomationReport(actions["suggest"], actions, waiting, held)

    def confirm(self, *, project_id: str | None = None) -> tuple[str, ...]:
        """Move the memories of ended git branches that wait for a confirmation; returns those branches."""
        done = self._sessions.get_writable(project_id).git.confirm()
        if done:
            self.answered("promote", True, project_id=project_id)
        return done

    def refuse(self, *, project_id: str | None = None) -> tuple[str, ...]:
        """Leave the memories of ended git branches where they are for good; returns those branches."""
        done = self._sessions.get_writable(project_id).git.refuse()
        if done:
            self.answered("promote", False, project_id=project_id)
        return done

    def answered(self, action: str, accepted: bool, *, project_id: str | None = None) -> PlanStatus:
        """Record whether an automatic action other than suggesting was right."""
        if action not in ACTIONS:
            raise InvalidInput(
                f"There is no action {action[:40]!r}.", remedy=f"Choose one of {', '.join(ACTIONS)}.", field="action"
            )
        project = self._sessions.get_writable(project_id)
        now = to_micros(self._clock.now())
        with self._store.database.write(project.id) as session:
            known = self._store.suggestions.trust(session, project.id)
            before = known.get(("action", action), TrustRow(0.0, 0.0, now))
            yes, no = before.accepted + accepted, before.refused + (not accepted)
            kept = min(1.0, WINDOW / (yes + no))
            row = TrustRow(kept * yes, kept * no, now)
            self._store.suggestions.put_trust(session, project.id, {("action", action): row})
            return self._standing(session, project.id, action)

    def history(self, *, limit: int = 1_000, project_id: str | None = None) -> list[ReferenceRow]:
        """The uses of memories, newest first."""
        project = self._sessions.get(project_id)
        try:
            project.references.write()
        except StorageError as error:
            logger.debug("references were not stored before listing them: %s", type(error).__name__)
        with self._store.database.read() as session:
            found = self._store.suggestions.recent(session, project.id, max(1, limit))
        if current_caller() is None:
            return found
        # Some uses are of other people's own memories.
        seen = project.memories.visible([one.memory_id for one in found])
        return [one for one in found if one.memory_id in seen]

    # -- helpers ---------------------------------------------------------------------------------

    def _clean(self, text: str) -> str:
        """A text without secrets."""
        return Screen.by(self._settings).prose(text, "task")

    def _task_branch(self, project: ProjectSession, branch_id: str | None) -> str | None:
        """The named branch, or else the one of the git branch that is checked out."""
        if branch_id:
            with self._store.database.read() as session:
                if self._store.branches.get(session, project.id, branch_id) is None:
                    raise BranchNotFound(f"There is no branch {branch_id[:80]!r} in this project.", field="branch_id")
            return branch_id
        name = project.git.git_branch()
        if name is None:
            return None
        with self._store.database.read() as session:
            branch = self._store.branches.linked_to(session, project.id, name)
        return branch.id if branch else None

    def _pending(self, session: Session, project_id: str, now: int) -> tuple[Pending, ...]:
        return tuple(
            Pending(one.id, one.task, count, from_micros(one.expires_at))
            for one, count in self._store.suggestions.pending(session, project_id, now)
            if _is_own(one.id)
        )

    def _open_session(self, session: Session, project_id: str, session_id: str, now: int) -> SessionRow:
        found = self._store.suggestions.session(session, project_id, session_id.strip())
        if found is None or not _is_own(found.id):
            raise SuggestionNotFound(
                f"There is no session {session_id[:80]!r} in this project.",
                remedy="Give the session_id that suggest_contexts returned.",
                field="session_id",
            )
        if found.state != "pending":
            raise _closed(found.id, f"was {found.state} already")
        if found.expires_at <= now:
            raise _closed(found.id, f"expired after {_MINUTES} minutes")
        return found

    def _answer(
        self,
        session: Session,
        project: ProjectSession,
        opened: SessionRow,
        shown: Sequence[SuggestedRow],
        taken: Sequence[str],
        reason: str | None,
        now: int,
    ) -> None:
        """Close a session with the accepted suggestions, or with the reason for the refusal, and learn from it."""
        table, state = self._store.suggestions, "accepted" if reason is None else "rejected"
        # Where nothing was suggested, the answer says nothing of suggestions.
        kept, share = (reason or "")[:_LONGEST_REASON], float(bool(taken)) if shown else None
        if not table.answer(session, project.id, opened.id, state, now, kept, share):
            raise _closed(opened.id, "was answered meanwhile")
        table.mark(session, project.id, opened.id, taken)
        memories = project.memories.visible([one.memory_id for one in shown])
        rows, kind = table.trust(session, project.id), task_kind(opened.task)
        table.put_trust(session, project.id, apply_answer(rows, shown, memories, taken, reason, kind, now))

    def _standing(self, session: Session, project_id: str, action: str) -> PlanStatus:
        override = fixed_plan(self._settings)
        table = self._store.suggestions
        if action == "suggest":
            answers = table.answered(session, project_id, WINDOW)
            accepted = sum(one.state == "accepted" for one in answers)
            return assess(accepted, len(answers) - accepted, override=override)
        row = table.trust(session, project_id).get(("action", action), TrustRow(0.0, 0.0, 0))
        return assess(row.accepted, row.refused, override=override, action=action)


def _closed(session_id: str, how: str) -> SuggestionClosed:
    return SuggestionClosed(f"The session {session_id} {how}.", remedy="Ask for new suggestions.", field="session_id")


def _nearness(vectors: Mapping[str, NDArray[np.float32]]) -> Near:
    """The cosine of two candidates; 0 where one has no vector."""

    def near(one: str, other: str) -> float:
        return float(vectors[one] @ vectors[other]) if one in vectors and other in vectors else 0.0

    return near


def _new_session_id(ids: IdMaker) -> str:
    # The end of an id is random; its beginning is shared by ids made at the same moment.
    return _own_prefix() + ids.new()[-12:]


def _is_own(session_id: str) -> bool:
    """Whether a session is the caller's own: what it suggested may be private. Without a caller, every session is."""
    return session_id.startswith(_own_prefix())


def _own_prefix() -> str:
    caller = current_caller()
    return _PREFIX if caller is None else f"{_PREFIX}{hashlib.sha256(caller.user.encode()).hexdigest()[:16]}"


def _match_shown(given: Sequence[str], shown: Sequence[str]) -> list[str]:
    """The suggested memories that ids or prefixes name; one that was not suggested is an error."""
    taken: dict[str, None] = {}
    for one in given:
        found: list[str] = []
        with suppress(InvalidId):
            prefix = parse_ref(one).prefix
            found = [memory_id for memory_id in shown if memory_id.startswith(prefix)]
        if len(found) > 1:
            raise AmbiguousId(
                f"{one[:80]!r} names {len(found)} of the suggestions.",
                candidates=tuple(found),
                remedy="Give more digits.",
            )
        if not found:
            raise InvalidInput(
                f"The context {one[:80]!r} is not among the suggestions of this session.",
                remedy="Give the context_ids that suggest_contexts returned.",
                field="context_ids",
            )
        taken[found[0]] = None
    return list(taken)
