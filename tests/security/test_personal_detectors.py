"""Personal data is found by its form, its check digit or the word beside it, and ordinary text is left alone.

The numbers are samples that authorities publish or reserve; none belongs to a person.
"""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.security.personal import PERSONAL_KINDS, find_personal_data, redact_personal_data
from cortex_py.core.security.secrets.secrets import SensitiveSpan
from cortex_py.parts.graph.writer import sure_person_names
from timing import explodes

TEXTS_BY_USE = json.loads(Path(__file__).with_name("personal_data.json").read_text("utf-8"))
# Kinds, and texts with the finding in «».
FOUND: list[tuple[str, str]] = [(kind, marked) for kind, marked in TEXTS_BY_USE["found"]]
WRONG_CHECKS: list[str] = TEXTS_BY_USE["wrong_checks"]


@each(("kind", "marked"), FOUND, ids=lambda value: value if value in PERSONAL_KINDS else "")
def test_found_with_its_kind_and_place(kind: str, marked: str) -> None:
    start, end = marked.index("«"), marked.index("»") - 1
    text = marked.replace("«", "").replace("»", "")
    assert find_personal_data(text) == (SensitiveSpan(kind, start, end),)


def test_every_kind_has_an_example() -> None:
    assert {kind for kind, _ in FOUND} | {"person-name"} == set(PERSONAL_KINDS)


@each("text", WRONG_CHECKS)
def test_a_wrong_check_digit_is_no_number_of_a_person(text: str) -> None:
    assert find_personal_data(text) == ()


@each("text", TEXTS_BY_USE["ordinary"])
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert [text[finding.start : finding.end] for finding in find_personal_data(text)] == []


def test_redaction_puts_a_marker_in_place_of_each_finding() -> None:
    redaction = redact_personal_data("Ada (ada@analytical-engine.org, +44 20 7946 0958) from 81.2.69.142")
    assert redaction.text == "Ada ([REDACTED:email], [REDACTED:phone]) from [REDACTED:ip-address]"
    assert [finding.kind for finding in redaction.findings] == ["email", "phone", "ip-address"]


def test_names_come_from_the_caller_and_yield_to_surer_kinds() -> None:
    text = "Grace Hopper wrote to grace@navy-yard.org"
    names = redact_personal_data(text, lambda _: [(0, 12), (22, 27)])
    assert names.text == "[REDACTED:person-name] wrote to [REDACTED:email]"


def test_the_tagger_gives_the_names_it_is_sure_of() -> None:
    text = "Laura Carvalho fixed the parser in Rust, and PostgreSQL was upgraded by Nicholas."
    assert [text[start:end] for start, end in sure_person_names(text)] == ["Laura Carvalho", "Nicholas"]
    redacted = redact_personal_data(text, sure_person_names)
    assert redacted.text == (
        "[REDACTED:person-name] fixed the parser in Rust, and PostgreSQL was upgraded by [REDACTED:person-name]."
    )
    assert redact_personal_data(redacted.text, sure_person_names).text == redacted.text


def test_digits_of_other_scripts_break_nothing() -> None:
    other = str.maketrans("0123456789KS", "٠١٢٣٤٥٦٧٨٩Kſ")
    for _, marked in FOUND:
        find_personal_data(re.sub("[«»]", "", marked).translate(other))


PIECES = st.sampled_from([
    *(re.sub("[«»]", "", marked) for _, marked in FOUND), *WRONG_CHECKS, "[REDACTED:email]", "call me at ", "phone ",
    "card ", "ssn ", "version ", "0", "12 ", "-", "+", "\n", " ", "@", "::",
])  # fmt: skip
TEXTS = st.one_of(
    st.lists(PIECES, max_size=12).map("".join), st.text(max_size=200), st.text("0123456789 .-/()+@:x\n", max_size=120)
)


@given(TEXTS)
def test_any_text_gives_ordered_findings_and_settles(text: str) -> None:
    findings = find_personal_data(text)
    end = 0
    for finding in findings:
        assert end <= finding.start < finding.end <= len(text)
        assert finding.kind in PERSONAL_KINDS
        end = finding.end
    clean = redact_personal_data(text).text
    assert redact_personal_data(clean).text == clean


HOSTILE = [
    "1 ", "1.1.", "a@", "0-", "::", "1", "a.", "@", "a@a.", "+1 ", "(1)", "1:", "ab:", "00:11:", "12 Main ", "Street ",
    "call me at 555 1234 ", "card 4111 1111 1111 1111 ", "GB82 WEST 1234 ", "AB12", "Via Roma 1 ", "born on 1/1/2000 ",
    "phone 1234567 ", "ssn 123456789 ", "1/", "1st ", "apt 1 ", "psc 1 box 1 ", "[REDACTED:", "[REDACTED:email]1 ",
    "\0", "0494 92 82 32 / ", "12\n", "Hauptstraße 5\n A\n B\n", "Hauptstraße 5, A A A A, A A A A, ",
    "AB 12 34 56 C ",
]  # fmt: skip


@pytest.mark.slow
@each("piece", HOSTILE, ids=repr)
def test_a_hostile_text_takes_little_time(piece: str) -> None:
    assert not explodes(lambda size: find_personal_data((piece * (size // len(piece) + 1))[:size]), 40_000, 0.8)
