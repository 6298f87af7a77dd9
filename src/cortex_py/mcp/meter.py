"""What a server tells to whoever counts: calls of tools, work between calls, events of the audit log."""

from __future__ import annotations

from typing import Literal, Protocol

__all__ = ["Meter", "NoMeter", "Outcome", "UpkeepOutcome"]

Outcome = Literal["ok", "error", "cancelled"]
UpkeepOutcome = Literal["done", "put_off", "failed"]


class Meter(Protocol):
    def called(self, tool: str, outcome: Outcome, seconds: float) -> None:
        """A tool was called; a name that no tool has comes as `unknown`."""
        ...

    def upkept(self, outcome: UpkeepOutcome) -> None: ...

    def audited(self, written: bool) -> None: ...


class NoMeter:
    """Where nobody counts."""

    def called(self, tool: str, outcome: Outcome, seconds: float) -> None:
        pass

    def upkept(self, outcome: UpkeepOutcome) -> None:
        pass

    def audited(self, written: bool) -> None:
        pass
