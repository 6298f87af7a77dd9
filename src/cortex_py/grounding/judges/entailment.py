"""A user's own model of entailment in ONNX form as the judge of claims, from a folder as hubs and exporters write it:

    model.onnx  or  onnx/model.onnx    with its external weights, if it has any
    tokenizer.json                     needs the package `tokenizers`
    config.json                        names the labels

The passage is the premise and the claim the hypothesis; a passage that is too long is read in windows that overlap.
A claim is as likely as the passage that bears it out best makes it, for most passages are about something else. Where
another contradicts it with more force than that, the claim is no likelier than this one leaves it. Opening a folder
reads what its files say; the graph is loaded for the first question.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..embedding.batches import batches
from ..embedding.model_folder import ModelFolder, encodable
from ..embedding.onnx_signature import Signature, Slot, read_signature
from ..errors import ConfigurationError, ModelCorrupt

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime
    from numpy.typing import NDArray
    from tokenizers import Encoding, Tokenizer

    from .rejudging import Question

__all__ = ["EntailmentModel"]

_SETTING = "grounding_model"
_PLACES = ("model.onnx", "onnx/model.onnx")
_IDS, _MASK, _SEGMENTS = "input_ids", "attention_mask", "token_type_ids"
_INT32, _INT64 = 6, 7

_ENTAILED = frozenset({"entailment", "entailed", "entails", "supported", "supports", "support", "consistent"})
_CONTRADICTED = frozenset({"contradiction", "contradicted", "contradicts", "refuted", "refutes", "refute"})
_NEITHER = frozenset({"neutral", "not enough info", "not enough information"})
# What models with two labels call the rest: passages that contradict and passages that say nothing.
_NOT_ENTAILED = frozenset({"not entailment", "not entailed", "not supported", "unsupported", "inconsistent"})
_KINDS = (_ENTAILED, _CONTRADICTED, _NEITHER, _NOT_ENTAILED)

# Larger runs are no faster on a processor and take more memory.
_TOKENS_PER_RUN = 1024
_RUNS_AT_ONCE = 2
_FEWEST_TOKENS = 32
_OVERLAP = 64


@dataclass(frozen=True, slots=True)
class _Labels:
    """Which of the numbers for a pair tells what; `single` is one number for the claim alone."""

    count: int
    entailed: int
    contradicted: int | None = None

    @property
    def single(self) -> bool:
        return self.count == 1


@dataclass(frozen=True, slots=True)
class _Window:
    """A piece of a passage with the claim of a question, as the model reads them."""

    question: int
    ids: Sequence[int]
    segments: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Loaded:
    session: onnxruntime.InferenceSession
    tokeniser: Tokenizer


class EntailmentModel:
    """Judges claims with the model in a folder. Safe to share between threads."""

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        """Raises ConfigurationError where the folder lacks a file or holds another kind of model."""
        self._graph = _file(folder, *_PLACES)
        self._tokeniser = _file(folder, "tokenizer.json")
        _file(folder, "config.json")
        described = ModelFolder(folder)
        signature = read_signature(self._graph)
        for name in signature.external:
            _file(self._graph.parent, name)
        self._inputs = _inputs(signature, self._graph)
        self._output = _output(signature, self._graph)
        self._labels = _labels(described.config, self._output, folder)
        padding = described.config.get("pad_token_id")
        self._padding = padding if isinstance(padding, int) else 0
        self._most = described.max_tokens
        if self._most < _FEWEST_TOKENS:
            raise _wrong(f"The model in {folder} reads {self._most} tokens.", "Give one that reads passages.")
        if not find_spec("tokenizers"):
            raise _wrong(
                f"The tokeniser {self._tokeniser} needs the package 'tokenizers'.",
                "Install it: pip install 'cortex-py[onnx-folder]'.",
            )
        self._threads = threads
        self._loading = threading.Lock()
        self._running = threading.Semaphore(_RUNS_AT_ONCE)
        self._loaded: _Loaded | None = None
        self.name = f"onnx:{folder.resolve().name}"

    @property
    def loaded(self) -> bool:
        return self._loaded is not None

    def judge(self, questions: Sequence[Question]) -> list[float | None]:
        """How likely each claim is by its passages; None for a question without words on either side."""
        answers: list[float | None] = [None] * len(questions)
        asked = [
            number for number, one in enumerate(questions) if one.claim.strip() and any(map(str.strip, one.passages))
        ]
        if not asked:
            return answers
        loaded = self._load()
        windows = [window for number in asked for window in self._windows(number, questions[number], loaded.tokeniser)]
        found: dict[int, list[tuple[float, float]]] = {}
        for window, told in zip(windows, self._told(windows, loaded.session), strict=True):
            found.setdefault(window.question, []).append(told)
        for number, all_told in found.items():
            answers[number] = _weighed(all_told)
        return answers

    def _windows(self, number: int, question: Question, tokeniser: Tokenizer) -> Iterator[_Window]:
        claim = tokeniser.encode(encodable(question.claim), add_special_tokens=False)
        claim.truncate(self._most // 2)
        room = self._most - len(claim.ids) - tokeniser.num_special_tokens_to_add(is_pair=True)
        if not claim.ids:
            return
        for passage in question.passages:
            whole = tokeniser.encode(encodable(passage), add_special_tokens=False)
            whole.truncate(room, stride=min(_OVERLAP, room // 4))
            pieces: list[Encoding] = [whole, *whole.overflowing]
            for piece in pieces:
                if piece.ids:
                    # The tokeniser's own way to put two texts together, with marks and segments.
                    pair = tokeniser.post_process(piece, claim)
                    yield _Window(number, pair.ids, pair.type_ids)

    def _told(self, windows: Sequence[_Window], session: onnxruntime.InferenceSession) -> list[tuple[float, float]]:
        """For each window how likely it bears the claim out, and how likely it contradicts it."""
        import numpy as np

        numbers = np.empty((len(windows), self._labels.count), dtype=np.float64)
        # A graph without a mask would read the padding.
        tokens = _TOKENS_PER_RUN if any(slot.name == _MASK for slot in self._inputs) else 1
        for batch in batches([len(window.ids) for window in windows], tokens):
            numbers[batch] = self._run(session, [windows[number] for number in batch])
        if not np.isfinite(numbers).all():
            raise _wrong(f"The model {self._graph} gave numbers that are not finite.", "Export it anew.")
        if self._labels.single:
            # By the half angle, which no number is too large for.
            return [(float(likely), 0.0) for likely in 0.5 + 0.5 * np.tanh(numbers[:, 0] / 2)]
        shares = np.exp(numbers - numbers.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        entailed = shares[:, self._labels.entailed].tolist()
        if self._labels.contradicted is None:
            return [(likely, 0.0) for likely in entailed]
        return list(zip(entailed, shares[:, self._labels.contradicted].tolist(), strict=True))

    def _run(self, session: onnxruntime.InferenceSession, batch: Sequence[_Window]) -> NDArray[np.float64]:
        import numpy as np

        shape = (len(batch), max(len(window.ids) for window in batch))
        given = {_IDS: np.full(shape, self._padding), _MASK: np.zeros(shape), _SEGMENTS: np.zeros(shape)}
        for row, window in enumerate(batch):
            size = len(window.ids)
            given[_IDS][row, :size] = window.ids
            given[_SEGMENTS][row, :size] = window.segments
            given[_MASK][row, :size] = 1
        feed = {
            slot.name: given[slot.name].astype(np.int32 if slot.element == _INT32 else np.int64)
            for slot in self._inputs
        }
        with self._running, _faults(self._graph):
            found: NDArray[np.float64] = session.run([self._output.name], feed)[0].astype(np.float64)
        if found.ndim == 1:
            found = found[:, np.newaxis]
        if found.shape != (len(batch), self._labels.count):
            raise _wrong(
                f"The model {self._graph} gave an array of {found.shape} for {len(batch)} pairs of texts and "
                f"{self._labels.count} labels.",
                "Export it for text classification.",
            )
        return found

    def _load(self) -> _Loaded:
        with self._loading:
            if self._loaded is None:
                from ..embedding.onnx_backend import open_session

                tokeniser = _read_tokeniser(self._tokeniser)
                with _faults(self._graph):
                    # Exported graphs are not fused; the runtime does that.
                    session = open_session(self._graph, self._threads, rewrite=True)
                self._loaded = _Loaded(session, tokeniser)
            return self._loaded


def _weighed(told: Sequence[tuple[float, float]]) -> float:
    """One answer of several passages: the best, bounded by a contradiction that is stronger than it."""
    best, against = max(one for one, _ in told), max(other for _, other in told)
    return min(best, 1 - against) if against > best else best


def _wrong(message: str, remedy: str) -> ConfigurationError:
    return ConfigurationError(message, remedy=remedy, field=_SETTING)


def _file(folder: Path, *places: str) -> Path:
    for place in places:
        if (folder / place).is_file():
            return folder / place
    raise _wrong(
        f"The folder {folder} holds no {' and no '.join(places)}.",
        f"Name in {_SETTING} the folder of a model of entailment with model.onnx, tokenizer.json and config.json.",
    )


def _inputs(signature: Signature, path: Path) -> tuple[Slot, ...]:
    known = "the inputs input_ids, attention_mask and, if needed, token_type_ids"
    for slot in signature.inputs:
        if slot.name not in (_IDS, _MASK, _SEGMENTS) or slot.element not in (_INT32, _INT64):
            raise _wrong(
                f"The model {path} asks for an input that Cortex does not know: {slot.name!r}.",
                f"Export it with {known}.",
            )
        if any(size is not None for size in slot.shape):
            raise _wrong(
                f"The model {path} takes texts of one size only: {slot.name!r} has the shape {slot.shape}.",
                "Export it with dynamic axes.",
            )
    if _IDS not in [slot.name for slot in signature.inputs]:
        raise _wrong(f"The model {path} takes no token ids.", f"Export it with {known}.")
    return signature.inputs


def _output(signature: Signature, path: Path) -> Slot:
    named = [slot for slot in signature.outputs if slot.name == "logits"]
    fitting = named or [slot for slot in signature.outputs if len(slot.shape) in (1, 2)]
    if len(fitting) != 1 or len(fitting[0].shape) > 2:
        raise _wrong(f"The model {path} does not classify pairs of texts.", "Export it for text classification.")
    return fitting[0]


def _labels(config: Mapping[str, object], output: Slot, folder: Path) -> _Labels:
    """By the names that config.json gives them; a single number needs none."""
    width = output.shape[-1] if len(output.shape) == 2 else 1 if output.shape else None
    spoken = _names(config.get("id2label")), _names(_turned(config.get("label2id")))
    told = next((names for names in spoken if _telling(names)), spoken[0] or spoken[1])
    if _telling(told):
        found = _Labels(len(told), *_places(told))
    elif (len(told) == 1 and not any(told[0] in kind for kind in _KINDS[1:])) or (not told and width == 1):
        found = _Labels(1, 0)
    else:
        raise _unnamed(told, folder)
    if width not in (None, found.count):
        raise _wrong(
            f"The model in {folder} gives {width} numbers for each pair of texts, and its config.json names "
            f"{found.count} labels.",
            "Put the config.json beside it that belongs to it.",
        )
    return found


def _unnamed(told: Sequence[str], folder: Path) -> ConfigurationError:
    what = f"labels that Cortex does not know: {', '.join(told)[:200]}" if told else "no labels"
    return _wrong(
        f"The config.json in {folder} names {what}.",
        "Name under id2label what each number tells: entailment, neutral and contradiction, or supported and "
        "not supported.",
    )


def _names(places: object) -> tuple[str, ...]:
    """Labels in their order, in plain words; none where places are left out."""
    if not isinstance(places, Mapping):
        return ()
    named = {str(place): _plain(str(name)) for place, name in places.items()}
    names = tuple(named.get(str(place), "") for place in range(len(named)))
    return names if all(names) else ()


def _plain(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())


def _turned(places: object) -> object:
    return {str(place): name for name, place in places.items()} if isinstance(places, Mapping) else None


def _telling(names: Sequence[str]) -> bool:
    """Whether names tell which number is for a claim, and what the others are."""
    kinds = [kind for name in names for kind in _KINDS if name in kind]
    return len(kinds) == len(names) > 1 and kinds.count(_ENTAILED) == 1 and kinds.count(_CONTRADICTED) <= 1


def _places(names: Sequence[str]) -> tuple[int, int | None]:
    entailed = next(place for place, name in enumerate(names) if name in _ENTAILED)
    return entailed, next((place for place, name in enumerate(names) if name in _CONTRADICTED), None)


def _read_tokeniser(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        tokeniser = Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises no narrower class
        raise ModelCorrupt(f"The tokeniser {path} cannot be read: {error}") from error
    # Files in circulation have short lengths and fixed padding baked in.
    tokeniser.no_padding()
    tokeniser.no_truncation()
    return tokeniser


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    """What the runtime says against a graph or its input, in our own words."""
    from ..embedding.onnx_backend import runtime_errors

    try:
        yield
    except runtime_errors() as error:
        raise _wrong(f"onnxruntime cannot run {path}: {error}", "Export or copy the model again.") from error
