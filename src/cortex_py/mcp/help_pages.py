"""Short pages for models and people: how to use the memory well. Plain text, no logic."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HELP", "HelpPage"]


@dataclass(frozen=True, slots=True)
class HelpPage:
    title: str
    text: str


HELP: dict[str, HelpPage] = {
    "capture": HelpPage(
        "What is worth remembering",
        """# What is worth remembering

Keep what a colleague would want to know next month and cannot see in the code: a decision and its reason,
a convention, the root cause of a fault, a limit that was measured, where work stands.

- One fact per memory, one to three sentences, names and numbers exact.
- `namespace` says what kind it is (`subcog://namespaces` lists them); two to four `tags` say what it is about.
- `source` is the file or address it comes from; then `path:` and `source:` find it.
- Secrets are redacted before anything is stored; the answer's `redacted` says what kinds.
- `duplicate_of` in the answer: the same text was there already.
- When something changed, update the old memory. Its former versions stay in its history.
""",
    ),
    "recall": HelpPage(
        "How to find a memory",
        """# How to find a memory

Ask in plain words; identifiers, paths and error codes are found whole and by part.

- `mode`: `hybrid` (meaning and words), `vector` (meaning), `text` (words).
- `detail`: `light` (no content), `medium` (the best passage, about 200 characters), `everything`.
- No query: the newest first, with `limit` and `offset`; `total` is the true number.
- `score` estimates how likely a memory is what you look for, between 0 and 1. It means the same across
  queries: when all are low, nothing fitting is stored.
""",
    ),
    "filters": HelpPage(
        "Filter expressions",
        """# Filter expressions

Words of the form `key:value`, separated by spaces; all must hold.

- Keys: `ns` `tag` `since` `before` `after` `source` `project` `branch` `path` `status` `entity` `category`
  `kind` `role` `user` `agent` `grounded`.
- `-key:value` excludes. A comma means or: `ns:decisions,patterns`. `tag:` twice means both.
- Quotes hold spaces: `tag:"code review"`.
- In `path` and `source`, `*` stays inside a folder and `**` crosses folders: `path:src/**`.
- Times are durations (`30m`, `12h`, `7d`, `2w`, `3mo`, `1y`) or dates (`2026-01-31`).
- `grounded` takes what a check against the project gave: `>=0.7`, `<0.3`, `accept`, `warn`, `reject`, `none`.
- Without `status:` only active and pending memories are shown.

Example: `ns:decisions tag:auth -tag:draft since:30d path:src/api/**`
""",
    ),
    "resources": HelpPage(
        "Addresses",
        """# Addresses

| Address | Shows |
|---|---|
| `subcog://memory/{id}` | one memory |
| `subcog://{domain}/{namespace}/{id}` | the same, by its scoped address |
| `subcog://{domain}/{namespace}` | the newest of a namespace; `_` stands for any |
| `subcog://search/{query}` | what a search finds |
| `subcog://namespaces` | the namespaces |
| `subcog://topics` | tags in use, with counts |
| `subcog://help/{topic}` | these pages |

Domains: `project`, `user` (also called `global`), `org`. Ids may be shortened to eight digits.
""",
    ),
    "errors": HelpPage(
        "Error codes",
        """# Error codes

| Code | Meaning |
|---|---|
| -32700 | the message is not JSON |
| -32600 | the request is not well formed |
| -32601 | there is no such tool, or it is switched off |
| -32602 | an argument is missing, unknown or of the wrong kind; `data.field` names it |
| -32603 | a fault inside the server |
| -32604 | no memory has this id |
| -32605 | the content holds a secret and the policy is to refuse it |
| -32606 | the language-model provider failed |
| -32607 | no prompt or template has this name |
| -32608 | a value breaks a rule, such as an unknown namespace |
""",
    ),
}
