"""How values travel between Python and PostgreSQL: numbers and texts without a type, U+0000, sums."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types.numeric import NumericBinaryLoader

__all__ = ["register"]

# No character, by its definition, and yet allowed in a text.
_ESCAPE = "\ufdd0"


class _WholeNumber(Dumper):
    """A number without a type of its own: the server takes the type of what it stands beside, as SQLite does."""

    oid = 0

    def dump(self, obj: Any) -> Buffer:
        return b"%d" % obj


class _AnyText(Dumper):
    """A text without a type of its own. The server's texts cannot hold U+0000: it travels as two other characters."""

    oid = 0

    def dump(self, obj: str) -> Buffer:
        if "\0" in obj or _ESCAPE in obj:
            obj = obj.replace(_ESCAPE, f"{_ESCAPE}1").replace("\0", f"{_ESCAPE}0")
        return obj.encode()


class _AnyTextAgain(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        text = str(data, "utf-8")
        return text.replace(f"{_ESCAPE}0", "\0").replace(f"{_ESCAPE}1", _ESCAPE) if _ESCAPE in text else text


class _PlainNumber(NumericBinaryLoader):
    """Sums of whole numbers come as decimals; they are whole numbers."""

    def load(self, data: Buffer) -> Any:
        value = super().load(data)
        return int(value) if value == value.to_integral_value() else float(value)


def register(connection: psycopg.Connection[Any]) -> None:
    """Let a connection carry values in these ways."""
    connection.adapters.register_dumper(int, _WholeNumber)
    connection.adapters.register_dumper(bool, _WholeNumber)
    connection.adapters.register_dumper(str, _AnyText)
    connection.adapters.register_loader("text", _AnyTextAgain)
    connection.adapters.register_loader("numeric", _PlainNumber)
