"""Which judge the settings open, and what they lack."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from entailment_folders import write_config, write_graph, write_tokeniser

from cortex_py.core.config import Settings, load_settings
from cortex_py.core.errors import ConfigurationError
from cortex_py.core.llm.client import LanguageModel
from cortex_py.core.llm.registry import open_language_model
from cortex_py.parts.verify.judges.judge import open_judge

from helpers import FakeClock
from ledgers import MemoryLedger

LLM: dict[str, Any] = {"llm_provider": "openai", "llm_model": "m", "llm_url": "http://localhost:11434/v1"}


def never() -> NoReturn:
    raise AssertionError("the language model was asked for")


@pytest.fixture
def model() -> Iterator[LanguageModel]:
    opened = open_language_model(load_settings(**LLM), MemoryLedger(), FakeClock(), environment={})
    assert opened is not None
    yield opened
    opened.close()


def test_the_checks_alone_decide_by_default() -> None:
    settings = load_settings(**LLM)
    assert (settings.grounding_judge, settings.grounding_model) == ("rules", None)
    assert open_judge(settings, never) is None


def test_the_language_model_judges_where_it_is_told_to(model: LanguageModel) -> None:
    judge = open_judge(load_settings(grounding_judge="llm", **LLM), lambda: model)
    assert judge is not None
    assert judge.name == "llm:m"


def test_a_language_model_that_is_not_configured_cannot_judge() -> None:
    settings = load_settings(grounding_judge="llm", llm_model="m")
    with pytest.raises(ConfigurationError, match=r"no language model .*Set llm_provider and llm_model"):
        open_judge(settings, never)


def test_a_folder_is_needed_for_a_model_of_ones_own() -> None:
    with pytest.raises(ConfigurationError, match="Set grounding_model"):
        open_judge(load_settings(grounding_judge="onnx"), never)


def test_the_folder_is_looked_at_when_the_judge_is_opened(tmp_path: Path) -> None:
    settings = load_settings(grounding_judge="onnx", grounding_model=tmp_path / "away")
    with pytest.raises(ConfigurationError, match=r"away holds no model\.onnx"):
        open_judge(settings, never)


def test_a_model_of_ones_own_judges(tmp_path: Path) -> None:
    for write in (write_graph, write_config, write_tokeniser):
        write(tmp_path)
    judge = open_judge(load_settings(grounding_judge="onnx", grounding_model=tmp_path, threads=1), never)
    assert judge is not None
    assert judge.name == f"onnx:{tmp_path.name}"


def _set(home: Path, text: str, **variables: str) -> Settings:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text)
    return load_settings(home, environment=variables)


def test_both_are_set_in_every_place(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    found = _set(home, 'grounding_judge = "onnx"\ngrounding_model = "~/nli"', CORTEX_GROUNDING_JUDGE="llm")
    assert (found.grounding_judge, found.grounding_model) == ("llm", tmp_path / "nli")
    assert _set(home, "", CORTEX_GROUNDING_MODEL="models/nli").grounding_model == tmp_path / "models" / "nli"
    with pytest.raises(ConfigurationError, match="Choose one of rules, onnx, llm"):
        _set(home, 'grounding_judge = "coin"')


def test_opening_loads_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from cortex_py.core.config import load_settings\n"
        "from cortex_py.parts.verify.judges.judge import open_judge\n"
        "open_judge(load_settings(), lambda: None)\n"
        "assert not {'numpy', 'onnxruntime', 'tokenizers', 'httpx2', 'jsonschema'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
