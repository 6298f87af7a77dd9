"""What a piece of text can be found by."""

import random
import struct
import threading
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.memory.text import MAX_TERM, query_terms, stop_words, terms
from cortex_py.core.store.rows import encode_terms, index_word, index_words, term_hash

any_text = st.text(st.characters(exclude_categories=()), max_size=80)


def decode_terms(blob: bytes) -> tuple[list[int], list[int]]:
    """The hashes and counts of an encoded record, as the store reads them."""
    size = len(blob) // 5
    return list(struct.unpack_from(f"<{size}I", blob)), list(blob[4 * size :])


def finds(query: str, record: str) -> bool:
    """Whether every term of the query is a term of the record."""
    wanted = query_terms(query)
    return bool(wanted) and set(wanted) <= set(terms(record))


@each(
    ("text", "expected"),
    [
        ("The cats sat.", ["the", "cat", "sat"]),
        ("cat cat", ["cat", "cat"]),
        ("getUserById", ["getuserbyid", "get", "user", "by", "id"]),
        ("XMLHttpRequest", ["xmlhttprequest", "xml", "http", "request"]),
        ("userIDs", ["userid", "user", "id"]),
        ("snake_case", ["snake_case", "snakecas", "snake", "case"]),
        ("__init__", ["__init__", "init"]),
        ("MAX_RETRY_COUNT", ["max_retry_count", "maxretrycount", "max", "retri", "count"]),
        ("a/b.py", ["a/b.py", "a", "b.py", "b", "py"]),
        ("src/auth/token.rs", ["src/auth/token.rs", "src", "auth", "token.rs", "token", "rs"]),
        (r"src\auth\token.rs", ["src/auth/token.rs", "src", "auth", "token.rs", "token", "rs"]),
        ("--flag-name", ["--flag-name", "flag-name", "flagnam", "flag", "name"]),
        ("-v", ["-v", "v"]),
        ("E1234", ["e1234", "1234"]),
        ("HTTP2", ["http2", "http", "2"]),
        ("v1.2.3", ["v1.2.3", "v1", "1", "2", "3", "1.2", "1.2.3"]),
        ("3.14", ["3.14", "3", "14"]),
        ("10,000", ["10000"]),
        ("10_000", ["10_000", "10000", "10", "000"]),
        ("2024-05-01", ["2024-05-01", "2024", "05", "01", "2024-05"]),
        ("C++", ["c++", "c"]),
        ("c++17", ["c++", "c++17", "c", "17"]),
        ("C#", ["c#", "c"]),
        (".NET", [".net", "net"]),
        ("node.js", ["node.js", "nodej", "node", "js"]),
        ("foo::bar", ["foo::bar", "foo", "bar"]),
        ("ptr->next", ["ptr->next", "ptr", "next"]),
        ("obj.method()", ["obj.method", "obj", "method"]),
        ("user@host", ["user@host", "user", "host"]),
        ("#123", ["#123", "123"]),
        ("@decorator", ["@decorator", "decor"]),
        ("$HOME", ["$home", "home"]),
        ("re-rank", ["re-rank", "rerank", "re", "rank"]),
        ("U.S.A.", ["u.s.a", "usa", "u", "s", "a"]),
        ("AT&T", ["at&t", "at", "t"]),
        ("don't", ["dont"]),
        ("Caroline's", ["carolin"]),
        ("Caroline’s", ["carolin"]),
        ("we're", ["we"]),
        ("O'Brien", ["obrien", "brien"]),
        ("l'école", ["lecol", "ecol"]),
        ("wait...what", ["wait", "what"]),
        ("x=1", ["x", "1"]),
    ],
)
def test_text_becomes_its_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_addresses_are_found_by_host_and_path() -> None:
    assert terms("https://example.com/docs/page?x=1") == [
        "https",
        "example.com/docs/page",
        "example.com",
        "exampl",
        "com",
        "doc",
        "page",
        "x",
        "1",
    ]
    assert terms("ann.lee@example.com") == [
        "ann.lee@example.com",
        "ann.lee",
        "ann",
        "lee",
        "example.com",
        "exampl",
        "com",
    ]


