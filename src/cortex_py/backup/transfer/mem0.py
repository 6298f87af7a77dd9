"""Export in the form that mem0 returns memories in: one JSON object with a list of `results`.

Live memories only, without their earlier versions and without the graph, which the form cannot hold. What mem0 has no
field for is in `metadata`, from where import reads it back.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from hashlib import md5
from typing import BinaryIO

from ...records import LIVE_STATUSES, Domain
from ...store.store import Store
from ..source import BackupSource
from .markdown import moment_text

__all__ = ["write_mem0"]

_KEPT = ("namespace", "category", "tags", "summary", "source", "path", "git_branch", "domain")


def write_mem0(store: Store, held: Mapping[Domain, BackupSource], file: BinaryIO, counts: Counter[str]) -> int:
    """Write all sources to one file; the number of bytes."""
    size = file.write(b'{"results":[')
    with store.database.read() as session:
        for source in held.values():
            for one in store.documents.scan(session, source.space, ["memory"]):
                data = one.data
                if data["status"] not in LIVE_STATUSES or data["superseded_by"] is not None:
                    continue
                entry: dict[str, object] = {
                    "id": one.key,
                    "memory": data["content"],
                    # What mem0 tells equal texts by; nothing is protected with it.
                    "hash": md5(data["content"].encode("utf-8", "replace"), usedforsecurity=False).hexdigest(),
                    "metadata": {name: data[name] for name in _KEPT if data[name]},
                    "created_at": moment_text(data["created_at"]),
                    "updated_at": moment_text(data["updated_at"]),
                }
                entry |= {name: data[name] for name in ("user_id", "agent_id") if data[name]}
                text = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
                size += file.write(b",\n" + text if counts["memory"] else b"\n" + text)
                counts["memory"] += 1
    return size + file.write(b"\n]}\n")
