"""Ids: unique, also by their first digits, and read back from every spelling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.clock import IdMaker, context_id, memory_uri, memory_urn, parse_ref
from cortex_py.core.errors import InvalidId

from helpers import FakeClock

WHOLE = "dc58d23a35876f5a59426e81aaa81d796efa7fc1"


def test_an_id_is_forty_hexadecimal_digits(clock: FakeClock) -> None:
    made = IdMaker(clock).new()
    assert len(made) == 40
    assert set(made) <= set("0123456789abcdef")


def test_ids_made_at_once_differ_in_their_first_eight_digits_and_keep_their_order(clock: FakeClock) -> None:
    maker = IdMaker(clock)
    made = [maker.new() for _ in range(500)]
    clock.advance(seconds=-10)
    made += [maker.new() for _ in range(500)]
    assert made == sorted(made)
    assert len({one[:8] for one in made}) == 1000


def test_ids_of_other_times_share_their_first_eight_digits_only_by_chance(clock: FakeClock) -> None:
    maker = IdMaker(clock)
    made = []
    for _ in range(500):
        clock.advance(hours=1)
        made.append(maker.new()[:8])
    assert len(set(made)) == 500


@each(
    "spelling",
    [
        WHOLE, WHOLE.upper(), f"  {WHOLE} ", context_id(WHOLE), memory_uri(WHOLE),
        memory_urn("project", "decisions", WHOLE), f"subcog://user/tech-debt/{WHOLE}", f"subcog:memory/{WHOLE}",
    ],
)  # fmt: skip
def test_every_spelling_of_an_id_names_the_same_memory(spelling: str) -> None:
    assert parse_ref(spelling).prefix == WHOLE
    assert parse_ref(spelling).is_whole


@each("spelling", ["dc58d23a", "context_dc58d23a", "subcog://memory/dc58d23a...", "dc58d23a…"])
def test_a_prefix_of_eight_digits_is_enough(spelling: str) -> None:
    assert parse_ref(spelling).prefix == "dc58d23a"


@each("wrong", ["", "dc58d23", "xyz12345", WHOLE + "0", "subcog://memory/", "../../etc", "🦀" * 8])
def test_anything_else_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidId):
        parse_ref(wrong)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert len(parse_ref(text).prefix) >= 8
    except InvalidId as error:
        assert error.field == "id"
