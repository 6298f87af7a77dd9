"""A folder of Markdown: a file for each memory, prompt and template, lists of branches and of the graph.

The folder takes its name when all of it is written. The project lies at its top, what belongs to a person or an
organisation below `user` and `org`; each part says in its `README.md` whose it is.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

from ..clock import Clock, from_micros, iso
from ..errors import InvalidInput, storage_error
from ..prompts.checks import as_variables, is_saved_name
from ..prompts.files import dump
from ..prompts.structured import one_line
from ..records import Domain, JsonValue, Saved, SavedKind
from ..store.database import Session
from ..store.document import Document
from ..store.store import Store
from .held import Held
from .markdown_form import memory_markdown, memory_name, plain_name, with_front_matter

__all__ = ["BRANCH_FIELDS", "EXPORT_FORM", "header_of", "saved_of", "write_folder"]

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


def header_of(domain: Domain, held: Held) -> dict[str, JsonValue]:
    """What tells whose documents follow."""
    told: dict[str, JsonValue] = {"cortex_export": EXPORT_FORM, "domain": domain, "space": held.space}
    if domain == "project":
        facts = held.facts
        told["project"] = {"id": facts["project_id"], "name": facts["name"], "remote": facts["remote"]}
    return told


def write_folder(
    store: Store, clock: Clock, held: Mapping[Domain, Held], target: Path, counts: Counter[str]
) -> tuple[int, int]:
    """Write one state of the store; how many files and bytes it takes. A folder with something in it is refused."""
    try:
        if (
            target.is_symlink()
            or (target.exists() and not target.is_dir())
            or (target.is_dir() and any(target.iterdir()))
        ):
            raise InvalidInput(
                f"{target} is there already and is no empty folder.", remedy="Name a new one.", field="path"
            )
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
        # Gone already where it was renamed.
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
        # The short ids of two memories of the same moment are the same.
        writer.write(f"{part}memories/{memory_name(document, whole_id=True)}", data)


def _write_saved(writer: _Writer, part: str, document: Document) -> None:
    saved = saved_of(document)
    name = saved.name if is_saved_name(saved.name) else f"text-{sha256(saved.name.encode()).hexdigest()[:12]}"
    writer.write(f"{part}{saved.kind}s/{plain_name(name)}.md", dump(saved, "markdown"))


def saved_of(document: Document) -> Saved:
    """A saved text at its present version; InvalidInput where the document holds none."""
    kind, _, name = document.key.partition("/")
    data = document.data
    if kind not in get_args(SavedKind):
        raise InvalidInput(f"{kind[:40]!r} is neither a prompt nor a template.", field="kind")
    present = next((one for one in data["versions"] if one["version"] == data["version"]), None)
    if present is None:
        raise InvalidInput(f"The {kind} {name[:80]!r} lacks its present version.", field="versions")
    return Saved(
        kind=kind,  # type: ignore[arg-type]  # one of them, as was seen above
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
    """The list for people, and in the front matter all that `import` needs of it."""
    told: list[JsonValue] = []
    rows = ["# Lines of work\n\n| id | topic | git branch | status | created |\n|---|---|---|---|---|\n"]
    for document in branches:
        data = document.data
        given: dict[str, JsonValue] = {"id": document.key}
        for name, column in BRANCH_FIELDS:
            if data[column] is not None:
                given[name] = _moment(data[column]) if column.endswith("_at") else data[column]
        told.append(given)
        words = (
            document.key,
            data["topic"],
            data["git_branch"] or "",
            data["status"],
            _moment(data["created_at"])[:10],
        )
        rows.append(f"| {' | '.join(_cell(word) for word in words)} |\n")
    return with_front_matter({"cortex": "branches", "branches": told}, "".join(rows))


def _moment(micros: int) -> str:
    return from_micros(micros).isoformat(timespec="microseconds").replace("+00:00", "Z")


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
