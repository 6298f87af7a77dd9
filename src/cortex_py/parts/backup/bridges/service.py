"""`cortex.bridges`: folders that are kept in step with the memories of a project, both ways.

A bridge is registered once; servers and hooks keep it in step from then on. A run in which nothing changed lists the
folder and reads one number of the store.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

from ....core.clock import Clock
from ....core.config import Settings
from ....core.echo import clean_text
from ....core.errors import Conflict, CortexError, InvalidInput, NotFound, storage_error
from ....core.files import exclusive_lock
from ....core.paths import expanded, open_regular
from ....core.records import DOMAINS, Domain
from ....core.security.callers import current_caller
from ....core.security.path_access import PathAccess
from ....core.store.store import Store
from ..source import AdministeredSources, BackupSources
from ..transfer.graph_intake import GraphIntake
from .folder import BridgeResult, FolderBridge
from .layouts import LAYOUTS
from .tree import NoteTree

__all__ = ["Bridge", "BridgeResult", "Bridges"]

logger = logging.getLogger(__name__)

# In the memory folder of Claude Code each home would write its own list, and drop files that rank low in it.
_ONE_HOME = ("claude-code",)
_MARK = ".cortex-home"
_OWNER = "bridge-owner"
# Front matter around a content.
_BESIDE_CONTENT = 100_000


@dataclass(frozen=True, slots=True)
class Bridge:
    """A registered folder: its id, its layout, and the domain of its memories."""

    id: str
    kind: str
    folder: str
    domain: Domain


class Bridges:
    """The bridges of a project; the project None is the caller's current one."""

    def __init__(
        self, store: Store, clock: Clock, settings: Settings, sources: BackupSources, places: PathAccess
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._sources = sources
        self._places = places

    def add(
        self, kind: str, folder: str | Path | None = None, *, domain: Domain = "project", project_id: str | None = None
    ) -> Bridge:
        """Register a folder, which is created if it is missing. Nothing is moved before the first `sync`.

        `kind` is `vault` or `claude-code`; the latter knows the folder where Claude Code keeps the memory of a project.
        """
        if kind not in LAYOUTS:
            raise InvalidInput(
                f"There is no kind {kind[:40]!r} of bridge.", remedy=f"Choose {' or '.join(LAYOUTS)}.", field="kind"
            )
        if domain not in DOMAINS:
            raise InvalidInput(f"Unknown domain {domain[:40]!r}.", field="domain")
        if folder is None and kind != "claude-code":
            raise InvalidInput("The folder is missing.", remedy="Name the folder of the vault.", field="folder")
        project = self._project(project_id)
        place = self._places.check(folder if folder is not None else self._claude_folder(project_id), "folder")
        # As given, too: a path has one slash where an address with a password has two.
        if any(clean_text(text) != text for text in (str(folder or ""), str(place))):
            # It would be stored, and shown by every run.
            raise InvalidInput("The folder's path contains a secret.", remedy="Choose another folder.", field="folder")
        home = self._settings.home.resolve()
        if place == home or home in place.parents or place in home.parents or place == Path.home():
            raise InvalidInput(
                "A folder with the home of Cortex, or inside it, cannot be a bridge.",
                remedy="Choose another folder.",
                field="folder",
            )
        for other_project, other in self._all():
            if other.folder == str(place) and (other_project, other.kind, other.domain) != (project, kind, domain):
                raise InvalidInput(
                    "The folder is a bridge of another project, kind or domain already.",
                    remedy="Choose another folder.",
                    field="folder",
                )
        # Everything of the space is written there in plain text.
        assert AdministeredSources(self._sources, project_id)[domain].space
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(error, place) from error
        if kind in _ONE_HOME:
            self._claim(place)
        digest = sha256(f"{project}\0{kind}\0{place}\0{domain}".encode("utf-8", "replace")).hexdigest()[:12]
        made = Bridge(digest, kind, str(place), domain)
        with self._store.database.write() as session:
            self._store.settings.put(session, _definition(project, made.id), json.dumps(asdict(made)))
        return made

    def all(self, *, project_id: str | None = None) -> list[Bridge]:
        """The bridges of a project, by folder."""
        project = self._project(project_id)
        return sorted((one for owner, one in self._all() if owner == project), key=lambda one: one.folder)

    def remove(self, ref: str, *, project_id: str | None = None) -> Bridge:
        """Keep a folder no longer in step; its files and all memories stay."""
        found = self._find(ref, project_id)
        with self._store.database.write() as session:
            self._store.settings.remove(session, _definition(self._project(project_id), found.id))
            self._store.settings.remove(session, _state(found))
        mark = Path(found.folder) / _MARK
        if found.kind in _ONE_HOME and _read_mark(mark) == self._owner():
            with suppress(OSError):
                mark.unlink()
        return found

    def sync(
        self,
        ref: str | None = None,
        *,
        dry_run: bool = False,
        allow_deletes: bool = False,
        project_id: str | None = None,
    ) -> list[BridgeResult]:
        """Bring all bridges of a project into step, or one by its id or folder.

        `allow_deletes` deletes the memories of a folder that lost most of its files at once, instead of writing the
        files again.
        """
        chosen = self.all(project_id=project_id) if ref is None else [self._find(ref, project_id)]
        return [self._run(one, project_id, dry_run=dry_run, allow_deletes=allow_deletes) for one in chosen]

    def keep(self, stop: Callable[[], bool] = lambda: False, *, project_id: str | None = None) -> None:
        """Bring the bridges of a project into step in the background; what fails is logged and tried again."""
        if current_caller() is not None:
            return
        for one in self.all(project_id=project_id):
            if stop():
                return
            try:
                self._run(one, project_id, dry_run=False, allow_deletes=False, wait=False)
            except CortexError as error:
                logger.warning("the bridge %s was not brought into step: %s", one.id, error)

    # -- parts -----------------------------------------------------------------------------------

    def _run(
        self, one: Bridge, project_id: str | None, *, dry_run: bool, allow_deletes: bool, wait: bool = True
    ) -> BridgeResult:
        folder = self._places.check(one.folder, "folder")
        if not folder.is_dir():
            raise NotFound(
                f"The folder {folder} does not exist.", remedy="Create it, or remove the bridge.", field="folder"
            )
        source = AdministeredSources(self._sources, project_id)[one.domain]
        if one.kind in _ONE_HOME:
            self._claim(folder, dry_run=dry_run)
        locks = self._settings.home / "bridges"
        locks.mkdir(mode=0o700, parents=True, exist_ok=True)
        refused: list[str] = []
        with exclusive_lock(locks / f"{one.id}.lock", "The folder is being brought into step.", wait=wait) as held:
            if not held:
                return BridgeResult(one.folder, one.kind)
            bridge = FolderBridge(
                self._store,
                self._clock,
                self._sources.memories(project_id),
                source.space,
                one.domain,
                LAYOUTS[one.kind](),
                NoteTree(folder, self._settings.max_content_bytes + _BESIDE_CONTENT),
                _state(one),
                lambda: GraphIntake(
                    self._sources.graph(project_id), one.domain, lambda name, why: refused.append(f"{name}: {why}")
                ),
                dry_run=dry_run,
                allow_deletes=allow_deletes,
            )
            result = bridge.run()
        result.left_out += refused
        return result

    def _claim(self, folder: Path, *, dry_run: bool = False) -> None:
        """Refuse a folder that another home keeps in step; else mark it as one of this home."""
        mark, owner = folder / _MARK, self._owner()
        if not dry_run:
            try:
                with mark.open("x", encoding="ascii") as file:
                    file.write(f"{owner}\n")
                return
            except FileExistsError:
                pass
            except OSError as error:
                raise storage_error(error, mark) from error
        found = _read_mark(mark)
        if found is not None and found != owner:
            raise Conflict(
                f"Another home of Cortex keeps {folder} in step.",
                remedy=f"Remove the bridge there, or choose another folder. If that home is gone, delete {mark}.",
                field="folder",
            )

    def _owner(self) -> str:
        """What names this home in the folders that it keeps in step."""
        with self._store.database.read() as session:
            known = self._store.settings.get(session, _OWNER)
        if known is not None:
            return known
        with self._store.database.write() as session:
            known = self._store.settings.get(session, _OWNER)
            if known is None:
                known = token_hex(16)
                self._store.settings.put(session, _OWNER, known)
            return known

    def _find(self, ref: str, project_id: str | None) -> Bridge:
        path = str(expanded(ref).resolve())
        found = [one for one in self.all(project_id=project_id) if one.id == ref or one.folder in (ref, path)]
        if not found:
            raise NotFound(f"There is no bridge {ref[:200]!r}.", remedy="See what there is: cortex bridge list")
        return found[0]

    def _all(self) -> list[tuple[str, Bridge]]:
        with self._store.database.read() as session:
            known = self._store.settings.beginning_with(session, "bridge:")
        return [(key.split(":")[1], Bridge(**json.loads(value))) for key, value in known.items()]

    def _project(self, project_id: str | None) -> str:
        return self._sources.memories(project_id).place.project.id

    def _claude_folder(self, project_id: str | None) -> Path:
        """Where Claude Code keeps the memory of a project, unless its setting autoMemoryDirectory says otherwise."""
        root = self._sources.memories(project_id).place.project.root
        if root is None:
            raise InvalidInput("The project has no folder here.", remedy="Name the folder.", field="folder")
        base = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
        return base / "projects" / re.sub(r"[^a-zA-Z0-9]", "-", root) / "memory"


def _read_mark(path: Path) -> str | None:
    """The home that a folder belongs to; None if nobody marked it. What is no mark is of another home."""
    try:
        with open_regular(path, follow=False) as file:
            return file.read(200).decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    except OSError:
        return ""


def _definition(project: str, bridge_id: str) -> str:
    return f"bridge:{project}:{bridge_id}"


def _state(bridge: Bridge) -> str:
    return f"bridge-state:{bridge.id}"
