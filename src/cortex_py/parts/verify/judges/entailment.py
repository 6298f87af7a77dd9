"""An entailment model of the user in ONNX format as a judge of claims. Its folder is as hubs and exporters write it:

    model.onnx  or  onnx/model.onnx    with its external weights, if it has any
    tokenizer.json                     needs the package `tokenizers`
    config.json                        names the labels

The passage is the premise and the claim the hypothesis; a long passage is read in overlapping windows. The passage that
supports the claim best decides, because most are about something else, unless another contradicts the claim more
strongly. Opening a folder reads its descriptions only; the graph is loaded for the first question.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ....core.embedding.backends.model_folder import ModelFolder, drop_surrogates
from ....core.embedding.backends.onnx_folder import GraphSlot, Signature, read_signature
from ....core.embedding.backends.token_batches import group_by_length
from ....core.errors import ConfigurationError, ModelCorrupt, extra_remedy
from ....core.paths import read_whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Encoding, Tokenizer

    from ....core.embedding.backends.runtime import InferenceSession
    from .judge import Question

__all__ = ["EntailmentModel"]

_SETTING = "grounding_model"
_PLACES = ("model.onnx", "onnx/model.onnx")
_IDS, _MASK, _SEGMENTS = "input_ids", "attention_mask", "token_type_ids"
_INT32, _INT64 = 6, 7

_ENTAILED = frozenset({"entailment", "entailed", "entails", "supported", "supports", "support", "consistent"})
_CONTRADICTED = frozenset({"contradiction", "contradicted", "contradicts", "refuted", "refutes", "refute"})
_NEITHER = frozenset({"neutral", "not enough info", "not enough information"})
# The second label of models with two, for passages that contradict and for those that say nothing.
_NOT_ENTAILED = frozenset({"not entailment", "not entailed", "not supported", "unsupported", "inconsistent"})
_KINDS = (_ENTAILED, _CONTRADICTED, _NEITHER, _NOT_ENTAILED)

# Larger batches are no faster on a CPU and take more memory.
_TOKENS_PER_RUN = 1024
_RUNS_AT_ONCE = 2
_FEWEST_TOKENS = 32
_OVERLAP = 64
_MOST_TOKENISER = 64_000_000


@dataclass(frozen=True, slots=True)
class _Labels:
    """Which output is which label; `single` for a model with one output."""

    count: int
    entailed: int
    contradicted: int | None = None

    @property
    def single(self) -> bool:
        return self.count == 1


@dataclass(frozen=True, slots=True)
class _Window:
    """A piece of a passage together with the claim, as tokens."""

    question: int
    ids: Sequence[int]
    segments: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Runtime:
    session: InferenceSession
    tokeniser: Tokenizer


class EntailmentModel:
    """Judges claims with the model in a folder. Safe to share between threads."""

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        """Raises ConfigurationError if the folder lacks a file or has another kind of model."""
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
            raise _configuration_error(
                f"The model in {folder} reads {self._most} tokens.", "Give one that reads passages."
            )
        if not find_spec("tokenizers"):
            raise _configuration_error(
                f"The tokeniser {self._tokeniser} needs the package 'tokenizers'.",
                extra_remedy("onnx-folder"),
            )
        self._threads = threads
        self._loading = threading.Lock()
        self._running = threading.Semaphore(_RUNS_AT_ONCE)
        self._loaded: _Runtime | None = None
        self.name = f"onnx:{folder.resolve().name}"

    @property
    def loaded(self) -> bool:
        return self._loaded is not None

    def judge(self, questions: Sequence[Question]) -> list[float | None]:
        """How likely each claim is by its passages; None if the claim or the passages are empty."""
        answers: list[float | None] = [None] * len(questions)
        asked = [
            number for number, one in enumerate(questions) if one.claim.strip() and any(map(str.strip, one.passages))
        ]
        if not asked:
            return answers
        loaded = self._load()
        windows = [window for number in asked for window in self._windows(number, questions[number], loaded.tokeniser)]
        found: dict[int, list[tuple[float, float]]] = {}
        for window, labels in zip(windows, self._probabilities(windows, loaded.session), strict=True):
            found.setdefault(window.question, []).append(labels)
        for number, results in found.items():
            answers[number] = _combine(results)
        return answers

    def _windows(self, number: int, question: Question, tokeniser: Tokenizer) -> Iterator[_Window]:
        claim = tokeniser.encode(drop_surrogates(question.claim), add_special_tokens=False)
        claim.truncate(self._most // 2)
        most = self._most - len(claim.ids) - tokeniser.num_special_tokens_to_add(is_pair=True)
        if not claim.ids:
            return
        for passage in question.passages:
            whole = tokeniser.encode(drop_surrogates(passage), add_special_tokens=False)
            whole.truncate(most, stride=min(_OVERLAP, most // 4))
            pieces: list[Encoding] = [whole, *whole.overflowing]
            for piece in pieces:
                if piece.ids:
                    # The tokeniser joins the texts, with its special tokens and segments.
                    pair = tokeniser.post_process(piece, claim)
                    yield _Window(number, pair.ids, pair.type_ids)

    def _probabilities(self, windows: Sequence[_Window], session: InferenceSession) -> list[tuple[float, float]]:
        """For each window, how likely it supports the claim and how likely it contradicts it."""
        import numpy as np

        numbers = np.empty((len(windows), self._labels.count), dtype=np.float64)
        # A graph without a mask would read the padding.
        tokens = _TOKENS_PER_RUN if any(slot.name == _MASK for slot in self._inputs) else 1
        for batch in group_by_length([len(window.ids) for window in windows], tokens):
            numbers[batch] = self._run(session, [windows[number] for number in batch])
        if not np.isfinite(numbers).all():
            raise _configuration_error(f"The model {self._graph} returned non-finite numbers.", "Export it again.")
        if self._labels.single:
            # The logistic function by tanh, which does not overflow.
            return [(float(likely), 0.0) for likely in 0.5 + 0.5 * np.tanh(numbers[:, 0] / 2)]
        shares = np.exp(numbers - numbers.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        entailed = shares[:, self._labels.entailed].tolist()
        if self._labels.contradicted is None:
            return [(likely, 0.0) for likely in entailed]
        return list(zip(entailed, shares[:, self._labels.contradicted].tolist(), strict=True))

    def _run(self, session: InferenceSession, batch: Sequence[_Window]) -> NDArray[np.float64]:
        import numpy as np

        shape = (len(batch), max(len(window.ids) for window in batch))
        feeds = {_IDS: np.full(shape, self._padding), _MASK: np.zeros(shape), _SEGMENTS: np.zeros(shape)}
        for row, window in enumerate(batch):
            size = len(window.ids)
            feeds[_IDS][row, :size] = window.ids
            feeds[_SEGMENTS][row, :size] = window.segments
            feeds[_MASK][row, :size] = 1
        feed = {
            slot.name: feeds[slot.name].astype(np.int32 if slot.element == _INT32 else np.int64)
            for slot in self._inputs
        }
        with self._running, _translate_errors(self._graph):
            found: NDArray[np.float64] = session.run([self._output.name], feed)[0].astype(np.float64)
        if found.ndim == 1:
            found = found[:, np.newaxis]
        if found.shape != (len(batch), self._labels.count):
            raise _configuration_error(
                f"The model {self._graph} gave an array of {found.shape} for {len(batch)} pairs of texts and "
                f"{self._labels.count} labels.",
                "Export it for text classification.",
            )
        return found

    def _load(self) -> _Runtime:
        with self._loading:
            if self._loaded is None:
                from ....core.embedding.backends.onnx import open_session

                tokeniser = _read_tokeniser(self._tokeniser)
                with _translate_errors(self._graph):
                    # Exported graphs are not fused; the runtime does that.
                    session = open_session(self._graph, self._threads, rewrite=True)
                self._loaded = _Runtime(session, tokeniser)
            return self._loaded


def _combine(labels: Sequence[tuple[float, float]]) -> float:
    """One answer for all windows: the best support, bounded by a stronger contradiction."""
    best, against = max(one for one, _ in labels), max(other for _, other in labels)
    return min(best, 1 - against) if against > best else best


def _configuration_error(message: str, remedy: str) -> ConfigurationError:
    return ConfigurationError(message, remedy=remedy, field=_SETTING)


def _file(folder: Path, *places: str) -> Path:
    for place in places:
        if (folder / place).is_file():
            return folder / place
    raise _configuration_error(
        f"The folder {folder} holds no {' and no '.join(places)}.",
        f"Name in {_SETTING} the folder of an entailment model with model.onnx, tokenizer.json and config.json.",
    )


def _inputs(signature: Signature, path: Path) -> tuple[GraphSlot, ...]:
    known = "the inputs input_ids, attention_mask and, if needed, token_type_ids"
    for slot in signature.inputs:
        if slot.name not in (_IDS, _MASK, _SEGMENTS) or slot.element not in (_INT32, _INT64):
            raise _configuration_error(
                f"The model {path} asks for an input that Cortex does not know: {slot.name!r}.",
                f"Export it with {known}.",
            )
        if any(size is not None for size in slot.shape):
            raise _configuration_error(
                f"The model {path} takes texts of one size only: {slot.name!r} has the shape {slot.shape}.",
                "Export it with dynamic axes.",
            )
    if _IDS not in [slot.name for slot in signature.inputs]:
        raise _configuration_error(f"The model {path} takes no token ids.", f"Export it with {known}.")
    return signature.inputs


def _output(signature: Signature, path: Path) -> GraphSlot:
    named = [slot for slot in signature.outputs if slot.name == "logits"]
    fitting = named or [slot for slot in signature.outputs if len(slot.shape) in (1, 2)]
    if len(fitting) != 1 or len(fitting[0].shape) > 2:
        raise _configuration_error(
            f"The model {path} does not classify pairs of texts.", "Export it for text classification."
        )
    return fitting[0]


def _labels(config: Mapping[str, object], output: GraphSlot, folder: Path) -> _Labels:
    """Find the labels by their names in config.json; a single output needs none."""
    width = output.shape[-1] if len(output.shape) == 2 else 1 if output.shape else None
    spoken = _names(config.get("id2label")), _names(_invert(config.get("label2id")))
    labels = next((names for names in spoken if _are_known(names)), spoken[0] or spoken[1])
    if _are_known(labels):
        found = _Labels(len(labels), *_places(labels))
    elif (len(labels) == 1 and not any(labels[0] in kind for kind in _KINDS[1:])) or (not labels and width == 1):
        found = _Labels(1, 0)
    else:
        raise _unknown_labels(labels, folder)
    if width not in (None, found.count):
        raise _configuration_error(
            f"The model in {folder} gives {width} numbers for each pair of texts, and its config.json names "
            f"{found.count} labels.",
            "Put the config.json beside it that belongs to it.",
        )
    return found


def _unknown_labels(labels: Sequence[str], folder: Path) -> ConfigurationError:
    what = f"labels that Cortex does not know: {', '.join(labels)[:200]}" if labels else "no labels"
    return _configuration_error(
        f"The config.json in {folder} names {what}.",
        "Name under id2label what each output means: entailment, neutral and contradiction, or supported and "
        "not supported.",
    )


def _names(places: object) -> tuple[str, ...]:
    """The labels in order, normalised; empty if an index is missing."""
    if not isinstance(places, Mapping):
        return ()
    named = {str(place): _normalise(str(name)) for place, name in places.items()}
    names = tuple(named.get(str(place), "") for place in range(len(named)))
    return names if all(names) else ()


def _normalise(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())


def _invert(places: object) -> object:
    return {str(place): name for name, place in places.items()} if isinstance(places, Mapping) else None


def _are_known(names: Sequence[str]) -> bool:
    """Whether all labels are known and exactly one means entailment."""
    kinds = [kind for name in names for kind in _KINDS if name in kind]
    return len(kinds) == len(names) > 1 and kinds.count(_ENTAILED) == 1 and kinds.count(_CONTRADICTED) <= 1


def _places(names: Sequence[str]) -> tuple[int, int | None]:
    entailed = next(place for place, name in enumerate(names) if name in _ENTAILED)
    return entailed, next((place for place, name in enumerate(names) if name in _CONTRADICTED), None)


def _read_tokeniser(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        tokeniser = Tokenizer.from_buffer(read_whole(path, _MOST_TOKENISER))
    except Exception as error:  # the package raises no narrower class
        raise ModelCorrupt(f"The tokeniser {path} cannot be read: {error}") from error
    # Files in circulation have short lengths and fixed padding baked in.
    tokeniser.no_padding()
    tokeniser.no_truncation()
    return tokeniser


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    """Turn errors of the runtime into ours."""
    from ....core.embedding.backends.onnx import runtime_errors

    try:
        yield
    except runtime_errors() as error:
        raise _configuration_error(
            f"onnxruntime cannot run {path}: {error}", "Export or copy the model again."
        ) from error
