"""Where long content is cut, and which passage a caller is shown."""

import random
import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cases import each
from cortex_py.core.memory.text import Chunk, chunk, snippet

WORD = re.compile(r"\w+|[^\w\s]")


def count_words(text: str) -> int:
    return len(text.split())


def count_model_tokens(text: str) -> int:
    """About what a word-piece tokenizer counts, its opening and closing tokens included."""
    return 2 + sum(1 + len(word) // 6 for word in WORD.findall(text))


def count_more_together(text: str) -> int:
    """A counter whose wholes exceed the sums of their parts."""
    return len(text) + len(text) ** 2 // 50


COUNTERS: list[Callable[[str], int]] = [count_words, count_model_tokens, len, count_more_together]


def passages(content: str, *, window: int, target: int, overlap: int = 0) -> list[str]:
    spans = chunk(content, count_tokens=count_words, window=window, target=target, overlap=overlap)
    return [content[span.start : span.end] for span in spans]


def sentence(n: int, words: int) -> str:
    return " ".join([f"Sentence{n}", *["of"] * (words - 2), "words."])


@each("content", ["", "   \n\t ", "\n", "short text", "  short text  ", "x" * 500])
def test_content_that_fits_is_one_chunk_over_everything(content: str) -> None:
    assert chunk(content, count_tokens=count_words) == [Chunk(0, len(content))]


def test_exactly_the_window_is_one_chunk() -> None:
    assert passages("a " * 10, window=10, target=5) == ["a " * 10]


def test_cuts_fall_between_sentences() -> None:
    content = f"{sentence(1, 8)} {sentence(2, 8)} {sentence(3, 8)} {sentence(4, 8)}"
    assert passages(content, window=20, target=16) == [
        f"{sentence(1, 8)} {sentence(2, 8)}",
        f"{sentence(3, 8)} {sentence(4, 8)}",
    ]


def test_a_paragraph_end_is_preferred_to_a_sentence_end() -> None:
    content = f"{sentence(1, 10)}\n\n{sentence(2, 8)} {sentence(3, 8)} {sentence(4, 8)}"
    assert passages(content, window=24, target=20)[0] == sentence(1, 10)


def test_a_heading_starts_its_section_and_repeats_nothing_before_it() -> None:
    content = f"# One\n\n{sentence(1, 8)} {sentence(2, 8)}\n\n# Two\n\n{sentence(3, 8)} {sentence(4, 8)}\n"
    assert passages(content, window=25, target=20, overlap=8) == [
        f"# One\n\n{sentence(1, 8)} {sentence(2, 8)}",
        f"# Two\n\n{sentence(3, 8)} {sentence(4, 8)}",
    ]


def test_a_heading_is_never_left_alone_at_the_end_of_a_chunk() -> None:
    content = f"{sentence(1, 14)}\n\n## Next\n\n{sentence(2, 14)}\n"
    assert passages(content, window=20, target=18) == [sentence(1, 14), f"## Next\n\n{sentence(2, 14)}"]


def test_a_code_block_that_fits_stays_whole() -> None:
    code = "```python\ndef f():\n\n    # not a heading. Not a sentence.\n    return 1\n```"
    content = f"{sentence(1, 10)} {sentence(2, 10)}\n\n{code}\n\n{sentence(3, 10)}"
    found = passages(content, window=24, target=20)
    assert [code in passage for passage in found].count(True) == 1


def test_a_long_code_block_is_cut_at_lines() -> None:
    lines = [f"value_{n} = call({n}, other)" for n in range(30)]
    content = "~~~\n" + "\n".join(lines) + "\n~~~\n"
    for passage in passages(content, window=24, target=20):
        assert set(passage.splitlines()) <= {*lines, "~~~"}


def test_an_open_code_block_runs_to_the_end() -> None:
    content = "Intro.\n```\n# a\n# b\n" + "x y z\n" * 20
    assert all("\n" in passage or passage == "Intro." for passage in passages(content, window=12, target=9))


def test_list_items_are_kept_whole() -> None:
    items = [f"- item {n} has several words\n  and a second line" for n in range(8)]
    for passage in passages("\n".join(items), window=25, target=20):
        assert passage.startswith("- item")
        assert passage.endswith("second line")


def test_abbreviations_do_not_end_a_sentence() -> None:
    content = "The quick report on the matter was written by Dr. Smith of the bureau. It was then read by Mr. Jones."
    assert passages(content, window=14, target=14)[0].endswith("bureau.")


@each(
    ("sentence_text", "end"),
    [
        ("这是一个关于数据库设计的相当长的中文句子，它说明了我们为什么选择这种存储方式而不是另一种。", "。"),
        ("これはデータベースの設計についてのかなり長い日本語の文であり、選択の理由を詳しく説明しています。", "。"),
        ("यह डेटाबेस के डिज़ाइन के बारे में एक काफ़ी लंबा हिन्दी वाक्य है।", "।"),
        ("لماذا اخترنا قاعدة البيانات هذه لتخزين الجلسات بدلا من غيرها؟ ", "؟"),
    ],
)
def test_sentences_end_at_the_full_stops_of_their_script(sentence_text: str, end: str) -> None:
    content = sentence_text * 12
    spans = chunk(content, count_tokens=len, window=200, target=150, overlap=20)
    assert len(spans) > 2
    assert all(content[span.end - 1] == end for span in spans)


def test_a_text_without_sentences_is_cut_between_words() -> None:
    words = [f"word{n}" for n in range(100)]
    for passage in passages(" ".join(words), window=12, target=10, overlap=3):
        assert set(passage.split()) <= set(words)


def test_an_unbroken_string_is_cut_anyway() -> None:
    content = "x" * 1000
    spans = chunk(content, count_tokens=len, window=100, target=80, overlap=0)
    assert spans[0].start == 0 and spans[-1].end == 1000
    assert all(one.end == other.start for one, other in pairwise(spans))


def test_hard_cuts_keep_marks_and_emoji_sequences_together() -> None:
    family, accented = "👨\u200d👩\u200d👧", "e\u0301"
    content = family * 60 + accented * 150
    for span in chunk(content, count_tokens=len, window=120, target=90, overlap=0):
        passage = content[span.start : span.end]
        assert passage.replace(family, "").replace(accented, "") == ""


def test_consecutive_chunks_share_whole_sentences() -> None:
    sentences = [sentence(n, 10) for n in range(12)]
    found = passages(" ".join(sentences), window=50, target=40, overlap=10)
    assert found[0] == " ".join(sentences[:4])
    assert found[1] == " ".join(sentences[3:7])


def test_the_counter_s_fixed_tokens_do_not_shorten_chunks() -> None:
    content = "Yes it is so now, said the man who came. " * 100
    spans = chunk(content, count_tokens=lambda text: 2 + count_words(text), overlap=0)
    assert {count_words(content[span.start : span.end]) for span in spans[:-1]} == {190}


def test_sizes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="window 0, target 20, overlap 3: want at least 1, 1 and 0 tokens"):
        chunk("text", count_tokens=len, window=0, target=20, overlap=3)


