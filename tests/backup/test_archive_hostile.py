"""Archives by somebody who makes every digest anew: what no version of Cortex writes is refused, in little memory."""

from __future__ import annotations

import hashlib
import json
import random
import struct
import tarfile
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex_py.core.errors import BackupCorrupt, BackupError
from cortex_py.parts.backup.snapshots.archive import (
    ArchiveLimits,
    ArchivePart,
    read_manifest,
    read_parts,
    verify_archive,
    write_archive,
)

DOCUMENTS = "documents/000001.jsonl"
VECTORS = "vectors/000001.bin"
GZIP = bytes.fromhex("1f8b08000000000000ff")
MIB = 1024 * 1024


# -- Making archives by hand ---------------------------------------------------------------------


def _put(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def _summed(header: bytes) -> bytes:
    """A tar header with its checksum made anew."""
    spaced = _put(header, 148, b" " * 8)
    return _put(header, 148, b"%06o\0 " % sum(spaced))


def header(name: str, size: int, kind: bytes = b"0", **fields: Any) -> bytes:
    """A header from Python's tarfile, in the form the document asks for but for what is changed."""
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.type = size, 0o600, kind
    for key, value in fields.items():
        setattr(info, key, value)
    made = info.tobuf(tarfile.USTAR_FORMAT, "utf-8")
    return _summed(_put(made, 329, b"0000000\x000000000\0"))


def entry(name: str, data: bytes, *, kind: bytes = b"0", **fields: Any) -> bytes:
    return header(name, len(data), kind, **fields) + data + bytes(-len(data) % 512)


def member(content: bytes, *, start: bytes = GZIP, level: int = 6, check: int | None = None, size: int = -1) -> bytes:
    deflater = zlib.compressobj(level, zlib.DEFLATED, -15)
    end = struct.pack("<II", zlib.crc32(content) if check is None else check, len(content) if size < 0 else size)
    return start + deflater.compress(content) + deflater.flush() + end


def trailer(before: bytes, place: int, *, version: int = 1, zero: int = 0, digest: bytes | None = None) -> bytes:
    start = bytes.fromhex("1f8b080400000000 00ff 3400 4358 3000") + struct.pack(">HHQ", version, zero, place)
    start += hashlib.sha256(before + start).digest() if digest is None else digest
    return start + struct.pack(">I", zlib.crc32(start)) + bytes.fromhex("0300") + bytes(8)


def canonical(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode("utf-8")


def listed(name: str, data: bytes) -> dict[str, Any]:
    return {"name": name, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


@dataclass
class Made:
    """An archive in its pieces; what is not given is right."""

    held: list[tuple[str, bytes]] = field(default_factory=lambda: [(DOCUMENTS, b"{}\n"), (VECTORS, b"\0\0\0\0")])
    members: list[bytes] | None = None
    parts: list[Any] | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    manifest: bytes | None = None
    manifest_member: bytes | None = None
    between: bytes = b""
    place: int | None = None
    trailer: dict[str, Any] = field(default_factory=dict)

    def text(self) -> bytes:
        if self.manifest is not None:
            return self.manifest
        parts = [listed(*each) for each in self.held] if self.parts is None else self.parts
        right = {"facts": {}, "format": "cortex-snapshot", "parts": parts, "version": 1}
        right["content_sha256"] = hashlib.sha256(canonical(parts)).hexdigest()
        return canonical(right | self.fields)

    def file(self) -> bytes:
        members = [member(entry(*each)) for each in self.held] if self.members is None else self.members
        body = b"".join(members)
        place = len(body) if self.place is None else self.place
        last = self.manifest_member
        if last is None:
            last = member(entry("manifest.json", self.text()) + bytes(1024))
        body += last + self.between
        return body + trailer(body, place, **self.trailer)


def _errors(path: Path, data: bytes, limits: ArchiveLimits) -> list[BackupError]:
    """What each way of reading says; a way that ends without an error is left out."""
    path.write_bytes(data)
    told = []
    reading: list[Callable[[], object]] = [
        lambda: verify_archive(path, limits),
        lambda: list(read_parts(path, limits)),
        lambda: read_manifest(path, limits),
    ]
    for read in reading:
        try:
            read()
        except BackupError as error:
            told.append(error)
    return told


def refused(
    path: Path, made: Made | bytes, told: str, *, cheap: bool = False, limits: ArchiveLimits | None = None
) -> None:
    """The archive is refused with these words; also by the cheap reading where the end of the file shows it."""
    errors = _errors(path, made.file() if isinstance(made, Made) else made, limits or ArchiveLimits())
    assert len(errors) == (3 if cheap else 2), errors
    for error in errors:
        assert isinstance(error, BackupCorrupt)
        assert told in str(error)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made.tar.gz"


def test_an_archive_made_by_hand_as_the_document_says_is_read(path: Path) -> None:
    made = Made()
    path.write_bytes(made.file())
    assert [(part.name, part.data) for part in read_parts(path)] == made.held
    assert verify_archive(path) == read_manifest(path)


# -- Tar entries ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (tarfile.LNKTYPE, "a link"),
        (tarfile.SYMTYPE, "a link"),
        (tarfile.CHRTYPE, "a device"),
        (tarfile.BLKTYPE, "a device"),
        (tarfile.DIRTYPE, "a folder"),
        (tarfile.FIFOTYPE, "a pipe"),
        (tarfile.XHDTYPE, "a PAX extension"),
        (tarfile.XGLTYPE, "a PAX extension"),
        (tarfile.GNUTYPE_LONGNAME, "a GNU extension"),
        (tarfile.GNUTYPE_LONGLINK, "a GNU extension"),
        (tarfile.GNUTYPE_SPARSE, "a GNU extension"),
        (tarfile.CONTTYPE, "unknown kind"),
        (tarfile.AREGTYPE, "unknown kind"),
        (b"\xff", "unknown kind"),
    ],
)
def test_only_regular_files_are_read(path: Path, kind: bytes, told: str) -> None:
    link = "/etc/passwd" if kind in (tarfile.LNKTYPE, tarfile.SYMTYPE) else ""
    good = member(entry(DOCUMENTS, b"{}\n"))
    refused(path, Made(members=[good, member(entry(VECTORS, b"\0\0\0\0", kind=kind, linkname=link))]), told)
    # Also in front of a regular one, where a lenient reader applies it.
    before = entry(VECTORS, b"28 path=../../elsewhere.txt\n", kind=kind, linkname=link)
    refused(path, Made(members=[good, member(before + entry(VECTORS, b"\0\0\0\0"))]), told)
    refused(path, Made(members=[good, member(before), member(entry(VECTORS, b"\0\0\0\0"))]), told)
    text = Made().text()
    refused(path, Made(manifest_member=member(entry("manifest.json", text, kind=kind))), told, cheap=True)


def test_extensions_as_python_writes_them_are_refused(path: Path) -> None:
    info = tarfile.TarInfo("files/" + "long/" * 30 + "name")
    for form, told in ((tarfile.PAX_FORMAT, "PAX"), (tarfile.GNU_FORMAT, "GNU")):
        made = info.tobuf(form)
        assert len(made) > 512
        refused(path, Made(members=[member(made)]), told)


HEADER_CHANGES: dict[str, tuple[bytes, str]] = {
    "mode": (header(DOCUMENTS, 3, mode=0o4755), "no version of Cortex"),
    "user": (header(DOCUMENTS, 3, uid=1000), "no version of Cortex"),
    "group": (header(DOCUMENTS, 3, gid=1), "no version of Cortex"),
    "time": (header(DOCUMENTS, 3, mtime=1), "no version of Cortex"),
    "user name": (header(DOCUMENTS, 3, uname="root"), "no version of Cortex"),
    "group name": (header(DOCUMENTS, 3, gname="root"), "no version of Cortex"),
    "link name": (header(DOCUMENTS, 3, linkname="/etc/passwd"), "no version of Cortex"),
    "device": (_summed(_put(header(DOCUMENTS, 3), 329, b"0000001")), "no version of Cortex"),
    "prefix": (_summed(_put(header(DOCUMENTS, 3), 345, b"../..")), "no version of Cortex"),
    "rest": (_summed(_put(header(DOCUMENTS, 3), 511, b"\1")), "no version of Cortex"),
    "behind the name": (_summed(_put(header(DOCUMENTS, 3), 50, b"x")), "no version of Cortex"),
    "name not ASCII": (_summed(_put(header(DOCUMENTS, 3), 0, b"\xff")), "no version of Cortex"),
    "size in spaces": (_summed(_put(header(DOCUMENTS, 3), 124, b"          3\0")), "no version of Cortex"),
    "size in base 256": (_summed(_put(header(DOCUMENTS, 3), 124, b"\x80" + bytes(10) + b"\3")), "no version of Cortex"),
    "negative size": (_summed(_put(header(DOCUMENTS, 3), 124, b"-0000000003\0")), "no version of Cortex"),
    "size with an eight": (_summed(_put(header(DOCUMENTS, 3), 124, b"00000000008\0")), "no version of Cortex"),
    "size of 12 digits": (_summed(_put(header(DOCUMENTS, 3), 124, b"000000000003")), "no version of Cortex"),
    "GNU magic": (_summed(_put(header(DOCUMENTS, 3), 257, b"ustar  \0")), "not in the ustar format"),
    "no magic": (_summed(_put(header(DOCUMENTS, 3), 257, bytes(8))), "not in the ustar format"),
    "checksum": (_put(header(DOCUMENTS, 3), 148, b"000000\0 "), "checksum of a tar entry"),
    "checksum spelled otherwise": (
        _put(header(DOCUMENTS, 3), 148, header(DOCUMENTS, 3)[148:154] + b" \0"),
        "checksum of a tar entry",
    ),
    "no header": (bytes(512), "an entry of the tar file is missing"),
    "another name": (header("documents/000002.jsonl", 3), "which its manifest lists"),
    "a name from outside": (header("../../etc/passwd", 3), "which its manifest lists"),
    "another size": (header(DOCUMENTS, 4), "another size"),
}


@pytest.mark.parametrize("what", HEADER_CHANGES)
def test_a_tar_header_has_one_form(path: Path, what: str) -> None:
    changed, told = HEADER_CHANGES[what]
    refused(path, Made([(DOCUMENTS, b"{}\n")], members=[member(changed + b"{}\n" + bytes(509))]), told)


@settings(deadline=None)
@given(st.integers(0, 511), st.integers(1, 255))
def test_no_byte_of_a_tar_header_can_be_another(tmp_path_factory: pytest.TempPathFactory, at: int, change: int) -> None:
    path = tmp_path_factory.mktemp("tar") / "made"
    right = header(DOCUMENTS, 3)
    changed = _put(right, at, bytes([right[at] ^ change]))
    for block in (changed, _summed(changed)):
        if block == right:
            continue
        made = Made([(DOCUMENTS, b"{}\n")], members=[member(block + b"{}\n" + bytes(509))])
        assert len(_errors(path, made.file(), ArchiveLimits())) == 2


def test_what_fills_a_block_is_zero(path: Path) -> None:
    made = Made([(DOCUMENTS, b"{}\n")], members=[member(header(DOCUMENTS, 3) + b"{}\n" + bytes(508) + b"x")])
    refused(path, made, "not filled with zeros")


# -- Names and order -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/etc/passwd",
        "../x",
        "files/../x",
        "files/..",
        "files/.",
        "files/.hidden",
        "files//x",
        "files/x/",
        "files",
        "files/",
        "./files/x",
        "files/-x",
        "files/x.",
        "files/a b",
        "files/a\\b",
        "files/a:b",
        "files/ä",
        "files/a\n",
        "files/a\0b",
        "files/" + "a" * 95,
        "files" + "/a" * 9,
        "Files/x",
        "other/x",
        "documents/1.jsonl",
        "documents/000000.jsonl",
        "documents/0000001.jsonl",
        "documents/٠٠٠٠٠١.jsonl",
        "documents/000001.json",
        "documents/000001.jsonl\n",
        "vectors/000001.jsonl",
        "manifest.json",
    ],
)
def test_names_that_may_not_be(path: Path, name: str) -> None:
    try:
        members = [member(entry(name, b""))]
    except ValueError:
        # Too long for tarfile; the manifest is read first in any case.
        members = []
    refused(path, Made([(name, b"")], members=members), "is not a valid part name", cheap=True)


