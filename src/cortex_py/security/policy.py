"""What becomes of secrets in what is given to be kept: redacted, refused, or let through, as configured."""

from __future__ import annotations

from collections.abc import Sequence

from ..config import SecretPolicy
from ..errors import ContentBlocked
from .secrets import redact

__all__ = ["screen"]


def screen(texts: Sequence[str], policy: SecretPolicy) -> tuple[list[str], tuple[str, ...]]:
    """The texts as they may be kept, and the kinds of secrets that were taken out of them."""
    if policy == "allow":
        return list(texts), ()
    results = [redact(text) for text in texts]
    kinds = tuple(dict.fromkeys(finding.kind for result in results for finding in result.findings))
    if kinds and policy == "block":
        raise ContentBlocked(
            f"The content holds what looks like a secret ({', '.join(kinds)}).",
            kinds=kinds,
            remedy="Remove it and repeat; nothing was stored.",
        )
    return [result.text for result in results], kinds
