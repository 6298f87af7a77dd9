"""Which project a folder belongs to: the same answer from every clone, working tree and sub-folder.

The identity comes from the git remote, or from the folder where there is none. `resolve_project` finds the stored
project for it, also after the project was moved or has gained a remote.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR

from ..clock import Clock, to_micros
from ..errors import InvalidInput, StoreReadOnly
from ..git_remotes import RemoteAddress, normalise_path, normalise_remote
from ..paths import read_regular
from ..records import Project
from ..security.callers import as_system, current_caller
from ..security.path_access import path_refusal, resolve_outside_kernel
from ..security.permission import may_create_project, may_read, require_write
from ..security.policy import Screen
from ..store.database import Session
from ..store.store import Store
from ..worktree.git.repository import Repository

__all__ = [
    "ProjectIdentity",
    "StoredProjects",
    "existing_folder",
    "folders_of",
    "git_stamp",
    "identify",
    "identify_repository",
    "matches_moved",
    "resolve_project",
]

logger = logging.getLogger(__name__)

_ID_DIGITS = 12
_MAX_HOPS = 8
_MOST_ENTRIES = 100_000
_MOST_ALTERNATES = 100_000
# No caller may read all of it, so it stands for what cannot be looked through.
_EVERYTHING = Path("/").absolute()


@dataclass(frozen=True, slots=True)
class ProjectIdentity:
    """What identifies a project, read from its folder.

    `root` is the main working tree, the folder of a bare repository, or the plain folder. `remote` is the normalised
    address, which cannot hold credentials. `root_commit` is set only where there is no remote, to recognise the
    repository after it was moved.
    """

    id: str
    root: Path
    remote: str | None
    name: str
    root_commit: str | None = None


def identify(path: Path) -> ProjectIdentity:
    """The project that a folder, or the folder of a file, belongs to."""
    place = existing_folder(path)
    return identify_repository(place, Repository.discover(place))


def identify_repository(place: Path, repository: Repository | None) -> ProjectIdentity:
    """The project of an existing folder, by the repository around it; None where there is none."""
    if repository is None:
        return ProjectIdentity(_digest(normalise_path(str(place))), place, None, place.name or str(place))
    return _of_repository(repository, _MAX_HOPS)


def folders_of(repository: Repository | None) -> list[Path]:
    """The folders that git reads for a repository: its working tree, its git folders, and all that they lead to.

    A file named `.git`, a setting, a list of alternates or a link can redirect any of them to another repository.
    """
    if repository is None:
        return []
    found = dict.fromkeys([repository.root, repository.git_dir, repository.common_dir])
    waiting = [repository.git_dir, repository.common_dir]
    left = _MOST_ENTRIES
    while waiting:
        folder = waiting.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        left -= len(entries) + 1
        if left < 0:
            return [_EVERYTHING]
        waiting += [Path(one.path) for one in entries if one.is_dir(follow_symlinks=False)]
        led = [Path(one.path).resolve() for one in entries if one.is_symlink()]
        led += _borrowed(folder) if any(one.name == "alternates" for one in entries) else []
        waiting += [one for one in led if one not in found and one != _EVERYTHING]
        found.update(dict.fromkeys(led))
    return list(found)


def _borrowed(info: Path) -> list[Path]:
    """The folders of objects that a list of alternates names."""
    data = read_regular(info / "alternates", _MOST_ALTERNATES)
    # git can read a name in quotes, which needs another reading than this one, and ends a name at a NUL.
    if data is None or b"\0" in data or data.startswith(b'"') or b'\n"' in data:
        return [_EVERYTHING]
    names = [os.fsdecode(line) for line in data.split(b"\n") if line and not line.startswith(b"#")]
    return [(info.parent / name).resolve() for name in names]


def git_stamp(folder: Path) -> tuple[object, ...]:
    """Changes when `.git` in a folder, or its references to other folders, are replaced."""
    git = folder / ".git"
    facts = [_facts(git), _facts(git / "config"), _facts(git / "objects" / "info" / "alternates")]
    # Git writes into its folder all the time; only its replacement matters.
    return tuple(one and (one.st_ino, one.st_dev, not S_ISDIR(one.st_mode) and one.st_mtime_ns) for one in facts)


def matches_moved(identity: ProjectIdentity, *, stored_root: str, stored_root_commit: str | None) -> bool:
    """Whether a project stored without a remote is this one in a new folder.

    It is if nothing is left in the old folder, the folder kept its name, and both histories begin with the same commit
    or neither has one. A copy is not a move: its original still exists.
    """
    old = Path(stored_root)
    return (
        identity.remote is None
        and identity.root != old
        and identity.root.name == old.name
        and identity.root_commit == stored_root_commit
        and not old.exists()
    )


def resolve_project(store: Store, found: ProjectIdentity, clock: Clock, screen: Screen) -> Project:
    """The stored project for a folder. It is written only if it is new or has changed.

    A caller needs the right to write to it. A new project belongs to the caller's organisation, to which they need the
    right to write. A path_refusal does not reveal whether the project is stored.
    """
    caller = current_caller()
    with as_system(), store.database.read() as session:
        known = store.projects.get(session, found.id) or _find_moved(store, session, found, screen)
    if not may_create_project() if known is None else not may_read(known.id):
        raise path_refusal("project")
    if known is not None:
        require_write(known.id)
    if known == Project(found.id, str(found.root), found.remote, found.name):
        return known  # screened when it was stored
    remote = None if found.remote is None else screen.found(found.remote)
    project = Project(known.id if known else found.id, screen.found(str(found.root)), remote, screen.found(found.name))
    if project != known:
        try:
            with as_system(), store.database.write() as session:
                store.projects.save(session, project, found.root_commit, to_micros(clock.now()))
                if known is None and caller is not None:
                    store.tenants.put_project(session, project.id, caller.org, restricted=False)
        except StoreReadOnly:
            logger.debug("the store is read-only: the project is not stored")
    return project


def _find_moved(store: Store, session: Session, found: ProjectIdentity, screen: Screen) -> Project | None:
    """A project whose identity changed: it was moved, or its repository has gained a remote."""
    if found.remote and (known := store.projects.by_remote(session, screen.found(found.remote))):
        return known
    candidates = [
        project
        for project, commit in store.projects.without_remote(session, screen.found(found.root.name))
        if project.root
        and (
            project.root == str(found.root) or matches_moved(found, stored_root=project.root, stored_root_commit=commit)
        )
    ]
    return candidates[0] if len(candidates) == 1 else None


class StoredProjects:
    """The projects of the store, as far as access to files depends on them (`ProjectDirectory`)."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def org_of(self, project_id: str) -> str | None:
        with as_system(), self._store.database.read() as session:
            found = self._store.tenants.org_of(session, project_id)
        return None if found is None else found[0]

    def is_foreign(self, around: Sequence[Path], path: Path) -> bool:
        with as_system(), self._store.database.read() as session:
            found = self._store.projects.overlapping(session, [str(one) for one in around], str(path))
        return not all(may_read(project_id) for project_id in found)


