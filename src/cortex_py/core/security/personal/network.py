"""E-mail addresses, telephone numbers, and the addresses of machines: IPv4, IPv6 and MAC."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from ...lazy import regex
from .numbers import TABLES, NumberRun, Span, number_runs, words, words_before

__all__ = ["find_emails", "find_ips", "find_macs", "find_phones"]

_EMAIL = regex(
    r"(?<![\w.%+\0-])[\w%+'’-][\w.%+'’-]{0,63}@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}(?![\w-]|\.\w|\()"
)
_NO_PERSONS_DOMAIN = words("email_not_personal_domains")
_NO_PERSONS_NAME = words("email_not_personal_names")
_FILE_ENDINGS = words("email_not_endings")
_LOGIN_IN_URL = regex(r"://[^\s/?#@]{0,80}\Z")

_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_NETWORK = r"/(?:[12]?\d|3[01])(?!\w)"  # what follows makes it the address of many machines
_IPV4 = regex(rf"(?<![\w.\0])(?:{_OCTET}\.){{3}}{_OCTET}(?![\w-]|\.[\w*]|{_NETWORK})")
_IPV6 = regex(r"(?<![\w:.\0])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:]|\.\d)")
_IP_WORDS = words("ip_words")
_VERSION_WORDS = words("version_words")
_VERSION_SIGNS = frozenset("=~^-_@<>")
_SMALL = 32
_RESOLVERS = words("shared_resolvers")
_DOCUMENTATION = tuple(
    map(ipaddress.ip_network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"))
)
_UNIQUE_LOCAL = ipaddress.IPv6Network("fc00::/7")

_MAC = regex(
    r"(?<![\w:.\0-])(?:[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2}){5}"
    r"|[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4})(?![\w:-]|\.\w)"
)
_MAC_WORDS = frozenset(("mac", "macs", "ether", "hwaddr", "ethernet", "bssid", "wifi", "bluetooth", "lladdr"))


def find_emails(text: str) -> Iterator[Span]:
    """E-mail addresses, but not logins in addresses, and not domains that are reserved for examples."""
    if "@" not in text:
        return
    for match in _EMAIL.finditer(text):
        start = match.start() + (match.group()[0] in "'’")
        name, _, domain = text[start : match.end()].lower().rpartition("@")
        labels = domain.split(".")
        reserved = labels[-1] in _NO_PERSONS_DOMAIN or ".".join(labels[-2:]) in _NO_PERSONS_DOMAIN
        if reserved or labels[-1] in _FILE_ENDINGS or name in _NO_PERSONS_NAME:
            continue
        if not _LOGIN_IN_URL.search(text, max(0, start - 90), start):
            yield start, match.end(), "email"


def find_ips(text: str) -> Iterator[Span]:
    """Addresses that may belong to someone's machine: not loopback, private, reserved for examples, or versions."""
    for match in _IPV4.finditer(text):
        if not _is_version(text, match) and _may_be_personal(match.group()):
            yield match.start(), match.end(), "ip-address"
    if ":" in text:
        for match in _IPV6.finditer(text):
            written = match.group()
            groups = [group for group in written.split(":") if group]
            short = len(groups) < 8
            if short and (len(groups) < 3 or not any(map(str.isdigit, written)) or "::" not in written):
                continue
            if all(len(group) == 2 for group in groups):
                continue  # bytes in pairs: a fingerprint or a hardware address
            if _may_be_personal(written):
                yield match.start(), match.end(), "ip-address"


def _may_be_personal(written: str) -> bool:
    try:
        address = ipaddress.ip_address(written)
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified or address.is_multicast or written in _RESOLVERS:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        return address not in _UNIQUE_LOCAL and not any(address in network for network in _DOCUMENTATION)
    return address.is_global and int(address) >> 24 < 240


def _is_version(text: str, match: re.Match[str]) -> bool:
    start = match.start()
    before = text[start - 1 : start]
    if before and before in _VERSION_SIGNS:
        # `host=…` and `ssh://login@…` give an address, `package==…` and `package@…` a version.
        assigned = before == "=" and text[start - 2 : start - 1].isalnum()
        return not assigned and not (before == "@" and _LOGIN_IN_URL.search(text, max(0, start - 90), start - 1))
    if before == "/" and text[start - 2 : start - 1] != "/":
        return True
    near = words_before(text, start, 32)[-4:]
    if not _IP_WORDS.isdisjoint(near[-3:]):
        return False
    if not _VERSION_WORDS.isdisjoint(near[-2:]):
        return True
    octets = [int(octet) for octet in match.group().split(".")]
    # Sections and versions have small numbers, or end with zeros.
    small = max(octets) < _SMALL or max(octets[:3]) < 10
    return small or octets[2:] == [0, 0] or (max(octets[:2]) < 20 and octets[3] == 0)


def find_macs(text: str) -> Iterator[Span]:
    """Hardware addresses of single devices."""
    for match in _MAC.finditer(text):
        written = match.group()
        digits = re.sub(r"[^0-9a-f]", "", written.lower())
        if len(set(digits)) < 3 or int(digits[:2], 16) & 1 or digits.startswith("00005e0053"):
            continue  # nothing but filling, a group address, or the range for examples
        if ":" not in written and digits.isdigit() and _MAC_WORDS.isdisjoint(words_before(text, match.start())):
            continue
        yield match.start(), match.end(), "mac-address"


# Telephone numbers: international ones, national ones with their own signs, and others beside a word for a phone.

