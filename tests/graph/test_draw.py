"""Drawings are read by the real parsers: Mermaid's own, inside QuickJS, and the C library of Graphviz.

`mermaidx` carries mermaid.js itself and a JavaScript engine as wheels, `pygraphviz` carries libcgraph: neither needs
Node or anything installed beside Python. What they read is compared with what was drawn, so that a label can neither
break a drawing nor become part of it.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pygraphviz
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mermaidx.engines.quickjs_engine import Engine

from cases import each
from cortex_py.core.graph_values import ENTITY_TYPES, RELATIONSHIP_TYPES, Entity, EntityType, Relationship
from cortex_py.parts.graph.draw import as_json, dot, mermaid

NOW = datetime(2026, 1, 2, tzinfo=UTC)
HOSTILE = [
    "",
    " ",
    '"',
    '""',
    '"]; end',
    "end",
    "End",
    "graph",
    "subgraph",
    "flowchart TD",
    "style n0 fill:#f00;",
    "classDef x:#fff;",
    "click n0 callback",
    "`code`",
    "`**bold**`",
    "__init__.py",
    "a_b_c",
    "_x_ *y* ~~z~~",
    "1. first",
    "1) first",
    "- item",
    "-",
    "# title",
    "#quot;",
    "#35;",
    "&lt;script&gt;",
    "<script>alert(1)</script>",
    "<b>bold</b><br/>",
    "<>",
    "[x](http://example.org)",
    "http://example.org/a?b=c&d=e#f",
    "a --> b",
    "a -.-> b",
    "==>",
    "|pipe|",
    "%% comment",
    "%%{init: {'theme':'dark'}}%%",
    "---",
    "--- title: x ---",
    ";",
    "a;b",
    "{}",
    "{{{",
    "}}}",
    "[[[",
    ")))",
    "((circle))",
    ">flag]",
    "[/slope/]",
    "\\",
    "\\\\",
    "ends in \\",
    '\\"',
    "\\N \\G \\n \\l",
    "@{ shape: rounded }",
    "e1@",
    ":::class",
    "$$x^2$$",
    "fa:fa-car",
    "a\nb",
    "a\r\nb",
    "a\u2028b\u2029c\x85d",
    "\0",
    "\x01\x1b[31m\x7f",
    "\ud800",
    "\ufffe\uffff",
    "\u202eright to left",
    "zero\u200bwidth",
    "日本語",
    "العربية",
    "naïve café",
    "👩‍🚀🧠🏳️‍🌈",
    "C++",
    "C#",
    ".NET",
    "src/cortex_py/graph/draw.py",
    "O'Neil & Sons, Inc.",
    "x" * 10_000,
    '"' * 10_000,
    "\\" * 10_001,
    "日" * 10_000,
]
ANY_TEXT = st.text(
    st.one_of(st.sampled_from("\"'`[](){}<>#;:|&%\\/-=.~_*@$!?\n\r\t\0 1end"), st.characters()), max_size=80
)


def _entity(number: int, name: str, type: EntityType = "Technology", mentions: int = 0) -> Entity:
    return Entity(
        id=f"id {number}", space="p", name=name, type=type, mention_count=mentions, created_at=NOW, updated_at=NOW
    )


def _edge(number: int, a: int, b: int, type: str = "Uses", confidence: float = 0.5) -> Relationship:
    return Relationship(
        id=f"r{number:03}",
        space="p",
        source_id=f"id {a}",
        target_id=f"id {b}",
        type=type,  # type: ignore[arg-type]
        confidence=confidence,
        method="test",
        recorded_at=NOW,
    )


Read = Callable[[str], dict[str, list[list[str]]]]


@pytest.fixture(scope="module")
def read_mermaid() -> Iterator[Read]:
    """Mermaid's own parser: texts of the nodes and edges that it finds, or an error."""
    engine = Engine()
    engine.start()
    worker: ThreadPoolExecutor = engine._executor
    context = engine._ctx

    def parsed(text: str) -> str:
        context.eval(
            f"globalThis.found = 'nothing'; globalThis.text = {json.dumps(text)};"
            """mermaid.parse(text).then(() => mermaid.mermaidAPI.getDiagramFromText(text)).then(diagram => {
                const nodes = [...diagram.db.getVertices().values()].map(v => [v.id, v.text, v.type || '']);
                const edges = diagram.db.getEdges().map(e => [e.start, e.end, e.text]);
                globalThis.found = JSON.stringify({type: [[diagram.type]], nodes, edges});
            }, error => { globalThis.found = 'ERROR ' + error; })"""
        )
        while context.execute_pending_job():
            pass
        return str(context.eval("globalThis.found.slice(0)"))

    def read(text: str) -> dict[str, list[list[str]]]:
        answer = worker.submit(parsed, text).result()
        assert answer.startswith("{"), answer + "\n" + text[:2000]
        found: dict[str, list[list[str]]] = json.loads(answer)
        return found

    yield read
    engine.close()