def test_a_small_window_needs_no_other_setting() -> None:
    content = " ".join(f"word{n}" for n in range(200))
    spans = chunk(content, count_tokens=count_words, window=20)
    assert max(count_words(content[span.start : span.end]) for span in spans) == 20


plain = ["word", "Another", "sentence.", ". ", "! ", " ", "\n", "\n\n", "\r\n", "\t", "x" * 40, "\ud800", "\0"]
marks = ["# Head\n", "```\n", "~~~\n", "- item ", "1. "]
scripts = ["数据库", "。", "ครับ", "👨\u200d👩\u200d👧", "é", "e\u0301", "\u200d"]
fragments = st.sampled_from([*plain, *marks, *scripts])
contents = st.one_of(st.lists(fragments, max_size=60).map("".join), st.text(max_size=120))


@settings(deadline=None)
@given(contents, st.integers(0, 3), st.integers(3, 60), st.integers(0, 20), st.integers(0, 12))
@example("a" * 99, 3, 3, 0, 0)
@example("\u0301" * 50, 2, 3, 0, 2)
def test_chunks_cover_the_content_in_order_within_the_window(
    content: str, counter: int, target: int, slack: int, overlap: int
) -> None:
    count, window = COUNTERS[counter], target + slack
    spans = chunk(content, count_tokens=count, window=window, target=target, overlap=overlap)
    assert spans
    assert spans == chunk(content, count_tokens=count, window=window, target=target, overlap=overlap)
    assert all(0 <= span.start <= span.end <= len(content) for span in spans)
    assert all(one.start < other.start and one.end < other.end for one, other in pairwise(spans))
    edges = [Chunk(0, 0), *spans, Chunk(len(content), len(content))]
    assert all(not content[one.end : other.start].strip() for one, other in pairwise(edges))
    for span in spans:
        assert count(content[span.start : span.end]) <= window or span.end - span.start == 1


