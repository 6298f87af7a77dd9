"""Both engines behind one library: the same work gives the same answers and the same state."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import pytest

from cortex_py import Cortex
from cortex_py.core.clock import IdMaker
from cortex_py.core.errors import ConfigurationError, Conflict, MemoryNotFound
from cortex_py.core.memory.capture.capture import NewMemory
from cortex_py.core.store.documents.document import SHARED_KINDS
from cortex_py.core.store.rows import space_word
from cortex_py.parts.backup.sync import sync as exchange
from cortex_py.parts.backup.vault.header import Kdf, KdfLimits, KdfParameters
from inside import database_of, store_of

from helpers import FakeClock
from homes import fill, opened, state

T = TypeVar("T")
WORDS = (
    "postgres", "redis", "kafka", "billing", "invoice", "naïve", "数据库", "deploy", "rollback", "cache", "queue",
    "index", "vacuum", "token", "flask",
)  # fmt: skip


class Both:
    """The same project on SQLite and on PostgreSQL, with one clock and one way to make ids."""

    def __init__(self, sqlite: Cortex, postgres: Cortex, clock: FakeClock) -> None:
        self.sqlite = sqlite
        self.postgres = postgres
        self.clock = clock

    def do(self, work: Callable[[Cortex], T]) -> T:
        """What the work answers, once it was found to be the same on both."""
        expected = work(self.sqlite)
        assert work(self.postgres) == expected
        return expected

    def same_state(self) -> None:
        for space in (None, *self.spaces()):
            assert state(self.postgres, space=space) == state(self.sqlite, space=space)

    def spaces(self) -> list[str]:
        with database_of(self.sqlite).read() as session:
            return [row[0] for row in session.rows("SELECT DISTINCT space FROM memory ORDER BY space")]


@contextmanager
def side_by_side(
    folder: Path, project: Path, clock: FakeClock, url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Both]:
    monkeypatch.delenv("CORTEX_DATABASE_URL", raising=False)
    grown = IdMaker.new
    # Ids of one process grow by themselves; with an end that follows from the beginning both homes give the same ones.
    monkeypatch.setattr(IdMaker, "new", lambda maker: _with_known_end(grown(maker)[:8]))
    with (
        opened(folder / "of-sqlite", project, clock) as sqlite,
        opened(folder / "of-postgres", project, clock, database_url=url) as postgres,
    ):
        yield Both(sqlite, postgres, clock)


@pytest.fixture(autouse=True)
def _both_engines_are_named(_engine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home is in SQLite unless a test says otherwise, whatever the other tests run on."""
    monkeypatch.delenv("CORTEX_DATABASE_URL", raising=False)


@pytest.fixture
def both(
    tmp_path: Path, project: Path, clock: FakeClock, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Both]:
    with side_by_side(tmp_path, project, clock, postgres_url, monkeypatch) as homes:
        yield homes


def _with_known_end(start: str) -> str:
    return start + sha256(start.encode()).hexdigest()[:32]


# -- memories ------------------------------------------------------------------------------------


def test_something_of_every_kind_gives_the_same_state(both: Both) -> None:
    both.do(fill)
    both.clock.advance(hours=1)
    both.do(lambda cortex: fill(cortex, "second"))
    both.same_state()
    assert both.do(Cortex.check) == []
    assert [cortex.memories.status().engine for cortex in (both.sqlite, both.postgres)] == ["sqlite", "postgresql"]
    assert both.postgres.memories.status().size_bytes > 0


def test_a_memory_goes_through_its_life_alike(both: Both) -> None:
    one = both.do(lambda cortex: cortex.memories.capture("Redis caches invoices", tags=["Cache", "ops"], ttl="2d"))
    both.clock.advance(minutes=1)
    both.do(lambda cortex: cortex.memories.update(one.id, content="Redis caches carts", tags=["cache"]))
    both.do(lambda cortex: cortex.memories.update(one.id[:8], namespace="decisions"))
    both.do(lambda cortex: cortex.memories.delete(one.id))
    both.do(lambda cortex: cortex.memories.recall("redis carts").results)
    both.do(lambda cortex: cortex.memories.restore(one.id))
    assert len(both.do(lambda cortex: cortex.memories.history(one.id))) >= 3
    both.do(lambda cortex: cortex.memories.recall("redis carts").results)
    other = both.do(lambda cortex: cortex.memories.capture("Redis caches carts"))
    both.do(lambda cortex: cortex.memories.supersede(one.id, other.id))
    both.do(lambda cortex: cortex.memories.chain(other.id))
    both.same_state()
    both.do(lambda cortex: cortex.memories.delete(one.id, hard=True))
    for cortex in (both.sqlite, both.postgres):
        with pytest.raises(MemoryNotFound):
            cortex.memories.get(one.id)
    both.same_state()
    assert both.do(Cortex.check) == []