_CODES: dict[str, list[int]] = TABLES["calling_codes"]
_WORDS = words("phone_words")
_WORDS_AFTER = words("phone_words_after")
_FILLERS = words("phone_fillers")
_VERBS = words("phone_verbs")
_LINKS = words("phone_links")
_WHOSE = words("phone_owners")
_NOT_PHONES = words("not_phone_words")
_EXTENSION = regex(r"[ \u00a0]?(?:x|ext\.?|extension)[ \u00a0]?\d{1,6}(?!\w)", re.IGNORECASE)
_DATE = regex(
    r"(?:19|20)\d\d[-/. ](?:0?[1-9]|1[0-2])[-/. ](?:0?[1-9]|[12]\d|3[01])(?!\d)"
    r"|(?:0?[1-9]|[12]\d|3[01])[-/. ](?:0?[1-9]|[12]\d|3[01])[-/. ](?:19|20)\d\d(?!\d)"
)
_SHORT_DATE = regex(r"\d\d([-/.])\d\d\1\d\d")
_HEX_PAIR_BEFORE = regex(r"(?<!\w)[0-9A-Fa-f]{2} \Z")
_HEX_PAIR_AFTER = regex(r" [0-9A-Fa-f]{2}(?!\w)")
_AFTER = regex(r"[ \u00a0]?[-–(,]?[ \u00a0]?([^\W\d_]+)")
_NEXT_NUMBER = regex(r"[ \u00a0]*(?:[,;/&]|or|and|oder|und|ou|et|o|y)[ \u00a0]*\Z")
_FEWEST, _MOST = 6, 15  # six are the whole number in Greenland and the Faroes
_LOOKED_BACK = 6


def find_phones(text: str) -> Iterator[Span]:
    """Every telephone number, with its extension."""
    previous = -1
    for run in number_runs(text):
        if not _FEWEST <= len(run.digits) <= _MOST + 2 or _DATE.match(run.text):
            continue
        follows = previous >= 0 and run.start - previous < 8 and _NEXT_NUMBER.match(text, previous, run.start)
        known = _international(run) or _american(run) or _national(text, run)
        if (known and not _named_otherwise(text, run)) or follows or _named(text, run):
            extension = _EXTENSION.match(text, run.end)
            previous = extension.end() if extension else run.end
            yield run.start, previous, "phone"


def _international(run: NumberRun) -> bool:
    """With `+`, or `00` and separators, and a calling code; unbroken only with as many digits as that country has."""
    if run.prefix == "" and not (run.digits.startswith("00") and len(run.groups) > 1 and run.separators != {"."}):
        return False
    digits = re.sub(r"\(0\)|\D", "", run.text).removeprefix("" if run.prefix else "00")
    code = next((digits[:size] for size in (3, 2, 1) if digits[:size] in _CODES), None)
    if code is None or len(digits) > _MOST or _is_decimal(run) or (code == "1" and digits[1] in "01"):
        return False
    fewest, most = _CODES[code]
    size = len(digits) - len(code)
    if run.prefix == "" or len(run.groups) == 1:
        return fewest <= size <= most
    return min(fewest, 7) <= size <= most + 1


def _is_decimal(run: NumberRun) -> bool:
    return len(run.groups) == 2 and run.separators == {"."}


def _american(run: NumberRun) -> bool:
    """Three, three and four digits with dashes, dots or brackets, which hardly any other number has."""
    groups = run.groups[1:] if run.groups[0] == "1" and len(run.groups) == 4 else run.groups
    if tuple(map(len, groups)) != (3, 3, 4) or groups[0][0] in "01":
        return False
    return run.text.lstrip("+1-. ").startswith("(") or run.separators in ({"-"}, {"."})


def _national(text: str, run: NumberRun) -> bool:
    """A trunk prefix 0 and an area code, then groups, in the nine to eleven digits that most countries have."""
    first = run.groups[0]
    if len(run.groups) < 2 or not 9 <= len(run.digits) <= 11 or not 2 <= len(first) <= 5:
        return False
    if first[0] != "0" or first[1] == "0" or len(run.separators) > 2 or len(run.groups) > 5:
        return False
    if any(len(group) == 1 for group in run.groups) or (run.separators == {"."} and len(run.groups) < 5):
        return False
    if all(len(group) == 2 for group in run.groups):
        numbers = [int(group) for group in run.groups]
        if numbers == list(range(numbers[0], numbers[0] + len(numbers))):
            return False
        if _HEX_PAIR_BEFORE.search(text[max(0, run.start - 4) : run.start]) or _HEX_PAIR_AFTER.match(text, run.end):
            return False
    return True


def _named_otherwise(text: str, run: NumberRun) -> bool:
    return not _NOT_PHONES.isdisjoint(words_before(text, run.start, 24)[-2:])


def _named(text: str, run: NumberRun) -> bool:
    """Beside a word for a phone, or after words such as "call me at"."""
    if len(run.digits) > _MOST or _is_decimal(run) or (len(run.digits) < 7 and _SHORT_DATE.fullmatch(run.text)):
        return False
    after = _AFTER.match(text, run.end)
    if after and after[1].lower() in _WORDS_AFTER:
        return True
    near = words_before(text, run.start)[::-1][: _LOOKED_BACK + 4]
    for place, word in enumerate(near[:_LOOKED_BACK]):
        if word in _WORDS:
            return True
        verb = near[place + 1 : place + 5]
        if word in _LINKS and not _VERBS.isdisjoint(verb):
            return len(run.groups) > 1 or len(run.digits) > 8 or not _WHOSE.isdisjoint(near[: place + 5])
        if word not in _FILLERS:
            return word in ("dial", "dialled", "dialed")
    return False
