"""The filter language: what each form means, where faults are shown, and the way back to text."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from cortex_py.core.clock import from_micros
from cortex_py.core.errors import FilterSyntaxError, InvalidInput, UnknownNamespace
from cortex_py.core.memory.labels.ontology import CATEGORY_NAMES
from cortex_py.core.memory.recall.filters import FILTER_KEYS, parse_filter, parse_moment
from cortex_py.core.memory.spaces import NAMESPACES
from cortex_py.core.records import KINDS, STATUSES
from cortex_py.core.security.personal import PERSONAL_KINDS
from cortex_py.core.store.search.filters import (
    EVERYTHING,
    Condition,
    Filter,
    Key,
    Value,
    glob_literal_prefix,
    glob_matches,
    glob_to_regex,
    has_glob,
)
from filter_text import format_filter

NOW = datetime(2026, 3, 31, 12, 0, 0, tzinfo=UTC)
# Drawn by hand: hypothesis, which finds the smallest fault, takes twenty times as long for each.
MANY = 10_000


def conditions(text: str) -> tuple[Condition, ...]:
    parsed = parse_filter(text, now=NOW)
    assert parsed.warnings == ()
    return parsed.filter.conditions


def fault(text: str) -> FilterSyntaxError:
    with pytest.raises(FilterSyntaxError) as caught:
        parse_filter(text, now=NOW)
    return caught.value


# Keys and values


@pytest.mark.parametrize("text", ["", " ", "\n\t \u3000"])
def test_nothing_filters_nothing(text: str) -> None:
    assert parse_filter(text, now=NOW).filter == EVERYTHING


def test_the_example_of_the_document() -> None:
    assert conditions("ns:decisions since:7d") == (
        Condition("namespace", ("decisions",)),
        Condition("since", (datetime(2026, 3, 24, 12, tzinfo=UTC),)),
    )


@each(
    ("spelled", "key"),
    [
        ("tag", "tag"),
        ("tags", "tag"),
        ("source", "source"),
        ("src", "source"),
        ("project", "project"),
        ("proj", "project"),
        ("repo", "project"),
        ("branch", "branch"),
        ("path", "path"),
        ("file", "path"),
        ("entity", "entity"),
        ("role", "role"),
        ("user", "user"),
        ("agent", "agent"),
    ],
)
def test_each_key_and_alias_in_any_case_and_negated(spelled: str, key: Key) -> None:
    assert conditions(f"{spelled}:x") == (Condition(key, ("x",)),)
    assert conditions(f"{spelled.upper()}:x") == (Condition(key, ("x",)),)
    assert conditions(f"-{spelled}:x") == (Condition(key, ("x",), negated=True),)


def test_a_category_and_a_kind_are_of_closed_lists() -> None:
    assert conditions("category:Bug-Fix,general") == (Condition("category", ("bug_fix", "general")),)
    assert conditions("-kind:FILE") == (Condition("kind", ("file",), negated=True),)
    assert conditions("personal:Email,*") == (Condition("personal", ("email", "any")),)
    for wrong in ("category:gardening", "kind:picture", "personal:shoe-size", "personal:ip-*"):
        with pytest.raises(FilterSyntaxError, match="position"):
            conditions(wrong)


@pytest.mark.parametrize(("spelled", "key"), [("since", "since"), ("after", "since"), ("before", "before")])
def test_each_key_of_time(spelled: str, key: Key) -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    assert conditions(f"{spelled}:2026-01-02") == (Condition(key, (moment,)),)
    assert conditions(f"-{spelled}:2026-01-02") == (Condition(key, (moment,), negated=True),)


@pytest.mark.parametrize("spelled", ["ns", "namespace", "NS"])
def test_a_namespace_is_brought_to_its_canonical_name(spelled: str) -> None:
    assert conditions(f"{spelled}:TechDebt,tech_debt") == (Condition("namespace", ("tech-debt",)),)


def test_a_status_in_any_case() -> None:
    assert conditions("status:Archived,PENDING") == (Condition("status", ("archived", "pending")),)


def test_commas_are_alternatives_and_double_ones_count_once() -> None:
    assert conditions("tag:a,b,a") == (Condition("tag", ("a", "b")),)


def test_a_repeated_tag_asks_for_both() -> None:
    assert conditions("tag:a,b tag:c") == (Condition("tag", ("a", "b")), Condition("tag", ("c",)))


def test_any_other_repeated_key_adds_alternatives() -> None:
    assert conditions("ns:decisions tag:x namespace:apis path:a file:b,a") == (
        Condition("namespace", ("decisions", "apis")),
        Condition("tag", ("x",)),
        Condition("path", ("a", "b")),
    )


def test_repeated_negations_and_times_stay_apart() -> None:
    assert conditions("-path:a path:b -path:c since:2026-01-01 since:2026-02-01") == (
        Condition("path", ("a",), negated=True),
        Condition("path", ("b",)),
        Condition("path", ("c",), negated=True),
        Condition("since", (datetime(2026, 1, 1, tzinfo=UTC),)),
        Condition("since", (datetime(2026, 2, 1, tzinfo=UTC),)),
    )


@each(
    ("text", "value"),
    [
        ('tag:"two words"', "two words"),
        ('tag:"a,b"', "a,b"),
        (r'tag:"say \"hi\""', 'say "hi"'),
        (r'tag:"back\\slash"', "back\\slash"),
        (r'tag:"C:\dir"', r"C:\dir"),
        (r"tag:C:\dir", r"C:\dir"),
        ("tag:key:value", "key:value"),
        ("tag:-x", "-x"),
        ("tag:数据库", "数据库"),
        ('tag:"line\nbreak"', "line\nbreak"),
        ("source:https://example.org/a?b=c", "https://example.org/a?b=c"),
    ],
)
def test_values_bare_and_quoted(text: str, value: str) -> None:
    assert conditions(text)[0].values == (value,)


def test_quoted_and_bare_alternatives_mix() -> None:
    assert conditions('tag:a,"b, c",d') == (Condition("tag", ("a", "b, c", "d")),)


# Times


@each(
    ("text", "moment"),
    [
        ("30m", datetime(2026, 3, 31, 11, 30, tzinfo=UTC)),
        ("12h", datetime(2026, 3, 31, 0, 0, tzinfo=UTC)),
        ("0d", datetime(2026, 3, 31, 12, 0, tzinfo=UTC)),
        ("7d", datetime(2026, 3, 24, 12, 0, tzinfo=UTC)),
        ("2w", datetime(2026, 3, 17, 12, 0, tzinfo=UTC)),
        ("1mo", datetime(2026, 2, 28, 12, 0, tzinfo=UTC)),
        ("3mo", datetime(2025, 12, 31, 12, 0, tzinfo=UTC)),
        ("25mo", datetime(2024, 2, 29, 12, 0, tzinfo=UTC)),
        ("1y", datetime(2025, 3, 31, 12, 0, tzinfo=UTC)),
        ("2026-01-02", datetime(2026, 1, 2, tzinfo=UTC)),
        ("2026-01-02T03:04", datetime(2026, 1, 2, 3, 4, tzinfo=UTC)),
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02t03:04:05z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05.678+02:00", datetime(2026, 1, 2, 1, 4, 5, 678000, tzinfo=UTC)),
        ("2026-01-02T03:04:05-0530", datetime(2026, 1, 2, 8, 34, 5, tzinfo=UTC)),
        ("2026-01-02 03:04", datetime(2026, 1, 2, 3, 4, tzinfo=UTC)),
    ],
)
def test_durations_and_dates(text: str, moment: datetime) -> None:
    parsed = parse_moment(text, now=NOW)
    assert parsed == moment
    assert parsed.tzinfo is UTC
    assert conditions(f'since:"{text}"') == (Condition("since", (moment,)),)


def test_the_present_may_come_in_any_zone_or_without_one() -> None:
    elsewhere = NOW.astimezone(timezone(timedelta(hours=-7)))
    noon = datetime(2026, 3, 30, 12, 0, tzinfo=UTC)
    assert parse_moment("1d", now=elsewhere) == noon
    assert parse_moment("1d", now=NOW.replace(tzinfo=None)) == noon


@each(
    "value",
    [
        "7",
        "d",
        "7x",
        "7D",
        "3M",
        "-7d",
        "7 d",
        "1.5h",
        "٧d",
        "9999y",
        "999999999w",
        "9" * 5000 + "d",
        "2026",
        "2026-13-01",
        "2026-02-30",
        "2026-01-02x03:04",
        "2026-01-02T25:00",
        "2026-01-02T03:04+99:00",
        "0001-01-01T00:00+01:00",
        "yesterday",
    ],
)
def test_a_malformed_time_is_a_fault_at_its_place(value: str) -> None:
    assert fault(f'tag:x since:"{value}"').position == 12


def test_a_time_takes_one_value() -> None:
    assert fault("before:7d,2d").position == 10


# Faults and warnings


@each(
    ("text", "position"),
    [
        ("-", 0),
        ("tag:a - tag:b", 6),
        ("tag:", 4),
        ("tag: a", 4),
        ("x tag:a,", 8),
        ("tag:,a", 4),
        ("tag:a,,b", 6),
        ("tag:a, b", 6),
        ('tag:""', 4),
        (":a", 0),
        ("-:a", 1),
        ('tag:"open', 4),
        ('tag:a,"open', 6),
        ('tag:"ends in escape\\"', 4),
        ('tag:5"', 5),
        ('tag:"a"b', 7),
        ('loose "words', 6),
        ('unknown:"x', 0),
        ("status:deleted", 7),
        ("status:active,gone", 14),
        ("tag:a\x00b", 5),
        ("tag:\ud800", 4),
        ("tag:" + "x" * 10_000, 10_000),
    ],
)
def test_a_fault_says_where_it_stands_and_what_to_do(text: str, position: int) -> None:
    error = fault(text)
    assert error.position == position
    assert f"(position {position})" in error.message
    assert error.remedy
    assert len(str(error)) < 300


def test_an_unknown_namespace_is_told_with_the_valid_ones_and_its_place() -> None:
    with pytest.raises(UnknownNamespace) as caught:
        parse_filter("tag:a ns:decisions,choices", now=NOW)
    assert "'choices'" in str(caught.value)
    assert "position 19" in str(caught.value)
    assert "decisions, patterns, learnings" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "position", "remedy"),
    [
        ("ns:decisions tgs:a", 13, "Did you mean 'tags'? The keys are: ns, "),
        ("-Statsu:active", 1, "Did you mean 'status'? "),
        ("http://x,,", 0, "The keys are: "),
    ],
)
def test_an_unknown_key_is_an_error_with_the_nearest_one(text: str, position: int, remedy: str) -> None:
    with pytest.raises(FilterSyntaxError, match="There is no filter key") as caught:
        parse_filter(text, now=NOW)
    assert caught.value.position == position
    assert (caught.value.remedy or "").startswith(remedy)


def test_words_without_a_key_are_sent_to_the_query() -> None:
    parsed = parse_filter('database "JSON: why" tag:a -choice', now=NOW)
    assert parsed.filter == Filter((Condition("tag", ("a",)),))
    assert parsed.warnings == (
        "words without a key were ignored: 'database', '\"JSON: why\"', 'choice'; put words to search for in the query",
    )


def test_a_star_where_globs_mean_nothing_is_told() -> None:
    parsed = parse_filter("user:al* agent:x", now=NOW)
    assert parsed.filter.having("user") == (Condition("user", ("al*",)),)
    assert parsed.warnings == ("'*' has no special meaning in 'user'; it was taken as it stands",)


# Any text, and the way back


@settings(max_examples=1_000, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parsed = parse_filter(text, now=NOW)
    except (FilterSyntaxError, UnknownNamespace) as error:
        assert not isinstance(error, FilterSyntaxError) or 0 <= error.position <= len(text)
    else:
        assert parse_filter(format_filter(parsed.filter), now=NOW).filter == parsed.filter


SIGNS = ["-", ":", ",", '"', "\\", " ", "*", "tag", "ns", "since", "7d", "decisions", "x", '\\"', "y:"]


def is_read_or_refused(text: str) -> None:
    try:
        parsed = parse_filter(text, now=NOW)
    except (FilterSyntaxError, UnknownNamespace):
        return
    assert parse_filter(format_filter(parsed.filter), now=NOW).filter == parsed.filter, text


@given(st.lists(st.sampled_from(SIGNS), max_size=14).map("".join))
def test_any_mixture_of_signs_is_read_or_refused(text: str) -> None:
    is_read_or_refused(text)


def test_many_mixtures_of_signs_are_read_or_refused() -> None:
    for _ in range(MANY):
        is_read_or_refused("".join(random.choices(SIGNS, k=random.randrange(15))))


SCORES = ("<0.3", ">=0.7", "0.5", "=1", ">.25", "accept", "warn", "none")
CLOSED: dict[str, Sequence[str]] = {
    "status": STATUSES,
    "kind": KINDS,
    "personal": ("any", *PERSONAL_KINDS),
    "category": CATEGORY_NAMES,
    "grounded": SCORES,
    "namespace": [namespace.name for namespace in NAMESPACES],
}
LETTERS = 'a7é数 "\\,:-*?/\n\u3000'
TEXTS = st.text(st.sampled_from(LETTERS), min_size=1, max_size=5)
MOMENTS = st.integers(0, 2**57).map(from_micros)
KEYS = sorted(set(FILTER_KEYS.values()))


def condition_on(key: Key) -> st.SearchStrategy[Condition]:
    values: st.SearchStrategy[tuple[Value, ...]]
    if key in ("since", "before"):
        values = st.tuples(MOMENTS)
    else:
        texts = st.sampled_from(CLOSED[key]) if key in CLOSED else TEXTS
        values = st.lists(texts, min_size=1, max_size=2, unique=True).map(tuple)
    return st.builds(Condition, st.just(key), values, st.booleans())


CONDITIONS = st.one_of([condition_on(key) for key in KEYS])


def drawn_condition() -> Condition:
    """The same by hand."""
    key = random.choice(KEYS)
    if key in ("since", "before"):
        return Condition(key, (from_micros(random.randrange(2**57)),), random.random() < 0.5)
    draw = partial(random.choice, CLOSED[key]) if key in CLOSED else drawn_text
    values = dict.fromkeys(draw() for _ in range(random.randint(1, 2)))
    return Condition(key, tuple(values), random.random() < 0.5)


def drawn_text() -> str:
    return "".join(random.choices(LETTERS, k=random.randint(1, 5)))


def sayable(chosen: list[Condition]) -> Filter:
    """A filter of at most one positive condition for each key that cannot be repeated."""
    kept: list[Condition] = []
    for condition in chosen:
        single = condition.key not in ("tag", "since", "before", "grounded") and not condition.negated
        if not (single and any(c.key == condition.key and not c.negated for c in kept)):
            kept.append(condition)
    return Filter(tuple(kept))


@given(st.lists(CONDITIONS, max_size=3).map(sayable))
def test_a_filter_survives_the_way_through_its_text(filter: Filter) -> None:
    assert parse_filter(format_filter(filter), now=NOW).filter == filter


def test_many_filters_survive_the_way_through_their_text() -> None:
    for _ in range(MANY):
        filter = sayable([drawn_condition() for _ in range(random.randrange(4))])
        assert parse_filter(format_filter(filter), now=NOW).filter == filter


def test_the_canonical_text() -> None:
    filter = Filter(
        (
            Condition("namespace", ("decisions", "apis")),
            Condition("tag", ("two words", 'a"b\\', "x"), negated=True),
            Condition("since", (datetime(2026, 1, 2, 3, 4, 5, 600, tzinfo=UTC),)),
        )
    )
    assert format_filter(filter) == (
        'ns:decisions,apis -tag:"two words","a\\"b\\\\",x since:2026-01-02T03:04:05.000600Z'
    )
    assert format_filter(EVERYTHING) == ""


@each(
    "filter",
    [
        Filter((Condition("namespace", ("apis",)), Condition("namespace", ("config",)))),
        Filter((Condition("tag", ()),)),
        Filter((Condition("tag", ("",)),)),
        Filter((Condition("namespace", ("nonsense",)),)),
        Filter((Condition("since", (datetime(2026, 1, 1),)),)),
    ],
)
def test_a_filter_without_a_text_form_is_refused(filter: Filter) -> None:
    with pytest.raises(InvalidInput):
        format_filter(filter)


def test_the_two_ways_to_see_a_space_agree() -> None:
    characters = map(chr, range(sys.maxunicode + 1))
    assert [c for c in characters if c.isspace() != bool(re.match(r"\s", c))] == []


# Globs


@each(
    ("pattern", "matched", "unmatched"),
    [
        ("src/a.py", ["src/a.py"], ["src/a_py", "src/a.py ", "SRC/a.py", "src/a.py\n"]),
        ("src/*.py", ["src/a.py", "src/.py"], ["src/b/a.py", "a.py", "src/a.pyc"]),
        ("src/**", ["src/a", "src/b/c", "src/"], ["src", "source/a"]),
        ("src/**/*.py", ["src/a.py", "src/b/a.py", "src/b/c/a.py"], ["a.py", "srcx/a.py", "src/a.pyc"]),
        ("**/test_*.py", ["test_a.py", "x/test_a.py"], ["xtest_a.py", "test_a/b.py"]),
        ("a**/b", ["a/b", "ax/b", "a/x/b"], ["ab", "b"]),
        ("a?c", ["abc", "a.c", "a\nc"], ["ac", "a/c", "abbc"]),
        ("feature/*", ["feature/x"], ["feature/x/y", "feature"]),
        ("*", ["", "abc"], ["a/b"]),
        ("**", ["", "a/b", "a\nb"], []),
        ("**x*b**c", ["xb/c", "x/xb/c", "axaxbbc"], ["x/b/c", "bxc"]),
        ("[a]+(b)", ["[a]+(b)"], ["a", "aab"]),
    ],
)
def test_what_a_glob_matches(pattern: str, matched: list[str], unmatched: list[str]) -> None:
    assert [text for text in matched + unmatched if glob_matches(pattern, text)] == matched


def naive_match(pattern: str, text: str) -> bool:
    """The meaning of a glob, written as directly as it can be."""
    if not pattern:
        return not text
    stars = len(pattern) - len(pattern.lstrip("*"))
    rest = pattern[stars:]
    tails = [text[cut:] for cut in range(len(text) + 1)]
    if stars >= 2:
        return any(naive_match(rest, tail) for tail in tails)
    if stars == 1:
        return any(naive_match(rest, tail) for cut, tail in enumerate(tails) if "/" not in text[:cut])
    same = bool(text) and (text[0] == pattern[0] or (pattern[0] == "?" and text[0] != "/"))
    return same and naive_match(pattern[1:], text[1:])


def naive_glob(pattern: str, text: str) -> bool:
    """`**/` at the start of a segment is nothing, or anything that a slash ends."""
    folders = re.search(r"(?:^|(?<=/))\*{2,}/", pattern)
    if not folders:
        return naive_match(pattern, text)
    before, after = pattern[: folders.start()], pattern[folders.end() :]
    cuts = [cut for cut, sign in enumerate(text) if sign == "/"]
    return naive_glob(before + after, text) or any(
        naive_match(before + "**", text[:cut]) and naive_glob(after, text[cut + 1 :]) for cut in cuts
    )


def test_globs_mean_what_the_naive_matcher_says_many_times() -> None:
    for _ in range(MANY):
        pattern = "".join(random.choices("ab/*?*/", k=random.randrange(10)))
        means_what_the_naive_matcher_says(pattern, "".join(random.choices("ab/", k=random.randrange(10))))


@given(st.text(st.sampled_from("ab/*?*/"), max_size=9), st.text(st.sampled_from("ab/"), max_size=9))
def test_globs_mean_what_the_naive_matcher_says(pattern: str, text: str) -> None:
    means_what_the_naive_matcher_says(pattern, text)


def means_what_the_naive_matcher_says(pattern: str, text: str) -> None:
    expected = naive_glob(pattern, text)
    assert glob_matches(pattern, text) is expected, (pattern, text)
    assert bool(re.match(glob_to_regex(pattern), text)) is expected, (pattern, text)
    if expected:
        assert text.startswith(glob_literal_prefix(pattern)), (pattern, text)


@given(st.text(st.characters(exclude_characters="*?"), max_size=20))
def test_a_text_without_signs_matches_only_itself(text: str) -> None:
    assert not has_glob(text)
    assert glob_literal_prefix(text) == text
    assert glob_matches(text, text)
    assert not glob_matches(text, text + "x")


@each("pattern", ["*a" * 30 + "b", "**a" * 30 + "b", "**/*a*a" * 15 + "b", "**?" * 30 + "b"])
def test_a_hostile_glob_is_answered_soon(pattern: str) -> None:
    assert glob_matches(pattern, "a" * 1000) is False
    assert glob_matches(pattern, "a/" * 500) is False


def test_signs_of_a_glob() -> None:
    assert [text for text in ("a*", "?", "**", "a", "[a]", "{a,b}") if has_glob(text)] == ["a*", "?", "**"]
    assert glob_literal_prefix("src/**/x") == "src/"
    assert glob_literal_prefix("?x") == ""
