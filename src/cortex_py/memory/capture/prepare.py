"""From what a caller gives to what the store takes: checked, cleaned of secrets, cut, and measured.

Nothing here writes. Vectors are added last, for many records at once, because that is where the
time goes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b

from ..config import SecretPolicy
from ..embedding.backend import Backend
from ..errors import ContentBlocked, ContentTooLarge, InvalidInput
from ..records import STATUSES, Memory
from ..security.policy import screen
from ..security.secrets import redact
from ..store.rows import Prepared, PreparedChunk
from .chunking import Chunk, chunk
from .dialogue import turns
from .terms import encode_terms, index_word, index_words, query_terms, term_hash, terms
from .traits import record_traits

__all__ = [
    "check_fields",
    "check_no_secret",
    "check_text",
    "clean_tags",
    "draft",
    "embed_drafts",
    "entity_words",
    "index_entry",
    "space_word",
    "without_secrets",
]

_TAGS_MOST = 64
_TAG_LENGTH = 128
_FIELD_LENGTH = 2_000
_SUMMARY_LENGTH = 100_000
_NOT_TEXT = re.compile("[\ud800-\udfff]")
_SPACES = re.compile(r"\s+")
_LOCATION = re.compile(r":\d+(?:[-:]\d+)?\Z")
_PATH_LIKE = re.compile(r"[^\s:]*[\w)\]](?:/[^\s:]+|\.[A-Za-z][\w+]{0,9})\Z")


def check_text(text: str, field: str, most_bytes: int) -> str:
    """Refuse what cannot be kept faithfully."""
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
    """Refuse a name or the like that holds a secret: it could not be redacted and still mean the same."""
    kinds = tuple(dict.fromkeys(finding.kind for finding in redact(text).findings))
    if kinds:
        raise ContentBlocked(
            f"The {field} holds what looks like a secret ({', '.join(kinds)}).",
            kinds=kinds,
            remedy="Remove it and repeat; nothing was stored.",
            field=field,
        )
    return text


def clean_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Tags trimmed, without empty ones, each once whatever its case, in the order given."""
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
        raise InvalidInput(f"There are more than {_TAGS_MOST} tags.", remedy="Keep the telling ones.", field="tags")
    return tuple(kept.values())


def check_fields(memory: Memory) -> None:
    """Refuse a status that does not exist, and fields that are empty, too long or no text."""
    if memory.status not in STATUSES:
        raise InvalidInput(
            f"Unknown status {memory.status!r}.", remedy=f"Choose one of {', '.join(STATUSES)}.", field="status"
        )
    for field in ("source", "path", "summary", "category", "role", "user_id", "agent_id", "git_branch"):
        text = getattr(memory, field)
        if text is not None:
            check_text(text, field, _SUMMARY_LENGTH if field == "summary" else _FIELD_LENGTH)


def without_secrets(memory: Memory, policy: SecretPolicy) -> Memory:
    """Apply the policy to every field that holds free text."""
    optional = (memory.summary, memory.source, memory.path)
    cleaned, kinds = screen([memory.content, *(text or "" for text in optional), *memory.tags], policy)
    if not kinds:
        return memory
    content, *others = cleaned
    summary, source, path = (text or None for text in others[:3])
    tags = tuple(others[3:])
    return replace(memory, content=content, summary=summary, source=source, path=path, tags=tags, redactions=kinds)


def draft(
    memory: Memory, *, space: str, idempotency_key: str | None, count_tokens: Callable[[str], int], window: int
) -> Prepared:
    """A record with all that search needs but its vectors: chunks, terms, traits, words for the text index."""
    if memory.path is None and memory.source:
        memory = replace(memory, path=path_in(memory.source))
    spans, voices = _passages(memory.content, count_tokens, window)
    heading = " ".join(filter(None, (memory.path, memory.symbol))) if memory.kind == "file" else ""
    lists = [terms(memory.content[span.start : span.end]) for span in spans]
    if heading:
        lists[0] = [*terms(heading), *lists[0]]
    chunk_terms = tuple(encode_terms(words) for words in lists)
    traits = record_traits(memory.content)
    return Prepared(
        memory=memory,
        space=space,
        digest=digest(memory.content),
        idempotency_key=idempotency_key,
        words=index_entry(space, chunk_terms),
        length=sum(map(len, lists)),
        flags=int(traits.flags),
        author=term_hash(traits.author) if traits.author else 0,
        chunks=tuple(
            PreparedChunk(span.start, span.end, voice, blob, None)
            for span, voice, blob in zip(spans, voices, chunk_terms, strict=True)
        ),
        heading=heading,
    )


def _passages(
    content: str, count_tokens: Callable[[str], int], window: int
) -> tuple[tuple[Chunk, ...], tuple[bool, ...]]:
    """Chunks of a content, and which are an assistant's words; a dialogue too long for one is cut by turns."""
    whole = chunk(content, count_tokens=count_tokens, window=window)
    spoken = turns(content) if len(whole) > 1 else []
    if len(spoken) < 2:
        return tuple(whole), (False,) * len(whole)
    spans, voices = [], []
    for turn in spoken:
        for span in chunk(content[turn.start : turn.end], count_tokens=count_tokens, window=window):
            spans.append(Chunk(turn.start + span.start, turn.start + span.end))
            voices.append(turn.by_assistant)
    return tuple(spans), tuple(voices)


def path_in(source: str | None) -> str | None:
    """The file that a source names, without a line number; None when it names something else."""
    if not source or "://" in source:
        return None
    path = _LOCATION.sub("", source.strip())
    return path if _PATH_LIKE.match(path) else None


def embed_drafts(drafts: Sequence[Prepared], backend: Backend) -> list[Prepared]:
    """Give every chunk of every draft its vector, in one call to the model."""
    vectors = backend.embed([_embedded(one, c) for one in drafts for c in one.chunks])
    made = iter(vectors)
    return [replace(one, chunks=tuple([replace(c, vector=next(made).tobytes()) for c in one.chunks])) for one in drafts]


def _embedded(draft: Prepared, part: PreparedChunk) -> str:
    text = draft.memory.content[part.first : part.past]
    return f"{draft.heading}\n{text}" if draft.heading and part.first == 0 else text


def index_entry(space: str, chunk_terms: Sequence[bytes]) -> str:
    """What the text index is given: the space's word, and each term's word once."""
    words = dict.fromkeys(word for blob in chunk_terms for word in index_words(blob).split())
    return " ".join((space_word(space), *words))


def entity_words(name: str) -> list[str]:
    """The text index's words for a name: a record mentions it when it holds them all."""
    return [index_word(term_hash(term)) for term in dict.fromkeys(query_terms(name))]


def digest(content: str) -> bytes:
    """Equal for texts that differ only in case, spacing or Unicode form."""
    normal = _SPACES.sub(" ", unicodedata.normalize("NFKC", content)).strip().casefold()
    return blake2b(normal.encode(), digest_size=16).digest()


def space_word(space: str) -> str:
    """The word that stands for a space in the text index: a letter longer than any term's."""
    return "s" + index_word(term_hash(space))
