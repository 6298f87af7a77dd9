"""The files of a project, listed from real repositories and plain folders."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from cases import each
from cortex_py.core.errors import CortexError, InvalidInput
from cortex_py.worktree.files import files
from cortex_py.worktree.files.choice import choose, decode_text, skip_by_content, skip_by_name
from cortex_py.worktree.files.files import FileRef, blob_id, project_files, read_file

from helpers import git


def make(root: Path, contents: dict[str, str | bytes], *, commit: bool = True) -> Path:
    """A repository with these files, committed unless told otherwise."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    fill(root, contents)
    if commit:
        git(root, "add", "--all")
        git(root, "commit", "-q", "--allow-empty", "-m", "first")
    return root


def fill(root: Path, contents: dict[str, str | bytes]) -> Path:
    for path, content in contents.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def paths(root: Path) -> list[str]:
    return [file.path for file in project_files(root)]


# In a repository


def test_tracked_and_new_files_are_listed_with_the_ids_git_gives_them(tmp_path: Path) -> None:
    root = make(tmp_path / "r", {"a.txt": "one\n", "src/b.txt": "two\n"})
    (root / "new.txt").write_text("three\n")
    found = project_files(root)
    assert [(file.path, file.size) for file in found] == [("a.txt", 4), ("new.txt", 6), ("src/b.txt", 4)]
    assert [file.blob for file in found] == git(root, "hash-object", *paths(root)).split("\n")


def test_an_unmodified_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path / "r", {"a.txt": "one\n", "b.txt": "two\n"})
    (root / "b.txt").write_text("2\n")
    read: list[bytes] = []
    plain = files.read_regular
    monkeypatch.setattr(
        files, "read_regular", lambda place, most, **how: read.append(place) or plain(place, most, **how)
    )
    found = {file.path: file.blob for file in project_files(root)}
    assert found == {"a.txt": blob_id(b"one\n"), "b.txt": blob_id(b"2\n")}
    assert [place.rpartition(b"/")[2] for place in read] == [b"b.txt"]


def test_a_change_within_the_clocks_grain_is_seen(tmp_path: Path) -> None:
    root = make(tmp_path / "r", {"a.txt": "one\n"})
    (root / "a.txt").write_text("two\n")
    assert project_files(root) == [FileRef("a.txt", 4, blob_id(b"two\n"))]


def test_ignored_files_are_left_out_by_every_kind_of_rule(tmp_path: Path) -> None:
    root = make(tmp_path / "r", {".gitignore": "*.log\n/out/\n", "docs/.gitignore": "!keep.log\ndraft*\n", "a.py": ""})
    (root / ".git" / "info" / "exclude").write_text("private.txt\n")
    fill(root, {"x.log": "", "out/y": "", "docs/keep.log": "", "docs/draft.md": "", "private.txt": "", "sub/out/z": ""})
    assert paths(root) == [".gitignore", "a.py", "docs/.gitignore", "docs/keep.log", "sub/out/z"]


def test_a_tracked_file_is_listed_even_where_a_rule_would_ignore_it(tmp_path: Path) -> None:
    root = make(tmp_path / "r", {"kept.log": "x"})
    fill(root, {".gitignore": "*.log\n", "other.log": ""})
    assert paths(root) == [".gitignore", "kept.log"]


def test_deleted_and_renamed_files(tmp_path: Path) -> None:
    root = make(tmp_path / "r", {"gone.txt": "1", "staged.txt": "2", "old.txt": "3", "moved.txt": "4"})
    (root / "gone.txt").unlink()
    git(root, "rm", "-q", "staged.txt")
    git(root, "mv", "old.txt", "new name.txt")
    (root / "moved.txt").rename(root / "elsewhere.txt")
    assert project_files(root) == [
        FileRef("elsewhere.txt", 1, blob_id(b"4")),
        FileRef("new name.txt", 1, blob_id(b"3")),
    ]


def test_staged_intended_and_conflicting_files_have_the_id_of_what_lies_there(tmp_path: Path) -> None:
    root = make(tmp_path / "r", {"both.txt": "base\n"})
    git(root, "checkout", "-q", "-b", "side")
    fill(root, {"both.txt": "side\n"})
    git(root, "commit", "-q", "-am", "side")
    git(root, "checkout", "-q", "main")
    fill(root, {"both.txt": "main\n"})
    git(root, "commit", "-q", "-am", "main")
    with pytest.raises(Exception, match="merge"):
        git(root, "merge", "-q", "side")
    fill(root, {"intended.txt": "i\n", "staged.txt": "s\n"})
    git(root, "add", "-N", "intended.txt")
    git(root, "add", "staged.txt")
    found = project_files(root)
    assert [file.path for file in found] == ["both.txt", "intended.txt", "staged.txt"]
    assert [file.blob for file in found] == [blob_id((root / file.path).read_bytes()) for file in found]


