"""A random key in a file of the home that only its owner may read; created once, by the process that comes first."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from ..errors import ConfigurationError, StorageError, storage_error
from ..paths import open_regular

__all__ = ["KeyFile"]

_BYTES = 32


class KeyFile:
    def __init__(self, path: Path, name: str, field: str | None = None) -> None:
        """`name` and `field` are how errors call it, and the setting that chooses its path."""
        self.path = path
        self._name = name
        self._field = field
        self._key: bytes | None = None

    def read(self) -> bytes | None:
        """The key; None if there is no file yet."""
        if self._key is None:
            self._key = self._from_file()
        return self._key

    def make(self) -> bytes:
        """Create the key, or read the one that another process created first."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            partial = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
            handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(secrets.token_hex(_BYTES).encode() + b"\n")
                    file.flush()
                    os.fsync(file.fileno())
                # Fails if the file exists: another process's key is never replaced, and no partial key is visible.
                os.link(partial, self.path)
            except FileExistsError:
                pass
            finally:
                partial.unlink()
        except OSError as error:
            raise storage_error(error, self.path) from error
        key = self.read()
        if key is None:
            raise StorageError(f"The {self._name} {self.path} vanished.", remedy="Put it back from a copy.")
        return key

    def _from_file(self) -> bytes | None:
        try:
            with open_regular(self.path) as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                text = file.read(1_000)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(error, self.path) from error
        if os.name == "posix" and mode & 0o077:
            raise ConfigurationError(
                f"The {self._name} {self.path} can be read by others.",
                remedy=f"Run: chmod 600 {self.path}",
                field=self._field,
            )
        try:
            key = bytes.fromhex(text.decode("ascii").strip())
        except ValueError:
            key = b""
        if len(key) != _BYTES:
            raise ConfigurationError(
                f"{self.path} holds no {self._name}.", remedy="Put it back from a copy.", field=self._field
            )
        return key
