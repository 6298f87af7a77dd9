"""Keeps the summaries of branches up to date: the state is stored, and only newer turns are read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ...embedding.backends.backend import Backend
from ...memory.embedding_model import token_counter
from ...records import Branch, Memory
from ...store.store import Store

if TYPE_CHECKING:
    # Imported when needed: it compiles many patterns, which most commands do not use.
    from .summary import Summary, SummaryState

__all__ = ["BranchSummary", "Summaries"]

# Reading a turn costs a fraction of a millisecond, a commit more. So the state is stored only after this many turns.
_BEHIND = 16


@dataclass(frozen=True, slots=True)
class BranchSummary:
    """A summary with its branch, the number of its turns, and the time of the last change."""

    branch: Branch
    summary: Summary
    entries: int
    last_updated: datetime


class Summaries:
    """The summaries of the branches of one project."""

    def __init__(self, store: Store, backend: Backend, project_id: str) -> None:
        self._store = store
        self._backend = backend
        self._project = project_id

    def of(self, branch: Branch, max_tokens: int) -> BranchSummary:
        """The summary of a branch, with every committed turn."""
        from .summary import render

        state, rows, *_ = self._current(branch.id)
        last = max([memory.updated_at for memory in rows], default=branch.updated_at)
        if not rows and state.turns:
            with self._store.database.read() as session:
                last = self._store.statistics.last_updated(session, self._project, branch.id) or last
        rendered = render(state, branch.topic, max_tokens=max_tokens, count_tokens=token_counter(self._backend))
        return BranchSummary(branch, rendered, state.turns, max(last, branch.created_at))

    def refresh(self, branch_id: str) -> None:
        """Store the state of a summary once the branch has grown by enough turns."""
        state, rows, seq, checked = self._current(branch_id)
        # The result of a check is stored right after its turn, and a state must not be kept without it.
        awaited = bool(rows) and rows[-1].grounding is not None and rows[-1].id not in checked
        if len(rows) >= _BEHIND and not awaited:
            with self._store.database.write(self._project) as session:
                self._store.branches.put_summary(session, self._project, branch_id, state.to_json(), seq)

    def _current(self, branch_id: str) -> tuple[SummaryState, list[Memory], int, set[str]]:
        """The state after all turns, the turns that the stored state lacked, its sequence number, and the ids of those
        turns whose check is stored."""
        from .summary import EMPTY, Turn, advance
        from .verdicts import read_doubts

        with self._store.database.read() as session:
            text, seq = self._store.branches.summary(session, self._project, branch_id)
            state = _loaded(text)
            same, rows = self._store.memories.of_branch_since(session, self._project, branch_id, seq)
            if same != state.turns:
                # A turn has changed or gone: read the branch from its start.
                state, rows = EMPTY, self._store.memories.of_branch(session, self._project, branch_id)
            seq = max([change for _, change, _ in rows], default=seq)
            checked = [memory.id for _, _, memory in rows if memory.grounding is not None]
            results = self._store.verifications.results(session, self._project, checked)
        memories = [memory for _, _, memory in rows]
        turns = [
            Turn(
                one.id, one.role, one.content, one.created_at, read_doubts(results[one.id]) if one.id in results else ()
            )
            for one in memories
        ]
        return advance(state, turns), memories, seq, set(results)


def _loaded(text: str | None) -> SummaryState:
    from .summary import EMPTY, SummaryState

    if text is None:
        return EMPTY
    try:
        return SummaryState.from_json(text)
    except ValueError:
        return EMPTY  # of another version: read the branch from its start
