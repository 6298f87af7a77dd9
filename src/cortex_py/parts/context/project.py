"""Which project a folder belongs to: the same answer from every clone, working tree and sub-folder.

The identity comes from the git remote, or from the folder where there is none. That is a claim: anybody can write it
into the folder that they hand out. `parts.context.claims` decides whether a stored project accepts it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from stat import S_ISDIR

from ...core.errors import InvalidInput
from ...core.paths import read_regular
from ...core.security.callers import as_system
from ...core.security.path_access import resolve_outside_kernel
from ...core.security.permission import may_read
from ...core.store.store import Store
from ...worktree.git.repository import Repository
from ...worktree.git.runner import find_repository_folder
from ...worktree.remotes import RemoteAddress, normalise_path, normalise_remote

__all__ = [
    "ProjectIdentity", "StoredProjects", "existing_folder", "folders_of", "git_stamp", "has_own_objects", "identify",
    "identify_repository", "matches_moved", "project_repository",
]  # fmt: skip

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
    repository after it was moved. `repository` is the one that belongs to the folder; `is_borrowed` says that git finds
    one there that belongs to another folder.
    """

    id: str
    root: Path
    remote: str | None
    name: str
    root_commit: str | None = None
    repository: Repository | None = field(default=None, compare=False, repr=False)
    is_borrowed: bool = field(default=False, compare=False)

    @property
    def apart(self) -> ProjectIdentity:
        """The same folder as a project of its own, under an id that no remote and no path gives."""
        name = self.root.name or str(self.root)
        return replace(self, id=_apart_id(self.root), remote=None, name=name, root_commit=None)


def identify(path: Path) -> ProjectIdentity:
    """The project that a folder, or the folder of a file, belongs to."""
    place = existing_folder(path)
    return identify_repository(place, Repository.discover(place))


def identify_repository(place: Path, repository: Repository | None) -> ProjectIdentity:
    """The project of an existing folder, by the repository around it; None where there is none."""
    if repository is None:
        return ProjectIdentity(_digest(normalise_path(str(place))), place, None, place.name or str(place))
    found = _of_repository(repository, _MAX_HOPS)
    top = find_repository_folder(place) or place
    if repository.belongs_to(top):
        return replace(found, repository=repository)
    # What the other folder's git files say of their working tree holds for that one.
    return replace(found, root=top, is_borrowed=True)


def project_repository(folder: Path, project_id: str) -> Repository | None:
    """The repository around a folder of a project; none for a project of its own that borrows another's."""
    repository = Repository.discover(folder)
    top = find_repository_folder(folder) or folder
    is_apart = repository is not None and not repository.belongs_to(top) and project_id == _apart_id(top)
    return None if is_apart else repository


def has_own_objects(repository: Repository) -> bool:
    """Whether a repository has its objects in its own folder: it borrows none from others, by alternates or links."""
    objects = (repository.common_dir / "objects").resolve()
    return all(one.is_relative_to(repository.common_dir) for one in (objects, *_reached([objects], {})))


def folders_of(repository: Repository | None) -> list[Path]:
    """The folders that git reads for a repository: its working tree, its git folders, and all that they lead to.

    A file named `.git`, a setting, a list of alternates or a link can redirect any of them to another repository.
    """
    if repository is None:
        return []
    own = (repository.root, repository.git_dir, repository.common_dir)
    return list(_reached([repository.git_dir, repository.common_dir], dict.fromkeys(own)))


def _reached(waiting: list[Path], found: dict[Path, None]) -> dict[Path, None]:
    """The folders in `found`, and all that links and alternates below those in `waiting` lead to."""
    left = _MOST_ENTRIES
    while waiting:
        folder = waiting.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        left -= len(entries) + 1
        if left < 0:
            return {_EVERYTHING: None}
        waiting += [Path(one.path) for one in entries if one.is_dir(follow_symlinks=False)]
        led = [Path(one.path).resolve() for one in entries if one.is_symlink()]
        led += _borrowed(folder) if any(one.name == "alternates" for one in entries) else []
        waiting += [one for one in led if one not in found and one != _EVERYTHING]
        found.update(dict.fromkeys(led))
    return found


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
            f"There is no folder {str(path)[:200]!r}.", remedy="Give the path of an existing folder.", field="project"
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
        if os.path.isdir(place) and (found := Repository.discover(place)):  # noqa: PTH112 - of any length
            there = place.resolve()
            if there in (found.root, found.git_dir):
                return found
    return None


def _folder_name(root: Path, *, is_git_folder: bool) -> str:
    """The name of the folder, or of the one around a hidden git folder."""
    shown = root.parent if is_git_folder and root.name.startswith(".") else root
    return shown.name.removesuffix(".git") or str(root)


def _apart_id(root: Path) -> str:
    return _digest(f"\0{root}")


def _digest(identity: str) -> str:
    return hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:_ID_DIGITS]
