"""A home that is encrypted on the disk: what its files hold, what opens it, how it becomes so and no longer is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.config import Settings, load_settings
from cortex_py.core.errors import (
    BackupCorrupt,
    BackupError,
    ConfigurationError,
    InvalidInput,
    StoreBusy,
    StoreLocked,
    WrongKey,
)
from cortex_py.core.sqlite_file import can_encrypt
from cortex_py.encryption import change_passphrase, decrypt_home, encrypt_home, encryption_of
from cortex_py.parts.backup.vault.header import KdfParameters
from inside import sessions_of

from forking import python_command
from helpers import git
from homes import fill, opened, state
from stub_backend import StubBackend

pytestmark = [
    pytest.mark.sqlite_only,
    pytest.mark.skipif(not can_encrypt(), reason="the SQLite of this Python knows no ciphers"),
]

CHEAP = KdfParameters(memory_kib=19 * 1024, passes=2, lanes=1)
PHRASE = "correct horse battery"
TESTS = Path(__file__).parent
# Words that `_populate` puts everywhere it can.
PLANTED = ("quokka", "Quokka", "BillingService", "zebrafish", "wombat")


def _populate(home: Path, project: Path, **settings: object) -> None:
    if not (project / ".git").exists():
        git(project, "init", "-q")
        (project / "zebrafish.py").write_text("def wombat_handler():\n    return 1\n")
        git(project, "add", ".")
        git(project, "commit", "-qm", "add the quokka import")
    with opened(home, project, **settings) as cortex:
        fill(cortex, "quokka")
        branch = cortex.contexts.create_branch("Quokka migration")
        cortex.contexts.append(branch.id, "the quokka is safe", "user")
        cortex.grounding.verify("`wombat_handler` is defined in zebrafish.py.")
        cortex.embeddings.generate("quokka in the cache")
        cortex.backups.create("before the quokka")
        cortex.memories.capture("written after the snapshot: wombat")


def _files(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.is_file() and "models" not in path.parts]


def _found(home: Path) -> list[tuple[str, Path]]:
    """Where a planted word is seen, in a file or in its name."""
    return [
        (word, path)
        for path in _files(home)
        for word in PLANTED
        if word.encode() in path.read_bytes() or word.lower() in str(path.relative_to(home)).lower()
    ]


def _settings(home: Path, phrase: str | None = PHRASE) -> Settings:
    return load_settings(home, home_passphrase=phrase)


@pytest.fixture
def encrypted(home: Path, project: Path) -> Path:
    _populate(home, project)
    encrypt_home(_settings(home), PHRASE, parameters=CHEAP)
    return home


def test_nothing_of_what_was_said_is_in_any_file(home: Path, project: Path) -> None:
    _populate(home, project)
    places = {path.suffix for _, path in _found(home)}
    assert {".db", ".md"} <= places, "the planted words are where they should be before"
    encrypt_home(_settings(home), PHRASE, parameters=CHEAP)
    assert _found(home) == []
    # And nothing of what is written from now on, also while it is written.
    with opened(home, project, home_passphrase=PHRASE) as cortex:
        fill(cortex, "zebrafish")
        cortex.contexts.create_branch("Wombat feeding")
        cortex.grounding.verify("`wombat_handler` is defined in zebrafish.py.")
        cortex.embeddings.generate("quokka in the cache")
        cortex.backups.create("after the quokka")
        assert (home / "cortex.db-wal").stat().st_size
        assert (home / "embeddings.db").stat().st_size
        assert list((home / "evidence").rglob("*.db"))
        assert _found(home) == []
    assert _found(home) == []


def test_an_encrypted_home_holds_the_same_and_works_as_before(home: Path, project: Path) -> None:
    _populate(home, project)
    kinds = ("memory", "branch", "saved")
    with opened(home, project) as cortex:
        before = state(cortex, kinds)
        (snapshot,) = cortex.backups.snapshots()
    encrypt_home(_settings(home), PHRASE, parameters=CHEAP)
    with opened(home, project, home_passphrase=PHRASE) as cortex:
        assert state(cortex, kinds) == before
        assert cortex.check() == []
        assert cortex.memories.recall("wombat").results
        assert cortex.backups.verify(snapshot.id).verified
        restored = cortex.backups.restore(snapshot.id)
        assert restored.memories
        assert not cortex.memories.recall('"written after the snapshot"', mode="text").results
        assert {check.name: check.well for check in cortex.doctor().checks}["encryption"]
    decrypt_home(_settings(home))
    assert not encryption_of(_settings(home)).encrypted
    with opened(home, project) as cortex:
        assert cortex.backups.restore(restored.safety).memories
        assert state(cortex, kinds) == before
        assert {path.suffix for _, path in _found(home)} >= {".db", ".md"}


def test_a_branch_file_can_be_read_and_edited_only_through_the_library(encrypted: Path, project: Path) -> None:
    with opened(encrypted, project, home_passphrase=PHRASE) as cortex:
        (branch,) = [one for one in cortex.contexts.branches() if one.topic == "Quokka migration"]
        cortex.contexts.sync(branch.id)
        check = cortex.contexts.check_branch(branch.id)
        assert check.verified
        assert branch.id in sessions_of(cortex).branch_files.names(cortex.project.id)
        path = check.path
        assert b"quokka" not in path.read_bytes()
        # One put in the place of another does not open.
        other = next(one for one in path.parent.glob("*.md") if one != path)
        shutil.copy(other, path)
        with pytest.raises(BackupCorrupt):
            sessions_of(cortex).branch_files.read(cortex.project.id, branch.id)


def test_a_wrong_passphrase_opens_nothing_and_changes_nothing(encrypted: Path, project: Path) -> None:
    before = {path: path.read_bytes() for path in _files(encrypted)}
    for use in (
        lambda: opened(encrypted, project, home_passphrase="another one"),
        lambda: encrypt_home(_settings(encrypted, "another one"), None),
        lambda: decrypt_home(_settings(encrypted, "another one")),
        lambda: change_passphrase(_settings(encrypted, "another one"), "a third one"),
    ):
        with pytest.raises(WrongKey):
            use()
    assert {path: path.read_bytes() for path in _files(encrypted)} == before


def test_without_a_key_the_error_names_the_ways_to_give_one(
    encrypted: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreLocked, match=r"CORTEX_HOME_PASSPHRASE.*home_passphrase_file.*keyring that holds it\.$"):
        opened(encrypted, project)
    monkeypatch.setattr("cortex_py.encryption.find_spec", lambda _name: None)
    with pytest.raises(StoreLocked, match=r"pip install '\.\[keyring\]'"):
        opened(encrypted, project)


def test_a_file_gives_the_passphrase(encrypted: Path, project: Path, tmp_path: Path) -> None:
    file = tmp_path / "phrase"
    file.write_text(PHRASE + "\n")
    file.chmod(0o644)
    with pytest.raises(ConfigurationError, match="others"):
        opened(encrypted, project, home_passphrase_file=file)
    file.chmod(0o600)
    with opened(encrypted, project, home_passphrase_file=file) as cortex:
        assert cortex.memories.recall("wombat").results


def test_another_passphrase_takes_the_place_of_the_first(encrypted: Path, project: Path) -> None:
    before = (encrypted / "cortex.db").read_bytes()
    change_passphrase(_settings(encrypted), "a new one altogether", parameters=CHEAP)
    assert (encrypted / "cortex.db").read_bytes() == before
    with pytest.raises(WrongKey):
        opened(encrypted, project, home_passphrase=PHRASE)
    with opened(encrypted, project, home_passphrase="a new one altogether") as cortex:
        assert cortex.memories.recall("wombat").results


@pytest.mark.parametrize("phrase", ["", "short"])
def test_a_passphrase_that_is_none_is_refused(home: Path, project: Path, phrase: str) -> None:
    _populate(home, project)
    before = (home / "cortex.db").read_bytes()
    with pytest.raises(ConfigurationError):
        encrypt_home(_settings(home), phrase, parameters=CHEAP)
    assert not encryption_of(_settings(home)).encrypted
    assert (home / "cortex.db").read_bytes() == before


class _Keyring:
    """A keyring in memory, under the names of the real one's module."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, name: str) -> str | None:
        return self.kept.get((service, name))

    def set_password(self, service: str, name: str, secret: str) -> None:
        self.kept[service, name] = secret

    def delete_password(self, service: str, name: str) -> None:
        self.kept.pop((service, name), None)


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Keyring]:
    import keyring

    fake = _Keyring()
    for name in ("get_password", "set_password", "delete_password"):
        monkeypatch.setattr(keyring, name, getattr(fake, name))
    yield fake


