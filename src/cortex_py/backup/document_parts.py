"""Documents as the parts of an archive, and back. The form: docs/formats.md."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256

from ..errors import BackupCorrupt
from ..store.document import Document, parse_canonical
from ..store.documents import check_document, key_order
from .archive import Part

__all__ = ["StateDigest", "documents_in", "parts_of"]

_LINES_BYTES = 4_000_000
_LENGTH = struct.Struct(">I")


class StateDigest:
    """One digest for all documents in their order, and how many there are of each kind."""

    def __init__(self) -> None:
        self._sum = sha256()
        self.counts: Counter[str] = Counter()

    def add(self, document: Document) -> None:
        self._sum.update(document.line)
        self._sum.update(b"\n")
        self.counts[document.kind] += 1

    def hexdigest(self) -> str:
        return self._sum.hexdigest()


def parts_of(documents: Iterable[Document], state: StateDigest) -> Iterator[Part]:
    """Parts of bounded size, each with lines and, beside it, what search needs of the same documents."""
    lines: list[bytes] = []
    indexes: list[bytes] = []
    size = number = 0
    for document in documents:
        state.add(document)
        lines.append(document.line)
        indexes.append(_LENGTH.pack(len(document.vectors)) + document.vectors)
        size += len(document.line) + len(document.vectors)
        if size >= _LINES_BYTES:
            number += 1
            yield from _pair(number, lines, indexes)
            lines, indexes, size = [], [], 0
    if lines:
        yield from _pair(number + 1, lines, indexes)


def _pair(number: int, lines: list[bytes], indexes: list[bytes]) -> Iterator[Part]:
    yield Part(f"documents/{number:06d}.jsonl", b"\n".join(lines) + b"\n")
    yield Part(f"vectors/{number:06d}.bin", b"".join(indexes), compress=False)


def documents_in(parts: Iterable[Part], state: StateDigest, *, checked: bool = False) -> Iterator[Document]:
    """The documents again, in a strictly growing order; each is checked, unless all were before."""
    waiting: Part | None = None
    last: tuple[int, tuple[str, ...]] = (-1, ())
    for part in parts:
        folder = part.name.split("/")[0]
        if folder == "documents" and waiting is None:
            waiting = part
        elif folder == "vectors" and waiting is not None and part.name[-10:-4] == waiting.name[-12:-6]:
            for document in _documents(waiting, part):
                place = key_order(document)
                if place <= last:
                    raise _corrupt(waiting.name, "its documents are not in order")
                last = place
                if not checked:
                    check_document(document)
                    state.add(document)
                yield document
            waiting = None
        elif folder != "files":
            raise _corrupt(part.name, "it does not belong to the part before it")
    if waiting is not None:
        raise _corrupt(waiting.name, "the part that belongs to it is missing")


def _documents(lines: Part, indexes: Part) -> Iterator[Document]:
    place = 0
    for number, line in enumerate(lines.data.removesuffix(b"\n").split(b"\n"), start=1):
        end = place + _LENGTH.size
        if end > len(indexes.data):
            raise _corrupt(indexes.name, "it is shorter than its documents")
        (length,) = _LENGTH.unpack_from(indexes.data, place)
        place = end + length
        try:
            # A line of another spelling is not what a store gives back, so that a restore of it is refused.
            document = parse_canonical(line, indexes.data[end:place])
        except (ValueError, RecursionError) as error:
            raise _corrupt(lines.name, f"line {number} is not a document") from error
        yield document
    if place != len(indexes.data):
        raise _corrupt(indexes.name, "it does not end with its documents")


def _corrupt(name: str, why: str) -> BackupCorrupt:
    return BackupCorrupt(f"The part {name} cannot be read: {why}.", remedy="Use another snapshot.")
