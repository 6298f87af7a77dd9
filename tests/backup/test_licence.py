"""Licences: what was issued is read back, and nothing else is: no other bit, spelling, key or time."""

from __future__ import annotations

import base64
import json
import os
import stat
import string
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization as forms
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.errors import InvalidInput, LicenceInvalid, StorageError
from cortex_py.team.licence.licence import (
    TIERS,
    TOLERANCE,
    Licence,
    check_time,
    issue,
    new_keypair,
    read,
    read_private_key,
    read_public_key,
    unseal,
    write_keypair,
)

from helpers import FakeClock

KEYS = new_keypair()
CLOCK = FakeClock()
NOW = CLOCK.now()
YEAR = timedelta(days=365)
TOKEN = issue(
    KEYS.private,
    holder="Acme Gesellschaft für Prüfung",
    tier="pro",
    expires_at=NOW + YEAR,
    features=["sync_to_cloud", "get_context_graph_info"],
    id="a1",
    clock=CLOCK,
)
ALPHABET = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
VALUES: dict[str, Any] = {
    "expires_at": "2027-01-02T12:34:56Z",
    "features": [],
    "holder": "Acme",
    "id": "a1",
    "issued_at": "2026-01-02T12:34:56Z",
    "tier": "pro",
}
CANONICAL = json.dumps(VALUES, sort_keys=True, separators=(",", ":"))


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _signed(payload: str | bytes, version: str = "cortex1") -> str:
    """A text with a true signature over whatever payload."""
    body = f"{version}.{_encoded(payload.encode() if isinstance(payload, str) else payload)}"
    key: Any = load_pem_private_key(KEYS.private, None)
    return f"{body}.{_encoded(key.sign(body.encode()))}"


def _refused(token: str, public: bytes = KEYS.public, clock: FakeClock = CLOCK) -> str:
    with pytest.raises(LicenceInvalid) as caught:
        read(token, public, clock=clock)
    assert len(token) < 8 or token not in str(caught.value)
    return str(caught.value)


# -- what is issued ------------------------------------------------------------------------------


def test_what_was_issued_is_read_back() -> None:
    assert read(TOKEN, KEYS.public, clock=CLOCK) == Licence(
        id="a1",
        holder="Acme Gesellschaft für Prüfung",
        tier="pro",
        issued_at=NOW,
        expires_at=NOW + YEAR,
        features=("get_context_graph_info", "sync_to_cloud"),
    )


@given(
    holder=st.text(min_size=1, max_size=200).filter(lambda text: text.isprintable() and text.strip()),
    tier=st.sampled_from(TIERS),
    seconds=st.none() | st.integers(1, 10**10),
    features=st.sets(
        st.text(string.ascii_lowercase + "._", min_size=1, max_size=30).filter(lambda name: name[0].isalpha())
    ),
)
def test_any_licence_is_read_back_and_has_one_text(
    holder: str, tier: Any, seconds: int | None, features: set[str]
) -> None:
    end = None if seconds is None else NOW + timedelta(seconds=seconds)
    named: dict[str, Any] = {"holder": holder, "tier": tier, "expires_at": end, "id": "x", "clock": CLOCK}
    token = issue(KEYS.private, features=features, **named)
    assert token == issue(KEYS.private, features=sorted(features, reverse=True), **named)
    assert token.isascii()
    found = read(token, KEYS.public, clock=CLOCK)
    assert (found.holder, found.tier, found.expires_at) == (holder.strip(), tier, end)
    assert set(found.features) == features


def test_every_licence_has_an_id_of_its_own() -> None:
    ids = {unseal(issue(KEYS.private, holder="A", tier="free"), KEYS.public).id for _ in range(5)}
    assert len(ids) == 5


def test_moments_are_whole_seconds_of_utc() -> None:
    end = datetime(2027, 5, 1, 2, 30, 0, 999_999, tzinfo=timezone(timedelta(hours=2)))
    token = issue(KEYS.private, holder="A", tier="pro", expires_at=end, clock=CLOCK)
    assert read(token, KEYS.public, clock=CLOCK).expires_at == datetime(2027, 5, 1, 0, 30, tzinfo=UTC)


