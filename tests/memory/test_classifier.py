"""Classification of notes: clear ones are recognised, hostile ones do no harm, and only the certain ones are filed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cases import each
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.memory.labels.classifier import (
    BY_CATEGORY,
    BY_SUBCATEGORY,
    FEATURE_NAMES,
    FILING_FLOOR,
    HEAD,
    SUBCATEGORY_NAMES,
    Classification,
    Classifier,
    OntologyModel,
    cues_digest,
    default_lexicon,
    default_model,
    namespace_for,
)
from cortex_py.core.memory.labels.ontology import CATEGORY_NAMES, PARENTS
from cortex_py.core.memory.spaces import canonical_namespace

DATA = Path(__file__).parents[2] / "bench" / "data"
CLEAR = [
    (
        "Wrote a decorator that retries a function with exponential back-off; the helper is in net/retry.py.",
        "development",
    ),
    ("The app crashes when the list is empty. Steps to reproduce: delete the last entry, then press back.", "bug_fix"),
    ("Customers would like to be able to export their orders, and asked for a button on the profile page.", "feature"),
    (
        "Refactored the order class: extracted three modules, removed duplicated code, behaviour unchanged.",
        "refactoring",
    ),
    ("We decided on an event-driven architecture with bounded contexts instead of a monolith.", "architecture"),
    ("SQL injection in the login form: an attacker could read password hashes. Input is sanitised now.", "security"),
    ("Backfilled the new column of the customers table and added a foreign key constraint.", "data"),
    ("Kubernetes pods are rolled out with Helm; the load balancer and DNS are managed by Terraform.", "infrastructure"),
    ("Added unit tests with pytest fixtures; coverage is 94 % and the flaky test is quarantined.", "testing"),
    ("Rewrote the README and the getting started guide, with examples for every option.", "documentation"),
    ("The query is slow: p95 latency is 900 ms. The profiler shows a full scan; caching halves it.", "performance"),
    (
        "Sprint planning: Anna takes the login epic, deadline is Friday, the estimate is 13 points.",
        "project_management",
    ),
    ("Thanks a lot, have a nice weekend!", "general"),
]


@pytest.fixture(scope="module")
def classifier(model: Backend) -> Classifier:
    return Classifier(model.fingerprint)


def test_prototypes_fit_the_model_that_ships(model: Backend) -> None:
    assert default_model().with_vector.fingerprint == model.fingerprint


@each(("text", "category"), CLEAR, ids=[category for _, category in CLEAR])
def test_clear_notes_are_recognised_with_and_without_a_vector(
    classifier: Classifier, model: Backend, text: str, category: str
) -> None:
    found = classifier.classify(text, np.asarray(model.embed([text]), np.float32)[0])
    assert (found.category, found.basis) == (category, "vector")
    assert found.subcategory is None or PARENTS[found.subcategory] == category
    alone = classifier.classify(text, None)
    assert (alone.category, alone.basis, alone.subcategory) == (category, "cues", None)


def test_many_notes_get_the_answers_that_each_gets_alone(classifier: Classifier, model: Backend) -> None:
    texts = [text for text, _ in CLEAR] + ["", "zzzz"]
    vectors: list[NDArray[np.float32] | None] = list(np.asarray(model.embed(texts), np.float32))
    vectors[::3] = [None] * len(vectors[::3])
    for found, text, vector in zip(classifier.classify_many(texts, vectors), texts, vectors, strict=True):
        alone = classifier.classify(text, vector)
        assert replace(found, confidence=alone.confidence) == alone
        assert found.confidence == pytest.approx(alone.confidence)
    assert classifier.classify_many([], []) == []


def test_vectors_of_another_embedding_model_are_left_aside(model: Backend) -> None:
    stranger = Classifier("some other model")
    text = CLEAR[8][0]
    assert stranger.classify(text, np.ones(7, np.float32)) == Classifier(model.fingerprint).classify(text, None)


@pytest.mark.parametrize("value", [0.0, np.inf, np.nan])
def test_a_vector_that_points_nowhere_is_as_none(classifier: Classifier, model: Backend, value: float) -> None:
    vector = np.full(model.dimensions, value, np.float32)
    assert classifier.classify("a note", vector) == classifier.classify("a note", None)


def test_a_vector_of_the_wrong_length_is_refused(classifier: Classifier) -> None:
    with pytest.raises(ValueError, match="shape"):
        classifier.classify("a note", np.ones(3, np.float32))


HOSTILE = {
    "empty": "",
    "blank": " \n\t ",
    "emoji": "🔥" * 5000,
    "one endless word": "a" * 1_000_000,
    "a megabyte of words": "test slow bug " * 75_000,
    "brackets": "f(" * 500_000,
    "slashes": "a/" * 500_000,
    "dots": "a." * 500_000,
    "binary": "".join(map(chr, range(1, 256))) * 4000,
    "lone surrogates": "\ud800\udfff x",
    "combining marks": "e" + "\u0301" * 100_000,
}


@each("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_gets_an_answer(classifier: Classifier, text: str) -> None:
    found = classifier.classify(text, None)
    assert found.category in CATEGORY_NAMES
    assert 0.0 <= found.confidence <= 1.0


def test_only_the_beginning_of_a_long_text_is_read(classifier: Classifier) -> None:
    head = ("The nightly backup of the cluster failed. " * 40)[:HEAD]
    assert classifier.classify(head + " thanks" * 100_000, None) == classifier.classify(head, None)


@given(text=st.text(max_size=300), seed=st.integers(0, 1000))
def test_any_text_gets_the_same_answer_each_time(text: str, seed: int) -> None:
    fingerprint = default_model().with_vector.fingerprint
    vector = np.random.default_rng(seed).normal(size=384).astype(np.float32)
    first = Classifier(fingerprint).classify(text, vector)
    assert first == Classifier(fingerprint).classify(text, vector)
    assert first.category in CATEGORY_NAMES
    assert 0.0 <= first.confidence <= 1.0
    assert first.subcategory is None or PARENTS[first.subcategory] == first.category


def test_the_length_of_a_vector_does_not_matter(classifier: Classifier, model: Backend) -> None:
    text = CLEAR[5][0]
    vector = np.asarray(model.embed([text]), np.float32)[0]
    assert classifier.classify(text, vector * 40).category == classifier.classify(text, vector).category


def test_features_are_finite_and_named() -> None:
    found = default_model().features("Fixed the 500 in `parse()`: 3 ms → 1 ms, see README.md")
    assert found.shape == (len(FEATURE_NAMES),)
    assert np.isfinite(found).all()
    cues, stems = default_lexicon().read("tests testing")
    assert stems == {"test"}
    assert cues.max() <= 2.0


def test_rare_words_count_for_more_and_all_together_have_length_one() -> None:
    words = default_model().words
    known = words.known({"the", "kubernet", "zzzz"})
    shares = dict(zip(known.tolist(), words.shares(known).tolist(), strict=True))
    assert set(shares) == {words.rows["the"], words.rows["kubernet"]}
    assert shares[words.rows["kubernet"]] > shares[words.rows["the"]]
    assert sum(share**2 for share in shares.values()) == pytest.approx(1.0)
    assert words.shares(words.known({"zzzz"})).size == 0


def test_the_model_was_made_from_these_notes_and_cues() -> None:
    content = b"".join((DATA / f"{name}.jsonl").read_bytes() for name in ("ontology_notes", "ontology_notes_later"))
    provenance = default_model().provenance
    assert provenance["notes_sha256"] == hashlib.sha256(content).hexdigest(), "run training/ontology/train_ontology.py"
    assert provenance["cues"] == cues_digest(), "run training/ontology/train_ontology.py"
    assert provenance["notes"] == content.count(b"\n")


def test_a_model_for_another_ontology_or_other_cues_is_refused() -> None:
    path = Path(__file__).parents[2] / "src" / "cortex_py" / "core" / "memory" / "labels" / "ontology_model.json"
    content = json.loads(path.read_text("utf-8"))
    fewer = content | {"cues_alone": content["cues_alone"] | {"subcategories": ["conversation"]}}
    with pytest.raises(ValueError, match="another ontology"):
        OntologyModel.from_json(json.dumps(fewer))
    del content["with_vector"]["cues"]["code"]
    with pytest.raises(ValueError, match="other cues"):
        OntologyModel.from_json(json.dumps(content))


def test_certain_notes_are_filed_and_others_stay() -> None:
    sure = Classification("security", None, FILING_FLOOR, "vector")
    assert namespace_for(sure) == "security"
    assert namespace_for(replace(sure, confidence=FILING_FLOOR - 0.01)) is None
    assert namespace_for(Classification("general", "conversation", 1.0, "vector")) is None
    assert namespace_for(Classification("architecture", "technology_choice", 0.99, "vector")) == "decisions"
    assert namespace_for(Classification("architecture", "interface_design", 0.99, "vector")) == "apis"


def test_notes_are_only_filed_in_namespaces_that_exist() -> None:
    assert set(BY_CATEGORY) <= set(CATEGORY_NAMES)
    assert set(BY_SUBCATEGORY) <= set(SUBCATEGORY_NAMES)
    for name in (*BY_CATEGORY.values(), *BY_SUBCATEGORY.values()):
        assert canonical_namespace(name) == name