def _read_label(text: str) -> str:
    """A label as Mermaid shows it: its stand-ins for numbered signs as the signs themselves."""
    return re.sub("ﬂ°°(\\d+)¶ß", lambda found: chr(int(found[1])), text)


def _line(name: str) -> str:
    """What a drawing shows of a name that is short and holds nothing invisible."""
    return " ".join(name.split()) or "(unnamed)"


# -- Mermaid -----------------------------------------------------------------------------------------


def test_the_parser_in_use_does_refuse_what_is_no_mermaid(read_mermaid: Read) -> None:
    with pytest.raises(AssertionError, match="Parse error"):
        read_mermaid('flowchart LR\n  n0["a"b"]\n')


@pytest.mark.slow
@each("part", range(0, len(HOSTILE), 12))
def test_mermaid_reads_every_hostile_label(read_mermaid: Read, part: int) -> None:
    names = HOSTILE[part : part + 12]
    entities = [_entity(i, name, ENTITY_TYPES[i % 5]) for i, name in enumerate(names)]
    edges = [_edge(i, i, i + 1, RELATIONSHIP_TYPES[i % 9]) for i in range(len(names) - 1)]
    found = read_mermaid(mermaid(entities, edges))
    assert found["type"] == [["flowchart-v2"]]
    assert len(found["nodes"]) == len(names)
    assert len(found["edges"]) == len(names) - 1
    texts = {_read_label(node[1]) for node in found["nodes"]}
    for name in names:
        if name.isprintable() and len(name) < 60:
            assert _line(name) in texts
    assert all(len(text) <= 60 for text in texts)


@given(name=ANY_TEXT, type=st.sampled_from(ENTITY_TYPES))
def test_mermaid_reads_any_label(read_mermaid: Read, name: str, type: EntityType) -> None:
    found = read_mermaid(mermaid([_entity(0, name, type), _entity(1, "other")], [_edge(0, 0, 1)], centre="id 0"))
    assert len(found["nodes"]) == 2
    assert [edge[:2] for edge in found["edges"]] == [["n0", "n1"]]
    if name.isprintable() and len(name) < 60:
        assert _read_label(found["nodes"][0][1]) == _line(name)


def test_mermaid_draws_hostile_labels_as_text(read_mermaid: Read) -> None:
    """Not only read but drawn: nothing of a name becomes an element, a list or a link."""
    import mermaidx

    names = ["<script>alert(1)</script>", "1. first", "- item", "__init__.py", "#quot;&lt;", "[x](http://example.org)"]
    drawing = mermaid([_entity(i, name) for i, name in enumerate(names)], [])
    svg = str(mermaidx.render(drawing).svg())
    assert "<script" not in svg
    assert "Unsupported markdown" not in svg
    assert "<a " not in svg
    shown = html.unescape(re.sub("<[^>]*>", "", svg))
    for name in names:
        assert name in shown


def test_an_empty_graph_is_a_drawing_too(read_mermaid: Read) -> None:
    assert read_mermaid(mermaid([], []))["nodes"] == []
    assert pygraphviz.AGraph(string=dot([], [])).nodes() == []
    assert json.loads(as_json([], [])) == {"nodes": [], "edges": [], "left_out": 0}


