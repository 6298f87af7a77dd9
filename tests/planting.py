"""Secrets to plant, and the search for what is left of them: whole, in pieces of 16 characters, in lower case.

No line here looks like a secret: every one is put together when the test runs.
"""

from __future__ import annotations

import base64
import io
import json
import random
import re
import string
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import apsw

from cortex_py.core.security.secrets.secrets import find_secrets
from cortex_py.core.store.packing import unpack

__all__ = ["Garden", "Secret", "everything_in"]

_ALNUM = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
_BASE64 = _ALNUM + "+/"
_WINDOW = 16
_RUN = re.compile(r"[A-Za-z0-9+/=_.~-]{16,}")

# Prefix, then lengths of random parts with their alphabets; "|" keeps scanners of this repository quiet.
_FORMATS: dict[str, tuple[str | tuple[int, str], ...]] = {
    "aws": ("AK|IA", (16, string.ascii_uppercase + "234567")),
    "github": ("gh|p_", (36, _ALNUM)),
    "github-fine": ("github|_pat_", (22, _ALNUM), "_", (59, _ALNUM)),
    "gitlab": ("gl|pat-", (20, _ALNUM)),
    "slack": ("xo|xb-", (12, string.digits), "-", (24, _ALNUM)),
    "stripe": ("sk|_live_", (24, _ALNUM)),
    "openai": ("sk|-", (20, _ALNUM), "T3Blb|kFJ", (20, _ALNUM)),
    "anthropic": ("sk|-ant-api03-", (93, _ALNUM), "AA"),
    "google": ("GOC|SPX-", (28, _ALNUM)),
    "huggingface": ("hf|_", (34, _ALNUM)),
    "npm": ("np|m_", (36, _ALNUM)),
    "pypi": ("py|pi-AgEIcHlwaS5vcmc", (80, _ALNUM)),
    "digitalocean": ("do|p_v1_", (64, _HEX)),
    "sendgrid": ("S|G.", (22, _ALNUM), ".", (43, _ALNUM)),
    "telegram": ("1102|01543:AA", (33, _ALNUM)),
    "vault": ("hv|s.", (90, _ALNUM)),
    "grafana": ("gl|sa_", (32, _ALNUM), "_", (8, _HEX)),
    "jwt": (),
    "pem": (),
    "url": ("https://deploy:", (28, _ALNUM), "@git.example.org/shop.git"),
    "database": ("postgresql://shop:", (28, _ALNUM), "@db.example.org:5432/shop"),
    "assigned": ('password = "', (28, _ALNUM), '"'),
}


@dataclass(frozen=True)
class Secret:
    """`text` is what is planted at `place`; `parts` are what must not be found again."""

    place: str
    text: str
    parts: tuple[str, ...]


