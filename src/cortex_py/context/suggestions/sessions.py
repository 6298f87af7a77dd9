"""`cortex.suggestions`: what a task will need, offered in a session that is to be answered, and what answers teach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ..clock import Clock, from_micros, to_micros
from ..config import Settings
from ..errors import BranchNotFound, InvalidInput, StorageError, SuggestionClosed, SuggestionNotFound
from ..ids import IdMaker
from ..records import Memory
from ..security.callers import current_caller
from ..security.permission import require_write
from ..security.policy import screen
from ..store.database import Session
from ..store.store import Store
from ..store.suggestions import ReferenceRow, SessionRow, SuggestedRow, TrustRow
from .automation import (
    ACTIONS,
    WINDOW,
    Standing,
    last_plan,
    next_plan,
    override_of,
    requires_confirmation,
    standing,
    standing_after,
)
from .candidates import CandidateFinder, Gathered, task_kind
from .desk import Desk, Desks
from .learning import learned, share, taught
from .rejection import classify
from .session_ids import is_own, matched, new_session_id
from .suggesting import Near, Ranked, Source, rank

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Automation", "Pending", "Suggested", "Suggestion", "Suggestions"]

_MINUTES = 30
_MOST = 50
_LONGEST_TASK = 10_000
_KEPT_TASK = 500
_LONGEST_REASON = 2_000
_KEPT = 180 * 86_400 * 1_000_000
_ANSWERS = 100
# Sessions that ended long ago are let go of once in so long.
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
class Suggested:
    """A new session: its suggestions, others that wait, and whether they may be taken without asking."""

    session_id: str
    suggestions: tuple[Suggestion, ...]
    pending: tuple[Pending, ...]
    requires_confirmation: bool


@dataclass(frozen=True, slots=True)
class Automation:
    """Where automation stands, by kind of action, and what waits for an answer."""

    standing: Standing
    actions: dict[str, Standing]
    pending: tuple[Pending, ...]
    # Git branches whose memories wait for a yes, each with what became of it.
    held: dict[str, str]


class Suggestions:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: IdMaker,
        settings: Settings,
        desks: Desks,
        here: Callable[[], Desk],
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._desks = desks
        self._here = here
        self._trimmed: dict[str, int] = {}

    def suggest(
        self, task: str, *, top_k: int = 5, branch_id: str | None = None, project_id: str | None = None
    ) -> Suggested:
        """What a task will need, best first, in a session that waits for an answer for half an hour."""
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
        desk = self._writing(project_id)
        desk.following.arrive()
        self._desks.references(desk).write()
        now = to_micros(self._clock.now())
        line = self._line(desk, branch_id)
        finder = CandidateFinder(self._store, desk.memories, desk.graph, desk.repository, desk.project.id)
        found = finder.gather(task, line, now, top_k)
        kind = task_kind(task)
        with self._store.database.read() as session:
            keys = [key for one in found.signals for key in (one, f"{one}@{kind}")]
            rows = self._store.suggestions.trust(session, desk.project.id, keys)
        known = learned(rows, kind, now)
        ranked = rank(
            list(found.signals.values()),
            known.trust,
            top_k,
            near=lambda best: _nearness(desk.memories.vectors(best)),
            bins=known.bins,
            own=known.own,
        )
        return self._offered(desk, task, line, now, found, ranked)

    def _offered(
        self, desk: Desk, task: str, line: str | None, now: int, found: Gathered, ranked: Sequence[Ranked]
    ) -> Suggested:
        project = desk.project.id
        made = SessionRow(
            new_session_id(self._ids),
            task[:_KEPT_TASK],
            line,
            now,
            now + _MINUTES * 60_000_000,
            "pending",
            None,
            "",
            None,
        )
        shown = [SuggestedRow(one.memory_id, one.source, one.raw, round(one.confidence, 4), None) for one in ranked]
        with self._store.database.write() as session:
            waiting = self._waiting(session, project, now)
            if shown:
                # A session without suggestions cannot be answered, so none is kept.
                self._store.suggestions.open(session, project, made, shown)
            if now - self._trimmed.get(project, 0) >= _TRIMMED:
                self._store.suggestions.trim(session, project, now - _KEPT)
                self._trimmed[project] = now
            plan = self._standing(session, project, "suggest").plan
            topics = {one.id: one.topic for one in self._store.branches.all(session, project)}
        return Suggested(
            made.id,
            tuple(
                Suggestion(
                    found.memories[one.memory_id], topics.get(found.memories[one.memory_id].branch_id or "", ""),
                    one.source, round(one.confidence, 4), one.reason,
                )
                for one in ranked
            ),
            waiting,
            requires_confirmation(plan),
        )  # fmt: skip

    def accept(
        self, session_id: str, context_ids: Sequence[str], *, by_hand: bool = False, project_id: str | None = None
    ) -> int:
        """Take some of the suggestions of a session; the others were passed over. Returns how many were taken.

        What a person picked `by_hand` is remembered as that: it weighs more than what was taken on their behalf.
        """
        desk = self._writing(project_id)
        project, now = desk.project.id, to_micros(self._clock.now())
        if not context_ids:
            raise InvalidInput(
                "No context is named.", remedy="Name those you take, or reject the suggestions.", field="context_ids"
            )
        log = self._desks.references(desk)
        log.write()
        with self._store.database.write() as session:
            opened = self._open_session(session, project, session_id, now)
            shown = self._store.suggestions.suggested(session, project, opened.id)
            taken = matched(context_ids, [one.memory_id for one in shown])
            self._close(session, project, opened, "accepted", now, "", share(len(taken), len(shown)))
            self._store.suggestions.mark(session, project, opened.id, taken)
            self._learn(session, desk, opened, shown, taken, None)
            log.accepted(session, taken, opened.branch_id, opened.task, now, by_hand=by_hand)
        return len(taken)

    def reject(self, session_id: str, reason: str, *, project_id: str | None = None) -> tuple[str, ...]:
        """Take none of the suggestions of a session. Returns what was understood of the reason."""
        if not reason.strip():
            raise InvalidInput("The reason is empty.", remedy="Say why they do not fit.", field="reason")
        reason = self._clean(reason)
        desk = self._writing(project_id)
        project, now = desk.project.id, to_micros(self._clock.now())
        with self._store.database.write() as session:
            opened = self._open_session(session, project, session_id, now)
            shown = self._store.suggestions.suggested(session, project, opened.id)
            self._close(session, project, opened, "rejected", now, reason[:_LONGEST_REASON], 0.0)
            self._store.suggestions.mark(session, project, opened.id, ())
            self._learn(session, desk, opened, shown, (), reason)
        return classify(reason)

    def automation(self, *, project_id: str | None = None) -> Automation:
        """Whether automatic behaviour acts or asks first, and why."""
        desk = self._desk(project_id)
        with self._store.database.read() as session:
            actions = {action: self._standing(session, desk.project.id, action) for action in ACTIONS}
            waiting = self._waiting(session, desk.project.id, to_micros(self._clock.now()))
        held = {name: str(fate) for name, fate in desk.following.held().items()}
        return Automation(actions["suggest"], actions, waiting, held)

    def confirm(self, *, project_id: str | None = None) -> tuple[str, ...]:
        """Let the memories of ended git branches move, where that waits for a yes; returns the branches."""
        done = self._writing(project_id).following.confirm()
        if done:
            self.answered("promote", True, project_id=project_id)
        return done

    def refuse(self, *, project_id: str | None = None) -> tuple[str, ...]:
        """Leave the memories of ended git branches where they are, for good; returns the branches."""
        done = self._writing(project_id).following.refuse()
        if done:
            self.answered("promote", False, project_id=project_id)
        return done

    def answered(self, action: str, accepted: bool, *, project_id: str | None = None) -> Standing:
        """Note that something Cortex did by itself, other than suggesting, was right or was not."""
        if action not in ACTIONS:
            raise InvalidInput(
                f"There is no action {action[:40]!r}.", remedy=f"Choose one of {', '.join(ACTIONS)}.", field="action"
            )
        desk = self._writing(project_id)
        now = to_micros(self._clock.now())
        with self._store.database.write() as session:
            known = self._store.suggestions.trust(session, desk.project.id)
            before = known.get(("action", action), TrustRow(0.0, 0.0, now))
            yes, no = before.accepted + accepted, before.refused + (not accepted)
            kept = min(1.0, WINDOW / (yes + no))
            after = TrustRow(kept * yes, kept * no, now)
            asks = next_plan(last_plan(known, action), after.accepted, after.refused) == "B"
            plan = TrustRow(float(not asks), float(asks), now)
            rows = {("action", action): after, ("plan", action): plan}
            self._store.suggestions.put_trust(session, desk.project.id, rows)
            return self._standing(session, desk.project.id, action)

    def history(self, *, limit: int = 1_000, project_id: str | None = None) -> list[ReferenceRow]:
        """What was referred to, newest first, for people to look at."""
        desk = self._desk(project_id)
        with suppress(StorageError):
            # Looking is possible where nothing can be written.
            self._desks.references(desk).write()
        with self._store.database.read() as session:
            found = self._store.suggestions.recent(session, desk.project.id, max(1, limit))
        if current_caller() is None:
            return found
        # What others have of their own was referred to here as well.
        seen = desk.memories.visible([one.memory_id for one in found])
        return [one for one in found if one.memory_id in seen]

    # -- inside ----------------------------------------------------------------------------------

    def _desk(self, project_id: str | None) -> Desk:
        return self._here() if project_id is None else self._desks.of(project_id)

    def _writing(self, project_id: str | None) -> Desk:
        desk = self._desk(project_id)
        require_write(desk.project.id)
        return desk

    def _clean(self, text: str) -> str:
        """A text as it may be kept: without secrets."""
        return screen([text], self._settings.secrets)[0][0]

    def _line(self, desk: Desk, branch_id: str | None) -> str | None:
        """The line of work that is named, or else that of the git branch that is checked out."""
        if branch_id:
            with self._store.database.read() as session:
                if self._store.branches.get(session, desk.project.id, branch_id) is None:
                    raise BranchNotFound(f"There is no branch {branch_id[:80]!r} in this project.", field="branch_id")
            return branch_id
        name = desk.following.git_branch()
        if name is None:
            return None
        with self._store.database.read() as session:
            branch = self._store.branches.linked_to(session, desk.project.id, name)
        return branch.id if branch else None

    def _waiting(self, session: Session, project: str, now: int) -> tuple[Pending, ...]:
        return tuple(
            Pending(one.id, one.task, count, from_micros(one.expires_at))
            for one, count in self._store.suggestions.pending(session, project, now)
            if is_own(one.id)
        )

    def _open_session(self, session: Session, project: str, session_id: str, now: int) -> SessionRow:
        found = self._store.suggestions.session(session, project, session_id.strip())
        if found is None or not is_own(found.id):
            raise SuggestionNotFound(
                f"There is no session {session_id[:80]!r} in this project.",
                remedy="Give the session_id that suggest_contexts returned.",
                field="session_id",
            )
        if found.state != "pending":
            raise SuggestionClosed(
                f"The session {found.id} was {found.state} already.",
                remedy="Ask for new suggestions.",
                field="session_id",
            )
        if found.expires_at <= now:
            raise SuggestionClosed(
                f"The session {found.id} expired after {_MINUTES} minutes.",
                remedy="Ask for new suggestions.",
                field="session_id",
            )
        return found

    def _close(
        self, session: Session, project: str, opened: SessionRow, state: str, now: int, reason: str, share: float
    ) -> None:
        if not self._store.suggestions.answer(session, project, opened.id, state, now, reason, share):
            raise SuggestionClosed(
                f"The session {opened.id} was answered meanwhile.",
                remedy="Ask for new suggestions.",
                field="session_id",
            )

    def _learn(
        self,
        session: Session,
        desk: Desk,
        opened: SessionRow,
        shown: Sequence[SuggestedRow],
        taken: Sequence[str],
        reason: str | None,
    ) -> None:
        table, project = self._store.suggestions, desk.project.id
        known = desk.memories.visible([one.memory_id for one in shown])
        rows = table.trust(session, project)
        now = to_micros(self._clock.now())
        table.put_trust(session, project, taught(rows, shown, known, taken, reason, task_kind(opened.task), now))

    def _standing(self, session: Session, project: str, action: str) -> Standing:
        override = override_of(self._settings)
        table = self._store.suggestions
        if action == "suggest":
            answers = reversed(table.answered(session, project, _ANSWERS))
            return standing_after([one.share or 0.0 for one in answers], override)
        rows = table.trust(session, project)
        row = rows.get(("action", action), TrustRow(0.0, 0.0, 0))
        return standing(last_plan(rows, action), row.accepted, row.refused, override=override, action=action)


def _nearness(vectors: Mapping[str, NDArray[np.float32]]) -> Near:
    """How alike two candidates are, by their vectors; nothing is known of those that have none."""

    def near(one: str, other: str) -> float:
        return float(vectors[one] @ vectors[other]) if one in vectors and other in vectors else 0.0

    return near
