"""The public keys of an issuer: from a file or an address that the settings name, kept, and looked for anew seldom."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ..errors import AccessDenied, ConfigurationError
from ..paths import expanded

__all__ = ["KEY_FORMS", "KeySet", "Unfetched", "read_source"]

# Which key belongs to which algorithm. An allow list: no shared secrets (HS*), no `none`.
KEY_FORMS: Mapping[str, tuple[str, str | None]] = {
    "RS256": ("RSA", None),
    "ES256": ("EC", "P-256"),
    "EdDSA": ("OKP", "Ed25519"),
}

_MOST_BYTES = 256_000
_MOST_KEYS = 100
_SILENCE_SECONDS = 5.0
_TOTAL_SECONDS = 10.0
# Whoever makes up names of keys must not make us ask the issuer all the time.
_ASK_EVERY = 60.0
# After the first, keys are asked for anew; without an answer they are used up to the second.
_FRESH_SECONDS = 3_600.0
_STALE_SECONDS = 86_400.0

_log = logging.getLogger(__name__)


class Unfetched(Exception):
    """The keys could not be had; the message says why."""


class _Keys(NamedTuple):
    at: float
    keys: tuple[Mapping[str, Any], ...]


class KeySet:
    """`fetch` gives the bytes of a JWK set, or raises `Unfetched`."""

    def __init__(self, fetch: Callable[[], bytes], now: Callable[[], float] = time.monotonic) -> None:
        self._fetch = fetch
        self._now = now
        self._known: _Keys | None = None
        self._asked: float | None = None
        self._lock = threading.Lock()

    def find(self, algorithm: str, kid: str | None) -> Mapping[str, Any]:
        """The key for an algorithm by its name; without a name, the only one there is."""
        key = self._chosen(algorithm, kid)
        if key is None or self._age() > _FRESH_SECONDS:
            self._ask()
            key = self._chosen(algorithm, kid)
        if self._age() > _STALE_SECONDS:
            raise AccessDenied("The keys of the issuer could not be had.", remedy="Try again later.")
        if key is None:
            raise AccessDenied("The token was signed with a key that the issuer does not name.")
        return key

    def _age(self) -> float:
        return float("inf") if self._known is None else self._now() - self._known.at

    def _chosen(self, algorithm: str, kid: str | None) -> Mapping[str, Any] | None:
        kind, curve = KEY_FORMS[algorithm]
        fitting = [
            key
            for key in (self._known.keys if self._known else ())
            if key.get("kty") == kind
            and (curve is None or key.get("crv") == curve)
            and key.get("alg", algorithm) == algorithm
            and key.get("use", "sig") == "sig"
            and (kid is None or key.get("kid") == kid)
        ]
        return fitting[0] if len(fitting) == 1 else None

    def _ask(self) -> None:
        # While another asks, those who have keys do not wait: theirs is refused or works, both at once.
        if not self._lock.acquire(blocking=self._known is None):
            return
        try:
            now = self._now()
            if self._asked is not None and now - self._asked < _ASK_EVERY:
                return
            self._asked = now
            try:
                self._known = _Keys(now, _read(self._fetch()))
            except Unfetched as error:
                _log.warning("the keys of the issuer could not be had: %s", error)
        finally:
            self._lock.release()


def _read(content: bytes) -> tuple[Mapping[str, Any], ...]:
    if len(content) > _MOST_BYTES:
        raise Unfetched(f"they are longer than {_MOST_BYTES:,} bytes")
    try:
        told = json.loads(content)
    except (ValueError, RecursionError):
        raise Unfetched("they are not JSON") from None
    keys = told.get("keys") if isinstance(told, dict) else None
    if not isinstance(keys, list) or len(keys) > _MOST_KEYS:
        raise Unfetched("they are no set of keys")
    return tuple(key for key in keys if isinstance(key, dict))


def read_source(source: str) -> Callable[[], bytes]:
    """How to have the keys that a setting names: by a file, or by an address with TLS (or on this machine)."""
    if "://" not in source:
        path = expanded(source).absolute()
        return lambda: _from_file(path)
    try:
        parts = urlsplit(source)
        local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    except ValueError:
        parts, local = urlsplit(""), False
    if (parts.scheme != "https" and not (parts.scheme == "http" and local)) or not parts.hostname or parts.username:
        raise ConfigurationError(
            "oidc_jwks is neither a file nor an https address.",
            remedy="Give the address that the issuer's jwks_uri names.",
            field="oidc_jwks",
        )
    return lambda: _from_address(source)


def _from_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise Unfetched(f"{path}: {error.strerror}") from error


def _from_address(url: str) -> bytes:
    import httpx2

    end = time.monotonic() + _TOTAL_SECONDS
    parts, size = [], 0
    try:
        # Redirects are not followed: the settings name the one place whose word counts.
        with (
            httpx2.Client(timeout=_SILENCE_SECONDS, follow_redirects=False) as client,
            client.stream("GET", url, headers={"Accept": "application/json"}) as response,
        ):
            if response.status_code != 200:
                raise Unfetched(f"the issuer answered {response.status_code}")
            for part in response.iter_bytes():
                parts.append(part)
                size += len(part)
                if size > _MOST_BYTES or time.monotonic() > end:
                    raise Unfetched("the answer is too long or takes too long")
    except (httpx2.RequestError, httpx2.InvalidURL) as error:
        raise Unfetched(f"{type(error).__name__}") from error
    return b"".join(parts)
