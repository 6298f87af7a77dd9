"""Secrets are found in every form people paste them in, ordinary text is left alone, nothing leaks.

No line here looks like a secret: every one is put together when the test runs, so that scanners of this
repository stay quiet. A `|` in a sample marks where it was cut.
"""

import json
import random
import re
import string
import sysconfig
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.security.policy import Screen, screen_file
from cortex_py.core.security.secrets.formats import fields_of, templates
from cortex_py.core.security.secrets.secrets import SensitiveSpan, find_secrets, redact
from timing import growth, quick

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
LOWER = string.ascii_lowercase + string.digits
WORD = ALNUM + "_"
BASE64 = ALNUM + "+/"
BASE32 = "BCDEFGHIJKLMNOPQRSTUVWYZ234567"


def body(length: int, alphabet: str = ALNUM, seed: int = 7) -> str:
    """Random text, the same in every run, with a letter and a digit at its ends."""
    chosen = random.Random(f"{length}{alphabet}{seed}")
    return "a" + "".join(chosen.choices(alphabet, k=length - 2)) + "7"


def whole(sample: str) -> str:
    return sample.replace("|", "")


def digits(length: int) -> str:
    return "".join(random.Random(length).choices("23456789", k=length))


def letters(length: int) -> str:
    return "".join(random.Random(length).choices("bcdfghjklmnpqrstvwxz", k=length))


UUID = "-".join(body(n, HEX) for n in (8, 4, 4, 4, 12))
PASSWORD = "Zx9" + "kLm2" + "pQ"
KEY_LINES = "\n".join(body(64, BASE64, seed) for seed in range(4))


def drawn(template: str, seed: int = 7, *, change: int = 0) -> str:
    """A value of a template of the table, drawn at random; `change` makes its last field that much longer."""
    fields = fields_of(template)
    last = max(place for place, field in enumerate(fields) if field.alphabet and field.alphabet != "=")
    chosen = random.Random(f"{template}{seed}")
    pieces = []
    for place, field in enumerate(fields):
        length = field.least
        if place == last:
            length = field.least - 1 if change < 0 else (field.most or field.least) + change if change else length
        pieces.append(field.literal or "".join(chosen.choices(field.alphabet, k=length)))
    return "".join(pieces)


# One row for each kind and form of the table; a field of any length stands for itself.
TEMPLATES = list({(kind, template): (kind, template) for kind, template, _ in templates()}.values())
WHOLE = [(kind, template) for kind, template in TEMPLATES if "<" not in template]
BOUND = [template for _, template in WHOLE if all(field.most is not None for field in fields_of(template))]


@each(("kind", "template"), WHOLE, ids=[template for _, template in WHOLE])
def test_formats_of_providers(kind: str, template: str) -> None:
    secret = drawn(template)
    for text in (
        secret,
        f"see {secret} there",
        f'x = "{secret}"',
        f"({secret})",
        f"URL?x={secret}&y=1",
        f"a\\n{secret}",
    ):
        clean = redact(text)
        assert [finding.kind for finding in clean.findings] == [kind]
        assert clean.text == text.replace(secret, f"[REDACTED:{kind}]")


@each("template", [template for _, template in TEMPLATES if "<" in template])
def test_formats_that_a_place_gives_away(template: str) -> None:
    before, _, rest = drawn(template).partition("<")
    secret, _, after = rest.partition(">")
    clean = redact(f"see https://{before}{secret}{after} there").text
    assert secret not in clean
    assert clean.startswith(f"see https://{before}[REDACTED:")


# One form of these providers goes on where another ends.
SHARED_LENGTHS = ("sk-", "LTAI", "xox", "glpat", "glrt", "glcbt", "sl.", "dapi", "hvs.", "s.")


@each(("kind", "template"), [row for row in WHOLE if row[1] in BOUND])
def test_a_value_of_another_length_is_no_token(kind: str, template: str) -> None:
    if template.startswith(SHARED_LENGTHS):
        pytest.skip("the provider has another form of this length")
    for change in (-1, 1):
        assert kind not in [finding.kind for finding in find_secrets(f"see {drawn(template, change=change)} there")]


@each("template", BOUND)
def test_a_template_filled_with_one_letter_is_no_token(template: str) -> None:
    for letter in "xX0":
        filled = "".join(field.literal or letter * field.least for field in fields_of(template))
        assert find_secrets(f"see {filled} there") == ()


