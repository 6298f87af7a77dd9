"""Reads and checks the files of an import completely, before anything is written.

Only what Cortex wrote is read here; `readers` read the rest. Faults are reported with file and line. Links are not
followed, so that nothing outside a given folder is read.

Checked documents are spooled to an unnamed file: memory holds only their offsets, and what is written is exactly what
was checked, whatever happens to the imported files meanwhile. The file is encrypted with a key of this process, since
its remains on the disk outlive it.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ....core.clock import Clock, to_micros
from ....core.config import Settings
from ....core.echo import clean_text
from ....core.errors import CortexError, InvalidInput, StorageError, storage_error
from ....core.jobs import report
from ....core.paths import open_regular
from ....core.records import DOMAINS, Domain, SavedKind
from ....core.security.ciphers import NONCE_BYTES, Cipher
from ....core.security.policy import Screen
from ....core.store.documents.document import Document, parse_document
from ....texts.structured import one_line
from ...prompts.files import load
from ..source import AdministeredSources, BackupSource
from .export import BRANCH_FIELDS, EXPORT_FORM
from .import_checks import Checks, placed, saved_document
from .markdown import Note, memory_data, moment_in, read_note
from .readers.files import text_within
from .readers.parsing import parse

__all__ = ["DocumentSpool", "ImportReader", "SpooledDocument", "fault", "json_values", "note_ignored"]


_IN_MEMORY = 16_000_000


class SpooledDocument(NamedTuple):
    """The offset and the origin of a document. `partial`: its file holds no history and no statistics."""

    key: str
    offset: int
    length: int
    place: str
    partial: bool


class DocumentSpool:
    def __init__(self, folder: Path) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY, dir=str(folder))  # noqa: SIM115
        self._cipher = Cipher(os.urandom(32))
        self._entries: dict[tuple[Domain, str], dict[str, SpooledDocument]] = {}
        self._written = 0
        self._end = 0

    def close(self) -> None:
        self._file.close()

    def add(self, domain: Domain, document: Document, place: str, *, partial: bool = False) -> None:
        """Spool a document. A second identical one is ignored; one that differs is refused."""
        known = self._entries.setdefault((domain, document.kind), {})
        before = known.get(document.key) or self._elsewhere(domain, document)
        if before is not None:
            if document.key in known and self._line(before) == document.line:
                return
            raise InvalidInput(
                f"{place}: the {document.kind} {document.key[:80]} is also in {before.place}, and differs.",
                remedy="Leave one of them out.",
                field="file",
            )
        try:
            self._file.seek(self._end)
            sealed = self._cipher.encrypt(_nonce(self._end), document.line, b"")
            self._file.write(sealed)
        except OSError as error:
            raise storage_error(error, "The temporary file") from error
        known[document.key] = SpooledDocument(document.key, self._end, len(sealed), place, partial)
        self._end += len(sealed)

    def _elsewhere(self, domain: Domain, document: Document) -> SpooledDocument | None:
        """The same memory in another domain: an id is unique within a home."""
        if document.kind != "memory":
            return None
        found = (
            of.get(document.key) for (where, kind), of in self._entries.items() if kind == "memory" and where != domain
        )
        return next((one for one in found if one is not None), None)

    def domains(self) -> list[Domain]:
        return sorted({domain for domain, _ in self._entries})

    def has(self, domain: Domain, kind: str, key: str) -> bool:
        return key in self._entries.get((domain, kind), ())

    def batches(self, domain: Domain, kind: str, size: int) -> Iterator[Sequence[tuple[SpooledDocument, Document]]]:
        """The documents of a kind by key, in batches."""
        entries = sorted(self._entries.get((domain, kind), {}).values())
        total = sum(map(len, self._entries.values()))
        for low in range(0, len(entries), size):
            batch = entries[low : low + size]
            yield [(one, parse_document(self._line(one))) for one in batch]
            self._written += len(batch)
            report("documents", self._written, total)

    def one(self, domain: Domain, kind: str, key: str) -> Document | None:
        entry = self._entries.get((domain, kind), {}).get(key)
        return None if entry is None else parse_document(self._line(entry))

    def _line(self, entry: SpooledDocument) -> bytes:
        self._file.seek(entry.offset)
        line = self._cipher.decrypt(_nonce(entry.offset), self._file.read(entry.length), b"")
        if line is None:
            raise StorageError(
                "The temporary file of the import was changed.", remedy="Nothing was written; try again."
            )
        return line


def _nonce(offset: int) -> bytes:
    """Unique, since no two documents begin at the same offset."""
    return offset.to_bytes(NONCE_BYTES, "big")


# -- files ---------------------------------------------------------------------------------------

# More than any memory with its versions takes; keeps a file without line ends from filling the memory.
LINE_BYTES = 256_000_000
_BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """A value, and its line or its position in an array."""

    value: object
    place: str


def fault(place: str, what: str, remedy: str | None = None) -> InvalidInput:
    return InvalidInput(f"{one_line(place)}: {what}.", remedy=remedy, field="file")


def json_values(file: BinaryIO, name: str) -> Iterator[Line]:
    """The values of a file, one for each line that is not blank."""
    number = 0
    while raw := file.readline(LINE_BYTES + 1):
        number += 1
        place = f"{name}, line {number}"
        if len(raw) > LINE_BYTES:
            raise fault(place, f"the line is longer than {LINE_BYTES:,} bytes")
        line = raw.removeprefix(_BOM) if number == 1 else raw
        if line.strip():
            try:
                yield Line(parse(line), place)
            except ValueError as error:
                remedy = "Save the file as UTF-8." if isinstance(error.__cause__, UnicodeDecodeError) else None
                raise fault(place, str(error), remedy) from error


_DEPTH_MOST = 32
_LONGEST_NAME = 1_000
_SUFFIXES = (".md", ".markdown")
_SAVED: dict[str, SavedKind] = {"prompts": "prompt", "templates": "template"}
_README, _README_MOST = "README.md", 100_000


class ExportedNote(NamedTuple):
    """A file, the domain of the export that it belongs to, if any, and the kind of saved text it holds, if any."""

    path: Path
    domain: Domain | None = None
    saved: SavedKind | None = None


def is_markdown(name: str) -> bool:
    return name.lower().endswith(_SUFFIXES)


def _shown(name: str) -> str:
    """A name from outside, for messages."""
    return clean_text(one_line(name), _LONGEST_NAME)


def folder_notes(
    folder: Path, domain: Domain | None = None, saved: SavedKind | None = None, depth: int = 0
) -> Iterator[ExportedNote]:
    """All Markdown files below a folder by name; hidden files belong to other programs, and links are not followed."""
    part = _exported(folder)
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise fault(str(folder), error.strerror or "it cannot be listed") from error
    for entry in entries:
        path = folder / entry.name
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False) and depth < _DEPTH_MOST:
            yield from folder_notes(path, part or domain, _SAVED.get(entry.name) if part else saved, depth + 1)
        elif entry.is_file(follow_symlinks=False) and is_markdown(entry.name) and not (part and path.name == _README):
            yield ExportedNote(path, part or domain, saved)


def _exported(folder: Path) -> Domain | None:
    """The domain of an export in this folder, by its `README.md`; None if there is none."""
    path = folder / _README
    if path.is_symlink() or not path.is_file() or path.stat().st_size > _README_MOST:
        return None
    text = read_text(path, str(path), _README_MOST, follow=False)
    if not text.startswith("---\ncortex_export: "):
        return None
    domain = read_note(str(path), text).fields.get("domain")
    return next((one for one in DOMAINS if one == domain), None)


def read_text(path: Path, name: str, most_bytes: int, *, follow: bool = True) -> str:
    """The text of a regular file, which must be UTF-8 and within the limit."""
    try:
        with open_regular(path, follow=follow) as file:
            return text_within(file, name, most_bytes)
    except OSError as error:
        raise fault(name, error.strerror or "it cannot be read") from error


# Front matter around a content.
_BESIDE_CONTENT = 1_000_000
# By the beginning of a file it is decided whether Cortex wrote it.
_STARTS = 16_000
_END = "cortex_export_end"
_DOCUMENT = {"kind", "key", "data"}


def note_ignored(fields: Counter[str]) -> list[str]:
    """What to say about fields that were not understood."""
    found = [
        f"{clean_text(one_line(name), 40)!r} ({count:,} {'time' if count == 1 else 'times'})"
        for name, count in fields.most_common(20)
    ]
    return [f"Fields that were ignored: {', '.join(found)}."] if found else []


class ImportReader:
    """Documents in a spool, each with its place. `domain` restricts exports to one domain."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        sources: AdministeredSources,
        spool: DocumentSpool,
        domain: Domain | None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._sources = sources
        self._spool = spool
        self._domain = domain
        self._checks = Checks(settings)
        self._ignored: Counter[str] = Counter()
        self._notes: list[str] = []
        self.left_out: list[str] = []
        self.taken: set[str] = set()

    @property
    def redacted(self) -> int:
        return self._checks.redacted

    @property
    def reworded(self) -> set[str]:
        """Memories in which secrets were redacted: positions in their text have shifted."""
        return self._checks.reworded

    @property
    def notes(self) -> list[str]:
        """What the caller should know about the imported files."""
        return [*self._notes, *note_ignored(self._ignored)]

    def read(self, path: Path) -> None:
        """Read what Cortex wrote at a path: an export, or the Markdown files of one. `taken` names these files."""
        if path.is_dir():
            for file in folder_notes(path):
                if file.domain is not None or _is_own_note(file.path):
                    self._note_file(file)
                    self.taken.add(str(file.path))
        elif is_markdown(path.name):
            if _is_own_note(path):
                self._note_file(ExportedNote(path))
                self.taken.add(str(path))
        elif _is_export(path):
            with open_regular(path) as opened:
                self._values(json_values(opened, str(path)), str(path))
            self.taken.add(str(path))

    # -- JSON Lines ------------------------------------------------------------------------------

    def _values(self, lines: Iterator[Line], name: str) -> None:
        first = next(lines, None)
        if first is None:
            raise fault(name, "it holds nothing")
        if not isinstance(first.value, dict) or "cortex_export" not in first.value:
            raise fault(
                first.place, "the header of the export is missing before it", "Keep the first line of the file."
            )
        self._export(first, lines, name)

    def _export(self, first: Line, lines: Iterator[Line], name: str) -> None:
        """Read the parts of an export, each after its header; the last line proves that nothing is missing."""
        part: _Part | None = self._part(first)
        count = 0
        for line in lines:
            value = line.value
            if isinstance(value, dict) and "cortex_export" in value:
                part = self._part(line)
            elif isinstance(value, dict) and _END in value:
                wrote = value[_END].get("documents") if isinstance(value[_END], dict) else None
                if isinstance(wrote, int) and wrote != count:
                    self._notes.append(f"{_shown(name)} was exported with {wrote:,} documents and holds {count:,}.")
                part, count = None, 0
            elif part is None:
                raise fault(line.place, "it comes after the end of the export")
            else:
                count += 1
                if self._domain in (None, part.domain):
                    self._document(part, line)
        if part is not None:
            raise fault(
                name,
                "its last line is missing, so it may have been cut off",
                f'Export again; if nothing is missing, add the line {{"{_END}": {{}}}}.',
            )

    def _part(self, line: Line) -> _Part:
        header: Mapping[str, Any] = line.value if isinstance(line.value, dict) else {}
        if header["cortex_export"] != EXPORT_FORM or isinstance(header["cortex_export"], bool):
            raise fault(line.place, "the export was made by another version of Cortex", "Update Cortex.")
        domain = next((one for one in DOMAINS if one == header.get("domain")), None)
        if domain is None:
            raise fault(line.place, f"the domain of the header is none of {', '.join(DOMAINS)}")
        return _Part(domain, self._sources[domain], header.get("space"))

    def _document(self, part: _Part, line: Line) -> None:
        with _place(line.place):
            value = line.value
            if not isinstance(value, dict) or set(value) != _DOCUMENT:
                raise InvalidInput("It is not a document of an export.", field="file")
            try:
                found = parse_document(Document(value["kind"], value["key"], value["data"]).line)
            except (ValueError, TypeError, RecursionError) as error:
                raise InvalidInput("It is not a document of an export.", field="file") from error
            document = self._checks.document(found, part.domain, part.source.facts.get("project_id"))
        if document is None:
            self._holds_secret(found.kind, line.place)
            return
        if document.kind == "merge" and part.space != part.source.space:
            # The log that undoes a merge names the space it was made in.
            self.left_out.append(f"merge {clean_text(document.key, 80)}: it can be undone only where it was made")
            return
        self._spool.add(part.domain, document, one_line(line.place))

    # -- Markdown --------------------------------------------------------------------------------

    def _note_file(self, file: ExportedNote) -> None:
        name = str(file.path)
        most = self._settings.max_content_bytes + _BESIDE_CONTENT
        text = read_text(file.path, name, most, follow=file.domain is None)
        with _place(name):
            if file.saved is not None:
                domain = file.domain or "project"
                for draft in load(text.encode(), filename=file.path.name, kind=file.saved):
                    self._partial(domain, saved_document(draft, domain, Screen.by(self._settings), self._now), name)
                return
            note = read_note(name, text)
            if note.memory_id is not None:
                self._known_memory(note.memory_id, note, name)
            elif note.fields.get("cortex") == "branches":
                self._branches(note, file.domain or "project", name)
            elif note.fields.get("cortex") == "graph":
                self.left_out.append(f"{_shown(name)}: the graph is carried by JSON Lines alone")
            else:
                self.left_out.append(f"{_shown(name)}: it is no note of an export, and is in the folder of one")

    def _known_memory(self, memory_id: str, note: Note, name: str) -> None:
        data, ignored = memory_data(note, self._clock.now())
        self._ignored.update(ignored)
        if data["domain"] not in DOMAINS:
            raise InvalidInput(f"There is no domain {str(data['domain'])[:40]!r}.", field="domain")
        domain: Domain = data["domain"]
        project_id = self._sources[domain].facts.get("project_id")
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
        # Only the place: the key may be the secret.
        self.left_out.append(f"{kind} in {_shown(place)}: it contains what looks like a secret")

    @property
    def _now(self) -> int:
        return to_micros(self._clock.now())


