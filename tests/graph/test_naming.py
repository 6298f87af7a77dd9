"""Spellings of one thing share a key; different things do not."""

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.graph_values import ENTITY_TYPES, EntityType, canonical


@each(
    ("one", "other", "type"),
    [
        ("PostgreSQL", "postgresql", "Technology"),
        ("Postgres", "PostgreSQL", "Technology"),
        ("Node.js", "nodejs", "Technology"),
        ("k8s", "Kubernetes", "Technology"),
        ("Python 3.12", "python", "Technology"),
        ("GitHub Actions", "github-actions", "Technology"),
        ("@bob", "Bob", "Person"),
        ("Acme GmbH", "ACME", "Organization"),
        ("./src/app.py", "src\\app.py", "File"),
    ],
)
def test_spellings_meet(one: str, other: str, type: EntityType) -> None:
    assert canonical(one, type) == canonical(other, type)


@each(("one", "other"), [("C", "C++"), ("C", "C#"), ("Java", "JavaScript"), ("Go", "Google"), (".NET", "net")])
def test_different_things_stay_apart(one: str, other: str) -> None:
    assert canonical(one, "Technology") != canonical(other, "Technology")


@given(st.text(min_size=1), st.sampled_from(ENTITY_TYPES))
def test_a_name_never_loses_its_key(name: str, type: EntityType) -> None:
    key = canonical(name, type)
    assert key
    assert canonical(name, type) == key
