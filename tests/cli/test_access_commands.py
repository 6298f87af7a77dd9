"""`cortex token` and `cortex audit` as a person runs them: a token is shown once, a changed log has its exit code."""

import json
from pathlib import Path

import apsw
import pytest

from cortex_py import Cortex
from cortex_py.core.errors import AccessDenied
from cortex_py.core.security.callers import Caller

from shell import Shell
from stub_backend import StubBackend


def test_a_token_is_made_shown_once_listed_and_revoked(home: Path, project: Path) -> None:
    shell = Shell(home, project)
    made = shell.run("token", "create", "--subject", "ann", "--agent", "bot", "--scope", "read", "--days", "3")
    assert made.returncode == 0
    token = made.stdout.strip()
    assert "cannot be shown again" in made.stderr
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        caller = cortex.access.verify(token)
    assert (caller.user, caller.agent, caller.scopes) == ("ann", "bot", {"read"})
    (listed,) = json.loads(shell.run("token", "list", "--json").stdout)
    assert (listed["subject"], listed["state"], listed["scopes"]) == ("ann", "valid", ["read"])
    table = shell.run("token", "list").stdout
    assert listed["id"] in table
    assert token not in table + json.dumps(listed)
    assert shell.run("token", "revoke", listed["id"]).returncode == 0
    assert json.loads(shell.run("token", "list", "--json").stdout)[0]["state"] == "revoked"
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex, pytest.raises(AccessDenied):
        cortex.access.verify(token)
    assert shell.run("token", "revoke", "nothing").returncode == 4


@pytest.mark.parametrize("scope", ["root", "tool:nothing", "tool:"])
def test_a_scope_that_opens_nothing_is_refused(home: Path, project: Path, scope: str) -> None:
    done = Shell(home, project).run("token", "create", "--subject", "ann", "--scope", scope)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.sqlite_only
def test_a_changed_log_has_its_exit_code(home: Path, project: Path) -> None:
    shell = Shell(home, project, "audit")
    assert shell.run("verify").stdout.startswith("0 events")
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        for number in range(3):
            cortex.audit.record(Caller("ann"), f"tool:number{number}", "ok")
    whole = json.loads(shell.run("verify", "--json").stdout)
    assert whole["events"] == 3
    assert shell.run("verify", "--expect", whole["head"]).returncode == 0
    assert shell.run("verify", "--expect", "4:" + "0" * 64).returncode == 7
    assert "tool:number2" in shell.run("list").stdout
    assert [one["number"] for one in json.loads(shell.run("list", "--limit", "2", "--json").stdout)] == [3, 2]
    connection = apsw.Connection(str(home / "cortex.db"))
    connection.execute("UPDATE audit_event SET event = 'not even JSON' WHERE n = 2")
    connection.close()
    broken = shell.run("verify")
    assert broken.returncode == 7
    assert "event 2" in broken.stderr
    assert shell.run("list").returncode == 7
