"""One text of several: whatever the notes tell is in it, whoever checks; the same in every order; in linear time."""

from __future__ import annotations

import random
import re
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.memory.consolidation.merging import Piece, added_numbers, digest, facts, lost_facts, merge

from forking import python_command

DAY = datetime(2026, 3, 1, tzinfo=UTC)


def pieces(*texts: str) -> list[Piece]:
    return [Piece(text, DAY + timedelta(days=n)) for n, text in enumerate(texts)]


# -- a checker of its own, which shares no line with what it checks ---------------------------------

LIST_MARK = re.compile(r"(?m)^\s*(?:[-*+•]|\d{1,3}[.)])\s")
NUMBERED = re.compile(r"\S*\d\S*")
AROUND = ".,;:!?()[]`\"'"
SNAKE_OR_CAMEL = re.compile(r"\b[A-Za-z]+(?:_[A-Za-z]+)+\b|\b[a-z]+[A-Z][A-Za-z]+\b|\b[A-Z]{2,}\b")
ADDRESS = re.compile(r"https?://[\w./-]*\w")
PATH = re.compile(r"(?<!\S)(?:[\w-]+/)+[\w-]+\.\w+")
QUOTATION = re.compile(r'"[^"\n]+"')
DENIAL = re.compile(r"\b(?:not|never|no|cannot)\b|n't\b", re.IGNORECASE)


def flat(text: str) -> str:
    return " ".join(text.split())


def stands(fact: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(fact)}(?!\w)", text) is not None


def numbered(text: str) -> set[str]:
    return {found.strip(AROUND) for found in NUMBERED.findall(text)}


def words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def missing(note: str, result: str) -> list[str]:
    """What a reader of the note would look for in the result in vain."""
    body, whole = LIST_MARK.sub("", note), flat(result)
    wanted = [found for kind in (SNAKE_OR_CAMEL, ADDRESS, PATH, QUOTATION) for found in kind.findall(body)]
    lost = [fact for fact in wanted if flat(fact) not in whole or (fact[-1].isalnum() and not stands(fact, whole))]
    lost += numbered(body) - numbered(result)
    denials = [part for line in body.splitlines() for part in re.split(r"(?<=[.!?])[\"')]*\s+(?=[A-Z])", line)]
    lost += [part for part in denials if DENIAL.search(part) and words(part) not in words(result)]
    return lost


SUBJECTS = ("The gateway", "Maria Lopez", "orders_service", "We", "The job on db-7", "OAuth", "Every retry", "Berlin")
VERBS = ("uses", "must not use", "never writes to", "reads", "doesn't call", "waits 30 s for", "keeps", "cannot reach")
OBJECTS = (
    "port 5432",
    "version 3.5",
    "version 13.5",
    "https://example.org/a/b-c",
    "src/app/main.py",
    "`max_retries = 3`",
    "maxRetries",
    '"the answer is no"',
    "3 workers",
    "30 workers",
    "the cache of Anna Schmidt",
    "2026-01-02T10:00",
    "--dry-run",
    "1,000 rows",
)
ENDINGS = (".", "!", ". e.g. at night.", "", ' ("as agreed.") Then it ends.', "?")
SENTENCE = st.builds(
    lambda *parts: "".join(parts),
    st.sampled_from(SUBJECTS),
    st.just(" "),
    st.sampled_from(VERBS),
    st.just(" "),
    st.sampled_from(OBJECTS),
    st.sampled_from(ENDINGS),
)
CODE = st.sampled_from(
    ["```python\nretry(limit=4)\n    return total_7\n```", "~~~\nSELECT 42 FROM t;\n~~~", "```sh\nmake never_closed_9"]
)
LINE = st.builds(
    lambda mark, parts: mark + " ".join(parts),
    st.sampled_from(["", "- ", "1. ", "12) ", "  * ", "> "]),
    st.lists(SENTENCE, min_size=1, max_size=3),
)
NOTE = st.builds(
    lambda parts, end: end.join(parts),
    st.lists(LINE | CODE, min_size=1, max_size=4),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
)


