"""Who may reach the server: this machine, or others only if they say who they are. Standard library only."""

from __future__ import annotations

import ipaddress

from ..config import Authentication
from ..errors import ConfigurationError

__all__ = ["SHORTEST_TOKEN", "check_exposure"]

SHORTEST_TOKEN = 16


def check_exposure(host: str, token: str | None, auth: Authentication = "token") -> None:
    """Refuse to be reachable from other machines without a token, tokens or an issuer."""
    if auth == "token" and not _is_loopback(host) and len(token or "") < SHORTEST_TOKEN:
        raise ConfigurationError(
            f"Refusing to serve on {host!r}, which other machines can reach, without a token of "
            f"{SHORTEST_TOKEN} characters or more.",
            remedy="Set CORTEX_TOKEN to a long random text, or auth to tokens or oidc, or serve on 127.0.0.1.",
            field="host",
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
