"""Where saved texts of one kind are looked for: the project's files and its store, the person, the organisation,
and what comes with Cortex, in this order. The first that has a name answers for it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from ..clock import Clock, from_micros, to_micros
from ..errors import CortexError, InvalidInput, PromptNotFound, StorageError
from ..memory.place import Place, canonical_domain
from ..records import DOMAINS, Domain, Saved, SavedKind, Shelf
from ..security.callers import acting_as
from ..security.permission import readable, require_admin, require_write
from ..store.database import Session
from ..store.store import Store
from .checks import is_saved_name
from .draft import Draft
from .folder import PromptFolder, Shared
from .results import Listed, Listing
from .structured import one_line

__all__ = ["Shelves"]

_ORDER: tuple[Shelf, ...] = (*DOMAINS, "builtin")
_LIMIT_MOST = 1_000
_OFFSET_MOST = 1_000_000
# The largest number that the store can be asked for.
_VERSION_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class _Fixed:
    """Texts that lie outside the store: of the project's files, and what comes with Cortex."""

    files: dict[str, Saved]
    builtins: dict[str, Saved]
    problems: tuple[str, ...]


class _Name(NamedTuple):
    """A name of a list, which shelf it is from, and the text itself where that lies outside the store."""

    name: str
    rank: int
    outside: Saved | None


