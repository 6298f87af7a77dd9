"""Everything of a project, a person and an organisation as JSON Lines: plain text that any program can read.

A part of the file begins with a header that says whose documents follow; the last line tells how many there are,
so that a file cut off is noticed. All of it is one state of the store. The form: docs/export.md.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from ..clock import Clock, iso
from ..errors import InvalidInput, storage_error
from ..records import DOMAINS, Domain
from ..store.store import Store
from .export_folder import header_of, write_folder
from .held import Held
from .replacing import replacing

__all__ = ["EXPORT_FORMATS", "Exported", "export", "wanted_domains"]

EXPORT_FORMATS = ("jsonl", "markdown")


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: documents by kind, in so many files and bytes. `path` is None where it went to a stream."""

    path: Path | None
    format: str
    domains: tuple[Domain, ...]
    documents: Mapping[str, int]
    files: int
    size_bytes: int


def export(
    store: Store, clock: Clock, held: Mapping[Domain, Held], target: Path | BinaryIO, format: str = "jsonl"
) -> Exported:
    """Write all that is held: JSON Lines to a file or an open stream, or Markdown to a new folder."""
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
        with replacing(target) as file:
            files, size = 1, _write_lines(store, clock, held, file, counts)
    else:
        try:
            files, size = 1, _write_lines(store, clock, held, target, counts)
            target.flush()
        except OSError as error:
            raise storage_error(error, "The output") from error
    path = target if isinstance(target, Path) else None
    return Exported(path, format, tuple(held), dict(sorted(counts.items())), files, size)


def wanted_domains(names: Sequence[str]) -> tuple[Domain, ...]:
    """Domains by name, each once, in their usual order; without any name, all."""
    for name in names:
        if name not in DOMAINS:
            raise InvalidInput(
                f"Unknown domain {name[:40]!r}.", remedy=f"Choose one of {', '.join(DOMAINS)}.", field="domain"
            )
    return tuple(domain for domain in DOMAINS if not names or domain in names)


def _write_lines(store: Store, clock: Clock, held: Mapping[Domain, Held], file: BinaryIO, counts: Counter[str]) -> int:
    digest, size = sha256(), 0

    def write(line: bytes) -> None:
        nonlocal size
        whole = line + b"\n"
        digest.update(whole)
        size += len(whole)
        file.write(whole)

    now = iso(clock.now())
    with store.database.read() as session:
        for domain, one in held.items():
            write(_plain({**header_of(domain, one), "exported_at": now}))
            for document in store.documents.scan(session, one.space):
                counts[document.kind] += 1
                write(document.line)
        write(_plain({"cortex_export_end": {"documents": counts.total(), "sha256": digest.hexdigest()}}))
    return size


def _plain(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
