"""What the codes mean with which the context tools fail."""

from __future__ import annotations

__all__ = ["CORTEX_CODES"]

# How a call of the context tools fails, and what then helps.
CORTEX_CODES: dict[str, str] = {
    "PROJECT_NOT_FOUND": "No project has this `project_id`; call `initialize_context` first",
    "BRANCH_NOT_FOUND": "The project has no such line of work; call `create_branch` first",
    "CONTEXT_NOT_FOUND": "There is no such context, or it belongs to another line of work or project",
    "SNAPSHOT_NOT_FOUND": "The project has no such snapshot; `list_snapshots` shows those there are",
    "SESSION_NOT_FOUND": "The project has no such session; give the `session_id` that `suggest_contexts` returned",
    "SESSION_CLOSED": "The suggestions were answered before, or expired; ask for new ones",
    "LICENSE_REQUIRED": "This server asks for a licence (`require_license`), and none opens this; `details` says why",
    "ACCESS_DENIED": "This server knows its callers, and the token lacks the scope for this; the message names it",
    "INVALID_PARAMS": "An argument is missing, unknown, of the wrong kind or breaks a rule; `details` names it",
    "NETWORK_ERROR": "The target of sync cannot be reached, or refuses; `details` says what to do",
    "RATE_LIMITED": "Too many requests; `details` says when to come back",
    "STORAGE_ERROR": "The disk, the database or the model failed; `details` says what to do",
}
