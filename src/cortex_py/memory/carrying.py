"""Memories that come as documents, made ready for the store: with the index they carry, or with one made anew."""

from __future__ import annotations

from functools import cache
from hashlib import sha256

from ..embedding.backend import Backend
from ..store.database import Session
from ..store.document import Document
from ..store.document_index import index_tag, read_index
from ..store.document_memories import memory_of
from ..store.rows import Prepared
from ..store.store import Store
from .capture import Capture
from .model import check_model, set_spaces_without_vectors, spaces_without_vectors
from .prepare import index_entry
from .terms import encode_terms, terms

__all__ = ["Carried", "tag_of"]

_VECTOR_NUMBER_BYTES = 4
# Words of every kind that are cut differently: what another way of cutting makes of them differs.
_PROBE = "parseHTTPResponse2 snake_case_name v1.2.3 naïve Straße 数据库迁移 データ deploying ran /usr/lib x86-64 don't"


def tag_of(backend: Backend) -> bytes:
    """Marks what this model, and this way of cutting text into terms, make of a text."""
    return _tag(backend.fingerprint)


@cache
def _tag(model: str) -> bytes:
    return index_tag(model, sha256(encode_terms(terms(_PROBE))).hexdigest())


class Carried:
    """Makes documents of memories ready for one space."""

    def __init__(self, store: Store, capture: Capture, backend: Backend, space: str) -> None:
        self._store = store
        self._backend = backend
        self._missing = False
        self._capture = capture
        self._vector_bytes = backend.dimensions * _VECTOR_NUMBER_BYTES
        self._space = space

    def prepared(self, document: Document) -> Prepared:
        """Without vectors where those that came are of another model: `written` sees to it that they are made."""
        memory = memory_of(document)
        key = document.data["idempotency_key"]
        tag = tag_of(self._backend)
        index = read_index(document.vectors, tag, content=memory.content, vector_bytes=self._vector_bytes)
        if index is None:
            self._missing = True
            return self._capture.redraft(memory, self._space, key)
        return Prepared(
            memory=memory,
            space=self._space,
            digest=index.digest,
            idempotency_key=key,
            words=index_entry(self._space, [one.terms for one in index.chunks]),
            length=index.length,
            flags=index.flags,
            author=index.author,
            chunks=index.chunks,
        )

    def written(self, session: Session) -> None:
        """After records were stored, in the same transaction: whose vectors they are, and that some are to be made."""
        check_model(self._store, session, self._backend, claim=True)
        if self._missing:
            waiting = spaces_without_vectors(self._store, session)
            set_spaces_without_vectors(self._store, session, [*waiting, self._space])
