"""Fixed archives of the format: Cortex writes and reads them, and so does a decoder made from formats.md alone.

A released vector never changes.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

import cortex_py.core.errors as errors
from cases import each
from cortex_py.core.store.documents.document import KINDS
from cortex_py.parts.backup.snapshots.archive import (
    ArchivePart,
    read_manifest,
    read_parts,
    verify_archive,
    write_archive,
)

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "vectors" / "archive"
Vector = dict[str, Any]


def _vectors() -> list[Any]:
    vectors = [json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))]
    return [pytest.param(vector, id=vector["name"]) for vector in vectors]


# -- A second decoder, from the document ---------------------------------------------------------


def _escaped(text: str) -> str:
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return "".join(short.get(char) or (f"\\u{ord(char):04x}" if ord(char) < 32 else char) for char in text)


def _canonical(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return f'"{_escaped(value)}"'
    if isinstance(value, list):
        return f"[{','.join(map(_canonical, value))}]"
    fields = (f'"{_escaped(name)}":{_canonical(value[name])}' for name in sorted(value, key=lambda n: [*map(ord, n)]))
    return f"{{{','.join(fields)}}}"


def _member(data: bytes) -> tuple[bytes, int]:
    """The content of the member at the start of the data, and where the member ends."""
    assert data[:8] == bytes.fromhex("1F8B0800 00000000")
    assert data[8] in (0, 4)
    assert data[9] == 0xFF
    inflater = zlib.decompressobj(-15)
    content = inflater.decompress(data[10:])
    assert inflater.eof
    end = len(data) - len(inflater.unused_data)
    assert int.from_bytes(data[end : end + 4], "little") == zlib.crc32(content)
    assert int.from_bytes(data[end + 4 : end + 8], "little") == len(content) % 2**32
    assert len(data) >= end + 8
    return content, end + 8


def _entry(content: bytes, end: bytes) -> tuple[str, bytes]:
    """The name and the data of the one entry in the content of a member."""
    header = content[:512]
    name = header[:100].rstrip(b"\0").decode("ascii")
    size = int(header[124:135], 8)
    spaced = header[:148] + b" " * 8 + header[156:]
    none = b"0000000\0"
    assert header == b"".join(
        (
            name.encode("ascii").ljust(100, b"\0"),
            b"0000600\0",
            none,
            none,
            b"%011o\0" % size,
            b"00000000000\0",
            b"%06o\0 " % sum(spaced),
            b"0",
            bytes(100),
            b"ustar\x0000",
            bytes(64),
            none,
            none,
            bytes(167),
        )
    )
    data = content[512 : 512 + size]
    assert len(data) == size
    assert content[512 + size :] == bytes(-size % 512) + end
    return name, data


def _check_names(names: list[str]) -> None:
    step = r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_-])?"
    for at, name in enumerate(names):
        assert len(name) <= 100
        form = rf"documents/[0-9]{{6}}\.jsonl|vectors/[0-9]{{6}}\.bin|files(/{step}){{1,8}}"
        assert re.fullmatch(form, name, re.ASCII)
        assert "/000000." not in name or name.startswith("files/")
        folder = name.split("/")[0]
        before = [other for other in names[:at] if other.split("/")[0] == folder]
        assert not before or max(before) < name
        if folder == "vectors":
            assert name.replace("vectors", "documents").replace(".bin", ".jsonl") in names[:at]
        for other in names:
            assert other == name or other.lower() != name.lower()
            assert not other.lower().startswith(name.lower() + "/")


def independent(data: bytes) -> tuple[dict[str, Any], list[tuple[str, bytes]]]:
    """The facts and the parts of an archive; AssertionError, ValueError or zlib.error where anything is wrong."""
    trailer = data[-74:]
    assert trailer[:16] == bytes.fromhex("1F8B0804 00000000 00FF 3400 4358 3000")
    assert int.from_bytes(trailer[60:64], "big") == zlib.crc32(trailer[:60])
    assert trailer[64:] == bytes.fromhex("0300") + bytes(8)
    assert trailer[16:20] == b"\0\1\0\0"
    place = int.from_bytes(trailer[20:28], "big")
    assert hashlib.sha256(data[: len(data) - 74 + 28]).digest() == trailer[28:60]

    content, end = _member(data[place:-74])
    assert place + end == len(data) - 74
    name, text = _entry(content, bytes(1024))
    assert name == "manifest.json"
    manifest = json.loads(text.decode("utf-8"))
    assert _canonical(manifest).encode("utf-8") == text
    assert set(manifest) == {"content_sha256", "facts", "format", "parts", "version"}
    assert (manifest["format"], manifest["version"]) == ("cortex-snapshot", 1)
    parts = manifest["parts"]
    assert hashlib.sha256(_canonical(parts).encode("utf-8")).hexdigest() == manifest["content_sha256"]
    _check_names([part["name"] for part in parts])

    at, held = 0, []
    for part in parts:
        content, end = _member(data[at:place])
        name, found = _entry(content, b"")
        assert part == {"name": name, "sha256": hashlib.sha256(found).hexdigest(), "size": len(found)}
        held.append((name, found))
        at += end
    assert at == place
    return manifest["facts"], held


def documents(held: list[tuple[str, bytes]]) -> list[tuple[dict[str, Any], bytes]]:
    """The documents of an archive, each with its vectors."""
    parts = dict(held)
    found = []
    for name, text in held:
        if not name.startswith("documents/"):
            continue
        assert text == b"" or text.endswith(b"\n")
        lines = text.split(b"\n")[:-1]
        vectors = parts.get(name.replace("documents", "vectors").replace(".jsonl", ".bin"))
        at = 0
        for line in lines:
            document = json.loads(line.decode("utf-8"))
            assert set(document) == {"data", "key", "kind"}
            assert _canonical(document).encode("utf-8") == line
            size = 0 if vectors is None else int.from_bytes(vectors[at : at + 4], "big")
            found.append((document, b"" if vectors is None else vectors[at + 4 : at + 4 + size]))
            at += 4 + size
        assert vectors is None or at == len(vectors)
    return found


# -- Reading and writing the vectors -------------------------------------------------------------


def _held(vector: Vector) -> list[ArchivePart]:
    return [ArchivePart(part["name"], _plain(part), part["compress"]) for part in vector["parts"]]


def _plain(part: Vector) -> bytes:
    """Text, or bytes in hexadecimal, and how often they are repeated."""
    data = bytes.fromhex(part["hex"]) if "hex" in part else part["text"].encode("utf-8")
    return bytes(data) * int(part["repeated"])


@pytest.mark.parametrize("vector", _vectors())
def test_cortex_reads_the_vector(vector: Vector, tmp_path: Path) -> None:
    path = tmp_path / "vector"
    path.write_bytes(bytes.fromhex(vector["file"]))
    assert list(read_parts(path)) == _held(vector)
    manifest = verify_archive(path)
    assert manifest == read_manifest(path)
    assert manifest.facts == vector["facts"]
    assert manifest.content_sha256 == vector["content_sha256"]


@each("vector", _vectors())
def test_the_document_is_enough_to_read_the_vector(vector: Vector) -> None:
    facts, held = independent(bytes.fromhex(vector["file"]))
    assert facts == vector["facts"]
    assert held == [(part.name, part.data) for part in _held(vector)]
    found = [{"document": document, "vectors": packed.hex()} for document, packed in documents(held)]
    assert found == vector["documents"]


@pytest.mark.parametrize("vector", _vectors())
def test_cortex_writes_the_vector(vector: Vector, tmp_path: Path) -> None:
    """All but how a build of zlib compresses."""
    path = tmp_path / "written"
    write_archive(path, _held(vector), vector["facts"])
    right, written = bytes.fromhex(vector["file"]), path.read_bytes()
    assert gzip.decompress(written) == gzip.decompress(right)
    assert independent(written) == independent(right)
    assert _extra_flags(written) == _extra_flags(right)


def _extra_flags(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data) - 74:
        found.append(data[at + 8])
        at += _member(data[at:])[1]
    return found


@pytest.mark.parametrize("vector", _vectors())
def test_both_refuse_what_was_altered(vector: Vector, tmp_path: Path) -> None:
    data = bytes.fromhex(vector["file"])
    path = tmp_path / "altered"
    assert vector["altered"]
    for change in vector["altered"]:
        at = change["offset"]
        altered = data[:at] + bytes.fromhex(change["new"]) + data[at + len(change["new"]) // 2 :]
        altered = altered[: change.get("cut", len(altered))]
        path.write_bytes(altered)
        with pytest.raises(getattr(errors, change["error"])) as caught:
            verify_archive(path)
        assert type(caught.value).__name__ == change["error"]
        with pytest.raises((AssertionError, ValueError, zlib.error)):
            independent(altered)


def test_there_are_vectors() -> None:
    assert len(_vectors()) >= 4


def test_the_document_names_every_kind() -> None:
    text = (ROOT / "docs" / "reference" / "formats.md").read_text("utf-8")
    told = re.search(r"The kind is one of (.*?);", text, re.DOTALL)
    assert told
    assert tuple(re.findall(r"`(\w+)`", told[1])) == KINDS
