"""Stands for a forked `cortex` towards whoever started it; see `forking`. Run by address and words.

It is started for every command of every test, so it imports only what the interpreter has built in: that halves its
price.
"""

import _signal
import _socket
import marshal
import os
import sys


def _number(origin: _socket.socket) -> int:
    line = b""
    while not line.endswith(b"\n"):
        part = origin.recv(1)
        if not part:
            raise EOFError("the process that forks has gone")
        line += part
    return int(line)


def _main() -> int:
    origin = _socket.socket(_socket.AF_UNIX)
    origin.connect(sys.argv[1])
    text = marshal.dumps((sys.argv[2:], os.getcwd(), dict(os.environ)))  # noqa: PTH109
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    head = len(text).to_bytes(8, "big")
    origin.sendmsg([head], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    origin.sendall(text)
    pid = _number(origin)
    for name in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP):
        _signal.signal(name, lambda number, _frame: os.kill(pid, number))
    # The streams are the other's alone now: their ends must be seen when it closes them.
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    return _number(origin)


code = _main()
if code < 0:
    if -code != _signal.SIGKILL:
        _signal.signal(-code, _signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
