"""A repository that has a program in every place where git could run one; each leaves a marker when it runs.

The repository is made first and its settings are planted afterwards, so that making it runs nothing.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from helpers import git

__all__ = ["VARIANTS", "Traps", "make_hostile"]

VARIANTS = ("normal", "worktree", "inside the git folder", "embedded", "clone")

# Settings whose value is a program, and one that makes git use it where another has to.
_PROGRAMS = [
    "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.gitProxy",
    "core.alternateRefsCommand", "gpg.program", "gpg.openpgp.program", "gpg.ssh.program", "gpg.x509.program",
    "gpg.ssh.defaultKeyCommand", "diff.external", "sequence.editor", "credential.helper", "uploadpack.packObjectsHook",
    "interactive.diffFilter", "pager.log", "pager.diff", "pager.status", "filter.plain.clean", "filter.plain.smudge",
    "filter.plain.process", "filter.over.clean", "filter.two-words.smudge", "diff.shown.command", "diff.shown.textconv",
    "merge.joined.driver", "alias.log", "alias.status", "remote.origin.uploadpack", "remote.origin.receivepack",
    "submodule.sub.update", "trailer.seen.command",
]  # fmt: skip
_PLAIN = {
    "core.repositoryFormatVersion": "1", "core.untrackedCache": "true", "log.showSignature": "true",
    "diff.submodule": "log", "diff.trustExitCode": "true", "status.submoduleSummary": "true",
    "submodule.recurse": "true", "filter.plain.required": "true", "extensions.partialClone": "origin",
    "extensions.worktreeConfig": "true", "remote.origin.promisor": "true", "protocol.allow": "always",
    "safe.bareRepository": "all", "include.path": "more.config",
}  # fmt: skip
_HOOKS = [
    "post-checkout", "post-index-change", "fsmonitor-watchman", "reference-transaction", "pre-commit", "post-merge",
]  # fmt: skip
_ATTRIBUTES = (
    "*.plain filter=plain diff=shown merge=joined\n*.over filter=over diff=shown\n*.more filter=more\n"
    "*.tree filter=tree\n*.own filter=own\n"
)
_KINDS = ("plain", "over", "more", "tree", "own")
_SIGNATURE = "-----BEGIN PGP SIGNATURE-----\n\n x\n -----END PGP SIGNATURE-----"


@dataclass(frozen=True, slots=True)
class Traps:
    """A folder of the repository to work in, where its settings are, and where programs leave their markers."""

    folder: Path
    git_dir: Path
    submodule: Path
    markers: Path

    def plant(self) -> None:
        """Write the settings that name programs."""
        self._plant(self.git_dir)
        if self.submodule.is_dir():
            self._plant(self.submodule)

    def _plant(self, git_dir: Path) -> None:
        config = git_dir / "config"
        lines = [config.read_text()]
        values = {name: self.program(name) for name in _PROGRAMS} | _PLAIN
        values["core.hooksPath"] = str(self._hooks())
        values["core.attributesFile"] = str(self._attributes())
        values["remote.origin.url"] = str(self.markers)
        values["filter.over.process"] = self.program("filter.over.process")
        for name, value in values.items():
            section, _, rest = name.partition(".")
            middle, _, key = rest.rpartition(".")
            header = f'[{section} "{middle}"]' if middle else f"[{section}]"
            lines.append(f'{header}\n\t{key} = "{"!" if section in ("alias", "credential") else ""}{value}"')
        config.write_text("\n".join(lines) + "\n")
        (git_dir / "more.config").write_text(f'[filter "more"]\n\tclean = {self.program("filter.more.clean")}\n')
        (git_dir / "config.worktree").write_text(f'[filter "tree"]\n\tclean = {self.program("filter.tree.clean")}\n')
        info = git_dir / "info"
        info.mkdir(exist_ok=True)
        (info / "attributes").write_text(_ATTRIBUTES)

    def program(self, name: str) -> str:
        path = self.markers.parent / "programs" / name.replace(".", "-")
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n: > '{self.markers / name}'\nexec cat\n")
        path.chmod(0o755)
        return str(path)

    def _hooks(self) -> Path:
        folder = self.markers.parent / "hooks"
        folder.mkdir(exist_ok=True)
        for name in _HOOKS:
            shutil.copy(self.program(f"hook-{name}"), folder / name)
        return folder

    def _attributes(self) -> Path:
        path = self.markers.parent / "attributes"
        path.write_text(_ATTRIBUTES)
        return path

    def sprung(self) -> list[str]:
        """The programs that ran."""
        return sorted(one.name for one in self.markers.iterdir())


def make_hostile(top: Path, variant: str) -> Traps:
    """A repository in one of the variants, its traps not yet planted where planting can wait."""
    markers = top / "markers"
    markers.mkdir(parents=True)
    root = top / "repository"
    _repository(root)
    submodule = root / ".git" / "modules" / "sub"
    if variant == "worktree":
        git(root, "worktree", "add", "-q", "-b", "side", str(top / "tree"))
        git(top / "tree", "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
        inner = root / ".git" / "worktrees" / "tree" / "modules" / "sub"
        _touch(top / "tree")
        return Traps(top / "tree", root / ".git", inner, markers)
    if variant in ("normal", "inside the git folder"):
        return Traps(root if variant == "normal" else root / ".git" / "refs", root / ".git", submodule, markers)
    # A repository whose files look like a bare one, with the tree around it for a working tree.
    outer = top / "outer"
    inner = outer / "parts" / "library"
    git(top, "init", "-q", "-b", "main", str(outer))
    shutil.copytree(root / ".git", inner, ignore=shutil.ignore_patterns("hooks", "modules"))
    for kind in _KINDS:
        (inner / f"file.{kind}").write_text("changed\n")
    shutil.copy(root / "app.py", inner)
    traps = Traps(inner, inner, submodule, markers)
    traps.plant()
    config = (inner / "config").read_text().replace("bare = false", "bare = false\n\tworktree = .")
    (inner / "config").write_text(config)
    (outer / "readme.md").write_text("# Outer\n")
    git(outer, "add", "-A")
    git(outer, "commit", "-q", "-m", "a library")
    if variant == "clone":
        git(top, "clone", "-q", str(outer), str(top / "cloned"))
        place = top / "cloned" / "parts" / "library"
        return Traps(place, place, submodule, markers)
    return traps


def _repository(root: Path) -> None:
    library = root.with_name("library")
    for folder in (library, root):
        git(root.parent, "init", "-q", "-b", "main", str(folder))
        for kind in _KINDS:
            (folder / f"file.{kind}").write_text("first\n")
        (folder / "app.py").write_text("def one():\n    return 1\n")
        (folder / "pyproject.toml").write_text('[project]\nname = "app"\ndependencies = ["flask>=2"]\n')
        (folder / ".gitattributes").write_text(_ATTRIBUTES)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "first")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "sub")
    git(root, "commit", "-q", "-m", "a submodule")
    git(root, "branch", "merged")
    git(root, "tag", "-m", "a release", "v1")
    _sign(root)
    _touch(root)


def _sign(root: Path) -> None:
    """Give the newest commit a signature, which nobody needs to be able to check."""
    plain = git(root, "cat-file", "commit", "HEAD")
    head, _, body = plain.partition("\n\n")
    text = f"{head}\ngpgsig {_SIGNATURE}\n\n{body}\n"
    command = ["git", "-C", root, "hash-object", "-t", "commit", "-w", "--stdin"]
    done = subprocess.run(command, input=text, check=True, capture_output=True, text=True)
    git(root, "reset", "-q", "--soft", done.stdout.strip())


def _touch(tree: Path) -> None:
    """Change files, so that git has to look at what is in them."""
    for folder in (tree, tree / "sub"):
        for kind in _KINDS:
            (folder / f"file.{kind}").write_text("later\n")
    (tree / "new.plain").write_text("new\n")
