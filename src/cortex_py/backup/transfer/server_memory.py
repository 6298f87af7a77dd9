"""Export in the form of the MCP memory server: entities with memories as their observations, and relations.

A memory is an observation of the entity that it mentions first, or else of one that stands for the project. Deleted,
superseded and archived memories are left out, and so are versions, tags and dates, which the form cannot hold.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from ...records import LIVE_STATUSES, Domain
from ...store.database import Session
from ...store.store import Store
from ..source import BackupSource

__all__ = ["HOLDER_TYPE", "write_server_memory"]

# The type of the entity that holds what names nothing.
HOLDER_TYPE = "cortex-project"
_BATCH = 400


def write_server_memory(store: Store, held: Mapping[Domain, BackupSource], file: BinaryIO, counts: Counter[str]) -> int:
    """Write all sources to one file; the number of bytes."""
    size = 0
    with store.database.read() as session:
        for source in held.values():
            for line in _lines(store, session, source, counts):
                size += file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    return size


def _lines(store: Store, session: Session, source: BackupSource, counts: Counter[str]) -> Iterator[dict[str, object]]:
    documents, space = store.documents, source.space
    names = {one.key: (one.data["name"], one.data["type"]) for one in documents.scan(session, space, ["entity"])}
    first: dict[str, str] = {}
    for one in documents.scan(session, space, ["mention"]):
        mentioned = [mention["entity_id"] for mention in one.data["mentions"] if mention["entity_id"] in names]
        if mentioned:
            first[one.key] = mentioned[0]
    grouped: dict[str, list[str]] = {identity: [] for identity in names}
    for one in documents.scan(session, space, ["memory"]):
        if one.data["status"] in LIVE_STATUSES and one.data["superseded_by"] is None:
            grouped.setdefault(first.get(one.key, ""), []).append(one.key)
    for identity, keys in grouped.items():
        if identity:
            name, sort = names[identity]
        else:
            name, sort = source.facts.get("name") or space, HOLDER_TYPE
        texts = [
            text
            for low in range(0, len(keys), _BATCH)
            for text in _texts(store, session, space, keys[low : low + _BATCH])
        ]
        counts["memory"] += len(texts)
        counts["entity"] += bool(identity)
        yield {"type": "entity", "name": name, "entityType": sort, "observations": texts}
    for one in documents.scan(session, space, ["relationship"]):
        ends = [names.get(one.data[end]) for end in ("source_id", "target_id")]
        if ends[0] is not None and ends[1] is not None and one.data["ended_at"] is None:
            counts["relationship"] += 1
            sort = one.data["properties"].get("type") or one.data["type"]
            yield {"type": "relation", "from": ends[0][0], "to": ends[1][0], "relationType": sort}


def _texts(store: Store, session: Session, space: str, keys: list[str]) -> list[str]:
    return [one.data["content"] for one in store.documents.by_keys(session, space, "memory", keys)]
