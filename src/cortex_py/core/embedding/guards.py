"""The texts that the embedding service accepts, checked in a fixed order before anything is computed.

First the type, then the length, then the security profile; for many texts, each check runs over all of them before the
next. The profile `code` refuses only what could harm the service itself; `strict` also refuses what the published
profile lists, which ordinary code and prose contain.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import get_args

from ..config import Profile
from ..errors import ConfigurationError, ContentBlocked, ContentTooLarge, InvalidInput, RateLimited

__all__ = ["PROFILES", "Guard", "SlidingWindow"]

PROFILES: tuple[Profile, ...] = get_args(Profile)

_NULL = re.compile("\x00")
_STRICT: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a null byte", _NULL),
    ("a control character", re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")),
    # Each blank matches in one way only: two adjacent runs of blanks would take quadratic time.
    ("a script tag", re.compile(r"<\s*(?:/\s*)?script\b", re.IGNORECASE)),
    ("a file:// address", re.compile(r"\bfile://", re.IGNORECASE)),
    ("a path that climbs out of its folder", re.compile(r"\.\.[/\\]")),
)
_CODE: tuple[tuple[str, re.Pattern[str]], ...] = (("a null byte", _NULL),)


@dataclass(frozen=True, slots=True)
class Guard:
    """The rules of one service."""

    max_length: int
    max_texts: int
    profile: Profile = "code"

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise ConfigurationError(
                f"Unknown security profile {self.profile!r}.",
                remedy=f"Choose one of {', '.join(PROFILES)}.",
                field="security_profile",
            )

    def check(self, text: object) -> str:
        """The text, if it may be embedded."""
        return self._checked([("text", text)])[0]

    def check_many(self, texts: object) -> list[str]:
        """All texts, if every one may be embedded."""
        if not isinstance(texts, list | tuple):
            raise InvalidInput("texts is not a list of texts.", remedy="Give a list of strings.", field="texts")
        if not texts:
            raise InvalidInput("texts is empty.", remedy="Give at least one text.", field="texts")
        if len(texts) > self.max_texts:
            raise InvalidInput(
                f"texts holds {len(texts)} texts; at most {self.max_texts} are taken at a time.",
                remedy="Send them in several requests.",
                field="texts",
            )
        return self._checked([(f"texts[{number}]", text) for number, text in enumerate(texts)])

    def _checked(self, given: Sequence[tuple[str, object]]) -> list[str]:
        texts = [_as_text(field, text) for field, text in given]
        fields = [field for field, _ in given]
        for field, text in zip(fields, texts, strict=True):
            self._check_length(field, text)
        for field, text in zip(fields, texts, strict=True):
            self._check_profile(field, text)
        return texts

    def _check_length(self, field: str, text: str) -> None:
        if len(text) > self.max_length:
            raise ContentTooLarge(
                f"{field} has {len(text)} characters; at most {self.max_length} are taken.",
                remedy="Cut it into parts and embed each.",
                field=field,
            )

    def _check_profile(self, field: str, text: str) -> None:
        for what, pattern in _STRICT if self.profile == "strict" else _CODE:
            if pattern.search(text):
                raise ContentBlocked(
                    f"{field} holds {what}, which the profile {self.profile!r} refuses.",
                    kinds=(what,),
                    remedy="Remove it" + (", or use the profile 'code'." if self.profile == "strict" else "."),
                    field=field,
                )


def _as_text(field: str, text: object) -> str:
    if not isinstance(text, str):
        raise InvalidInput(f"{field} is not a text.", remedy="Give a string.", field=field)
    if not text.strip():
        raise InvalidInput(f"{field} is empty.", remedy="Give some text.", field=field)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput(
            f"{field} holds half of a surrogate pair.", remedy="Give valid Unicode text.", field=field
        ) from None
    return text


# -- The rate limit ----------------------------------------------------------------------------------

# The callers remembered; the least recent are dropped first, which only favours them.
_MOST_CALLERS = 10_000


class SlidingWindow:
    """At most `limit` requests of each caller in any `seconds`; 0: no limit.

    Unlike the bucket of `security.rate_limit` it allows no more than the limit in any minute, as reported.
    """

    def __init__(
        self,
        limit: int,
        seconds: float = 60.0,
        now: Callable[[], float] = time.monotonic,
        *,
        most_callers: int = _MOST_CALLERS,
    ) -> None:
        self.limit = limit
        self._most_callers = most_callers
        self._seconds = seconds
        self._now = now
        self._asked: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, caller: str) -> None:
        """Count one request, or raise `RateLimited` with the seconds to wait; a refused one is not counted."""
        if self.limit <= 0:
            return
        with self._lock:
            now = self._now()
            asked = self._asked.setdefault(caller, deque())
            self._asked.move_to_end(caller)
            while asked and asked[0] <= now - self._seconds:
                asked.popleft()
            if len(asked) >= self.limit:
                raise _refused(self.limit, self._seconds, asked[0] + self._seconds - now)
            asked.append(now)
            while len(self._asked) > self._most_callers:
                self._asked.popitem(last=False)


def _refused(limit: int, seconds: float, wait: float) -> RateLimited:
    return RateLimited(
        f"More than {limit} requests in {seconds:.0f} s.",
        remedy=f"Wait {math.ceil(wait)} s, or raise the rate limit.",
        retry_after=max(wait, 0.0),
    )
