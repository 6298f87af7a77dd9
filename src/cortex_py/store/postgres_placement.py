"""The space in every key of this engine, so that a table can be spread over servers by it."""

from __future__ import annotations

__all__ = ["PLACEMENT"]

PLACEMENT: tuple[str, ...] = (
    "ALTER TABLE memory DROP CONSTRAINT memory_pkey",
    "ALTER TABLE memory ADD PRIMARY KEY (space, num)",
    # For the newest number of all; no statement looks a record up by it.
    "CREATE INDEX memory_num ON memory (num)",
    "ALTER TABLE chunk DROP CONSTRAINT chunk_pkey",
    "ALTER TABLE chunk ADD PRIMARY KEY (space, num, n)",
    # Made anew: to change every row would write each entry of the text index twice.
    "CREATE TABLE memory_text_placed (space TEXT NOT NULL, num BIGINT NOT NULL, words TEXT[] NOT NULL)",
    "INSERT INTO memory_text_placed (space, num, words) "
    "SELECT m.space, t.num, t.words FROM memory_text t JOIN memory m ON m.num = t.num",
    "DROP TABLE memory_text",
    "ALTER TABLE memory_text_placed RENAME TO memory_text",
    "ALTER TABLE memory_text ADD PRIMARY KEY (space, num)",
    # A write must not wait until a list of pending entries is merged, and reads must not search one.
    "CREATE INDEX memory_text_words ON memory_text USING gin (words) WITH (fastupdate = off)",
    "ALTER TABLE recalled RENAME CONSTRAINT recalled_placed_pkey TO recalled_pkey",
)