@pytest.mark.parametrize("name", ["files/" + "a" * 94, "files" + "/a" * 8, "files/A_1-b.c/9", "files/_", "files/a..b"])
def test_names_that_may_be(path: Path, name: str) -> None:
    path.write_bytes(Made([(name, b"x")]).file())
    assert [part.name for part in read_parts(path)] == [name]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ([DOCUMENTS, DOCUMENTS], "twice or out of order"),
        (["documents/000002.jsonl", DOCUMENTS], "twice or out of order"),
        (["files/b", "files/a"], "twice or out of order"),
        ([DOCUMENTS, VECTORS, VECTORS], "twice or out of order"),
        ([VECTORS], "before its documents"),
        ([VECTORS, DOCUMENTS], "before its documents"),
        ([DOCUMENTS, "vectors/000002.bin"], "before its documents"),
        (["files/A", "files/a"], "collides with another name"),
        (["files/a", "files/a-b", "files/a/b"], "collides with another name"),
        (["files/A/b", "files/a"], "collides with another name"),
        (["files/A", "files/a/b"], "collides with another name"),
    ],
)
def test_names_out_of_their_order(path: Path, names: list[str], told: str) -> None:
    refused(path, Made([(name, b"") for name in names]), told, cheap=True)


@pytest.mark.parametrize(
    "names",
    [
        [DOCUMENTS, VECTORS, "documents/000002.jsonl", "vectors/000002.bin", "files/a"],
        [DOCUMENTS, "documents/000002.jsonl", VECTORS, "vectors/000002.bin"],
        ["files/a", DOCUMENTS, "files/a.b", "documents/000003.jsonl", "files/b/A", "files/b/c"],
    ],
)
def test_folders_may_take_turns(path: Path, names: list[str]) -> None:
    path.write_bytes(Made([(name, b"") for name in names]).file())
    assert [part.name for part in verify_archive(path).parts] == names


