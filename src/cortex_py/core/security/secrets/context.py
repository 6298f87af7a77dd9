"""Finds secrets by where they appear: a URL, an HTTP header, a command line, a Kubernetes manifest.

Every function yields `(start, end, kind)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...lazy import regex
from .values import (
    Span,
    is_basic_credentials,
    is_placeholder,
    is_random,
    is_reference,
    looks_like_password,
    looks_like_token,
)

__all__ = ["find_in_commands", "find_in_headers", "find_in_manifests", "find_in_urls", "find_seed_phrases"]

_URL_LOGIN = regex(
    r"""://(?P<user>[^\s:/@?#"'`<>\[\]()]{0,120}+):(?P<password>[^\s/"'`<>]{1,200})@(?=(?P<host>[\w\[$%{][\w.-]{0,80}))"""
)
# Hosts that only stand for one; beside them, a password such as `pass` stands for one too.
_ANY_HOST = regex(r"(?:[^.]+|.*\bexample\b.*|127\.[\d.]+|.*\.(?:test|local|invalid|localhost))\.?", re.IGNORECASE)
_URL_TOKEN = regex(r"""://(?P<user>[A-Za-z0-9_.-]{16,200})@(?=\w)""")
_PORT = regex(r"\d{2,5}[,;)|]")


def find_in_urls(text: str) -> Iterator[Span]:
    """The password of `scheme://user:password@host`, or a token that stands alone before the host."""
    for match in _URL_LOGIN.finditer(text):
        password = match["password"]
        filler = password.strip("*.xX•…_-\0") == "" or _PORT.match(password)
        filler = filler or (is_stand_in(password, match["user"]) and _ANY_HOST.fullmatch(match["host"]))
        if not filler and not is_reference(password, quoted=True):
            yield match.start("password"), match.end("password"), "url-password"
    for match in _URL_TOKEN.finditer(text):
        public = text.startswith("sentry", text.find(".ingest.", match.end(), match.end() + 40) + 8)
        if is_random(match["user"]) and not is_placeholder(match["user"]) and not public:
            yield match.start("user"), match.end("user"), "url-password"


def is_stand_in(password: str, user: str) -> bool:
    """True for `user:pass` and the like."""
    return len(password) <= 2 or password.lower() == user.lower() or is_placeholder(password)


_AUTHORIZATION = regex(
    r"""authorization(?<![a-z]authorization)\\?["'`]?\]?[ \t]{0,4}(?:=>|[:=,])[ \t]{0,4}(?:[fbru](?=["']))?\\?["'`]?
        (?:(?P<scheme>[a-z][a-z0-9_-]{1,24}+)[ \t:=]{1,4}["']?)?(?P<value>[^\s"'`\\<>,;]{6,}+)""",
    re.VERBOSE,
)
_SCHEME = regex(
    r"""(?:b(?:earer|asic))(?<![a-z0-9_-]b.....)(?<![a-z0-9_-]b....)[ \t]{1,4}(?P<value>[^\s"'`\\<>,;()]{8,}+)"""
)


def find_in_headers(text: str, lower: str) -> Iterator[Span]:
    """What follows `Authorization:`, `Bearer` or `Basic`."""
    for match in _AUTHORIZATION.finditer(lower):
        yield from _credential(text, match.span("value"), match["scheme"] or "", quoted=True)
    for match in _SCHEME.finditer(lower):
        yield from _credential(text, match.span("value"), match.group()[:6].strip(), quoted=False)


def _credential(text: str, span: tuple[int, int], scheme: str, *, quoted: bool) -> Iterator[Span]:
    start, end = span
    value = text[start:end].rstrip(".:)}]")
    plain = value.replace("\0", "")
    if scheme == "basic":
        if is_basic_credentials(plain) and not is_placeholder(plain):
            yield start, start + len(value), "basic-auth"
    elif looks_like_token(plain, quoted=quoted):
        yield start, start + len(value), "bearer-token" if scheme == "bearer" else "authorization"


