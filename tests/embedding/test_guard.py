"""Which texts the embedding service takes: the order of the checks, and what each profile refuses."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cases import each
from cortex_py.core.config import Profile
from cortex_py.core.embedding.guards import PROFILES, Guard
from cortex_py.core.errors import ConfigurationError, ContentBlocked, ContentTooLarge, CortexError, wire_form
from timing import quick

CODE = Guard(100, 3)
STRICT = Guard(100, 3, "strict")

ORDINARY = [
    "def f(x):\n\treturn `x` or ${HOME}  # see ..\r\n",
    "const url = `https://example.org/${path}`;",
    "for i in 0..10 { a[..i]; }",
    "$(rm -rf /) && echo 'quoted' | tee \"file\"; DROP TABLE memory; --",
    "The file: //server/share is no address, nor is a profile:// of mine.",
    "He said: wait ... and then..",
    "prescription <description> <scripted> manuscript",
    "Ünïcödé, 日本語, emoji 👩‍💻, right-to-left \u202e marks, a soft\u00adhyphen and a \ufeff mark",
]
BLOCKED_BY_STRICT = {
    "<script>alert(1)</script>": "a script tag",
    "as in `<SCRIPT src=x>`": "a script tag",
    "</script>": "a script tag",
    "< script >": "a script tag",
    "<\n/\tscript": "a script tag",
    "see file:///etc/passwd": "a file:// address",
    "FILE://host": "a file:// address",
    "open('../secret')": "a path that climbs out of its folder",
    "..\\windows": "a path that climbs out of its folder",
    "a bell \x07": "a control character",
    "an escape \x1b[31m": "a control character",
    "a form feed \x0c": "a control character",
    "deleted \x7f": "a control character",
    "an 8-bit escape \x9b31m": "a control character",
}


def _code(guard: Guard, text: object) -> str:
    with pytest.raises(CortexError) as caught:
        guard.check(text)
    return wire_form(caught.value).embedding


@each("text", ORDINARY)
@each("guard", [CODE, STRICT], ids=PROFILES)
def test_both_profiles_take_ordinary_code_and_prose(guard: Guard, text: str) -> None:
    assert guard.check(text) == text


@each(("text", "kind"), BLOCKED_BY_STRICT.items())
def test_only_strict_refuses_what_ordinary_text_may_hold(text: str, kind: str) -> None:
    assert CODE.check(text) == text
    with pytest.raises(ContentBlocked) as caught:
        STRICT.check(text)
    assert caught.value.kinds == (kind,)
    assert caught.value.field == "text"
    assert caught.value.message == f"text holds {kind}, which the profile 'strict' refuses."
    assert caught.value.remedy == "Remove it, or use the profile 'code'."


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_refuses_a_null_byte(profile: Profile) -> None:
    with pytest.raises(ContentBlocked) as caught:
        Guard(100, 3, profile).check("a\x00b")
    assert caught.value.kinds == ("a null byte",)


@each("text", [None, 5, b"bytes", ["list"], {"a": 1}, True, "", " ", "\n\t\r\x0b\x0c", "\u3000", "a \ud800 b"])
def test_what_is_no_text_or_blank_is_invalid(text: object) -> None:
    assert _code(CODE, text) == "VALIDATION_ERROR"
    assert _code(STRICT, text) == "VALIDATION_ERROR"


def test_the_length_counts_characters_up_to_the_limit() -> None:
    assert CODE.check("ä" * 100) == "ä" * 100
    with pytest.raises(ContentTooLarge) as caught:
        CODE.check("ä" * 101)
    assert caught.value.message == "text has 101 characters; at most 100 are taken."


@each(
    ("text", "code"),
    [
        ("\x1c" * 101, "VALIDATION_ERROR"),  # blank, too long, blocked
        ("\ud800<script>" + "x" * 100, "VALIDATION_ERROR"),  # invalid, too long, blocked
        ("<script>" + "x" * 100, "TEXT_TOO_LONG"),  # too long, blocked
        ("<script>", "SECURITY_VIOLATION"),
    ],
)
def test_the_first_check_that_fails_is_told(text: str, code: str) -> None:
    assert _code(STRICT, text) == code


def _code_of_many(texts: object) -> tuple[str, str | None]:
    with pytest.raises(CortexError) as caught:
        STRICT.check_many(texts)
    return wire_form(caught.value).embedding, caught.value.field


@each(
    ("texts", "code", "field"),
    [
        ("one text", "VALIDATION_ERROR", "texts"),
        (None, "VALIDATION_ERROR", "texts"),
        ({"a": "b"}, "VALIDATION_ERROR", "texts"),
        ([], "VALIDATION_ERROR", "texts"),
        (["a", "b", "c", "d"], "VALIDATION_ERROR", "texts"),
        (["a", 5], "VALIDATION_ERROR", "texts[1]"),
        (["a", "b", " "], "VALIDATION_ERROR", "texts[2]"),
        (["a", "x" * 101], "TEXT_TOO_LONG", "texts[1]"),
        (["a", "../b"], "SECURITY_VIOLATION", "texts[1]"),
        # The order holds over all texts, not for each.
        (["../b", "x" * 101, 5], "VALIDATION_ERROR", "texts[2]"),
        (["../b", "x" * 101], "TEXT_TOO_LONG", "texts[1]"),
        (["../b", "<script>"], "SECURITY_VIOLATION", "texts[0]"),
    ],
)
def test_of_many_texts_the_first_that_fails_the_first_check_is_named(texts: object, code: str, field: str) -> None:
    assert _code_of_many(texts) == (code, field)


def test_an_unknown_profile_is_no_profile() -> None:
    with pytest.raises(ConfigurationError, match="code, strict"):
        Guard(100, 3, "Strict")  # type: ignore[arg-type]


_NASTY = ["\x00", "\x07", "<", "/", " ", "script", "file://", "..", "../", "\\", "\ud800", "\n", "x", "é", "`${a}`"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(_NASTY) | st.text(max_size=5), max_size=30).map("".join))
@example("x" * 101)
@example("plain")
def test_what_strict_takes_code_takes_too(text: str) -> None:
    try:
        STRICT.check(text)
    except CortexError:
        return
    assert CODE.check(text) == text


@settings(deadline=None)
@given(st.text(st.characters(categories=["Cc"]), min_size=1, max_size=1))
def test_strict_takes_of_all_control_characters_only_those_of_lines_and_columns(character: str) -> None:
    text = f"a{character}b"
    if character in "\t\n\r":
        assert STRICT.check(text) == text
    else:
        assert _code(STRICT, text) == "SECURITY_VIOLATION"


def test_a_hostile_text_is_checked_in_no_time() -> None:
    guard = Guard(100_000, 1, "strict")
    for text in ("<" + " " * 99_000, "< / " * 25_000, "." * 99_000, "<" * 99_000, "file:/" * 16_000):
        # Quadratic time would be more than a minute.
        quick(partial(guard.check, text), 5)