def test_the_keyring_opens_the_home_with_nothing_set(home: Path, project: Path, keyring: _Keyring) -> None:
    _populate(home, project)
    settings = load_settings(home)
    encrypt_home(settings, None)
    assert encryption_of(settings).opened_by == "keyring"
    with opened(home, project) as cortex:
        assert cortex.memories.recall("wombat").results
    secret = dict(keyring.kept)
    change_passphrase(settings, PHRASE, parameters=CHEAP)
    assert keyring.kept == {}
    assert encryption_of(settings).opened_by == "passphrase"
    keyring.kept.update(secret)
    with pytest.raises(StoreLocked):
        opened(home, project)
    decrypt_home(_settings(home))
    with opened(home, project) as cortex:
        assert cortex.memories.recall("wombat").results


def test_a_keyring_that_keeps_nothing_is_refused(home: Path, project: Path, keyring: _Keyring) -> None:
    _populate(home, project)
    keyring.set_password = lambda *_: None  # type: ignore[method-assign]
    import keyring as module

    module.set_password = keyring.set_password  # undone by the fixture
    with pytest.raises(ConfigurationError, match="keyring"):
        encrypt_home(load_settings(home), None)
    assert not encryption_of(load_settings(home)).encrypted
    with opened(home, project) as cortex:
        assert cortex.check() == []


