"""The rows of the prompt and template tools."""

from __future__ import annotations

from .tool_spec import ToolSpec

__all__ = ["PROMPT_TOOLS"]


def _legacy(action: str, *, reads: bool = False, destructive: bool = False) -> ToolSpec:
    return ToolSpec(
        f"prompt_{action}",
        "prompts",
        f"legacy_{action}",
        f"{action.capitalize()} prompt (deprecated)",
        f"Deprecated: subcog_prompts, action {action}.",
        ("legacy",),
        read_only=reads,
        destructive=destructive,
        idempotent=reads,
    )


PROMPT_TOOLS: tuple[ToolSpec, ...] = (
    ToolSpec(
        "subcog_prompts",
        "prompts",
        "prompts",
        "Prompts",
        "Save, list, get, run (fill in) or delete reusable prompts with {{variable}} placeholders.",
        ("prompts",),
        destructive=True,
    ),
    ToolSpec(
        "subcog_templates",
        "prompts",
        "templates",
        "Templates",
        "Save, list, get, render or delete templates that lay out memories: {{#each memories}}, {{#if}}, {{variable}}.",
        ("prompts",),
        destructive=True,
    ),
    _legacy("save"),
    _legacy("list", reads=True),
    _legacy("get", reads=True),
    _legacy("run"),
    _legacy("delete", destructive=True),
)
