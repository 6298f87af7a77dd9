"""onnxruntime, imported so that it reports to nobody. No other module imports it.

From its import on it would write an identifier of the machine to the person's cache folder and send events to its
maker. It reads the variable that forbids this once, when it is imported.
"""

from __future__ import annotations

import os
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnxruntime import InferenceSession as InferenceSession

__all__ = ["import_onnxruntime", "refuse_telemetry"]

# Cortex sends no telemetry whatever the environment says, so another value does not stay.
_REFUSALS = {"ORT_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


def refuse_telemetry() -> None:
    """To be called before a library that runs models is imported. Processes that this one starts inherit it."""
    for name, value in _REFUSALS.items():
        # Changing the environment beside running threads is not safe on every system, so it happens once.
        if os.environ.get(name) != value:
            os.environ[name] = value


def import_onnxruntime() -> ModuleType:
    refuse_telemetry()
    import onnxruntime

    # For a program that has imported it before, and for builds that report to Windows and read no variable.
    onnxruntime.disable_telemetry_events()
    module: ModuleType = onnxruntime
    return module
