"""The blanks of a prompt: which are found, what is told of faulty ones, and what filling in makes of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from cortex_py.core.errors import ContentSyntaxError, CortexError, LimitExceeded
from cortex_py.parts.prompts.language.placeholders import (
    FILLED_MOST,
    RESERVED_PREFIXES,
    Mark,
    fenced,
    find_blanks,
    split,
)

# What the syntax is made of, so that random texts meet all of it.
SIGNS = st.text(st.sampled_from("{}\\`~ab_1 \t\n\r\u2028é"), max_size=60)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: not name.startswith(RESERVED_PREFIXES)
)
PLAIN = st.text(st.characters(exclude_characters="{}\\`~", exclude_categories=["Cs"]), max_size=20)
CODE = st.text(st.sampled_from("{}\\ab \n"), max_size=30)
FENCED = st.builds(
    lambda fence, indent, code: f"\n{' ' * indent}{fence}\n{code}\n{fence}\n",
    st.sampled_from(["```", "~~~", "`````", "~~~~"]),
    st.integers(0, 3),
    CODE,
)


def filled(content: str, **values: str) -> str:
    return find_blanks(content).fill(values)


def told(content: str) -> list[tuple[int, int, str]]:
    with pytest.raises(ContentSyntaxError) as caught:
        find_blanks(content)
    return [(one.line, one.column, one.message) for one in caught.value.faults]


# -- finding ---------------------------------------------------------------------------------------


def test_names_are_found_once_in_order_of_appearance() -> None:
    assert find_blanks("{{b}} {{ a }} {{\tb\n}} {{é}}{{a}}").names == ("b", "a", "é")
    assert find_blanks("no blanks { } here").names == ()


@each(
    "content",
    [
        "```\n{{code}}\n```",
        "~~~\n{{code}}\n~~~",
        "```python title\n{{code}}\n```",
        "   ```\n{{code}}\n  ```",
        "````\n```\n{{code}}\n```\n````",
        "```\n{{code}}\n~~~\n{{code}}\n```",
        "```\n{{code}}\n``` not the end\n{{code}}\n```",
        "```\n{{code}}\n`````",
        "```\n{{code}} and {{ never closed",
        "~~~ with ` in it\n{{code}}\n~~~~  ",
        "```\r\n{{code}}\r\n```\r\n",
    ],
)
def test_fenced_code_is_kept_as_it_stands(content: str) -> None:
    assert find_blanks(content).names == ()
    assert filled(content, code="no") == content


@each(
    "content",
    [
        "    ```\n{{code}}\n    ```",
        "``\n{{code}}\n``",
        "text ``` {{code}} ```",
        "``` a ` b\n{{code}}",
        "\t```\n{{code}}\n\t```",
        "```\nx\n```\n{{code}}",
        "~~~\nx\n~~~~\n{{code}}\n",
    ],
)
def test_what_is_no_fence_hides_nothing(content: str) -> None:
    assert find_blanks(content).names == ("code",)
    assert filled(content, code="VALUE") == content.replace("{{code}}", "VALUE")


def test_a_blank_after_a_fence_is_filled_and_the_same_in_it_is_not() -> None:
    content = "{{x}}\n```\n{{x}}\n```\n{{x}} and {{y}}"
    assert find_blanks(content).names == ("x", "y")
    assert filled(content, x="1", y="2") == "1\n```\n{{x}}\n```\n1 and 2"


@each(
    ("content", "result"),
    [
        (r"\{{x}}", "{{x}}"),
        (r"\\{{x}}", r"\V"),
        (r"\{{x}} {{x}}", "{{x}} V"),
        ("{{{x}}}", "{V}"),
        (r"\{{{x}}}", "{{{x}}}"),
        (r"\{{ never closed", "{{ never closed"),
        (r"\n and \{ and \\ stay", r"\n and \{ and \\ stay"),
        ('{"a": {"b": "{{x}}"}}', '{"a": {"b": "V"}}'),
        ("{ } {a} }{", "{ } {a} }{"),
        ("{{x}}{{x}}", "VV"),
    ],
)
def test_escapes_and_single_braces(content: str, result: str) -> None:
    assert filled(content, x="V") == result


# -- faults ----------------------------------------------------------------------------------------


def test_all_faults_are_told_at_once_in_order_with_their_places() -> None:
    faults = told("ok {{x}}\n{{1st}} and {{}}\n  {{system_x}} }}\nlast {{open")
    assert [(line, column) for line, column, _ in faults] == [(2, 1), (2, 13), (3, 3), (3, 16), (4, 6)]
    for (_, _, message), word in zip(
        faults, ("1st", "missing", "reserved", "closes nothing", "never closed"), strict=True
    ):
        assert word in message


def test_the_message_names_the_first_faults_and_what_to_do() -> None:
    with pytest.raises(ContentSyntaxError) as caught:
        find_blanks("{{a b}}\n" * 9)
    assert "ine 1, column 1" in caught.value.message
    assert "4 more" in caught.value.message
    assert caught.value.field == "content"
    assert [one.position for one in caught.value.faults] == [8 * n for n in range(9)]


@each("name", ["", " ", "a b", "a-b", "1a", "a.b", "#each x", "a\nb", "x" * 65, *RESERVED_PREFIXES])
def test_what_is_no_name_is_told(name: str) -> None:
    assert [(line, column) for line, column, _ in told(f"ä {{{{{name}}}}}")] == [(1, 3)]


@each("name", ["a", "_a", "A1_", "x" * 64, "größe", "systemx", "cortex"])
def test_what_is_a_name_is_taken(name: str) -> None:
    assert find_blanks(f"{{{{{name}}}}}").names == (name,)


# -- properties ------------------------------------------------------------------------------------


@settings(deadline=None)
@given(content=SIGNS)
def test_any_text_is_read_or_refused_with_places_in_it(content: str) -> None:
    try:
        blanks = find_blanks(content)
    except ContentSyntaxError as error:
        assert error.faults
        assert all(0 <= one.position < len(content) for one in error.faults)
        assert [one.position for one in error.faults] == sorted(one.position for one in error.faults)
    else:
        assert len(blanks.fill({})) <= len(content)
        assert len(set(blanks.names)) == len(blanks.names)


@settings(deadline=None)
@given(content=SIGNS)
def test_taking_a_text_apart_loses_nothing_but_escapes(content: str) -> None:
    parts, faults = split(content, fenced(content))
    again = "".join(content[part.start : part.end] if isinstance(part, Mark) else part for part in parts)
    if "\\" not in content:
        assert again == content or faults
    assert again.replace("\\", "") == content.replace("\\", "") or faults
    for part in parts:
        if isinstance(part, Mark):
            assert content[part.start : part.end] == f"{{{{{part.inner}}}}}"
            assert not any(first <= part.start < past for first, past in fenced(content))


@settings(deadline=None)
@given(pieces=st.lists(st.one_of(PLAIN, FENCED, NAMES.map(lambda name: f"{{{{{name}}}}}")), max_size=12))
def test_values_that_are_their_own_placeholders_give_the_text_again(pieces: list[str]) -> None:
    content = "".join(pieces)
    blanks = find_blanks(content)
    assert blanks.fill({name: f"{{{{{name}}}}}" for name in blanks.names}) == content


@settings(deadline=None)
@given(pieces=st.lists(st.one_of(PLAIN.map(lambda text: (text, "")), st.tuples(st.just(""), NAMES))), value=SIGNS)
def test_what_is_filled_in_is_never_read_again(pieces: list[tuple[str, str]], value: str) -> None:
    content = "".join(text or f"{{{{{name}}}}}" if name else text for text, name in pieces)
    names = {name for _, name in pieces if name}
    evil = {
        name: f"{value}{{{{{other}}}}}" for name, other in zip(sorted(names), sorted(names, reverse=True), strict=True)
    }
    assert find_blanks(content).fill(evil) == "".join(evil[name] if name else text for text, name in pieces)


# -- bounds ----------------------------------------------------------------------------------------


def test_what_grows_beyond_its_bounds_is_refused_before_it_is_there() -> None:
    assert len(filled("{{a}}" * 2, a="x" * (FILLED_MOST // 2))) == FILLED_MOST
    with pytest.raises(LimitExceeded) as caught:
        filled("{{a}}{{a}}.", a="x" * (FILLED_MOST // 2))
    assert caught.value.field == "variables"
    # Forty thousand million characters: no machine that runs this could put them together.
    with pytest.raises(LimitExceeded):
        filled("{{a}}" * 40_000, a="x" * FILLED_MOST)


@each(
    "piece",
    [
        "{",
        "}",
        "{{",
        "}}",
        "{{a",
        "{{a}}",
        "{{1}}",
        "\\",
        "\\{{",
        "\\\\{{",
        "`",
        "```\n",
        "~~~\n```\n",
        "`x",
        "{\n",
        "a}}",
        "{{}",
    ],
)
def test_long_repetitions_are_answered(piece: str) -> None:
    content = piece * (200_000 // len(piece))
    try:
        assert len(find_blanks(content).fill({"a": ""})) <= len(content)
    except CortexError as error:
        assert isinstance(error, ContentSyntaxError)
        assert 1 <= len(error.faults) <= 20
        assert len(str(error)) < 1_000
