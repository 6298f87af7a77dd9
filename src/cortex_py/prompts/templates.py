"""`cortex.templates`: saved templates, and rendering them with memories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from ..clock import Clock
from ..config import SecretPolicy
from ..errors import InvalidInput
from ..memory.service import Memories
from ..records import JsonValue, Saved, SavedKind
from ..store.store import Store
from .checks import FoundNames, check_choices, check_value, values_for
from .documents import as_json, as_xml
from .draft import Draft
from .facts import AUTOMATIC, Facts, Wanted, gather
from .rendering import Rendered, render
from .results import RenderedText
from .saved_texts import SavedTexts
from .template_syntax import Template, parse

__all__ = ["FORMATS", "Templates"]

FORMATS = ("markdown", "json", "xml")
_VALUE_BYTES_MOST = 4_000_000


class Templates(SavedTexts):
    _kind: SavedKind = "template"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        memories: Memories,
        policy: SecretPolicy,
        root: Path | None,
        builtins: Callable[[], Sequence[Draft]] = lambda: (),
    ) -> None:
        super().__init__(store, clock, memories.place, policy, root, builtins)
        self._clock = clock
        self._memories = memories

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

        The memories are those that recall finds for the query and filter, or the newest when there is no query.
        Values given come before defaults, and those before what Cortex fills in; what nobody gives stays empty.
        As `json` or `xml` the output is a document that holds the text and the values it was made of.
        """
        if format not in FORMATS:
            raise InvalidInput(
                f"Unknown format {format[:40]!r}.", remedy=f"Choose one of {', '.join(FORMATS)}.", field="format"
            )
        saved = self.get(name, domain=domain, version=version)
        template = _parsed(saved.content)
        given = dict(variables or {})
        check_choices(saved, {name: check_value(name, value) for name, value in given.items()})
        # A search for the passage that matched takes its time, so it is made only for templates that show it.
        wanted = Wanted(query, filter, limit, snippets="snippet" in saved.content)
        names = (*template.names, *template.inner_names)
        known = {**values_for(saved, given), **given}
        facts = gather(self._memories, self._clock, [one for one in names if one not in known], wanted)
        values = {**facts.values, **known}
        result = render(template, values)
        output = _document(saved, template, result, values, format)
        self._shelves.used(saved)
        return RenderedText(saved, output, format, facts.memories, _warnings(result, facts))

    def _names(self, content: str) -> FoundNames:
        """What Cortex itself fills in need not be declared, but may be, with a default that comes before it."""
        template = _parsed(content)
        sure = tuple(name for name in template.names if name not in AUTOMATIC)
        automatic = tuple(name for name in template.names if name in AUTOMATIC)
        return FoundNames(sure, (*automatic, *template.inner_names))


@lru_cache(maxsize=64)
def _parsed(content: str) -> Template:
    return parse(content)


def _document(saved: Saved, template: Template, result: Rendered, values: Mapping[str, object], format: str) -> str:
    if format == "markdown":
        return result.text
    fields = {
        "template": saved.name,
        "version": saved.version,
        "content": result.text,
        "data": {name: values[name] for name in (*template.names, *template.inner_names) if name in values},
    }
    return as_json(fields) if format == "json" else as_xml("render", fields)


def _warnings(result: Rendered, facts: Facts) -> tuple[str, ...]:
    missing = (f"No value was given for {', '.join(result.missing)}.",) if result.missing else ()
    return (*facts.warnings, *missing)
