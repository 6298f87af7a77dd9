"""`cortex.prompts`: saved prompts, filled in with values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ...core.memory.service import Memories
from ...core.memory.spaces import NAMESPACES
from ...core.records import DOMAINS, JsonValue, SavedKind, Variable
from ...core.security.quoting import without_marks
from ...core.store.store import Store
from .checks import Draft, check_choices, check_value, values_for
from .language.placeholders import find_blanks
from .saved_texts import FilledPrompt, SavedTexts

__all__ = ["Prompts", "VariableSuggestions"]

_MOST = 100


class Prompts(SavedTexts):
    _kind: SavedKind = "prompt"

    def _builtins(self) -> Sequence[Draft]:
        from .files import builtins

        return builtins()

    def run(
        self,
        name: str,
        variables: Mapping[str, JsonValue] | None = None,
        *,
        domain: str | None = None,
        version: int | None = None,
        all_of_them: bool = False,
    ) -> FilledPrompt:
        """A prompt with its variables filled in: by the given values, else by defaults.

        Values that are not text are written as JSON. Placeholders in values are not expanded. A variable that was not
        declared and gets no value stays as it is, and a warning names it; with `all_of_them` that is an error. A prompt
        that a file of the project holds begins with a line that says so.
        """
        saved = self.get(name, domain=domain, version=version)
        given = dict(variables or {})
        values = values_for(saved, given, all_of_them=all_of_them)
        texts = {key: check_value(key, value) for key, value in values.items()}
        check_choices(saved, texts)
        open_ones = [one.name for one in saved.variables if one.required is None and one.name not in texts]
        texts |= {name: f"{{{{{name}}}}}" for name in open_ones}
        content, origin = find_blanks(saved.content).fill(texts), self._origin(saved)
        content = f"{origin}{without_marks(content)}" if origin else content
        self._count_use(saved)
        known = {variable.name for variable in saved.variables}
        warnings = [f"No value was given for {', '.join(open_ones)}."] if open_ones else []
        warnings += [f"The prompt has no variable {key[:64]!r}." for key in given if key not in known]
        return FilledPrompt(saved, content, values, tuple(warnings[:20]))

    def complete(self, name: str, variable: str, typed: str = "") -> list[str]:
        """Values that a variable of a prompt may take and that begin with what was typed."""
        found = next((one for one in self.get(name).variables if one.name == variable), None)
        return VariableSuggestions(self._store, self._memories).values(found, typed) if found else []


class VariableSuggestions:
    """Values that a variable may take, by its name: files, branches, tags, namespaces."""

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
        """Values that begin with what was typed: the choices if it has some, else its default and known names."""
        if typed.encode(errors="ignore").decode() != typed:
            # No value begins with half a character, and the store cannot search for it.
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
