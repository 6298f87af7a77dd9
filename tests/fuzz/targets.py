"""What is fuzzed: everything that reads bytes from outside, each as a function of some bytes.

A target ends without an error or with one that its reader documents. Where a reader has a writer, what was read is
written and read again.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path, PurePosixPath

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from cortex_py.core.clock import full_address, parse_ref
from cortex_py.core.embedding.backends.openai import OpenAIBackend
from cortex_py.core.embedding.wordpiece import WordPiece
from cortex_py.core.errors import CortexError, InvalidInput
from cortex_py.core.llm.client import InvalidAnswer, SchemaCheck
from cortex_py.core.llm.registry import OpenAIChat
from cortex_py.core.llm.values import Prompt
from cortex_py.core.memory.comparison.statements import read_statement
from cortex_py.core.memory.consolidation.merging import facts
from cortex_py.core.memory.labels.keyphrases import suggest_tags
from cortex_py.core.memory.labels.structuring import structure
from cortex_py.core.memory.recall.filters import parse_filter
from cortex_py.core.memory.text import chunk, query_terms, query_traits, record_traits, split_turns, terms
from cortex_py.core.remote import RemoteProblem
from cortex_py.core.security.ciphers import ObjectKeys, seal_object
from cortex_py.core.security.policy import Screen
from cortex_py.core.security.spoken import without_given
from cortex_py.parts.backup.bridges.layouts import LAYOUTS, ClaudeMemory
from cortex_py.parts.backup.snapshots import archive as archive_members
from cortex_py.parts.backup.snapshots.archive import ArchiveLimits, ArchivePart, parse_manifest, verify_archive
from cortex_py.parts.backup.snapshots.replacement import StateDigest, documents_in
from cortex_py.parts.backup.sync.packs import (
    HeadName,
    framed,
    head_names,
    machine_mark,
    open_head,
    read_pack,
    seal_pack,
    space_mark,
    unframed,
)
from cortex_py.parts.backup.targets import webdav as target_propfind
from cortex_py.parts.backup.targets.target import TargetProblem
from cortex_py.parts.backup.transfer import import_reader as import_lines
from cortex_py.parts.backup.transfer import markdown as markdown_form
from cortex_py.parts.backup.transfer import markdown as plain_memories
from cortex_py.parts.backup.transfer.readers.files import SourceFile, source_files
from cortex_py.parts.backup.transfer.readers.records import SourceRecord
from cortex_py.parts.backup.transfer.readers.registry import readers, recognise
from cortex_py.parts.backup.vault.header import KdfLimits, read_header
from cortex_py.parts.clients.catalogue import BY_KEY, CATALOGUE
from cortex_py.parts.clients.checks import client_states
from cortex_py.parts.clients.install import Setup
from cortex_py.parts.clients.json_edit import read_json, remove, set_member
from cortex_py.parts.context.branches import file as branch_file
from cortex_py.parts.context.project import folders_of, has_own_objects, identify
from cortex_py.parts.graph.reading.extract import extract
from cortex_py.parts.hooks.dialects import CLIENTS, read_event
from cortex_py.parts.hooks.frame import neutralise
from cortex_py.parts.hooks.prepared import read_head, roots_of
from cortex_py.parts.hooks.turns import turns_of
from cortex_py.parts.prompts import files as prompt_files
from cortex_py.parts.prompts.language.placeholders import find_blanks
from cortex_py.parts.prompts.language.rendering import render
from cortex_py.parts.prompts.language.syntax import parse as parse_template
from cortex_py.parts.verify.claims.claims import read_claims
from cortex_py.parts.verify.claims.passages import read_passages
from cortex_py.parts.verify.claims.phrases import confidence
from cortex_py.surfaces.cli.output import visible
from cortex_py.surfaces.http.access import is_open, page_scope, route_of
from cortex_py.surfaces.http.embeddings import EmbeddingBatchInput, EmbeddingGenerateInput, OpenAIRequest
from cortex_py.surfaces.http.middleware import bearer
from cortex_py.surfaces.http.pages import read_body
from cortex_py.surfaces.mcp.stdio.frames import Malformed, read_frame, read_lines
from cortex_py.team.access.oidc import KeySet, SignedTokens
from cortex_py.team.licence import licence
from cortex_py.worktree import formats
from cortex_py.worktree.code.syntax import analyse
from cortex_py.worktree.files.choice import decode_text
from cortex_py.worktree.files.ignore_rules import IgnoreRules
from cortex_py.worktree.formats import read_settings
from cortex_py.worktree.git.checkout_hook import find_hook
from cortex_py.worktree.git.diffs import PatchReader, new_file_change, new_file_lines, parse_raw_listing
from cortex_py.worktree.git.runner import split_lines
from cortex_py.worktree.manifests.manifests import read_dependencies, read_own_version
from cortex_py.worktree.remotes import RemoteAddress, normalise_remote
from cortex_py.worktree.test_reports import read_report
from filter_text import format_filter
from llm.chat_server import SCHEMA

from helpers import FakeClock

__all__ = ["CORPUS", "TARGETS", "Target"]

CORPUS = Path(__file__).parent / "corpus"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

# A broken manifest or configuration file is one without facts; these readers say so by the errors of Python's parsers.
_PARSERS_OWN = (ValueError, RecursionError)


@dataclass(frozen=True, slots=True)
class Target:
    """`read` takes bytes; `documented` are the errors that may come of them."""

    read: Callable[[bytes], object]
    documented: tuple[type[BaseException], ...] = (CortexError,)
    # Words of the language that is read, for mutations.
    words: tuple[bytes, ...] = ()


def _text(data: bytes) -> str:
    """Any text at all, with half surrogate pairs too: clients can send these in JSON."""
    return data.decode("utf-8", "surrogateescape")


def _choice(data: bytes, names: tuple[str, ...]) -> tuple[str, str]:
    """A file name, by the first line of the data, and the text below."""
    first, _, rest = data.partition(b"\n")
    chosen = first.decode("ascii", "replace")
    return (chosen if chosen in names else names[sum(first) % len(names)]), _text(rest)


# -- Messages ------------------------------------------------------------------------------------------


def _frame(data: bytes) -> None:
    frame = read_frame(data)
    again = read_frame(json.dumps(frame.message).encode())
    assert again.message == frame.message
    assert (frame.id, frame.method, frame.is_request) == (again.id, again.method, again.is_request)


def _frame_lines(data: bytes) -> None:
    file = io.BytesIO(data)
    found = list(read_lines(lambda size: file.read(min(size, 7)), 50))
    whole = [line for line in found if isinstance(line, bytes)]
    assert all(len(line) <= 50 for line in whole)


# -- Queries and texts ---------------------------------------------------------------------------------


def _filter(data: bytes) -> None:
    filter = parse_filter(_text(data), now=NOW).filter
    try:
        text = format_filter(filter)
    except InvalidInput:
        return
    assert parse_filter(text, now=NOW).filter == filter


def _template(data: bytes) -> None:
    template = parse_template(_text(data))
    values = {"name": "x", "items": [{"name": "a", "tags": ["b"]}, {"name": None}], "count": 3, "on": True}
    first = render(template, values)
    assert render(template, values) == first


def _placeholders(data: bytes) -> None:
    blanks = find_blanks(_text(data))
    filled = blanks.fill(dict.fromkeys(blanks.names, "{{name}}"))
    assert filled.count("{{name}}") >= len(blanks.names)


def _prompt_file(data: bytes) -> None:
    name, text = _choice(data, ("a.md", "a.yaml", "a.json", "a.txt"))
    for kind in ("prompt", "template"):
        prompt_files.load(text.encode("utf-8", "surrogateescape"), filename=name, kind=kind)  # type: ignore[arg-type]


def _claims(data: bytes) -> None:
    text = _text(data)
    read_claims(text)
    for passage in read_passages(text):
        assert 0 <= passage.start <= passage.end <= len(text)
    assert 0 <= confidence(text) <= 1


def _dialogue(data: bytes) -> None:
    split_turns(_text(data))


def _chunks(data: bytes) -> None:
    text = _text(data)
    for one in chunk(text, count_tokens=lambda part: len(part) // 4 + 1):
        assert 0 <= one.start <= one.end <= len(text)


_PIECES = WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "##a", "##b", "the", "##ing", "!", "中"])


def _wordpiece(data: bytes) -> None:
    text = _text(data)
    ids = _PIECES.encode(text, 64)
    assert 2 <= len(ids) <= 64
    assert _PIECES.count(text) >= len(ids)


def _branch_file(data: bytes) -> None:
    parsed = branch_file.parse(_text(data))
    assert len({one.id for one in parsed.entries}) == len(parsed.entries)


def _note_text(data: bytes) -> None:
    """What is read of every note, and of every question."""
    text = _text(data)
    terms(text)
    query_terms(text[:2_000])
    record_traits(text)
    query_traits(text[:2_000])
    suggest_tags(text, ["a"])
    structure(text)
    read_statement(text)
    facts(text)


def _note_entities(data: bytes) -> None:
    extract(data.decode("utf-8", "replace"))


def _screened(data: bytes) -> None:
    """What is left holds no secret of which a part was found."""
    text = data.decode("utf-8", "replace")
    for screen in (Screen("redact"), Screen("redact", "redact")):
        screen.prose(text)


def _shown(data: bytes) -> None:
    """Text on its way into a session, or onto a terminal."""
    text = _text(data)
    neutralise(without_given(text))
    assert all(char.isprintable() or char in "\n\t" or not char.isascii() for char in visible(text))


def _reference(data: bytes) -> None:
    text = _text(data)
    normalise_remote(text)
    RemoteAddress.read(text)
    full_address(text)
    parse_ref(text)


# -- Answers of servers, and requests to ours ------------------------------------------------------------


@cache
def _raw_server() -> tuple[str, list[bytes]]:
    """A server that answers every request with these bytes, whatever they are, and hangs up."""
    listener, answer = socket.create_server(("127.0.0.1", 0)), [b""]

    def serve() -> None:
        while True:
            connection, _ = listener.accept()
            with connection:
                try:
                    # The head and the body come in one piece, or soon after.
                    connection.recv(1 << 20)
                    connection.sendall(answer[0])
                    connection.shutdown(socket.SHUT_WR)
                    connection.settimeout(0.2)
                    while connection.recv(1 << 16):
                        pass
                except OSError:
                    continue

    threading.Thread(target=serve, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}/v1", answer


def _endpoint_answer(data: bytes) -> None:
    """Whole answers of HTTP, and bodies of one that is well-formed."""
    url, answer = _raw_server()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data)
    answer[0] = data if data.startswith(b"HTTP/") else head + data
    backend, chat = OpenAIBackend(url, "m", sleep=lambda _: None), OpenAIChat(url, "m")
    for ask in (lambda: backend.embed(["x"]), lambda: chat.ask(Prompt("x").render(), SCHEMA, 10, 5.0)):
        try:
            ask()
        except (CortexError, RemoteProblem) as error:
            assert str(error).isprintable()
    backend.close()
    chat.close()


def _model_answer(data: bytes) -> None:
    SchemaCheck(SCHEMA).read(_text(data))


@cache
def _issuer() -> tuple[str, bytes]:
    public = json.loads(jwt.algorithms.OKPAlgorithm.to_jwk(_KEY.public_key()))
    return "k", json.dumps({"keys": [{**public, "kid": "k", "alg": "EdDSA"}]}).encode()


def _signed_token(data: bytes) -> None:
    """A token as it is, a payload and a header that were signed, and the keys of an issuer."""
    kid, keys = _issuer()
    kind, _, rest = data.partition(b"\n")
    header = rest if kind == b"header" else json.dumps({"alg": "EdDSA", "kid": kid}).encode()
    said = ".".join(_plain(part) for part in (header, b"{}" if kind == b"header" else rest))
    token = f"{said}.{_plain(_KEY.sign(said.encode()))}" if kind in (b"header", b"payload", b"keys") else _text(rest)
    given = KeySet(lambda: rest if kind == b"keys" else keys)
    SignedTokens("i", "a", given, FakeClock(), org_claim="org").verify(token)


def _request_head(data: bytes) -> None:
    path, _, value = data.partition(b"\n")
    is_open(_text(path))
    route_of(_text(path))
    page_scope(_text(path), "POST")
    bearer({"type": "http", "headers": [(b"authorization", value)]})


# -- Backups -------------------------------------------------------------------------------------------

_SMALL = ArchiveLimits(part_bytes=1 << 20, parts=50, total_bytes=1 << 21, manifest_bytes=1 << 20)


def _archive(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        verify_archive(Path(file.name), _SMALL)


def _archive_parts(data: bytes) -> None:
    """What stands behind the digests, which random bytes do not pass: the manifest, an entry, documents."""
    kind, _, rest = data.partition(b"\n")
    if kind == b"manifest":
        parse_manifest(rest, 0, _SMALL)
    elif kind == b"entry":
        block = bytearray(rest[: archive_members.BLOCK].ljust(archive_members.BLOCK, b"\0"))
        block[148:156] = b"        "
        block[148:156] = b"%06o\0 " % sum(block)
        assert archive_members.tar_header(*archive_members.read_entry(bytes(block))) == block
    elif kind == b"trailer":
        archive_members.read_trailer(rest)
    else:
        lines, _, vectors = rest.partition(b"\0\0")
        made = [
            ArchivePart("documents/000001.jsonl", lines),
            ArchivePart("vectors/000001.bin", vectors, compress=False),
        ]
        list(documents_in(made, StateDigest()))


def _vault_header(data: bytes) -> None:
    for whole in (data, data[:-32] + hashlib.sha256(data[:-32]).digest()):
        try:
            header = read_header(io.BytesIO(whole), KdfLimits())
        except CortexError:
            continue
        encoded = header.encoded()
        assert whole[: len(encoded)] == encoded


def _object_frame(data: bytes) -> None:
    text, raw = unframed(data)
    assert unframed(framed(text, raw)) == (text, raw)


def _import_lines(data: bytes) -> None:
    for line in import_lines.json_values(io.BytesIO(data), "x.jsonl"):
        try:
            plain_memories.from_object(line.value, "project")
        except CortexError:
            continue


def _import_note(data: bytes) -> None:
    note = markdown_form.read_note("x.md", _text(data))
    plain_memories.from_note(note, "x.md", "project")
    if note.front is not None:
        markdown_form.memory_data(note, NOW)


def _import_archive(data: bytes) -> None:
    """A zipped export: each member is read whole or refused, and what comes out of it has a text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "export.zip"
        path.write_bytes(data)
        for file in source_files(path, lambda _name, _reason: None):
            reader = recognise(file, readers())
            if reader is None:
                continue
            try:
                file.check()
                found = list(reader.read(file))
            except (OSError, CortexError):
                continue
            assert all(one.content.strip() for one in found if isinstance(one, SourceRecord))


