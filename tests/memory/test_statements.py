"""What is read from a statement: numbers, dates, names, negations, roles."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.memory.comparison.statements import plain_text, read_statement


@each(
    "spellings",
    [
        ("waits 5s", "waits 5 s", "waits five seconds", "waits 5 sec", "waits 5000 ms"),
        ("ends after 2 hours", "ends after 120 minutes", "ends in 2h"),
        ("1,000 items", "1000 items", "1k items", "one thousand items", "a thousand items"),
        ("2.5 million rows", "2.5M rows", "2,500,000 rows"),
        ("99.9% up", "99.9 % up", "99.9 percent up"),
        ("at least 80 items", "80 or more items", "80+ items", "no less than 80 items", ">= 80 items", "over 80 items"),
        ("at most 20 MB", "up to 20 MB", "no more than 20 MB", "20 MB or less", "a maximum of 20 MB"),
        ("twenty-three users", "23 users", "twenty three users"),
        ("two hundred users", "200 users"),
        ("$200 million", "200 million USD"),
        ("version 2.1 is out", "v2.1 is out", "release 2.1 is out"),
        ("the 5th try", "the fifth try"),
        ("roughly 40 files", "about 40 files", "40 files", "~40 files"),
    ],
)
def test_a_number_is_the_same_in_every_spelling(spellings: tuple[str, ...]) -> None:
    assert len({frozenset(read_statement(text).numbers) for text in spellings}) == 1
    assert read_statement(spellings[0]).numbers


@each(
    ("one", "other"),
    [
        ("5 s", "5 ms"),
        ("5 MB", "5 GB"),
        ("5 MB", "5 MiB"),
        ("over 2 million", "2 million"),
        ("at least 100", "at most 100"),
        ("millions of rows", "billions of rows"),
        ("millions of rows", "a million rows"),
        ("3.1", "3.10"),
        ("Python 3.9", "Python 3.11"),
        ("-5 degrees", "5 degrees"),
        ("the first try", "the third try"),
        ("before 2019", "after 2019"),
        ("€5", "£5"),
        ("123456789012345678", "123456789012345679"),
        ("1/2", "1/3"),
    ],
)
def test_numbers_that_differ_stay_apart(one: str, other: str) -> None:
    assert read_statement(one).numbers.keys() != read_statement(other).numbers.keys()


def test_after_is_a_comparison_of_moments_and_not_of_durations() -> None:
    assert read_statement("expires after 5 minutes").numbers.keys() == read_statement("expires in 5 min").numbers.keys()
    assert read_statement("after 2019").numbers.keys() != read_statement("in 2019").numbers.keys()


@each(
    "spellings",
    [
        ("on 2026-01-02", "on 2 January 2026", "on Jan 2, 2026", "on January 2nd, 2026", "on the 2nd of January 2026"),
        ("on 2026/01/02", "on Jan. 2, 2026"),
        ("at 5pm", "at 17:00", "at 5:00 pm", "at 5 p.m."),
        ("on Mondays", "on Monday", "Monday's outage"),
        ("in May 2025", "May 2025"),
    ],
)
def test_a_date_is_the_same_in_every_spelling(spellings: tuple[str, ...]) -> None:
    assert len({frozenset(read_statement(text).dates) for text in spellings}) == 1
    assert read_statement(spellings[0]).dates


@each("text", ["It may work.", "a democracy march", "He marched on", "the second 1234"])
def test_words_that_look_like_dates_are_none(text: str) -> None:
    assert not read_statement(text).dates


@each("text", ["the other one", "one of them", "every second word", "no number here"])
def test_words_that_look_like_numbers_are_none(text: str) -> None:
    assert not read_statement(text).numbers


def test_a_version_is_told_from_a_count() -> None:
    assert read_statement("We run PostgreSQL 15 here").versions == {"15"}
    assert read_statement("It took v1.2.3").versions == {"1.2.3"}
    assert not read_statement("We run 15 workers").versions
    assert not read_statement("Listens on Port 8080").versions


@each(
    ("text", "found"),
    [
        ("see https://a.example/x?y=1.", {"https://a.example/x?y=1"}),
        ("in src/auth/tokens.py and /etc/app.conf", {"src/auth/tokens.py", "/etc/app.conf"}),
        ("run with --force or -x", {"--force", "-x"}),
        ("get_user and getUser and main.py", {"get_user", "getuser", "main.py"}),
        ("ask in #ops about C++ and S3", {"#ops", "c++", "s3"}),
        ("commit 3f9c2a1b", {"3f9c2a1b"}),
        ("`make ship` it", {"make ship"}),
        ("and/or, he/she, U.S. and e.g. this", set()),
    ],
)
def test_identifiers(text: str, found: set[str]) -> None:
    assert read_statement(text).identifiers.keys() == found


def test_names_are_capitals_inside_a_sentence_but_not_in_a_headline() -> None:
    assert read_statement("Logs go to Datadog now. Then Grafana shows them").names.keys() == {"datadog", "grafana"}
    assert not read_statement("Colorado Governor Visits School Shooting Victim").names


@each(
    ("text", "negations"),
    [
        ("It does not work", 1),
        ("It doesn't work", 1),
        ("It doesn’t work", 1),
        ("No retries without a reason", 2),
        ("Not only fast but small", 0),
        ("no more than 5 items", 0),
        ("non-consecutive weeks", 1),
        ("We no longer use it", 1),
        ("Der Dienst läuft nicht und wir wissen es", 1),
        ("Le service ne fonctionne pas avec les tests", 1),
        ("不支持批量请求", 1),
        ("認証は必要ありません", 1),
    ],
)
def test_negations(text: str, negations: int) -> None:
    assert read_statement(text).negations == negations


def test_an_environment_is_told_from_the_same_word_elsewhere() -> None:
    assert read_statement("in production it is off").environments == {"production": True}
    assert read_statement("film production is slow").environments == {"production": False}
    assert read_statement("the prod cluster").environments == {"production": True}


def test_roles_and_voice() -> None:
    assert ("from", "kafka") in read_statement("Data flows from Kafka to Snowflake").bound
    assert ("to", "anim") not in read_statement("It turned out to be an animal").bound
    assert read_statement("The leak was caused by the cache").passive
    assert read_statement("It is automatically merged").passive
    assert not read_statement("The cache is slow and leaked").passive


def test_other_languages_are_told_from_english() -> None:
    assert read_statement("Redis cache TTL").english
    assert read_statement("The cache is slow").english
    assert not read_statement("Der Cache ist langsam").english
    assert not read_statement("キャッシュは遅い").english


def test_code_is_kept_to_the_letter() -> None:
    text = "Run\n```\nFor i in X:\n    go(i)\n```\nand wait"
    assert read_statement(text).fences == ("For i in X:\n    go(i)",)


def test_plain_text_leaves_what_matters() -> None:
    assert plain_text("- **Use** “uv”.\n- Then, run (it)!") == "use uv then run it"
    assert plain_text("> 5 ms") != plain_text("5 ms")
    assert plain_text("Cache it?") != plain_text("Cache it.")
    assert plain_text("3.11") != plain_text("311")


@each("text", ["", "  \n", "...", "- ", "“”"])
def test_nothing_is_empty(text: str) -> None:
    assert read_statement(text).empty


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    assert read_statement(text).empty == (not plain_text(text))
