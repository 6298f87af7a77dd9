"""The key of the audit log: a file for its owner alone, made when the first event is written."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from ..errors import ConfigurationError, StorageError, storage_error

__all__ = ["AuditKey"]

_BYTES = 32


class AuditKey:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._key: bytes | None = None

    def read(self) -> bytes | None:
        """The key, or None where there is no file yet."""
        if self._key is None:
            self._key = self._from_file()
        return self._key

    def make(self) -> bytes:
        """A new key, or the one that another process was quicker to make."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            partial = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
            handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(secrets.token_hex(_BYTES).encode() + b"\n")
                    file.flush()
                    os.fsync(file.fileno())
                # Fails if it is there: the key of another process is never replaced, and nobody sees half of one.
                os.link(partial, self.path)
            except FileExistsError:
                pass
            finally:
                partial.unlink()
        except OSError as error:
            raise storage_error(error, self.path) from error
        key = self.read()
        if key is None:
            raise StorageError(f"The audit key {self.path} vanished.", remedy="Put it back from a copy.")
        return key

    def _from_file(self) -> bytes | None:
        try:
            with self.path.open("rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                text = file.read(1_000)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(error, self.path) from error
        if os.name == "posix" and mode & 0o077:
            raise ConfigurationError(
                f"The audit key {self.path} can be read by others.",
                remedy=f"Run: chmod 600 {self.path}",
                field="audit_key_file",
            )
        try:
            key = bytes.fromhex(text.decode("ascii").strip())
        except ValueError:
            key = b""
        if len(key) != _BYTES:
            raise ConfigurationError(
                f"{self.path} holds no audit key.", remedy="Put it back from a copy.", field="audit_key_file"
            )
        return key
