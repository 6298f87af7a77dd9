"""Encryption of a home: its key, and encrypting or decrypting all of its files.

A home has one random key, stored in `home.key` under a passphrase or a secret in the system's keyring. While that file
exists the home is encrypted, and so is everything written. Every file shows whether it is encrypted, so a killed run
leaves a home that opens, and the next run completes it.
"""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from .core.config import Settings
from .core.errors import (
    BackupCorrupt,
    ConfigurationError,
    InvalidInput,
    StoreLocked,
    StoreReadOnly,
    extra_remedy,
    storage_error,
)

if TYPE_CHECKING:
    from .core.security.home_key import HomeKey
    from .parts.backup.vault.header import KdfParameters

__all__ = ["KEY_FILE", "Encryption", "change_passphrase", "decrypt_home", "encrypt_home", "encryption_of", "home_key"]

KEY_FILE = "home.key"
_KEY_BYTES = 32
_SHORTEST = 8
_COPY_BYTES = 1024 * 1024

Step = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Encryption:
    """The encryption of a home. `unfinished` lists the files that differ from the rest."""

    encrypted: bool
    opened_by: Literal["passphrase", "keyring", ""] = ""
    unfinished: tuple[Path, ...] = ()

    @property
    def described(self) -> str:
        if not self.encrypted:
            return "not encrypted"
        way = "a secret in the system's keyring" if self.opened_by == "keyring" else "a passphrase"
        rest = f"; {len(self.unfinished)} files are not yet: run `cortex encryption on`" if self.unfinished else ""
        return f"encrypted, and opens with {way}{rest}"


def home_key(settings: Settings) -> HomeKey | None:
    """The key of the home, from the settings or the system's keyring; None if the home is not encrypted."""
    if not _has_key(settings):
        return None
    from .core.security.home_key import HomeKey

    return HomeKey.of(_root(settings))


def _has_key(settings: Settings) -> bool:
    path = settings.home / KEY_FILE
    try:
        return path.exists()
    except OSError as error:
        raise storage_error(error, path) from error


def encryption_of(settings: Settings) -> Encryption:
    """The encryption of the home; needs no key."""
    path = settings.home / KEY_FILE
    if not _has_key(settings):
        return Encryption(False)
    from .parts.backup.vault.passphrase import from_keyring

    way: Literal["passphrase", "keyring"] = "keyring" if from_keyring(_keyring_name(path)) else "passphrase"
    return Encryption(True, way, tuple(_plain_files(settings)))


def encrypt_home(
    settings: Settings,
    passphrase: str | None,
    *,
    parameters: KdfParameters | None = None,
    step: Step = lambda _name: None,
) -> None:
    """Encrypt all files of the home; without a passphrase, under a secret in the system's keyring.

    Raises `StoreBusy` if another process has the home open. A killed run is completed by the next one, with the same
    key.
    """
    _check_engine()
    _check_length(passphrase)
    path = settings.home / KEY_FILE
    with _alone(settings):
        begun = path.exists()
        root = _root(settings, passphrase) if begun else secrets.token_bytes(_KEY_BYTES)

        def ready() -> None:
            """Called late: a home in use is refused before anything is written."""
            if not begun:
                step("key")
                _write_key(path, root, passphrase, parameters)

        _recode(settings, None, root, ready, step)


def decrypt_home(settings: Settings, *, step: Step = lambda _name: None) -> None:
    """Decrypt all files of the home; the key file is removed last."""
    from .parts.backup.vault.passphrase import drop_from_keyring

    path = settings.home / KEY_FILE
    with _alone(settings):
        if not path.exists():
            raise InvalidInput("The home is not encrypted.", remedy="There is nothing to do.")
        _recode(settings, _root(settings), None, lambda: None, step)
        name = _keyring_name(path)
        step("key")
        path.unlink()
    drop_from_keyring(name)


