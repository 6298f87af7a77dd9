"""The namespaces that a memory can live in, and how any spelling of one is read."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import UnknownNamespace

__all__ = ["NAMESPACES", "NAMESPACE_ALIASES", "Namespace", "canonical_namespace"]


@dataclass(frozen=True, slots=True)
class Namespace:
    """One kind of memory; `signal_words` are what people say when they mean it."""

    name: str
    description: str
    signal_words: tuple[str, ...]


NAMESPACES: tuple[Namespace, ...] = (
    Namespace("decisions", "Architectural and design decisions", ("decided", "chose", "going with")),
    Namespace("patterns", "Discovered patterns and conventions", ("always", "never", "convention")),
    Namespace(
        "learnings",
        "Insights gained from mistakes, experiments and debugging",
        ("learned", "realized", "turns out"),
    ),
    Namespace(
        "context",
        "Background that explains why things are as they are",
        ("because", "background", "for context"),
    ),
    Namespace(
        "tech-debt",
        "Shortcuts taken and clean-up still owed",
        ("todo", "workaround", "refactor later"),
    ),
    Namespace("blockers", "What stands in the way of the work", ("blocked by", "waiting on", "stuck")),
    Namespace("progress", "What is finished, under way or next", ("completed", "in progress", "next step")),
    Namespace("apis", "Endpoints, contracts and how to call them", ("endpoint", "request", "response")),
    Namespace("config", "Settings, environments and how things are set up", ("configured", "setting", "env var")),
    Namespace(
        "security",
        "Threats, safeguards and how access is controlled",
        ("vulnerability", "permission", "authentication"),
    ),
    Namespace("testing", "How the work is tested and what the tests showed", ("test case", "coverage", "flaky")),
    Namespace("performance", "Measurements, bottlenecks and tuning", ("latency", "slow", "benchmark")),
    Namespace("prompts", "Wording for language models that is worth keeping", ("prompt", "template", "instruct")),
)

NAMESPACE_ALIASES: dict[str, str] = {"techdebt": "tech-debt", "tech_debt": "tech-debt"}

_NAMES = tuple(namespace.name for namespace in NAMESPACES)


def canonical_namespace(text: str) -> str:
    """The name of the namespace that the text means; case and surrounding space do not matter."""
    spelled = text.strip().lower()
    name = NAMESPACE_ALIASES.get(spelled, spelled)
    if name not in _NAMES:
        raise UnknownNamespace(
            f"There is no namespace {text[:80]!r}.",
            remedy=f"Use one of: {', '.join(_NAMES)}.",
            field="namespace",
        )
    return name
