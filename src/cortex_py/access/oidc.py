"""Signed tokens of an issuer (JWT, as OpenID Connect has them): checked here, without asking the issuer about each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..clock import Clock
from ..config import Settings
from ..errors import AccessDenied, ConfigurationError, InvalidInput
from ..security.callers import Caller, check_name
from ..security.scopes import known_scopes
from .jwks import KEY_FORMS, KeySet, read_source

__all__ = ["LEEWAY_SECONDS", "SignedTokens"]

# How far the issuer's clock and ours may differ.
LEEWAY_SECONDS = 30
_LONGEST = 16_000
_SMALLEST_RSA_BITS = 2_048
_LATEST = 10**12


class SignedTokens:
    """Tokens of one issuer for one audience. `org_claim` is the claim that names the organisation, where one does."""

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
        return cls(issuer, audience, KeySet(read_source(keys)), clock, org_claim=settings.oidc_org_claim)

    def verify(self, token: str) -> Caller:
        """Who a token speaks for; `AccessDenied` unless the issuer signed it, for us, and it holds now."""
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
                # Not the server's own for want of a claim: an issuer of many would let strangers in.
                org=check_name(_text(claims.get(self._org_claim)), self._org_claim) if self._org_claim else "",
            )
        except InvalidInput as error:
            raise AccessDenied(f"The token does not say whom it is for. {error.message}") from error

    def _claims(self, token: str) -> Mapping[str, Any]:
        """What the issuer signed. Before that is checked nothing of a token is believed, and only its key looked up."""
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
            # The comparison refuses what is not a number, too: it would be later and earlier than any time.
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
        told = claims.get(name)
        words = told if isinstance(told, list) else [told]
        found |= known_scopes(" ".join(word for word in words if isinstance(word, str)))
    return found