@each("unit", ["x", ".", "a\n\n", "A. ", "ab cd\n", "数据库。", "- a\n", ".'", " ", "# a\n", "```\n"])
def test_the_counter_reads_each_character_a_few_times_however_the_text_is_made(unit: str) -> None:
    content = unit * (60_000 // len(unit)) + "end"
    read = 0

    def count(text: str) -> int:
        nonlocal read
        read += len(text)
        return count_model_tokens(text)

    chunk(content, count_tokens=count)
    assert read < 5 * len(content)


def test_ordinary_prose_fills_its_chunks() -> None:
    rng = random.Random(3)
    prose = " ".join(sentence(n, rng.randint(5, 25)) for n in range(400))
    spans = chunk(prose, count_tokens=count_words)
    sizes = [count_words(prose[span.start : span.end]) for span in spans]
    shared = [count_words(prose[other.start : one.end]) for one, other in pairwise(spans)]
    assert all(150 <= size <= 256 for size in sizes)
    assert all(0 < size <= 48 for size in shared)


def whole(text: str) -> Chunk:
    return Chunk(0, len(text))


def test_a_short_passage_is_shown_whole_on_one_line() -> None:
    text = "  One\n\ttwo   three.\n"
    assert snippet(text, whole(text), None) == "One two three."


def test_marks_show_that_the_content_goes_on() -> None:
    text = "Before. Here it is. After."
    assert snippet(text, Chunk(8, 19), None) == "…Here it is.…"
    assert snippet(text, Chunk(0, 19), None) == "Before. Here it is.…"
    assert snippet(text, Chunk(8, 26), None) == "…Here it is. After."


def test_without_words_the_beginning_is_shown_and_cut_between_words() -> None:
    text = "alpha beta gamma delta " * 20
    assert snippet(text, whole(text), None, length=30) == "alpha beta gamma delta alpha…"
    assert snippet(text, whole(text), ["missing"], length=30) == "alpha beta gamma delta alpha…"


def test_the_densest_region_is_shown() -> None:
    filler = "nothing to see here at all " * 10
    text = f"{filler}one database {filler}the databases use PostgreSQL storage {filler}"
    shown = snippet(text, whole(text), ["database", "postgresql"], length=60)
    assert shown == "…here at all the databases use PostgreSQL storage nothing…"


@each(
    ("needle", "words"),
    [
        ("getUserById", ["user"]),
        ("Straße", ["strasse"]),
        ("数据库", ["数据", "据库"]),
        ("猫", ["猫"]),
        ("ครับ", ["ครั", "รับ"]),
        ("Ёлка", ["елка"]),
        ("👍", ["👍"]),
        ("running", ["run"]),
    ],
)
def test_matches_are_found_in_every_script(needle: str, words: list[str]) -> None:
    text = "lorem ipsum dolor " * 30 + needle + " sit amet" * 30
    shown = snippet(text, whole(text), words, length=60)
    assert needle in shown
    assert shown.startswith("…") and shown.endswith("…")


def test_unspaced_text_is_cut_to_length_around_the_match() -> None:
    text = "天气很好" * 60 + "数据库" + "我们出去" * 60
    shown = snippet(text, whole(text), ["数据", "据库"], length=40)
    assert len(shown) == 40
    assert 15 < shown.index("数据库") < 22


@given(contents, st.lists(st.sampled_from(["word", "item", "数据", "x"]), max_size=3), st.integers(8, 60))
def test_a_snippet_is_short_and_holds_only_the_content(content: str, words: list[str], length: int) -> None:
    shown = snippet(content, whole(content), words, length=length)
    assert len(shown) <= length
    assert shown.strip("…") in " ".join(content.split()).replace("…", "") or "…" in content
    assert "  " not in shown and "\n" not in shown
