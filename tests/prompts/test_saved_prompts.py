"""`cortex.prompts`: saving, finding, filling in and deleting, and what is refused without a trace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases import each
from cortex_py import Cortex
from cortex_py.core.errors import (
    BadArguments,
    ContentBlocked,
    ContentSyntaxError,
    ContentTooLarge,
    CortexError,
    InvalidInput,
    LimitExceeded,
    PromptNotFound,
)
from cortex_py.core.records import DOMAINS, JsonValue, Variable
from cortex_py.parts.prompts.saved_texts import Listing
from cortex_py.parts.prompts.service import Prompts
from cortex_py.session import ProjectSessions

from helpers import FakeClock, git
from old_schemas import use_schema
from stub_backend import StubBackend

TABLES = ("saved", "saved_version", "saved_tag", "saved_use", "saved_change")
TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


@pytest.fixture
def desk(home: Path, project: Path, clock: FakeClock) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as opened:
        yield opened


@pytest.fixture
def prompts(desk: Cortex) -> Prompts:
    return desk.prompts


def everything(cortex: Cortex) -> dict[str, list[tuple[object, ...]]]:
    with cortex._store.database.read() as session:
        return {table: sorted(session.rows(f"SELECT * FROM {table}"), key=repr) for table in TABLES}


def lines(listing: Listing) -> list[tuple[str, str, str | None]]:
    return [(one.saved.name, one.saved.domain, one.shadowed_by) for one in listing.items]


def nested(depth: int) -> JsonValue:
    value: JsonValue = 1
    for _ in range(depth):
        value = [value]
    return value


# -- saving and finding ----------------------------------------------------------------------------


def test_what_is_saved_is_found_as_it_was_given(prompts: Prompts, clock: FakeClock) -> None:
    content = "Review {{path}} for {{focus}}.\r\n\n  Tabs\tstay. \u2028 𝄞 \x00 end \n"
    stored = prompts.save("code-review", content, description="For reviews", tags=["Review", "code", "review"])
    assert stored.warnings == ()
    found = prompts.get("code-review")
    assert found == stored.saved
    assert (found.kind, found.name, found.domain, found.content) == ("prompt", "code-review", "project", content)
    assert (found.description, found.tags, found.version) == ("For reviews", ("Review", "code"), 1)
    assert found.variables == (Variable("path", required=None), Variable("focus", required=None))
    assert (found.created_at, found.updated_at, found.uses, found.used_at) == (clock.now(), clock.now(), 0, None)
    assert (found.path, found.redactions) == (None, ())
    page = prompts.list()
    assert (lines(page), page.total, page.problems) == ([("code-review", "project", None)], 1, ())
    assert (page.items[0].saved.content, page.items[0].saved.variables) == ("", found.variables)


def test_a_save_is_a_new_version_and_the_old_ones_stay(prompts: Prompts, clock: FakeClock) -> None:
    first = prompts.save("note", "one {{a}}", description="first", tags=["x"], variables={"a": "A"}).saved
    clock.advance(hours=1)
    second = prompts.save("note", "two {{b}}", tags=["y"]).saved
    assert (first.version, second.version) == (1, 2)
    assert (second.created_at, second.updated_at) == (first.created_at, clock.now())
    assert prompts.get("note") == second
    assert prompts.get("note", version=1) == first
    assert list(prompts.versions("note")) == [first, second]
    # The list and its tags follow the newest.
    assert prompts.list().items[0].saved.tags == ("y",)
    assert (prompts.list(tags=["x"]).total, prompts.list(tags=["y"]).total) == (0, 1)
    # The same again is a version all the same: someone saved it.
    assert prompts.save("note", "two {{b}}", tags=["y"]).saved.version == 3


def test_a_version_is_of_the_text_that_answers_for_the_name(prompts: Prompts) -> None:
    prompts.save("note", "project 1")
    for number in (1, 2):
        prompts.save("note", f"user {number}", domain="user")
    assert prompts.get("note", version=1).content == "project 1"
    assert prompts.get("note", version=2, domain="user").content == "user 2"
    with pytest.raises(PromptNotFound) as caught:
        prompts.get("note", version=2)
    assert caught.value.field == "version"
    for version in (0, -1, 2**63, 10**5000):
        with pytest.raises(InvalidInput):
            prompts.get("note", version=version)
    with pytest.raises(PromptNotFound):
        prompts.get("start-session", version=1)


def test_the_nearest_domain_answers_and_the_list_shows_what_is_hidden(prompts: Prompts) -> None:
    for domain in reversed(DOMAINS):
        prompts.save("start-session", f"of {domain}", domain=domain)
    prompts.save("alone", "x", domain="org")
    assert lines(prompts.list()) == [
        ("alone", "org", None),
        ("start-session", "project", None),
        ("start-session", "user", "project"),
        ("start-session", "org", "project"),
    ]
    builtin = next(one for one in prompts.list(domain="builtin").items if one.saved.name == "start-session")
    assert builtin.shadowed_by == "project"
    for domain in DOMAINS:
        assert prompts.get("start-session", domain=domain).content == f"of {domain}"
        assert prompts.get("start-session").domain == domain
        assert prompts.delete("start-session", domain=domain).content == f"of {domain}"
    assert prompts.get("start-session").domain == "builtin"
    assert prompts.list(domain="user").total == 0
    assert lines(prompts.list(domain=" ORG ")) == [("alone", "org", None)]


def test_what_comes_with_cortex_can_be_used_and_not_changed(desk: Cortex) -> None:
    prompts = desk.prompts
    assert prompts.list().total == 0
    page = prompts.list(domain="builtin")
    assert {one.saved.name for one in page.items} >= {"start-session", "capture-decision"}
    assert page.total == len(page.items)
    assert all((one.saved.domain, one.saved.version) == ("builtin", None) for one in page.items)
    assert "PostgreSQL" in prompts.run("capture-decision", {"decision": "We use PostgreSQL."}).content
    assert prompts.get("capture-decision").uses == 1
    before = everything(desk)
    for act in (
        lambda: prompts.delete("capture-decision", domain="builtin"),
        lambda: prompts.save("capture-decision", "x", domain="builtin"),
    ):
        with pytest.raises(InvalidInput) as caught:
            act()
        assert caught.value.field == "domain"
    with pytest.raises(PromptNotFound):
        prompts.delete("capture-decision", domain="project")
    assert everything(desk) == before


def test_projects_are_apart_and_what_is_personal_is_everywhere(home: Path, tmp_path: Path, desk: Cortex) -> None:
    for domain in DOMAINS:
        desk.prompts.save(f"of-{domain}", "x", domain=domain)
    desk.templates.save("of-project", "a template of the same name")
    other = tmp_path / "other"
    other.mkdir()
    with Cortex.open(home, project=other, backend=StubBackend()) as beside:
        assert lines(beside.prompts.list()) == [("of-org", "org", None), ("of-user", "user", None)]
        assert (beside.templates.list().total, desk.templates.list().total) == (0, 1)
        for act in (beside.prompts.get, beside.prompts.run, beside.prompts.versions, beside.prompts.export):
            with pytest.raises(PromptNotFound):
                act("of-project")
        with pytest.raises(PromptNotFound):
            beside.prompts.delete("of-project", domain="project")
        assert [one.name for one in beside.prompts.visible() if one.domain != "builtin"] == ["of-org", "of-user"]
        assert "of-project" in {one.name for one in desk.prompts.visible()}
    with Cortex.open(home, project=desk.project.root or "", backend=StubBackend(), user_id="bob") as bob:
        assert lines(bob.prompts.list()) == [("of-org", "org", None), ("of-project", "project", None)]


def test_a_working_tree_is_one_project_from_every_folder_in_it(home: Path, project: Path) -> None:
    git(project, "init", "-q")
    (project / "deep" / "er").mkdir(parents=True)
    (project / ".cortex" / "prompts").mkdir(parents=True)
    (project / ".cortex" / "prompts" / "shared.md").write_text("from a file")
    with Cortex.open(home, project=project / "deep" / "er", backend=StubBackend()) as cortex:
        assert cortex.prompts.get("shared").content == "from a file"
        cortex.prompts.save("kept", "x")
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        assert cortex.prompts.get("kept").content == "x"


def test_all_tags_must_fit_whatever_their_case(prompts: Prompts) -> None:
    prompts.save("both", "x", tags=["Größe", "API"])
    prompts.save("one", "x", tags=["api"], domain="user")
    prompts.save("none", "x")
    assert [one[0] for one in lines(prompts.list(tags=["api"]))] == ["both", "one"]
    assert [one[0] for one in lines(prompts.list(tags=["API", "GRÖSSE"]))] == ["both"]
    assert prompts.list(tags=["api", "no"]).total == 0
    assert prompts.list(tags=[" "]).total == 3
    assert prompts.list(tags=["memory"], domain="builtin").total > 0
    assert prompts.list(tags=["memory", "api"], domain="builtin").total == 0


def test_pages_are_parts_of_one_order(prompts: Prompts) -> None:
    for number in range(7):
        prompts.save(f"p-{number}", "x", domain=DOMAINS[number % 3])
        prompts.save("same", "x", domain=DOMAINS[number % 3])
    whole = lines(prompts.list())
    assert len(whole) == 10
    assert whole == sorted(whole, key=lambda one: (one[0], DOMAINS.index(one[1])))  # type: ignore[arg-type]
    for size in (1, 3, 10, 1_000):
        pages = [prompts.list(limit=size, offset=offset) for offset in range(0, 12, size)]
        assert [one for page in pages for one in lines(page)] == whole
        assert {page.total for page in pages} == {10}
    for wrong in ({"limit": 0}, {"limit": 1_001}, {"limit": 2**70}, {"offset": -1}, {"offset": 2**70}):
        with pytest.raises(InvalidInput):
            prompts.list(**wrong)  # type: ignore[arg-type]


def test_deleting_takes_all_versions_and_needs_the_domain(desk: Cortex, clock: FakeClock) -> None:
    prompts = desk.prompts
    prompts.save("note", "one", tags=["x"])
    prompts.save("note", "two")
    prompts.save("note", "personal", domain="user")
    prompts.run("note")
    with pytest.raises(TypeError):
        prompts.delete("note")  # type: ignore[call-arg]
    gone = prompts.delete("note", domain="project")
    assert (gone.content, gone.version) == ("two", 2)
    assert prompts.get("note").domain == "user"
    for act in (lambda: prompts.delete("note", domain="project"), lambda: prompts.get("note", domain="project")):
        with pytest.raises(PromptNotFound):
            act()
    prompts.delete("note", domain="global")
    left = everything(desk)
    assert {table: rows for table, rows in left.items() if rows and table != "saved_change"} == {}
    assert (prompts.save("note", "anew").saved.version, prompts.get("note").uses) == (1, 0)


# -- variables -------------------------------------------------------------------------------------


def test_variables_are_declared_as_a_list_or_by_name(prompts: Prompts) -> None:
    content = "{{b}} {{a}} {{c}} {{d}}\n```\n{{not_me}}\n```\n"
    listed = [
        {"name": "a", "description": "what", "default": "A"},
        {"name": "b", "choices": ["x", "y"]},
        {"name": "c", "required": False},
    ]
    wanted = (
        Variable("b", choices=("x", "y")),
        Variable("a", "what", "A", required=False),
        Variable("c", required=False),
        Variable("d", required=None),
    )
    assert prompts.save("listed", content, variables=listed).saved.variables == wanted
    by_name = {"a": {"description": "what", "default": "A"}, "b": {"choices": ("x", "y")}, "c": {"required": False}}
    assert prompts.save("named", content, variables=by_name).saved.variables == wanted
    assert prompts.save("made", content, variables=wanted).saved.variables == wanted
    assert prompts.save("short", "{{a}} {{b}}", variables={"a": [1, {"x": None}]}).saved.variables == (
        Variable("a", default=[1, {"x": None}], required=False),
        Variable("b", required=None),
    )
    assert prompts.save("texts", "{{a}}", variables=["a"]).saved.variables == (Variable("a"),)


def test_a_declaration_of_what_does_not_occur_is_left_out_and_told(prompts: Prompts) -> None:
    stored = prompts.save("note", "{{a}}\n~~~\n{{code}}\n~~~", variables=["code", "a", "other"])
    assert stored.saved.variables == (Variable("a"),)
    assert [one.split("'")[1] for one in stored.warnings] == ["code", "other"]


@each(
    "variables",
    [
        "a",
        7,
        b"a",
        [7],
        [{"description": "no name"}],
        [{"name": 7}],
        [{"name": "a", "odd": 1}],
        [{"name": "a", "required": "yes"}],
        [{"name": "a", "description": 7}],
        [{"name": "a", "description": " "}],
        [{"name": "a", "choices": "xy"}],
        [{"name": "a", "choices": [1]}],
        [{"name": "a", "choices": [""]}],
        [{"name": "a", "choices": ["\ud800"]}],
        [{"name": "a", "choices": [str(n) for n in range(101)]}],
        [{"name": "a", "choices": ["x"], "default": "y"}],
        ["a", "a"],
        ["a b"],
        [""],
        ["system_a"],
        ["\ud800"],
        ["x" * 1_000_000],
        [f"v{n}" for n in range(101)],
        {7: "x"},
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": object()},
        {"a": {"default": b"x"}},
        {"a": {"default": "\ud800"}},
        {"a": {"default": {"k": "\udfff"}}},
        {"a": {"default": "x" * 20_001}},
        {"a": {"default": 10**5_000}},
        {"a": {"default": 10**4_000}},
        {"a": {"default": nested(29)}},
        {"a": {"default": nested(500)}},
        {"a": {"default": nested(100_000)}},
        {"a": TOKEN},
    ],
    ids=lambda value: repr(value)[:40] if not isinstance(value, dict) else "by name",
)
def test_declarations_that_cannot_be_kept_change_nothing(desk: Cortex, variables: Any) -> None:
    desk.prompts.save("note", "{{a}}")
    before = everything(desk)
    with pytest.raises((InvalidInput, ContentBlocked)):
        desk.prompts.save("note", "{{a}} {{b}}", variables=variables)
    assert everything(desk) == before


def test_a_default_at_the_bounds_is_kept_and_can_be_taken_along(prompts: Prompts) -> None:
    for number, default in enumerate((nested(28), 2**1000, "", "x" * 19_999, {"a": [None, True, 1.5, "{{a}}"]})):
        saved = prompts.save(f"d-{number}", "{{a}}", variables={"a": {"default": default}}).saved
        assert saved.variables[0].default == default
        for format in ("markdown", "yaml", "json"):
            assert prompts.export(saved.name, format=format)


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["", "A", "a_b", "a b", "-a", "a-", "a--b", "ä", "a\n", "a\x00", "\ud800", "../a", "x" * 65, "x" * 1_000_000, "١"],
    ids=lambda name: repr(name)[:20],
)
def test_only_kebab_case_is_a_name(desk: Cortex, name: str) -> None:
    before = everything(desk)
    with pytest.raises(InvalidInput) as caught:
        desk.prompts.save(name, "x")
    assert caught.value.field == "name"
    assert len(str(caught.value)) < 300
    assert everything(desk) == before
    for act in (
        lambda: desk.prompts.get(name),
        lambda: desk.prompts.run(name),
        lambda: desk.prompts.delete(name, domain="user"),
    ):
        with pytest.raises(PromptNotFound):
            act()


@pytest.mark.parametrize("name", ["a", "7", "a-1-b", "x" * 64])
def test_kebab_case_is_a_name(prompts: Prompts, name: str) -> None:
    assert prompts.save(name, "x").saved == prompts.get(name)


@pytest.mark.parametrize(
    "wrong",
    [
        {"content": ""},
        {"content": " \n"},
        {"content": "\ud800"},
        {"content": "x" * 200_001},
        {"content": "".join(f"{{{{v{n}}}}}" for n in range(101))},
        {"content": "".join(f"{{{{v{n}}}}}" for n in range(20_000))},
        {"description": " "},
        {"description": "\ud800"},
        {"description": "x" * 2_001},
        {"domain": "planet"},
        {"domain": ""},
        {"tags": ["x" * 129]},
        {"tags": ["\ud800"]},
        {"tags": [f"t{n}" for n in range(65)]},
        {"tags": [7]},
        {"tags": "one"},
    ],
    ids=lambda wrong: repr(wrong)[:40],
)
def test_bad_input_changes_nothing(desk: Cortex, wrong: dict[str, Any]) -> None:
    desk.prompts.save("note", "old")
    before = everything(desk)
    with pytest.raises(InvalidInput) as caught:
        desk.prompts.save(**{"name": "note", "content": "new {{a}}", **wrong})
    assert caught.value.field == next(iter(wrong)).removesuffix("s") or caught.value.field == next(iter(wrong))
    assert len(str(caught.value)) < 500
    assert everything(desk) == before


def test_faulty_placeholders_are_all_told_with_their_places_and_nothing_is_saved(desk: Cortex) -> None:
    before = everything(desk)
    with pytest.raises(ContentSyntaxError) as caught:
        desk.prompts.save("note", "{{ok}} {{1}}\n{{cortex_x}}\n```\n{{2}}\n```\n}} {{")
    assert [(one.line, one.column) for one in caught.value.faults] == [(1, 8), (2, 1), (6, 1), (6, 4)]
    assert everything(desk) == before


def test_as_much_as_is_allowed_is_kept(prompts: Prompts) -> None:
    content = "".join(f"{{{{v{n}}}}}" for n in range(100))
    content += "𝄞" * (200_000 - len(content))
    saved = prompts.save("large", content).saved
    assert (prompts.get("large").content, len(saved.variables)) == (content, 100)


ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20) | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(), max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)
FIELDS = st.dictionaries(st.sampled_from(["description", "default", "required", "choices", "x"]), ANYTHING, max_size=4)
TEXTS = st.text(st.sampled_from("{}ab \\`\n\ud800\x00é"), max_size=12)


@settings(suppress_health_check=list(HealthCheck))
@given(
    name=st.sampled_from(["a", "b-c"]) | TEXTS,
    content=st.sampled_from(["{{a}}", "{{a}}{{b}}"]) | TEXTS,
    variables=st.dictionaries(st.sampled_from(["a", "b"]), FIELDS, max_size=2) | ANYTHING,
    values=st.dictionaries(st.sampled_from(["a", "b"]) | TEXTS, ANYTHING, max_size=3),
)
def test_whatever_is_given_is_done_or_refused(
    desk: Cortex, name: str, content: str, variables: object, values: dict[str, JsonValue]
) -> None:
    before = everything(desk)
    try:
        saved = desk.prompts.save(name, content, variables=variables).saved
    except CortexError:
        assert everything(desk) == before
        return
    assert desk.prompts.get(name) == saved
    assert saved.content == content
    try:
        filled = desk.prompts.run(name, values)
    except InvalidInput:
        return
    assert filled.content.encode()


# -- filling in ------------------------------------------------------------------------------------


def test_given_values_come_before_defaults(prompts: Prompts) -> None:
    prompts.save("greet", "{{word}}, {{name}}{{end}}!", variables={"word": "Hello", "end": {"required": False}})
    filled = prompts.run("greet", {"name": "Zoë"})
    assert (filled.content, dict(filled.values)) == ("Hello, Zoë!", {"word": "Hello", "name": "Zoë"})
    assert (filled.saved.name, filled.warnings) == ("greet", ())
    assert prompts.run("greet", {"name": "Zoë", "word": "", "end": "."}).content == ", Zoë.!"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", ""),
        (" \n", " \n"),
        (None, "null"),
        (True, "true"),
        (0, "0"),
        (1.5, "1.5"),
        ([1, "é", None], '[1, "é", null]'),
        ({"a": {"b": []}}, '{"a": {"b": []}}'),
        ("a\x00b", "a\x00b"),
        ("{{b}} \\{{b}} {{a}}", "{{b}} \\{{b}} {{a}}"),
        (["{{b}}"], '["{{b}}"]'),
        ("```\n{{b}}", "```\n{{b}}"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_values_stand_as_text_or_json_and_are_never_read_again(prompts: Prompts, value: JsonValue, text: str) -> None:
    prompts.save("note", "<{{a}}>{{b}}<{{ a }}>\n```\n{{a}}\n```")
    assert prompts.run("note", {"a": value, "b": "B"}).content == f"<{text}>B<{text}>\n```\n{{{{a}}}}\n```"
    prompts.save("held", "<{{a}}>{{b}}", variables={"a": {"default": value, "required": False}})
    assert prompts.run("held", {"b": "B"}).content == f"<{'' if value is None else text}>B"


def test_all_that_is_missing_is_told_at_once(desk: Cortex) -> None:
    prompts = desk.prompts
    needed = {"c": {"required": True}, "b": {"description": "why"}, "d": "D", "e": {"required": False}}
    prompts.save("note", "{{c}} {{a}} {{b}} {{d}} {{e}} {{f}}", variables=needed)
    before = everything(desk)
    with pytest.raises(BadArguments) as caught:
        prompts.run("note", {"a": "A", "unknown": "x"})
    assert caught.value.fields == ("c", "b")
    assert "c, b" in str(caught.value)
    with pytest.raises(BadArguments) as caught:
        prompts.run("note", {"a": "A"}, all_of_them=True)
    assert caught.value.fields == ("c", "b", "f")
    assert everything(desk) == before


def test_a_variable_that_nobody_declared_stays_until_it_has_a_value(prompts: Prompts) -> None:
    prompts.save("note", "{{ a }} \\{{b}} {{c}}{{d}} {{a}}", variables={"d": {"required": False}})
    filled = prompts.run("note", {"c": "{{a}}"})
    assert filled.content == "{{a}} {{b}} {{a}} {{a}}"
    assert (filled.values, filled.warnings) == ({"c": "{{a}}"}, ("No value was given for a.",))
    assert prompts.run("note", {"a": "A", "c": ""}).warnings == ()


@pytest.mark.parametrize("how", ["get", "run", "versions", "delete"])
def test_a_name_may_have_the_prefix_of_the_server(prompts: Prompts, how: str) -> None:
    assert prompts.save("subcog:note", "Hello").saved.name == "note"
    {
        "get": lambda: prompts.get("subcog:note"),
        "run": lambda: prompts.run("subcog:note"),
        "versions": lambda: prompts.versions("subcog:note"),
        "delete": lambda: prompts.delete("subcog:note", domain="project"),
    }[how]()
    for other in ("subcog:subcog:note", "cortex:note", " subcog:note", "subcog:"):
        with pytest.raises(PromptNotFound):
            prompts.get(other)


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("-inf"), object(), b"x", "\ud800", ["\udfff"], {"\ud800": 1}, nested(100_000), 10**5_000],
    ids=lambda value: repr(value)[:20] if isinstance(value, str | float) else type(value).__name__,
)
def test_values_that_are_no_text_and_no_json_are_refused(desk: Cortex, value: Any) -> None:
    desk.prompts.save("note", "{{a}}")
    before = everything(desk)
    with pytest.raises(InvalidInput):
        desk.prompts.run("note", {"a": value})
    with pytest.raises(InvalidInput):
        desk.prompts.run("note", {"a": [value]})
    assert everything(desk) == before


def test_a_result_beyond_all_measure_is_refused(desk: Cortex) -> None:
    desk.prompts.save("note", "{{a}}" * 1_000)
    with pytest.raises(LimitExceeded):
        desk.prompts.run("note", {"a": "x" * 1_001})
    with pytest.raises(ContentTooLarge):
        desk.prompts.run("note", {"a": "𝄞" * 1_000_001})
    assert desk.prompts.get("note").uses == 0


def test_only_the_choices_are_taken(prompts: Prompts) -> None:
    prompts.save("note", "{{a}}", variables=[{"name": "a", "choices": ["x", "2"], "default": "x"}])
    assert prompts.run("note").content == "x"
    assert prompts.run("note", {"a": 2}).content == "2"
    for wrong in ("X", "", "x ", None):
        with pytest.raises(InvalidInput) as caught:
            prompts.run("note", {"a": wrong})
        assert "Choose one of x, 2." in str(caught.value)
    prompts.save("free", "<{{a}}>", variables=[{"name": "a", "choices": ["x"], "required": False}])
    assert prompts.run("free").content == "<>"


def test_values_that_nothing_asks_for_are_told(prompts: Prompts) -> None:
    prompts.save("note", "plain {{a}}")
    filled = prompts.run("note", {"a": "A", "\ud800": "x", "y" * 1_000: "x"})
    assert filled.content == "plain A"
    assert len(filled.warnings) == 2
    assert all(len(one.encode()) < 200 for one in filled.warnings)
    assert len(prompts.run("note", {"a": "A", **{f"v{n}": "" for n in range(100_000)}}).warnings) == 20
    with pytest.raises(PromptNotFound):
        prompts.run("unknown")
    with pytest.raises(PromptNotFound):
        prompts.run("note", {"a": "A"}, domain="user")


def test_uses_are_counted_of_what_was_used(prompts: Prompts, clock: FakeClock) -> None:
    prompts.save("note", "x")
    prompts.save("note", "y", domain="user")
    for _ in range(3):
        clock.advance(minutes=1)
        prompts.run("note")
    prompts.run("note", domain="user")
    assert (prompts.get("note").uses, prompts.get("note").used_at) == (3, clock.now())
    assert [one.saved.uses for one in prompts.list().items] == [3, 1]
    assert prompts.save("note", "z").saved.uses == 3
    assert prompts.get("note").updated_at == clock.now()


def test_what_a_variable_may_be_is_suggested(home: Path, project: Path, clock: FakeClock) -> None:
    git(project, "init", "-q", "-b", "feature/one")
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as cortex:
        cortex.memories.capture("a note", tags=["alpha", "beta"])
        choices = [{"name": "level", "choices": ["High", "low"]}, {"name": "tone", "default": "kind"}]
        content = "{{level}} {{tone}} {{git_branch}} {{tags}} {{namespace}} {{domain}} {{other}}"
        cortex.prompts.save("note", content, variables=choices)
        complete = cortex.prompts.complete
        assert complete("note", "level") == ["High", "low"]
        assert complete("note", "level", " h") == ["High"]
        assert complete("note", "tone", "k") == ["kind"]
        assert complete("note", "git_branch", "feat") == ["feature/one"]
        assert complete("note", "tags", "al") == ["alpha"]
        assert "decisions" in complete("note", "namespace")
        assert complete("note", "domain", "o") == ["org"]
        assert complete("note", "other") == complete("note", "nowhere") == complete("note", "tags", "\ud800") == []
        with pytest.raises(PromptNotFound):
            complete("unknown", "level")


# -- secrets ---------------------------------------------------------------------------------------


def _open(home: Path, project: Path, **more: Any) -> Cortex:
    return Cortex.open(home, project=project, backend=StubBackend(), **more)


def test_secrets_are_taken_out_of_what_is_kept(home: Path, project: Path) -> None:
    with _open(home, project) as cortex:
        stored = cortex.prompts.save(
            "deploy", f"Use {TOKEN} for {{{{host}}}}", description=f"with {TOKEN}", tags=[TOKEN, "x"]
        )
        assert stored.saved.redactions == ("github-token",)
        assert stored.saved.content == "Use [REDACTED:github-token] for {{host}}"
        assert stored.saved.variables == (Variable("host", required=None),)
        assert TOKEN not in repr(everything(cortex))
        # What must stay as it is cannot be redacted.
        for declared in ({"description": TOKEN}, {"default": TOKEN}, {"choices": [TOKEN]}, {"default": {"k": [TOKEN]}}):
            with pytest.raises(ContentBlocked) as caught:
                cortex.prompts.save("deploy", "{{host}}", variables={"host": declared})
            assert TOKEN not in str(caught.value)
        assert cortex.prompts.get("deploy").version == 1
    # A blank where a secret goes is none.
    with _open(home, project) as cortex:
        content = "password: {{password}}\nAuthorization: Bearer {{token}}\npostgres://u:{{pw}}@host/db"
        assert cortex.prompts.save("blanks", content).saved.content == content


def test_secrets_are_refused_or_let_through_as_configured(home: Path, project: Path) -> None:
    with _open(home, project, secrets="block") as cortex:
        before = everything(cortex)
        for fields in ({"content": TOKEN}, {"description": TOKEN}, {"tags": [TOKEN]}, {"variables": {"a": TOKEN}}):
            with pytest.raises(ContentBlocked) as caught:
                cortex.prompts.save(**{"name": "deploy", "content": "{{a}}", **fields})  # type: ignore[arg-type]
            assert TOKEN not in str(caught.value)
        assert everything(cortex) == before
    with _open(home, project, secrets="allow") as cortex:
        stored = cortex.prompts.save("deploy", f"{TOKEN} {{{{a}}}}", variables={"a": TOKEN})
        assert (stored.saved.content, stored.saved.redactions) == (f"{TOKEN} {{{{a}}}}", ())
        assert cortex.prompts.run("deploy").content == f"{TOKEN} {TOKEN}"


# -- the store -------------------------------------------------------------------------------------


@pytest.mark.sqlite_only
def test_a_home_from_before_there_were_prompts_opens_and_takes_them(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as old:
        use_schema(old, 3)
        old.setattr(ProjectSessions, "settle_files", lambda _sessions: None)
        with _open(home, project) as cortex:
            memory = cortex.memories.capture("kept from before")
            with cortex._store.database.read() as session:
                assert not any(cortex._store.database.has_table(session, table) for table in TABLES)
    with _open(home, project) as cortex:
        assert cortex.memories.get(memory.id).content == memory.content
        assert cortex.prompts.list().total == 0
        assert cortex.prompts.save("note", "x").saved.version == 1
        assert cortex.check() == []
