"""The names that are known from the project itself, and where a sentence uses them.

`ProjectNames` collects them from manifests, history, remote and scan, when first needed and again after each scan.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ....core.graph_values import EntityType
from ....core.paths import read_regular
from ....core.records import Project
from ....core.store.store import Store
from ....worktree.git.repository import Repository, decode_output
from ....worktree.git.runner import run_git
from .shapes import cue_words
from .tokens import WordToken, sentences

__all__ = ["NO_KNOWLEDGE", "Knowledge", "ProjectNames", "names_in"]


_ORDINARY = re.compile(r"[a-z]{1,4}\Z")  # a short lower-case package name is more often a plain word
_WORDS = cue_words("package_words")


class KnownName(NamedTuple):
    """A known name in a sentence: its tokens, its type, and where it is known from."""

    first: int
    last: int
    type: EntityType
    source: str


@dataclass(frozen=True)
class Knowledge:
    """Names by origin. `project` is the project's own name, of type `project_type`; `own` are its names elsewhere."""

    packages: frozenset[str] = frozenset()
    authors: frozenset[str] = frozenset()
    organizations: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    symbols: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    project: str = ""
    project_type: EntityType = "Technology"

    def __bool__(self) -> bool:
        return bool(self._names)

    def matches(self, tokens: Sequence[WordToken]) -> Iterator[KnownName]:
        """The known names among the tokens, the longest first, as whole words."""
        names, longest = self._names, self._longest
        place = 0
        while place < len(tokens):
            step = 1
            low = tokens[place].text.lower()
            for length in range(min(longest.get(low, 0), len(tokens) - place), 0, -1):
                words = tuple(token.text for token in tokens[place : place + length])
                found = names.get(tuple(word.lower() for word in words))
                if found is not None and (found[1] is None or found[1] == words):
                    yield KnownName(place, place + length, found[0], found[2])
                    step = length
                    break
            place += step

    @cached_property
    def _names(self) -> dict[tuple[str, ...], tuple[EntityType, tuple[str, ...] | None, str]]:
        """By lower-case words: the type, the exact spelling if case matters, and the origin."""
        found: dict[tuple[str, ...], tuple[EntityType, tuple[str, ...] | None, str]] = {}

        def add(names: Iterable[str], type: EntityType, source: str) -> None:
            for name in sorted(names):
                words = tuple(token.text for part in sentences(name[:200]) for token in part)
                if not words or not any(char.isalnum() for char in name):
                    continue
                exact = words if _strict(words, source) else None
                found[tuple(word.lower() for word in words)] = (type, exact, source)

        # Later ones win: a name that the project uses for itself says more than a symbol.
        add(self.symbols, "Concept", "symbol")
        add(self.paths, "File", "path")
        # A file is also known by its base name, if that has an extension.
        add({path.rsplit("/", 1)[-1] for path in self.paths if "." in path.rsplit("/", 1)[-1][1:]}, "File", "path")
        add((name for name in self.packages if not _plain_word(name)), "Technology", "package")
        add(self.organizations, "Organization", "organisation")
        add(self.authors, "Person", "author")
        given = {author.split()[0] for author in self.authors if len(author.split()) > 1 and len(author.split()[0]) > 2}
        add({name for name in given if name[:1].isupper()} - self.authors, "Person", "author")
        add(self.own, self.project_type, "project")
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
    """Whether case matters, as for symbols and people: "Will" is not "will"."""
    return source in ("symbol", "author") or (len(words) == 1 and len(words[0]) <= 3)


NO_KNOWLEDGE = Knowledge()


_MANIFEST_BYTES = 1_000_000
_COMMITS = 2_000
# More names would take seconds to load, and memories rarely mention files deep in a large tree.
_PATHS = 3_000
_SYMBOLS = 3_000
_SHORTEST_SYMBOL = 5
# Lock files are left out: nobody mentions indirect dependencies.
_MANIFESTS = ("pyproject.toml", "requirements*.txt", "package.json", "Cargo.toml", "composer.json", "go.mod", "Gemfile")


class ProjectNames:
    """The known names of one project, cached until the next scan."""

    def __init__(self, store: Store, project: Project, folder: Path | None, repository: Repository | None) -> None:
        self._store = store
        self._project = project
        self._folder = repository.root if repository and not repository.is_bare else folder
        self._repository = repository
        self._known: tuple[int, Knowledge] | None = None

    def get(self) -> Knowledge:
        with self._store.database.read() as session:
            scanned = self._store.scans.latest(session, self._project.id)
        known = self._known
        if known is None or known[0] != scanned:
            # No lock, because git may take long; two threads may read the same.
            known = self._known = (scanned, self._read(scanned))
        return known[1]

    def _read(self, scanned: int) -> Knowledge:
        paths: frozenset[str] = frozenset()
        symbols: frozenset[str] = frozenset()
        if scanned:
            with self._store.database.read() as session:
                paths = frozenset(list(self._store.scans.files(session, self._project.id))[:_PATHS])
                rows = self._store.scans.symbols(session, self._project.id)
            symbols = frozenset(one.name for _, one in rows[:_SYMBOLS] if len(one.name) >= _SHORTEST_SYMBOL)
        if self._folder is None:
            return NO_KNOWLEDGE if not paths else Knowledge(paths=paths, symbols=symbols)
        packages, own = names_in(self._folder)
        return Knowledge(
            packages=frozenset(packages),
            own=frozenset(own),
            authors=frozenset(self._authors()),
            organizations=frozenset(self._organisations()),
            paths=paths,
            symbols=symbols,
            project=self._project.name,
        )

    def _authors(self) -> Iterator[str]:
        if self._repository is None:
            return
        answer = run_git(self._repository.root, "log", f"--max-count={_COMMITS}", "--format=%aN")
        if answer is not None and answer.returncode == 0:
            # A single word is more often a nickname or a machine than a person.
            yield from {line.strip() for line in decode_output(answer.stdout).splitlines() if " " in line.strip()}

    def _organisations(self) -> Iterator[str]:
        parts = (self._project.remote or "").split("/")
        # host/organisation/repository; a local path has no host.
        if len(parts) >= 3 and "." in parts[0]:
            yield parts[1]


def names_in(folder: Path) -> tuple[set[str], set[str]]:
    """The packages in the manifests of a folder, and the names that the manifests give the project itself."""
    from ....worktree.manifests.manifests import read_dependencies, read_own_version, short_name

    found: set[str] = set()
    own: set[str] = set()
    for name in _MANIFESTS:
        for path in sorted(folder.glob(name)):
            data = read_regular(path, _MANIFEST_BYTES)
            text = "" if data is None else data.decode("utf-8", "replace")
            found.update(short_name(one.name) for one in read_dependencies(path.name, text) if one.group != "language")
            stated = read_own_version(path.name, text)
            own.update({short_name(stated.name)} if stated and stated.name else ())
    return found, own
