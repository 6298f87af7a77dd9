"""Finds and removes personal data in text: the counterpart of `secrets` for what identifies a person.

`find_personal_data` returns the position and kind of each piece; `redact_personal_data` replaces it by
`[REDACTED:kind]`. Both are pure functions of the text and take linear time. Only certain findings count: a valid check
digit, an unmistakable form, or a word beside it that names it. Names of people come from the caller, with the tagger.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from ..secrets.secrets import Redaction, SensitiveSpan, cached_if_empty, mask
from .addresses import find_addresses, find_births
from .national_ids import ID_KINDS, find_cards, find_ibans, find_national_ids
from .network import find_emails, find_ips, find_macs, find_phones
from .numbers import HIDDEN, Span

__all__ = ["PERSONAL_KINDS", "NameFinder", "find_personal_data", "redact_personal_data"]

NameFinder = Callable[[str], Iterable[tuple[int, int]]]  # the places of people's names in a text, where they are sure

PERSONAL_KINDS = (
    "email",
    "iban",
    "payment-card",
    *ID_KINDS,
    "ip-address",
    "mac-address",
    "phone",
    "date-of-birth",
    "street-address",
    "person-name",
)

_MARKER = re.compile(r"\[REDACTED:[a-z0-9-]{1,40}\]")
_DIGIT = re.compile(r"\d")
# The surer rules come first; what one finds is hidden from the next. Each with the fewest digits of what it finds.
_RULES: tuple[tuple[int, Callable[[str], Iterable[Span]]], ...] = (
    (0, find_emails),
    (2, find_ibans),
    (12, find_cards),
    (2, find_national_ids),
    (1, find_macs),
    (1, find_ips),
    (6, find_phones),
    (1, find_births),
    (1, find_addresses),
)
_ROUNDS = 6
_SHORT = 1_000


def find_personal_data(text: str, names: NameFinder | None = None) -> tuple[SensitiveSpan, ...]:
    """Every piece of personal data in the text, in order and without overlap."""
    hidden = _MARKER.sub(lambda marker: HIDDEN * len(marker.group()), text) if "[REDACTED:" in text else text
    found: list[Span] = []
    for _ in range(_ROUNDS):  # what one finding hides can leave another in the open
        more = _scan(hidden) if len(hidden) > _SHORT else _scan_short(hidden)
        if not more:
            break
        hidden = _hide(hidden, more)
        found += more
    if names is not None:
        found += _free(((start, end, "person-name") for start, end in names(text)), hidden)
    return tuple(SensitiveSpan(kind, start, end) for start, end, kind in sorted(found))


def redact_personal_data(text: str, names: NameFinder | None = None) -> Redaction:
    """The text with each piece replaced by `[REDACTED:kind]`; without names, redacting the result finds nothing."""
    findings = find_personal_data(text, names)
    return Redaction(mask(text, findings), findings)


def _scan(text: str) -> tuple[Span, ...]:
    found: list[Span] = []
    digits = len(_DIGIT.findall(text))
    for fewest, rule in _RULES:
        spans = list(_free(rule(text), text)) if digits >= fewest else ()
        if spans:
            text = _hide(text, spans)
            found += spans
    return tuple(found)


# Tags and paths are repeated often, and a note is read again when its names are known.
_scan_short = cached_if_empty(2_048)(_scan)


def _free(spans: Iterable[Span], text: str) -> Iterator[Span]:
    """The spans that touch nothing hidden and none before them; of two that overlap, the one named first."""
    taken = bytearray(len(text))
    for start, end, kind in spans:
        if start < end and text.find(HIDDEN, start, end) < 0 and taken.find(1, start, end) < 0:
            taken[start:end] = b"\1" * (end - start)
            yield start, end, kind


def _hide(text: str, spans: Iterable[Span]) -> str:
    pieces: list[str] = []
    done = 0
    for start, end, _ in sorted(spans):
        pieces += (text[done:start], HIDDEN * (end - start))
        done = end
    pieces.append(text[done:])
    return "".join(pieces)