def _github(random_part: str) -> str:
    rest, checksum = zlib.crc32(random_part.encode()), ""
    for _ in range(6):
        rest, place = divmod(rest, 62)
        checksum = (string.digits + string.ascii_uppercase + string.ascii_lowercase)[place] + checksum
    return whole("gh|p_") + random_part + checksum


def test_a_right_checksum_outweighs_the_look_of_a_filler() -> None:
    token = _github("x" * 30)
    assert find_secrets(f"see {token} there")
    assert find_secrets(f"see {token[:-1]}! there") == ()


@each("word", ["token", "secret", "here", "key", "test", "fake"])
def test_a_word_within_a_token_does_not_excuse_it(word: str) -> None:
    for prefix in ("gl|soat-", "GR|1348941", "gl|pat-", "gl|dt-"):
        secret = whole(prefix) + f"kR7_{word}-{body(20 - len(word), WORD)}"
        assert redact(f"use {secret} now").text == "use [REDACTED:gitlab-token] now"


FILLERS = [
    "gl|pat-your-token-goes-here", "gl|pat-XXXXXXXXXXXXXXXXXXXX", "gl|pat-12345678901234567890",
    "sk|_live_example1example2",
    "gh|p_1234567890abcdefghijklmnopqrstuvwxyz", "gl|pat-my-secret-token-here", "AK|IAIOSFODNN7EXAMPLE",
    "AK|IAXXXXXXXXXXXXXXXX", "xo|xb-your-token",
    "SG|.xxxxxxxxxxxxxxxxxxxxxx.yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy",
]  # fmt: skip


@each("filler", FILLERS)
def test_fillers_are_left_alone(filler: str) -> None:
    for text in (filler, f'token = "{filler}"', f"see {filler} there"):
        assert find_secrets(whole(text)) == ()


OTHER_SHAPES = [
    ("aws-access-key", "AK|IA", body(16, BASE32).upper()),
    ("aws-access-key", "AS|IA", body(16, BASE32).upper()),
    ("slack-token", "xo|xb-", f"{digits(12)}-{body(24)}"),
    ("slack-token", "xo|xb-", f"{digits(12)}-{digits(12)}-{body(24)}"),
    ("slack-token", "xo|xp-", f"{digits(12)}-{digits(12)}-{digits(12)}-{body(32, HEX)}"),
    ("slack-token", "xo|xs-", f"{digits(8)}-{digits(8)}-{digits(8)}-{body(18, HEX)}"),
    ("artifactory-key", "AP|6", body(30)),
    ("password-hash", "$2|b$12$", body(53)),
]


@each(("kind", "prefix", "rest"), OTHER_SHAPES)
def test_formats_beyond_templates(kind: str, prefix: str, rest: str) -> None:
    secret = whole(prefix + rest)
    for text in (secret, f"see {secret} there", f'x = "{secret}"'):
        assert redact(text).text == text.replace(secret, f"[REDACTED:{kind}]")


def test_a_google_key_is_a_secret_unless_it_stands_alone() -> None:
    key = whole("AI|za" + body(35))
    for text in (f"see {key} there", f'apiKey = "{key}"', f"{key} is the maps key", f"x?key={key}", f"keys:\n{key}"):
        assert redact(text).text == text.replace(key, "[REDACTED:google-api-key]")
    assert redact(key).findings == ()


def _jwt() -> str:
    parts = (whole("eyJhbGci|OiJIUzI1NiIsInR5cCI6IkpXVCJ9"), whole("ey|JzdWIiOiIxMjM0In0"), body(43, WORD))
    return ".".join(parts)


def test_jwt_is_told_by_its_header() -> None:
    assert redact(f"cookie {_jwt()};").text == "cookie [REDACTED:jwt];"
    header, payload, signature = _jwt().split(".")
    assert find_secrets(f"{header[:-1]}.{payload}.{signature}") == ()


def _block(label: str, lines: str = f"\n{KEY_LINES}\n") -> str:
    return f"-----BEGIN {label}-----{lines}-----END {label}-----"


