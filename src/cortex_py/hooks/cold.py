"""What a prompt is given while no process is warm: a search by words in the file of the store.

It has no calibrated score, no vectors and no check for contradictions, so it asks for more: a note must have most of
what the prompt says. Encrypted homes, PostgreSQL and shared servers are served by a warm process only.
"""

from __future__ import annotations

import os
import time
import tomllib
from pathlib import Path
from typing import Any

from .frame import Quote, frame, quote
from .prepared import branch_of, read_head
from .sessions import GivenMemories, session_of

__all__ = ["FLOOR", "answer_cold"]

# The share of a prompt's words, rare ones counting for more, that a note must have. Set by hand, not yet measured.
FLOOR = 0.5
_MARGIN = 0.9
_MOST_GIVEN = 3
_FEWEST_TERMS = 3
_QUERY_CHARACTERS = 2_000
_LONGEST_QUOTE = 700
_CHARACTERS_PER_TOKEN = 3  # of quotations; low, so that the budget is kept
_TOKENS = 400


def answer_cold(home: Path, event: dict[str, Any], floor: float = FLOOR) -> tuple[str, list[str]]:
    """The text for the prompt of an event, and the ids of the memories in it; empty if there is nothing certain."""
    text = str(event.get("text") or "").strip()[:_QUERY_CHARACTERS]
    settings = _settings(home)
    if not text or text.startswith(("/", "!")) or settings is None or not (home / "cortex.db").is_file():
        return "", []
    # Imported here: they load the stemmer and SQLite, which other hooks do without.
    from ..memory.capture.terms import leading_query_terms, stop_words
    from ..store.sqlite_search import search_file

    stop = stop_words()
    terms = [term for term in leading_query_terms(text) if term not in stop]
    if len(terms) < _FEWEST_TERMS:
        return "", []
    folder = Path(str(event["cwd"])).resolve()
    branch = branch_of(read_head(folder))
    found = search_file(home / "cortex.db", folder, terms, git_branch=branch, now=time.time(), least=floor)
    given = set(GivenMemories(home).ids(session_of(event)))
    best = max((note.share for note in found), default=0.0)
    fresh = [note for note in found if note.share >= _MARGIN * best and note.id not in given][:_MOST_GIVEN]
    left = _CHARACTERS_PER_TOKEN * int(settings.get("hook_prompt_tokens", _TOKENS)) - len(frame(["-"]))
    quotes: list[Quote] = []
    for note in fresh:
        whole = len(note.content) <= _LONGEST_QUOTE
        shown = quote(note, note.content if whole else f"{note.content[:_LONGEST_QUOTE]}…")
        if len(shown.text) <= left:
            quotes.append(shown)
            left -= len(shown.text)
    return frame(one.text for one in quotes), [one.id for one in quotes]


def _settings(home: Path) -> dict[str, Any] | None:
    """The settings in the file of a home; None where only a warm process may answer."""
    try:
        content = tomllib.loads((home / "config.toml").read_text("utf-8"))
    except FileNotFoundError:
        content = {}
    except (OSError, ValueError):
        return None
    shared = os.environ.get("CORTEX_DATABASE_URL") or content.get("database_url")
    auth = os.environ.get("CORTEX_AUTH") or content.get("auth") or "token"
    return None if shared or auth != "token" or content.get("hook_templates") else content
