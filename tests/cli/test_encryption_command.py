"""`cortex encryption`: on, off, status and change, with passphrases that are never arguments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cortex_py.core.errors import StoreLocked, WrongKey
from cortex_py.core.sqlite_file import can_encrypt
from cortex_py.encryption import KEY_FILE
from cortex_py.surfaces.cli import cli

from homes import opened
from stub_backend import StubBackend

pytestmark = [
    pytest.mark.sqlite_only,
    pytest.mark.skipif(not can_encrypt(), reason="the SQLite of this Python knows no ciphers"),
]

PHRASE = "correct horse battery"


def _run(home: Path, *words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(cli, ["encryption", *words, "--home", str(home)], input=stdin)


@pytest.mark.slow
def test_a_home_is_encrypted_changed_and_decrypted(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(home, project) as cortex:
        cortex.memories.capture("the quokka is safe")
    assert "not encrypted" in _run(home, "status").output
    assert _run(home, "on", "--passphrase", stdin=PHRASE + "\n").exit_code == 0
    assert b"quokka" not in (home / "cortex.db").read_bytes()
    assert (home / KEY_FILE).stat().st_mode & 0o077 == 0
    status = json.loads(_run(home, "status", "--json").output)
    assert status == {"home": str(home), "encrypted": True, "opened_by": "passphrase", "unfinished": []}

    assert isinstance(_run(home, "off").exception, StoreLocked)
    monkeypatch.setenv("CORTEX_HOME_PASSPHRASE", "a wrong one")
    assert isinstance(_run(home, "off").exception, WrongKey)
    monkeypatch.setenv("CORTEX_HOME_PASSPHRASE", PHRASE)
    assert _run(home, "change", "--passphrase", stdin="another one now\n").exit_code == 0
    assert isinstance(_run(home, "off").exception, WrongKey)
    monkeypatch.setenv("CORTEX_HOME_PASSPHRASE", "another one now")
    with opened(home, project) as cortex:
        assert cortex.memories.recall("quokka").results
    assert "not encrypted" in _run(home, "off").output
    monkeypatch.delenv("CORTEX_HOME_PASSPHRASE")
    with opened(home, project) as cortex:
        assert cortex.memories.recall("quokka").results


def test_a_command_on_a_terminal_asks_for_the_passphrase(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(home, project) as cortex:
        cortex.memories.capture("the quokka is safe")
    assert _run(home, "on", "--passphrase", stdin=PHRASE + "\n").exit_code == 0
    words = ["recall", "--mode", "text", "quokka", "--home", str(home), "--project", str(project)]
    assert isinstance(CliRunner().invoke(cli, words).exception, StoreLocked)
    monkeypatch.setattr("cortex_py.app.open_backend", lambda *, settings: StubBackend())
    monkeypatch.setattr("cortex_py.surfaces.cli.options.ask_home_passphrase", lambda: PHRASE)
    monkeypatch.setattr("cortex_py.surfaces.cli.options._on_terminal", lambda: True)
    assert "quokka" in CliRunner().invoke(cli, words).output
