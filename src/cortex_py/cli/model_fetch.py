"""Fetching all-MiniLM-L6-v2 for the first command that needs it, where the settings choose that model."""

from __future__ import annotations

import sys

from ..config import load_settings
from ..errors import ModelInstallFailed
from .options import CommandSession
from .output import note
from .progress import progress_bar

__all__ = ["fetch_model_once"]


def fetch_model_once(session: CommandSession) -> bool:
    """Install the model if it is missing and may be fetched; whether that was done.

    If it cannot be fetched, commands work with words only, and a day passes before the next attempt.
    """
    settings = load_settings(session.home)
    if settings.embedding_backend != "onnx" or not settings.fetch_model:
        return False
    from ..embedding.backends.registry import onnx_model
    from ..embedding.install.model_files import RECALL

    if onnx_model(settings) == RECALL:
        return False
    if any(settings.models_dir.glob(f"*/{settings.precision}.json")):
        return False
    from ..embedding.install.model_files import fetch_missing_model

    if not sys.stderr.isatty():
        note("Fetching the embedding model, 84 MB, once.")
    try:
        with progress_bar("Fetching the embedding model, once: bytes", hidden=session.as_json) as progress:
            return fetch_missing_model(settings.models_dir, settings.precision, progress)
    except ModelInstallFailed as error:
        note(f"Working with words only. {error}")
        return False
