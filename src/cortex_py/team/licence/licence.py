"""Licences: what an operator allows somebody to use until when, as a signed text that is verified offline.

    cortex1.<payload>.<signature>

The payload is JSON in canonical form, the signature is Ed25519 over everything before it; both are base64url without
padding. A licence has exactly one text: other spellings of the same content are refused.

On a person's own machine nothing needs a licence. An operator who serves others sets `require_license`; then the MCP
server asks the gate before each call. The command line and the library always work: they need access to the machine.
"""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import stat
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from ...core.clock import Clock, SystemClock, in_utc
from ...core.config import Settings
from ...core.errors import InvalidInput, LicenceInvalid, LicenseRequired, storage_error
from ...core.paths import read_whole

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

__all__ = [
    "TIERS", "TIER_OF", "TOLERANCE", "KeyPair", "Licence", "LicenceGate", "Tier", "allowed", "check_time",
    "configured", "issue", "new_keypair", "opened_by", "read", "read_private_key", "read_public_key", "required_tier",
    "unseal", "write_keypair",
]  # fmt: skip


Tier = Literal["free", "pro", "enterprise"]
# Each opens all that those before it open.
TIERS: tuple[Tier, ...] = get_args(Tier)

# How far the issuer's clock may be ahead.
TOLERANCE = timedelta(minutes=5)

_VERSION = "cortex1"
_LONGEST = 16_000
_LONGEST_HOLDER = 200
_MOST_FEATURES = 64
_LONGEST_KEY_FILE = 64_000
_SIGNATURE_BYTES = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PARTS = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")


