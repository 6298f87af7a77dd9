"""Which files of spaces are valid, and when they are written, changed and removed. `kept_file` knows what is in them.

From such a file a fresh process has the numbers of a space at once, instead of computing them from all records. It is
derived: where it is missing, damaged or out of date, everything works without it, and the process that
had to read the records writes the next one.

A file is valid if the store has its token. Both change in one transaction of the store, in which a new file takes its
name, or a purge overwrites what the file has of a record. So a kill in between leaves a file that is not used, and a
store or a file that is put back from a copy never meets the wrong counterpart.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import StorageError, storage_error
from ..database import Database, Session, replacing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .kept_file import Arrays, KeptSpace

__all__ = ["KEPT_FOLDER", "KeptSpaces"]

logger = logging.getLogger(__name__)

KEPT_FOLDER = "spaces"
# If a purge concerns more than one record in so many, the file goes.
_PURGED_SHARE = 8
_GENERATION = "kept spaces"


class KeptSpaces:
    """The files of a store, in a folder of their own, readable by their owner only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, space: str) -> Path:
        return self._folder / f"{blake2b(space.encode(), digest_size=12).hexdigest()}.space"

    # -- tokens ----------------------------------------------------------------------------------

    def generation(self, session: Session) -> str:
        """Changes when all files become invalid."""
        return _setting(session, _GENERATION) or ""

    def invalidate(self, session: Session) -> None:
        """Make all files invalid, after a change outside the change sequences."""
        session.run("DELETE FROM setting WHERE substr(key, 1, ?) = ?", (len(_GENERATION) + 1, f"{_GENERATION}:"))
        _set(session, _GENERATION, secrets.token_hex(8))

    # -- reading ---------------------------------------------------------------------------------

    def load(self, session: Session, space: str, dimensions: int) -> KeptSpace | None:
        """What the file of a space has, if it is valid in this transaction."""
        token = _setting(session, _key(space))
        if token is None:
            return None
        from .kept_file import Damaged, KeptFile, Outdated

        try:
            with KeptFile.open(self.path(space)) as file:
                if file.token.hex() != token or file.facts["dimensions"] != dimensions:
                    return None
                return file.mapped()
        except OSError as error:
            logger.debug("the file of a space was not used: %s", type(error).__name__)
        except Outdated:
            self._remove(space)
        except Damaged:
            self._remove_damaged(space)
        return None

    def seq(self, session: Session, space: str) -> int:
        """The change of the space that the file of a space is as of; 0 if there is no valid one."""
        from .kept_file import Damaged, KeptFile

        try:
            with KeptFile.open(self.path(space)) as file:
                return int(file.facts["seq"]) if file.token.hex() == _setting(session, _key(space)) else 0
        except (OSError, Damaged):
            return 0

    def check(self, space: str) -> bool:
        """Whether the file of a space is what was written, all of it; it is removed if not."""
        from .kept_file import Damaged, KeptFile

        try:
            with KeptFile.open(self.path(space)) as file:
                file.check()
        except OSError:
            return False
        except Damaged:
            self._remove_damaged(space)
            return False
        return True

    def _remove_damaged(self, space: str) -> None:
        logger.warning("the file of a space was damaged; it is written again")
        self._remove(space)

    def _remove(self, space: str) -> None:
        with suppress(OSError):
            self.path(space).unlink(missing_ok=True)

    # -- writing ---------------------------------------------------------------------------------

    def save(
        self,
        database: Database,
        space: str,
        generation: str,
        facts: dict[str, Any],
        arrays: Arrays,
        chunks: NDArray[np.int64] | None,
    ) -> bool:
        """Write the file of a space as of the change `facts["seq"]`; only these rows of the arrays per chunk.

        False if something made it out of date meanwhile, or if it cannot be written.
        """
        from .kept_file import KeptFile

        token = secrets.token_bytes(16)
        path = self.path(space)
        draft = path.with_name(f"{path.name}.{secrets.token_hex(6)}.part")
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            KeptFile.write(draft, token, facts, arrays, chunks)
            with database.write() as session:
                if self.generation(session) != generation or _purged_since(session, space, facts["seq"]):
                    return False
                draft.replace(path)
                _set(session, _key(space), token.hex())
            return True
        except (OSError, StorageError) as error:
            logger.debug("the file of a space was not written: %s", type(error).__name__)
            return False
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)

    def purge(self, session: Session, space: str, nums: Sequence[int]) -> None:
        """Overwrite what the file of a space has of some records, in the transaction that purges them."""
        path = self.path(space)
        try:
            # Of a writer that was killed, or one that now fails and tries again later.
            for draft in self._folder.glob(f"{path.name}.*.part"):
                draft.unlink(missing_ok=True)
            if not path.exists():
                return
            token = self._purge(path, _setting(session, _key(space)), nums)
        except OSError as error:
            raise storage_error(error, path) from error
        if token is None:
            session.run("DELETE FROM setting WHERE key = ?", (_key(space),))
        else:
            _set(session, _key(space), token)

    def _purge(self, path: Path, token: str | None, nums: Sequence[int]) -> str | None:
        """The new token of the file; None if it was removed."""
        from .kept_file import Damaged, KeptFile

        try:
            with KeptFile.open(path, writable=True) as file:
                if file.token.hex() == token and len(nums) * _PURGED_SHARE <= file.facts["records"]:
                    return file.overwrite(nums)
        except Damaged:
            logger.debug("the file of a space was damaged and is removed")
        path.unlink(missing_ok=True)
        return None


def _key(space: str) -> str:
    return f"{_GENERATION}:{space}"


def _setting(session: Session, key: str) -> str | None:
    rows = session.rows("SELECT value FROM setting WHERE key = ?", (key,))
    return str(rows[0][0]) if rows else None


def _set(session: Session, key: str, value: str) -> None:
    session.insert("setting", {"key": key, "value": value}, replacing("setting", "value"))


def _purged_since(session: Session, space: str, seq: int) -> bool:
    return bool(session.rows("SELECT 1 FROM purged WHERE space = ? AND seq > ? LIMIT 1", (space, seq)))