def test_submodules_and_repositories_inside_belong_to_themselves(tmp_path: Path) -> None:
    library = make(tmp_path / "library", {"lib.py": "x"})
    root = make(tmp_path / "r", {"a.py": "a"})
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "sub")
    make(root / "nested", {"n.py": "n"})
    make(root / "unborn", {"u.py": "u"}, commit=False)
    assert paths(root) == [".gitmodules", "a.py"]
    assert paths(root / "sub") == ["lib.py"]


def test_a_worktree_lists_what_is_checked_out_there(tmp_path: Path) -> None:
    root = make(tmp_path / "r", {"a.py": "a"})
    git(root, "worktree", "add", "-q", "-b", "side", str(root / "trees" / "side"))
    side = fill(root / "trees" / "side", {"b.py": "b"})
    assert paths(side) == ["a.py", "b.py"]
    assert paths(root) == ["a.py"]


def test_a_folder_of_a_repository_lists_its_own_files(tmp_path: Path) -> None:
    root = make(tmp_path / "r", {"a.py": "a", "src/b.py": "b", ".gitignore": "*.log\n"})
    fill(root, {"src/new.py": "", "src/x.log": "", "src/*": "odd"})
    assert paths(root / "src") == ["*", "b.py", "new.py"]


def test_an_empty_and_a_bare_repository_have_no_files(tmp_path: Path) -> None:
    assert paths(make(tmp_path / "r", {}, commit=False)) == []
    git(tmp_path, "init", "-q", "--bare", str(tmp_path / "b.git"))
    assert paths(tmp_path / "b.git") == []


def test_a_repository_of_longer_ids(tmp_path: Path) -> None:
    root = tmp_path / "r"
    git(tmp_path, "init", "-q", "--object-format=sha256", str(root))
    fill(root, {"a.txt": "a", "b.txt": "b"})
    git(root, "add", "a.txt")
    assert [file.blob for file in project_files(root)] == git(root, "hash-object", "a.txt", "b.txt").split("\n")


def test_a_file_above_the_limit_has_no_id_unless_git_knows_it(tmp_path: Path) -> None:
    root = make(tmp_path / "r", {"known.txt": "x" * 20})
    fill(root, {"new.txt": "x" * 20})
    known, new = project_files(root, max_bytes=10)
    assert (known.size, known.blob) == (20, blob_id(b"x" * 20))
    assert (new.size, new.blob) == (20, None)


def test_hostile_names(tmp_path: Path) -> None:
    names = [
        b"new\nline.txt",
        b'quote".txt',
        b" space .txt",
        b"tab\t.txt",
        b"-rf",
        b"back\\slash",
        b"bytes\xff\xfe.txt",
    ]
    names += ["größe 数.txt".encode(), b"*", b"dir\n/file"]
    root = make(tmp_path / "r", {})
    for name in names:
        place = root / os.fsdecode(name)
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(name)
    for stage in ("new", "tracked"):
        found = project_files(root)
        assert sorted(os.fsencode(file.path) for file in found) == sorted(names), stage
        assert [read_file(root, file) for file in found] == [os.fsencode(file.path) for file in found]
        assert [file.blob for file in found] == [blob_id(os.fsencode(file.path)) for file in found]
        git(root, "add", "--all")
    labels = {file.label for file in project_files(root)}
    assert {"bytes\\xff\\xfe.txt", "größe 数.txt", "new\nline.txt"} <= labels
    assert all(label.encode() for label in labels)
    with_git = project_files(root)
    shutil.rmtree(root / ".git")
    assert project_files(root) == with_git


def test_links_are_not_followed(tmp_path: Path) -> None:
    secret = fill(tmp_path / "outside", {"secret.txt": "s", "deep/b.txt": "s"})
    root = make(tmp_path / "r", {"a.txt": "a", "deep/b.txt": "b"})
    (root / "inside").symlink_to("a.txt")
    (root / "out").symlink_to(secret / "secret.txt")
    (root / "folder").symlink_to(secret)
    assert paths(root) == ["a.txt", "deep/b.txt"]
    git(root, "add", "--all")
    assert paths(root) == ["a.txt", "deep/b.txt"]
    # A tracked folder that was swapped for a link leads out although its files keep their names.
    (root / "deep" / "b.txt").unlink()
    (root / "deep").rmdir()
    (root / "deep").symlink_to(secret / "deep")
    assert paths(root) == ["a.txt"]


