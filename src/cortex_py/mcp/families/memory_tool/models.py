"""What the memory tool takes; it answers with texts."""

from typing import Literal

__all__ = ["Command"]

Command = Literal["view", "create", "str_replace", "insert", "delete", "rename"]
