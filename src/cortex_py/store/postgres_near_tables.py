"""The tables in which PostgreSQL keeps vectors of large spaces: which spaces, and a partition for each.

pgvector may be missing, so only the list of spaces is part of the schema; the rest is made when the first space
has grown large.
"""

from __future__ import annotations

from array import array

__all__ = ["ALL_SPACES", "NEAREST", "as_vector", "index_statement", "part_statements"]

NEAREST: tuple[str, ...] = (
    # `reached` is the number up to which records were taken in, `ready` 1 when the index is complete.
    """CREATE TABLE near_space (
        space TEXT PRIMARY KEY, part TEXT NOT NULL UNIQUE, dimensions INTEGER NOT NULL,
        reached INTEGER NOT NULL, ready INTEGER NOT NULL)""",
    # The neighbours of a record in its line of work.
    "CREATE INDEX memory_line ON memory (space, branch_id, created_at, num) WHERE branch_id IS NOT NULL",
)

# Whatever removes a part of a record removes its vector here too, by whichever statement.
ALL_SPACES: tuple[str, ...] = (
    "CREATE EXTENSION IF NOT EXISTS vector",
    """CREATE TABLE IF NOT EXISTS near (
        space TEXT NOT NULL, num INTEGER NOT NULL, n INTEGER NOT NULL, vector halfvec NOT NULL,
        PRIMARY KEY (space, num, n)) PARTITION BY LIST (space)""",
    """CREATE OR REPLACE FUNCTION cortex_forget_vectors() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
        SET search_path FROM CURRENT AS $forget$
        BEGIN
            DELETE FROM near v USING gone g WHERE v.space = g.space AND v.num = g.num AND v.n = g.n;
            RETURN NULL;
        END $forget$""",
    """CREATE OR REPLACE TRIGGER forget_vectors AFTER DELETE ON chunk REFERENCING OLD TABLE AS gone
        FOR EACH STATEMENT EXECUTE FUNCTION cortex_forget_vectors()""",
)


def part_statements(part: str, literal: str) -> tuple[str, ...]:
    """A partition for one space, given as a quoted text. Vectors are not moved out of line: every search reads them."""
    return (
        f"CREATE TABLE {part} PARTITION OF near FOR VALUES IN ({literal})",
        f"ALTER TABLE {part} ALTER COLUMN vector SET STORAGE PLAIN",
    )


def index_statement(part: str, dimensions: int) -> str:
    # Vectors have length 1, so that the inner product orders them as the cosine does, for less.
    return (
        f"CREATE INDEX CONCURRENTLY {part}_hnsw ON {part} "
        f"USING hnsw ((vector::halfvec({dimensions})) halfvec_ip_ops) WITH (m = 16, ef_construction = 96)"
    )


def as_vector(stored: bytes) -> str:
    """A stored vector as pgvector reads it; half precision has no more digits than these."""
    return f"[{','.join([f'{value:.5g}' for value in array('f', stored)])}]"
