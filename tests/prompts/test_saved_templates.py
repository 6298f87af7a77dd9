"""`cortex.templates`: memories laid out as they are, found by the one recall, and nothing of them read as syntax."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cortex_py import Cortex, NewMemory
from cortex_py.core.clock import iso
from cortex_py.core.errors import (
    BadArguments,
    ContentSyntaxError,
    CortexError,
    FilterSyntaxError,
    InvalidInput,
    LimitExceeded,
    PromptNotFound,
)
from cortex_py.core.records import JsonValue, Variable
from cortex_py.parts.prompts.language.placeholders import AUTOMATIC
from cortex_py.parts.prompts.templates import Templates

from helpers import FakeClock, git
from stub_backend import StubBackend

PUBLISHED = "# {{title}}\n\n{{#each memories}}\n- **{{memory.namespace}}**: {{memory.content}}\n{{/each}}"
IDS = "{{#each memories}}\n{{memory.id}} {{memory.score}}\n{{/each}}"
TEXT = "the token rotation schedule of the gateway"


@pytest.fixture
def desk(home: Path, project: Path, clock: FakeClock) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as opened:
        yield opened


@pytest.fixture
def templates(desk: Cortex) -> Templates:
    return desk.templates


# -- the published example -------------------------------------------------------------------------


def test_the_published_example_shows_what_recall_finds(cortex: Cortex) -> None:
    cortex.memories.capture_many(
        [
            NewMemory(content="Authentication uses JWT with refresh tokens.", namespace="decisions"),
            NewMemory(content='Login pattern: OAuth2 <PKCE> & "state" {{title}}\nwith two lines', namespace="patterns"),
            NewMemory(content="The build caches wheels.", namespace="config"),
        ]
    )
    cortex.templates.save("summary", PUBLISHED)
    made = cortex.templates.render("summary", query="authentication patterns", variables={"title": "Auth"})
    hits = cortex.memories.recall("authentication patterns").results
    assert {hit.memory.namespace for hit in hits} >= {"decisions", "patterns"}
    wanted = "".join(f"- **{hit.memory.namespace}**: {hit.memory.content}\n" for hit in hits)
    assert made.output == f"# Auth\n\n{wanted}"
    assert (made.memories, made.format, made.warnings) == (len(hits), "markdown", ())
    assert made.saved.variables == (Variable("title", required=False),)


def test_a_query_fills_no_list_with_what_it_is_not_about(cortex: Cortex) -> None:
    about, other = "We use JWT tokens for authentication.", "Run VACUUM on the SQLite file every Sunday night."
    cortex.memories.capture_many([NewMemory(content=about), NewMemory(content=other)])
    cortex.templates.save("all", "{{memories}} ({{total_count}})")
    assert about in cortex.templates.render("all", query="authentication patterns").output
    assert other not in cortex.templates.render("all", query="authentication patterns").output
    assert "(1)" in cortex.templates.render("all", query="authentication patterns").output
    assert other in cortex.templates.render("all").output


def test_scores_and_order_are_those_of_recall(cortex: Cortex) -> None:
    cortex.memories.capture_many(NewMemory(content=f"{TEXT}, take {n}{' of the gateway' * n}") for n in range(6))
    cortex.templates.save("ids", IDS)
    for query, limit in (("token rotation", None), ("gateway take 3", 4), ("schedule", 1)):
        hits = cortex.memories.recall(query, limit=limit).results
        shown = cortex.templates.render("ids", query=query, limit=limit).output.split()
        assert shown == [word for hit in hits for word in (hit.memory.id, json.dumps(round(hit.score, 4)))]
        assert len(hits) == min(limit or 6, 6)
    document = json.loads(cortex.templates.render("ids", query="schedule", limit=2, format="json").output)
    assert [one["id"] for one in document["data"]["memories"]] == [
        hit.memory.id for hit in cortex.memories.recall("schedule", limit=2).results
    ]


def test_without_a_query_the_newest_come_first_and_have_no_score(desk: Cortex, clock: FakeClock) -> None:
    made = []
    for number in range(3):
        made.append(desk.memories.capture(f"note {number}").id)
        clock.advance(minutes=1)
    desk.templates.save("ids", IDS)
    for query in (None, "", "  "):
        assert desk.templates.render("ids", query=query).output.split() == made[::-1]
    assert desk.templates.render("ids", limit=1).output.split() == made[2:]


# -- nothing leaks ---------------------------------------------------------------------------------

FILTERS = {
    "ns:decisions": ({"namespace": "decisions"}, {"namespace": "patterns"}),
    "-ns:patterns": ({"namespace": "decisions"}, {"namespace": "patterns"}),
    "tag:a tag:b": ({"tags": ("a", "b")}, {"tags": ("a",)}),
    "tag:team-*": ({"tags": ("team-red",)}, {"tags": ("red-team",)}),
    "since:1d": ({}, {"created_at": "old"}),
    "source:notes.md": ({"source": "notes.md"}, {"source": "other.md"}),
    "branch:feature/*": ({"git_branch": "feature/x"}, {"git_branch": "main"}),
    "path:src/**/*.py": ({"path": "src/a/b.py"}, {"path": "lib/a/b.py"}),
    "status:archived": ({"status": "archived"}, {"status": "active"}),
    "user:ann": ({"user_id": "ann"}, {"user_id": "bob"}),
    "": ({"status": "pending"}, {"status": "superseded"}),
}


def _memory(clock: FakeClock, fields: dict[str, Any], word: str) -> NewMemory:
    values = {**fields, "content": f"{TEXT} {word}"}
    if values.get("created_at") == "old":
        values["created_at"] = clock.now().replace(year=2020)
    return NewMemory(**values)


@pytest.mark.usefixtures("retrieval")
@pytest.mark.parametrize("query", ["token rotation", None])
@pytest.mark.parametrize("filter", FILTERS)
def test_only_what_the_filter_allows_is_in_any_form_of_the_output(
    desk: Cortex, clock: FakeClock, filter: str, query: str | None
) -> None:
    inside, outside = FILTERS[filter]
    wanted, unwanted = desk.memories.capture_many([_memory(clock, inside, "seen"), _memory(clock, outside, "hidden")])
    dead = desk.memories.capture_many([_memory(clock, inside, "deleted")])[0]
    desk.memories.delete(dead.id)
    desk.templates.save("all", "{{memories}} {{total_count}} {{namespace_counts}} {{#each memories}}{{this}}{{/each}}")
    for format in ("markdown", "json", "xml"):
        made = desk.templates.render("all", query=query, filter=filter, format=format)
        assert (made.memories, wanted.id in made.output, "rotation schedule of the gateway seen" in made.output) == (
            1,
            True,
            True,
        )
        for other in (unwanted, dead):
            assert other.id not in made.output
        assert "hidden" not in made.output
        assert "deleted" not in made.output
    data = json.loads(desk.templates.render("all", query=query, filter=filter, format="json").output)["data"]
    assert (data["total_count"], data["namespace_counts"]) == (1, {wanted.namespace: 1})


def test_other_projects_and_people_are_not_in_it(home: Path, tmp_path: Path, desk: Cortex) -> None:
    desk.memories.capture("our own words")
    desk.memories.capture("words for all", domain="org")
    other = tmp_path / "other"
    other.mkdir()
    with Cortex.open(home, project=other, backend=StubBackend(), user_id="bob") as beside:
        beside.memories.capture("foreign words")
        beside.memories.capture("foreign words of bob", domain="user")
        beside.templates.save("all", "{{memories}} {{statistics}}", domain="org")
        assert "our own" not in beside.templates.render("all", query="words").output
    for query in ("words", "foreign words", None):
        output = desk.templates.render("all", query=query).output
        assert "our own words" in output
        assert "words for all" in output
        assert "foreign" not in output
        assert '"total_count": 2' in output


# -- variables -------------------------------------------------------------------------------------


def test_what_cortex_knows_is_filled_in(home: Path, project: Path, clock: FakeClock) -> None:
    git(project, "init", "-q", "-b", "trunk")
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as cortex:
        cortex.memories.capture_many(
            [NewMemory(content=f"note {n}", namespace="decisions", tags=("x",)) for n in range(3)]
            + [NewMemory(content="another", namespace="apis")]
        )
        cortex.templates.save("facts", "".join(f"{name}={{{{{name}}}}}\n" for name in AUTOMATIC))
        assert cortex.templates.get("facts").variables == ()
        made = cortex.templates.render("facts", filter="ns:decisions", limit=2, format="json")
        data = json.loads(made.output)["data"]
        assert set(data) == set(AUTOMATIC)
        assert (data["project"], data["branch"], data["now"]) == (cortex.project.name, "trunk", iso(clock.now()))
        assert [one["namespace"] for one in data["memories"]] == ["decisions"] * 2
        assert (data["total_count"], data["namespace_counts"]) == (3, {"decisions": 2})
        statistics = data["statistics"]
        status = cortex.memories.status()
        assert (statistics["total_count"], statistics["namespace_counts"]) == (4, {"decisions": 3, "apis": 1})
        assert statistics["top_tags"] == [{"tag": "x", "count": 3}]
        assert statistics["recent_topics"] == list(status.recent_topics)
        assert made.warnings == ()
        text = cortex.templates.render("facts", filter="ns:decisions", limit=1).output
        assert text.startswith("memories=- **decisions**: note ")
        assert f"\nproject={cortex.project.name}\nbranch=trunk\nnow={iso(clock.now())}\n" in text


def test_given_values_come_before_defaults_and_those_before_what_cortex_knows(desk: Cortex) -> None:
    desk.memories.capture("a note")
    content = "{{project}}|{{now}}|{{title}}|{{#each memories}}{{memory.content}}{{/each}}"
    stored = desk.templates.save("note", content, variables={"title": "T", "project": "Default"})
    assert stored.warnings == ()
    assert {one.name: one.default for one in stored.saved.variables} == {"title": "T", "project": "Default"}
    first, *_ = desk.templates.render("note", variables={"now": "today"}).output.split("|")
    assert first == "Default"
    made = desk.templates.render("note", variables={"now": "today", "title": "", "project": "Given"})
    assert made.output == "Given|today||a note"
    own = desk.templates.render("note", variables={"memories": [{"content": "mine"}], "now": ""})
    assert (own.output, own.memories) == ("Default||T|mine", 0)


def test_variables_inside_of_lists_are_variables_too(desk: Cortex) -> None:
    desk.memories.capture("a note", tags=["x"])
    content = "{{#each memories}}{{project}} {{mark}} {{tags | join}} {{other}}{{/each}}"
    stored = desk.templates.save("note", content, variables={"mark": "*"})
    assert (stored.warnings, [one.name for one in stored.saved.variables]) == ((), ["mark"])
    made = desk.templates.render("note")
    assert made.output == f"{desk.project.name} * x "
    assert made.warnings == ("No value was given for other.",)


def test_what_nobody_gives_is_empty_and_told(templates: Templates) -> None:
    templates.save("note", "<{{a}}><{{b}}><{{c}}>{{#if d}}yes{{/if}}", variables={"b": "B"})
    made = templates.render("note", variables={"unknown": 1})
    assert made.output == "<><B><>"
    assert made.warnings == ("No value was given for a, c.",)
    assert templates.render("note", variables={"a": None, "c": ""}).warnings == ()


def test_warnings_of_the_recall_are_passed_on(desk: Cortex) -> None:
    desk.templates.save("note", "{{memories}}{{a}}")
    warned = desk.memories.recall("x", filter="plain").warnings
    assert warned
    assert desk.templates.render("note", query="x", filter="plain").warnings == (*warned, "No value was given for a.")


# -- saving ----------------------------------------------------------------------------------------


def test_templates_are_kept_like_prompts_and_apart_from_them(desk: Cortex, clock: FakeClock) -> None:
    templates = desk.templates
    templates.save("note", "one {{a}}", tags=["X"], description="d")
    clock.advance(hours=1)
    stored = templates.save("note", "two {{#each memories}}{{this}}{{/each}}")
    assert (stored.saved.version, stored.saved.variables, stored.saved.kind) == (2, (), "template")
    templates.save("note", "of the user", domain="user")
    assert [(one.saved.domain, one.shadowed_by) for one in templates.list().items] == [
        ("project", None),
        ("user", "project"),
    ]
    assert templates.get("note", version=1).content == "one {{a}}"
    assert [one.version for one in templates.versions("note")] == [1, 2]
    assert (templates.list(tags=["x"]).total, desk.prompts.list().total) == (0, 0)
    templates.render("note")
    assert (templates.get("note").uses, templates.get("note").used_at) == (1, clock.now())
    assert templates.delete("note", domain="project").version == 2
    assert templates.render("note").output == "of the user"
    templates.delete("note", domain="user")
    with pytest.raises(PromptNotFound):
        templates.render("note")


def test_a_faulty_template_is_refused_with_all_its_faults(templates: Templates) -> None:
    templates.save("note", "old")
    with pytest.raises(ContentSyntaxError) as caught:
        templates.save("note", "{{#each memories}}\n{{a b}}\n{{x | nofilter}}\n")
    assert [one.line for one in caught.value.faults] == [1, 2, 3]
    with pytest.raises(InvalidInput):
        templates.save("many", "".join(f"{{{{v{n}}}}}" for n in range(101)))
    with pytest.raises(LimitExceeded):
        templates.save("deep", "{{#if a}}" * 17 + "{{/if}}" * 17)
    assert [(one.saved.name, one.saved.version) for one in templates.list().items] == [("note", 1)]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"format": "pdf"}, InvalidInput),
        ({"format": "\ud800"}, InvalidInput),
        ({"limit": 0}, InvalidInput),
        ({"limit": 2**70}, InvalidInput),
        ({"filter": "since:whenever"}, FilterSyntaxError),
        ({"filter": "\ud800"}, CortexError),
        ({"domain": "planet"}, InvalidInput),
        ({"variables": {"a": float("nan")}}, InvalidInput),
        ({"variables": {"a": "\ud800"}}, InvalidInput),
        ({"variables": {"a": ["\udfff"]}}, InvalidInput),
        ({"variables": {"a": "x" * 1_000_001}}, LimitExceeded),
        ({"variables": {"a": [[]] * 600_000}}, LimitExceeded),
    ],
    ids=lambda one: repr(one)[:30],
)
def test_what_cannot_be_rendered_is_refused_and_not_counted(
    templates: Templates, wrong: dict[str, Any], error: type[CortexError]
) -> None:
    templates.save("note", "{{a}}{{memories}}")
    with pytest.raises(error):
        templates.render("note", **wrong)
    assert templates.get("note").uses == 0


def test_a_value_too_deep_to_be_printed_is_refused(templates: Templates) -> None:
    value: JsonValue = 1
    for _ in range(100_000):
        value = [value]
    templates.save("note", "{{a}}")
    with pytest.raises(InvalidInput):
        templates.render("note", variables={"a": value})
    value = 1
    for _ in range(200):
        value = [value]
    for format in ("markdown", "json", "xml"):
        with pytest.raises(LimitExceeded):
            templates.render("note", variables={"a": value}, format=format)


# -- documents -------------------------------------------------------------------------------------


def test_json_and_xml_hold_the_text_and_what_it_was_made_of(desk: Cortex) -> None:
    memory = desk.memories.capture("a <b> & {{c}} ]]> note", tags=["x", "y"], namespace="apis")
    desk.templates.save("note", "{{title}}: {{#each memories}}{{memory.content}}{{/each}}")
    given: dict[str, JsonValue] = {"title": "1 < 2", "unused": 7}
    text = "1 < 2: a <b> & {{c}} ]]> note"
    document = json.loads(desk.templates.render("note", variables=given, format="json").output)
    assert {key: document[key] for key in ("template", "version", "content")} == {
        "template": "note",
        "version": 1,
        "content": text,
    }
    assert document["data"]["title"] == "1 < 2"
    (item,) = document["data"]["memories"]
    assert {key: item[key] for key in ("id", "content", "namespace", "tags", "score", "domain", "version")} == {
        "id": memory.id,
        "content": memory.content,
        "namespace": "apis",
        "tags": ["x", "y"],
        "score": None,
        "domain": "project",
        "version": 1,
    }
    assert item["created_at"] == iso(memory.created_at)
    root = ElementTree.fromstring(desk.templates.render("note", variables=given, format="xml").output)
    assert (root.findtext("template"), root.findtext("version"), root.findtext("content")) == ("note", "1", text)
    assert root.findtext("data/memories/memory/content") == memory.content
    assert [one.text for one in root.findall("data/memories/memory/tags/tag")] == ["x", "y"]


EVERYTHING = (
    "{{memories}}\n{{#each memories}}{{memory.content}}|{{content | truncate 9}}|{{content | json}}|{{tags | join}}"
    "|{{this}}"
    "{{#if memory.summary}}{{memory.snippet | upper}}{{/if}}{{memory.created_at | date}}{{else}}none{{/each}}{{value}}"
)
PIECES = st.sampled_from(
    [
        "{{value}}",
        "{{#each memories}}",
        "{{/each}}",
        "{{",
        "}}",
        "\\{{",
        "<![CDATA[",
        "]]>",
        "&amp;",
        "```\n",
        "\x00",
        "\ufffe",
    ]
)
CONTENTS = st.lists(
    PIECES | st.text(st.characters(exclude_categories=["Cs"]), max_size=10), min_size=1, max_size=6
).map("".join)


@settings(suppress_health_check=list(HealthCheck))
@given(content=CONTENTS.filter(str.strip), value=CONTENTS)
def test_any_memory_is_laid_out_in_every_format_and_never_read(
    desk: Cortex, clock: FakeClock, content: str, value: str
) -> None:
    clock.advance(seconds=1)
    memory = desk.memories.capture(content)
    if not desk.templates.list().total:
        desk.templates.save("all", EVERYTHING)
        desk.templates.save("plain", "<{{#each memories}}{{memory.content}}{{/each}}|{{value}}>")
    for query in (None, content):
        for format in ("markdown", "json", "xml"):
            made = desk.templates.render("all", query=query, limit=1, format=format, variables={"value": value})
            assert made.output.encode()
            if format == "json":
                assert json.loads(made.output)["data"]["value"] == value
            if format == "xml":
                assert ElementTree.fromstring(made.output).tag == "render"
    plain = desk.templates.render("plain", limit=1, variables={"value": value})
    assert plain.output == f"<{memory.content}|{value}>"


def test_a_value_outside_the_declared_choices_is_refused(cortex: Cortex) -> None:
    declared = [{"name": "tone", "choices": ["short", "long"], "default": "short"}]
    cortex.templates.save("toned", "{{tone}}", variables=declared)
    assert cortex.templates.render("toned", variables={"tone": "long"}).output == "long"
    with pytest.raises(InvalidInput, match="not one of the choices"):
        cortex.templates.render("toned", variables={"tone": "loud"})


def test_a_variable_that_its_author_requires_must_be_given_and_others_need_not(cortex: Cortex) -> None:
    cortex.templates.save("letter", "{{greeting}} {{name}}", variables=[{"name": "name", "description": "To whom"}])
    with pytest.raises(BadArguments) as caught:
        cortex.templates.render("letter")
    assert caught.value.fields == ("name",)
    made = cortex.templates.render("letter", variables={"name": "Ada"})
    assert (made.output, made.warnings) == (" Ada", ("No value was given for greeting.",))


def test_an_older_version_can_be_rendered(cortex: Cortex) -> None:
    cortex.templates.save("greeting", "Good day")
    cortex.templates.save("greeting", "Hello")
    assert cortex.templates.render("greeting", version=1).output == "Good day"
    assert cortex.templates.render("greeting").output == "Hello"
