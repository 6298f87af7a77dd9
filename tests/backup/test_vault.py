"""Encrypted vault files: what goes in comes out, every change is seen, and no fault loses a file."""

from __future__ import annotations

import hashlib
import io
import os
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cases import each
from cortex_py.core.errors import (
    BackupCorrupt,
    BackupError,
    CortexError,
    InvalidInput,
    WrongKey,
)
from cortex_py.core.security.ciphers import ObjectKeys, name_object, open_object, seal_object
from cortex_py.parts.backup.vault import header as vault_header
from cortex_py.parts.backup.vault.header import Kdf, KdfLimits, KdfParameters, new_header, new_slot, read_header
from cortex_py.parts.backup.vault.vault import LEAST_PADDED, decrypt, encrypt, padded_size, rewrap

FAST = KdfParameters(Kdf.ARGON2ID, memory_kib=8, passes=1, lanes=1)
ANY = KdfLimits(least_memory_kib=8, least_work_kib=8)
BITS = 10
CAPACITY = (1 << BITS) - 4
SEALED = (1 << BITS) + 16
HEADER = 128 + 144


def _bytes(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def _encrypted(
    data: bytes, passphrase: str = "correct", *, bits: int = BITS, draw: Callable[[int], bytes] = os.urandom
) -> bytes:
    target = io.BytesIO()
    encrypt(io.BytesIO(data), target, passphrase, parameters=FAST, limits=ANY, chunk_bits=bits, random=draw)
    return target.getvalue()


def _decrypted(data: bytes, passphrase: str = "correct") -> bytes:
    target = io.BytesIO()
    decrypt(io.BytesIO(data), target, passphrase, limits=ANY)
    return target.getvalue()


def _refused(data: bytes, plain: bytes, kind: type[CortexError] = BackupError) -> CortexError:
    """The error of a file that must not open; whatever was given out before is authentic."""
    target = io.BytesIO()
    with pytest.raises(kind) as caught:
        decrypt(io.BytesIO(data), target, "correct", limits=ANY)
    given_out = target.getvalue()
    assert plain.startswith(given_out)
    assert len(given_out) % CAPACITY == 0 or given_out == plain
    return caught.value


def _chunks(data: bytes) -> list[bytes]:
    return [data[at : at + SEALED] for at in range(HEADER, len(data), SEALED)]


def _digest_anew(data: bytes, header: int = HEADER) -> bytes:
    """What somebody does who alters a header on purpose."""
    return data[: header - 32] + hashlib.sha256(data[: header - 32]).digest() + data[header:]


def _put(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


# -- Round trips ---------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.integers(0, 40), st.integers(-3, 3), st.integers(10, 14))
@example(0, 0, 10)
def test_any_size_comes_back(pieces: int, more: int, bits: int) -> None:
    data = _bytes(max(0, pieces * ((1 << bits) - 4) + more))
    assert _decrypted(_encrypted(data, bits=bits)) == data


@settings(deadline=None)
@given(st.binary(max_size=300), st.text(st.characters(codec="utf-8"), min_size=1, max_size=40))
def test_any_content_and_passphrase_come_back(data: bytes, passphrase: str) -> None:
    assert _decrypted(_encrypted(data, passphrase), passphrase) == data


def test_content_of_zeros_is_not_taken_for_padding() -> None:
    for size in (1, 4096, 5000, 3 * CAPACITY):
        assert _decrypted(_encrypted(bytes(size))) == bytes(size)


def test_streams_that_give_and_take_little_at_a_time() -> None:
    class Drip(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 0, 7))

        def write(self, data: bytes, /) -> int:  # type: ignore[override]
            return super().write(data[:100])

    data, target, back = _bytes(9000), Drip(), Drip()
    encrypt(Drip(data), target, "x", parameters=FAST, limits=ANY, chunk_bits=BITS)
    decrypt(Drip(target.getvalue()), back, "x", limits=ANY)
    assert back.getvalue() == data


def test_the_usual_parameters_and_both_functions() -> None:
    for parameters in (None, KdfParameters(Kdf.SCRYPT, 2**15, 2, 1)):
        target, back = io.BytesIO(), io.BytesIO()
        encrypt(io.BytesIO(b"memory"), target, "x", parameters=parameters)
        decrypt(io.BytesIO(target.getvalue()), back, "x")
        assert back.getvalue() == b"memory"


def test_the_same_content_never_looks_the_same() -> None:
    left, right = _encrypted(b"a" * 5000), _encrypted(b"a" * 5000)
    blocks = [[data[at : at + 16] for at in range(64, len(data) - 16)] for data in (left, right)]
    # Of the slot's fields only the cost of its function is the same.
    assert sum(1 for one, other in zip(*blocks, strict=True) if one == other) <= 1
    assert len(set(_chunks(left))) == len(_chunks(left))


# -- What the size tells -------------------------------------------------------------------------


def test_small_contents_all_have_one_size() -> None:
    assert {len(_encrypted(_bytes(size))) for size in (0, 1, 100, 4095, 4096)} == {HEADER + 4096 + 5 * 20}


@given(st.integers(0, 1 << 50))
def test_padding_costs_at_most_an_eighth_and_grows_with_the_size(size: int) -> None:
    padded = padded_size(size)
    assert size <= padded <= max(LEAST_PADDED, size + size // 8)
    assert padded_size(padded) == padded
    assert padded_size(size + 1) >= padded


def test_large_contents_have_few_sizes() -> None:
    assert len({padded_size(size) for size in range(1 << 20, 1 << 21, 1009)}) <= 33


# -- Every change is seen ------------------------------------------------------------------------


def test_random_bit_flips_are_all_seen() -> None:
    plain = _bytes(6000)
    data = _encrypted(plain)
    choice = random.Random(2)
    for _ in range(500):
        at, bit = choice.randrange(len(data)), choice.randrange(8)
        _refused(_put(data, at, bytes([data[at] ^ 1 << bit])), plain)


def test_every_bit_of_the_header_counts_and_damage_is_no_wrong_key() -> None:
    plain = _bytes(10)
    data = _encrypted(plain)
    for at in range(HEADER):
        for bit in range(8):
            error = _refused(_put(data, at, bytes([data[at] ^ 1 << bit])), plain)
            assert not isinstance(error, WrongKey)


def test_every_byte_of_the_header_counts_when_its_digest_is_made_anew() -> None:
    plain = _bytes(10)
    data = _encrypted(plain)
    limits = KdfLimits(least_memory_kib=8, least_work_kib=8, most_memory_kib=1024, most_work_kib=1024)
    for at in range(HEADER - 32):
        changed = _digest_anew(_put(data, at, bytes([data[at] ^ 0x10])))
        target = io.BytesIO()
        with pytest.raises(BackupError):
            decrypt(io.BytesIO(changed), target, "correct", limits=limits)
        assert not target.getvalue()


def test_cuts_are_all_seen() -> None:
    plain = _bytes(6000)
    data = _encrypted(plain)
    borders = {0, 8, 10, 11, 12, 16, 48, 56, 60, 64, 64 + 96, 64 + 144, HEADER - 32, HEADER}
    borders |= {at + d for at in range(HEADER, len(data), SEALED) for d in (0, 1, 15, 16, 17, 20, 21, SEALED - 1)}
    cuts = {at for at in borders if at < len(data)} | {random.Random(3).randrange(len(data)) for _ in range(200)}
    for at in cuts:
        _refused(data[:at], plain, BackupCorrupt)


@each("size", [0, 100, 4096, 6000])
def test_appended_bytes_are_seen(size: int) -> None:
    plain = _bytes(size)
    data = _encrypted(plain)
    for more in (b"\0", bytes(16), bytes(SEALED), _chunks(data)[-1], data):
        _refused(data + more, plain, BackupCorrupt)


def test_chunks_moved_repeated_or_left_out_are_seen() -> None:
    plain = _bytes(6000)
    data = _encrypted(plain)
    start, chunks = data[:HEADER], _chunks(data)
    whole = [*range(len(chunks))]
    assert len(whole) == 7
    orders = [whole[:n] + whole[n + 1 :] for n in whole]
    orders += [whole[: n + 1] + whole[n:] for n in whole]
    orders += [[*whole[:n], m, *whole[n + 1 : m], n, *whole[m + 1 :]] for n in whole for m in whole[n + 1 :]]
    orders += [whole[::-1], [6], []]
    for order in orders:
        _refused(start + b"".join(chunks[n] for n in order), plain, BackupCorrupt)


def test_two_files_under_one_passphrase_do_not_mix() -> None:
    one, other = _bytes(6000, 1), _bytes(6000, 2)
    left, right = _encrypted(one), _encrypted(other)
    _refused(left[:HEADER] + right[HEADER:], one, BackupCorrupt)
    for number, chunk in enumerate(_chunks(right)):
        _refused(_put(left, HEADER + number * SEALED, chunk), one, BackupCorrupt)
    # The slot of one file in the header of the other, for whoever can compute the digest.
    _refused(_digest_anew(_put(left, 64, right[64:HEADER])), one, BackupCorrupt)
    _refused(_digest_anew(_put(left, 64, right[64 : 64 + 144])), one, BackupCorrupt)
    _refused(_digest_anew(_put(right, 0, left[:56])), other, BackupCorrupt)


def test_files_with_the_same_id_and_other_keys_do_not_mix() -> None:
    def drawn(seed: int) -> Callable[[int], bytes]:
        first, rest = random.Random(0), random.Random(seed)
        left = [2]

        def draw(size: int) -> bytes:
            left[0] -= 1
            return (first if left[0] >= 0 else rest).randbytes(size)

        return draw

    one, other = _bytes(6000, 1), _bytes(6000, 2)
    left, right = _encrypted(one, draw=drawn(1)), _encrypted(other, draw=drawn(2))
    assert left[:56] == right[:56]
    _refused(left[:HEADER] + right[HEADER:], one, BackupCorrupt)
    for number, chunk in enumerate(_chunks(right)):
        _refused(_put(left, HEADER + number * SEALED, chunk), one, BackupCorrupt)


def _formed(plains: list[bytes]) -> bytes:
    """A file with chunks of any form, from somebody who has the key."""
    opened = new_header("correct", FAST, BITS, ANY, os.urandom)
    fixed, cipher = opened.header.fixed, AESGCM(opened.content_key)
    data = opened.header.encoded()
    for number, plain in enumerate(plains):
        place = number.to_bytes(4, "big") + bytes([number == len(plains) - 1])
        data += cipher.encrypt(fixed.nonce_prefix + place, plain, fixed.binding + place)
    return data


def test_chunks_are_formed_in_one_way_only() -> None:
    def chunk(count: int, piece: bytes) -> bytes:
        return count.to_bytes(4, "big") + piece

    full, none, rest = chunk(CAPACITY, b"x" * CAPACITY), chunk(0, bytes(CAPACITY)), chunk(0, bytes(16))
    one = chunk(1, b"x" + bytes(CAPACITY - 1))
    assert _decrypted(_formed([full, one, none, none, rest])) == b"x" * (CAPACITY + 1)
    for plains in (
        [full, one, none, none],
        [full, one, none, none, chunk(0, bytes(15))],
        [full, one, none, none, chunk(0, bytes(17))],
        [full, one, none, none, none, rest],
        [one, full, none, none, rest],
        [full, none, one, none, rest],
        [full, one, none, chunk(0, bytes(CAPACITY - 1) + b"x"), rest],
        [full, one, none, none, chunk(17, bytes(16))],
        [full, one, none, none, chunk(2**32 - 1, bytes(16))],
        [full, one, none, none, chunk(0, b"")],
        [full, one, none, none, b"\0\0\0"],
        [b""],
    ):
        with pytest.raises(BackupCorrupt, match=r"malformed|padding"):
            _decrypted(_formed(plains))


@each("data", [b"", b"x", b"\x89CXV", b"-----BEGIN", bytes(1000), b"\x89CXV\n\x1a\n" + bytes(900)])
def test_what_is_no_such_file_is_told(data: bytes) -> None:
    assert "not an encrypted file" in str(_refused(data, b"", BackupCorrupt))


def test_a_later_version_is_told_as_one() -> None:
    error = _refused(_put(_encrypted(b"x"), 8, b"\0\2"), b"x")
    assert not isinstance(error, BackupCorrupt)
    assert "Update" in str(error)


# -- Keys ----------------------------------------------------------------------------------------


@each("passphrase", ["wrong", "Correct", "correct ", "c"])
def test_a_wrong_passphrase_is_told_and_gives_nothing(passphrase: str) -> None:
    target = io.BytesIO()
    with pytest.raises(WrongKey) as caught:
        decrypt(io.BytesIO(_encrypted(b"secret words")), target, passphrase, limits=ANY)
    assert not target.getvalue()
    assert passphrase not in str(caught.value) or passphrase == "c"


def _no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bytes:
        raise AssertionError("a key was derived")

    monkeypatch.setattr(vault_header, "derive", refuse)


def test_a_downgraded_header_is_refused_before_a_key_is_derived(monkeypatch: pytest.MonkeyPatch) -> None:
    target, fast = io.BytesIO(), _encrypted(b"x")
    encrypt(io.BytesIO(b"x"), target, "correct")
    data = target.getvalue()
    _no_work(monkeypatch)
    for at, value in ((68, 8), (68, 19 * 1024 - 1), (72, 0)):
        changed = _digest_anew(_put(data, at, value.to_bytes(4, "big")))
        with pytest.raises(BackupCorrupt, match="altered"):
            decrypt(io.BytesIO(changed), io.BytesIO(), "correct")
    with pytest.raises(BackupCorrupt, match="weaker"):
        decrypt(io.BytesIO(fast), io.BytesIO(), "correct")


def test_a_header_altered_within_the_bounds_opens_nothing() -> None:
    changed = _digest_anew(_put(_encrypted(b"x"), 68, (16).to_bytes(4, "big")))
    _refused(changed, b"x", WrongKey)


def test_hostile_headers_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = _encrypted(b"x")
    _no_work(monkeypatch)
    worst = b"\xff\xff\xff\xff"
    changes = [(56, worst), (60, b"\xff\xff"), (60, b"\0\0"), (60, b"\0\x09"), (11, b"\xff"), (11, b"\0")]
    changes += [(68, worst), (72, worst), (76, worst), (64, b"\0"), (64, b"\3"), (64, b"\xff")]
    tracemalloc.start()
    try:
        for at, new in changes:
            changed = _put(data, at, new)
            for hostile in (changed, _digest_anew(changed)):
                with pytest.raises(BackupCorrupt):
                    decrypt(io.BytesIO(hostile), io.BytesIO(), "correct", limits=ANY)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_weak_parameters_are_not_written_without_being_allowed() -> None:
    target = io.BytesIO()
    with pytest.raises(InvalidInput, match="weaker"):
        encrypt(io.BytesIO(b"x"), target, "x", parameters=FAST)
    for bits in (9, 25):
        with pytest.raises(InvalidInput, match="chunk"):
            encrypt(io.BytesIO(b"x"), target, "x", parameters=FAST, limits=ANY, chunk_bits=bits)
    assert not target.getvalue()


# -- Constant memory -----------------------------------------------------------------------------


class _Made(io.RawIOBase):
    """Bytes that are made while they are read."""

    def __init__(self, size: int) -> None:
        self.left = size
        self.block = _bytes(65_536)
        self.digest = hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        data = self.block[: min(size, self.left, len(self.block))]
        self.left -= len(data)
        self.digest.update(data)
        return data


class _Sink(io.RawIOBase):
    def __init__(self) -> None:
        self.digest = hashlib.sha256()

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        self.digest.update(data)
        return len(data)


def test_fifty_megabytes_in_constant_memory(tmp_path: Path) -> None:
    made, sink, path = _Made(50_000_000), _Sink(), tmp_path / "large"
    with path.open("wb") as target:
        encrypt(io.BytesIO(b"x"), io.BytesIO(), "x", parameters=FAST, limits=ANY)  # What is imported once.
        tracemalloc.start()
        try:
            encrypt(made, target, "x", parameters=FAST, limits=ANY)  # type: ignore[arg-type]
            with path.open("rb") as source:
                target.flush()
                decrypt(source, sink, "x", limits=ANY)  # type: ignore[arg-type]
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert sink.digest.digest() == made.digest.digest()
    assert peak < 3_000_000


# -- Passphrases ---------------------------------------------------------------------------------


def _with_passphrase(data: bytes, passphrase: str, new: str) -> bytes:
    """Let another passphrase open the file as well; no part of Cortex writes such files yet."""
    source = io.BytesIO(data)
    opened = read_header(source, ANY).opened(passphrase)
    slot = new_slot(opened.header.fixed, opened.file_key, new, FAST, os.urandom)
    return opened.with_slots((*opened.header.slots, slot)).encoded() + source.read()


def test_a_new_passphrase_replaces_the_old_and_leaves_the_content_as_it_is() -> None:
    plain = _bytes(6000)
    before = _encrypted(plain, "old")
    after = rewrap(before, "old", "new", parameters=FAST, limits=ANY)
    assert (after[:64], after[HEADER:]) == (before[:64], before[HEADER:])
    assert after[64:HEADER] != before[64:HEADER]
    with pytest.raises(WrongKey):
        _decrypted(after, "old")
    assert _decrypted(after, "new") == plain
    # The same passphrase under another function.
    again = rewrap(after, "new", "new", parameters=KdfParameters(Kdf.SCRYPT, 16, 1, 1), limits=ANY)
    assert _decrypted(again, "new") == plain
    with pytest.raises(InvalidInput, match="weaker"):
        rewrap(again, "new", "new", parameters=FAST, limits=KdfLimits(least_memory_kib=16, least_work_kib=16))


def test_up_to_eight_passphrases_open_a_file_and_one_is_replaced_alone() -> None:
    names = ["old", *(f"number {n}" for n in range(7))]
    data = _encrypted(b"text", "old")
    for name in names[1:]:
        data = _with_passphrase(data, "old", name)
    for name in names:
        assert _decrypted(data, name) == b"text"
    data = rewrap(data, "number 3", "number three", parameters=FAST, limits=ANY)
    with pytest.raises(WrongKey):
        _decrypted(data, "number 3")
    for name in ("old", "number three", "number 6"):
        assert _decrypted(data, name) == b"text"
    with pytest.raises(BackupCorrupt, match="impossible"):
        _decrypted(_with_passphrase(data, "old", "one more"), "old")
    with pytest.raises(InvalidInput, match="already"):
        rewrap(data, "old", "number 6", parameters=FAST, limits=ANY)
    with pytest.raises(WrongKey):
        rewrap(data, "none", "third", parameters=FAST, limits=ANY)


def test_a_slot_taken_away_put_back_or_moved_is_seen() -> None:
    one = _encrypted(b"text", "old")
    two = _with_passphrase(one, "old", "second")
    long = HEADER + 144
    count = (HEADER).to_bytes(4, "big") + b"\0\1\0\0"
    taken = two[:56] + count + two[64 : 64 + 144] + two[long - 64 :]
    moved = two[:64] + two[64 + 144 : 64 + 288] + two[64 : 64 + 144] + two[64 + 288 :]
    put_back = one[:56] + two[56 : 64 + 288] + one[HEADER - 64 :]
    for changed in (_digest_anew(taken), _digest_anew(moved, long), _digest_anew(put_back, long)):
        with pytest.raises(BackupCorrupt, match="header is not"):
            _decrypted(changed, "old")


# -- Small objects -------------------------------------------------------------------------------

KEYS = ObjectKeys.of(bytes(range(32)))


@settings(deadline=None)
@given(st.binary(max_size=2000), st.binary(max_size=50))
def test_objects_come_back_and_never_look_the_same(data: bytes, context: bytes) -> None:
    sealed = seal_object(data, KEYS, context=context)
    assert open_object(sealed, KEYS, context=context) == data
    assert len(sealed) == len(data) + 45
    assert seal_object(data, KEYS, context=context) != sealed


def test_an_object_opens_only_as_what_it_is() -> None:
    sealed = seal_object(b"data", KEYS, context=b"pack")
    wrong = [(sealed[:at] + bytes([byte ^ 1]) + sealed[at + 1 :], KEYS, b"pack") for at, byte in enumerate(sealed)]
    wrong += [(sealed[:at], KEYS, b"pack") for at in range(len(sealed))]
    wrong += [(sealed + b"\0", KEYS, b"pack"), (sealed, KEYS, b"pac"), (sealed, KEYS, b""), (sealed, KEYS, b"pack\0")]
    wrong += [(sealed, ObjectKeys.of(bytes(32)), b"pack")]
    for data, keys, context in wrong:
        with pytest.raises(BackupCorrupt):
            open_object(data, keys, context=context)


def test_names_follow_the_content_and_need_the_key() -> None:
    assert name_object(KEYS, b"a") == name_object(KEYS, b"a")
    names = {name_object(KEYS, b"a"), name_object(KEYS, b"b"), name_object(ObjectKeys.of(bytes(32)), b"a")}
    assert len(names | {hashlib.sha256(b"a").hexdigest()}) == 4
    assert all(len(name) == 64 for name in names)


def test_keys_are_not_shown() -> None:
    assert repr(KEYS) == "ObjectKeys()"
    with pytest.raises(ValueError, match="32 bytes"):
        ObjectKeys.of(b"short")
