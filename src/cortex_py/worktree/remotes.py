"""The address of a git remote in one spelling, whichever way it is written."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from urllib.parse import unquote

from ..core.lazy import regex

__all__ = ["RemoteAddress", "normalise_path", "normalise_remote"]

_URL = regex(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>.*)\Z", re.DOTALL)
_SCP = regex(r"(?:[^@/\\]*@)?(?P<host>\[[^\]/]+\]|[^:/\\\[\]]{2,}):(?P<path>.*)\Z", re.DOTALL)
_PORT = regex(r":[0-9]*\Z")
_QUERY = regex(r"[?#].*\Z", re.DOTALL)
_DRIVE = regex(r"/?([A-Za-z]):(?=[/\\]|\Z)")
_HELPER = regex(r"\A[A-Za-z0-9-]+::")
_NO_PORT = regex(r":[^0-9\]]")


def normalise_remote(url: str) -> str:
    """`host/path` for an address on the network, a plain path for a local one.

    Scheme, user, password, port, query, `.git`, doubled and trailing slashes are removed; the host is in lower case.
    Ports are removed because one server answers https and ssh on different ones.
    """
    address = RemoteAddress.read(url)
    if address.host is None:
        return normalise_path(address.path)
    return f"{address.host}/{_tidy(address.path).strip('/')}".strip("/")


@dataclass(frozen=True, slots=True)
class RemoteAddress:
    """The parts of a remote; without a host it is on this machine."""

    host: str | None
    path: str

    @classmethod
    def read(cls, url: str) -> RemoteAddress:
        text = _HELPER.sub("", url.strip())
        if match := _URL.match(text):
            authority, path = match["authority"], match["path"]
            # A password with an unescaped "/" ends the authority early; none of it may be kept.
            if "@" not in authority and "@" in path and _NO_PORT.search(authority):
                authority, slash, path = path.rpartition("@")[2].partition("/")
                path = slash + path
            host = _PORT.sub("", authority.rpartition("@")[2]).lower()
            path = unquote(_QUERY.sub("", path))
            is_file = match["scheme"].lower() == "file" and host in ("", "localhost")
            return cls(None if is_file else host, path)
        if match := _SCP.match(text):
            return cls(match["host"].lower(), match["path"])
        return cls(None, text)


def normalise_path(path: str) -> str:
    """A local path in one spelling."""
    drive = _DRIVE.match(path)
    if drive:
        path = f"{drive[1].lower()}:{path[drive.end() :]}".replace("\\", "/")
    return _tidy(path) or path


def _tidy(path: str) -> str:
    if not path:
        return ""
    clean = posixpath.normpath(re.sub(r"/{2,}", "/", path))
    short = clean.removesuffix(".git").rstrip("/")
    return short or clean
