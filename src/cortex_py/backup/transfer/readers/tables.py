"""Objects and rows: JSON Lines, JSON arrays and CSV with a field map, and the graph of the MCP memory server."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from ....errors import CortexError
from ..markdown import from_object
from ..server_memory import HOLDER_TYPE
from .files import SourceFile
from .parsing import first_objects, json_entries, json_lines
from .records import FieldMap, Found, Skipped, SourceEntity, SourceRecord, SourceRelation

__all__ = ["CsvTables", "JsonObjects", "MemoryServerGraph"]

_FIELD_MOST = 16_000_000
_LINE_MOST = 4 * _FIELD_MOST
_FIELDS = ("content", "namespace", "source", "path", "summary", "category", "tags", "created_at", "id")


class JsonObjects:
    """JSON Lines, or an array of objects, with a `content` or what the field map names so."""

    kind = "json"

    def __init__(self, fields: FieldMap) -> None:
        self._fields = fields

    def recognises(self, file: SourceFile) -> bool:
        start = file.head.lstrip()[:1]
        return file.suffix in (".json", ".jsonl", ".ndjson") or start in (b"[", b"{")

    def read(self, file: SourceFile) -> Iterator[Found]:
        is_array = file.head.lstrip().startswith(b"[")
        with file.open() as stream:
            found = json_entries(stream) if is_array else json_lines(stream)
            for one in found:
                if isinstance(one, Skipped):
                    yield one
                    continue
                place = f"{'entry' if is_array else 'line'} {one.number}"
                yield _record(one.value, file, place, one.number, self._fields)


class CsvTables:
    """A table whose first row names the columns."""

    kind = "csv"

    def __init__(self, fields: FieldMap) -> None:
        self._fields = fields

    def recognises(self, file: SourceFile) -> bool:
        return file.suffix in (".csv", ".tsv")

    def read(self, file: SourceFile) -> Iterator[Found]:
        with file.open() as stream:
            text = io.TextIOWrapper(stream, "utf-8-sig", errors="strict", newline="")
            before = csv.field_size_limit(_FIELD_MOST)
            try:
                first = file.head.split(b"\n", 1)[0]
                mark = max(",;\t|", key=lambda one: first.count(one.encode()))
                yield from self._rows(csv.DictReader(_lines(text), delimiter=mark, strict=True), file)
            except UnicodeDecodeError:
                yield Skipped("", "it is not UTF-8")
            finally:
                csv.field_size_limit(before)

    def _rows(self, rows: csv.DictReader[str], file: SourceFile) -> Iterator[Found]:
        while True:
            try:
                row = next(rows, None)
            except csv.Error as error:
                yield Skipped(f"line {rows.line_num}", f"it is no row of a table ({error}); the rest is not read")
                return
            if row is None:
                return
            place = f"line {rows.line_num}"
            if None in row or None in row.values():
                yield Skipped(place, "it has another number of columns than the first row")
                continue
            given: dict[str, Any] = {name: value for name, value in row.items() if value != ""}
            tags = self._fields.of("tags")
            if isinstance(given.get(tags), str):
                given[tags] = [one.strip() for one in given[tags].replace(";", ",").split(",") if one.strip()]
            yield _record(given, file, place, rows.line_num, self._fields)


def _record(value: object, file: SourceFile, place: str, line: int, fields: FieldMap) -> Found:
    if isinstance(value, dict) and fields.names:
        taken = {fields.of(name): name for name in _FIELDS}
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


class MemoryServerGraph:
    """The file of the MCP memory server: names and relations go into the graph, observations become memories."""

    kind = "server-memory"

    def recognises(self, file: SourceFile) -> bool:
        found = first_objects(file.head)
        return bool(found) and all(one.get("type") in ("entity", "relation") for one in found)

    def read(self, file: SourceFile) -> Iterator[Found]:
        with file.open() as stream:
            for line in json_lines(stream):
                if isinstance(line, Skipped):
                    yield line
                    continue
                value = line.value if isinstance(line.value, dict) else {}
                if value.get("type") == "entity":
                    yield from self._entity(value, file, line.number)
                elif value.get("type") == "relation":
                    yield self._relation(value, line.number)
                else:
                    yield Skipped(f"line {line.number}", "it is neither an entity nor a relation")

    def _entity(self, value: dict[str, Any], file: SourceFile, line: int) -> Iterator[Found]:
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
                source=self.kind,
                # An observation has no id: its words are what it is known by.
                position=f"{name}\n{sha256(one.encode('utf-8', 'replace')).hexdigest()}",
                line=line,
                content=one if sort == HOLDER_TYPE or name.casefold() in one.casefold() else f"{name}: {one}",
                tags=(sort,) if sort and sort != HOLDER_TYPE else (),
                shown=f"{file.name}#{name}",
            )

    def _relation(self, value: dict[str, Any], line: int) -> Found:
        ends = _first(value, "from", "from_id"), _first(value, "to", "to_id")
        if ends[0] is None or ends[1] is None:
            return Skipped(f"line {line}", "the relation lacks an end")
        return SourceRelation(ends[0], ends[1], _first(value, "relationType", "relation_type") or "")


def _first(value: dict[str, Any], *names: str) -> str | None:
    return next((one for name in names if isinstance(one := value.get(name), str) and one.strip()), None)
