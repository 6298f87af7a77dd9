"""A note in better form: the same words, in their order, and nothing done twice."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.memory.labels.structuring import structure
from timing import quick

_ADDED = {"Decision", "Reason", "Alternatives", "Consequence", "console", "json", "sql", "yaml", "python", "javascript"}


def _words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text))


def _is_kept(before: str, after: str) -> bool:
    """Whether all that is visible in one text stands in the other in the same order."""
    rest = iter(after)
    return all(character in rest for character in before if not character.isspace())


def _check(text: str) -> str:
    result = structure(text)
    assert structure(result) == result
    assert not _words(text) - _words(result)
    assert set(_words(result) - _words(text)) <= _ADDED
    assert _is_kept(text, result)
    return result


@each(
    ("note", "expected"),
    [
        (
            "We picked Meilisearch over Solr because the team of two cannot run a cluster.",
            "**Decision:** We picked Meilisearch\n\n**Alternatives:** over Solr\n\n"
            "**Reason:** because the team of two cannot run a cluster.",
        ),
        (
            "Decided to keep cron instead of a workflow engine. This means that retries are our own business.",
            "**Decision:** Decided to keep cron\n\n**Alternatives:** instead of a workflow engine.\n\n"
            "**Consequence:** This means that retries are our own business.",
        ),
        (
            "Because the licence changed, we moved to OpenTofu. All modules must now pin a provider.",
            "**Reason:** Because the licence changed,\n\n**Decision:** we moved to OpenTofu.\n\n"
            "**Consequence:** All modules must now pin a provider.",
        ),
        (
            "Decision: ids are ULIDs. They sort by time. We rejected UUIDv4, since it scatters the index.",
            "**Decision:** ids are ULIDs.\n\nThey sort by time.\n\n"
            "**Alternatives:** We rejected UUIDv4, since it scatters the index.",
        ),
        (
            "Decision: one repository. Why: releases go together. Therefore tags are shared. As a result CI is slower.",
            "**Decision:** one repository.\n\n**Why:** releases go together.\n\n"
            "**Consequence:** Therefore tags are shared. As a result CI is slower.",
        ),
        (
            "We use a lock file, so that two jobs never run at once.",
            "**Decision:** We use a lock file,\n\n**Consequence:** so that two jobs never run at once.",
        ),
    ],
)
def test_the_parts_of_a_decision_get_labels(note: str, expected: str) -> None:
    assert _check(note) == expected


@each(
    "note",
    [
        "We use Postgres.",
        "The job failed because the disk was full.",
        "Should we use gRPC instead of REST?",
        "We have not decided whether to use gRPC rather than REST because nobody measured it.",
        "We use it since 2019. It works.",
        "We moved the (so called because of its size) monster table.",
        "We chose to send it over TLS.",
        "It was fast - but not stable - and cheap.",
        "We shipped phase 1. 2. is for the next week.",
        "We go with gRPC instead of REST, perhaps.",
        "There are 2) reasons, I think.",
        "See section 1) of the manual.",
        "At first, it broke. In the second, it ran.",
        "select the right row from the list",
        "It costs $ 5 a month.",
        "Dear all,\n    thank you for the review\n",
        "",
        " \n\t ",
        "🎉",
        "我们决定使用数据库，因为它很快。",
        "one\rtwo 1) a 2) b",
    ],
)
def test_what_has_no_clear_form_stays_as_it_is(note: str) -> None:
    assert structure(note) == note


@each(
    "note",
    [
        "# Title\n\nWe use X because of Y. Steps: 1) a 2) b",
        "We use X because of Y.\n- one\n- two",
        "1. one\n2. two because",
        "> quoted: 1) a 2) b",
        "We use X because of Y.\n```\n$ make\n```\n$ make",
        "~~~\n1) a 2) b\n~~~",
        "**Decision:** we use X because of Y",
        "Host: we use a because of b\nPort: 1) a 2) b",
        "Host: 1) a 2) b\nPort: one\nPath: two",
        "user:\nDo 1) a 2) b\nassistant:\nok\nuser:\nfine",
        "| a | b |\n|---|---|\n| 1) a 2) b | c |",
        "user: we use X because of Y\nassistant: ok\nuser: 1) a 2) b",
    ],
)
def test_structured_text_is_left_alone(note: str) -> None:
    assert structure(note) == note


@each(
    ("note", "expected"),
    [
        (
            "To restore: 1) stop the writer 2) copy the snapshot 3) start it. Tell support afterwards.",
            "To restore:\n\n1) stop the writer\n2) copy the snapshot\n3) start it.\n\nTell support afterwards.",
        ),
        ("1) stop 2) copy 3) start", "1) stop\n2) copy\n3) start"),
        ("Order matters: (1) schema, (2) data.", "Order matters:\n\n- (1) schema,\n- (2) data."),
        ("Plan: 1. measure 2. cut 3. glue", "Plan:\n\n1. measure\n2. cut\n3. glue"),
        ("Left: - write docs - tag it", "Left:\n\n- write docs\n- tag it"),
        ("- pull - build - push", "- pull\n- build\n- push"),
        (
            "First, drain the node; second, patch it; and third, uncordon it.",
            "- First, drain the node;\n- second, patch it;\n- and third, uncordon it.",
        ),
        (
            "Two rules. First, never force push. It hurts. Second, squash. Always.",
            "Two rules.\n\n- First, never force push. It hurts.\n- Second, squash. Always.",
        ),
        ("Intro.\n\nDo 1) a 2) b\n\nEnd.", "Intro.\n\nDo\n\n1) a\n2) b\n\nEnd."),
    ],
)
def test_an_enumeration_becomes_a_list(note: str, expected: str) -> None:
    assert _check(note) == expected


_TRACE = "Traceback (most recent call last):\n  File \"a.py\", line 3, in run\n    x()\nKeyError: 'id'"


@each(
    ("language", "code"),
    [
        ("console", "$ make build\n$ ./deploy.sh --all"),
        ("", _TRACE),
        ("", "java.lang.IllegalStateException: closed\n\tat a.b.C.run(C.java:12)\n\tat a.b.D.main(D.java:3)"),
        ("json", '{\n  "retries": 3,\n  "hosts": ["a"]\n}'),
        ("json", '{"retries": 3}'),
        ("sql", "SELECT id\nFROM orders\nWHERE paid"),
        ("sql", "DELETE FROM carts WHERE age > 30;"),
        (
            "yaml",
            "services:\n  web:\n    image: nginx\n    ports:\n      - 80",
        ),
        ("python", "def area(r):\n    return 3 * r"),
        ("javascript", "const a = 1;\nconst b = (x) => x + a;"),
    ],
)
def test_code_lines_are_fenced(language: str, code: str) -> None:
    assert (
        _check(f"It is done so\n{code}\nand no other way")
        == f"It is done so\n```{language}\n{code}\n```\nand no other way"
    )


def test_an_indented_block_is_fenced_with_its_indentation() -> None:
    note = "Call it:\n\n    import csv\n    rows = list(csv.reader(f))\n\nThen sort."
    assert _check(note) == "Call it:\n\n```python\n    import csv\n    rows = list(csv.reader(f))\n```\n\nThen sort."


def test_a_list_in_code_is_no_list_of_the_note() -> None:
    note = "Compose it\nweb:\n  image: nginx\n  ports:\n  - 80\nand go"
    assert "```yaml\nweb:\n  image: nginx\n  ports:\n  - 80\n```" in _check(note)


def test_a_long_note_with_a_short_first_sentence_gets_a_title() -> None:
    rest = "Builds are cut on Monday. QA has two days. Fixes go to the branch. Stores get it on Thursday."
    assert _check(f"Release train for mobile. {rest}") == f"**Release train for mobile.**\n\n{rest}"
    for first in (
        "It broke again.",
        "Why is it so?",
        "Release train for mobile and for the desktop clients of all our partners.",
    ):
        assert structure(f"{first} {rest}") == f"{first} {rest}"
    assert (
        structure("Release train. Builds are cut. QA has two days.")
        == "Release train. Builds are cut. QA has two days."
    )


def test_line_ends_and_edges_are_kept() -> None:
    assert _check("Do: 1) a 2) b\r\n\r\nEnd.\r\n") == "Do:\r\n\r\n1) a\r\n2) b\r\n\r\nEnd.\r\n"
    assert _check("\tWe use X.  \n") == "\tWe use X.  \n"
    assert _check("We use tabs because\tof Ann. \n").endswith("\tof Ann. \n")


_PIECES = (
    "We decided to use Redis|because it is fast|instead of disk|so that|. |, |; |\n|\n\n|\r\n|    |\t|1) |2) |3. "
    '|(1) |(2) |- |First, |second, |Decision: |Reason: |`code` |"q |( |) |$ make |{"a": 1}|{|}|def f():|key: v'
    "|  nested: 1|top:|SELECT a;|FROM b|*|**|_|#|é|🎉|数据|Traceback (most recent call last):|  at x(y)"
    "|Error: z|e.g. |therefore |A short title. |word "
)
_NOTES = st.one_of(st.text(max_size=150), st.lists(st.sampled_from(_PIECES.split("|")), max_size=25).map("".join))


@given(_NOTES)
def test_no_word_is_lost_and_nothing_is_done_twice(text: str) -> None:
    _check(text)


@pytest.mark.slow
@each(
    "text",
    [
        "We use it because of that. " * 3_700,
        "We use it" + " " * 90_000 + "because",
        "1) a " * 20_000,
        "(" * 99_000,
        "{\n" * 49_000,
        "{\na\n" * 24_000,
        "key: v\n" * 14_000,
        "    (x\n" * 14_000,
        "\n" * 99_000,
        " \n" * 49_000,
        "let a " * 16_000,
        "SELECT a\n" * 11_000,
        "- a " * 24_000,
        "at a" * 24_000,
        "A word. " * 130_000,
    ],
)
def test_long_text_takes_no_time(text: str) -> None:
    quick(lambda: structure(text), 5)
