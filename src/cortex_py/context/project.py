"""Which project a folder belongs to: the same answer from every clone, working tree and sub-folder.

Identity comes from the git remote, however it is spelled, else from where the project lies. Nothing
here reads or writes the store; `matches_moved` tells the caller, who knows what is stored, whether
a project without a remote has only changed its place.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from ..errors import InvalidInput
from ..paths import expanded
from ..worktree.git import Repository

__all__ = ["ProjectIdentity", "identify", "matches_moved", "normalise_remote"]

_ID_DIGITS = 12
_MAX_HOPS = 8

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>.*)\Z", re.DOTALL)
_SCP = re.compile(r"(?:[^@/\\]*@)?(?P<host>\[[^\]/]+\]|[^:/\\\[\]]{2,}):(?P<path>.*)\Z", re.DOTALL)
_PORT = re.compile(r":[0-9]*\Z")
_QUERY = re.compile(r"[?#].*\Z", re.DOTALL)
_DRIVE = re.compile(r"/?([A-Za-z]):(?=[/\\]|\Z)")
_HELPER = re.compile(r"\A[A-Za-z0-9-]+::")
_NO_PORT = re.compile(r":[^0-9\]]")


@dataclass(frozen=True, slots=True)
class ProjectIdentity:
    """A project as its folder shows it.

    `root` is the main working tree (or the folder of a bare repository, or the plain folder itself);
    `remote` is the normalised address, which cannot hold credentials; `root_commit` is given only
    where there is no remote, to recognise the repository after it was moved.
    """

    id: str
    root: Path
    remote: str | None
    name: str
    root_commit: str | None = None


def identify(path: Path) -> ProjectIdentity:
    """The project that a folder, or the folder of a file, belongs to."""
    place = _existing(path)
    repository = Repository.discover(place)
    if repository is None:
        return ProjectIdentity(_digest(_local(str(place))), place, None, place.name or str(place))
    return _of_repository(repository, _MAX_HOPS)


def matches_moved(identity: ProjectIdentity, *, stored_root: str, stored_root_commit: str | None) -> bool:
    """Whether a project stored without a remote is this one, at a new place.

    It is when nothing is left at the old place, the folder kept its name, and the history begins
    with the same commit (or neither has one). A copy is not a move: its original still exists.
    """
    old = Path(stored_root)
    return (
        identity.remote is None
        and identity.root != old
        and identity.root.name == old.name
        and identity.root_commit == stored_root_commit
        and not old.exists()
    )


def normalise_remote(url: str) -> str:
    """`host/path` for an address on the network, a plain path for a local one.

    Scheme, user, password, port, query, `.git`, doubled and trailing slashes go; the host is in
    lower case. Ports go because one server answers https and ssh on different ones.
    """
    address = _Address.read(url)
    if address.host is None:
        return _local(address.path)
    return f"{address.host}/{_tidy(address.path).strip('/')}".strip("/")


@dataclass(frozen=True, slots=True)
class _Address:
    """A remote taken apart; without a host it lies on this machine."""

    host: str | None
    path: str

    @classmethod
    def read(cls, url: str) -> _Address:
        text = _HELPER.sub("", url.strip())
        if match := _URL.match(text):
            authority, path = match["authority"], match["path"]
            # A password with an unescaped "/" cuts the address short; none of it may be kept.
            if "@" not in authority and "@" in path and _NO_PORT.search(authority):
                authority, slash, path = path.rpartition("@")[2].partition("/")
                path = slash + path
            host = _PORT.sub("", authority.rpartition("@")[2]).lower()
            path = unquote(_QUERY.sub("", path))
            is_file = match["scheme"].lower() == "file" and host in ("", "localhost")
            return cls(None if is_file else host, path)
        if match := _SCP.match(text):
            return cls(match["host"].lower(), match["path"])
        return cls(None, text)


def _existing(path: Path) -> Path:
    try:
        place = expanded(path).resolve(strict=True)
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
        return ProjectIdentity(_digest(_local(str(home))), root, None, name, repository.root_commit())
    address = _Address.read(url)
    if address.host is None:
        source = root / address.path
        remote = _local(str(source))
        # A clone of a clone belongs to what the first one was cloned from.
        origin = _repository_at(source) if hops else None
        if origin is not None and origin.common_dir != common:
            found = _of_repository(origin, hops - 1)
            return ProjectIdentity(found.id, root, found.remote or remote, found.name)
    return ProjectIdentity(_digest(remote), root, remote, remote.rpartition("/")[2] or remote)


def _repository_at(source: Path) -> Repository | None:
    """The repository that lies exactly there, not one around it; git also accepts `x` for `x.git`."""
    for place in (source, source.with_name(f"{source.name}.git")):
        if place.is_dir() and (found := Repository.discover(place)):
            there = place.resolve()
            if there in (found.root, found.git_dir):
                return found
    return None


def _local(path: str) -> str:
    drive = _DRIVE.match(path)
    if drive:
        path = f"{drive[1].lower()}:{path[drive.end() :]}".replace("\\", "/")
    return _tidy(path) or path


def _tidy(path: str) -> str:
    if not path:
        return ""
    clean = posixpath.normpath(re.sub(r"/{2,}", "/", path))
    short = clean.removesuffix(".git").rstrip("/")
    return short or clean


def _folder_name(root: Path, *, is_git_folder: bool) -> str:
    """The folder's own name; a hidden git folder goes by the one around it."""
    shown = root.parent if is_git_folder and root.name.startswith(".") else root
    return shown.name.removesuffix(".git") or str(root)


def _digest(identity: str) -> str:
    return hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:_ID_DIGITS]
