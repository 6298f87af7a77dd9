"""Payment cards, bank accounts and national identification numbers.

Each has its form, its check digit, and the words it needs beside it. A distinctive form is found by itself. A form that
many numbers share (`weak`) is found only beside a word of its row in `tables.json`.

`national_ids.json` lists the forms of national ids, surest first. `pattern` may have `<day>`, `<month>` and
`<any_month>` (one that also says the century). All `checks` of a row must pass: a function of `_CHECKS`, or a weighted
sum whose remainder by `modulus` chooses the check character from `signs` (without `signs` it must be 0). The check
character follows the weighted digits, or stands `at` a place of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from ...lazy import regex
from .numbers import TABLES, NumberRun, Span, has_phrase, number_runs, phrases, words_after, words_before

__all__ = ["ID_KINDS", "find_cards", "find_ibans", "find_national_ids"]

# -- Check digits of the letters (upper case) and digits of a number ------------------------------

_VERHOEFF_PRODUCT = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
    "5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
)  # fmt: skip
_VERHOEFF_PERMUTED = (
    "0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415", "7046913258",
)  # fmt: skip


def _luhn(digits: str) -> bool:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _mod_97(compact: str) -> bool:
    """The check of an IBAN: country and check digits at the end, letters as two digits, the remainder 1."""
    moved = compact[4:] + compact[:4]
    return int("".join(str(int(character, 36)) for character in moved)) % 97 == 1


def _verhoeff(digits: str) -> bool:
    check = 0
    for place, digit in enumerate(reversed(digits)):
        check = int(_VERHOEFF_PRODUCT[check][int(_VERHOEFF_PERMUTED[place % 8][int(digit)])])
    return check == 0


def _iso_7064_11_10(digits: str) -> bool:
    product = 10
    for digit in digits[:-1]:
        product = ((int(digit) + product) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == int(digits[-1])


def _weighted(digits: str, weights: Sequence[int]) -> int:
    """The sum of the digits, each times its weight."""
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def _has_check_character(value: str, *, weights: Sequence[int], modulus: int, signs: str, at: int) -> bool:
    padded = value.zfill(at + 1 if signs else len(weights))
    remainder = _weighted(padded, weights) % modulus
    return padded[at] == signs[remainder] if signs else remainder == 0


def _is_date(digits: str) -> bool:
    try:
        date(int(digits[:4]), int(digits[4:6]), int(digits[6:8]))
    except ValueError:
        return False
    return True


def _has_repeated_digit(value: str) -> bool:
    """Of the first ten digits of a German tax id, one stands there two or three times, and no other twice."""
    counts = sorted(value[:10].count(digit) for digit in "0123456789")
    return counts[-1] in (2, 3) and counts[-2] < 2


def _german_card(value: str) -> bool:
    total = sum(int(character, 36) * (7, 3, 1)[place % 3] for place, character in enumerate(value[:9]))
    return total % 10 == int(value[9])


def _nir(value: str) -> bool:
    number = value[:13].replace("2A", "19").replace("2B", "18")
    return number.isdigit() and 97 - int(number) % 97 == int(value[13:])


def _dni(value: str) -> bool:
    number = value[:-1].translate({ord("X"): "0", ord("Y"): "1", ord("Z"): "2"})
    if value[0] in "12" and _is_date(number):
        return False
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == value[-1]


# The values of 0 to 9 and A to Z at the odd places of a codice fiscale.
_ODD_DIGITS = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)
_ODD = (*_ODD_DIGITS, *_ODD_DIGITS, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)


def _codice_fiscale(value: str) -> bool:
    even = sum(int(character) if character.isdigit() else ord(character) - 65 for character in value[1:15:2])
    return chr((even + sum(_ODD[int(character, 36)] for character in value[:15:2])) % 26 + 65) == value[15]


def _belgian(value: str) -> bool:
    return any(97 - int(century + value[:9]) % 97 == int(value[9:]) for century in ("", "2"))


def _hetu(value: str) -> bool:
    return "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(value[:6] + value[-4:-1]) % 31] == value[-1]


def _nric(value: str) -> bool:
    offset = {"T": 4, "G": 4, "M": 3}.get(value[0], 0)
    place = (_weighted(value[1:], (2, 7, 6, 5, 4, 3, 2)) + offset) % 11
    letters = {"S": "JZIHGFEDCBA", "T": "JZIHGFEDCBA", "M": "XWUTRQPNJLK"}.get(value[0], "XWUTRQPNMLK")
    return letters[place] == value[8]


def _pps(value: str) -> bool:
    extra = ord(value[8]) - 64 if len(value) > 8 and value[8] != "W" else 0
    return "WABCDEFGHIJKLMNOPQRSTUV"[(_weighted(value, range(8, 1, -1)) + 9 * extra) % 23] == value[7]


def _baltic(value: str) -> bool:
    check = _weighted(value, (1, 2, 3, 4, 5, 6, 7, 8, 9, 1)) % 11
    if check == 10:
        check = _weighted(value, (3, 4, 5, 6, 7, 8, 9, 1, 2, 3)) % 11 % 10
    return check == int(value[10])


def _taiwanese(value: str) -> bool:
    letter = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(value[0]) + 10
    return (letter // 10 + letter % 10 * 9 + _weighted(value[1:], (8, 7, 6, 5, 4, 3, 2, 1, 1))) % 10 == 0


def _hong_kong(value: str) -> bool:
    padded = value[:-1].rjust(8)
    total = sum((36 if c == " " else int(c, 36)) * weight for c, weight in zip(padded, range(9, 1, -1), strict=True))
    return (total + int(value[-1], 16)) % 11 == 0


def _curp(value: str) -> bool:
    alphabet = "0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ"
    total = sum(alphabet.index(character) * (18 - place) for place, character in enumerate(value[:17]))
    return (10 - total % 10) % 10 == int(value[17])


def _has_five_digits(value: str) -> bool:
    """Without a check digit, only a word right before it identifies such a number."""
    plain_date = value.isdigit() and len(value) == 8 and _is_date(value)
    return sum(map(str.isdigit, value)) >= 5 and not plain_date


_Check = Callable[[str], bool]
_CHECKS: dict[str, _Check] = {
    "baltic": _baltic,
    "belgian": _belgian,
    "codice-fiscale": _codice_fiscale,
    "curp": _curp,
    "date": lambda value: _is_date(value[6:14]),
    "dni": _dni,
    "five-digits": _has_five_digits,
    "german-card": _german_card,
    "hetu": _hetu,
    "hong-kong": _hong_kong,
    "iso-7064": _iso_7064_11_10,
    "luhn": _luhn,
    "luhn-of-ten": lambda value: _luhn(value[-10:]),
    "nir": _nir,
    "nric": _nric,
    "pps": _pps,
    "repeated-digit": _has_repeated_digit,
    "taiwanese": _taiwanese,
    "verhoeff": _verhoeff,
}


# -- National ids ------------------------------------------------------------------------------------

_DIGITS = 4  # in every number, unless its row names fewer
_PARTS = {
    "<day>": r"(?:0[1-9]|[12]\d|3[01])",
    "<month>": "(?:0[1-9]|1[0-2])",
    "<any_month>": "(?:[02468][1-9]|[13579][0-2])",
}


@dataclass(frozen=True, slots=True)
class _Id:
    kind: str
    pattern: re.Pattern[str]
    checks: tuple[_Check, ...]
    weak: bool
    words: tuple[str, ...]  # that a weak form needs beside it
    hints: tuple[str, ...]  # the same as they may stand in the text, to pass over texts without any
    digits: int  # what matches has at least so many
    before_only: bool  # whether only a word right before it counts


def _read_id(
    kind: str,
    pattern: str,
    checks: Sequence[str | dict[str, Any]],
    weak: bool = False,
    any_case: bool = False,
    digits: int = _DIGITS,
) -> _Id:
    named = TABLES["id_words"].get(kind, "")
    for name, part in _PARTS.items():
        pattern = pattern.replace(name, part)
    flags = re.ASCII | re.IGNORECASE if any_case else re.ASCII  # digits and letters of other scripts are no numbers
    whole = regex(rf"(?:{pattern})(?![\w\0]|[-./]\w)", flags)
    hints = tuple(phrase.split()[0] for phrase in named.split("|")) if named else ()
    before_only = "five-digits" in checks
    return _Id(kind, whole, tuple(map(_read_check, checks)), weak, phrases(named), hints, digits, before_only)


def _read_check(check: str | dict[str, Any]) -> _Check:
    if isinstance(check, str):
        return _CHECKS[check]
    weights = tuple(map(int, check["weights"].split()))
    signs, at = check.get("signs", ""), check.get("at", len(weights))
    return partial(_has_check_character, weights=weights, modulus=check["modulus"], signs=signs, at=at)


_IDS = tuple(_read_id(**row) for row in json.loads(Path(__file__).with_name("national_ids.json").read_text("utf-8")))
ID_KINDS = tuple(dict.fromkeys(row.kind for row in _IDS))
_NOT_VALUE = regex(r"[^A-Z0-9]")
_START = regex(r"(?<![\w\0])(?<![\w][-./])(?=[A-Za-z]{0,6}[- ]?\d)")
_SHORTEST, _LONGEST = 7, 24
_WITH_FEW_DIGITS = tuple(row for row in _IDS if row.digits < _DIGITS)


def find_national_ids(text: str) -> Iterator[Span]:
    """Every number of a person, by the first row it fits."""
    possible: dict[bool, list[_Id]] = {}  # the rows whose words are in the text, by whether there are enough digits
    done = 0
    for place in _START.finditer(text):
        start = place.start()
        window = text[start : start + _LONGEST]
        if start < done or sum(map(str.isalnum, window[: 2 * _SHORTEST])) < _SHORTEST:
            continue
        enough = sum(map(str.isdigit, window)) >= _DIGITS
        if enough not in possible:
            lower = text.lower()
            rows = _IDS if enough else _WITH_FEW_DIGITS
            possible[enough] = [row for row in rows if not row.weak or any(hint in lower for hint in row.hints)]
        for row in possible[enough]:
            match = row.pattern.match(text, start)
            if match and _holds(row, match[0]) and (not row.weak or _is_named(text, match, row)):
                done = match.end()
                yield start, done, row.kind
                break


def _holds(row: _Id, written: str) -> bool:
    value = _NOT_VALUE.sub("", written.upper())
    return all(check(value) for check in row.checks)


def _is_named(text: str, match: re.Match[str], row: _Id) -> bool:
    if row.before_only:
        return has_phrase(row.words, words_before(text, match.start(), 28))
    return has_phrase(row.words, [*words_before(text, match.start()), "\n", *words_after(text, match.end())])


# -- Bank accounts and payment cards --------------------------------------------------------------------

_IBAN = regex(r"(?<![^\W_])[A-Za-z]{2}\d\d(?=[ \u00a0-]?[A-Za-z0-9])")
_BLANKS = " \u00a0-"
_CLASSES = {"n": "[0-9]", "a": "[A-Z]", "c": "[A-Z0-9]"}
_FORMS = {
    country: (
        sum(int(count) for count, _ in re.findall(r"(\d+)([nac])", form)),
        regex("".join(f"{_CLASSES[kind]}{{{count}}}" for count, kind in re.findall(r"(\d+)([nac])", form))),
    )
    for country, form in TABLES["iban"].items()
}
_CARD_WORDS = phrases(TABLES["words"]["card_words"])
_GROUPS = {(4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 4, 4, 3), (4, 4, 4, 1)}


def find_ibans(text: str) -> Iterator[Span]:
    """Account numbers of the length and form of their country, with the right check digits."""
    for match in _IBAN.finditer(text):
        country, start = match.group()[:2].upper(), match.start()
        if country not in _FORMS:
            continue
        length, form = _FORMS[country]
        end, account = match.end(), ""
        while end < len(text) and len(account) < length:
            # Blanks part groups of four.
            blank = text[end] in _BLANKS and text[end - 1] not in _BLANKS and len(account) % 4 == 0
            if not blank and not (text[end].isascii() and text[end].isalnum()):
                break
            account += "" if blank else text[end].upper()
            end += 1
        closed = end == len(text) or not (text[end].isalnum() or text[end] == "_")
        if closed and form.fullmatch(account) and _mod_97(match[0].upper() + account):
            yield start, end, "iban"


def find_cards(text: str) -> Iterator[Span]:
    """Numbers with an issuer's prefix and length and the right check digit; rarer forms need a word for a card."""
    for run in number_runs(text):
        if 12 <= len(run.digits) <= 19 and run.prefix == "" and _laid_out(run) and _luhn(run.digits):
            if _issued(run.digits, _SURE) and (len(run.groups) > 1 or len(run.digits) > 14):
                yield run.start, run.end, "payment-card"
            elif _issued(run.digits, _NAMED):
                near = [*words_before(text, run.start, 60), "\n", *words_after(text, run.end)]
                if has_phrase(_CARD_WORDS, near):
                    yield run.start, run.end, "payment-card"


def _laid_out(run: NumberRun) -> bool:
    if len(run.groups) == 1:
        return True
    return (
        tuple(map(len, run.groups)) in _GROUPS and len(run.separators) == 1 and run.separators <= {" ", "-", "\u00a0"}
    )


def _ranges(rows: dict[str, list[int]]) -> tuple[tuple[str, str, frozenset[int]], ...]:
    return tuple(
        (low, high or low, frozenset(sizes)) for row, sizes in rows.items() for low, _, high in [row.partition("-")]
    )


_SURE = _ranges(TABLES["card_issuers"]["sure"])
_NAMED = _ranges(TABLES["card_issuers"]["named"])


def _issued(digits: str, ranges: tuple[tuple[str, str, frozenset[int]], ...]) -> bool:
    return any(low <= digits[: len(low)] <= high and len(digits) in sizes for low, high, sizes in ranges)
