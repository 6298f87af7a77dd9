"""`cortex embed`: texts to vectors, for scripts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...core.errors import CortexError, InvalidInput
from .input import read_input
from .options import CommandSession, command, with_session
from .output import say
from .progress import progress_bar

if TYPE_CHECKING:
    from ...core.embedding.service import EmbeddingService

__all__ = ["embed_command"]

# Texts asked for at a time: enough to fill the model's batches, few enough for the bar to move.
_AT_ONCE = 256


@command("embed")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option(
    "--file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Take the texts from here, one a line."
)
@click.option("--whole", is_flag=True, help="The file, or standard input, is one text.")
@click.option("--no-normalize", is_flag=True, help="Give vectors as the model makes them, not of length 1.")
@click.option("--with-text", is_flag=True, help="Repeat each text beside its vector.")
@with_session
def embed_command(
    texts: tuple[str, ...], file: Path | None, whole: bool, no_normalize: bool, with_text: bool, session: CommandSession
) -> None:
    """Print a line of JSON with the vector of each TEXT, or of each line of a file or of standard input."""
    named = _named_texts(texts, file, whole)
    with _service(session.home) as service, progress_bar("Embedding", hidden=len(named) <= _AT_ONCE) as progress:
        # All are checked before any is computed: an answer is whole, or there is none.
        wanted = [_checked(service, name, text) for name, text in named]
        before = "[" if session.as_json else ""
        for row in _rows(service, wanted, not no_normalize, with_text, progress):
            say(before + json.dumps(row, ensure_ascii=False), nl=not session.as_json)
            before = ",\n" if session.as_json else ""
    if session.as_json:
        say("]")


def _named_texts(texts: Sequence[str], file: Path | None, whole: bool) -> list[tuple[str, str]]:
    """The texts in order, each with what to call it in an error."""
    given = bool(texts) and list(texts) != ["-"]
    if given and (file or whole):
        raise InvalidInput("Texts were given as arguments and as input.", remedy="Leave out --file and --whole.")
    if given:
        return [(f"text {number}", text) for number, text in enumerate(texts, 1)]
    source = str(file) if file else "standard input"
    content = _decoded(read_input(file), source)
    if whole:
        return [(source, content)]
    lines = [line.removesuffix("\r") for line in content.removesuffix("\n").split("\n")] if content else []
    if not lines:
        raise InvalidInput(f"There is no text in {source}.", remedy="Give at least one line.")
    return [(f"line {number} of {source}", line) for number, line in enumerate(lines, 1)]


def _decoded(content: bytes, source: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"There is no UTF-8 text in {source}: byte {error.start} is none.", remedy="Convert it to UTF-8."
        ) from error


def _service(home: str | None) -> EmbeddingService:
    from ...core.config import load_settings
    from ...core.embedding.backends.registry import open_backend
    from ...core.embedding.service import EmbeddingService

    settings = load_settings(home)
    # No rate limit: this is a person on their own machine.
    return EmbeddingService(
        backend=open_backend(settings=settings),
        rate_limit=0,
        profile=settings.security_profile,
        max_text_length=settings.max_text_length,
    )


def _checked(service: EmbeddingService, name: str, text: str) -> str:
    try:
        return service.guard.check(text)
    except CortexError as error:
        # Which of the texts it is, only this command knows.
        error.message = name + error.message.removeprefix("text")
        raise


def _rows(
    service: EmbeddingService,
    texts: Sequence[str],
    normalize: bool,
    with_text: bool,
    progress: Callable[[int, int], None] | None,
) -> Iterator[dict[str, object]]:
    backend = service.backend
    for first in range(0, len(texts), _AT_ONCE):
        part = texts[first : first + _AT_ONCE]
        vectors = service.batch(part, normalize=normalize).vectors.tolist()
        for text, vector in zip(part, vectors, strict=True):
            tokens = backend.count_tokens(text)
            row = {"embedding": vector, "tokens": tokens, "truncated": tokens > backend.max_tokens}
            yield {"text": text, **row} if with_text else row
        if progress:
            progress(first + len(part), len(texts))
