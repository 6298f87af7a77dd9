"""Keeps the summaries of branches up to date: the state is stored, and only newer turns are read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ....core.embedding.backends.backend import Backend
from ....core.memory.spaces import token_counter
from ....core.records import Branch, Memory
from ....core.store.store import Store

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

        unread = self._unread(branch.id)
        state = unread.read()
        last = max([memory.updated_at for memory in unread.memories], default=branch.updated_at)
        if not unread.memories and state.turns:
            with self._store.database.read() as session:
                last = self._store.statistics.last_updated(session, self._project, branch.id) or last
        rendered = render(state, branch.topic, max_tokens=max_tokens, count_tokens=token_counter(self._backend))
        return BranchSummary(branch, rendered, state.turns, max(last, branch.created_at))

    def refresh(self, branch_id: str) -> None:
        """Store the state of a summary once the branch has grown by enough turns."""
        unread = self._unread(branch_id)
        if len(unread.memories) < _BEHIND:
            return
        # The result of a check is stored right after its turn, and a state must not be kept without it.
        newest = unread.memories[-1]
        if newest.grounding is None or newest.id in unread.results:
            text = unread.read().to_json()
            with self._store.database.write(self._project) as session:
                self._store.branches.put_summary(session, self._project, branch_id, text, unread.seq)

    def _unread(self, branch_id: str) -> _Unread:
        from .summary import EMPTY

        with self._store.database.read() as session:
            text, seq = self._store.branches.summary(session, self._project, branch_id)
            state = _loaded(text)
            # A summary is given to models unasked, so what waits for a review is not in it.
            memories = self._store.memories
            same, rows = memories.of_branch_since(session, self._project, branch_id, seq, reviewed=True)
            if same != state.turns:
                # A turn has changed or gone: read the branch from its start.
                state, rows = EMPTY, memories.of_branch(session, self._project, branch_id, reviewed=True)
            seq = max([change for _, change, _ in rows], default=seq)
            checked = [memory.id for _, _, memory in rows if memory.grounding is not None]
            results = self._store.verifications.results(session, self._project, checked)
        return _Unread(state, [memory for _, _, memory in rows], results, seq)


@dataclass(frozen=True, slots=True)
class _Unread:
    """The stored state of a summary and the turns that it lacks, with the results of their checks by id.

    `seq` is the number of the last change among them.
    """

    state: SummaryState
    memories: list[Memory]
    results: dict[str, str]
    seq: int

    def read(self) -> SummaryState:
        """The state after all turns."""
        from .summary import SaidTurn, advance
        from .verdicts import read_doubts

        doubts = {id: read_doubts(result) for id, result in self.results.items()}
        turns = (
            SaidTurn(one.id, one.role, one.content, one.created_at, doubts.get(one.id, ())) for one in self.memories
        )
        return advance(self.state, turns)


def _loaded(text: str | None) -> SummaryState:
    from .summary import EMPTY, SummaryState

    if text is None:
        return EMPTY
    try:
        return SummaryState.from_json(text)
    except ValueError:
        return EMPTY  # of another version: read the branch from its start
