"""How values travel: numbers and texts without a type, texts with U+0000, and sums as integers."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types.numeric import NumericBinaryLoader

__all__ = ["register_values"]

# A noncharacter of Unicode, which a text may nevertheless contain.
_ESCAPE = "\ufdd0"


class _NumberDumper(Dumper):
    """A number without a type: the server infers it from the context, as SQLite does."""

    oid = 0

    def dump(self, obj: Any) -> Buffer:
        return b"%d" % obj


class _TextDumper(Dumper):
    """A text without a type. PostgreSQL texts cannot contain U+0000, so it is escaped."""

    oid = 0

    def dump(self, obj: str) -> Buffer:
        if "\0" in obj or _ESCAPE in obj:
            obj = obj.replace(_ESCAPE, f"{_ESCAPE}1").replace("\0", f"{_ESCAPE}0")
        return obj.encode()


class _TextLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        text = str(data, "utf-8")
        return text.replace(f"{_ESCAPE}0", "\0").replace(f"{_ESCAPE}1", _ESCAPE) if _ESCAPE in text else text


class _NumericLoader(NumericBinaryLoader):
    """Sums of integers arrive as decimals; they are integers."""

    def load(self, data: Buffer) -> Any:
        value = super().load(data)
        return int(value) if value == value.to_integral_value() else float(value)


def register_values(connection: psycopg.Connection[Any]) -> None:
    connection.adapters.register_dumper(int, _NumberDumper)
    connection.adapters.register_dumper(bool, _NumberDumper)
    connection.adapters.register_dumper(str, _TextDumper)
    connection.adapters.register_loader("text", _TextLoader)
    connection.adapters.register_loader("numeric", _NumericLoader)
