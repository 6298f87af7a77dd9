"""`cortex branch …` and `cortex init`: lines of work on the command line, for people and as JSON."""

import os
import sys
from pathlib import Path

import pytest

from helpers import git
from shell import Shell


@pytest.fixture
def shell(home: Path, project: Path) -> Shell:
    """In a repository with two branches, a README and a module."""
    git(project, "init", "-q", "-b", "main")
    (project / "README.md").write_text("# Shop\n\nThe warehouse has three floors.\n", "utf-8")
    (project / "prices.py").write_text("def gross(net: float) -> float:\n    return net * 1.19\n", "utf-8")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "begin")
    git(project, "branch", "feature/prices")
    return Shell(home, project)


@pytest.mark.slow
def test_a_line_of_work_on_the_command_line(shell: Shell) -> None:
    created = shell.json("branch", "create", "Preise [für] Zoë", "--git-branch", "main")
    assert created["branch_id"].startswith("preise_fur_zoe_20")
    assert (created["topic"], created["git_branch"], created["parent_id"]) == ("Preise [für] Zoë", "main", None)
    assert (created["status"], created["verified"]) == ("active", True)
    assert created["path"] == str(shell.home / "memory" / created["project_id"] / f"{created['branch_id']}.md")
    child = shell.json("branch", "create", "Rabatte", "--parent", created["branch_id"])
    assert child["parent_id"] == created["branch_id"]

    listed = shell.json("branch", "list")
    assert ([one["id"] for one in listed["branches"]], listed["active"]) == (
        [created["branch_id"], child["branch_id"]],
        created["branch_id"],
    )
    assert shell.json("branch", "current")["branch_id"] == created["branch_id"]

    added = shell.json("branch", "add", "active", "We decided to round prices up.", "--role", "assistant")
    assert added["task_id"].startswith("task_20")
    assert (added["branch_id"], added["role"]) == (created["branch_id"], "assistant")
    shell.json("branch", "add", created["branch_id"], "-", given="Next: tell the customers ☃\n")
    shown = shell.json("branch", "show", created["branch_id"])
    assert [one["content"] for one in shown["entries"]] == [
        "We decided to round prices up.",
        "Next: tell the customers ☃\n",
    ]
    assert shown["entries"][1]["role"] == "user"

    summary = shell.json("branch", "summary")
    assert (summary["branch_id"], summary["entries"]) == (created["branch_id"], 2)
    assert "round prices up" in summary["summary"]
    assert "tell the customers" in summary["content"]
    graph = shell.json("branch", "graph", created["branch_id"])
    assert {node["kind"] for node in graph["nodes"]} == {"context", "branch"}


@pytest.mark.soak
def test_people_see_short_answers(shell: Shell) -> None:
    created = shell.run("branch", "create", "Prices [bold]up[/bold]")
    branch = created.stdout.strip()
    assert f"{branch}.md" in created.stderr
    child = shell.text("branch", "create", "Discounts", "--parent", branch).strip()
    assert "No line of work" in shell.text("branch", "current")
    assert shell.text("branch", "current", "--quiet") == ""
    assert shell.text("branch", "link", branch, "main") == f"{branch} follows main.\n"
    assert "does not exist yet" in shell.text("branch", "link", child, "not/yet")
    assert shell.text("branch", "link", child, "main").splitlines()[1] == f"{branch} no longer does."
    shell.text("branch", "link", branch, "main")
    assert shell.text("branch", "current") == f"{branch}  Prices [bold]up[/bold]\n"

    entry, category = shell.text("branch", "add", branch, "We decided to round prices up.").split()
    assert len(entry) == 40
    shown = shell.text("branch", "show")
    assert f"user  {category}  {entry}\nWe decided to round prices up." in shown
    assert "round prices up" in shell.text("branch", "summary")
    assert entry not in shell.text("branch", "summary")
    assert "user] We decided" in shell.text("branch", "summary", "--content", "--max-tokens", "200")
    table = shell.text("branch", "list")
    assert "Prices [bold]up[/bold]" in table
    (active,) = [line for line in table.splitlines() if line.startswith("*")]
    assert branch in active
    graph = shell.run("branch", "graph")
    assert "belongs_to" in graph.stdout
    assert "child_of" in graph.stdout
    assert "3 nodes, 2 edges, 1 orphan\n" in graph.stderr


@pytest.mark.slow
def test_edits_of_a_branch_file_are_taken_in(shell: Shell) -> None:
    created = shell.json("branch", "create", "Prices")
    shell.json("branch", "add", created["branch_id"], "They rise by two per cent")
    file = Path(created["path"])
    file.write_text(file.read_text("utf-8").replace("two per cent", "three per cent"), "utf-8")
    synced = shell.json("branch", "sync")
    assert synced == {created["branch_id"]: {"updated": 1, "conflicts": 0, "removed": 0, "added": 0}}
    (entry,) = shell.json("branch", "show", created["branch_id"])["entries"]
    assert (entry["content"], entry["version"]) == ("They rise by three per cent", 2)
    assert shell.text("branch", "sync") == ""
    assert "0 changed, 0 added" in shell.text("branch", "sync", created["branch_id"])