@each(
    ("text", "expected"),
    [
        ("Ångström naïve", ["angstrom", "naiv"]),
        ("Straße STRASSE", ["strass", "strass"]),
        ("Øresund Łódź", ["oresund", "lodz"]),
        ("İstanbul ISTANBUL ıstanbul", ["istanbul"] * 3),
        ("ﬁle ＡＢＣ", ["file", "abc"]),
        ("Σίσυφος ΣΊΣΥΦΟΣ", ["σισυφοσ", "σισυφοσ"]),
        ("Ёлка елка", ["елка", "елка"]),
        ("ПриветМир", ["приветмир", "привет", "мир"]),
        ("مُحَمَّد أحمد", ["محمد", "احمد"]),
        ("شماره ۳۴", ["شماره", "34"]),
        ("שָׁלוֹם שלום", ["שלום", "שלום"]),
        ("हिन्दी क़लम ३", ["हिन्दी", "कलम", "3"]),
        ("தமிழ் மொழி", ["தமிழ்", "மொழி"]),
        ("数据库", ["数", "据", "库", "数据", "据库"]),
        ("猫", ["猫"]),
        ("データ", ["デ", "ー", "タ", "デー", "ータ"]),
        ("ﾃﾞｰﾀ", ["デ", "ー", "タ", "デー", "ータ"]),
        ("食べる", ["食", "べ", "る", "食べ", "べる"]),
        ("한국어", ["한", "국", "어", "한국", "국어"]),
        ("ที่ดี", ["ที่", "ดี", "ที่ดี"]),
        ("ខ្មែរ។", ["ខ្មែ", "រ", "ខ្មែរ"]),
        ("ລາວ", ["ລ", "າ", "ວ", "ລາ", "າວ"]),
        ("使用PostgreSQL", ["使", "用", "使用", "postgresql", "postgr", "sql"]),
        ("done 👍🏽", ["done", "👍🏽", "👍"]),
        ("👨‍👩‍👧", ["👨‍👩‍👧", "👨", "👩", "👧"]),
        ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]),
        ("❤️ ❤", ["❤", "❤"]),
        ("Foo™ bar—baz “x”", ["foo", "bar", "baz", "x"]),
    ],
)
def test_every_script_has_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@each(
    ("query", "record"),
    [
        ("getuserbyid", "call getUserById here"),
        ("get_user_by_id", "call getUserById and get_user_by_id"),
        ("users", "getUserById"),
        ("rerank", "we re-rank candidates"),
        ("email", "send an e-mail"),
        ("token.rs", "see src/auth/token.rs:42"),
        ("src/auth/token.rs", "(src/auth/token.rs)"),
        (".config", "in ~/.config/foo.toml"),
        ("nodejs", "Node.js 22"),
        ("USA", "the U.S.A."),
        ("flag-name", "pass --flag-name=3"),
        ("python 3.11", "Python 3.11.4 is installed"),
        ("8080", "127.0.0.1:8080"),
        ("10:30", "at 10:30am"),
        ("7 May", "on May 7th"),
        ("1.5", "a 1.5GB file"),
        ("utf8", "UTF-8"),
        ("a1b2c3d", "commit a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"),
        ("#42", "fixes #42."),
        ("net", ".NET"),
        ("database", "the databases"),
        ("dont", "don't"),
        ("Caroline", "Caroline's book"),
        ("cafe", "Café"),
        ("猫", "我的猫很可爱"),
        ("数据库", "我们使用数据库。"),
        ("世界", "こんにちは世界"),
        ("물", "물을 마신다"),
        ("ครับ", "สวัสดีครับ"),
        ("👩", "👨‍👩‍👧"),
        ("bold", "**bold** `code` _emph_"),
        ("emph", "**bold** `code` _emph_"),
    ],
)
def test_a_query_finds_the_record_a_person_would_expect(query: str, record: str) -> None:
    assert finds(query, record)


@each(
    ("query", "record"),
    [("go", "Google"), ("据数", "数据"), ("C++", "C#"), ("3.12", "3.1.2"), ("cat", "category")],
)
def test_a_query_does_not_find_what_only_looks_alike(query: str, record: str) -> None:
    assert not finds(query, record)


def test_random_keys_are_not_broken_into_noise() -> None:
    assert terms("3f2a9c1b") == ["3f2a9c1b"]
    assert terms("aGVsbG8gd29ybGQ") == ["agvsbg8gd29ybgq"]


words = st.text("abcdefghijklmnopqrstuvwxyz", min_size=3, max_size=9)


@given(
    st.lists(words, min_size=2, max_size=6),
    st.sampled_from(["_", "-", ".", "/", "::", "->", ":", "camel", "Pascal", "SCREAM"]),
    st.sampled_from(["{}", "({})", "`{}`", "see {}.", "{}()", "{}'s", '"{}",', "[{}](x)", "\t{}\n"]),
)
def test_every_part_of_an_identifier_finds_it(parts: list[str], style: str, around: str) -> None:
    match style:
        case "camel":
            name = parts[0] + "".join(map(str.capitalize, parts[1:]))
        case "Pascal":
            name = "".join(map(str.capitalize, parts))
        case "SCREAM":
            name = "_".join(parts).upper()
        case _:
            name = style.join(parts)
    record = around.format(name)
    assert finds(name, record)
    assert finds(name.lower(), record)
    for part in parts:
        assert set(terms(part)) <= set(terms(record))


@given(st.text("数据库结构猫狗", min_size=1, max_size=8), any_text, any_text)
def test_every_passage_of_an_unspaced_script_finds_it(query: str, before: str, after: str) -> None:
    assert finds(query, f"{before} x{query}x {after}")


@given(any_text)
@example("\ud800\0")
@example("x" * 65)
@example("ก" + "่" * 200 + "ข")
@example("1\u200d👍\u200d")
@example('" OR NEAR(a*) -b')
def test_any_string_has_terms_that_are_short_and_not_empty(text: str) -> None:
    found = terms(text)
    assert all(0 < len(term) <= MAX_TERM for term in found)
    assert set(query_terms(text)) <= set(found)
    assert bool(query_terms(text)) == bool(found)
    assert terms(text) == found
    assert len(decode_terms(encode_terms(found))[0]) == len(set(map(term_hash, found)))


