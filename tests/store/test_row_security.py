"""Row-level security by itself: whatever a statement asks for, it sees and changes the spaces of its caller alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.clock import SystemClock
from cortex_py.core.errors import AccessDenied, ConfigurationError, StorageError, StoreDenied
from cortex_py.core.store import migrations
from cortex_py.core.store.database import Bounds, Session, Sql
from cortex_py.team.postgres.engine import PostgresDatabase, open_postgres
from cortex_py.team.postgres.security import RIGHTS, granted, protection

from old_schemas import turn_back_indexes
from postgres_server import PostgresServer, name_in

MINE, SHARED, THEIRS = "p_mine", "org:shared's", 'user:{"them", \\x}'
SPACES = (MINE, SHARED, THEIRS)
BOUNDS = Bounds("ann", frozenset({MINE, SHARED}), frozenset({MINE}))
FILES = ("scanned_file", "symbol", "import")


@dataclass
class Base:
    """An opened store, and for whom the next transaction is."""

    url: str
    database: PostgresDatabase
    tables: dict[str, str] = field(default_factory=dict)
    caller: Bounds | None = None

    @contextmanager
    def bound(self, bounds: Bounds | None = BOUNDS) -> Iterator[None]:
        before, self.caller = self.caller, bounds
        try:
            yield
        finally:
            self.caller = before

    def rows(self, sql: str, params: tuple[Sql, ...] = (), bounds: Bounds | None = BOUNDS) -> list[tuple[object, ...]]:
        with self.bound(bounds), self.database.read() as session:
            return session.rows(sql, params)

    def changed(self, sql: str, params: tuple[Sql, ...] = (), bounds: Bounds | None = BOUNDS) -> int:
        """How many rows a statement would change; it is taken back."""
        found = -1
        with pytest.raises(_TakenBackError), self.bound(bounds), self.database.write() as session:
            session.run(sql, params)
            found = session.changed()
            raise _TakenBackError
        return found


class _TakenBackError(Exception):
    pass


_numbers = count(1)


@contextmanager
def _opened(url: str) -> Iterator[Base]:
    base = Base(url, open_postgres(url, SystemClock()))
    base.database.bind(lambda: base.caller)
    yield base
    base.database.close()


@pytest.fixture(scope="module", params=["superuser", "plain owner"])
def base(request: pytest.FixtureRequest, postgres_server: PostgresServer) -> Iterator[Base]:
    """A store of a superuser, and one of a role that may make tables and nothing else; rows in every table."""
    name = f"rows_{next(_numbers)}"
    user = "postgres"
    if request.param == "plain owner":
        user = f"owner_{name}"
        postgres_server.run(f"CREATE ROLE {user} LOGIN")
    with postgres_server.empty_database(name, user) as url:
        if user != "postgres":
            with _opened(url) as base, base.bound():
                with pytest.raises(ConfigurationError) as told, base.database.read():
                    pass
                postgres_server.run((told.value.remedy or "").partition("run: ")[2], name)
        with _opened(url) as base:
            with base.database.write() as session:
                base.tables = _fill(session)
            yield base


def _fill(session: Session) -> dict[str, str]:
    """One row of each space in every table that has spaces; returns the column that tells the space."""
    columns = session.rows(
        "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns "
        "WHERE table_schema = current_schema() AND is_identity = 'NO' ORDER BY 1, 2"
    )
    tables: dict[str, dict[str, str]] = {}
    for table, column, kind, nullable in columns:
        if nullable == "NO":
            tables.setdefault(table, {})[column] = kind
    keys = {}
    for table, needed in sorted(tables.items()):
        key = "id" if table == "project" else next((one for one in ("space", "project_id") if one in needed), None)
        if key is None or not RIGHTS.get(table):
            continue
        keys[table] = key
        for space in SPACES:
            _insert(session, table, needed, key, space)
    return keys


def _insert(session: Session, table: str, needed: dict[str, str], key: str, space: str) -> None:
    names = list(needed)
    values = [space if name == key else _value(needed[name]) for name in names]
    session.run(f'INSERT INTO "{table}" ({", ".join(names)}) VALUES ({", ".join("?" * len(names))})', values)


def _value(kind: str) -> Sql:
    number = next(_numbers)
    return {"bigint": number, "double precision": 0.5, "bytea": b"x", "ARRAY": f"{{w{number}}}"}.get(kind, f"t{number}")


def _key(base: Base, table: str) -> tuple[str, dict[str, str]]:
    """The spaces as the table's own column tells them: scanned files belong to their project's files."""
    suffix = "/files" if table in FILES else ""
    return base.tables[table], {space: space + suffix for space in SPACES}


def _bounds(base: Base, table: str) -> Bounds:
    _, named = _key(base, table)
    return Bounds("ann", frozenset({named[MINE], named[SHARED]}), frozenset({named[MINE]}))


# The columns of a table that a row must give, with their types.
_NEEDED = (
    "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = current_schema() "
    "AND table_name = ? AND is_nullable = 'NO' AND is_identity = 'NO'"
)
PROTECTED = sorted(
    table
    for table, rights in RIGHTS.items()
    if rights and table not in ("state", "setting", "llm_use", "sync_day", "near_space")
)


# -- every table ---------------------------------------------------------------------------------


@each("table", PROTECTED)
def test_rows_of_other_spaces_are_neither_seen_nor_changed(base: Base, table: str) -> None:
    key, _ = _key(base, table)
    bounds = _bounds(base, table)
    seen = base.rows(f'SELECT {key} FROM "{table}" ORDER BY 1', bounds=bounds)
    assert seen == [(SHARED,), (MINE,)]
    assert base.rows(f'SELECT count(*) FROM "{table}"', bounds=bounds) == [(2,)]
    # Without a condition, as a statement would be that forgot it.
    assert base.changed(f'DELETE FROM "{table}"', bounds=bounds) == 1
    assert base.changed(f'DELETE FROM "{table}" WHERE {key} = ?', (THEIRS,), bounds) == 0
    assert base.changed(f'UPDATE "{table}" SET {key} = {key} WHERE {key} = ?', (MINE,), bounds) == 1
    assert base.changed(f'UPDATE "{table}" SET {key} = {key} WHERE {key} = ?', (THEIRS,), bounds) == 0
    for space in (SHARED, THEIRS):
        with pytest.raises(AccessDenied):
            base.changed(f'UPDATE "{table}" SET {key} = ? WHERE {key} = ?', (space, MINE), bounds)
    with pytest.raises(AccessDenied):
        base.changed(f'UPDATE "{table}" SET {key} = {key} WHERE {key} = ?', (SHARED,), bounds)
    nobody = Bounds("nobody", frozenset(), frozenset())
    assert base.rows(f'SELECT count(*) FROM "{table}"', bounds=nobody) == [(0,)]
    assert base.changed(f'DELETE FROM "{table}"', bounds=nobody) == 0


@each("table", PROTECTED)
def test_rows_are_put_into_writable_spaces_alone(base: Base, table: str) -> None:
    key, _ = _key(base, table)
    bounds = _bounds(base, table)
    needed: dict[str, str] = dict(base.rows(_NEEDED, (table,), None))  # type: ignore[arg-type]

    def put(space: str) -> None:
        with pytest.raises(_TakenBackError), base.bound(bounds), base.database.write() as session:
            if table in ("project", "space_change"):
                session.run(f"DELETE FROM {table}")
            _insert(session, table, needed, key, space)
            raise _TakenBackError

    put(MINE)
    for space in (SHARED, THEIRS, "p_new", ""):
        with pytest.raises(AccessDenied):
            put(space)
    assert base.rows(f'SELECT {key} FROM "{table}" ORDER BY 1', bounds=None) == [(SHARED,), (MINE,), (THEIRS,)]


@each("table", sorted(table for table, rights in RIGHTS.items() if not rights and table != "schema_step"))
def test_what_concerns_the_server_is_closed(base: Base, table: str) -> None:
    for statement in (f"SELECT * FROM {table}", f"DELETE FROM {table}"):
        with pytest.raises(AccessDenied):
            base.changed(statement)
    # Also if somebody should grant a right by mistake.
    ((role,),) = base.rows("SELECT current_user")
    with base.database.write() as session:
        session.run(f"GRANT SELECT ON {table} TO {role}")
    assert base.rows(f"SELECT count(*) FROM {table}") == [(0,)]
    with _opened(base.url), pytest.raises(AccessDenied):
        base.rows(f"SELECT count(*) FROM {table}")


def test_words_are_found_in_readable_spaces_and_put_into_writable_ones(base: Base) -> None:
    words = dict(base.rows("SELECT space, words[1] FROM memory_text", bounds=None))
    nums = dict(base.rows("SELECT space, num FROM memory_text", bounds=None))
    for space in SPACES:
        word = str(words[space])
        expected = [] if space == THEIRS else [nums[space]]
        with base.bound(), base.database.read() as session:
            assert base.database.text_matches(session, space, word, [], 5) == expected
            assert base.database.text_matches(session, space, word, [word], 5) == expected
            condition, params = base.database.text_condition(session, SPACES, [word])
            found = session.rows(f"SELECT m.num FROM (SELECT num FROM memory_text) m WHERE {condition}", params)
            assert [row[0] for row in found] == expected
    memories = dict(base.rows("SELECT space, num FROM memory", bounds=None))

    def put(space: str) -> list[list[int]]:
        with pytest.raises(_TakenBackError), base.bound(), base.database.write() as session:
            base.database.index_text(session, space, int(str(memories[space])), "first words")
            base.database.index_text(session, space, int(str(memories[space])), "second words")
            found = [base.database.text_matches(session, space, word, [], 5) for word in ("first", "second")]
            base.database.unindex_text(session, space, int(str(memories[space])))
            assert base.database.text_matches(session, space, "second", [], 5) == []
            raise _TakenBackError
        return found

    assert put(MINE) == [[], [memories[MINE]]]
    with pytest.raises(AccessDenied):
        put(SHARED)


def test_callers_count_changes_and_read_settings(base: Base) -> None:
    taken = "SELECT nextval(pg_get_serial_sequence('memory', 'num')) > 0"
    with base.bound(), base.database.write() as session:
        assert session.rows(taken) == [(True,)]
    assert base.changed("INSERT INTO setting (key, value) VALUES ('embedding', 'x')") == 1
    for statement in ("DELETE FROM setting", "TRUNCATE memory", "TRUNCATE space_change"):
        with pytest.raises(AccessDenied):
            base.changed(statement)


# -- nothing is forgotten ------------------------------------------------------------------------


def test_every_table_has_its_rights_and_policies(base: Base) -> None:
    tables = {
        str(name): (bool(on), bool(forced), int(str(policies)))
        for name, on, forced, policies in base.rows(
            "SELECT relname, relrowsecurity, relforcerowsecurity, "
            "(SELECT count(*) FROM pg_policy p WHERE p.polrelid = c.oid) "
            "FROM pg_class c WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace",
            bounds=None,
        )
    }
    assert set(tables) == set(RIGHTS), "name a new table in postgres_policies, or protect it where it is made"
    for name, (on, forced, policies) in tables.items():
        assert (on, forced, policies) == (name != "schema_step", False, 2 if RIGHTS[name] else 0), name
    with_space = {
        str(row[0])
        for row in base.rows(
            "SELECT DISTINCT table_name FROM information_schema.columns WHERE table_schema = current_schema() "
            "AND column_name IN ('space', 'project_id')",
            bounds=None,
        )
    }
    assert {table for table in with_space if RIGHTS[table]} - {"near_space"} <= set(PROTECTED) & set(base.tables)


def test_the_role_cannot_log_in_and_bypasses_nothing(base: Base, postgres_server: PostgresServer) -> None:
    ((role, session_user),) = base.rows("SELECT current_user, session_user")
    assert role != session_user
    found = postgres_server.run(
        "SELECT rolsuper, rolbypassrls, rolcanlogin, rolcreaterole, rolcreatedb, rolreplication, rolinherit "
        f"FROM pg_roles WHERE rolname = '{role}'"
    )
    assert found == [(False,) * 7]
    member_of = f"SELECT count(*) FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member WHERE rolname = '{role}'"
    assert postgres_server.run(member_of) == [(0,)]
    functions = (
        "SELECT p.proname, p.prosecdef, array_to_string(p.proconfig, ';'), has_function_privilege('public', p.oid, "
        "'EXECUTE') FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace "
        # Nobody can call those that belong to a trigger.
        "AND p.prorettype <> 'trigger'::regtype ORDER BY 1"
    )
    for name, definer, config, public in base.rows(functions, bounds=None):
        assert (definer, public) == (True, False), name
        assert "search_path=pg_catalog, public, pg_temp" in str(config)


# -- transactions --------------------------------------------------------------------------------


@pytest.fixture
def alone(base: Base) -> Iterator[Base]:
    """The same store through one connection, which everything in a test goes over."""
    with _opened(base.url) as opened:
        yield opened
        assert opened.database.vitals().idle == 1


def test_nothing_of_a_caller_survives_their_transaction(alone: Base) -> None:
    base = alone
    state = (
        "SELECT current_user = session_user, coalesce(current_setting('cortex.readable', true), ''), "
        "coalesce(current_setting('cortex.writable', true), ''), current_setting('application_name')"
    )
    ((switched, readable, writable, name),) = base.rows(state)
    assert (switched, name) == (False, "cortex ann")
    assert MINE in str(readable) and MINE in str(writable) and THEIRS not in str(readable)
    with pytest.raises(StorageError), base.bound(), base.database.write() as session:
        session.run("SELECT 1/0")
    with pytest.raises(KeyError), base.bound(), base.database.write():
        raise KeyError
    with pytest.raises(AccessDenied):
        base.rows("SELECT * FROM api_token")
    assert base.rows(state, bounds=None) == [(True, "", "", "cortex")]
    assert base.rows("SELECT count(*) FROM memory", bounds=None) == [(3,)]


def test_a_plan_that_was_made_for_one_caller_serves_no_other(alone: Base) -> None:
    """Statements are prepared after some uses and stay with the connection; whose they are is looked at every time."""
    base = alone
    other = Bounds("bea", frozenset({THEIRS}), frozenset())
    for _ in range(12):
        assert base.rows("SELECT count(*) FROM memory", bounds=None) == [(3,)]
    for _ in range(12):
        assert base.rows("SELECT count(*) FROM memory") == [(2,)]
        assert base.rows("SELECT space FROM memory", bounds=other) == [(THEIRS,)]
        assert base.rows("SELECT count(*) FROM memory", bounds=None) == [(3,)]


def test_without_settings_no_row_is_there(base: Base) -> None:
    ((role,),) = base.rows("SELECT current_user")
    with base.database.pool.connection("BEGIN") as connection:
        connection.execute(f"SET LOCAL ROLE {role}".encode())
        for table in PROTECTED:
            assert connection.execute(f'SELECT count(*) FROM "{table}"'.encode()).fetchall() == [(0,)]
        connection.execute("ROLLBACK")
    # A setting that once was there is an empty text afterwards, not a missing one.
    base.rows("SELECT 1")
    with base.database.pool.connection("BEGIN") as connection:
        connection.execute(f"SET LOCAL ROLE {role}".encode())
        assert connection.execute("SELECT count(*) FROM memory").fetchall() == [(0,)]
        connection.execute("ROLLBACK")


def test_callers_at_the_same_time_see_their_own(base: Base) -> None:
    """Each thread asks for its own caller, on connections that go from hand to hand."""
    mine = threading.local()
    base.database.bind(lambda: getattr(mine, "bounds", None))
    wrong: list[object] = []

    def work(space: str) -> None:
        mine.bounds = Bounds(space, frozenset({space}), frozenset())
        for _ in range(30):
            with base.database.read() as session:
                found = session.rows("SELECT DISTINCT space FROM memory")
            if found != [(space,)]:
                wrong.append((space, found))

    with ThreadPoolExecutor(2 * len(SPACES)) as pool:
        list(pool.map(work, SPACES * 2))
    base.database.bind(lambda: base.caller)
    assert wrong == []


# -- names ---------------------------------------------------------------------------------------

_NAMES = st.one_of(
    st.text(min_size=1, max_size=12),
    st.text(alphabet="'\"\\{}[],~.:$;-% \n\t", min_size=1, max_size=12),
    st.sampled_from(["", "a" * 100_000, "user:\u202eann", "é", "e\u0301", "NULL", '"}', "'); RESET ROLE; --", "\0"]),
)


@given(readable=st.sets(_NAMES, max_size=6), others=st.sets(_NAMES, max_size=6))
def test_any_name_can_be_that_of_a_space(base: Base, readable: set[str], others: set[str]) -> None:
    """A name lets in rows of that very name; what no text of the engine can hold names nothing."""

    def storable(name: str) -> bool:
        return "\0" not in name and name.encode("utf-8", "ignore").decode() == name

    there = sorted(filter(storable, (readable | others) - set(SPACES)))
    with base.database.write() as session:
        session.run_many("INSERT INTO git_tip VALUES (?, '', '', 0)", [(name,) for name in there])
    try:
        bounds = Bounds("x\0' \\\ud800", frozenset(readable), frozenset(readable))
        seen = [row[0] for row in base.rows("SELECT project_id FROM git_tip ORDER BY 1", bounds=bounds)]
        assert seen == [name for name in there if name in readable]
        with base.bound(bounds), base.database.write() as session:
            session.run("DELETE FROM git_tip")
            assert session.changed() == len(seen)
        left = {row[0] for row in base.rows("SELECT project_id FROM git_tip", bounds=None)}
        assert left == {*SPACES, *(name for name in there if name not in readable)}
    finally:
        with base.database.write() as session:
            session.run_many("DELETE FROM git_tip WHERE project_id = ?", [(name,) for name in there])


def test_thousands_of_spaces_are_one_lookup(base: Base) -> None:
    many = frozenset(f"p_{number:05}" for number in range(5_000)) | {MINE}
    assert base.rows("SELECT space FROM memory", bounds=Bounds("ann", many, many)) == [(MINE,)]


# -- plans ---------------------------------------------------------------------------------------

_STATEMENTS: dict[str, tuple[str, tuple[Sql, ...]]] = {
    "memory_seq": ("SELECT num FROM memory WHERE space = ? AND seq > ? ORDER BY seq, num", ("plan_1", 19_900)),
    "memory_id": ("SELECT num FROM memory m WHERE m.id >= ? AND m.id < ? ORDER BY m.id LIMIT ?", ("c4ca", "c4cag", 6)),
    "memory_pkey": ("SELECT content FROM memory WHERE space = 'plan_1' AND num IN (?, ?)", (1_000_051, 1_000_101)),
    "chunk_pkey": ("SELECT terms FROM chunk WHERE space = 'plan_1' AND num IN (?, ?)", (1_000_051, 1_000_101)),
    "memory_digest": ("SELECT id FROM memory WHERE space = ? AND digest = ?", ("plan_1", b"x")),
}


@pytest.fixture(scope="module")
def large(postgres_server: PostgresServer) -> Iterator[Base]:
    """20,000 records in 50 spaces, with statistics."""
    numbers = "FROM generate_series(1, 20000) i"
    with postgres_server.empty_database("rows_large") as url, _opened(url) as base:
        with base.database.write() as session:
            session.run(
                "INSERT INTO memory (num, space, id, seq, domain, namespace, status, version, created_at, updated_at, "
                "redactions, digest, length, flags, author, tags, content) SELECT 1000000 + i, 'plan_' || mod(i, 50), "
                "md5(i::text) || '12345678', i, 'project', 'decisions', 'active', 1, i, i, '[]', "
                f"decode(md5(i::text), 'hex'), 30, 0, 0, '[]', repeat('lorem ', 20) {numbers}"
            )
            session.run(
                "INSERT INTO chunk (num, n, space, first, past, by_assistant, terms) SELECT 1000000 + i, 0, "
                f"'plan_' || mod(i, 50), 0, 9, 0, decode(repeat(md5(i::text), 9), 'hex') {numbers}"
            )
            session.run(
                "INSERT INTO memory_text (num, space, words) SELECT 1000000 + i, 'plan_' || mod(i, 50), "
                f"ARRAY['w' || mod(i * 31, 5000), 'v' || mod(i, 4000), 'common'] {numbers}"
            )
            session.run("ANALYZE")
        yield base


@each("index", sorted(_STATEMENTS))
def test_statements_keep_their_index_and_policies_ask_nothing(large: Base, index: str) -> None:
    statement, params = _STATEMENTS[index]
    bounds = Bounds("ann", frozenset({"plan_1", "plan_2"}), frozenset())

    def plan(caller: Bounds | None) -> str:
        return "\n".join(str(row[0]) for row in large.rows(f"EXPLAIN {statement}", params, caller))

    assert index in plan(None)
    bound = plan(bounds)
    assert index in bound
    assert "Seq Scan" not in bound
    assert "Plan" not in bound.replace("QUERY PLAN", ""), "distributed tables take no policy with a subquery"


def test_the_text_index_is_used_for_callers_too(large: Base) -> None:
    bounds = Bounds("ann", frozenset({"plan_1", "plan_2"}), frozenset())
    # Of this connection since it last told its figures, which may be some transactions ago.
    scans = (
        "SELECT pg_stat_get_xact_numscans('memory_text_words'::regclass), "
        "pg_stat_get_xact_numscans('memory_text'::regclass)"
    )
    with large.bound(bounds), large.database.read() as session:
        ((by_index, by_table),) = session.rows(scans)
        for _ in range(7):
            found = large.database.text_matches(session, "plan_1", "w31", [], 600)
            assert found == [1_015_001, 1_010_001, 1_005_001, 1_000_001]
            condition, params = large.database.text_condition(session, ["plan_1", "plan_9"], ["w31"])
            assert len(session.rows(f"SELECT m.num FROM memory m WHERE {condition}", params)) == 4
        assert session.rows(scans) == [(by_index + 14, by_table)]


# -- making the role -----------------------------------------------------------------------------


def test_a_store_of_the_last_schema_is_protected_with_its_rows(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres_server.empty_database("rows_before") as url:
        with monkeypatch.context() as older:
            older.setattr(migrations, "SCHEMA_VERSION", 9)
            database = open_postgres(url, SystemClock())
        with database.write() as session:
            for table in ("memory", "chunk", "branch"):
                columns = dict(session.rows(_NEEDED, (table,)))
                for space in SPACES:
                    _insert(session, table, columns, "project_id" if table == "branch" else "space", space)
            session.run("INSERT INTO memory_text (num, words) SELECT num, '{abc}' FROM memory")
        database.close()
        with _opened(url) as base:
            for table in ("memory", "chunk", "memory_text"):
                assert base.rows(f"SELECT space FROM {table} ORDER BY 1") == [(SHARED,), (MINE,)]
                assert base.rows(f"SELECT count(*) FROM {table}", bounds=None) == [(3,)]
            assert base.rows("SELECT project_id FROM branch ORDER BY 1") == [(SHARED,), (MINE,)]


def test_a_table_that_is_made_later_can_be_protected(base: Base) -> None:
    role = base.database.caller_role()
    with base.database.write() as session:
        session.run("CREATE TABLE later (space TEXT NOT NULL, n INTEGER NOT NULL)")
        for statement in (*protection("later"), granted(role, "later")):
            session.run(statement)
        session.run_many("INSERT INTO later VALUES (?, 1)", [(space,) for space in SPACES])
    try:
        assert base.rows("SELECT space FROM later ORDER BY 1") == [(SHARED,), (MINE,)]
        assert base.changed("DELETE FROM later") == 1
        # The role is complete with it, and is not made anew.
        with _opened(base.url) as again:
            assert again.rows("SELECT space FROM later ORDER BY 1") == [(SHARED,), (MINE,)]
    finally:
        with base.database.write() as session:
            session.run("DROP TABLE later")


def test_policies_of_an_earlier_version_are_replaced(postgres_server: PostgresServer) -> None:
    """Those of the schema, and those of tables that were made while a server ran."""
    older = "jsonb_exists((SELECT nullif(current_setting('cortex.readable', true), '')::jsonb), space)"
    with postgres_server.empty_database("rows_earlier") as url:
        with _opened(url) as base, base.database.write() as session:
            session.run("CREATE TABLE near_7 (space TEXT NOT NULL, n INTEGER NOT NULL)")
            for statement in (*protection("near_7"), granted(base.database.caller_role(), "near_7")):
                session.run(statement)
            for table in ("near_7", "purged"):
                session.run(f"ALTER POLICY caller_rows ON {table} USING ({older}) WITH CHECK ({older})")
                session.run(f"ALTER POLICY caller_deletes ON {table} USING ({older})")
            session.run_many("INSERT INTO near_7 VALUES (?, 1)", [(space,) for space in SPACES])
            session.run_many("INSERT INTO purged (space, num, seq) VALUES (?, 1, 1)", [(space,) for space in SPACES])
            turn_back_indexes(session)
            session.run("DELETE FROM schema_step WHERE version >= 19")
        with _opened(url) as base:
            for table in ("near_7", "purged"):
                assert base.rows(f"SELECT space FROM {table} ORDER BY 1") == [(SHARED,), (MINE,)]
                assert base.changed(f"DELETE FROM {table}") == 1


def test_stores_of_one_cluster_share_no_role(postgres_server: PostgresServer) -> None:
    """Neither two schemas of a database, nor a database and its copy under another name."""
    with postgres_server.empty_database("rows_shared") as url:
        postgres_server.run("CREATE SCHEMA second", "rows_shared")
        roles = []
        for each_url in (url, f"{url}?options=-csearch_path%3Dsecond"):
            with _opened(each_url) as base:
                roles.append(base.database.caller_role())
        postgres_server.run("CREATE DATABASE rows_copied TEMPLATE rows_shared")
        with _opened(postgres_server.url("rows_copied")) as copied:
            roles.append(copied.database.caller_role())
            rights = "SELECT has_table_privilege('{}', 'public.memory', 'SELECT')"
            allowed = [postgres_server.run(rights.format(role), "rows_copied") for role in roles]
    assert len(set(roles)) == 3
    assert allowed == [[(False,)], [(False,)], [(True,)]]


def test_a_role_that_bypasses_the_policies_is_not_used(postgres_server: PostgresServer) -> None:
    with postgres_server.empty_database("rows_bypassed") as url:
        with _opened(url) as base:
            role = base.database.caller_role()
        postgres_server.run(f"ALTER ROLE {role} BYPASSRLS")
        with _opened(url) as again:
            with pytest.raises(ConfigurationError, match="bypass") as told:
                again.rows("SELECT 1")
            assert again.rows("SELECT 1", bounds=None) == [(1,)]
            # What the error says helps, without opening the store anew.
            postgres_server.run((told.value.remedy or "").partition("run: ")[2])
            assert again.rows("SELECT count(*) FROM memory") == [(0,)]


def test_a_login_that_may_make_roles_makes_this_one(postgres_server: PostgresServer) -> None:
    postgres_server.run("CREATE ROLE maker LOGIN CREATEROLE")
    with postgres_server.empty_database("rows_made", "maker") as url, _opened(url) as base:
        assert base.rows("SELECT current_user = session_user") == [(False,)]
        assert base.changed("INSERT INTO purged (space, num, seq) VALUES (?, 1, 1)", (MINE,)) == 1


def test_a_login_that_does_not_own_the_tables_is_told(postgres_server: PostgresServer, postgres_url: str) -> None:
    name = name_in(postgres_url)
    postgres_server.run("CREATE ROLE guest LOGIN")
    postgres_server.run("GRANT ALL ON ALL TABLES IN SCHEMA public TO guest", name)
    with pytest.raises(ConfigurationError, match="does not own"):
        open_postgres(postgres_server.url(name, "guest"), SystemClock())
    postgres_server.run("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM guest", name)


def test_the_server_itself_is_told_of_its_own_rights(base: Base, postgres_server: PostgresServer) -> None:
    """What is refused to the login is a matter of the store, not of a caller."""
    name = name_in(base.url)
    postgres_server.run("CREATE TABLE foreign_one (n int)", name)
    postgres_server.run("CREATE ROLE other_owner")
    postgres_server.run("ALTER TABLE foreign_one OWNER TO other_owner", name)
    try:
        if "owner_" in base.url:
            with pytest.raises(StoreDenied):
                base.rows("SELECT * FROM foreign_one", bounds=None)
        with pytest.raises(AccessDenied):
            base.rows("SELECT * FROM foreign_one")
    finally:
        postgres_server.run("DROP TABLE foreign_one", name)
        postgres_server.run("DROP ROLE other_owner")
