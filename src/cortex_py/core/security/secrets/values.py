"""Whether a string is a real secret or a placeholder, a reference to a secret, or ordinary words.

Nothing here knows where the string was found.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections import Counter
from itertools import pairwise
from math import log2
from pathlib import Path
from typing import Any

from ...lazy import regex

__all__ = [
    "WORDS", "Span", "choice", "entropy", "is_basic_credentials", "is_digest", "is_filler_token", "is_jwt_header",
    "is_one_case", "is_placeholder", "is_random", "is_reference", "is_wordy", "looks_like_password",
    "looks_like_token", "word_list",
]  # fmt: skip

Span = tuple[int, int, str]
"""Where a secret is, from and to, and of what kind."""

WORDS: dict[str, Any] = json.loads(Path(__file__).with_name("words.json").read_text("utf-8"))


def word_list(name: str) -> tuple[str, ...]:
    """A list of words from `words.json`."""
    return tuple(" ".join(WORDS[name]).split())


def choice(name: str) -> str:
    """An expression for any one of a list in `words.json`."""
    return "|".join(WORDS[name])


# Words that people write where a secret goes. Matched against letters only, so `your-api_key` counts.
_STAND_IN = regex(choice("stand_ins"))
# Whole values that stand for "a value" rather than being one.
_VOCABULARY = frozenset(word_list("placeholder_values"))
_REPEATED = regex(r"(.)\1{7,}|[xX]{5,}|\*{3,}|\.{3,}|#{4,}|_{5,}|-{4,}|…|•{3}|[?]{3,}")
# In a token of a known format: words that no writer of a real one leaves in, and words that a real one may contain.
_STAND_IN_TOKEN = regex(choice("stand_ins_in_tokens"))
_FILLING_WORD = regex(rf"(?i:{choice('filling_words')})(?![a-z])")
_LEAST_OWN = 8
_LONG_BODY = 60  # long random text repeats a character now and then
_PERIODIC = regex(r"(.{1,8}?)\1{2,}")
_NON_LETTERS = regex(r"[^a-z]+")

# A value that names where the secret is: a variable, a template, a path, an address, a pattern.
_REFERENCE = regex(choice("references"), re.DOTALL)
# What only an unquoted value can be: code, a reference in YAML, a symbol.
_CODE = regex(choice("code"), re.DOTALL)
_HEX = regex(r"[0-9a-f]+|[0-9A-F]+")
_UUID = regex(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_CHANGES = regex(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[0-9])(?=[A-Za-z])|(?<=[A-Z])(?=[0-9])|(?<=[A-Z][A-Z])(?=[a-z])")
_JUDGED_BY_PAIRS = 12  # letters
_READABLE = 0.33
# The pairs of letters that make up most of English words and of identifiers made of them.
_PAIRS = frozenset(word_list("common_letter_pairs"))
_CONSONANTS = regex(r"[bcdfghjklmnpqrstvwxz]{6}")
_VOWELS = regex(r"[aeiouy]")
_NOUN = regex(r"key|token|secret|passw|credential", re.IGNORECASE)
_LETTER = regex(r"[^\W\d_]")
_DIGIT = regex(r"\d")
_MARK = regex(r"[!@#$%^&*+=?~|\\{}\[\]()<>;,]")
_CHOICE = regex(r"[a-z]+(?:\|[a-z]+)+")
_BASE64 = regex(r"[A-Za-z0-9+/_-]+={0,2}")


def is_placeholder(value: str) -> bool:
    """True for text that fills the place of a secret: stand-in words, repeated or counted-up characters."""
    different = len(set(value))
    if different <= 3 and len(value) >= 6:
        return True
    if len(value) - different >= 2 and _REPEATED.search(value):
        return True
    lowered = value.lower()
    if lowered in _VOCABULARY or _PERIODIC.fullmatch(value):
        return True
    return _STAND_IN.search(_NON_LETTERS.sub("", lowered)) is not None


def is_filler_token(body: str) -> bool:
    """True for a token of a known format whose body is only an illustration.

    A real token may contain a word such as `token`; a filler has hardly anything else.
    """
    if _STAND_IN_TOKEN.search(body) or is_sequence(body):
        return True
    own = _REPEATED.sub("", body)
    if len(own) < len(body) / 2 or (own != body and len(body) < _LONG_BODY):
        return True
    plain = body.replace("-", "").replace("_", "")
    if len(set(plain)) < 6 or (is_one_case(plain) and _is_readable(plain.lower())):
        return True
    words = _FILLING_WORD.sub("", own)
    return words != own and sum(map(str.isalnum, words)) < _LEAST_OWN


def is_one_case(value: str) -> bool:
    """True for letters only, all large or all small."""
    return value.isalpha() and (value.islower() or value.isupper())


def is_sequence(value: str) -> bool:
    """True for characters that mostly count up or down, or stay the same, such as `abcdef1234567890`."""
    if len(value) < 6:
        return False
    steps = sum(-1 <= ord(after) - ord(before) <= 1 for before, after in pairwise(value))
    return steps >= 0.7 * (len(value) - 1)


def entropy(value: str) -> float:
    """Shannon's entropy of the characters, in bits a character."""
    size = len(value)
    return -sum(count / size * log2(count / size) for count in Counter(value).values()) if size else 0.0


