"""What prompts and templates have in common: saving, listing, reading, deleting, files.

Texts are found in layers: the project's store, the person, the organisation, and the built-in texts, in this order. The
first layer that has a name wins. A text in a file of the project, which may be a stranger's, is called `project:NAME`;
the plain name finds it only where no layer has that name.
"""

from __future__ import annotations

import heapq
import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ...core.clock import Clock, from_micros, to_micros
from ...core.errors import CortexError, InvalidInput, PromptNotFound, StorageError
from ...core.memory.capture.capture import clean_tags
from ...core.memory.service import Memories
from ...core.memory.spaces import canonical_domain
from ...core.paths import open_regular
from ...core.records import DOMAINS, Domain, JsonValue, Saved, SavedDomain, SavedKind
from ...core.security.callers import acting_as, current_caller
from ...core.security.permission import may_read, require_admin, require_write
from ...core.security.policy import Screen
from ...core.security.quoting import neutralise
from ...core.security.repeats import next_key
from ...core.store.database import Session
from ...core.store.store import Store
from ...texts.structured import one_line
from .checks import OF_FOLDER, Draft, as_variables, check_draft, is_saved_name, plain_name, screen_saved, variable_names
from .files import FILE_MOST, FORMATS, dump, format_of, load
from .folder import FolderTexts, PromptFolder

__all__ = ["FilledPrompt", "ListEntry", "Listing", "RenderedText", "SavedTexts"]


@dataclass(frozen=True, slots=True)
class SaveResult:
    """A text that was saved, and warnings for its author."""

    saved: Saved
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ListEntry:
    """One line of a list: the text without its content, and the layer whose text its plain name finds, if another's."""

    saved: Saved
    shadowed_by: SavedDomain | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of a list, the total number, and files that could not be read."""

    items: tuple[ListEntry, ...]
    total: int
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FilledPrompt:
    """A prompt with its variables filled in, and their values."""

    saved: Saved
    content: str
    values: Mapping[str, JsonValue]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RenderedText:
    """A rendered template in the requested format, and the number of memories in it."""

    saved: Saved
    output: str
    format: str
    memories: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TextImport:
    """The names of imported texts by outcome; `problems` lists what could not be imported, and why."""

    created: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


logger = logging.getLogger(__name__)

_ORDER: tuple[SavedDomain, ...] = (*DOMAINS, "builtin")
_LIMIT_MOST = 1_000
_OFFSET_MOST = 1_000_000
# The largest number that the store can be asked for.
_VERSION_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class _OutsideTexts:
    """Texts outside the store: the project's files, with `project:` before their names, and the built-in ones."""

    files: dict[str, Saved]
    builtins: dict[str, Saved]
    problems: tuple[str, ...]


class _Name(NamedTuple):
    """A name in a list, the rank of its layer, and the text itself if it is outside the store."""

    name: str
    rank: int
    outside: Saved | None


