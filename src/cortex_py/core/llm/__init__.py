"""An optional language model: prompts with marked data in, validated JSON objects out.

`registry` opens the `client` that the settings name; without settings there is none and nothing leaves the machine.
This file imports nothing, so that importing one module stays cheap.
"""

__all__: list[str] = []
