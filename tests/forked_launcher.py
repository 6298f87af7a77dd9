"""Stands for a forked `cortex` towards whoever started it; see `forking`. Run by address and words."""

import json
import os
import signal
import socket
import sys


def _main() -> int:
    with socket.socket(socket.AF_UNIX) as origin:
        origin.connect(sys.argv[1])
        text = json.dumps({"words": sys.argv[2:], "folder": os.getcwd(), "environment": dict(os.environ)}).encode()  # noqa: PTH109
        socket.send_fds(origin, [len(text).to_bytes(8, "big")], [0, 1, 2])
        origin.sendall(text)
        with origin.makefile("rb") as told:
            pid = int(told.readline())
            for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(name, lambda number, _frame: os.kill(pid, number))
            # The streams are the other's alone now: their ends must be seen when it closes them.
            nothing = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(nothing, number)
            return int(told.readline())


code = _main()
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
