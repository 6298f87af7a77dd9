"""The ontology: the closed, two-level list of what a record can be about.

The list is in `ontology.json` and is documented in ontology.md; `classifier` decides which entry fits a text.
The rules for labelling by hand are in `bench/data/README.md`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from ...errors import InvalidInput

__all__ = ["CATEGORIES", "CATEGORY_NAMES", "FALLBACK", "PARENTS", "Category", "canonical_category"]


@dataclass(frozen=True, slots=True)
class Category:
    """An entry of the upper level; `subcategories` are pairs of name and description."""

    name: str
    description: str
    subcategories: tuple[tuple[str, str], ...]


# Records store the names and filters ask for them: add names, never change one.
CATEGORIES: tuple[Category, ...] = tuple(
    Category(name, entry["description"], tuple(entry["subcategories"].items()))
    for name, entry in json.loads(Path(__file__).with_name("ontology.json").read_text("utf-8")).items()
)

CATEGORY_NAMES: tuple[str, ...] = tuple(category.name for category in CATEGORIES)
FALLBACK = "general"  # the category of a text that fits no other

# The category of each subcategory.
PARENTS = {name: category.name for category in CATEGORIES for name, _ in category.subcategories}
_GAPS = re.compile(r"[\s_\-]+")
_SQUEEZED = {name.replace("_", ""): name for name in (*CATEGORY_NAMES, *PARENTS)}


def canonical_category(text: str, *, field: str = "category") -> str:
    """The category that a text names; case, surrounding space and word separators do not matter.

    A subcategory is refused with a hint, because records store the category only. `field` names the argument in the
    error.
    """
    squeezed = _GAPS.sub("", text.strip().lower())
    name = _SQUEEZED.get(squeezed, squeezed)
    if name not in CATEGORY_NAMES:
        hint = f" {name!r} is a subcategory of {PARENTS[name]}." if name in PARENTS else ""
        raise InvalidInput(
            f"There is no category {text[:80]!r}.{hint}",
            remedy=f"Use one of: {', '.join(CATEGORY_NAMES)}.",
            field=field,
        )
    return name
