"""Every example of the corpus holds: seeds, and what fuzzing found. `make fuzz` looks for more."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cases import each
from fuzz.checking import Failure, allowed_seconds, check
from fuzz.run import fuzz
from fuzz.targets import CORPUS, TARGETS, Target

EXAMPLES = sorted(CORPUS.glob("*/*"))


@each("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_example_holds(path: Path) -> None:
    check(TARGETS[path.parent.name], path.read_bytes())


def test_every_target_has_seeds_and_every_folder_a_target() -> None:
    assert {path.parent.name for path in EXAMPLES} == set(TARGETS)


def test_a_failure_is_found_made_small_and_kept(tmp_path: Path) -> None:
    def read(data: bytes) -> None:
        if b"{{" in data:
            raise KeyError("braces")

    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "seed").write_bytes(b"a long text with {a} brace in it" * 20)
    target = Target(read, words=(b"{",))
    _, failures = fuzz("broken", target, 1.0, 1, tmp_path)
    (path,) = failures.values()
    assert path.parent == tmp_path / "broken"
    assert path.read_bytes() == b"{{"
    with pytest.raises(Failure, match="KeyError"):
        check(target, path.read_bytes())


def test_what_takes_too_long_for_its_length_is_a_failure() -> None:
    def read(data: bytes) -> None:
        # By the clock that is compared, so that no machine is too fast for it.
        began = time.process_time()
        while time.process_time() <= began + allowed_seconds(data):
            pass

    with pytest.raises(Failure) as found:
        check(Target(read), b"short")
    assert found.value.kind == "slow"