@pytest.mark.parametrize(
    "content", ["nul \0 inside", "\ufdd0 and \ufdd00 \0\ufdd0", "100 % of ?s", "lone \r return", "e\u0301 \U0001f9e0"]
)
def test_any_text_comes_back_as_it_was(both: Both, content: str) -> None:
    made = both.do(lambda cortex: cortex.memories.capture(content, tags=[content[:5]], source=content))
    assert both.postgres.memories.get(made.id).content == content
    both.same_state()


def test_a_retry_with_the_same_key_gives_the_same_memory(both: Both) -> None:
    first = both.do(lambda cortex: cortex.memories.capture("once", idempotency_key="k"))
    assert both.do(lambda cortex: cortex.memories.capture("once", idempotency_key="k")).id == first.id


def _notes(count: int, now: datetime) -> list[NewMemory]:
    picked = random.Random(7)
    return [
        NewMemory(
            content=" ".join(picked.choices(WORDS, k=picked.randint(3, 14))) + f" number{n}",
            namespace=picked.choice(["decisions", "context", "patterns"]),
            tags=tuple(picked.sample(["Db", "ops", "api/v1", "api/v2", "größe"], picked.randint(0, 3))),
            source=picked.choice([None, "src/app.py", "src/store/db.py", "docs/a.md"]),
            agent_id=picked.choice([None, "one", "two"]),
            expires_at=picked.choice([None, now + timedelta(hours=1), now + timedelta(days=9)]),
        )
        for n in range(count)
    ]


def _ranked(cortex: Cortex, query: str | None, **how: object) -> list[set[tuple[float, str]]]:
    """Ids in the order of their scores; those of the same score as one set."""
    page = cortex.memories.recall(query, limit=40, **how)  # type: ignore[arg-type]
    groups: dict[float, set[str]] = {}
    for hit in page.results:
        groups.setdefault(round(hit.score, 9), set()).add(hit.memory.id)
    return [{(score, one) for one in ids} for score, ids in groups.items()] + [{(page.total or 0, "in all")}]


FILTERS = (
    "", "ns:decisions", "tag:db", "tag:api/*", "-tag:ops", "source:src/**", "since:3d", "agent:one,two", "entity:kafka",
    "ns:context tag:größe", "status:tombstoned",
)  # fmt: skip


@pytest.mark.slow
def test_recall_gives_the_same_records_in_the_same_order(both: Both, retrieval: str) -> None:
    made = both.do(lambda cortex: cortex.memories.capture_many(_notes(120, both.clock.now())))
    both.clock.advance(hours=2)
    for memory in made[::9]:
        both.do(lambda cortex, one=memory.id: cortex.memories.delete(one).id)
    for memory in made[4::50]:
        both.do(lambda cortex, one=memory.id: cortex.memories.delete(one, hard=True).id)
    for query in ("postgres vacuum", "数据库 naïve", "number77 number5", "nothing of the kind", None):
        for how in ("hybrid", "text", "vector") if query else ("hybrid",):
            both.do(lambda cortex, query=query, how=how: _ranked(cortex, query, mode=how))
    for filter in FILTERS:
        both.do(lambda cortex, filter=filter: _ranked(cortex, "kafka deploy", filter=filter))
        both.do(lambda cortex, filter=filter: [hit.memory.id for hit in cortex.memories.recall(filter=filter).results])
    both.do(lambda cortex: cortex.memories.tags())
    both.do(lambda cortex: cortex.memories.tags("api/", limit=1))
    both.do(lambda cortex: cortex.memories.ids(limit=20))
    both.do(lambda cortex: cortex.memories.namespaces())


def test_the_text_index_answers_alike(both: Both) -> None:
    both.do(lambda cortex: cortex.memories.capture_many(_notes(60, both.clock.now())))

    def matches(cortex: Cortex, space: str, *narrowed: str) -> list[list[int]]:
        store = store_of(cortex)
        words = [store._names.words(word)[0] for word in ("kafka", "redis", "absent")]
        with store.database.read() as session:
            places = {num: n for n, num in enumerate(store.memories.all_numbers(session, cortex.project.id))}
            within = [space_word(one) for one in narrowed]
            found = [store.database.text_matches(session, space, word, within, 7) for word in words]
        return [[places[num] for num in nums] for nums in found]

    assert [len(nums) for nums in both.do(lambda cortex: matches(cortex, cortex.project.id))] == [7, 7, 0]
    both.do(lambda cortex: matches(cortex, cortex.project.id, cortex.project.id, "another"))
    assert both.do(lambda cortex: matches(cortex, "another", "another")) == [[], [], []]


