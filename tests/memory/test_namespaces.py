"""The namespaces, their spellings, and the answer to a name that is none."""

from __future__ import annotations

import pytest

from cases import each
from cortex_py.core.errors import UnknownNamespace
from cortex_py.core.memory.spaces import NAMESPACES, canonical_namespace


def test_the_names_are_those_of_the_document_and_two_more() -> None:
    assert [namespace.name for namespace in NAMESPACES] == [
        "decisions",
        "patterns",
        "learnings",
        "context",
        "tech-debt",
        "blockers",
        "progress",
        "apis",
        "config",
        "security",
        "testing",
        "performance",
        "prompts",
    ]


def test_the_two_examples_of_the_document_are_kept_to_the_letter() -> None:
    decisions, patterns = NAMESPACES[:2]
    assert decisions.description == "Architectural and design decisions"
    assert decisions.signal_words == ("decided", "chose", "going with")
    assert patterns.description == "Discovered patterns and conventions"
    assert patterns.signal_words == ("always", "never", "convention")


def test_every_namespace_explains_itself_and_has_its_own_signal_words() -> None:
    assert all(namespace.description and len(namespace.signal_words) == 3 for namespace in NAMESPACES)
    words = [word for namespace in NAMESPACES for word in namespace.signal_words]
    assert len(words) == len(set(words))


@each(
    ("spelled", "name"),
    [
        ("decisions", "decisions"),
        ("  Decisions\n", "decisions"),
        ("TECH-DEBT", "tech-debt"),
        ("techdebt", "tech-debt"),
        ("Tech_Debt", "tech-debt"),
    ],
)
def test_case_space_and_aliases_do_not_matter(spelled: str, name: str) -> None:
    assert canonical_namespace(spelled) == name


@each("spelled", ["", " ", "decision", "decisions,patterns", "global", "x" * 500])
def test_an_unknown_name_is_refused_with_the_valid_ones(spelled: str) -> None:
    with pytest.raises(UnknownNamespace) as caught:
        canonical_namespace(spelled)
    assert "decisions, patterns, learnings, context, tech-debt" in str(caught.value)
    assert len(caught.value.message) < 130
