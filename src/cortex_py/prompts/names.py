"""Names of the blanks in saved texts: which may be used, how one is told in a message, and the singular of a plural."""

from __future__ import annotations

__all__ = ["NAME_LONGEST", "RESERVED_PREFIXES", "check_name", "shown", "singular"]

NAME_LONGEST = 64
RESERVED_PREFIXES = ("__", "cortex_", "subcog_", "system_")
_SHOWN = 40


def check_name(name: str) -> str | None:
    """What is wrong with a name, or nothing."""
    if not name:
        return "A name is missing."
    if len(name) > NAME_LONGEST:
        return f"The name {shown(name)} is longer than {NAME_LONGEST} characters."
    if not name.isidentifier():
        return f"{shown(name)} is no name; use letters, digits and underscores, and begin with no digit."
    if name.startswith(RESERVED_PREFIXES):
        return f"The name {shown(name)} is reserved: none may begin with {', '.join(RESERVED_PREFIXES)}."
    return None


def shown(text: str) -> str:
    """A text for a message: in quotes, on one line, cut short."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def singular(name: str) -> str | None:
    """`memories` gives `memory` and `users` gives `user`; what does not end so has none."""
    if name.endswith("ies") and len(name) > 3:
        return name[:-3] + "y"
    if name.endswith("s") and not name.endswith("ss") and len(name) > 1:
        return name[:-1]
    return None
