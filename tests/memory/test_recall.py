"""Recall: what is found, in which order, with which score, on which page."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases import each
from cortex_py import Cortex, NewMemory
from cortex_py.core.errors import FilterSyntaxError, InvalidInput, UnknownNamespace

from helpers import FakeClock

pytestmark = pytest.mark.usefixtures("retrieval")

NOTES = [
    "Use PostgreSQL for primary storage because of JSONB support",
    "Access tokens are JWT and expire after fifteen minutes; refresh tokens live in a cookie",
    "The nightly build fails on Windows because paths are longer than 260 characters",
    "getUserById in src/auth/users.py returns None for deleted accounts",
    "Deploy with `cortex serve --portable-names` when the client is Claude Desktop",
    "Error E1234 means that the licence has expired",
    "データベースの移行は金曜日に行う",
    "Café menus are cached for one hour",
    "Ship 🚀 the release on Thursday",
    "snake_case for modules, CamelCase for classes",
]


@pytest.fixture
def notes(cortex: Cortex) -> Cortex:
    cortex.memories.capture_many([NewMemory(content=note) for note in NOTES])
    return cortex


def _contents(cortex: Cortex, query: str, **options) -> list[str]:
    return [hit.memory.content for hit in cortex.memories.recall(query, **options).results]


@pytest.mark.parametrize("mode", ["hybrid", "vector", "text"])
def test_the_right_memory_comes_first(notes: Cortex, mode) -> None:
    assert _contents(notes, "primary storage PostgreSQL", mode=mode)[0] == NOTES[0]


@pytest.mark.parametrize("query", ["which database did we choose", "database storage decision"])
def test_meaning_is_enough(notes: Cortex, query: str) -> None:
    assert _contents(notes, query)[0] == NOTES[0]


@each(
    ("query", "number"),
    [
        ("getUserById", 3),
        ("get user by id", 3),
        ("users.py", 3),
        ("src/auth/users.py", 3),
        ("--portable-names", 4),
        ("portable names", 4),
        ("E1234", 5),
        ("金曜日", 6),
        ("データベース", 6),
        ("cafe", 7),
        ("CAFÉ", 7),
        ("🚀", 8),
        ("camelcase", 9),
        ("snake case", 9),
    ],
)
def test_identifiers_paths_and_scripts_are_found_by_words_alone(notes: Cortex, query: str, number: int) -> None:
    assert _contents(notes, query, mode="text")[0] == NOTES[number]


def test_text_mode_returns_only_what_holds_a_word(notes: Cortex) -> None:
    page = notes.memories.recall("windows", mode="text")
    assert [hit.memory.content for hit in page.results] == [NOTES[2]]
    assert page.total == 1
    assert notes.memories.recall("zebra", mode="text").total == 0


def test_a_right_match_scores_high_and_nonsense_low(notes: Cortex) -> None:
    assert notes.memories.recall("database storage decision").results[0].score >= 0.5
    assert notes.memories.recall("best pasta recipe with mushrooms").results[0].score < 0.3
    assert notes.memories.recall("best pasta recipe with mushrooms", min_score=0.3).results == ()


@pytest.mark.parametrize("fusion", ["learned", "weighted", "rrf"])
def test_scores_lie_between_nought_and_one_and_fall(notes: Cortex, fusion) -> None:
    scores = [hit.score for hit in notes.memories.recall("tokens expire", fusion=fusion).results]
    assert scores == sorted(scores, reverse=True)
    assert all(0.0 <= score <= 1.0 for score in scores)


def test_ties_go_to_the_newer_and_the_order_is_the_same_every_time(cortex: Cortex, clock: FakeClock) -> None:
    ids = []
    # Of one line of work, only the newest would be shown.
    for branch in [cortex.contexts.create_branch(f"Topic {number}").id for number in range(6)]:
        ids.append(cortex.memories.capture("exactly the same words", branch_id=branch).id)
        clock.advance(seconds=1)
    for _ in range(3):
        assert [hit.memory.id for hit in cortex.memories.recall("same words").results] == ids[::-1]


def test_without_a_query_the_newest_are_listed_with_a_true_total(cortex: Cortex, clock: FakeClock) -> None:
    for number in range(7):
        cortex.memories.capture(f"note {number}")
        clock.advance(seconds=1)
    page = cortex.memories.recall(limit=3, offset=2)
    assert [hit.memory.content for hit in page.results] == ["note 4", "note 3", "note 2"]
    assert page.total == 7
    assert [hit.snippet for hit in page.results] == ["note 4", "note 3", "note 2"]
    assert cortex.memories.recall("  ").total == 7


def test_a_search_can_be_paged(notes: Cortex) -> None:
    whole = _contents(notes, "the release", limit=10)
    assert (
        _contents(notes, "the release", limit=4, offset=0) + _contents(notes, "the release", limit=6, offset=4) == whole
    )


def test_a_long_record_is_found_by_any_of_its_parts(cortex: Cortex) -> None:
    filler = "The weather was mild and nothing of note happened that day. " * 60
    needle = "The vault password rotates every ninety days by order of the security team."
    long = filler + needle + " " + filler
    cortex.memories.capture_many([NewMemory(content=long), NewMemory(content="Lunch is at noon")])
    for mode in ("hybrid", "vector", "text"):
        hit = cortex.memories.recall("how often does the vault password rotate", mode=mode).results[0]
        assert hit.memory.content == long
        assert "ninety days" in hit.snippet
        assert len(hit.snippet) <= 200


def test_neighbours_in_a_line_of_work_help_to_find_a_turn(cortex: Cortex) -> None:
    line = cortex.contexts.create_branch("chat")
    other = cortex.contexts.create_branch("other chat")
    turns = ["Which city did you like best on the trip through Portugal?", "Porto, by far! The river at dusk."]
    cortex.memories.capture_many(
        [NewMemory(content=turn, branch_id=line.id) for turn in turns]
        + [NewMemory(content=f"Filler sentence number {i} about gardening.", branch_id=other.id) for i in range(20)]
    )
    assert turns[1] in _contents(cortex, "favourite city on the Portugal trip", limit=2)


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 10_000}, {"offset": -1}, {"min_score": 2.0}, {"mode": "x"}])
def test_bad_arguments_are_refused(notes: Cortex, wrong) -> None:
    with pytest.raises(InvalidInput):
        notes.memories.recall("x", **wrong)


def test_filters_are_refused_or_answered_with_warnings(notes: Cortex) -> None:
    with pytest.raises(FilterSyntaxError) as refused:
        notes.memories.recall("x", filter="since:yesterdayish")
    assert refused.value.position == 6
    with pytest.raises(UnknownNamespace):
        notes.memories.recall("x", filter="ns:nonsense")
    with pytest.raises(UnknownNamespace):
        notes.memories.recall("x", namespace="nonsense")
    with pytest.raises(FilterSyntaxError, match="There is no filter key 'colour'"):
        notes.memories.recall("storage", filter="colour:blue")
    page = notes.memories.recall("storage", filter="blue")
    assert "blue" in page.warnings[0]
    assert page.results


def test_a_write_is_seen_by_the_very_next_recall_of_another_opening(home: Path, project: Path, model) -> None:
    with (
        Cortex.open(home, project=project, backend=model) as one,
        Cortex.open(home, project=project, backend=model) as two,
    ):
        for number in range(5):
            memory = one.memories.capture(f"fact number {number} about turtles")
            assert memory.id in {hit.memory.id for hit in two.memories.recall("turtles fact").results}
        two.memories.delete(memory.id)
        assert memory.id not in {hit.memory.id for hit in one.memories.recall("turtles fact").results}
        one.memories.restore(memory.id)
        two.memories.update(memory.id, content="now about zebras instead")
        assert one.memories.recall("zebras", mode="text").results[0].memory.id == memory.id
        assert one.memories.recall("turtles", mode="text").total == 4
        two.memories.delete(memory.id, hard=True)
        assert one.memories.recall("zebras", mode="text").total == 0


_hostile = st.one_of(
    st.text(max_size=80),
    st.text(alphabet="\"'*-+:^(){}[]~|&!\\/NEAR OROT ANDabc\x00\ud800🦀", max_size=40),
    st.sampled_from(
        ['"', "*", "NEAR(a b)", "a AND", "NOT", "col:x", "x*", "-", "'; --", "a OR OR b", "\x00", "{", "^a"]
    ),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(query=_hostile, mode=st.sampled_from(["hybrid", "vector", "text"]))
def test_any_string_is_a_valid_query(notes: Cortex, query: str, mode) -> None:
    page = notes.memories.recall(query, mode=mode, limit=3)
    assert len(page.results) <= max(3, 0)
    assert page.total >= len(page.results)


PARAPHRASED = {
    "undo a bad deployment": "To roll back, run make rollback RELEASE=<tag>; it repoints the load balancer and leaves "
    "the database alone.",
    "login secrets protection": "Passwords are hashed with argon2id, 64 MiB and 3 passes.",
    "which timezone do we save dates in": "Store every timestamp in UTC; convert it in the template only.",
}


def test_paraphrases_in_a_small_store_reach_the_threshold_and_other_subjects_do_not(cortex: Cortex) -> None:
    cortex.memories.capture_many([NewMemory(content=note) for note in PARAPHRASED.values()])
    for query, note in PARAPHRASED.items():
        first = cortex.memories.recall(query).results[0]
        assert (first.memory.content, first.score >= 0.3) == (note, True), (query, first.score)
    for query in ("best recipe for sourdough bread", "how tall is the Eiffel Tower"):
        assert cortex.memories.recall(query).results[0].score < 0.3


def test_one_note_in_an_empty_store_reaches_the_threshold(cortex: Cortex) -> None:
    cortex.memories.capture("Use PostgreSQL for JSONB")
    assert cortex.memories.recall("database choice").results[0].score >= 0.3


def test_near_identical_notes_do_not_lower_each_other(cortex: Cortex) -> None:
    cortex.memories.capture("The nightly backup is encrypted with age and kept for 35 days")
    alone = cortex.memories.recall("how long are backups kept").results[0].score
    for day in ("Monday", "Tuesday", "Wednesday"):
        cortex.memories.capture(f"The nightly backup is encrypted with age and kept for 35 days, checked on {day}")
    scores = [hit.score for hit in cortex.memories.recall("how long are backups kept").results]
    assert min(scores) > 0.3
    assert max(scores) > alone - 0.15


_LISTED = ("", "ns:decisions", "ns:decisions,learnings since:1h", "status:archived,active", "before:30m", "tag:odd")


def test_a_list_in_pages_is_the_whole_list_in_order(cortex: Cortex, clock: FakeClock) -> None:
    """Of several domains, namespaces and statuses, with records of the same time."""
    kept = []
    for n in range(24):
        namespace, domain = ("decisions", "learnings", "patterns")[n % 3], ("project", "user")[n % 2]
        tags, ttl = ["odd"] if n % 2 else [], "30m" if n == 5 else None
        kept.append(
            cortex.memories.capture(f"Note {n} of the list", namespace=namespace, domain=domain, tags=tags, ttl=ttl)
        )
        if n % 4 == 3:
            clock.advance(minutes=10)
    cortex.memories.delete(kept[8].id)
    cortex.memories.supersede(kept[9].id, kept[11].id)
    lists = {filter: cortex.memories.recall(filter=filter, limit=100) for filter in _LISTED}
    for filter, whole in lists.items():
        shown = [hit.memory for hit in whole.results]
        assert len(shown) == whole.total > 3, filter
        assert shown == sorted(shown, key=lambda one: (one.created_at, one.id), reverse=True)
        pages = [cortex.memories.recall(filter=filter, limit=5, offset=n) for n in range(0, 30, 5)]
        assert [hit.memory.id for page in pages for hit in page.results] == [one.id for one in shown]
    # Then counted by the columns of a process that searched; before, by the store itself.
    cortex.memories.recall("note of the list")
    assert {filter: cortex.memories.recall(filter=filter, limit=1).total for filter in _LISTED} == {
        filter: whole.total for filter, whole in lists.items()
    }
