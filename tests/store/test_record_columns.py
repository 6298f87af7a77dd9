"""Record columns follow every change and know the neighbours in each line of work."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cortex_py.core.store.search.record_columns import RecordColumns

NOW = 1_000


def _row(
    num: int,
    branch: str | None = None,
    created: int = 0,
    status: str = "active",
    expires: int | None = None,
    confined: str | None = None,
):
    return (num, status, expires, created, 5, 0, 0, branch, confined, "decisions", None, None, None, None)


def _columns(*rows) -> RecordColumns:
    columns = RecordColumns()
    columns.apply(rows)
    return columns


def _neighbours(columns: RecordColumns, num: int) -> tuple[int | None, int | None]:
    place = columns.places([num])
    before, after = columns.neighbours(place)
    name = [None if i < 0 else int(columns.nums[i]) for i in (before[0], after[0])]
    return name[0], name[1]


def test_records_of_a_branch_are_neighbours_in_the_order_of_time() -> None:
    columns = _columns(_row(1, "a", 30), _row(2, "a", 10), _row(3, "b", 20), _row(4, "a", 20), _row(5))
    assert _neighbours(columns, 4) == (2, 1)
    assert _neighbours(columns, 2) == (None, 4)
    assert _neighbours(columns, 3) == (None, None)
    assert _neighbours(columns, 5) == (None, None)


def test_a_confined_record_is_seen_on_its_git_branch_alone() -> None:
    columns = _columns(_row(1), _row(2, confined="topic"), _row(3, confined=""))
    assert columns.open_to(NOW, None, "topic").tolist() == [True, True, False]
    assert columns.open_to(NOW, None, "main").tolist() == [True, False, False]
    assert columns.open_to(NOW, None, None).tolist() == [True, False, True]
    columns.apply([_row(2)])
    assert columns.open_to(NOW, None, "main").tolist() == [True, True, False]


def test_nearness_is_what_the_line_of_work_is_worth() -> None:
    columns = _columns(_row(1, "a"), _row(2, "b"), _row(3))
    places = columns.places([1, 2, 3])
    assert columns.nearness(places, {"b": 0.5, "unknown": 9.0}).tolist() == [0.0, 0.5, 0.0]


def test_expired_and_dead_records_are_closed() -> None:
    columns = _columns(_row(1), _row(2, expires=NOW), _row(3, expires=NOW + 1), _row(4, status="archived"))
    assert columns.nums[columns.open_to(NOW, None)].tolist() == [1, 3]


def test_an_allowed_set_opens_exactly_that() -> None:
    columns = _columns(_row(1), _row(2), _row(4, status="archived"))
    assert columns.nums[columns.open_to(NOW, np.array([2, 4, 99]))].tolist() == [2, 4]


_changes = st.lists(
    st.tuples(
        st.integers(1, 12),
        st.sampled_from(["a", "b", None]),
        st.integers(0, 3),
        st.sampled_from(["active", "tombstoned", "purged"]),
    ),
    max_size=40,
)


@given(_changes)
def test_any_sequence_of_changes_gives_the_same_as_loading_the_end_state(changes) -> None:
    columns, state = RecordColumns(), {}
    for num, branch, created, status in changes:
        if status == "purged":
            columns.drop([num])
            state.pop(num, None)
        else:
            state[num] = _row(num, branch, created, status)
            columns.apply([state[num]])
    fresh = _columns(*(state[num] for num in sorted(state)))
    for num in state:
        if state[num][1] == "active":
            assert _neighbours(columns, num) == _neighbours(fresh, num)
    assert set(columns.nums[columns.open_to(NOW, None)].tolist()) == set(fresh.nums[fresh.open_to(NOW, None)].tolist())