# -- what hangs on memories ----------------------------------------------------------------------


def test_the_graph_is_the_same_and_merges_can_be_taken_back(both: Both) -> None:
    for text in ("Alice works on BillingService", "BillingService uses PostgreSQL and Redis", "Bob knows Postgres"):
        both.do(lambda cortex, text=text: cortex.memories.capture(text))
    both.do(lambda cortex: cortex.graph.create("PostgreSQL", "Technology", properties={"port": 5432}).id)
    both.do(lambda cortex: cortex.graph.create("Elephant database", "Technology").id)
    both.do(lambda cortex: cortex.graph.create("Invoices", "Concept").id)
    both.do(lambda cortex: cortex.graph.relate("Elephant database", "Invoices", "Uses", confidence=0.9).type)
    both.do(lambda cortex: cortex.graph.relate("PostgreSQL", "Invoices", "Uses", confidence=0.4).type)
    both.do(lambda cortex: cortex.graph.entities())
    both.do(lambda cortex: cortex.graph.relationships())
    both.do(lambda cortex: cortex.graph.path("Elephant database", "PostgreSQL"))
    both.do(lambda cortex: cortex.graph.neighbors("Invoices", depth=2))
    before = both.do(state)
    merged = both.do(lambda cortex: cortex.graph.merge(["PostgreSQL", "Elephant database"]))
    both.same_state()
    both.clock.advance(minutes=1)
    assert merged.merge_id is not None
    assert both.do(lambda cortex: cortex.graph.undo_merge(str(merged.merge_id)))
    both.same_state()
    assert len(state(both.postgres)) == len(before)
    both.do(lambda cortex: cortex.graph.stats())
    both.do(lambda cortex: cortex.graph.orphans(delete=True))
    both.do(lambda cortex: cortex.graph.visualize())
    both.do(lambda cortex: cortex.graph.duplicates())


def test_prompts_and_templates_are_the_same(both: Both) -> None:
    for n in range(3):
        both.do(
            lambda cortex, n=n: cortex.prompts.save(
                "review", f"Review {{{{file}}}} {n}", tags=["Code"], domain="project"
            )
        )
        both.do(lambda cortex, n=n: cortex.templates.save("list", "{{#each memories}}{{content}}\n{{/each}}"))
    both.do(lambda cortex: cortex.memories.capture("Kafka carries events"))
    both.do(lambda cortex: cortex.prompts.run("review", {"file": "a.py"}))
    both.do(lambda cortex: cortex.templates.render("list", query="kafka"))
    both.do(lambda cortex: cortex.prompts.get("review"))
    both.same_state()
    both.do(lambda cortex: cortex.prompts.delete("review", domain="project"))
    both.same_state()


def test_lines_of_work_and_suggestions_are_the_same(both: Both) -> None:
    branch = both.do(lambda cortex: cortex.contexts.create_branch("Speed up PostgreSQL"))
    for n in range(6):
        both.clock.advance(seconds=1)
        both.do(lambda cortex, n=n: cortex.contexts.append(branch.id, f"step {n}: VACUUM the invoices", "user").memory)
    both.do(lambda cortex: cortex.contexts.content(branch.id))
    both.do(lambda cortex: cortex.contexts.content(branch.id, newest=2))
    both.do(lambda cortex: cortex.contexts.summary(branch.id))
    both.do(lambda cortex: cortex.contexts.graph(branch.id))
    both.do(lambda cortex: cortex.contexts.branches())
    ids = [one.id for one in both.postgres.contexts.content(branch.id)]
    for one in ids[:3]:
        both.do(lambda cortex, one=one: cortex.contexts.load(one))
    made = both.do(lambda cortex: cortex.suggestions.suggest("vacuum the invoices of PostgreSQL"))
    both.do(lambda cortex: cortex.suggestions.reject(made.session_id, "not now"))
    both.do(lambda cortex: cortex.suggestions.history())
    both.do(lambda cortex: cortex.suggestions.automation())
    both.same_state()