# -- Parts and manifest --------------------------------------------------------------------------


def test_the_manifest_lists_what_is_there(path: Path) -> None:
    one, two = (member(entry(*each)) for each in Made().held)
    refused(path, Made(members=[one]), f"{VECTORS} is missing")
    refused(path, Made(members=[]), "exceeds a limit", cheap=True)
    refused(path, Made(members=[one, two, member(entry("files/more", b""))]), "more than its manifest lists")
    refused(path, Made(members=[one, two, b"\0"]), "more than its manifest lists")
    refused(path, Made(members=[two, one]), "which its manifest lists")
    refused(path, Made(members=[one, one, two]), "which its manifest lists")
    other = Made([(DOCUMENTS, b"{ }"), Made().held[1]])
    refused(path, Made(members=[member(entry(*each)) for each in other.held]), "is not what was written")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"{}",
        b"[]",
        b"{",
        b"\xff",
        b"\xef\xbb\xbf" + Made().text(),
        Made().text() + b"\n",
        b" " + Made().text(),
        Made().text().replace(b'"facts":{}', b'"facts":{"a":1,"a":1}'),
        Made().text().replace(b'"facts":{}', b'"facts":{"b":1,"a":1}'),
        Made().text().replace(b'"facts":{}', b'"facts":{"a":"\\u0041"}'),
        Made().text().replace(b'"facts":{}', b'"facts":{"a":"\\ud800"}'),
        Made().text().replace(b'"facts":{}', b'"facts":{"a":"\xed\xa0\x80"}'),
        Made().text().replace(b'"facts":{}', b'"facts":{"a":NaN}'),
        Made().text().replace(b'"facts":{}', b'"facts":{"a":1e999}'),
        Made().text().replace(b'"facts":{}', b'"facts":{"a":1E2}'),
        Made().text().replace(b'"facts":{}', b'"facts":{"a":' + b"9" * 5000 + b"}"),
        Made().text().replace(b'"facts":{}', b'"facts":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
        Made(fields={"facts": []}).text(),
        Made(fields={"facts": None}).text(),
        Made(fields={"format": "cortex"}).text(),
        Made(fields={"format": None}).text(),
        Made(fields={"version": 2}).text(),
        Made(fields={"version": 0}).text(),
        Made(fields={"version": 1.0}).text(),
        Made(fields={"version": True}).text(),
        Made(fields={"version": "1"}).text(),
        Made(fields={"more": 1}).text(),
        Made(fields={"parts": {}}).text(),
        Made(fields={"parts": None}).text(),
        Made(fields={"content_sha256": "0" * 64}).text(),
        Made(fields={"content_sha256": None}).text(),
        Made(parts=[None]).text(),
        Made(parts=["files/a"]).text(),
        Made(parts=[{}]).text(),
        Made(parts=[listed("files/a", b"") | {"more": 1}]).text(),
        Made(parts=[listed("files/a", b"") | {"name": 1}]).text(),
        Made(parts=[listed("files/a", b"") | {"size": -1}]).text(),
        Made(parts=[listed("files/a", b"") | {"size": 0.0}]).text(),
        Made(parts=[listed("files/a", b"") | {"size": False}]).text(),
        Made(parts=[listed("files/a", b"") | {"size": "0"}]).text(),
        Made(parts=[listed("files/a", b"") | {"sha256": None}]).text(),
        Made(parts=[listed("files/a", b"") | {"sha256": hashlib.sha256(b"").hexdigest().upper()}]).text(),
        Made(parts=[listed("files/a", b"") | {"sha256": "0" * 63}]).text(),
    ],
    ids=lambda text: text[:40].decode("latin-1") + f" {len(text)} {zlib.crc32(text):x}",
)
def test_the_manifest_has_one_form(path: Path, text: bytes) -> None:
    made = Made(members=[member(entry("files/a", b""))], manifest=text)
    if len(text) > 100_000:
        # StoredObject, since it would be refused for its compression before.
        made.manifest_member = member(entry("manifest.json", text) + bytes(1024), level=0)
    refused(path, made, "its manifest ", cheap=True)


