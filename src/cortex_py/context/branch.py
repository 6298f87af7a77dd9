"""How a line of work is named: an id that a person can read, and that no topic can break."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from anyascii import anyascii

from ..errors import InvalidInput

__all__ = ["TOPIC_LENGTH", "branch_id", "check_topic", "slug"]

TOPIC_LENGTH = 200
_SLUG_LENGTH = 48
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
