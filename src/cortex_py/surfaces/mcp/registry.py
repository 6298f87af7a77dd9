"""The table of tools: what describes each before it is called, and the choice of those that a server offers.

Each family has its rows in `families/FAMILY.toml`. Standard library only: the instant front and the reference page
read the table without the protocol's packages.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from ...core.config import ToolBound
from ...core.errors import ConfigurationError

__all__ = [
    "EVERY_TOOL", "TOOLS", "TOOLSETS", "TOOL_BY_NAME", "ErrorForm", "ToolSpec", "Toolset", "family_tools",
    "select_tools",
]  # fmt: skip

Toolset = Literal["core", "context", "memory", "graph", "prompts", "embedding", "backup", "legacy", "memory-tool"]
TOOLSETS: tuple[Toolset, ...] = get_args(Toolset)

# How a family reports a failed call: as an error of the protocol, as a result with a code in one of two forms, or as
# a result that is the message alone.
ErrorForm = Literal["jsonrpc", "embedding", "cortex", "text"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool.

    `reaches_out` marks a tool that may ask another machine, where one is configured. `long` marks a tool whose work
    grows with the store or the project; it gets more time than others. `opt_in` marks a tool that is served only if its
    set or its name is asked for. `reading` names the commands with which a tool that writes only reads.
    """

    family: str
    name: str
    title: str
    description: str
    toolsets: tuple[Toolset, ...]
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    reaches_out: bool = False
    errors: ErrorForm = "jsonrpc"
    long: bool = False
    opt_in: bool = False
    reading: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        """The function of the family's tools that is called."""
        return self.portable_name.removeprefix("subcog_")

    @property
    def portable_name(self) -> str:
        """The spelling for clients that do not accept dots."""
        return self.name.replace(".", "_")

    @property
    def spellings(self) -> frozenset[str]:
        """All names the tool answers to. The document calls `subcog_recall` also `subcog:recall`."""
        return frozenset((self.name, self.portable_name, self.name.replace("subcog_", "subcog:", 1)))


def family_tools(family: str) -> tuple[ToolSpec, ...]:
    """The rows of a family; `every` has what they share."""
    table = tomllib.loads(Path(__file__).with_name("families").joinpath(f"{family}.toml").read_text("utf-8"))
    return tuple(_read_row(family, {**table.get("every", {}), **row}) for row in table["tool"])


def _read_row(family: str, fields: dict[str, Any]) -> ToolSpec:
    flags: dict[str, Any] = dict.fromkeys(fields.pop("flags", ()), True)
    toolsets, reading = tuple(fields.pop("toolsets")), tuple(fields.pop("reading", ()))
    return ToolSpec(family, toolsets=toolsets, reading=reading, **fields, **flags)


# The first tool listed only reads and needs no arguments: people who try a server out call the first one.
_FAMILIES = ("memory", "context", "graph", "prompts", "embedding", "backup")
# What a server offers unless it is bounded.
TOOLS: tuple[ToolSpec, ...] = tuple(spec for family in _FAMILIES for spec in family_tools(family))
EVERY_TOOL: tuple[ToolSpec, ...] = (*TOOLS, *family_tools("memory_tool"))
# By every spelling.
TOOL_BY_NAME: dict[str, ToolSpec] = {spelling: spec for spec in EVERY_TOOL for spelling in spec.spellings}


def select_tools(specs: Sequence[ToolSpec], bounds: Sequence[ToolBound]) -> list[ToolSpec]:
    """The tools that all bounds allow, in their own order. An unknown name is an error, not a silent gap."""
    names = {name for spec in specs for name in spec.spellings}
    for bound in bounds:
        _check("toolset", bound.toolsets, (*TOOLSETS, "all"))
        _check("tool", (*bound.tools, *bound.exclude_tools), names)
    wanted = [spec for spec in specs if not spec.opt_in or any(_names(bound, spec) for bound in bounds)]
    return [spec for spec in wanted if all(_allows(bound, spec) for bound in bounds)]


def _names(bound: ToolBound, spec: ToolSpec) -> bool:
    return bool(spec.spellings.intersection(bound.tools) or set(spec.toolsets).intersection(bound.toolsets))


def _allows(bound: ToolBound, spec: ToolSpec) -> bool:
    everything = "all" in bound.toolsets or not (bound.toolsets or bound.tools)
    excluded = bool(spec.spellings.intersection(bound.exclude_tools))
    return (everything or _names(bound, spec)) and not excluded and (spec.read_only or not bound.read_only)


def _check(kind: str, given: Sequence[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise ConfigurationError(
                f"Unknown {kind} {name[:80]!r}.", remedy=f"Known: {', '.join(sorted(known))}.", field=f"{kind}s"
            )
