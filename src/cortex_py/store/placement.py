"""Where rows lie when the store is spread over servers: by their space, which every key and every statement names.

A distributed table has one column that says where a row belongs: `space`, or `project_id`, which is the space of the
project. A statement on such tables names that column for each of them, so that it goes to the one server that has the
rows. The few that cannot know a space are all listed here, and go to every server.

A `+` before the column keeps SQLite from searching by it where the number or the id is the better way in; the other
engine does not get to see it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .database import marks

__all__ = ["DISTRIBUTED", "FAN_OUTS", "PLACEMENT_STEP", "REFERENCE", "by_space", "everywhere", "in_spaces"]

PLACEMENT_STEP: tuple[str, ...] = (
    """CREATE TABLE recalled_placed (
        space TEXT NOT NULL, memory_id TEXT NOT NULL, recalls INTEGER NOT NULL, recalled_at INTEGER NOT NULL,
        PRIMARY KEY (space, memory_id))""",
    "INSERT INTO recalled_placed (space, memory_id, recalls, recalled_at) "
    "SELECT m.space, r.memory_id, r.recalls, r.recalled_at FROM recalled r JOIN memory m ON m.id = r.memory_id",
    "DROP TABLE recalled",
    "ALTER TABLE recalled_placed RENAME TO recalled",
)

_BY_SPACE = (
    "memory",
    "tag",
    "chunk",
    "history",
    "purged",
    "dictionary",
    "entity",
    "entity_alias",
    "mention",
    "relationship",
    "entity_history",
    "saved",
    "saved_version",
    "saved_tag",
    "saved_use",
    "saved_change",
    "consolidation",
    "consolidation_part",
    "recalled",
    "verification",
    "sync_entry",
    "sync_fact",
    # Only on PostgreSQL; SQLite keeps its text index under the number of the record.
    "memory_text",
)
_BY_PROJECT = (
    "branch",
    "scanned_file",
    "symbol",
    "import",
    "git_tip",
    "reference",
    "referred",
    "referred_together",
    "suggestion_session",
    "suggestion",
    "trust",
)

# Each table with the column that says where a row lies.
DISTRIBUTED: Mapping[str, str] = {**dict.fromkeys(_BY_SPACE, "space"), **dict.fromkeys(_BY_PROJECT, "project_id")}

# Small, and the same for all spaces: on one server, or a copy on each.
REFERENCE = (
    "state",
    "setting",
    "schema_step",
    "project",
    "llm_use",
    "sync_day",
    "api_token",
    "audit_event",
    "audit_head",
    "organisation",
    "org_member",
    "org_group",
    "group_member",
    "project_org",
    "project_grant",
    "tenancy",
    # Which spaces have tables of their own for their vectors, on the server that has them.
    "near_space",
)

# Statements that go to every server, each with why it must.
FAN_OUTS: Mapping[str, str] = {
    "find": "A person gives an id or its beginning; nobody knows yet in which space the record lies.",
    "placed": "Uses are noted by id while nobody waits, and written down later: this tells where each record lies.",
    "forget uses": "Any project may have used a record; a purge leaves no trace in any of them.",
    "all spaces": "A reindex and a move to another engine go through every space there is.",
    "idle": "Packing takes what lies idle longest, wherever that is; nobody waits for it.",
    "unread": "Catching up with the graph takes what is oldest, wherever that is; nobody waits for it.",
    "newest number": "A search asks how large the whole store is, to know whether its own space is a small part of it.",
}


def everywhere(name: str, sql: str) -> str:
    """A statement that goes to every server, marked with the name under which the reason is listed."""
    if name not in FAN_OUTS:
        raise KeyError(name)
    return f"/* everywhere: {name} */ {sql}"


def in_spaces(column: str, spaces: Sequence[str]) -> str:
    """A condition on the column that says where a row lies; its parameters are the spaces.

    One space is spelled as such: only then do planners see that a table joined by its space is on the same server.
    """
    return f"{column} = ?" if len(spaces) == 1 else f"{column} IN ({marks(len(spaces))})"


def by_space(placed: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Numbers of records by the space they lie in."""
    found: dict[str, list[int]] = {}
    for space, num in placed:
        found.setdefault(space, []).append(num)
    return found
