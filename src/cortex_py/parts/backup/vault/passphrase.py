"""The passphrase of what leaves this machine, and its sources. It is never an argument of a tool."""

from __future__ import annotations

import logging
import stat
import sys
from pathlib import Path

from ....core.config import Settings
from ....core.errors import ConfigurationError, extra_remedy, storage_error
from ....core.paths import open_regular

__all__ = ["KEYRING_NAME", "drop_from_keyring", "from_file", "from_keyring", "keep_in_keyring", "passphrase_of"]

KEYRING_NAME = ("cortex", "passphrase")
logger = logging.getLogger(__name__)

_SHORTEST = 8
_LONGEST_FILE = 4_096


def passphrase_of(settings: Settings) -> str:
    """The first that is set: `passphrase`, `passphrase_file`, the system's keyring, `license_key`."""
    found = (
        settings.passphrase or from_file(settings.passphrase_file) or from_keyring() or settings.license_key or ""
    ).strip()
    if not found:
        raise ConfigurationError(
            "No passphrase is set.",
            remedy="Set CORTEX_PASSPHRASE or passphrase_file, or run `cortex sync passphrase` to keep one in the "
            "system's keyring; CORTEX_LICENSE_KEY serves too.",
            field="passphrase",
        )
    if len(found) < _SHORTEST:
        raise ConfigurationError(
            f"The passphrase is shorter than {_SHORTEST} characters.", remedy="Use several words.", field="passphrase"
        )
    return found


def from_file(path: Path | None, field: str = "passphrase_file") -> str:
    """The passphrase in a file that only its owner can read; "" for no file."""
    if path is None:
        return ""
    try:
        with open_regular(path) as file:
            mode = stat.S_IMODE(path.stat().st_mode)
            data = file.read(_LONGEST_FILE + 1)
    except OSError as error:
        raise storage_error(error, path) from error
    if sys.platform != "win32" and mode & 0o077:
        raise ConfigurationError(f"{path} can be read by others.", remedy=f"Close it: chmod 600 {path}", field=field)
    try:
        text = data.decode("utf-8").strip("\r\n")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not a text.", field=field) from error
    if len(data) > _LONGEST_FILE or not text.strip():
        raise ConfigurationError(
            f"{path} is empty or too long.", remedy="Put one line with the passphrase into it.", field=field
        )
    return text


def from_keyring(name: tuple[str, str] = KEYRING_NAME) -> str:
    """The passphrase that the system's keyring holds under a name; "" for none."""
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return ""
    try:
        return keyring.get_password(*name) or ""
    except KeyringError as error:
        logger.debug("the keyring is locked or missing, and counts as empty: %s", type(error).__name__)
        return ""


def keep_in_keyring(passphrase: str, name: tuple[str, str] = KEYRING_NAME) -> None:
    """Store a passphrase in the system's keyring."""
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError as error:
        raise ConfigurationError("The package keyring is not installed.", remedy=extra_remedy("keyring")) from error
    try:
        keyring.set_password(*name, passphrase)
    except KeyringError as error:
        raise ConfigurationError(
            f"The system's keyring did not take it: {str(error).rstrip('.')}.", remedy="Use passphrase_file instead."
        ) from error


def drop_from_keyring(name: tuple[str, str]) -> None:
    """Remove a name from the system's keyring, if it is there."""
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return
    try:
        keyring.delete_password(*name)
    except KeyringError as error:
        logger.debug("nothing was removed from the keyring: %s", type(error).__name__)
