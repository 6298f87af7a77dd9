"""The ontology: the closed, two-level list of what a record can be about, and how any spelling of an entry is read.

Deciding which entry a text belongs to is the classifier's business. `docs/ontology.md` shows this list to people;
the rules for labelling by hand are in `bench/data/README.md`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import InvalidInput

__all__ = [
    "CATEGORIES",
    "CATEGORY_NAMES",
    "FALLBACK",
    "Category",
    "canonical_category",
    "canonical_subcategory",
    "expand_category",
    "parent_of",
    "subcategories_of",
]


@dataclass(frozen=True, slots=True)
class Category:
    """One entry of the upper level; `subcategories` are pairs of name and description."""

    name: str
    description: str
    subcategories: tuple[tuple[str, str], ...]


# The names are stored with records and asked for by filters: add, never rename.
CATEGORIES: tuple[Category, ...] = (
    Category(
        "development",
        "Writing code: how something is built, with which libraries, tools and habits",
        (
            ("implementation", "How a part was, or will be, written in code"),
            ("library_usage", "How a language, library, framework or SDK is used"),
            ("coding_conventions", "Rules and idioms that the code of a project follows"),
            ("developer_tooling", "Editors, linters, compilers, build scripts and the set-up of a developer's machine"),
            ("dependencies", "Adding, pinning, upgrading and choosing packages"),
        ),
    ),
    Category(
        "bug_fix",
        "Something behaves wrongly: the symptom, its cause or its mending",
        (
            ("bug_report", "Wrong behaviour as it was seen, not yet explained"),
            ("root_cause", "Why something goes wrong"),
            ("correction", "What was changed so that it goes wrong no more"),
            ("workaround", "How to live with a fault until it is mended"),
        ),
    ),
    Category(
        "feature",
        "What the product does, or shall do, for the people who use it",
        (
            ("feature_request", "Something users or customers would like to be able to do"),
            ("requirements", "Rules, limits and acceptance criteria of a capability"),
            ("user_interface", "Screens, wording, interaction and accessibility"),
            ("feature_delivery", "A capability that users now have, or get step by step"),
        ),
    ),
    Category(
        "refactoring",
        "Changing how code is arranged and not what it does",
        (
            ("restructuring", "Splitting, merging and moving code"),
            ("simplification", "The same effect with less or plainer code"),
            ("dead_code", "Taking out what nobody uses any more"),
            ("renaming", "Better names for the same things"),
            ("technical_debt", "Cleaning up that is owed, and what it costs to leave it"),
        ),
    ),
    Category(
        "architecture",
        "The shape of a system: its parts, their boundaries and the choices behind them",
        (
            ("technology_choice", "Choosing a language, database, framework or service, with the reasons"),
            ("system_structure", "Parts, layers and boundaries, and who may depend on whom"),
            ("interface_design", "Contracts between parts: endpoints, events, formats and their versions"),
            ("messaging", "How parts exchange work and stay consistent: queues, events, transactions"),
        ),
    ),
    Category(
        "security",
        "Keeping out those who should not get in, and keeping safe what is inside",
        (
            ("access_control", "Authentication, authorisation, sessions and roles"),
            ("vulnerability", "Weaknesses: found, reported, assessed or closed"),
            ("secrets_management", "Keys, passwords, tokens and certificates: where they live, who rotates them"),
            ("data_protection", "Encryption, personal data, audit trails and what the law asks"),
        ),
    ),
    Category(
        "data",
        "The data itself: its form, its movement, its correctness and what it tells",
        (
            ("schema", "Tables, columns, keys, constraints and document shapes"),
            ("data_migration", "Changing or moving data and schemas that are in use"),
            ("pipelines", "Ingestion, transformation and loading, in batches or as streams"),
            ("data_quality", "Wrong, missing or doubled data, and its validation and repair"),
            ("analytics", "Reports, measures, queries for insight, data sets and models trained on them"),
        ),
    ),
    Category(
        "infrastructure",
        "What the software runs on and how it gets there",
        (
            ("deployment", "Bringing releases to an environment, and taking them back"),
            ("ci_cd", "Pipelines that build, check and deliver"),
            ("cloud_resources", "Machines, clusters, containers, storage, and what they cost"),
            ("networking", "DNS, certificates at the edge, proxies, load balancers, firewalls"),
            ("monitoring", "Logs, metrics, alerts, outages and being on call"),
        ),
    ),
    Category(
        "testing",
        "How the work is tested and what the tests show",
        (
            ("automated_tests", "Unit, property and integration tests: what they cover and how they are run"),
            ("end_to_end_tests", "Tests of the whole product through a browser, a device or its public interface"),
            ("flaky_tests", "Tests that fail now and then, or for reasons of their own"),
            ("test_data", "Fixtures, factories, mocks, recorded answers and snapshots"),
            ("manual_testing", "Testing by hand: exploration, checklists, acceptance"),
        ),
    ),
    Category(
        "documentation",
        "Text that explains the product or the code to people",
        (
            ("guides", "Read-me files, tutorials, onboarding pages, run books"),
            ("reference", "Descriptions of interfaces, options and settings"),
            ("code_comments", "Comments, doc strings and decision records beside the code"),
            ("release_notes", "Change logs, upgrade notes, announcements"),
        ),
    ),
    Category(
        "performance",
        "How fast and how sparing something is",
        (
            ("latency", "How long one thing takes, and what makes it quicker"),
            ("memory_usage", "Memory, leaks and the size of what is held or shipped"),
            ("throughput", "How much is done at once: load, concurrency, scaling limits"),
            ("profiling", "Profiles, benchmarks and budgets"),
            ("caching", "Keeping results so that work need not be repeated"),
        ),
    ),
    Category(
        "project_management",
        "Who does what, when and in which way",
        (
            ("planning", "Goals, priorities, estimates, deadlines"),
            ("progress", "What is done, under way, next or blocked"),
            ("meetings", "What was said and agreed with others"),
            ("process", "How a team works: reviews, branches, releases, rituals"),
            ("ownership", "Who is responsible for what, and who can be asked"),
        ),
    ),
    Category(
        "general",
        "Everything else: talk, wishes and facts that belong to no piece of work",
        (
            ("conversation", "Greetings, thanks, confirmations, small talk"),
            ("preferences", "How somebody wants to be answered or helped"),
            ("knowledge", "Facts and explanations for their own sake"),
            ("personal", "People's lives outside the work"),
        ),
    ),
)

CATEGORY_NAMES: tuple[str, ...] = tuple(category.name for category in CATEGORIES)
FALLBACK = "general"  # the answer where nothing is certain enough

_BY_NAME = {category.name: category for category in CATEGORIES}
_PARENTS = {name: category.name for category in CATEGORIES for name, _ in category.subcategories}
_GAPS = re.compile(r"[\s_\-]+")
_SQUEEZED = {name.replace("_", ""): name for name in (*CATEGORY_NAMES, *_PARENTS)}


def canonical_category(text: str, *, field: str = "category") -> str:
    """The category that a text names: case, surrounding space and the way words are joined do not matter.

    A subcategory is refused with the name of its category, since records keep the category alone. `field` is what
    the caller calls the text.
    """
    name = _canonical(text)
    if name not in _BY_NAME:
        # A subcategory is a likely slip; saying where it belongs helps more than the list alone.
        hint = f" {name!r} is a subcategory of {_PARENTS[name]}." if name in _PARENTS else ""
        raise InvalidInput(
            f"There is no category {text[:80]!r}.{hint}",
            remedy=f"Use one of: {', '.join(CATEGORY_NAMES)}.",
            field=field,
        )
    return name


def expand_category(text: str, *, field: str = "category") -> tuple[str, ...]:
    """The stored spellings that a name of either level stands for: of a category or of a subcategory, itself."""
    name = _canonical(text)
    return (name,) if name in _PARENTS else (canonical_category(text, field=field),)


def canonical_subcategory(text: str) -> str:
    """The subcategory that a text names, read as `canonical_category` reads."""
    name = _canonical(text)
    if name not in _PARENTS:
        raise InvalidInput(
            f"There is no subcategory {text[:80]!r}.",
            remedy=f"Use one of: {', '.join(_PARENTS)}.",
            field="subcategory",
        )
    return name


def parent_of(subcategory: str) -> str:
    """The category that a subcategory belongs to."""
    return _PARENTS[canonical_subcategory(subcategory)]


def subcategories_of(category: str) -> tuple[str, ...]:
    """The names of the lower level under a category, in their order."""
    return tuple(name for name, _ in _BY_NAME[canonical_category(category)].subcategories)


def _canonical(text: str) -> str:
    squeezed = _GAPS.sub("", text.strip().lower())
    return _SQUEEZED.get(squeezed, squeezed)
