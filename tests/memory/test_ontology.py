"""The ontology: a closed and documented list, its spellings, and the labelled notes that speak its language."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.errors import InvalidInput
from cortex_py.core.memory.labels.ontology import (
    CATEGORIES,
    CATEGORY_NAMES,
    FALLBACK,
    PARENTS,
    canonical_category,
)

ROOT = Path(__file__).parents[2]
DATA = ROOT / "bench" / "data"
TRAINING = (DATA / "ontology_notes.jsonl", DATA / "ontology_notes_later.jsonl")
CHECK = DATA / "ontology_check.jsonl"
SUBCATEGORIES = [name for category in CATEGORIES for name, _ in category.subcategories]


def _rows(*paths: Path) -> list[dict[str, str]]:
    return [json.loads(line) for path in paths for line in path.read_text("utf-8").splitlines()]


def test_the_list_is_closed_and_no_name_is_used_twice() -> None:
    assert CATEGORY_NAMES == (
        "development",
        "bug_fix",
        "feature",
        "refactoring",
        "architecture",
        "security",
        "data",
        "infrastructure",
        "testing",
        "documentation",
        "performance",
        "project_management",
        "general",
    )
    assert FALLBACK in CATEGORY_NAMES
    names = [*CATEGORY_NAMES, *SUBCATEGORIES]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) for name in names)
    assert all(category.description and all(text for _, text in category.subcategories) for category in CATEGORIES)


def test_the_page_lists_every_category_with_its_subcategories() -> None:
    page = (ROOT / "docs" / "reference" / "ontology.md").read_text("utf-8")
    for category in CATEGORIES:
        names = ", ".join(f"`{name}`" for name, _ in category.subcategories)
        assert f"| `{category.name}` | {category.description} | {names} |" in page


@each("spelled", ["bug_fix", "Bug-Fix", "  BUG FIX\n", "bugfix", "bug__fix", "BugFix"])
def test_the_way_of_spelling_does_not_matter(spelled: str) -> None:
    assert canonical_category(spelled) == "bug_fix"


@given(
    st.sampled_from(CATEGORY_NAMES),
    st.sampled_from(["_", "-", " ", "", " - "]),
    st.sampled_from([str.lower, str.upper, str.title]),
)
def test_every_category_is_found_under_all_spellings(name: str, joint: str, case) -> None:
    assert canonical_category(f" {case(name.replace('_', joint))} ") == name


@each("spelled", ["", " ", "bugs", "bug_fix,feature", "x" * 500, "\u0131nfrastructure"])
def test_an_unknown_category_is_refused_with_the_valid_ones(spelled: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        canonical_category(spelled)
    assert "development, bug_fix, feature" in str(caught.value)
    assert caught.value.field == "category"
    assert len(caught.value.message) < 130


def test_a_subcategory_is_no_category_and_the_answer_names_where_it_belongs() -> None:
    with pytest.raises(InvalidInput) as caught:
        canonical_category("Root Cause", field="filter_category")
    assert "subcategory of bug_fix" in caught.value.message
    assert caught.value.field == "filter_category"


def test_both_levels_know_each_other() -> None:
    for category in CATEGORIES:
        for name, _ in category.subcategories:
            assert PARENTS[name] == category.name


@given(st.text(max_size=40))
def test_any_text_is_either_an_entry_or_refused(text: str) -> None:
    try:
        name = canonical_category(text)
    except InvalidInput:
        return
    assert name in CATEGORY_NAMES


@pytest.mark.parametrize("path", [*TRAINING, CHECK], ids=lambda path: path.stem)
def test_labelled_notes_are_well_formed(path: Path) -> None:
    for row in _rows(path):
        assert set(row) == {"text", "category", "subcategory", "role"}
        assert row["text"] == row["text"].strip() != ""
        assert row["role"] in ("user", "assistant")
        assert row["category"] in CATEGORY_NAMES
        assert PARENTS[row["subcategory"]] == row["category"]


def test_there_are_enough_notes_of_every_kind() -> None:
    training, check = _rows(*TRAINING), _rows(CHECK)
    assert len(training) >= 300
    assert len(check) >= 120
    assert {row["subcategory"] for row in training} == {row["subcategory"] for row in check} == set(SUBCATEGORIES)
    assert min(Counter(row["category"] for row in check).values()) >= 9
    for rows in (training, check):
        assert sum(600 <= len(row["text"]) <= 2000 for row in rows) >= 15


def test_no_note_stands_twice_and_the_check_set_is_apart() -> None:
    texts = [" ".join(row["text"].lower().split()) for row in _rows(*TRAINING, CHECK)]
    assert len(texts) == len(set(texts))
