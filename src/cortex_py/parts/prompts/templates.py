"""`cortex.templates`: saved templates, rendered with memories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ...core.clock import Clock, iso, memory_uri
from ...core.errors import InvalidInput
from ...core.memory.service import Memories
from ...core.records import Hit, JsonValue, Page, Saved, SavedKind
from ...texts.structured import one_line
from .checks import check_choices, check_value, parse_template, values_for
from .language.printing import ListText
from .language.rendering import RenderResult, as_json, as_xml, render
from .language.syntax import Template
from .saved_texts import RenderedText, SavedTexts

__all__ = ["FORMATS", "Templates", "gather"]

# -- variables that Cortex fills in; what a template does not mention is not looked up -------------

_FROM_RECALL = frozenset(("memories", "total_count", "namespace_counts"))


@dataclass(frozen=True, slots=True)
class TemplateQuery:
    """Which memories a template shows."""

    query: str | None = None
    filter: str = ""
    limit: int | None = None
    snippets: bool = False


@dataclass(frozen=True, slots=True)
class AutomaticValues:
    values: Mapping[str, object]
    memories: int = 0
    warnings: tuple[str, ...] = field(default=())


def gather(memories: Memories, clock: Clock, names: Collection[str], wanted: TemplateQuery) -> AutomaticValues:
    """Values for the automatic variables among `names`."""
    place = memories.place
    values: dict[str, object] = {
        "project": place.project.name,
        "branch": place.git_branch() or "",
        "now": iso(clock.now()),
    }
    page: Page | None = None
    if _FROM_RECALL.intersection(names):
        page = memories.recall(wanted.query, filter=wanted.filter, limit=wanted.limit)
        values |= _found(page, wanted)
    if "statistics" in names:
        values["statistics"] = _statistics(memories)
    kept = {name: value for name, value in values.items() if name in names}
    return AutomaticValues(kept, len(page.results) if page else 0, page.warnings if page else ())


def _found(page: Page, wanted: TemplateQuery) -> dict[str, object]:
    searched = bool((wanted.query or "").strip())
    items = [_item(hit, searched=searched, snippet=wanted.snippets) for hit in page.results]
    return {
        "memories": ListText(items, _as_list),
        "total_count": page.total,
        "namespace_counts": dict(Counter(hit.memory.namespace for hit in page.results).most_common()),
    }


def _item(hit: Hit, *, searched: bool, snippet: bool) -> dict[str, object]:
    memory = hit.memory
    return {
        "id": memory.id,
        "uri": memory_uri(memory.id),
        "namespace": memory.namespace,
        "domain": memory.domain,
        "content": memory.content,
        **({"snippet": hit.snippet} if snippet else {}),
        "score": round(hit.score, 4) if searched else None,
        "tags": list(memory.tags),
        "summary": memory.summary,
        "source": memory.source,
        "path": memory.path,
        "category": memory.category,
        "role": memory.role,
        "status": memory.status,
        "branch": memory.git_branch,
        "branch_id": memory.branch_id,
        "created_at": iso(memory.created_at),
        "updated_at": iso(memory.updated_at),
        "version": memory.version,
    }


def _as_list(items: Sequence[object]) -> str:
    """What `{{memories}}` prints: a list, with further lines of each memory indented."""
    lines = []
    for item in items:
        if isinstance(item, dict):
            content = str(item["content"]).strip().replace("\n", "\n  ")
            lines.append(f"- **{item['namespace']}**: {content}")
    return "\n".join(lines)


def _statistics(memories: Memories) -> dict[str, object]:
    status = memories.status()
    return {
        "total_count": status.total_count,
        "namespace_counts": dict(status.namespace_counts),
        "status_counts": dict(status.status_counts),
        "recent_topics": list(status.recent_topics),
        "top_tags": [{"tag": tag, "count": count} for tag, count in status.top_tags],
        "size_bytes": status.size_bytes,
    }


FORMATS = ("markdown", "json", "xml")


class Templates(SavedTexts):
    _kind: SavedKind = "template"

    def render(
        self,
        name: str,
        *,
        query: str | None = None,
        limit: int | None = None,
        filter: str = "",
        format: str = "markdown",
        variables: Mapping[str, JsonValue] | None = None,
        domain: str | None = None,
        version: int | None = None,
    ) -> RenderedText:
        """A template with memories and variables in it.

        The memories are those that recall finds for the query and filter, or the newest ones without a query. Given
        values precede defaults, and defaults precede automatic values; missing values stay empty. As `json` or `xml`
        the output is a document with the text and the values it was made of.
        """
        if format not in FORMATS:
            raise InvalidInput(
                f"Unknown format {format[:40]!r}.", remedy=f"Choose one of {', '.join(FORMATS)}.", field="format"
            )
        saved = self.get(name, domain=domain, version=version)
        template = parse_template(saved.content)
        given = dict(variables or {})
        check_choices(saved, {name: check_value(name, value) for name, value in given.items()})
        # Finding the matching passage takes time, so it is done only for templates that show it.
        wanted = TemplateQuery(query, filter, limit, snippets="snippet" in saved.content)
        names = (*template.names, *template.inner_names)
        known = {**values_for(saved, given), **given}
        facts = gather(self._memories, self._clock, [one for one in names if one not in known], wanted)
        values = {**facts.values, **known}
        result = render(template, values)
        output = _document(saved, template, result, values, format)
        self._count_use(saved)
        origin = (f"The template is the file {one_line(saved.path)} of the project.",) if saved.path else ()
        return RenderedText(saved, output, format, facts.memories, (*origin, *_warnings(result, facts)))


def _document(saved: Saved, template: Template, result: RenderResult, values: Mapping[str, object], format: str) -> str:
    if format == "markdown":
        return result.text
    fields = {
        "template": saved.name,
        "version": saved.version,
        "content": result.text,
        "data": {name: values[name] for name in (*template.names, *template.inner_names) if name in values},
    }
    return as_json(fields) if format == "json" else as_xml("render", fields)


def _warnings(result: RenderResult, facts: AutomaticValues) -> tuple[str, ...]:
    missing = (f"No value was given for {', '.join(result.missing)}.",) if result.missing else ()
    return (*facts.warnings, *missing)
