"""The steps from what a caller gives to an indexed record: check, screen, chunk, tokenise, embed.

Nothing here writes. Vectors are added last and for many records at once, because embedding takes most of the time.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from ...embedding.backends.backend import Backend
from ...errors import ContentBlocked, ContentTooLarge, InvalidInput
from ...records import STATUSES, Memory
from ...security.policy import COLUMN_ORIGINS, Screen
from ...security.secrets.secrets import redact
from ...store.rows import IndexedChunk, IndexedRecord, encode_terms, index_word, index_words, space_word, term_hash
from ..embedding_model import CANNOT_EMBED
from .chunking import Chunk, chunk, split_turns
from .terms import query_terms, terms

if TYPE_CHECKING:
    from ...security.personal import NameFinder

__all__ = [
    "check_fields",
    "check_no_secret",
    "check_text",
    "clean_tags",
    "count_personal_data",
    "embed_if_possible",
    "embed_records",
    "embed_texts",
    "embedded_text",
    "entity_words",
    "heading_of",
    "index_entry",
    "index_record",
    "path_in",
    "screen_record",
    "with_personal_counts",
]

_TAGS_MOST = 64
_TAG_LENGTH = 128
_FIELD_LENGTH = 2_000
_SUMMARY_LENGTH = 100_000
_OUTSIDE = tuple(
    name
    for name, sort in COLUMN_ORIGINS["memory"].items()
    if sort in ("prose", "name") and name not in ("tags", "idempotency_key")
)
_NOT_TEXT = re.compile("[\ud800-\udfff]")
_SPACES = re.compile(r"\s+")
_LOCATION = re.compile(r":\d+(?:[-:]\d+)?\Z")
_PATH_LIKE = re.compile(r"[^\s:]*[\w)\]](?:/[^\s:]+|\.[A-Za-z][\w+]{0,9})\Z")


def check_text(text: str, field: str, most_bytes: int) -> str:
    """Refuse a text that is empty, not valid Unicode or too large."""
    if not text or not text.strip():
        raise InvalidInput(f"The {field} is empty.", remedy="Give some text.", field=field)
    if _NOT_TEXT.search(text):
        raise InvalidInput(f"The {field} is not valid Unicode text.", remedy="Remove the lone surrogates.", field=field)
    if len(text) > most_bytes or len(text.encode()) > most_bytes:
        raise ContentTooLarge(
            f"The {field} is larger than {most_bytes:,} bytes.",
            remedy="Split it, or raise max_content_bytes.",
            field=field,
        )
    return text


def check_no_secret(text: str, field: str) -> str:
    """Refuse a name that contains a secret: a redacted name would mean something else."""
    kinds = tuple(dict.fromkeys(finding.kind for finding in redact(text).findings))
    if kinds:
        raise ContentBlocked(
            f"The {field} contains what looks like a secret ({', '.join(kinds)}).",
            kinds=kinds,
            remedy="Remove it and repeat; nothing was stored.",
            field=field,
        )
    return text


def clean_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Trim tags, and drop empty ones and repetitions that differ only in case."""
    if isinstance(tags, str):
        raise InvalidInput("The tags are one text.", remedy="Give a list of texts.", field="tags")
    kept: dict[str, str] = {}
    for tag in tags:
        if not isinstance(tag, str):
            raise InvalidInput(f"The tag {tag!r} is not a text.", field="tags")
        clean = _SPACES.sub(" ", tag).strip()
        if len(clean) > _TAG_LENGTH:
            raise InvalidInput(f"A tag is longer than {_TAG_LENGTH} characters.", field="tags")
        if clean:
            check_text(clean, "tag", _FIELD_LENGTH)
            kept.setdefault(clean.casefold(), clean)
    if len(kept) > _TAGS_MOST:
        raise InvalidInput(f"There are more than {_TAGS_MOST} tags.", remedy="Keep the most useful ones.", field="tags")
    return tuple(kept.values())


def check_fields(memory: Memory) -> None:
    """Refuse an unknown status, and fields that are empty, too long or not valid text."""
    if memory.status not in STATUSES:
        raise InvalidInput(
            f"Unknown status {memory.status!r}.", remedy=f"Choose one of {', '.join(STATUSES)}.", field="status"
        )
    for field in ("source", "path", "summary", "category", "role", "user_id", "agent_id", "git_branch"):
        text = getattr(memory, field)
        if text is not None:
            check_text(text, field, _SUMMARY_LENGTH if field == "summary" else _FIELD_LENGTH)


def screen_record(memory: Memory, screen: Screen) -> Memory:
    """The record as it may be stored: every text that comes from outside passes the screen."""
    kept, kinds = screen.fields("memory", {name: getattr(memory, name) for name in _OUTSIDE})
    tags, in_tags = screen.each("tags", memory.tags)
    found = tuple(dict.fromkeys((*kinds, *in_tags)))
    # Copied even where nothing was removed: the store screens again what is not marked as screened.
    changes: dict[str, Any] = {**kept, "tags": tags, "redactions": found or memory.redactions}
    return replace(memory, **changes)


