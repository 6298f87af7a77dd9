"""Every tool in one table: its name, the sets it belongs to, what it does to the world, and its words.

Plain data on the standard library: the instant front and the documents read it without the protocol's
packages.
"""

from __future__ import annotations

from .backup_rows import BACKUP_TOOLS
from .context_rows import CONTEXT_TOOLS
from .embedding_rows import EMBEDDING_TOOLS
from .graph_rows import GRAPH_TOOLS
from .memory_rows import MEMORY_TOOLS
from .prompt_rows import PROMPT_TOOLS
from .tool_spec import TOOLSETS, ErrorForm, Toolset, ToolSpec

__all__ = [
    "BACKUP_TOOLS",
    "CONTEXT_TOOLS",
    "EMBEDDING_TOOLS",
    "GRAPH_TOOLS",
    "MEMORY_TOOLS",
    "PROMPT_TOOLS",
    "TOOLS",
    "TOOLSETS",
    "ErrorForm",
    "ToolSpec",
    "Toolset",
]

# First a tool that reads and needs no arguments: whoever tries a server out calls what is listed first.
TOOLS: tuple[ToolSpec, ...] = (
    *MEMORY_TOOLS,
    *CONTEXT_TOOLS,
    *GRAPH_TOOLS,
    *PROMPT_TOOLS,
    *EMBEDDING_TOOLS,
    *BACKUP_TOOLS,
)