def test_tidying_leaves_the_same(both: Both) -> None:
    for text in ("We use tabs in Python", "We use tabs in Python!", "Deploy on Fridays", "Expires soon"):
        both.clock.advance(seconds=1)
        both.do(lambda cortex, text=text: cortex.memories.capture(text, ttl="1h" if "soon" in text else None))
    done = both.do(lambda cortex: cortex.memories.consolidate())
    both.do(lambda cortex: cortex.memories.consolidate(strategy="summarize"))
    both.same_state()
    for result in getattr(done, "results", ()):
        both.do(lambda cortex, one=result.id: cortex.memories.undo(one))
    both.clock.advance(days=40)
    both.do(lambda cortex: cortex.memories.gc())
    both.do(lambda cortex: cortex.upkeep())
    both.clock.advance(days=40)
    both.do(lambda cortex: cortex.memories.gc(purge=True, older_than="1d"))
    both.same_state()
    both.do(lambda cortex: cortex.memories.status().namespace_counts)
    assert both.do(Cortex.check) == []


# -- between engines -----------------------------------------------------------------------------


@pytest.mark.parametrize("onto", ["postgres", "sqlite"])
def test_a_snapshot_of_one_engine_is_restored_on_the_other(both: Both, onto: str) -> None:
    made_on, taken_to = (both.sqlite, both.postgres) if onto == "postgres" else (both.postgres, both.sqlite)
    ids = fill(made_on)
    before = state(made_on)
    snapshot = made_on.backups.create("to be carried")
    both.clock.advance(hours=1)
    fill(taken_to, "replaced")
    target = taken_to.settings.home / "backups" / taken_to.project.id / snapshot.path.name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(snapshot.path.read_bytes())
    done = taken_to.backups.restore(snapshot.id)
    assert state(taken_to) == before
    assert taken_to.memories.get(ids[0]).content == made_on.memories.get(ids[0]).content
    taken_to.backups.restore(done.safety)
    assert any(b"replaced" in line for line in state(taken_to))
    assert taken_to.check() == []


def test_a_store_moves_to_postgres_and_back(
    tmp_path: Path, home: Path, project: Path, clock: FakeClock, postgres_url: str
) -> None:
    with opened(home, project, clock) as sqlite:
        fill(sqlite)
        other = tmp_path / "elsewhere"
        other.mkdir()
        with opened(home, other, clock) as second:
            fill(second, "second")
            spaces = sorted([sqlite.project.id, second.project.id, "user:local"])
        before = [state(sqlite, space=space) for space in spaces]
        moved = sqlite.move_to(postgres_url)
        assert (moved.spaces, moved.there_already, moved.documents["memory"]) == (3, 0, 14)
        again = sqlite.move_to(postgres_url)
        assert (again.spaces, again.there_already) == (0, 3)
        sqlite.memories.capture("written since")
        with pytest.raises(Conflict):
            sqlite.move_to(postgres_url)
    with opened(home, project, clock, database_url=postgres_url) as postgres:
        assert [state(postgres, space=space) for space in spaces] == before
        assert postgres.check() == []
        with pytest.raises(ConfigurationError):
            postgres.move_to(postgres_url)
    with opened(tmp_path / "back", project, clock, database_url=postgres_url) as postgres:
        postgres.move_to(None)
    with opened(tmp_path / "back", project, clock) as back:
        assert [state(back, space=space) for space in spaces] == before
        assert back.check() == []
        assert back.memories.recall("BillingService").results
    with opened(home, project, clock, database_url=postgres_url) as postgres:
        assert postgres.memories.recall("BillingService").results


def test_homes_of_both_engines_exchange_what_they_hold(
    tmp_path: Path, project: Path, clock: FakeClock, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Deriving a key takes its time on purpose; that it does is tested elsewhere.
    fast = KdfParameters(Kdf.ARGON2ID, memory_kib=8, passes=1, lanes=1)
    known = {"parameters": fast, "limits": KdfLimits(least_memory_kib=8, least_work_kib=8)}
    monkeypatch.setattr(exchange, "Sync", partial(exchange.Sync, **known))
    shared = {"cloud_url": str(tmp_path / "cloud"), "passphrase": "correct horse battery staple"}
    with (
        opened(tmp_path / "one", project, clock, **shared) as sqlite,
        opened(tmp_path / "two", project, clock, database_url=postgres_url, **shared) as postgres,
    ):
        ids = fill(sqlite, "first")
        clock.advance(minutes=1)
        fill(postgres, "second")
        sqlite.backups.push()
        for cortex in (postgres, sqlite):
            clock.advance(minutes=1)
            cortex.backups.pull()
            cortex.backups.push()
        postgres.backups.pull()
        assert state(postgres, SHARED_KINDS) == state(sqlite, SHARED_KINDS)
        clock.advance(minutes=1)
        postgres.memories.delete(ids[2], hard=True)
        postgres.backups.push()
        sqlite.backups.pull()
        assert state(postgres, SHARED_KINDS) == state(sqlite, SHARED_KINDS)
        with pytest.raises(MemoryNotFound):
            sqlite.memories.get(ids[2])
