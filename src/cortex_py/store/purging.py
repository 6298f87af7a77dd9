"""What goes when records are purged: every row that was made from them or tells of them, in every table."""

from __future__ import annotations

from collections.abc import Sequence

from .database import Session, marks
from .placement import everywhere

__all__ = ["purge_rows"]

_FORGET_USES = tuple(
    everywhere("forget uses", statement)
    for statement in (
        "DELETE FROM reference WHERE memory_id IN {ids}",
        "DELETE FROM referred WHERE memory_id IN {ids}",
        "DELETE FROM referred_together WHERE memory_id IN {ids}",
        "DELETE FROM referred_together WHERE other_id IN {ids}",
        "DELETE FROM suggestion WHERE memory_id IN {ids}",
        "DELETE FROM trust WHERE kind = 'memory' AND substr(key, 1, 40) IN {ids}",
    )
)
_FORGET_IN_SPACE = (
    "DELETE FROM history WHERE space = ? AND id IN {ids}",
    "DELETE FROM recalled WHERE space = ? AND memory_id IN {ids}",
    "DELETE FROM verification WHERE space = ? AND memory_id IN {ids}",
    "DELETE FROM consolidation_part WHERE space = ? AND memory_id IN {ids}",
    "DELETE FROM consolidation_part WHERE space = ? AND EXISTS (SELECT 1 FROM consolidation c "
    "WHERE c.space = consolidation_part.space AND c.id = consolidation_part.consolidation_id AND c.result_id IN {ids})",
    "DELETE FROM consolidation WHERE space = ? AND result_id IN {ids}",
    # What a purged record took the place of points nowhere any more; it stays superseded until somebody decides.
    "UPDATE memory SET superseded_by = NULL WHERE space = ? AND superseded_by IN {ids}",
)
# A name that only purged records held goes with them; what somebody made, described or related stays.
_FORGET_NAME = (
    "DELETE FROM entity WHERE space = ? AND id = ? AND given = 0 AND properties = '{}' "
    "AND NOT EXISTS (SELECT 1 FROM mention n WHERE n.space = entity.space AND n.entity_id = entity.id) "
    + " ".join(
        f"AND NOT EXISTS (SELECT 1 FROM relationship r WHERE r.space = entity.space AND r.{end} = entity.id)"
        for end in ("source_id", "target_id")
    )
)
_NO_ENTITY = "NOT EXISTS (SELECT 1 FROM entity e WHERE e.space = {0}.space AND e.id = {0}.{1})"


def purge_rows(session: Session, space: str, nums: Sequence[int], seq: int, *, names: bool) -> None:
    """Remove the rows of some records of a space; the text index is the engine's own.

    `names` False leaves the names that only they held.
    """
    mine = f"+space = ? AND num IN ({marks(len(nums))})"
    found = session.rows(f"SELECT num, id FROM memory WHERE {mine}", (space, *nums))
    ids = [row[1] for row in found]
    session.run_many("INSERT INTO purged (space, num, seq) VALUES (?, ?, ?)", [(space, row[0], seq) for row in found])
    for statement in _FORGET_IN_SPACE:
        session.run(statement.format(ids=f"({marks(len(ids))})"), (space, *ids))
    for statement in _FORGET_USES:
        session.run(statement.format(ids=f"({marks(len(ids))})"), ids)
    named = session.rows(f"SELECT DISTINCT space, entity_id FROM mention WHERE {mine}", (space, *nums))
    for table in ("tag", "chunk", "mention", "relationship", "entity_history", "memory"):
        session.run(f"DELETE FROM {table} WHERE {mine}", (space, *nums))
    if not names:
        return
    session.run_many(_FORGET_NAME, named)
    for table, column in (("entity_alias", "entity_id"), ("entity_history", "into_id")):
        session.run_many(
            f"DELETE FROM {table} WHERE space = ? AND {column} = ? AND {_NO_ENTITY.format(table, column)}",
            named,
        )
