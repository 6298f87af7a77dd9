"""The `cortex` command, also as `python -m cortex_py`. A hook is answered before the command line is loaded."""

from __future__ import annotations

import os
import sys

__all__ = ["main"]

# Commands that end at once. The library below NumPy starts a thread for each core, which costs them 30 ms of processor
# time and gains nothing: a search uses one thread.
_SHORT = frozenset({"capture", "delete", "get", "history", "recall", "restore", "status", "update"})
_SERVING = frozenset({"serve", "ui"})
# Loading makes many objects and no garbage; by default the collector looks after each 700.
_OBJECTS_A_COLLECTION = 50_000


def main() -> None:
    words = set(sys.argv[1:])
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"} & words:
        from .parts.hooks.front import run_hook

        # Without the end of the interpreter: the thread that asks may still wait.
        os._exit(run_hook(sys.argv[2:]))
    if words & _SERVING:
        from .surfaces.cli import main as run

        run()
        return

    import gc

    gc.set_threshold(_OBJECTS_A_COLLECTION)
    if words & _SHORT:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from .surfaces.cli import main as run

    code: object = 0
    try:
        run()
    except SystemExit as end:
        code = end.code or 0
    _end(code)


def _end(code: object) -> None:
    """End the process without taking every module apart, which costs a short command a sixth of its time.

    What the interpreter does first is done: other threads end, and what was registered runs.
    """
    import atexit
    import threading

    watched = sys.gettrace() or sys.getprofile() or sys.flags.interactive
    own = threading.current_thread()
    others = any(not one.daemon and one is not own for one in threading.enumerate())
    if not isinstance(code, int) or watched or others:
        sys.exit(code)  # type: ignore[arg-type]  # as it came
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(code)  # the interpreter reports that nobody reads
    atexit._run_exitfuncs()
    os._exit(code)


if __name__ == "__main__":
    main()
