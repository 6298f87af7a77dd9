"""What a prompt is given while no process is warm: a search by words in the file of the store.

It has no calibrated score and no vectors, and of contradictions it knows only what a newer note says was given up. So
it asks for more: a note must have most of what the prompt says. Encrypted homes, PostgreSQL and shared servers are
served by a warm process only.
"""

from __future__ import annotations

import os
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.paths import read_whole
from .frame import Quote, frame, quote
from .prepared import branch_of, read_head, roots_of
from .selection import LONGEST_QUOTE, certain, limits
from .sessions import GivenMemories, session_of

if TYPE_CHECKING:
    from ...core.store.sqlite_search import FoundNote

__all__ = ["MOST_GIVEN", "answer_cold", "find_cold"]

MOST_GIVEN = 3
_FEWEST_TERMS = 3
_QUERY_CHARACTERS = 2_000
_CHARACTERS_PER_TOKEN = 3  # of quotations; low, so that the budget is kept
_TOKENS = 400
_MOST_SETTINGS = 1_000_000
_READ = 8_000  # characters of a long note
_LOOKED_CLOSER = 10  # notes
_RELATED = 0.25  # of the floor: the share of words from which a newer note may say that one was given up
_PASSAGE = 300  # characters, about the length of a short note


def find_cold(home: Path, event: dict[str, Any], floor: float) -> tuple[list[FoundNote], frozenset[str]]:
    """The notes that have at least this share of the words of an event's prompt, best first, and those words."""
    text = str(event.get("text") or "").strip()[:_QUERY_CHARACTERS]
    if not text or text.startswith(("/", "!")) or not (home / "cortex.db").is_file():
        return [], frozenset()
    # Imported here: they load the stemmer and SQLite, which other hooks do without.
    from ...core.memory.text import leading_query_terms, stop_words
    from ...core.store.sqlite_search import search_file

    stop = stop_words()
    terms = [term for term in leading_query_terms(text) if term not in stop]
    if len(terms) < _FEWEST_TERMS:
        return [], frozenset()
    folder = Path(str(event["cwd"])).resolve()
    branch = branch_of(read_head(folder))
    found, weights = search_file(
        home / "cortex.db", roots_of(folder), terms, git_branch=branch, now=time.time(), least=_RELATED * floor
    )
    likely = [note for note in found if note.share >= floor][:_LOOKED_CLOSER]
    closer = (_looked_closer(note, weights) for note in likely)
    ordered = sorted((note for note in closer if note.share >= floor), key=lambda note: -note.share)
    return [note for note in ordered if not _is_given_up(note, found)], frozenset(terms)


def _is_given_up(note: FoundNote, others: list[FoundNote]) -> bool:
    """Whether a newer note says so."""
    newer = [one for one in others if one.created_at > note.created_at and one.status != "pending"]
    if not newer:
        return False
    from ...core.memory.comparison.conflicts import given_up

    return any(given_up(note.content, one.content) for one in newer)


def _looked_closer(note: FoundNote, weights: dict[str, float]) -> FoundNote:
    """A long note counts as much as its best passage: it has most words somewhere."""
    if len(note.content) <= _PASSAGE:
        return note
    from ...core.memory.text import terms

    held = frozenset(terms(_passage(note.content, frozenset(weights), _PASSAGE)))
    return note._replace(share=sum(weight for term, weight in weights.items() if term in held))


def answer_cold(home: Path, event: dict[str, Any]) -> tuple[str, list[str]]:
    """The text for the prompt of an event, and the ids of the memories in it; empty if there is nothing certain."""
    settings = _settings(home)
    if settings is None:
        return "", []
    least = limits("cold")
    found, words = find_cold(home, event, least.floor)
    given = set(GivenMemories(home).ids(session_of(event)))
    chosen = certain([(note.share, note) for note in found], least)
    fresh = [note for note in chosen if note.id not in given][:MOST_GIVEN]
    left = _CHARACTERS_PER_TOKEN * int(settings.get("hook_prompt_tokens", _TOKENS)) - len(frame(["-"]))
    length = min(LONGEST_QUOTE, left // max(1, len(fresh)))
    quotes: list[Quote] = []
    for note in fresh:
        shown = quote(note, _passage(note.content, words, length))
        if len(shown.text) <= left:
            quotes.append(shown)
            left -= len(shown.text)
    return frame(one.text for one in quotes), [one.id for one in quotes]


def _passage(content: str, words: frozenset[str], length: int) -> str:
    if len(content) <= length:
        return content
    from ...core.memory.text import Chunk, snippet

    return snippet(content, Chunk(0, min(len(content), _READ)), words, length)


def _settings(home: Path) -> dict[str, Any] | None:
    """The settings in the file of a home; None where only a warm process may answer."""
    try:
        content = tomllib.loads(read_whole(home / "config.toml", _MOST_SETTINGS).decode("utf-8"))
    except FileNotFoundError:
        content = {}
    except (OSError, ValueError):
        return None
    shared = os.environ.get("CORTEX_DATABASE_URL") or content.get("database_url")
    auth = os.environ.get("CORTEX_AUTH") or content.get("auth") or "token"
    return None if shared or auth != "token" or content.get("hook_templates") else content