def test_a_home_that_another_process_has_open_is_refused(home: Path, project: Path) -> None:
    _populate(home, project)
    script = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from pathlib import Path
from homes import opened
with opened(Path({str(home)!r}), Path({str(project)!r})) as cortex:
    print("open", flush=True)
    sys.stdin.readline()
    cortex.memories.capture("still writing: wombat")
"""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([*python_command(), "-c", script], text=True, **streams) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        with pytest.raises(StoreBusy, match="Another process"):
            encrypt_home(_settings(home), PHRASE, parameters=CHEAP)
        process.stdin.write("\n")
    assert process.returncode == 0
    assert not encryption_of(_settings(home)).encrypted
    encrypt_home(_settings(home), PHRASE, parameters=CHEAP)
    with opened(home, project, home_passphrase=PHRASE) as cortex:
        assert cortex.memories.recall('"still writing"').results


_KILLED = """
import json, os, shutil, signal, sys, warnings
sys.path.insert(0, sys.argv[1])
warnings.simplefilter("ignore")
from pathlib import Path
from dataclasses import replace
from cortex_py.parts.backup.vault.header import KdfParameters
from cortex_py.core.config import load_settings
from cortex_py.encryption import decrypt_home, encrypt_home, encryption_of, home_key
from homes import opened, state
from test_encryption import CHEAP, PHRASE, _found
home, project, way = Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
settings = load_settings(home, home_passphrase=PHRASE)

def run(step):
    if way == "on":
        encrypt_home(settings, PHRASE, parameters=CHEAP, step=step)
    else:
        decrypt_home(settings, step=step)

seen, number = [], 0
while True:
    number += 1
    count = 0
    def step(name):
        global count
        count += 1
        if count == number:
            os.write(told[1], name.encode())
            os.kill(os.getpid(), signal.SIGKILL)
    copy = home.with_name(f"copy-{number}")
    shutil.copytree(home, copy)
    settings = load_settings(copy, home_passphrase=PHRASE)
    told = os.pipe()
    child = os.fork()
    if child == 0:
        run(step)
        os._exit(0)
    os.close(told[1])
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    name = os.read(told[0], 100).decode()
    with opened(copy, project, home_passphrase=PHRASE) as cortex:
        whole = (state(cortex), cortex.check(), [one.fault for one in cortex.backups.snapshots()])
    finished = code == 0
    run(lambda name: None) if not finished and (way == "on" or encryption_of(settings).encrypted) else None
    with opened(copy, project, home_passphrase=PHRASE) as cortex:
        again = (state(cortex), cortex.check(), [one.fault for one in cortex.backups.snapshots()])
    right = encryption_of(settings).encrypted == (way == "on") and not encryption_of(settings).unfinished
    if way == "on":
        right = right and _found(copy) == [] and not list(copy.rglob("*.part"))
    seen.append([name, whole == again, whole[1], whole[2], len(whole[0]), right])
    shutil.rmtree(copy)
    if finished:
        break