def _facts(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def existing_folder(path: Path) -> Path:
    """A folder, or the folder of a file, without links. Raises `InvalidInput` where there is none."""
    try:
        place = resolve_outside_kernel(path, "project").resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise InvalidInput(
            f"There is no folder {str(path)[:200]!r}.",
            remedy="Give the path of an existing folder.",
            field="project",
        ) from None
    return place if place.is_dir() else place.parent


def _of_repository(repository: Repository, hops: int) -> ProjectIdentity:
    common = repository.common_dir
    home = common.parent if common.name == ".git" else common
    root = home if repository.is_linked else repository.root
    url = repository.remote_url()
    if url is None or not (remote := normalise_remote(url)):
        name = _folder_name(root, is_git_folder=root == common)
        return ProjectIdentity(_digest(normalise_path(str(home))), root, None, name, repository.root_commit())
    address = RemoteAddress.read(url)
    if address.host is None:
        source = root / address.path
        remote = normalise_path(str(source))
        # A clone of a clone belongs to the origin of the first.
        origin = _repository_at(source) if hops else None
        if origin is not None and origin.common_dir != common:
            found = _of_repository(origin, hops - 1)
            return ProjectIdentity(found.id, root, found.remote or remote, found.name)
    return ProjectIdentity(_digest(remote), root, remote, remote.rpartition("/")[2] or remote)


def _repository_at(source: Path) -> Repository | None:
    """The repository in exactly this folder, not one around it; git also accepts `x` for `x.git`."""
    for place in (source, source.with_name(f"{source.name}.git")):
        if place.is_dir() and (found := Repository.discover(place)):
            there = place.resolve()
            if there in (found.root, found.git_dir):
                return found
    return None


def _folder_name(root: Path, *, is_git_folder: bool) -> str:
    """The name of the folder, or of the one around a hidden git folder."""
    shown = root.parent if is_git_folder and root.name.startswith(".") else root
    return shown.name.removesuffix(".git") or str(root)


def _digest(identity: str) -> str:
    return hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:_ID_DIGITS]
