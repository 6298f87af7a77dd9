"""The settings that a configuration file holds: a dotted key, a value as text, and the line to look at.

Files of secrets are not read: of environment files only the examples that a repository shares.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from .key_lines import Entry, env_entries, ini_entries, properties_entries
from .parts import Part, leaves, read_json, read_yaml
from .toml_parts import read_toml

__all__ = ["Setting", "settings_in"]

_SETTINGS_MOST = 5_000
_CHARACTERS_MOST = 1_000_000
_EXAMPLES = (".env.example", ".env.sample", ".env.template", ".env.dist", "env.example", "env.sample")


@dataclass(frozen=True, slots=True)
class Setting:
    """Items of lists have their number, from 0, for a key."""

    key: str
    value: str
    line: int


def settings_in(path: str, text: str) -> list[Setting]:
    """The settings of a file, in its order; none of a file that is unknown, broken or too large."""
    reader = _reader(posixpath.basename(path).lower())
    if reader is None or len(text) > _CHARACTERS_MOST:
        return []
    try:
        return list(islice(reader(text.removeprefix("\ufeff")), _SETTINGS_MOST))
    except (ValueError, RecursionError):
        return []


def _reader(name: str) -> Callable[[str], Iterator[Setting]] | None:
    if name in _EXAMPLES:
        return _env
    return _READERS.get(posixpath.splitext(name)[1])


def _toml(text: str) -> Iterator[Setting]:
    return _of_parts([read_toml(text)])


def _json(text: str) -> Iterator[Setting]:
    return _of_parts([read_json(text)])


def _yaml(text: str) -> Iterator[Setting]:
    return _of_parts(read_yaml(text))


def _of_parts(parts: list[Part]) -> Iterator[Setting]:
    for part in parts:
        for keys, leaf in leaves(part):
            if keys and isinstance(leaf.value, str):
                yield Setting(".".join(keys), leaf.value, leaf.line)


def _ini(text: str) -> Iterator[Setting]:
    return _of_entries(ini_entries(text))


def _env(text: str) -> Iterator[Setting]:
    return _of_entries(env_entries(text))


def _properties(text: str) -> Iterator[Setting]:
    return _of_entries(properties_entries(text))


def _of_entries(entries: list[Entry]) -> Iterator[Setting]:
    for one in entries:
        yield Setting(f"{one.section}.{one.key}" if one.section else one.key, one.value, one.line)


_READERS: dict[str, Callable[[str], Iterator[Setting]]] = {
    ".toml": _toml,
    ".json": _json,
    ".jsonc": _json,
    ".yaml": _yaml,
    ".yml": _yaml,
    ".ini": _ini,
    ".cfg": _ini,
    ".properties": _properties,
}
