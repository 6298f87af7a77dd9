"""Templates filled in: blocks, lookup, filters, lines, bounds; and values that never become syntax."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cases import each
from cortex_py.core.errors import ContentSyntaxError, LimitExceeded
from cortex_py.parts.prompts.language.printing import STEPS_MOST, VALUE_LONGEST, ListText
from cortex_py.parts.prompts.language.rendering import ITEMS_MOST, OUTPUT_LONGEST, render
from cortex_py.parts.prompts.language.syntax import parse

PUBLISHED = "# {{title}}\n\n{{#each memories}}\n- **{{memory.namespace}}**: {{memory.content}}\n{{/each}}"


def filled(content: str, **values: object) -> str:
    # No clock of a busy machine decides a test.
    return render(parse(content), values, seconds=600).text


def missing(content: str, **values: object) -> tuple[str, ...]:
    return render(parse(content), values).missing


# -- blocks --------------------------------------------------------------------------------------------


def test_the_published_example() -> None:
    memories = [{"namespace": "decisions", "content": "Use it"}, {"namespace": "apis", "content": "v2"}]
    assert filled(PUBLISHED, title="T", memories=memories) == "# T\n\n- **decisions**: Use it\n- **apis**: v2\n"
    assert filled(PUBLISHED, title="T", memories=[]) == "# T\n\n"


@each("nothing", [[], {}, None, "", "text", 0, 5, True])
def test_what_has_no_items_takes_the_else(nothing: object) -> None:
    assert filled("{{#each xs}}item{{else}}none{{/each}}", xs=nothing) == "none"


def test_lists_in_lists() -> None:
    content = "{{#each teams}}{{name}}:{{#each users}} {{../name}}/{{this.name}}/{{title}}{{/each}};{{/each}}"
    teams = [{"name": "A", "users": [{"name": "x"}, {"name": "y"}]}, {"name": "B", "users": []}]
    assert filled(content, teams=teams, title="T") == "A: A/x/T A/y/T;B:;"


def test_several_lists_one_after_another() -> None:
    assert filled("{{#each a}}{{this}}{{/each}}-{{#each b}}{{this}}{{/each}}", a=[1, 2], b=[3]) == "12-3"


def test_counting() -> None:
    content = "{{#each xs}}{{@index}}/{{@number}}{{#if @first}} first{{/if}}{{#if @last}} last{{/if}};{{/each}}"
    assert filled(content, xs=[0] * 3) == "0/1 first;1/2;2/3 last;"
    assert (
        filled("{{#each xs}}{{#each this}}{{../@index}}{{@index}} {{/each}}{{/each}}", xs=[[1], [1, 1]]) == "00 10 11 "
    )
    assert filled("{{#each xs}}{{@key}}{{/each}}", xs=[1]) == ""


def test_objects_are_gone_through_by_key() -> None:
    content = "{{#each namespace_counts}}{{@number}} {{@key}}={{this}}/{{namespace_count}};{{/each}}"
    assert filled(content, namespace_counts={"apis": 2, "config": 0}) == "1 apis=2/2;2 config=0/0;"


@each("value", [None, False, 0, 0.0, "", [], {}])
def test_what_counts_as_false(value: object) -> None:
    content = "{{#if x}}yes{{else}}no{{/if}} {{#unless x}}yes{{else}}no{{/unless}}"
    assert filled(content, x=value) == "no yes"
    assert filled(content) == "no yes"


@each("value", [True, 1, -0.5, " ", "0", "false", [0], {"a": None}])
def test_what_counts_as_true(value: object) -> None:
    assert filled("{{#if x}}yes{{else}}no{{/if}} {{#unless x}}yes{{else}}no{{/unless}}", x=value) == "yes no"


def test_the_first_condition_that_holds() -> None:
    content = "{{#if a}}1{{else if b}}2{{else if c.d}}3{{else}}4{{/if}}"
    results = [filled(content, **values) for values in ({"a": 1, "b": 1}, {"b": 1}, {"c": {"d": 1}}, {})]
    assert results == ["1", "2", "3", "4"]
    assert filled("{{#unless a}}1{{else if b}}2{{else}}3{{/unless}}", a=1, b=1) == "2"
    assert filled("{{#unless a}}1{{else if b}}2{{else}}3{{/unless}}", a=1) == "3"


# -- lookup --------------------------------------------------------------------------------------------


def test_names_are_looked_up_from_the_inside_out() -> None:
    values = {
        "users": [{"name": "field", "user": "shadowed", "u": "shadowed"}],
        "name": "top",
        "user": "top",
        "u": "top",
    }
    assert filled("{{#each users}}{{name}} {{user.name}} {{u}}{{/each}}", **values) == "field field shadowed"
    assert filled("{{#each users as |u|}}{{u.name}} {{user.name}} {{../name}} {{../u}}{{/each}}", **values) == (
        "field field top top"
    )
    assert filled("{{#each users}}{{title}}{{/each}}", users=[{}], title="outer") == "outer"


def test_a_field_that_is_null_hides_what_lies_outside() -> None:
    assert filled("{{#each users}}[{{name}}]{{/each}}", users=[{"name": None}], name="top") == "[]"


def test_the_singular_follows_the_last_part_of_the_path() -> None:
    content = (
        "{{#each team.entries}}{{entry}}{{/each}}{{#each rows}}{{#each this.cells}}{{cell}}{{row.x}}{{/each}}{{/each}}"
    )
    assert filled(content, team={"entries": [1, 2]}, rows=[{"cells": ["c"], "x": "r"}]) == "12cr"


def test_paths_into_lists_and_objects() -> None:
    values = {"a": {"b": [{"c": "deep"}, "two"], "0": "by key"}, "x": "text"}
    assert filled("{{a.b.0.c}} {{a.b.1}} {{a.0}} {{this.x}}", **values) == "deep two by key text"
    assert filled("[{{a.b.2}}{{a.b.c}}{{a.z.z}}{{x.upper}}{{x.0}}{{x.__class__}}]", **values) == "[]"


# -- what is missing -----------------------------------------------------------------------------------


def test_missing_names_are_told_in_order_and_once() -> None:
    assert missing("{{b}}{{a.x}}{{b | upper}}{{c}}", c=None) == ("b", "a")
    assert filled("[{{b}}]") == "[]"


def test_conditions_and_defaults_do_not_miss_anything() -> None:
    content = (
        "{{#if a}}{{/if}}{{#unless b}}{{/unless}}{{#each c}}{{/each}}{{d | default 'x'}}{{e | upper | default 'x'}}"
    )
    assert missing(content) == ()
    assert missing("{{#if a}}{{b}}{{/if}}") == ()


def test_missing_fields_are_no_missing_names() -> None:
    assert missing("{{a.b}}{{#each xs}}{{this.y}}{{x.y}}{{/each}}", a={}, xs=[{}]) == ()


def test_a_name_that_some_item_has_is_a_field() -> None:
    assert missing("{{#each users}}{{nick}}{{/each}}", users=[{}, {"nick": "n"}, {}]) == ()
    assert missing("{{#each users}}{{nick}}{{/each}}", users=[{}, {}]) == ("nick",)
    assert missing("{{nick}}{{#each users}}{{nick}}{{/each}}", users=[{"nick": "n"}]) == ("nick",)


# -- printing ------------------------------------------------------------------------------------------


@each(
    ("value", "text"),
    [
        (' <b>&"é\n', ' <b>&"é\n'),
        (None, ""),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-3, "-3"),
        (1.5, "1.5"),
        (1e100, "1e+100"),
        (float("nan"), "null"),
        ([1, "é", None, True], '[1, "é", null, true]'),
        ((1, 2), "[1, 2]"),
        ({"a": {"b": []}, 1: "x"}, '{"a": {"b": []}, "1": "x"}'),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=1))), "2026-01-02T02:04:05Z"),
        (datetime(2026, 1, 2, 3, 4, 5), "2026-01-02T03:04:05Z"),
        ([datetime(2026, 1, 2, tzinfo=UTC)], '["2026-01-02T00:00:00Z"]'),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))), "0001-01-01T00:00:00+01:00"),
    ],
)
def test_how_a_value_prints(value: object, text: str) -> None:
    assert filled("{{x}}", x=value) == text


def test_a_list_can_have_a_text_of_its_own() -> None:
    shown: list[int] = []

    def show(items: object) -> str:
        shown.append(1)
        return "\n".join(f"- {item['a']}" for item in items)  # type: ignore[attr-defined]

    xs = ListText([{"a": 1}, {"a": 2}], show)
    assert filled("{{xs}} {{xs}} {{xs | upper}}", xs=xs) == "- 1\n- 2 - 1\n- 2 - 1\n- 2"
    assert shown == [1]
    assert filled("{{#each xs}}{{x.a}}{{/each}} {{xs.1.a}} {{xs | length}} {{xs | json}}", xs=xs) == (
        '12 2 2 [{"a": 1}, {"a": 2}]'
    )
    assert filled("{{y}}", y={"inner": xs}) == '{"inner": [{"a": 1}, {"a": 2}]}'
    assert filled("{{#if xs}}x{{else}}empty{{/if}}", xs=ListText([], show)) == "empty"


# -- lines ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_tag_alone_takes_its_line(newline: str) -> None:
    lines = ["a", "  {{#each xs}}\t", "- {{this}}", "  {{else}}", "none", "{{/each}} ", "{{! note }}", "", "b"]
    content = newline.join(lines)
    assert filled(content, xs=[1, 2]) == newline.join(["a", "- 1", "- 2", "", "b"])
    assert filled(content, xs=[]) == newline.join(["a", "none", "", "b"])


def test_tags_that_share_a_line_leave_it() -> None:
    assert filled("{{#if x}} a {{/if}}\n", x=1) == " a \n"
    assert filled(" {{#if x}}{{/if}} \nb", x=1) == "  \nb"
    assert filled("{{x}}\n{{x}}\n", x="") == "\n\n"
    assert filled("a {{! c }}\nb") == "a \nb"
    assert filled("{{! c }} a\nb") == " a\nb"


def test_the_first_and_the_last_line_count_as_lines() -> None:
    assert filled("  {{#if x}}\na\n  {{/if}}  ", x=1) == "a\n"
    assert filled("{{! c }}") == ""


def test_blank_lines_stay() -> None:
    assert filled("{{#if x}}\n\n a\n\n{{/if}}\n\nb", x=1) == "\n a\n\n\nb"


def test_comments_over_several_lines() -> None:
    assert filled("a\n{{! one\ntwo }}\nb") == "a\nb"


# -- filters -------------------------------------------------------------------------------------------


@each(
    ("use", "value", "text"),
    [
        ("date", "2026-01-02T23:59:58Z", "2026-01-02"),
        ("date", "2026-01-02", "2026-01-02"),
        ("date", "2026-01-02T23:30:00-05:00", "2026-01-02"),
        ("date", datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02"),
        ("date", date(2026, 1, 2), "2026-01-02"),
        ('date "%d.%m.%y %H:%M:%S %%"', "2026-01-02T03:04:05.678Z", "02.01.26 03:04:05 %"),
        ('date "%A %a, %e %B (%b) %j %I%p"', "2026-03-04T00:00:00", "Wednesday Wed,  4 March (Mar) 063 12AM"),
        ('date "%F %T %p"', "0042-12-31t15:16:17z", "0042-12-31 15:16:17 PM"),
        ("date", "soon", "soon"),
        ("date", "2026-02-30", "2026-02-30"),
        ("date", "2026-01-02T03:04:05+99:99", "2026-01-02T03:04:05+99:99"),
        ("date", 5, "5"),
        ("date", None, ""),
        ("date", [1], "[1]"),
        ("truncate 5", "abcdef", "abcd…"),
        ("truncate 5", "abcde", "abcde"),
        ("truncate:1", "abc", "…"),
        ("truncate", "x" * 101, "x" * 99 + "…"),
        ("truncate 3", 12345, "12…"),
        ("join", ["a", 1, None, True, [2]], "a, 1, , true, [2]"),
        ('join " | "', ["a", "b"], "a | b"),
        ("join '\\n'", ["a", "b"], "a\nb"),
        ("join", [], ""),
        ("join", "abc", "abc"),
        ("join", {"a": 1}, '{"a": 1}'),
        ("default 'x'", "", "x"),
        ("default 'x'", None, "x"),
        ("default 'x'", [], "x"),
        ("default 'x'", {}, "x"),
        ("default 'x'", 0, "0"),
        ("default 'x'", False, "false"),
        ("default 'x'", " ", " "),
        ("default 5", None, "5"),
        ("default -1.5", None, "-1.5"),
        ('default "a\\"b\\\\c\\td\\\'"', None, "a\"b\\c\td'"),
        ("default '\"|\"'", None, '"|"'),
        ("json", 'a"é\n', '"a\\"é\\n"'),
        ("json", None, "null"),
        ("json", [1.0, {"a": "b"}], '[1.0, {"a": "b"}]'),
        ("upper", "straße", "STRASSE"),
        ("lower", "ÄB", "äb"),
        ("trim", "\n a b\t", "a b"),
        ("length", "abc", "3"),
        ("length", [1, 2], "2"),
        ("length", {"a": 1}, "1"),
        ("length", None, "0"),
        ("join '' | upper | truncate 3", ["ab", "cd"], "AB…"),
        ("length | json", "abc", "3"),
    ],
)
def test_filters(use: str, value: object, text: str) -> None:
    assert filled("{{x | " + use + "}}", x=value) == text
    assert filled("{{x|" + use + " }}", x=value) == text


def test_default_for_a_name_that_is_nowhere() -> None:
    assert filled("{{x | default 'none'}}{{a.b.c | default 'none'}}", a={}) == "nonenone"


# -- values stay values --------------------------------------------------------------------------------


SYNTAX = ["{{sentinel}}", "{{#each xs}}{{sentinel}}{{/each}}", "{{/each}}", "{{", "}}", "\\{{x}}", "{{{x}}}", "{{!"]


@each("value", SYNTAX)
def test_syntax_in_values_stays_text(value: str) -> None:
    values = {"x": value, "xs": [value], "o": {value: value}, "sentinel": "EVALUATED"}
    assert filled("{{x}}", **values) == value
    assert filled("{{#each xs}}{{this}}{{/each}}", **values) == value
    assert filled("{{xs | join}}{{x | trim}}", **values) == value + value
    assert filled("{{#each o}}{{@key}}{{this}}{{/each}}", **values) == value + value
    assert filled("{{x}}", x=ListText([], lambda _: value), sentinel="EVALUATED") == value


def test_two_values_do_not_become_syntax_together() -> None:
    assert filled("{{a}}{{a}}sentinel{{b}}{{b}}", a="{", b="}", sentinel="EVALUATED") == "{{sentinel}}"


def test_escaped_braces_are_text() -> None:
    assert filled("\\{{x}} {{x}} {{{x}}} \\\\{{x}}", x="v") == "{{x}} v {v} \\v"


@settings(deadline=None)
@given(st.lists(st.one_of(st.text(), st.sampled_from(SYNTAX)), max_size=5))
def test_any_text_prints_as_it_is(texts: list[str]) -> None:
    values = {"items": [{"text": text} for text in texts], "sentinel": "EVALUATED"}
    assert filled("{{#each items}}<{{item.text}}>{{/each}}", **values) == "".join(f"<{text}>" for text in texts)


# -- bounds --------------------------------------------------------------------------------------------


def test_items_are_limited() -> None:
    assert len(filled("{{#each xs}}a{{/each}}", xs=[0] * ITEMS_MOST)) == ITEMS_MOST
    with pytest.raises(LimitExceeded, match="10,001 items"):
        filled("{{#each xs}}{{/each}}", xs=[0] * (ITEMS_MOST + 1))


def test_output_is_limited() -> None:
    line = "x" * (OUTPUT_LONGEST // 1000)
    assert len(filled("{{#each xs}}{{line}}{{/each}}", xs=[0] * 1000, line=line)) == OUTPUT_LONGEST
    with pytest.raises(LimitExceeded, match="more than 1,000,000 characters"):
        filled("{{#each xs}}{{line}}{{/each}}", xs=[0] * 1001, line=line)
    with pytest.raises(LimitExceeded, match="more than 1,000,000 characters"):
        filled("{{#each xs}}" + line + "{{/each}}", xs=[0] * 1001)


def test_steps_are_limited() -> None:
    xs = [0] * (STEPS_MOST // 1000)
    with pytest.raises(LimitExceeded, match="500,000 steps"):
        filled("{{#each xs}}{{#each xs}}{{#each xs}}{{#if y}}{{/if}}{{/each}}{{/each}}{{/each}}", xs=xs)


class Watch:
    """A clock that goes on by a second whenever somebody looks at it."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return float(self.looks)


