"""From checks to a probability: a logistic model over which of them hold and which fail. Pure.

Its coefficients live in `claim_model.json`, made by `bench/train_grounding.py` from labelled claims about other
projects than those it is measured on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from .checks import CHECK_NAMES, Check

__all__ = ["FEATURES", "ClaimModel", "default_claim_model", "features_of"]

# A matter of degree; what memories say is weighed apart, since the labelled claims have none.
_DEGREES = frozenset(("words", "memory"))
FEATURES: tuple[str, ...] = (
    *(f"{name}_{way}" for name in CHECK_NAMES if name not in _DEGREES for way in ("holds", "fails")),
    "words", "several_fail", "all_hold", "denied",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClaimModel:
    coefficients: Mapping[str, float]
    offset: float

    @classmethod
    def from_json(cls, text: str) -> ClaimModel:
        content = json.loads(text)
        if set(content["weights"]) != set(FEATURES):
            raise ValueError("the claim model weighs other features than those that are computed")
        return cls({name: float(content["weights"][name]) for name in FEATURES}, float(content["offset"]))

    def probability(self, features: Mapping[str, float]) -> float:
        total = self.offset + sum(weight * features[name] for name, weight in self.coefficients.items())
        return 0.5 + 0.5 * math.tanh(0.5 * total)


@lru_cache(maxsize=1)
def default_claim_model() -> ClaimModel:
    """The model that ships with the package."""
    return ClaimModel.from_json(resources.files("cortex_py.grounding").joinpath("claim_model.json").read_text("utf-8"))


def features_of(checks: Sequence[Check], denied: bool) -> dict[str, float]:
    """For each kind of check how far it holds and fails at most, and how they stand together."""
    found = dict.fromkeys(FEATURES, 0.0)
    for check in checks:
        if check.name == "words":
            found["words"] = max(found["words"], check.sure)
        if check.name in _DEGREES:
            continue
        key = f"{check.name}_{'holds' if check.holds else 'fails'}"
        found[key] = max(found[key], check.sure)
    plain = [check for check in checks if check.name not in _DEGREES]
    found["several_fail"] = float(sum(not check.holds for check in plain) > 1)
    found["all_hold"] = float(bool(plain) and all(check.holds for check in plain))
    found["denied"] = float(denied)
    return found
