"""What templates can be read, which names they draw on, and how everything wrong with one is told."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cases import each
from cortex_py.core.errors import ContentSyntaxError, LimitExceeded
from cortex_py.parts.prompts.language.placeholders import NAME_LONGEST, RESERVED_PREFIXES, check_name, singular
from cortex_py.parts.prompts.language.syntax import CONTENT_LONGEST, DEPTH_MOST, FAULTS_MOST, NODES_MOST, parse

PUBLISHED = "# {{title}}\n\n{{#each memories}}\n- **{{memory.namespace}}**: {{memory.content}}\n{{/each}}"

# Bits that meet in hostile and in honest templates alike.
_WORDS = r"""{{ }} { } \ #each #if #unless /each /if /unless else if {{/each}} {{else}} {{/if}} {{! | as |m|
    date truncate truncate:5 join default upper " ' %Y %9Y ../ this @index @ . .0 x memories memory __x 1 -1 é"""
PIECES = st.sampled_from([*_WORDS.split(), "{{#each xs}}", "{{#if x}}", " ", "\t", "\n", "\r\n", "\ud800", "\x00"])
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join))


def faults(content: str) -> list[tuple[int, int, str]]:
    with pytest.raises(ContentSyntaxError) as caught:
        parse(content)
    return [(fault.line, fault.column, fault.message) for fault in caught.value.faults]


def messages(content: str) -> str:
    return " ".join(message for _, _, message in faults(content))


# -- names ---------------------------------------------------------------------------------------------


def test_the_published_example_draws_on_its_two_variables() -> None:
    template = parse(PUBLISHED)
    assert template.names == ("title", "memories")
    assert template.inner_names == ()


def test_names_come_in_order_of_appearance_and_once() -> None:
    template = parse(
        "{{b}}{{a.x}}{{#if c}}{{b}}{{else if d}}{{/if}}{{#unless e}}{{/unless}}{{#each f}}{{else}}{{g}}{{/each}}"
    )
    assert template.names == ("b", "a", "c", "d", "e", "f", "g")


def test_names_in_a_list_block_may_be_fields_or_variables() -> None:
    template = parse(
        "{{#each users as |u|}}{{u.a}}{{user.b}}{{name}}{{this.c}}{{@index}}{{../title}}{{/each}}{{name}}{{u}}"
    )
    assert template.names == ("users", "title", "name", "u")
    assert template.inner_names == ()
    inner = parse("{{#each users}}{{name}}{{#each ../teams}}{{team}}{{user}}{{total_count}}{{/each}}{{/each}}")
    assert inner.names == ("users", "teams")
    assert inner.inner_names == ("name", "total_count")
    assert "total_count" in (*inner.names, *inner.inner_names)
    assert "users" in (*inner.names, *inner.inner_names)
    assert "user" not in (*inner.names, *inner.inner_names)


def test_the_else_of_a_list_block_stands_outside_of_it() -> None:
    assert parse("{{#each users}}{{else}}{{user}}{{/each}}").names == ("users", "user")


def test_this_outside_of_lists_stands_for_the_variables() -> None:
    assert parse("{{this.title}}{{#each xs}}{{../this.subtitle}}{{/each}}").names == ("title", "xs", "subtitle")


def test_comments_name_nothing() -> None:
    assert parse("{{! a | b }}{{ !-- c -- }}").names == ()


@each("name", ["a", "_a", "snake_case_2", "größe", "x" * NAME_LONGEST, "systematic", "cortex"])
def test_names_that_may_be_used(name: str) -> None:
    assert check_name(name) is None
    assert parse("{{" + name + "}}").names == (name,)


@each("name", ["", "1a", "a-b", "a b", "a!", "x" * (NAME_LONGEST + 1), *(f"{prefix}x" for prefix in RESERVED_PREFIXES)])
def test_names_that_may_not(name: str) -> None:
    assert check_name(name)
    assert faults("{{" + name + "}}")
    assert faults("{{#each xs as |" + name + "|}}{{/each}}")


def test_reserved_words_may_be_fields() -> None:
    parse("{{x.system_name}}{{#each xs}}{{this.__x}}{{/each}}")


@each(
    ("plural", "one"),
    [("memories", "memory"), ("entries", "entry"), ("users", "user"), ("class", None), ("data", None), ("s", None)],
)
def test_singulars(plural: str, one: str | None) -> None:
    assert singular(plural) == one


# -- what can be read ----------------------------------------------------------------------------------


@each(
    "content",
    [
        "",
        'plain } text { with JSON {"a": {"b": 1}}',
        "{{ x }}{{\tx\n}}{{x|upper}}{{ x | truncate : 5 | default:'a|b' }}",
        "{{ # each xs as | x | }}{{ else }}{{ / each }}",
        "{{#if a.b.0}}{{else if c}}{{/if}}",
        "{{#unless a}}{{else if b}}{{else}}{{/unless}}",
        "{{#each a}}{{#each this}}{{../@index}}{{../../b}}{{/each}}{{/each}}",
        "```\n{{x}}\n```",
    ],
)
def test_templates_that_can_be_read(content: str) -> None:
    parse(content)


