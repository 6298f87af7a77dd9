"""Fixed files of the format: Cortex writes and reads them, and so does a decoder made from formats.md alone.

A released vector never changes.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

import cortex_py.core.errors as errors
from cases import each
from cortex_py.core.security.ciphers import ObjectKeys, name_object, open_object, seal_object
from cortex_py.parts.backup.vault.header import LIMITS, Kdf, KdfLimits, KdfParameters, new_slot, read_header
from cortex_py.parts.backup.vault.vault import decrypt, encrypt

FOLDER = Path(__file__).parents[1] / "vectors" / "vault"
Vector = dict[str, Any]
WEAK = KdfLimits(least_memory_kib=8, least_work_kib=8)


def _read(kind: str) -> list[Any]:
    vectors = [json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))]
    return [pytest.param(vector, id=vector["name"]) for vector in vectors if vector["kind"] == kind]


# -- A second decoder, from the document ---------------------------------------------------------


def _hkdf(key: bytes, salt: bytes, info: str, size: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=size, salt=salt, info=info.encode("ascii")).derive(key)


def _number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big")


def _derived(passphrase: str, slot: bytes) -> bytes:
    secret = unicodedata.normalize("NFC", passphrase).encode("utf-8")
    memory, passes, lanes = (_number(slot, at, 4) for at in (4, 8, 12))
    if slot[0] == 1:
        assert memory >= 8 * lanes
        argon = Argon2id(salt=slot[16:48], length=32, iterations=passes, lanes=lanes, memory_cost=memory)
        return argon.derive(secret)
    assert slot[0] == 2
    assert lanes == 1
    assert memory in (2**n for n in range(1, 32))
    return Scrypt(salt=slot[16:48], length=32, n=memory, r=8, p=passes).derive(secret)


def _padded(size: int) -> int:
    if size <= 4096:
        return 4096
    exponent = 0
    while 2 ** (exponent + 1) <= size:
        exponent += 1
    steps = 0
    while 2 ** (steps + 1) <= exponent:
        steps += 1
    unit = 2 ** (exponent - (steps + 1))
    return -(-size // unit) * unit


def independent(data: bytes, passphrase: str) -> bytes:
    """The content of a vault file; an AssertionError or InvalidTag where anything is wrong."""
    fixed = data[:56]
    assert fixed[:16] == bytes.fromhex("89435856 0D0A1A0A 0001 01") + fixed[11:12] + b"\1\0\0\0"
    assert fixed[55] == 0
    length, count = _number(data, 56, 4), _number(data, 60, 2)
    assert length == 128 + 144 * count
    assert 1 <= count <= 8
    header = data[:length]
    assert len(header) == length
    assert hashlib.sha256(header[:-32]).digest() == header[-32:]

    file_key = None
    for number in range(count):
        slot = header[64 + 144 * number : 64 + 144 * (number + 1)]
        both = _hkdf(_derived(passphrase, slot), slot[16:48], "cortex/vault/1/slot", 64)
        if both[32:] == slot[64:96]:
            file_key = AESGCM(both[:32]).decrypt(slot[48:60], slot[96:], fixed + slot[:96])
            break
    assert file_key is not None, "wrong passphrase"
    file_id, prefix = fixed[16:48], fixed[48:55]
    table_key = _hkdf(file_key, file_id, "cortex/vault/1/header", 32)
    assert hmac.digest(table_key, header[:-64], "sha256") == header[-64:-32]

    cipher = AESGCM(_hkdf(file_key, file_id, "cortex/vault/1/content", 32))
    binding = hashlib.sha256(fixed).digest()
    width = 2 ** fixed[11] + 16
    chunks = [data[at : at + width] for at in range(length, len(data), width)]
    content, padded, ended = b"", 0, False
    for number, chunk in enumerate(chunks):
        place = number.to_bytes(4, "big") + (b"\1" if number == len(chunks) - 1 else b"\0")
        plain = cipher.decrypt(prefix + place, chunk, binding + place)
        held, piece = _number(plain, 0, 4), plain[4:]
        assert piece
        assert held <= len(piece)
        assert not (ended and held)
        assert set(piece[held:]) <= {0}
        ended = held < len(piece)
        content += piece[:held]
        padded += len(piece)
    assert padded == _padded(len(content))
    return content


# -- Reading and writing the vectors -------------------------------------------------------------


def _file(vector: Vector) -> bytes:
    return bytes.fromhex(vector["header"]) + bytes.fromhex(vector["chunks"])


def _limits(vector: Vector) -> KdfLimits:
    return WEAK if vector["weak_parameters"] else LIMITS


def _plain(vector: Vector) -> bytes:
    """The content is told as a text and how often it is repeated."""
    return vector["plain"].encode("utf-8") * vector["repeated"]


@each("vector", _read("vault"))
def test_cortex_reads_the_vector_with_each_passphrase(vector: Vector) -> None:
    for slot in vector["slots"]:
        target = io.BytesIO()
        decrypt(io.BytesIO(_file(vector)), target, slot["passphrase"], limits=_limits(vector))
        assert target.getvalue() == _plain(vector)


@each("vector", _read("vault"))
def test_the_document_is_enough_to_read_the_vector(vector: Vector) -> None:
    for slot in vector["slots"]:
        assert independent(_file(vector), slot["passphrase"]) == _plain(vector)
    with pytest.raises(AssertionError, match="wrong passphrase"):
        independent(_file(vector), "not it")


@each("vector", _read("vault"))
def test_cortex_writes_the_vector(vector: Vector) -> None:
    assert _written(vector).hex() == vector["header"] + vector["chunks"]


@each("vector", _read("vault"))
def test_both_refuse_what_was_altered(vector: Vector) -> None:
    data = _file(vector)
    passphrase = vector["slots"][0]["passphrase"]
    for change in vector["altered"]:
        at = change["offset"]
        altered = data[:at] + bytes.fromhex(change["new"]) + data[at + len(change["new"]) // 2 :]
        altered = altered[: change.get("cut", len(altered))]
        with pytest.raises(getattr(errors, change["error"])) as caught:
            decrypt(io.BytesIO(altered), io.BytesIO(), passphrase, limits=_limits(vector))
        assert type(caught.value).__name__ == change["error"]
        with pytest.raises((AssertionError, InvalidTag)):
            independent(altered, passphrase)


@pytest.mark.parametrize("vector", _read("object"))
def test_sealed_objects(vector: Vector) -> None:
    root, context, data = (bytes.fromhex(vector[name]) for name in ("root_key", "context", "data"))
    keys, sealed = ObjectKeys.of(root), bytes.fromhex(vector["sealed"])
    draws = io.BytesIO(bytes.fromhex(vector["random"]))
    assert seal_object(data, keys, context=context, random=draws.read) == sealed
    assert open_object(sealed, keys, context=context) == data
    assert name_object(keys, data) == vector["content_name"]

    sealing = _hkdf(root, b"", "cortex/object/1/sealing", 32)
    one = AESGCM(_hkdf(sealing, sealed[1:17], "cortex/object/1/one", 32))
    assert sealed[0] == 1
    assert one.decrypt(sealed[17:29], sealed[29:], sealed[:29] + context) == data
    assert hmac.digest(_hkdf(root, b"", "cortex/object/1/naming", 32), data, "sha256").hex() == vector["content_name"]


def test_there_are_vectors() -> None:
    assert len(_read("vault")) >= 5
    assert len(_read("object")) >= 1


def _written(vector: Vector) -> bytes:
    """The file that Cortex writes when it is given the vector's random bytes."""
    draw = io.BytesIO(bytes.fromhex(vector["random"])).read
    first, *others = vector["slots"]
    target = io.BytesIO()
    limits, content, bits = _limits(vector), io.BytesIO(_plain(vector)), vector["chunk_bits"]
    encrypt(content, target, first["passphrase"], parameters=_cost(first), limits=limits, chunk_bits=bits, random=draw)
    data = target.getvalue()
    for slot in others:
        source = io.BytesIO(data)
        opened = read_header(source, limits).opened(first["passphrase"])
        more = new_slot(opened.header.fixed, opened.file_key, slot["passphrase"], _cost(slot), draw)
        data = opened.with_slots((*opened.header.slots, more)).encoded() + source.read()
    assert not draw(1), "all random bytes are used"
    return data


def _cost(slot: Vector) -> KdfParameters:
    return KdfParameters(Kdf[slot["function"].upper()], slot["memory_kib"], slot["passes"], slot["lanes"])
