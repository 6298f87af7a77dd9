"""Is this string a real secret or only stands where one would? Placeholders, references to a secret kept
elsewhere, ordinary words, and the shape of random text. Nothing here knows where the string was found.
"""

from __future__ import annotations

import base64
import binascii
import re

__all__ = [
    "Span",
    "is_basic_credentials",
    "is_digest",
    "is_filler_token",
    "is_jwt_header",
    "is_placeholder",
    "is_random",
    "is_reference",
    "is_wordy",
    "looks_like_password",
    "looks_like_token",
]

Span = tuple[int, int, str]
"""Where a secret is, from and to, and of what kind."""

# Words that people write where a secret goes. Matched against letters only, so `your-api_key` counts.
_STAND_IN = re.compile(
    r"change(?:me|it|this)|replace|placeholder|example|sample(?!d)|dummy|fake|redact|removed|hidden|insert|todo|fixme"
    r"|your|putyour|goeshere|here$|notreal|notareal|mock|foobar|lorem|ipsum|xxxx|\byyyy|zzzz$|undefined|masked"
    r"|(?:^|my|the|some|enter)(?:api|auth|access|client|private|secret|super)*(?:key|token|password|passwd|secret|pass)$"
)
# Whole values that stand for "a value" rather than being one.
_WORDS = """
    pass passw passwd password passphrase passcode pwd secret secrets token tokens key apikey auth user username
    admin root test testing tests tester demo guest default none null nil true false yes no on off empty string
    str text value val values number integer int bool boolean object array list dict map any unknown required
    optional enabled disabled bearer basic digest oauth oauth2 jwt hmac abc abcd abcdef qwerty foo bar baz
    foobar bla blah login credential credentials mypassword mysecret mytoken mykey supersecret secretkey
    secretpassword asdf pass1 pass123 password1 password12 password123 passw0rd p4ssw0rd secret123 token123
    test1 test12 test123 test1234 testpass testpassword testtoken testkey testsecret user1 user123 admin1 abc123
    foo123 key1 key123 sha1 sha224 sha256 sha384 sha512 md5 base32 base64 utf8 utf16 latin1 ascii argon2
    argon2id bcrypt scrypt pbkdf2 ed25519 x25519 rs256 rs512 hs256 hs512 es256 aes128 aes256 rsa2048 rsa4096
    x509 pkcs8 pkcs12 ec2 s3 route53 k8s oauth1 http2 ipv4 ipv6 int8 int16 int32 int64 uint8 uint16 uint32
    uint64 float32 float64 python3 py3 win32 charfield textfield passwordfield varchar255
"""
_VOCABULARY = frozenset(_WORDS.split())
_REPEATED = re.compile(r"(.)\1{7,}|[xX]{5,}|\*{3,}|\.{3,}|#{4,}|_{5,}|-{4,}|…|•{3}|[?]{3,}")
_SEQUENCES = "0123456789abcdefghijklmnopqrstuvwxyz0123456789", "abcdef0123456789abcdef", "1234567890" * 4
_ILLUSTRATION = re.compile(
    r"(?i:example|placeholder|change_?me|redacted|(?:^|[_-])(?:your|fake|dummy|insert|here|sample|token|secret)(?:[_-]|$))"
    r"|your[_-]?(?:api|token|key|secret)|YOUR[_-]?(?:API|TOKEN|KEY|SECRET)"
)
_NON_LETTERS = re.compile(r"[^a-z]+")