def test_fenced_code_is_read_too() -> None:
    assert parse("```\n{{x}}\n```").names == ("x",)


# -- faults --------------------------------------------------------------------------------------------


@each(
    ("content", "line", "column", "part"),
    [
        ("{{}}", 1, 3, "name is missing"),
        ("a\n {{ }}", 2, 4, "name is missing"),
        ("{{x", 1, 1, "never closed"),
        ("x}}", 1, 2, "closes nothing"),
        ("{{#with x}}{{/with}}", 1, 1, "no block '#with'"),
        ("{{#each xs}}", 1, 1, "`#each` is never closed; `{{/each}}` is missing."),
        ("{{/if}}", 1, 1, "'/if' closes nothing"),
        ("{{#if x}}{{#each y}}{{/if}}", 1, 10, "`#each` is never closed"),
        ("{{#if x}}{{/if y}}", 1, 10, "names its block and nothing else"),
        ("{{/}}", 1, 1, "names its block"),
        ("{{else}}", 1, 1, "outside of a block"),
        ("{{#if x}}{{else}}{{else}}{{/if}}", 1, 18, "already"),
        ("{{#if x}}{{else}}{{else if y}}{{/if}}", 1, 18, "already"),
        ("{{#if x}}{{else unless y}}{{/if}}", 1, 16, "only `if`"),
        ("{{#if x}}{{else if}}{{/if}}", 1, 19, "name is missing"),
        ("{{#each x}}{{else if y}}{{/each}}", 1, 18, "without `if`"),
        ("{{#if}}{{/if}}", 1, 6, "After `#if` a name is missing"),
        ("{{#if x | upper}}{{/if}}", 1, 9, "does not belong here"),
        ("{{#each xs as x}}{{/each}}", 1, 12, "as in `#each users as |user|`"),
        ("{{#each xs as |this|}}{{/each}}", 1, 16, "meaning of its own"),
        ("{{x y}}", 1, 5, "'y' does not belong here"),
        ("{{x:y}}", 1, 4, "does not belong here"),
        ("{{x | }}", 1, 5, "name of a filter is missing"),
        ("{{| upper}}", 1, 3, "name is missing"),
        ("{{x | shout}}", 1, 7, "no filter 'shout'"),
        ("{{x | upper 1}}", 1, 7, "takes no argument"),
        ("{{x | default}}", 1, 7, "needs an argument"),
        ("{{x | truncate 1 2}}", 1, 7, "takes one argument"),
        ("{{x | truncate:}}", 1, 15, "argument is missing"),
        ("{{x | truncate 0}}", 1, 7, "whole number from 1"),
        ("{{x | truncate 1.5}}", 1, 7, "whole number"),
        ("{{x | truncate '5'}}", 1, 7, "whole number"),
        ("{{x | truncate 9999999}}", 1, 7, "whole number"),
        ("{{x | truncate five}}", 1, 16, "neither a text in quotes nor a number"),
        ("{{x | truncate " + "9" * 5000 + "}}", 1, 16, "neither"),
        ("{{x | join 5}}", 1, 7, "`join` takes a text"),
        ("{{x | date 5}}", 1, 7, "`date` takes a format"),
        ("{{x | date '%999999999Y'}}", 1, 7, "does not know '%9'"),
        ("{{x | date '%-d'}}", 1, 7, "does not know '%-'"),
        ("{{x | date '%'}}", 1, 7, "does not know '%'"),
        ("{{x | date '" + "%Y" * 60 + "'}}", 1, 7, "longer than 100"),
        ("{{x | default 'a}}", 1, 15, "opened but not closed"),
        ("{{x | default 'a\\q'}}", 1, 17, "not an escape"),
        ("{{x.}}", 1, 3, "After `.` a name is missing"),
        ("{{x.-1}}", 1, 3, "name of a field"),
        ("{{x" + ".a" * 16 + "}}", 1, 3, "at most 16 parts"),
        ("{{@index}}", 1, 3, "none is around it"),
        ("{{#each x}}{{else}}{{@index}}{{/each}}", 1, 22, "none is around it"),
        ("{{#each x}}{{@size}}{{/each}}", 1, 14, "no '@size'"),
        ("{{#each x}}{{@key.a}}{{/each}}", 1, 14, "has no fields"),
        ("{{this}}", 1, 3, "none is around it"),
        ("{{this.this}}", 1, 3, "none is around it"),
        ("{{../x}}", 1, 3, "more `#each` blocks than there are"),
        ("{{#each x}}{{#if y}}{{../../z}}{{/if}}{{/each}}", 1, 23, "more `#each` blocks"),
        ("{{x" + "|upper" * 9 + "}}", 1, 52, "More than 8 filters"),
        ("{{>partial}}", 1, 3, "not a valid name"),
    ],
)
def test_a_fault_says_what_and_where(content: str, line: int, column: int, part: str) -> None:
    found = faults(content)
    assert [(one[0], one[1]) for one in found] == [(line, column)]
    assert part in found[0][2]


