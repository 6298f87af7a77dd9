"""`cortex license` as a person runs it: keys, issue, show, verify, and their exit codes."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cortex_py.core.errors import InvalidInput, LicenceInvalid, LicenseRequired
from cortex_py.surfaces.cli import cli
from cortex_py.team.licence.licence import issue, new_keypair, write_keypair

from helpers import FakeClock
from shell import Shell

KEYS = new_keypair()

Run = Callable[..., Result]


@pytest.fixture
def run(project: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command in this process, in a project with keys."""
    monkeypatch.chdir(project)
    write_keypair(KEYS, project / "private.pem", project / "public.pem")

    def invoke(*words: str, given: str | None = None) -> Result:
        return CliRunner().invoke(cli, ["license", *words], input=given, catch_exceptions=True)

    return invoke


def _issued(run: Run, *words: str) -> str:
    done = run("issue", "--private-key", "private.pem", "--holder", "Acme", *words)
    assert done.exit_code == 0, done.output
    return done.output.strip()


def test_from_keys_to_a_valid_licence(home: Path, project: Path) -> None:
    shell = Shell(home, project, "license")
    assert "license-public.pem" in shell.text("keygen")
    if os.name == "posix":
        assert stat.S_IMODE((project / "license-private.pem").stat().st_mode) == 0o600
    token = shell.text(
        "issue", "--private-key", "license-private.pem", "--holder", "Acme GmbH", "--tier", "pro"
    ).strip()
    assert token.startswith("cortex1.")
    variables = {"CORTEX_LICENSE_KEY": token, "CORTEX_LICENSE_PUBLIC_KEY": "license-public.pem"}
    holder = Shell(home, project, "license", **variables)
    assert holder.text("verify") == "Valid: pro, Acme GmbH, without end.\n"
    done = holder.run("verify", "--tool", "sync_to_cloud")
    assert (done.returncode, done.stdout) == (13, "")
    assert "tier enterprise" in done.stderr
    changed = Shell(home, project, "license", **{**variables, "CORTEX_LICENSE_KEY": token[:-5]}).run("verify")
    assert (changed.returncode, changed.stdout) == (2, "")
    assert token[:-5] not in changed.stderr
    again = shell.run("keygen")
    assert again.returncode == 2
    assert "exists already" in again.stderr


def test_show_tells_all_but_the_licence_itself(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    token = _issued(run, "--tier", "free", "--expires", "2999-01-31", "--feature", "verify_response")
    monkeypatch.setenv("CORTEX_LICENSE_KEY", token)
    monkeypatch.setenv("CORTEX_LICENSE_PUBLIC_KEY", "public.pem")
    told = run("show").output
    for words in ("Acme", "free", "2999-01-31T00:00:00Z", "opens: verify_response.", "require_license is off"):
        assert words in told
    assert token not in told
    monkeypatch.setenv("CORTEX_REQUIRE_LICENSE", "1")
    assert "require_license is on" in run("show").output


def test_show_without_one_and_with_a_bad_one(run: Run, tmp_path: Path) -> None:
    assert run("show").output == "None is set.\nrequire_license is off: none is needed.\n"
    clock = FakeClock()
    clock.advance(days=-10)
    ended = issue(KEYS.private, holder="Acme", tier="pro", expires_at=FakeClock().now(), clock=clock)
    file = tmp_path / "licence.txt"
    file.write_text(f"{ended}\n")
    told = run("show", str(file), "--public-key", "public.pem").output
    assert "Acme" in told
    assert "expired at 2026-01-02T12:34:56Z" in told
    told = run("show", str(file)).output
    assert "No key to verify" in told
    assert ended not in told


def test_show_as_json(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "licence.txt"
    file.write_text(_issued(run, "--tier", "enterprise", "--days", "30"))
    told = json.loads(run("show", str(file), "--public-key", "public.pem", "--json").output)
    assert (told["required"], told["set"], told["valid"], told["fault"]) == (False, True, True, None)
    assert (told["licence"]["holder"], told["licence"]["tier"]) == ("Acme", "enterprise")
    assert "sync_to_cloud" in told["opens"]
    told = json.loads(run("show", "--json").output)
    assert (told["set"], told["valid"], told["licence"], told["opens"]) == (False, False, None, [])


def test_verify_reads_files_and_standard_input(run: Run, tmp_path: Path) -> None:
    token = _issued(run, "--tier", "pro", "--days", "1")
    file = tmp_path / "licence.txt"
    file.write_text(f"{token}\n")
    for done in (
        run("verify", str(file), "--public-key", "public.pem", "--tool", "verify_response"),
        run("verify", "-", "--public-key", "public.pem", "--tool", "update_memory", given=f"{token}\n"),
    ):
        assert done.output.startswith("Valid: pro, Acme, until ")
    refused = run("verify", str(file), "--public-key", "public.pem", "--tool", "sync_from_cloud")
    assert isinstance(refused.exception, LicenseRequired)


@pytest.mark.parametrize("words", [(), ("nowhere.txt",), ("empty.txt",), ("private.pem",), ("-",)])
def test_what_is_no_licence_is_not_valid(run: Run, project: Path, words: tuple[str, ...]) -> None:
    (project / "empty.txt").write_text("\n")
    done = run("verify", *words, "--public-key", "public.pem", given="")
    assert isinstance(done.exception, LicenceInvalid)
    assert done.output == ""


@pytest.mark.parametrize(
    "words",
    [
        ("--tier", "gold"),
        ("--tier", "pro", "--days", "0"),
        ("--tier", "pro", "--days", "5", "--expires", "2999-01-01"),
        ("--tier", "pro", "--expires", "soon"),
        ("--tier", "pro", "--feature", "update_memory"),
    ],
)
def test_a_bad_order_issues_nothing(run: Run, words: tuple[str, ...]) -> None:
    done = run("issue", "--private-key", "private.pem", "--holder", "Acme", *words)
    assert done.exit_code == 2
    assert "cortex1." not in done.output


def test_an_end_in_the_past_or_another_key_issues_nothing(run: Run) -> None:
    for words in (
        ("--private-key", "private.pem", "--expires", "2020-01-01"),
        ("--private-key", "public.pem"),
        ("--private-key", "nowhere.pem"),
    ):
        done = run("issue", "--holder", "Acme", "--tier", "pro", *words)
        assert isinstance(done.exception, InvalidInput)
        assert done.output == ""
