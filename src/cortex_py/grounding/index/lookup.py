"""What a project's index knows of a name: one view of it for one verification, within the sources that were asked for.

What is read once is kept while the view lasts, so that thirty claims about one file read it once.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from itertools import accumulate

from ..clock import from_micros
from ..worktree.decoding import decode
from ..worktree.files import FileRef, read_file
from ..worktree.history import Change, Line, commit_facts, patch
from ..worktree.imports import Import
from ..worktree.manifests import Dependency, Stated, same_package
from ..worktree.settings_keys import Setting
from .found import ChangeRow, Definition, Revision, Seen
from .project_index import ProjectIndex, Standing
from .sources import Sources
from .sqlite_reading import IndexReader
from .words import words_of

__all__ = ["Lookup"]

_MOST = 400  # more places than this tell nothing about one of them
_NEAR = 0.6  # how alike two names are that one may be a slip for
_LONGEST_LINE = 2_000


class Lookup:
    def __init__(self, index: ProjectIndex, standing: Standing, sources: Sources) -> None:
        self._index = index
        self._reader = IndexReader(index.file)
        self.standing = standing
        self.sources = sources
        self._lines: dict[str, tuple[str, ...]] = {}
        self._lowered: dict[str, tuple[str, list[int]]] = {}
        self._revisions: dict[int, Revision | None] = {}
        self._patches: dict[tuple[str | None, str], tuple[Line, ...]] = {}

    # -- files -----------------------------------------------------------------------------------

    @cached_property
    def paths(self) -> dict[str, str]:
        """All files of the allowed sources, each with its state."""
        return {path: state for path, state in self.every_path.items() if self.sources.takes(path)}

    @cached_property
    def every_path(self) -> dict[str, str]:
        """All files, whatever may count, each with its state."""
        return self._reader.states()

    def files(self, written: str) -> list[str]:
        """The files that a path may mean: itself, or those that end in it; below it, for a folder."""
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
        """A file that is written without its ending: "the README"."""
        if "." in posixpath.basename(wanted):
            return []
        return [p for p in self.paths if posixpath.splitext(p)[0].lower() == wanted.lower()]

    def _below(self, folder: str) -> list[str]:
        prefix = f"{folder}/"
        return [path for path in self.paths if path.startswith(prefix) or f"/{prefix}" in path]

    def module(self, dotted: str) -> list[str]:
        """The files that a dotted name may mean as a module."""
        path = dotted.replace("::", ".").replace(".", "/")
        found = [
            hit for ending in (".py", "/__init__.py", ".ts", ".js", "/index.ts") for hit in self.files(path + ending)
        ]
        return [hit for hit in found if "/" in path or posixpath.splitext(posixpath.basename(hit))[0] == path]

    def on_disk(self, written: str) -> bool:
        """Whether a file lies in the folder though git ignores it; as long as not all files are known, none does."""
        wanted = posixpath.normpath(written)
        if not self.standing.complete:
            return False
        if wanted.startswith(("/", "..", "~")) or wanted == "." or not self.sources.takes(wanted):
            return False
        place = self._index.root / wanted
        try:
            return place.exists() and not place.is_symlink() and place.resolve().is_relative_to(self._index.root)
        except OSError:
            return False

    def outside(self, written: str) -> bool:
        """Whether a file is there, but not among the sources that may count."""
        if not self.sources.narrowed:
            return False
        name = posixpath.basename(written).lower()
        return bool(name and self._reader.named(name))

    def nearest_file(self, written: str) -> str | None:
        names = {posixpath.basename(path): path for path in reversed(self.paths)}
        found = difflib.get_close_matches(posixpath.basename(written), list(names)[:20_000], 1, 0.75)
        return names[found[0]] if found else None

    def lines(self, path: str) -> tuple[str, ...]:
        """The lines of a file as it is now; none of one that is not text."""
        if path not in self._lines:
            readable = self.paths.get(path) in ("read", "generated")
            data = read_file(self._index.root, FileRef(path, 0, None)) if readable else None
            text = (decode(data) if data is not None else None) or ""
            self._lines[path] = tuple(line[:_LONGEST_LINE] for line in text.split("\n"))
        return self._lines[path]

    def lowered(self, path: str) -> tuple[str, list[int]]:
        """The text of a file in lower case, and where its lines begin in it."""
        if path not in self._lowered:
            lines = [line.lower() for line in self.lines(path)]
            self._lowered[path] = "\n".join(lines), list(accumulate((len(line) + 1 for line in lines[:-1]), initial=0))
        return self._lowered[path]

    def places(self, path: str, name: str, first: int = 1, last: int | None = None) -> list[int]:
        """The lines of a file, of all or between two, that have a name as a word."""
        pattern = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
        lines = self.lines(path)
        return [n for n in range(first, min(last or len(lines), len(lines)) + 1) if pattern.search(lines[n - 1])]

    # -- names -----------------------------------------------------------------------------------

    def definitions(self, name: str) -> list[Definition]:
        """Where a name is defined; a dotted one by its last part, with the others around it."""
        parts = [part for part in re.split(r"\.|::|#|->", name) if part]
        if not parts:
            return []
        found = [one for one in self._reader.definitions(parts[-1].lower(), _MOST) if one.path in self.paths]
        # What a stub declares is defined elsewhere.
        found.sort(key=lambda one: one.path.endswith((".pyi", ".d.ts")))
        exact = [one for one in found if one.name == parts[-1]] or found
        if len(parts) == 1:
            return exact
        inside = [one for one in exact if _belongs(one, parts)]
        # What is no class of the project is a package or an instance, and says nothing about where.
        return inside if inside or self._reader.is_defined(parts[-2]) else exact

    def in_file(self, path: str) -> list[Definition]:
        return self._reader.definitions_in(path)

    def nearest(self, name: str, paths: Sequence[str]) -> Definition | None:
        """The definition whose name is most like one that is not there: in the files named, else anywhere.

        None as long as not everything was read: then the name itself may still be there.
        """
        if not self.standing.complete:
            return None
        last = re.split(r"\.|::|#|->", name)[-1]
        nearby = [one for path in paths[:20] for one in self.in_file(path)]
        for candidates in (nearby, self._sharing(last)):
            best = difflib.get_close_matches(last, [one.name for one in candidates], 1, _NEAR)
            if best:
                return next(one for one in candidates if one.name == best[0])
        return None

    def _sharing(self, name: str) -> list[Definition]:
        """Definitions in files that have a part of the name."""
        found: dict[str, None] = {}
        for word in sorted(words_of([name]) - {name.lower()}, key=len, reverse=True)[:3]:
            found.update(dict.fromkeys(self.having(word)[:20]))
        return [one for path in list(found)[:40] for one in self.in_file(path)]

    def having(self, word: str) -> list[str]:
        """The files that have a word; none where so many have it that it tells nothing."""
        quoted = _quoted(word)
        return [path for path in self._reader.having(quoted, _MOST) if path in self.paths] if quoted else []

    def knows(self, name: str) -> bool:
        """Whether a name stands anywhere in what may count, defined or not."""
        return bool(self.having(name))

    def imports(self, path: str) -> list[Import]:
        return self._reader.imports(path)

    # -- manifests and settings ------------------------------------------------------------------

    @cached_property
    def _dependencies(self) -> list[tuple[str, Dependency]]:
        return [row for row in self._reader.dependencies() if row[0] in self.paths]

    def dependencies(self, name: str) -> list[tuple[str, Dependency]]:
        return [row for row in self._dependencies if same_package(row[1].name, name)]

    @property
    def has_dependencies(self) -> bool:
        return bool(self._dependencies)

    def nearest_dependency(self, name: str) -> str | None:
        found = difflib.get_close_matches(name, list(dict.fromkeys(one.name for _, one in self._dependencies)), 1, 0.7)
        return found[0] if found else None

    def stated(self) -> list[tuple[str, Stated]]:
        """The versions that the project gives itself, those in its outermost folder first."""
        found = [row for row in self._reader.stated() if row[0] in self.paths]
        return sorted(found, key=lambda one: (one[0].count("/"), one[0]))

    def settings(self, key: str) -> list[tuple[str, Setting]]:
        found = [row for row in self._reader.settings(key.rpartition(".")[2].lower(), _MOST) if row[0] in self.paths]
        return [one for one in found if f".{one[1].key.lower()}".endswith(f".{key.lower()}")]

    # -- history ---------------------------------------------------------------------------------

    @property
    def has_history(self) -> bool:
        return self._index.repository is not None and self.sources.history

    def changes(self, column: str, name: str, paths: Sequence[str] | None = None) -> list[Seen]:
        """Changes that introduced, dropped or touched a name, in files or anywhere; not committed ones first."""
        wanted = set(paths) if paths is not None else None
        found = [seen for seen, change in self._uncommitted() if name in getattr(change, column)]
        if quoted := _quoted(name):
            found += self._seen(self._reader.changes(column, quoted, _MOST))
        return [one for one in found if wanted is None or one.path in wanted or one.old_path in wanted]

    def changes_named(self, written: str) -> list[Seen]:
        """The changes of files that end in a path, among them files that are no longer there."""
        name, ending = posixpath.basename(written).lower(), f"/{written.lower()}"
        found = [seen for seen, _ in self._uncommitted() if f"/{seen.path.lower()}".endswith(ending)]
        rows = self._reader.changes_named(name, _MOST)
        return found + [one for one in self._seen(rows) if f"/{one.path.lower()}".endswith(ending)]

    def commit(self, prefix: str) -> Revision | None:
        """The commit that an abbreviated id means."""
        if not self.has_history or not re.fullmatch(r"[0-9a-f]{4,64}", prefix):
            return None
        found = [one for number in self._reader.numbers(prefix) if (one := self._revision(number)) is not None]
        if not found and not self.standing.whole_history and self._index.repository is not None:
            # Older than what is read of a long history: git still knows it.
            old = commit_facts(self._index.repository, prefix)
            known = old is not None and old.id in self.standing.commits
            return Revision(old.id, old.time, old.author, old.subject, old.body) if old and known else None
        return found[0] if len(found) == 1 else None

    def patch(self, seen: Seen) -> tuple[Line, ...]:
        """The lines that a change took away and put in."""
        if self._index.repository is None:
            return ()
        key = (seen.revision.id if seen.revision else None, seen.path)
        if key not in self._patches:
            self._patches[key] = patch(self._index.repository, *key).lines
        return self._patches[key]

    def tagged(self, version: str) -> Revision | None:
        """The commit that bears a version as its tag."""
        for commit, names in self.standing.tags.items() if self.has_history else ():
            named = any(re.fullmatch(rf"(?:.*[^\d.])?v?{re.escape(version)}", name) for name in names)
            if named and (found := self.commit(commit)) is not None:
                return found
        return None

    def release_before(self, release: Revision) -> datetime | None:
        """When the release before another was made; None for the first, and for one that is told by nothing else."""
        every = (self.commit(commit) for commit in self.standing.tags)
        return max((one.time for one in every if one is not None and one.time < release.time), default=None)

    def messages(self, words: Sequence[str]) -> list[tuple[Revision, int]]:
        """The commits whose messages have most of some words, with how many."""
        counts: Counter[tuple[int, int, str]] = Counter()
        for word in words if self.has_history else ():
            if quoted := _quoted(word):
                counts.update(row for row in self._reader.messages(quoted, _MOST) if row[2] in self.standing.commits)
        best = sorted(counts, key=lambda row: (-counts[row], -row[1], row[2]))[:40]
        return [(one, counts[row]) for row in best if (one := self._revision(row[0])) is not None]

    def _uncommitted(self) -> list[tuple[Seen, Change]]:
        if not self.has_history:
            return []
        now = self.standing.uncommitted
        every = (*now.unstaged, *now.staged, *now.untracked)
        return [(Seen(change.path, change.old_path, change.status, None), change) for change in every]

    def _seen(self, rows: Sequence[ChangeRow]) -> list[Seen]:
        """Those changes that lead to what is checked out, from the newest."""
        if not self.has_history:
            return []
        found = [
            Seen(path, old, status, one) for path, old, status, num in rows if (one := self._revision(num)) is not None
        ]
        return sorted(found, key=lambda one: (one.revision.time, one.revision.id, one.path), reverse=True)  # type: ignore[union-attr]

    def _revision(self, num: int) -> Revision | None:
        if num not in self._revisions:
            row = self._reader.revision(num)
            known = row is not None and row[0] in self.standing.commits
            self._revisions[num] = Revision(row[0], from_micros(row[1]), *row[2:]) if row and known else None
        return self._revisions[num]


def _belongs(definition: Definition, parts: Sequence[str]) -> bool:
    """Whether a definition has the other parts of a dotted name around it: classes, or the modules of its path."""
    around = [*re.split(r"[/.]", posixpath.splitext(definition.path)[0]), *definition.qualified.split(".")]
    return parts[-2].lower() in (part.lower() for part in around[:-1])


def _quoted(word: str) -> str:
    """One word for the index, whatever it is made of."""
    kept = re.sub(r"[^\w$]+", " ", word.lower()).strip()
    return f'"{kept}"' if kept and " " not in kept else ""