def test_all_faults_are_told_in_order() -> None:
    content = "{{#each}}\n{{x | shout}}\n{{a-b}}{{/each}}\n{{#if x}}\n}}"
    with pytest.raises(ContentSyntaxError) as caught:
        parse(content)
    assert [fault.line for fault in caught.value.faults] == [1, 2, 3, 5]
    assert "Line 2, column 7: There is no filter 'shout'" in str(caught.value)
    assert caught.value.field == "content"


def test_a_message_tells_five_faults_and_counts_the_rest() -> None:
    with pytest.raises(ContentSyntaxError) as caught:
        parse("{{a-b}}\n" * 8)
    assert len(caught.value.faults) == 8
    assert "Line 5," in caught.value.message
    assert "Line 6," not in caught.value.message
    assert caught.value.message.endswith("And 3 more.")


def test_a_hostile_template_has_no_end_of_faults_but_its_answer_has() -> None:
    assert len(faults("{{a-b}}" * 1000)) == FAULTS_MOST
    assert len(faults("{{/if}}" * 1000)) == FAULTS_MOST
    assert len(faults("x}}" * 15 + "{{a-b}}" * 15)) == FAULTS_MOST


def test_a_block_with_a_fault_is_not_missed_at_its_end() -> None:
    assert len(faults("{{#each}}{{else}}{{/each}}{{#with x}}{{else}}{{/with}}{{#}}{{/if}}")) == 4


def test_long_words_are_shortened_in_messages() -> None:
    long = "a" * 150_000
    for content in (
        "{{" + long + "}}",
        "{{x|" + long + "}}",
        "{{#" + long + "}}",
        "{{/" + long + "}}",
        "{{x.b" + long + "}}",
    ):
        with pytest.raises(ContentSyntaxError) as caught:
            parse(content)
        assert len(str(caught.value)) < 400


# -- limits --------------------------------------------------------------------------------------------


def test_length_is_limited() -> None:
    parse("x" * CONTENT_LONGEST)
    with pytest.raises(LimitExceeded, match="200,001 characters"):
        parse("x" * (CONTENT_LONGEST + 1))


def test_depth_is_limited() -> None:
    parse("{{#if x}}" * DEPTH_MOST + "{{/if}}" * DEPTH_MOST)
    with pytest.raises(LimitExceeded, match=r"deeper than 16 levels \(line 1, column 145\)"):
        parse("{{#if x}}" * (DEPTH_MOST + 1) + "{{/if}}" * (DEPTH_MOST + 1))


def test_parts_are_limited() -> None:
    parse("{{x}}" * NODES_MOST)
    with pytest.raises(LimitExceeded, match="more than 10,000 parts"):
        parse("{{x}}" * (NODES_MOST + 1))
    with pytest.raises(LimitExceeded, match="more than 10,000 parts"):
        parse("{{#if x}}" + "{{else if x}}" * NODES_MOST + "{{/if}}")


@each(
    "content",
    [
        "{{" * 100_000,
        "{{ " * 66_000,
        "{{#each x}}" * 18_000,
        "{{x|" + "upper|" * 30_000 + "}}",
        "{{a" + ".a" * 90_000 + "}}",
        "{{" + "../" * 60_000 + "x}}",
        '{{x|default "' + "\\" * 190_001 + "}}",
        "{{" + " " * 190_000 + "}}",
        ("{{else}}" + " " * 10) * 11_000,
        "{{'" * 60_000,
        "{{a-b}}" + "x" * 190_000 + "{{a-b}}" * 500,
    ],
)
def test_hostile_templates_are_refused(content: str) -> None:
    with pytest.raises((ContentSyntaxError, LimitExceeded)):
        parse(content)


@given(TEXTS)
@example("{{#each xs}}{{else}}{{else}}{{/each}}{{/each}}")
@example("{{#}}{{/}}{{else}}")
def test_any_text_is_read_or_refused(content: str) -> None:
    try:
        parse(content)
    except ContentSyntaxError as error:
        assert error.faults
        for fault in error.faults:
            lines = content.split("\n")
            assert 0 <= fault.position <= len(content)
            assert sum(len(line) + 1 for line in lines[: fault.line - 1]) + fault.column - 1 == fault.position
    except LimitExceeded:
        assert content.count("{{#") > DEPTH_MOST


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_characters="{}\\")))
def test_text_without_braces_is_a_template_that_needs_nothing(content: str) -> None:
    template = parse(content)
    assert "".join(node.text for node in template.nodes) == content  # type: ignore[union-attr]
    assert template.names == template.inner_names == ()
