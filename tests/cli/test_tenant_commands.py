"""`cortex org`, `cortex group` and `cortex grant` as a person runs them, and what a token says of its organisation."""

import json
from pathlib import Path
from typing import Any

import pytest

from cortex_py import Cortex

from shell import Shell
from stub_backend import StubBackend


@pytest.mark.slow
def test_an_organisation_is_set_up_and_taken_down(home: Path, project: Path) -> None:
    shell = Shell(home, project)

    def told(*words: str) -> Any:
        done = shell.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert told("org", "create", "acme")["name"] == "acme"
    assert "acme" in shell.run("org", "list").stdout
    assert told("org", "join", "ann", "--org", "acme", "--level", "write")["level"] == "write"
    assert "write" in shell.run("org", "members", "--org", "acme").stdout
    assert told("group", "create", "ops", "--org", "acme")["members"] == []
    assert told("group", "add", "ops", "ann", "--org", "acme")["members"] == ["ann"]
    assert "ann" in shell.run("group", "list", "--org", "acme").stdout
    found = told("grant", "assign", "acme")
    assert (found["org"], found["restricted"]) == ("acme", False)
    assert told("grant", "restrict", "--on", found["id"])["restricted"] is True
    assert "restricted" in shell.run("org", "projects", "--org", "acme").stdout
    granted = told("grant", "add", "--group", "ops", "--level", "admin")
    assert (granted["group"], granted["level"], granted["user"]) == ("ops", "admin", None)
    assert "group ops" in shell.run("grant", "list").stdout
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        assert cortex.project.id in cortex.tenants.rights("ann", org="acme").admin
    assert told("grant", "remove", "--group", "ops")["level"] == "admin"
    assert told("grant", "open")["restricted"] is False
    assert told("group", "remove", "ops", "ann", "--org", "acme")["members"] == []
    assert told("group", "delete", "ops", "--org", "acme")["name"] == "ops"
    assert told("org", "leave", "ann", "--org", "acme")["user"] == "ann"
    assert told("org", "members", "--org", "acme") == []
    assert shell.run("org", "leave", "ann", "--org", "acme").returncode == 4
    assert shell.run("org", "join", "ann", "--org", "nowhere").returncode == 4
    assert shell.run("grant", "add", "--level", "read").returncode == 2


def test_a_token_is_for_an_organisation_and_tells_who_joined(home: Path, project: Path) -> None:
    shell = Shell(home, project)
    shell.run("org", "create", "acme")
    shell.run("grant", "assign", "acme")
    made = shell.run("token", "create", "--subject", "ann", "--org", "acme", "--scope", "write", "--in", project.name)
    assert "became a member of the organisation, with the level write" in made.stderr
    with Cortex.open(home, project=project, backend=StubBackend(), auth="tokens") as cortex:
        assert cortex.verifier is not None
        caller = cortex.verifier(made.stdout.strip())
        assert (caller.org, caller.project) == ("acme", cortex.project.id)
        assert cortex.project.id in caller.rights.write
    again = json.loads(shell.run("token", "create", "--subject", "ann", "--org", "acme", "--json").stdout)
    assert (again["org"], again["joined"]) == ("acme", None)