class SavedTexts:
    """The saved texts of one kind that a caller sees and writes."""

    _kind: SavedKind

    def __init__(self, store: Store, clock: Clock, memories: Memories, screen: Screen, root: Path | None) -> None:
        """`root` is the folder of the project, whose own texts are read from its `.cortex`."""
        self._store = store
        self._clock = clock
        self._memories = memories
        self._screen = screen
        self._place = memories.place
        self._folder = PromptFolder(root, self._kind, screen.policy)
        self._read: tuple[FolderTexts, _OutsideTexts] | None = None

    def _builtins(self) -> Sequence[Draft]:
        """The texts that come with Cortex."""
        return ()

    def save(
        self,
        name: str,
        content: str,
        *,
        description: str | None = None,
        domain: str = "project",
        tags: Sequence[str] = (),
        variables: object = None,
    ) -> SaveResult:
        """Save a text under a name. An existing one gets a new version; the old ones stay.

        `variables` declares variables of the content: a list of objects with name, description, default, required and
        choices, or an object by name.
        """
        where = canonical_domain(domain)
        draft = Draft(
            name=plain_name(name),
            content=content,
            description=description or None,
            tags=tags,  # type: ignore[arg-type]  # any sequence is taken here and checked on the way in
            variables=as_variables(variables),
            kind=self._kind,
        )
        return self._put(draft, where)

    # -- one text ---------------------------------------------------------------------------------

    def get(self, name: str, *, domain: str | None = None, version: int | None = None) -> Saved:
        """One text: of a domain, or of the first layer that has the name, files last. Only the store has versions."""
        if version is not None and not 1 <= version <= _VERSION_MOST:
            raise InvalidInput("A version is a number from 1.", field="version")
        layers = _ORDER if domain is None else (_layer_of(domain),)
        name = plain_name(name)
        if not is_saved_name(_bare(name)):
            raise self._not_found(name, domain, version)
        readable, outside_texts = self._readable(layers), self._outside_texts()
        with self._store.database.read() as session:
            for layer in readable:
                if found := self._in_layer(session, outside_texts, layer, name, version):
                    return found
                # Not a version of a text that this one hides.
                if version and self._store.saved.taken_names(session, self._space(layer), self._kind, (name,)):
                    break
            file = outside_texts.files.get(f"{OF_FOLDER}{_bare(name)}")
            if file and version is None and "project" in readable:
                return _with_uses(file, self._uses(session, "project").get(file.name))
        raise self._not_found(name, domain, version)

    def _in_layer(
        self, session: Session, outside_texts: _OutsideTexts, layer: SavedDomain, name: str, version: int | None
    ) -> Saved | None:
        if layer == "builtin":
            found = outside_texts.builtins.get(name) if version is None else None
            return found and _with_uses(found, self._uses(session, layer).get(name))
        return self._store.saved.get(session, self._space(layer), self._kind, name, version)

    def _stored(self, name: str, domain: Domain) -> Saved | None:
        """The text that the store has under a name, even if another layer hides it."""
        if not self._readable((domain,)):
            return None
        with self._store.database.read() as session:
            return self._store.saved.get(session, self._space(domain), self._kind, name)

    def versions(self, name: str, *, domain: str | None = None) -> Sequence[Saved]:
        """All versions of a text in the store, oldest first."""
        found = self.get(name, domain=domain)
        if found.version is None:
            return [found]
        with self._store.database.read() as session:
            return self._store.saved.versions(session, self._space(found.domain), self._kind, found.name)

    def _store_version(self, saved: Saved) -> Saved:
        """Store a text as the next version of its name."""
        now = to_micros(self._clock.now())
        space = self._space(saved.domain)
        require_write(space)
        request = next_key()
        with self._store.database.write(space) as session:
            answered = self._store.requests.result(session, space, request)
            kept = self._store.saved.get(session, space, self._kind, saved.name, int(answered)) if answered else None
            if kept is None:
                version = self._store.saved.put(session, space, saved, now)
                kept = self._store.saved.get(session, space, self._kind, saved.name, version)
                if request:
                    self._store.requests.keep(session, space, {request: str(version)}, now)
        return kept or saved

    def delete(self, name: str, *, domain: str) -> Saved:
        """Delete a text with all its versions; returns its last version."""
        layer = canonical_domain(domain)
        name = plain_name(name)
        if not is_saved_name(_bare(name)):
            raise self._not_found(name, domain, None)
        space = self._space(layer)
        require_admin(space)
        with self._store.database.write(space) as session:
            found = self._store.saved.get(session, space, self._kind, name)
            if found is not None:
                self._store.saved.remove(session, space, self._kind, name)
                return found
        shared = self._outside_texts().files.get(f"{OF_FOLDER}{_bare(name)}") if layer == "project" else None
        if shared is not None:
            raise InvalidInput(
                f"The {self._kind} {name!r} is in the file {shared.path}.", remedy="Delete that file.", field="name"
            )
        raise self._not_found(name, domain, None)

    def _count_use(self, saved: Saved) -> None:
        """Count a use. A store that cannot be written is no reason to refuse it."""
        space = self._space(saved.domain)
        try:
            # Everybody who may read a text may use it: the count belongs to the server.
            with acting_as(None), self._store.database.write(space) as session:
                self._store.saved.used(session, space, self._kind, saved.name, to_micros(self._clock.now()))
        except StorageError as error:
            logger.debug("a use was not counted: %s", type(error).__name__)

    def _origin(self, saved: Saved) -> str:
        """The line before a text that somebody else may have written, for a model that might take it for the user's.

        That is what a file of the project holds, and on a server with accounts what members share.
        """
        if saved.path is None and (current_caller() is None or saved.domain not in ("project", "org")):
            return ""
        path, project = (json.dumps(neutralise(one)) for one in (saved.path or "", self._place.project.name))
        if saved.path is not None:
            return f"Not written by the user: the file {path} of the project {project} says:\n\n"
        where = f"project {project}" if saved.domain == "project" else "organisation"
        return f"Perhaps not written by the user: the shared {self._kind} of the {where} says:\n\n"

    # -- many -------------------------------------------------------------------------------------

    def list(self, *, domain: str | None = None, tags: Sequence[str] = (), limit: int = 20, offset: int = 0) -> Listing:
        """The saved texts by name, of one domain or all, with all of the tags; equal names in the order of layers."""
        tags = clean_tags(tags)
        if not 1 <= limit <= _LIMIT_MOST:
            raise InvalidInput(f"The limit is not between 1 and {_LIMIT_MOST:,}.", field="limit")
        if not 0 <= offset <= _OFFSET_MOST:
            raise InvalidInput(f"The offset is not between 0 and {_OFFSET_MOST:,}.", field="offset")
        # Built-in texts are listed only on request: a list of what was saved should hold no more.
        layers = self._readable(DOMAINS if domain is None else (_layer_of(domain),))
        outside_texts, wanted = self._outside_texts(), {tag.casefold() for tag in tags}
        saved, kind = self._store.saved, self._kind
        with self._store.database.read() as session:
            sources: list[list[_Name]] = []
            total = 0
            for rank, layer in enumerate(layers):
                outside = _texts_outside(outside_texts, layer).values()
                sources.append(
                    [_Name(one.name, rank, one) for one in outside if wanted <= {tag.casefold() for tag in one.tags}]
                )
                total += len(sources[-1])
                if layer != "builtin":
                    names = saved.names(session, self._space(layer), kind, tags, limit + offset)
                    sources.append([_Name(name, rank, None) for name in names])
                    total += saved.count(session, self._space(layer), kind, tags)
            # A merge keeps the order of the sources among equal names.
            page = list(islice(heapq.merge(*sources, key=lambda one: one.name), offset, offset + limit))
            shown = self._read_page(session, layers, page)
            return Listing(tuple(self._shadowed(session, outside_texts, shown)), total, outside_texts.problems)

    def _read_page(self, session: Session, layers: Sequence[SavedDomain], page: Sequence[_Name]) -> Sequence[Saved]:
        """Look up the texts of a page of names, only now: the list may be long."""
        stored: dict[tuple[int, str], Saved] = {}
        uses: dict[int, dict[str, tuple[int, int]]] = {}
        for rank, layer in enumerate(layers):
            space = self._space(layer)
            names = [one.name for one in page if one.rank == rank and one.outside is None]
            if names:
                found = self._store.saved.by_names(session, space, self._kind, names)
                stored.update(((rank, name), one) for name, one in found.items())
            if any(one.rank == rank and one.outside for one in page):
                uses[rank] = self._uses(session, layer)
        return [
            _with_uses(one.outside, uses[one.rank].get(one.name)) if one.outside else stored[one.rank, one.name]
            for one in page
        ]

    def _uses(self, session: Session, layer: SavedDomain) -> dict[str, tuple[int, int]]:
        # Built-in texts are used by all; their counts would reveal what others do.
        space = self._space(layer)
        return self._store.saved.uses(session, space, self._kind) if may_read(space) else {}

    def visible(self) -> Sequence[Saved]:
        """Every text that is not hidden by another, without contents."""
        outside_texts = self._outside_texts()
        found: dict[str, Saved] = {**outside_texts.builtins}
        with self._store.database.read() as session:
            for layer in reversed(self._readable(DOMAINS)):
                rows = self._store.saved.all(session, self._space(layer), self._kind)
                found.update((one.name, one) for one in rows)
        found.update(outside_texts.files)
        return [found[name] for name in sorted(found)]

    def _shadowed(self, session: Session, outside_texts: _OutsideTexts, shown: Sequence[Saved]) -> Iterable[ListEntry]:
        names = sorted({_bare(one.name) for one in shown})
        among = self._store.saved.taken_names
        taken: dict[SavedDomain, Collection[str]] = {
            layer: among(session, self._space(layer), self._kind, names) for layer in self._readable(DOMAINS)
        }
        taken["builtin"] = outside_texts.builtins
        for one in shown:
            # Every layer comes before a file.
            earlier = _ORDER if one.path else _ORDER[: _ORDER.index(one.domain)]
            yield ListEntry(one, next((layer for layer in earlier if _bare(one.name) in taken.get(layer, ())), None))

    # -- changes ----------------------------------------------------------------------------------

    def state(self) -> tuple[int, object]:
        """A value that differs after every visible change, by whichever process."""
        with self._store.database.read() as session:
            return self._store.saved.changes(session, self._place.spaces(), self._kind), self._folder.fingerprint()

    # -- texts outside the store --------------------------------------------------------------------

    def _outside_texts(self) -> _OutsideTexts:
        # The same object while nothing changed; a new one if the system refused a file, which may be temporary.
        shared = self._folder.read()
        if self._read is not None and self._read[0] is shared:
            return self._read[1]
        problems = list(shared.problems)
        files: dict[str, Saved] = {}
        for item in shared.items:
            try:
                draft, _ = check_draft(item.draft)
            except CortexError as error:
                problems.append(f"{one_line(item.path)}: {error}")
                continue
            name = f"{OF_FOLDER}{draft.name}"
            if name not in files:
                files[name] = replace(draft.as_saved("project"), name=name, path=item.path, updated_at=item.changed_at)
        builtins = {one.name: check_draft(one)[0].as_saved("builtin") for one in self._builtins()}
        outside_texts = _OutsideTexts(dict(sorted(files.items())), dict(sorted(builtins.items())), tuple(problems))
        self._read = (shared, outside_texts)
        return outside_texts

    def _readable(self, layers: Sequence[SavedDomain]) -> tuple[SavedDomain, ...]:
        """The layers that the caller may read; everybody may read the built-in texts."""
        return tuple(layer for layer in layers if layer == "builtin" or may_read(self._space(layer)))

    def _space(self, layer: SavedDomain) -> str:
        return layer if layer == "builtin" else self._place.space(layer)

    def _not_found(self, name: str, domain: str | None, version: int | None) -> PromptNotFound:
        where = f" in the domain {domain[:40]}" if domain else ""
        which = f" with a version {version}" if version is not None else ""
        return PromptNotFound(
            f"There is no {self._kind} {name[:80]!r}{which}{where}.",
            remedy="List them to see what there is.",
            field="version" if version is not None else "name",
        )

    # -- files ------------------------------------------------------------------------------------

    def import_files(
        self, paths: Iterable[str | Path], *, domain: str = "project", replace_existing: bool = False
    ) -> TextImport:
        """Save the texts of files. A name with another content is a conflict, unless it may be replaced."""
        where = canonical_domain(domain)
        drafts: list[Draft] = []
        problems: list[str] = []
        for path in _files(paths, problems):
            try:
                drafts += load(_read(path), filename=path.name, kind=self._kind)
            except CortexError as error:
                problems.append(
                    f"{one_line(str(path))}: {error}" if one_line(path.name) not in str(error) else str(error)
                )
        outcome: dict[str, list[str]] = {"created": [], "updated": [], "unchanged": [], "conflicts": []}
        for draft in drafts:
            try:
                outcome[self._take(draft, where, replace_existing)].append(draft.name)
            except CortexError as error:
                problems.append(f"{draft.name[:80]}: {error}")
        return TextImport(**{key: tuple(names) for key, names in outcome.items()}, problems=tuple(problems))

    def export(self, name: str, *, domain: str | None = None, format: str = "markdown") -> bytes:
        """A text as the bytes of a file: markdown, yaml or json."""
        if format not in FORMATS:
            raise InvalidInput(
                f"Unknown format {format[:40]!r}.", remedy=f"Choose one of {', '.join(FORMATS)}.", field="format"
            )
        found = self.get(name, domain=domain)
        return dump(replace(found, name=_bare(found.name)), format)

    def _take(self, draft: Draft, domain: Domain, replace_existing: bool) -> str:
        saved, _ = self._prepared(draft, domain)
        present = self._stored(draft.name, domain)
        if present is None:
            self._store_version(saved)
            return "created"
        if _facts(present) == _facts(saved):
            return "unchanged"
        if not replace_existing:
            return "conflicts"
        self._store_version(saved)
        return "updated"

    def _put(self, draft: Draft, domain: Domain) -> SaveResult:
        saved, warnings = self._prepared(draft, domain)
        return SaveResult(self._store_version(saved), warnings)

    def _prepared(self, draft: Draft, domain: Domain) -> tuple[Saved, tuple[str, ...]]:
        """A draft as it would be stored, without secrets, and warnings for its author."""
        checked, warnings = check_draft(draft)
        saved = screen_saved(checked.as_saved(domain), self._screen)
        if saved.redactions:
            # The redacted text may have contained a variable.
            found = variable_names(self._kind, saved.content)
            left = {*found.sure, *found.possible}
            saved = replace(saved, variables=tuple(one for one in saved.variables if one.name in left))
        return saved, warnings