_IMPORTED = (
    *("a.jsonl", "a.json", "a.md", "a.csv", "a.tsv", "a.txt", "conversations.json", "projects.json", "history.jsonl"),
    *("CLAUDE.md", "AGENTS.md", ".cursorrules", "GEMINI.md", "CHANGELOG.md", "docs/adr/0001-a.md", "memory.json"),
    *("memory/MEMORY.md", ".cursor/rules/a.mdc", "rollout-2026-01-02.jsonl", "session-1.json", "logs.json"),
)


def _import_file(data: bytes) -> None:
    """A file of another program, by the reader that takes it for its own, and by all that read such names."""
    name, _, rest = data.partition(b"\n")
    name_text = name.decode("ascii", "replace")
    chosen = name_text if name_text in _IMPORTED else _IMPORTED[sum(name) % len(_IMPORTED)]
    file = SourceFile(chosen, PurePosixPath(chosen), len(rest), 1, lambda: io.BytesIO(rest))
    reader = recognise(file, readers())
    if reader is not None:
        found = list(reader.read(file))
        assert all(one.content.strip() for one in found if isinstance(one, SourceRecord))


def _bridged_note(data: bytes) -> None:
    name, text = _choice(data, ("a.md", "MEMORY.md", "a/b.md"))
    claude = ClaudeMemory()
    for line in claude.entries(text).values():
        claude.said(line)
    claude.fit(claude.free_text(text))
    claude.linked(text)
    for kind in LAYOUTS.values():
        parsed = kind().parse(name, text)
        assert parsed.shared.digest == kind().parse(name, text).shared.digest
        kind().new(name, parsed)


