"""A language model, where one is configured: questions with data in, checked objects out.

Import the modules directly; this file stays empty of code so that nothing is loaded by accident. `open` makes
the `client` that the rest of Cortex asks; without settings there is none, and nothing leaves the machine.
"""

__all__: list[str] = []
