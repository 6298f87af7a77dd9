"""What prompts and templates have in common: saving, listing, reading, deleting, files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ..clock import Clock
from ..config import SecretPolicy
from ..errors import CortexError, InvalidInput
from ..memory.place import Place, canonical_domain
from ..memory.prepare import clean_tags
from ..records import Domain, Saved, SavedKind
from ..store.store import Store
from .checks import FoundNames, as_variables, check_content, check_draft, check_saved_name, screened
from .draft import Draft
from .files import FILE_MOST, FORMATS, dump, format_of, load
from .folder import PromptFolder
from .results import Imported, Listing, Stored
from .shelves import Shelves
from .structured import one_line

__all__ = ["SavedTexts"]


class SavedTexts(ABC):
    """The saved texts of one kind that a caller at one place sees and writes."""

    _kind: SavedKind

    def __init__(
        self,
        store: Store,
        clock: Clock,
        place: Place,
        policy: SecretPolicy,
        root: Path | None,
        builtins: Callable[[], Sequence[Draft]] = lambda: (),
    ) -> None:
        """`root` is the folder of the project, whose own texts are read from `.cortex` in it."""
        self._policy = policy
        folder = PromptFolder(root, self._kind)
        self._shelves = Shelves(self._kind, store, clock, place, folder, builtins, lambda one: self._checked(one)[0])

    @abstractmethod
    def _names(self, content: str) -> FoundNames:
        """The variables of a content, in order of appearance; one that cannot be read is refused."""

    def save(
        self,
        name: str,
        content: str,
        *,
        description: str | None = None,
        domain: str = "project",
        tags: Sequence[str] = (),
        variables: object = None,
    ) -> Stored:
        """Keep a text under a name. One that is there already gets a new version; the old ones stay.

        `variables` declares blanks of the content: a list of objects with name, description, default, required
        and choices, or an object by name. Those not declared must be given when it is used.
        """
        where = canonical_domain(domain)
        draft = Draft(
            name=name,
            content=content,
            description=description or None,
            tags=tags,  # type: ignore[arg-type]  # any sequence is taken here and checked on the way in
            variables=as_variables(variables),
            kind=self._kind,
        )
        return self._put(draft, where)

    def list(self, *, domain: str | None = None, tags: Sequence[str] = (), limit: int = 20, offset: int = 0) -> Listing:
        """The saved texts by name, of one domain or all, with all of the tags."""
        return self._shelves.page(domain, clean_tags(tags), limit, offset)

    def get(self, name: str, *, domain: str | None = None, version: int | None = None) -> Saved:
        """One text: of a domain, or the first of project, user and org that has the name."""
        return self._shelves.find(name, domain, version)

    def versions(self, name: str, *, domain: str | None = None) -> Sequence[Saved]:
        """All versions of a text, oldest first."""
        return self._shelves.versions(name, domain)

    def delete(self, name: str, *, domain: str) -> Saved:
        """Take a text away with all its versions; what it was last is returned."""
        return self._shelves.remove(name, domain)

    def visible(self) -> Sequence[Saved]:
        """Every text that answers for its name, without contents."""
        return self._shelves.visible()

    def state(self) -> tuple[int, object]:
        """Differs after every change to what is seen from here, by whichever process."""
        return self._shelves.state()

    def import_files(
        self, paths: Iterable[str | Path], *, domain: str = "project", replace_existing: bool = False
    ) -> Imported:
        """Save what files hold. A name that is there with another content is a conflict, unless it may be replaced."""
        where = canonical_domain(domain)
        drafts: list[Draft] = []
        problems: list[str] = []
        for path in _files(paths, problems):
            try:
                drafts += load(_read(path), filename=path.name, kind=self._kind)
            except CortexError as error:
                problems.append(f"{_told(path)}: {error}" if one_line(path.name) not in str(error) else str(error))
        outcome: dict[str, list[str]] = {"created": [], "updated": [], "unchanged": [], "conflicts": []}
        for draft in drafts:
            try:
                outcome[self._take(draft, where, replace_existing)].append(draft.name)
            except CortexError as error:
                problems.append(f"{draft.name[:80]}: {error}")
        return Imported(**{key: tuple(names) for key, names in outcome.items()}, problems=tuple(problems))

    def export(self, name: str, *, domain: str | None = None, format: str = "markdown") -> bytes:
        """A text as the bytes of a file: markdown, yaml or json."""
        if format not in FORMATS:
            raise InvalidInput(
                f"Unknown format {format[:40]!r}.", remedy=f"Choose one of {', '.join(FORMATS)}.", field="format"
            )
        return dump(self.get(name, domain=domain), format)

    def _take(self, draft: Draft, domain: Domain, replace_existing: bool) -> str:
        saved, _ = self._prepared(draft, domain)
        present = self._shelves.stored(draft.name, domain)
        if present is None:
            self._shelves.put(saved)
            return "created"
        if _facts(present) == _facts(saved):
            return "unchanged"
        if not replace_existing:
            return "conflicts"
        self._shelves.put(saved)
        return "updated"

    def _put(self, draft: Draft, domain: Domain) -> Stored:
        saved, warnings = self._prepared(draft, domain)
        kept, hidden_by = self._shelves.put(saved)
        if hidden_by:
            warnings = (*warnings, f"The file {hidden_by} has the same name and is used instead.")
        return Stored(kept, warnings)

    def _prepared(self, draft: Draft, domain: Domain) -> tuple[Saved, tuple[str, ...]]:
        """A draft as it would be kept, without secrets, and what its author should know."""
        checked, warnings = self._checked(draft)
        saved = screened(
            Saved(
                kind=self._kind,
                name=checked.name,
                domain=domain,
                content=checked.content,
                description=checked.description,
                tags=checked.tags,
                variables=checked.variables,
            ),
            self._policy,
        )
        if saved.redactions:
            # What was taken out may have held a blank.
            found = self._names(saved.content)
            left = {*found.sure, *found.possible}
            saved = replace(saved, variables=tuple(one for one in saved.variables if one.name in left))
        return saved, warnings

    def _checked(self, draft: Draft) -> tuple[Draft, tuple[str, ...]]:
        check_saved_name(draft.name, self._kind)
        return check_draft(draft, self._names(check_content(draft.content)))


def _facts(saved: Saved) -> tuple[object, ...]:
    """What a file holds of a text. Defaults are told apart as they are written: 1 equals true, and is not the same."""
    return saved.content, saved.description, saved.tags, repr(saved.variables)


def _files(paths: Iterable[str | Path], problems: list[str]) -> Iterator[Path]:
    """The files named, and those of the folders named; what cannot be looked at becomes a problem."""
    for path in map(Path, paths):
        found = [path]
        try:
            if path.is_dir():
                found = sorted(one for one in path.iterdir() if one.is_file() and format_of(one.name))
        except (OSError, ValueError) as error:
            problems.append(f"{_told(path)}: {_why(error)}.")
            continue
        yield from found


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(FILE_MOST + 1)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{_told(path)}: {_why(error)}.", field="file") from error


def _told(path: Path) -> str:
    """A path for a message, whatever bytes it is made of."""
    return one_line(str(path))


def _why(error: OSError | ValueError) -> str:
    return (isinstance(error, OSError) and error.strerror) or "it is no path"