print(json.dumps(seen))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.parametrize("way", ["on", "off"])
def test_a_run_that_is_killed_at_any_step_leaves_a_home_that_opens_and_can_be_finished(
    home: Path, project: Path, way: str
) -> None:
    _populate(home, project)
    if way == "off":
        encrypt_home(_settings(home), PHRASE, parameters=CHEAP)
    phrase = PHRASE if way == "off" else None
    with opened(home, project, home_passphrase=phrase) as cortex:
        documents = len(state(cortex))
    command = [sys.executable, "-c", _KILLED, str(TESTS), str(home), str(project), way]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout)
    store = ["store copy", "store check", "store replace", "store close", "caches", "branches", "turns", "snapshot"]
    assert [name for name, *_ in seen] == ([*["key"][: way == "on"], *store, *["key"][: way == "off"], ""])
    assert [rest for _, *rest in seen] == [[True, [], [""], documents, True]] * len(seen)


def test_a_snapshot_that_was_changed_is_listed_with_its_fault(encrypted: Path, project: Path) -> None:
    (path,) = encrypted.rglob("snapshot_*.tar.gz")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with opened(encrypted, project, home_passphrase=PHRASE) as cortex:
        (found,) = cortex.backups.snapshots()
        assert not found.verified
        assert "damaged" in found.fault


def test_a_sealed_snapshot_does_not_open_in_another_home(encrypted: Path, project: Path, tmp_path: Path) -> None:
    with opened(encrypted, project, home_passphrase=PHRASE) as cortex:
        (snapshot,) = cortex.backups.snapshots()
    other = tmp_path / "other"
    with opened(other, project) as cortex:
        made = cortex.backups.create()
        shutil.copy(snapshot.path, made.path)
        with pytest.raises(BackupError, match="encrypted home"):
            cortex.backups.restore(made.id)


def test_a_new_home_is_encrypted_from_its_first_file(home: Path, project: Path) -> None:
    home.mkdir()
    encrypt_home(_settings(home), PHRASE, parameters=CHEAP)
    _populate(home, project, home_passphrase=PHRASE)
    assert _found(home) == []
    with pytest.raises(InvalidInput, match="not encrypted"):
        decrypt_home(replace(_settings(home), home=project))


def test_an_engine_without_ciphers_is_told_with_the_remedy(
    encrypted: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cortex_py.core.sqlite_file.can_encrypt", lambda: False)
    with pytest.raises(ConfigurationError, match=r"pip uninstall -y apsw"):
        opened(encrypted, project, home_passphrase=PHRASE)
    with pytest.raises(ConfigurationError, match=r"apsw-sqlite3mc"):
        encrypt_home(_settings(encrypted), PHRASE)


def test_a_large_import_leaves_nothing_readable_in_its_temporary_file(
    home: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cortex_py.parts.backup.transfer.import_reader._IN_MEMORY", 0)
    with opened(home, project) as cortex:
        cortex.memories.capture("the quokka is exported")
        cortex.backups.export_to(tmp_path / "out.jsonl")
    from cortex_py.parts.backup.transfer.import_reader import DocumentSpool

    kept: list[bytes] = []
    close = DocumentSpool.close

    def look(spool: DocumentSpool) -> None:
        spool._file.seek(0)
        kept.append(spool._file.read())
        close(spool)

    monkeypatch.setattr(DocumentSpool, "close", look)
    with Cortex.open(tmp_path / "second", project=project, backend=StubBackend()) as cortex:
        cortex.backups.import_from([tmp_path / "out.jsonl"])
        assert cortex.memories.recall("quokka").results
    assert kept
    assert kept[0]
    assert b"quokka" not in kept[0]
