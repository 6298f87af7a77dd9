"""Broken, hostile and missing projects: checks stay inside the folder, finish, and reveal no secret."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from sample_project import commit, fill, junit, locations, make_repository, only, open_at

from cortex_py.core.errors import CortexError
from cortex_py.parts.verify.index import project_index
from cortex_py.parts.verify.verification import Verification, to_stored_json

from helpers import git

TOKEN = "ghp_" + "1a2B3c4D5e" * 3 + "6F7g8h"
ONE = "def one():\n    return 1\n"


def verify(home: Path, project: Path, text: str, sources: list[str] | None = None) -> Verification:
    with open_at(home, project) as cortex:
        return cortex.grounding.verify(text, evidence_sources=sources)


# Where the project is


def test_a_plain_folder_has_files_and_no_history(home: Path, project: Path) -> None:
    fill(project, {"a.py": ONE, ".gitignore": "*.tmp\n", "x.tmp": "def hidden():\n    pass\n"})
    found = verify(home, project, "`one` is defined in a.py.\n\n`hidden_thing` is defined in a.py.")
    assert [one.verdict for one in found.findings] == ["supported", "contradicted"]
    assert not any(one.commit for finding in found.findings for one in finding.evidence)


def test_an_empty_folder(home: Path, project: Path) -> None:
    found = verify(home, project, "There is a file app/auth.py.")
    assert only(found).verdict == "contradicted"


def test_a_branch_without_commits(home: Path, project: Path) -> None:
    make_repository(project)
    fill(project, {"a.py": ONE, "b.py": ONE.replace("one", "two")})
    git(project, "add", "a.py")
    found = verify(home, project, "I added `one` to a.py.\n\nI added `two` to b.py.\n\nI added `three` to b.py.")
    assert [one.verdict for one in found.findings] == ["supported", "supported", "contradicted"]
    assert "Uncommitted change: a.py" in locations(found.findings[0])


def test_a_bare_repository_has_history_and_no_files(home: Path, tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source")
    made = commit(source, {"a.py": ONE}, "Bring the first function")
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "-q", "--bare", str(source), str(bare))
    with open_at(home, bare) as cortex:
        found = cortex.grounding.verify(f"The first function came with commit {made[:7]}.")
    assert f"Commit {made[:7]} " in " ".join(locations(only(found)))


def test_a_folder_that_is_no_longer_there(home: Path, project: Path) -> None:
    make_repository(project)
    commit(project, {"a.py": ONE}, "first")
    with open_at(home, project) as cortex:
        assert only(cortex.grounding.verify("`one` is defined in a.py.")).verdict == "supported"
        shutil.rmtree(project)
        found = cortex.grounding.verify("`one` is defined in a.py.")
    assert (only(found).verdict, found.status) == ("not checkable", "WARN")
    assert "The project folder does not exist" in found.message


def test_a_repository_that_breaks_is_a_typed_error_or_an_answer(home: Path, project: Path) -> None:
    make_repository(project)
    commit(project, {"a.py": ONE}, "first")
    with open_at(home, project) as cortex:
        assert cortex.grounding.verify("`one` is defined in a.py.").verified == 1
        for name in ("HEAD", "index"):
            (project / ".git" / name).write_bytes(b"broken")
        try:
            cortex.grounding.verify("`one` is defined in a.py.")
        except CortexError as error:
            assert error.remedy


def test_a_shallow_clone_does_not_know_what_came_before(home: Path, tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source")
    commit(source, {"a.py": ONE}, "first", 1)
    commit(source, {"b.py": ONE.replace("one", "two")}, "second", 2)
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{source}", str(tmp_path / "shallow"))
    found = verify(home, tmp_path / "shallow", "I added `one` to a.py.")
    assert only(found).verdict != "contradicted"


# What lies in it


def test_files_that_are_no_text_are_there_and_say_nothing(home: Path, project: Path) -> None:
    make_repository(project)
    contents: dict[str, str | bytes | None] = {
        "a.py": ONE,
        "logo.png": os.urandom(2_000),
        "nul.py": b"def one():\0\n" * 50,
        "latin.py": "def gr\u00fc\u00dfe():\n    pass\n".encode("latin-1"),
        "wide.py": "def wide():\n    pass\n".encode("utf-16"),
        "broken.py": b"def bro\xff\xfeken(:\n" * 20,
        "long.py": b"x = '" + b"a" * 900_000 + b"'\n",
        "huge.py": b"def enormous():\n    pass\n" + b"# " + b"a" * 1_100_000,
        "empty.py": b"",
        "half.json": b'{"a": "\\ud800", "b"',
        "whole.json": b'{"a": "\\ud800", "limit": 4}',
        "odd\nname.py": ONE,
        b"bytes\xff.py".decode("utf-8", "surrogateescape"): ONE,
    }
    commit(project, contents, "All kinds of files \udcff".encode("utf-8", "replace").decode())
    text = "\n\n".join(
        ["`one` is defined in a.py.", *(f"There is a file {name}." for name in ("logo.png", "nul.py", "huge.py"))]
    )
    found = verify(home, project, text)
    assert {one.verdict for one in found.findings} == {"supported"}
    json.loads(to_stored_json(found))


def test_links_are_not_followed(home: Path, project: Path, tmp_path: Path) -> None:
    outside = fill(tmp_path / "outside", {"secret_plans.py": "def outside_only():\n    pass\n", "junit.xml": junit(7)})
    make_repository(project)
    fill(project, {"a.py": ONE})
    (project / "loop").symlink_to(project, target_is_directory=True)
    (project / "self.py").symlink_to("self.py")
    (project / "plans.py").symlink_to(outside / "secret_plans.py")
    (project / "there").symlink_to(outside, target_is_directory=True)
    (project / "junit.xml").symlink_to(outside / "junit.xml")
    (project / "target").symlink_to(outside, target_is_directory=True)
    commit(project, {}, "first")
    claims = (
        "`outside_only` is defined in plans.py.\n\n`outside_only` is defined in there/secret_plans.py.\n\n"
        "7 tests passed.\n\n`one` is defined in a.py."
    )
    found = verify(home, project, claims)
    assert [one.verdict for one in found.findings[-2:]] == ["not checkable", "supported"]
    assert not any(one.verdict == "supported" for one in found.findings[:-1])
    for source in ("../outside/junit.xml", str(outside / "junit.xml"), "there/junit.xml", "junit.xml"):
        with open_at(home, project) as cortex:
            asked = cortex.grounding.verify("7 tests passed.", evidence_sources=[source])
        assert only(asked).verdict == "not checkable", source


def test_files_that_vanish_while_they_are_read(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_repository(project)
    commit(project, {f"f{n}.py": f"def name{n}():\n    pass\n" for n in range(10)}, "first")
    plain = project_index.read_file

    def read(root: Path, ref: project_index.FileRef) -> bytes | None:
        if ref.path == "f3.py":
            shutil.rmtree(project / "f3.py", ignore_errors=True)
            (project / "f3.py").unlink(missing_ok=True)
        return plain(root, ref)

    monkeypatch.setattr(project_index, "read_file", read)
    with open_at(home, project) as cortex:
        assert cortex.grounding.verify("`name4` is defined in f4.py.").verified == 1
        monkeypatch.undo()
        assert only(cortex.grounding.verify("There is a file f3.py.")).verdict == "contradicted"


def test_a_file_that_may_not_be_read(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_repository(project)
    commit(project, {"a.py": ONE, "locked.py": ONE.replace("one", "two")}, "first")
    plain = project_index.read_file
    monkeypatch.setattr(
        project_index, "read_file", lambda root, ref: None if ref.path == "locked.py" else plain(root, ref)
    )
    found = verify(home, project, "There is a file locked.py.\n\n`one` is defined in a.py.")
    assert [one.verdict for one in found.findings] == ["supported", "supported"]


@pytest.mark.parametrize(
    "text",
    [
        "`" * 5_000,
        "I added `" + "a" * 20_000 + "` to " + "b/" * 2_000 + "c.py.",
        "`a.b.c.d::e#f->g` is defined in ../../../etc/passwd.",
        '`x" OR 1=1; DROP TABLE file; --` is defined in a.py.',
        "`NEAR(one two)` and `*` and `one*` are defined in a.py.",
        "There is a file \0.py. \x1b[31m `\u202eone` is defined in a.py\u2028.",
        "Line 99999999999999999999 of a.py has `one`.",
        "`one` is set to " + "9" * 400 + ".",
        "There is a file /etc/passwd. There is a file ~/.ssh/id_rsa. There is a file C:\\Windows\\win.ini.",
        "\ud800 `one` is defined in a.py.",
    ],
)
def test_odd_claims_are_answered(home: Path, project: Path, text: str) -> None:
    make_repository(project)
    commit(project, {"a.py": ONE}, "first")
    found = verify(home, project, text)
    assert 0.0 <= found.score <= 1.0
    assert "passwd" not in " ".join(place for one in found.findings for place in locations(one))


# Secrets


def all_of(found: Verification) -> str:
    """Everything that a caller may show or keep."""
    return repr(found) + found.message + to_stored_json(found)


def test_secrets_of_files_and_messages_do_not_come_back(home: Path, project: Path) -> None:
    make_repository(project)
    commit(
        project,
        {
            "settings.py": f'API_TOKEN = "{TOKEN}"\nDB_PASSWORD = "hunter2islong99"\nRETRIES = 3\n',
            "config.yaml": f"api_token: {TOKEN}\nretries: 3\n",
            "package.json": json.dumps({"dependencies": {"thing": f"git+https://user:{TOKEN}@example.org/thing.git"}}),
        },
        f"Use {TOKEN} for the API token",
    )
    claims = (
        "`API_TOKEN` is set to 5.\n\n`DB_PASSWORD` is set to 5.\n\n`api_token` is 7 in config.yaml.\n\n"
        "I added `API_TOKEN` to settings.py.\n\nThe API token is used for the API.\n\nThe project requires thing 2.0.0."
    )
    with open_at(home, project) as cortex:
        found = cortex.grounding.verify(claims)
    shown = all_of(found)
    assert len(found.findings) == 6
    assert TOKEN not in shown
    assert TOKEN[:30] not in shown
    assert "hunter2islong99" not in shown


def test_secrets_in_claims_do_not_come_back(home: Path, project: Path) -> None:
    make_repository(project)
    commit(project, {"a.py": ONE}, "first")
    text = (
        f"I added `API_TOKEN` with {TOKEN} to a.py.\n\nShall I use {TOKEN}?\n\n"
        f"The timeout is 30 seconds for {TOKEN}. The timeout is 60 seconds for {TOKEN}.\n\n"
        f"{'word ' * 76}`missing_name` is defined in a.py for {TOKEN}."
    )
    found = verify(home, project, text)
    assert len(found.findings) >= 2
    assert TOKEN[:20] not in found.message + to_stored_json(found)
    assert TOKEN[:20] not in repr([one.text for one in found.unchecked])
    assert TOKEN[:20] not in repr([(one.claim.text, one.reason, one.evidence) for one in found.findings])
    assert TOKEN[:20] not in repr(found.contradictions)


def test_a_setting_that_is_a_secret_is_not_kept_in_the_index(home: Path, project: Path) -> None:
    make_repository(project)
    commit(project, {"config.yaml": f"api_token: {TOKEN}\nretries: 3\n", "a.py": ONE}, "first")
    with open_at(home, project) as cortex:
        cortex.grounding.refresh()
    kept = b"".join(path.read_bytes() for path in (home / "evidence").rglob("*.db*"))
    assert b"retries" in kept
    assert TOKEN.encode() not in kept


@pytest.mark.parametrize("name", [".env", "deploy.pem", "id_rsa", ".netrc", "sub/.env.production"])
def test_private_files_are_never_read(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    make_repository(project)
    commit(project, {name: "===== 7 passed in 1.0s =====\nPASSPHRASE=quiet-words\n", "a.py": ONE}, "first")
    opened: list[str] = []

    def read(root: Path, ref: project_index.FileRef, **_: object) -> bytes | None:
        opened.append(ref.path)
        return b""

    for module in ("index.project_index", "index.lookup", "checks.values"):
        monkeypatch.setattr(f"cortex_py.parts.verify.{module}.read_file", read)
    with open_at(home, project) as cortex:
        for sources in (None, [name], ["test report"], ["files"]):
            found = cortex.grounding.verify(
                f"There is a file {name}.\n\n`PASSPHRASE` is defined in {name}.\n\n7 tests passed.",
                evidence_sources=sources,
            )
            assert "quiet-words" not in all_of(found)
    assert opened
    assert name not in opened