def test_the_manifest_lies_where_the_trailer_says(path: Path) -> None:
    data, text = Made(), Made().text()
    size = len(data.file()) - 74
    for place in (size + 1, size + 74, 2**63, 2**64 - 1):
        refused(path, Made(place=place), "points outside the file", cheap=True)
    refused(path, Made(place=size), "ends within a gzip member", cheap=True)
    refused(path, Made(place=0), "is in the place of its manifest", cheap=True)
    refused(path, Made(place=1), "form that no version", cheap=True)
    last = member(entry(VECTORS, text) + bytes(1024))
    refused(path, Made(manifest_member=last), "is in the place of its manifest", cheap=True)
    for between in (b"\0", member(b""), member(bytes(512)), member(entry("files/a", b""))):
        refused(path, Made(between=between), "between its manifest and its trailer", cheap=True)


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (b"", "ends early"),
        (bytes(512), "ends early"),
        (bytes(1536), "holds more than its entry"),
        (bytes(1023) + b"x", "end of its tar file"),
        (header("files/a", 0) + bytes(1024), "end of its tar file"),
    ],
)
def test_the_tar_file_ends_with_the_manifest(path: Path, end: bytes, told: str) -> None:
    last = member(entry("manifest.json", Made().text()) + end)
    refused(path, Made(manifest_member=last), told, cheap=True)


