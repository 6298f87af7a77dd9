"""Whether Codex runs our hooks: only those that its user has trusted as they stand.

Codex keeps in its configuration, for each trusted hook, a hash of what stood in the file (`hooks.state`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .programs import is_hook_line

__all__ = ["hooks_not_trusted"]

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


def hooks_not_trusted(file: Path, hooks: Mapping[str, Any], configuration: Mapping[str, Any]) -> str:
    """Why Codex does not run our hooks in a file, in words; empty if it runs them all."""
    states = configuration.get("state")
    known = {key: one for key, one in states.items() if isinstance(one, dict)} if isinstance(states, dict) else {}
    found = [known.get(key, {}) | {"wanted": wanted} for key, wanted in _ours(file, hooks)]
    counts = {
        "not trusted": sum("trusted_hash" not in one for one in found),
        "changed since they were trusted": sum(
            one.get("trusted_hash", one["wanted"]) != one["wanted"] for one in found
        ),
        "switched off": sum(one.get("enabled") is False for one in found),
    }
    return ", ".join(f"{count} of {len(found)} {what}" for what, count in counts.items() if count)


def _ours(file: Path, hooks: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Our hooks in a file: the key under which Codex keeps the state of each, and the hash that it trusts."""
    file = file.parent.resolve() / file.name
    for event, groups in hooks.items():
        name = _CAPITAL.sub("_", event).lower()
        for place, group in enumerate(groups if isinstance(groups, list) else ()):
            inner = group.get("hooks") if isinstance(group, dict) else None
            for number, hook in enumerate(inner if isinstance(inner, list) else ()):
                if isinstance(hook, dict) and is_hook_line(hook.get("command"), "codex"):
                    yield f"{file}:{name}:{place}:{number}", _hash(name, group, hook)


def _hash(name: str, group: Mapping[str, Any], hook: Mapping[str, Any]) -> str:
    identity: dict[str, Any] = {"event_name": name, "hooks": [{"async": False, **hook}]}
    if (matcher := group.get("matcher")) is not None:
        identity["matcher"] = matcher
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"
