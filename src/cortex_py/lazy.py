"""Data classes and regular expressions that are made when they are first used.

The standard decorator writes and compiles the text of up to eight methods for each data class while its module is
imported. A command imports a hundred of them and uses a few; making the others took a third of its time. This decorator
gives the same classes, but has the standard one make the methods later. Expressions took a tenth of the time.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

__all__ = ["LaterPattern", "dataclass", "regex"]

# What most classes are used by is made first, the rest only if it is needed as well.
_FIRST = ("__init__", "__dataclass_fields__", "__match_args__")
_UNLESS_WRITTEN = ("__repr__", "__eq__")
_FROZEN = ("__hash__", "__setattr__", "__delattr__", "__getstate__", "__setstate__")
# Classes with other options, or with such fields, are made at once.
_OPTIONS = {"frozen", "kw_only", "slots"}
_SPECIAL = ("InitVar", "KW_ONLY")


class _Later:
    """Stands in a class for one attribute; its first use has it made, together with others."""

    __slots__ = ("_make", "_name")

    def __init__(self, name: str, make: Callable[[], type]) -> None:
        self._name = name
        self._make = make

    def __get__(self, instance: object, owner: type) -> Any:
        made = vars(self._make())[self._name]
        return made.__get__(instance, owner) if hasattr(made, "__get__") else made


def _decorate(cls: type, options: dict[str, Any]) -> type:
    kinds = {name: str(kind) for name, kind in vars(cls).get("__annotations__", {}).items()}
    special = any(one in kind for kind in kinds.values() for one in _SPECIAL)
    if special or not options.get("slots") or options.keys() - _OPTIONS:
        return _standard(cls, options)
    fields = [name for name, kind in kinds.items() if "ClassVar" not in kind]
    written = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    inherited = {name for base in cls.__mro__[1:-1] for name in vars(base).get("__slots__", ())}

    def make(names: Sequence[str], **changed: bool) -> type:
        # A copy, so that two threads that make it at once do not meet.
        made = vars(_standard(_class(cls, {"__doc__": cls.__name__, **written}), options | changed))
        for name in names:
            setattr(slotted, name, made[name])
        return slotted

    later = ["__dataclass_params__", *(name for name in _UNLESS_WRITTEN if name not in written)]
    if options.get("frozen"):
        later += [name for name in _FROZEN if written.get(name) is None]
    first, rest = partial(make, _FIRST, repr=False, eq=False, slots=False), partial(make, later)
    waiting = {name: _Later(name, first) for name in _FIRST} | {name: _Later(name, rest) for name in later}
    namespace = {name: value for name, value in written.items() if name not in fields}
    namespace["__slots__"] = tuple(name for name in fields if name not in inherited)
    if not options.get("frozen"):
        namespace.setdefault("__hash__", None)
    slotted = _class(cls, namespace | waiting)
    return slotted


def _class(like: type, namespace: dict[str, Any]) -> type:
    made: type = type(like)(like.__name__, like.__bases__, namespace)
    made.__qualname__ = like.__qualname__
    return made


def _standard(cls: type, options: dict[str, Any]) -> type:
    import dataclasses

    made: type = dataclasses.dataclass(**options)(cls)
    return made


if TYPE_CHECKING or sys.version_info >= (3, 14):  # annotations are kept in another way there
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """As `dataclasses.dataclass`."""
        return _decorate(cls, options) if cls else lambda one: _decorate(one, options)


class LaterPattern:
    """Stands for a regular expression, and compiles it at its first use."""

    def __init__(self, expression: str, flags: int) -> None:
        self._given = (expression, flags)

    def __getattr__(self, name: str) -> Any:
        # Kept, so that the next use finds it without this detour.
        found = self.__dict__[name] = getattr(self.compiled(), name)
        return found

    def compiled(self) -> re.Pattern[str]:
        return re.compile(*self._given)


if TYPE_CHECKING:

    def regex(expression: str, flags: int = 0) -> re.Pattern[str]: ...

else:

    def regex(expression: str, flags: int = 0) -> LaterPattern:
        """As `re.compile`."""
        return LaterPattern(expression, flags)