def is_reference(value: str, *, quoted: bool) -> bool:
    """True for text that names where a secret is kept, or for code that computes one."""
    if _REFERENCE.fullmatch(value):
        return True
    if value.count("\\x") >= 2:
        return True
    if value.startswith("{") and value.endswith("}"):
        return is_wordy(value[1:-1])
    return not quoted and _CODE.fullmatch(value) is not None


def is_digest(value: str) -> bool:
    """True for hexadecimal digits only and for UUIDs: secrets only where a name says so."""
    return _HEX.fullmatch(value) is not None or _UUID.fullmatch(value) is not None


def _change_rate(value: str) -> float:
    """How often the kind of character changes; words change seldom, random text at every second place."""
    return len(_CHANGES.findall(value)) / len(value)


def is_wordy(value: str) -> bool:
    """True for identifiers and words, with or without a number behind them."""
    letters = sum(map(str.isalpha, value))
    if letters < 3:
        return True
    digits = sum(map(str.isdigit, value))
    lowered = value.lower()
    if letters >= _JUDGED_BY_PAIRS and not _is_readable(lowered):
        return False
    if digits == 0:
        if value != lowered and not value.isupper():
            return len(value) < 16 or _change_rate(value) < 0.35
        return not _CONSONANTS.search(lowered) and len(_VOWELS.findall(lowered)) >= 0.12 * letters
    if len(value) >= 32 and is_digest(value):
        return False
    one_case = value == lowered or value.isupper()
    return _change_rate(value) < (0.2 if one_case else 0.25)


def _is_readable(lowered: str) -> bool:
    """True when pairs of letters are those of words; of random letters, one pair in six is common."""
    pairs = [first + second for first, second in pairwise(lowered) if first.isalpha() and second.isalpha()]
    return not pairs or sum(pair in _PAIRS for pair in pairs) >= _READABLE * len(pairs)


def is_random(value: str, *, least: int = 16) -> bool:
    """True for a long run of letters and digits in no readable order."""
    if len(value) < least or len(set(value)) < 8:
        return False
    if not any(map(str.isdigit, value)) and len(value) < 24:
        return False
    return not is_wordy(value)


def looks_like_token(value: str, *, quoted: bool, least: int = 8) -> bool:
    """A value of a token, key or secret: mixed and not made of words."""
    if len(value) < least or " " in value or is_reference(value, quoted=quoted):
        return False
    filler = is_filler_token(value) if len(value) >= 20 else is_placeholder(value)
    if filler or is_sequence(value) or is_wordy(value):
        return False
    if _NOUN.search(value) and _change_rate(value) < 0.35:
        return False
    return any(map(str.isalpha, value))


def looks_like_password(value: str, *, quoted: bool) -> bool:
    """A value of a password: people choose these, so words with a digit or a mark count too."""
    if len(value) < 5 or " " in value or is_reference(value, quoted=quoted):
        return False
    if is_placeholder(value) or is_sequence(value) or _CHOICE.fullmatch(value):
        return False
    letter, digit, mark = _LETTER.search(value), _DIGIT.search(value), _MARK.search(value)
    if not letter:
        return digit is not None and len(value) >= 6 and (quoted or mark is not None)
    if digit or mark:
        joined = not mark and ("_" in value or "." in value or "-" in value or "/" in value)
        return len(value) >= 6 and not (joined and is_wordy(value))
    return quoted and len(value) >= 12 and value.isalpha() and value.islower() and not _NOUN.search(value)


def is_basic_credentials(value: str) -> bool:
    """True when the text is base64 of `user:password`."""
    if not _BASE64.fullmatch(value):
        return False
    plain = _decode(value)
    return plain is not None and b":" in plain and is_mostly_printable(plain)


def is_jwt_header(segment: str) -> bool:
    """True when the text is base64 of a JSON object that names an algorithm."""
    plain = _decode(segment)
    if plain is None:
        return False
    return plain.startswith(b"{") and plain.rstrip().endswith(b"}") and b'"alg"' in plain


def is_mostly_printable(plain: bytes) -> bool:
    return sum(32 <= byte < 127 for byte in plain) >= 0.8 * len(plain)


def _decode(value: str) -> bytes | None:
    """The bytes behind base64 in either alphabet, padded or not; None when it is not base64."""
    stripped = value.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(stripped + "=" * (-len(stripped) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
