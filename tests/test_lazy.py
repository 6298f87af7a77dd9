"""Data classes whose methods are made at first use are those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable, Hashable
from typing import Any, ClassVar

import pytest

from cortex_py import lazy


@lazy.dataclass(frozen=True, slots=True)
class Base:
    name: str
    parts: list[str] = dataclasses.field(default_factory=list, compare=False)
    LIMIT: ClassVar[int] = 3


@lazy.dataclass(frozen=True, slots=True, kw_only=True)
class Derived(Base):
    """A note."""

    weight: float = 1.0


@lazy.dataclass(slots=True)
class Mutable:
    count: int = 0


class Plain(Base):
    """Inherits methods that were not made yet."""


FIRST_USES: dict[str, Callable[[], Any]] = {
    "construction": lambda: Derived("a", weight=2.0) == Derived("a", ["b"], weight=2.0) != Derived("a"),
    "fields": lambda: [one.name for one in dataclasses.fields(Derived)] == ["name", "parts", "weight"],
    "a subclass": lambda: (Plain("a").parts, type(Plain("a"))) == ([], Plain),
    "signature": lambda: list(inspect.signature(Derived).parameters) == ["name", "parts", "weight"],
    "pattern": lambda: Derived.__match_args__ == ("name", "parts"),
    "pickled elsewhere": lambda: (
        subprocess.run(
            [sys.executable, "-c", "import pickle, sys; print(pickle.load(sys.stdin.buffer))"],
            input=pickle.dumps(Derived("a")),
            capture_output=True,
            env={"PYTHONPATH": ":".join(sys.path)},
            check=True,
        ).stdout.strip()
        == b"Derived(name='a', parts=[], weight=1.0)"
    ),
}


@pytest.mark.parametrize("use", FIRST_USES.values(), ids=FIRST_USES)
def test_any_first_use_makes_the_class(use: Callable[[], bool]) -> None:
    assert use()


def test_it_is_the_standard_class() -> None:
    one = Derived("a", ["b"])
    assert repr(one) == "Derived(name='a', parts=['b'], weight=1.0)"
    assert hash(one) == hash(copy.copy(one)) == hash(dataclasses.replace(one, parts=[]))
    assert (Derived.__slots__, Base.LIMIT, Derived.__doc__) == (("weight",), 3, "A note.")
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.name = "c"  # type: ignore[misc]  # what is tested
    changed = Mutable()
    changed.count = 2
    assert changed == Mutable(2)
    assert not isinstance(changed, Hashable)
    assert not hasattr(changed, "__dict__")
