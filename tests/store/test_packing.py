"""Packing loses nothing, takes a dictionary only where it pays, and a home of the first schema opens as it was."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py import Cortex
from cortex_py.core.store import migrations, sqlite
from cortex_py.core.store.packing import pack, train_dictionary, unpack
from inside import database_of

from helpers import FakeClock
from stub_backend import StubBackend

TEXTS = st.text(st.one_of(st.sampled_from("ab \r\n\0\t🧠👩‍🚀é"), st.characters(exclude_categories=["Cs"])))
WORDS = ["engine", "queue", "retry", "cursor", "session", "ledger", "branch", "vector", "token", "parser", "budget"]


def _notes(count: int, words: int = 30) -> list[str]:
    """Texts that have much in common with each other and little with themselves."""
    lot = random.Random(5)
    return [
        f"## Decision {i}\n\nWe decided to keep the following settings of the deployment unchanged for the team: "
        + " ".join(f"{lot.choice(WORDS)}-{lot.randrange(10**6)}" for _ in range(words))
        for i in range(count)
    ]


@pytest.fixture(scope="module")
def dictionary() -> bytes:
    made = train_dictionary(_notes(1500))
    assert made is not None
    return made


@given(text=TEXTS, times=st.integers(1, 200))
def test_what_is_unpacked_is_what_was_packed(text: str, times: int) -> None:
    content = text * times
    packed = pack(content)
    assert packed is None or unpack(packed) == content


@given(text=TEXTS, times=st.integers(1, 200))
def test_a_dictionary_changes_nothing_about_that(dictionary: bytes, text: str, times: int) -> None:
    content = _notes(1)[0] + text * times
    packed = pack(content, dictionary)
    assert packed is not None
    assert unpack(packed, dictionary) == content


@each("text", ["one line\r\n", "a lone return\r", "nothing\0between", "🧠 thoughts "])
def test_a_megabyte_comes_back_as_it_was(text: str) -> None:
    content = text * (1_000_000 // len(text))
    packed = pack(content)
    assert packed is not None
    assert len(packed) < 10_000
    assert unpack(packed).encode() == content.encode()


def test_what_hardly_shrinks_stays() -> None:
    noise = random.Random(3)
    assert pack("".join(chr(noise.randrange(0x4E00, 0x9FA5)) for _ in range(40))) is None
    assert pack("Use tabs, not spaces.") is None
    assert pack("") is None


def test_a_dictionary_makes_similar_texts_smaller(dictionary: bytes) -> None:
    fresh = _notes(1600)[1500:]
    plain = sum(len(pack(one) or one.encode()) for one in fresh)
    assert sum(len(pack(one, dictionary) or one.encode()) for one in fresh) < 0.9 * plain


def test_there_is_no_dictionary_where_it_would_not_pay() -> None:
    noise = random.Random(4)
    assert train_dictionary([]) is None
    assert train_dictionary(_notes(20)) is None
    assert train_dictionary(["the same"] * 50_000) is None
    # Nothing in common: every text is noise of its own.
    assert (
        train_dictionary(["".join(chr(noise.randrange(0x21, 0xD7FF)) for _ in range(300)) for _ in range(800)]) is None
    )


def test_a_damaged_packing_is_never_taken_for_a_text() -> None:
    packed = bytearray(pack("the quick brown fox jumps over the lazy dog. " * 100) or b"")
    packed[len(packed) // 2] ^= 0xFF
    with pytest.raises(Exception, match=r"(?i)zstd|compress|checksum|corrupt|unable"):
        unpack(bytes(packed))


def test_a_home_of_the_first_schema_opens_and_reads_the_same(
    home: Path, project: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = "An old note about the retry queue 🧠\r\nwith two lines"
    with monkeypatch.context() as old:
        old.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:1])
        old.setattr(migrations, "SCHEMA_VERSION", 1)
        old.setattr(sqlite, "_ENGINE_STEPS", sqlite._ENGINE_STEPS[:1])
        database = sqlite.open_sqlite(home / "cortex.db", clock)
        with database.read() as session:
            names = {row[1] for row in session.rows("PRAGMA table_info(memory)")}
            assert "packed" not in names
        database.close()
    other = home.with_name("other")
    with Cortex.open(other, project=project, backend=StubBackend(), clock=clock) as cortex:
        branch = cortex.contexts.create_branch("Old work")
        memory = cortex.memories.capture(content, tags=["old"], branch_id=branch.id, category="architecture")
        _carry_over(cortex, home, names, clock)
        expected = cortex.memories.recall("retry queue").results
    with Cortex.open(home, project=project, backend=StubBackend(), clock=clock) as cortex:
        assert cortex.check() == []
        assert cortex.memories.get(memory.id) == memory
        assert cortex.memories.recall("retry queue").results == expected
        assert cortex.memories.recall(filter="tag:old kind:note").total == 1
        assert cortex.contexts.content(branch.id) == [memory]
        # Suggestions came with a later step.
        found = cortex.suggestions.suggest("Mend the retry queue")
        assert cortex.suggestions.accept(found.session_id, [memory.id]) == 1
        assert "accept" in [one.kind for one in cortex.suggestions.history()]
        clock.advance(hours=1)
        assert cortex.memories.update(memory.id, content="A new text").version == 2
        assert [one.content for one in cortex.memories.history(memory.id)] == [content, "A new text"]
        cortex.memories.delete(memory.id, hard=True)
        assert cortex.suggestions.history() == []


def _carry_over(cortex: Cortex, home: Path, names: set[str], clock: FakeClock) -> None:
    """Copy all rows into a home of the first schema, with the columns that it has."""
    import apsw

    old = apsw.Connection(str(home / "cortex.db"))
    with database_of(cortex).read() as session:
        ((seq,),) = session.rows("SELECT max(seq) FROM space_change")
        old.execute("UPDATE state SET seq = ?", (seq,))
        for table in ("setting", "project", "branch", "memory", "tag", "chunk"):
            known = [row[1] for row in old.execute(f"PRAGMA table_info({table})")]
            rows = session.rows(f"SELECT {', '.join(known)} FROM {table}")
            assert table != "memory" or set(known) == names
            old.execute(f"DELETE FROM {table}")
            old.executemany(f"INSERT INTO {table} ({', '.join(known)}) VALUES ({', '.join('?' * len(known))})", rows)
        from cortex_py.core.memory.capture.capture import index_entry

        for num, space in session.rows("SELECT num, space FROM memory"):
            terms = [row[0] for row in session.rows("SELECT terms FROM chunk WHERE num = ? ORDER BY n", (num,))]
            old.execute("INSERT INTO memory_text (rowid, words) VALUES (?, ?)", (num, index_entry(space, terms)))
    old.close()
