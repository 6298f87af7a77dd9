"""Objects and rows: JSON Lines, JSON arrays and CSV with a field map, and the graph of the MCP memory server."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from .....core.errors import CortexError
from ..markdown import from_object
from .files import SourceFile
from .parsing import JsonItem, first_objects, json_reader
from .records import Found, Skipped, SourceEntity, SourceReader, SourceRecord, SourceRelation

__all__ = ["HOLDER_TYPE", "MEMORY_SERVER", "table_readers"]

# The type of the entity that holds, in an export of ours, what names nothing.
HOLDER_TYPE = "cortex-project"

_FIELD_MOST = 16_000_000
_LINE_MOST = 4 * _FIELD_MOST
_FIELDS = ("content", "namespace", "source", "path", "summary", "category", "tags", "created_at", "id")


def table_readers(fields: Mapping[str, str]) -> tuple[SourceReader, SourceReader]:
    """Readers of CSV and of JSON objects; `fields` names the column that is the content, the time and so on."""

    def take(one: JsonItem, file: SourceFile) -> Iterator[Found]:
        place = f"{'line' if _holds_lines(file) else 'entry'} {one.number}"
        yield _record(one.value, file, place, one.number, fields)

    return (
        SourceReader("csv", lambda file: file.suffix in (".csv", ".tsv"), lambda file: _csv_rows(file, fields)),
        json_reader("json", _is_json, take, is_lines=_holds_lines),
    )


def _is_json(file: SourceFile) -> bool:
    return file.suffix in (".json", ".jsonl", ".ndjson") or file.head.lstrip()[:1] in (b"[", b"{")


def _holds_lines(file: SourceFile) -> bool:
    return not file.head.lstrip().startswith(b"[")


def _csv_rows(file: SourceFile, fields: Mapping[str, str]) -> Iterator[Found]:
    """The rows of a table whose first row names the columns."""
    before = csv.field_size_limit(_FIELD_MOST)
    rows: csv.DictReader[str] | None = None
    tags = fields.get("tags", "tags")
    try:
        with file.open() as stream:
            text = io.TextIOWrapper(stream, "utf-8-sig", errors="strict", newline="")
            first = file.head.split(b"\n", 1)[0]
            mark = max(",;\t|", key=lambda one: first.count(one.encode()))
            rows = csv.DictReader(_lines(text), delimiter=mark, strict=True)
            for row in rows:
                place = f"line {rows.line_num}"
                if None in row or None in row.values():
                    yield Skipped(place, "it has another number of columns than the first row")
                    continue
                given: dict[str, Any] = {name: value for name, value in row.items() if value != ""}
                if isinstance(given.get(tags), str):
                    given[tags] = [one.strip() for one in given[tags].replace(";", ",").split(",") if one.strip()]
                yield _record(given, file, place, rows.line_num, fields)
    except csv.Error as error:
        place = f"line {rows.line_num if rows else 1}"
        yield Skipped(place, f"it is no row of a table ({error}); the rest is not read")
    except UnicodeDecodeError:
        yield Skipped("", "it is not UTF-8")
    finally:
        csv.field_size_limit(before)


def _record(value: object, file: SourceFile, place: str, line: int, fields: Mapping[str, str]) -> Found:
    if isinstance(value, dict) and fields:
        taken = {fields.get(name, name): name for name in _FIELDS}
        value = {taken.get(name, name): one for name, one in value.items() if name in taken or name not in _FIELDS}
    try:
        item, ignored = from_object(value, "project")
    except CortexError as error:
        return Skipped(place, error.message.rstrip("."))
    identity = value.get("id") if isinstance(value, dict) else None
    is_known = isinstance(identity, str | int) and str(identity).strip() != ""
    return SourceRecord(
        source=file.name if is_known else "",
        # Without an id, objects that are equal in all fields are the same, in whichever file they are.
        position=f"id {identity}" if is_known else item.idempotency_key or "",
        line=line,
        content=item.content,
        namespace=item.namespace,
        category=item.category,
        tags=item.tags,
        summary=item.summary,
        path=item.path,
        at=item.created_at,
        shown=item.source,
        ignored=ignored,
    )


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    while line := text.readline(_LINE_MOST):
        if len(line) == _LINE_MOST:
            raise csv.Error(f"longer than {_LINE_MOST:,} characters")
        yield line


# -- the MCP memory server: names and relations go into the graph, observations become memories ----------


def _is_memory_server(file: SourceFile) -> bool:
    found = first_objects(file.head)
    return bool(found) and all(one.get("type") in ("entity", "relation") for one in found)


def _graph_line(line: JsonItem, file: SourceFile) -> Iterator[Found]:
    value, place = line.object, f"line {line.number}"
    if value.get("type") == "entity":
        yield from _entity(value, file, line.number)
    elif value.get("type") == "relation":
        source, target = _first(value, "from", "from_id"), _first(value, "to", "to_id")
        if source is None or target is None:
            yield Skipped(place, "the relation lacks an end")
        else:
            yield SourceRelation(source, target, _first(value, "relationType", "relation_type") or "")
    else:
        yield Skipped(place, "it is neither an entity nor a relation")


def _entity(value: dict[str, Any], file: SourceFile, line: int) -> Iterator[Found]:
    name = _first(value, "name", "entityName", "id")
    observations = value.get("observations", [])
    if name is None or not isinstance(observations, list):
        yield Skipped(f"line {line}", "the entity has no name, or its observations are no list")
        return
    sort = _first(value, "entityType", "entity_type") or ""
    if sort != HOLDER_TYPE:
        yield SourceEntity(name, sort)
    for one in observations:
        if not isinstance(one, str) or not one.strip():
            yield Skipped(f"line {line}", f"an observation of {name[:80]} is no text")
            continue
        yield SourceRecord(
            source="server-memory",
            # An observation has no id: its words are what it is known by.
            position=f"{name}\n{sha256(one.encode('utf-8', 'replace')).hexdigest()}",
            line=line,
            content=one if sort == HOLDER_TYPE or name.casefold() in one.casefold() else f"{name}: {one}",
            tags=(sort,) if sort and sort != HOLDER_TYPE else (),
            shown=f"{file.name}#{name}",
        )


def _first(value: dict[str, Any], *names: str) -> str | None:
    return next((one for name in names if isinstance(one := value.get(name), str) and one.strip()), None)


MEMORY_SERVER = json_reader("server-memory", _is_memory_server, _graph_line)
