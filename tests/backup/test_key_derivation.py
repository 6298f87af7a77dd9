"""From a passphrase to a key: known answers, and the bounds on what a header may ask for."""

from __future__ import annotations

import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from cortex_py.core.errors import BackupCorrupt, BackupError, InvalidInput
from cortex_py.parts.backup.vault.header import DEFAULT_PARAMETERS, LIMITS, Kdf, KdfLimits, KdfParameters, derive
from timing import quick

FAST = KdfParameters(Kdf.ARGON2ID, memory_kib=8, passes=1, lanes=1)
SALT = bytes(range(32))


@pytest.mark.parametrize(
    ("parameters", "passphrase", "salt", "key"),
    [
        # `argon2 somesalt -id -v 13 -t 2 -k 256 -p 1`, from the tests of the reference implementation.
        (
            KdfParameters(Kdf.ARGON2ID, 256, 2, 1),
            "password",
            b"somesalt",
            "9dfeb910e80bad0311fee20f9c0e2b12c17987b4cac90c2ef54d5b3021c68bfe",
        ),
        # RFC 7914, section 12, the first 32 bytes: N = 1024, r = 8, p = 16.
        (
            KdfParameters(Kdf.SCRYPT, 1024, 16, 1),
            "password",
            b"NaCl",
            "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162",
        ),
        # RFC 7914, section 12: N = 16384, r = 8, p = 1.
        (
            KdfParameters(Kdf.SCRYPT, 16384, 1, 1),
            "pleaseletmein",
            b"SodiumChloride",
            "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2",
        ),
    ],
    ids=["argon2id", "scrypt, 16 passes", "scrypt, 1 pass"],
)
def test_published_answers(parameters: KdfParameters, passphrase: str, salt: bytes, key: str) -> None:
    assert derive(passphrase, parameters, salt).hex() == key


def test_the_same_characters_give_the_same_key_however_composed() -> None:
    assert derive("Caf\u00e9", FAST, SALT) == derive("Cafe\u0301", FAST, SALT)
    assert derive("Café", FAST, SALT) != derive("Cafe", FAST, SALT)
    assert derive("ﬁ", FAST, SALT) != derive("fi", FAST, SALT)


def test_everything_goes_into_the_key() -> None:
    others = [
        derive("y", FAST, SALT),
        derive("x", FAST, SALT[::-1]),
        derive("x", KdfParameters(Kdf.ARGON2ID, 16, 1, 1), SALT),
        derive("x", KdfParameters(Kdf.ARGON2ID, 8, 2, 1), SALT),
        derive("x", KdfParameters(Kdf.ARGON2ID, 16, 1, 2), SALT),
        derive("x", KdfParameters(Kdf.SCRYPT, 16, 1, 1), SALT),
    ]
    assert len({derive("x", FAST, SALT), *others}) == 7


@each("passphrase", ["", "x" * 4097, "é" * 2049, "a\ud800b"])
def test_a_passphrase_that_cannot_be_one_is_refused_without_telling_it(passphrase: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        derive(passphrase, FAST, SALT)
    assert caught.value.field == "passphrase"
    assert caught.value.__cause__ is None
    assert not passphrase or passphrase not in str(caught.value)


@each(
    "numbers",
    [
        (Kdf.ARGON2ID, 0, 1, 1),
        (Kdf.ARGON2ID, 7, 1, 1),
        (Kdf.ARGON2ID, 15, 1, 2),
        (Kdf.ARGON2ID, 8, 0, 1),
        (Kdf.SCRYPT, 1, 1, 1),
        (Kdf.SCRYPT, 24, 1, 1),
        (Kdf.SCRYPT, 16, 0, 1),
        (Kdf.SCRYPT, 16, 1, 2),
    ],
)
def test_numbers_no_function_takes_are_refused_before_it_is_called(numbers: tuple[Kdf, int, int, int]) -> None:
    with pytest.raises(InvalidInput, match="impossible"):
        derive("x", KdfParameters(*numbers), SALT)


def test_the_default_is_within_the_bounds_in_every_slot() -> None:
    LIMITS.check_written([DEFAULT_PARAMETERS] * 8)
    LIMITS.check_read([DEFAULT_PARAMETERS] * 8)


@each(
    ("parameters", "told"),
    [
        (KdfParameters(memory_kib=19 * 1024 - 1), "weaker"),
        (KdfParameters(memory_kib=19 * 1024, passes=1), "weaker"),
        (KdfParameters(Kdf.SCRYPT, 2**14, 16, 1), "weaker"),
        (KdfParameters(memory_kib=512 * 1024 + 1, passes=1), "costlier"),
        (KdfParameters(memory_kib=2**32 - 1, passes=1), "costlier"),
        (KdfParameters(passes=2**32 - 1), "costlier"),
        (KdfParameters(lanes=17), "costlier"),
        (KdfParameters(Kdf.SCRYPT, 2**31, 1, 1), "costlier"),
        (KdfParameters(Kdf.SCRYPT, 2**16, 2**32 - 1, 1), "costlier"),
        (KdfParameters(passes=0), "impossible"),
    ],
)
def test_a_header_out_of_bounds_is_refused_without_doing_the_work(parameters: KdfParameters, told: str) -> None:
    def check() -> None:
        with pytest.raises(BackupCorrupt, match=told):
            LIMITS.check_read([DEFAULT_PARAMETERS, parameters])
        with pytest.raises(InvalidInput, match=told):
            LIMITS.check_written([parameters])

    quick(check, 0.5)


def test_the_work_of_all_slots_is_bounded_together() -> None:
    half = KdfParameters(memory_kib=512 * 1024, passes=4)
    LIMITS.check_read([half, half])
    with pytest.raises(BackupCorrupt, match="costlier"):
        LIMITS.check_read([half, half, DEFAULT_PARAMETERS])


@settings(deadline=None)
@given(st.sampled_from(Kdf), *[st.integers(0, 2**32 - 1)] * 3)
def test_no_header_within_the_bounds_costs_more_than_they_say(kdf: Kdf, memory: int, passes: int, lanes: int) -> None:
    parameters = KdfParameters(kdf, memory, passes, lanes)
    if LIMITS.fault([parameters]) is None:
        assert parameters.sound
        assert 19 * 1024 <= memory <= 512 * 1024
        assert 38 * 1024 <= memory * passes <= 4 * 1024 * 1024


def test_a_machine_that_cannot_derive_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    for error, told in ((MemoryError(), "64 MiB"), (UnsupportedAlgorithm("none"), "no argon2id")):

        def fail(error: Exception = error, **_: object) -> None:
            raise error

        monkeypatch.setattr("cryptography.hazmat.primitives.kdf.argon2.Argon2id", fail)
        with pytest.raises(BackupError, match=told) as caught:
            derive("x", DEFAULT_PARAMETERS, SALT)
        assert caught.value.remedy


def test_fast_parameters_need_limits_of_their_own() -> None:
    with pytest.raises(InvalidInput, match="weaker"):
        LIMITS.check_written([FAST])
    KdfLimits(least_memory_kib=8, least_work_kib=8).check_written([FAST])
