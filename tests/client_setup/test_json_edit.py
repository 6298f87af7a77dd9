"""Edits of JSON files change their own lines alone, and can be taken back exactly."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.parts.clients.json_edit import (
    add_item,
    put_source,
    read_json,
    remove,
    remove_empty,
    set_member,
    source_of,
)

COMMENTED = """{
    // what I like
    "theme": "dark",   /* really */
    "mcpServers": {
        "other": { "command": "x", "args": ["a", "b"] }
    },
    "hooks": {
        "Stop": [
            { "matcher": "", "hooks": [] }
        ]
    }
}
"""
ENTRY = {"command": "/bin/cortex", "args": ["serve"]}


def test_a_member_is_added_without_touching_the_rest() -> None:
    done = set_member(COMMENTED, ("mcpServers", "cortex"), ENTRY)
    assert read_json(done)["mcpServers"] == {"other": {"command": "x", "args": ["a", "b"]}, "cortex": ENTRY}
    assert [line for line in COMMENTED.splitlines() if line not in done.splitlines()] == [
        '        "other": { "command": "x", "args": ["a", "b"] }'
    ]
    assert set_member(done, ("mcpServers", "cortex"), ENTRY) == done
    assert remove(done, ("mcpServers", "cortex")) == COMMENTED


def test_an_item_is_added_and_taken_back() -> None:
    done = add_item(COMMENTED, ("hooks", "Stop"), {"mine": 1})
    assert read_json(done)["hooks"]["Stop"] == [{"matcher": "", "hooks": []}, {"mine": 1}]
    assert add_item(done, ("hooks", "Stop"), {"mine": 1}) == done
    assert remove(done, ("hooks", "Stop", 1)) == COMMENTED


def test_what_is_missing_is_made_and_goes_again() -> None:
    done = add_item('{\n  "a": 1\n}\n', ("hooks", "Stop"), "x")
    assert read_json(done) == {"a": 1, "hooks": {"Stop": ["x"]}}
    done = remove(done, ("hooks", "Stop", 0))
    assert remove_empty(done, ("hooks",)) == done
    assert remove_empty(remove_empty(done, ("hooks", "Stop")), ("hooks",)) == '{\n  "a": 1\n}\n'


@each(
    "text",
    [
        '{\n  "a": 1, // one\n}\n', '{\n  "a": 1 // one\n  // end\n}\n', "{\n  // nothing yet\n}\n",
        '{ "a": 1, /* last */ }', '{\r\n\t"a": [1],\r\n}\r\n',
    ],
)  # fmt: skip
def test_a_member_comes_and_goes_beside_comments_commas_and_line_ends(text: str) -> None:
    done = set_member(text, ("cortex",), ENTRY)
    assert read_json(done) == {**read_json(text), "cortex": ENTRY}
    assert done.count("\r\n") == (done.count("\n") if "\r" in text else 0)
    assert remove(done, ("cortex",)) == text


@each(
    ("text", "left"),
    [
        ('{\n  "a": 1, // mine\n  "c": 2\n}', '{\n  "a": 1 // mine\n}'),
        ('{\n  "a": 1,\n  // mine\n  "c": 2\n}', '{\n  "a": 1\n  // mine\n}'),
        ('{\n  "c": 2, // mine, too\n  "a": 1\n}', '{\n   // mine, too\n  "a": 1\n}'),
        ('{"a": 1, "c": 2 /* b, d */, "b": 3}', '{"a": 1 /* b, d */, "b": 3}'),
        ('{"a": 1, /* x */ "c": 2,}', '{"a": 1, /* x */ }'),
        ('{"c": 2, /* x */}', "{ /* x */}"),
    ],
)
def test_comments_beside_a_member_outlive_it(text: str, left: str) -> None:
    assert remove(text, ("c",)) == left
    read_json(left)


def test_a_value_is_put_back_as_it_was_written() -> None:
    source = source_of(COMMENTED, ("mcpServers", "other"))
    assert source == '{ "command": "x", "args": ["a", "b"] }'
    other = set_member(COMMENTED, ("mcpServers", "other"), ENTRY)
    assert put_source(other, ("mcpServers", "other"), source) == COMMENTED
    assert source_of(COMMENTED, ("mcpServers", "none")) is None


def test_of_two_members_with_one_key_the_one_that_readers_take_is_changed() -> None:
    assert read_json(set_member('{"a": {}, "a": {}}', ("a", "b"), 1)) == {"a": {"b": 1}}


@each("text", ["", "{}", "{}\n", "\ufeff{}"])
def test_an_empty_file_becomes_one_with_the_member(text: str) -> None:
    assert read_json(set_member(text, ("a", "b"), 1)) == {"a": {"b": 1}}


@each("text", ["[", "{1}", '{"a" 1}', '{"a": 1 "b": 2}', "{} {}", "[" * 200, '{"a": nope}'])
def test_what_is_no_json_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        read_json(text)


@pytest.mark.parametrize("text", ["[]", '{"a": 3}', '{"a": []}'])
def test_a_value_of_another_kind_is_not_replaced(text: str) -> None:
    with pytest.raises(ValueError):
        set_member(text, ("a", "b"), 1)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(
    st.dictionaries(st.text().filter(lambda key: key != "cortex"), VALUES, max_size=4),
    st.sampled_from([None, 2, 4, "\t"]),
    VALUES,
)
def test_any_object_takes_a_member_and_gives_it_back(content: dict[str, Any], indent: Any, value: Any) -> None:
    text = json.dumps(content, indent=indent)
    done = set_member(text, ("cortex",), value)
    assert read_json(done) == {**content, "cortex": value}
    assert remove(done, ("cortex",)) == (text if content else "{}")
