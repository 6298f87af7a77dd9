"""By which way a shared server knows its callers, as the settings say."""

from __future__ import annotations

from collections.abc import Callable

from ..clock import Clock
from ..config import Settings
from ..errors import ConfigurationError
from ..security.callers import Caller
from .oidc import SignedTokens
from .service import Access

__all__ = ["Verifier", "open_verifier"]

# Tells who a bearer token speaks for, or raises `AccessDenied`.
Verifier = Callable[[str], Caller]


def open_verifier(settings: Settings, access: Access, clock: Clock) -> Verifier | None:
    """None where callers are not told apart: they share one token, or need none."""
    if settings.auth == "token":
        return None
    if settings.token:
        # One of the two would be ignored, and whoever set it would believe otherwise.
        raise ConfigurationError(
            f"Both token and auth = {settings.auth} are set.", remedy="Unset token (CORTEX_TOKEN).", field="token"
        )
    return access.verify if settings.auth == "tokens" else SignedTokens.from_settings(settings, clock).verify
