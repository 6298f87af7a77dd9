"""Following git: at every call the memory stands where the working tree stands.

There is no daemon. A call looks at a few small files; only when a reference has changed, and only where records are
confined to git branches, is git itself asked what became of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..clock import Clock, to_micros
from ..config import BranchMemories
from ..records import Confinement
from ..security.callers import acting_as
from ..store.store import Store
from ..worktree.git import Head, Repository
from ..worktree.merges import Fate, fates, renamed_from, watermark

__all__ = ["Following"]


class Following:
    """What git does to the memories of one project, seen from one working tree."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        project_id: str,
        repository: Repository | None,
        policy: BranchMemories,
        touched: Callable[[frozenset[str]], None],
        asks: Callable[[], bool] = lambda: False,
    ) -> None:
        """`asks` tells whether memories of a branch that ended wait for somebody to say so before they move."""
        self._store = store
        self._clock = clock
        self._project = project_id
        self._repository = repository
        self._policy = policy
        self._touched = touched
        self._asks = asks
        self._held: dict[str, Fate] = {}
        self._lock = threading.Lock()
        self._branch: str | None = None
        self._mark: str | None = None
        self._default: tuple[str, str | None] | None = None

    def git_branch(self) -> str | None:
        """The branch that is checked out; None when detached, and without a repository."""
        return self._repository.head().branch if self._repository else None

    def confinement(self, git_branch: str) -> Confinement | None:
        """Whether what is written on a git branch stays there; what is on the default branch never does."""
        if self._policy == "share" or self._repository is None or git_branch == self._default_branch():
            return None
        return self._policy

    def arrive(self) -> None:
        """Take in what git did since the last call: a rename, a merge, a deletion. Nobody's work but the server's."""
        if self._repository is not None:
            with acting_as(None):
                self._arrive(self._repository)

    def _arrive(self, repository: Repository) -> None:
        head = repository.head()
        changed: set[str] = set()
        with self._lock:
            if head.branch != self._branch:
                if head.branch:
                    changed |= self._follow_rename(repository, head.branch)
                self._branch = head.branch
            changed |= self._settle(repository, head)
        # Not under the lock: a branch file may hold edits of a person, and taking those in begins with an arrival.
        if changed:
            self._touched(frozenset(changed))

    def _follow_rename(self, repository: Repository, name: str) -> frozenset[str]:
        """Let records and lines of work follow a renamed branch; returns which lines of work did."""
        former = renamed_from(repository, name)
        if former is None or former in repository.branches():
            return frozenset()
        with self._store.database.write() as session:
            seq = self._store.memories.next_seq(session)
            return self._store.upkeep.rename_git_branch(session, self._project, former, name, seq)

    def _settle(self, repository: Repository, head: Head) -> frozenset[str]:
        """Promote what was staged on branches that are merged, take away what was staged on deleted ones.

        Returns the lines of work that this has reached.
        """
        with self._store.database.read() as session:
            confined = self._store.upkeep.confined(session, self._project)
            tips = self._store.upkeep.tips(session, self._project, list(confined)) if confined else {}
        if not confined:
            # Another process may have said yes.
            self._held = {}
            return frozenset()
        if head.branch in confined and head.commit and tips.get(head.branch) != head.commit:
            tips[head.branch] = head.commit
            with self._store.database.write() as session:
                now = to_micros(self._clock.now())
                self._store.upkeep.saw_tip(session, self._project, head.branch, head.commit, now)
        mark = watermark(repository)
        if mark == self._mark:
            return frozenset()
        staged = {name: tips.get(name) for name, how in confined.items() if how == "stage"}
        ended = {name: fate for name, fate in fates(repository, staged).items() if fate != "open"}
        if ended and self._asks():
            self._held = dict(ended)
            return frozenset()
        self._held = {}
        changed = [self._conclude(name, fate) for name, fate in ended.items()]
        self._mark = mark
        return frozenset().union(*changed)

    def held(self) -> dict[str, Fate]:
        """The git branches that ended and whose memories wait for a yes, each with what became of it."""
        self.arrive()
        with self._lock:
            return dict(self._held)

    def confirm(self) -> tuple[str, ...]:
        """Let what waits happen; returns the git branches that it was about."""
        self.arrive()
        with self._lock:
            held, self._held = self._held, {}
            changed = [self._conclude(name, fate) for name, fate in held.items()]
        if touched := frozenset[str]().union(*changed):
            self._touched(touched)
        return tuple(held)

    def refuse(self) -> tuple[str, ...]:
        """Keep what waits from happening, for good: the memories stay with their branches. Returns those."""
        self.arrive()
        with self._lock:
            held, self._held = self._held, {}
            if not held:
                return ()
            now = to_micros(self._clock.now())
            with self._store.database.write() as session:
                seq = self._store.memories.next_seq(session)
                for name in held:
                    nums = self._store.upkeep.staged(session, self._project, name)
                    self._store.upkeep.isolate(session, self._project, nums, now, seq)
        return tuple(held)

    def _conclude(self, git_branch: str, fate: Fate) -> frozenset[str]:
        into = self._default_branch()
        now = to_micros(self._clock.now())
        with self._store.database.write() as session:
            nums = self._store.upkeep.staged(session, self._project, git_branch)
            if not nums:
                return frozenset()
            seq = self._store.memories.next_seq(session)
            merged_into = into if fate == "merged" else None
            self._store.upkeep.promote(session, self._project, nums, merged_into, now, seq)
            if fate == "deleted":
                # No longer confined to a branch that is gone: whoever restores one of them wants to see it.
                self._store.memories.bury(session, self._project, nums, now, seq)
            return self._store.statistics.lines_of_work(session, self._project, nums)

    def _default_branch(self) -> str | None:
        """The default branch, asked of git again only when a reference has changed."""
        if self._repository is None:
            return None
        mark = watermark(self._repository)
        if self._default is None or self._default[0] != mark:
            self._default = (mark, self._repository.default_branch())
        return self._default[1]
