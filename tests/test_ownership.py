"""Whose home it is: others must not write its settings, and what they may have written is not believed."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.config import load_settings
from cortex_py.core.errors import StoreDenied
from cortex_py.core.ownership import open_folders

from hook_runs import run_hook, wait_for
from stub_backend import StubBackend

NOBODY = 65_534
SUPERUSER = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="acts as several users")
POSIX = pytest.mark.skipif(os.name != "posix", reason="permissions of files mean something else there")


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that every user can enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def _acting_as(user: int, *groups: int) -> Iterator[None]:
    before = os.getgroups()
    os.setgroups(groups)
    os.setresuid(user, user, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setgroups(before)


def _mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


@POSIX
@pytest.mark.parametrize("folder", [".", "hooks"])
def test_a_home_of_ours_that_everybody_can_write_is_closed_and_that_is_said_once(
    home: Path, folder: str, caplog: pytest.LogCaptureFixture
) -> None:
    (home / "hooks").mkdir(parents=True, mode=0o700)
    (home / folder).chmod(0o777)
    load_settings(home, environment={})
    assert _mode(home / folder) == 0o775
    assert str(home / folder) in caplog.text
    caplog.clear()
    load_settings(home, environment={})
    assert caplog.text == ""


@POSIX
@pytest.mark.parametrize("mode", [0o700, 0o755, 0o770, 0o2775])
def test_a_home_that_only_we_and_our_group_can_write_stays_as_it_is(
    home: Path, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    home.mkdir()
    home.chmod(mode)
    load_settings(home, environment={})
    assert (_mode(home), caplog.text) == (mode, "")


@POSIX
def test_a_folder_meant_for_everybody_is_no_home_and_stays_as_it_is(home: Path) -> None:
    home.mkdir()
    home.chmod(0o1777)
    with pytest.raises(StoreDenied, match="Other users"):
        load_settings(home, environment={})
    assert _mode(home) == 0o1777


@SUPERUSER
@pytest.mark.parametrize(("owner", "mode"), [(1234, 0o755), (1234, 0o777), (0, 0o777), (1234, 0o770)])
def test_a_home_that_somebody_else_can_write_is_refused(reachable: Path, owner: int, mode: int) -> None:
    home = reachable / "home"
    home.mkdir()
    (home / "config.toml").write_text('org = "planted"')
    home.chmod(mode)
    os.chown(home, owner, owner)
    with _acting_as(NOBODY), pytest.raises(StoreDenied, match="Other users"):
        load_settings(home, environment={})
    assert _mode(home) == mode


@SUPERUSER
@pytest.mark.parametrize("owner", [0, 1234])
def test_a_volume_that_is_given_to_a_group_of_ours_is_a_home(reachable: Path, owner: int) -> None:
    home = reachable / "home"
    home.mkdir()
    os.chown(home, owner, 4321)
    home.chmod(0o2775)
    with _acting_as(NOBODY, 4321):
        assert load_settings(home, environment={}).home == home


@SUPERUSER
@pytest.mark.parametrize("owner", [0, 1234])
def test_a_home_that_cannot_be_entered_is_refused_in_one_line(reachable: Path, owner: int) -> None:
    home = reachable / "private" / "home"
    home.mkdir(parents=True)
    for folder in (home, home.parent):
        os.chown(folder, owner, owner)
        folder.chmod(0o700)
    with _acting_as(NOBODY):
        # Where the home cannot even be looked at, opening the store says so.
        assert load_settings(home, environment={}).home == home
    home.parent.chmod(0o755)
    with _acting_as(NOBODY), pytest.raises(StoreDenied):
        Cortex.open(home, project=reachable, backend=StubBackend())


@POSIX
def test_a_hook_sends_nothing_to_an_address_that_others_can_write(home: Path, project: Path) -> None:
    (home / "hooks").mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as planted:
        planted.settimeout(0.5)
        place = {"port": planted.getsockname()[1], "token": "x", "pid": os.getpid()}
        (home / "hooks" / "address").write_text(json.dumps(place))
        home.chmod(0o777)
        sent = {"session_id": "s", "prompt": "Secret plan", "cwd": str(project)}
        done = run_hook(home, "claude-code", "UserPromptSubmit", sent)
        assert (done.returncode, json.loads(done.stdout)) == (0, {})
        with pytest.raises(TimeoutError):
            planted.accept()
    # The helper that it starts closes the home.
    wait_for(lambda: not open_folders(home))
