"""Finds secrets by the name they are given: `password = …`, `"api_key": "…"`, `--token …`, "the password is …",
and random text right behind such a name or assigned to the name of an issuer.

A name alone proves little, so `values` judges the value; how strictly depends on the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from ...lazy import regex
from .values import (
    WORDS,
    Span,
    choice,
    is_digest,
    is_filler_token,
    is_placeholder,
    is_random,
    is_reference,
    looks_like_password,
    looks_like_token,
    word_list,
)

__all__ = ["find_assigned", "find_random_near_names"]


class _Strength(Enum):
    PASSWORD = "people choose these: short and readable values count"
    PHRASE = "several words, or a password"
    TOKEN = "machines make these: mixed characters"
    WEAK = "also said of much else: only long random values"


class _Name(NamedTuple):
    end: int
    strength: _Strength
    kind: str


# Literals first, so that the search can skip by first letters; `_name_at` looks at what is around them.
_STEMS = regex(choice("stems"))
_TOKEN_STEMS = frozenset({"secret", "token", "credential", "authorization", "jsessionid", "phpsessid"})
_WEAK_STEMS = frozenset({"session", "cookie", "bearer", "login", "dsn"})
_KEY_OF = regex(rf"(?:{choice('words_before_key')})[_ .-]?$")
# What these say of a key or a token makes it no secret: it is public, names a row, or guards one form or page.
_OPEN = regex(rf"(?:{choice('words_before_open_key')})[_ .-]?(?:key)?$")
_FORM_GUARD = regex(r"(?:[cx]srf\w{0,16}|authenticity|anti[_-]?forgery|request[_-]?verification|captcha)[_ .-]?$")
_ASKS = regex(r"(?:validate|check|verify|split|parse|should|assert|hash|has|is|get|find|forgot|reset)_?$")
_TYPE_NAME = regex(r"::\w*$")
_PASS_OF = regex(r"(?:^|[^a-z]|db|my|user|sql|admin|root|login|smtp|mail)$")
_KINDS = (("token", "token"), ("secret", "secret"), ("key", "api-key"))

# A name that ends like this speaks about a secret and does not hold it.
_INERT_TAIL = regex(rf"(?:[_.-]|s)(?:{choice('inert_tails')})s?\d*$")
_AFTER_NAME = regex(
    r"""
    (?P<tail>[a-z0-9_.-]{0,40}+) (?P<close>(?:\\?["'`]|[\])}]){0,3}+) (?:\[\d{0,4}\])?+
    [ \t]{0,12}+
    (?P<operator>
        :[ \t]{0,4}+[a-z&][a-z0-9_&<>\[\]|.?]{0,30}+[ \t]{0,4}+=(?![=>])
      | ,?\s{0,40}["']?value["']?[ \t]?[:=]
      | [:?!+|~]{0,2}={1,3}>? | -> | [:：]{1,2} | > | , | \( | (?:is|was|lautet|ist)(?=[ \t:])
      | (?<=[ \t])(?=\\?["'`])
    )
    [ \t]{0,12}+(?:(?<!,)\\?\n[ \t]{0,12}(?=["']))?
    """,
    re.VERBOSE,
)
_AFTER_FLAG = regex(r"(?P<tail>[a-z0-9_-]{0,24}+)(?P<close>)(?P<operator>[ \t])[ \t]{0,8}+(?!-)")
_VALUE = regex(
    r"""
      (?P<prefix>[bBfFrRuU@$]{1,2}(?=["']))?
      (?P<quote>"{3}|'{3}|\\?["'`]) (?P<quoted>(?:(?!(?P=quote))[^\n]){1,300}+) (?P=quote)
    | (?P<bare>[^\s"'`,;=:：<>]{1,300}+)
    """,
    re.VERBOSE,
)
_REST = regex(r"""(?:(?!</)[^\s"'`,;&]){1,300}+""")
_ENV_LINE = regex(r"(?:^|[\n;&|])[ \t]{0,8}(?:(?:export|set|ENV|-|-e)[ \t]+)?[A-Z0-9_]{3,64}=$")
_SHORTEST_VALUE = 5
_MARKS = frozenset("!@#$%^&*+=?~|\\{}[]()<>;,")
_CALL_MARKS = frozenset("();=")
_FORMATTED = frozenset({"f", "F", "rf", "fr", "$", "$@", "@$"})
_SAID = frozenset({"is", "was", "lautet", "ist"})


def find_assigned(text: str, lower: str) -> Iterator[Span]:
    """Values that are assigned to a telling name, passed to it or said of it."""
    flags = "--" in text
    for stem in _STEMS.finditer(lower):
        after = _AFTER_NAME.match(lower, stem.end())
        if after is None and flags and lower.find("--", max(0, stem.start() - 24), stem.start()) >= 0:
            after = _AFTER_FLAG.match(lower, stem.end())
        if after is None:
            continue
        found = _VALUE.match(text, after.end())
        if found is None or found.end() - found.start() < _SHORTEST_VALUE or found.group()[0] == "\0":
            continue
        name = _name_at(lower, stem, after["tail"])
        span = _judge(text, stem.start(), name, after, found) if name else None
        if span is not None:
            yield span


def _name_at(lower: str, stem: re.Match[str], tail: str) -> _Name | None:
    """The name that a stem belongs to, or None for a word that only looks like one."""
    word, start, end = stem.group(), stem.start(), stem.end()
    tail = tail.rstrip(".-")
    if tail and _INERT_TAIL.search("_" + tail):
        return None
    before = lower[max(0, start - 24) : start]
    letter_follows = tail[:1].isalpha()
    strength: _Strength | None = None
    if (word in {"key", "token"} and _OPEN.search(before)) or _TYPE_NAME.search(before) or _FORM_GUARD.search(before):
        return None
    if before.endswith(":") and lower.find("arn:", max(0, start - 80), start) >= 0:
        return None
    if word in _TOKEN_STEMS:
        strength = _Strength.TOKEN
    elif word == "key":
        strength = _Strength.TOKEN if _KEY_OF.search(before) else _Strength.WEAK
    elif word in {"pass", "pw"}:
        if not letter_follows and _PASS_OF.search(before):
            strength = _Strength.PASSWORD
    elif word.endswith("phrase") or word == "mnemonic":
        strength = _Strength.PHRASE
    elif word in {"cred", "auth"}:
        alone = not letter_follows or tail == "s"
        strength = _Strength.TOKEN if alone and (word == "cred" or before.endswith("_")) else _Strength.WEAK
    elif word.startswith("connection"):
        strength = _Strength.TOKEN
    else:
        strength = _Strength.WEAK if word in _WEAK_STEMS else _Strength.PASSWORD
    return _Name(end, strength, _kind(strength, word + tail)) if strength else None


def _kind(strength: _Strength, name: str) -> str:
    if strength is _Strength.PASSWORD:
        return "password"
    if strength is _Strength.PHRASE:
        return "passphrase"
    return next((kind for part, kind in _KINDS if part in name), "secret")


def _judge(text: str, name_start: int, name: _Name, after: re.Match[str], found: re.Match[str]) -> Span | None:
    operator = after["operator"]
    enclosed = found["quoted"] is not None
    quoted = enclosed and found["quote"] != "`"
    if _is_code(text, name_start, after, found):
        return None
    start = found.start("quoted" if enclosed else "bare")
    if enclosed:
        value = found["quoted"]
    else:
        next_parameter = "&" in found["bare"] and text.startswith("=", found.end())
        value = _trim(found["bare"].rpartition("&")[0] if next_parameter else found["bare"])
    if not operator and (name.strength is _Strength.WEAK or (name.end - name_start <= 4 and name.kind == "password")):
        return None
    plain = value.replace("\0", "").removesuffix("\\n")
    strength = _Strength.TOKEN if operator == "," and name.strength is _Strength.PASSWORD else name.strength
    if strength is _Strength.WEAK and is_digest(plain) and _names_issuer(text[max(0, name_start - 24) : name_start]):
        strength = _Strength.TOKEN
    if not plain or not _is_value(plain, strength, quoted=quoted, said=operator in _SAID):
        whole_line = operator == "=" and not enclosed and name.strength is _Strength.PASSWORD
        if not (whole_line and _is_word_in_env_line(text, name_start, start, plain)):
            return None
    if not enclosed and text[start + len(value) : start + len(value) + 1] in {"=", ":", "<", ">"}:
        rest = _REST.match(text, start)
        value = _trim(rest.group()) if rest else value
    return start, start + len(value), name.kind


def _is_code(text: str, name_start: int, after: re.Match[str], found: re.Match[str]) -> bool:
    """Whether what follows a name is code, a question or a text that the writer cut short, not a value."""
    operator = after["operator"]
    enclosed = found["quoted"] is not None
    if operator in {",", "("} and not (enclosed and (operator == "(" or after["close"])):
        return True
    if operator == "(" and _ASKS.search(text[max(0, name_start - 12) : name_start].lower()):
        return True
    if not operator and _CALL_MARKS.intersection(found.group()):
        return True
    if operator == ">" and not text.startswith("</", found.end()):
        return True
    if enclosed:
        return "{" in found["quoted"] and (found["prefix"] in _FORMATTED or found["quote"] == "`")
    return found["bare"].endswith(("..", "…"))


def _trim(bare: str) -> str:
    """An unquoted value without the punctuation of the sentence or the code around it."""
    bare = bare.rstrip(".:\\")
    for opening, closing in ("()", "[]", "{}"):
        while bare.endswith(closing) and bare.count(opening) < bare.count(closing):
            bare = bare[:-1].rstrip(".:")
    return bare


def _is_value(value: str, strength: _Strength, *, quoted: bool, said: bool) -> bool:
    if not quoted and value.isalpha() and (said or len(value) < 20):
        return False
    if strength is _Strength.PHRASE and quoted and value.count(" ") >= 3:
        return value.replace(" ", "").isalpha() and value.islower()
    if strength in {_Strength.PASSWORD, _Strength.PHRASE}:
        return looks_like_password(value, quoted=quoted)
    if strength is _Strength.TOKEN:
        if looks_like_token(value, quoted=quoted, least=8 if quoted else 10):
            return True
        strange = len(_MARKS.intersection(value)) >= (3 if quoted else 4)
        long_word = quoted and len(value) >= 20 and value.isalpha()
        return (strange or long_word) and looks_like_password(value, quoted=quoted)
    if said or len(value) < 16 or " " in value or not is_random(value) or is_digest(value):
        return False
    return not (is_reference(value, quoted=quoted) or is_placeholder(value))


def _is_word_in_env_line(text: str, name_start: int, value_start: int, value: str) -> bool:
    """True for `DB_PASSWORD=word` on a line of its own, where even a plain word is the password."""
    if len(value) < 8 or not value.isalpha() or is_placeholder(value):
        return False
    return _ENV_LINE.search(text, max(0, name_start - 40), value_start) is not None


_RUN = regex(r"[A-Za-z0-9_+/=~-]{20,}+")
_LONGEST_RUN = 2048
_REACH = 48
_HASH_BEFORE = regex(
    r"(?:sha-?\d{1,3}|md5|blake\w{1,3}|integrity|etag|checksum|digest|fingerprint|thumbprint|signature|nonce|v\d)"
    r"[\"']?[ \t]?[-:=(][ \t]?[\"'`]?$"
)
_LAST_NAME = regex(r"[\w.-]+$")
_WORD_REST = regex(r"[a-z0-9_.-]*")
_OPERATORS = frozenset("=:>,|(")
# Issuers whose secrets have no mark of their own: a random value assigned to a name that holds one of these.
_ISSUERS = regex("|".join(map(re.escape, sorted(word_list("issuers")))))
# Issuers whose secrets are UUIDs or hexadecimal digits, and how long these are.
_DIGESTS: dict[str, int] = WORDS["issuers_of_digests"]


def find_random_near_names(text: str, lower: str) -> Iterator[Span]:
    """Random text behind a telling name on the same line, or assigned to the name of an issuer."""
    passed = 0
    for run in _RUN.finditer(text):
        start, end = run.span()
        value = run.group()
        before = lower[max(passed, start - _REACH) : start].rpartition("\n")[2]
        passed = end
        if end - start > _LONGEST_RUN or _is_piece_of_path(text, start, end, value):
            continue
        if is_reference(value, quoted=True) or _HASH_BEFORE.search(before):
            continue
        kind = _kind_before(before)
        if kind is None or not is_random(value, least=20) or is_filler_token(value):
            continue
        if is_digest(value) and not _is_issued_digest(before, len(value)):
            continue
        yield start, end, kind


def _is_issued_digest(before: str, length: int) -> bool:
    """True when the words before end with an issuer whose secrets are digests of this length."""
    return any(length == size and issuer in before[-len(issuer) - 8 :] for issuer, size in _DIGESTS.items())


def _names_issuer(words: str) -> bool:
    """True when the last of the words holds the name of an issuer."""
    return _ISSUERS.search(words.rpartition(" ")[2].lower()) is not None


def _kind_before(before: str) -> str | None:
    """What the words before a random value say it is; the nearest one decides."""
    kind: str | None = None
    for stem in _STEMS.finditer(before):
        tail = _WORD_REST.match(before, stem.end())
        name = _name_at(before, stem, tail.group() if tail else "")
        if name is not None and name.strength is not _Strength.WEAK:
            kind = name.kind
    if kind is None:
        owner = before.rstrip(" \t\"'`@")
        if owner[-1:] in _OPERATORS:
            word = _LAST_NAME.search(owner.rstrip("=:>,|( \t\"'`])"))
            if word and not _INERT_TAIL.search(word.group()) and _names_issuer(word.group()):
                kind = "secret"
    return kind


def _is_piece_of_path(text: str, start: int, end: int, value: str) -> bool:
    """True for a piece of a path, an address or a dotted name."""
    if start and text[start - 1] in "./\\@#&":
        return True
    if text[end : end + 1] in {".", "\\", "@", "(", "{"} and text[end + 1 : end + 2].isalnum():
        return True
    slashes = value.count("/")
    if not slashes:
        return False
    all_kinds = not value.isupper() and not value.islower() and any(map(str.isdigit, value))
    return value[0] in "/~" or slashes > len(value) / 16 + 1 or not all_kinds