# -- Gzip members --------------------------------------------------------------------------------

ENTRY = entry(DOCUMENTS, b"{}\n")
DEFLATED = member(ENTRY)[10:]

MEMBER_CHANGES: dict[str, tuple[list[bytes], str]] = {
    "a name": ([_put(GZIP, 3, b"\x08") + b"../x\0" + DEFLATED], "form that no version"),
    "a comment": ([_put(GZIP, 3, b"\x10") + b"hello\0" + DEFLATED], "form that no version"),
    "an extra field": ([_put(GZIP, 3, b"\x04") + b"\1\0x" + DEFLATED], "form that no version"),
    "a header check": ([_put(GZIP, 3, b"\x02") + b"\0\0" + DEFLATED], "form that no version"),
    "unknown flags": ([_put(GZIP, 3, b"\x80") + DEFLATED], "form that no version"),
    "a time": ([_put(GZIP, 4, b"\1") + DEFLATED], "form that no version"),
    "extra flags": ([_put(GZIP, 8, b"\2") + DEFLATED], "form that no version"),
    "a system": ([_put(GZIP, 9, b"\3") + DEFLATED], "form that no version"),
    "another method": ([_put(GZIP, 2, b"\7") + DEFLATED], "form that no version"),
    "zlib instead of gzip": ([zlib.compress(ENTRY)], "form that no version"),
    "check": ([member(ENTRY, check=0)], "checksum of a gzip member"),
    "size": ([member(ENTRY, size=len(ENTRY) + 1)], "checksum of a gzip member"),
    "two entries": ([member(ENTRY + entry("files/a", b""))], "holds more than its entry"),
    "more zeros": ([member(ENTRY + b"\0")], "holds more than its entry"),
    "an end before the end": ([member(ENTRY + bytes(1024))], "holds more than its entry"),
    "less zeros": ([member(ENTRY[:-1])], "ends early"),
    "half an entry": ([member(ENTRY[:512]), member(ENTRY[512:])], "ends early"),
    "half a header": ([member(ENTRY[:100]), member(ENTRY[100:])], "ends early"),
    "an empty member before": ([member(b""), member(ENTRY)], "ends early"),
    "an empty member after": ([member(ENTRY), member(b"")], "more than its manifest lists"),
    "zeros after": ([member(ENTRY), bytes(512)], "more than its manifest lists"),
    "gzip in gzip": ([member(member(ENTRY))], "ends early"),
    "much gzip in gzip": ([member(member(ENTRY, level=0))], "checksum of a tar entry"),
    "no deflate": ([GZIP + b"\xff" * 600], "cannot be inflated"),
    "cut": ([member(ENTRY)[:-1]], "ends within a gzip member"),
    "cut in the content": ([member(ENTRY)[:-20]], "ends within a gzip member"),
    "cut in the header": ([member(ENTRY)[:5]], "ends within a gzip member"),
}


