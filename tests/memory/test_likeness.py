"""Duplicates, contradictions and look-alikes."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.memory.comparison.conflicts import (
    FEATURE_NAMES,
    LikenessModel,
    conflict,
    default_model,
    difference,
    judge,
    likeness_features,
)
from cortex_py.core.memory.comparison.statements import plain_text, read_statement

VOCABULARY = """
    the cache service listens on port 8080 and 5 workers retry 3 times in production because Redis is not slow; get_user
    calls Kafka from staging to v2.1 before 2026-01-02, at most 20 MB are kept `x` "quoted" never? enabled disabled der
    nicht キャッシュ every some only"""
WORDS = st.sampled_from(VOCABULARY.split())
TEXTS = st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=14).map(" ".join))


def same_text(a: str, b: str) -> bool:
    one, other = read_statement(a), read_statement(b)
    return one.plain == other.plain and one.fences == other.fences


@each(
    ("a", "b", "reason"),
    [
        ("We run PostgreSQL 15.", "We run PostgreSQL 16.", "version: 15 / 16"),
        ("It listens on port 8080.", "It listens on port 9090.", "number: 8080 / 9090"),
        ("It waits 5 s.", "It waits 5 ms.", "number: 5 s / 5 ms"),
        ("It sold 2 million.", "It sold over 2 million.", "number: 2 million / over 2 million"),
        ("The API is limited.", "The API is limited to 100 requests.", "number: – / 100"),
        ("Freeze on 2 June.", "Freeze on 3 June.", "date: 2 June / 3 June"),
        ("The standup is on Monday.", "The standup is on Tuesday.", "date: Monday / Tuesday"),
        ("It locks the table.", "It does not lock the table.", "negation: – / not"),
        ("Five consecutive weeks.", "Five non-consecutive weeks.", "negation: – / not"),
        ("Caching is enabled.", "Caching is disabled.", "opposite: enabled / disabled"),
        ("The input is valid.", "The input is invalid.", "opposite: valid / invalid"),
        ("The report is made daily.", "The report is made weekly.", "opposite: daily / weekly"),
        ("Run it before the tests.", "Run it after the tests.", "opposite: before / after"),
        ("The prod database is big.", "The staging database is big.", "environment: production / staging"),
        ("We use Redis.", "We use Redis in production.", "environment: – / production"),
        ("Call get_user first.", "Call get_order first.", "identifier: get_user / get_order"),
        ("See src/a/b.py there.", "See src/a/c.py there.", "identifier: src/a/b.py / src/a/c.py"),
        ("Run it with --fast.", "Run it with --slow.", "identifier: --fast / --slow"),
        ("Logs go to Datadog.", "Logs go to Loki.", "name: Datadog / Loki"),
        ("An Austrian club.", "An Australian club.", "name: Austrian / Australian"),
        ('It says "reset".', 'It says "refused".', "quotation: reset / refused"),
        ("Should we cache it?", "We should cache it.", "question: ? / –"),
        ("We might move.", "We move.", "certainty: perhaps / –"),
        ("Only admins may delete.", "Admins may delete.", "scope: only / –"),
        ("All users see it.", "Some users see it.", "scope: all / some"),
        ("From Kafka to Snowflake.", "From Snowflake to Kafka.", "order: from Kafka / from Snowflake"),
        (
            "The importer calls the validator.",
            "The validator calls the importer.",
            "order: importer … calls … validator / validator … calls … importer",
        ),
        ("Use tabs, not spaces.", "Use spaces, not tabs.", "order: not spaces / not tabs"),
        ("Taken to hospital.", "Released from hospital.", "order: to hospital / from hospital"),
        ("It does:\n```\nsend(i)\n```", "It does:\n```\nSend(i)\n```", "code: send(i) / Send(i)"),
        ("Tests laufen in 5 Minuten.", "Tests laufen in 15 Minuten.", "number: 5 / 15"),
        ("キャッシュは30秒です", "キャッシュは60秒です", "number: 30 / 60"),
    ],
)
def test_a_difference_outweighs_any_likeness(a: str, b: str, reason: str) -> None:
    judged = judge(read_statement(a), read_statement(b), 1.0)
    assert not judged.same
    assert judged.probability == 0.0
    assert str(judged.reason).startswith(reason)


@each(
    ("a", "b"),
    [
        ("Retry failed webhooks three times.", "Failed webhooks are retried 3 times."),
        ("The API does not allow anonymous access.", "The API forbids anonymous access."),
        ("The flag is not enabled.", "The flag is disabled."),
        ("Support ends on 2026-03-01.", "Support ends on 1 March 2026."),
        ("Sessions end after 2 hours.", "Sessions end after 120 minutes."),
        ("Redis holds the build cache.", "The build cache is held in Redis."),
        ("Celery processes the jobs.", "The jobs are processed by Celery."),
        ("At startup the client fetches the list.", "The client fetches the list at startup."),
        ("We moved from Jenkins to Buildkite.", "We moved to Buildkite from Jenkins."),
        ("Install it with `uv sync` first.", "First install it with uv sync."),
        ("Customers can cancel an order until it has shipped.", "Until an order has shipped, customers can cancel it."),
        ("Kenya Supreme Court upholds it", "Kenya SC upholds it"),
        ("Syria and Greece agreed.", "The Syrian and Greek sides agreed."),
    ],
)
def test_another_wording_is_no_difference(a: str, b: str) -> None:
    assert difference(read_statement(a), read_statement(b)) is None


def test_the_cosine_decides_where_words_differ() -> None:
    a, b = read_statement("A woman is slicing broccoli."), read_statement("A woman is cutting broccoli.")
    near, far = judge(a, b, 0.97), judge(a, b, 0.5)
    assert near.same
    assert not far.same
    assert near.probability > default_model().threshold > far.probability
    assert near.reason is None is far.reason


def test_added_detail_is_not_the_same() -> None:
    a = read_statement("The report job runs nightly.")
    b = read_statement("The report job runs nightly and mails its result to finance with a copy for the auditors.")
    assert not judge(a, b, 0.85).same


def test_other_languages_need_more() -> None:
    english = read_statement("The service stores orders."), read_statement("The service keeps orders.")
    german = read_statement("Der Dienst speichert das auch."), read_statement("Der Dienst behält das auch.")
    cosine = 0.8
    model = default_model()
    assert model.foreign_threshold > model.threshold
    assert model.threshold < model.probability(*english, cosine) < model.foreign_threshold
    assert judge(*english, cosine).same
    assert not judge(*german, cosine).same


def test_an_empty_text_is_the_same_as_nothing() -> None:
    assert not judge(read_statement(""), read_statement(""), 1.0).same
    assert not judge(read_statement("..."), read_statement("A note."), 1.0).same
    assert conflict(read_statement(""), read_statement("not"), 1.0) is None


@each(
    ("a", "b", "kind"),
    [
        ("The gateway times out after 30 seconds.", "The gateway times out after 60 seconds.", "number"),
        ("We build with Java 17.", "We build with Java 21.", "version"),
        ("The freeze begins on 12 December.", "The freeze begins on 15 December.", "date"),
        ("Tokens are encrypted at rest.", "Tokens are not encrypted at rest.", "negation"),
        ("We use feature flags.", "We no longer use feature flags.", "negation"),
        ("Always squash commits.", "Never squash commits.", "negation"),
        ("Enable compression for responses.", "Disable compression for responses.", "opposite"),
        ("Logs are shipped to Datadog.", "Logs are shipped to Loki.", "name"),
        ("The entry point is main.py.", "The entry point is app.py.", "identifier"),
        ("Backups are kept for 30 days.", "We keep backups for 90 days.", "number"),
        ("The panel listens on port 8081.", "The panel runs on port 9090.", "number"),  # other verbs
        ("Session data lives in Redis.", "Session data is stored in DynamoDB.", "name"),
        ("PDFs are rendered with WeasyPrint.", "PDFs are rendered with wkhtmltopdf.", "name"),  # no capital
        ("Dana owns the billing code.", "Mina owns the billing code.", "name"),  # the one in charge
        ("We retry failed jobs 3 times.", "We retry failed jobs 5 times.", "number"),  # no event
        ("Gzip is enabled on the load balancer.", "Gzip is disabled on the load balancer.", "opposite"),
    ],
)
def test_a_contradiction_is_one_difference_about_one_thing(a: str, b: str, kind: str) -> None:
    found = conflict(read_statement(a), read_statement(b), 0.9)
    assert found is not None
    assert found.kind == kind


@each(
    ("a", "b"),
    [
        ("The prod database has 64 GB.", "The staging database has 32 GB."),  # two places
        ("get_user returns nil.", "get_order returns nil."),  # two subjects
        ("See src/a/b.py for logins.", "See src/a/c.py for logins."),  # both can be seen
        ("The importer calls the validator.", "The validator calls the importer."),  # both can be
        ("The API is limited.", "The API is limited to 100 requests."),  # more detail
        ("Python 3.10 introduced match statements.", "Python 3.11 introduced exception groups."),
        ("Frontend errors go to Sentry.", "Backend errors go to Sentry."),
        ("All users see it.", "Some users see it."),
        ("From v2 to v3 the API breaks.", "From v3 to v4 the API breaks."),
        ("Mobile requests end after 10 s.", "Database queries end after 20 s."),
        ("The cache is slow.", "The cache is slow."),
        ("Note 1 about the harbour", "Note 2 about the harbour"),  # two of a series
        ("Merge pull request #2233 from main", "Merge pull request #1940 from main"),
        ("Re-run the builds (3)", "Re-run the builds (8)"),
        ("Update Pyodide to 0.28.2", "Update Pyodide to 0.29.3"),  # lines of a log
        ("The pool has up to 40 connections.", "The pool has 5 connections."),  # within the bounds
        ("We need Python 3.10 or newer.", "We need Python 3.12."),
        ("The gateway has a limit of 30 s.", "The gateway has a limit of 10 MB."),  # other units
        ("The artefact has 2 GB.", "The artefact has 2048 MB."),
        ("The timeout used to be 10 s.", "The timeout is 30 s."),  # a part of a history
        ("The limit could be 200 MB.", "The limit is 50 MB."),
        ("The scripts are written in JS.", "The scripts are written in JavaScript."),  # short for the other
        ("The tool is available via Scoop.", "The tool is available via MacPorts."),  # there are several
        ("The worker needs REDIS_URL to be set.", "The worker needs SENTRY_DSN to be set."),
        ("The data folder is for non-disposable data.", "The data folder is for data."),  # denies something else
        ("Step 1: stop the workers.", "Step 2: stop the workers."),
        ("Ticket #4521 is about the slow basket.", "Ticket #4522 is about the slow basket."),
        ("Incident 12 is due to a full disk.", "Incident 13 is due to a full disk."),
        ("The lease of worker 7 expires at noon.", "The lease of worker 8 expires at noon."),
        ("The deploy on Monday failed.", "The deploy on Thursday failed."),  # two events
        ("Maria tested it on Linux.", "Maria tested it on Windows."),
        ("Users can pay with PayPal.", "Users can pay with Klarna."),  # two possibilities
        ("We support Python 3.11.", "We support Python 3.12."),
        ("Do not deploy on Fridays.", "Do not deploy on Mondays."),  # two prohibitions
        ("The library parses dates.", "The library does not parse times."),  # two things
        ("Orders before noon ship the same day.", "Orders after noon ship the next day."),
        ("The importer reads CSV files.", "The importer also reads Parquet files."),
    ],
)
def test_what_can_hold_together_is_no_contradiction(a: str, b: str) -> None:
    assert conflict(read_statement(a), read_statement(b), 0.95) is None


def test_a_contradiction_needs_likeness() -> None:
    a, b = read_statement("It waits 5 seconds."), read_statement("It waits 6 seconds.")
    assert conflict(a, b, 0.9) is not None
    assert conflict(a, b, 0.3) is None


@each(
    ("a", "b", "same"),
    [
        ("Use uv.", "use  UV", True),
        ("- Use “uv”", '* use "uv"!', True),
        ("The port is 5432.", "The port is 5433.", False),
        ("C++ is fast", "C is fast", False),
        ("Cache it?", "Cache it.", False),
        ("```\nA\n```", "```\na\n```", False),
        ("3.11", "311", False),
    ],
)
def test_what_makes_no_difference(a: str, b: str, same: bool) -> None:
    assert same_text(a, b) is same


def test_a_model_of_other_features_is_refused() -> None:
    content = {"weights": {"cosine": 1.0}, "offset": 0, "threshold": 0.5, "foreign_threshold": 0.5}
    with pytest.raises(ValueError, match="other features"):
        LikenessModel.from_json(json.dumps(content))


@given(TEXTS, TEXTS, st.floats(-1, 1))
def test_the_order_of_two_texts_does_not_matter(x: str, y: str, cosine: float) -> None:
    a, b = read_statement(x), read_statement(y)
    there, back = difference(a, b), difference(b, a)
    assert (there and there.kind) == (back and back.kind)
    assert judge(a, b, cosine).same == judge(b, a, cosine).same
    assert likeness_features(a, b, cosine) == likeness_features(b, a, cosine)
    assert (conflict(a, b, cosine) is None) == (conflict(b, a, cosine) is None)
    assert len(likeness_features(a, b, cosine)) == len(FEATURE_NAMES)


@given(TEXTS)
def test_a_text_is_the_same_as_itself(text: str) -> None:
    statement = read_statement(text)
    assert judge(statement, statement, 1.0).same is bool(plain_text(text))
    assert difference(statement, read_statement(text)) is None
    assert conflict(statement, statement, 1.0) is None


@given(st.lists(WORDS, max_size=8), st.from_regex(r"[0-9]{1,7}([.,:/-][0-9]{1,4}){0,2}(ms|s| MB|%|k)?", fullmatch=True))
def test_another_digit_is_another_statement(words: list[str], number: str) -> None:
    place = re.search(r"\d", number)
    assert place is not None
    changed = re.sub(r"\d", lambda found: str((int(found[0]) + 1) % 10), number, count=1)
    a, b = (read_statement(" ".join(["Sizes reached", each, *words])) for each in (number, changed))
    assert difference(a, b) is not None


@given(st.lists(st.sampled_from(["we", "keep", "the", "logs", "of", "service", "auditors"]), min_size=3, max_size=9))
def test_not_makes_another_statement(words: list[str]) -> None:
    a, b = read_statement(" ".join(words)), read_statement(" ".join([*words[:2], "not", *words[2:]]))
    assert not judge(a, b, 1.0).same


@given(
    st.lists(WORDS, min_size=1, max_size=8), st.sampled_from(["- ", "* ", "• ", ""]), st.sampled_from([".", "!", ""])
)
def test_marks_case_and_spaces_are_no_other_text(words: list[str], mark: str, point: str) -> None:
    plain = " ".join(words)
    variant = f"{mark}{'  '.join(words).upper()}{point}\n"
    if plain.upper().lower() == plain.lower():
        assert same_text(plain, variant)
        assert same_text(variant, plain)
        assert same_text(variant, variant)


@each(
    ("left", "right"),
    [
        ("He plays lead guitar in the band.", "He plays rhythm guitar in the band."),
        ("We booked a single room.", "We booked a twin room."),
        ("The team liked the new dashboard.", "The team hated the new dashboard."),
        ("The case gets matte paint.", "The case gets glossy paint."),
        ("Dana prefers window seats.", "Dana prefers aisle seats."),
        ("The release is planned for week 5.", "The release is planned for week 6."),
        ("The intern reviews the backend code.", "The intern reviews the frontend code."),
        ("She takes the morning shift.", "She takes the evening shift."),
        ("Deploys go through the blue cluster.", "Deploys go through the green cluster."),
        ("We admire the new layout.", "We despise the new layout."),
        ("Sprint 11 closes the audit work.", "Sprint 12 closes the audit work."),
        ("The parser expects tabs as separators.", "The parser expects commas as separators."),
        ("Omar approved the budget.", "Omar rejected the budget."),
        ("The primary region is Oslo.", "The primary region is Zurich."),
        ("Use soft deletes for invoices.", "Use hard deletes for invoices."),
        ("The sensor reports humidity every hour.", "The sensor reports pressure every hour."),
        ("Orders are sorted in ascending order.", "Orders are sorted in descending order."),
        ("The keyboard has a Spanish layout.", "The keyboard has a Danish layout."),
        ("Read replicas serve the reports.", "Read replicas serve the exports."),
        ("The upper bearing is worn.", "The lower bearing is worn."),
        ("Version A won the experiment.", "Version B won the experiment."),
        ("He plays the cello on Sundays.", "He plays the viola on Sundays."),
        ("The API accepts JSON bodies.", "The API accepts XML bodies."),
        ("Keys rotate monthly.", "Keys rotate weekly."),
        ("The left pane shows the diff.", "The right pane shows the diff."),
        ("Chapter 3 explains locking.", "Chapter 4 explains locking."),
    ],
)
def test_one_word_in_place_of_another_tells_two_statements_apart(left: str, right: str) -> None:
    judged = judge(read_statement(left), read_statement(right), 0.99)
    assert not judged.same
    assert judged.reason


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Customers buy the licence online.", "Customers purchase the licence online."),
        ("The physician signs the form.", "The doctor signs the form."),
        ("We select the fastest mirror.", "We choose the fastest mirror."),
    ],
)
def test_a_synonym_in_place_of_a_word_changes_nothing(left: str, right: str) -> None:
    assert judge(read_statement(left), read_statement(right), 0.9).same


@each(
    ("filled", "bare"),
    [
        ("The migration is pretty much finished.", "The migration is finished."),
        ("So yeah, we retry the upload three times, I think.", "We retry the upload three times."),
        ("We fixed a couple of bugs in the parser.", "We fixed bugs in the parser."),
        ("Basically, the cache is kind of flushed every night.", "The cache is flushed every night."),
    ],
)
def test_filler_words_do_not_count(filled: str, bare: str) -> None:
    assert read_statement(filled).words == read_statement(bare).words
    assert judge(read_statement(filled), read_statement(bare), 0.9).same


def test_a_filler_inside_a_name_or_code_is_a_word() -> None:
    assert "really" in read_statement("`really` is a flag; really-long is another.").plain
    assert read_statement("Set kind of-type to pod.").words != read_statement("Set type to pod.").words
