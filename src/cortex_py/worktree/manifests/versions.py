"""Dependencies, versions and version constraints, as package managers write them.

A constraint comes without its package manager. Some forms mean different things to different package managers; then
the answer is None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf

__all__ = [
    "Dependency", "OwnVersion", "Reader", "Requirement", "VersionReader", "admits", "agrees", "pinned_version",
    "read_requirement", "same_version",
]  # fmt: skip

# Possessive: blanks between optional parts could otherwise be divided in very many ways.
_REQUIREMENT = re.compile(
    r"\s*+([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*+(?:\[[^\]]*+\])?\s*+"
    r"(\([^()]*+\)|@[^;]*+|[<>=!~][^;#]*+)?\s*+(?:;(.*))?"
)
_REQUIREMENT_MOST = 2_000
_EXTRA = re.compile(r"\bextra\s*==\s*['\"]([\w.-]+)['\"]")
_EXACT = re.compile(r"={1,3}\s*([vV]?\d[\w.!+-]*)")


@dataclass(frozen=True, slots=True)
class Dependency:
    """A package that a file requires or that a lock file pins.

    `constraint` is as written, "" for any version; `version` is the exact one if the file pins one. `group` is
    "runtime", "dev", "optional:<name>", "build", "lock", "language" (of the interpreter or compiler), or the word
    of the package manager.
    """

    name: str
    constraint: str
    version: str | None
    line: int
    group: str


@dataclass(frozen=True, slots=True)
class OwnVersion:
    """A project's own version, as a file states it."""

    name: str | None
    version: str
    line: int


# Reads a file, given its path and its text.
Reader = Callable[[str, str], Iterable[Dependency]]
VersionReader = Callable[[str, str], OwnVersion | None]


@dataclass(frozen=True, slots=True)
class Requirement:
    """A parsed Python requirement."""

    name: str
    constraint: str
    extra: str | None

    def dependency(self, line: int, group: str) -> Dependency:
        return Dependency(self.name, self.constraint, pinned_version(self.constraint), line, group)


def read_requirement(text: str) -> Requirement | None:
    """`name[extra] >=1 ; marker`, as Python's packages write it."""
    match = _REQUIREMENT.fullmatch(text) if len(text) <= _REQUIREMENT_MOST else None
    if match is None:
        return None
    constraint = (match[2] or "").strip()
    if constraint.startswith("("):
        constraint = constraint[1:-1].strip()
    extra = _EXTRA.search(match[3] or "")
    return Requirement(match[1], constraint, extra[1] if extra else None)


def pinned_version(constraint: str) -> str | None:
    """The version of a pin such as "==1.2" or "=1.2.3"."""
    match = _EXACT.fullmatch(constraint.strip())
    return match[1] if match and not match[1].endswith(".x") else None


_LENGTH_MOST = 200
_VERSION = re.compile(r"[vV=]?\s*(?:(\d{1,9})!)?(\d{1,18}(?:\.\d{1,18})*)([^+]*)(?:\+(.*))?")
_TOKEN = re.compile(r"[a-z]+|\d{1,18}")
_PRE = {"a": 0, "alpha": 0, "m": 1, "milestone": 1, "b": 2, "beta": 2, "c": 3, "rc": 3, "cr": 3, "pre": 3, "preview": 3}
_POST = {"post", "rev", "r", "sp"}
_DEV = {"dev", "snapshot"}
# Words that Java's libraries put after a finished version.
_FINISHED = {"final", "release", "ga", "jre", "android"}
_CLAUSE = re.compile(
    r"(===|==|=>|>=|=<|<=|~>|~=|!=|=|<|>|\^|~)?\s*([vV]?[0-9xX*][\w.*!-]*(?:\+[\w.-]+)?)(?:\s*,\s*|\s+|$)"
)
_INTERVAL = re.compile(r"([\[(])\s*([^,\[\]()]*?)\s*(?:(,)\s*([^,\[\]()]*?)\s*)?([\])])")
_HYPHEN = re.compile(r"(\S+)\s+-\s+(\S+)")
_WILD = re.compile(r"(?:^|\.)[xX*](?:\..*)?$")
_ALIAS = re.compile(r"npm:.+@")
_DEV_PRE, _PRERELEASE, _RELEASED, _LATER = -1, 0, 1, 2