def with_personal_counts(memory: Memory, people: Sequence[tuple[int, int]] = ()) -> Memory:
    """The record with its kinds of personal data; `people` are the spans of names in its content."""
    found = count_personal_data(memory.content, lambda _text: people)
    # The source of a part of a file is its path with the lines: the parts of a file share what that holds.
    source = None if memory.kind == "file" else memory.source
    for text in (memory.summary, source):
        if text:
            found += count_personal_data(text)
    for text in (*memory.tags, *([str(memory.path)] if memory.kind == "file" and memory.path else [])):
        found += count_personal_data(text)
    return replace(memory, personal=tuple(sorted(found.items())))


def count_personal_data(text: str, people: NameFinder | None = None) -> Counter[str]:
    """How often each kind of personal data occurs in a text."""
    # Imported on first use, because it takes a while to load.
    from ...security.personal import find_personal_data

    return Counter(finding.kind for finding in find_personal_data(text, people))


def index_record(
    memory: Memory,
    *,
    space: str,
    idempotency_key: str | None,
    count_tokens: Callable[[str], int],
    window: int,
    indexed: int,
) -> IndexedRecord:
    """Compute all that search needs except vectors: chunks, terms, traits and words for the text index.

    Only the first `indexed` characters are indexed; the record keeps its whole content.
    """
    # Imported on first use: only what is stored has traits.
    from .traits import record_traits

    if memory.path is None and memory.source:
        memory = replace(memory, path=path_in(memory.source))
    beginning = memory.content[:indexed]
    spans, voices = _passages(beginning, count_tokens, window)
    heading = heading_of(memory)
    lists = [terms(memory.content[span.start : span.end]) for span in spans]
    if heading:
        lists[0] = [*terms(heading), *lists[0]]
    chunk_terms = tuple(encode_terms(words) for words in lists)
    traits = record_traits(beginning)
    return IndexedRecord(
        memory=memory,
        space=space,
        digest=digest(memory.content),
        idempotency_key=idempotency_key,
        words=index_entry(space, chunk_terms),
        length=sum(map(len, lists)),
        flags=int(traits.flags),
        author=term_hash(traits.author) if traits.author else 0,
        chunks=tuple(
            IndexedChunk(span.start, span.end, voice, blob, None)
            for span, voice, blob in zip(spans, voices, chunk_terms, strict=True)
        ),
        heading=heading,
    )


def _passages(
    content: str, count_tokens: Callable[[str], int], window: int
) -> tuple[tuple[Chunk, ...], tuple[bool, ...]]:
    """The chunks of a content, and which are an assistant's words. A dialogue of several chunks is split by turns."""
    whole = chunk(content, count_tokens=count_tokens, window=window)
    spoken = split_turns(content) if len(whole) > 1 else []
    if len(spoken) < 2:
        return tuple(whole), (False,) * len(whole)
    spans, voices = [], []
    for turn in spoken:
        for span in chunk(content[turn.start : turn.end], count_tokens=count_tokens, window=window):
            spans.append(Chunk(turn.start + span.start, turn.start + span.end))
            voices.append(turn.by_assistant)
    return tuple(spans), tuple(voices)


def path_in(source: str | None) -> str | None:
    """The file that a source names, without its line number; None if it names something else."""
    if not source or "://" in source:
        return None
    path = _LOCATION.sub("", source.strip())
    return path if _PATH_LIKE.match(path) else None


def embed_records(records: Sequence[IndexedRecord], backend: Backend) -> list[IndexedRecord]:
    """Give every chunk its vector, in one call to the model. Equal texts are embedded once."""
    texts = [embedded_text(one.memory.content, one.heading, c.first, c.past) for one in records for c in one.chunks]
    made = iter(embed_texts(texts, backend))
    return [replace(one, chunks=tuple([replace(c, vector=next(made)) for c in one.chunks])) for one in records]


def embed_texts(texts: Sequence[str], backend: Backend) -> list[bytes]:
    """The vectors of texts, as they are stored; equal texts are embedded once."""
    rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    vectors = backend.embed(list(rows))
    return [vectors[rows[text]].tobytes() for text in texts]


def embed_if_possible(records: Sequence[IndexedRecord], backend: Backend) -> list[IndexedRecord]:
    """Give every chunk its vector; while none can be computed the records stay without."""
    try:
        return embed_records(records, backend)
    except CANNOT_EMBED:
        return list(records)


def heading_of(memory: Memory) -> str:
    """What is embedded and indexed before the first chunk of a record: the place of a part of a file."""
    return " ".join(filter(None, (memory.path, memory.symbol))) if memory.kind == "file" else ""


def embedded_text(content: str, heading: str, first: int, past: int) -> str:
    """What the model is given for a chunk."""
    text = content[first:past]
    return f"{heading}\n{text}" if heading and first == 0 else text


def index_entry(space: str, chunk_terms: Sequence[bytes]) -> str:
    """The entry of the text index: the word of the space, and the word of each term once."""
    words = dict.fromkeys(word for blob in chunk_terms for word in index_words(blob).split())
    return " ".join((space_word(space), *words))


def entity_words(name: str) -> list[str]:
    """The index words of a name: a record that mentions the name contains all of them."""
    return [index_word(term_hash(term)) for term in dict.fromkeys(query_terms(name))]


def digest(content: str) -> bytes:
    """A digest that is equal for texts that differ only in case, spacing or Unicode form."""
    normal = _SPACES.sub(" ", unicodedata.normalize("NFKC", content)).strip().casefold()
    return blake2b(normal.encode(), digest_size=16).digest()
