"""Snapshots and sync of a large home: equal state after a round trip, speed beside gzip, bytes and memory.

`--memories N` sets the size of the round trip (50,000), `--home-bytes N` that of the home whose memory use is
measured (2 GB). Each step that memory is measured of runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from cortex_py import Cortex
from cortex_py.core.clock import SystemClock, to_micros
from cortex_py.core.memory.capture.capture import current_index_tag
from cortex_py.core.store.documents.document import SHARED_KINDS, Document
from cortex_py.core.store.documents.memories import MEMORY_FIELDS, PortableIndex, write_index
from cortex_py.core.store.rows import IndexedChunk
from cortex_py.parts.backup.snapshots.archive import read_parts
from cortex_py.parts.backup.snapshots.replacement import StateDigest, state_of

from report import table, write
from synthetic import BulkBackend, documents

_PASSPHRASE = "correct horse battery staple"
_LONG = 16_000
_BATCH = 1_000


def _open(home: Path, project: Path, cloud: Path) -> Cortex:
    project.mkdir(exist_ok=True)
    backend = BulkBackend(_model())
    backend.bulk = True
    return Cortex.open(
        home, project=project, backend=backend, snapshot_every="off", cloud_url=str(cloud), passphrase=_PASSPHRASE
    )


def _model() -> Any:
    from cortex_py.core.config import load_settings
    from cortex_py.core.embedding.backends.registry import open_backend

    return open_backend(settings=load_settings())


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    done = work()
    return time.perf_counter() - started, done


def _digest(cortex: Cortex, *, shared: bool = False) -> str:
    with cortex._store.database.read() as session:
        if not shared:
            return state_of(cortex._store, session, cortex.project.id).hexdigest()
        state = StateDigest()
        for one in cortex._store.documents.scan(session, cortex.project.id, SHARED_KINDS):
            state.add(one)
        return state.hexdigest()


def _fill(cortex: Cortex, count: int) -> None:
    names = ("PostgreSQL", "Redis", "Kafka", "Django")
    notes = [
        replace(one, content=f"Service{n % 200} uses {names[n % 4]} since {one.content}")
        for n, one in enumerate(documents(count))
    ]
    cortex.memories.capture_many(notes)
    for number in range(200):
        cortex.prompts.save(f"prompt-{number}", f"Look at {{{{file}}}} for {number}.", domain="project")
        cortex.graph.create(f"Service{number}", type="Technology")
    for number in range(199):
        cortex.graph.relate(f"Service{number}", f"Service{number + 1}", "Uses")


def _gzip(path: Path, folder: Path) -> tuple[float, int]:
    """Seconds and input bytes of `gzip -6` on exactly what is in an archive."""
    plain = folder / "plain.bin"
    with plain.open("wb") as file:
        for part in read_parts(path):
            file.write(part.data)
    with plain.open("rb") as source, (folder / "plain.gz").open("wb") as target:
        seconds, _ = _timed(lambda: subprocess.run(["gzip", "-6", "-c"], stdin=source, stdout=target, check=True))
    size = plain.stat().st_size
    plain.unlink()
    return seconds, size


def round_trip(count: int, folder: Path) -> dict[str, Any]:
    project, cloud = folder / "project", folder / "cloud"
    result: dict[str, Any] = {"memories": count}
    with _open(folder / "one", project, cloud) as cortex:
        result["fill_s"], _ = _timed(lambda: _fill(cortex, count))
        before = _digest(cortex)
        result["create_s"], made = _timed(lambda: cortex.backups.create("bench"))
        result["gzip_s"], result["plain_bytes"] = _gzip(made.path, folder)
        result["archive_bytes"] = made.size_bytes
        result["verify_s"], _ = _timed(lambda: cortex.backups.verify(made.id))
        changed = [hit.memory.id for hit in cortex.memories.recall("", limit=min(1_000, count // 100)).results]
        for one in changed:
            cortex.memories.update(one, content=f"changed {one}")
        result["restore_s"], _ = _timed(lambda: cortex.backups.restore(made.id))
        result["same_home_equal"] = _digest(cortex) == before
        result["push_s"], pushed = _timed(cortex.backups.push)
        result["push_bytes"] = pushed.uploaded_bytes
        for one in changed:
            cortex.memories.update(one, content=f"changed again {one}")
        result["changed"] = len(changed)
        result["push_again_s"], pushed = _timed(cortex.backups.push)
        result["push_again_bytes"] = pushed.uploaded_bytes
        shared = _digest(cortex, shared=True)
        archive = made.path
        name = cortex.project.id
    with _open(folder / "two", project, cloud) as cortex:
        (folder / "two" / "backups" / name).mkdir(parents=True)
        shutil.copy(archive, folder / "two" / "backups" / name)
        result["restore_empty_s"], _ = _timed(lambda: cortex.backups.restore(made.id))
        result["other_home_equal"] = _digest(cortex) == before
    with _open(folder / "three", project, cloud) as cortex:
        result["pull_s"], pulled = _timed(cortex.backups.pull)
        result["pull_bytes"] = pulled.downloaded_bytes
        result["pulled_equal"] = _digest(cortex, shared=True) == shared
    return result


def _long_documents(count: int, tag: bytes, dimensions: int) -> Iterator[Document]:
    """Memories of 16,000 characters of text that hardly repeats, with vectors, ready to be put in."""
    chance = np.random.default_rng(5)
    words = np.array([f"w{number:x}" for number in range(60_000)])
    at = to_micros(SystemClock().now())
    for number in range(count):
        content = " ".join(words[chance.integers(0, len(words), _LONG // 6)])[:_LONG]
        vectors = chance.standard_normal((4, dimensions)).astype(np.float32)
        chunks = tuple(IndexedChunk(0, len(content), False, bytes(5 * 50), vector.tobytes()) for vector in vectors)
        index = PortableIndex(sha256(content.encode()).digest()[:16], 50, 0, 0, chunks)
        data = {
            **dict.fromkeys(column.name for column in MEMORY_FIELDS if column.optional),
            "domain": "project",
            "namespace": "context",
            "content": content,
            "tags": [],
            "status": "active",
            "created_at": at + number,
            "updated_at": at + number,
            "version": 1,
            "redactions": [],
            "kind": "note",
            "versions": [],
        }
        yield Document("memory", f"{number:040x}", data, write_index(tag, index))


def _grow(home: Path, project: Path, cloud: Path, size: int) -> None:
    with _open(home, project, cloud) as cortex:
        store, space = cortex._store, cortex.project.id
        held = cortex._sessions.source(None, "project")
        batch: list[Document] = []
        count = size // (_LONG + 4 * 1_600)
        for one in _long_documents(count, current_index_tag(cortex.backend), cortex.backend.dimensions):
            batch.append(Document(one.kind, one.key, {**one.data, "project_id": space}, one.vectors))
            if len(batch) == _BATCH:
                _put(store, space, batch, held)
                batch = []
        _put(store, space, batch, held)


def _put(store: Any, space: str, batch: list[Document], held: Any) -> None:
    with store.database.write() as session:
        seq = store.memories.next_seq(session)
        for one in batch:
            store.documents.put(session, space, one, seq, held.prepared)
        held.written(session)


def _step(name: str, folder: Path, size: int) -> dict[str, Any]:
    """One step in this process, with the most memory it ever held."""
    project, cloud = folder / "project", folder / "cloud"
    home = folder / ("other" if name in ("pull", "restore") else "large")
    seconds = 0.0
    if name == "grow":
        _grow(home, project, cloud, size)
    else:
        with _open(home, project, cloud) as cortex:
            if name == "create":
                seconds, _ = _timed(lambda: cortex.backups.create("large"))
            elif name == "push":
                seconds, _ = _timed(cortex.backups.push)
            elif name == "pull":
                seconds, _ = _timed(cortex.backups.pull)
            elif name == "open":
                seconds, _ = _timed(lambda: cortex.memories.status())
            else:
                there = folder / "large" / "backups" / cortex.project.id
                here = folder / "other" / "backups" / cortex.project.id
                here.mkdir(parents=True, exist_ok=True)
                (archive,) = there.glob("*.tar.gz")
                shutil.copy(archive, here)
                seconds, _ = _timed(lambda: cortex.backups.restore(archive.name.removesuffix(".tar.gz")))
    return {"seconds": seconds, "peak_mb": _most_memory()}


def _most_memory() -> float:
    """In MB. From the kernel where it tells it; what a child is said to have used counts its parent's too."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [one for one in status.read_text().splitlines() if one.startswith("VmHWM:")]
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def large(size: int, folder: Path) -> dict[str, Any]:
    result: dict[str, Any] = {"home_bytes": size}
    for name in ("grow", "open", "create", "push", "pull", "restore"):
        done = subprocess.run(
            [sys.executable, __file__, "--step", name, "--folder", str(folder), "--home-bytes", str(size)],
            check=True,
            capture_output=True,
            text=True,
        )
        result[name] = json.loads(done.stdout.splitlines()[-1])
    result["database_bytes"] = (folder / "large" / "cortex.db").stat().st_size
    (archive,) = (folder / "large" / "backups").rglob("*.tar.gz")
    gzip_seconds, plain = _gzip(archive, folder)
    result |= {"gzip_s": gzip_seconds, "plain_bytes": plain, "archive_bytes": archive.stat().st_size}
    return result


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--memories", type=int, default=50_000)
    given.add_argument("--home-bytes", type=int, default=2_000_000_000)
    given.add_argument("--step", default="")
    given.add_argument("--folder", type=Path)
    asked = given.parse_args()
    if asked.step:
        print(json.dumps(_step(asked.step, asked.folder, asked.home_bytes)))
        return
    with tempfile.TemporaryDirectory(prefix="cortex-backups-") as name:
        trip = round_trip(asked.memories, Path(name))
    rate = trip["plain_bytes"] / 1e6
    table(
        ("round trip", "value"),
        [
            ("memories", trip["memories"]),
            ("equal on the same home", trip["same_home_equal"]),
            ("equal on another home", trip["other_home_equal"]),
            ("equal after a pull", trip["pulled_equal"]),
            ("create, MB/s", rate / trip["create_s"]),
            ("push, MB/s", rate / trip["push_s"]),
            ("gzip -6, MB/s", rate / trip["gzip_s"]),
            ("create / gzip -6", trip["gzip_s"] / trip["create_s"]),
            ("push / gzip -6", trip["gzip_s"] / trip["push_s"]),
            ("restore into the same home, s", trip["restore_s"]),
            ("restore into an empty home, s", trip["restore_empty_s"]),
            ("first pull, s", trip["pull_s"]),
            ("full push, bytes", trip["push_bytes"]),
            (f"push after {trip['changed']} changes, bytes", trip["push_again_bytes"]),
            ("share of the full push", trip["push_again_bytes"] / trip["push_bytes"]),
        ],
    )
    with tempfile.TemporaryDirectory(prefix="cortex-backups-") as name:
        big = large(asked.home_bytes, Path(name))
    print()
    table(
        ("large home", "seconds", "most memory, MB"),
        [(step, big[step]["seconds"], big[step]["peak_mb"]) for step in ("open", "create", "push", "pull", "restore")],
    )
    print(
        f"database {big['database_bytes']:,} bytes; gzip -6 on the {big['plain_bytes']:,} bytes: {big['gzip_s']:.1f} s;"
        f" create / gzip -6 = {big['gzip_s'] / big['create']['seconds']:.2f},"
        f" push / gzip -6 = {big['gzip_s'] / big['push']['seconds']:.2f}"
    )
    write("backups", {"round_trip": trip, "large": big})


if __name__ == "__main__":
    main()