_LOGIN_OPTION = regex(
    r"""-(?<=[\s"']-)(?:u|-user|-proxy-user|U)(?![a-z])[ \t=]{0,4}
        (?P<word>(?:"[^"\n]{0,200}"|'[^'\n]{0,200}'|[^\s"'\\|;&]){1,200}+)""",
    re.VERBOSE,
)
_TOOLS = regex(
    r"\b(?:mysql\w{0,8}|mariadb|sshpass|redis-cli|docker login|podman login|htpasswd|mongosh|7z|unzip|zip)\b"
)
_TOOL_OPTION = regex(r"""[ \t](?:-p|-a|-P|-pass)[ \t]{0,3}["']?(?P<value>[^\s"'-][^\s"']{3,128})""")
_LONGEST_COMMAND = 600
_NETRC = regex(r"\blogin[ \t\n]{1,8}\S{1,80}[ \t\n]{1,8}password[ \t\n]{1,8}(?P<value>\S{4,128})")


def find_in_commands(text: str) -> Iterator[Span]:
    """Logins on a command line or in a netrc file: `curl -u user:password`, `mysql -ppassword`."""
    if "curl" in text or "wget" in text:
        for match in _LOGIN_OPTION.finditer(text):
            at = match.start("word")
            if any(text.rfind(tool, max(0, at - _LONGEST_COMMAND), at) >= 0 for tool in ("curl", "wget")):
                yield from _login(at, match["word"])
    if " -p" in text or " -a" in text or " -P" in text:
        for tool in _TOOLS.finditer(text):
            found = _TOOL_OPTION.search(text, tool.end(), tool.end() + 160)
            if found is not None and _is_typed_password(found["value"]):
                yield found.start("value"), found.end("value"), "password"
    if "login" in text and "password" in text:
        for found in _NETRC.finditer(text):
            if looks_like_password(found["value"], quoted=False):
                yield found.start("value"), found.end("value"), "password"


def _is_typed_password(value: str) -> bool:
    return any(map(str.isdigit, value)) and looks_like_password(value, quoted=False)


def _login(start: int, word: str) -> Iterator[Span]:
    user, colon, password = word.partition(":")
    if not colon:
        return
    bare = password.strip("\"'{}")
    if bare:
        whole = (bare, password.strip("\"'"), word.strip("\"'"))
        if len(bare) >= 4 and not any(is_placeholder(form) or is_reference(form, quoted=True) for form in whole):
            at = start + len(user) + 1 + password.index(bare)
            yield at, at + len(bare), "basic-auth"
        return
    token = user.strip("\"'")
    if len(token) >= 8 and looks_like_password(token, quoted=True):
        at = start + word.index(token)
        yield at, at + len(token), "basic-auth"


_DOCUMENT = regex(r"^---", re.MULTILINE)
_MANIFEST = regex(r"^[ \t]{0,8}[\"']?kind[\"']?:[ \t]{0,4}[\"']?Secret\b", re.MULTILINE)
_MANIFEST_DATA = regex(r"^[ \t]{0,8}[\"']?(?:data|stringData)[\"']?:", re.MULTILINE)
_MANIFEST_ENTRY = regex(
    r"""^[ \t]{1,12}["']?[\w.-]{1,80}["']?:[ \t]{1,4}["']?
        (?P<value>[A-Za-z0-9+/=!@\#$%^&*._-]{8,4096}+)["']?[ \t]{0,4},?$""",
    re.MULTILINE | re.VERBOSE,
)


def find_in_manifests(text: str) -> Iterator[Span]:
    """Values under `data:` of a Kubernetes manifest of kind Secret."""
    at = 0
    for document in _DOCUMENT.split(text):
        heading = _MANIFEST_DATA.search(document)
        if heading and _MANIFEST.search(document):
            for entry in _MANIFEST_ENTRY.finditer(document, heading.end()):
                value = entry["value"]
                if looks_like_token(value, quoted=True) or looks_like_password(value, quoted=True):
                    yield at + entry.start("value"), at + entry.end("value"), "secret"
        at += len(document) + 3


# As many words as BIP 39 allows, as long as those of its list, behind a name of such a phrase and with nothing after.
_SEED_PHRASE = regex(
    r"(?:(?:seed|recovery|mnemonic|wallet)[ _-]phrase|mnemonic)(?: is| =|=| was)?:?\s{1,4}[\x22'`]?"
    r"(?P<secret>(?:[a-z]{3,8} ){11}(?:(?:[a-z]{3,8} ){3}){0,4}[a-z]{3,8})(?![a-z ])"
)


def find_seed_phrases(text: str, lower: str) -> Iterator[Span]:
    """The words from which a wallet is made again. Without their name in front, they are words like others."""
    for match in _SEED_PHRASE.finditer(lower):
        if text[slice(*match.span("secret"))].islower():
            yield *match.span("secret"), "seed-phrase"
