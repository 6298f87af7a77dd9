"""Facts about a git repository: where it is, what is checked out, which branches exist.

Nothing here writes to a repository or uses the network. A folder without a repository, or a machine without git, is an
ordinary answer (None). A repository that stops answering half-way is an error, because an empty list of branches would
make every memory stale.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import CortexError
from ...core.lazy import regex
from ...core.paths import read_regular
from .runner import find_repository_folder, git_dir_of, run_git

__all__ = ["COMMIT", "RENAMED", "CheckedOut", "Repository", "Survey", "current_name", "decode_output", "read_text"]

# A full commit id, and the reflog message of a renamed branch.
COMMIT = regex(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
RENAMED = regex(r"[Bb]ranch: renamed refs/heads/(?P<old>\S+) to refs/heads/(?P<new>\S+)\Z")

_MOST_TEXT = 64_000_000
_MOST_PACKED = 256_000_000
_HEADS = "refs/heads/"
_REMOTES = "refs/remotes/"
_BRANCH_FILE = regex(r"ref: (refs/heads/[^\x00-\x20\x7f\ufffd]+)\Z")
_WORK_TREE = re.compile(rb"^\s*worktree\s*=([^\r\n]*)$", re.IGNORECASE | re.MULTILINE)
_ADDRESSES = r"^(remote\..*\.url|url\..*\.insteadof)$"
_OBJECT = re.compile(rb"([0-9a-f]{40,64}) (\w+) (\d+)\n")
# Of a history, from its newest commit on.
_MOST_HISTORY = 100_000
_MOST_COMMITS_BYTES = 16_000_000


@dataclass(frozen=True, slots=True)
class CheckedOut:
    """What is checked out: no branch if HEAD is detached, no commit if the branch has none yet."""

    branch: str | None
    commit: str | None


@dataclass(frozen=True, slots=True)
class Repository:
    """One working tree of a repository, or a bare repository.

    `root` is the top of this working tree (the git folder itself when bare), `git_dir` its own git
    folder, `common_dir` the one that all working trees share.
    """

    root: Path
    git_dir: Path
    common_dir: Path
    is_bare: bool

    @classmethod
    def discover(cls, path: Path) -> Repository | None:
        """The repository that contains the path; None without one, or without git."""
        folder = find_repository_folder(path if path.is_dir() else path.parent)
        if folder is None:
            return None
        # Outside a working tree git prints the first three lines and then fails at the fourth.
        wanted = ("--is-bare-repository", "--git-dir", "--git-common-dir", "--show-toplevel")
        answer = run_git(folder, "rev-parse", *wanted)
        if answer is None:
            return None
        lines = [os.fsdecode(line) for line in answer.stdout.splitlines()]
        if len(lines) not in (3, 4):
            return None
        git_dir, common_dir = (folder / line for line in lines[1:3])
        git_dir, common_dir = git_dir.resolve(), common_dir.resolve()
        is_bare = lines[0] == "true"
        # Asked from inside a git folder, its settings may name any working tree.
        tree = Path(lines[3]).resolve() if len(lines) == 4 else None
        root = tree if tree and _leads_to(tree, git_dir) else _root_of(git_dir, common_dir, is_bare)
        return cls(root, git_dir, common_dir, is_bare)

    @property
    def is_linked(self) -> bool:
        """Whether this is a working tree beside the main one."""
        return self.git_dir != self.common_dir

    @property
    def is_shallow(self) -> bool:
        """Whether the history is cut off here."""
        return (self.common_dir / "shallow").exists()

    def head(self) -> CheckedOut:
        """What is checked out here, read from the repository's files where possible."""
        name = self.git_dir / "HEAD"
        text = None if name.is_symlink() else read_text(name)
        if text is not None and COMMIT.match(text):
            return CheckedOut(None, text)
        ref = _branch_ref(text)
        if ref is None:
            return self._ask_head()
        loose = read_text(self.common_dir / ref)
        commit = _packed(self.common_dir / "packed-refs", ref) if loose is None else loose
        if commit is not None and not COMMIT.match(commit):
            return self._ask_head()
        return CheckedOut(ref.removeprefix(_HEADS), commit)

    def belongs_to(self, top: Path) -> bool:
        """Whether the git folder that a folder leads to is that folder's own: git has each of them name the other.

        `top` is where git is asked. Anybody can write a file named `.git`, but only the owner of a git folder what is
        in it.
        """
        if self.is_linked:
            text = read_text(self.git_dir / "gitdir")
            tree = (self.git_dir / text).parent if text else None
            is_known = tree is not None and _is_same(tree, self.root)
            return is_known and _is_same(self.git_dir.parent, self.common_dir / "worktrees") and (
                _is_same(top, self.root) or _is_same(top, self.git_dir)
            )  # fmt: skip
        if _is_same(top, self.git_dir) or _is_same(top, self.git_dir.parent):
            return True
        config = read_regular(self.git_dir / "config", _MOST_TEXT) or b""
        named = [os.fsdecode(value.strip().strip(b'"')) for value in _WORK_TREE.findall(config)]
        return len(named) == 1 and _is_same(self.git_dir / named[0], top)

    def remote_url(self) -> str | None:
        """The address of `origin`, else of the first remote by name, from the repository's own file of settings.

        Addresses are rewritten (`insteadOf`) as the user and the system say, not as the repository does.
        """
        answer = run_git(self.root, "config", "-z", "--show-scope", "--show-origin", "--get-regexp", _ADDRESSES)
        # Status 1 only says that nothing matched.
        if answer is None or answer.returncode not in (0, 1):
            raise self._silent("config")
        urls: dict[str, str] = {}
        rewritten: list[tuple[str, str]] = []
        fields = decode_output(answer.stdout).split("\0")
        for scope, origin, entry in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
            key, _, value = entry.partition("\n")
            name = key.partition(".")[2].rpartition(".")[0]
            if key.startswith("url."):
                rewritten += [(value, name)] if value and scope in ("global", "system") else []
            # A file that the settings include has the same scope.
            elif scope == "local" and value and _is_same(self.root / origin.removeprefix("file:"), self._settings):
                urls.setdefault(name, value)
        url = urls.get("origin") or next((urls[name] for name in sorted(urls)), None)
        fitting = [pair for pair in rewritten if url and url.startswith(pair[0])]
        if url is None or not fitting:
            return url
        start, instead = max(fitting, key=lambda pair: len(pair[0]))
        return instead + url.removeprefix(start)

    @property
    def _settings(self) -> Path:
        return self.common_dir / "config"

    def landmarks(self) -> list[str]:
        """Commits to know a clone of this history by: the oldest one, HEAD, and others at growing distances from it."""
        most = f"--max-count={_MOST_HISTORY}"
        answer = run_git(self.root, "rev-list", "--first-parent", most, "HEAD", "--")
        history = answer.stdout.decode("ascii", "replace").split() if answer and answer.returncode == 0 else []
        places = [0, *(2**power for power in range(17))]
        chosen = [*history[-1:], *(history[place] for place in places if place < len(history))]
        return self.held(dict.fromkeys(chosen))

    def held(self, commits: Iterable[str]) -> list[str]:
        """Those of the commits whose contents are here. git itself does not compare contents with the name."""
        wanted = [commit for commit in commits if COMMIT.match(commit)]
        if not wanted:
            return []
        answer = run_git(
            self.root,
            *("cat-file", "--batch"),
            settings=("core.useReplaceRefs=false",),
            stdin="".join(f"{commit}\n" for commit in wanted).encode(),
            most_bytes=_MOST_COMMITS_BYTES,
        )
        found = set()
        data, at = answer.stdout if answer else b"", 0
        while at < len(data):
            if (head := _OBJECT.match(data, at)) is None:
                at = data.find(b"\n", at) + 1 or len(data)
                continue
            name, kind, size = head.groups()
            content = data[head.end() : head.end() + int(size)]
            at = head.end() + int(size) + 1
            make = hashlib.sha1 if len(name) == 40 else hashlib.sha256
            whole = b"%b %b\0%b" % (kind, size, content)
            if kind == b"commit" and make(whole, usedforsecurity=False).hexdigest() == name.decode():
                found.add(name.decode())
        return [commit for commit in wanted if commit in found]

    def root_commit(self) -> str | None:
        """The oldest commit without a parent that HEAD descends from."""
        answer = run_git(self.root, "rev-list", "--max-parents=0", "HEAD", "--")
        if answer is None or answer.returncode != 0:
            return None
        roots = decode_output(answer.stdout).split()
        return roots[-1] if roots else None

    def branches(self) -> frozenset[str]:
        """Every existing branch name: local, on a remote, or checked out in a working tree."""
        return self.survey().alive

    def default_branch(self) -> str | None:
        """The remote's default branch, or else the conventional one that exists here."""
        return self._default(self.survey())

    def stale(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the names that no longer exist, sorted.

        The default branch is never among them, nor a former name of it.
        """
        survey = self.survey()
        gone = set(names) - survey.alive - {""}
        if not gone:
            return ()
        default = self._default(survey)
        spared = {default, survey.remote_default}
        renamed = self.renamed(survey)
        return tuple(sorted(name for name in gone - spared if current_name(name, renamed) != default))

    def survey(self) -> Survey:
        """All branches with their commits, and what is needed to find the default branch."""
        config = self._config()
        wanted = "--format=%(refname)%00%(objectname)%00%(symref)"
        found = [line.split("\0") for line in self.lines("for-each-ref", wanted, _HEADS, _REMOTES)]
        refs = {ref: target for ref, _, target in found}
        local = {ref.removeprefix(_HEADS): commit for ref, commit, _ in found if ref.startswith(_HEADS)}
        tracked: dict[str, tuple[str, ...]] = {}
        trusted: dict[str, tuple[str, ...]] = {}
        for ref, commit, _ in found:
            for name in config.branch_names(ref) if ref.startswith(_REMOTES) else ():
                tracked[name] = (*tracked.get(name, ()), commit)
                if config.is_trusted(ref):
                    trusted[name] = (*trusted.get(name, ()), commit)
        tracked.pop("HEAD", None)
        trees = self.lines("worktree", "list", "--porcelain")
        marker = f"branch {_HEADS}"
        checked_out = {line.removeprefix(marker) for line in trees if line.startswith(marker)}
        remote_default = None
        if remote := config.preferred_remote:
            ref = f"{_REMOTES}{remote}/HEAD"
            # for-each-ref does not list a HEAD that points to a missing branch.
            target = refs.get(ref) or self._symbolic(ref)
            remote_default = next(iter(config.branch_names(target)), None) if target else None
        return Survey(
            local=local,
            tracked=tracked,
            trusted=trusted,
            alive=frozenset(local.keys() | tracked.keys() | checked_out),
            remote_default=remote_default,
            conventional=(*config.initial_branch, "main", "master"),
            has_bare_main=config.has_bare_main,
        )

    def settled_default(self, survey: Survey) -> str | None:
        """The default branch if there is evidence for it, not merely for lack of another."""
        if survey.remote_default in survey.alive:
            return survey.remote_default
        main_ref = _branch_ref(read_text(self.common_dir / "HEAD"))
        main_head = main_ref.removeprefix(_HEADS) if main_ref else None
        # Nobody works in a bare repository, so its HEAD is its owner's choice of default branch.
        if survey.has_bare_main and main_head in survey.alive:
            return main_head
        for name in survey.conventional:
            if name in survey.alive:
                return name
        renamed = self.renamed(survey)
        for name in survey.conventional:
            if (now := current_name(name, renamed)) in survey.local:
                return now
        return next(iter(survey.alive)) if len(survey.alive) == 1 else None

    def _default(self, survey: Survey) -> str | None:
        if settled := self.settled_default(survey):
            return settled
        if len(survey.local) == 1:
            return next(iter(survey.local))
        main_ref = _branch_ref(read_text(self.common_dir / "HEAD"))
        return main_ref.removeprefix(_HEADS) if main_ref else self.head().branch

    def renamed(self, survey: Survey) -> Mapping[str, str]:
        """Former names of existing local branches, each with the name that followed."""
        if not survey.local:
            return {}
        pattern = "--grep-reflog=^[Bb]ranch: renamed refs/heads/"
        lines = self.lines("log", "--walk-reflogs", "--branches", "--format=%gs", "-E", pattern)
        found = [match for line in lines if (match := RENAMED.match(line))]
        return {match["old"]: match["new"] for match in reversed(found)}

    def _config(self) -> _Config:
        pattern = r"^(remote\..*\.(url|fetch)|init\.defaultbranch|core\.bare)$"
        answer = run_git(self.root, "config", "-z", "--get-regexp", pattern)
        # Status 1 only says that nothing matched.
        if answer is None or answer.returncode not in (0, 1):
            raise self._silent("config")
        remotes: dict[str, list[str]] = {}
        initial: tuple[str, ...] = ()
        bare = False
        for entry in decode_output(answer.stdout).split("\0"):
            key, _, value = entry.partition("\n")
            if key == "init.defaultbranch":
                initial = (value,)
            elif key == "core.bare":
                bare = value.lower() == "true"
            elif key:
                name, _, field = key.removeprefix("remote.").rpartition(".")
                specs = remotes.setdefault(name, [])
                specs += [value] if field == "fetch" else []
        return _Config({name: tuple(specs) for name, specs in remotes.items()}, initial, bare)

    def _ask_head(self) -> CheckedOut:
        symbolic = self._symbolic("HEAD")
        answer = run_git(self.root, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
        commit = decode_output(answer.stdout).strip() if answer else ""
        branch = symbolic.removeprefix(_HEADS) if symbolic and symbolic.startswith(_HEADS) else None
        return CheckedOut(branch, commit or None)

    def _symbolic(self, ref: str) -> str | None:
        answer = run_git(self.root, "symbolic-ref", "--quiet", ref)
        return (decode_output(answer.stdout).strip() or None) if answer else None

    def lines(self, *arguments: str, stdin: Iterable[str] = ()) -> list[str]:
        """The lines that a git command prints for the given input lines; an error if it fails."""
        answer = run_git(self.root, *arguments, stdin="".join(f"{line}\n" for line in stdin).encode())
        if answer is None or answer.returncode != 0:
            raise self._silent(arguments[0])
        return [line for line in decode_output(answer.stdout).split("\n") if line]

    def _silent(self, command: str) -> CortexError:
        return CortexError(
            f"'git {command}' gave no answer for the repository at {self.root}.",
            remedy="Check that git works there, for example with 'git status'.",
        )


@dataclass(frozen=True, slots=True)
class Survey:
    """The references of a repository at one moment.

    `local` and `tracked` give the commits of the branches here and on remotes; `trusted` those of
    remotes whose default branch is the project's own.
    """

    local: Mapping[str, str]
    tracked: Mapping[str, tuple[str, ...]]
    trusted: Mapping[str, tuple[str, ...]]
    alive: frozenset[str]
    remote_default: str | None
    conventional: tuple[str, ...]
    has_bare_main: bool


@dataclass(frozen=True, slots=True)
class _Config:
    """Remotes with their fetch rules, the initial branch name, and whether the main repository is bare."""

    fetch: Mapping[str, tuple[str, ...]]
    initial_branch: tuple[str, ...]
    has_bare_main: bool

    @property
    def preferred_remote(self) -> str | None:
        return "origin" if "origin" in self.fetch else next(iter(sorted(self.fetch)), None)

    def is_trusted(self, ref: str) -> bool:
        """Whether a reference belongs to the project's own remote, or to the one it was forked from."""
        specs = [spec for name in {self.preferred_remote, "upstream"} if name for spec in self.fetch.get(name, ())]
        return any(_source_branch(spec, ref) is not None for spec in specs)

    def branch_names(self, ref: str) -> list[str]:
        """The branch names on the remote that a remote-tracking reference may represent."""
        specs = [spec for specs in self.fetch.values() for spec in specs]
        names = [name for spec in specs if (name := _source_branch(spec, ref)) is not None]
        if names:
            return names
        rest = ref.removeprefix(_REMOTES)
        owners = [name for name in self.fetch if rest.startswith(f"{name}/")]
        if owners:
            return [rest.removeprefix(f"{max(owners, key=len)}/")]
        return [rest.partition("/")[2] or rest]


def _is_same(one: Path, other: Path) -> bool:
    with suppress(OSError, ValueError):
        return one.samefile(other)
    return False


def _branch_ref(text: str | None) -> str | None:
    """The branch that a HEAD file names; None if git has to be asked."""
    match = _BRANCH_FILE.match(text or "")
    # The reftable format leaves a HEAD file that names an impossible branch.
    return match[1] if match and match[1] != f"{_HEADS}.invalid" else None


def _source_branch(spec: str, ref: str) -> str | None:
    """The branch that a fetch rule such as `+refs/heads/*:refs/remotes/origin/*` stores at the ref."""
    source, _, target = spec.lstrip("+").partition(":")
    before, star, after = target.partition("*")
    if not star:
        return source.removeprefix(_HEADS) if target == ref and source.startswith(_HEADS) else None
    if not (ref.startswith(before) and ref.endswith(after) and len(ref) > len(before) + len(after)):
        return None
    name = source.replace("*", ref[len(before) : len(ref) - len(after)])
    return name.removeprefix(_HEADS) if name.startswith(_HEADS) else None


def current_name(name: str, renamed: Mapping[str, str]) -> str:
    """The name that a branch bears after all its renames."""
    seen = {name}
    while (name := renamed.get(name, name)) not in seen:
        seen.add(name)
    return name


def _root_of(git_dir: Path, common_dir: Path, is_bare: bool) -> Path:
    """The working tree of a path inside a git folder; the git folder itself when bare, or if its tree has another."""
    if is_bare:
        return git_dir
    if git_dir != common_dir:
        with suppress(OSError, ValueError, RuntimeError):  # of names that are none, and links in a circle
            tree = (git_dir / (read_text(git_dir / "gitdir") or "")).parent.resolve()
            return tree if _leads_to(tree, git_dir) else git_dir
        return git_dir
    return common_dir.parent if common_dir.name == ".git" else common_dir


def _leads_to(tree: Path, git_dir: Path) -> bool:
    """Whether a working tree has this git folder; what git and its files say of their tree may be another's."""
    own = git_dir_of(tree)
    return own is not None and own.resolve() == git_dir


def decode_output(data: bytes) -> str:
    """What git printed, as text."""
    # A name that is not UTF-8 must still be storable, and the same wherever it is read.
    return data.decode("utf-8", "replace")


def read_text(path: Path) -> str | None:
    """The text of a small file without the space around it; None where there is no such file."""
    data = read_regular(path, _MOST_TEXT)
    return None if data is None else decode_output(data).strip()


def _packed(path: Path, ref: str) -> str | None:
    data = read_regular(path, _MOST_PACKED)
    if data is None:
        return None
    end = data.find(b" " + ref.encode() + b"\n")
    return decode_output(data[data.rfind(b"\n", 0, end) + 1 : end]) if end >= 0 else None