def test_time_is_limited_and_looked_at_seldom() -> None:
    template = parse("{{#each xs}}{{#each xs}}{{/each}}{{/each}}")
    watch = Watch()
    render(template, {"xs": [0] * 100}, seconds=1000, monotonic=watch)
    assert 5 <= watch.looks <= 30
    with pytest.raises(LimitExceeded, match="longer than 3 seconds"):
        render(template, {"xs": [0] * 100}, seconds=3, monotonic=Watch())


@pytest.mark.slow
@each("use", ["join", "json", "upper", "truncate 5", "join | length", "json | truncate 5"])
def test_large_values_count_even_if_little_is_printed(use: str) -> None:
    """Each time costs work in proportion to its size, so that a loop over it ends early."""
    content = "{{#each xs}}{{#each xs}}{{big | " + use + " | truncate 1}}{{/each}}{{/each}}"
    big: object = "x" * 500_000 if use == "upper" else [["x" * 50] * 5] * 1000
    watch = Watch()
    with pytest.raises(LimitExceeded, match="steps"):
        render(parse(content), {"xs": [0] * 100, "big": big}, seconds=10_000, monotonic=watch)
    assert watch.looks > 10


@each("use", ["", "| join '' | truncate 1", "| json | length", "| upper"])
def test_one_value_is_limited_before_it_is_put_together(use: str) -> None:
    row = ["x" * (VALUE_LONGEST // 100)] * 100
    with pytest.raises(LimitExceeded, match="One value would print more than 1,000,000 characters"):
        filled("{{x " + use + "}}", x=[row] * 100_000)


def test_a_separator_counts_too() -> None:
    with pytest.raises(LimitExceeded, match="One value"):
        filled("{{x | join '" + "-" * 1000 + "' | length}}", x=[""] * 2000)


def test_deep_and_endless_values() -> None:
    deep: object = "x"
    for _ in range(50_000):
        deep = [deep]
    with pytest.raises(LimitExceeded, match="deeper than 64 levels"):
        filled("{{x}}", x=deep)
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(LimitExceeded, match="deeper than 64 levels"):
        filled("{{x | json}}", x=endless)
    assert filled("{{#each x}}{{#each this}}{{@index}}{{/each}}{{/each}}", x=endless) == "0"


def test_a_number_too_long_to_write() -> None:
    assert filled("{{x}}", x=10**1000) == str(10**1000)
    with pytest.raises(LimitExceeded, match="digits"):
        filled("{{x}}", x=10**5000)


# -- anything ------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "items", "item", "users", "user"])
PATHS = st.one_of(
    NAMES,
    st.tuples(st.sampled_from(["", "../", "../../"]), NAMES, st.sampled_from(["", ".a", ".0", ".items", ".b.c"])).map(
        "".join
    ),
    st.sampled_from(
        ["this", "this.a", "@index", "@number", "@first", "@last", "@key", "../this", "../@key", "this.items"]
    ),
)
CALLS = st.sampled_from(
    [
        "",
        "|date",
        "|date '%F'",
        "|truncate 3",
        "|truncate",
        "|join",
        "|join '-'",
        "|default 'd'",
        "|json",
        "|upper",
        "|lower",
        "|trim",
        "|length",
        "|json|join|length",
        "|default 1|upper",
    ]
)
LEAVES = st.one_of(
    st.text(max_size=5),
    st.builds("{{{{{}{}}}}}".format, PATHS, CALLS),
    st.sampled_from(["\n", "\r\n", " ", "{{! c }}"]),
)


def blocks(inside: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    bodies = st.lists(inside, max_size=3).map("".join)
    return st.one_of(
        st.builds("{{{{#each {}}}}}{}{{{{else}}}}{}{{{{/each}}}}".format, PATHS, bodies, bodies),
        st.builds("{{{{#each {} as |m|}}}}\n{}{{{{m.a}}}}\n{{{{/each}}}}\n".format, PATHS, bodies),
        st.builds(
            "{{{{#if {}}}}}{}{{{{else if {}}}}}{}{{{{else}}}}{}{{{{/if}}}}".format, PATHS, bodies, PATHS, bodies, bodies
        ),
        st.builds("{{{{#unless {}}}}}{}{{{{/unless}}}}".format, PATHS, bodies),
    )


TEMPLATES = st.lists(st.recursive(LEAVES, blocks, max_leaves=12), max_size=4).map("".join)
KEYS = st.one_of(NAMES, st.sampled_from(["c", "0"]), st.text(max_size=3))
JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just("2026-01-02")),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=15,
)


@given(
    TEMPLATES, st.lists(st.lists(JSON_VALUES, max_size=2), max_size=2), st.dictionaries(KEYS, JSON_VALUES, max_size=5)
)
@example("{{#each items}}{{../@key}}{{/each}}", [[1]], {"items": [1]})
def test_any_template_over_any_values(content: str, outer: list[list[object]], values: dict[str, object]) -> None:
    # In two lists, so that no path leads out of all of them.
    for text in (content, "{{#each outer}}{{#each this}}" + content + "{{/each}}{{/each}}"):
        try:
            template = parse(text)
            rendered = render(template, {**values, "outer": outer}, seconds=600)
        except (ContentSyntaxError, LimitExceeded):
            continue
        assert set(rendered.missing) <= {*template.names, *template.inner_names}
        assert not set(rendered.missing) & set(values)
        used = {
            name: value
            for name, value in {**values, "outer": outer}.items()
            if (name in (*template.names, *template.inner_names))
        }
        assert render(template, used, seconds=600) == rendered


def finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@settings(deadline=None)
@given(JSON_VALUES)
def test_the_json_filter_writes_json(value: object) -> None:
    assert json.loads(filled("{{x | json}}", x=value)) == finite(value)
