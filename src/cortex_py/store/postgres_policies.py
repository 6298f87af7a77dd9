"""Row-level security: what a transaction done for a caller can see, whatever its statements ask for.

Such a transaction runs as a role without rights of its own (`postgres_role`) and holds the caller's spaces in two
settings that end with it. A policy on every table compares a row's space with them; where they are missing, no row
is there. The settings are JSON objects with the spaces as keys: any name can be spelled, and looking one of thousands
up takes a dozen comparisons. They are read in a sub-select, so that it is done once for a statement, and compared by
a function that no index knows, so that statements keep the plans they have without a policy.

Nothing is forced upon the owner of the tables. The server's own work, migrations and backups by pg_dump are his and
concern all spaces; a policy that lets him through would protect nothing and close the text index to him.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["POLICIES", "RIGHTS", "SEQUENCES", "granted", "protection", "spaces_in"]

_ROWS = "caller_rows"
_ALL = ("SELECT", "INSERT", "UPDATE", "DELETE")
_BY_SPACE = (
    *("memory", "tag", "chunk", "history", "purged", "dictionary"),
    *("entity", "entity_alias", "mention", "relationship", "entity_history"),
    *("saved", "saved_version", "saved_tag", "saved_use", "saved_change"),
    *("consolidation", "consolidation_part", "recalled", "verification", "sync_entry", "sync_fact"),
)
_BY_PROJECT = (
    *("branch", "git_tip", "reference", "referred", "referred_together"),
    *("suggestion_session", "suggestion", "trust"),
)
_BY_FILES = ("scanned_file", "symbol", "import")
# What a table's rows belong to, as an expression over its columns.
_SPACES = {
    **dict.fromkeys(_BY_SPACE, "space"),
    **dict.fromkeys(_BY_PROJECT, "project_id"),
    **dict.fromkeys(_BY_FILES, "project_id || '/files'"),
    "project": "id",
    "memory_text": "space",
    "near_space": "space",
}
# Tables that belong to no space: counters, and facts about the store.
_SHARED = {
    "state": ("SELECT", "UPDATE (seq)"),
    "setting": ("SELECT", "INSERT", "UPDATE (value)"),
    "llm_use": ("SELECT", "INSERT", "UPDATE"),
    "sync_day": _ALL,
}
_CLOSED = (
    *("api_token", "audit_event", "audit_head", "organisation", "org_member", "org_group", "group_member"),
    *("project_org", "project_grant", "tenancy"),
)
# What the role of callers may do at all. Its policies say with which rows.
RIGHTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_SPACES, _ALL),
    # Made and kept by the server alone.
    "near_space": ("SELECT",),
    **_SHARED,
    **dict.fromkeys(_CLOSED, ()),
    # Which schema this is must be told to whatever role opens the store; it says nothing about anybody.
    "schema_step": (),
}
# Where callers take numbers for new records from; a number says nothing and never leaves the store.
SEQUENCES = ("memory_num_seq",)


def spaces_in(setting: str) -> str:
    """The spaces of a setting as an expression that a statement evaluates once; null where it is missing."""
    return f"(SELECT nullif(current_setting('cortex.{setting}', true), '')::jsonb)"


def protection(table: str, space: str = "space") -> tuple[str, ...]:
    """Statements that protect one table; `space` is the space of a row, over its columns.

    For every table that is added later, also for one made while the server runs; see `granted` for the other half.
    A row that may be read but not written is changed with an error and not in silence; deleting it finds nothing.
    """
    readable, writable = (f"jsonb_exists({spaces_in(one)}, {space})" for one in ("readable", "writable"))
    return _policies(table, readable, writable)


def granted(role: str, table: str, rights: Sequence[str] = _ALL) -> str:
    """The statement that lets the role of callers (`PostgresDatabase.caller_role`) use a protected table."""
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
    """Without a policy no row is there, even if somebody should grant a right by mistake."""
    return (f'ALTER TABLE "{table}" ENABLE ROW LEVEL SECURITY',)


POLICIES: tuple[str, ...] = (
    *(statement for table, space in _SPACES.items() for statement in protection(table, space)),
    *(statement for table in _SHARED for statement in _policies(table, "true", "true")),
    *(statement for table in _CLOSED for statement in _closed(table)),
)
