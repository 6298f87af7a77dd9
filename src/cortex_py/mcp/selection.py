"""Which tools are served: every configured bound must allow a tool. Pure, on the standard library."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..config import ToolBound
from ..errors import ConfigurationError
from .registry import TOOLSETS, ToolSpec

__all__ = ["select"]


def select(specs: Sequence[ToolSpec], bounds: Sequence[ToolBound]) -> list[ToolSpec]:
    """The tools that all bounds allow, in their own order. An unknown name is an error, not a silent gap."""
    names = {name for spec in specs for name in spec.spellings}
    for bound in bounds:
        _check("toolset", bound.toolsets, (*TOOLSETS, "all"))
        _check("tool", (*bound.tools, *bound.exclude_tools), names)
    return [spec for spec in specs if all(_allows(bound, spec) for bound in bounds)]


def _allows(bound: ToolBound, spec: ToolSpec) -> bool:
    everything = "all" in bound.toolsets or not (bound.toolsets or bound.tools)
    named = bool(spec.spellings.intersection(bound.tools) or set(spec.toolsets).intersection(bound.toolsets))
    excluded = bool(spec.spellings.intersection(bound.exclude_tools))
    return (everything or named) and not excluded and (spec.read_only or not bound.read_only)


def _check(kind: str, given: Sequence[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise ConfigurationError(
                f"Unknown {kind} {name[:80]!r}.", remedy=f"Known: {', '.join(sorted(known))}.", field=f"{kind}s"
            )
