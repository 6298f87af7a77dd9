"""Import: adds the content of files to what is there.

Exports of Cortex are checked first, then written at once. Existing documents stay unless they may be replaced; those
that differ are reported as conflicts. What other programs wrote is then taken record by record: see `intake`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any

from ....core.clock import Clock, to_micros
from ....core.config import Settings
from ....core.echo import clean_text
from ....core.paths import open_regular
from ....core.records import Domain
from ....core.store.database import Session
from ....core.store.documents.document import KINDS, SHARED_KINDS, Document
from ....core.store.documents.memories import ABOUT_KINDS
from ....core.store.store import Store
from ....texts.structured import one_line
from ..source import AdministeredSources, BackupSource, BackupSources
from .import_reader import DocumentSpool, ImportReader, SpooledDocument, fault, note_ignored
from .intake import Intake, IntakeOptions, SourceSummary
from .readers.documents import GIT_KIND, git_reader
from .readers.files import SourceFile, source_files
from .readers.records import SourceReader
from .readers.registry import reader_of, readers, recognise

__all__ = ["ImportConflict", "ImportResult", "Importer", "joined", "read_report", "report_text", "same"]

# The fields that people edit in a file. The others were counted or recorded by the home it came from.
_WRITTEN: Mapping[str, tuple[str, ...]] = {
    "memory": (
        *("namespace", "category", "role", "content", "summary", "tags", "source", "path", "status"),
        *("branch_id", "git_branch", "user_id", "agent_id", "created_at", "expires_at"),
    ),
    "saved": ("description", "tags", "variables"),
    "branch": ("topic", "parent_id", "git_branch", "status"),
}
_NAME_IT = "; --from names one"
_BATCH = 400
_COMMITS_MOST = 50_000
# Of each list in a report.
_LINES_KEPT = 1_000
_UNREAD: Mapping[str, Any] = {"read": 0, "mentions": []}


@dataclass(frozen=True, slots=True)
class ImportConflict:
    """Something that was not imported because the existing document differs. `place` is its origin."""

    kind: str
    key: str
    place: str
    reason: str


@dataclass(slots=True)
class ImportResult:
    """The result of an import, counted by kind.

    `kept` counts derived and usage data of this home that differ from what came. `left_out` lists what could not be
    imported, `notes` what else the caller should know.
    """

    dry_run: bool
    # Of other programs: what each kind of file gave to each project, and sources that are no longer there.
    sources: list[SourceSummary] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    added: Counter[str] = field(default_factory=Counter)
    replaced: Counter[str] = field(default_factory=Counter)
    unchanged: int = 0
    kept: int = 0
    conflicts: list[ImportConflict] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    redacted: int = 0
    notes: list[str] = field(default_factory=list)
    # Domains with changes, and whether a text was changed that the graph has to read again.
    changed: set[Domain] = field(default_factory=set)
    unread: bool = False


def report_text(done: ImportResult, at: datetime) -> str:
    """An outcome as it is kept: what was counted, and the beginning of each list."""
    # Not `asdict`, which counts what a Counter holds.
    kept = {one.name: getattr(done, one.name) for one in fields(done)} | {"changed": [], "at": at}
    kept["sources"] = [asdict(one) for one in done.sources]
    kept["conflicts"] = [asdict(one) for one in done.conflicts[:_LINES_KEPT]]
    for name in ("left_out", "gone", "notes"):
        kept[name] = [clean_text(line, 1_500) for line in kept[name][:_LINES_KEPT]]
    return json.dumps(kept, default=lambda value: value.isoformat())


def read_report(text: str) -> tuple[datetime, ImportResult]:
    """When an import that was kept ended, and what came of it."""
    kept = json.loads(text)
    at = datetime.fromisoformat(kept.pop("at"))
    sources = [
        SourceSummary(**{**one, **{name: datetime.fromisoformat(one[name]) for name in ("first", "last") if one[name]}})
        for one in kept.pop("sources")
    ]
    conflicts = [ImportConflict(**one) for one in kept.pop("conflicts")]
    counts = {name: Counter(kept.pop(name)) for name in ("added", "replaced")}
    return at, ImportResult(**{**kept, **counts, "sources": sources, "conflicts": conflicts, "changed": set()})


@dataclass(frozen=True, slots=True)
class _Terms:
    """Whether to replace documents that differ, the memories whose text was redacted, and the time."""

    replace: bool
    reworded: Set[str]
    now: int


class Importer:
    def __init__(
        self, store: Store, clock: Clock, settings: Settings, sources: BackupSources, project_id: str | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._all = sources
        self._project_id = project_id
        self._sources = AdministeredSources(sources, project_id)
        self._memories = sources.memories(project_id)

    def run(
        self,
        paths: Sequence[Path],
        options: IntakeOptions,
        *,
        kind: str | None = None,
        fields: Mapping[str, str] | None = None,
        replace: bool = False,
    ) -> ImportResult:
        domain, dry_run = options.domain, options.dry_run
        if kind == GIT_KIND:
            outcome = ImportResult(dry_run)
            self._take_commits(paths, options, outcome)
            return outcome
        known = readers(fields) if kind is None else (reader_of(kind, fields),)
        with closing(DocumentSpool(self._settings.home)) as spool:
            reader = ImportReader(self._settings, self._clock, self._sources, spool, domain)
            for path in paths:
                if not path.is_dir():
                    _check_readable(path)
                if kind is None:
                    reader.read(path)
            outcome = ImportResult(dry_run, left_out=reader.left_out, redacted=reader.redacted, notes=reader.notes)
            terms = _Terms(replace, reader.reworded, to_micros(self._clock.now()))
            if dry_run:
                with self._store.database.read() as session:
                    for one in spool.domains():
                        _Space(self._store, session, self._sources[one], one, spool, outcome, terms).look()
            else:
                self._write(spool, outcome, terms)
        self._take(paths, options, known, reader.taken, outcome, is_chosen=kind is not None)
        return outcome

    def _take(
        self,
        paths: Sequence[Path],
        options: IntakeOptions,
        known: Sequence[SourceReader],
        taken: Set[str],
        outcome: ImportResult,
        *,
        is_chosen: bool,
    ) -> None:
        """Take what other programs wrote."""
        intake = Intake(self._store, self._all, self._project_id, options)
        every = readers() if is_chosen else known
        # Everything of a project may come in, so its caller must administer it.
        assert self._sources["project"].space
        for path in paths:
            is_folder = path.is_dir()
            for file in source_files(path, intake.refuse):
                if intake.is_full:
                    break
                if file.name in taken or (is_folder and file.path.name == "README.md" and taken):
                    continue
                is_named, reader = file.name == str(path), recognise(file, known)
                if is_chosen and reader is None and (is_named or recognise(file, every)):
                    # Below a folder, no picture, style sheet or program passes for a note.
                    reader = known[0]
                if reader is not None:
                    intake.take(file, reader)
                elif is_named or is_chosen:
                    intake.refuse(file.name, f"it is of no kind that can be imported{'' if is_chosen else _NAME_IT}")
        intake.note_gone([path for path in paths if path.is_dir()])
        _report(intake, outcome)

    def _take_commits(self, paths: Sequence[Path], options: IntakeOptions, outcome: ImportResult) -> None:
        """Take the decisions in the history of repositories."""
        intake = Intake(self._store, self._all, self._project_id, options)
        assert self._sources["project"].space
        for path in paths:
            commits = self._all.commits(path, _COMMITS_MOST)
            # The messages come from git; this only names where they are from.
            place = SourceFile(str(path), PurePosixPath(path.name), 0, 0, BytesIO)
            intake.take(place, git_reader(commits), whole=False)
        _report(intake, outcome)

    def _write(self, spool: DocumentSpool, outcome: ImportResult, terms: _Terms) -> None:
        domains = spool.domains()
        held = {domain: self._sources[domain] for domain in domains}
        if domains:
            with self._store.database.write() as session:
                for domain in domains:
                    _Space(self._store, session, held[domain], domain, spool, outcome, terms).write()
        for domain in domains:
            if domain in outcome.changed:
                held[domain].changed()
        if outcome.unread:
            self._memories.annotate()


def _report(intake: Intake, outcome: ImportResult) -> None:
    """Add what was taken to the outcome."""
    done = intake.result
    outcome.added += done.added
    outcome.replaced += done.changed
    outcome.unchanged += done.unchanged
    outcome.redacted += done.redacted
    outcome.left_out += [*_of_other_folders(done.elsewhere), *done.skipped]
    if done.elsewhere:
        outcome.notes.append("To take the sessions of such a folder into this project, name it: --folder FOLDER")
    outcome.gone += done.gone
    outcome.sources += [one for _, one in sorted(done.summaries.items())]
    outcome.notes += note_ignored(done.ignored)


def _of_other_folders(elsewhere: Mapping[str, Counter[str | None]]) -> list[str]:
    """What was left out because its folder belongs to no project here, by folder."""
    return [
        f"{clean_text(one_line(folder), 1_000)}: this folder belongs to no project here "
        f"(sessions: {len(sessions)}, turns: {sessions.total()})"
        for folder, sessions in sorted(elsewhere.items())
    ]


def _check_readable(path: Path) -> None:
    """Refuse a file that a caller names and that cannot be read; inside a folder it would only be left out."""
    try:
        open_regular(path).close()
    except OSError as error:
        raise fault(str(path), error.strerror or "it cannot be read") from error


class _Space:
    """Compares the documents of one domain with the existing ones, in one transaction."""

    def __init__(
        self,
        store: Store,
        session: Session,
        held: BackupSource,
        domain: Domain,
        spool: DocumentSpool,
        outcome: ImportResult,
        terms: _Terms,
    ) -> None:
        self._store = store
        self._session = session
        self._source = held
        self._domain: Domain = domain
        self._spool = spool
        self._outcome = outcome
        self._terms = terms
        self._here = {memory_id for memory_id, _ in store.memories.states(session, held.space)}
        self._entities: dict[str, bool] = {}
        # Imported memories: refused, taken, and taken with a text that is not annotated yet.
        self._refused: set[str] = set()
        self._taken: set[str] = set()
        self._unread: set[str] = set()
        self._verified: set[str] = set()

    def look(self) -> None:
        """Count what would be written."""
        for kind in KINDS:
            self._decide(kind, lambda _document: None)

    def write(self) -> None:
        documents, session, space = self._store.documents, self._session, self._source.space
        seq = self._store.memories.next_seq(session, space)

        def put(document: Document) -> None:
            documents.put(session, space, document, seq, self._source.index)

        for kind in KINDS:
            self._decide(kind, put)
        for key in sorted(self._unread):
            # What was derived from the former text is no longer true.
            put(Document("mention", key, _UNREAD))
            if key not in self._verified:
                documents.remove(session, space, "verification", key, seq)
        self._outcome.unread = self._outcome.unread or bool(self._unread)
        if self._domain in self._outcome.changed:
            documents.mend(session, space)
            self._source.finish(session)

    def _decide(self, kind: str, put: Callable[[Document], None]) -> None:
        for batch in self._spool.batches(self._domain, kind, _BATCH):
            there = {one.key: one for one in self._some(kind, [entry.key for entry, _ in batch])}
            for entry, document in batch:
                chosen = self._chosen(entry, document, there.get(entry.key))
                if chosen is not None:
                    put(chosen)
                    self._outcome.changed.add(self._domain)

    def _some(self, kind: str, keys: Sequence[str]) -> list[Document]:
        return self._store.documents.by_keys(self._session, self._source.space, kind, keys)

    def _chosen(self, entry: SpooledDocument, document: Document, there: Document | None) -> Document | None:
        """The document to write, if any."""
        if not self._belongs(entry, document):
            return None
        if document.kind in ("mention", "verification"):
            return self._about(document, there)
        if there is None:
            return self._new(entry, document)
        if same(document, there, partial=entry.partial):
            self._outcome.unchanged += 1
            return None
        if not self._terms.replace:
            if document.kind in SHARED_KINDS:
                self._conflict(entry, document.kind, "It differs from what is here.")
            else:
                # Two homes count independently; neither number is wrong.
                self._outcome.kept += 1
            return None
        self._outcome.replaced[document.kind] += 1
        if document.kind == "memory":
            self._taken.add(entry.key)
            if document.data["content"] != there.data["content"]:
                self._unread.add(entry.key)
        return joined(document, there, self._terms.now) if entry.partial else document

    def _new(self, entry: SpooledDocument, document: Document) -> Document | None:
        if document.kind == "memory":
            if self._store.memories.find(self._session, entry.key, limit=1):
                self._conflict(entry, "memory", "A memory of another project or domain has this id.")
                return None
            self._here.add(entry.key)
            self._taken.add(entry.key)
            if entry.partial:
                self._unread.add(entry.key)
        self._outcome.added[document.kind] += 1
        return document

    def _about(self, document: Document, there: Document | None) -> Document | None:
        """What was derived from a memory is imported with the memory, or not at all.

        If the text was edited in the file, it is left out: then it equals what is here, or points outside the text.
        """
        key, equal = document.key, there is not None and there.line == document.line
        if key not in self._taken:
            self._outcome.unchanged += equal
            self._outcome.kept += not equal
            return None
        if document.kind == "mention":
            if self._stands_elsewhere(document) or (equal and key in self._unread):
                self._unread.add(key)
                return None
            self._unread.discard(key)
        elif equal and key in self._unread:
            return None
        else:
            self._verified.add(key)
        counts = self._outcome.added if there is None else self._outcome.replaced
        if equal:
            self._outcome.unchanged += 1
            return None
        counts[document.kind] += 1
        return document

    def _stands_elsewhere(self, document: Document) -> bool:
        memory = self._spool.one(self._domain, "memory", document.key)
        past = max((one["past"] for one in document.data["mentions"]), default=0)
        return document.key in self._terms.reworded or (memory is not None and past > len(memory.data["content"]))

    def _is_entity(self, entity_id: str) -> bool:
        if entity_id not in self._entities:
            coming = self._spool.has(self._domain, "entity", entity_id)
            self._entities[entity_id] = coming or bool(self._some("entity", [entity_id]))
        return self._entities[entity_id]

    def _belongs(self, entry: SpooledDocument, document: Document) -> bool:
        """Whether everything that a document refers to is here."""
        about, missing = (entry.key if document.kind in ABOUT_KINDS else None), "memory is"
        if document.kind == "relationship":
            about = document.data["memory"]
            if not all(self._is_entity(document.data[end]) for end in ("source_id", "target_id")):
                about, missing = "", "entities are"
        if about is None or (about in self._here and (about not in self._refused or document.kind == "relationship")):
            return True
        if about not in self._refused:
            self._outcome.left_out.append(f"{document.kind} {clean_text(entry.key, 80)}: its {missing} not here")
        return False

    def _conflict(self, entry: SpooledDocument, kind: str, reason: str) -> None:
        self._outcome.conflicts.append(ImportConflict(kind, entry.key, entry.place, reason))
        if kind == "memory":
            self._refused.add(entry.key)


# -- two versions of a document ---------------------------------------------------------------------


def same(document: Document, there: Document, *, partial: bool) -> bool:
    """Whether nothing would change."""
    if partial:
        written = _WRITTEN[document.kind]
        equal = all(document.data[name] == there.data[name] for name in written)
        return equal and (document.kind != "saved" or _content(document) == _content(there))
    if document.line == there.line:
        return True
    if document.kind == "memory" and there.data["idempotency_key"] is None:
        # It is stored without the key if another memory has it.
        return replace(document, data={**document.data, "idempotency_key": None}).line == there.line
    return False


def joined(document: Document, there: Document, now: int) -> Document:
    """The existing document with the fields of the file; its former state becomes a version."""
    data = dict(there.data)
    data |= {name: document.data[name] for name in _WRITTEN[document.kind]}
    data["updated_at"] = now
    if document.kind == "memory":
        data |= {"version": there.data["version"] + 1, "versions": [*there.data["versions"], _past(there.data)]}
        data["redactions"] = document.data["redactions"]
        if data["status"] != there.data["status"]:
            data |= {name: document.data[name] for name in ("tombstoned_at", "prior_status", "superseded_by")}
    elif document.kind == "saved":
        number = there.data["version"] + 1
        newest = {**document.data["versions"][-1], "version": number, "saved_at": now}
        data |= {"version": number, "redactions": document.data["redactions"]}
        data["versions"] = [*there.data["versions"], newest]
    return replace(there, data=data)


def _past(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "version": data["version"],
        "recorded_at": data["updated_at"],
        "operation": "capture" if data["version"] == 1 else "update",
        **{name: data[name] for name in ("namespace", "tags", "source", "content")},
    }


def _content(document: Document) -> str:
    data = document.data
    return next((str(one["content"]) for one in data["versions"] if one["version"] == data["version"]), "")