class Garden:
    """Plants a secret of its own at every place, all kinds in turn, and finds what came up."""

    def __init__(self) -> None:
        self._random = random.Random(11)
        self.planted: list[Secret] = []

    def plant(self, place: str, *, one_line: bool = False, word: bool = False) -> str:
        """A new secret for a place; as one word where a name is wanted."""
        kinds = [kind for kind in _FORMATS if not (word and kind in _NO_WORDS) and not (one_line and kind == "pem")]
        kind = kinds[len(self.planted) % len(kinds)]
        secret = self._grown(kind, place)
        self.planted.append(secret)
        return secret.text

    def _grown(self, kind: str, place: str) -> Secret:
        for _ in range(100):
            text, parts = self._made(kind)
            if all(_covered(text, part) for part in parts):
                return Secret(place, text, parts)
        raise AssertionError(f"the scanner does not know {kind}")

    def _made(self, kind: str) -> tuple[str, tuple[str, ...]]:
        if kind == "pem":
            lines = tuple(self._body(64, _BASE64) for _ in range(4))
            return "\n".join(
                ("-----BEGIN RSA PRIV" + "ATE KEY-----", *lines, "-----END RSA PRIV" + "ATE KEY-----")
            ), lines
        if kind == "jwt":
            head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
            claims = json.dumps({"sub": self._body(12, _ALNUM), "iat": 1_700_000_000}).encode()
            body = base64.urlsafe_b64encode(claims).decode().rstrip("=")
            sign = self._body(43, _ALNUM + "_-")
            return f"{head}.{body}.{sign}", (sign,)
        made = [part.replace("|", "") if isinstance(part, str) else self._body(*part) for part in _FORMATS[kind]]
        text = "".join(made)
        if kind in ("url", "database", "assigned"):
            return text, (made[1],)
        return text, (text,)

    def _body(self, length: int, alphabet: str) -> str:
        return "".join(self._random.choices(alphabet, k=length))

    def found_in(self, texts: Iterator[tuple[str, str]]) -> list[str]:
        """Where something of a secret is left: the place it was planted, and where it came up."""
        known: dict[str, str] = {}
        for secret in self.planted:
            for part in secret.parts:
                lower = part.lower()
                for first in range(len(lower) - _WINDOW + 1):
                    known[lower[first : first + _WINDOW]] = secret.place
        found: dict[str, None] = {}
        seen: set[str] = set()
        for where, text in texts:
            for run in _RUN.findall(text):
                if (run, where) in seen:
                    continue
                seen.add((run, where))
                lower = run.lower()
                for first in range(len(lower) - _WINDOW + 1):
                    if place := known.get(lower[first : first + _WINDOW]):
                        found[f"{place} -> {where}"] = None
                        break
        return list(found)


_NO_WORDS = ("pem", "url", "database", "assigned")


def _covered(text: str, part: str) -> bool:
    """Whether the scanner knows it for a secret: what it does not know is not what is tested here."""
    start = text.index(part)
    return any(one.start <= start and one.end >= start + len(part) for one in find_secrets(text))


def everything_in(folder: Path) -> Iterator[tuple[str, str]]:
    """All texts of a home: names of files, their bytes, every value of every table, words of indexes, packed parts."""
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        yield f"name of {path.parent.name or 'home'}/*", name
        if not path.is_file():
            continue
        data = path.read_bytes()
        kind = re.sub(r"[0-9a-f]{12,}|\d{6,}", "*", name)
        yield f"bytes of {kind}", data.decode("latin-1")
        if data.startswith(b"SQLite format 3"):
            yield from _tables(path, kind)
        elif data.startswith(b"\x1f\x8b"):
            yield from _members(data, kind)


def _tables(path: Path, kind: str) -> Iterator[tuple[str, str]]:
    connection = apsw.Connection(str(path))
    try:
        tables = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall()
        for table, sql in tables:
            if "fts5" in (sql or ""):
                connection.execute(f'CREATE VIRTUAL TABLE temp."v_{table}" USING fts5vocab(main, "{table}", "row")')
                for (term,) in connection.execute(f'SELECT term FROM temp."v_{table}"'):
                    yield f"{kind}: words of {table}", str(term)
                continue
            if table.startswith(("sqlite_", "memory_text_")):
                continue
            rows = connection.execute(f'SELECT * FROM "{table}"')
            for row in rows:
                columns = [column[0] for column in rows.get_description()]
                for column, value in zip(columns, row, strict=True):
                    if table == "memory" and column == "packed" and value and not row[columns.index("packed_with")]:
                        value = unpack(value, None)
                    if isinstance(value, bytes):
                        value = value.decode("latin-1")
                    if isinstance(value, str):
                        yield f"{kind}: {table}.{column}", value
    finally:
        connection.close()


def _members(data: bytes, kind: str) -> Iterator[tuple[str, str]]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        for member in archive:
            body = archive.extractfile(member)
            yield f"{kind}: name of a part", member.name
            if body is not None:
                yield f"{kind}: {member.name.split('/')[0]}", body.read().decode("latin-1")
