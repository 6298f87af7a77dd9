"""Signed tokens (JWT) of an OpenID Connect issuer, verified locally with the issuer's public keys."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ...core.clock import Clock
from ...core.config import Settings
from ...core.errors import AccessDenied, ConfigurationError, InvalidInput
from ...core.paths import expanded, read_whole
from ...core.remote import is_loopback
from ...core.security.callers import Caller, check_name
from ...core.security.rights import parse_scopes

__all__ = ["KEY_FORMS", "LEEWAY_SECONDS", "KeySet", "KeysUnavailable", "SignedTokens", "key_fetcher"]

# How far the issuer's clock and ours may differ.
LEEWAY_SECONDS = 30
_LONGEST = 16_000
_SMALLEST_RSA_BITS = 2_048
_LATEST = 10**12


class SignedTokens:
    """Tokens of one issuer for one audience. `org_claim` is the claim with the organisation, if there is one."""

    def __init__(self, issuer: str, audience: str, keys: KeySet, clock: Clock, *, org_claim: str | None = None) -> None:
        self._org_claim = org_claim
        self._issuer = issuer
        self._audience = audience
        self._keys = keys
        self._clock = clock

    @classmethod
    def from_settings(cls, settings: Settings, clock: Clock) -> SignedTokens:
        issuer, audience, keys = settings.oidc_issuer, settings.oidc_audience, settings.oidc_jwks
        if not issuer or not audience or not keys:
            raise ConfigurationError(
                "auth = oidc needs an issuer, an audience and the issuer's keys.",
                remedy="Set oidc_issuer, oidc_audience and oidc_jwks.",
                field="auth",
            )
        return cls(issuer, audience, KeySet(key_fetcher(keys)), clock, org_claim=settings.oidc_org_claim)

    def verify(self, token: str) -> Caller:
        """The caller of a token; `AccessDenied` unless it is from the issuer, for this audience, and valid now."""
        claims = self._claims(token)
        if claims.get("iss") != self._issuer:
            raise AccessDenied("The token is of another issuer.")
        audience = claims.get("aud")
        if self._audience not in (audience if isinstance(audience, list) else [audience]):
            raise AccessDenied("The token is for another audience.")
        self._check_time(claims)
        agent = claims.get("azp") or claims.get("client_id")
        try:
            return Caller(
                check_name(_text(claims.get("sub")), "sub"),
                check_name(agent, "azp") if isinstance(agent, str) else None,
                _scopes(claims),
                f"oidc:{self._issuer}"[:200],
                # No default without the claim: an issuer with many organisations would let strangers in.
                org=check_name(_text(claims.get(self._org_claim)), self._org_claim) if self._org_claim else "",
            )
        except InvalidInput as error:
            raise AccessDenied(f"The token does not say whom it is for. {error.message}") from error

    def _claims(self, token: str) -> Mapping[str, Any]:
        """The verified claims. Before verification only the header is used, to find the key."""
        import jwt

        if len(token) > _LONGEST or not token.isascii():
            raise AccessDenied("The token is too long, or none.")
        try:
            header = jwt.get_unverified_header(token)
            algorithm, kid = header.get("alg"), header.get("kid")
            if not isinstance(algorithm, str) or algorithm not in KEY_FORMS:
                raise AccessDenied(
                    "The token is signed in a way that is not taken.", remedy=f"Taken: {', '.join(KEY_FORMS)}."
                )
            if "crit" in header or not isinstance(kid, str | None):
                raise AccessDenied("The token asks for what is not known here.")
            key = jwt.PyJWK(dict(self._keys.find(algorithm, kid)), algorithm=algorithm)
            if algorithm == "RS256" and key.key.key_size < _SMALLEST_RSA_BITS:
                raise AccessDenied("The issuer's key is too short.")
            # Times, issuer and audience are checked here, by the clock that everything else goes by.
            options = {f"verify_{name}": False for name in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")}
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=[algorithm],
                options=options,  # type: ignore[arg-type]  # the names are those of its type
            )
        except jwt.PyJWTError as error:
            raise AccessDenied("The token was changed, or is none.") from error
        return claims

    def _check_time(self, claims: Mapping[str, Any]) -> None:
        now = self._clock.now().timestamp()
        for name in ("exp", "nbf", "iat"):
            moment = claims.get(name)
            if moment is None:
                continue
            # The comparison also refuses NaN.
            if isinstance(moment, bool) or not isinstance(moment, int | float) or not 0 <= moment < _LATEST:
                raise AccessDenied(f"The token's {name} is no time.")
        if claims.get("exp") is None:
            raise AccessDenied("The token has no end.")
        if now >= claims["exp"] + LEEWAY_SECONDS:
            raise AccessDenied("The token has expired.")
        if max(claims.get("nbf") or 0, claims.get("iat") or 0) > now + LEEWAY_SECONDS:
            raise AccessDenied("The token is not valid yet.")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    """From `scope`, a text, or `scp`, which some issuers write as a list."""
    found: frozenset[str] = frozenset()
    for name in ("scope", "scp"):
        value = claims.get(name)
        words = value if isinstance(value, list) else [value]
        found |= parse_scopes(" ".join(word for word in words if isinstance(word, str)))
    return found


# -- The issuer's public keys, from a file or an address, cached -----------------------------------


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
# Invented key ids must not cause a request to the issuer each time.
_ASK_EVERY = 60.0
# After the first, the keys are fetched again; if that fails they are used until the second.
_FRESH_SECONDS = 3_600.0
_STALE_SECONDS = 86_400.0

logger = logging.getLogger(__name__)


class KeysUnavailable(Exception):
    """The keys could not be fetched; the message says why."""


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
            raise AccessDenied("The issuer's keys could not be fetched.", remedy="Try again later.")
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
        # While another thread fetches, callers with cached keys do not wait.
        if not self._lock.acquire(blocking=self._known is None):
            return
        try:
            now = self._now()
            if self._asked is not None and now - self._asked < _ASK_EVERY:
                return
            self._asked = now
            try:
                self._known = _Keys(now, _read(self._fetch()))
            except KeysUnavailable as error:
                logger.warning("the keys of the issuer could not be fetched: %s", error)
        finally:
            self._lock.release()


def _read(content: bytes) -> tuple[Mapping[str, Any], ...]:
    if len(content) > _MOST_BYTES:
        raise KeysUnavailable(f"they are longer than {_MOST_BYTES:,} bytes")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise KeysUnavailable("they are not JSON") from None
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list) or len(keys) > _MOST_KEYS:
        raise KeysUnavailable("they are no set of keys")
    return tuple(key for key in keys if isinstance(key, dict))


def key_fetcher(source: str) -> Callable[[], bytes]:
    """A function that fetches the keys from a file or an https address (http only on this machine)."""
    if "://" not in source:
        path = expanded(source).absolute()
        return lambda: _from_file(path)
    try:
        parts = urlsplit(source)
        local = is_loopback(parts.hostname or "")
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
        return read_whole(path, _MOST_BYTES)
    except OSError as error:
        raise KeysUnavailable(f"{path}: {error.strerror}") from error


def _from_address(url: str) -> bytes:
    import httpx2

    end = time.monotonic() + _TOTAL_SECONDS
    parts, size = [], 0
    try:
        # Redirects are not followed: only the configured address is trusted.
        with (
            httpx2.Client(timeout=_SILENCE_SECONDS, follow_redirects=False) as client,
            client.stream("GET", url, headers={"Accept": "application/json"}) as response,
        ):
            if response.status_code != 200:
                raise KeysUnavailable(f"the issuer answered {response.status_code}")
            for part in response.iter_bytes():
                parts.append(part)
                size += len(part)
                if size > _MOST_BYTES or time.monotonic() > end:
                    raise KeysUnavailable("the answer is too long or takes too long")
    except (httpx2.RequestError, httpx2.InvalidURL) as error:
        raise KeysUnavailable(f"{type(error).__name__}") from error
    return b"".join(parts)