@pytest.mark.parametrize("join", [merge, digest])
@given(st.lists(NOTE, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_no_fact_of_any_note_is_lost_and_order_does_not_matter(join, texts: list[str], chance: random.Random) -> None:
    notes = pieces(*texts)
    result = join(notes)
    assert {text: missing(text, result) for text in texts if missing(text, result)} == {}
    assert lost_facts(texts, result) == frozenset()
    chance.shuffle(notes)
    assert join(notes) == result


@pytest.mark.parametrize("join", [merge, digest])
@given(st.lists(st.text(max_size=60), min_size=1, max_size=4))
def test_any_unicode_is_merged_and_nothing_is_lost(join, texts: list[str]) -> None:
    notes = pieces(*texts)
    result = join(notes)
    assert lost_facts(texts, result) == frozenset()
    assert join(notes[::-1]) == result


def test_a_number_inside_a_longer_one_is_not_taken_for_it() -> None:
    texts = ("The pool has 30 connections, port 15432 and version 13.5.", "Retries: 3, port 5432, version 3.5.")
    for join in (merge, digest):
        assert all(missing(text, join(pieces(*texts))) == [] for text in texts)
    assert lost_facts([texts[1]], texts[0]) >= {"3", "5432", "3.5"}


def test_the_fullest_text_is_kept_to_the_letter_and_the_others_add_only_what_is_new() -> None:
    full = "We use PostgreSQL 15 for the orders service,\r\n\r\n  on host db-7 with pool_size 20.  "
    assert merge(pieces("The orders service is on PostgreSQL 15.", full, "pool_size is 20")) == full
    assert merge(pieces(full, "Backups run at 02:00. The orders service is on PostgreSQL 15.")).split("\n")[-1] == (
        "Backups run at 02:00."
    )
    assert merge([]) == ""


def test_of_texts_that_are_equally_full_the_newest_is_kept() -> None:
    assert merge(pieces("Deploys take 5 minutes.", "A deploy takes 5 minutes.")) == "A deploy takes 5 minutes."


def test_variants_of_case_and_punctuation_do_not_pile_up() -> None:
    assert merge(pieces("never log request bodies", "Never log request bodies!")) == "Never log request bodies!"


def test_a_name_that_opens_a_sentence_is_kept() -> None:
    result = merge(pieces("Maria decided to drop the cache.", "It was decided to drop the cache 1 day later."))
    assert "Maria" in result
    assert "Maria" in lost_facts(["Maria decided to drop the cache."], "It was decided to drop the cache.")


def test_who_does_what_to_whom_is_kept_in_a_digest() -> None:
    text = digest(pieces("Anna reports to Bob.", "Bob reports to Anna.", "Anna reports to Bob."))
    assert text.splitlines()[1:] == ["- (2026-03-01) Anna reports to Bob.", "- (2026-03-02) Bob reports to Anna."]


def test_a_digest_is_dated_oldest_first_and_names_its_topics() -> None:
    notes = pieces("- one thing\n- another", "a third")
    expected = (
        "Summary of 2 notes on cache, ttl:\n- (2026-03-01) one thing\n- (2026-03-01) another\n- (2026-03-02) a third"
    )
    assert digest(notes[::-1], ["cache", "ttl"]) == expected


@pytest.mark.parametrize("join", [merge, digest])
def test_quotations_and_abbreviations_are_not_cut(join) -> None:
    said = 'The message is "Stop. Call Anna." and nothing else.'
    other = "It is 1 of 2 messages, i.e. do not retry it, e.g. at night or on Sunday."
    result = join(pieces(said, other, "Filler with 7 numbers 8 9 10 11 12 13 14."))
    assert '"Stop. Call Anna."' in result
    assert "do not retry it, e.g. at night or on Sunday" in result


@pytest.mark.parametrize("join", [merge, digest])
def test_code_that_is_never_closed_does_not_swallow_what_follows(join) -> None:
    opened = "Run 1 2 3 4 5 6:\n```sh\nmake all_of_it"
    lines = join(pieces(opened, "Then call port 8080.")).splitlines()
    fences = [n for n, line in enumerate(lines) if line.strip().startswith("```")]
    after = next(n for n, line in enumerate(lines) if "8080" in line)
    assert len([n for n in fences if n < after]) % 2 == 0


def test_lines_of_code_are_kept_also_without_a_fence() -> None:
    notes = pieces("Totals are summed, see 1 2 3 4.", "total = price + tax\nrefund(order)\nprice => tax")
    assert all(line in merge(notes) for line in ("total = price + tax", "refund(order)", "price => tax"))


def test_what_a_model_leaves_out_or_makes_up_is_seen() -> None:
    notes = ["Use port 5432.\n1. Never restart db-7.", "See https://example.org/x and `a b`."]
    good = "1. Use port 5432.\n2. never restart db-7;\n3. See https://example.org/x and “a b”."
    assert lost_facts(notes, good) == frozenset()
    assert added_numbers(notes, good) == frozenset()
    assert lost_facts(notes, good.replace("never ", "")) == {"Never restart db-7"}
    assert lost_facts(notes, good.replace("5432", "54321")) == {"5432"}
    assert added_numbers(notes, good + " It has 543 rows and 2 db-7.") == {"543", "2"}


def test_facts_are_what_is_listed_in_the_documents() -> None:
    text = 'We met Ada Lovelace; see docs/a.md, `x y`, "no way", my_id, API, 3.5 % and https://e.org/a. Don\'t wait.'
    found = facts(text)
    expected = {
        "Ada",
        "Lovelace",
        "docs/a.md",
        "`x y`",
        '"no way"',
        "my_id",
        "API",
        "3.5",
        "https://e.org/a",
        "Don't wait",
    }
    assert expected <= found
    assert not {"We", "met", "see", "and"} & found


HOSTILE = ["a", "+", "a++", "a/", "-", '"', "x'", "`."]


@pytest.mark.slow
def test_long_texts_of_anything_take_linear_time() -> None:
    # In a process of its own, under a limit that only something quadratic reaches: for this it would take ten minutes.
    code = (
        "from datetime import datetime, UTC\n"
        "from cortex_py.core.memory.consolidation.merging import Piece, merge\n"
        "now = datetime.now(UTC)\n"
        f"for unit in {HOSTILE!r}:\n"
        "    long = unit * (60_000 // len(unit))\n"
        "    assert merge([Piece(long + ' 1', now), Piece(long + ' 2', now)]).startswith(long)\n"
        "many = ''.join(f'Note {n} is not {n * 7}.\\n' for n in range(1_000))\n"
        "result = merge([Piece(many, now), Piece(many.replace('Note', 'Item'), now)])\n"
        "assert 'Item 999 is not 6993.' in result and 'Note 999 is not 6993.' in result\n"
    )
    run = subprocess.run([*python_command(), "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stderr) == (0, "")


@each(
    ("texts", "merged"),
    [
        (
            ("We use PostgreSQL 15 for the orders service.", "The orders service runs on PostgreSQL 15 since March."),
            "The orders service runs on PostgreSQL 15 since March.",
        ),
        (("Never deploy on Fridays.", "Do not deploy on a Friday."), "Do not deploy on a Friday."),
        (("Physicians sign the form.", "Doctors sign the form."), "Doctors sign the form."),
        (("so basically we retry uploads 3 times", "We retry uploads 3 times."), "We retry uploads 3 times."),
        (
            ("Dana reviews billing on Mondays at 9:00.", "Billing is reviewed by Dana on Mondays, since Bob left."),
            "Billing is reviewed by Dana on Mondays, since Bob left (at 9:00).",
        ),
    ],
)
def test_two_paraphrases_become_one_line_with_the_details_of_both(texts: tuple[str, str], merged: str) -> None:
    assert merge(pieces(*texts)) == merged
    assert lost_facts(texts, merged) == frozenset()


def test_a_summary_lists_a_statement_once_in_whatever_words() -> None:
    listed = digest(
        pieces("Customers buy the licence online.", "Customers purchase the licence online.", "Ask Ann first.")
    )
    assert listed.count("licence") == 1
    assert "Ann" in listed
