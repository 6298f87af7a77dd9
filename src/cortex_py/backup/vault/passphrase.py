"""The passphrase that encrypts what leaves this machine, and where it may come from. Never from a tool's argument."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

from ..config import Settings
from ..errors import ConfigurationError, storage_error

__all__ = ["KEYRING_NAME", "keep_in_keyring", "passphrase_of"]

KEYRING_NAME = ("cortex", "passphrase")
_SHORTEST = 8
_LONGEST_FILE = 4_096


def passphrase_of(settings: Settings) -> str:
    """The first that is set: `passphrase`, `passphrase_file`, the keyring of the system, `license_key`."""
    found = (
        settings.passphrase or _from_file(settings.passphrase_file) or _from_keyring() or settings.license_key or ""
    ).strip()
    if not found:
        raise ConfigurationError(
            "There is no passphrase to encrypt with.",
            remedy="Set CORTEX_PASSPHRASE or passphrase_file, or run `cortex sync passphrase` to keep one in the "
            "system's keyring; CORTEX_LICENSE_KEY serves too.",
            field="passphrase",
        )
    if len(found) < _SHORTEST:
        raise ConfigurationError(
            f"The passphrase is shorter than {_SHORTEST} characters.", remedy="Use several words.", field="passphrase"
        )
    return found


def _from_file(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(path.stat().st_mode)
            data = file.read(_LONGEST_FILE + 1)
    except OSError as error:
        raise storage_error(error, path) from error
    if sys.platform != "win32" and mode & 0o077:
        raise ConfigurationError(
            f"{path} can be read by others.", remedy=f"Close it: chmod 600 {path}", field="passphrase_file"
        )
    try:
        text = data.decode("utf-8").strip("\r\n")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not a text.", field="passphrase_file") from error
    if len(data) > _LONGEST_FILE or not text.strip():
        raise ConfigurationError(
            f"{path} is empty or too long.", remedy="Put one line with the passphrase into it.", field="passphrase_file"
        )
    return text


def _from_keyring() -> str:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return ""
    try:
        return keyring.get_password(*KEYRING_NAME) or ""
    except KeyringError:
        # Locked, or no keyring on this machine: as if there were nothing in it.
        return ""


def keep_in_keyring(passphrase: str) -> None:
    """Keep a passphrase where the system keeps its own."""
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError as error:
        raise ConfigurationError(
            "The package keyring is not installed.", remedy="Run: pip install 'cortex-py[cloud]'"
        ) from error
    try:
        keyring.set_password(*KEYRING_NAME, passphrase)
    except KeyringError as error:
        raise ConfigurationError(
            f"The system's keyring did not take it: {error}.", remedy="Use passphrase_file instead."
        ) from error
