"""The judge that the settings name for claims that the checks leave open, if they name one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..config import Settings
from ..errors import ConfigurationError

if TYPE_CHECKING:
    from ..llm.client import LanguageModel
    from .rejudging import Judge

__all__ = ["open_judge"]


def open_judge(settings: Settings, language_model: Callable[[], LanguageModel | None]) -> Judge | None:
    """The configured judge, or None where the checks alone decide. Nothing is loaded and nothing is sent.

    `language_model` gives the configured one, and is asked for it only where it is to judge.
    """
    if settings.grounding_judge == "onnx":
        return _entailment(settings)
    if settings.grounding_judge == "llm":
        return _model(language_model() if settings.llm_provider else None)
    return None


def _entailment(settings: Settings) -> Judge:
    if settings.grounding_model is None:
        raise ConfigurationError(
            "grounding_judge is onnx and grounding_model is not set.",
            remedy="Set grounding_model to the folder of a model of entailment in ONNX form.",
            field="grounding_model",
        )
    from .entailment import EntailmentModel

    return EntailmentModel(settings.grounding_model, settings.threads or None)


def _model(model: LanguageModel | None) -> Judge:
    if model is None:
        raise ConfigurationError(
            "grounding_judge is llm and no language model is configured.",
            remedy="Set llm_provider and llm_model.",
            field="llm_provider",
        )
    from .model_judge import LanguageModelJudge

    return LanguageModelJudge(model)
