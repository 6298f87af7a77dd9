"""The tokeniser gives the ids that the reference implementation gives, for any text."""

from __future__ import annotations

import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_folders import VOCABULARY
from tokenizers import BertWordPieceTokenizer, Tokenizer

from cortex_py.core.embedding import wordpiece
from cortex_py.core.embedding.wordpiece import WordPiece

UNLIMITED = 10**9

STRESS = [
    "",
    " \t\r\n\u3000\u2028",
    "Hello, World!",
    "naïve café Ångström Éire İstanbul STRAẞE ﬁ ǅ",
    "e\u0301 + \u0301e, a\u0302\u0323, \u1100\u1161\u11a8 각",
    "ΟΔΥΣΣΕΥΣ ς Σ",
    "我们选择了PostgreSQL作为数据库。データベース 데이터베이스",
    "\u2f00\u3007\u4e00\u9fff\ua000\uf900\ufaff\U00020000\U0002ceb0\U0002fa1d",
    "zero\u200bwidth\u200djoin soft\u00adhyphen \ufeffmark \u202eright",
    "a\x00b\x07c\x0bd\x0ce\x1cf\x1fg\x7fh\x85i\xa0j\ufffdk",
    "[S\x0bEP] [SEP] x[MASK]y [[CLS]] [sep] [ SEP ] [UNK][PAD]",
    "##ing #ing ## # unaffable xyzzyqq",
    "x" * 100,
    "x" * 101,
    "é" * 100 + " " + "é" * 101,
    "a$b+c<d=e>f^g`h|i~j",
    "\u166d \u1734 \U000111c9 \U0001171e \u08d4a \u2e43a \U0001e944a",
    "👩‍💻👨🏽‍💻 ❤️ 🇩🇪 1️⃣",
    "\ue000\uf8ff\U000f0000 private",
    "¿Qué? «oui» … — “x” 、。〈〉",
]


@pytest.fixture(scope="session")
def reference() -> Tokenizer:
    return Tokenizer.from_str(BertWordPieceTokenizer(str(VOCABULARY), lowercase=True).to_str())


@pytest.mark.parametrize("text", STRESS, ids=range(len(STRESS)))
def test_odd_texts(text: str, tokeniser: WordPiece, reference: Tokenizer) -> None:
    assert tokeniser.encode(text, UNLIMITED) == reference.encode(text).ids


def test_every_character_that_is_not_a_plain_letter(tokeniser: WordPiece, reference: Tokenizer) -> None:
    """Alone, inside a word and at its end; letters without case are covered by the random texts."""
    chars = [chr(point) for point in range(sys.maxunicode + 1) if not 0xD800 <= point < 0xE000]
    chars = [char for char in chars if unicodedata.category(char) not in ("Cn", "Co", "Lo")]
    texts = [f"a{char}b xX{char} {char}" for char in chars]
    expected = [encoding.ids for encoding in reference.encode_batch(texts)]
    wrong = [
        f"U+{ord(char):04X}"
        for char, text, ids in zip(chars, texts, expected, strict=True)
        if tokeniser.encode(text, UNLIMITED) != ids
    ]
    assert wrong == []


PIECES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.text(st.characters(max_codepoint=0x24F), max_size=12),
    st.text(st.characters(categories=["Mn", "Mc", "Me", "Cf", "Cc", "Zs", "Lu"]), max_size=6),
    st.sampled_from(["[SEP]", "[CLS]", "[MASK]", "[PAD]", "[UNK]", "[sep]", "##ing", " ", "running", "数据", "é"]),
    st.integers(95, 105).map("z".__mul__),
)


@given(pieces=st.lists(PIECES, max_size=12))
def test_random_texts(pieces: list[str], tokeniser: WordPiece, reference: Tokenizer) -> None:
    text = "".join(pieces)
    expected = reference.encode(text).ids
    assert tokeniser.encode(text, UNLIMITED) == expected
    assert tokeniser.count(text) == len(expected)


@pytest.mark.parametrize("limit", [2, 3, 8, 17, 256])
def test_cutting_keeps_the_first_pieces_and_the_closing_mark(
    limit: int, tokeniser: WordPiece, reference: Tokenizer
) -> None:
    cut = Tokenizer.from_str(reference.to_str())
    cut.enable_truncation(limit)
    for text in [*STRESS, "the unaffable words " * 100, "数据库" * 200, "a" * 10, "tokenization" * 8]:
        assert tokeniser.encode(text, limit) == cut.encode(text).ids


def test_a_lone_surrogate_counts_for_nothing(tokeniser: WordPiece) -> None:
    assert tokeniser.encode("data\ud800base \udfff", UNLIMITED) == tokeniser.encode("database", UNLIMITED)


def test_a_full_cache_starts_afresh_and_changes_no_ids(
    vocabulary: list[str], tokeniser: WordPiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wordpiece, "_CACHE_SIZE", 8)
    small = WordPiece(vocabulary)
    for text in STRESS * 2:
        assert small.encode(text, UNLIMITED) == tokeniser.encode(text, UNLIMITED)
        assert len(small._cache) <= 8


def test_threads_share_a_tokeniser(
    vocabulary: list[str], tokeniser: WordPiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wordpiece, "_CACHE_SIZE", 8)
    shared = WordPiece(vocabulary)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: shared.encode(text, 256), STRESS * 20))
    assert found == [tokeniser.encode(text, 256) for text in STRESS] * 20
