"""Of results that speak of the same thing, the newest comes first when asked for; nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from cortex_py import Cortex, NewMemory
from cortex_py.core.records import Page

from stub_backend import StubBackend

OLD, NEW = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)
QUESTION = "where are the zanzibar invoices kept"
# The older answers in the very words of the question, the newer in fewer of them.
OLDER = "Where are the zanzibar invoices kept: the zanzibar invoices are kept in the cellar"
NEWER = "By now the zanzibar invoices lie in the attic, after all that rain and the move of the whole office"


@pytest.fixture
def cortex(home: Path, project: Path) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, backend=StubBackend()) as opened:
        yield opened


def _filled(cortex: Cortex, *contents: tuple[str, datetime]) -> None:
    others = [NewMemory(content=f"The lighthouse keeper counts ships, day {n}", created_at=OLD) for n in range(20)]
    cortex.memories.capture_many([*others, *(NewMemory(content=text, created_at=at) for text, at in contents)])


def _contents(page: Page) -> list[str]:
    return [hit.memory.content for hit in page.results]


def test_the_newer_of_two_on_one_subject_comes_first_when_asked_for(cortex: Cortex) -> None:
    _filled(cortex, (OLDER, OLD), (NEWER, NEW))
    assert _contents(cortex.memories.recall(QUESTION, limit=2)) == [OLDER, NEWER]
    assert _contents(cortex.memories.recall(QUESTION, limit=2, prefer_newer=True)) == [NEWER, OLDER]


def test_scores_are_exchanged_and_stay_in_order(cortex: Cortex) -> None:
    _filled(cortex, (OLDER, OLD), (NEWER, NEW))
    plain = [hit.score for hit in cortex.memories.recall(QUESTION, limit=8).results]
    newer = [hit.score for hit in cortex.memories.recall(QUESTION, limit=8, prefer_newer=True).results]
    assert newer == sorted(newer, reverse=True)
    assert newer == pytest.approx(plain)


def test_what_is_newer_and_about_something_else_stays_where_it_is(cortex: Cortex) -> None:
    _filled(cortex, (OLDER, OLD), ("The zanzibar crew sings about spices and cloves in the harbour tonight", NEW))
    wanted = _contents(cortex.memories.recall(QUESTION, limit=5))
    assert wanted[0] == OLDER
    assert _contents(cortex.memories.recall(QUESTION, limit=5, prefer_newer=True)) == wanted


def test_turns_of_one_line_of_work_are_no_versions_of_each_other(cortex: Cortex) -> None:
    line = cortex.contexts.create_branch("Invoices")
    _filled(cortex)
    turns = [(OLDER, OLD), (NEWER, NEW)]
    cortex.memories.capture_many(NewMemory(content=text, created_at=at, branch_id=line.id) for text, at in turns)
    wanted = _contents(cortex.memories.recall(QUESTION, limit=5))
    assert _contents(cortex.memories.recall(QUESTION, limit=5, prefer_newer=True)) == wanted


def test_the_setting_decides_where_a_call_does_not(home: Path, project: Path) -> None:
    with Cortex.open(home, project=project, backend=StubBackend(), prefer_newer=True) as cortex:
        _filled(cortex, (OLDER, OLD), (NEWER, NEW))
        assert _contents(cortex.memories.recall(QUESTION, limit=2)) == [NEWER, OLDER]
        assert _contents(cortex.memories.recall(QUESTION, limit=2, prefer_newer=False)) == [OLDER, NEWER]


def test_a_question_without_words_is_no_trouble(cortex: Cortex) -> None:
    _filled(cortex, (OLDER, OLD), (NEWER, NEW))
    for question in ("", "?!", "the", "zanzibar"):
        page = cortex.memories.recall(question, limit=50, prefer_newer=True)
        assert len({hit.memory.id for hit in page.results}) == len(page.results)


def test_pages_do_not_overlap(cortex: Cortex) -> None:
    _filled(cortex, *((f"{NEWER}, take {n}", datetime(2026, 2, 1 + n, tzinfo=UTC)) for n in range(12)), (OLDER, OLD))
    asked = partial(cortex.memories.recall, QUESTION, limit=5, prefer_newer=True, min_score=0.0)
    ids = [hit.memory.id for at in (0, 5, 10) for hit in asked(offset=at).results]
    assert len(ids) == len(set(ids)) == 15
