"""`cortex verify`: texts, files and standard input checked against a repository, with an exit code for scripts."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from helpers import git
from shell import Shell
from terminal import at_terminal

AUTH = '''"""JWT authentication."""

ACCESS_SECONDS = 900


def issue_refresh_token(user: str) -> dict[str, str]:
    return {"sub": user, "kind": "refresh"}
'''
TRUE = "Added `issue_refresh_token` to auth.py."
HERE = "`issue_refresh_token` is defined in auth.py."
FALSE = "Added `rotate_all_tokens` to auth.py."
OPEN = "All tests pass."
DESCRIPTION = """\
## Signing in

- Added `issue_refresh_token` to `auth.py`
- `ACCESS_SECONDS` is 900 in `auth.py`

### Checklist

- [x] Is the README up to date?

```python
rotate_all_tokens()  # only an example
```
"""


@pytest.fixture
def shell(home: Path, project: Path) -> Shell:
    git(project, "init", "-q", "-b", "main")
    (project / "README.md").write_text("# Shop\n", "utf-8")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "begin")
    (project / "auth.py").write_text(AUTH, "utf-8")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "Add refresh tokens")
    return Shell(home, project, "verify")


def _told(shell: Shell, *words: str, code: int = 0, given: str | None = None) -> Any:
    done = shell.run(*words, "--json", given=given)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("text", "status", "code"), [(TRUE, "ACCEPT", 0), (OPEN, "WARN", 11), (FALSE, "REJECT", 12)])
def test_the_exit_code_tells_the_outcome(shell: Shell, text: str, status: str, code: int) -> None:
    done = shell.run(text)
    assert (done.returncode, done.stderr) == (code, "")
    assert text.rstrip(".") in done.stdout
    assert re.search(rf"^{status}  \d\.\d\d  risk (low|medium|high)$", done.stdout, re.MULTILINE)


def test_one_claim_that_nothing_reads_is_a_warning(shell: Shell) -> None:
    told = _told(shell, f"{HERE} {TRUE} Added support for several signing keys.", code=11)
    assert (told["status"], told["claims_verified"], told["claims_extracted"]) == ("WARN", 2, 3)


def test_warnings_can_be_accepted_and_rejections_cannot(shell: Shell) -> None:
    assert shell.run(OPEN, "--accept-warnings").returncode == 0
    assert shell.run(FALSE, "--accept-warnings").returncode == 12


def test_people_see_claims_with_marks_and_places(shell: Shell) -> None:
    lines = shell.run(f"{HERE} {FALSE} {OPEN}").stdout.splitlines()
    shown = [line.split("\t") for line in lines[:3]]
    assert [(row[0], *row[2:]) for row in shown] == [
        ("yes", HERE, "File: auth.py line 6"),
        ("NO", FALSE, "No symbol `rotate_all_tokens` in auth.py"),
        ("-", OPEN, "No test report was found"),
    ]
    assert lines[-1].startswith("1 of 3 claims is supported.")


def test_a_narrow_screen_hides_nothing(shell: Shell) -> None:
    shown = at_terminal(shell, HERE, "--no-color", COLUMNS="70").screen
    for word in ("yes", "score", "claim", "evidence", "`issue_refresh_token`", "auth.py line 6"):
        assert word in shown
    assert max(map(len, shown.splitlines())) <= 70


def test_a_text_that_contradicts_itself_is_shown_beside_itself(shell: Shell) -> None:
    done = shell.run("The shop runs on PostgreSQL 15. The shop runs on PostgreSQL 16.")
    assert done.returncode in (11, 12)
    wanted = "contradiction: The shop runs on PostgreSQL 15. / The shop runs on PostgreSQL 16. ("
    assert any(line.startswith(wanted) for line in done.stdout.splitlines())


def test_json_has_all_that_was_found(shell: Shell) -> None:
    told = _told(shell, f"{TRUE} {FALSE} Is that so?", code=12)
    assert told.keys() == {
        "grounding_score",
        "status",
        "risk_level",
        "claims_extracted",
        "claims_verified",
        "claims",
        "not_checked",
        "fuzzy_confidence",
        "contradictions",
        "message",
    }
    assert (told["status"], told["claims_extracted"], told["claims_verified"]) == ("REJECT", 2, 1)
    assert [(one["claim"], one["verdict"], one["method"]) for one in told["claims"]] == [
        (TRUE, "supported", "rules"),
        (FALSE, "contradicted", "rules"),
    ]
    assert any(place.startswith(("Commit ", "File: auth.py")) for place in told["claims"][0]["evidence"])
    assert told["not_checked"] == [{"text": "Is that so?", "reason": "question"}]
    (against,) = told["contradictions"]
    assert (against["left"], against["between"]) == (FALSE, "evidence")


@pytest.mark.parametrize("words", [(), ("-",)])
def test_standard_input_is_read(shell: Shell, words: tuple[str, ...]) -> None:
    assert _told(shell, *words, given=TRUE)["claims"][0]["claim"] == TRUE


def test_a_file_is_read_whatever_its_bytes(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "answer.md"
    file.write_bytes(TRUE.encode() + b"\n\xff\xfe\n")
    assert _told(shell, "--file", str(file))["claims"][0]["claim"] == TRUE


def test_a_text_and_a_file_are_one_too_many(shell: Shell) -> None:
    done = shell.run(TRUE, "--file", "auth.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "not both" in done.stderr


def test_a_file_that_is_not_there_is_told(shell: Shell) -> None:
    done = shell.run("--file", "nowhere.md")
    assert done.returncode == 2
    assert "nowhere.md" in done.stderr


def test_evidence_can_be_narrowed(shell: Shell) -> None:
    (claim,) = _told(shell, TRUE, "-e", "git log")["claims"]
    assert claim["evidence"]
    assert all(place.startswith("Commit ") for place in claim["evidence"])
    defined = "`issue_refresh_token` is defined in auth.py."
    (claim,) = _told(shell, defined, "-e", "*.py", "-e", "README.md")["claims"]
    assert claim["evidence"]
    assert all(place.startswith("File: ") for place in claim["evidence"])


def test_an_empty_source_is_an_error_and_no_verdict(shell: Shell) -> None:
    done = shell.run(TRUE, "-e", " ")
    assert (done.returncode, done.stdout) == (2, "")
    assert "evidence source" in done.stderr


@pytest.mark.parametrize("text", ["", "Looks fine, thanks!"])
def test_where_nothing_is_claimed_nothing_was_checked(shell: Shell, text: str) -> None:
    shown = shell.text(given=text)
    assert "Nothing was checked" in shown
    assert shown.startswith("ACCEPT  1.00")


def test_a_pull_requests_description_is_checked(shell: Shell, tmp_path: Path) -> None:
    told = _told(shell, given=DESCRIPTION)
    assert told["status"] == "ACCEPT"
    assert [one["claim"] for one in told["claims"]] == [
        "Added `issue_refresh_token` to `auth.py`",
        "`ACCESS_SECONDS` is 900 in `auth.py`",
    ]
    body = tmp_path / "body.md"
    body.write_text(f"{DESCRIPTION}\n- Added `rotate_all_tokens` to `auth.py`\n", "utf-8")
    done = shell.run("--file", str(body))
    assert done.returncode == 12
    assert "No symbol `rotate_all_tokens`" in done.stdout


def test_the_page_shows_what_is_printed(shell: Shell) -> None:
    page = (Path(__file__).parents[2] / "docs" / "guides" / "grounding.md").read_text("utf-8")
    example = re.search(r"```sh\ncortex verify '([^']+)'\n```\n\n```text\n(.*?)```", page, re.DOTALL)
    assert example
    done = at_terminal(shell, example[1], "--no-color", COLUMNS="100")
    # Probabilities move a little whenever the model is made anew.
    printed, shown = (
        [re.sub(r"\d\.\d\d", "#", one).split() for one in text.splitlines()]
        for text in (done.screen.rpartition("\x1b[2K")[2], example[2])
    )
    assert (done.code, printed) == (12, shown)


def test_a_terminal_tells_that_the_project_is_being_read(shell: Shell) -> None:
    shown = at_terminal(shell, HERE, "--no-color")
    assert re.search(r"Reading the project: .*\r.*yes", shown.screen, re.DOTALL)
    assert "Reading" not in at_terminal(shell, HERE, "--no-color", pipe=True).piped


def test_another_project_can_be_named(shell: Shell, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert shell.run(TRUE, "--project", str(elsewhere)).returncode == 12


def test_a_record_shows_how_far_it_is_grounded(home: Path, shell: Shell) -> None:
    cortex = Shell(home, shell.project)
    line = cortex.json("branch", "create", "Signing in")["branch_id"]
    assert "REJECT  0.0" in cortex.text("branch", "add", line, FALSE, "--role", "assistant")
    (found,) = cortex.json("recall", "-f", "grounded:reject")["results"]
    assert found["grounding"] < 0.3
    assert "grounding: 0.0" in cortex.text("get", found["id"])
    assert "accept 0, warn 0, reject 1" in cortex.text("status")


def test_adding_an_entry_prints_its_verdict(home: Path, shell: Shell) -> None:
    cortex = Shell(home, shell.project)
    line = cortex.json("branch", "create", "Signing in")["branch_id"]
    added = cortex.json("branch", "add", line, FALSE, "--role", "assistant")
    assert (added["verification"]["status"], added["unchecked"]) == ("REJECT", None)
    assert added["verification"]["message"]
    asked = cortex.json("branch", "add", line, FALSE, "--role", "user")
    assert asked["verification"] is None


@pytest.mark.slow
def test_memories_that_the_project_contradicts_are_listed_and_marked_until_they_are_true(
    shell: Shell, home: Path, project: Path
) -> None:
    note = Shell(home, project, "capture")
    assert note.run("`ACCESS_SECONDS` is 900 in auth.py.").returncode == 0
    assert _told(shell, "--memories")["stale"] == []
    (project / "auth.py").write_text(AUTH.replace("900", "600"), "utf-8")
    (stale,) = _told(shell, "--memories", code=11)["stale"]
    assert stale["new"] and "600" in stale["reason"]
    shown = shell.run("--memories")
    assert shown.returncode == 11 and "1 stale" in shown.stdout + shown.stderr
    (project / "auth.py").write_text(AUTH, "utf-8")
    assert _told(shell, "--memories")["fresh"] == [stale["id"]]


def test_memories_are_checked_alone(shell: Shell) -> None:
    assert shell.run("--memories", HERE).returncode == 2
