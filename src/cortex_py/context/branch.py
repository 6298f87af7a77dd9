"""How a line of work is named: an id that a person can read, and that no topic can break."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from anyascii import anyascii

from ..errors import InvalidInput

__all__ = ["ROLES", "TOPIC_LENGTH", "branch_id", "check_git_branch", "check_role", "check_topic", "slug", "task_id"]

TOPIC_LENGTH = 200
_SLUG_LENGTH = 48
ROLES = ("user", "assistant")
_GIT_LENGTH = 250
# What git refuses in the name of a reference: signs of its own language, and forms that look like something else.
_GIT_BRANCH = re.compile(r"(?![-/])[^\x00-\x20\x7f~^:?*\[\\]+(?<![./])")
_NOT_GIT = re.compile(r"\.\.|@\{|//|(?:^|/)\.|\.lock(?:/|$)|^@$|^HEAD$|[\ud800-\udfff]")
_NOT_SLUG = re.compile(r"[^a-z0-9]+")


def slug(topic: str) -> str:
    """A topic in lower-case ASCII words joined by underscores, of bounded length."""
    words = _NOT_SLUG.sub("_", anyascii(topic).lower()).strip("_")
    return words[:_SLUG_LENGTH].rstrip("_") or "branch"


def branch_id(topic: str, moment: datetime, attempt: int = 0) -> str:
    """`slug_YYYYMMDD_HHMMSS`; later attempts add a number, for topics begun in the same second."""
    stem = f"{slug(topic)}_{moment.astimezone(UTC):%Y%m%d_%H%M%S}"
    return f"{stem}_{attempt + 1}" if attempt else stem


def check_topic(topic: str) -> str:
    """The topic as given, or an error that says why it cannot be one."""
    if not topic.strip():
        raise InvalidInput("The topic is empty.", remedy="Name what the work is about.", field="branch_topic")
    if len(topic) > TOPIC_LENGTH:
        raise InvalidInput(
            f"The topic is longer than {TOPIC_LENGTH} characters.", remedy="Shorten it.", field="branch_topic"
        )
    if any(0xD800 <= ord(char) <= 0xDFFF for char in topic):
        raise InvalidInput("The topic is not valid Unicode text.", field="branch_topic")
    return topic


def check_role(role: str) -> str:
    if role not in ROLES:
        raise InvalidInput(f"Unknown role {role[:40]!r}.", remedy=f"Give {' or '.join(ROLES)}.", field="role")
    return role


def check_git_branch(name: str) -> str:
    """The name as given, or an error where git would take no branch of that name."""
    if len(name) > _GIT_LENGTH or not _GIT_BRANCH.fullmatch(name) or _NOT_GIT.search(name):
        raise InvalidInput(
            f"{name[:80]!r} cannot be the name of a git branch.",
            remedy="Give it as `git branch` shows it, for example feature/login.",
            field="git_branch_name",
        )
    return name


def task_id(memory_id: str, moment: datetime) -> str:
    """`task_YYYYMMDD_HHMMSS_` and the last digits of the record's own id, which are random."""
    return f"task_{moment.astimezone(UTC):%Y%m%d_%H%M%S}_{memory_id[-6:]}"
