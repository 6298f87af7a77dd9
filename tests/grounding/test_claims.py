"""The claims of an answer: atomic, typed, each with all words that belong to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.parts.verify.claims.claims import Claim, read_claims
from cortex_py.parts.verify.claims.passages import read_passages
from timing import growth, quick

SAID = [
    ("I implemented JWT authentication with refresh tokens in auth.py", "implemented", "auth.py"),
    ("I've refactored the database layer to use connection pooling.", "modified", ""),
    ("We added a `retry` parameter to `fetch()`.", "implemented", "retry fetch"),
    ("Added error handling to `fetch_data()`.", "implemented", "fetch_data"),
    ("Created `models.py` with the User model.", "implemented", "models.py"),
    ("I wrote a migration for the users table.", "implemented", ""),
    ("This commit adds rate limiting to server.go.", "implemented", "server.go"),
    (
        "I've created a new file, `src/cache.py`, which contains the `LRUCache` class.",
        "implemented",
        "src/cache.py LRUCache",
    ),
    ("Implemented in commit 3fa92bc.", "implemented", "3fa92bc"),
    ("`foo` was renamed to `bar`.", "modified", "foo bar"),
    ("The schema was changed.", "modified", ""),
    ("Replaced the old parser with a new one.", "modified", ""),
    ("I did not change the public API.", "modified", ""),
    ("3 files changed", "modified", "3"),
    ("I fixed the off-by-one error on line 45 of parser.py.", "fixed", "45 parser.py"),
    ("Fixes the crash in parser.py.", "fixed", "parser.py"),
    ("The bug is fixed.", "fixed", ""),
    ("I tried to fix the bug in auth.py.", "fixed", "auth.py"),
    ("fix(auth): handle expired tokens", "fixed", ""),
    ("Fixed a race condition between the reader and the writer in queue.py.", "fixed", "queue.py"),
    ("I deleted the unused `legacy_login` function.", "removed", "legacy_login"),
    ("Nothing was removed.", "removed", ""),
    ("There is no `x` in y.py.", "exists", "x y.py"),
    ("`parse_config` is defined in config.py on line 45.", "exists", "parse_config config.py 45"),
    ("The settings module contains a `Settings` class.", "exists", "Settings"),
    ("There are three handlers in routes.ts.", "exists", "3 routes.ts"),
    ("The timeout is set to 30 seconds in config.py.", "value", "30_s config.py"),
    ("The `timeout` parameter defaults to 30.", "value", "timeout 30"),
    ("The default timeout was increased from 10 to 30 seconds.", "value", "10 30_s"),
    ("Tokens expire after 15 minutes.", "value", "900_s"),
    ("Python 3.11 is required.", "version", "3.11"),
    ("The schema was migrated to version 3.", "version", "3"),
    ("I bumped requests to 2.31.0.", "dependency", "requests 2.31.0"),
    ("The project depends on `pydantic`.", "dependency", "pydantic"),
    ("This uses the `requests` library.", "dependency", "requests"),
    ("All 12 tests pass.", "test_result", "12_passed"),
    ("The tests should pass.", "test_result", "all_passed"),
    ("3 tests are failing in test_auth.py.", "test_result", "3_failed test_auth.py"),
    ("The parser now handles nested quotes.", "behaviour", ""),
    ("The `UserService` class in services/user.py now validates emails.", "behaviour", "UserService services/user.py"),
    ("The function creates a session.", "behaviour", ""),
    ("The login function no longer stores passwords in plain text.", "behaviour", ""),
    ("The API returns 404 when the user does not exist.", "behaviour", "404"),
    ("The cache will expire entries lazily.", "behaviour", ""),
    ("This should work now.", "behaviour", ""),
    ("Everything now compiles without warnings.", "behaviour", ""),
    ("I've completed the authentication system.", "implemented", ""),
    ("This may fix the issue.", "fixed", ""),
    ("`parse()` did not strip whitespace.", "behaviour", "parse"),
    ("Note that auth.py requires Python 3.10 or later.", "version", "auth.py 3.10"),
    ("Updated `requirements.txt` to include `pyjwt==2.8.0`", "dependency", "requirements.txt pyjwt 2.8.0"),
    ("I would say the cache works.", "behaviour", ""),
    ("In auth.py:", "reference", "auth.py"),
    ("Ich habe die Datei auth.py geändert.", "reference", "auth.py"),
    ("J'ai ajouté la fonction `login` dans auth.py.", "reference", "login auth.py"),
    ("auth.py に refresh を追加しました", "reference", "auth.py"),
]


@each(("text", "kind", "values"), SAID, ids=[row[0][:40] for row in SAID])
def test_one_sentence_one_claim(text: str, kind: str, values: str) -> None:
    [claim] = read_claims(text).claims
    assert claim.type == kind
    assert claim.text == text
    assert [mention.value.replace(" ", "_") for mention in claim.mentions] == values.split()


SPLIT = [
    ("I added X to a.py and removed Y from b.py.", ["I added X to a.py", "removed Y from b.py."]),
    (
        "I implemented login and logout in auth.py.",
        ["I implemented login in auth.py.", "I implemented logout in auth.py."],
    ),
    (
        "In auth.py, I added `login` and removed `logout`.",
        ["In auth.py, I added `login`", "In auth.py, removed `logout`."],
    ),
    ("I updated a.py, b.py and c.py.", ["I updated a.py", "I updated b.py", "I updated c.py."]),
    ("`foo` and `bar` were removed from x.py.", ["`foo` were removed from x.py.", "`bar` were removed from x.py."]),
    ("I moved `A` and `B` from a.py to b.py.", ["I moved `A` from a.py to b.py.", "I moved `B` from a.py to b.py."]),
    (
        "I renamed `a` to `b` and `c` to `d` in x.py.",
        ["I renamed `a` to `b` in x.py.", "I renamed `c` to `d` in x.py."],
    ),
    (
        "I fixed the crash and added a guard in parser.py.",
        ["I fixed the crash in parser.py.", "added a guard in parser.py."],
    ),
    (
        "I fixed the crash and added a test in tests/test_a.py.",
        ["I fixed the crash", "added a test in tests/test_a.py."],
    ),
    ("I added a cache and the parser now rejects it.", ["I added a cache", "the parser now rejects it."]),
    (
        "The migration adds a column and drops an index.",
        ["The migration adds a column", "The migration drops an index."],
    ),
    ("I added unit and integration tests.", ["I added unit and integration tests."]),
    ("The limit is 5, and refresh tokens expire daily.", ["The limit is 5", "refresh tokens expire daily."]),
    ("`parse()` did not strip it, so I added a call.", ["`parse()` did not strip it", "I added a call."]),
    ("Added `A` with `b()`, `c()` and `d()` methods.", ["Added `A` with `b()`, `c()` and `d()` methods."]),
    ("I ran pytest and all 12 tests pass.", ["I ran pytest", "all 12 tests pass."]),
    ("It uses FastAPI 0.110 and SQLAlchemy 2.0.", ["It uses FastAPI 0.110", "It uses SQLAlchemy 2.0."]),
    ("I added X and will add Y next.", ["I added X"]),
    (
        "I added `a`, updated the docs, and fixed the test in tests/t.py.",
        ["I added `a`", "updated the docs", "fixed the test in tests/t.py."],
    ),
]


@each(("text", "expected"), SPLIT, ids=[row[0][:40] for row in SPLIT])
def test_coordination_becomes_atomic_claims(text: str, expected: list[str]) -> None:
    assert [claim.text for claim in read_claims(text).claims] == expected


@each(
    "sentences",
    [
        ["hash_password uses bcrypt.", "migrate drops all tables.", "connect opens PostgreSQL."],
        ["`TOKEN_TTL` is 900.", "issue_token stores tokens in Redis.", "send returns nothing."],
        ["Flask 3 is used.", "bcrypt 4.1 or newer is needed.", "pyjwt 2.9.0 is pinned."],
        ["The parser reads `a. b` as one name.", "src/parse.py holds it."],
        ["It was rewritten in C.", "the tests are in Go!", "both pass?", "yes, they do."],
        ["It reads e.g. the port, etc. from config.py.", "load_config() has 3 lines."],
        ["It calls f(...) and waits for it... until it ends.", "reader.py has fig. 3 in it."],
        ["It reads names, numbers, etc.", "read_all() returns them."],
    ],
)
def test_a_full_stop_ends_a_sentence_whatever_the_next_begins_with(sentences: list[str]) -> None:
    found = [text[one.start : one.end] for text in [" ".join(sentences)] for one in read_passages(text)]
    assert found == sentences


LEFT = [
    ("Should I continue?", "question"),
    ("What changed in auth.py?", "question"),
    ("I'll add tests next.", "plan"),
    ("Next, I will refactor auth.py.", "plan"),
    ("Let's move on to the parser.", "plan"),
    ("TODO: handle timeouts in fetch.py", "plan"),
    ("`foo` should be renamed later.", "plan"),
    ("We should add an index.", "plan"),
    ("The code looks cleaner now.", "opinion"),
    ("auth.py is much more readable.", "opinion"),
    ("Looks good!", "opinion"),
    ("I like this design.", "opinion"),
    ("Sure!", "opinion"),
    ("I haven't tested it.", "opinion"),
    ("Run `pytest` to verify.", "instruction"),
    ("Make sure that Redis is running.", "instruction"),
    ("You should update your config.", "instruction"),
    ("To run the tests, use `pytest`.", "instruction"),
    ("Let me know if you need anything else.", "instruction"),
    ("The error was `KeyError: 'x'`.", "quotation"),
    ("ValueError: invalid literal for int()", "quotation"),
    ("> I added login to auth.py", "quotation"),
    ("He añadido pruebas.", "not understood"),
    ("Ich will das nicht.", "not understood"),
]


@each(("text", "reason"), LEFT, ids=[row[0][:40] for row in LEFT])
def test_what_cannot_be_checked_is_counted_with_its_reason(text: str, reason: str) -> None:
    reading = read_claims(text)
    assert reading.claims == ()
    assert [left.reason for left in reading.uncheckable] == [reason]


@each("text", ["", "   \n\n", "---", "…", "```\n```", "123", "\x00"])
def test_a_text_without_claims_has_none(text: str) -> None:
    assert read_claims(text).claims == ()


@each("hedge", ["I think ", "Probably ", "It seems that ", "I believe ", "Perhaps ", "Maybe "])
@each("row", [*range(0, 14), *range(15, 27), 35, 36, 38, 39])
def test_hedging_changes_no_claim_but_its_hedge(row: int, hedge: str) -> None:
    text, kind, _ = SAID[row]
    [plain], [hedged] = read_claims(text).claims, read_claims(hedge + text).claims
    assert hedged.type == kind
    assert hedged.files == plain.files
    assert hedged.hedge > plain.hedge


def test_a_doubt_after_the_claim_is_about_it() -> None:
    [claim] = read_claims("I fixed it in auth.py, but it is untested.").claims
    assert (claim.type, claim.files) == ("fixed", ("auth.py",))
    assert claim.hedge > 0.5


@each(
    ("text", "negated"),
    [
        ("There is no `x` in y.py.", True),
        ("I did not touch lexer.py.", True),
        ("The parser doesn't handle quotes.", True),
        ("It no longer uses threads.", True),
        ("I added login without changing auth.py.", False),
        ("It not only parses, it validates input.", False),
    ],
)
def test_negation(text: str, negated: bool) -> None:
    assert read_claims(text).claims[0].negated is negated


@each(
    ("text", "subject"),
    [
        ("I implemented login in auth.py.", "login"),
        ("`foo` was renamed to `bar`.", "`foo`"),
        ("`auth.py` – Added `login`", "`login`"),
        ("The parser now handles nested quotes.", "The parser"),
        ("There is no `x` in y.py.", "`x`"),
        ("I think the bug is fixed in a.py.", "the bug"),
    ],
)
def test_subject(text: str, subject: str) -> None:
    assert read_claims(text).claims[0].subject == subject


def _rows(text: str) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(claim.type, claim.text, claim.files) for claim in read_claims(text).claims]


def test_bullets_have_the_file_and_the_kind_of_change_of_their_lead_in() -> None:
    text = "Changes in auth.py:\n- Added refresh tokens\n- login endpoint\n- Fix the expiry bug\n"
    text += "\nNext steps:\n- Add docs\n"
    assert _rows(text) == [
        ("implemented", "Added refresh tokens", ("auth.py",)),
        ("modified", "login endpoint", ("auth.py",)),
        ("fixed", "Fix the expiry bug", ("auth.py",)),
    ]
    assert [left.reason for left in read_claims(text).uncheckable] == ["heading", "heading", "plan"]


def test_a_claim_of_a_list_has_the_words_of_the_answer() -> None:
    text = "Here's what changed:\n- `issue_token` signs access tokens; valid for 14 days.\n"
    claims = [claim.text for claim in read_claims(text).claims]
    assert claims == ["`issue_token` signs access tokens", "valid for 14 days."]


def test_headings_nested_lists_boxes_and_tables() -> None:
    assert _rows("## src/plan.py\n\nThe parser handles quotes.\n- new cache\n") == [
        ("behaviour", "The parser handles quotes.", ("src/plan.py",)),
        ("implemented", "new cache", ("src/plan.py",)),
    ]
    assert _rows("- **auth.py**\n  - added login\n- **db.py**\n  - removed `pool`\n") == [
        ("implemented", "added login", ("auth.py",)),
        ("removed", "removed `pool`", ("db.py",)),
    ]
    assert _rows("- [x] Login in a.py\n- [ ] Logout in a.py") == [("implemented", "Login in a.py", ("a.py",))]
    assert _rows("| File | Change |\n|---|---|\n| auth.py | Added login |\n") == [
        ("implemented", "auth.py | Added login", ("auth.py",))
    ]


def test_what_is_told_as_done_is_a_claim_under_any_heading() -> None:
    assert _rows("Next steps:\n- Added X to a.py\n") == [("implemented", "Added X to a.py", ("a.py",))]


def test_it_is_what_was_spoken_of_before() -> None:
    assert _rows("I added `check` to auth.py. It validates tokens. The weather is cold.")[1:] == [
        ("behaviour", "It validates tokens.", ("auth.py",)),
        ("behaviour", "The weather is cold.", ()),
    ]


@each(
    "text",
    [
        "In auth.py:\n```python\ndef login():\n    pass\n\nclass User:\n    x = 1\n```\n",
        "```python auth.py\ndef login(): ...\nclass User: ...\n```",
        "```python\n# auth.py\ndef login(): ...\nclass User: ...\n```",
        "I changed auth.py:\n```diff\n+def login():\n+class User:\n-def old():\n```",
    ],
)
def test_code_of_a_file_claims_its_definitions(text: str) -> None:
    found = [claim for claim in read_claims(text).claims if claim.type == "exists"]
    assert [(claim.subject, claim.files) for claim in found] == [("login", ("auth.py",)), ("User", ("auth.py",))]


@pytest.mark.parametrize(
    "text", ["```python\ndef login(): ...\n```", "You could add this to auth.py:\n```python\ndef x(): pass\n```"]
)
def test_code_of_no_file_or_that_is_only_proposed_claims_nothing(text: str) -> None:
    assert read_claims(text).claims == ()


def _checked(text: str) -> tuple[Claim, ...]:
    reading = read_claims(text)
    for item in (*reading.claims, *reading.uncheckable):
        assert 0 <= item.start < item.end <= len(text)
    for claim in reading.claims:
        assert claim.text
        assert 0 <= claim.hedge < 1 or claim.hedge == 1
        assert all(text[mention.start : mention.end] == mention.text for mention in claim.mentions)
    assert reading == read_claims(text)
    return reading.claims


PIECES = [
    "I added",
    "`login`",
    "and",
    ", ",
    "removed",
    "auth.py",
    "in",
    "to",
    "\n",
    "- ",
    "## ",
    "```\n",
    ": ",
    ". ",
    "the tests",
    "12",
    "pass",
    "The parser",
    "handles",
    "is",
    "not",
    "will",
    "should",
    "?",
    "| a |",
    "> ",
    "; ",
    "but",
    "**",
    "def x(",
    "v1.2",
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join) | st.text(max_size=120))
def test_offsets_point_at_any_text(text: str) -> None:
    _checked(text)


@each("unit", ["`", "(", "1", " ", '"', "1 ", "**"])
def test_a_megabyte_is_no_trouble(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    quick(lambda: read_claims(text), 20)


@pytest.mark.slow
@each("unit", ["a, ", ". ", "- a\n", "a_", "added x and ", "a/", "I added `x` to a.py and removed y from b.py. "])
def test_the_time_is_linear(unit: str) -> None:
    # Eight times the text: a quadratic reader would take 64 times as long.
    assert growth(lambda length: read_claims(unit * (length // len(unit))), 4_000, 32_000) < 24


@each(
    ("text", "subject", "negated"),
    [
        ("`parse` doesn't raise an error.", "`parse`", True),
        ("The parser never raises an error.", "The parser", True),
        ("The hooks weren’t changed.", "The hooks", True),
        ("Retries are enabled.", "Retries", False),
        ("Fixes are not applied.", "Fixes", True),
        ("`load` used to return None.", "`load` used to return None", False),
        ("None of the tests were changed.", "None of the tests", True),
        ("`verify` is not async.", "`verify`", True),
    ],
)
def test_what_a_denied_claim_is_about(text: str, subject: str, negated: bool) -> None:
    (claim,) = read_claims(text).claims
    assert (claim.subject, claim.negated) == (subject, negated)