def change_passphrase(settings: Settings, new: str | None, *, parameters: KdfParameters | None = None) -> None:
    """Replace the passphrase of the home, or with None use a secret in the system's keyring.

    No other file is written. Anyone with the old passphrase and a copy of `home.key` can still open the home and copies
    of it.
    """
    from .parts.backup.vault.passphrase import drop_from_keyring

    _check_length(new)
    path = settings.home / KEY_FILE
    with _alone(settings):
        if not path.exists():
            raise InvalidInput("The home is not encrypted.", remedy="Run `cortex encryption on` first.")
        root, before = _root(settings), _keyring_name(path)
        _write_key(path, root, new, parameters)
    drop_from_keyring(before)


# -- the key ---------------------------------------------------------------------------------------


def _root(settings: Settings, passphrase: str | None = None) -> bytes:
    """The root key of the home. `WrongKey` if the passphrase does not open it."""
    from .core.files import open_existing
    from .parts.backup.vault.header import LIMITS
    from .parts.backup.vault.passphrase import from_file, from_keyring
    from .parts.backup.vault.vault import decrypt

    path = settings.home / KEY_FILE
    given = (
        passphrase
        or settings.home_passphrase
        or from_file(settings.home_passphrase_file, "home_passphrase_file")
        or from_keyring(_keyring_name(path))
    )
    if not given:
        raise StoreLocked(
            f"The home {settings.home} is encrypted, and no key was found.",
            remedy="Set CORTEX_HOME_PASSPHRASE, or home_passphrase_file, or unlock the system's keyring that holds it."
            + ("" if find_spec("keyring") else f" The keyring needs a package. {extra_remedy('keyring')}"),
        )
    root = io.BytesIO()
    with open_existing(path) as source:
        decrypt(source, root, given, limits=LIMITS)
    if len(root.getvalue()) != _KEY_BYTES:
        raise BackupCorrupt(f"{path} holds no key.", remedy="Put it back from a copy.")
    return root.getvalue()


def _write_key(path: Path, root: bytes, passphrase: str | None, parameters: KdfParameters | None) -> None:
    """Write the key under a passphrase, or under a keyring secret that is named after the file itself."""
    from .core.files import atomic_write
    from .parts.backup.vault.header import LIMITS, KdfParameters
    from .parts.backup.vault.passphrase import from_keyring, keep_in_keyring
    from .parts.backup.vault.vault import encrypt

    secret = passphrase
    if secret is None:
        secret = secrets.token_hex(_KEY_BYTES)
        # A random secret cannot be guessed, so an expensive derivation gains nothing.
        parameters = parameters or KdfParameters(memory_kib=LIMITS.least_memory_kib, passes=2, lanes=1)
    sealed = io.BytesIO()
    encrypt(io.BytesIO(root), sealed, secret, parameters=parameters)
    if passphrase is None:
        name = _keyring_name_in(sealed.getvalue())
        keep_in_keyring(secret, name)
        if from_keyring(name) != secret:
            raise ConfigurationError(
                "The system's keyring did not keep the key.",
                remedy="Use a passphrase: cortex encryption on --passphrase",
            )
    with atomic_write(path) as draft:
        draft.write(sealed.getvalue())


def _check_length(passphrase: str | None) -> None:
    if passphrase is not None and len(passphrase) < _SHORTEST:
        raise ConfigurationError(
            f"The passphrase is shorter than {_SHORTEST} characters.", remedy="Use several words.", field="passphrase"
        )


def _keyring_name(path: Path) -> tuple[str, str]:
    from .core.files import open_existing

    with open_existing(path) as source:
        return _keyring_name_in(source.read())


def _keyring_name_in(data: bytes) -> tuple[str, str]:
    from .parts.backup.vault.header import LIMITS, read_header

    return "cortex", f"home {read_header(io.BytesIO(data), LIMITS).fixed.file_id.hex()[:32]}"


# -- the files -------------------------------------------------------------------------------------


