"""Export of a project, a person and an organisation, as JSON Lines or as a folder of Markdown.

Each part of a JSON Lines file begins with a header that names its space; the last line counts the documents, so that a
truncated file is noticed. The folder appears when all of it is written: the project at its top, other domains below
`user` and `org`, each with a `README.md`. An export is one state of the store. The format: docs/guides/export.md.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5, sha256
from pathlib import Path
from typing import Any, BinaryIO, get_args

from ....core.clock import Clock, iso
from ....core.errors import InvalidInput, storage_error
from ....core.files import atomic_write
from ....core.records import DOMAINS, LIVE_STATUSES, Domain, JsonValue, Saved, SavedKind
from ....core.store.database import Session
from ....core.store.documents.document import Document
from ....core.store.store import Store
from ....texts.structured import one_line
from ...prompts.checks import as_variables, is_saved_name
from ...prompts.files import dump
from ..source import BackupSource
from .markdown import memory_markdown, memory_name, moment_text, plain_name, with_front_matter
from .readers.tables import HOLDER_TYPE

EXPORT_FORM = 1
# Name in the list of branches, name in a document.
BRANCH_FIELDS = (
    ("topic", "topic"),
    ("parent", "parent_id"),
    ("git_branch", "git_branch"),
    ("status", "status"),
    ("created", "created_at"),
    ("updated", "updated_at"),
)
_WORDS = """# Cortex memories

One file for each memory, in folders by namespace; `prompts` and `templates` hold saved texts, `branches.md` the lines
of work. `cortex import` reads them back. `graph.md` is for reading alone: it, earlier versions and statistics are
carried by `cortex export --format jsonl`.
"""
_KINDS = ("branch", "entity", "memory", "relationship", "saved")
EXPORT_FORMATS = ("jsonl", "markdown", "server-memory", "mem0")


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What was written: documents by kind, files and bytes. `path` is None for a stream."""

    path: Path | None
    format: str
    domains: tuple[Domain, ...]
    documents: Mapping[str, int]
    files: int
    size_bytes: int


def export(
    store: Store, clock: Clock, held: Mapping[Domain, BackupSource], target: Path | BinaryIO, format: str = "jsonl"
) -> ExportResult:
    """Export all sources: JSON Lines, or the form of the MCP memory server or of mem0, to a file or an open stream; or
    Markdown to a new folder.
    """
    if format not in EXPORT_FORMATS:
        raise InvalidInput(
            f"Unknown format {format[:40]!r}.", remedy=f"Choose one of {', '.join(EXPORT_FORMATS)}.", field="format"
        )
    for one in held.values():
        one.settle()
    counts: Counter[str] = Counter()
    if format == "markdown":
        if not isinstance(target, Path):
            raise InvalidInput("Markdown is written to a folder.", remedy="Name one.", field="path")
        files, size = write_folder(store, clock, held, target, counts)
    elif isinstance(target, Path):
        with atomic_write(target) as file:
            files, size = 1, _write_stream(store, clock, held, file, counts, format)
    else:
        try:
            files, size = 1, _write_stream(store, clock, held, target, counts, format)
            target.flush()
        except OSError as error:
            raise storage_error(error, "The output") from error
    path = target if isinstance(target, Path) else None
    return ExportResult(path, format, tuple(held), dict(sorted(counts.items())), files, size)


def wanted_domains(names: Sequence[str]) -> tuple[Domain, ...]:
    """Domains by name, each once, in their usual order; all if no name is given."""
    for name in names:
        if name not in DOMAINS:
            raise InvalidInput(
                f"Unknown domain {name[:40]!r}.", remedy=f"Choose one of {', '.join(DOMAINS)}.", field="domain"
            )
    return tuple(domain for domain in DOMAINS if not names or domain in names)


_Lines = Iterator[bytes]


def _write_stream(
    store: Store, clock: Clock, held: Mapping[Domain, BackupSource], file: BinaryIO, counts: Counter[str], format: str
) -> int:
    """Write one state of the store in a form of lines; the number of bytes."""
    with store.database.read() as session:
        if format == "server-memory":
            lines: _Lines = (line for one in held.values() for line in _graph_lines(store, session, one, counts))
        elif format == "mem0":
            lines = _mem0_lines(store, session, held, counts)
        else:
            lines = _own_lines(store, session, held, counts, iso(clock.now()))
        return sum(file.write(line) for line in lines)


def _own_lines(
    store: Store, session: Session, held: Mapping[Domain, BackupSource], counts: Counter[str], now: str
) -> _Lines:
    digest = sha256()

    def whole(line: bytes) -> bytes:
        digest.update(line + b"\n")
        return line + b"\n"

    for domain, one in held.items():
        yield whole(_plain({**header_of(domain, one), "exported_at": now}))
        for document in store.documents.scan(session, one.space):
            counts[document.kind] += 1
            yield whole(document.line)
    yield whole(_plain({"cortex_export_end": {"documents": counts.total(), "sha256": digest.hexdigest()}}))