def test_the_active_branch_is_that_of_the_checkout(shell: Shell) -> None:
    prices = shell.json("branch", "create", "Prices", "--git-branch", "feature/prices")["branch_id"]
    assert shell.json("branch", "current") is None
    git(shell.project, "checkout", "-q", "feature/prices")
    assert shell.json("branch", "current")["branch_id"] == prices


@pytest.mark.slow
def test_the_hook_runs_at_every_checkout(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a `cortex` on the path that also writes down where and how it was called, and how it ended."""
    tools, noted = tmp_path / "tools", tmp_path / "noted"
    tools.mkdir()
    script = f'#!/bin/sh\n{sys.executable} -m cortex_py "$@"\necho "$PWD $? $*" >> {noted}\n'
    (tools / "cortex").write_text(script, "utf-8")
    (tools / "cortex").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    assert shell.text("branch", "hook", "status") == "action: status, path: None\n"
    installed = shell.json("branch", "hook", "install")
    hook = shell.project / ".git" / "hooks" / "post-checkout"
    assert installed == {"action": "install", "path": str(hook)}
    assert shell.json("branch", "hook", "status")["path"] == str(hook)
    git(shell.project, "checkout", "-q", "feature/prices")
    git(shell.project, "checkout", "-q", "main", "--", "README.md")
    git(shell.project, "checkout", "-q", "main")
    lines = noted.read_text("utf-8").splitlines()
    assert [line.split(" ")[:4] for line in lines] == [[str(shell.project), "0", "branch", "arrived"]] * 2
    assert shell.json("branch", "hook", "remove") == {"action": "remove", "removed": True}
    assert not hook.exists()
    assert shell.text("branch", "hook", "remove") == "action: remove, removed: False\n"


def test_a_renamed_git_branch_keeps_its_line_of_work(shell: Shell) -> None:
    prices = shell.json("branch", "create", "Prices", "--git-branch", "feature/prices")["branch_id"]
    git(shell.project, "checkout", "-q", "feature/prices")
    git(shell.project, "branch", "-q", "-m", "feature/costs")
    assert shell.json("branch", "arrived", "0" * 40, "1" * 40, "1") == {"active": prices}
    assert shell.json("branch", "current")["git_branch"] == "feature/costs"


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "files"), [("light", 1), ("full", 2), ("none", 0)])
def test_init_scans_as_it_is_asked_to(shell: Shell, mode: str, files: int) -> None:
    told = shell.json("init", "--mode", mode)
    assert (told["mode"], told["files_scanned"], told["files_changed"]) == (mode, files, files)
    assert (told["contexts_created"] >= files, told["model_installed"]) == (True, True)
    again = shell.json("init", "--mode", mode)
    assert (again["project_id"], again["files_scanned"], again["contexts_created"]) == (told["project_id"], files, 0)
    spoken = shell.text("init", "--mode", mode)
    assert f"({told['project_id']}) is ready" in spoken
    assert (f"Scanned {files} {'file' if files == 1 else 'files'}: 0 new or changed" in spoken) is (mode != "none")


def test_init_scans_lightly_unless_told(shell: Shell) -> None:
    assert shell.json("init")["mode"] == "light"
    found = shell.json("recall", "how many floors has the warehouse")
    assert "three floors" in found["results"][0]["content"]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("branch", "show", "nowhere"), 4, "There is no branch 'nowhere'"),
        (("branch", "add", "nowhere", "x"), 4, "There is no branch"),
        (("branch", "summary"), 4, "No line of work is linked"),
        (("branch", "show", "active"), 4, "No line of work is linked"),
        (("branch", "sync", "nowhere"), 4, "There is no branch"),
        (("branch", "graph", "nowhere"), 4, "There is no branch"),
        (("branch", "link", "nowhere", "main"), 4, "There is no branch"),
        (("branch", "link", "nowhere", "a..b"), 2, "cannot be the name of a git branch"),
        (("branch", "create", " "), 2, "topic is empty"),
        (("branch", "create", "x" * 201), 2, "longer than 200"),
        (("branch", "create", "x", "--parent", "nowhere"), 4, "There is no branch"),
        (("branch", "create", "x", "--git-branch", "a b"), 2, "cannot be the name of a git branch"),
        (("branch", "add", "nowhere", "x", "--role", "system"), 2, "--role"),
        (("branch", "summary", "nowhere", "--max-tokens", "0"), 2, "holds nothing"),
        (("branch", "hook", "polish"), 2, "polish"),
        (("branch", "teleport"), 2, "No such command"),
        (("init", "--mode", "deep"), 2, "--mode"),
    ],
)
def test_errors_are_one_line_with_a_remedy_and_an_exit_code(
    shell: Shell, words: tuple[str, ...], code: int, told: str
) -> None:
    done = shell.run(*words)
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert shell.json("branch", "list") == {"branches": [], "active": None}


def test_a_hook_needs_a_repository(home: Path, project: Path) -> None:
    done = Shell(home, project).run("branch", "hook", "install")
    assert done.returncode == 2
    assert "not a git repository" in done.stderr


def test_a_hook_that_is_no_shell_script_is_left_alone(shell: Shell) -> None:
    hook = shell.project / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/usr/bin/python3\nprint(1)\n", "utf-8")
    hook.chmod(0o755)
    done = shell.run("branch", "hook", "install")
    assert done.returncode == 2
    assert "is not a shell script" in done.stderr
    assert hook.read_text("utf-8") == "#!/usr/bin/python3\nprint(1)\n"
