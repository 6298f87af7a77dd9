"""The namespaces of memories, and the spellings that are accepted for them."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import UnknownNamespace

__all__ = ["NAMESPACES", "Namespace", "canonical_namespace"]


@dataclass(frozen=True, slots=True)
class Namespace:
    """A kind of memory; `signal_words` are words that people use for it."""

    name: str
    description: str
    signal_words: tuple[str, ...]


NAMESPACES: tuple[Namespace, ...] = tuple(
    Namespace(name, description, tuple(words.split(", ")))
    for name, description, words in (
        ("decisions", "Architectural and design decisions", "decided, chose, going with"),
        ("patterns", "Discovered patterns and conventions", "always, never, convention"),
        ("learnings", "Insights gained from mistakes, experiments and debugging", "learned, realized, turns out"),
        ("context", "Background that explains why things are as they are", "because, background, for context"),
        ("tech-debt", "Shortcuts taken and clean-up still owed", "todo, workaround, refactor later"),
        ("blockers", "What stands in the way of the work", "blocked by, waiting on, stuck"),
        ("progress", "What is finished, under way or next", "completed, in progress, next step"),
        ("apis", "Endpoints, contracts and how to call them", "endpoint, request, response"),
        ("config", "Settings, environments and how things are set up", "configured, setting, env var"),
        ("security", "Threats, safeguards and how access is controlled", "vulnerability, permission, authentication"),
        ("testing", "How the work is tested and what the tests showed", "test case, coverage, flaky"),
        ("performance", "Measurements, bottlenecks and tuning", "latency, slow, benchmark"),
        ("prompts", "Wording for language models that is worth keeping", "prompt, template, instruct"),
    )
)

_ALIASES: dict[str, str] = {"techdebt": "tech-debt", "tech_debt": "tech-debt"}

_NAMES = tuple(namespace.name for namespace in NAMESPACES)


def canonical_namespace(text: str) -> str:
    """The namespace that a text names; case and surrounding space do not matter."""
    spelled = text.strip().lower()
    name = _ALIASES.get(spelled, spelled)
    if name not in _NAMES:
        from difflib import get_close_matches

        near = get_close_matches(name[:80], _NAMES, n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise UnknownNamespace(
            f"There is no namespace {text[:80]!r}.",
            remedy=f"{meant}Use one of: {', '.join(_NAMES)}.",
            field="namespace",
        )
    return name
