"""Knowledge: the names a project brings along, and where a sentence uses them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from .tokens import Token, sentences
from .values import EntityType

__all__ = ["NOTHING", "Knowledge", "Known"]

_ORDINARY = re.compile(r"[a-z]{1,4}\Z")  # a short lower-case package name is more often a plain word
_WORDS = frozenset(
    [
        "attrs",
        "black",
        "build",
        "click",
        "cookies",
        "events",
        "express",
        "future",
        "glob",
        "hug",
        "invoke",
        "jobs",
        "keyring",
        "mock",
        "pages",
        "pass",
        "path",
        "plan",
        "poetry",
        "pointer",
        "prefect",
        "present",
        "process",
        "record",
        "records",
        "requests",
        "responses",
        "rich",
        "schedule",
        "schema",
        "select",
        "server",
        "state",
        "structure",
        "table",
        "template",
        "text",
        "time",
        "token",
        "tokens",
        "toolz",
        "trio",
        "typing",
        "units",
        "watch",
        "wheel",
        "when",
        "yarn",
    ]
)


class Known(NamedTuple):
    """A known name in a sentence: from and to which token, its type, and where it is known from."""

    first: int
    last: int
    type: EntityType
    source: str


@dataclass(frozen=True)
class Knowledge:
    """Names by where they come from. `project` is the project's own name; `project_type` what sort of thing it is."""

    packages: frozenset[str] = frozenset()
    authors: frozenset[str] = frozenset()
    organizations: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    symbols: frozenset[str] = frozenset()
    others: Mapping[str, EntityType] = field(default_factory=dict)  # entities known already
    project: str = ""
    project_type: EntityType = "Technology"

    def __bool__(self) -> bool:
        return bool(self._names)

    def matches(self, tokens: Sequence[Token]) -> Iterator[Known]:
        """Known names that the tokens spell, longest first, as whole words."""
        names, longest = self._names, self._longest
        place = 0
        while place < len(tokens):
            step = 1
            low = tokens[place].text.lower()
            for length in range(min(longest.get(low, 0), len(tokens) - place), 0, -1):
                words = tuple(token.text for token in tokens[place : place + length])
                found = names.get(tuple(word.lower() for word in words))
                if found is not None and (found[1] is None or found[1] == words):
                    yield Known(place, place + length, found[0], found[2])
                    step = length
                    break
            place += step

    @cached_property
    def _names(self) -> dict[tuple[str, ...], tuple[EntityType, tuple[str, ...] | None, str]]:
        """By lowered words: type, the only spelling that counts if case matters, and the source."""
        found: dict[tuple[str, ...], tuple[EntityType, tuple[str, ...] | None, str]] = {}

        def add(names: Iterable[str], type: EntityType, source: str) -> None:
            for name in sorted(names):
                words = tuple(token.text for part in sentences(name[:200]) for token in part)
                if not words or not any(char.isalnum() for char in name):
                    continue
                exact = words if _strict(words, source) else None
                found[tuple(word.lower() for word in words)] = (type, exact, source)

        # Later ones win: a name the project itself uses says more than a symbol's.
        add(self.symbols, "Concept", "symbol")
        add(self.paths, "File", "path")
        # A file is also called by its last part, where that is unmistakably a file.
        add({path.rsplit("/", 1)[-1] for path in self.paths if "." in path.rsplit("/", 1)[-1][1:]}, "File", "path")
        add((name for name in self.packages if not _plain_word(name)), "Technology", "package")
        add(self.organizations, "Organization", "organisation")
        add(self.authors, "Person", "author")
        given = {author.split()[0] for author in self.authors if len(author.split()) > 1 and len(author.split()[0]) > 2}
        add({name for name in given if name[:1].isupper()} - self.authors, "Person", "author")
        for name, type in self.others.items():
            add((name,), type, "entity")
        if self.project:
            add((self.project,), self.project_type, "project")
        return found

    @cached_property
    def _longest(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for words in self._names:
            found[words[0]] = max(found.get(words[0], 0), len(words))
        return found


def _plain_word(name: str) -> bool:
    return bool(_ORDINARY.match(name)) or name.lower() in _WORDS


def _strict(words: tuple[str, ...], source: str) -> bool:
    """Whether only this very spelling counts: symbols and people are written as they are, "Will" is not "will"."""
    return source in ("symbol", "author") or (len(words) == 1 and len(words[0]) <= 3)


NOTHING = Knowledge()
