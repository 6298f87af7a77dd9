"""Enrichment: better tags, better form, and a sourced context for one memory; its former self stays in the history."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from ..errors import LLMError
from ..ids import memory_uri
from ..records import Memory
from .keyphrases import suggest_tags, tag_for
from .neighbours import Neighbours
from .structuring import structure
from .wording import LOCAL, Method, check_faithful

if TYPE_CHECKING:
    from ..llm.client import LanguageModel

__all__ = ["Enriched", "Enricher", "Surroundings", "known_nothing", "without_context"]

_NEIGHBOURS = 3
_NEAR = 0.6
_SHOWN = 140
_TAGS_MOST = 5
_TAGS_ALL = 64
# Only what every line of shows to be ours: a person may have written such a block too.
_CONTEXT = re.compile(r"\n\n\*\*Context:\*\*\n(?:- [^\n]* \(subcog://memory/[0-9a-f]+\)(?:\n|\Z))+\Z")
_TASK = (
    "The data is a note from a project's memory. Give up to five short tags for it (lower case, words joined by "
    "hyphens) that name what it is about, and the note in a better form: a list where it enumerates, code in fences, "
    "decision, reason and consequence as separate labelled lines where it has them. Do not add, drop or change any "
    "statement, number, name, identifier or negation."
)
_SCHEMA = {
    "type": "object",
    "properties": {
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 60}, "maxItems": 8},
        "content": {"type": "string", "minLength": 1},
    },
    "required": ["tags", "content"],
    "additionalProperties": False,
}


class Surroundings(Protocol):
    """What is known around a memory: the names it mentions, and statements about them with the memory they are from.

    `note` is what was read in the text that counts, which is that of the memory without what an earlier run added.
    """

    def names(self, memory: Memory, note: object) -> Sequence[str]: ...

    def statements(self, memory: Memory, note: object) -> Sequence[tuple[str, str]]: ...


class _Nothing:
    def names(self, memory: Memory, note: object) -> Sequence[str]:  # noqa: ARG002
        return ()

    def statements(self, memory: Memory, note: object) -> Sequence[tuple[str, str]]:  # noqa: ARG002
        return ()


known_nothing: Surroundings = _Nothing()


@dataclass(frozen=True, slots=True)
class Enriched:
    """What was changed, exactly; `diff` is that of the content, empty where it stayed."""

    memory: Memory
    tags_added: tuple[str, ...]
    structure_improved: bool
    context_added: str | None
    diff: str
    method: str
    warnings: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.tags_added or self.diff)


@dataclass(frozen=True, slots=True)
class _Better:
    tags: tuple[str, ...]
    content: str
    method: str
    warnings: tuple[str, ...] = ()


Update = Callable[[Memory, str | None, Sequence[str] | None], Memory]


class Enricher:
    def __init__(
        self,
        neighbours: Neighbours,
        surroundings: Surroundings,
        model: Callable[[], LanguageModel | None],
        update: Update,
        read: Callable[[Memory], object],
    ) -> None:
        """`update` stores a new content or new tags of a memory as its next version; `read` reads one beforehand."""
        self._read = read
        self._neighbours = neighbours
        self._surroundings = surroundings
        self._model = model
        self._update = update

    def run(
        self, memory: Memory, *, tags: bool, structured: bool, context: bool, method: Method, dry_run: bool = False
    ) -> Enriched:
        """Enrich a memory. Repeating it changes nothing more."""
        body, before = _split(memory.content)
        better = self._better(memory, body, structured, method) if tags or structured else _Better((), body, LOCAL)
        added = better.tags[: max(0, _TAGS_ALL - len(memory.tags))] if tags else ()
        form = better.content if structured else body
        # Of the form that it is given, so that another run finds the same.
        lines = self._context(memory, form) if context else None
        block = before if lines is None else lines
        content = form + (f"\n\n**Context:**\n{block}" if block else "")
        diff = _diff(memory.content, content)
        stored = memory
        if not dry_run and (diff or added):
            stored = self._update(memory, content if diff else None, (*memory.tags, *added) if added else None)
        told = lines if lines and lines != before else None
        return Enriched(stored, added, form != body, told, diff, better.method, better.warnings)

    def _better(self, memory: Memory, body: str, structured: bool, method: Method) -> _Better:
        form = structure(body) if structured else body
        # Of the form too, as the context is.
        names = self._surroundings.names(memory, self._read(replace(memory, content=form)))
        local = _Better(suggest_tags(form, memory.tags, names), form, LOCAL)
        if method == "local":
            return local
        model = self._model()
        if model is None:
            if method == "llm":
                raise LLMError("No language model is configured.", remedy="Set llm_provider and llm_model.")
            return local
        try:
            return _by_model(model, memory, body)
        except LLMError as error:
            if method == "llm":
                raise
            return _Better(local.tags, local.content, LOCAL, (f"The language model was not used: {error}",))

    def _context(self, memory: Memory, form: str) -> str:
        """What the store knows around a memory, one line each, every line with where it is from."""
        own = f"- Written on the git branch `{memory.git_branch}`. ({memory_uri(memory.id)})"
        stated = self._surroundings.statements(memory, self._read(replace(memory, content=form)))
        lines = [own] if memory.git_branch else []
        lines += [f"- {_one_line(text)} ({memory_uri(source)})" for text, source in stated]
        for other, cosine in self._neighbours.of(memory, _NEIGHBOURS, form):
            if cosine >= _NEAR:
                lines.append(f"- See also: {_one_line(_split(other.content)[0])} ({memory_uri(other.id)})")
        return "\n".join(dict.fromkeys(lines))


def without_context(content: str) -> str:
    """A content as it was before context was added to it."""
    return _split(content)[0]


def _split(content: str) -> tuple[str, str]:
    """A content without the context that an earlier run gave it, and that context."""
    found = _CONTEXT.search(content)
    if not found:
        return content, ""
    return content[: found.start()], found[0].partition("**Context:**\n")[2].rstrip("\n")


def _by_model(model: LanguageModel, memory: Memory, body: str) -> _Better:
    from ..llm.values import Budget, Passage, Prompt

    budget = Budget(input_tokens=16_000, output_tokens=4_000)
    reply = model.complete(Prompt(_TASK, [Passage("the note", body)]), _SCHEMA, budget)
    content = str(reply.value["content"]).strip()
    check_faithful(reply.model, [body], content)
    present = {tag.casefold() for tag in memory.tags}
    tags = dict.fromkeys(tag for one in reply.value["tags"] if (tag := tag_for(str(one))) and tag not in present)
    return _Better(tuple(tags)[:_TAGS_MOST], content, f"llm:{reply.model}")


def _one_line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else flat[: _SHOWN - 1].rstrip() + "…"


def _diff(before: str, after: str) -> str:
    if before == after:
        return ""
    # By "\n" alone: two texts are the same where all these lines are.
    lines = difflib.unified_diff(before.split("\n"), after.split("\n"), "before", "after", lineterm="")
    return "\n".join(lines)
