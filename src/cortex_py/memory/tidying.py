"""What is done with memories that say the same, contradict each other, or could be put better."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..clock import Clock
from ..embedding.backend import Backend
from ..ids import IdMaker
from ..records import Contradiction, Memory
from ..store.store import Store
from .capture import Capture, Progress
from .conflicts import ConflictFinder
from .consolidation import Consolidated, Consolidator
from .enrichment import Enriched, Enricher, Surroundings
from .filters import is_filter_word
from .hygiene import Finding, Hygiene
from .lifecycle import Lifecycle
from .neighbours import Neighbours
from .place import Place
from .recall import Query, Recall
from .supersession import Supersession, Undone
from .wording import Strategy, Wording, check_method

if TYPE_CHECKING:
    from ..llm.client import LanguageModel

__all__ = ["TidyOperations"]

# Below this a memory has little to do with the words of a query.
_CHOSEN_SCORE = 0.2
# A value in quotes may hold spaces.
_QUERY_WORD = re.compile(r"""(?:[^\s"]|"(?:[^"\\]|\\.)*")+|\S+""")


class TidyOperations(ABC):
    """Needs the parts that `Memories` has."""

    _store: Store
    _backend: Backend
    _clock: Clock
    _ids: IdMaker
    _place: Place
    _capture: Capture
    _recall: Recall
    _lifecycle: Lifecycle
    _touched: Callable[[frozenset[str]], None]

    def _tidy(self, model: Callable[[], LanguageModel | None], surroundings: Surroundings) -> None:
        """Make the parts for tidying; called once the others are there."""
        self._supersession = Supersession(self._store, self._clock, self._lifecycle.locate)
        neighbours = Neighbours(self._store, self._backend, self._clock, self._place)
        self._conflicts = ConflictFinder(neighbours)
        self._consolidator = Consolidator(
            self._store,
            self._backend,
            self._clock,
            self._ids,
            self._place,
            self._capture,
            Wording(model),
            self._chosen,
        )
        annotator = self._capture.annotator
        read = annotator.read if annotator else lambda _memory: None
        self._enricher = Enricher(neighbours, surroundings, model, self._enriched, read)

    @abstractmethod
    def _told(self, memories: list[Memory]) -> list[Memory]:
        """Pass changed memories on, after telling which lines of work they belong to."""

    def consolidate(
        self,
        namespace: str | None = None,
        *,
        strategy: Strategy = "merge",
        query: str | None = None,
        dry_run: bool = False,
        method: str = "auto",
        progress: Progress | None = None,
    ) -> Consolidated:
        """Make one memory of several that say the same (`merge`, `dedupe`) or belong together (`summarize`).

        The originals become superseded and stay within reach; `undo` brings them back. `query` narrows what is
        looked at. `method` is `auto`, `local` or `llm`. A `progress` that raises stops the run between two groups.
        """
        done = self._consolidator.run(
            namespace, strategy=strategy, query=query, dry_run=dry_run, method=check_method(method), progress=progress
        )
        if done.branches:
            self._touched(done.branches)
        return done

    def undo(self, ref: str) -> Undone:
        """Take a consolidation back, named by its result: what it was made of is there again."""
        undone = self._supersession.undo(ref)
        if undone.branches:
            self._touched(undone.branches)
        return undone

    def supersede(self, older: str, newer: str) -> Memory:
        """Put one memory in the place of another; returns the older, which is now hidden behind the newer."""
        return self._told([self._supersession.replace(older, newer)])[0]

    def chain(self, ref: str) -> list[Memory]:
        """A memory with all that it replaced and all that replaced it, oldest first."""
        return self._supersession.chain(ref)

    def origins(self, ref: str) -> tuple[str, ...]:
        """Ids of the memories that one came from or replaces, oldest first."""
        return self._supersession.origins(ref)

    def conflicts(self, ref: str) -> tuple[Contradiction, ...]:
        """Memories that say something else of the same thing, with the difference."""
        return self._conflicts.of(self._lifecycle.get(ref))

    def enrich(
        self,
        ref: str,
        *,
        tags: bool = True,
        structure: bool = True,
        context: bool = False,
        method: str = "auto",
        dry_run: bool = False,
    ) -> Enriched:
        """Give a memory better tags, a better form, and what the store knows around it.

        The former version stays in its history. Nothing is added that has no source in the store.
        """
        self._place.arrive()
        return self._enricher.run(
            self._lifecycle.get(ref),
            tags=tags,
            structured=structure,
            context=context,
            method=check_method(method),
            dry_run=dry_run,
        )

    def suggest(self) -> list[Finding]:
        """What could be tidied up, each with the command that would."""

        def preview(strategy: Strategy) -> Consolidated:
            return self._consolidator.run(None, strategy=strategy, dry_run=True, method="local")

        return Hygiene(self._store, self._clock, self._place, preview, self._conflicts.of).report()

    def _chosen(self, query: str, namespace: str | None) -> list[str]:
        """Ids of what a query of a consolidation means: words to search by, and filter words among them."""
        words = _QUERY_WORD.findall(query)
        filters = [word for word in words if is_filter_word(word)]
        text = " ".join(word for word in words if word not in filters)
        found: list[str] = []
        while True:
            page = self._recall.run(
                Query(
                    text=text or None,
                    filter=" ".join(filters),
                    namespace=namespace,
                    limit=1_000,
                    offset=len(found),
                    min_score=_CHOSEN_SCORE if text else 0.0,
                )
            )
            found += [hit.memory.id for hit in page.results]
            if not page.results or len(found) >= page.total:
                return found

    def _enriched(self, memory: Memory, content: str | None, tags: Sequence[str] | None) -> Memory:
        changed = self._lifecycle.update(memory.id, content=content, tags=tags, expected_version=memory.version)
        return self._told([changed])[0]
