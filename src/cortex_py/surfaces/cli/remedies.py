"""Errors of the library in the words of the command line: what to type, where the library names tools or methods."""

from __future__ import annotations

import re

from ...core.errors import (
    BadArguments,
    BranchNotFound,
    CortexError,
    EntityNotFound,
    MemoryNotFound,
    PromptNotFound,
    RelationshipNotFound,
    SnapshotNotFound,
    SuggestionClosed,
    SuggestionNotFound,
)

__all__ = ["in_words_of_commands", "message_of"]

# What helps is the same for every error of a kind. A remedy that names a command already stays.
_BY_KIND: dict[type[CortexError], str] = {
    BadArguments: "Give each value as -v NAME=VALUE.",
    MemoryNotFound: "Look for it: cortex recall WORDS. Bring a deleted one back: cortex restore ID.",
    BranchNotFound: "See those that exist: cortex branch list. Begin one: cortex branch create TOPIC.",
    EntityNotFound: "See those that exist: cortex graph entities. Create it: cortex graph create NAME --type TYPE.",
    RelationshipNotFound: "See those that exist: cortex graph relationships.",
    PromptNotFound: "See those that exist: cortex prompt list, cortex template list.",
    SnapshotNotFound: "See those that exist: cortex snapshot list.",
    SuggestionNotFound: "Ask for new suggestions: cortex suggest TASK.",
    SuggestionClosed: "Ask for new suggestions: cortex suggest TASK.",
}

# Remedies as the library words them, where people at the command line need another.
_BY_WORDS = {
    "Give some text.": "Give it in quotes after the command, as in cortex capture 'We use SQLite', or pipe it in.",
    "Give content, tags or another field.": "See what can be changed: cortex update --help.",
    "Give the 40 hexadecimal digits, a prefix of at least 8, or a subcog:// address.": (
        "Give the id, or 8 or more of its first digits, that this shows: cortex recall WORDS."
    ),
}

# Names that callers of tools or of the library know, as people at the command line know them.
_NAMES = {
    "accept_suggestions": "cortex suggest --accept",
    "context_ids": "ids",
    "branch_id": "id",
    "create_branch": "cortex branch create",
    "create_snapshot": "cortex snapshot create",
    "get_active_summary": "cortex branch summary",
    "initialize_context": "cortex init",
    "link_git_branch": "cortex branch link",
    "list_snapshots": "cortex snapshot list",
    "load_context": "cortex get",
    "reject_suggestions": "cortex suggest --reject",
    "restore_snapshot": "cortex snapshot restore",
    "search_context": "cortex recall",
    "session_id": "session",
    "suggest_contexts": "cortex suggest",
    "sync_from_cloud": "cortex sync pull",
    "sync_to_cloud": "cortex sync push",
    "update_memory": "cortex branch add",
    "valid_from": "--from",
    "valid_to": "--to",
    "verify_response": "cortex verify",
}
_NAMED = re.compile(rf"\b(?:{'|'.join(_NAMES)}|subcog_(?P<name>\w+))\b|`(?P<bare>recall|restore|capture|init)`")


def message_of(error: CortexError) -> str:
    """What is wrong, and what to type next."""
    remedy = _BY_WORDS.get(error.remedy or "", error.remedy or "")
    if "cortex " not in remedy:
        remedy = next((text for kind, text in _BY_KIND.items() if isinstance(error, kind)), remedy)
    return in_words_of_commands(f"{error.message} {remedy}".rstrip())


def in_words_of_commands(text: str) -> str:
    """The text with names of tools and parameters replaced by commands and options."""
    return _NAMED.sub(_command, text)


def _command(found: re.Match[str]) -> str:
    name = found["name"] or found["bare"]
    return f"cortex {name.replace('_', ' ')}" if name else _NAMES[found[0]]
