"""Settings are declared once: the variables, the parsing and the page follow from the declaration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cases import each
from cortex_py.core.config import Setting, declared_settings, load_settings
from cortex_py.core.errors import ConfigurationError
from reference_pages import SETTINGS_FILE, render_settings

ROOT = Path(__file__).parents[2]
SETTINGS = declared_settings()
SECRETS = {
    *(
        "token",
        "database_url",
        "database_read_url",
        "database_direct_url",
        "embedding_api_key",
        "llm_api_key",
        "license_key",
    ),
    *("license_key", "passphrase", "home_passphrase"),
}

# A value that the kind of a setting takes as a text, what becomes of it, and one that it refuses.
GIVEN: dict[Any, tuple[str, object, object]] = {
    bool: ("yes", True, "perhaps"),
    int: ("7", 7, "seven"),
    str: ("a text", "a text", 7),
    Path: ("/somewhere", Path("/somewhere"), None),
    tuple[str, ...]: ("a, b", ("a", "b"), 7),
    tuple[Path, ...]: ("/a,/b", (Path("/a"), Path("/b")), 7),
}


def test_the_page_shows_the_declarations() -> None:
    page = (ROOT / SETTINGS_FILE).read_text("utf-8")
    assert render_settings(page) == page, "run: make reference"


def test_secrets_are_marked() -> None:
    assert {one.name for one in SETTINGS.values() if one.secret} == SECRETS


@each("setting", SETTINGS.values(), ids=lambda one: one.name)
def test_a_setting_is_explained_and_parsed_by_its_type(setting: Setting, tmp_path: Path) -> None:
    assert setting.help
    assert setting.variables[0] == f"CORTEX_{setting.name.upper()}"
    if setting.kind in GIVEN:
        text, expected, refused = GIVEN[setting.kind]
    else:
        text = expected = setting.kind.__args__[-1]
        refused = "none of them"
    assert setting.parse(text, "a test") == expected
    for variable in setting.variables:
        settings = load_settings(tmp_path, environment={variable: text})
        given = settings.tool_bounds[0] if setting.name not in type(settings).__slots__ else settings
        assert getattr(given, setting.name) == expected
    if refused is not None:
        with pytest.raises(ConfigurationError) as caught:
            setting.parse(refused, "a test")
        assert setting.name in str(caught.value)
        assert "a test" in str(caught.value)
        assert not setting.secret or repr(refused) not in str(caught.value)


@each("setting", [one for one in SETTINGS.values() if one.minimum], ids=lambda one: one.name)
def test_a_number_below_its_minimum_is_refused(setting: Setting) -> None:
    with pytest.raises(ConfigurationError, match="1 or more"):
        setting.parse("0", "a test")
