"""The blanks of a prompt: `{{name}}`, found outside fenced code, and filled in once. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import ContentSyntaxError, Fault, InvalidInput, LimitExceeded
from ..records import JsonValue
from .marks import Mark, fenced, split
from .names import check_name

__all__ = ["FILLED_MOST", "Blanks", "find_blanks", "value_text"]

# Characters of a filled-in prompt; more than any model reads.
FILLED_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class Blanks:
    """A prompt taken apart: plain text, and the names of what is to be filled in."""

    parts: tuple[str | Mark, ...]
    names: tuple[str, ...]

    def fill(self, values: Mapping[str, str]) -> str:
        """The text with its values, which are never read as placeholders themselves; one that is absent is empty."""
        texts = [values.get(part.inner.strip(), "") if isinstance(part, Mark) else part for part in self.parts]
        if sum(map(len, texts)) > FILLED_MOST:
            raise LimitExceeded(
                f"The filled-in prompt is longer than {FILLED_MOST:,} characters.",
                remedy="Give shorter values.",
                field="variables",
            )
        return "".join(texts)


def find_blanks(content: str) -> Blanks:
    """The placeholders of a prompt, each name once, in order of appearance; a prompt that cannot be read is refused."""
    parts, faults = split(content, fenced(content))
    names: dict[str, None] = {}
    for part in parts:
        if isinstance(part, Mark):
            name = part.inner.strip()
            if fault := check_name(name):
                faults.append(Fault.at(content, part.start, fault))
                if len(faults) >= 20:
                    break
            names[name] = None
    if faults:
        remedy = "Write \\{{ for braces that are meant as text."
        raise ContentSyntaxError("prompt", faults, remedy=remedy)
    return Blanks(tuple(parts), tuple(names))


def value_text(name: str, value: JsonValue) -> str:
    """How a value stands in the text: a text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidInput(f"The value of {name[:64]!r} is not JSON.", field="variables") from error
