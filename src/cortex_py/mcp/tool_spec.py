"""What is told about a tool before it is called. On the standard library, as all tables of tools are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

__all__ = ["TOOLSETS", "ErrorForm", "ToolSpec", "Toolset"]

Toolset = Literal["core", "context", "memory", "graph", "prompts", "embedding", "backup", "legacy"]
TOOLSETS: tuple[Toolset, ...] = get_args(Toolset)

# How a family tells that a call failed: as an error of the protocol, or as a result with a code in one of two forms.
ErrorForm = Literal["jsonrpc", "embedding", "cortex"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool. `family` and `method` name the function behind it, `errors` the form in which it fails.

    `reaches_out` is a tool that may ask another machine, where one is configured.
    """

    name: str
    family: str
    method: str
    title: str
    description: str
    toolsets: tuple[Toolset, ...]
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    reaches_out: bool = False
    errors: ErrorForm = "jsonrpc"

    @property
    def portable_name(self) -> str:
        """The spelling for clients that take no dots."""
        return self.name.replace(".", "_")

    @property
    def spellings(self) -> frozenset[str]:
        """All names the tool answers to."""
        return frozenset((self.name, self.portable_name))