_Phase = tuple[int, int, tuple[int, ...], float]
_PLAIN: _Phase = (_RELEASED, 0, (), inf)


@dataclass(frozen=True, slots=True)
class _Version:
    epoch: int
    # As written: the number of components decides what "~" and "^" leave open.
    numbers: tuple[int, ...]
    phase: _Phase
    # An unknown suffix; such versions compare by their numbers only.
    strange: str
    local: str

    @property
    def main(self) -> tuple[int, tuple[int, ...]]:
        numbers = list(self.numbers)
        while numbers and numbers[-1] == 0:
            numbers.pop()
        return self.epoch, tuple(numbers)

    @property
    def is_early(self) -> bool:
        return self.phase[0] < _RELEASED or self.phase[3] != inf

    def first(self, count: int) -> tuple[int, ...]:
        return (*self.numbers, *[0] * count)[:count]


def same_version(a: str, b: str) -> bool:
    """Whether two texts name one version: "2.0" is "2.0.0", "v2" is "2"."""
    left, right = _read(a), _read(b)
    if left is None or right is None:
        return a.strip() == b.strip()
    return _compare(left, right) == 0 and left.local == right.local


def agrees(stated: str, found: str) -> bool:
    """Whether a version as stated, perhaps in fewer numbers, is the one found: "3.11" agrees with "3.11.4"."""
    known = _read(found)
    if (prefix := _wild_prefix(stated)) is not None:
        return known is not None and not known.is_early and known.first(len(prefix)) == prefix
    said = _read(stated)
    if said is None or known is None:
        return stated.strip() == found.strip()
    if said.phase == _PLAIN and not said.strange and not said.local:
        return _begins(said, known)
    return _compare(said, known) == 0 and said.local in ("", known.local)


def admits(constraint: str, version: str) -> bool | None:
    """Whether a constraint allows a version; None if that depends on the package manager.

    A version without an operator is exact to some package managers and a minimum to others: for later versions the
    answer is None.
    """
    known = _read(version)
    text = _ALIAS.sub("", constraint.strip())
    if known is None or len(text) > _LENGTH_MOST:
        return None
    answers = [_admits_all(one.strip(), known) for one in re.split(r"\|\|?", text)]
    return True if True in answers else None if None in answers else False


def _admits_all(text: str, known: _Version) -> bool | None:
    if text.startswith("(") and text.endswith(")") and text[1:2] in "<>=!~^":
        text = text[1:-1].strip()
    clauses = _clauses(text)
    if clauses is None:
        return None
    answers = [_admits(sign, target, known) for sign, target in clauses]
    if False in answers:
        return False
    if None in answers:
        return None
    # A pre-release is allowed only if the constraint names one, or the user asks for it.
    asked = any(read.is_early for _, target in clauses if (read := _read(target)))
    return None if known.is_early and not asked and not _only_exact(clauses) else True


def _only_exact(clauses: list[tuple[str, str]]) -> bool:
    return bool(clauses) and all(sign in ("==", "===") for sign, _ in clauses)


def _clauses(text: str) -> list[tuple[str, str]] | None:
    """Operators and versions that must all hold; None if the text is not such a list."""
    if text in ("", "*", "x", "X"):
        return []
    if match := _HYPHEN.fullmatch(text):
        # "1 - 2" ends after every 2.x.
        return [(">=", match[1]), ("to", match[2])]
    if match := _INTERVAL.fullmatch(text):
        if not match[3]:
            return [("==", match[2])]
        low = (">=" if match[1] == "[" else ">", match[2])
        high = ("<=" if match[5] == "]" else "<", match[4])
        return [one for one in (low, high) if one[1]]
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        clause = _CLAUSE.match(text, at)
        if clause is None:
            return None
        found.append((clause[1] or "", clause[2]))
        at = clause.end()
    return found