def _plain(value: object, errors: str = "surrogatepass") -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", errors)


# -- the forms of other programs: live memories without their earlier versions ---------------------------

# What mem0 has no field for is in `metadata`, from where import reads it back.
_MEM0_METADATA = ("namespace", "category", "tags", "summary", "source", "path", "git_branch", "domain")
_BATCH = 400


def _is_live(memory: Document) -> bool:
    return memory.data["status"] in LIVE_STATUSES and memory.data["superseded_by"] is None


def _mem0_lines(store: Store, session: Session, held: Mapping[Domain, BackupSource], counts: Counter[str]) -> _Lines:
    """One JSON object with a list of `results`, as mem0 returns memories; the form has no graph."""
    yield b'{"results":['
    for source in held.values():
        for one in filter(_is_live, store.documents.scan(session, source.space, ["memory"])):
            data = one.data
            entry: dict[str, object] = {
                "id": one.key,
                "memory": data["content"],
                # What mem0 tells equal texts by; nothing is protected with it.
                "hash": md5(data["content"].encode("utf-8", "replace"), usedforsecurity=False).hexdigest(),
                "metadata": {name: data[name] for name in _MEM0_METADATA if data[name]},
                "created_at": moment_text(data["created_at"]),
                "updated_at": moment_text(data["updated_at"]),
            }
            entry |= {name: data[name] for name in ("user_id", "agent_id") if data[name]}
            yield (b",\n" if counts["memory"] else b"\n") + _plain(entry, "replace")
            counts["memory"] += 1
    yield b"\n]}\n"


def _graph_lines(store: Store, session: Session, source: BackupSource, counts: Counter[str]) -> _Lines:
    """Entities of the MCP memory server with memories as their observations, and relations.

    A memory is an observation of the entity that it mentions first, or else of one that stands for the project.
    """
    documents, space = store.documents, source.space
    names = {one.key: (one.data["name"], one.data["type"]) for one in documents.scan(session, space, ["entity"])}
    first: dict[str, str] = {}
    for one in documents.scan(session, space, ["mention"]):
        mentioned = [mention["entity_id"] for mention in one.data["mentions"] if mention["entity_id"] in names]
        if mentioned:
            first[one.key] = mentioned[0]
    grouped: dict[str, list[str]] = {identity: [] for identity in names}
    for one in filter(_is_live, documents.scan(session, space, ["memory"])):
        grouped.setdefault(first.get(one.key, ""), []).append(one.key)
    for identity, keys in grouped.items():
        name, sort = names[identity] if identity else (source.facts.get("name") or space, HOLDER_TYPE)
        texts = [
            one.data["content"]
            for low in range(0, len(keys), _BATCH)
            for one in documents.by_keys(session, space, "memory", keys[low : low + _BATCH])
        ]
        counts["memory"] += len(texts)
        counts["entity"] += bool(identity)
        yield _line({"type": "entity", "name": name, "entityType": sort, "observations": texts})
    for one in documents.scan(session, space, ["relationship"]):
        ends = [names.get(one.data[end]) for end in ("source_id", "target_id")]
        if ends[0] is not None and ends[1] is not None and one.data["ended_at"] is None:
            counts["relationship"] += 1
            sort = one.data["properties"].get("type") or one.data["type"]
            yield _line({"type": "relation", "from": ends[0][0], "to": ends[1][0], "relationType": sort})


def _line(value: object) -> bytes:
    return _plain(value, "strict") + b"\n"


# -- the folder of Markdown -------------------------------------------------------------------------


def header_of(domain: Domain, held: BackupSource) -> dict[str, JsonValue]:
    """The header of the documents of a domain."""
    header: dict[str, JsonValue] = {"cortex_export": EXPORT_FORM, "domain": domain, "space": held.space}
    if domain == "project":
        facts = held.facts
        header["project"] = {"id": facts["project_id"], "name": facts["name"], "remote": facts["remote"]}
    return header


def write_folder(
    store: Store, clock: Clock, held: Mapping[Domain, BackupSource], target: Path, counts: Counter[str]
) -> tuple[int, int]:
    """Write one state of the store into a new or empty folder; returns the number of files and bytes."""
    try:
        if target.is_symlink() or (target.exists() and not (target.is_dir() and not any(target.iterdir()))):
            raise InvalidInput(f"{target} exists and is not an empty folder.", remedy="Name a new one.", field="path")
        draft = Path(tempfile.mkdtemp(prefix=f".{target.name[:100]}-", suffix=".part", dir=target.absolute().parent))
    except OSError as error:
        raise storage_error(error, target) from error
    try:
        writer = _Writer(draft)
        with store.database.read() as session:
            for domain, one in held.items():
                part = "" if domain == "project" else f"{domain}/"
                fields = {**header_of(domain, one), "exported_at": iso(clock.now())}
                writer.write(f"{part}README.md", with_front_matter(fields, _WORDS).encode())
                _write_part(store, session, one.space, part, writer, counts)
        if target.is_dir():
            target.rmdir()
        draft.replace(target)
    except OSError as error:
        raise storage_error(error, target) from error
    finally:
        # Already gone if it was renamed.
        shutil.rmtree(draft, ignore_errors=True)
    return writer.files, writer.size


