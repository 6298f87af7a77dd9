"""Work that is done again when its connection broke: where nothing was written, or repeating it adds nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..errors import StoreUnavailable

__all__ = ["repeated"]

_T = TypeVar("_T")


def repeated(work: Callable[[], _T], *, keyed: bool = False) -> _T:
    """Do the work, one transaction, and once more from the beginning if it was lost.

    `keyed`: it finds what an earlier attempt has written. Else it is repeated only if certainly nothing was.
    """
    try:
        return work()
    except StoreUnavailable as lost:
        if lost.perhaps_written and not keyed:
            raise
    # The next transaction waits for the server; see the pool.
    return work()