# A value that names where the secret is: a variable, a template, a path, an address, a pattern.
_REFERENCE = re.compile(
    r"""
      \$\{.*\}? | \$\(.*\)? | \$[A-Za-z_]\w*(?:[\[.:-].*)? | %[A-Za-z_]\w*% | %\(\w+\)[sd] | %[sdvq@r]\b.*
    | \{\{.*\}?\}? | \{%.* | \{\d*\} | <[^<>]*> | \[[^\[\]]*\] | @\w+@ | \#\{.*\}? | @\{.*\}
    | (?:~|\.{1,2})?(?:/[\w.@%+-]*){2,} | [A-Za-z]:\\.* | (?:https?|file|env|vault|op|ssm|arn|secretsmanager|ref|urn):.*
    | (?:process\.env|os\.environ|ENV|env|System\.getenv|getenv|os\.getenv|import\.meta\.env|secrets|vars|var)[.\[(].*
    | .*(?:a-zA-Z|A-Za-z|A-Z0-9|a-z0-9|0-9a-|\\x[0-9A-Fa-f]{2}-).*
    | .*[/.:_-]\{[A-Za-z_][\w.]+(?:\(\w*\))?\}.* | /?\^.*[\\\[(*+$].* | .*\\[dwsb][+*{].* | .*\(\?.*
    """,
    re.VERBOSE | re.DOTALL,
)
# What only an unquoted value can be: code, a reference in YAML, a symbol.
_CODE = re.compile(
    r"""
      [A-Za-z_$][\w$]*(?:\?\.|\.|->|::)[A-Za-z_$(].* | [A-Za-z_$][\w$]*[\[(].* | [({\[|&!<>*+~?-].* | .*[({]
    | [A-Z][\w.]*<.* | \w+\s*=>.* | (?:lambda|new|function)\b.* | [A-Za-z_$][\w$]*(?:\)|\}|\])+[;,.:]?
    | :[A-Za-z_]\w* | @[A-Za-z_][\w./]*
    """,
    re.VERBOSE | re.DOTALL,
)
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_CHANGES = re.compile(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[0-9])(?=[A-Za-z])|(?<=[A-Z])(?=[0-9])|(?<=[A-Z][A-Z])(?=[a-z])")
_CONSONANTS = re.compile(r"[bcdfghjklmnpqrstvwxz]{6}")
_VOWELS = re.compile(r"[aeiouy]")
_NOUN = re.compile(r"key|token|secret|passw|credential", re.IGNORECASE)
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d")
_MARK = re.compile(r"[!@#$%^&*+=?~|\\{}\[\]()<>;,]")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


def is_placeholder(value: str) -> bool:
    """True for text that fills the place of a secret: stand-in words, repeated or counted-up characters."""
    different = len(set(value))
    if different <= 3 and len(value) >= 6:
        return True
    if len(value) - different >= 2 and _REPEATED.search(value):
        return True
    lowered = value.lower()
    if lowered in _VOCABULARY:
        return True
    return _STAND_IN.search(_NON_LETTERS.sub("", lowered)) is not None


def is_filler_token(body: str) -> bool:
    """True for a token of a known format whose body is only an illustration.

    Long random text may hold a short word by chance, so here words count only where they stand apart.
    """
    if _REPEATED.search(body) or _ILLUSTRATION.search(body):
        return True
    plain = body.replace("-", "").replace("_", "")
    return len(set(plain)) < 6 or (plain.isalpha() and (plain.islower() or plain.isupper()))


def is_sequence(value: str) -> bool:
    """True for characters counted up, such as `abcdef123456`."""
    lowered = value.lower()
    return any(lowered in run for run in _SEQUENCES)


def is_reference(value: str, *, quoted: bool) -> bool:
    """True for text that names where a secret is kept, or for code that computes one."""
    if _REFERENCE.fullmatch(value):
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
    if digits == 0:
        if value != lowered and not value.isupper():
            return len(value) < 16 or _change_rate(value) < 0.35
        return not _CONSONANTS.search(lowered) and len(_VOWELS.findall(lowered)) >= 0.12 * letters
    if len(value) >= 32 and is_digest(value):
        return False
    one_case = value == lowered or value.isupper()
    return _change_rate(value) < (0.2 if one_case else 0.25)


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
    if len(value) < 5 or " " in value or is_reference(value, quoted=quoted) or is_placeholder(value):
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
