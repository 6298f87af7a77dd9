"""Names of objects in a target: which there are, and which are somebody else's."""

from __future__ import annotations

import re

from ..errors import InvalidInput

__all__ = ["check_name", "check_prefix", "is_name"]

_LONGEST = 512
# Leaves room for what a draft adds within the 255 bytes that file systems allow.
_LONGEST_PART = 180
# No part begins with a dot: such names belong to drafts, and to what programs that sync folders keep for themselves.
_NAME = re.compile(r"[a-z0-9_-][a-z0-9._-]*(?:/[a-z0-9_-][a-z0-9._-]*)*")
_PREFIX = re.compile(r"(?:[a-z0-9_-][a-z0-9._-]*(?:/|$))*")
# The copy that Syncthing keeps of the loser of two changes; it is never an object of its own.
_FOREIGN = ".sync-conflict-"


def is_name(name: str) -> bool:
    """Whether an object can be called so."""
    return (
        len(name) <= _LONGEST
        and _NAME.fullmatch(name) is not None
        and _FOREIGN not in name
        and all(len(part) <= _LONGEST_PART for part in name.split("/"))
    )


def check_name(name: str) -> str:
    """The name, if an object can be called so."""
    if not is_name(name):
        raise InvalidInput(
            f"{name[:80]!r} is no name for an object in a target.",
            remedy="Use lower-case letters, digits, '_', '-' and '.', in parts joined by '/'.",
            field="name",
        )
    return name


def check_prefix(prefix: str) -> str:
    """The prefix, if names can begin so."""
    if len(prefix) > _LONGEST or _PREFIX.fullmatch(prefix) is None:
        raise InvalidInput(
            f"No name in a target begins with {prefix[:80]!r}.",
            remedy="Use lower-case letters, digits, '_', '-' and '.', in parts joined by '/'.",
            field="prefix",
        )
    return prefix
