"""Homes with something of everything in them, and what they hold as one comparable value."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from cortex_py import Cortex
from cortex_py.core.clock import SystemClock
from cortex_py.core.store.documents.document import KINDS
from cortex_py.core.store.sqlite import open_sqlite
from inside import sessions_of, store_of

from helpers import FakeClock
from stub_backend import StubBackend


class OtherBackend(StubBackend):
    """A model whose vectors are of another length."""

    dimensions = 48
    fingerprint = "stub-48"


def opened(home: Path, project: Path, clock: FakeClock | None = None, **settings: object) -> Cortex:
    chosen = {"snapshot_every": "off", **settings}
    return Cortex.open(home, project=project, backend=StubBackend(), clock=clock, **chosen)


def forget_sync_day(home: Path) -> None:
    """Let a home sync as often as it likes: the limits of a day are for people."""
    with closing(open_sqlite(home / "cortex.db", SystemClock())) as database, database.write() as session:
        session.run("DELETE FROM sync_day")


def fill(cortex: Cortex, name: str = "first") -> list[str]:
    """Something of every kind; ids of the memories."""
    branch = cortex.contexts.create_branch(f"Work {name}")
    kept = [
        cortex.memories.capture(f"{name}: the API of BillingService uses PostgreSQL and Redis", tags=["db", "API"]),
        cortex.memories.capture(f"{name}: we decided on Kafka for events", namespace="decisions", branch_id=branch.id),
        cortex.memories.capture(f"{name}: naïve 数据库 with ‘quotes’ and\nlines", idempotency_key=f"key-{name}"),
        cortex.memories.capture(f"{name}: everybody uses tabs", domain="user"),
        cortex.memories.capture(f"{name}: to be deleted soon"),
        cortex.memories.capture(f"{name}: an old duplicate of BillingService uses PostgreSQL"),
    ]
    ids = [memory.id for memory in kept]
    cortex.memories.update(ids[0], content=f"{name}: the API of BillingService uses PostgreSQL 18 and Redis")
    cortex.memories.delete(ids[4])
    cortex.memories.supersede(ids[5], ids[0])
    cortex.prompts.save(f"{name}-review", "Review {{file}} for {{what}}.", tags=["Review"], domain="project")
    cortex.prompts.save(f"{name}-review", "Review {{file}} closely for {{what}}.", domain="project")
    cortex.templates.save(f"{name}-list", "{{#each memories}}- {{content}}\n{{/each}}", domain="project")
    cortex.contexts.append(branch.id, f"{name}: the tests pass now", "assistant")
    cortex.memories.recall("PostgreSQL")
    session = cortex.suggestions.suggest(f"{name}: speed up PostgreSQL").session_id
    cortex.suggestions.reject(session, "not now")
    for one in ids[:3]:
        cortex.contexts.load(one)
    cortex.memories.write_uses()
    sessions_of(cortex).write_counts()
    return ids


def state(cortex: Cortex, kinds: Sequence[str] = KINDS, space: str | None = None) -> list[bytes]:
    """All that a home holds of its project, as canonical lines."""
    store = store_of(cortex)
    with store.database.read() as session:
        return [one.line for one in store.documents.scan(session, space or cortex.project.id, kinds)]
