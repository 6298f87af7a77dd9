"""By which way a shared server knows its callers, as the settings say."""

from __future__ import annotations

from collections.abc import Callable

from ..clock import Clock
from ..config import Settings
from ..errors import ConfigurationError
from ..security.callers import Caller
from .oidc import SignedTokens
from .service import Access
from .tenants import Tenants

__all__ = ["Verifier", "open_verifier"]


class Verifier:
    """Tells who a bearer token speaks for, and what they may reach; `AccessDenied` for strangers."""

    def __init__(self, recognise: Callable[[str], Caller], tenants: Tenants) -> None:
        self._recognise = recognise
        self._tenants = tenants

    def __call__(self, token: str, project: str | None = None) -> Caller:
        """A caller, ready to be acted for; `project` is the one they want to work in."""
        return self.admitted(self.recognised(token), project)

    def recognised(self, token: str) -> Caller:
        """Who it is, before it is known what they may reach."""
        return self._recognise(token)

    def admitted(self, caller: Caller, project: str | None = None) -> Caller:
        """The caller with their rights as they are now."""
        return self._tenants.admitted(caller, project)


def open_verifier(settings: Settings, access: Access, tenants: Tenants, clock: Clock) -> Verifier | None:
    """None where callers are not told apart: they share one token, or need none."""
    if settings.auth == "token":
        return None
    if settings.token:
        # One of the two would be ignored, and whoever set it would believe otherwise.
        raise ConfigurationError(
            f"Both token and auth = {settings.auth} are set.", remedy="Unset token (CORTEX_TOKEN).", field="token"
        )
    known = access.verify if settings.auth == "tokens" else SignedTokens.from_settings(settings, clock).verify
    return Verifier(known, tenants)