@given(st.text(st.characters(max_codepoint=0x2FFF, categories=["L", "M", "N", "Zs"]), max_size=60))
def test_composed_and_decomposed_spellings_have_the_same_terms(text: str) -> None:
    assert terms(unicodedata.normalize("NFD", text)) == terms(unicodedata.normalize("NFC", text))


@given(st.text("abcdeéàöñçåšžабвгдёαβγάή ", max_size=60))
def test_case_does_not_matter_in_plain_words(text: str) -> None:
    assert terms(text.upper()) == terms(text)


def test_long_terms_are_cut_but_stay_distinct() -> None:
    first, second = terms("x" * 70 + "1"), terms("x" * 70 + "2")
    assert len(first) == len(second) == 1
    assert len(first[0]) == len(second[0]) == 64
    assert first != second


def test_queries_drop_stop_words() -> None:
    assert query_terms("What did Caroline do to the database?") == ["carolin", "databas"]
    assert query_terms("I don't know") == ["know"]
    assert query_terms("getUserById") == ["getuserbyid", "get", "user", "id"]


def test_a_query_of_only_stop_words_keeps_them() -> None:
    assert query_terms("to be or not to be") == ["to", "be", "or", "not", "to", "be"]


def test_queries_drop_single_characters_of_longer_runs() -> None:
    assert query_terms("数据库") == ["数据", "据库"]
    assert query_terms("猫") == ["猫"]


def test_stop_words_are_folded_words() -> None:
    assert {"the", "dont", "what"} <= stop_words()
    assert all(word.isascii() and word.isalpha() and word.islower() for word in stop_words())


def test_text_without_words_has_no_terms() -> None:
    assert terms("") == terms(" \n") == terms("!? ... && ==") == query_terms("***") == []


def test_term_hashes_are_stable_across_versions() -> None:
    assert [term_hash(term) for term in ("cat", "数据", "\ud800")] == [2901798860, 3852005267, 1043822538]


def test_term_hashes_spread_over_32_bits() -> None:
    hashes = {term_hash(f"term{n}") for n in range(20_000)}
    assert len(hashes) >= 19_998
    assert 0 < min(hashes) < 2**20
    assert 2**32 - 2**20 < max(hashes) < 2**32
    assert all(9_500 < sum(number >> bit & 1 for number in hashes) < 10_500 for bit in range(32))


def test_terms_are_encoded_as_sorted_hashes_then_counts() -> None:
    blob = encode_terms(["b", "a", "b"])
    ordered = sorted([(term_hash("a"), 1), (term_hash("b"), 2)])
    assert blob == b"".join(number.to_bytes(4, "little") for number, _ in ordered) + bytes(
        count for _, count in ordered
    )
    hashes, counts = decode_terms(blob)
    assert hashes == [number for number, _ in ordered]
    assert counts == [count for _, count in ordered]


def test_counts_stop_at_255() -> None:
    assert decode_terms(encode_terms(["a"] * 1000))[1] == [255]


def test_no_terms_encode_to_nothing() -> None:
    assert encode_terms([]) == b""
    assert index_words(b"") == ""


def test_a_damaged_encoding_is_refused() -> None:
    with pytest.raises(ValueError, match="7 bytes, not a multiple of 5"):
        index_words(b"1234567")


def test_index_words_are_fixed_ascii_words_in_hash_order() -> None:
    assert index_word(1) == "a222223"
    assert index_word(2**32 - 1) == "dzzzzzz"
    assert index_words([1, 2**32 - 1]) == "a222223 dzzzzzz"
    blob = encode_terms(["b", "a", "b"])
    assert index_words(blob) == index_words(decode_terms(blob)[0])
    assert index_words(blob).split() == sorted(index_words(blob).split())


@given(st.integers(1, 2**32 - 1), st.integers(1, 2**32 - 1))
def test_index_words_are_distinct_and_sort_as_their_hashes(one: int, other: int) -> None:
    assert (index_word(one) < index_word(other)) == (one < other)
    assert (index_word(one) == index_word(other)) == (one == other)
    assert len(index_word(one)) == 7 and index_word(one).isalnum() and index_word(one)[0].isalpha()


def test_threads_agree() -> None:
    rng = random.Random(7)
    texts = [" ".join("".join(rng.choices("aeioustnr", k=7)) + "ing" for _ in range(20)) for _ in range(50)]
    found: list[list[list[str]]] = []

    def work() -> None:
        found.append([terms(text) for text in texts])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[terms(text) for text in texts]] * 4


@each("unit", ["a/", "a.", "aB", "--", "x'", "é'", "数", "\u200d", "👍\u200d", "1,000", "ក្", "-_", "a-b_"])
def test_hostile_repetition_takes_linear_time(unit: str) -> None:
    assert all(len(term) <= MAX_TERM for term in terms(unit * 20_000))
