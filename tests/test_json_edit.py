"""Edits of JSON files change their own lines alone, and can be taken back exactly."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.clients.json_edit import add_item, read_json, remove_items, remove_member, set_member

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
    assert remove_member(done, ("mcpServers", "cortex")) == COMMENTED


def test_an_item_is_added_and_taken_back() -> None:
    done = add_item(COMMENTED, ("hooks", "Stop"), {"mine": 1})
    assert read_json(done)["hooks"]["Stop"] == [{"matcher": "", "hooks": []}, {"mine": 1}]
    assert add_item(done, ("hooks", "Stop"), {"mine": 1}) == done
    assert remove_items(done, ("hooks", "Stop"), lambda one: "mine" in one) == COMMENTED


def test_what_is_missing_is_made_and_goes_again() -> None:
    done = add_item('{\n  "a": 1\n}\n', ("hooks", "Stop"), "x")
    assert read_json(done) == {"a": 1, "hooks": {"Stop": ["x"]}}
    assert remove_items(done, ("hooks", "Stop"), lambda one: one == "x", with_empty=1) == '{\n  "a": 1\n}\n'


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
    assert remove_member(done, ("cortex",)) == (text if content else "{}")
