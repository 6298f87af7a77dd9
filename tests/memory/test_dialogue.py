"""Dialogues are cut where the speaker changes, and nothing else is."""

from hypothesis import given
from hypothesis import strategies as st

from cortex_py.core.memory.text import split_turns


def _parts(content: str) -> list[tuple[str, bool]]:
    return [(content[turn.start : turn.end], turn.by_assistant) for turn in split_turns(content)]


def test_turns_are_cut_at_the_labels() -> None:
    assert _parts("user: hello\nassistant: hi\nthere\nuser: bye") == [
        ("user: hello\n", False),
        ("assistant: hi\nthere\n", True),
        ("user: bye", False),
    ]


def test_people_have_turns_too_and_an_introduction_is_kept() -> None:
    assert _parts("On Monday\nAnn Lee: yes\nBob: no\nAnn Lee: well") == [
        ("On Monday\n", False),
        ("Ann Lee: yes\n", False),
        ("Bob: no\n", False),
        ("Ann Lee: well", False),
    ]


def test_a_question_and_its_answer_are_a_dialogue() -> None:
    assert [turn.by_assistant for turn in split_turns("Human: why?\nAssistant: because")] == [False, True]


def test_other_texts_are_one_turn() -> None:
    for content in (
        "",
        "plain words",
        "Note: remember this",
        "host: a\nport: 1\nuser: x\npath: y",
        "https://a.b\nhttps://c.d",
        "```\nfoo: 1\nbar: 2\nbaz: 3\n```",
    ):
        assert _parts(content) == [(content, False)]


@given(st.text(alphabet="ab:\n *user", max_size=80))
def test_turns_cover_the_content_in_order(content: str) -> None:
    assert "".join(text for text, _ in _parts(content)) == content
