"""Contradictions: claims about one thing that exclude each other, and those that only seem to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.parts.verify.claims.claims import read_claims
from cortex_py.parts.verify.contradictions import contradictions as exclusions
from cortex_py.parts.verify.contradictions.contradictions import Contradiction, find_conflict, find_contradictions

EXCLUDING = [
    ("`foo` validates input. `foo` does not validate input.", "polarity"),
    ("I added rate limiting to server.py. Rate limiting was not added.", "polarity"),
    ("I changed the public API. The public API was not changed.", "polarity"),
    ("The cache is thread-safe.\n\nNote that the cache is not thread-safe.", "polarity"),
    ("The timeout is 30 s. The timeout is 60 s.", "number"),
    ("Removed `login` from auth.py.\n\n`login` in auth.py now returns a token.", "existence"),
    ("I deleted `utils/old.py`. `utils/old.py` contains the retry helper.", "existence"),
    ("Deleted the unused `legacy_login` function. The `legacy_login` function handles expired tokens.", "existence"),
    ("I deleted helpers.py. Then everything was checked. I added `slugify` to helpers.py.", "existence"),
    ("I added `login` to auth.py. There is no `login` in auth.py.", "existence"),
    ("`Settings` is defined in config.py. There is no `Settings` class in config.py.", "existence"),
    ("The request timeout is set to 30 seconds in config.py. The request timeout is 60 seconds.", "number"),
    ("The `max_retries` parameter defaults to 3. `max_retries` defaults to 5.", "number"),
    ("Tokens expire after 15 minutes.\n\nTokens expire after 1 hour.", "number"),
    ("I changed the timeout from 10 to 30 seconds. The timeout is 10 seconds.", "number"),
    ("The server listens on port 8080. The server listens on port 3000.", "number"),
    ("The project pins `requests==2.31.0`. The project pins `requests==2.28.0`.", "version"),
    ("I bumped requests to 2.31.0. The project uses requests 2.28.1.", "version"),
    ("Python 3.11 is required. The package requires Python 3.9.", "version"),
    ("All tests pass. 2 tests fail.", "tests"),
    ("All 12 tests pass. In the same run 3 tests are failing.", "tests"),
    ("12 tests passed. 10 tests passed.", "tests"),
    ("The test suite passes.\n\nUnfortunately the tests fail.", "tests"),
    ("10/12 tests pass. All tests pass.", "tests"),
    ("`foo` is defined in a.py. `foo` is defined in b.py.", "place"),
    ("`UserService` lives in services/user.py. `UserService` is declared in models/user.py.", "place"),
    ("`authenticate` runs before `authorize`. `authenticate` runs after `authorize`.", "order"),
    ("`Admin` inherits from `User`. `User` inherits from `Admin`.", "order"),
    ("Caching is enabled. Caching is disabled.", "polarity"),
    ("The client is synchronous. The client is async.", "polarity"),
    ("The `name` field is required. The `name` field is optional.", "polarity"),
    ("Unknown keys are allowed. Unknown keys are rejected.", "polarity"),
    ("Gzip is supported. Gzip is unsupported.", "polarity"),
    ("I enabled strict mode in tsconfig.json. Strict mode was disabled in tsconfig.json.", "polarity"),
    ("`verify` is async. `verify` is not async.", "polarity"),
    (
        (
            "## Summary\n\nI reworked the session handling.\n\n- Session tokens expire after 30 minutes\n- Added a"
            " refresh endpoint in `api/auth.py`\n\n## Details\n\nThe refresh endpoint rotates the token. Session "
            "tokens expire after 24 hours."
        ),
        "number",
    ),
    (
        (
            "Here is what I did:\n\n1. Removed `compute_hash` from `core/hash.py`\n2. Updated the callers\n3. Add"
            "ed tests in `tests/test_hash.py`\n\nThe `compute_hash` function returns a hex digest."
        ),
        "existence",
    ),
    (
        (
            "The upload endpoint validates the file size and stores the file in S3. All 42 tests pass.\n\nKnown"
            " issues: the upload endpoint does not validate the file size."
        ),
        "polarity",
    ),
    ("`retry` doubles the delay. `retry` does not double the delay.", "polarity"),
    ("The worker retries 3 times. The worker retries five times.", "number"),
    (
        (
            "I've removed the `validate_email` helper from `utils/strings.py`. The `validate_email` helper no"
            "w also accepts plus signs."
        ),
        "existence",
    ),
    (
        ("The migration adds an index on `orders.user_id`. The migration does not add an index on `orders.user_id`."),
        "polarity",
    ),
    ("The default page size is 50.\n\nIf nothing is passed, all is well. The default page size is 100.", "number"),
    ("`MAX_RETRIES` is 5. `MAX_RETRIES` is set to 3 in settings.py.", "number"),
    ("The build takes 2 minutes. The build takes 90 seconds.", "number"),
    ("I upgraded Django from 4.1 to 4.2.3. We use Django 5.0.", "version"),
    ("I pinned `numpy` to 1.26.4. `numpy` is pinned to 2.0.1.", "version"),
    ("The tests all pass. 5 tests failed.", "tests"),
    ("All 120 tests pass in tests/test_api.py. 4 tests fail in tests/test_api.py.", "tests"),
    ("The logger writes to stdout. The logger does not write to stdout.", "polarity"),
    ("Retries are enabled. Retries are not enabled.", "polarity"),
    ("The queue isn't persistent. The queue is persistent.", "polarity"),
    (
        ("`TokenStore` is defined in `src/auth/store.ts` on line 12. `TokenStore` is defined in `src/db/store.ts`."),
        "place",
    ),
    ("The `AuthMiddleware` class is located in middleware.py. The `AuthMiddleware` class lives in auth.py.", "place"),
    ("The migrations run before the server starts. The migrations run after the server starts.", "order"),
    ("Compression is on. Compression is off.", "polarity"),
    ("The endpoint is public. The endpoint is private.", "polarity"),
    ("The `token` column is nullable. The `token` column is not nullable.", "polarity"),
    ("I deleted the file `scripts/seed.py`.\n\nThere are two helpers in `scripts/seed.py`.", "existence"),
    ("I did not touch the config. I did not modify `config.yaml`. I modified `config.yaml`.", "polarity"),
    ("The feature flag defaults to true. The feature flag defaults to false.", "polarity"),
    ("Passwords are hashed. Passwords are not hashed.", "polarity"),
    ("`fetch_user` accepts 2 arguments. `fetch_user` accepts 3 arguments.", "number"),
    ("The hook is synchronous. The hook isn't synchronous.", "polarity"),
    ("`Cache.get` returns None for missing keys. `Cache.get` does not return None for missing keys.", "polarity"),
    ("The cache TTL is 5 minutes. The cache TTL is at least 10 minutes.", "number"),
    ("I removed `foo` and `bar` from a.py. `bar` in a.py returns 3.", "existence"),
    ("Sessions are stored in Redis. Sessions are not stored in Redis.", "polarity"),
    ("Auth is enabled in `settings.py`. Auth is disabled in `settings.py`.", "polarity"),
    ("All tests passed. 1 failed, 99 passed.", "tests"),
    ("I set the connection pool size to 20. The connection pool size was set to 50.", "number"),
    (
        "The webhook handler retries failed deliveries. The webhook handler does not retry failed deliveries.",
        "polarity",
    ),
    ("I removed `OldParser` from parser.py. The `OldParser` class in parser.py supports JSON.", "existence"),
    ("The access token expires after 10 minutes. ... The access token expires after 60 minutes.", "number"),
    ("`send_email` is asynchronous.\n\n`send_email` is synchronous.", "polarity"),
    ("I upgraded React to 18.2.0. The app uses React 17.0.2.", "version"),
    ("Everything is done and all 30 tests pass.\n\nNote: 2 tests are failing.", "tests"),
    ("`Router` is defined in `src/router.ts`. The `Router` class lives in `src/app.ts`.", "place"),
    ("`setup_logging` runs before `load_config`. `load_config` runs before `setup_logging`.", "order"),
    ("The `--force` flag is optional. The `--force` flag is required.", "polarity"),
    ("I didn't change `schema.sql`. I also changed `schema.sql`.", "polarity"),
    ("Uploads are limited to 10 MB. Uploads are limited to 25 MB.", "number"),
    ("The importer skips empty rows. The importer doesn't skip empty rows.", "polarity"),
    ("There is no `retry` decorator in utils.py. The `retry` decorator is defined in utils.py.", "existence"),
    ("Deleted `docker-compose.yml`. `docker-compose.yml` defines two services.", "existence"),
    ("CSRF protection is enabled. CSRF protection is disabled.", "polarity"),
    ("The queue is not durable.\n\n- The queue is durable\n- Messages are acknowledged", "polarity"),
    ("The linter runs before the tests. The tests run before the linter.", "order"),
    ("`hash_password` uses 12 rounds. `hash_password` uses 10 rounds.", "number"),
]
# Contradictions that are not found; they stand here so that a change of that is seen.
MISSED = [
    "`parse_config` raises an error on unknown keys. `parse_config` doesn't raise an error.",
    "The session middleware encrypts the cookie. The session middleware never encrypts the cookie.",
    "The cache holds at most 100 entries. The cache holds 500 entries.",
    "Ran pytest: 48 passed, 2 failed. Ran pytest: 50 passed.",
    "The response is cached for 5 minutes. The response is cached for 1 hour.",
]
AGREEING = [
    "I changed the timeout from 10 to 30 seconds. The timeout is 30 seconds.",
    "The timeout is 10 seconds. I changed the timeout to 30 seconds.",
    "Previously the timeout was 10 seconds. The timeout is 30 seconds.",
    "It used to return None. Now it raises.",
    "`load` used to return None. `load` now raises `KeyError`. `load` no longer returns None.",
    "The timeout is 30 seconds. The timeout is 0.5 min.",
    "The timeout is 30 seconds in the test environment. The timeout is 60 seconds in production.",
    "On Windows the path is quoted. On Linux the path is not quoted.",
    "Either the cache is disabled or the cache is enabled.",
    "`foo` not only validates input. `foo` validates input.",
    "Does `foo` validate input? `foo` does not validate input.",
    "Unit tests pass, integration tests fail.",
    "The unit tests pass. The integration tests fail.",
    "I moved `foo` from a.py to b.py. `foo` is defined in b.py.",
    "Moved `foo` from a.py to b.py. Removed `foo` from a.py. `foo` returns a list.",
    "I renamed `foo` to `bar`. Removed `foo`. `bar` returns a list.",
    "Removed `login` from auth.py. Added `login` to session.py.",
    "`foo` is defined in a.py. `bar` is defined in b.py.",
    "`foo` is used in a.py. `foo` is used in b.py.",
    "The parser did not handle nested quotes. The parser now handles nested quotes.",
    "The parser does not handle nested quotes. I fixed the parser. The parser handles nested quotes.",
    "`a.py` defines `main`. `b.py` defines `main`.",
    "`fetch` retries 3 times. `send` retries 5 times.",
    "2 tests failed at first. I fixed the fixture. All tests pass.",
    "Two tests were failing before the change. All tests pass now.",
    "12 tests passed, 2 skipped. No tests failed.",
    "10 passed, 2 failed.",
    ("The endpoint returns 404 when the user does not exist. The endpoint returns 403 when the user is locked."),
    "The endpoint returns 200 on success. The endpoint returns 500 on failure.",
    "`foo` validates the name. `foo` does not validate the email.",
    "The client supports Python 3.11. The client supports Python 3.12.",
    "I bumped requests from 2.28.0 to 2.31.0. The project uses requests 2.31.",
    "I removed the `timeout` argument from `fetch`. `fetch` returns a response.",
    "I removed the call to `validate`. `validate` raises an error.",
    "Logging is enabled in development. Logging is disabled in production.",
    "The cache is enabled by default. The cache is disabled in tests.",
    "Caching might be disabled. Caching is enabled.",
    "The old client is synchronous. The new client is asynchronous.",
    "The lock is acquired before the write. The lock is released after the write.",
    "I did not remove the old endpoint. I removed the old tests.",
    "Deleted old.py. Updated the imports of old.py in main.py.",
    "If the token is missing, the request is rejected. The request is accepted with a token.",
    "`foo` is async, but `bar` is not async.",
    "The default timeout is 30 seconds. The connect timeout is 5 seconds.",
    (
        "I've implemented JWT authentication with refresh tokens.\n\n**Changes:**\n\n- `auth.py`: added `crea"
        "te_token` and `verify_token`\n- `routes.py`: removed the basic auth check\n- `tests/test_auth.py`:"
        " 12 new tests\n\nAccess tokens expire after 15 minutes, refresh tokens expire after 7 days. All 54"
        " tests pass. The basic auth check is no longer used anywhere."
    ),
    (
        "## What was wrong\n\nThe worker did not release the lock when a job failed, so 3 tests failed.\n\n##"
        " Fix\n\nThe worker now releases the lock in a `finally` block in `worker.py`. I removed the `force"
        "_unlock` helper, which is not needed anymore.\n\n## Result\n\nAll tests pass. The job timeout is sti"
        "ll 30 seconds."
    ),
    (
        "### Backend\n\n- 42 tests pass\n- The build takes 30 seconds\n\n### Frontend\n\n- 18 tests pass\n- The b"
        "uild takes 12 seconds\n"
    ),
    (
        "I looked into the slow query. The `orders` table has no index on `user_id`, so each lookup scans"
        " 2 million rows. I added an index on `user_id` in `migrations/0042.sql`. The query takes 12 ms n"
        "ow; it took 900 ms before.\n\nThe migration does not lock the table. The old index on `email` was "
        "not changed."
    ),
    (
        "The `--strict` flag is disabled by default. When the `--strict` flag is enabled, unknown keys ar"
        "e rejected; otherwise unknown keys are ignored.\n\n`load_config` reads the file and `validate_conf"
        "ig` checks it. `load_config` does not check the keys."
    ),
    "The first request takes 300 ms. The second request takes 20 ms.",
    "Added 3 tests to test_a.py. Added 5 tests to test_b.py.",
    "The limit is about 30 MB. The limit is 32 MB.",
    "`User` is defined in models.py. `User` is also defined in types.ts.",
    "Temporarily disabled caching. Then enabled caching again.",
    "I added a debug log and then removed the debug log.",
    "Removed `DEBUG` from settings.py. `DEBUG` is read from the environment.",
    "Tests: 48 passed, 2 failed. After fixing the fixture: 50 passed.",
    "I ran the tests twice. The first run had 2 failures. All tests pass in the second run.",
    "The API returns JSON. The CLI does not return JSON.",
    "`a` is required. `b` is optional.",
    "The old timeout was 30 s and the new timeout is 60 s.",
    "The timeout is 30 seconds by default. With `--slow` the timeout is 60 seconds.",
    "The read timeout is 30 seconds. The write timeout is 60 seconds.",
    "I added caching to `get_user`. I did not add caching to `get_order`.",
    "The button is disabled while the form is loading. The button is enabled when the form is valid.",
    ("`login` did not check the password length. I added a check in auth.py, so `login` checks the password length."),
    "The worker is not started automatically. I start the worker manually.",
    "I removed the `cache` argument. The cache is now configured in settings.py.",
    "Version 1.2 is required on Linux. Version 1.4 is required on Windows.",
    "`Config` is defined in config.py and re-exported in `__init__.py`.",
    "Deleted `tests/test_old.py`. The tests in `tests/test_new.py` cover the same cases.",
    "I removed `parse` from the public API. `parse` is still used internally.",
    "The schema was at version 3. The schema is at version 4.",
    ("The function returns `true` if the key exists. The function returns `false` if the key does not exist."),
    ("There was no retry logic in client.py. I added retry logic to client.py. Requests are retried 3 times."),
    "Not all tests pass. 3 tests fail.",
    "All unit tests pass. 2 end-to-end tests fail because the browser is not installed.",
    "All tests in test_a.py pass. 2 tests in test_b.py fail.",
    "The migration adds a `status` column. It does not add an index.",
    "Node 18 is used in CI. Node 20 is used locally.",
    ("I replaced `requests` with `httpx`. Removed `requests` from pyproject.toml. `requests` was used in client.py."),
    "**Before:** the timeout is 10 seconds.\n\n**After:** the timeout is 30 seconds.",
    "The problem: `save` does not flush the buffer.\n\nThe fix: `save` flushes the buffer.",
    "Caching is disabled in debug mode. Caching is enabled.",
    "In v1 the field is required. In v2 the field is optional.",
    "Step 1 takes 3 seconds. Step 2 takes 5 seconds.",
    "The current behaviour: `open` ignores errors. The expected behaviour: `open` does not ignore errors.",
    "I expected that all tests pass. 2 tests fail.",
    "Without the patch, 3 tests fail. With the patch, all tests pass.",
    "On main, all tests pass. On this branch, 2 tests fail.",
    "No files were deleted. I deleted `legacy.py`.",
    "`render()` is defined in views.py. `render()` is defined in templates.py.",
    "- Linux:\n  - Watching is supported\n- Windows:\n  - Watching is not supported",
    "**Option A**\n\nThe cache is enabled.\n\n**Option B**\n\nThe cache is disabled.",
    "## Problem\n\n`save` does not flush the buffer.\n\n## Fix\n\n`save` flushes the buffer.",
    "## Problem\n\n`save` does not flush the buffer.\n\n## Summary\n\n`save` flushes the buffer.",
    "`save` does not flush the buffer. To fix that, I call `flush`. `save` flushes the buffer.",
    "In production, the cache is enabled. In staging, the cache is disabled.",
    "The API key is required. The API key is not required for public endpoints.",
    "The cache TTL is 5 minutes. The cache TTL is 300 seconds.",
    "`foo` in a.py is synchronous. `foo` in b.py is async.",
    "## 1.1\n\n- The timeout is 30 seconds\n\n## 1.2\n\n- The timeout is 60 seconds\n",
    "The retry limit is 3. The retry limit is 4. The retry limit is 5.",
    "- Bump requests to 2.31.0\n- Bump requests to 2.32.0",
    "`AIOFile` has no internal file pointer. The `AIOFile` class is an interface for files.",
    "- Adds `user` to `team`.\n- Removes `user` from `team`.",
    "Thanks for the patch (Closes: #969004). Thanks for the patch (Closes: #945928).",
    "The batch size was 100. The batch size is 250.",
    "I looked at `retry` in utils.py. It does not back off. I added backoff to `retry`. "
    "`retry` backs off exponentially.",
    "CSRF protection is enabled for the admin. CSRF protection is disabled for the API.",
    "The first migration adds a column. The second migration removes the column.",
    "All tests pass on Python 3.11. 3 tests fail on Python 3.12.",
    "I removed the cache from `get_user`. The cache in `get_order` is still there.",
    "`encode` is the inverse of `decode`. `decode` is the inverse of `encode`.",
    "The server listens on port 8080 for HTTP. The server listens on port 8443 for HTTPS.",
    "`load` calls `parse`. `parse` calls `load`.",
    "The image is 120 MB. The compressed image is 40 MB.",
    "The flag is not required. It is optional.",
    "The lock is not released on error. With this patch the lock is released on error.",
    "Deleted the `users` fixture. The `users` table has 3 columns.",
    "I bumped the version to 1.2.0. The last release is 1.1.0.",
    "Strict mode is off by default. I turned strict mode on in tsconfig.json.",
    "The build no longer takes 5 minutes. The build takes 90 seconds.",
    "We could remove `foo`. `foo` returns a list.",
    "`User.name` is required. `Order.name` is optional.",
    "The job runs before midnight. The job runs after the backup.",
    "`get` does not raise. `get` returns a default. `get_strict` raises `KeyError`.",
    "The batch size is 100. The batch size is now 250. The batch size is 100.",
    "The report is sent daily. The report is sent weekly.",
]
SENTENCES = [
    *(sentence for text, _ in EXCLUDING for sentence in text.split("\n\n") if "\n" not in sentence),
    "All tests pass.",
    "Two tests fail.",
    "It is faster.",
    "I fixed the parser.",
    "Then I enabled caching again.",
]


STATES = [
    ("Caching is enabled.", "Caching is disabled."),
    ("`foo` validates input.", "`foo` does not validate input."),
    ("The request timeout is 30 seconds.", "The request timeout is 1 hour."),
    ("`foo` is defined in a.py.", "`foo` is defined in b.py."),
    ("`migrate` runs before `seed`.", "`seed` runs before `migrate`."),
    ("All tests pass.", "2 tests fail."),
    ("The project uses requests 2.28.1.", "The project uses requests 2.31.0."),
]


def found(text: str) -> list[Contradiction]:
    return find_contradictions(read_claims(text).claims, text)


@each(("text", "kind"), EXCLUDING)
def test_what_excludes_each_other(text: str, kind: str) -> None:
    (contradiction,) = found(text)
    assert contradiction.kind == kind
    assert (contradiction.between, contradiction.source) == ("text", "")
    claims = [claim.text for claim in read_claims(text).claims]
    assert claims.index(contradiction.left) < claims.index(contradiction.right)


@each("text", AGREEING)
def test_what_goes_together(text: str) -> None:
    assert found(text) == []


@each("text", MISSED)
def test_what_is_missed(text: str) -> None:
    assert found(text) == []


@each(
    ("text", "reason"),
    [
        (
            "The request timeout is 30 seconds. The request timeout is 60 seconds.",
            "says 30 seconds here and 60 seconds there of “The request timeout”",
        ),
        (
            "Removed `login` from auth.py.\n\n`login` in auth.py now returns a token.",
            "`login` is said to be removed, and yet that “`login` in auth.py now returns a token”",
        ),
        ("Caching is enabled. Caching is disabled.", "“Caching” is said to be “enabled” here and “disabled” there"),
        ("`foo` validates input. `foo` does not validate input.", "the same is said of `foo` and denied"),
        ("`foo` is defined in a.py. `foo` is defined in b.py.", "`foo` is said to be defined in a.py and in b.py"),
        ("12 tests passed. 10 tests passed.", "says that 12 tests pass here and 10 there"),
    ],
)
def test_reasons_are_sentences(text: str, reason: str) -> None:
    assert [contradiction.reason for contradiction in found(text)] == [reason]


def test_without_the_text_headings_tell_nothing() -> None:
    text = "## Linux\n\nWatching is supported.\n\n## Windows\n\nWatching is not supported."
    assert found(text) == []
    assert [one.kind for one in find_contradictions(read_claims(text).claims)] == ["polarity"]


AGAINST = [
    ("The timeout is 30 seconds.", ["Logs go to stdout.", "The timeout is 60 seconds."], (1, "number")),
    ("`foo` validates input.", ["`foo` does not validate input."], (0, "polarity")),
    ("`login` in auth.py returns a token.", ["Removed `login` from auth.py."], (0, "existence")),
    ("The project uses requests 2.28.1.", ["I bumped requests to 2.31.0."], (0, "version")),
    ("All tests pass.", ["3 tests fail."], (0, "tests")),
    ("`foo` is defined in a.py.", ["`foo` is defined in b.py."], (0, "place")),
    ("I added rate limiting to server.py.", ["Rate limiting was not added."], (0, "polarity")),
    ("The timeout is 10 seconds.", ["I changed the timeout from 10 to 30 seconds."], (0, "number")),
    ("I changed the timeout from 10 to 30 seconds.", ["The timeout is 10 seconds."], None),
    ("I changed the timeout from 10 to 30 seconds.", ["The timeout is 60 seconds."], None),
    ("`foo` now validates input.", ["`foo` does not validate input."], None),
    ("I removed `login` from auth.py.", ["`login` is defined in auth.py."], None),
    ("I added `login` to auth.py.", ["There is no `login` in auth.py."], None),
    ("I added `login` to auth.py.", ["Removed `login` from auth.py."], None),
    ("The timeout is 30 seconds.", ["The timeout was 60 seconds.", "Perhaps the timeout is 60 seconds."], None),
    ("The timeout is 30 seconds.", ["The timeout is 60 seconds in production."], None),
    ("The timeout is 30 seconds.", [], None),
    ("It is 30 seconds.", ["It is 60 seconds."], None),
]


@each(("text", "sentences", "expected"), AGAINST)
def test_against_what_is_known(text: str, sentences: list[str], expected: tuple[int, str] | None) -> None:
    (claim,) = read_claims(text).claims
    answer = find_conflict(claim, sentences)
    assert (answer and (answer[0], answer[2])) == expected
    assert answer is None or len(answer[1].split()) > 3


@given(st.lists(st.sampled_from(SENTENCES), max_size=8))
def test_saying_it_twice_adds_nothing(sentences: list[str]) -> None:
    text = "\n\n".join(sentences)
    once = find_contradictions(read_claims(text).claims)
    assert find_contradictions(read_claims(f"{text}\n\n{text}").claims) == once
    assert find_contradictions(read_claims(text).claims) == once


@given(st.sampled_from(STATES), st.booleans(), st.sampled_from(["It is faster.", "The docs are complete.", "Why?"]))
def test_the_order_of_two_states_does_not_matter(pair: tuple[str, str], turned: bool, between: str) -> None:
    first, second = reversed(pair) if turned else pair
    assert len(found(f"{first} {between} {second}")) == 1


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    found(text)
    for claim in read_claims(text).claims:
        find_conflict(claim, [text])


@given(st.lists(st.sampled_from([*" `.\n#-:,", "not ", "is ", "foo", "30 s", "a.py", "removed ", "tests pass", "or "])))
def test_any_scraps_can_be_read(scraps: list[str]) -> None:
    found("".join(scraps))


@pytest.mark.parametrize(
    "sentence",
    [
        "The `f` function validates the key{n} field.",
        "Removed `g{n}` from a.py.",
        "`f{n}` does not raise an error.",
        "The timeout is {n} seconds.",
        "{n} tests pass.",
        "`f` does not raise key{n}. `f` raises key{n} twice.",
    ],
)
def test_the_work_grows_with_the_claims(sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in comparisons, of which there must be a bounded number for each claim."""
    asked = 0
    compare = exclusions.find_exclusion

    def counting(*arguments: object) -> object:
        nonlocal asked
        asked += 1
        return compare(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("cortex_py.parts.verify.contradictions.contradictions.find_exclusion", counting)
    claims = read_claims("\n\n".join(sentence.format(n=n) for n in range(300))).claims
    assert len(claims) >= 300
    find_contradictions(claims)
    assert asked <= 32 * len(claims)