def _bare(name: str) -> str:
    """A name without what says that a file of the project holds the text."""
    return name.removeprefix(OF_FOLDER)


def _texts_outside(outside_texts: _OutsideTexts, layer: SavedDomain) -> dict[str, Saved]:
    return outside_texts.files if layer == "project" else outside_texts.builtins if layer == "builtin" else {}


def _layer_of(domain: str) -> SavedDomain:
    return "builtin" if domain.strip().lower() == "builtin" else canonical_domain(domain)


def _with_uses(saved: Saved, used: tuple[int, int] | None) -> Saved:
    return replace(saved, uses=used[0], used_at=from_micros(used[1])) if used else saved


def _facts(saved: Saved) -> tuple[object, ...]:
    """What a file holds of a text. Defaults are compared as written: 1 equals true, and is not the same."""
    return saved.content, saved.description, saved.tags, repr(saved.variables)


def _files(paths: Iterable[str | Path], problems: list[str]) -> Iterator[Path]:
    """The given files, and those of the given folders; inaccessible ones become problems."""
    for path in map(Path, paths):
        found = [path]
        try:
            if path.is_dir():
                found = sorted(one for one in path.iterdir() if one.is_file() and format_of(one.name))
        except (OSError, ValueError) as error:
            problems.append(f"{one_line(str(path))}: {_why(error)}.")
            continue
        yield from found


def _read(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read(FILE_MOST + 1)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{one_line(str(path))}: {_why(error)}.", field="file") from error


def _why(error: OSError | ValueError) -> str:
    return (isinstance(error, OSError) and error.strerror) or "it is not a path"