_OWN_NOTE = re.compile(rb"---[ \t]*\r?\n(?:[^\n]*\n){0,40}?(?:id: ['\"]?[0-9a-f]{40}['\"]?\s|cortex: )")


def _is_own_note(path: Path) -> bool:
    """Whether a Markdown file is a memory, or a list, that Cortex wrote."""
    return _OWN_NOTE.match(_start(path).removeprefix(_BOM)) is not None


def _is_export(path: Path) -> bool:
    """Whether a file is an export: its first line is a header, or a document without one."""
    start = _start(path).removeprefix(_BOM).lstrip()
    return start.startswith(b"{") and (b'"cortex_export"' in start[:200] or _DOCUMENT_LINE.match(start) is not None)


_DOCUMENT_LINE = re.compile(rb'\{"data":\s*\{|\{"kind":\s*"[a-z]+",\s*"key":|\{"key":\s*"[^"]*",\s*"kind":')


def _start(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read(_STARTS)
    except OSError:
        return b""


class _Part(NamedTuple):
    """A part of an export: where its documents go, and the space they came from."""

    domain: Domain
    source: BackupSource
    space: object


@contextmanager
def _place(place: str) -> Iterator[None]:
    """Add the place to errors inside, unless they name it themselves."""
    shown = one_line(place)
    try:
        yield
    except CortexError as error:
        if Path(shown).name in error.message or shown in error.message:
            raise
        moved = placed(error, shown)
        if moved is error:
            raise
        raise moved from error
