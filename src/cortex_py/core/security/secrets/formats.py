"""Finds secrets by the formats of their providers, which `formats.json` lists as templates.

Each row of the file is a kind, a check and its templates. A template is literal text with fields: `ghp_{A36}` is
`ghp_` and 36 letters or digits. `{A36}` stands for 36 characters of alphabet A, `{A20-40}` for 20 to 40, `{A20+}` for
20 or more, `{=}` for up to two equals signs; `<...>` marks the part that is the secret. The check is the value of a
`Proof`. A match must have the exact lengths and alphabets of its template and end where the template ends. `fields_of`
reads a template, so that tests can draw a value from it.

Formats without a prefix of their own (a UUID, 40 hexadecimal digits) are not listed: `names` finds them by the name in
front of them. All expressions take linear time: a search begins at a literal or at the start of a word, and no
repetition contains another.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from math import log2
from pathlib import Path
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

from .values import Span, entropy, is_filler_token, is_jwt_header, is_one_case, is_random, is_wordy

__all__ = ["ALPHABETS", "Field", "Proof", "fields_of", "find_formats", "templates"]

ALPHABETS = {
    "A": ascii_letters + digits,
    "B": ascii_letters + digits + "+/",
    "D": digits,
    "E": ascii_letters + digits + "_-=",
    "F": ascii_letters + digits + "+/=_-",
    "H": digits + "abcdef",
    "L": ascii_lowercase + digits,
    "P": ascii_letters + digits + "_.=-",
    "Q": ascii_letters + digits + "%+/=_-",
    "S": ascii_letters + digits + "-",
    "T": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
    "V": "qpzry9x8gf2tvdw0s3jn54khce6mua7l",
    "U": ascii_uppercase + digits,
    "W": ascii_letters + digits + "_-",
    "X": digits + "abcdefABCDEF",
    "Z": ascii_uppercase + "234567",
    "~": ascii_letters + digits + "_~.-",
}
_UUID = "{H8}-{H4}-{H4}-{H4}-{H12}"


class Proof(Enum):
    """What the text of a match must still prove, by its sign in the tables."""

    NONE = "!"  # the shape is proof enough
    MIXED = ""  # enough entropy for its alphabet and length, and no filler
    RANDOM = "?"  # also no readable words: the prefix is short or common
    UNREADABLE = "~"  # no readable words, but a filler is enough
    JWT = "jwt"  # the first segment names an algorithm


@dataclass(frozen=True, slots=True)
class Field:
    """One part of a template: literal text, or so many characters of an alphabet (`most` None: no limit)."""

    literal: str
    alphabet: str = ""
    least: int = 0
    most: int | None = 0

    @property
    def expression(self) -> str:
        if not self.alphabet:
            return "".join(_GROUPS.get(character, re.escape(character)) for character in self.literal)
        repeats = f"{{{self.least},}}+" if self.most is None else f"{{{self.least},{self.most}}}"
        return f"[{re.escape(self.alphabet)}]{repeats}"


@dataclass(frozen=True)
class Format:
    """A kind of secret and its expression: `secret` is the part to take out, `body` the part that is checked.

    No match is possible in a text without one of the anchors. A format with a prefix begins a word with it.
    """

    kind: str
    expression: str
    anchors: tuple[str, ...]
    check: Proof = Proof.MIXED
    prefix: str = ""
    floor: float = 0.0
    shortest: int = 13

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.expression)

    def accepts(self, body: str) -> bool:
        """True when the text of a match proves what the format asks of it."""
        if self.check is Proof.NONE:
            return True
        if self.check is Proof.JWT:
            return is_jwt_header(body)
        if self.check is Proof.UNREADABLE:
            return not is_wordy(body)
        if has_checksum(self.prefix + body):
            return True
        if entropy(body) < self.floor or is_filler_token(body) or is_one_case(body):
            return False
        return self.check is Proof.MIXED or is_random(body, least=8)


_FIELD = re.compile(r"\{(=|[A-Z~]\d+(?:-\d+|\+)?)\}")
_GROUPS = {"<": "(?P<secret>", ">": ")"}
_SHARE_OF_ENTROPY = 0.6


def fields_of(template: str) -> tuple[Field, ...]:
    """The parts of a template, in order."""
    fields: list[Field] = []
    for place, piece in enumerate(_FIELD.split(template.replace("{UUID}", _UUID))):
        if place % 2 == 0:
            fields += [Field(piece)] if piece else []
        elif piece == "=":
            fields.append(Field("", "=", 0, 2))
        else:
            least, dash, most = piece[1:].rstrip("+").partition("-")
            limit = None if piece.endswith("+") else int(most if dash else least)
            fields.append(Field("", ALPHABETS[piece[0]], int(least), limit))
    return tuple(fields)


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8")


def templates() -> Iterator[tuple[str, str, Proof]]:
    """Every template of `formats.json` as kind, template and check."""
    for kind, sign, row in json.loads(_read("formats.json")):
        yield from ((kind, template, Proof(sign)) for template in row)


def _format(kind: str, template: str, check: Proof) -> Format:
    fields = fields_of(template)
    drawn = [field for field in fields if field.alphabet and field.alphabet != "="]
    size = max(len(field.alphabet) for field in drawn)
    floor = _SHARE_OF_ENTROPY * log2(min(size, sum(field.least for field in drawn)))
    prefix = fields[0].literal.partition("<")[0]
    # The match ends with the template: no character of a word or of the last alphabet follows.
    end = re.escape("".join(sorted({*ascii_letters, *digits, "_", *drawn[-1].alphabet} - {"."})))
    stop = f"(?!{'[.]?' if '.' in drawn[-1].alphabet else ''}[{end}])"
    # Nothing is gained by a shorter last field, so it gives nothing back.
    whole = "".join(field.expression + ("+" if field is drawn[-1] and field.most else "") for field in fields)
    begin = "" if prefix else r"(?:(?<![A-Za-z0-9_+/\\-])|(?<=\\[nrt]))"
    anchor = max((field.literal for field in fields), key=len)
    shortest = sum(len(field.literal) + field.least for field in fields)
    return Format(kind, f"{begin}{whole}{stop}", (anchor,), check, prefix, floor, shortest)


def _shapes() -> Iterator[Format]:
    """What a template cannot say: the rows of `shapes.json` are kind, check, anchors, expression, shortest length.

    Google's keys also name public web applications; alone in a text, one gives nothing away.
    """
    for kind, sign, anchors, expression, shortest in json.loads(_read("shapes.json")):
        yield Format(kind, expression, tuple(anchors.split()), Proof(sign), shortest=shortest)


def _prefix(template: str) -> str:
    return template.partition("{")[0].partition("<")[0]


# The templates by the first characters of their prefix, the longest prefix first.
_BY_HEAD: dict[str, list[tuple[str, str, Proof]]] = {}
for _row in sorted((row for row in templates() if _prefix(row[1])), key=lambda row: -len(_prefix(row[1]))):
    _BY_HEAD.setdefault(_prefix(_row[1])[:4], []).append(_row)
_ANCHORED = (*_shapes(), *(_format(*row) for row in templates() if not _prefix(row[1])))
# Most formats begin a word with a fixed prefix: the word's first characters are looked up, nothing is searched for.
_HEAD = re.compile(r"(?:(?<![A-Za-z0-9+])|(?<=\\[nrt]))(?=([A-Za-z0-9]...?))")
_NOT_BEFORE_COMMON = frozenset("_./-")


def find_formats(text: str, long_words: Sequence[str]) -> Iterator[Span]:
    """Every known format in the text; `long_words` are those of its words that are long enough to be one."""
    heads = _HEAD.findall(" ".join(long_words))
    if any(head in _BY_HEAD or head[:3] in _BY_HEAD or head[:2] in _BY_HEAD for head in heads):
        yield from _find_prefixed(text)
    longest = max(map(len, long_words))
    for row in _ANCHORED:
        if row.shortest <= longest and any(anchor in text for anchor in row.anchors):
            for match in row.pattern.finditer(text):
                yield from _accepted(row, match)


@cache
def _formats_at(head: str) -> tuple[Format, ...]:
    return tuple(_format(*row) for row in _BY_HEAD[head])


def _find_prefixed(text: str) -> Iterator[Span]:
    passed: dict[str, int] = {}  # how far each expression has read, so that no character is read twice for it
    for head in _HEAD.finditer(text):
        start, word = head.start(), head[1]
        rows = [row for key in (word, word[:3], word[:2]) if key in _BY_HEAD for row in _formats_at(key)]
        for row in rows:
            if start < passed.get(row.expression, 0) or not text.startswith(row.prefix, start):
                continue
            if start and row.check is Proof.RANDOM and text[start - 1] in _NOT_BEFORE_COMMON:
                continue
            match = row.pattern.match(text, start)
            if match is not None:
                passed[row.expression] = match.end()
                yield from _accepted(row, match)


def _accepted(row: Format, match: re.Match[str]) -> Iterator[Span]:
    groups = match.re.groupindex
    start, end = match.span("secret" if "secret" in groups else 0)
    body = match["body"] if "body" in groups else match.string[start:end].removeprefix(row.prefix)
    if row.accepts(body):
        yield start, end, row.kind


_CHECKSUMMED = re.compile(r"(?:gh[pousr]_|npm_)([A-Za-z0-9]{30})([A-Za-z0-9]{6})")
_BASE62 = digits + ascii_uppercase + ascii_lowercase


def has_checksum(token: str) -> bool:
    """True when a token of GitHub or npm ends with the CRC-32 of its random part, in base 62."""
    match = _CHECKSUMMED.fullmatch(token)
    if match is None:
        return False
    rest, written = zlib.crc32(match[1].encode()), ""
    while rest:
        rest, place = divmod(rest, 62)
        written = _BASE62[place] + written
    return written.rjust(6, "0") == match[2]
