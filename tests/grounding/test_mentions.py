"""Mentions in a clause, with their places and normalised values."""

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.parts.verify.claims.mentions import mentions


@each(
    ("text", "expected"),
    [
        ("I changed auth.py", {("file", "auth.py")}),
        ("see src/auth/login.py:45", {("file", "src/auth/login.py"), ("line", "45")}),
        ("see `utils.py:3-7`", {("file", "utils.py"), ("line", "3-7")}),
        ("in auth.ts#L12-L20", {("file", "auth.ts"), ("line", "12-20")}),
        ("at app.py:12:5", {("file", "app.py"), ("line", "12")}),
        ("on line 45 of `./src/a.rs`", {("line", "45"), ("file", "src/a.rs")}),
        ("lines 3 to 7 of the Dockerfile", {("line", "3-7"), ("file", "Dockerfile")}),
        ("everything under src/grounding/", {("file", "src/grounding/")}),
        ("the read/write lock and/or the client", set()),
        ("app/(auth)/page.tsx renders it", {("file", "app/(auth)/page.tsx")}),
        (
            "`parse_config()` calls os.path and HTTPServer",
            {("symbol", "parse_config"), ("symbol", "os.path"), ("symbol", "HTTPServer")},
        ),
        (
            "camelCase and snake_case and _private",
            {("symbol", "camelCase"), ("symbol", "snake_case"), ("symbol", "_private")},
        ),
        ("the class Parser and the Lexer class", {("symbol", "Parser"), ("symbol", "Lexer")}),
        ("The function creates a session", set()),
        ("The login function no longer stores it", set()),
        ("JavaScript on GitHub", set()),
        ("a timeout of 30 seconds", {("number", "30 s")}),
        ("fifteen minutes, half an hour", {("number", "900 s"), ("number", "1800 s")}),
        ("it lasts an hour and a half", {("number", "5400 s")}),
        ("100 calls a minute, is a second copy", {("number", "100")}),
        ("two functions and 1.5 MB", {("number", "2"), ("number", "1500000 B")}),
        ("`MAX_RETRIES = 5`", {("quote", "MAX_RETRIES = 5"), ("number", "5")}),
        ("Python 3.11 is required", {("version", "3.11")}),
        ("released v2.0.1-rc1", {("version", "2.0.1-rc1")}),
        ("migrated to version 3", {("version", "3")}),
        ("I bumped requests to 2.31.0", {("dependency", "requests"), ("version", "2.31.0")}),
        ("added `httpx==0.27`", {("dependency", "httpx"), ("version", "0.27")}),
        (
            "uses FastAPI 0.110 and SQLAlchemy 2.0",
            {("dependency", "fastapi"), ("version", "0.110"), ("dependency", "sqlalchemy"), ("version", "2.0")},
        ),
        ("it depends on `pydantic`", {("dependency", "pydantic")}),
        ("I added redis as a dependency", {("dependency", "redis")}),
        ("I ran pytest -q tests/unit and stopped", {("command", "pytest -q tests/unit")}),
        ("`git commit --amend` was used", {("command", "git commit --amend")}),
        ("in commit 3fa92bc", {("commit", "3fa92bc")}),
        ("commit 1234567 has it", {("commit", "1234567")}),
        ('it says "not found"', {("quote", "not found")}),
        ("All 12 tests pass", {("tests", "12 passed")}),
        ("12 passed, 3 failed", {("tests", "12 passed"), ("tests", "3 failed")}),
        ("The tests are now passing", {("tests", "all passed")}),
        ("No tests failed", {("tests", "no failed")}),
        ("Two tests still fail", {("tests", "2 failed")}),
        ("11/12 unit tests pass", {("tests", "11/12 passed")}),
        ("see https://example.com/a.py.", {("url", "https://example.com/a.py")}),
        ("auth.py に追加しました", {("file", "auth.py")}),
        ("", set()),
    ],
)
def test_what_is_mentioned(text: str, expected: set[tuple[str, str]]) -> None:
    assert {(mention.kind, mention.value) for mention in mentions(text)} == expected


def test_a_stretch_of_a_text_has_the_offsets_of_the_whole() -> None:
    text = "auth.py is old. In login.py `check()` is new."
    found = mentions(text, 16)
    assert [mention.text for mention in found] == ["login.py", "check()"]
    assert all(text[mention.start : mention.end] == mention.text for mention in found)


@given(st.text(st.sampled_from("ab_A. /`\"'()12:#-v=@\nst"), max_size=80) | st.text(max_size=60))
def test_offsets_point_at_the_text(text: str) -> None:
    found = mentions(text)
    assert all(text[mention.start : mention.end] == mention.text and mention.text for mention in found)
    assert found == mentions(text)
