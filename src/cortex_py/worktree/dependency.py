"""What a file says about packages: the values that its readers give, and the forms that several of them share."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Dependency", "Requirement", "Stated", "exact", "read_requirement"]

_REQUIREMENT = re.compile(
    r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*(\([^()]*\)|@[^;]*|[<>=!~][^;#]*)?\s*(?:;(.*))?"
)
_LENGTH_MOST = 2_000
_EXTRA = re.compile(r"\bextra\s*==\s*['\"]([\w.-]+)['\"]")
_EXACT = re.compile(r"={1,3}\s*([vV]?\d[\w.!+-]*)")


@dataclass(frozen=True, slots=True)
class Dependency:
    """A package that a file asks for, or that a lock file has chosen.

    `constraint` is as written, "" for any version; `version` the exact one where the file pins one. `group` is
    "runtime", "dev", "optional:<name>", "build", "lock", "language" (of the interpreter or compiler), or the word
    of the package manager.
    """

    name: str
    constraint: str
    version: str | None
    line: int
    group: str


@dataclass(frozen=True, slots=True)
class Stated:
    """The version that a project gives itself."""

    name: str | None
    version: str
    line: int


@dataclass(frozen=True, slots=True)
class Requirement:
    """A line of Python's, taken apart."""

    name: str
    constraint: str
    extra: str | None

    def dependency(self, line: int, group: str) -> Dependency:
        return Dependency(self.name, self.constraint, exact(self.constraint), line, group)


def read_requirement(text: str) -> Requirement | None:
    """`name[extra] >=1 ; marker`, as Python's packages write it."""
    match = _REQUIREMENT.fullmatch(text) if len(text) <= _LENGTH_MOST else None
    if match is None:
        return None
    constraint = (match[2] or "").strip()
    if constraint.startswith("("):
        constraint = constraint[1:-1].strip()
    extra = _EXTRA.search(match[3] or "")
    return Requirement(match[1], constraint, extra[1] if extra else None)


def exact(constraint: str) -> str | None:
    """The version of a pin such as "==1.2" or "=1.2.3"."""
    match = _EXACT.fullmatch(constraint.strip())
    return match[1] if match and not match[1].endswith(".x") else None
