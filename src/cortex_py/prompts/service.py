"""`cortex.prompts`: saved prompts, and filling them in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..clock import Clock
from ..config import SecretPolicy
from ..memory.service import Memories
from ..records import JsonValue, SavedKind
from ..store.store import Store
from .checks import FoundNames, check_choices, check_value, values_for
from .draft import Draft
from .placeholders import find_blanks
from .results import Filled
from .saved_texts import SavedTexts
from .suggestions import Suggestions

__all__ = ["Prompts"]


class Prompts(SavedTexts):
    _kind: SavedKind = "prompt"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        memories: Memories,
        policy: SecretPolicy,
        root: Path | None,
        builtins: Callable[[], Sequence[Draft]] = lambda: (),
    ) -> None:
        super().__init__(store, clock, memories.place, policy, root, builtins)
        self._suggestions = Suggestions(store, memories)

    def run(
        self,
        name: str,
        variables: Mapping[str, JsonValue] | None = None,
        *,
        domain: str | None = None,
        version: int | None = None,
    ) -> Filled:
        """A prompt with its blanks filled in: by the values given, else by defaults.

        Values that are no text are written as JSON. What is filled in is never read as a placeholder.
        """
        saved = self.get(name, domain=domain, version=version)
        given = dict(variables or {})
        values = values_for(saved, given)
        texts = {key: check_value(key, value) for key, value in values.items()}
        check_choices(saved, texts)
        content = find_blanks(saved.content).fill(texts)
        self._shelves.used(saved)
        known = {variable.name for variable in saved.variables}
        unknown = tuple(f"The prompt has no variable {key[:64]!r}." for key in given if key not in known)
        return Filled(saved, content, values, unknown[:20])

    def complete(self, name: str, variable: str, typed: str = "") -> list[str]:
        """Values that a variable of a prompt may take, of those that begin with what was typed."""
        found = next((one for one in self.get(name).variables if one.name == variable), None)
        return self._suggestions.values(found, typed) if found else []

    def _names(self, content: str) -> FoundNames:
        return FoundNames(find_blanks(content).names)
