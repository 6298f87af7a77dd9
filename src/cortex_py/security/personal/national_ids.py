"""Payment cards, bank accounts and national identification numbers.

Each has its form, its check digit, and the words it needs beside it. A distinctive form is found by itself. A form that
many numbers share (`weak`) is found only beside a word of its row in `tables.json`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from ...lazy import regex
from .numbers import TABLES, NumberRun, Span, has_phrase, number_runs, phrases, words_after, words_before

__all__ = [
    "ID_KINDS", "alternating", "find_cards", "find_ibans", "find_national_ids", "is_date", "iso_7064_11_10", "luhn",
    "mod_97", "verhoeff", "weighted",
]  # fmt: skip

_VERHOEFF_PRODUCT = tuple(
    "0123456789 1234067895 2340178956 3401289567 4012395678 5987604321 6598710432 7659821043 8765932104 9876543210"[
        place : place + 10
    ]
    for place in range(0, 110, 11)
)
_VERHOEFF_PERMUTED = tuple(
    "0123456789 1576283094 5803796142 8916043527 9453126870 4286573901 2793806415 7046913258"[place : place + 10]
    for place in range(0, 88, 11)
)


def luhn(digits: str) -> bool:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def mod_97(compact: str) -> bool:
    """The check of an IBAN: country and check digits at the end, letters as two digits, the remainder 1."""
    moved = compact[4:] + compact[:4]
    return int("".join(str(int(character, 36)) for character in moved)) % 97 == 1


def verhoeff(digits: str) -> bool:
    check = 0
    for place, digit in enumerate(reversed(digits)):
        check = int(_VERHOEFF_PRODUCT[check][int(_VERHOEFF_PERMUTED[place % 8][int(digit)])])
    return check == 0


def iso_7064_11_10(digits: str) -> bool:
    product = 10
    for digit in digits[:-1]:
        product = ((int(digit) + product) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == int(digits[-1])


def weighted(digits: str, weights: Sequence[int]) -> int:
    """The sum of the digits, each times its weight."""
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def alternating(characters: str) -> int:
    """The sum of an identity card: 7, 3, 1 in turn, letters counted from 10."""
    return sum(int(character, 36) * (7, 3, 1)[place % 3] for place, character in enumerate(characters))


def is_date(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


_DIGITS = 4  # in every number, unless its row names fewer


@dataclass(frozen=True, slots=True)
class _Id:
    kind: str
    pattern: re.Pattern[str]
    check: Callable[[str], bool]  # of the letters (upper case) and digits alone
    weak: bool
    words: tuple[str, ...]  # that a weak form needs beside it
    hints: tuple[str, ...]  # the same as they may stand in the text, to pass over texts without any
    digits: int  # what matches has at least so many


def _id(
    kind: str,
    pattern: str,
    check: Callable[[str], bool],
    *,
    weak: bool = False,
    any_case: bool = False,
    digits: int = _DIGITS,
) -> _Id:
    named = TABLES["id_words"].get(kind, "")
    flags = re.ASCII | re.IGNORECASE if any_case else re.ASCII  # digits and letters of other scripts are no numbers
    whole = regex(rf"(?:{pattern})(?![\w\0]|[-./]\w)", flags)
    hints = tuple(phrase.split()[0] for phrase in named.split("|")) if named else ()
    return _Id(kind, whole, check, weak, phrases(named), hints, digits)


def _all(_: str) -> bool:
    return True


def _ssn(value: str) -> bool:
    return value[:3] not in ("000", "666") and value[3:5] != "00" and value[5:] != "0000"


def _plain_ssn(value: str) -> bool:
    return _ssn(value) and value[0] != "9" and value not in ("123456789", "078051120")


def _itin(value: str) -> bool:
    return (
        value[0] == "9"
        and (50 <= int(value[3:5]) <= 65 or 70 <= int(value[3:5]) <= 99)
        and value[3:5] not in ("89", "93")
    )


def _nhs(value: str) -> bool:
    check = 11 - weighted(value, range(10, 1, -1)) % 11
    return check != 10 and check % 11 == int(value[9])


def _nino(value: str) -> bool:
    return value[:2] not in ("BG", "GB", "KN", "NK", "NT", "TN", "ZZ")


def _de_tax(value: str) -> bool:
    counts = sorted(value[:10].count(digit) for digit in "0123456789")
    return value[0] != "0" and counts[-1] in (2, 3) and counts[-2] < 2 and iso_7064_11_10(value)


def _de_card(value: str) -> bool:
    return any(map(str.isdigit, value[1:9])) and alternating(value[:9]) % 10 == int(value[9])


def _nir(value: str) -> bool:
    number = value[:13].replace("2A", "19").replace("2B", "18")
    return number.isdigit() and 97 - int(number) % 97 == int(value[13:])


def _dni(value: str) -> bool:
    number = value[:-1].translate({ord("X"): "0", ord("Y"): "1", ord("Z"): "2"})
    if is_date(int(number[:4]), int(number[4:6] or 0), int(number[6:8] or 0)) and value[0] in "12":
        return False
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == value[-1]


_ODD = dict(zip("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", (
    1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22,
    25, 24, 23), strict=True))  # fmt: skip


def _codice_fiscale(value: str) -> bool:
    even = sum(int(character) if character.isdigit() else ord(character) - 65 for character in value[1:15:2])
    return chr((even + sum(_ODD[character] for character in value[:15:2])) % 26 + 65) == value[15]


def _bsn(value: str) -> bool:
    number = value.zfill(9)
    return int(number) > 0 and weighted(number, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def _be(value: str) -> bool:
    return any(97 - int(century + value[:9]) % 97 == int(value[9:]) for century in ("", "2"))


def _pesel(value: str) -> bool:
    month = int(value[2:4]) % 20
    return (
        is_date(2000, month, min(int(value[4:6]), 28)) and weighted(value, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0
    )


def _short_date(day: str, month: str) -> bool:
    return 1 <= int(day) <= 31 and 1 <= int(month) <= 12


def _personnummer(value: str) -> bool:
    short = value[-10:]
    return _short_date(str(int(short[4:6]) % 60), short[2:4]) and luhn(short)


def _sure_personnummer(value: str) -> bool:
    """Dates with a time of day after them are file names more often than people."""
    clock = int(value[-4:-2]) < 24 and int(value[-2:]) < 60
    return _personnummer(value) and not (clock and len(value) == 12)


def _hetu(value: str) -> bool:
    digits = value[:6] + value[-4:-1]
    return _short_date(value[:2], value[2:4]) and "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(digits) % 31] == value[-1]


def _no(value: str) -> bool:
    first = weighted(value, (3, 7, 6, 1, 8, 9, 4, 5, 2, 1)) % 11 == 0
    return first and weighted(value, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0 and _short_date(value[:2], value[2:4])


def _pt(value: str) -> bool:
    check = 11 - weighted(value, range(9, 1, -1)) % 11
    return value[0] in "1235689" and (0 if check > 9 else check) == int(value[8])


def _cpf(value: str) -> bool:
    checks = (weighted(value, range(10, 1, -1)) * 10 % 11 % 10, weighted(value, range(11, 1, -1)) * 10 % 11 % 10)
    return len(set(value)) > 1 and checks == (int(value[9]), int(value[10]))


def _tfn(value: str) -> bool:
    return weighted(value, (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0


def _medicare(value: str) -> bool:
    return weighted(value, (1, 3, 7, 9, 1, 3, 7, 9)) % 10 == int(value[8])


def _sin(value: str) -> bool:
    return value[0] not in "08" and luhn(value)


def _nric(value: str) -> bool:
    offset = {"T": 4, "G": 4, "M": 3}.get(value[0], 0)
    place = (weighted(value[1:], (2, 7, 6, 5, 4, 3, 2)) + offset) % 11
    letters = {"S": "JZIHGFEDCBA", "T": "JZIHGFEDCBA", "M": "KLJNPQRTUWX"}.get(value[0], "XWUTRQPNMLK")
    return letters[10 - place if value[0] == "M" else place] == value[8]


def _pps(value: str) -> bool:
    extra = ord(value[8]) - 64 if len(value) > 8 and value[8] != "W" else 0
    return "WABCDEFGHIJKLMNOPQRSTUV"[(weighted(value, range(8, 1, -1)) + 9 * extra) % 23] == value[7]


def _czech(value: str) -> bool:
    month = int(value[2:4]) % 50 % 20
    return _short_date(value[4:6], str(month)) and (len(value) == 9 or int(value) % 11 == 0)


def _cnp(value: str) -> bool:
    check = weighted(value, (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11
    return _short_date(value[5:7], value[3:5]) and (1 if check == 10 else check) == int(value[12])


def _egn(value: str) -> bool:
    check = weighted(value, (2, 4, 8, 5, 10, 9, 7, 3, 6)) % 11 % 10
    return _short_date(value[4:6], str(int(value[2:4]) % 20)) and check == int(value[9])


def _turkish(value: str) -> bool:
    digits = [int(digit) for digit in value]
    tenth = (sum(digits[0:9:2]) * 7 - sum(digits[1:8:2])) % 10
    return tenth == digits[9] and sum(digits[:10]) % 10 == digits[10]


def _za(value: str) -> bool:
    return _short_date(value[4:6], value[2:4]) and luhn(value)


def _my_number(value: str) -> bool:
    rest = weighted(value, (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return (0 if rest < 2 else 11 - rest) == int(value[11])


def _svnr(value: str) -> bool:
    check = (weighted(value[:3], (3, 7, 9)) + weighted(value[4:], (5, 8, 4, 2, 1, 6))) % 11
    return check == int(value[3]) and _short_date(value[4:6], str((int(value[6:8]) - 1) % 12 + 1))


def _baltic(value: str) -> bool:
    check = weighted(value, (1, 2, 3, 4, 5, 6, 7, 8, 9, 1)) % 11
    if check == 10:
        check = weighted(value, (3, 4, 5, 6, 7, 8, 9, 1, 2, 3)) % 11 % 10
    return _short_date(value[5:7], value[3:5]) and check == int(value[10])


def _chinese(value: str) -> bool:
    born = is_date(int(value[6:10]), int(value[10:12]), int(value[12:14])) and 1900 <= int(value[6:10]) <= 2100
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return born and "10X98765432"[weighted(value[:17], weights) % 11] == value[17]


def _korean(value: str) -> bool:
    check = (11 - weighted(value, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)) % 11) % 10
    return _short_date(value[4:6], value[2:4]) and check == int(value[12])


def _taiwanese(value: str) -> bool:
    letter = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(value[0]) + 10
    return (letter // 10 + letter % 10 * 9 + weighted(value[1:], (8, 7, 6, 5, 4, 3, 2, 1, 1))) % 10 == 0


def _hong_kong(value: str) -> bool:
    padded = value[:-1].rjust(8)
    total = sum((36 if c == " " else int(c, 36)) * weight for c, weight in zip(padded, range(9, 1, -1), strict=True))
    return (total + int(value[-1], 16)) % 11 == 0


def _thai(value: str) -> bool:
    return (11 - weighted(value, range(13, 1, -1)) % 11) % 10 == int(value[12])


def _rut(value: str) -> bool:
    total = sum(int(digit) * (place % 6 + 2) for place, digit in enumerate(reversed(value[:-1])))
    return "0123456789K0"[11 - total % 11] == value[-1]


def _curp(value: str) -> bool:
    alphabet = "0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ"
    total = sum(alphabet.index(character) * (18 - place) for place, character in enumerate(value[:17]))
    return (10 - total % 10) % 10 == int(value[17])


def _with_digits(value: str) -> bool:
    """Without a check digit, only a word right before it identifies such a number."""
    plain_date = value.isdigit() and len(value) == 8 and is_date(int(value[:4]), int(value[4:6]), int(value[6:]))
    return sum(map(str.isdigit, value)) >= 5 and not plain_date


_IDS = (
    _id("it-codice-fiscale", r"[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z]", _codice_fiscale, any_case=True),
    _id("mx-curp", r"[A-Z]{4}\d{6}[HMX][A-Z]{5}[A-Z0-9]\d", _curp),
    _id("fr-nir", r"[12] ?\d\d ?(?:0[1-9]|1[0-2]|[2-4]\d) ?(?:\d\d|2[AB]) ?\d{3} ?\d{3} ?\d\d", _nir),
    _id("cn-resident-id", r"[1-9]\d{16}[\dX]", _chinese),
    _id("ch-ahv", r"756\.\d{4}\.\d{4}\.\d\d", lambda value: weighted(value, (1, 3) * 6 + (1,)) % 10 == 0),
    _id("be-national-number", r"\d\d\.\d\d\.\d\d-\d{3}\.\d\d", _be),
    _id("br-cpf", r"\d{3}\.\d{3}\.\d{3}-\d\d", _cpf),
    _id("br-cpf", r"\d{11}", _cpf, weak=True),
    _id("cl-rut", r"\d{1,2}\.\d{3}\.\d{3}-[\dkK]", _rut),
    _id("kr-resident-number", r"\d{6}-\d{7}", _korean),
    _id("th-id-number", r"\d-\d{4}-\d{5}-\d\d-\d", _thai),
    _id("us-ssn", r"\d{3}-\d\d-\d{4}", _plain_ssn),
    _id("us-ssn", r"\d{3}[- ]?\d\d[- ]?\d{4}", _ssn, weak=True),
    _id("us-itin", r"9\d\d-\d\d-\d{4}", _itin),
    _id("us-itin", r"9\d\d ?\d\d ?\d{4}", _itin, weak=True),
    _id("uk-nino", r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]", _nino),
    _id("uk-nino", r"[a-ceghj-pr-tw-z][a-ceghj-npr-tw-z] ?\d\d ?\d\d ?\d\d ?[a-d]", _nino, weak=True),
    _id("uk-nhs-number", r"\d{3}[ -]?\d{3}[ -]?\d{4}", _nhs, weak=True),
    _id("de-tax-id", r"\d\d \d{3} \d{3} \d{3}", _de_tax),
    _id("de-tax-id", r"\d{11}", _de_tax, weak=True),
    _id("de-id-card", r"[CFGHJ-NPRTV-Z0-9]{9}\d", _de_card, weak=True, any_case=True, digits=2),
    _id("es-dni", r"\d{8}-?[A-Z]|[XYZ]-?\d{7}-?[A-Z]", _dni),
    _id("es-dni", r"\d{8}[- ]?[A-Z]|[XYZ][- ]?\d{7}[- ]?[A-Z]", _dni, weak=True, any_case=True),
    _id("nl-bsn", r"\d{8,9}|\d{4}\.\d\d\.\d{3}", _bsn, weak=True),
    _id("pl-pesel", r"\d{11}", _pesel, weak=True),
    _id("fi-hetu", r"\d{6}[-+A-FU-Y]\d{3}[0-9A-FHJ-NPR-Y]", _hetu),
    _id("se-personnummer", r"(?:19|20)?\d{6}[-+]\d{4}", _sure_personnummer),
    _id("se-personnummer", r"(?:19|20)?\d{6}[-+]?\d{4}", _personnummer, weak=True),
    _id("dk-cpr", r"\d{6}-?\d{4}", lambda value: _short_date(value[:2], value[2:4]), weak=True),
    _id("no-birth-number", r"\d{6} ?\d{5}", _no),
    _id("pt-nif", r"\d{9}|\d{3} \d{3} \d{3}", _pt, weak=True),
    _id("in-aadhaar", r"[2-9]\d{3}[ -]?\d{4}[ -]?\d{4}", verhoeff, weak=True),
    _id("in-pan", r"[A-Z]{3}P[A-Z]\d{4}[A-Z]", _all),
    _id("in-pan", r"[A-Z]{3}[ABCFGHJLPT][A-Z]\d{4}[A-Z]", _all, weak=True, any_case=True),
    _id("au-tfn", r"\d{3}[ -]?\d{3}[ -]?\d{3}", _tfn, weak=True),
    _id("au-medicare", r"[2-6]\d{3}[ -]?\d{5}[ -]?\d(?:[ -/]?\d)?", _medicare, weak=True),
    _id("ca-sin", r"\d{3}-\d{3}-\d{3}", _sin),
    _id("ca-sin", r"\d{3} ?\d{3} ?\d{3}", _sin, weak=True),
    _id("sg-nric", r"[STFGM]\d{7}[A-Z]", _nric),
    _id("tw-id-number", r"[A-Z][1289]\d{8}", _taiwanese),
    _id("hk-id-number", r"[A-Z]{1,2}\d{6}\([\dA]\)", _hong_kong),
    _id("cz-birth-number", r"\d{6}/\d{4}", _czech),
    _id("ie-pps", r"\d{7}[A-W][A-IW]?", _pps, weak=True, any_case=True),
    _id("hr-oib", r"\d{11}", iso_7064_11_10, weak=True),
    _id("ro-cnp", r"[1-9]\d{12}", _cnp, weak=True),
    _id("bg-egn", r"\d{10}", _egn, weak=True),
    _id("tr-identity-number", r"[1-9]\d{10}", _turkish, weak=True),
    _id("za-id-number", r"\d{13}|\d{6} \d{4} \d{3}", _za, weak=True),
    _id("jp-my-number", r"\d{4}[ -]?\d{4}[ -]?\d{4}", _my_number, weak=True),
    _id("il-id-number", r"\d{9}", luhn, weak=True),
    _id("at-social-security", r"\d{4} ?\d{6}", _svnr, weak=True),
    _id("ee-personal-code", r"[1-8]\d{10}", _baltic, weak=True),
    _id("gr-amka", r"\d{11}", lambda value: _short_date(value[:2], value[2:4]) and luhn(value), weak=True),
    _id("passport", r"[A-Z]{0,2}\d{6,9}|[CFGHJ-NPRTV-Z0-9]{9}", _with_digits, weak=True, any_case=True),
    _id("driver-licence", r"[A-Z]{0,3}[- ]?\d[A-Z0-9-]{5,16}", _with_digits, weak=True, any_case=True),
)

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
            if match and row.check(_NOT_VALUE.sub("", match[0].upper())) and (not row.weak or _named(text, match, row)):
                done = match.end()
                yield start, done, row.kind
                break


def _named(text: str, match: re.Match[str], row: _Id) -> bool:
    if row.check is _with_digits:
        return has_phrase(row.words, words_before(text, match.start(), 28))
    return has_phrase(row.words, [*words_before(text, match.start()), "\n", *words_after(text, match.end())])


# Bank accounts and payment cards.

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
        if closed and form.fullmatch(account) and mod_97(match[0].upper() + account):
            yield start, end, "iban"


def find_cards(text: str) -> Iterator[Span]:
    """Numbers with an issuer's prefix and length and the right check digit; rarer forms need a word for a card."""
    for run in number_runs(text):
        if 12 <= len(run.digits) <= 19 and run.prefix == "" and _laid_out(run) and luhn(run.digits):
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


# -- Check digits ------------------------------------------------------------------------------------
