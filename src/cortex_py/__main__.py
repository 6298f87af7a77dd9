"""The `cortex` command, also as `python -m cortex_py`. A hook is answered before the command line is loaded."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"} & set(sys.argv):
        import os

        from .hooks.front import run_hook

        # Without the end of the interpreter: the thread that asks may still wait.
        os._exit(run_hook(sys.argv[2:]))
    from .cli import main as run

    run()


if __name__ == "__main__":
    main()
