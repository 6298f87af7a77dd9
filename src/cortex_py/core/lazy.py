"""Regular expressions that are compiled when they are first used: a command imports hundreds and uses a few."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

__all__ = ["LaterPattern", "regex"]


class LaterPattern:
    """Stands for a regular expression, and compiles it at its first use."""

    def __init__(self, expression: str, flags: int) -> None:
        self._given = (expression, flags)

    def __getattr__(self, name: str) -> Any:
        # Kept, so that the next use finds it without this detour.
        found = self.__dict__[name] = getattr(self.compiled(), name)
        return found

    def compiled(self) -> re.Pattern[str]:
        return re.compile(*self._given)


if TYPE_CHECKING:

    def regex(expression: str, flags: int = 0) -> re.Pattern[str]: ...

else:

    def regex(expression: str, flags: int = 0) -> LaterPattern:
        """As `re.compile`."""
        return LaterPattern(expression, flags)
