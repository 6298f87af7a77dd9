"""Every table of the store with its columns, declared once.

The schema is built by the steps of `store/schema.sql`; a test compares its result with this. From here come the
screening of what is written, the documents of backups, sync and export, the front matter of Markdown files, the columns
that decide on which server a row is, and the tables that row-level security protects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from .records import Memory, Origin

__all__ = ["TABLES", "Column", "ColumnType", "Table", "read_columns"]

ColumnType = Literal["text", "int", "real", "json", "blob", "moment"]


@dataclass(frozen=True, slots=True)
class Column:
    """A text, also one in JSON, has an origin. See `records.Stored` for `exported` and `front`.

    A `moment` is a number in the store: microseconds since 1970.
    """

    name: str
    type: ColumnType
    optional: bool
    origin: Origin | None = None
    exported: bool = True
    front: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """`key` are the names of the primary key, `columns` all columns of the table.

    `space` is the column that decides where a row is; None for tables that are on the coordinator of a cluster. The key
    begins with it, also where SQLite needs only the number behind it. `postgres` tables exist in that engine only.
    """

    name: str
    space: str | None
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    postgres: bool = False


def read_columns(text: str) -> tuple[Column, ...]:
    """Columns from `name:type`, with a `?` after the type of an optional one and a `-` before one that stays here.

    In place of `text` stands its origin; `prose/json` is JSON with texts of that origin.
    """
    return tuple(map(_column, text.split()))


def _column(text: str) -> Column:
    name, _, kind = text.partition(":")
    kind, equals, front = kind.partition("=")
    kind, optional, _ = kind.partition("?")
    origin, _, form = kind.partition("/")
    has_origin = origin in get_args(Origin)
    type_: Any = (form or "text") if has_origin else origin
    of: Any = origin if has_origin else None
    return Column(name.lstrip("-"), type_, bool(optional), of, not name.startswith("-"), front if equals else None)


# Columns of a memory that are no fields of the record.
_BESIDE = (
    "prior_status:made?=status_before idempotency_key:name?=idempotency_key -space:made -num:int -seq:int -digest:blob "
    "-length:int -flags:int -author:int -packed:blob? -packed_with:int? -graphed:int"
)
_TYPES: Mapping[object, ColumnType] = {str: "text", int: "int", float: "real", datetime: "moment", tuple: "json"}


def _fields() -> Iterator[Column]:
    """The columns of the fields of `Memory`, in order."""
    hints = get_type_hints(Memory, include_extras=True)
    for field in fields(Memory):
        if get_origin(hints[field.name]) is not Annotated:
            continue
        of, stored = get_args(hints[field.name])
        optional = type(None) in get_args(of)
        plain = next(one for one in get_args(of) if one is not type(None)) if optional else of
        if get_origin(plain) is Literal:
            plain = str
        kind = _TYPES[get_origin(plain) or plain]
        if (stored.origin is None) == (kind in ("text", "json")):
            raise TypeError(f"{field.name}: a text, and nothing else, has an origin")
        yield Column(field.name, kind, optional, stored.origin, stored.exported, stored.front)


# Each table with its primary key, and its other columns behind the stroke. These have rows of a space each:
_OF_SPACES = {
    "tag": "space:made tag:copied num:int",
    "chunk": "space:made num:int n:int | first:int past:int by_assistant:int terms:blob vector:blob?",
    "history": (
        "space:made -id:made version:int | recorded_at:int operation:made namespace:made tags:copied/json "
        "source:copied? content:copied"
    ),
    "purged": "space:made seq:int num:int",
    "space_change": "space:made | seq:int",
    "kept_request": "space:made key:made | result:made at:int",
    "dictionary": "space:made num:int | data:blob created_at:int",
    "recalled": "space:made memory_id:made | recalls:int recalled_at:int",
    "verification": "space:made memory_id:made | checked_at:int result:prose",
    "consolidation": "space:made id:made | result_id:made strategy:made method:made created_at:int undone_at:int?",
    "consolidation_part": "space:made consolidation_id:made n:int | memory_id:made prior_status:made",
    "branch": (
        "project_id:made id:copied | topic:prose parent_id:copied? git_branch:name? status:made created_at:int "
        "updated_at:int -summary:copied? -summary_seq:int"
    ),
    "git_tip": "project_id:made git_branch:found | tip:made seen_at:int",
    "scanned_file": "project_id:made path:found | blob:made parts:int whole:int scanned_at:int",
    "symbol": "project_id:made path:found n:int | name:found qualified:found kind:made line:int end_line:int",
    "import": "project_id:made path:found n:int | module:found names:found/json line:int",
    "entity": (
        "space:made id:copied | name:name folded:copied type:made key:copied properties:prose/json given:int "
        "created_at:int updated_at:int"
    ),
    "entity_alias": "space:made entity_id:copied alias:name | key:copied",
    "mention": "space:made entity_id:copied -num:int first:int | past:int confidence:real method:made",
    "relationship": (
        "space:made id:made | source_id:copied target_id:copied type:made confidence:real method:made "
        "evidence:prose properties:prose/json valid_from:int? valid_to:int? recorded_at:int ended_at:int? "
        "-num:int?"
    ),
    "entity_history": (
        "space:made merge_id:made n:int | into_id:copied kind:made num:int? data:copied/json recorded_at:int"
    ),
    "saved": (
        "space:made kind:made name:name | domain:made version:int description:prose? tags:prose/json "
        "variables:prose/json redactions:made/json created_at:int updated_at:int"
    ),
    "saved_version": (
        "space:made kind:made name:name version:int | description:prose? tags:prose/json variables:prose/json "
        "redactions:made/json saved_at:int content:prose"
    ),
    "saved_tag": "space:made kind:made tag:copied name:copied",
    "saved_use": "space:made kind:made name:copied | uses:int used_at:int",
    "saved_change": "space:made kind:made | changes:int",
    "reference": "project_id:made n:int | memory_id:made kind:made branch_id:made? task:prose at:int",
    "referred": "project_id:made memory_id:made | strength:real times:int at:int",
    "referred_together": "project_id:made memory_id:made other_id:made | strength:real times:int at:int",
    "suggestion_session": (
        "project_id:made id:made | task:prose branch_id:made? created_at:int expires_at:int state:made "
        "answered_at:int? reason:prose share:real?"
    ),
    "suggestion": (
        "project_id:made session_id:made n:int | memory_id:made source:made raw:real confidence:real accepted:int?"
    ),
    "trust": "project_id:made kind:made key:name | accepted:real refused:real at:int",
    "sync_entry": (
        "space:made target:made kind:made key:copied | versions:made stamp:int latest:int digest:made? pack:made "
        "maker:made"
    ),
    "sync_fact": "space:made target:made key:made | value:made",
    "memory_text": "space:made num:int | words:made",
}
# These are on the coordinator of a cluster, and nothing joins them with the others.
_OF_THE_WHOLE = {
    "project": "id:made | root:found? remote:found? name:found root_commit:made? created_at:int updated_at:int",
    "sync_day": "day:made direction:made | calls:int",
    "api_token": (
        "id:made | digest:made user_id:name agent_id:name? scopes:made created_at:int expires_at:int? "
        "last_used_at:int? revoked_at:int? org:name? project_id:made?"
    ),
    "audit_event": "n:int | event:copied hash:made",
    "audit_head": "one:int | events:int hash:made seal:made",
    "organisation": "name:name | created_at:int",
    "org_member": "org:copied user_id:name | level:made since:int",
    "org_group": "org:copied name:name | created_at:int",
    "group_member": "org:copied group_name:copied user_id:copied",
    "project_org": "project_id:made | org:copied restricted:int",
    "project_grant": "project_id:made kind:made grantee:name | level:made",
    "setting": "key:made | value:made",
    "llm_use": "day:made model:name | calls:int input_tokens:int output_tokens:int failed:int",
    "schema_step": "version:int | applied_at:int",
    "tenancy": "one:int | revision:int",
    "near_space": "space:made | part:made dimensions:int reached:int ready:int",
}
# SQLite keeps its text index by record number, and no index of vectors.
_POSTGRES_ONLY = frozenset(("memory_text", "near_space"))


def _table(name: str, text: str) -> Table:
    key, _, rest = text.partition("|")
    keys = read_columns(key)
    space = keys[0].name if name in _OF_SPACES else None
    names = tuple(column.name for column in keys)
    return Table(name, space, names, (*keys, *read_columns(rest)), name in _POSTGRES_ONLY)


TABLES: Mapping[str, Table] = {
    "memory": Table("memory", "space", ("num",), (*_fields(), *read_columns(_BESIDE))),
    **{name: _table(name, text) for name, text in {**_OF_SPACES, **_OF_THE_WHOLE}.items()},
}
