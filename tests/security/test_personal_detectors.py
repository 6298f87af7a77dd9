"""Personal data is found by its form, its check digit or the word beside it, and ordinary text is left alone.

The numbers are samples that authorities publish or reserve; none belongs to a person.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.graph.writer import sure_person_names
from cortex_py.security.personal import PERSONAL_KINDS, find_personal_data, redact_personal_data
from cortex_py.security.secrets.secrets import Finding
from timing import explodes

FOUND = [
    # (kind, text with the finding in «»)
    ("email", "Write to «ada.byron@analytical-engine.org», please."),
    ("email", "mailto:«o'neill+work@sub.mail-host.co.uk»"),
    ("email", "Author: Zoë <«zoë@müller-söhne.de»>"),
    ("phone", "«+44 20 7946 0958» is right"),
    ("phone", "ring «+442079460958»"),
    ("phone", "«(202) 555-0143» after nine"),
    ("phone", "«202-555-0143 ext. 12» or nothing"),
    ("phone", "«202.555.0143x036»"),
    ("phone", "from «001-202-555-0143»"),
    ("phone", "«+46 (0)8 928 571 38»"),
    ("phone", "«01 99 00 12 34» est le numéro"),
    ("phone", "«030/23125 000»"),
    ("phone", "Phone:\n«60-56-85-91»\n"),
    ("phone", "«555 0143» office"),
    ("phone", "please call me at «555 0143»"),
    ("phone", "call me on «5550143»"),
    ("phone", "Phone: «32 45 67»"),
    ("phone", "Mobile: «2025550143»"),
    ("phone", "Tel.: «416 60 039»"),
    ("iban", "«GB82 WEST 1234 5698 7654 32»"),
    ("iban", "pay to «DE89370400440532013000», thanks"),
    ("iban", "iban «nl91abna0417164300»"),
    ("payment-card", "«4111 1111 1111 1111»"),
    ("payment-card", "«5555555555554444»"),
    ("payment-card", "«3782 822463 10005»"),
    ("payment-card", "my card «4222222222222» is lost"),
    ("payment-card", "Number of the card: «6304000000000000»"),
    ("us-ssn", "«219-09-9999»"),
    ("us-ssn", "social security number: «219099999»"),
    ("us-itin", "«912-70-1234»"),
    ("uk-nhs-number", "NHS number «943 476 5919»"),
    ("uk-nino", "«AB 12 34 56 C»"),
    ("de-tax-id", "Steuer-ID «86095742719»"),
    ("de-tax-id", "«86 095 742 719»"),
    ("de-id-card", "Personalausweis «T220001293»"),
    ("fr-nir", "«2 55 08 14 168 025 38»"),
    ("es-dni", "«12345678Z»"),
    ("es-dni", "NIE «X1234567L»"),
    ("it-codice-fiscale", "«RSSMRA85T10A562S»"),
    ("nl-bsn", "BSN «111222333»"),
    ("be-national-number", "«85.07.30-033.28»"),
    ("pl-pesel", "PESEL: «44051401359»"),
    ("se-personnummer", "«811228-9874»"),
    ("fi-hetu", "«131052-308T»"),
    ("dk-cpr", "CPR «131052-1234»"),
    ("no-birth-number", "«01010750160»"),
    ("pt-nif", "NIF «501964843»"),
    ("br-cpf", "«529.982.247-25»"),
    ("in-aadhaar", "Aadhaar «2341 2341 2346»"),
    ("in-pan", "«ABCPE1234F»"),
    ("au-tfn", "TFN «123 456 782»"),
    ("au-medicare", "Medicare «2123 45670 1»"),
    ("ca-sin", "«130-692-544»"),
    ("sg-nric", "«S1234567D»"),
    ("ch-ahv", "«756.9217.0769.85»"),
    ("cl-rut", "«12.345.678-5»"),
    ("cz-birth-number", "«710319/2745»"),
    ("cn-resident-id", "«11010519491231002X»"),
    ("kr-resident-number", "«971013-9019902»"),
    ("mx-curp", "«HEGG560427MVZRRL04»"),
    ("tw-id-number", "«A123456789»"),
    ("hk-id-number", "«A123456(3)»"),
    ("th-id-number", "«1-2345-45678-78-1»"),
    ("ie-pps", "PPS «1234567FA»"),
    ("hr-oib", "OIB «69435151530»"),
    ("ro-cnp", "CNP «1630615123457»"),
    ("bg-egn", "EGN «7523169263»"),
    ("tr-identity-number", "TC Kimlik «10000000146»"),
    ("za-id-number", "ID number «8001015009087»"),
    ("jp-my-number", "My Number «123456789018»"),
    ("il-id-number", "Israeli ID «039337423»"),
    ("at-social-security", "SVNR «1237 010180»"),
    ("ee-personal-code", "isikukood «37605030299»"),
    ("gr-amka", "AMKA «01013099997»"),
    ("passport", "passport number «123456789»"),
    ("driver-licence", "driver's license: «D1234567»"),
    ("ip-address", "blocked «172.61.42.192» again"),
    ("ip-address", "from «1.2.3.4»"),
    ("ip-address", "host=«81.2.69.142»"),
    ("ip-address", "ssh://root@«81.2.69.142»"),
    ("ip-address", "http://«81.2.69.142»/index.html"),
    ("ip-address", "client «2a02:26f0:0:0:0:0:5f65:1b4a» refused"),
    ("ip-address", "[«2a02:26f0::5f65:1b4a»]:443"),
    ("mac-address", "«52:54:00:9d:0e:67»"),
    ("mac-address", "«52-54-00-9D-0E-67»"),
    ("mac-address", "«5254.009d.0e67»"),
    ("date-of-birth", "born on «12 March 1985» in Bern"),
    ("date-of-birth", "DOB: «1985-03-12»"),
    ("date-of-birth", "geb. «12.03.1985»"),
    ("date-of-birth", "My birthday is «March 12th»!"),
    ("street-address", "I live at «12 Example Street, Springfield, IL 62704»."),
    ("street-address", "at «221B Sample Road»."),
    ("street-address", "«Musterstraße 12\n10115 Berlin»"),
    ("street-address", "«4 rue du Lac»"),
    ("street-address", "«Via Esempio 131»"),
    ("street-address", "address: «45 Exemplo 12»"),
    ("street-address", "«P.O. Box 1234»"),
    ("street-address", "«450 Exemplo 12 Apt. 3»"),
]


@each(("kind", "marked"), FOUND, ids=lambda value: value if value in PERSONAL_KINDS else "")
def test_found_with_its_kind_and_place(kind: str, marked: str) -> None:
    start, end = marked.index("«"), marked.index("»") - 1
    text = marked.replace("«", "").replace("»", "")
    assert find_personal_data(text) == (Finding(kind, start, end),)


def test_every_kind_has_an_example() -> None:
    assert {kind for kind, _ in FOUND} | {"person-name"} == set(PERSONAL_KINDS)


WRONG_CHECKS = [
    "GB82 WEST 1234 5698 7654 33",
    "GB82 WEST 1234 5698 7654 3",
    "my card 4111 1111 1111 1112",
    "NHS number 943 476 5918",
    "Steuer-ID 86095742718",
    "Personalausweis T220001294",
    "2 55 08 14 168 025 39",
    "12345678A",
    "X1234567M",
    "RSSMRA85T10A562T",
    "BSN 111222334",
    "85.07.30-033.29",
    "PESEL: 44051401358",
    "811228-9873",
    "131052-308U",
    "529.982.247-26",
    "Aadhaar 2341 2341 2345",
    "130-692-545",
    "S1234567E",
    "756.9217.0769.86",
    "11010519491231002",
    "000-12-3456",
    "666-12-3456",
]


@each("text", WRONG_CHECKS)
def test_a_wrong_check_digit_is_no_number_of_a_person(text: str) -> None:
    assert find_personal_data(text) == ()


ORDINARY = [
    "Python 3.11.7, numpy==1.26.4, chrome 120.0.6099.109, version 1.2.3.4, pkg-1.2.3.4, Firefox/115.0.2.1",
    "2024-06-11T12:34:56Z 2024-06-11 12:34:56.789 11.06.2024 06/11/2024 12:34:56 1718109296 1718109296123456",
    "550e8400-e29b-41d4-a716-446655440000 d41d8cd98f00b204e9800998ecf8427e 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "lines 120-340, ports 8080-8090, 127.0.0.1:5432, 0.0.0.0, ::1, ::, 192.168.1.2, 10.0.0.0/8, 192.0.2.7, 2001:db8::1",
    "1,234,567.89 rows, 12 345 678 bytes, 3.14159265358979, 1e-10, 0x7fff5fbff8c0, 100%, $1,234.56, 512 256 1024",
    "ISBN 978-3-16-148410-0 and ISBN 0-306-40615-2, RFC 2119, issue #12345678, sha 1234567, doi:10.1000/182",
    "std::vector a::b 00:11:22 aa:bb:cc 12:34:56:78 SHA256:ab:cd:ef:01:23:45:67:89",
    "ff:ff:ff:ff:ff:ff 00:00:00:00:00:00 01:00:5e:00:00:fb 00:00:5e:00:53:01",
    "00 01 02 03 04 05 06 07 and 03 05 1f a2 and 0123456789 and 1234567890 and -2147483648 and 9223372036854775807",
    "git@github.com:org/repo.git https://user:pass@host.example.com/x icon@2x.png getty@tty1.service name@1.2.3 a@b.T",
    "you@example.com noreply@github.com user@localhost @decorator a @ b",
    "select * from t where id in (1000, 2000, 3000) limit 100 offset 200; values (1234567, 7654321)",
    "See section 12 Way to go; a 1 Hard Drive; 3 Test Suite 12; Route API 3; via HTTP 2; Table 12 Row 3; String 3",
    "The project was released on 2019-03-01. She was there on 12 March 1985. Page 1234 of 5678.",
    "call foo at 0x1234; a function call 12345678; cell 12 34; phone screens of 1920 1080 pixels; call us on 12-03-85",
    "In 1896, the Supreme Court; 2020 Daily Trail; August 19 via Netflix; the 5th Circuit Court; section 8.2.4.45",
    "8.8.8.8 and 1.1.1.1 resolve names; the mask is 255.255.255.0; OID 1.3.6.1.4.1.311",
    "build 20240101-1200 and backup-20240101-1234.tar.gz, 20240101Z, v20240101",
    "+0100 +01:00 +12 -0500 +1234 diff +12345678",
    "4611686018427387904 4242424242424241 1234567812345678",
]


@each("text", ORDINARY)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert [text[finding.start : finding.end] for finding in find_personal_data(text)] == []


def test_weak_numbers_need_their_word() -> None:
    for text in (
        "943 476 5919",
        "86095742719",
        "111222333",
        "44051401359",
        "2341 2341 2346",
        "123 456 782",
        "219099999",
    ):
        assert find_personal_data(f"the value {text} there") == ()


def test_redaction_puts_a_marker_in_place_of_each_finding() -> None:
    redaction = redact_personal_data("Ada (ada@analytical-engine.org, +44 20 7946 0958) from 81.2.69.142")
    assert redaction.text == "Ada ([REDACTED:email], [REDACTED:phone]) from [REDACTED:ip-address]"
    assert [finding.kind for finding in redaction.findings] == ["email", "phone", "ip-address"]


def test_names_come_from_the_caller_and_yield_to_surer_kinds() -> None:
    text = "Grace Hopper wrote to grace@navy-yard.org"
    names = redact_personal_data(text, lambda _: [(0, 12), (22, 27)])
    assert names.text == "[REDACTED:person-name] wrote to [REDACTED:email]"


def test_the_tagger_gives_the_names_it_is_sure_of() -> None:
    text = "Laura Carvalho fixed the parser in Rust, and PostgreSQL was upgraded by Nicholas."
    assert [text[start:end] for start, end in sure_person_names(text)] == ["Laura Carvalho", "Nicholas"]
    redacted = redact_personal_data(text, sure_person_names)
    assert redacted.text == (
        "[REDACTED:person-name] fixed the parser in Rust, and PostgreSQL was upgraded by [REDACTED:person-name]."
    )
    assert redact_personal_data(redacted.text, sure_person_names).text == redacted.text


def test_digits_of_other_scripts_break_nothing() -> None:
    other = str.maketrans("0123456789KS", "٠١٢٣٤٥٦٧٨٩Kſ")
    for _, marked in FOUND:
        find_personal_data(re.sub("[«»]", "", marked).translate(other))


PIECES = st.sampled_from(
    [re.sub("[«»]", "", marked) for _, marked in FOUND]
    + WRONG_CHECKS
    + [
        "[REDACTED:email]",
        "call me at ",
        "phone ",
        "card ",
        "ssn ",
        "version ",
        "0",
        "12 ",
        "-",
        "+",
        "\n",
        " ",
        "@",
        "::",
    ]
)
TEXTS = st.one_of(
    st.lists(PIECES, max_size=12).map("".join), st.text(max_size=200), st.text("0123456789 .-/()+@:x\n", max_size=120)
)


@given(TEXTS)
def test_any_text_gives_ordered_findings_and_settles(text: str) -> None:
    findings = find_personal_data(text)
    end = 0
    for finding in findings:
        assert end <= finding.start < finding.end <= len(text)
        assert finding.kind in PERSONAL_KINDS
        end = finding.end
    clean = redact_personal_data(text).text
    assert redact_personal_data(clean).text == clean


HOSTILE = [
    "1 ", "1.1.", "a@", "0-", "::", "1", "a.", "@", "a@a.", "+1 ", "(1)", "1:", "ab:", "00:11:", "12 Main ", "Street ",
    "call me at 555 1234 ", "card 4111 1111 1111 1111 ", "GB82 WEST 1234 ", "AB12", "Via Roma 1 ", "born on 1/1/2000 ",
    "phone 1234567 ", "ssn 123456789 ", "1/", "1st ", "apt 1 ", "psc 1 box 1 ", "[REDACTED:", "[REDACTED:email]1 ",
    "\0", "0494 92 82 32 / ", "12\n", "Hauptstraße 5\n A\n B\n", "Hauptstraße 5, A A A A, A A A A, ",
    "AB 12 34 56 C ",
]  # fmt: skip


@pytest.mark.slow
@each("piece", HOSTILE, ids=repr)
def test_a_hostile_text_takes_little_time(piece: str) -> None:
    assert not explodes(lambda size: find_personal_data((piece * (size // len(piece) + 1))[:size]), 40_000, 0.8)
