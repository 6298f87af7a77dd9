"""The best evidence within a budget of tokens: whole where it fits, its best passage where it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..clock import iso
from ..errors import InvalidInput
from ..records import Hit, Memory

__all__ = ["Shown", "check_tokens", "newest_within", "shown"]

# About what an answer spends on one result besides its text: ids, score, topic. An estimate, meant to be too high.
_AROUND = 120
# Without a budget a result is cut only where nobody would read it in a list.
_LONGEST = 2_000


@dataclass(frozen=True, slots=True)
class Shown:
    """A hit with the text that is shown of it."""

    hit: Hit
    text: str


def check_tokens(max_tokens: int | None) -> None:
    if max_tokens is not None and max_tokens < 1:
        raise InvalidInput(
            f"A budget of {max_tokens} tokens holds nothing.", remedy="Give 1 or more.", field="max_tokens"
        )


def shown(hits: Iterable[Hit], max_tokens: int | None, count_tokens: Callable[[str], int]) -> Iterator[Shown]:
    """Hits in their order, as long as there is room; one that does not fit even as a passage is passed over."""
    left = max_tokens
    for hit in hits:
        content = hit.memory.content
        for text in (content if len(content) <= _LONGEST else hit.snippet, hit.snippet):
            cost = 0 if left is None else _AROUND + count_tokens(text)
            if left is None or cost <= left:
                left = None if left is None else left - cost
                yield Shown(hit, text)
                break


def newest_within(turns: Sequence[Memory], total: int, max_tokens: int, count_tokens: Callable[[str], int]) -> str:
    """The newest turns in full, oldest first, and a mark of how many of all had no room."""
    taken: list[str] = []
    left = max_tokens
    for turn in reversed(turns):
        text = f"[{iso(turn.created_at)} {turn.role or 'note'}] {turn.content}"
        # Many times longer than the budget in characters: not worth counting.
        cost = count_tokens(text) + 1 if len(text) < 16 * max(left, 1) else left + 1
        if cost > left:
            break
        taken.append(text)
        left -= cost
    mark = f"(+{total - len(taken)} earlier entries not shown)"
    if total > len(taken) and count_tokens(mark) <= left:
        taken.append(mark)
    return "\n\n".join(reversed(taken))
