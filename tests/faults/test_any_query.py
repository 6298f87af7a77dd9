"""Ten thousand queries and filters that nobody meant: no crash, no engine's syntax error."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cortex_py import Cortex, NewMemory
from cortex_py.core.errors import InvalidInput

from stub_backend import StubBackend

_WORDS = st.one_of(
    st.text(max_size=60),
    st.text(alphabet="\"'*-+:^(){}[]~|&!\\/,NEARORNTDabc \x00\ud800🦀語", max_size=40),
)
_KEYS = st.sampled_from(["x", "ns", "tag", "since", "before", "project", "branch", "path", "status", "entity", "user"])
_VALUES = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["decisions", "7d", "2026-01-01", "a/**/b", "*", '"two words"', "active,archived", "a,,b", '"']),
)
_FILTERS = st.lists(
    st.one_of(st.builds("{}{}:{}".format, st.sampled_from(["", "-"]), _KEYS, _VALUES), _WORDS), max_size=4
).map(" ".join)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory):
    home: Path = tmp_path_factory.mktemp("home")
    with Cortex.open(home, project=home, backend=StubBackend()) as cortex:
        items = [
            NewMemory(content=f"note {i} about a/b/c.py and 語", tags=(f"t{i}",), path=f"a/{i}/b") for i in range(30)
        ]
        cortex.memories.capture_many(items)
        yield cortex


def check_answer(cortex: Cortex, query: str, filter: str, mode: str) -> None:
    try:
        page = cortex.memories.recall(query, filter=filter, mode=mode, limit=5)  # type: ignore[arg-type]
    except InvalidInput as refused:
        assert refused.field == "filter"
    else:
        assert page.total >= len(page.results)
        assert all(0.0 <= hit.score <= 1.0 and len(hit.snippet) <= 200 for hit in page.results)


_modes = st.sampled_from(["hybrid", "vector", "text"])
_calm = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@settings(suppress_health_check=_calm)
@given(query=_WORDS, filter=_FILTERS, mode=_modes)
def test_some_queries_and_filters(filled: Cortex, query: str, filter: str, mode: str) -> None:
    check_answer(filled, query, filter, mode)
    assert filled.memories.recall(limit=1).total == 30


@pytest.mark.soak
@settings(max_examples=10_000, deadline=None, suppress_health_check=_calm)
@given(query=_WORDS, filter=_FILTERS, mode=_modes)
def test_ten_thousand_queries_and_filters(filled: Cortex, query: str, filter: str, mode: str) -> None:
    check_answer(filled, query, filter, mode)
