"""The one lock file holds each package once, for all groups, with hashes; groups are read from it and merged."""

import re
from pathlib import Path

import pytest

import lock

TEXT = lock.LOCK.read_text("utf-8")
NAMED = re.compile(r"^([\w.-]+)==", re.MULTILINE)


def test_no_package_stands_twice_or_without_a_hash_and_no_host_is_named() -> None:
    names = NAMED.findall(TEXT)
    assert len(names) == len(set(names)) == TEXT.count("# groups: ")
    assert all(entry for entry in lock.entries(TEXT).values())
    assert "://" not in TEXT
    assert TEXT.isascii()


def test_a_group_is_a_part(tmp_path: Path) -> None:
    parts = {group: set(NAMED.findall(lock.part([group]))) for group in lock.GROUPS}
    assert parts["runtime"] < parts["server"] < set(NAMED.findall(TEXT))
    assert "pytest" in parts["dev"] - parts["runtime"]
    assert parts["build"] == {"setuptools"}
    assert set(NAMED.findall(lock.part(["runtime", "build"]))) == parts["runtime"] | parts["build"]
    with pytest.raises(SystemExit, match="runtme"):
        lock.part(["runtme"])


def test_merging_the_parts_gives_the_file(tmp_path: Path) -> None:
    for group in lock.GROUPS:
        (tmp_path / f"{group}.txt").write_text(lock.part([group]), "utf-8")
    assert lock.merge(tmp_path) == TEXT
    (tmp_path / "dist.txt").write_text("anyio==1 \\\n    --hash=sha256:00\n")
    with pytest.raises(SystemExit, match="version of anyio"):
        lock.merge(tmp_path)
