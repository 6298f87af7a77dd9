"""How entities are named: an id that a person can read and type, such as `entity_postgresql`."""

from __future__ import annotations

import re

from anyascii import anyascii

__all__ = ["PREFIX", "entity_id", "slug_of"]

PREFIX = "entity_"
_LENGTH = 60
_NOT_SLUG = re.compile(r"[^a-z0-9]+")
# What tells names apart that are otherwise only signs.
_SPELLED = str.maketrans({"+": " plus ", "#": " sharp "})


def slug_of(name: str) -> str:
    """A name in lower-case ASCII words joined by underscores, of bounded length."""
    words = _NOT_SLUG.sub("_", anyascii(name.translate(_SPELLED)).lower()).strip("_")
    return words[:_LENGTH].rstrip("_") or "unnamed"


def entity_id(slug: str, attempt: int = 0) -> str:
    """The id for a slug; later attempts add a number, for different things of one name."""
    return f"{PREFIX}{slug}_{attempt + 1}" if attempt else f"{PREFIX}{slug}"