_KEYS = ObjectKeys.of(bytes(32))
_KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
_PUBLIC = _KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
_PRIVATE = _KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)
_FORM = licence.issue(_PRIVATE, holder="h", tier="pro").partition(".")[0]


def _licence(data: bytes) -> None:
    """A text as it is, and as the payload of one that was signed."""
    for token in (_text(data), _signed(data)):
        try:
            licence.unseal(token, _PUBLIC)
        except CortexError:
            continue


def _plain(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode().rstrip("=")


def _signed(payload: bytes) -> str:
    said = f"{_FORM}.{_plain(payload)}"
    return f"{said}.{_plain(_KEY.sign(said.encode()))}"


def _sealed_pack(data: bytes) -> None:
    """What another machine, which has the key, put into a pack and into a head."""
    for plain in (data, framed(b'{"machine":"m","space":"s"}\n' + data)):
        name, sealed = seal_pack(plain, _KEYS, bytes)
        with suppress(CortexError):
            list(read_pack(sealed, _KEYS, name, space="s", machine="m"))
    head = HeadName(space_mark(_KEYS, "s"), machine_mark(_KEYS, "m"), "20260102")
    context = b"head" + head.path.rpartition("/")[2].encode()
    head_names([_text(data), head.path])
    open_head(seal_object(framed(data), _KEYS, context=context, random=bytes), head, _KEYS)


def _import_database(data: bytes) -> None:
    """A database of another program."""
    file = SourceFile("a.db", PurePosixPath("a.db"), len(data), 1, lambda: io.BytesIO(data))
    for reader in readers():
        if reader.recognises(file) and file.head.startswith(b"SQLite"):
            list(reader.read(file))


def _propfind(data: bytes) -> None:
    list(target_propfind.resources(data))


# -- Repositories --------------------------------------------------------------------------------------


def _git_patch(data: bytes) -> None:
    def lines() -> Iterator[bytes]:
        return split_lines(io.BytesIO(data).read)

    changes, _ = PatchReader(lines()).changes()
    for change in changes[:5]:
        PatchReader(lines()).lines_of(change.path.encode("utf-8", "surrogateescape"), 10_000)
    new_file_change(b"a.py", data)
    new_file_lines(data, 1_000)


def _git_listing(data: bytes) -> None:
    parse_raw_listing(data)


def _ignore_file(data: bytes) -> None:
    rules = IgnoreRules(data, b"a", IgnoreRules(data))
    for path in (b"a/b", b"a/b/c.py", b"a/" + b"a" * 100):
        rules.ignored(path, is_folder=False)
        rules.ignored(path, is_folder=True)


_MANIFESTS = (
    *("pyproject.toml", "requirements.txt", "setup.cfg", "setup.py", "Pipfile", "PKG-INFO", "environment.yml"),
    *("package.json", "Cargo.toml", "go.mod", "Gemfile", "build.gradle", "pom.xml", "x.csproj", "composer.json"),
    *("Pipfile.lock", "poetry.lock", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "go.sum", "composer.lock"),
    *("Gemfile.lock", "VERSION", "x.py"),
)


def _manifest(data: bytes) -> None:
    name, text = _choice(data, _MANIFESTS)
    read_dependencies(name, text)
    read_own_version(name, text)


def _settings_file(data: bytes) -> None:
    read_settings(*_choice(data, ("a.toml", "a.json", "a.yaml", "a.ini", ".env.example", "a.properties", "a.cfg")))


def _structured(data: bytes) -> None:
    name, text = _choice(data, ("json", "yaml", "toml", "xml"))
    read: dict[str, Callable[[str], object]] = {
        "json": formats.read_json,
        "yaml": formats.read_yaml,
        "toml": formats.read_toml,
        "xml": formats.read_xml,
    }
    read[name](text)


def _test_report(data: bytes) -> None:
    read_report(*_choice(data, ("a.xml", "a.json", "a.txt")))


def _source_file(data: bytes) -> None:
    names = ("a.py", "a.md", "a.js", "a.ts", "a.go", "a.rs", "a.c", "a.cpp", "a.java", "a.rb", "a.sh", "a.php", "a.txt")
    name, text = _choice(data, names)
    found = analyse(name, text)
    assert "".join(part.text for part in found.parts) == text


_GIT_FILES = (
    *(".git", ".git/HEAD", ".git/config", ".git/commondir", ".git/gitdir", ".git/packed-refs", ".git/logs/HEAD"),
    *(".git/objects/info/alternates", ".git/config.worktree", ".git/refs/heads/main", ".git/hooks/post-checkout"),
)


def _git_folder(data: bytes) -> None:
    """A file that git would have written, read by hooks, by what decides on claims, and by what follows branches."""
    name, _, rest = data.partition(b"\n")
    chosen = _GIT_FILES[sum(name) % len(_GIT_FILES)] if os.fsdecode(name) not in _GIT_FILES else os.fsdecode(name)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        if chosen != ".git":
            for part in ("objects/info", "refs/heads", "logs", "hooks"):
                (folder / ".git" / part).mkdir(parents=True)
            (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
            (folder / ".git" / "config").write_text("[core]\n\tbare = false\n")
        (folder / chosen).write_bytes(rest)
        read_head(folder)
        roots_of(folder)
        found = identify(folder)
        folders_of(found.repository)
        if found.repository is not None:
            has_own_objects(found.repository)
            found.repository.head()
            find_hook(found.repository)


def _client_files(data: bytes) -> None:
    """What a person has in a client's file is there after an installation and its end, and what is not ours is kept."""
    key, _, rest = data.partition(b"\n")
    client = BY_KEY.get(os.fsdecode(key)) or CATALOGUE[sum(key) % len(CATALOGUE)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        setup = Setup(folder / "home", folder, "project")
        places = (client.servers, client.hooks, client.instructions, client.skill)
        for path in {found for one in places if (found := client.place(one, "project", folder))}:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(rest)
        client_states(folder / "home", folder)
        before = _all_files(folder)
        if all(one.state != "failed" for one in setup.install(client)):
            list(setup.uninstall(client))
            after = {name: text for name, text in _all_files(folder).items() if not name.startswith("home/")}
            assert {name: text.split() for name, text in after.items()} == {
                name: text.split() for name, text in before.items()
            }


def _all_files(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _posted(data: bytes) -> None:
    """Bodies of requests that become values."""
    for model in (OpenAIRequest, EmbeddingGenerateInput, EmbeddingBatchInput):
        with suppress(CortexError):
            read_body(model, data)


def _decoding(data: bytes) -> None:
    decode_text(data)


def _hook_event(data: bytes) -> None:
    for client, hooks in CLIENTS.items():
        for hook in hooks:
            event = {**read_event(client, hook, data), "id": "1"}
            assert event["kind"] == hook.kind
            turns_of(event, Screen("redact"), at="2026-01-02T03:04:05Z")


def _client_settings(data: bytes) -> None:
    """What is put into a file of settings comes out again, and nothing else changes."""
    text = data.decode("utf-8", "replace")
    try:
        content = read_json(text)
        if not isinstance(content, dict) or "cortex" in content or not text.strip():
            return
        done = set_member(text, ("cortex",), {"a": [1]})
    except ValueError:
        return
    else:
        assert read_json(done) == {**content, "cortex": {"a": [1]}}
        assert read_json(remove(done, ("cortex",))) == content


TARGETS: dict[str, Target] = {
    "frame": Target(_frame, (Malformed,), (b'"jsonrpc"', b'"2.0"', b'"id"', b'"method"', b'"params"', b"[", b"{")),
    "frame_lines": Target(_frame_lines, (), (b"\n", b"\r\n")),
    "filter": Target(_filter, words=(b"ns:", b"-tag:", b"since:7d", b'"', b",", b"path:**/*.py", b"before:2026-01-02")),
    "template": Target(_template, words=(b"{{", b"}}", b"{{#each items}}", b"{{/each}}", b"{{#if on}}", b"|", b"\\{{")),
    "placeholders": Target(_placeholders, words=(b"{{", b"}}", b"```", b"\\{{", b"{{name}}", b"\n")),
    "prompt_file": Target(_prompt_file, words=(b"---\n", b"name: ", b"content: |\n", b"variables:\n", b"&a", b"*a")),
    "claims": Target(_claims, words=(b"`a.py`", b"? ", b". ", b"\n- ", b"```\n", b"added ", b"tests pass", b"v1.2.3 ")),
    "dialogue": Target(_dialogue, words=(b"User: ", b"Assistant: ", b"\n\n", b"**", b"Human:")),
    "chunks": Target(_chunks, words=(b"# ", b"\n\n", b"```\n", b". ", "。".encode(), b"    ")),
    "wordpiece": Target(_wordpiece, words=("中".encode(), "e\u0301".encode(), b"\xf0\x9f\x98\x80", b"ing ")),
    "branch_file": Target(_branch_file, words=(b"---\n", b"<!-- cortex:", b" -->", b"entries: 1\n", b"revision: 1\n")),
    "archive": Target(_archive),
    "archive_parts": Target(_archive_parts, words=(b'{"', b'":', b'"parts"', b'"size"', b"ustar\x0000", b"\0\0")),
    "vault_header": Target(_vault_header),
    "object_frame": Target(_object_frame),
    "import_lines": Target(
        _import_lines, words=(b'"content"', b'"tags"', b'"created_at"', b"\n", b"[", b"1e999", b"NaN")
    ),
    "import_archive": Target(
        _import_archive,
        words=(b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"../", b"\xff\xff\xff\xff", b"\x08\0", b"\0\0"),
    ),
    "import_note": Target(_import_note, words=(b"---\n", b"tags: ", b"created_at: ", b"- ", b"&a ", b"*a", b"!!int ")),
    "licence": Target(_licence, words=(b'"holder"', b'"tier"', b'"expires_at"', b".")),
    "propfind": Target(_propfind, (TargetProblem,), (b"<D:response>", b"<D:href>", b"&amp;", b"<!DOCTYPE x [", b"%zz")),
    "git_patch": Target(
        _git_patch, (), (b"diff --git a/x b/x\n", b"@@ -1,2 +3,4 @@\n", b"+++ b/x\n", b"\\ No newline", b"rename to ")
    ),
    "git_listing": Target(_git_listing, (), (b":100644 100644 a b R100\0", b"\0", b":000000 100644 a b A\0")),
    "ignore_file": Target(_ignore_file, (), (b"**/", b"[!a-", b"\\", b"*", b"!", b"?", b"[[:alpha:]]", b"/")),
    "manifest": Target(
        _manifest, (), (b"[project]\n", b"==1.0", b">=", b"[[", b"<dependency>", b"${a}", b'"dependencies"')
    ),
    "settings_file": Target(_settings_file, (), (b"[a]\n", b"a = 1\n", b"- ", b"&a ", b"*a", b"\\\n", b'"""')),
    "structured": Target(_structured, _PARSERS_OWN, (b"[" * 50, b"{" * 50, b"&a [*a]", b"<a>", b"]]>", b"'''", b"/*")),
    "test_report": Target(_test_report, (), (b"<testcase>", b"</testsuite>", b'"tests"', b"ok 1 - ", b" passed in ")),
    "source_file": Target(_source_file, (), (b"def f(", b"):\n", b"{", b"}", b"class A", b"import ", b"\r", b"\x0c")),
    "hook_event": Target(_hook_event, (), (b'"prompt"', b'"tool_response"', b'"cwd"', b"<cortex-memory", b"\\ud800")),
    "client_settings": Target(
        _client_settings, (), (b"{", b"}", b'"a": ', b",", b"// x\n", b"/* x */", b"[]", b'"\\u"')
    ),
    "note_text": Target(
        _note_text,
        (),
        (b"We decided to ", b"- ", b"1. ", b"```\n", b"Decision: ", b"\xc2\xb2", b"3 days ago", b"caf\xc3\xa9"),
    ),
    "note_entities": Target(
        _note_entities, (), (b"PostgreSQL", b" uses ", b"`a.b()`", b"@bob", b" depends on ", b". ")
    ),
    "screened": Target(
        _screened,
        words=(b"password = ", b"AKIA", b"-----BEGIN ", b"://u:p@h", b"eyJ", b"+49 170 ", b"a@b.io", b"4111 "),
    ),
    "shown": Target(
        _shown, (), (b"</cortex-memory", b"<|im_start|>", b"\x1b[2J", b"\xe2\x80\xae", b"[INST]", b"\n\nUser: ")
    ),
    "reference": Target(
        _reference,
        words=(b"git@h:a/b.git", b"ssh://", b"file://", b"subcog://", b"urn:subcog:", b"%2f", b"[::1]", b":"),
    ),
    "endpoint_answer": Target(
        _endpoint_answer,
        (),
        (
            *(b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 503 x\r\n", b"Retry-After: ", b"Content-Length: ", b"\r\n\r\n"),
            *(
                b"Transfer-Encoding: chunked\r\n",
                b"Content-Encoding: gzip\r\n",
                b'"embedding":',
                b'"error":',
                b'"data":',
            ),
        ),
    ),
    "model_answer": Target(
        _model_answer, (InvalidAnswer,), (b"```json\n", b"{", b"}", b'"name"', b"\\ud800", b"1e999")
    ),
    "signed_token": Target(
        _signed_token, words=(b'"exp"', b'"aud"', b'"sub"', b'"alg"', b'"crv"', b'"kid"', b".", b"1e999")
    ),
    "request_head": Target(_request_head, (), (b"/api/v1/memories/", b"Bearer ", b"//", b"..", b"\xb2", b"%00")),
    "import_file": Target(
        _import_file, words=(b'"content"', b'"mapping"', b'"type":"user"', b"\n## ", b'"', b",", b"[", b"{", b"---\n")
    ),
    "bridged_note": Target(
        _bridged_note,
        words=(
            b"---\n",
            b"cortex: ",
            b"description: ",
            b"<!-- cortex: the list below is kept by Cortex -->",
            b"<!-- cortex: end of the list -->",
            b"- [a](b.md)",
        ),
    ),
    "sealed_pack": Target(
        _sealed_pack,
        words=(
            *(b'{"gone":["memory","k"],"floor":0,"stamp":1,"maker":"m","versions":{"m":1}}\n', b'"vectors":0', b"\n"),
            *(b'"packs":[]', b'"sequence":1', b'"versions":{}', b'"head":', b"1e400", b"-1"),
        ),
    ),
    "import_database": Target(_import_database, words=(b"SQLite format 3\0", b"\xff\xff", b"\0\0", b"CREATE TABLE ")),
    "git_folder": Target(
        _git_folder,
        (CortexError,),
        (
            b"gitdir: ",
            b"ref: refs/heads/",
            b"[core]\n\tworktree = ",
            b"..",
            b"/",
            b"\0",
            b'[remote "origin"]\n\turl = ',
        ),
    ),
    "client_files": Target(
        _client_files,
        (),
        (
            *(b'{"mcpServers": {"cortex": ', b"// x\n", b"\r\n", b"}", b"[mcp_servers.cortex]\n", b"# cortex:begin\n"),
            *(
                b"<!-- cortex:begin -->\n",
                b"<!-- cortex:end -->\n",
                b'"hooks": {"Stop": [{',
                b"\xef\xbb\xbf",
                b'"version"',
            ),
        ),
    ),
    "posted": Target(_posted, words=(b'"input"', b'"texts"', b'"model"', b"[", b"]", b"{", b"1e999", b"\\ud800")),
    "decoding": Target(_decoding, (), (b"\xff\xfe", b"\xef\xbb\xbf", b"\0", b"\xc3", b"\x80")),
}
