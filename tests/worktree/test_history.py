"""Histories, each read from a real repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from repositories import repository

from cortex_py.core.errors import CortexError
from cortex_py.worktree.git import diffs
from cortex_py.worktree.git import runner as git_runner
from cortex_py.worktree.git.history import (
    ChangedLine,
    Commit,
    Patch,
    PatchFile,
    WorkingChanges,
    find_commit,
    list_reachable,
    read_commits,
    read_patch,
    read_tags,
    read_working_changes,
)
from cortex_py.worktree.git.repository import Repository

from helpers import git


def make(root: Path, *options: str) -> Path:
    root.mkdir(parents=True)
    git(root, "init", "-q", "-b", "main", *options)
    return root


def fill(root: Path, contents: dict[str, str | bytes | None]) -> None:
    for path, content in contents.items():
        place = root / path
        if content is None:
            place.unlink()
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)


def commit(root: Path, contents: dict[str, str | bytes | None], message: str = "work") -> str:
    fill(root, contents)
    git(root, "add", "--all")
    git(root, "commit", "-q", "--allow-empty", "--allow-empty-message", "--cleanup=verbatim", "-m", message)
    return git(root, "rev-parse", "HEAD")


def read(root: Path) -> list[Commit]:
    return list(read_commits(repository(root)))


def last(root: Path) -> dict[str, PatchFile]:
    return {change.path: change for change in next(read_commits(repository(root))).changes}


def told(change: PatchFile) -> tuple[str, str | None, str, int, int]:
    return change.path, change.old_path, change.status, change.added, change.removed


# Commits


def test_commits_are_told_newest_first_with_what_they_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path / "r")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2024-05-06T07:08:09+0200")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Ada É")
    first = commit(root, {"a.py": "def load(path):\n    return path\n"}, "Load it\n\nBecause.\n\nReally.\n")
    second = commit(root, {"a.py": "def load(path):\n    return read(path)\n", "b.py": "import load\n"}, "Read it")
    newest, oldest = read(root)
    assert oldest == Commit(
        id=first,
        parents=(),
        time=datetime(2024, 5, 6, 5, 8, 9, tzinfo=UTC),
        author="Ada É",
        subject="Load it",
        body="Because.\n\nReally.",
        changes=(PatchFile("a.py", None, "added", 2, 0, frozenset(("def", "load", "path", "return"))),),
        complete=True,
    )
    assert (newest.id, newest.parents, newest.subject, newest.body) == (second, (first,), "Read it", "")
    context = frozenset(("return", "path", "def", "load"))
    assert newest.changes == (
        PatchFile("a.py", None, "modified", 1, 1, frozenset(("read",)), frozenset(), context),
        PatchFile("b.py", None, "added", 1, 0, frozenset(("import", "load"))),
    )


def test_messages_may_hold_anything(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    odd = "diff --git a/x b/x\n\n@@ -1 +1 @@\n-\x01fake\n+%x00%H\ncommit 0000\n" + "long " * 20_000
    commit(root, {"a": "1\n"}, odd)
    commit(root, {}, "")
    empty, strange = read(root)
    assert (empty.subject, empty.body, empty.changes, empty.complete) == ("", "", (), True)
    assert strange.subject == "diff --git a/x b/x"
    assert strange.body.startswith("@@ -1 +1 @@\n-\x01fake\n+%x00%H\ncommit 0000")
    assert [told(one) for one in strange.changes] == [("a", None, "added", 1, 0)]


def test_times_and_encodings_that_no_one_expects(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    commit(root, {"a": "1\n"})
    start = f"tree {git(root, 'rev-parse', 'HEAD^{tree}')}\n".encode()
    texts = [
        b"author A <a> 1 +0000\ncommitter A <a> 99999999999999 +0000\n\nfar",
        b"author \xc4 <a> 1 +0000\ncommitter A <a> 0 +0000\nencoding ISO-8859-1\n\n\xfcber",
        b"author \xc4 <a> 1 +0000\ncommitter A <a> 0 +0000\n\ncaf\xe9\n\n\xff\n",
        b"author A <a>\ncommitter A <a>\n\nnever\r\n\r\nbody\r\n",
    ]
    found: list[tuple[str, str, str]] = []
    for text in texts:
        command = ["git", "-C", root, "hash-object", "-t", "commit", "-w", "--stdin", "--literally"]
        name = subprocess.run(command, input=start + text, check=True, capture_output=True).stdout.decode().strip()
        facts = find_commit(repository(root), name)
        assert facts is not None
        assert facts.time == datetime(1970, 1, 1, tzinfo=UTC)
        found.append((facts.author, facts.subject, facts.body))
    assert found == [("A", "far", ""), ("Ä", "über", ""), ("\ufffd", "caf\ufffd", "\ufffd"), ("A", "never", "body")]


def test_the_projects_mailmap_gives_the_author(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    commit(root, {".mailmap": "Ada Lovelace <a@example.org>\n"})
    assert read(root)[0].author == "Ada Lovelace"


def test_only_what_is_new_is_told_and_vanished_commits_are_passed_over(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    names = [commit(root, {"a": f"{n}\n"}) for n in range(5)]
    here = repository(root)
    found = read_commits(here, since=[names[2], "0" * 40, "HEAD", "--all", git(root, "rev-parse", "HEAD^{tree}")])
    assert [one.id for one in found] == [names[4], names[3]]
    assert [one.id for one in read_commits(here, since=[names[4]])] == []
    assert [one.id for one in read_commits(here, most=2)] == [names[4], names[3]]
    assert list(read_commits(here, most=0)) == []
    assert list_reachable(here) == names[::-1]
    assert list_reachable(here, 2) == [names[4], names[3]]


def test_the_deadline_is_asked_between_commits(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    for n in range(4):
        commit(root, {"a": f"{n}\n"})
    answers = iter([False, False, True])
    assert len(list(read_commits(repository(root), deadline=lambda: next(answers)))) == 2


def test_git_is_stopped_when_no_more_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path / "r")
    for n in range(2):
        commit(root, {"big.txt": "".join(f"line {n} {k}\n" for k in range(150_000))})
    started: list[subprocess.Popen[bytes]] = []
    plain = subprocess.Popen

    def spy(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
        process = plain(*arguments, **options)  # type: ignore[call-overload]
        started.append(process)
        return process  # type: ignore[no-any-return]

    here = repository(root)
    monkeypatch.setattr(git_runner.subprocess, "Popen", spy)
    found = read_commits(here)
    newest = next(found)
    assert not newest.complete
    assert [told(one) for one in newest.changes] == [("big.txt", None, "modified", 150_000, 150_000)]
    found.close()  # type: ignore[attr-defined]
    assert [process.returncode for process in started] == [-9]


def test_all_sides_of_merges_are_walked_and_merges_have_no_changes(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    commit(root, {"base": "b\n"})
    for side in ("one", "two", "three"):
        git(root, "checkout", "-q", "-b", side, "main")
        commit(root, {side: "x\n"})
    git(root, "checkout", "-q", "main")
    git(root, "merge", "-q", "-m", "octopus", "one", "two", "three")
    found = read(root)
    merge = found[0]
    assert len(merge.parents) > 2
    assert (merge.changes, merge.complete) == ((), True)
    assert sorted(one.path for commit in found for one in commit.changes) == ["base", "one", "three", "two"]
    assert read_patch(repository(root), merge.id, "one") == Patch("one")


# Files


def test_every_kind_of_change(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    body = "".join(f"line_{n}\n" for n in range(20))
    commit(
        root,
        {
            "moved.py": body,
            "gone.py": "old_name\n",
            "mode.sh": "x\n",
            "binary": b"\0\1",
            "swap": "text_in_it\n",
            "crlf": "a1\r\nb1\r\n",
        },
    )
    (root / "mode.sh").chmod(0o755)
    (root / "link").symlink_to("target_name")
    fill(root, {"moved.py": None, "sub/new.py": body.replace("line_7", "seven"), "gone.py": None, "swap": None})
    (root / "swap").symlink_to("gone.py")
    commit(root, {"binary": b"\0\2", "empty": "", "crlf": "a1\r\nc1\r\n", "end": "no_end"})
    found = last(root)
    assert [told(one) for one in found.values()] == [
        ("binary", None, "modified", 0, 0),
        ("crlf", None, "modified", 1, 1),
        ("empty", None, "added", 0, 0),
        ("end", None, "added", 1, 0),
        ("gone.py", None, "deleted", 0, 1),
        ("link", None, "added", 1, 0),
        ("mode.sh", None, "modified", 0, 0),
        ("sub/new.py", "moved.py", "renamed", 1, 1),
        ("swap", None, "modified", 1, 1),
    ]
    assert (found["sub/new.py"].introduced, found["sub/new.py"].dropped) == ({"seven"}, {"line_7"})
    assert (found["swap"].introduced, found["swap"].dropped) == (set(), {"text_in_it"})
    assert (found["crlf"].introduced, found["crlf"].dropped) == ({"c1"}, {"b1"})
    assert found["link"].introduced == frozenset()


def test_a_file_that_moved_to_two_places_is_once_renamed_and_once_added(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    body = "".join(f"line_{n}\n" for n in range(20))
    commit(root, {"a.py": body})
    commit(root, {"a.py": None, "b.py": body, "c.py": body})
    assert sorted((one.status, one.old_path) for one in last(root).values()) == [("added", None), ("renamed", "a.py")]


ODD = [
    b"with space", b'quo"te', b"back\\slash", b"new\nline", b"tab\t", "größe 数".encode(), b"raw\xff\xe9", b"a b/x b/x",
    b" b/ b", b"literal\\xff",
]  # fmt: skip


def test_names_of_any_bytes(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    labels = [name.decode("utf-8", "backslashreplace") for name in ODD]
    texts = {os.fsdecode(name): f"{n}_x\nname{n}\n" for n, name in enumerate(ODD)}
    commit(root, dict(texts))
    fill(root, {path: text + "added\n" for path, text in texts.items()})
    second = commit(root, {})
    assert sorted(last(root)) == sorted(labels)
    here = repository(root)
    for name in labels:
        assert read_patch(here, second, name).lines == (ChangedLine("+", 3, "added"),), name
    commit(root, dict.fromkeys(texts) | {f"in {path}": text + "added\n" for path, text in texts.items()})
    assert {(one.old_path, one.path) for one in last(root).values() if one.status != "renamed"} == set()
    assert sorted(last(root)) == sorted(f"in {name}" for name in labels)
    fill(root, {f"in {path}": "all new\n" for path in texts} | {f"un {path}": "fresh" for path in texts})
    for name in labels:
        assert read_patch(here, None, f"in {name}").lines[-1] == ChangedLine("+", 1, "all new")
        assert read_patch(here, None, f"un {name}").lines == (ChangedLine("+", 1, "fresh"),)


def test_a_name_that_two_files_would_show_means_the_plain_one(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    name = commit(root, {"a\\xff": "plain\n", os.fsdecode(b"a\xff"): "odd\n"})
    assert read_patch(repository(root), name, "a\\xff").lines == (ChangedLine("+", 1, "plain"),)


def test_submodules_are_told_without_names(tmp_path: Path) -> None:
    library = make(tmp_path / "library")
    commit(library, {"lib.py": "x\n"})
    root = make(tmp_path / "r")
    commit(root, {"a": "1\n"})
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "sub")
    commit(root, {})
    assert last(root)["sub"] == PatchFile("sub", None, "added", 1, 0)
    commit(root / "sub", {"lib.py": "y\n"})
    assert read_working_changes(repository(root)).unstaged == (PatchFile("sub", None, "modified", 1, 1),)
    commit(root, {})
    assert last(root)["sub"] == PatchFile("sub", None, "modified", 1, 1)


def test_counts_are_those_of_git(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    for n in range(4):
        commit(root, {f"f{k}.py": "".join(f"v{(n * k + j) % 7}\n" for j in range(k + n)) for k in range(6)})
    lines = git(root, "log", "--format=%H", "--numstat").split("\n")
    expected: dict[str, list[tuple[str, int, int]]] = {}
    for line in filter(None, lines):
        added, *rest = line.split("\t")
        if not rest:
            expected[added] = counts = []
        else:
            counts.append((rest[1], int(added), int(rest[0])))
    assert {one.id: [(c.path, c.added, c.removed) for c in one.changes] for one in read(root)} == expected


def test_large_commits_are_told_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path / "r")
    commit(root, {f"f{n}": f"name_{n}\n" for n in range(5)})
    commit(root, {"f0": "other\n"})
    monkeypatch.setattr(diffs, "MOST_FILES", 3)
    newest, oldest = read(root)
    assert (newest.complete, oldest.complete) == (True, False)
    assert [len(one.introduced) for one in oldest.changes] == [1, 1, 1, 0, 0]


# Kinds of repositories


def test_taste_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path / "r")
    body = "".join(f"line_{n}\n\n" for n in range(20))
    commit(root, {"a b.py": body, "ü.py": body, ".gitattributes": "*.py diff=odd\n", "z": "1\n"})
    commit(
        root,
        {"a b.py": None, "c.py": body.replace("line_5", "five"), "ü.py": body.replace("line_7", "seven"), "z": "2\n"},
    )
    fill(root, {"z": "3\n", "ü.py": body})
    git(root, "add", "z")
    here = repository(root)
    name = list_reachable(here)[0]
    plain = read(root), read_working_changes(here), read_patch(here, name, "c.py"), read_patch(here, None, "ü.py")
    assert plain[2].old_path == "a b.py"
    taste = {
        "diff.noprefix": "true",
        "diff.mnemonicPrefix": "true",
        "diff.renames": "false",
        "diff.context": "9",
        "diff.interHunkContext": "9",
        "diff.external": "false",
        "diff.odd.command": "false",
        "diff.odd.textconv": "false",
        "diff.algorithm": "patience",
        "diff.submodule": "log",
        "diff.orderFile": str(tmp_path / "order"),
        "diff.relative": "true",
        "color.ui": "always",
        "core.quotepath": "on",
        "log.showSignature": "true",
        "log.showRoot": "false",
        "log.diffMerges": "on",
        "log.follow": "true",
        "format.pretty": "oneline",
        "i18n.logOutputEncoding": "latin1",
        "core.pager": "false",
    }
    (tmp_path / "order").write_text("z\n*\n")
    for key, value in taste.items():
        git(root, "config", key, value)
    for key, value in {
        "GIT_DIFF_OPTS": "--unified=5",
        "GIT_EXTERNAL_DIFF": "false",
        "GIT_ICASE_PATHSPECS": "1",
    }.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert (
        read(root),
        read_working_changes(here),
        read_patch(here, name, "c.py"),
        read_patch(here, None, "ü.py"),
    ) == plain


def test_an_unborn_branch_has_no_history_but_work(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    fill(root, {"staged.py": "name_a\n", "new.py": "name_b\n"})
    git(root, "add", "staged.py")
    here = repository(root)
    assert (read(root), list_reachable(here), read_tags(here), find_commit(here, "main")) == ([], [], {}, None)
    assert read_working_changes(here) == WorkingChanges(
        (PatchFile("staged.py", None, "added", 1, 0, frozenset(("name_a",))),),
        (),
        (PatchFile("new.py", None, "added", 1, 0, frozenset(("name_b",))),),
    )
    assert read_patch(here, None, "staged.py").lines == (ChangedLine("+", 1, "name_a"),)


def test_where_a_shallow_clone_was_cut_nothing_seems_new(tmp_path: Path) -> None:
    source = make(tmp_path / "s")
    for n in range(3):
        name = commit(source, {"a": f"{n}\n", "b": "b\n"})
    git(tmp_path, "clone", "-q", "--depth=2", f"file://{source}", str(tmp_path / "r"))
    newest, oldest = read(tmp_path / "r")
    assert ([one.path for one in newest.changes], newest.complete) == (["a"], True)
    assert (oldest.parents, oldest.changes, oldest.complete) == ((), (), False)
    assert not read_patch(repository(tmp_path / "r"), oldest.id, "a").complete
    assert read_patch(repository(tmp_path / "r"), name, "a").lines == (
        ChangedLine("-", 1, "1"),
        ChangedLine("+", 1, "2"),
    )


def test_a_partial_clone_tells_commits_without_changes(tmp_path: Path) -> None:
    source = make(tmp_path / "s")
    commit(source, {"a": "1\n"})
    commit(source, {"a": "2\n"})
    git(source, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{source}", str(tmp_path / "r"))
    assert [(one.changes, one.complete) for one in read(tmp_path / "r")] == [((), False), ((), False)]


def test_worktrees_detached_heads_and_bare_repositories(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    first = commit(root, {"a": "1\n"})
    second = commit(root, {"a": "2\n"})
    git(root, "worktree", "add", "-q", "--detach", str(tmp_path / "w"), first)
    assert [one.id for one in read(tmp_path / "w")] == [first]
    fill(tmp_path / "w", {"a": "name\n"})
    assert [told(one) for one in read_working_changes(repository(tmp_path / "w")).unstaged] == [
        ("a", None, "modified", 1, 1)
    ]
    assert read_working_changes(repository(root)) == WorkingChanges()
    git(tmp_path, "clone", "-q", "--bare", str(root), str(tmp_path / "b.git"))
    bare = repository(tmp_path / "b.git")
    assert [one.id for one in read_commits(bare)] == [second, first]
    assert read_working_changes(bare) == WorkingChanges()
    assert read_patch(bare, None, "a") == Patch("a")


def test_a_repository_with_long_ids(tmp_path: Path) -> None:
    root = make(tmp_path / "r", "--object-format=sha256")
    first = commit(root, {"a": "1\n"})
    second = commit(root, {"a": "2\n"})
    assert len(second) == 64
    here = repository(root)
    assert [one.id for one in read_commits(here, since=[first])] == [second]
    assert read_patch(here, second, "a").lines == (ChangedLine("-", 1, "1"), ChangedLine("+", 1, "2"))
    facts = find_commit(here, second[:12])
    assert facts is not None and facts.id == second


# One commit


def test_tags_are_told_at_their_commits(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    first = commit(root, {"a": "1\n"})
    git(root, "tag", "light")
    git(root, "tag", "-a", "-m", "x", "heavy")
    git(root, "tag", "-a", "-m", "x", "nested", "heavy")
    git(root, "tag", "tree", "HEAD^{tree}")
    second = commit(root, {"a": "2\n"})
    git(root, "tag", "@scope/pkg@1.0.0")
    assert read_tags(repository(root)) == {first: ("heavy", "light", "nested"), second: ("@scope/pkg@1.0.0",)}


def test_a_commit_is_found_by_its_names_alone(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    first = commit(root, {"a": "1\n"})
    git(root, "tag", "-a", "-m", "x", "v1.0")
    git(root, "tag", "@scope/pkg@1.0.0")
    git(root, "tag", "both")
    second = commit(root, {"a": "2\n"})
    git(root, "branch", "both")
    git(root, "branch", first[:7])
    here = repository(root)

    def found(revision: str) -> str | None:
        facts = find_commit(here, revision)
        return facts and facts.id

    assert found(first) == found(first[:8]) == found("v1.0") == found("@scope/pkg@1.0.0") == first
    assert found(git(root, "rev-parse", "v1.0")) == first
    assert found("main") == found(second[:6]) == second
    assert found("both") is None and found(first[:7]) is None
    for revision in (
        "",
        "HEAD~1",
        "--all",
        "-1",
        f"{first}..{second}",
        "main@{0}",
        ":/work",
        "main:a",
        "main^",
        "ma*",
        "a b",
        "a\nb",
        "\ud800",
        "0" * 40,
        "0" * 64,
        "beef",
        "nothing",
        git(root, "rev-parse", "HEAD:a"),
        "../main",
    ):
        assert found(revision) is None, revision
        assert read_patch(here, revision, "a") == Patch("a"), revision


def test_an_ambiguous_id_is_no_answer(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    commit(root, {"a": "1\n"})
    # Enough commits that two of them share four digits.
    stream = "".join(f"commit refs/heads/side\ncommitter A <a> {n} +0000\ndata 0\n" for n in range(1_200))
    subprocess.run(["git", "-C", root, "fast-import", "--quiet"], input=stream, text=True, check=True)
    seen: dict[str, str] = {}
    for name in git(root, "rev-list", "side").split():
        if name[:4] in seen:
            break
        seen[name[:4]] = name
    else:
        pytest.fail("no two alike")
    assert find_commit(repository(root), name[:4]) is None
    facts = find_commit(repository(root), name)
    assert facts is not None and facts.id == name


# Work that is not committed


def test_what_is_not_committed(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    commit(root, {"a.py": "one\n", "b.py": "two\n", "moved.py": "x1\nx2\nx3\nx4\n", ".gitignore": "*.log\n"})
    fill(
        root,
        {
            "a.py": "staged\n",
            "n.bin": b"\0bin",
            "n.log": "ignored\n",
            "n.lock": "text_name\n",
            "d/n.py": "fresh = 1\nend",
        },
    )
    git(root, "add", "a.py")
    git(root, "mv", "moved.py", "place.py")
    fill(root, {"a.py": "both\n", "b.py": None})
    (root / "n.link").symlink_to("/etc/passwd")
    found = read_working_changes(repository(root))
    assert [told(one) for one in found.staged] == [
        ("a.py", None, "modified", 1, 1),
        ("place.py", "moved.py", "renamed", 0, 0),
    ]
    assert [told(one) for one in found.unstaged] == [("a.py", None, "modified", 1, 1), ("b.py", None, "deleted", 0, 1)]
    assert found.untracked == (
        PatchFile("d/n.py", None, "added", 2, 0, frozenset(("fresh", "end"))),
        PatchFile("n.bin", None, "added", 0, 0),
        PatchFile("n.link", None, "added", 0, 0),
        PatchFile("n.lock", None, "added", 1, 0, frozenset(("text_name",))),
    )
    assert found.complete
    here = repository(root)
    assert read_patch(here, None, "a.py") == Patch(
        "a.py", None, (ChangedLine("-", 1, "one"), ChangedLine("+", 1, "both"))
    )
    assert read_patch(here, None, "place.py") == Patch("place.py", "moved.py")
    assert read_patch(here, None, "d/n.py").lines == (ChangedLine("+", 1, "fresh = 1"), ChangedLine("+", 2, "end"))
    assert read_patch(here, None, "n.log") == Patch("n.log")
    assert [read_patch(here, None, path).lines for path in ("", ".", "d", "../r/a.py", "*.py", "\0", "\ud800")] == [
        ()
    ] * 7
    assert read_patch(here, None, "a.py", most_bytes=5) == Patch("a.py", None, (ChangedLine("-", 1, "one"),), False)


def test_large_new_files_are_not_read(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    fill(root, {"big.txt": b"x" * 1_000_001, "small.txt": "yes\n"})
    found = read_working_changes(repository(root))
    assert [told(one) for one in found.untracked] == [
        ("big.txt", None, "added", 0, 0),
        ("small.txt", None, "added", 1, 0),
    ]
    assert not found.complete
    assert read_patch(repository(root), None, "big.txt") == Patch("big.txt", complete=False)


def test_files_in_conflict_are_compared_with_our_side(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    commit(root, {"both": "base\n", "theirs": "t\n"})
    git(root, "checkout", "-q", "-b", "side")
    commit(root, {"both": "side\n", "theirs": "changed\n"})
    git(root, "checkout", "-q", "main")
    commit(root, {"both": "main\n", "theirs": None})
    with pytest.raises(subprocess.CalledProcessError):
        git(root, "merge", "-q", "side")
    found = read_working_changes(repository(root))
    assert {one.path for one in found.unstaged} <= {"both", "theirs"}
    assert next(one for one in found.unstaged if one.path == "both").added == 4
    assert ChangedLine("+", 2, "main") not in read_patch(repository(root), None, "both").lines


# Without git, or with a broken one


def test_without_git_there_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path / "r")
    name = commit(root, {"a": "1\n"})
    here = repository(root)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (
        list(read_commits(here)),
        list(read_commits(here, since=[name])),
        list_reachable(here),
        read_tags(here),
    ) == ([], [], [], {})
    assert read_working_changes(here) == WorkingChanges()
    assert read_patch(here, name, "a") == read_patch(here, None, "a") == Patch("a")
    assert find_commit(here, name) is None


def test_a_history_that_breaks_off_is_an_error(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    commit(root, {"a": "1\n"})
    commit(root, {"a": "2\n"})
    commit(root, {"a": "3\n"})
    blob = git(root, "rev-parse", "HEAD~2:a")
    (root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    found = read_commits(repository(root))
    assert next(found).subject == "work"
    with pytest.raises(CortexError, match="broke off"):
        list(found)
    shutil.rmtree(root / ".git" / "objects")
    with pytest.raises(CortexError):
        list(read_commits(repository_of(root)))
    with pytest.raises(CortexError):
        list_reachable(repository_of(root))


def repository_of(root: Path) -> Repository:
    """A repository that git itself would no longer find."""
    return Repository(root, root / ".git", root / ".git", is_bare=False)
