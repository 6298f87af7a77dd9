"""Settings: one frozen value, read from `config.toml`, then `CORTEX_*` variables, then arguments.

Later sources win. A setting that cannot be understood is an error that names its source; nothing is
guessed and nothing is silently ignored.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from .errors import ConfigurationError

__all__ = ["Fusion", "Precision", "SecretPolicy", "Settings", "load_settings"]

SecretPolicy = Literal["redact", "block", "allow"]
Precision = Literal["int8", "fp32"]
Fusion = Literal["learned", "weighted", "rrf"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "secrets": get_args(SecretPolicy),
    "precision": get_args(Precision),
    "fusion": get_args(Fusion),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """All that can be set. Field names are the keys of the file and, upper-cased, of the variables."""

    home: Path
    models_dir: Path
    database_url: str | None = None
    secrets: SecretPolicy = "redact"
    precision: Precision = "int8"
    fusion: Fusion = "learned"
    threads: int = 0
    user_id: str | None = None
    agent_id: str | None = None
    org: str = "default"
    max_content_bytes: int = 16_000_000

    @property
    def database(self) -> Path:
        return self.home / "cortex.db"


def load_settings(
    home: str | Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    **overrides: Any,
) -> Settings:
    """Settings for a home: its file, the environment, then the arguments that are not None."""
    variables = os.environ if environment is None else environment
    folder = Path(home or variables.get("CORTEX_HOME") or "~/.cortex").expanduser().absolute()
    settings = Settings(home=folder, models_dir=folder / "models")
    settings = _apply(settings, _from_file(folder / "config.toml"), str(folder / "config.toml"))
    settings = _apply(settings, _from_environment(variables), "the environment")
    return _apply(settings, {k: v for k, v in overrides.items() if v is not None}, "the arguments")


def _from_file(path: Path) -> dict[str, object]:
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        if not os.access(path.parent, os.X_OK):
            # The home itself is closed; opening the store says so better.
            return {}
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}.", remedy="Check its permissions."
        ) from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is not valid TOML: {error}.", remedy="Mend or remove it.") from error


def _from_environment(variables: Mapping[str, str]) -> dict[str, object]:
    names = {f"CORTEX_{field.name.upper()}": field.name for field in fields(Settings) if field.name != "home"}
    return {name: variables[variable] for variable, name in names.items() if variables.get(variable)}


def _apply(settings: Settings, values: Mapping[str, object], source: str) -> Settings:
    known = {field.name for field in fields(Settings)} - {"home"}
    unknown = sorted(set(values) - known)
    if unknown:
        raise ConfigurationError(
            f"Unknown setting {unknown[0]!r} in {source}.", remedy=f"Known: {', '.join(sorted(known))}."
        )
    converted: dict[str, Any] = {name: _converted(name, value, source) for name, value in values.items()}
    return replace(settings, **converted)


def _converted(name: str, value: object, source: str) -> object:
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            raise ConfigurationError(
                f"Setting {name!r} in {source} is {value!r}.", remedy=f"Choose one of {', '.join(_CHOICES[name])}."
            )
        return value
    if name == "models_dir":
        return Path(str(value)).expanduser().absolute()
    if name in ("threads", "max_content_bytes"):
        try:
            number = int(str(value))
        except ValueError:
            number = -1
        if number < 0:
            raise ConfigurationError(f"Setting {name!r} in {source} is {value!r}.", remedy="Give a whole number.")
        return number
    if not isinstance(value, str):
        raise ConfigurationError(f"Setting {name!r} in {source} is {value!r}.", remedy="Give a text.")
    return value