@each(
    ("changes", "field"),
    [
        ({"holder": " \n"}, "holder"),
        ({"holder": "a\nb"}, "holder"),
        ({"holder": "\ud800"}, "holder"),
        ({"holder": "x" * 201}, "holder"),
        ({"tier": "gold"}, "tier"),
        ({"expires_at": NOW}, "expires_at"),
        ({"expires_at": NOW - YEAR}, "expires_at"),
        ({"features": ["two words"]}, "features"),
        ({"features": [f"tool{n}" for n in range(65)]}, "features"),
        ({"id": "../x"}, "id"),
    ],
)
def test_what_could_not_be_read_is_not_issued(changes: dict[str, Any], field: str) -> None:
    values: dict[str, Any] = {"holder": "A", "tier": "pro", "clock": CLOCK, **changes}
    with pytest.raises(InvalidInput) as caught:
        issue(KEYS.private, **values)
    assert caught.value.field == field
    assert not isinstance(caught.value, LicenceInvalid)


# -- what is refused -----------------------------------------------------------------------------


def test_every_bit_counts() -> None:
    data = TOKEN.encode()
    for place in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[place] ^= 1 << bit
            with pytest.raises(LicenceInvalid):
                unseal(flipped.decode("latin-1"), KEYS.public)


@given(st.data())
def test_any_other_text_is_refused(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(TOKEN)))
    end = data.draw(st.integers(start, min(len(TOKEN), start + 6)))
    other = data.draw(st.text(ALPHABET + ".= \n\0é", max_size=6))
    changed = TOKEN[:start] + other + TOKEN[end:]
    if changed != TOKEN:
        _refused(changed)


@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda data: f"cortex1.{_encoded(data)}.{'A' * 86}"))
def test_any_text_at_all_is_refused(text: str) -> None:
    _refused(text)


def test_the_spare_bits_of_the_last_digit_have_one_value() -> None:
    last = ALPHABET.index(TOKEN[-1])
    assert last % 16 == 0
    for more in range(1, 16):
        other = TOKEN[:-1] + ALPHABET[last + more]
        assert base64.urlsafe_b64decode(other.split(".")[2] + "==") == base64.urlsafe_b64decode(
            TOKEN.split(".")[2] + "=="
        )
        assert "canonical form" in _refused(other)


@each(
    "form",
    [" {}", "{}\n", "{}==", "{}.", "{0}.{0}", "{}.e30", "", ".", "..", "cortex1..", "cortex1.e30.", "x" * 20_000],
)
def test_another_spelling_is_refused(form: str) -> None:
    _refused(form.format(TOKEN))


def test_letters_keep_their_case() -> None:
    _refused(TOKEN.upper())
    _refused(TOKEN.replace("cortex1", "CORTEX1"))


def test_a_later_form_is_told_as_such() -> None:
    assert "does not know" in _refused(_signed(CANONICAL, "cortex2"))
    assert "does not know" in _refused(TOKEN.replace("cortex1", "cortex10"))


def test_another_key_is_refused() -> None:
    assert "another key" in _refused(TOKEN, new_keypair().public)


def test_parts_of_two_licences_do_not_fit_together() -> None:
    other = issue(KEYS.private, holder="Acme", tier="enterprise", clock=CLOCK)
    mixed = ".".join([*other.split(".")[:2], TOKEN.split(".")[2]])
    assert "another key" in _refused(mixed)


@each(
    "payload",
    [
        "",
        "null",
        "[]",
        "{}",
        CANONICAL + " ",
        CANONICAL + "{}",
        " " + CANONICAL,
        CANONICAL.replace(",", ", "),
        CANONICAL.replace("Acme", "\\u0041cme"),
        CANONICAL.replace('"tier":"pro"', '"tier":"free","tier":"pro"'),
        CANONICAL.replace('"tier":"pro"', '"tier":"pro","more":1'),
        CANONICAL.replace('"features":[],', ""),
        json.dumps(dict(reversed(VALUES.items())), separators=(",", ":")),
        CANONICAL.replace("Z", "+00:00"),
        CANONICAL.replace("12:34:56Z", "12:34:56.000Z"),
        CANONICAL.replace("2027-01-02T12:34:56Z", "2027-01-02"),
        CANONICAL.replace("2027-01-02T12:34:56Z", "soon"),
        CANONICAL.replace('"2027-01-02T12:34:56Z"', "1798893296"),
        CANONICAL.replace('"pro"', '"gold"'),
        CANONICAL.replace('"pro"', "null"),
        CANONICAL.replace('"Acme"', "7"),
        CANONICAL.replace("Acme", "\\n"),
        CANONICAL.replace("[]", '["b","a"]'),
        CANONICAL.replace("[]", '["a","a"]'),
        CANONICAL.replace("[]", "[1]"),
        CANONICAL.replace("[]", '"a"'),
        CANONICAL.replace("[]", "[" * 5000 + "]" * 5000),
        CANONICAL.replace("2027", "2025"),
        CANONICAL.replace("Acme", "Prüfer"),
        b"\xff\xfe",
    ],
    ids=range(30),
)
def test_a_signed_content_in_another_spelling_is_refused(payload: str | bytes) -> None:
    assert read(_signed(CANONICAL), KEYS.public, clock=CLOCK).holder == "Acme"
    _refused(_signed(payload))