@pytest.mark.parametrize("what", MEMBER_CHANGES)
def test_a_gzip_member_has_one_form(path: Path, what: str) -> None:
    members, told = MEMBER_CHANGES[what]
    refused(path, Made([(DOCUMENTS, b"{}\n")], members=members), told)


def test_how_hard_a_member_is_compressed_is_free(path: Path) -> None:
    for level in range(10):
        for start in (GZIP, _put(GZIP, 8, b"\4")):
            path.write_bytes(Made([(DOCUMENTS, b"{}\n")], members=[member(ENTRY, level=level, start=start)]).file())
            assert [part.data for part in read_parts(path)] == [b"{}\n"]


# -- The trailer ---------------------------------------------------------------------------------


def test_the_trailer_has_one_form(path: Path) -> None:
    refused(path, Made(trailer={"version": 0}), "no version of Cortex", cheap=True)
    refused(path, Made(trailer={"zero": 1}), "no version of Cortex", cheap=True)
    refused(path, Made(trailer={"digest": bytes(32)}), "bytes are not those that were written")


def test_a_later_version_is_told_as_one_and_damage_is_not(path: Path) -> None:
    later = Made(trailer={"version": 2}).file()
    errors = _errors(path, later, ArchiveLimits())
    assert len(errors) == 3
    for error in errors:
        assert not isinstance(error, BackupCorrupt)
        assert "format 2" in str(error)
        assert "Update" in str(error)
    at = len(later) - 74 + 17
    refused(path, _put(Made().file(), at, b"\2"), "trailer is damaged", cheap=True)


@pytest.mark.parametrize("data", [b"", b"x", b"\x1f\x8b", bytes(74), bytes(5000), member(ENTRY + bytes(1024))])
def test_what_is_no_such_file_is_told(path: Path, data: bytes) -> None:
    refused(path, data, "not a snapshot archive", cheap=True)


# -- Bombs ---------------------------------------------------------------------------------------


def _peak(path: Path, made: Made | bytes, told: str, *, cheap: bool = False) -> int:
    """The most memory that refusing takes."""
    data = made.file() if isinstance(made, Made) else made
    tracemalloc.start()
    try:
        refused(path, data, told, cheap=cheap)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_member_is_inflated_no_further_than_its_entry(path: Path) -> None:
    bomb = member(ENTRY + bytes(32 * MIB), level=9)
    assert len(bomb) < 40_000
    assert _peak(path, Made([(DOCUMENTS, b"{}\n")], members=[bomb]), "holds more than its entry") < MIB
    bomb = member(bytes(32 * MIB), level=9)
    assert _peak(path, Made([(DOCUMENTS, b"{}\n")], members=[bomb]), "an entry of the tar file is missing") < MIB


