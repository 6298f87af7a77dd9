"""Embeddings from an endpoint that speaks OpenAI's interface: OpenAI, or any server that does as it does.

The one backend that uses the network, so it is used only where the user set its address. Nothing is asked
before something is embedded. The key goes into one header and nowhere else: no message, no representation.
"""

from __future__ import annotations

import base64
import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..errors import ConfigurationError, EmbeddingError
from .model_folder import encodable
from .token_batches import normalized

if TYPE_CHECKING:
    import httpx2
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
_ATTEMPTS = 4
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
# No further attempt is begun after this long.
_PATIENCE_SECONDS = 90.0
_CONNECT_SECONDS, _ANSWER_SECONDS = 10.0, 60.0
_PASSING = frozenset({408, 429, 500, 502, 503, 504, 529})
_REASON_LENGTH = 300


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
        self._address, self._host = _address(url)
        self._headers = {"Authorization": f"Bearer {_checked(api_key)}"} if api_key else {}
        self._key = api_key
        self.model_name = model
        self.max_tokens = max_tokens
        self._wanted = dimensions
        self._width = dimensions
        # Many servers refuse to be asked for a length, so that is done only where theirs is not the wanted one.
        self._shorten = False
        self._sleep = sleep
        self._lock = threading.Lock()
        self._client: httpx2.Client | None = None
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
        return normalized(vectors) if normalize else vectors

    def close(self) -> None:
        """Let go of the connections; the next use opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _cut(self, text: str) -> str:
        """What the endpoint is to read. It refuses an empty text, which reads the same as a space."""
        last = next(islice(_TOKEN.finditer(text), self.max_tokens - _MARKS, None), None)
        return encodable(text[: last.start()] if last else text) or " "

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
        import httpx2

        question: dict[str, object] = {"model": self.model_name, "input": list(texts)}
        if shorten:
            question["dimensions"] = self._wanted
        pause = _FIRST_PAUSE
        last_start = time.monotonic() + _PATIENCE_SECONDS
        for attempt in range(1, _ATTEMPTS + 1):
            asked = None
            try:
                response = self._connected().post(self._address, json=question, headers=self._headers)
            except httpx2.RequestError as error:
                problem = f"{self._host} does not answer: {type(error).__name__}: {self._told(str(error))}"
            else:
                if response.status_code == 200:
                    return self._decoded(response)
                problem = f"{self._host} answered {response.status_code}: {self._reason(response)}"
                if response.status_code not in _PASSING:
                    raise EmbeddingError(problem, remedy=_remedy(response.status_code))
                asked = _retry_after(response.headers.get("retry-after"))
            # Apart by chance, so that those who were refused together do not come back together.
            wait = pause * random.uniform(0.75, 1.25) if asked is None else asked
            if attempt == _ATTEMPTS or wait > _LONGEST_PAUSE or time.monotonic() + wait > last_start:
                break
            self._sleep(wait)
            pause *= 2
        raise EmbeddingError(problem, remedy=f"Try again {f'in {asked:.0f} seconds' if asked else 'later'}.")

    def _connected(self) -> httpx2.Client:
        import httpx2

        with self._lock:
            if self._client is None:
                # Redirects are not followed: they would carry the key elsewhere.
                self._client = httpx2.Client(
                    timeout=httpx2.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS), follow_redirects=False
                )
            return self._client

    def _decoded(self, response: httpx2.Response) -> Any:
        try:
            return response.json()
        except ValueError as error:
            raise EmbeddingError(
                f"{self._host} gave an answer that is not JSON.", remedy="Check embedding_url."
            ) from error

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

    def _reason(self, response: httpx2.Response) -> str:
        """What the endpoint says went wrong, in whichever of the usual places it says so."""
        try:
            said = response.json()
        except ValueError:
            said = response.text
        if isinstance(said, dict):
            said = said.get("error", said)
        if isinstance(said, dict):
            said = said.get("message") or said.get("detail") or said
        return self._told(str(said))

    def _told(self, text: str) -> str:
        """Foreign words on one line, and without the key, which some servers repeat."""
        clean = " ".join(text.split())
        if self._key:
            clean = clean.replace(self._key, "[key]")
        return clean[:_REASON_LENGTH] or "nothing"


def _address(url: str) -> tuple[str, str]:
    """Where to ask, and the host by which the endpoint is named."""
    try:
        parts = urlsplit(url.strip())
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        parts, port = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise ConfigurationError(
            "embedding_url is not the address of an endpoint.",
            remedy="Give it as https://HOST/v1, and a key as embedding_api_key.",
            field="embedding_url",
        )
    path = parts.path.rstrip("/")
    path = path if path.endswith("/embeddings") else f"{path}/embeddings"
    return parts._replace(path=path, fragment="").geturl(), f"{parts.hostname}{port}"


def _checked(key: str) -> str:
    if not key.isascii() or not key.isprintable() or " " in key:
        # Said here, because the error of whoever writes the header would show it.
        raise ConfigurationError(
            "embedding_api_key holds characters that no key has.",
            remedy="Give it without spaces and line breaks.",
            field="embedding_api_key",
        )
    return key


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


def _retry_after(value: str | None) -> float | None:
    """Seconds to wait, given as such or as a date; none where it is neither."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _remedy(status: int) -> str:
    if status in (401, 403):
        return "Check embedding_api_key."
    if status in (404, 405) or 300 <= status < 400:
        return "Check embedding_url and embedding_model."
    return "Check embedding_model, or give shorter texts."
