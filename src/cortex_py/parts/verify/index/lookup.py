"""Looks up names in the index of a project, within the allowed sources. One object serves one verification.

It caches what it reads, so that thirty claims about one file read it once.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from itertools import accumulate

from ....core.clock import from_micros
from ....worktree.code.behaviour import CodeFact, SyntaxFile
from ....worktree.code.imports import Import
from ....worktree.code.naming import language_of
from ....worktree.files.choice import decode_text
from ....worktree.files.files import FileRef, read_file
from ....worktree.formats import FileSetting
from ....worktree.git.diffs import PatchFile
from ....worktree.git.history import ChangedLine, find_commit, read_patch
from ....worktree.manifests.manifests import Dependency, OwnVersion, same_package
from ..sources import Sources
from ..words import words_of
from .facts import ChangeRow, Definition, FileChange, Revision
from .project_index import IndexState, ProjectIndex
from .sqlite_index import IndexReader

__all__ = ["Lookup", "module_words"]

_MOST = 400  # a name with more places than this is too common to mean anything
_NEAR = 0.6  # the similarity from which one name may be a typing error for another
_LONGEST_LINE = 2_000


_Entry = tuple[str, str, int, str]


class Lookup:
    def __init__(self, index: ProjectIndex, state: IndexState, sources: Sources) -> None:
        self._index = index
        self._files_with: dict[str, list[str]] = {}
        self._word_lines: dict[tuple[str, str], tuple[int, ...]] = {}
        self._reader = IndexReader(index.file)
        self.state = state
        self.sources = sources
        self._lines: dict[str, tuple[str, ...]] = {}
        self._lowered: dict[str, tuple[str, list[int]]] = {}
        self._revisions: dict[int, Revision | None] = {}
        self._patches: dict[tuple[str | None, str], tuple[ChangedLine, ...]] = {}
        self._syntax: dict[str, SyntaxFile | None] = {}
        self._entries: dict[str, list[_Entry]] = {}
        self._settings: dict[str, list[FileSetting]] = {}

    # -- files -----------------------------------------------------------------------------------

    @cached_property
    def paths(self) -> dict[str, str]:
        """The files of the allowed sources, each with its state."""
        return {path: state for path, state in self.every_path.items() if self.sources.takes(path)}

    @cached_property
    def every_path(self) -> dict[str, str]:
        """All files of the project, each with its state."""
        return self._reader.states()

    @property
    def folder(self) -> str:
        """The name of the project's folder."""
        return self._index.root.name

    def files(self, written: str) -> list[str]:
        """The files that a path may mean: itself, files whose path ends in it, or for a folder the files below it."""
        wanted = posixpath.normpath(written.strip("/")) if written.strip("/") else ""
        if not wanted or wanted.startswith(".."):
            return []
        if wanted in self.paths and not written.endswith("/"):
            return [wanted]
        name = posixpath.basename(wanted).lower()
        named = [path for path in self._reader.named(name) if path in self.paths]
        exact = [path for path in named if f"/{path}".endswith(f"/{wanted}")]
        ends = exact or [path for path in named if f"/{path.lower()}".endswith(f"/{wanted.lower()}")]
        if ends:
            return sorted(ends, key=lambda path: (path.count("/"), path))
        return self._stems(wanted) or self._below(wanted)

    def _stems(self, wanted: str) -> list[str]:
        """Files named without their extension: "the README"."""
        if "." in posixpath.basename(wanted):
            return []
        return [p for p in self.paths if posixpath.splitext(p)[0].lower() == wanted.lower()]

    def _below(self, folder: str) -> list[str]:
        prefix = f"{folder}/"
        return [path for path in self.paths if path.startswith(prefix) or f"/{prefix}" in path]

    def module(self, dotted: str) -> list[str]:
        """The files of the module that a dotted name may mean."""
        path = dotted.replace("::", ".").replace(".", "/")
        found = [
            hit for ending in (".py", "/__init__.py", ".ts", ".js", "/index.ts") for hit in self.files(path + ending)
        ]
        return [hit for hit in found if "/" in path or posixpath.splitext(posixpath.basename(hit))[0] == path]

    def on_disk(self, written: str) -> bool:
        """Whether a file exists although git ignores it; False while the index is incomplete."""
        wanted = posixpath.normpath(written)
        if not self.state.complete:
            return False
        if wanted.startswith(("/", "..", "~")) or wanted == "." or not self.sources.takes(wanted):
            return False
        place = self._index.root / wanted
        try:
            return place.exists() and not place.is_symlink() and place.resolve().is_relative_to(self._index.root)
        except OSError:
            return False

    def outside(self, written: str) -> bool:
        """Whether a file exists outside the allowed sources."""
        if not self.sources.narrowed:
            return False
        name = posixpath.basename(written).lower()
        return bool(name and self._reader.named(name))

    def nearest_file(self, written: str) -> str | None:
        names = {posixpath.basename(path): path for path in reversed(self.paths)}
        found = difflib.get_close_matches(posixpath.basename(written), list(names)[:20_000], 1, 0.75)
        return names[found[0]] if found else None

    def lines(self, path: str) -> tuple[str, ...]:
        """The current lines of a file; none if it is not text."""
        if path not in self._lines:
            readable = self.paths.get(path) in ("read", "generated")
            data = read_file(self._index.root, FileRef(path, 0, None)) if readable else None
            text = (decode_text(data) if data is not None else None) or ""
            self._lines[path] = tuple(line[:_LONGEST_LINE] for line in text.split("\n"))
        return self._lines[path]

    def cached_lines(
        self, path: str, word: str, find: Callable[[str, str, Sequence[int]], tuple[int, ...]]
    ) -> tuple[int, ...]:
        """The lines of a file that have a word, cached for later claims."""
        if (path, word) not in self._word_lines:
            self._word_lines[path, word] = find(word, *self.lowered(path))
        return self._word_lines[path, word]

    def cached_entries(self, path: str, read: Callable[[str, tuple[str, ...]], list[_Entry]]) -> list[_Entry]:
        """The entries of a changelog, cached for later claims."""
        if path not in self._entries:
            self._entries[path] = read(path, self.lines(path))
        return self._entries[path]

    def lowered(self, path: str) -> tuple[str, list[int]]:
        """The text of a file in lower case, and the offsets of its lines."""
        if path not in self._lowered:
            lines = [line.lower() for line in self.lines(path)]
            self._lowered[path] = "\n".join(lines), list(accumulate((len(line) + 1 for line in lines[:-1]), initial=0))
        return self._lowered[path]

    def lines_with(self, path: str, name: str, first: int = 1, last: int | None = None) -> list[int]:
        """The numbers of the lines that have a name as a whole word, optionally between two lines."""
        pattern = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
        lines = self.lines(path)
        return [n for n in range(first, min(last or len(lines), len(lines)) + 1) if pattern.search(lines[n - 1])]

    # -- names -----------------------------------------------------------------------------------

    def definitions(self, name: str) -> list[Definition]:
        """Where a name is defined; a dotted name by its last part, inside the others."""
        parts = [part for part in re.split(r"\.|::|#|->", name) if part]
        if not parts:
            return []
        found = [one for one in self._reader.definitions(parts[-1].lower(), _MOST) if one.path in self.paths]
        # A private member of JavaScript, with or without its sign.
        hidden = self._reader.definitions(f"#{parts[-1].lower()}", _MOST) if not found else ()
        found += [replace(one, name=one.name.lstrip("#")) for one in hidden if one.path in self.paths]
        # A stub only declares what is defined elsewhere.
        found.sort(key=lambda one: one.path.endswith((".pyi", ".d.ts")))
        exact = [one for one in found if one.name == parts[-1]] or found
        if len(parts) == 1:
            return exact
        ending = ".".join(parts[-2:])
        if qualified := [one for one in exact if f".{one.qualified}".endswith(f".{ending}")]:
            return qualified
        inside = [one for one in exact if _belongs(one, parts)]
        # A prefix that is no class of the project is a package or an instance, and does not limit the place.
        return inside if inside or self._reader.is_defined(parts[-2]) else exact

    def in_file(self, path: str) -> list[Definition]:
        return self._reader.definitions_in(path)

    def syntax(self, path: str) -> SyntaxFile | None:
        """The syntax of a source file; None if its language is not read."""
        if path not in self._syntax:
            text = "\n".join(self.lines(path))
            language = language_of(path, text)
            found = self._index.syntax(path, text, language) if language is not None else None
            self._syntax[path] = found if found is not None and found.is_parsed else None
        return self._syntax[path]

    def facts(self, definition: Definition) -> tuple[CodeFact, ...]:
        """What a definition does, in the order of its source."""
        found = self.syntax(definition.path)
        return found.facts(definition.name, definition.line, definition.end_line) if found is not None else ()

    def nearest(self, name: str, paths: Sequence[str]) -> Definition | None:
        """The definition with the name most similar to a missing one: in the given files, else anywhere.

        None while the index is incomplete, because the name itself may still exist.
        """
        if not self.state.complete:
            return None
        last = re.split(r"\.|::|#|->", name)[-1]
        nearby = [one for path in paths[:20] for one in self.in_file(path)]
        for candidates in (nearby, self._sharing(last)):
            best = difflib.get_close_matches(last, [one.name for one in candidates], 1, _NEAR)
            if best:
                return next(one for one in candidates if one.name == best[0])
        return None

    def _sharing(self, name: str) -> list[Definition]:
        """Definitions in the files that contain a part of the name."""
        found: dict[str, None] = {}
        for word in sorted(words_of([name]) - {name.lower()}, key=len, reverse=True)[:3]:
            found.update(dict.fromkeys(self.files_with(word)[:20]))
        return [one for path in list(found)[:40] for one in self.in_file(path)]

    def files_with(self, word: str) -> list[str]:
        """The files that contain a word."""
        if word not in self._files_with:
            quoted = _quoted(word)
            found = self._reader.files_with(quoted, _MOST) if quoted else ()
            self._files_with[word] = [path for path in found if path in self.paths]
        return self._files_with[word]

    def knows(self, name: str) -> bool:
        """Whether a name occurs in the allowed sources, defined or not."""
        return bool(self.files_with(name))

    def imports(self, path: str) -> list[Import]:
        return self._reader.imports(path)

    # -- manifests and settings ------------------------------------------------------------------

    @cached_property
    def _dependencies(self) -> list[tuple[str, Dependency]]:
        return [row for row in self._reader.dependencies() if row[0] in self.paths]

    def dependencies(self, name: str) -> list[tuple[str, Dependency]]:
        return [row for row in self._dependencies if same_package(row[1].name, name)]

    def dependencies_of(self, path: str) -> list[Dependency]:
        return [one for where, one in self._dependencies if where == path]

    def runtimes(self, name: str) -> list[tuple[str, Dependency]]:
        """The versions of a language or its interpreter that manifests ask for; without a name of any."""
        rows = [row for row in self._dependencies if row[1].group == "language"]
        return [row for row in rows if not name or row[1].name.lower() == name.lower()]

    @property
    def has_dependencies(self) -> bool:
        return bool(self._dependencies)

    def nearest_dependency(self, name: str) -> str | None:
        found = difflib.get_close_matches(name, list(dict.fromkeys(one.name for _, one in self._dependencies)), 1, 0.7)
        return found[0] if found else None

    def stated(self) -> list[tuple[str, OwnVersion]]:
        """The project's own versions, those in the outermost folder first."""
        found = [row for row in self._reader.stated() if row[0] in self.paths]
        return sorted(found, key=lambda one: (one[0].count("/"), one[0]))

    def settings(self, key: str) -> list[tuple[str, FileSetting]]:
        found = [row for row in self._reader.settings(key.rpartition(".")[2].lower(), _MOST) if row[0] in self.paths]
        return [one for one in found if f".{one[1].key.lower()}".endswith(f".{key.lower()}")]

    def settings_of(self, path: str) -> list[FileSetting]:
        """The settings of one file."""
        if path not in self._settings:
            self._settings[path] = self._reader.settings_of(path) if path in self.paths else []
        return self._settings[path]

    @cached_property
    def modules(self) -> frozenset[str]:
        """The names of the modules that the project imports and of the packages it depends on, in lower case."""
        found = {word for module in self._reader.modules() for word in module_words(module)}
        found |= {one.name.lower().replace("-", "_") for _, one in self._dependencies}
        return frozenset(found)

    # -- history ---------------------------------------------------------------------------------

    @property
    def has_history(self) -> bool:
        return self._index.repository is not None and self.sources.history

    def changes(self, column: str, name: str, paths: Sequence[str] | None = None) -> list[FileChange]:
        """Changes that introduced, dropped or touched a name, optionally in some files; uncommitted ones first."""
        wanted = set(paths) if paths is not None else None
        found = [seen for seen, change in self._uncommitted() if name in getattr(change, column)]
        if quoted := _quoted(name):
            found += self._seen(self._reader.changes(column, quoted, _MOST))
        return [one for one in found if wanted is None or one.path in wanted or one.old_path in wanted]

    def changes_named(self, written: str) -> list[FileChange]:
        """The changes of files whose path ends so, including deleted files."""
        name, ending = posixpath.basename(written).lower(), f"/{written.lower()}"
        found = [seen for seen, _ in self._uncommitted() if f"/{seen.path.lower()}".endswith(ending)]
        rows = self._reader.changes_named(name, _MOST)
        return found + [one for one in self._seen(rows) if f"/{one.path.lower()}".endswith(ending)]

    def commit(self, prefix: str) -> Revision | None:
        """The commit with an abbreviated id."""
        if not self.has_history or not re.fullmatch(r"[0-9a-f]{4,64}", prefix):
            return None
        found = [one for number in self._reader.numbers(prefix) if (one := self._revision(number)) is not None]
        if not found and not self.state.whole_history and self._index.repository is not None:
            # Older than the indexed part of a long history; git still knows it.
            old = find_commit(self._index.repository, prefix)
            known = old is not None and old.id in self.state.commits
            return Revision(old.id, old.time, old.author, old.subject, old.body) if old and known else None
        return found[0] if len(found) == 1 else None

    @property
    def head(self) -> Revision | None:
        """The last commit."""
        repository = self._index.repository
        newest = repository.head().commit if repository is not None else None
        return self.commit(newest) if newest else None

    def patch(self, seen: FileChange) -> tuple[ChangedLine, ...]:
        """The lines that a change removed and added."""
        if self._index.repository is None:
            return ()
        key = (seen.revision.id if seen.revision else None, seen.path)
        if key not in self._patches:
            self._patches[key] = read_patch(self._index.repository, *key).lines
        return self._patches[key]

    def tagged(self, version: str) -> Revision | None:
        """The commit that is tagged with a version."""
        for commit, names in self.state.tags.items() if self.has_history else ():
            named = any(re.fullmatch(rf"(?:.*[^\d.])?v?{re.escape(version)}", name) for name in names)
            if named and (found := self.commit(commit)) is not None:
                return found
        return None

    def release_before(self, release: Revision) -> datetime | None:
        """The time of the previous tagged release; None for the first."""
        every = (self.commit(commit) for commit in self.state.tags)
        return max((one.time for one in every if one is not None and one.time < release.time), default=None)

    def messages(self, words: Sequence[str]) -> list[tuple[Revision, int]]:
        """The commits whose messages have most of the words, with how many."""
        counts: Counter[tuple[int, int, str]] = Counter()
        for word in words if self.has_history else ():
            if quoted := _quoted(word):
                counts.update(row for row in self._reader.messages(quoted, _MOST) if row[2] in self.state.commits)
        best = sorted(counts, key=lambda row: (-counts[row], -row[1], row[2]))[:40]
        return [(one, counts[row]) for row in best if (one := self._revision(row[0])) is not None]

    def _uncommitted(self) -> list[tuple[FileChange, PatchFile]]:
        if not self.has_history:
            return []
        now = self.state.uncommitted
        every = (*now.unstaged, *now.staged, *now.untracked)
        return [(FileChange(change.path, change.old_path, change.status, None), change) for change in every]

    def _seen(self, rows: Sequence[ChangeRow]) -> list[FileChange]:
        """The changes that are reachable from HEAD, the newest first."""
        if not self.has_history:
            return []
        found = [
            FileChange(path, old, status, one)
            for path, old, status, num in rows
            if (one := self._revision(num)) is not None
        ]
        return sorted(found, key=lambda one: (one.revision.time, one.revision.id, one.path), reverse=True)  # type: ignore[union-attr]

    def _revision(self, num: int) -> Revision | None:
        if num not in self._revisions:
            row = self._reader.revision(num)
            known = row is not None and row[0] in self.state.commits
            self._revisions[num] = Revision(row[0], from_micros(row[1]), *row[2:]) if row and known else None
        return self._revisions[num]


def module_words(module: str) -> set[str]:
    """The names under which a module goes: `node:http` is http, `github.com/gorilla/mux` is mux."""
    if module.startswith("."):
        return set()
    plain = module.lower().replace("-", "_").removeprefix("node:")
    first, _, rest = plain.partition("/")
    if rest and "." not in first:
        # `react/jsx` is a part of react, `@scope/name` is called name.
        return {plain, first, rest.partition("/")[0]} if first.startswith("@") else {plain, first}
    return {plain, *re.split(r"[./:]+", plain)}


def _belongs(definition: Definition, parts: Sequence[str]) -> bool:
    """Whether a definition is inside the class or module that a dotted name gives."""
    around = [*re.split(r"[/.]", posixpath.splitext(definition.path)[0]), *definition.qualified.split(".")]
    return parts[-2].lower() in (part.lower() for part in around[:-1])


def _quoted(word: str) -> str:
    """A word as an FTS5 string; "" if it is not a single word."""
    kept = re.sub(r"[^\w$]+", " ", word.lower()).strip()
    return f'"{kept}"' if kept and " " not in kept else ""
