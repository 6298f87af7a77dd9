"""The role that transactions done for callers run as: it may not log in, owns nothing and bypasses nothing.

Its name follows from the database and the schema, so that the owners of two stores in one cluster share none: each
may switch to it. It is made, and given its rights and functions, when the store is opened by a role that may do so,
and also where a database was renamed or copied.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..errors import ConfigurationError
from .bounds import Bounds
from .database import Session
from .postgres_policies import RIGHTS, SEQUENCES, granted
from .postgres_text import TEXT_FUNCTIONS, text_functions

__all__ = ["CallerRole", "binding", "find_role", "make_role"]

_PREFIX = "cortex_caller_"
_ATTRIBUTES = "NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB NOREPLICATION NOINHERIT"
_FIND = f"""
    SELECT n.name, quote_ident(current_user), quote_ident(current_schema()), r.oid IS NOT NULL,
        coalesce(pg_has_role(current_user, r.oid, 'SET'), false), me.rolsuper OR me.rolcreaterole,
        coalesce(r.rolsuper OR r.rolbypassrls OR pg_has_role(r.oid, t.relowner, 'MEMBER'), false),
        row_security_active(t.oid), t.relrowsecurity
    FROM (SELECT '{_PREFIX}' || substr(md5(quote_ident(current_database()::text) || '.' ||
        quote_ident(current_schema()::text)), 1, 20) AS name) n
    JOIN pg_roles me ON me.rolname = current_user
    JOIN pg_class t ON t.oid = to_regclass(quote_ident(current_schema()) || '.memory')
    LEFT JOIN pg_roles r ON r.rolname = n.name"""
# What any role of callers holds here: ours, and that of a database this one was copied from.
_HELD = f"""
    SELECT a.grantee::regrole::text, o.name || ' ' || a.privilege_type || o.part FROM (
        SELECT 'schema' AS name, '' AS part, nspacl AS acl FROM pg_namespace WHERE nspname = current_schema()
        UNION ALL SELECT relname, '', relacl FROM pg_class
            WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'S')
        UNION ALL SELECT c.relname, ' (' || t.attname || ')', t.attacl FROM pg_attribute t
            JOIN pg_class c ON c.oid = t.attrelid
            WHERE c.relnamespace = current_schema()::regnamespace AND t.attacl IS NOT NULL
        UNION ALL SELECT proname, '', proacl FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
    ) o CROSS JOIN aclexplode(o.acl) a JOIN pg_roles r ON r.oid = a.grantee AND starts_with(r.rolname, '{_PREFIX}')"""
_ADDED = (
    "SELECT c.relname FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid "
    "WHERE c.relnamespace = current_schema()::regnamespace AND p.polname = 'caller_rows'"
)


@dataclass(frozen=True, slots=True)
class CallerRole:
    """What is known of the role. `name`, `login` and `schema` are spelled as identifiers of SQL."""

    name: str
    login: str
    schema: str
    exists: bool
    may_switch: bool
    may_make: bool
    bypasses: bool
    complete: bool
    protected: bool

    @property
    def usable(self) -> bool:
        return self.protected and self.exists and self.may_switch and self.complete and not self.bypasses

    @property
    def can_be_made(self) -> bool:
        return self.protected and not self.bypasses and (self.may_make or (self.exists and self.may_switch))

    def missing(self) -> ConfigurationError:
        """Why callers cannot be bound, with the statements that an administrator runs once."""
        made = f"ALTER ROLE {self.name} {_ATTRIBUTES}" if self.exists else f"CREATE ROLE {self.name} {_ATTRIBUTES}"
        fault = "may bypass row-level security" if self.bypasses else "is not there, or cannot be used"
        return ConfigurationError(
            f"The role {self.name}, as which work for callers is done, {fault}.",
            remedy=f"Let an administrator of the database run: {made}; "
            f"GRANT {self.name} TO {self.login} WITH INHERIT FALSE, SET TRUE;",
            field="database_url",
        )


def find_role(session: Session) -> CallerRole:
    """The role of this database and schema, as far as it is there."""
    ((name, login, schema, exists, may_switch, may_make, bypasses, shut_out, protected),) = session.rows(_FIND)
    if shut_out:
        raise ConfigurationError(
            f"The role {login} does not own the tables in {schema}, so that row-level security hides their rows.",
            remedy="Use the role that made them in database_url, or make this one a member of it.",
            field="database_url",
        )
    complete = exists and protected and _held(session) == {(name, one) for one in _wanted(_tables(session))}
    return CallerRole(name, login, schema, exists, may_switch, may_make, bypasses, complete, protected)


def make_role(session: Session, found: CallerRole) -> None:
    """Make the role where this login may, and give it exactly its rights, taking away all others."""
    role = found.name
    if not found.exists:
        session.run(f"CREATE ROLE {role} {_ATTRIBUTES}")
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
    """Tables and rights: those of the schema's steps, and others that were protected the same way."""
    added = {str(row[0]): ("SELECT", "INSERT", "UPDATE", "DELETE") for row in session.rows(_ADDED)}
    return {**added, **RIGHTS}


def _held(session: Session) -> set[tuple[str, str]]:
    return {(row[0], row[1]) for row in session.rows(_HELD)}


def _wanted(tables: Mapping[str, Sequence[str]]) -> list[str]:
    on_tables = [f"{table} {right}" for table, rights in tables.items() for right in rights]
    on_tables += [f"{sequence} USAGE" for sequence in SEQUENCES]
    return ["schema USAGE", *(f"{name.partition('(')[0]} EXECUTE" for name in TEXT_FUNCTIONS), *on_tables]


def binding(role: str, bounds: Bounds) -> str:
    """What follows BEGIN in a transaction done for a caller. All of it ends with the transaction."""
    return f"; SELECT {_spaces(bounds)}, set_config('role', {_literal(role)}, true)"


@lru_cache(maxsize=64)
def _spaces(bounds: Bounds) -> str:
    settings = {
        "cortex.readable": _keys(bounds.readable),
        "cortex.writable": _keys(bounds.writable),
        "application_name": f"cortex {bounds.member}".encode("ascii", "replace").decode().replace("\0", "")[:60],
    }
    return ", ".join(f"set_config({_literal(name)}, {_literal(value)}, true)" for name, value in settings.items())


def _keys(spaces: Iterable[str]) -> str:
    """Names as the keys of a JSON object. One that no text of the engine can hold names nothing."""
    return json.dumps(dict.fromkeys(sorted(filter(_storable, spaces)), 1), ensure_ascii=False)


def _storable(name: str) -> bool:
    return "\0" not in name and not any("\ud800" <= sign <= "\udfff" for sign in name)


def _literal(text: str) -> str:
    """A text in quotes; every connection has standard_conforming_strings on, and the encoding is UTF8."""
    return "'" + text.replace("'", "''") + "'"
