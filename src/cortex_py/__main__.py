"""`python -m cortex_py` is the `cortex` command."""

from .cli import main

main()