# -- time ----------------------------------------------------------------------------------------


def test_the_end_is_exact_and_told() -> None:
    clock = FakeClock()
    clock.moment = NOW + YEAR - timedelta(microseconds=1)
    assert read(TOKEN, KEYS.public, clock=clock).tier == "pro"
    clock.advance(microseconds=1)
    assert "a1 expired at 2027-01-02T12:34:56Z" in _refused(TOKEN, clock=clock)
    assert unseal(TOKEN, KEYS.public).holder.startswith("Acme")


def test_a_clock_may_be_a_little_behind() -> None:
    clock = FakeClock()
    clock.moment = NOW - TOLERANCE
    assert read(TOKEN, KEYS.public, clock=clock).tier == "pro"
    clock.advance(seconds=-1)
    assert "not valid before 2026-01-02T12:34:56Z" in _refused(TOKEN, clock=clock)


def test_without_an_end_it_lasts() -> None:
    clock = FakeClock()
    clock.advance(days=365 * 500)
    check_time(replace(unseal(TOKEN, KEYS.public), expires_at=None), clock)


# -- keys ----------------------------------------------------------------------------------------


def test_key_files_are_their_owners_alone_and_never_replaced(tmp_path: Path) -> None:
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    write_keypair(KEYS, private, public)
    assert (read_private_key(private), read_public_key(public)) == (KEYS.private, KEYS.public)
    if os.name == "posix":
        assert {stat.S_IMODE(path.stat().st_mode) for path in (private, public)} == {0o600}
    with pytest.raises(InvalidInput, match="exists already"):
        write_keypair(new_keypair(), private, tmp_path / "other.pem")
    assert private.read_bytes() == KEYS.private
    assert not (tmp_path / "other.pem").exists()
    with pytest.raises(InvalidInput, match="exists already"):
        write_keypair(new_keypair(), tmp_path / "new.pem", public)
    assert not (tmp_path / "new.pem").exists()
    with pytest.raises(InvalidInput, match="no folder"):
        write_keypair(KEYS, tmp_path / "no" / "private.pem", tmp_path / "no" / "public.pem")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs permissions that hold")
def test_a_folder_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError):
        write_keypair(KEYS, tmp_path / "private.pem", tmp_path / "public.pem")


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_a_private_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "private.pem"
    path.write_bytes(KEYS.private)
    path.chmod(0o640)
    with pytest.raises(InvalidInput, match="chmod 600"):
        read_private_key(path)


def test_the_private_key_is_not_shown() -> None:
    assert KEYS.private.decode() not in repr(KEYS)
    assert "PRIVATE" not in repr(KEYS)


def test_what_is_no_key_is_refused(tmp_path: Path) -> None:
    curve = generate_private_key(SECP256R1())
    other = curve.public_key().public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo)
    for data in (b"", b"nothing", KEYS.private, other, KEYS.public[:60]):
        with pytest.raises(LicenceInvalid, match="public Ed25519"):
            unseal(TOKEN, data)
    key: Any = load_pem_private_key(KEYS.private, None)
    locked = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.BestAvailableEncryption(b"word"))
    for data in (b"", KEYS.public, locked):
        with pytest.raises(InvalidInput, match="private Ed25519"):
            issue(data, holder="A", tier="pro")
    for path in (tmp_path / "nowhere.pem", tmp_path):
        with pytest.raises(LicenceInvalid, match="cannot be read"):
            read_public_key(path)
