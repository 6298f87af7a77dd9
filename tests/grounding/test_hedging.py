"""Hedging: it lowers confidence, and adding a hedge never raises it."""

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.parts.verify.claims.phrases import BOOSTERS, HEDGES, confidence, hedging

PLAIN = "I added `login` to auth.py."
WORDS = ["parser", "handles", "quotes", "not", "no", "about", "30", ".", "!", "\n", "May", "`might`"]


@each(
    "text",
    [
        "I probably added `login` to auth.py.",
        "I think I added `login` to auth.py.",
        "This should work.",
        "It might be fixed, but it is untested.",
        "The parser seems to handle quotes.",
        "I'm not sure that it works.",
        "This was not verified.",
        "It takes about 30 seconds.",
    ],
)
def test_hedges_lower_it(text: str) -> None:
    assert confidence(text) < confidence(PLAIN)
    assert 0 < hedging(text) < 1


@each("text", [PLAIN, "", "`might_fail()` is called.", "`probably` is a variable.", "May is over.", "…"])
def test_what_is_no_hedge(text: str) -> None:
    assert hedging(text) == 0


def test_boosters_raise_it_a_little() -> None:
    assert confidence(PLAIN) < confidence("I verified that `login` is in auth.py.") <= 1


def test_more_hedges_lower_it_more() -> None:
    steps = [
        "It works.",
        "It probably works.",
        "It probably works, I think.",
        "It probably works, I think, but is untested.",
    ]
    values = [confidence(text) for text in steps]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) == len(values)


def test_a_doubt_weighs_less_in_a_long_answer() -> None:
    assert confidence("It might work.") < confidence("It might work. " + PLAIN * 10)


@given(
    st.lists(st.sampled_from([*WORDS, *sorted(HEDGES), *sorted(BOOSTERS)]), max_size=14),
    st.sampled_from(sorted(HEDGES)),
    st.data(),
)
def test_adding_a_hedge_never_raises_it(words: list[str], hedge: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(words)))
    before, after = " ".join(words), " ".join([*words[:at], hedge, *words[at:]])
    assert confidence(after) <= confidence(before)
    assert confidence(f"{before}. This is {hedge} so.") <= confidence(before) + 1e-12


@given(st.text(max_size=200))
def test_any_text_has_a_value(text: str) -> None:
    assert 0 <= confidence(text) <= 1
    assert confidence(text) == confidence(text)