_GONE = "[REDACTED:private-key]"
_LABELS = [f"{kind}PRIVATE KEY" for kind in ("", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ")]
_IN_JSON = _block("PRIVATE KEY", f"\\n{body(64, BASE64)}\\n")


@each(
    ("text", "clean"),
    [
        *((f"before\n{_block(label)}\nafter", f"before\n{_GONE}\nafter") for label in _LABELS),
        (_block("PGP PRIVATE KEY BLOCK", f"\nVersion: 2\n\n{KEY_LINES}\n=abcd\n"), _GONE),
        # Cut off before its end.
        (f"a: -----BEGIN RSA PRIVATE KEY-----\n{KEY_LINES}\n\nThen we went on.", f"a: {_GONE}\n\nThen we went on."),
        # The file of a service account.
        (f'{{"private_key": "{_IN_JSON}\\n", "id": "1"}}', f'{{"private_key": "{_GONE}\\n", "id": "1"}}'),
    ],
    ids=range(9),
)
def test_private_keys_go_as_whole_blocks(text: str, clean: str) -> None:
    assert redact(text).text == clean


def test_a_file_keeps_its_lines() -> None:
    text = f"first\n{_block('PRIVATE KEY')}\nlast"
    clean = screen_file(text, Screen("redact"))
    assert clean.split("\n") == ["first", _GONE, *[""] * KEY_LINES.count("\n"), "", "", "last"]


@each(
    "text",
    [
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
        "a file has -----BEGIN PRIVATE KEY----- and -----END PRIVATE KEY----- lines",
        "the line -----BEGIN PRIVATE KEY----- tells openssl what follows",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n<your key here>\n-----END PRIVATE KEY-----",
    ],
)
def test_talk_about_keys_is_left_alone(text: str) -> None:
    assert find_secrets(text) == ()


SECRET_TEXTS = json.loads(Path(__file__).with_name("secret_texts.json").read_text("utf-8"))
# Where people write a password, and the kind of what is found.
ASSIGNED: list[tuple[str, str]] = [(form, kind) for form, kind in SECRET_TEXTS["assigned"]]


@each("mark", "!@#$%^&*+~?|-_")
def test_a_password_goes_with_all_its_marks(mark: str) -> None:
    password = f"Zx9{mark}kLm2{mark}pQ"
    for form in ("password={}", 'password = "{}"', "the password is {}\n", "u?password={}&x=1", "--password {} -v"):
        assert redact(form.format(password)).text == form.format("[REDACTED:password]")


@each(("form", "kind"), ASSIGNED, ids=[form for form, _ in ASSIGNED])
def test_passwords_where_people_write_them(form: str, kind: str) -> None:
    assert redact(form.format(PASSWORD)).text == form.format(f"[REDACTED:{kind}]")


TOKEN = body(24)
NAMED = [
    (f'api_key = "{TOKEN}"', "api-key"),
    (f"API_KEY={body(32, HEX)}", "api-key"),
    (f"X-Api-Key: {UUID}", "api-key"),
    (f'const apiKey: string = "{TOKEN}";', "api-key"),
    (f'"client_secret":"{TOKEN}"', "secret"),
    (f"access_token={TOKEN}", "token"),
    (f"TWILIO_AUTH_TOKEN={body(32, HEX)}", "token"),
    (f'os.environ.setdefault("API_TOKEN", "{TOKEN}")', "token"),
    (f"the token for staging is {TOKEN}", "token"),
    (f"Authorization: Bearer {TOKEN}", "bearer-token"),
    (f"Authorization: token {body(40, HEX)}", "authorization"),
    (f"-H 'Authorization: Basic {whole('dXNlcjpwYX|NzMTIz')}'", "basic-auth"),
    (f"aws_secret_access_key = {body(40, BASE64)}", "secret"),
    (f'algolia = "{TOKEN}"', "secret"),
    (f'hubspot_key = "{UUID}"', "api-key"),
    (f'heroku = "{UUID}"', "secret"),
    (f'cloudant_password = "{letters(24)}"', "password"),
    (f'api_key = "{letters(32)}"', "api-key"),
    (f"//npm.example.org/:_authToken={UUID}", "token"),
    (
        f"https://hooks.slack.com/services/T0{body(8, UPPER).upper()}/B0{body(8, UPPER).upper()}/{TOKEN}",
        "slack-webhook",
    ),
    (f"https://{TOKEN}@github.com/org/repo", "url-password"),
    (f"AccountName=x;AccountKey={body(86, BASE64)}==;", "azure-key"),
    (f"https://x.blob.core.windows.net/c?sv=2024&sig={body(43, ALNUM)}%3D", "signed-url"),
    (f"kind: Secret\ndata:\n  user: {whole('YWRtaW|4xMjM=')}\n", "secret"),
    ('passphrase = "correct horse battery staple"', "passphrase"),
]


@each(("text", "kind"), NAMED, ids=[re.sub(r"\W+", "-", text)[:24] for text, _ in NAMED])
def test_values_of_telling_names_and_places(text: str, kind: str) -> None:
    assert [finding.kind for finding in find_secrets(text)] == [kind]


@each("text", SECRET_TEXTS["quiet"])
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert find_secrets(text) == ()


@each(
    "text",
    [
        f"commit {body(40, HEX)}",
        f"see memory {body(40, HEX)} of this project",
        f"the session key {body(40, HEX)} names a memory",
        f"id: {UUID}",
        f"x-request-id: {UUID}",
        f'"integrity": "sha512-{body(86, BASE64)}=="',
        f"image@sha256:{body(64, HEX)}",
        f"GITHUB_SHA={body(40, HEX)}",
        f"data:image/png;base64,iVBORw0KGgo{body(200, BASE64)}",
        f"ssh-rsa AAAAB3NzaC1yc2E{body(200, BASE64)} me@host",
        f'public_key = "{body(44)}"',
        f'<meta name="csrf-token" content="{body(43)}=">',
        f'<input name="csrfmiddlewaretoken" type="hidden" value="{body(64)}">',
        f'<input name="authenticity_token" type="hidden" value="{body(43, BASE64)}=">',
        f"X-CSRF-Token: {body(40)}",
        f"XSRF-TOKEN={body(40)}; path=/",
        f'__RequestVerificationToken = "{body(60)}"',
        f'"js-tokens": ["js-tokens@4.0.0", "", {{}}, "sha512-{body(86, BASE64)}=="],',
        f'"client_token": "hmac-sha256:{body(64, HEX)}"',
        f"token checksum sha256:{body(64, HEX)}",
        f'verify/key signature="vault:v1:{body(90, BASE64)}"',
        f"next_page_token: {body(40)}",
        f'nextPageToken = "{body(40)}"',
        f"PublicKeyToken={body(16, HEX)}",
        f"tls.key certificate: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t{body(100)}",
        f"key fingerprint = {body(43, BASE64)}",
        f"ETag: {body(40)}",
        f"AKIA{'IOSFODNN7'}EXAMPLE",
        "gh" + "p_" + "x" * 36,
        "AI" + "za" + "a" * 35,
    ],
    ids=range(30),
)
def test_digests_ids_and_illustrations_are_left_alone(text: str) -> None:
    assert find_secrets(text) == ()


TALKS_OF_SECRETS = (
    "hmac secrets getpass netrc smtplib ftplib imaplib ssl hashlib http/cookiejar.py http/client.py token"
)


@each("name", TALKS_OF_SECRETS.split())
def test_source_code_about_secrets_is_left_alone(name: str) -> None:
    path = Path(sysconfig.get_paths()["stdlib"]) / (name if name.endswith(".py") else f"{name}.py")
    assert find_secrets(path.read_text(encoding="utf-8")) == ()


def test_a_finding_never_shows_the_secret() -> None:
    secret = whole("gh|p_") + body(36)
    (finding,) = find_secrets(f"token {secret}")
    assert finding == SensitiveSpan("github-token", 6, 46)
    assert secret not in repr(finding)


def test_overlapping_rules_give_one_finding() -> None:
    secret = whole("gh|p_") + body(36)
    assert find_secrets(f'GITHUB_TOKEN="{secret}"') == (SensitiveSpan("github-token", 14, 54),)


def test_several_secrets_come_in_order() -> None:
    text = f"password={PASSWORD} https://u:{PASSWORD}@h {whole('np|m_') + body(36)}"
    assert [finding.kind for finding in find_secrets(text)] == ["password", "url-password", "npm-token"]
    assert redact(text).text == "password=[REDACTED:password] https://u:[REDACTED:url-password]@h [REDACTED:npm-token]"


def test_clean_text_comes_back_as_it_is() -> None:
    text = "Use PostgreSQL for JSONB."
    assert redact(text).text is text


SECRETS = [drawn(template) for _, template in WHOLE[::3]]
PIECES = st.one_of(
    st.text(max_size=30),
    st.sampled_from(SECRETS),
    st.sampled_from([
        *(form.format(PASSWORD) for form, _ in ASSIGNED), *(text for text, _ in NAMED), "password=", 'token: "',
        "-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----", "[REDACTED:token]", "://u:", "@h", "Bearer ",
        "\n", "\ud800", "İ", "\0",
    ]),
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=8).map("".join)


@given(TEXTS)
def test_spans_are_valid_ordered_and_apart(text: str) -> None:
    at = 0
    for finding in find_secrets(text):
        assert at <= finding.start < finding.end <= len(text)
        at = finding.end


@given(TEXTS)
def test_redacting_twice_changes_nothing(text: str) -> None:
    clean = redact(text).text
    assert find_secrets(clean) == ()
    assert redact(clean).text == clean


@given(st.text(max_size=60), st.sampled_from(SECRETS), st.text(max_size=60))
def test_the_secret_is_gone_whatever_stands_around_it(before: str, secret: str, after: str) -> None:
    assert secret not in redact(f"{before} {secret} {after}").text


@given(st.text(st.characters(codec=None)))
def test_any_text_is_accepted(text: str) -> None:
    clean = redact(text)
    assert (clean.text == text) == (not clean.findings)


HOSTILE = [
    "a", "pass=", "password=a1b2c3 ", "sk-", "-sk-", "eyJ.", "eyJaaaaaaaaaaaaaaaa.ey", "-----BEGIN PRIVATE KEY-----\n",
    "://a:", 'password="', "token='a", "Authorization: Bearer ", "curl -u a:b1c2 ", "M" * 24 + ".", "1", "0af3",
    "12345678:A", "$2a$", "mysql -p ", "password\t", "{", "\\", "kind: Secret\ndata:\n", "key: ", "--token ", "İ",
    "[REDACTED:x]", "password: str", "xoxb-", "abc1Q~", "login a password b1c2d3 ", "\n", "password value",
]  # fmt: skip
BOUNDED = [
    *HOSTILE, "[", "? ", "=", '":', "A", "://@", "-----BEGIN", "eyJ", " ", '"', "'", "`", "a=", "<", "密码：",
    "Signature=", "&sig=A", "xoxd-", "IQoJb3JpZ2lu/", "glcbt-a.", "s.", "AccountKey=", "key=", "aB3-", "A1b2", "://a:b@",
    "token f47ac10b-",
]  # fmt: skip


@pytest.mark.slow
@each("piece", BOUNDED, ids=range(len(BOUNDED)))
def test_a_hundred_kilobytes_of_anything_take_little_time(piece: str) -> None:
    text = (piece * (100_000 // len(piece) + 1))[:100_000]
    quick(lambda: redact(text), 5)


@pytest.mark.slow
@each("piece", HOSTILE, ids=range(len(HOSTILE)))
def test_time_grows_with_the_text_and_not_faster(piece: str) -> None:
    # Eight times the text: a quadratic search would take 64 times as long.
    assert growth(lambda size: find_secrets(piece * (size // len(piece))), 4_000, 32_000) < 24


_PHRASE = "legal winner thank year wave sausage worth useful legal winner thank yellow"


@pytest.mark.parametrize(
    ("text", "secret", "kind"),
    [
        ("use fw_3ZJk8sQ1mNvT5xYbC7dPqR2w here", "fw_3ZJk8sQ1mNvT5xYbC7dPqR2w", "fireworks-key"),
        *[
            (f"{one} .", one, "nostr-key")
            for one in ("nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5",)
        ],
        ("# .pgpass\ndb.internal:5432:shop:ann:Tr0ub4dor7x\n", "Tr0ub4dor7x", "password"),
        ("*:*:*:ann:Tr0ub4dor7x", "Tr0ub4dor7x", "password"),
        ("Das Passwort lautet Sommer2024!", "Sommer2024!", "password"),
        ("Das Kennwort ist Sommer2024!", "Sommer2024!", "password"),
        (f"seed phrase: {_PHRASE}", _PHRASE, "seed-phrase"),
        (f"My recovery phrase is {_PHRASE}.", _PHRASE, "seed-phrase"),
    ],
)
def test_further_secrets_are_found_whole(text: str, secret: str, kind: str) -> None:
    (found,) = find_secrets(text)
    assert (text[found.start : found.end], found.kind) == (secret, kind)
    assert find_secrets(redact(text).text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Das Passwort ist falsch, das Kennwort ist erforderlich.",
        "Das Passwort ist notwendig",
        "src/app.py:5432:17:error:undefined1",
        "fw_update fw_version_check_before_flash",
        f"the list begins with {_PHRASE}",
        "The seed phrase is what people write down when they begin, and nothing else opens the wallet",
        "a mnemonic is easy when people know that each letter stands for one single word here",
        "postgres:5432:shop:ann:$PGPASSWORD",
    ],
)
def test_what_only_looks_like_these_is_left(text: str) -> None:
    assert find_secrets(text) == ()