def test_a_drawing_stays_within_what_mermaid_draws() -> None:
    entities = [_entity(i, '"' * 60) for i in range(2000)]
    edges = [_edge(i, i % 40, i // 40 % 40) for i in range(1600)]
    text = mermaid(entities, edges, limit=2000)
    assert len(text) < 50_000
    nodes = set(re.findall(r'^  (n\d+)\["', text, re.MULTILINE))
    drawn = re.findall(r'^  (n\d+) -->\|"Uses"\| (n\d+)$', text, re.MULTILINE)
    assert len(drawn) == 500
    assert {end for edge in drawn for end in edge} <= nodes
    assert len(nodes) + len(drawn) + 1 == text.count("\n")


# -- Graphviz ----------------------------------------------------------------------------------------


def _dot_text(label: str) -> str:
    return html.unescape(re.sub(r"\\(.)", r"\1", label))


def test_graphviz_reads_every_hostile_label() -> None:
    entities = [_entity(i, name, ENTITY_TYPES[i % 5]) for i, name in enumerate(HOSTILE)]
    edges = [_edge(i, i, i + 1, RELATIONSHIP_TYPES[i % 9]) for i in range(len(HOSTILE) - 1)]
    found = pygraphviz.AGraph(string=dot(entities, edges, limit=200))
    assert len(found.nodes()) == len(HOSTILE)
    assert len(found.edges()) == len(HOSTILE) - 1
    texts = {_dot_text(node.attr["label"]) for node in found.nodes()}
    for name in HOSTILE:
        if name.isprintable() and len(name) < 60:
            assert _line(name) in texts


@given(name=ANY_TEXT)
def test_graphviz_reads_any_label(name: str) -> None:
    found = pygraphviz.AGraph(string=dot([_entity(0, name), _entity(1, "other")], [_edge(0, 0, 1)], centre="id 0"))
    assert sorted(found.nodes()) == ["n0", "n1"]
    assert [tuple(edge) for edge in found.edges()] == [("n0", "n1")]
    if name.isprintable() and len(name) < 60:
        assert _dot_text(found.get_node("n0").attr["label"]) == _line(name)


# -- what is drawn -----------------------------------------------------------------------------------

GRAPH = (
    [_entity(0, "Alice", "Person"), _entity(1, "Acme", "Organization"), _entity(2, "Rust"), _entity(3, "Go")],
    [_edge(0, 0, 1, "WorksAt"), _edge(1, 0, 2), _edge(2, 1, 3), _edge(3, 0, 9)],
)


def _json(**options: object) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = json.loads(as_json(*GRAPH, **options))  # type: ignore[arg-type]
    return found


def test_an_edge_to_what_is_not_drawn_is_not_drawn() -> None:
    assert [edge["id"] for edge in _json()["edges"]] == ["r000", "r001", "r002"]
    assert [edge["id"] for edge in _json(types=["Person", "Technology"])["edges"]] == ["r001"]
    few = _json(limit=2)
    assert [node["name"] for node in few["nodes"]] == ["Acme", "Alice"]
    assert [edge["id"] for edge in few["edges"]] == ["r000"]
    assert few["left_out"] == 2


def test_the_centre_is_drawn_first_and_what_is_near_it_next() -> None:
    assert [node["name"] for node in _json(centre="id 3")["nodes"]] == ["Go", "Acme", "Alice", "Rust"]
    assert [node["name"] for node in _json(centre="id 3", limit=1)["nodes"]] == ["Go"]
    assert [node["name"] for node in _json(centre="id 3", types=["Person"])["nodes"]] == ["Go", "Alice"]


def test_a_fact_that_is_known_twice_is_drawn_once() -> None:
    edges = [_edge(0, 0, 1, confidence=0.4), _edge(1, 0, 1, confidence=0.9), _edge(2, 1, 0)]
    found = json.loads(as_json(GRAPH[0], edges))
    assert [edge["id"] for edge in found["edges"]] == ["r001", "r002"]


def test_json_gives_a_name_whole() -> None:
    (node,) = json.loads(as_json([_entity(0, "x\n" * 5000)], []))["nodes"]
    assert node == {"id": "id 0", "name": "x\n" * 5000, "type": "Technology", "mentions": 0}


def test_a_drawing_is_the_same_whatever_the_order() -> None:
    entities, edges = GRAPH
    for picture in (mermaid, dot, as_json):
        assert picture(entities, edges) == picture(entities[::-1], edges[::-1])
