"""Whether others can put files into the home of this user: settings, or the address to which hooks send their prompts.

Standard library only, so that a hook can ask too.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

__all__ = ["open_folders", "shut_out_others"]


def open_folders(home: Path) -> list[Path]:
    """The folders of a home into which somebody else can put files.

    Those who share the group of a folder were let in by its owner: volumes of containers are given to processes so.
    The superuser may do anything as it is, so for them all owners are alike.
    """
    if os.name != "posix":
        return []
    own = os.geteuid()
    groups = {os.getegid(), *os.getgroups()}
    found = []
    for folder in (home, home / "hooks"):
        try:
            facts = folder.stat()
        except OSError:
            continue  # it is not there yet, or the one who opens it says why it cannot be used
        shared = facts.st_mode & stat.S_IWGRP and facts.st_gid in groups
        if facts.st_mode & stat.S_IWOTH or not (own == 0 or facts.st_uid in (0, own) or shared):
            found.append(folder)
    return found


def shut_out_others(folder: Path) -> bool:
    """Take the right to write into a folder from everybody else; False where it is not ours, or meant for everybody."""
    facts = folder.stat()
    if facts.st_mode & stat.S_ISVTX or os.geteuid() not in (0, facts.st_uid):
        return False
    folder.chmod(stat.S_IMODE(facts.st_mode) & ~stat.S_IWOTH)
    return True
