"""No regular expression of a module takes long over any text of 5 KB: none backtracks more than a text is long."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import signal
from collections.abc import Iterator

import cortex_py
from cases import each
from cortex_py.core.lazy import LaterPattern
from hostile_texts import hostile

_CEILING = 0.08  # seconds of CPU for one text: a linear expression takes a millisecond, a quadratic one two hundred
_SIZE = 3_000
_SKIPPED = ("mlx_backend", "__main__", "sentence_transformers_backend")
_PATTERNS = (
    *("open-square", "less-than", "double-quote", "backtick", "blank", "newline", "full-stop", "hyphen", "underscore"),
    *("slash", "equals", "at", "one-lower", "one-upper", "one-digit", "question-blank", "comma-blank", "blank-newline"),
    *("double-curly", "link-middle", "mail-start", "numbered", "word-lower", "dotted", "path-deep", "import"),
    *("blanks-inside", "random-text"),
)


def _modules() -> list[str]:
    found = pkgutil.walk_packages(cortex_py.__path__, "cortex_py.")
    return [one.name for one in found if not one.ispkg and one.name.rpartition(".")[2] not in _SKIPPED]


def _expressions(value: object, depth: int = 0) -> Iterator[re.Pattern[str]]:
    """Compiled expressions for text, those in tables too."""
    if isinstance(value, LaterPattern):
        value = value.compiled()
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif isinstance(value, dict) and depth < 3:
        for one in value.values():
            yield from _expressions(one, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset) and depth < 3 and len(value) < 500:
        for one in value:
            yield from _expressions(one, depth + 1)


def _of(module: str) -> Iterator[tuple[re.Pattern[str], bool]]:
    """The expressions of a module, and whether they are searched for or only matched at one place."""
    loaded = importlib.import_module(module)
    source = inspect.getsource(loaded)
    searched = set(re.findall(r"\b(\w+)\.(?:search|finditer|findall|subn?|split)\(", source))
    for name, value in vars(loaded).items():
        yield from ((one, name in searched) for one in _expressions(value) if not name.startswith("__"))


def _late(*_: object) -> None:
    raise TimeoutError


def _is_slow(expression: re.Pattern[str], text: str, *, searched: bool) -> bool:
    """Whether it takes longer than the ceiling; it is stopped there."""
    before = signal.signal(signal.SIGVTALRM, _late)
    signal.setitimer(signal.ITIMER_VIRTUAL, _CEILING)
    try:
        for _ in expression.finditer(text) if searched else ():
            pass
        expression.match(text)
        expression.fullmatch(text)
    except TimeoutError:
        return True
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return False


@each("module", _modules())
def test_an_expression_reads_any_text_in_linear_time(module: str) -> None:
    texts = {name: hostile(name, _SIZE) for name in _PATTERNS}
    slow = [
        (expression.pattern[:80], name)
        for expression, searched in _of(module)
        for name, text in texts.items()
        if _is_slow(expression, text, searched=searched)
    ]
    assert slow == []
