"""Many cases in one test: where a case needs nothing of its own, a test for each costs more than what it checks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import pytest

__all__ = ["each"]


def each(
    names: str | Sequence[str], rows: Iterable[Any], *, ids: Iterable[str] | Callable[[Any], object] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `pytest.mark.parametrize`, but one test goes through all rows and names those that fail.

    For tests of functions. What a fixture gives is shared by the rows, so a test that changes it keeps `parametrize`.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    cases = [_values(row, len(names)) for row in rows]
    labels = list(islice(ids, len(cases))) if ids is not None and not callable(ids) else [None] * len(cases)
    assert len(labels) == len(cases)

    def fold(test: Callable[..., None]) -> Callable[..., None]:
        def run(*receiver: object, **given: object) -> None:
            failures = []
            skips = []
            for label, values in zip(labels, cases, strict=True):
                case = dict(zip(names, values, strict=True))
                try:
                    test(*receiver, **given, **case)
                except pytest.skip.Exception as skip:
                    skips.append(skip)
                except Exception as error:  # noqa: BLE001
                    error.add_note(f"in the case {label or case!r}")
                    failures.append(error)
            if failures:
                raise failures[0] if len(failures) == 1 else ExceptionGroup(f"{len(failures)} cases", failures)
            if cases and len(skips) == len(cases):
                raise skips[0]

        signature = inspect.signature(test)
        assert set(names) <= signature.parameters.keys()
        rest = [one for name, one in signature.parameters.items() if name not in names]
        for name in ("__module__", "__name__", "__qualname__", "__doc__", "pytestmark"):
            if hasattr(test, name):
                setattr(run, name, getattr(test, name))
        run.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return run

    return fold


def _values(row: Any, count: int) -> Sequence[Any]:
    if isinstance(row, type(pytest.param())):
        assert not row.marks, "a case with marks needs a test of its own"
        return row.values
    return (row,) if count == 1 else row