@dataclass(frozen=True, slots=True)
class Licence:
    """Who may use what. `features` are single tools besides those of the tier; `expires_at` None means no end."""

    id: str
    holder: str
    tier: Tier
    issued_at: datetime
    expires_at: datetime | None = None
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A key to issue licences with, and the one to verify them with, both as PEM."""

    private: bytes = field(repr=False)
    public: bytes


def issue(
    private_key: bytes,
    *,
    holder: str,
    tier: Tier,
    expires_at: datetime | None = None,
    features: Collection[str] = (),
    id: str | None = None,
    clock: Clock | None = None,
) -> str:
    """The text of a new licence, signed with a private key in PEM."""
    licence = Licence(
        id=id or secrets.token_hex(10),
        holder=holder.strip(),
        tier=tier,
        issued_at=in_utc((clock or SystemClock()).now()).replace(microsecond=0),
        expires_at=in_utc(expires_at).replace(microsecond=0) if expires_at else None,
        features=tuple(sorted(set(features))),
    )
    _check(licence, InvalidInput)
    signed = f"{_VERSION}.{_encoded(_payload(licence))}"
    return f"{signed}.{_encoded(_private(private_key).sign(signed.encode('ascii')))}"


def read(token: str, public_key: bytes, *, clock: Clock | None = None) -> Licence:
    """The licence in a text, if its signature is valid and it is valid now."""
    licence = unseal(token, public_key)
    check_time(licence, clock or SystemClock())
    return licence


def unseal(token: str, public_key: bytes) -> Licence:
    """The licence in a text with a valid signature, whether or not it is valid now."""
    from cryptography.exceptions import InvalidSignature

    version, dot, rest = token.partition(".")
    parts = _PARTS.fullmatch(rest) if len(token) <= _LONGEST else None
    if not parts or not _NAME.fullmatch(version):
        raise _refused("The text is not a licence.")
    if version != _VERSION:
        raise _refused("The licence has a form that this version of Cortex does not know.")
    payload, signature = _decoded(parts[1]), _decoded(parts[2])
    if len(signature) != _SIGNATURE_BYTES:
        raise _refused("The signature of the licence has the wrong length.")
    try:
        # Before the payload is parsed: unsigned data is not read.
        _public(public_key).verify(signature, f"{version}{dot}{parts[1]}".encode("ascii"))
    except InvalidSignature:
        raise _refused("The licence was changed, or signed with another key.") from None
    return _licence(payload)


def check_time(licence: Licence, clock: Clock) -> None:
    """Refuse a licence that has expired or is not valid yet."""
    now = clock.now()
    if licence.expires_at is not None and now >= licence.expires_at:
        raise _refused(f"The licence {licence.id} expired at {_written(licence.expires_at)}.", "Ask for a new one.")
    if licence.issued_at > now + TOLERANCE:
        raise _refused(
            f"The licence {licence.id} is not valid before {_written(licence.issued_at)}.",
            "Check the clock of this machine.",
        )


# -- the payload ---------------------------------------------------------------------------------


def _payload(licence: Licence) -> bytes:
    """The canonical form of a licence."""
    values = {
        **asdict(licence),
        "issued_at": _written(licence.issued_at),
        "expires_at": _written(licence.expires_at) if licence.expires_at else None,
    }
    return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def _licence(payload: bytes) -> Licence:
    try:
        values = json.loads(payload.decode("ascii"))
    except (ValueError, RecursionError):
        raise _refused("The content of the licence cannot be read.") from None
    if not isinstance(values, dict) or values.keys() != {one.name for one in fields(Licence)}:
        raise _refused("The content of the licence has other fields than it should.")
    features = values["features"]
    if not isinstance(features, list):
        raise _refused("The licence's 'features' cannot be read.")
    tier = next((one for one in TIERS if one == _text(values, "tier")), None)
    if tier is None:
        raise _refused("The licence is of a tier that this version of Cortex does not know.")
    licence = Licence(
        id=_text(values, "id"),
        holder=_text(values, "holder"),
        tier=tier,
        issued_at=_moment(values, "issued_at"),
        expires_at=None if values["expires_at"] is None else _moment(values, "expires_at"),
        features=tuple(str(name) for name in features),
    )
    _check(licence, LicenceInvalid)
    if _payload(licence) != payload:
        # Duplicate keys, other spacing or order, trailing data: two readers could read those differently.
        raise _refused("The content of the licence is not in canonical form.")
    return licence


def _check(licence: Licence, kind: type[InvalidInput]) -> None:
    """The rules of every licence, when it is issued and when it is read."""
    remedy = None if kind is LicenceInvalid else "Nothing was issued."
    if licence.tier not in TIERS:
        raise kind(f"Unknown tier {str(licence.tier)[:40]!r}.", remedy=f"Known: {', '.join(TIERS)}.", field="tier")
    if not _NAME.fullmatch(licence.id):
        raise kind("A licence's id is 1 to 64 letters, digits, dots, dashes.", remedy=remedy, field="id")
    holder = licence.holder
    if not 0 < len(holder) <= _LONGEST_HOLDER or not holder.isprintable() or holder != holder.strip():
        raise kind(f"A holder is 1 to {_LONGEST_HOLDER} printable characters.", remedy=remedy, field="holder")
    if len(licence.features) > _MOST_FEATURES or not all(_NAME.fullmatch(name) for name in licence.features):
        raise kind(f"Features are up to {_MOST_FEATURES} names of tools.", remedy=remedy, field="features")
    if licence.features != tuple(sorted(set(licence.features))):
        raise kind("Features are named once, in order.", remedy=remedy, field="features")
    if licence.expires_at is not None and licence.expires_at <= licence.issued_at:
        raise kind("A licence ends after it begins.", remedy=remedy, field="expires_at")


def _text(values: dict[str, object], name: str) -> str:
    value = values[name]
    if not isinstance(value, str):
        raise _refused(f"The licence's {name!r} cannot be read.")
    return value


def _moment(values: dict[str, object], name: str) -> datetime:
    try:
        # The comparison with the canonical form refuses other spellings of the moment.
        return in_utc(datetime.fromisoformat(_text(values, name)))
    except (ValueError, OverflowError):
        raise _refused(f"The licence's {name!r} cannot be read.") from None


def _written(moment: datetime) -> str:
    return in_utc(moment).isoformat(timespec="seconds").replace("+00:00", "Z")


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _decoded(text: str) -> bytes:
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raise _refused("The text is not a licence.") from None
    if _encoded(data) != text:
        # The last character has spare bits; only one of their values is valid.
        raise _refused("The licence is not in canonical form.")
    return data


def _refused(message: str, remedy: str = "Ask its issuer.") -> LicenceInvalid:
    """The error for a licence. Never with the text itself: a licence is as sensitive as a password."""
    return LicenceInvalid(message, remedy=remedy, field="license_key")


# -- keys ----------------------------------------------------------------------------------------


def new_keypair() -> KeyPair:
    """Generate a new key pair."""
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    return KeyPair(
        key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()),
        key.public_key().public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo),
    )


def write_keypair(pair: KeyPair, private_path: Path, public_path: Path) -> None:
    """Write two files that only their owner can read. Existing files are never replaced."""
    _write_new(private_path, pair.private)
    try:
        _write_new(public_path, pair.public)
    except BaseException:
        private_path.unlink()
        raise


def read_public_key(path: Path) -> bytes:
    """The key to verify licences with, from its file."""
    data = _read_key_file(path, "license_public_key")
    _public(data)
    return data


def read_private_key(path: Path) -> bytes:
    """The key to issue licences with. A file that others can read is refused."""
    data = _read_key_file(path, "private_key")
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise InvalidInput(f"Other users can read {path}.", remedy=f"Run: chmod 600 {path}", field="private_key")
    _private(data)
    return data


def _write_new(path: Path, data: bytes) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidInput(f"{path} exists already.", remedy="Name another file.", field="path") from None
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInput(f"There is no folder {path.parent}.", remedy="Create it first.", field="path") from None
    except OSError as error:
        raise storage_error(error, path) from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def _read_key_file(path: Path, name: str) -> bytes:
    try:
        return read_whole(path, _LONGEST_KEY_FILE)
    except OSError as error:
        raise LicenceInvalid(
            f"The key file {path} cannot be read: {error.strerror or error}.",
            remedy="Name the file that `cortex license keygen` wrote.",
            field=name,
        ) from error


def _public(pem: bytes) -> Ed25519PublicKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    with suppress(ValueError, UnsupportedAlgorithm):
        key = load_pem_public_key(pem)
        if isinstance(key, Ed25519PublicKey):
            return key
    raise LicenceInvalid(
        "The key to verify licences with is not a public Ed25519 key in PEM form.",
        remedy="Name the public file that `cortex license keygen` wrote.",
        field="license_public_key",
    )


def _private(pem: bytes) -> Ed25519PrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    with suppress(ValueError, TypeError, UnsupportedAlgorithm):
        key = load_pem_private_key(pem, password=None)
        if isinstance(key, Ed25519PrivateKey):
            return key
    raise InvalidInput(
        "The key to issue licences with is not a private Ed25519 key in PEM form, without a password.",
        remedy="Name the private file that `cortex license keygen` wrote.",
        field="private_key",
    )


# As marked in the published document; tools not listed are free. `tool.argument` is an argument of a tool.
# `update_memory` is marked too, for the check of what it saves: it checks where `verify_response` is open.
TIER_OF: Mapping[str, Tier] = {
    "suggest_contexts": "pro",
    "verify_response": "pro",
    "search_context.filter_category": "pro",
    "get_context_graph_info": "enterprise",
    "sync_to_cloud": "enterprise",
    "sync_from_cloud": "enterprise",
}


def required_tier(tool: str) -> Tier:
    """The lowest tier that includes a tool, or an argument of one."""
    return TIER_OF.get(tool, "free")


def allowed(tool: str, licence: Licence | None) -> bool:
    """Whether a licence, or none, includes a tool."""
    needed = required_tier(tool)
    if needed == "free":
        return True
    if licence is None:
        return False
    return TIERS.index(licence.tier) >= TIERS.index(needed) or tool in licence.features


def opened_by(licence: Licence | None) -> tuple[str, ...]:
    """Everything in the table that a licence includes."""
    return tuple(name for name in TIER_OF if allowed(name, licence))


def configured(settings: Settings) -> Licence | None:
    """The licence in the settings, whether or not it is valid now; None if there is none."""
    token = (settings.license_key or "").strip()
    if not token:
        return None
    if settings.license_public_key is None:
        raise LicenceInvalid(
            "No key to verify the licence is set.",
            remedy="Set license_public_key to the operator's public key file.",
            field="license_public_key",
        )
    return unseal(token, read_public_key(settings.license_public_key))


class LicenceGate:
    """Checks the licence of the settings: the signature once, the time at every call."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._licence: Licence | None = None

    def require(self, tool: str, arguments: Mapping[str, object] | None = None) -> None:
        """Raise `LicenseRequired` if the licence does not include a tool, or an argument that was given."""
        given = [name for name, value in (arguments or {}).items() if value is not None]
        for name, argument in ((tool, None), *((f"{tool}.{one}", one) for one in given)):
            if required_tier(name) != "free":
                self._require(name, argument)

    def _require(self, name: str, field: str | None) -> None:
        tier = required_tier(name)
        needs = f"{name} needs a licence of the tier {tier}"
        try:
            licence = self._valid()
        except LicenceInvalid as error:
            raise LicenseRequired(f"{needs}. {error.message}", remedy=error.remedy, field=field) from error
        if allowed(name, licence):
            return
        has = "none is set" if licence is None else f"the one that is set is of the tier {licence.tier}"
        raise LicenseRequired(
            f"{needs}, and {has}.",
            remedy="Ask the operator of this server; it is given in CORTEX_LICENSE_KEY.",
            field=field,
        )

    def _valid(self) -> Licence | None:
        if self._licence is None:
            self._licence = configured(self._settings)
        if self._licence is not None:
            check_time(self._licence, self._clock)
        return self._licence
