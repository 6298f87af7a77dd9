"""What needs a licence where the settings ask for one: one table, and the one place that refuses.

On a person's own machine nothing does. An operator who serves others sets `require_license`; then the MCP
server asks here before each call. The command line and the library stay open to whoever has the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..clock import Clock
from ..config import Settings
from ..errors import LicenceInvalid, LicenseRequired
from .licence import TIERS, Licence, Tier, check_time, read_public_key, unseal

__all__ = ["TIER_OF", "Gate", "allowed", "configured", "opened_by", "required_tier"]

# As the published document marks them; what is not named here is free. `tool.argument` is that argument of the tool.
# `update_memory` is marked for work it does besides saving; to refuse what was said would lose it, so it stays open.
TIER_OF: Mapping[str, Tier] = MappingProxyType(
    {
        "suggest_contexts": "pro",
        "verify_response": "pro",
        "search_context.filter_category": "pro",
        "get_context_graph_info": "enterprise",
        "sync_to_cloud": "enterprise",
        "sync_from_cloud": "enterprise",
    }
)


def required_tier(tool: str) -> Tier:
    """The lowest tier that opens a tool, or an argument of one."""
    return TIER_OF.get(tool, "free")


def allowed(tool: str, licence: Licence | None) -> bool:
    """Whether a licence, or none, opens a tool."""
    needed = required_tier(tool)
    if needed == "free":
        return True
    if licence is None:
        return False
    return TIERS.index(licence.tier) >= TIERS.index(needed) or tool in licence.features


def opened_by(licence: Licence | None) -> tuple[str, ...]:
    """All of the table that a licence opens."""
    return tuple(name for name in TIER_OF if allowed(name, licence))


def configured(settings: Settings) -> Licence | None:
    """The licence that the settings hold, whether or not it holds now; None where there is none."""
    token = (settings.license_key or "").strip()
    if not token:
        return None
    if settings.license_public_key is None:
        raise LicenceInvalid(
            "There is no key to check the licence by.",
            remedy="Set license_public_key to the operator's public key file.",
            field="license_public_key",
        )
    return unseal(token, read_public_key(settings.license_public_key))


class Gate:
    """Asks for the licence of one set of settings. The signature is checked once, the time at every call."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._licence: Licence | None = None

    def require(self, tool: str, arguments: Mapping[str, object] | None = None) -> None:
        """Raise `LicenseRequired` where the licence does not open a tool, or an argument that was given."""
        given = [name for name, value in (arguments or {}).items() if value is not None]
        for name, field in ((tool, None), *((f"{tool}.{argument}", argument) for argument in given)):
            if required_tier(name) != "free":
                self._require(name, field)

    def _require(self, name: str, field: str | None) -> None:
        tier = required_tier(name)
        needs = f"{name} needs a licence of the tier {tier}"
        try:
            licence = self._valid()
        except LicenceInvalid as error:
            raise LicenseRequired(f"{needs}. {error.message}", remedy=error.remedy, field=field) from error
        if allowed(name, licence):
            return
        has = "none is set" if licence is None else f"the one that is set is of the tier {licence.tier}"
        raise LicenseRequired(
            f"{needs}, and {has}.",
            remedy="Ask the operator of this server; it is given in CORTEX_LICENSE_KEY.",
            field=field,
        )

    def _valid(self) -> Licence | None:
        if self._licence is None:
            self._licence = configured(self._settings)
        if self._licence is not None:
            check_time(self._licence, self._clock)
        return self._licence
