"""Row-level security: what a transaction for a caller can see, whatever its statements ask for.

Such a transaction runs as a role without rights of its own, with the caller's spaces in two settings that end with it.
A policy on every table looks for the space of a row in them; without the settings no row is visible. A setting is a
text that lists the spaces between commas, with commas in a name spelled otherwise, so that any name can be listed. The
policies have no subqueries, because distributed tables take none, and look with a function that no index supports, so
that statements keep their plans.

The owner of the tables is exempt: the server's own work, migrations and pg_dump concern all spaces.

The role cannot log in, owns nothing and bypasses nothing. Its name derives from the database and the schema, so that
two stores in one cluster do not share it. It is created, with its rights and functions, when the store is opened by a
login that may do so, also after a database was renamed or copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...core.errors import ConfigurationError
from ...core.store.database import DISTRIBUTED, EVERY_ROW, Bounds, Session, Sql, column, marks
from .queries import QUERIES

__all__ = [
    "EVERY_POLICY", "LATER_POLICIES", "POLICIES", "RIGHTS", "PostgresText", "binding", "find_role", "granted",
    "literal", "make_role", "protection",
]  # fmt: skip

# -- the text index ------------------------------------------------------------------------------
#
# Hashed words of each record in an array, under a GIN index. Array operators could leak what they saw, so the engine
# applies the policy first, and a transaction for a caller could not use this index. Two functions therefore look words
# up as the owner, and return numbers from the spaces of that transaction only. Their search_path is fixed. They are
# planned for each call, as the owner's statements are: how rare a word is decides which index is best.

TEXT_FUNCTIONS = ("text_holding(text[], text[])", "text_newest(text, text[], text[], bigint, bigint)")
_PUT = (
    "INSERT INTO memory_text (space, num, words) VALUES (?, ?, string_to_array(?, ' ')) "
    "ON CONFLICT (space, num) DO UPDATE SET words = excluded.words"
)
_HOLDING = "SELECT num FROM memory_text WHERE space IN ({}) AND words @> string_to_array(?, ' ')"
_HOLDING_BOUND = "SELECT text_holding(ARRAY[{}]::text[], string_to_array(?, ' '))"
_NEWEST_BOUND = "SELECT text_newest(?, string_to_array(?, ' '), string_to_array(?, ' '), ?, ?)"
_SEEN = "SELECT t.num FROM memory_text t WHERE t.space = {} AND t.words @> wanted"
_LAST = "AND t.num > beyond ORDER BY t.num DESC LIMIT most"


def listed(setting: str, space: str) -> str:
    """A condition: a setting lists the space, which is given as an expression. Null if the setting is missing."""
    spelled = f"replace(replace({space}, '~', '~~'), ',', '~.')"
    return f"strpos(current_setting('cortex.{setting}', true), ',' || {spelled} || ',') > 0"


def text_functions(schema: str) -> tuple[str, ...]:
    """Statements that create the functions in a schema, given as an identifier. `security` grants their use."""
    bound = (
        "RETURNS SETOF bigint LANGUAGE plpgsql STABLE SECURITY DEFINER "
        f"SET search_path = pg_catalog, {schema}, pg_temp SET plan_cache_mode = force_custom_plan"
    )
    seen = _SEEN.format("inside")
    return (
        f"""CREATE OR REPLACE FUNCTION text_holding(inside text[], wanted text[]) {bound} AS $body$
            DECLARE seen text[] := array(SELECT one FROM unnest(inside) one WHERE {listed("readable", "one")});
            BEGIN RETURN QUERY {_SEEN.format("ANY (seen)")}; END $body$""",
        f"""CREATE OR REPLACE FUNCTION text_newest(
            inside text, wanted text[], marked text[], beyond bigint, most bigint)
            {bound} AS $body$ BEGIN
            IF ({listed("readable", "inside")}) IS NOT TRUE THEN RETURN; END IF;
            IF cardinality(marked) = 0 THEN RETURN QUERY {seen} {_LAST};
            ELSE RETURN QUERY {seen} AND t.words && marked {_LAST}; END IF; END $body$""",
        *(f"REVOKE ALL ON FUNCTION {function} FROM PUBLIC" for function in TEXT_FUNCTIONS),
    )


class PostgresText:
    """The text index part of `Database`. Transactions for callers use the functions."""

    # Whether the rows are on the workers of a cluster.
    distributed = False

    def index_texts(self, session: Session, entries: Sequence[tuple[str, int, str]]) -> None:
        rows = [(space, num, f"{{{words.replace(' ', ',')}}}") for space, num, words in entries]
        session.copy("memory_text", ("space", "num", "words"), rows)

    def index_text(self, session: Session, space: str, num: int, words: str) -> None:
        session.run(_PUT, (space, num, words))

    def unindex_text(self, session: Session, space: str, num: int) -> None:
        session.run("DELETE FROM memory_text WHERE space = ? AND num = ?", (space, num))

    def text_matches(
        self,
        session: Session,
        space: str,
        word: str,
        space_words: Sequence[str],
        limit: int,
        above: int = 0,
        below: int = 0,
    ) -> list[int]:
        marked = " ".join(space_words)
        if session.bounds is not None:
            found = column(session, _NEWEST_BOUND, (space, word, marked, above, EVERY_ROW if below else limit))
            return [num for num in found if not below or num < below][:limit]
        narrowed, given = (" AND words && string_to_array(?, ' ')", (marked,)) if marked else ("", ())
        newer, least = (" AND num > ?", (above,)) if above > 0 else ("", ())
        older, most = (" AND num < ?", (below,)) if below > 0 else ("", ())
        statement = f"{_HOLDING.format('?')}{narrowed}{newer}{older} ORDER BY num DESC LIMIT ?"
        return column(session, statement, (space, word, *given, *least, *most, limit))

    def text_condition(self, session: Session, spaces: Sequence[str], words: Sequence[str]) -> tuple[str, list[Sql]]:
        # A worker cannot call the functions. Without them it reads all words of the spaces that the caller may see.
        plain = session.bounds is None or self.distributed
        statement = (_HOLDING if plain else _HOLDING_BOUND).format(marks(len(spaces)))
        return f"m.num IN ({statement})", [*spaces, " ".join(words)]


_ROWS = "caller_rows"
_ALL = ("SELECT", "INSERT", "UPDATE", "DELETE")
_BY_FILES = ("scanned_file", "symbol", "import")
# The space of a row of each table, as an expression over its columns.
_SPACES = {
    **{name: f"{space} || '/files'" if name in _BY_FILES else space for name, space in DISTRIBUTED.items()},
    "project": "id",
    "near_space": "space",
}
# Tables without a space: facts about the store.
_SHARED = {
    "setting": ("SELECT", "INSERT", "UPDATE (value)"),
    "llm_use": ("SELECT", "INSERT", "UPDATE"),
    "sync_day": _ALL,
}
_CLOSED = (
    *("api_token", "audit_event", "audit_head", "organisation", "org_member", "org_group", "group_member"),
    *("project_org", "project_grant", "tenancy"),
)
# The rights of the role; the policies say on which rows.
RIGHTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_SPACES, _ALL),
    # Written by the server only.
    "near_space": ("SELECT",),
    **_SHARED,
    **dict.fromkeys(_CLOSED, ()),
    # Read by every role that opens the store; contains nothing about anybody.
    "schema_step": (),
}
# For the numbers of new records, which never leave the store.
SEQUENCES = ("memory_num_seq",)


def protection(table: str, space: str = "space") -> tuple[str, ...]:
    """Statements that protect one table; `space` is the space of a row, as an expression over its columns.

    Every later table needs this and `granted`, also one created while the server runs. Changing a row that may only
    be read is an error; deleting it finds nothing.
    """
    return _policies(table, listed("readable", space), listed("writable", space))


def granted(role: str, table: str, rights: Sequence[str] = _ALL) -> str:
    """The statement that lets the role of callers use a protected table."""
    return f'GRANT {", ".join(rights)} ON "{table}" TO {role}'


def _policies(table: str, readable: str, writable: str) -> tuple[str, ...]:
    return (
        f'ALTER TABLE "{table}" ENABLE ROW LEVEL SECURITY',
        f'DROP POLICY IF EXISTS {_ROWS} ON "{table}"',
        f'DROP POLICY IF EXISTS caller_deletes ON "{table}"',
        f'CREATE POLICY {_ROWS} ON "{table}" USING ({readable}) WITH CHECK ({writable})',
        f'CREATE POLICY caller_deletes ON "{table}" AS RESTRICTIVE FOR DELETE USING ({writable})',
    )


def _closed(table: str) -> tuple[str, ...]:
    """Without a policy no row is visible, even if a right is granted by mistake."""
    return (f'ALTER TABLE "{table}" ENABLE ROW LEVEL SECURITY',)


# Tables of later steps, which protect them.
_LATER = ("space_change", "kept_request")
POLICIES: tuple[str, ...] = (
    *(statement for table, space in _SPACES.items() if table not in _LATER for statement in protection(table, space)),
    *(statement for table in _SHARED for statement in _policies(table, "true", "true")),
    *(statement for table in _CLOSED for statement in _closed(table)),
)

# All of them as they are now, for stores that have them in an older form.
EVERY_POLICY: tuple[str, ...] = (
    *POLICIES,
    *(statement for table in _LATER for statement in protection(table, _SPACES[table])),
)
# The same for tables that were made and protected while a server ran: the vectors of large spaces.
LATER_POLICIES: tuple[str, ...] = (
    f"""DO $each$ DECLARE made text; BEGIN
        FOR made IN SELECT c.relname FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
            WHERE c.relnamespace = current_schema()::regnamespace AND p.polname = '{_ROWS}'
            AND c.relname NOT IN ({", ".join(f"'{table}'" for table in RIGHTS)})
        LOOP
            EXECUTE format('ALTER POLICY {_ROWS} ON %I USING (%s) WITH CHECK (%s)', made,
                $one${listed("readable", "space")}$one$, $one${listed("writable", "space")}$one$);
            EXECUTE format('ALTER POLICY caller_deletes ON %I USING (%s)', made,
                $one${listed("writable", "space")}$one$);
        END LOOP; END $each$""",
)

_ATTRIBUTES = "NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB NOREPLICATION NOINHERIT"


@dataclass(frozen=True, slots=True)
class CallerRole:
    """The state of the role. `name`, `login` and `schema` are SQL identifiers.

    On a cluster the coordinator logs in to the workers as the role, which has no password.
    """

    name: str
    login: str
    schema: str
    exists: bool
    may_switch: bool
    may_make: bool
    bypasses: bool
    complete: bool
    protected: bool
    may_log_in: bool = False
    on_workers: bool = False

    @property
    def usable(self) -> bool:
        ready = self.protected and self.exists and self.may_switch and self.complete and not self.bypasses
        return ready and (self.may_log_in or not self.on_workers)

    @property
    def attributes(self) -> str:
        return f"{'LOGIN' if self.on_workers else 'NOLOGIN'} {_ATTRIBUTES}"

    @property
    def can_be_made(self) -> bool:
        return self.protected and not self.bypasses and (self.may_make or (self.exists and self.may_switch))

    def missing(self) -> ConfigurationError:
        """Why there is no usable role, with the statements that an administrator has to run once."""
        made = f"{'ALTER' if self.exists else 'CREATE'} ROLE {self.name} {self.attributes}"
        fault = "may bypass row-level security" if self.bypasses else "is not there, or cannot be used"
        return ConfigurationError(
            f"The role {self.name}, as which work for callers is done, {fault}.",
            remedy=f"Let an administrator of the database run: {made}; "
            f"GRANT {self.name} TO {self.login} WITH INHERIT FALSE, SET TRUE;",
            field="database_url",
        )


def find_role(session: Session, *, on_workers: bool = False) -> CallerRole:
    """The role of this database and schema, and its state; `on_workers`: where the tables are distributed."""
    ((name, login, schema, exists, may_switch, may_make, bypasses, shut_out, protected, may_log_in),) = session.rows(
        QUERIES["role"]
    )
    if shut_out:
        raise ConfigurationError(
            f"The role {login} does not own the tables in {schema}, so that row-level security hides their rows.",
            remedy="Use the role that made them in database_url, or make this one a member of it.",
            field="database_url",
        )
    complete = exists and protected and _held(session) == {(name, one) for one in _wanted(_tables(session))}
    state = (exists, may_switch, may_make, bypasses, complete, protected, may_log_in)
    return CallerRole(name, login, schema, *state, on_workers)


def make_role(session: Session, found: CallerRole) -> None:
    """Create the role if it is missing, and give it exactly its rights."""
    role = found.name
    if not found.exists:
        session.run(f"CREATE ROLE {role} {found.attributes}")
    elif found.on_workers and not found.may_log_in:
        # Not all attributes: only a superuser may name some of them here, even to leave them as they are.
        session.run(f"ALTER ROLE {role} LOGIN")
    if not found.may_switch or not found.exists:
        session.run(f"GRANT {role} TO {found.login} WITH INHERIT FALSE, SET TRUE")
    for other in sorted({holder for holder, _ in _held(session)}):
        for kind in ("TABLES", "SEQUENCES", "FUNCTIONS"):
            session.run(f"REVOKE ALL ON ALL {kind} IN SCHEMA {found.schema} FROM {other}")
        session.run(f"REVOKE ALL ON SCHEMA {found.schema} FROM {other}")
    session.run(f"GRANT USAGE ON SCHEMA {found.schema} TO {role}")
    for table, rights in _tables(session).items():
        if rights:
            session.run(granted(role, table, rights))
    for sequence in SEQUENCES:
        session.run(f"GRANT USAGE ON SEQUENCE {sequence} TO {role}")
    for statement in text_functions(found.schema):
        session.run(statement)
    for function in TEXT_FUNCTIONS:
        session.run(f"GRANT EXECUTE ON FUNCTION {function} TO {role}")


def _tables(session: Session) -> dict[str, tuple[str, ...]]:
    """Rights on the tables of the schema and on others that were protected the same way."""
    added = {str(row[0]): ("SELECT", "INSERT", "UPDATE", "DELETE") for row in session.rows(QUERIES["protected_tables"])}
    return {**added, **RIGHTS}


def _held(session: Session) -> set[tuple[str, str]]:
    return {(row[0], row[1]) for row in session.rows(QUERIES["held_rights"])}


def _wanted(tables: Mapping[str, Sequence[str]]) -> list[str]:
    on_tables = [f"{table} {right}" for table, rights in tables.items() for right in rights]
    on_tables += [f"{sequence} USAGE" for sequence in SEQUENCES]
    return ["schema USAGE", *(f"{name.partition('(')[0]} EXECUTE" for name in TEXT_FUNCTIONS), *on_tables]


def binding(role: str, bounds: Bounds) -> tuple[str, str]:
    """SQL after BEGIN in a transaction for a caller: its role and its settings, which end with the transaction."""
    return f"SELECT set_config('role', {literal(role)}, true)", _settings(bounds)


@lru_cache(maxsize=64)
def _settings(bounds: Bounds) -> str:
    settings = {
        "cortex.readable": _list(bounds.readable),
        "cortex.writable": _list(bounds.writable),
        "application_name": f"cortex {bounds.member}".encode("ascii", "replace").decode().replace("\0", "")[:60],
    }
    return "; ".join(f"SET LOCAL {name} = {literal(value)}" for name, value in settings.items())


def _list(spaces: Iterable[str]) -> str:
    """Names as the policies look for them, without those that PostgreSQL cannot store; empty if there are none."""
    spelled = [name.replace("~", "~~").replace(",", "~.") for name in sorted(filter(_storable, spaces))]
    return f",{','.join(spelled)}," if spelled else ""


def _storable(name: str) -> bool:
    return "\0" not in name and not any("\ud800" <= sign <= "\udfff" for sign in name)


def literal(text: str) -> str:
    """A quoted text; connections have standard_conforming_strings on and the encoding UTF8."""
    return "'" + text.replace("'", "''") + "'"
