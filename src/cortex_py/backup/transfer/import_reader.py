"""Files to import, read and checked to the last line before anything is written.

Exports give documents, other files plain memories. What is wrong is told with file and line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..clock import Clock, to_micros
from ..config import Settings
from ..errors import CortexError, InvalidInput
from ..prompts.files import load
from ..prompts.structured import one_line
from ..records import DOMAINS, Domain, NewMemory
from ..store.document import Document, parse_document
from .export_folder import BRANCH_FIELDS, EXPORT_FORM
from .held import Held
from .import_checks import Checks, placed
from .import_folder import NoteFile, folder_notes, is_markdown, read_text
from .import_lines import Line, fault, json_values
from .import_plain import from_note, from_object, needs_redaction
from .import_saved import saved_document
from .import_spool import Spool
from .markdown_form import Note, memory_data, moment_in, read_note

__all__ = ["Gathered"]

# Front matter around a content.
_BESIDE_CONTENT = 1_000_000
_END = "cortex_export_end"
_DOCUMENT = {"kind", "key", "data"}


class Gathered:
    """What files hold: documents in a spool, and plain memories, each with its place.

    `domain` is the only one of which documents are taken, and the one that plain memories go to.
    """

    def __init__(
        self, settings: Settings, clock: Clock, hold: Callable[[Domain], Held], spool: Spool, domain: Domain | None
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._hold = hold
        self._spool = spool
        self._domain = domain
        self._checks = Checks(settings)
        self._ignored: Counter[str] = Counter()
        self._notes: list[str] = []
        self.left_out: list[str] = []
        self.plain: list[NewMemory] = []

    @property
    def redacted(self) -> int:
        return self._checks.redacted

    @property
    def reworded(self) -> set[str]:
        """Memories out of which secrets were taken: what was read from them stands elsewhere now."""
        return self._checks.reworded

    @property
    def notes(self) -> list[str]:
        """What the caller should know of files that were taken."""
        fields = [
            f"The field {name[:40]!r} was ignored, {count} times." for name, count in self._ignored.most_common(20)
        ]
        return [*self._notes, *map(one_line, fields)]

    def read(self, path: Path) -> None:
        """Read a file, or the Markdown files of a folder."""
        if path.is_dir():
            for file in folder_notes(path, self.left_out):
                self._note_file(file, follow=False)
        elif is_markdown(path.name):
            self._note_file(NoteFile(path), follow=True)
        else:
            try:
                opened = path.open("rb")
            except OSError as error:
                raise fault(str(path), error.strerror or "it cannot be read") from error
            with opened:
                self._values(json_values(opened, str(path)), str(path))

    # -- JSON Lines ------------------------------------------------------------------------------

    def _values(self, lines: Iterator[Line], name: str) -> None:
        first = next(lines, None)
        if first is None:
            raise fault(name, "it holds nothing")
        if isinstance(first.value, dict) and "cortex_export" in first.value:
            self._export(first, lines, name)
            return
        if isinstance(first.value, dict) and set(first.value) == _DOCUMENT:
            raise fault(
                first.place, "the header of the export is missing before it", "Keep the first line of the file."
            )
        self._plain(first)
        for line in lines:
            self._plain(line)

    def _plain(self, line: Line) -> None:
        with _place(line.place):
            item, ignored = from_object(line.value, self._domain or "project")
            self._take_plain(item, ignored)

    def _take_plain(self, item: NewMemory, ignored: frozenset[str]) -> None:
        self._checks.redacted += needs_redaction(item, self._settings)
        self._ignored.update(ignored)
        self.plain.append(item)

    def _export(self, first: Line, lines: Iterator[Line], name: str) -> None:
        """Parts of documents, each after its header; the last line says that nothing is missing."""
        part: _Part | None = self._part(first)
        count = 0
        for line in lines:
            value = line.value
            if isinstance(value, dict) and "cortex_export" in value:
                part = self._part(line)
            elif isinstance(value, dict) and _END in value:
                told = value[_END].get("documents") if isinstance(value[_END], dict) else None
                if isinstance(told, int) and told != count:
                    self._notes.append(f"{one_line(name)} was exported with {told:,} documents and holds {count:,}.")
                part, count = None, 0
            elif part is None:
                raise fault(line.place, "it stands behind the end of the export")
            else:
                count += 1
                if self._domain in (None, part.domain):
                    self._document(part, line)
        if part is not None:
            raise fault(
                name,
                "its last line is missing, so it may have been cut off",
                f'Export anew; where all of it is there, add the line {{"{_END}": {{}}}}.',
            )

    def _part(self, line: Line) -> _Part:
        header: Mapping[str, Any] = line.value if isinstance(line.value, dict) else {}
        if header["cortex_export"] != EXPORT_FORM or isinstance(header["cortex_export"], bool):
            raise fault(line.place, "the export was made by another version of Cortex", "Update Cortex.")
        domain = next((one for one in DOMAINS if one == header.get("domain")), None)
        if domain is None:
            raise fault(line.place, f"the domain of the header is none of {', '.join(DOMAINS)}")
        return _Part(domain, self._hold(domain), header.get("space"))

    def _document(self, part: _Part, line: Line) -> None:
        with _place(line.place):
            value = line.value
            if not isinstance(value, dict) or set(value) != _DOCUMENT:
                raise InvalidInput("It is no document of an export.", field="file")
            try:
                found = parse_document(Document(value["kind"], value["key"], value["data"]).line)
            except (ValueError, TypeError, RecursionError) as error:
                raise InvalidInput("It is no document of an export.", field="file") from error
            document = self._checks.document(found, part.domain, part.held.facts.get("project_id"))
        if document is None:
            self._holds_secret(found.kind, line.place)
            return
        if document.kind == "merge" and part.space != part.held.space:
            # What undoes a merge names the space it was made in.
            self.left_out.append(f"merge {document.key[:80]}: it can be undone only where it was made")
            return
        self._spool.add(part.domain, document, one_line(line.place))

    # -- Markdown --------------------------------------------------------------------------------

    def _note_file(self, file: NoteFile, *, follow: bool) -> None:
        name = str(file.path)
        most = self._settings.max_content_bytes + _BESIDE_CONTENT
        text = read_text(file.path, name, most, follow=follow)
        with _place(name):
            if file.saved is not None:
                domain = file.domain or "project"
                for draft in load(text.encode(), filename=file.path.name, kind=file.saved):
                    self._partial(domain, saved_document(draft, domain, self._settings.secrets, self._now), name)
                return
            note = read_note(name, text)
            if note.memory_id is not None:
                self._known_memory(note.memory_id, note, name)
            elif note.fields.get("cortex") == "branches":
                self._branches(note, file.domain or "project", name)
            elif note.fields.get("cortex") == "graph":
                self.left_out.append(f"{one_line(name)}: the graph is carried by JSON Lines alone")
            elif not note.content.strip():
                self.left_out.append(f"{one_line(name)}: it is empty")
            else:
                self._take_plain(*from_note(note, name, self._domain or "project"))

    def _known_memory(self, memory_id: str, note: Note, name: str) -> None:
        data, ignored = memory_data(note, self._clock.now())
        self._ignored.update(ignored)
        if data["domain"] not in DOMAINS:
            raise InvalidInput(f"There is no domain {str(data['domain'])[:40]!r}.", field="domain")
        domain: Domain = data["domain"]
        project_id = self._hold(domain).facts.get("project_id")
        document = self._checks.document(Document("memory", memory_id, data), domain, project_id)
        self._partial(domain, document, name)

    def _branches(self, note: Note, domain: Domain, name: str) -> None:
        listed = note.fields.get("branches")
        for one in listed if isinstance(listed, list) else [None]:
            if not isinstance(one, dict) or not isinstance(one.get("id"), str):
                raise InvalidInput("Its list of branches cannot be read.", field="file")
            data = {
                column: moment_in(one.get(given), given) if column.endswith("_at") else one.get(given)
                for given, column in BRANCH_FIELDS
            }
            document = self._checks.document(Document("branch", str(one["id"]), data), domain, None)
            self._partial(domain, document, name)

    def _partial(self, domain: Domain, document: Document | None, name: str) -> None:
        if document is None:
            self._holds_secret("branch", name)
        elif self._domain in (None, domain):
            self._spool.add(domain, document, one_line(name), partial=True)

    def _holds_secret(self, kind: str, place: str) -> None:
        # Its key may be the secret, so only the place is told.
        self.left_out.append(f"{kind} in {one_line(place)}: it holds what looks like a secret")

    @property
    def _now(self) -> int:
        return to_micros(self._clock.now())


class _Part:
    """A part of an export: where its documents go, and the space they came from."""

    def __init__(self, domain: Domain, held: Held, space: object) -> None:
        self.domain = domain
        self.held = held
        self.space = space


@contextmanager
def _place(place: str) -> Iterator[None]:
    """Errors inside are told with the place, unless they name it themselves."""
    told = one_line(place)
    try:
        yield
    except CortexError as error:
        if Path(told).name in error.message or told in error.message:
            raise
        moved = placed(error, told)
        if moved is error:
            raise
        raise moved from error