class _Writer:
    """Writes new files, readable by their owner only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.files = 0
        self.size = 0

    def write(self, name: str, data: bytes) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            file.write(data)
        self.files += 1
        self.size += len(data)


def _write_part(store: Store, session: Session, space: str, part: str, writer: _Writer, counts: Counter[str]) -> None:
    branches: list[Document] = []
    names: dict[str, str] = {}
    graph: list[str] = []
    for document in store.documents.scan(session, space, _KINDS):
        counts[document.kind] += 1
        if document.kind == "memory":
            _write_memory(writer, part, document)
        elif document.kind == "saved":
            _write_saved(writer, part, document)
        elif document.kind == "branch":
            branches.append(document)
        elif document.kind == "entity":
            names[document.key] = one_line(document.data["name"])
            graph.append(_entity_line(document.data))
        elif document.data["ended_at"] is None:
            graph.append(_relationship_line(document.data, names))
    if branches:
        writer.write(f"{part}branches.md", _branches(branches).encode())
    if graph:
        fields: dict[str, JsonValue] = {"cortex": "graph"}
        writer.write(f"{part}graph.md", with_front_matter(fields, "".join(_graph(graph))).encode("utf-8", "replace"))


def _write_memory(writer: _Writer, part: str, document: Document) -> None:
    data = memory_markdown(document).encode("utf-8", "surrogatepass")
    try:
        writer.write(f"{part}memories/{memory_name(document)}", data)
    except FileExistsError:
        # Two memories of the same moment can have the same short id.
        writer.write(f"{part}memories/{memory_name(document, whole_id=True)}", data)


def _write_saved(writer: _Writer, part: str, document: Document) -> None:
    saved = saved_of(document)
    name = saved.name if is_saved_name(saved.name) else f"text-{sha256(saved.name.encode()).hexdigest()[:12]}"
    writer.write(f"{part}{saved.kind}s/{plain_name(name)}.md", dump(saved, "markdown"))


def saved_of(document: Document) -> Saved:
    """A saved text at its current version; InvalidInput if the document holds none."""
    kind, _, name = document.key.partition("/")
    data = document.data
    if kind not in get_args(SavedKind):
        raise InvalidInput(f"{kind[:40]!r} is neither a prompt nor a template.", field="kind")
    present = next((one for one in data["versions"] if one["version"] == data["version"]), None)
    if present is None:
        raise InvalidInput(f"The {kind} {name[:80]!r} lacks its present version.", field="versions")
    return Saved(
        kind=kind,  # type: ignore[arg-type]  # checked above
        name=name,
        domain=data["domain"],
        content=present["content"],
        description=data["description"],
        tags=tuple(data["tags"]),
        variables=as_variables(data["variables"]),
        version=data["version"],
        redactions=tuple(data["redactions"]),
    )


def _branches(branches: list[Document]) -> str:
    """The table for readers, and in the front matter everything that `import` needs."""
    listed: list[JsonValue] = []
    rows = ["# Lines of work\n\n| id | topic | git branch | status | created |\n|---|---|---|---|---|\n"]
    for document in branches:
        data = document.data
        given: dict[str, JsonValue] = {"id": document.key}
        for name, column in BRANCH_FIELDS:
            if data[column] is not None:
                given[name] = moment_text(data[column]) if column.endswith("_at") else data[column]
        listed.append(given)
        created = moment_text(data["created_at"])[:10]
        cells = (document.key, data["topic"], data["git_branch"] or "", data["status"], created)
        rows.append(f"| {' | '.join(_cell(cell) for cell in cells)} |\n")
    return with_front_matter({"cortex": "branches", "branches": listed}, "".join(rows))


def _cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")


def _graph(lines: list[str]) -> Iterator[str]:
    yield "# What the memories name\n\nFor reading: `cortex import` does not read this file.\n"
    for title, mark in (("Entities", "- "), ("Relationships", "* ")):
        chosen = sorted((line[2:] for line in lines if line.startswith(mark)), key=str.casefold)
        if chosen:
            yield f"\n## {title}\n\n"
            yield from (f"- {line}\n" for line in chosen)


def _entity_line(data: Mapping[str, Any]) -> str:
    others = ", ".join(one_line(one["alias"]) for one in data["aliases"] if one["alias"] != data["name"])
    return f"- **{one_line(data['name'])}** ({data['type']}){f', also {others}' if others else ''}"


def _relationship_line(data: Mapping[str, Any], names: Mapping[str, str]) -> str:
    ends = [names.get(data[end], data[end]) for end in ("source_id", "target_id")]
    return f"* {ends[0]} *{one_line(data['type'])}* {ends[1]} ({data['confidence']:.2f})"
