"""Which namespace a classified note belongs in, where that is certain enough to decide for the one who wrote it."""

from __future__ import annotations

from .classifier import Classified

__all__ = ["BY_CATEGORY", "BY_SUBCATEGORY", "FILING_FLOOR", "namespace_for"]

# From cross-validation over labelled notes (`bench/ontology.py`, "filed"): at this confidence nine of ten notes or
# more go where their label says, also among those notes that no listed word was chosen by.
FILING_FLOOR = 0.9

BY_CATEGORY: dict[str, str] = {
    "architecture": "decisions",
    "security": "security",
    "testing": "testing",
    "performance": "performance",
}
# These come before the category's own. Other subcategories say too little about where a note belongs.
BY_SUBCATEGORY: dict[str, str] = {
    "coding_conventions": "patterns",
    "interface_design": "apis",
    "progress": "progress",
    "root_cause": "learnings",
    "technical_debt": "tech-debt",
}


def namespace_for(classified: Classified) -> str | None:
    """The namespace of a note that was classified with high confidence; None leaves it where it is."""
    if classified.confidence < FILING_FLOOR:
        return None
    if classified.subcategory in BY_SUBCATEGORY:
        return BY_SUBCATEGORY[classified.subcategory]
    return BY_CATEGORY.get(classified.category)
