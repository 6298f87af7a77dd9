"""What a language model proposes for one memory: tags, a form and a context, each checked before it is used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...clock import memory_uri
from ...security.secrets.secrets import redact
from .merging import check_faithful, lost_facts, task

if TYPE_CHECKING:
    from ...llm.client import LanguageModel

__all__ = ["propose_by_model", "state_by_model"]

_LONGEST = 1_500  # characters of a piece


def propose_by_model(model: LanguageModel, body: str, present: Sequence[str]) -> tuple[tuple[str, ...], str, str]:
    """New tags, the form and the method. LLMError if there is no answer, or its form drops a fact or adds a number."""
    from ...llm.values import Budget, Passage
    from ..labels.keyphrases import tag_for

    budget = Budget(input_tokens=16_000, output_tokens=4_000)
    reply = model.complete(*task("enrich", [Passage("the note", body)]), budget)
    content = str(reply.value["content"]).strip()
    check_faithful(reply.model, [body], content)
    known = {tag.casefold() for tag in present}
    tags = dict.fromkeys(tag for one in reply.value["tags"] if (tag := tag_for(str(one))) and tag not in known)
    return tuple(tags), content, f"llm:{reply.model}"


def state_by_model(model: LanguageModel, body: str, pieces: Sequence[tuple[str, str]]) -> list[str]:
    """Lines of context that the model takes from pieces of memory (text and memory id), each with its source.

    A statement with a fact that neither the note nor its piece has is dropped. LLMError if there is no answer.
    """
    from ...llm.values import Budget, Passage

    data = [Passage("the note", redact(body).text)]
    data += [Passage(f"piece {number}", redact(text[:_LONGEST]).text) for number, (text, _) in enumerate(pieces, 1)]
    reply = model.complete(*task("context", data), Budget(input_tokens=16_000, output_tokens=1_000))
    lines: dict[str, None] = {}
    for one in reply.value["statements"]:
        text, number = " ".join(str(one["text"]).split()), int(one["piece"])
        if not 1 <= number <= len(pieces):
            continue
        piece, source = pieces[number - 1]
        if text and not lost_facts([text], f"{body}\n{piece}"):
            lines[f"- {text} ({memory_uri(source)})"] = None
    return list(lines)
