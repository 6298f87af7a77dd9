"""A space as documents: everything goes out, and the same comes back in another home."""

from __future__ import annotations

import re
from pathlib import Path

from cortex_py.store.documents.document import KINDS, SHAPES, columns
from cortex_py.store.documents.documents import check_document, key_order
from cortex_py.store.documents.memories import MEMORY_FIELDS

from homes import fill, opened, state


def test_every_kind_of_thing_becomes_documents_in_their_order(home: Path, project: Path) -> None:
    with opened(home, project) as cortex:
        fill(cortex)
        store = cortex._store
        with store.database.read() as session:
            found = list(store.documents.scan(session, cortex.project.id, tag=bytes(8)))
    kinds = {one.kind for one in found}
    assert kinds >= {"branch", "entity", "memory", "mention", "saved", "use", "reference", "session"}
    assert kinds <= set(KINDS)
    places = [key_order(one) for one in found]
    assert places == sorted(set(places))
    for one in found:
        check_document(one)
    assert all(one.vectors for one in found if one.kind == "memory")


def test_documents_written_into_another_home_make_the_same_state(tmp_path: Path, project: Path) -> None:
    with opened(tmp_path / "one", project) as cortex, opened(tmp_path / "two", project) as other:
        fill(cortex)
        space = cortex.project.id
        held = other._sessions.source(None, "project")
        with cortex._store.database.read() as source, other._store.database.write() as target:
            seq = other._store.memories.next_seq(target, space)
            for one in cortex._store.documents.scan(source, space, tag=held.tag):
                other._store.documents.put(target, space, one, seq, held.index)
        assert state(other) == state(cortex)
        hits = [
            [hit.memory.id for hit in one.memories.recall("PostgreSQL").results if hit.memory.domain == "project"]
            for one in (cortex, other)
        ]
        assert hits[0] == hits[1] != []
        assert not other.check()


def test_the_page_on_formats_names_every_field_of_every_kind() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "formats.md").read_text("utf-8")
    section = page.split("## Documents, version 1")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*)\|$", section, re.MULTILINE))
    assert list(rows) == list(KINDS)
    own = {"memory": [*MEMORY_FIELDS, *columns("versions:json")]}
    for kind, row in rows.items():
        shape = SHAPES.get(kind)
        fields = [*own.get(kind, ()), *(shape.columns if shape else ())]
        for child in shape.children if shape else ():
            fields += [*columns(f"{child.name}:json"), *child.columns]
        for column in fields:
            assert f"`{column.name}`{'?' if column.optional else ''}" in row, (kind, column.name)