def test_a_file_that_changed_its_nature_is_not_read(tmp_path: Path) -> None:
    root = make(tmp_path / "r", {"a.txt": "a", "b.txt": "b", "c.txt": "c"})
    first, second, third = project_files(root)
    (root / "a.txt").unlink()
    (root / "a.txt").symlink_to("/etc/passwd")
    (root / "b.txt").unlink()
    os.mkfifo(root / "b.txt")
    (root / "c.txt").write_text("c" * 11)
    assert [read_file(root, file, max_bytes=10) for file in (first, second, third)] == [None, None, None]
    assert read_file(root, third) == b"c" * 11
    assert paths(root) == ["c.txt"]


def test_a_repository_that_stops_answering_is_an_error(tmp_path: Path) -> None:
    root = make(tmp_path / "r", {"a.txt": "a"})
    (root / ".git" / "index").write_bytes(b"broken")
    with pytest.raises(CortexError, match="gave no answer for the files below"):
        project_files(root)


# Without one


def test_a_plain_folder_honours_ignore_files_and_skips_hidden_and_vendored_folders(tmp_path: Path) -> None:
    root = fill(
        tmp_path / "plain",
        {
            ".gitignore": "*.log\nbuilt/\n",
            ".editorconfig": "",
            ".github/workflows/ci.yml": "",
            ".hidden/x": "",
            "a.py": "a",
            "a.log": "",
            "built/x": "",
            "docs/.gitignore": "!a.log\n",
            "docs/a.log": "",
            "node_modules/x/index.js": "",
            "venv/bin/python": "",
        },
    )
    (root / "link").symlink_to("a.py")
    (root / "loop").symlink_to(root)
    assert paths(root) == [
        ".editorconfig",
        ".github/workflows/ci.yml",
        ".gitignore",
        "a.py",
        "docs/.gitignore",
        "docs/a.log",
    ]
    assert {file.path: file.blob for file in project_files(root)}["a.py"] == blob_id(b"a")


def test_a_machine_without_git_lists_a_repository_as_a_plain_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make(tmp_path / "r", {"a.py": "a", ".gitignore": "b.py\n"})
    fill(root, {"b.py": ""})
    with_git = project_files(root)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert project_files(root) == with_git


def test_a_folder_that_cannot_be_one_project_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_IN_A_FOLDER", 2)
    fill(tmp_path / "plain", {"a": "", "b": "", "c": ""})
    with pytest.raises(InvalidInput, match="more than 2 files"):
        project_files(tmp_path / "plain")


