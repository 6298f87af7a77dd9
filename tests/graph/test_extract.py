"""Entities and relationships of a text are found at their places, and nothing else is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.graph_values import ENTITY_TYPES, Extraction
from cortex_py.parts.graph.reading.extract import MOST_CHARACTERS, extract
from cortex_py.parts.graph.reading.knowledge import NO_KNOWLEDGE, Knowledge
from timing import quick

WORDS = (
    "Alice from Anthropic uses Rust to build the Claude API . , ; @bob src/app.py:42 Go 1.22 we We our project § §1T "
    "conflicts with replaced ``` x=1; Traceback R&D don't https://a.b/c?d=(e) Google's Ünïcode 東京 ' ( ) <td> C++ C# "
    ".NET Node.js works at and or is not ? ! @ / \\ - --"
)
PIECES = st.sampled_from([*WORDS.split(), '"', "\n", "\n\n", "\n    ", "\t", "\x00", "\u202e", "\U0001f600", ""])
LONG = ["a", "§1T ", "+", "a.b@", "Alice and ", "@", "/a", "((", "Go uses ", "\n", "``` ", "Acme Inc ", "=;"]


def named(text: str, knowledge: Knowledge = NO_KNOWLEDGE) -> set[tuple[str, str]]:
    return {(entity.name, entity.type) for entity in extract(text, knowledge).entities}


def stated(text: str, knowledge: Knowledge = NO_KNOWLEDGE) -> set[tuple[str, str, str]]:
    found = extract(text, knowledge)
    return {(found.entities[row.source].name, row.type, found.entities[row.target].name) for row in found.relationships}


def check(text: str, found: Extraction, project: str = "") -> None:
    last = 0
    for entity in found.entities:
        assert entity.start >= last
        assert entity.start < entity.end
        last = entity.end
        assert entity.name == text[entity.start : entity.end] or (project and entity.name == project)
        assert entity.type in ENTITY_TYPES
        assert 0 < entity.confidence <= 1
        assert ":" in entity.method or entity.method == "tagger"
    for row in found.relationships:
        assert row.source != row.target
        assert 0 <= min(row.source, row.target) <= max(row.source, row.target) < len(found.entities)
        assert row.evidence
        assert len(row.evidence) <= 240
        assert 0 < row.confidence <= 1
        assert row.method.startswith("pattern:")


def test_the_documents_sentence() -> None:
    text = "Alice from Anthropic uses Rust to build the Claude API."
    assert named(text) == {
        ("Alice", "Person"),
        ("Anthropic", "Organization"),
        ("Rust", "Technology"),
        ("Claude API", "Technology"),
    }
    assert stated(text) == {
        ("Alice", "WorksAt", "Anthropic"),
        ("Alice", "Uses", "Rust"),
        ("Alice", "Created", "Claude API"),
    }
    assert all(row.evidence == text for row in extract(text).relationships)


def test_a_word_is_never_found_inside_another() -> None:
    found = extract("We go to Google; go fast; Go 1.22 is out").entities
    assert [(entity.name, entity.type) for entity in found] == [("Google", "Organization"), ("Go", "Technology")]
    assert named("R&D will look into it.") == set()
    assert named("The cargo goes out at dawn.") == set()


@each(
    ("text", "wanted"),
    [
        ("cc @bob please review", ("bob", "Person")),
        ("Maria Lopez said it works.", ("Maria Lopez", "Person")),
        ("See src/app.py:42 for the fix.", ("src/app.py", "File")),
        ("CI runs in GitHub Actions now.", ("GitHub Actions", "Technology")),
        ("Built by Acme GmbH in 2020.", ("Acme GmbH", "Organization")),
        ("The index lives in PostgreSQL.", ("PostgreSQL", "Technology")),
        ("We upgraded to Python 3.12 today.", ("Python", "Technology")),
    ],
)
def test_names_as_developers_write_them(text: str, wanted: tuple[str, str]) -> None:
    assert wanted in named(text)


@each(
    "text",
    [
        "Mark the ticket as done.",
        "Will this work tomorrow?",
        "Everyone said yes.",
        "Thanks for the review.",
        "Great work, see you on Monday.",
        "Maybe later. However, not now.",
    ],
)
def test_common_words_are_not_people(text: str) -> None:
    assert not {name for name, type in named(text) if type in ("Person", "Organization")}


def test_code_and_stack_traces_do_not_flood() -> None:
    text = (
        "The job failed:\n```python\nimport numpy as np\nfrom django.db import models\nRedis().get(Alice)\n```\n"
        'Traceback (most recent call last):\n  File "/srv/app.py", line 3, in main\n'
        "    at com.google.Foo.bar(Foo.java:12)\nNothing else.\n"
    )
    assert extract(text).entities == ()


@each(
    ("text", "wanted"),
    [
        ("We replaced MySQL with PostgreSQL.", ("PostgreSQL", "Supersedes", "MySQL")),
        ("We migrated from Jenkins to GitHub Actions.", ("GitHub Actions", "Supersedes", "Jenkins")),
        ("NumPy is incompatible with TensorFlow.", ("NumPy", "ConflictsWith", "TensorFlow")),
        ("Django was created by Maria Lopez.", ("Maria Lopez", "Created", "Django")),
        ("FastAPI depends on Starlette and Pydantic.", ("FastAPI", "Uses", "Pydantic")),
    ],
)
def test_relationships_are_read_from_the_sentence(text: str, wanted: tuple[str, str, str]) -> None:
    assert wanted in stated(text)


@each(
    "text",
    [
        "We do not use Redis.",
        "We don't use Redis.",
        "We never used Redis.",
        "We no longer use Redis.",
        "We stopped using Redis.",
        "We might use Redis.",
        "Should we use Redis?",
        "Alice does not use Redis.",
        "Alice never used Redis.",
    ],
)
def test_what_is_denied_doubted_or_asked_states_nothing(text: str) -> None:
    assert stated(text, Knowledge(project="cortex")) == set()


@each(
    ("text", "wanted"),
    [
        ("OpenTelemetry supersedes OpenTracing.", ("OpenTelemetry", "Supersedes", "OpenTracing")),
        ("Gatsby was deprecated in favour of Astro.", ("Astro", "Supersedes", "Gatsby")),
        ("containerd is included in Docker.", ("containerd", "PartOf", "Docker")),
        ("Airflow replaced Luigi.", ("Airflow", "Supersedes", "Luigi")),
        ("Svelte was created by Rich Harris.", ("Rich Harris", "Created", "Svelte")),
        ("Guido van Rossum wrote Python.", ("Guido van Rossum", "Created", "Python")),
        ("scripts/seed.py was written by Olu.", ("Olu", "Created", "scripts/seed.py")),
        ("Rosa looks after the Invoice Engine.", ("Rosa", "RelatesTo", "Invoice Engine")),
    ],
)
def test_a_statement_makes_a_possible_name_one(text: str, wanted: tuple[str, str, str]) -> None:
    assert wanted in stated(text)


def test_a_statement_gives_a_name_the_type_that_fits() -> None:
    assert ("Luigi", "Technology") in named("Airflow replaced Luigi.")
    assert ("Olu", "Person") in named("scripts/seed.py was written by Olu.")


@each(
    "text",
    [
        "Developers use Docker daily.",
        "Migrations depend on Alembic.",
        "Marketing uses HubSpot.",
        "Hannah built the exporter.",
        "Anna replaced Ben on the rota.",
    ],
)
def test_ordinary_words_are_no_part_of_a_relationship(text: str) -> None:
    assert stated(text) == set()


def test_we_are_the_project_only_when_the_caller_names_it() -> None:
    assert stated("We use Redis and Kafka.") == set()
    project = Knowledge(project="cortex")
    assert stated("We use Redis and Kafka.", project) == {("cortex", "Uses", "Redis"), ("cortex", "Uses", "Kafka")}
    assert named("We met on Tuesday.", project) == set()


def test_the_projects_names_are_known_by_whole_words_and_case() -> None:
    known = Knowledge(
        packages=frozenset(("zorglub-kit", "rich")),
        authors=frozenset(("Will Byrne",)),
        organizations=frozenset(("tessel-works",)),
        paths=frozenset(("src/flow/pump.py",)),
        symbols=frozenset(("PumpState",)),
    )
    text = "Will Byrne of tessel-works put PumpState into pump.py with zorglub-kit; a rich text will do."
    found = {(entity.name, entity.type, entity.method) for entity in extract(text, known).entities}
    assert {
        ("Will Byrne", "Person", "dictionary:author"),
        ("tessel-works", "Organization", "dictionary:organisation"),
        ("PumpState", "Concept", "dictionary:symbol"),
        ("pump.py", "File", "dictionary:path"),
        ("zorglub-kit", "Technology", "dictionary:package"),
    } <= found
    sure = {entity.name for entity in extract(text, known).entities if entity.confidence >= 0.6}
    assert not sure & {"rich", "will"}


@given(st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=60).map(" ".join)))
def test_any_text_is_read_without_fail(text: str) -> None:
    check(text, extract(text))


@given(st.lists(PIECES, max_size=60).map(" ".join), st.text(max_size=20))
def test_any_knowledge_is_used_without_fail(text: str, name: str) -> None:
    knowledge = Knowledge(
        packages=frozenset((name,)), authors=frozenset((name, "Alice Rust")), paths=frozenset((name,)), project="cortex"
    )
    check(text, extract(text, knowledge), "cortex")


@pytest.mark.slow
@each("piece", ["a", "§1T ", "+", "a.b@", "Alice and ", "@", "/a", "((", "Go uses ", "\n", "``` ", "Acme Inc ", "=;"])
def test_long_texts_are_bounded(piece: str) -> None:
    text = piece * (2 * MOST_CHARACTERS // len(piece))
    found = quick(lambda: extract(text), 10)
    check(text, found)
    assert all(entity.end <= MOST_CHARACTERS for entity in found.entities)


def test_the_same_text_gives_the_same_answer() -> None:
    text = "Priya from Google moved src/a.py from Flask to FastAPI. " * 20
    assert extract(text) == extract(text)
