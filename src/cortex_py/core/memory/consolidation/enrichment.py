"""Enrichment: better tags, a better form and a sourced context for one memory. The old version stays in its history."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from ...clock import memory_uri
from ...errors import LLMError
from ...records import Memory
from ..capture.capture import Annotator
from ..comparison.statements import read_statement, split_context
from ..lifecycle import Lifecycle
from ..spaces import Neighbours
from .merging import LOCAL, Method, choose_model
from .model_enrichment import propose_by_model, state_by_model

if TYPE_CHECKING:
    from ...llm.client import LanguageModel

__all__ = ["Enricher", "EnrichmentResult", "GraphReader"]

_NEIGHBOURS = 3
_NEAR = 0.6
# A language model sees more memories than are near enough to be named without one.
_PIECES, _LOOSE = 6, 0.35
_SHARED = 2  # words of weight that two connected notes have in common
_SHOWN = 140
_TAGS_MOST = 5
_TAGS_ALL = 64


class GraphReader(Annotator, Protocol):
    """Reads memories for the graph, and knows what is around them.

    `note` is what was read in a text without an earlier context.
    """

    def names(self, memory: Memory, note: object) -> Sequence[str]:
        """The names that the memory mentions."""
        ...

    def statements(self, memory: Memory, note: object) -> Sequence[tuple[str, str]]:
        """Statements about these names, each with the id of its memory."""
        ...


@dataclass(frozen=True, slots=True)
class EnrichmentResult:
    """What was changed; `diff` is that of the content, empty if it is unchanged.

    `sources` says of each part whether it is `local`, of a language model (`llm:MODEL`), or `hybrid`: of both.
    """

    memory: Memory
    tags_added: tuple[str, ...]
    structure_improved: bool
    context_added: str | None
    diff: str
    method: str
    warnings: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        return bool(self.tags_added or self.diff)


@dataclass(frozen=True, slots=True)
class _Proposal:
    tags: tuple[str, ...]
    content: str
    method: str
    warnings: tuple[str, ...] = ()


class Enricher:
    def __init__(
        self,
        neighbours: Neighbours,
        reader: GraphReader,
        model: Callable[[], LanguageModel | None],
        lifecycle: Lifecycle,
    ) -> None:
        self._neighbours = neighbours
        self._reader = reader
        self._model = model
        self._lifecycle = lifecycle

    def run(
        self, memory: Memory, *, tags: bool, structured: bool, context: bool, method: Method, dry_run: bool = False
    ) -> EnrichmentResult:
        """Enrich a memory. Repeating the call changes nothing more."""
        body, before = split_context(memory.content)
        model = choose_model(self._model, method)
        better = _Proposal((), body, LOCAL)
        if tags or structured:
            better = self._propose(memory, body, structured, model, needed=method == "llm")
        added = better.tags[: max(0, _TAGS_ALL - len(memory.tags))] if tags else ()
        form = better.content if structured else body
        # Based on the new form, so that another run finds the same context.
        lines = self._context(memory, form) if context else None
        context_method, warnings = LOCAL, better.warnings
        if lines is not None and model is not None:
            lines, context_method, more = self._ask_context(model, memory, form, lines, needed=method == "llm")
            warnings = tuple(dict.fromkeys((*warnings, *more)))
        block = before if lines is None else lines
        content = form + (f"\n\n**Context:**\n{block}" if block else "")
        diff = _diff(memory.content, content)
        stored = memory
        if not dry_run and (diff or added):
            stored = self._lifecycle.update(
                memory.id,
                content=content if diff else None,
                tags=(*memory.tags, *added) if added else None,
                expected_version=memory.version,
            )
        new_context = lines if lines and lines != before else None
        sources = {
            name: source
            for name, source, changed in (
                ("tags", better.method, added),
                ("structure", better.method, form != body),
                ("context", context_method, new_context),
            )
            if changed
        }
        asked = (better.method, context_method if context_method == LOCAL or model is None else f"llm:{model.model}")
        overall = next((one for one in asked if one != LOCAL), LOCAL)
        return EnrichmentResult(stored, added, form != body, new_context, diff, overall, warnings, sources)

    def _ask_context(
        self, model: LanguageModel, memory: Memory, form: str, local: str, *, needed: bool
    ) -> tuple[str, str, tuple[str, ...]]:
        """The context with what a model takes from related memories, the method, and warnings."""
        near = [(one, cosine) for one, cosine in self._neighbours.near(memory, _PIECES, form) if cosine >= _LOOSE]
        pieces = [(split_context(one.content)[0], one.id) for one, _ in near]
        stated = self._reader.statements(memory, self._note(memory, form))
        pieces += list(stated)
        if not pieces:
            return local, LOCAL, ()
        try:
            lines = state_by_model(model, form, pieces)
        except LLMError as error:
            if needed:
                raise
            return local, LOCAL, (f"The language model was not used: {error}",)
        if not lines:
            return local, LOCAL, ()
        # A local line about a memory that the model spoke of adds nothing.
        spoken = {line.rpartition(" (")[2] for line in lines}
        kept = [line for line in local.split("\n") if line and line.rpartition(" (")[2] not in spoken]
        return "\n".join([*lines, *kept]), "hybrid" if kept else f"llm:{model.model}", ()

    def _propose(
        self, memory: Memory, body: str, structured: bool, model: LanguageModel | None, *, needed: bool
    ) -> _Proposal:
        # Imported on first use: their tables and patterns take a while to load.
        from ..labels.keyphrases import suggest_tags
        from ..labels.structuring import structure

        form = structure(body) if structured else body
        names = self._reader.names(memory, self._note(memory, form))
        local = _Proposal(suggest_tags(form, memory.tags, names), form, LOCAL)
        if model is None:
            return local
        try:
            tags, content, how = propose_by_model(model, body, memory.tags)
        except LLMError as error:
            if needed:
                raise
            return replace(local, warnings=(f"The language model was not used: {error}",))
        return _Proposal(tags[:_TAGS_MOST], content, how)

    def _context(self, memory: Memory, form: str) -> str:
        """What the store knows around a memory: one statement a line, each with its source."""
        stated = self._reader.statements(memory, self._note(memory, form))
        lines = [f"- {_one_line(text)} ({memory_uri(source)})" for text, source in stated]
        for other, cosine in self._neighbours.near(memory, _NEIGHBOURS, form):
            if cosine >= _NEAR and _is_connected(form, split_context(other.content)[0]):
                lines.append(f"- See also: {_one_line(split_context(other.content)[0])} ({memory_uri(other.id)})")
        return "\n".join(dict.fromkeys(lines))

    def _note(self, memory: Memory, content: str) -> object:
        return self._reader.read(replace(memory, content=content))


def _is_connected(text: str, other: str) -> bool:
    """Whether two notes name the same thing: near vectors alone are no connection that could be explained."""
    mine, others = read_statement(text), read_statement(other)
    named = [set(one.names) | set(one.identifiers) for one in (mine, others)]
    return bool(named[0] & named[1]) or len(set(mine.words) & set(others.words)) >= _SHARED


def _one_line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else flat[: _SHOWN - 1].rstrip() + "…"


def _diff(before: str, after: str) -> str:
    if before == after:
        return ""
    # Split by "\n" only, so that an empty diff means that the texts are equal.
    lines = difflib.unified_diff(before.split("\n"), after.split("\n"), "before", "after", lineterm="")
    return "\n".join(lines)
