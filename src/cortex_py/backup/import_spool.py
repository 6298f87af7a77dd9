"""Checked documents on their way into the store, kept in a file without a name: however much comes, memory holds
only where each lies. What is written is exactly what was checked, whatever happens to the files meanwhile."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from ..errors import InvalidInput, storage_error
from ..records import Domain
from ..store.document import Document, parse_document

__all__ = ["Entry", "Spool"]

_IN_MEMORY = 16_000_000


class Entry(NamedTuple):
    """Where a document lies and where it came from. `partial`: a file that holds no history and no statistics."""

    key: str
    offset: int
    length: int
    place: str
    partial: bool


class Spool:
    def __init__(self, folder: Path) -> None:
        # Closed by `__exit__`, as the spool itself is what a `with` opens.
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY, dir=str(folder))  # noqa: SIM115
        self._entries: dict[tuple[Domain, str], dict[str, Entry]] = {}
        self._end = 0

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, domain: Domain, document: Document, place: str, *, partial: bool = False) -> None:
        """Keep a document. The same one twice is one; two that differ are refused."""
        known = self._entries.setdefault((domain, document.kind), {})
        before = known.get(document.key) or self._elsewhere(domain, document)
        if before is not None:
            if document.key in known and self._line(before) == document.line:
                return
            raise InvalidInput(
                f"{place}: the {document.kind} {document.key[:80]} stands already in {before.place}, and differs.",
                remedy="Leave one of them out.",
                field="file",
            )
        try:
            self._file.seek(self._end)
            self._file.write(document.line)
        except OSError as error:
            raise storage_error(error, "The temporary file") from error
        known[document.key] = Entry(document.key, self._end, len(document.line), place, partial)
        self._end += len(document.line)

    def _elsewhere(self, domain: Domain, document: Document) -> Entry | None:
        """The same memory in another domain: an id names one memory of a home."""
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

    def batches(self, domain: Domain, kind: str, size: int) -> Iterator[Sequence[tuple[Entry, Document]]]:
        """The documents of a kind by key, some at a time."""
        entries = sorted(self._entries.get((domain, kind), {}).values())
        for low in range(0, len(entries), size):
            yield [(one, parse_document(self._line(one))) for one in entries[low : low + size]]

    def one(self, domain: Domain, kind: str, key: str) -> Document | None:
        entry = self._entries.get((domain, kind), {}).get(key)
        return None if entry is None else parse_document(self._line(entry))

    def _line(self, entry: Entry) -> bytes:
        self._file.seek(entry.offset)
        data: bytes = self._file.read(entry.length)
        return data
