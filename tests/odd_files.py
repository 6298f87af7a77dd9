"""What can stand in the place of a file: pipes, devices, sockets, folders and files of any size."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["KINDS", "put"]

KINDS = ("pipe", "link to a pipe", "link to a device", "socket", "folder", "huge file")
_HUGE = 3 << 30


def put(path: Path, kind: str, pipe: Path) -> None:
    """Put something of a kind at a path where nothing is; `pipe` is where links to a pipe lead."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        os.mknod(path, 0o140600)
    elif kind == "folder":
        path.mkdir()
    elif kind == "huge file":
        # Without content: it takes no room on the disk.
        with path.open("wb") as file:
            file.truncate(_HUGE)
    else:
        path.symlink_to(pipe if kind == "link to a pipe" else "/dev/zero")