class Shelves:
    """`checked` brings a draft into its kept form, or raises."""

    def __init__(
        self,
        kind: SavedKind,
        store: Store,
        clock: Clock,
        place: Place,
        folder: PromptFolder,
        builtins: Callable[[], Sequence[Draft]],
        checked: Callable[[Draft], Draft],
    ) -> None:
        self._kind = kind
        self._store = store
        self._clock = clock
        self._place = place
        self._folder = folder
        self._builtins = builtins
        self._checked = checked
        self._read: tuple[Shared, _Fixed] | None = None

    # -- one text ---------------------------------------------------------------------------------

    def find(self, name: str, domain: str | None = None, version: int | None = None) -> Saved:
        """A text by name: of one domain, or the first in order. A version is one of the store's."""
        if version is not None and not 1 <= version <= _VERSION_MOST:
            raise InvalidInput("Versions count from 1, and there are not so many.", field="version")
        shelves = _ORDER if domain is None else (_shelf(domain),)
        if not is_saved_name(name):
            raise self._not_found(name, domain, version)
        fixed = self._fixed()
        with self._store.database.read() as session:
            for shelf in self._seen(shelves):
                if found := self._on_shelf(session, fixed, shelf, name, version):
                    return found
                # Not a version of another text, whose name this one hides.
                if version and self._store.saved.among(session, self._space(shelf), self._kind, (name,)):
                    break
        raise self._not_found(name, domain, version)

    def _on_shelf(self, session: Session, fixed: _Fixed, shelf: Shelf, name: str, version: int | None) -> Saved | None:
        outside = _outside_of(fixed, shelf)
        if name in outside and version is None:
            used = self._uses(session, shelf).get(name)
            return _with_uses(outside[name], used)
        if shelf == "builtin":
            return None
        return self._store.saved.get(session, self._space(shelf), self._kind, name, version)

    def stored(self, name: str, domain: Domain) -> Saved | None:
        """What the store has under a name, whatever lies before it."""
        if not self._seen((domain,)):
            return None
        with self._store.database.read() as session:
            return self._store.saved.get(session, self._space(domain), self._kind, name)

    def versions(self, name: str, domain: str | None = None) -> list[Saved]:
        """All versions that the store has of a text, oldest first."""
        found = self.find(name, domain)
        if found.version is None:
            return [found]
        with self._store.database.read() as session:
            return self._store.saved.versions(session, self._space(found.domain), self._kind, name)

    def put(self, saved: Saved) -> tuple[Saved, str | None]:
        """Keep a text as the next version of its name; it, and the file that hides it if there is one."""
        now = to_micros(self._clock.now())
        space = self._space(saved.domain)
        require_write(space)
        with self._store.database.write() as session:
            version = self._store.saved.put(session, space, saved, now)
            kept = self._store.saved.get(session, space, self._kind, saved.name, version)
        hidden = self._fixed().files.get(saved.name) if saved.domain == "project" else None
        return kept or saved, hidden.path if hidden else None

    def remove(self, name: str, domain: str) -> Saved:
        """Take a text away with all its versions; it, as it was last."""
        shelf = canonical_domain(domain)
        if not is_saved_name(name):
            raise self._not_found(name, domain, None)
        space = self._space(shelf)
        require_admin(space)
        with self._store.database.write() as session:
            found = self._store.saved.get(session, space, self._kind, name)
            if found is not None:
                self._store.saved.remove(session, space, self._kind, name)
                return found
        shared = self._fixed().files.get(name) if shelf == "project" else None
        if shared is not None:
            raise InvalidInput(
                f"The {self._kind} {name!r} lies in the file {shared.path}.", remedy="Delete that file.", field="name"
            )
        raise self._not_found(name, domain, None)

    def used(self, saved: Saved) -> None:
        """Count a use. A store that cannot be written now is no reason to refuse it."""
        space = self._space(saved.domain)
        try:
            # Whoever may read may use: the count is the server's own.
            with acting_as(None), self._store.database.write() as session:
                self._store.saved.used(session, space, self._kind, saved.name, to_micros(self._clock.now()))
        except StorageError:
            return

    # -- many -------------------------------------------------------------------------------------

    def page(self, domain: str | None, tags: Sequence[str], limit: int, offset: int) -> Listing:
        """Texts by name, those of one name in the order in which they are looked for."""
        if not 1 <= limit <= _LIMIT_MOST:
            raise InvalidInput(f"The limit is not between 1 and {_LIMIT_MOST:,}.", field="limit")
        if not 0 <= offset <= _OFFSET_MOST:
            raise InvalidInput(f"The offset is not between 0 and {_OFFSET_MOST:,}.", field="offset")
        # What comes with Cortex is listed only when asked for: a list of what was saved should hold no more.
        shelves = self._seen(DOMAINS if domain is None else (_shelf(domain),))
        fixed, wanted = self._fixed(), {tag.casefold() for tag in tags}
        saved, kind = self._store.saved, self._kind
        with self._store.database.read() as session:
            sources: list[list[_Name]] = []
            total = 0
            for rank, shelf in enumerate(shelves):
                outside = _outside_of(fixed, shelf).values()
                sources.append(
                    [_Name(one.name, rank, one) for one in outside if wanted <= {tag.casefold() for tag in one.tags}]
                )
                total += len(sources[-1])
                if shelf != "builtin":
                    names = saved.names(session, self._space(shelf), kind, tags, limit + offset)
                    sources.append([_Name(name, rank, None) for name in names])
                    total += saved.count(session, self._space(shelf), kind, tags)
            # A merge keeps the order of the sources among equal names.
            page = list(islice(heapq.merge(*sources, key=lambda one: one.name), offset, offset + limit))
            shown = self._read_page(session, shelves, page)
            problems = (*fixed.problems, *(self._hidden(session, fixed) if "project" in shelves else ()))
            return Listing(tuple(self._shadowed(session, fixed, shown)), total, problems)

    def _read_page(self, session: Session, shelves: Sequence[Shelf], page: Sequence[_Name]) -> list[Saved]:
        """What a page of names stands for, looked up only now: a list is long, and a page is short."""
        stored: dict[tuple[int, str], Saved] = {}
        uses: dict[int, dict[str, tuple[int, int]]] = {}
        for rank, shelf in enumerate(shelves):
            space = self._space(shelf)
            names = [one.name for one in page if one.rank == rank and one.outside is None]
            if names:
                found = self._store.saved.some(session, space, self._kind, names)
                stored.update(((rank, name), one) for name, one in found.items())
            if any(one.rank == rank and one.outside for one in page):
                uses[rank] = self._uses(session, shelf)
        return [
            _with_uses(one.outside, uses[one.rank].get(one.name)) if one.outside else stored[one.rank, one.name]
            for one in page
        ]

    def _uses(self, session: Session, shelf: Shelf) -> dict[str, tuple[int, int]]:
        # What comes with Cortex is used by all, and how often tells of others.
        space = self._space(shelf)
        return self._store.saved.uses(session, space, self._kind) if readable(space) else {}

    def visible(self) -> list[Saved]:
        """Every text that answers for its name, without contents."""
        fixed = self._fixed()
        found: dict[str, Saved] = {**fixed.builtins}
        with self._store.database.read() as session:
            for shelf in reversed(self._seen(DOMAINS)):
                rows = self._store.saved.all(session, self._space(shelf), self._kind)
                found.update((one.name, one) for one in rows)
        found.update(fixed.files)
        return [found[name] for name in sorted(found)]

    def _shadowed(self, session: Session, fixed: _Fixed, shown: Sequence[Saved]) -> Iterable[Listed]:
        names = sorted({one.name for one in shown})
        among = self._store.saved.among
        taken: dict[Shelf, set[str]] = {
            shelf: among(session, self._space(shelf), self._kind, names) for shelf in self._seen(DOMAINS)
        }
        for one in shown:
            before: Shelf | None = None
            if one.name in fixed.files and one.path != fixed.files[one.name].path:
                before = "project"
            elif one.path is None:
                earlier = _ORDER[: _ORDER.index(one.domain)]
                before = next((shelf for shelf in earlier if one.name in taken.get(shelf, ())), None)
            yield Listed(one, before)

    def _hidden(self, session: Session, fixed: _Fixed) -> list[str]:
        """What was saved in the project under the name of one of its files: only the file is seen."""
        taken = self._store.saved.among(session, self._space("project"), self._kind, tuple(fixed.files))
        return [f"{fixed.files[name].path} hides the {self._kind} {name!r} of the store." for name in sorted(taken)]

    # -- changes ----------------------------------------------------------------------------------

    def state(self) -> tuple[int, object]:
        """Differs after every change to what is seen from here, by whichever process."""
        with self._store.database.read() as session:
            return self._store.saved.changes(session, self._place.spaces(), self._kind), self._folder.fingerprint()

    # -- texts outside the store --------------------------------------------------------------------

    def _fixed(self) -> _Fixed:
        # The same object while nothing changed; another one whenever the system refused a file, which may pass.
        shared = self._folder.read()
        if self._read is not None and self._read[0] is shared:
            return self._read[1]
        problems = list(shared.problems)
        files: dict[str, Saved] = {}
        for item in shared.items:
            try:
                draft = self._checked(item.draft)
            except CortexError as error:
                problems.append(f"{one_line(item.path)}: {error}")
                continue
            if draft.name not in files:
                one = _outside(draft, "project")
                files[draft.name] = replace(one, path=item.path, updated_at=item.changed_at)
        builtins = {one.name: _outside(self._checked(one), "builtin") for one in self._builtins()}
        fixed = _Fixed(dict(sorted(files.items())), dict(sorted(builtins.items())), tuple(problems))
        self._read = (shared, fixed)
        return fixed

    def _seen(self, shelves: Sequence[Shelf]) -> tuple[Shelf, ...]:
        """Those of the shelves that the caller may read; what comes with Cortex is everybody's."""
        return tuple(shelf for shelf in shelves if shelf == "builtin" or readable(self._space(shelf)))

    def _space(self, shelf: Shelf) -> str:
        return shelf if shelf == "builtin" else self._place.space(shelf)

    def _not_found(self, name: str, domain: str | None, version: int | None) -> PromptNotFound:
        where = f" in the domain {domain[:40]}" if domain else ""
        which = f" with a version {version}" if version is not None else ""
        return PromptNotFound(
            f"There is no {self._kind} {name[:80]!r}{which}{where}.",
            remedy="List them to see what there is.",
            field="version" if version is not None else "name",
        )


def _outside_of(fixed: _Fixed, shelf: Shelf) -> dict[str, Saved]:
    return fixed.files if shelf == "project" else fixed.builtins if shelf == "builtin" else {}


def _shelf(domain: str) -> Shelf:
    return "builtin" if domain.strip().lower() == "builtin" else canonical_domain(domain)


def _outside(draft: Draft, shelf: Shelf) -> Saved:
    return Saved(
        kind=draft.kind,
        name=draft.name,
        domain=shelf,
        content=draft.content,
        description=draft.description,
        tags=draft.tags,
        variables=draft.variables,
    )


def _with_uses(saved: Saved, used: tuple[int, int] | None) -> Saved:
    return replace(saved, uses=used[0], used_at=from_micros(used[1])) if used else saved
