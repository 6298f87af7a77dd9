"""Tokens of an issuer: what is taken, every way of being refused, and how seldom its keys are asked for."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

from cases import each
from cortex_py.core.errors import AccessDenied, ConfigurationError
from cortex_py.team.access.oidc import LEEWAY_SECONDS, KeySet, KeysUnavailable, SignedTokens, key_fetcher

from helpers import FakeClock

ISSUER, AUDIENCE = "https://id.example", "cortex"
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
WEAK = rsa.generate_private_key(public_exponent=65537, key_size=1024)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
STRANGER = ed25519.Ed25519PrivateKey.generate()


def _jwk(algorithm: Any, key: Any, kid: str, **more: str) -> dict[str, Any]:
    return {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig", **more}


KEYS = [
    _jwk(jwt.algorithms.RSAAlgorithm, RSA, "rsa"),
    _jwk(jwt.algorithms.RSAAlgorithm, WEAK, "weak"),
    _jwk(jwt.algorithms.ECAlgorithm, EC, "ec"),
    _jwk(jwt.algorithms.OKPAlgorithm, ED, "ed", alg="EdDSA"),
    {"kty": "oct", "kid": "oct", "k": base64.urlsafe_b64encode(b"s" * 32).decode().rstrip("=")},
    "not a key",
]
SET = json.dumps({"keys": KEYS}).encode()


@pytest.fixture
def tokens(clock: FakeClock) -> SignedTokens:
    return SignedTokens(ISSUER, AUDIENCE, KeySet(lambda: SET), clock)


def _signed(clock: FakeClock, key: Any = ED, alg: str = "EdDSA", kid: str | None = "ed", **claims: Any) -> str:
    now = int(clock.moment.timestamp())
    whole = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "scope": "openid read", "iat": now, "exp": now + 600}
    whole = {name: value for name, value in {**whole, **claims}.items() if value is not None}
    return jwt.encode(whole, key, algorithm=alg, headers={} if kid is None else {"kid": kid})


def _forged(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    parts = [json.dumps(header).encode(), json.dumps(claims).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def _by_hand(header: dict[str, Any], claims: dict[str, Any], sign: Callable[[bytes], bytes]) -> str:
    """For what the library that signs for honest issuers refuses to write."""
    return _forged(header, claims, sign(_forged(header, claims).rstrip(".").encode()))


def _rsa_signed(message: bytes) -> bytes:
    return WEAK.sign(message, padding.PKCS1v15(), hashes.SHA256())


@pytest.mark.parametrize(("key", "alg", "kid"), [(RSA, "RS256", "rsa"), (EC, "ES256", "ec"), (ED, "EdDSA", "ed")])
def test_a_token_of_the_issuer_is_taken(tokens: SignedTokens, clock: FakeClock, key: Any, alg: str, kid: str) -> None:
    caller = tokens.verify(_signed(clock, key, alg, kid, azp="editor", scp=["write", "tool:subcog_get"]))
    assert (caller.user, caller.agent, caller.via) == ("ann", "editor", f"oidc:{ISSUER}")
    assert caller.scopes == {"read", "write", "tool:subcog_get"}
    assert tokens.verify(_signed(clock, key, alg, kid, aud=["other", AUDIENCE])).user == "ann"


def test_a_key_without_a_name_is_taken_where_it_is_the_only_one_of_its_kind(
    tokens: SignedTokens, clock: FakeClock
) -> None:
    assert tokens.verify(_signed(clock, kid=None)).user == "ann"
    with pytest.raises(AccessDenied):
        tokens.verify(_signed(clock, RSA, "RS256", None))
    few = json.dumps({"keys": [KEYS[0], KEYS[2]]}).encode()
    assert SignedTokens(ISSUER, AUDIENCE, KeySet(lambda: few), clock).verify(_signed(clock, RSA, "RS256", None))


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"iss": "https://evil.example"}, "issuer"),
        ({"iss": None}, "issuer"),
        ({"aud": "other"}, "audience"),
        ({"aud": ["other"]}, "audience"),
        ({"aud": None}, "audience"),
        ({"exp": None}, "no end"),
        ({"exp": 1}, "expired"),
        ({"nbf": 1_900_000_000}, "not valid yet"),
        ({"iat": 1_900_000_000}, "not valid yet"),
        ({"exp": "tomorrow"}, "no time"),
        ({"exp": True}, "no time"),
        ({"exp": float("nan")}, "no time"),
        ({"exp": float("inf")}, "no time"),
        ({"sub": None}, "whom"),
        ({"sub": "a\nb"}, "whom"),
        ({"sub": 7}, "whom"),
    ],
)
def test_a_signed_token_that_is_not_for_us_or_not_for_now(
    tokens: SignedTokens, clock: FakeClock, claims: dict[str, Any], words: str
) -> None:
    payload = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": int(clock.moment.timestamp()) + 600, **claims}
    payload = {name: value for name, value in payload.items() if value is not None}
    with pytest.raises(AccessDenied, match=words):
        tokens.verify(_by_hand({"alg": "EdDSA", "kid": "ed"}, payload, ED.sign))


def test_the_end_of_a_token_goes_by_our_clock(tokens: SignedTokens, clock: FakeClock) -> None:
    token = _signed(clock)
    clock.advance(seconds=600 + LEEWAY_SECONDS - 1)
    assert tokens.verify(token).user == "ann"
    clock.advance(seconds=1)
    with pytest.raises(AccessDenied, match="expired"):
        tokens.verify(token)


def test_forged_tokens_are_refused(tokens: SignedTokens, clock: FakeClock) -> None:
    good = _signed(clock, RSA, "RS256", "rsa")
    assert tokens.verify(good).user == "ann"
    claims = jwt.decode(good, options={"verify_signature": False})
    public = RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    unsigned = _forged({"alg": "HS256", "kid": "rsa"}, claims).rstrip(".")
    with_public_key = base64.urlsafe_b64encode(hmac.new(public, unsigned.encode(), hashlib.sha256).digest())
    head, body, signature = good.split(".")
    raised = base64.urlsafe_b64encode(json.dumps({**claims, "scope": "admin"}).encode()).decode().rstrip("=")
    forged = {
        "none": _forged({"alg": "none"}, claims),
        "None": _forged({"alg": "None", "kid": "rsa"}, claims),
        "no algorithm": _forged({"kid": "rsa"}, claims),
        "the public key as a shared secret": f"{unsigned}.{with_public_key.decode().rstrip('=')}",
        "a shared secret of the set": jwt.encode(claims, b"s" * 32, algorithm="HS256", headers={"kid": "oct"}),
        "another key under its name": _signed(clock, STRANGER),
        "a key of another kind": _signed(clock, ED, "EdDSA", "rsa"),
        "a short key": _by_hand({"alg": "RS256", "kid": "weak"}, claims, _rsa_signed),
        "other claims": f"{head}.{raised}.{signature}",
        "no signature": f"{head}.{body}.",
        "an extension": _by_hand({"alg": "EdDSA", "kid": "ed", "crit": ["b64"], "b64": True}, claims, ED.sign),
        "no name but a number": _forged({"alg": "EdDSA", "kid": 7}, claims, b"x" * 64),
        "nothing": "",
        "noise": "a.b.c",
        "no ascii": "ü.ü.ü",
        "too long": good + "A" * 20_000,
    }
    for name, token in forged.items():
        with pytest.raises(AccessDenied):
            pytest.fail(f"taken: {name} {tokens.verify(token)}")


def test_keys_are_asked_for_once_and_for_unknown_names_once_a_minute(clock: FakeClock) -> None:
    asked, now = [], [0.0]
    offered = {"keys": [KEYS[0]]}

    def fetch() -> bytes:
        asked.append(now[0])
        return json.dumps(offered).encode()

    tokens = SignedTokens(ISSUER, AUDIENCE, KeySet(fetch, lambda: now[0]), clock)
    known, rotated = _signed(clock, RSA, "RS256", "rsa"), _signed(clock)
    tokens.verify(known)
    tokens.verify(known)
    for _ in range(3):
        with pytest.raises(AccessDenied):
            tokens.verify(rotated)
    assert asked == [0.0]
    offered["keys"].append(KEYS[3])
    now[0] = 60.0
    assert tokens.verify(rotated).user == "ann"
    tokens.verify(known)
    assert asked == [0.0, 60.0]


def test_keys_that_cannot_be_had_anew_are_used_for_a_day(clock: FakeClock) -> None:
    now, answers = [0.0], [SET]

    def fetch() -> bytes:
        if not answers:
            raise KeysUnavailable("down")
        return answers.pop()

    tokens = SignedTokens(ISSUER, AUDIENCE, KeySet(fetch, lambda: now[0]), clock)
    token = _signed(clock)
    tokens.verify(token)
    now[0] = 86_000.0
    assert tokens.verify(token).user == "ann"
    now[0] = 87_000.0
    with pytest.raises(AccessDenied, match="could not be fetched"):
        tokens.verify(token)


def test_a_key_that_the_issuer_withdrew_no_longer_counts(clock: FakeClock) -> None:
    now, offered = [0.0], [{"keys": [KEYS[3]]}]
    keys = KeySet(lambda: json.dumps(offered[0]).encode(), lambda: now[0])
    tokens = SignedTokens(ISSUER, AUDIENCE, keys, clock)
    assert tokens.verify(_signed(clock)).user == "ann"
    offered[0] = {"keys": [KEYS[0]]}
    now[0] = 3_601.0
    with pytest.raises(AccessDenied):
        tokens.verify(_signed(clock))


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"keys": {}}', b"{" * 100_000, b" " * 300_000])
def test_what_is_no_set_of_keys_opens_nothing(clock: FakeClock, content: bytes) -> None:
    with pytest.raises(AccessDenied):
        SignedTokens(ISSUER, AUDIENCE, KeySet(lambda: content), clock).verify(_signed(clock))


def test_keys_come_from_a_file_or_over_the_network(tmp_path: Path, clock: FakeClock) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(SET)
    assert key_fetcher(str(file))() == SET
    with pytest.raises(KeysUnavailable):
        key_fetcher(str(tmp_path / "none.json"))()

    class Issuer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302 if self.path == "/elsewhere" else 404 if self.path == "/gone" else 200)
            self.send_header("Location", "/keys")
            self.end_headers()
            self.wfile.write(b" " * 1_000_000 if self.path == "/endless" else SET)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Issuer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            at = f"http://127.0.0.1:{server.server_port}"
            assert key_fetcher(f"{at}/keys")() == SET
            for path in ("elsewhere", "gone", "endless"):
                with pytest.raises(KeysUnavailable):
                    key_fetcher(f"{at}/{path}")()
        finally:
            server.shutdown()
    with pytest.raises(KeysUnavailable):
        key_fetcher(f"{at}/keys")()


@each("source", ["http://id.example/keys", "ftp://id.example/keys", "https://", "https://u:p@id.example"])
def test_only_encrypted_addresses_are_asked(source: str) -> None:
    with pytest.raises(ConfigurationError):
        key_fetcher(source)


@pytest.mark.parametrize("other", [{"use": "enc"}, {"alg": "ES256"}, {"crv": "Ed448"}, {"kty": "EC"}])
def test_a_key_meant_for_something_else_checks_no_signature(clock: FakeClock, other: dict[str, str]) -> None:
    offered = json.dumps({"keys": [{**KEYS[3], **other}]}).encode()
    with pytest.raises(AccessDenied, match="does not name"):
        SignedTokens(ISSUER, AUDIENCE, KeySet(lambda: offered), clock).verify(_signed(clock))


def test_the_organisation_is_that_of_the_claim(tokens: SignedTokens, clock: FakeClock) -> None:
    assert tokens.verify(_signed(clock, tenant="acme")).org == ""
    named = SignedTokens(ISSUER, AUDIENCE, KeySet(lambda: SET), clock, org_claim="tenant")
    assert named.verify(_signed(clock, tenant="acme")).org == "acme"
    for wrong in (None, "", " acme", 7, ["acme"], "a\nb"):
        with pytest.raises(AccessDenied):
            named.verify(_signed(clock, tenant=wrong))