def test_an_id_is_the_hash_of_a_header_and_the_content() -> None:
    assert blob_id(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert blob_id(b"a\n", "sha256") == hashlib.sha256(b"blob 2\0a\n").hexdigest()


# Text or not


@each(
    ("data", "text"),
    [
        (b"", ""), (b"plain\r\n", "plain\r\n"), ("größe 数".encode(), "größe 数"), (b"\xef\xbb\xbfmarked", "marked"),
        ("sechzehn ö".encode("utf-16"), "sechzehn ö"), (b"\xfe\xff\x00a", "a"),
        ("Gr\xf6\xdfe und Ma\xdfe".encode("latin-1"), "Größe und Maße"),
        ("sch\xf6n, na\xefve".encode("latin-1"), "schön, naïve"), (b"a \x93quoted\x94 word", "a “quoted” word"),
        (b"caf\xe9 \x81", "café \x81"), (b"a\0b", None), (b"\xff\xfea", None), (b"\xff\xfe\0\0a\0\0\0", None),
        (b"\x89PNG\r\n\x1a\n", None), ("привет, мир".encode("cp1251"), None), ("こんにちは".encode("shift-jis"), None),
        ("你好，世界".encode("gbk"), None), (b"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
    ],
)  # fmt: skip
def test_decoding(data: bytes, text: str | None) -> None:
    assert decode_text(data) == text


# Reasons


@each(
    ("path", "reason"),
    [
        ("src/main.py", None), ("node_modules/x/index.js", "vendored"), ("web/Vendor/x.js", "vendored"),
        ("third_party/zlib/inflate.c", "vendored"), (".venv/lib/python3.11/site-packages/x.py", "vendored"),
        ("ios/Pods/A/a.m", "vendored"), ("pkg/dist/app.js", "vendored"), ("vendor.py", None), ("logo.PNG", "binary"),
        ("icon.svg", "binary"), ("weights.safetensors", "binary"), ("app.min.js", "generated"),
        ("app.js.map", "generated"), ("package-lock.json", "generated"), ("sub/Cargo.lock", "generated"),
        ("go.sum", "generated"), ("api/user.pb.go", "generated"), ("api/user_pb2.py", "generated"),
        ("api/user_pb2_grpc.pyi", "generated"), ("ui/__snapshots__/a.test.js.snap", "generated"),
        ("zz_generated.deepcopy.go", "generated"), (".env", "private"), (".env.production", "private"),
        (".env.example", None), ("deploy/server.key", "private"), ("id_rsa", "private"), ("README", None),
    ],
)  # fmt: skip
def test_what_a_name_tells(path: str, reason: str | None) -> None:
    assert skip_by_name(path) == reason


def test_a_folder_of_built_things_is_known_by_the_manifest_beside_it() -> None:
    manifests = {"": ["package.json"], "native": ["cargo.toml"], "net": ["app.csproj"], "go": ["go.mod"]}
    built = ["build/a.js", "out/a.js", "native/target/debug/x.rs", "net/obj/x.cs"]
    own = ["go/build/ci.go", "src/build/a.js", "target/a.js", "native/build/x.rs", "bin/run.sh"]
    assert [path for path in built + own if skip_by_name(path, manifests) == "vendored"] == built


@each(
    ("path", "text", "reason"),
    [
        ("a.py", "x = 1\n", None),
        ("a.py", "", None),
        ("a.py", "a\0b", "binary"),
        ("a.go", "// Code generated by stringer; DO NOT EDIT.\npackage a\n", "generated"),
        ("a.ts", "/* eslint-disable */\n/**\n * This file was automatically generated.\n */\n", "generated"),
        (
            "a.py",
            "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# Generated by the protocol buffer compiler.\n",
            "generated",
        ),
        ("a.py", "# @generated\n", "generated"),
        ("a.sql", "-- AUTO-GENERATED, see make schema\n", "generated"),
        ("a.py", "# The id is generated by the server.\n# Do not change the order.\n", None),
        ("a.py", '"""Generated by nobody."""\n', None),
        ("a.py", 'MARK = "Code generated by"\n', None),
        ("README.md", "<!-- This file is generated by make. -->\n", None),
        ("requirements.txt", "#\n# This file is autogenerated by pip-compile\n#\n", None),
        ("a.js", "var a=1;" * 1_000, "generated"),
        ("notes.txt", "word " * 1_000, None),
        ("a.json", '{"image": "' + "A" * 20_000 + '"}\n' + "{}\n" * 1_000, "generated"),
        ("model.bin.txt", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "binary"),
    ],
)
def test_what_the_content_tells(path: str, text: str, reason: str | None) -> None:
    assert skip_by_content(path, text.encode()) == reason


def test_a_full_choice_takes_every_text_and_tells_why_not_the_rest(tmp_path: Path) -> None:
    root = make(
        tmp_path / "r",
        {
            "README.md": "# R\n",
            "src/deep/module.py": "x = 1\n",
            "data/table.csv": "a,b\n",
            "data/raw": b"\x00\x01",
            "logo.png": b"\x89PNG",
            "node_modules/x/index.js": "x",
            "yarn.lock": "x",
            "large.txt": "x" * 2_000,
            ".env": "KEY=1\n",
        },
    )
    found = project_files(root)
    choice = choose(found, "full", lambda file: read_file(root, file), max_bytes=1_000)
    assert [file.path for file in choice.files] == ["README.md", "data/table.csv", "src/deep/module.py"]
    assert [(one.path, one.reason) for one in choice.left_out] == [
        (".env", "private"),
        ("data/raw", "binary"),
        ("large.txt", "huge"),
        ("logo.png", "binary"),
        ("node_modules/x/index.js", "vendored"),
        ("yarn.lock", "generated"),
    ]
    assert choice.counts() == {"vendored": 1, "generated": 1, "binary": 2, "private": 1, "huge": 1}


def test_a_file_that_vanished_is_left_out_and_a_known_one_not_read() -> None:
    listed = [FileRef("gone.py", 1, blob_id(b"g")), FileRef("known.py", 1, blob_id(b"k"))]
    choice = choose(listed, "full", lambda file: None, known={blob_id(b"k")})
    assert [file.path for file in choice.files] == ["known.py"]
    assert [(one.path, one.reason) for one in choice.left_out] == [("gone.py", "unreadable")]