def _recode(settings: Settings, old: bytes | None, new: bytes | None, ready: Callable[[], None], step: Step) -> None:
    from .core.security.home_key import HomeKey
    from .core.sqlite_file import is_plain, remove
    from .core.store.sqlite import rekey
    from .parts.context.branches.store import BranchFiles
    from .parts.hooks.prepared import forget_prepared
    from .parts.hooks.turns import recode_turns

    before, after = HomeKey.of(old) if old else None, HomeKey.of(new) if new else None
    store = settings.database
    if store.exists() and store.stat().st_size and is_plain(store) == (new is not None):
        old_key, new_key = (one.database if one else None for one in (before, after))
        rekey(store, old_key, new_key, ready, lambda name: step(f"store {name}"))
    else:
        ready()
    # Caches are removed, since they can be rebuilt.
    step("caches")
    for path in (settings.embedding_cache, *settings.home.glob("**/evidence/**/*.db"), *_kept_spaces(settings)):
        remove(path)
    step("branches")
    BranchFiles(settings.home, after).recode(before)
    step("turns")
    forget_prepared(settings.home)
    recode_turns(settings.home, before, after)
    for path in _snapshots(settings):
        step("snapshot")
        _recode_snapshot(path, before, after)


def _recode_snapshot(path: Path, before: HomeKey | None, after: HomeKey | None) -> None:
    import shutil

    from .core.files import atomic_write, open_existing
    from .core.security.home_key import SealedReader, SealedWriter

    if _is_sealed(path) == (after is not None):
        return
    with open_existing(path) as source, atomic_write(path) as draft:
        if after is not None:
            writer = SealedWriter(draft, after)
            shutil.copyfileobj(source, writer, _COPY_BYTES)
            writer.finish()
        elif before is not None:
            reader = io.BufferedReader(SealedReader(source, before, path))
            shutil.copyfileobj(reader, draft, _COPY_BYTES)


def _snapshots(settings: Settings) -> list[Path]:
    return sorted(settings.home.glob("**/backups/**/snapshot_*.tar.gz"))


def _plain_files(settings: Settings) -> Iterator[Path]:
    """Files of an encrypted home that are not encrypted, after an unfinished run."""
    from .core.sqlite_file import is_plain
    from .parts.hooks.turns import has_plain_turns, turns_folder

    for path in (settings.database, settings.embedding_cache, *settings.home.glob("**/evidence/**/*.db")):
        if is_plain(path):
            yield path
    for path in (*settings.home.glob("**/memory/**/*.md"), *_snapshots(settings)):
        if not _is_sealed(path):
            yield path
    yield from _kept_spaces(settings)
    if has_plain_turns(settings.home):
        yield turns_folder(settings.home)


def _kept_spaces(settings: Settings) -> list[Path]:
    from .core.store.search.kept_spaces import KEPT_FOLDER

    return sorted((settings.database.parent / KEPT_FOLDER).glob("*"))


def _is_sealed(path: Path) -> bool:
    from .core.files import open_existing
    from .core.security.home_key import SEALED_START, is_sealed

    with open_existing(path) as file:
        return is_sealed(file.read(len(SEALED_START)))


def _check_engine() -> None:
    from .core.sqlite_file import can_encrypt

    if not can_encrypt():
        raise ConfigurationError(
            "The SQLite of this Python does not support encryption.",
            remedy="Run: pip uninstall -y apsw && pip install --force-reinstall --no-deps apsw-sqlite3mc",
        )


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    from .core.files import exclusive_lock

    if not settings.home.is_dir():
        raise InvalidInput(f"There is no home at {settings.home}.", remedy="Run `cortex init` first.")
    if not os.access(settings.home, os.W_OK):
        raise StoreReadOnly(f"The folder {settings.home} cannot be written.", remedy="Make it writable.")
    with exclusive_lock(settings.home / "encryption.lock", "The home is being encrypted or decrypted."):
        yield
