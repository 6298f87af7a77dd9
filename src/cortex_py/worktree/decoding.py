"""Bytes as text, or the finding that they are none.

UTF-8 and the two UTF-16 forms with a byte-order mark are read exactly; anything else must look like
Western text in one byte per character, because a wrong guess would be stored and searched as nonsense.
"""

from __future__ import annotations

import codecs
import re

__all__ = ["decode"]

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_HIGH = re.compile(rb"[\x80-\xff]+")
# Other scripts in one or two bytes, such as Cyrillic or Chinese, write whole words above ASCII.
_LONGEST_RUN = 2
_MOSTLY_SHORT = 0.7


def decode(data: bytes) -> str | None:
    """The text without its byte-order mark; None for data that is not text."""
    if data.startswith(_UTF_32):
        return None
    if data.startswith(_UTF_16):
        return _exact(data, "utf-16")
    if b"\0" in data:
        return None
    text = _exact(data, "utf-8-sig")
    return _western(data) if text is None else text


def _exact(data: bytes, encoding: str) -> str | None:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _western(data: bytes) -> str | None:
    """Text of one byte per character, where accented letters and quotation marks stand among ASCII."""
    if _CONTROL.search(data):
        return None
    runs = [len(run) for run in _HIGH.findall(data)]
    if sum(run for run in runs if run <= _LONGEST_RUN) < _MOSTLY_SHORT * sum(runs):
        return None
    # Latin-1 with the marks of Windows in its unused rows; five places are free in both.
    return _exact(data, "cp1252") or data.decode("latin-1")