def _admits(sign: str, target: str, known: _Version) -> bool | None:
    sign = {"=>": ">=", "=<": "<=", "===": "=="}.get(sign, sign)
    prefix = _wild_prefix(target)
    if prefix is not None and (sign in ("", "=", "==", "!=") or not prefix):
        return (known.first(len(prefix)) == prefix) is (sign != "!=")
    wanted = _read(re.sub(r"(\.[xX*])+$", "", target))
    if wanted is None:
        return None
    if sign in ("^", "~", "~=", "~>"):
        return _within(sign, wanted, known)
    order = _compare(known, wanted)
    if sign == "":
        if _begins(wanted, known) and wanted.phase == _PLAIN:
            return True
        return None if order is None else order == 0 or (False if order < 0 else None)
    if sign == "to" or (sign == "=" and len(wanted.numbers) < 3 and wanted.phase == _PLAIN):
        if known.first(len(wanted.numbers)) == wanted.numbers:
            return True
        return (order is not None and order < 0) if sign == "to" else False
    return None if order is None else _ordered(sign, order, wanted, known)


def _ordered(sign: str, order: int, wanted: _Version, known: _Version) -> bool:
    is_same_release = known.main == wanted.main
    if sign in ("=", "==", "!="):
        is_equal = order == 0 and wanted.local in ("", known.local)
        return is_equal is (sign != "!=")
    if sign == ">":
        # A later build of a version is not a later version.
        return order > 0 and not (is_same_release and known.phase[0] == _LATER and wanted.phase[0] != _LATER)
    if sign == "<":
        # Nor does "below 2" mean the candidates for 2.
        return order < 0 and not (is_same_release and known.is_early and not wanted.is_early)
    return order >= 0 if sign == ">=" else order <= 0


def _within(sign: str, wanted: _Version, known: _Version) -> bool | None:
    order = _compare(known, wanted)
    if order is None or known.epoch != wanted.epoch:
        return None
    if order < 0:
        return False
    given = wanted.numbers
    if sign == "^":
        kept = next((at for at, number in enumerate(given) if number), len(given) - 1) + 1
    elif sign == "~":
        kept = min(len(given), 2)
    else:
        kept = max(len(given) - 1, 1)
    if known.first(kept) == given[:kept]:
        return True
    # "~1.2" ends before 1.3 for most, and before 2 for one package manager.
    is_open = sign == "~" and len(given) == 2 and known.first(1) == given[:1]
    return None if is_open else False


def _wild_prefix(text: str) -> tuple[int, ...] | None:
    """The numbers before a wildcard; None where there is none."""
    text = text.strip().removeprefix("v")
    match = _WILD.search(text) if len(text) <= _LENGTH_MOST else None
    if match is None:
        return None
    before = _read(text[: match.start()])
    return before.numbers if before else () if match.start() == 0 else None


def _begins(shorter: _Version, longer: _Version) -> bool:
    if longer.is_early or longer.strange or shorter.strange or shorter.epoch != longer.epoch:
        return False
    length = len(shorter.numbers)
    return longer.first(length) == shorter.numbers


def _compare(a: _Version, b: _Version) -> int | None:
    if a.main != b.main:
        return 1 if a.main > b.main else -1
    if a.strange or b.strange:
        return 0 if (a.strange, a.phase) == (b.strange, b.phase) else None
    return (a.phase > b.phase) - (a.phase < b.phase)


def _read(text: str) -> _Version | None:
    text = text.strip()
    match = _VERSION.fullmatch(text) if len(text) <= _LENGTH_MOST else None
    if match is None:
        return None
    phase, strange = _phase(match[3].lower())
    numbers = tuple(int(one) for one in match[2].split("."))
    return _Version(int(match[1] or 0), numbers, phase, strange, (match[4] or "").lower())


def _phase(suffix: str) -> tuple[_Phase, str]:
    stage, rank, counts, dev = _RELEASED, 0, list[int](), inf
    word = ""
    for token in _TOKEN.findall(suffix):
        if token.isdigit():
            if word in _DEV:
                dev = int(token)
            elif word in _PRE or word in _POST:
                counts.append(int(token))
            else:
                # "1.0-1" is a later build in one scheme and an early version in another.
                return _PLAIN, suffix
        elif token in _PRE and stage == _RELEASED:
            stage, rank, word = _PRERELEASE, _PRE[token], token
        elif token in _POST and stage == _RELEASED:
            stage, word = _LATER, token
        elif token in _DEV:
            dev, word = 0, token
        elif token not in _FINISHED:
            return _PLAIN, suffix
    if _TOKEN.sub("", suffix).strip("-_. "):
        return _PLAIN, suffix
    if dev != inf and stage == _RELEASED:
        stage = _DEV_PRE
    return (stage, rank, tuple(counts) or ((0,) if stage != _RELEASED else ()), dev), ""
