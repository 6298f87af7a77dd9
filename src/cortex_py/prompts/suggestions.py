"""Values that a blank may well take, by what it is called: files, branches, tags, namespaces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..memory.namespaces import NAMESPACES
from ..memory.service import Memories
from ..records import DOMAINS, Variable
from ..store.store import Store

__all__ = ["Suggestions"]

_MOST = 100


class Suggestions:
    def __init__(self, store: Store, memories: Memories) -> None:
        self._store = store
        self._memories = memories
        self._sources: dict[str, Callable[[str], Iterable[str]]] = {
            "file": self._files,
            "path": self._files,
            "branch": self._branches,
            "tag": lambda typed: (tag for tag, _ in memories.tags(typed)),
            "namespace": lambda _: (one.name for one in NAMESPACES),
            "domain": lambda _: DOMAINS,
            "memory": lambda typed: memories.ids(typed),
        }

    def values(self, variable: Variable, typed: str) -> list[str]:
        """Values that begin with what was typed: the choices if it has some, else its default and what is known."""
        if typed.encode(errors="ignore").decode() != typed:
            # No value begins with half a character, and the store could not be asked for it.
            return []
        found: list[str] = list(variable.choices)
        if not found:
            found = [variable.default] if isinstance(variable.default, str) else []
            found += self._known(variable.name, typed)
        wanted = typed.strip().casefold()
        return [value for value in dict.fromkeys(found) if value.casefold().startswith(wanted)][:_MOST]

    def _known(self, name: str, typed: str) -> Iterable[str]:
        words = name.casefold().split("_")
        for word in reversed(words):
            if source := self._sources.get(word) or self._sources.get(word.removesuffix("s")):
                return source(typed.strip())
        return ()

    def _files(self, typed: str) -> Sequence[str]:
        with self._store.database.read() as session:
            return self._store.scans.paths(session, self._memories.place.project.id, typed, _MOST)

    def _branches(self, _typed: str) -> Sequence[str]:
        place = self._memories.place
        with self._store.database.read() as session:
            lines = self._store.branches.all(session, place.project.id)
        present = place.git_branch()
        return [*([present] if present else []), *(one.git_branch for one in reversed(lines) if one.git_branch)]