def test_parts_that_grow_beyond_measure_are_refused_before_they_are_inflated(path: Path) -> None:
    big = 32 * MIB
    bomb = member(header(DOCUMENTS, big) + bytes(big), level=9)
    parts = [{"name": DOCUMENTS, "sha256": "0" * 64, "size": big}]
    assert _peak(path, Made(members=[bomb], parts=parts), "200 times its own size", cheap=True) < MIB


def test_a_manifest_that_grows_beyond_measure_is_refused_before_it_is_inflated(path: Path) -> None:
    text = b'{"a":"' + b" " * (3 * MIB) + b'"}'
    assert _peak(path, Made(manifest=text), "200 times its own size", cheap=True) < MIB
    text = b" " * (4 * MIB + 1)
    assert _peak(path, Made(manifest=text), "a manifest of more than 4194304 bytes", cheap=True) < MIB
    # The header may also lie about what follows.
    long = member(header("manifest.json", 16) + b" " * 16 + bytes(16 * MIB), level=9)
    assert _peak(path, Made(manifest_member=long), "holds more than its entry", cheap=True) < MIB
    stored = member(entry("manifest.json", random.Random(1).randbytes(5 * MIB)), level=0)
    data = Made(manifest_member=stored).file()
    assert _peak(path, data, "a manifest of more than 4194304 bytes", cheap=True) < MIB


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([{"name": DOCUMENTS, "sha256": "0" * 64, "size": 64 * MIB + 1}], "a part of more than 67108864 bytes"),
        ([{"name": DOCUMENTS, "sha256": "0" * 64, "size": 10**30}], "a part of more than 67108864 bytes"),
        (
            [{"name": f"documents/{n:06}.jsonl", "sha256": "0" * 64, "size": 64 * MIB} for n in range(1, 1026)],
            "more than 68719476736 bytes",
        ),
        (
            [{"name": f"documents/{n:06}.jsonl", "sha256": "0" * 64, "size": 0} for n in range(1, 20_002)],
            "more than 20000 parts",
        ),
    ],
    ids=["part", "absurd", "total", "count"],
)
def test_what_the_manifest_asks_for_is_bounded(path: Path, parts: list[Any], told: str) -> None:
    refused(path, Made(parts=parts), told, cheap=True)


def test_twenty_thousand_parts_can_be_listed(path: Path) -> None:
    made = Made([(f"documents/{n:06}.jsonl", b"") for n in range(1, 20_001)], members=[])
    path.write_bytes(made.file())
    assert len(read_manifest(path).parts) == 20_000


# -- Anything ------------------------------------------------------------------------------------

PARTS = [
    ArchivePart(DOCUMENTS, b'{"data":{},"key":"a","kind":"memory"}\n' * 5),
    ArchivePart(VECTORS, bytes(range(200)), False),
]


@settings(deadline=None)
@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes, ending: bool) -> None:
    path = tmp_path_factory.mktemp("any") / "made"
    assert len(_errors(path, data + trailer(data, 0) if ending else data, ArchiveLimits())) == 3


@given(st.data())
def test_any_change_is_refused_also_when_all_digests_are_made_anew(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever changes inside: an error of ours, or the parts as they were."""
    path = tmp_path_factory.mktemp("any") / "made"
    held = [(part.name, part.data) for part in PARTS]
    contents = [entry(*each) for each in held]
    contents.append(entry("manifest.json", Made(held).text()) + bytes(1024))
    which = data.draw(st.integers(0, len(contents) - 1))
    at = data.draw(st.integers(0, len(contents[which]) - 1))
    gone = data.draw(st.integers(0, 3))
    new = data.draw(st.binary(max_size=3))
    contents[which] = contents[which][:at] + new + contents[which][at + gone :]
    members = [member(content) for content in contents]
    path.write_bytes(Made(members=members[:-1], manifest_member=members[-1]).file())
    try:
        parts = list(read_parts(path))
    except BackupError:
        return
    assert [(part.name, part.data) for part in parts] == held


@given(st.data())
def test_any_change_of_the_file_is_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("any") / "made"
    write_archive(path, PARTS, {"project": "p"})
    right = path.read_bytes()
    at = data.draw(st.integers(0, len(right)))
    gone = data.draw(st.integers(0, 100))
    changed = right[:at] + data.draw(st.binary(max_size=100)) + right[at + gone :]
    if changed != right:
        path.write_bytes(changed)
        with pytest.raises(BackupError):
            verify_archive(path)
