"""Snapshot archives: parts and a manifest in one `.tar.gz` that ordinary tools unpack, written as a stream.

Each part is a gzip member of its own, so that several are compressed at a time; the file has the same
bytes whichever is done first. The form: docs/formats.md. Reading: `archive_reading`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ..errors import InvalidInput, LimitExceeded
from .archive_manifest import (
    JSON,
    LIMITS,
    MANIFEST_NAME,
    Limits,
    Manifest,
    NameOrder,
    PartFacts,
    manifest_json,
    parse_manifest,
)
from .archive_members import END_OF_TAR, Trailer, gzip_member, padding, tar_header
from .byte_streams import write_fully
from .replacing import replacing

__all__ = ["Part", "write_archive"]

_WORKERS = max(1, min(4, os.cpu_count() or 1))
# One more than are compressed, so that no worker waits for the producer.
_AHEAD = _WORKERS + 1


class Part(NamedTuple):
    """One file of an archive. `compress` False: stored as it is, where compressing gains nothing."""

    name: str
    data: bytes
    compress: bool = True


def write_archive(
    path: Path,
    parts: Iterable[Part],
    facts: Mapping[str, JSON] | Callable[[], Mapping[str, JSON]],
    limits: Limits = LIMITS,
) -> Manifest:
    """Write the parts as one file, which appears when it is whole and on the disk.

    Facts that are known only at the end may be given as a function: it is called after the last part.
    Other limits than the usual have to be given to the reader too.
    """
    with replacing(path) as draft:
        writing = _Writing(draft)
        listed = []
        # Closed also where writing fails, so that no worker stays behind.
        with closing(_packed(_checked(parts, limits), limits)) as packed:
            for part in packed:
                writing.write(part.member)
                listed.append(part.facts)
        text = manifest_json(facts() if callable(facts) else facts, listed, limits)
        manifest_at = writing.size
        entry = (tar_header(MANIFEST_NAME, len(text)), text, padding(len(text)), END_OF_TAR)
        writing.write(gzip_member(*entry, compress=True, most_ratio=limits.ratio))
        writing.finish(manifest_at)
    return parse_manifest(text, writing.size, limits)


class _Writing:
    """A draft, how long it is, and the digest of it."""

    __slots__ = ("_digest", "_draft", "size")

    def __init__(self, draft: BinaryIO) -> None:
        self._draft = draft
        self._digest = sha256()
        self.size = 0

    def write(self, data: bytes) -> None:
        write_fully(self._draft, data)
        self._digest.update(data)
        self.size += len(data)

    def finish(self, manifest_at: int) -> None:
        self._digest.update(Trailer(manifest_at).start())
        trailer = Trailer(manifest_at, self._digest.digest()).encoded()
        write_fully(self._draft, trailer)
        self.size += len(trailer)


class _PackedPart(NamedTuple):
    facts: PartFacts
    member: bytes


def _checked(parts: Iterable[Part], limits: Limits) -> Iterator[Part]:
    """The parts, as long as what they come to could be read back."""
    order = NameOrder()
    count, total = 0, 0
    for part in parts:
        if fault := order.fault(part.name):
            raise InvalidInput(f"The parts of the snapshot are not as they should be: {fault}.", field="parts")
        count, total = count + 1, total + len(part.data)
        if excess := limits.excess(count, len(part.data), total):
            raise LimitExceeded(f"The snapshot would hold {excess}.", remedy="Cut it otherwise.", field="parts")
        yield part


def _packed(parts: Iterable[Part], limits: Limits) -> Generator[_PackedPart]:
    """The parts as gzip members, in their order; a few are held in memory, and compressed at the same time."""
    waiting: deque[Future[_PackedPart]] = deque()
    pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="cortex-archive")
    try:
        for part in parts:
            waiting.append(pool.submit(_pack, part, limits.ratio))
            if len(waiting) >= _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _pack(part: Part, most_ratio: int) -> _PackedPart:
    size = len(part.data)
    member = gzip_member(
        tar_header(part.name, size), part.data, padding(size), compress=part.compress, most_ratio=most_ratio
    )
    return _PackedPart(PartFacts(part.name, size, sha256(part.data).hexdigest()), member)
