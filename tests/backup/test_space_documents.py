"""A space as documents: everything goes out, and the same comes back in another home."""

from __future__ import annotations

import re
from pathlib import Path

from cortex_py.core.store.documents.document import KINDS, SHAPES, columns, table_columns
from cortex_py.core.store.documents.memories import MEMORY_FIELDS


def test_the_page_on_formats_names_every_field_of_every_kind() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "formats.md").read_text("utf-8")
    section = page.split("## Documents, version 1")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*)\|$", section, re.MULTILINE))
    assert list(rows) == list(KINDS)
    own = {"memory": [*MEMORY_FIELDS, *columns("versions:json"), *table_columns("history", 2)]}
    for kind, row in rows.items():
        shape = SHAPES.get(kind)
        fields = [*own.get(kind, ()), *(shape.columns if shape else ())]
        for child in shape.children if shape else ():
            fields += [*columns(f"{child.name}:json"), *child.columns]
        for column in fields:
            assert f"`{column.name}`{'?' if column.optional else ''}" in row, (kind, column.name)
        if kind in own or shape:
            names = {*(column.name for column in fields), *(shape.keys if shape else ())}
            assert set(re.findall(r"`(\w+)`", row)) - set(KINDS) <= names, kind
