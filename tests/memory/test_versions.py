"""In the results what was given up follows the memory that says so, a text stands once, and nothing is padded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from cases import each
from cortex_py import Cortex, NewMemory
from cortex_py.core.memory.comparison.conflicts import given_up
from cortex_py.core.records import Hit

START = datetime(2026, 3, 1, tzinfo=UTC)
OTHERS = (
    "Run VACUUM on the SQLite file every Sunday night.",
    "The login form locks an account after five failed attempts.",
    "Commit messages use the imperative mood.",
    "Images are resized to 800 pixels before upload.",
    "Backups are encrypted with age and kept for 30 days.",
    "Feature flags live in flags.toml.",
)
# What was so, what replaced it, and a question that both answer.
REVERSALS = {
    "no longer": ("We use npm", "We use pnpm, npm is no longer allowed", "which package manager do we use"),
    "from to": (
        "Carts live in PostgreSQL.", "We switched carts from PostgreSQL to Redis.", "Where do carts live today?"
    ),
    "denied": (
        "Deploys happen on Fridays.", "We no longer deploy on Fridays; deploys happen on Tuesdays.", "when do we deploy"
    ),
    "instead of": (
        "Mails go out through SES.", "Decided: mails go out through Postmark instead of SES.", "how are mails sent"
    ),
    "moved": ("CI runs on Jenkins.", "CI moved from Jenkins to GitHub Actions in May.", "where does CI run"),
    "switched to": ("Background jobs run on Celery.", "Background jobs switched to Dramatiq.", "what runs our jobs"),
    "any more": (
        "Passwords are hashed with bcrypt.",
        "Passwords are not hashed with bcrypt any more, we use argon2.",
        "how are passwords hashed",
    ),
    "replaced": (
        "The site is written in React.", "We replaced React with Svelte in the site.", "how is the site made"
    ),
}  # fmt: skip
# The older holds beside the newer, however alike they are.
LOOKALIKES = {
    "another thing": ("Orders live in PostgreSQL.", "We switched carts from PostgreSQL to Redis."),
    "another property": ("Carts expire after 30 days.", "We switched carts from PostgreSQL to Redis."),
    "the same rule": ("Never deploy on Fridays.", "We no longer deploy on Fridays; deploys happen on Tuesdays."),
    "the other value": ("We deploy on Tuesdays.", "We no longer deploy on Fridays; deploys happen on Tuesdays."),
    "others": ("The design team meets on Mondays.", "The team does not meet on Mondays anymore."),
    "the reason": ("moment.js adds 70 kB to the bundle.", "Use date-fns instead of moment.js for dates."),
    "of another scope": ("The internal API uses GraphQL.", "The public API uses REST instead of GraphQL."),
    "a question": ("We use Vitest.", "Should we use Jest instead of Vitest?"),
    "a plan": ("We use Vitest.", "We plan to use Jest instead of Vitest."),
    "a denial": ("We use Vitest.", "We did not switch from Vitest to Jest."),
    "in some cases": ("Images are built with Kaniko.", "Images are built with Buildah instead of Kaniko when on ARM."),
    "a fault": ("The endpoint returns 404.", "The endpoint returned 500 instead of 404."),
    "history": ("Alice wrote the billing service.", "The billing service is owned by Bob instead of Alice."),
    "more than": ("We check activeZone.", "We check activeZone and isActive instead of just activeZone."),
    "work in progress": ("Commands live in main.go.", "Commands are being moved from main.go to pkg/cmd."),
}  # fmt: skip


@pytest.mark.parametrize(("older", "newer", "question"), REVERSALS.values(), ids=REVERSALS)
def test_what_was_given_up_follows_what_took_its_place(cortex: Cortex, older: str, newer: str, question: str) -> None:
    old, new = _stored(cortex, older, newer)
    hits = cortex.memories.recall(question).results
    assert _ids(hits).index(new) < _ids(hits).index(old)
    assert {hit.memory.id: hit.outdated_by for hit in hits if hit.outdated_by} == {old: new}
    assert _ids(cortex.memories.recall(question, limit=1).results) == [new]
    assert [one.memory_id for one in cortex.memories.conflicts(new)] == [old]


@each("older, newer", LOOKALIKES.values(), ids=LOOKALIKES)
def test_what_still_holds_is_not_taken_for_given_up(older: str, newer: str) -> None:
    assert given_up(older, newer) is None


def test_the_order_of_time_decides(cortex: Cortex) -> None:
    later, earlier, question = REVERSALS["no longer"]
    _stored(cortex, earlier, later)
    assert not any(hit.outdated_by for hit in cortex.memories.recall(question).results)


def test_nothing_is_outdated_by_what_nobody_reviewed_or_by_what_is_deleted(cortex: Cortex) -> None:
    older, newer, question = REVERSALS["from to"]
    old, new = _stored(cortex, older, newer)
    cortex.memories.update(new, status="pending")
    assert not any(hit.outdated_by for hit in cortex.memories.recall(question).results)
    cortex.memories.update(new, status="active")
    assert old in [hit.memory.id for hit in cortex.memories.recall(question).results if hit.outdated_by]
    cortex.memories.delete(new)
    assert not any(hit.outdated_by for hit in cortex.memories.recall(question).results)


def test_what_the_graph_says_supersedes_another_is_obeyed(cortex: Cortex) -> None:
    old, new = _stored(cortex, "Carts live in PostgreSQL.", "Carts live in Redis.")
    assert cortex.memories.finish_reading()
    question = "Where do carts live in PostgreSQL?"
    assert _ids(cortex.memories.recall(question).results)[:2] == [old, new]
    cortex.graph.relate("Redis", "PostgreSQL", "Supersedes")
    hits = cortex.memories.recall(question).results
    assert _ids(hits)[:2] == [new, old]
    assert hits[1].outdated_by == new


def test_a_text_that_is_stored_twice_is_shown_once_and_the_newest_is_kept(cortex: Cortex) -> None:
    first, second, third = _stored(cortex, *["Invoices are rendered by WeasyPrint."] * 3)
    page = cortex.memories.recall("how are invoices rendered")
    assert [one for one in _ids(page.results) if one in (first, second, third)] == [third]
    assert page.total == len(page.results)
    assert cortex.memories.get(third).duplicate_of == first
    assert cortex.memories.recall().total == len(OTHERS) + 3
    cortex.memories.update(third, status="pending")
    found = _ids(cortex.memories.recall("how are invoices rendered").results)
    assert [one for one in found if one in (first, second, third)] == [second]


def test_texts_of_the_same_words_in_another_order_are_two(cortex: Cortex) -> None:
    both = _stored(cortex, "The worker waits for the queue.", "The queue waits for the worker.")
    found = _ids(cortex.memories.recall("worker queue", mode="text").results)
    assert sorted(found) == sorted(both)


def test_results_that_say_nothing_are_left_out_unless_they_are_asked_for(cortex: Cortex) -> None:
    _stored(cortex, "We use JWT tokens for authentication, signed with HS256.")
    page = cortex.memories.recall("authentication patterns")
    assert page.total == len(page.results) < len(OTHERS) + 1
    assert all(round(hit.score, 2) > 0 for hit in page.results)
    everything = cortex.memories.recall("authentication patterns", min_score=0.0)
    assert everything.total == len(everything.results) == len(OTHERS) + 1
    assert cortex.memories.recall().total == len(OTHERS) + 1


def _stored(cortex: Cortex, *texts: str) -> list[str]:
    """The ids of texts that were captured a day after one another, beside others."""
    others = [NewMemory(content=text, created_at=START) for text in OTHERS]
    asked = [NewMemory(content=text, created_at=START + timedelta(days=n + 1)) for n, text in enumerate(texts)]
    return [one.id for one in cortex.memories.capture_many([*others, *asked])][len(OTHERS) :]


def _ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.memory.id for hit in hits]
