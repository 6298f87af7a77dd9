"""Embeddings from an OpenAI-compatible endpoint.

This is the only backend that uses the network, and only if the user sets its address. Nothing is sent before something
is embedded. The API key goes into one header and never into messages or representations.
"""

from __future__ import annotations

import base64
import re
import threading
import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from ...clock import check_deadline, current_limit
from ...errors import EmbeddingError, EmbeddingUnavailable
from ...remote import Endpoint, RemoteProblem, RetryPolicy, check_key, read_address, retry
from .model_folder import drop_surrogates
from .token_batches import normalize_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["OpenAIBackend"]

# Endpoints do not say how far they read. All known ones read this far; longer texts are cut here, so that
# what is said about truncation is true.
_MAX_TOKENS = 512
# An estimate: letters by five, digits by two, letters of other alphabets by two, all else by one. In prose and
# code that is 1.0 to 1.6 times what the tokenisers of BERT and of OpenAI count; foreign words may be more.
_TOKEN = re.compile(r"[A-Za-z]{1,5}|[0-9]{1,2}|[\u00c0-\u07ff]{1,2}|\S")
_MARKS = 2

# Servers differ in how many texts they take; the strictest in use take 32.
_TEXTS_PER_REQUEST = 32
# No further attempt is begun after this long.
_PATIENCE_SECONDS = 90.0
# The longest silence, and the longest for a whole answer.
_SILENCE_SECONDS = 60.0
_ANSWER_SECONDS = 120.0


class OpenAIBackend:
    """Asks `{url}/embeddings`. Safe to share between threads."""

    name = "openai"

    def __init__(
        self,
        url: str,
        model: str,
        *,
        api_key: str | None = None,
        dimensions: int = 0,
        max_tokens: int = _MAX_TOKENS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`dimensions` of 0 takes the vectors as they come; a memory's own model must know it beforehand."""
        address = read_address(url, "/embeddings", setting="embedding_url", key_setting="embedding_api_key")
        key = check_key(api_key, setting="embedding_api_key") if api_key else None
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._endpoint = Endpoint(address, key=key, headers=headers)
        self._address, self._host = address.url, address.host
        self.model_name = model
        self.max_tokens = max_tokens
        self._wanted = dimensions
        self._width = dimensions
        # Many servers refuse to be asked for a length, so that is done only where theirs is not the wanted one.
        self._shorten = False
        self._sleep = sleep
        self._lock = threading.Lock()
        self._loaded = False

    def __repr__(self) -> str:
        return f"OpenAIBackend({self._host!r}, {self.model_name!r})"

    @property
    def dimensions(self) -> int:
        """As configured, or else learned from the first answer; 0 before."""
        return self._width

    @property
    def fingerprint(self) -> str:
        return f"{self.name}:{self._host}:{self.model_name}:{self._wanted}"

    @property
    def loaded(self) -> bool:
        """Whether the endpoint has answered."""
        return self._loaded

    def count_tokens(self, text: str) -> int:
        """An estimate: only the endpoint knows its tokeniser."""
        return _MARKS + sum(1 for _ in _TOKEN.finditer(text))

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        import numpy as np

        parts = [
            self._ask([self._cut(text) for text in texts[first : first + _TEXTS_PER_REQUEST]])
            for first in range(0, len(texts), _TEXTS_PER_REQUEST)
        ]
        vectors = np.concatenate(parts) if parts else np.empty((0, self._width), np.float32)
        return normalize_rows(vectors) if normalize else vectors

    def close(self) -> None:
        """Let go of the connections; the next use opens new ones."""
        self._endpoint.close()

    def _cut(self, text: str) -> str:
        """What the endpoint is to read. It refuses an empty text, which reads the same as a space."""
        last = next(islice(_TOKEN.finditer(text), self.max_tokens - _MARKS, None), None)
        return drop_surrogates(text[: last.start()] if last else text) or " "

    def _ask(self, texts: Sequence[str]) -> NDArray[np.float32]:
        found = self._vectors(self._answer(texts, shorten=self._shorten), len(texts))
        if self._wanted and found.shape[1] != self._wanted and not self._shorten:
            found = self._shortened(texts, found.shape[1])
        with self._lock:
            self._width = self._width or found.shape[1]
            if found.shape[1] != self._width:
                raise self._of_another_length(found.shape[1])
            self._loaded = True
        return found

    def _shortened(self, texts: Sequence[str], usual: int) -> NDArray[np.float32]:
        """Vectors of the wanted length from an endpoint that gives others unless it is asked."""
        try:
            found = self._vectors(self._answer(texts, shorten=True), len(texts))
        except EmbeddingError as error:
            raise self._of_another_length(usual) from error
        if found.shape[1] != self._wanted:
            raise self._of_another_length(usual)
        self._shorten = True
        return found

    def _of_another_length(self, found: int) -> EmbeddingError:
        return EmbeddingError(
            f"{self._host} gave vectors of {found} numbers where {self._width} were expected.",
            remedy=f"Set embedding_dimensions to {found}, or name another model.",
        )

    def _answer(self, texts: Sequence[str], *, shorten: bool) -> Any:
        """The decoded answer of the endpoint, after as many attempts as make sense."""
        question: dict[str, object] = {"model": self.model_name, "input": list(texts)}
        if shorten:
            question["dimensions"] = self._wanted
        check_deadline()
        limit = current_limit()
        left = max(0.001, limit.left) if limit else _ANSWER_SECONDS
        total = min(_ANSWER_SECONDS, left)
        patience = RetryPolicy(seconds=min(_PATIENCE_SECONDS, left), sleep=self._sleep)
        try:
            return retry(lambda: self._endpoint.post(question, silence=_SILENCE_SECONDS, total=total), patience)
        except RemoteProblem as problem:
            failure = EmbeddingUnavailable if problem.retryable else EmbeddingError
            raise failure(problem.message, remedy=_remedy(problem)) from problem

    def _vectors(self, answer: Any, count: int) -> NDArray[np.float32]:
        """The vectors in the order of the texts, whatever the order of the answer."""
        import numpy as np

        try:
            rows = {entry["index"]: _numbers(entry["embedding"]) for entry in answer["data"]}
            found = np.stack([rows[number] for number in range(count)]).astype(np.float32)
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise self._unusable("one vector for each text was expected") from error
        if len(answer["data"]) != count or found.ndim != 2 or not found.size:
            raise self._unusable("one vector for each text was expected")
        if not np.isfinite(found).all():
            raise self._unusable("a vector holds something that is no number")
        return found

    def _unusable(self, why: str) -> EmbeddingError:
        return EmbeddingError(
            f"{self._host} gave no usable answer: {why}.", remedy="Check embedding_url and the model."
        )


def _numbers(value: object) -> NDArray[np.float32]:
    """A vector as a list of numbers, or as the bytes of one in base64."""
    import numpy as np

    if isinstance(value, str):
        return np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4")
    if not isinstance(value, list) or not all(type(number) in (int, float) for number in value):
        raise TypeError("no vector")
    with np.errstate(over="ignore"):
        # Too large for a float: infinite, and refused as such.
        return np.asarray(value, np.float32)


def _remedy(problem: RemoteProblem) -> str:
    status = problem.status
    if problem.retryable:
        return problem.when
    if status is None:
        return "Check embedding_url."
    if status in (401, 403):
        return "Check embedding_api_key."
    if status in (404, 405) or 300 <= status < 400:
        return "Check embedding_url and embedding_model."
    return "Check embedding_model, or give shorter texts."
