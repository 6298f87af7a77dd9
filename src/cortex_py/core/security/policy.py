"""Applies the policies on secrets and personal data to texts that come from outside.

A secret is removed, refused or kept. Personal data in prose is removed if `personal_data` says so; it is never refused,
and names by which something is looked up keep it. Screening happens in two places:

1. Where a text enters, `Screen` turns it into a `ScreenedText`, before words, vectors, file names and entities are
   derived from it, and before anything is written, so that a refusal changes nothing.
2. Where rows are written, `Screen.column` screens every value of a column with text from outside that is not a
   `ScreenedText` yet. A field that nobody thought of is caught here.

Evidence indexes, snapshots and files have no second check; the functions that fill them take screened texts. Errors
and logs are cleaned where they are shown, under every policy: see `echo`.

A name by which something is looked up (a path, a git branch) gets a short digest of the whole name beside the marker,
so that two names stay different and the same name gives the same text on every machine. The digest has 24 bits, too
few to recover a secret from it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, get_args

from ..config import PersonalPolicy, SecretPolicy, Settings
from ..errors import ContentBlocked
from ..records import Origin
from ..tables import TABLES
from .secrets.secrets import cached_if_empty, find_secrets, mask, redact

if TYPE_CHECKING:
    from .personal import NameFinder

__all__ = [
    "COLUMN_ORIGINS", "ORIGINS", "Screen", "ScreenedText", "holds_secret", "redacted_kinds", "screen_file",
]  # fmt: skip

ORIGINS: tuple[Origin, ...] = get_args(Origin)
# Of every column that holds texts, by table.
COLUMN_ORIGINS: Mapping[str, Mapping[str, Origin]] = {
    name: {column.name: column.origin for column in table.columns if column.origin} for name, table in TABLES.items()
}

_MARK = re.compile(r"\[REDACTED:([a-z0-9-]{1,40})\]")
# A dot too, because of file name extensions. Secrets with dots are found in the whole name.
_SEPARATOR = re.compile(r"[/\\.]")
_SEPARATORS = re.compile(r"([/\\.])")
_DIGEST_BYTES = 3
_SHORT = 256


class ScreenedText(str):
    """A screened text. Slices and concatenations of it are ordinary texts again."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Screen:
    """Applies the policies. `people` finds certain names of people in a content."""

    policy: SecretPolicy
    personal: PersonalPolicy = "keep"
    people: NameFinder | None = None

    @classmethod
    def by(cls, settings: Settings, people: NameFinder | None = None) -> Screen:
        """The screen that the settings configure."""
        return cls(settings.secrets, settings.personal_data, people)

    def prose(self, text: str, field: str = "content") -> ScreenedText:
        """Screen a caller's text."""
        return self._one(text, "prose", field)

    def name(self, text: str, field: str = "name") -> ScreenedText:
        """Screen a name that a caller gave."""
        return self._one(text, "name", field)

    def found(self, text: str) -> ScreenedText:
        """Screen a name that Cortex read itself. It is never refused, because nobody can be asked for another."""
        return self._one(text, "found", "name")

    def fields(self, table: str, values: Mapping[str, str | None]) -> tuple[dict[str, str | None], tuple[str, ...]]:
        """The screened values of a table's columns, and the kinds of what was removed."""
        kept: dict[str, str | None] = {}
        kinds: dict[str, None] = {}
        for column, value in values.items():
            kept[column] = value
            if value is not None and (origin := COLUMN_ORIGINS[table][column]) in _SCREENED:
                kept[column], found = self._screened(value, origin, column)
                kinds.update(dict.fromkeys(found))
        return kept, tuple(kinds)

    def each(self, field: str, texts: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Several screened texts of one field, and the kinds of what was removed."""
        results = [self._screened(text, "prose", field) for text in texts]
        kinds = dict.fromkeys(kind for _, found in results for kind in found)
        return tuple(text for text, _ in results), tuple(kinds)

    def column(self, table: str, column: str) -> Callable[[str], str] | None:
        """The function that screens texts for a column; None if the column has no text from outside.

        Tables that are not listed, such as the engine's own, are not screened.
        """
        origin = COLUMN_ORIGINS.get(table, {}).get(column, "made")
        if origin not in _SCREENED or (self.policy == "allow" and not self._redacts(origin)):
            return None
        return lambda text: text if type(text) is ScreenedText else self._one(text, origin, column)

    def _one(self, text: str, origin: Origin, field: str) -> ScreenedText:
        return self._screened(text, origin, field)[0]

    def _screened(self, text: str, origin: Origin, field: str) -> tuple[ScreenedText, tuple[str, ...]]:
        if type(text) is ScreenedText:
            return text, ()
        text, kinds = self._without_secrets(text, origin, field)
        if self._redacts(origin):
            text, personal = _without_personal(text, self.people if field == "content" else None)
            kinds = tuple(dict.fromkeys((*kinds, *personal)))
        return ScreenedText(text), kinds

    def _redacts(self, origin: Origin) -> bool:
        return self.personal == "redact" and origin == "prose"

    def _without_secrets(self, text: str, origin: Origin, field: str) -> tuple[str, tuple[str, ...]]:
        if self.policy == "allow":
            return text, ()
        kinds = _kinds_in_short(text) if len(text) <= _SHORT else _kinds_in(text)
        if origin != "prose" and not kinds:
            kinds = _kinds_in_parts(text)
        if not kinds:
            return text, ()
        if self.policy == "block" and origin != "found":
            raise _refused(kinds, field)
        return _without(text, _no_secrets) if origin == "prose" else _renamed(text), kinds


_SCREENED: frozenset[Origin] = frozenset(("prose", "name", "found"))


def screen_file(text: str, screen: Screen) -> ScreenedText:
    """Screen the text of a file and keep its line numbers. A file is never refused."""
    if screen.policy != "allow":
        text = mask(text, find_secrets(text), keep_lines=True)
    if screen.personal == "redact":
        from .personal import find_personal_data

        text = mask(text, find_personal_data(text), keep_lines=True)
    return ScreenedText(text)


def redacted_kinds(text: str) -> tuple[str, ...]:
    """The kinds of what was removed from a text earlier, by its markers."""
    return tuple(dict.fromkeys(_MARK.findall(text))) if "[REDACTED:" in text else ()


def _kinds_in(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(finding.kind for finding in find_secrets(text)))


# Names, tags and labels are repeated often.
_kinds_in_short = cached_if_empty(4_096)(_kinds_in)


def _kinds_in_parts(name: str) -> tuple[str, ...]:
    """The same for the parts of a path, where no blank separates a secret from its neighbours."""
    parts = [part for part in _SEPARATOR.split(name) if part != name]
    return tuple(dict.fromkeys(kind for part in parts for kind in _kinds_in_short(part)))


def holds_secret(name: str) -> bool:
    """Whether a file name, with its folders, contains a secret."""
    return bool(_kinds_in_short(name) or _kinds_in_parts(name))


def _no_secrets(text: str) -> str:
    return redact(text).text


def _without_personal(text: str, people: NameFinder | None) -> tuple[str, tuple[str, ...]]:
    """The text without personal data, and the kinds of what was removed."""
    from .personal import redact_personal_data

    kinds: dict[str, None] = {}

    def clean(part: str) -> str:
        done = redact_personal_data(part, people)
        kinds.update(dict.fromkeys(finding.kind for finding in done.findings))
        return done.text

    return _without(text, clean), tuple(kinds)


def _without(text: str, clean: Callable[[str], str]) -> str:
    """The text, cleaned; one in JSON stays JSON."""
    cleaned = clean(text)
    if text[:1] in ("[", "{") and (value := _read(text)) is not None and _read(cleaned) is None:
        return json.dumps(_leaves(value, clean), ensure_ascii=False)
    return cleaned


def _read(text: str) -> object | None:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found


def _leaves(value: object, clean: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(name): _leaves(one, clean) for name, one in value.items()}
    return [_leaves(one, clean) for one in value] if isinstance(value, list) else value


def _renamed(text: str) -> str:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
    clean = "".join(redact(part).text for part in _SEPARATORS.split(_without(text, _no_secrets)))
    return f"{clean}~{digest}"


def _refused(kinds: tuple[str, ...], field: str) -> ContentBlocked:
    return ContentBlocked(
        f"The {field} holds what looks like a secret ({', '.join(kinds)}).",
        kinds=kinds,
        remedy="Remove it and repeat; nothing was stored.",
        field=field,
    )
