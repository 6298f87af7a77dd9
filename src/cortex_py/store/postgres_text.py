"""The text index in PostgreSQL: hashed words of each record in an array, under a GIN index.

Operators on arrays might tell what they saw, so that the engine lets them look at a row only after the policy has:
a transaction done for a caller could use no such index. Two functions look words up in it as the owner, and give
numbers from the spaces of that very transaction. Nobody's search_path reaches into them. They are planned for each
call, as the statements of the owner are: whether a word is rare decides which index is the right one.
"""

from __future__ import annotations

from collections.abc import Sequence

from .database import Session, Sql, marks
from .postgres_policies import spaces_in

__all__ = ["TEXT_FUNCTIONS", "PostgresText", "text_functions"]

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


def text_functions(schema: str) -> tuple[str, ...]:
    """Statements that make the functions in a schema, given as an identifier. Whom they serve is granted elsewhere."""
    bound = (
        "RETURNS SETOF bigint LANGUAGE plpgsql STABLE SECURITY DEFINER "
        f"SET search_path = pg_catalog, {schema}, pg_temp SET plan_cache_mode = force_custom_plan"
    )
    readable, seen = spaces_in("readable"), _SEEN.format("inside")
    return (
        f"""CREATE OR REPLACE FUNCTION text_holding(inside text[], wanted text[]) {bound} AS $body$
            DECLARE seen text[] := array(SELECT one FROM unnest(inside) one WHERE jsonb_exists({readable}, one));
            BEGIN RETURN QUERY {_SEEN.format("ANY (seen)")}; END $body$""",
        f"""CREATE OR REPLACE FUNCTION text_newest(
            inside text, wanted text[], marked text[], beyond bigint, most bigint)
            {bound} AS $body$ BEGIN
            IF jsonb_exists({readable}, inside) IS NOT TRUE THEN RETURN; END IF;
            IF cardinality(marked) = 0 THEN RETURN QUERY {seen} {_LAST};
            ELSE RETURN QUERY {seen} AND t.words && marked {_LAST}; END IF; END $body$""",
        *(f"REVOKE ALL ON FUNCTION {function} FROM PUBLIC" for function in TEXT_FUNCTIONS),
    )


class PostgresText:
    """The members of a `Database` that concern its text index. Those for callers go by its functions."""

    def index_texts(self, session: Session, entries: Sequence[tuple[str, int, str]]) -> None:
        rows = [(space, num, f"{{{words.replace(' ', ',')}}}") for space, num, words in entries]
        session.copy("memory_text", ("space", "num", "words"), rows)

    def index_text(self, session: Session, space: str, num: int, words: str) -> None:
        session.run(_PUT, (space, num, words))

    def unindex_text(self, session: Session, space: str, num: int) -> None:
        session.run("DELETE FROM memory_text WHERE space = ? AND num = ?", (space, num))

    def text_matches(
        self, session: Session, space: str, words: Sequence[str], space_words: Sequence[str], limit: int, above: int = 0
    ) -> list[list[int]]:
        marked = " ".join(space_words)
        if session.bounds is not None:
            asked = (marked, above, limit)
            return [[row[0] for row in session.rows(_NEWEST_BOUND, (space, word, *asked))] for word in words]
        narrowed, given = (" AND words && string_to_array(?, ' ')", (marked,)) if marked else ("", ())
        newer, least = (" AND num > ?", (above,)) if above > 0 else ("", ())
        statement = f"{_HOLDING.format('?')}{narrowed}{newer} ORDER BY num DESC LIMIT ?"
        return [[row[0] for row in session.rows(statement, (space, word, *given, *least, limit))] for word in words]

    def text_condition(self, session: Session, spaces: Sequence[str], words: Sequence[str]) -> tuple[str, list[Sql]]:
        statement = (_HOLDING if session.bounds is None else _HOLDING_BOUND).format(marks(len(spaces)))
        return f"m.num IN ({statement})", [*spaces, " ".join(words)]
