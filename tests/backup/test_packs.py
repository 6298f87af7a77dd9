"""Packs and heads: fixed ones that Cortex and a decoder made from formats.md alone read, and their bounds.

A released vector never changes.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.errors import BackupCorrupt, BackupError
from cortex_py.core.security.ciphers import ObjectKeys, seal_object
from cortex_py.core.store.documents.document import Document
from cortex_py.parts.backup.sync.merge import DocumentState, Name
from cortex_py.parts.backup.sync.packs import (
    HeadName,
    PackBuilder,
    PackHead,
    PackRef,
    RetiredPack,
    framed,
    head_names,
    machine_mark,
    open_head,
    pack_path,
    read_pack,
    seal_head,
    seal_pack,
    space_mark,
    unframed,
)
from cortex_py.parts.backup.sync.push import pack_limit, packs_to_rewrite
from cortex_py.parts.backup.vault.vault import padded_size

FOLDER = Path(__file__).parents[1] / "vectors" / "sync"
ROOT_KEY = bytes(range(32))
KEYS = ObjectKeys.of(ROOT_KEY)
Vector = dict[str, Any]


# -- A second decoder, from the document ---------------------------------------------------------


def _hkdf(key: bytes, salt: bytes, info: str) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=salt, info=info.encode("ascii")).derive(key)


def _mac(root: bytes, data: bytes) -> str:
    return hmac.digest(_hkdf(root, b"", "cortex/object/1/naming"), data, "sha256").hex()


def independent(sealed: bytes, root: bytes, context: bytes) -> tuple[bytes, bytes, bytes]:
    """The frame of a sealed object, its text and what follows that."""
    assert sealed[0] == 1
    one = _hkdf(_hkdf(root, b"", "cortex/object/1/sealing"), sealed[1:17], "cortex/object/1/one")
    frame = AESGCM(one).decrypt(sealed[17:29], sealed[29:], sealed[:29] + context)
    form, packed, length, raw = struct.unpack(">BIII", frame[:13])
    assert form == 1
    text = zlib.decompress(frame[13 : 13 + packed])
    assert len(text) == length
    end = 13 + packed + raw
    assert set(frame[end:]) <= {0}
    assert len(frame) == padded_size(end)
    return frame, text, frame[13 + packed : end]


def independent_pack(path: str, sealed: bytes, root: bytes) -> tuple[Any, list[Any]]:
    """What a pack says of itself, and its records: state, document or None, vectors."""
    name = path.rpartition("/")[2]
    assert path == f"cortex-backups/packs/{name[:2]}/{name}"
    frame, text, vectors = independent(sealed, root, b"pack" + name.encode())
    assert _mac(root, frame) == name
    first, *lines = text.split(b"\n")
    records: list[Any] = []
    while lines:
        state = json.loads(lines.pop(0))
        if "gone" in state:
            records.append([state, None, ""])
            continue
        width = state.pop("vectors")
        records.append([state, json.loads(lines.pop(0)), vectors[:width].hex()])
        vectors = vectors[width:]
    assert not vectors
    return json.loads(first), records


def independent_head(path: str, sealed: bytes, root: bytes) -> Any:
    name = path.removeprefix("cortex-backups/")
    _, text, rest = independent(sealed, root, b"head" + name.encode())
    assert not rest
    told = json.loads(text)
    assert name[:12] == _mac(root, b"space:" + told["space"].encode())[:12]
    assert name[12:24] == _mac(root, b"machine:" + told["machine"].encode())[:12]
    return told


# -- Vectors -------------------------------------------------------------------------------------


def _compressed_as_recorded(vector: Vector) -> bool:
    context = b"head" + vector["path"].removeprefix("cortex-backups/").encode()
    if vector["kind"] == "pack":
        context = b"pack" + vector["path"].rpartition("/")[2].encode()
    frame, text, _ = independent(bytes.fromhex(vector["sealed"]), ROOT_KEY, context)
    return frame[13:].startswith(zlib.compress(text, 6))


def _vector(name: str) -> Vector:
    vector: Vector = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return vector


def test_the_document_is_enough_to_read_a_pack() -> None:
    vector = _vector("pack")
    sealed, root = bytes.fromhex(vector["sealed"]), bytes.fromhex(vector["root_key"])
    about, records = independent_pack(vector["path"], sealed, root)
    assert about == {"machine": vector["machine"], "space": vector["space"]}
    assert records == vector["records"]
    with pytest.raises(InvalidTag):
        independent_pack(vector["path"], sealed[:-1] + bytes([sealed[-1] ^ 1]), root)


def test_cortex_writes_and_reads_the_pack() -> None:
    vector = _vector("pack")
    path, sealed = _made_pack(bytes.fromhex(vector["random"]))
    assert independent_pack(path, sealed, ROOT_KEY)[1] == vector["records"]
    # Another build of zlib may compress otherwise, and so give another name.
    if _compressed_as_recorded(vector):
        assert (path, sealed) == (vector["path"], bytes.fromhex(vector["sealed"]))
    name = vector["path"].rpartition("/")[2]
    found = list(
        read_pack(bytes.fromhex(vector["sealed"]), KEYS, name, space=vector["space"], machine=vector["machine"])
    )
    assert [(record.name, record.entry, record.document) for record in found] == RECORDS
    assert [record.document.vectors for record in found if record.document] == [bytes(range(16)), b""]


def test_the_document_is_enough_to_read_a_head() -> None:
    vector = _vector("head")
    root = bytes.fromhex(vector["root_key"])
    assert independent_head(vector["path"], bytes.fromhex(vector["sealed"]), root) == vector["told"]


def test_cortex_writes_and_reads_the_head() -> None:
    vector = _vector("head")
    sealed = bytes.fromhex(vector["sealed"])
    written = seal_head(HEAD, _head_name(), KEYS, io.BytesIO(bytes.fromhex(vector["random"])).read)
    assert independent_head(vector["path"], written, ROOT_KEY) == vector["told"]
    assert written == sealed or not _compressed_as_recorded(vector)
    (name,) = head_names([vector["path"]])
    assert open_head(sealed, name, KEYS) == HEAD


# -- Frames --------------------------------------------------------------------------------------


@given(st.binary(max_size=20_000), st.binary(max_size=9_000))
def test_frames_come_back_and_hide_their_sizes(text: bytes, raw: bytes) -> None:
    frame = framed(text, raw)
    assert unframed(frame) == (text, raw)
    assert len(frame) == padded_size(len(frame))
    assert len(frame) >= 4096


def test_frames_that_lie_are_refused() -> None:
    frame = framed(b"text" * 100, b"raw")
    form, packed, length, raw = struct.unpack_from(">BIII", frame)
    for start in (
        struct.pack(">BIII", form, packed, length - 1, raw),
        struct.pack(">BIII", form, packed, length + 1, raw),
        struct.pack(">BIII", form, packed - 1, length, raw + 1),
        struct.pack(">BIII", form, packed + 1, length, raw),
        struct.pack(">BIII", form, packed, length, raw - 1),
        struct.pack(">BIII", form, packed, length, raw + 5_000),
    ):
        with pytest.raises(BackupCorrupt):
            unframed(start + frame[13:])
    with pytest.raises(BackupCorrupt):
        unframed(frame[:12])
    with pytest.raises(BackupCorrupt):
        unframed(frame + b"\0")
    with pytest.raises(BackupError, match="Update Cortex"):
        unframed(b"\2" + frame[1:])


def test_a_text_that_explodes_is_not_decompressed() -> None:
    bomb = zlib.compress(bytes(50_000_000))
    frame = struct.pack(">BIII", 1, len(bomb), 10, 0) + bomb
    with pytest.raises(BackupCorrupt):
        unframed(frame + bytes(padded_size(len(frame)) - len(frame)))


# -- Packs that were sealed with the right key, but wrongly ----------------------------------------


def _sealed_text(text: bytes, raw: bytes = b"") -> tuple[str, bytes]:
    return seal_pack(framed(text, raw), KEYS, _zeros)


def _zeros(size: int) -> bytes:
    return bytes(size)


_ABOUT = b'{"machine":"m","space":"s"}'
_STATE = b'{"floor":1,"maker":"m","stamp":1,"vectors":0,"versions":{"m":1}}'
_LINE = b'{"data":{},"key":"k","kind":"memory"}'


@each(
    ("text", "raw"),
    [
        (b"", b""),
        (b'{"machine":"other","space":"s"}', b""),
        (_ABOUT + b"\nno json", b""),
        (_ABOUT + b"\n[]", b""),
        (_ABOUT + b"\n" + _STATE, b""),
        (_ABOUT + b"\n" + _STATE + b"\n{}", b""),
        (_ABOUT + b"\n" + _STATE + b"\n" + _LINE.replace(b"memory", b"unheard"), b""),
        (_ABOUT + b"\n" + _STATE + b"\n" + _LINE, b"\0"),
        (_ABOUT + b"\n" + _STATE.replace(b'"vectors":0', b'"vectors":2') + b"\n" + _LINE, b"\0"),
        (_ABOUT + b"\n" + _STATE.replace(b'"vectors":0', b'"vectors":-1') + b"\n" + _LINE, b""),
        (_ABOUT + b"\n" + _STATE.replace(b'"stamp":1', b'"stamp":"1"') + b"\n" + _LINE, b""),
        (_ABOUT + b"\n" + _STATE.replace(b'"maker":"m"', b'"maker":"x"') + b"\n" + _LINE, b""),
        (_ABOUT + b"\n" + _STATE.replace(b'{"m":1}', b'{"m":true}') + b"\n" + _LINE, b""),
        (_ABOUT + b'\n{"gone":["memory"],"floor":1,"maker":"","stamp":1,"versions":{}}', b""),
        (_ABOUT + b'\n{"gone":["memory",1],"floor":1,"maker":"","stamp":1,"versions":{}}', b""),
    ],
)
def test_a_pack_that_is_formed_wrongly_is_refused(text: bytes, raw: bytes) -> None:
    name, sealed = _sealed_text(text, raw)
    with pytest.raises(BackupCorrupt):
        list(read_pack(sealed, KEYS, name, space="s", machine="m"))


def test_the_same_form_done_right_is_read() -> None:
    name, sealed = _sealed_text(_ABOUT + b"\n" + _STATE + b"\n" + _LINE)
    (record,) = read_pack(sealed, KEYS, name, space="s", machine="m")
    assert record.entry == DocumentState({"m": 1}, 1, 1, hashlib.sha256(_LINE).hexdigest(), maker="m")


def test_a_pack_under_another_name_is_refused() -> None:
    plain = framed(_ABOUT)
    name = "0" * 64
    with pytest.raises(BackupCorrupt):
        list(read_pack(seal_object(plain, KEYS, context=b"pack" + name.encode()), KEYS, name, space="s", machine="m"))


def test_two_machines_never_give_one_name_to_a_pack() -> None:
    names = set()
    for space, machine in (("s", "a"), ("s", "b"), ("t", "a")):
        builder = PackBuilder(space, machine)
        builder.add(*RECORDS[0])
        names.add(seal_pack(builder.plain(), KEYS, _zeros)[0])
    assert len(names) == 3


# -- Heads ---------------------------------------------------------------------------------------


def test_heads_are_found_by_name_the_latest_first_and_once() -> None:
    old, new = f"cortex-backups/{'a' * 24}_20260102.enc", f"cortex-backups/{'b' * 24}_20260103.enc"
    others = ["cortex-backups/key.vault", f"cortex-backups/packs/aa/{'a' * 64}", f"{old}.part", "x"]
    assert [name.path for name in head_names([old, *others, new, old])] == [new, old]


@each(
    "change",
    [
        {"machine": "other"},
        {"space": "other"},
        {"packs": [["../../etc/passwd", 1, 1]]},
        {"packs": [["0" * 64, 1]]},
        {"sequence": "one"},
        {"more": 1},
    ],
)
def test_a_head_that_is_formed_wrongly_is_refused(change: dict[str, object]) -> None:
    told = {**_vector("head")["told"], **change}
    name = _head_name()
    sealed = seal_object(
        framed(json.dumps(told).encode()), KEYS, context=b"head" + name.path.removeprefix("cortex-backups/").encode()
    )
    with pytest.raises(BackupCorrupt):
        open_head(sealed, name, KEYS)


# -- What is packed anew -------------------------------------------------------------------------


def _refs(*packs: tuple[str, int, int]) -> list[PackRef]:
    return [PackRef(*pack) for pack in packs]


def test_packs_grow_with_what_is_stored() -> None:
    assert [pack_limit(size) for size in (0, 2**21, 2**25, 2**40)] == [2**16, 2**16, 2**20, 2**21]


def test_what_is_mostly_dead_is_packed_anew_within_bounds() -> None:
    packs = _refs(*((f"{n:02}", 1_000_000, 100) for n in range(100)))
    live = {pack.name: 100 for pack in packs}
    assert packs_to_rewrite(packs, live) == set()
    assert packs_to_rewrite(packs, {**live, "07": 51}) == set()
    assert packs_to_rewrite(packs, {**live, "07": 50, "08": 0}) == {"07", "08"}
    chosen = packs_to_rewrite(packs, dict.fromkeys(live, 40))
    # A 32nd of a hundred megabytes, in packs of which 400 kB live.
    assert len(chosen) == 7
    assert len(packs_to_rewrite(packs, dict.fromkeys(live, 20))) == 100


def test_many_small_packs_become_one() -> None:
    large = _refs(*((f"{n:02}", 1_000_000, 100) for n in range(32)))
    live = {pack.name: 100 for pack in large} | {f"small {n}": 1 for n in range(40)}
    small = _refs(*((f"small {n}", 5_000, 1) for n in range(40)))
    assert packs_to_rewrite([*large, *small[:16]], live) == set()
    assert packs_to_rewrite([*large, *small[:17]], live) == {pack.name for pack in small[:17]}


# -- What the vectors hold -----------------------------------------------------------------------

_FIRST = Document("memory", "ab" * 20, {"content": 'Größe, "zitiert"\nzweite Zeile', "tags": ["x"]}, bytes(range(16)))
_SECOND = Document("entity", "e", {"name": "Anna"})
RECORDS: list[tuple[Name, DocumentState, Document | None]] = [
    (
        Name("memory", _FIRST.key),
        DocumentState({"anvil": 2, "brook": 1}, 1_700, 1_700, _FIRST.digest, maker="anvil"),
        _FIRST,
    ),
    (Name("entity", "e"), DocumentState({"brook": 3}, 5, 9, _SECOND.digest, maker="brook"), _SECOND),
    (Name("saved", "prompt/old"), DocumentState({"anvil": 2}, 1_800, 1_800, None), None),
]
HEAD = PackHead(
    "0123456789ab",
    "anvil",
    7,
    "00ff" * 8,
    1_767_357_296_000_000,
    (PackRef("0a" * 32, 4141, 3), PackRef("f1" * 32, 65_581, 120)),
    (RetiredPack("5c" * 32, 1_767_000_000_000_000),),
)


def _head_name() -> HeadName:
    return HeadName(space_mark(KEYS, HEAD.space), machine_mark(KEYS, HEAD.machine), "20260102")


def _made_pack(draws: bytes) -> tuple[str, bytes]:
    builder = PackBuilder("0123456789ab", "anvil")
    for record in RECORDS:
        builder.add(*record)
    name, sealed = seal_pack(builder.plain(), KEYS, io.BytesIO(draws).read)
    return pack_path(name), sealed
