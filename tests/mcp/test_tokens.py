"""What a model reads about the tools before it has done anything is short, counted with a real tokenizer."""

import json
import warnings
from collections.abc import Callable

import pytest

from cortex_py import Cortex
from cortex_py.surfaces.mcp.help_pages import INSTRUCTIONS
from cortex_py.surfaces.mcp.registry import TOOLS
from cortex_py.surfaces.mcp.server import build_server

from clients import connected
from stub_backend import StubBackend

CORE_MOST = 2_000
ALL_MOST = 4_300
INSTRUCTIONS_MOST = 2_000

Count = Callable[[str], int]


@pytest.fixture(scope="module")
def tokens() -> Count:
    with warnings.catch_warnings():
        # The package opens its own data in a way that is going out of use.
        warnings.simplefilter("ignore", DeprecationWarning)
        import bpe_openai

        encoding = bpe_openai.get_encoding("o200k_base")
    return lambda text: len(encoding.encode_ordinary(text))


@pytest.fixture(scope="module")
def definitions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What clients put before the model, by tool."""
    home, project = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("project")
    with (
        Cortex.open(home, project=project, backend=StubBackend()) as cortex,
        connected(build_server(cortex), "auto") as caller,
    ):
        tools = caller.portal.call(caller.client.list_tools)
    shown = [{"name": t.name, "description": t.description, "inputSchema": t.input_schema} for t in tools]
    return {
        tool.name: json.dumps(one, ensure_ascii=False, separators=(",", ":"))
        for tool, one in zip(tools, shown, strict=True)
    }


@pytest.fixture(scope="module")
def counts(definitions: dict[str, str], tokens: Count) -> dict[str, int]:
    return {name: tokens(text) for name, text in definitions.items()}


def test_the_tokenizer_counts(tokens: Count) -> None:
    assert tokens("hello world") == 2
    assert tokens("antidisestablishmentarianism") == 6
    assert tokens('{"type":"object"}') == 5


def test_all_tools_are_counted(definitions: dict[str, str]) -> None:
    assert list(definitions) == [spec.name for spec in TOOLS]
    assert all('"additionalProperties":false' in text for text in definitions.values())


def test_the_core_toolset_is_small(counts: dict[str, int]) -> None:
    core = {spec.name: counts[spec.name] for spec in TOOLS if "core" in spec.toolsets}
    assert 0 < sum(core.values()) <= CORE_MOST, f"{sum(core.values())} tokens: {core}"


def test_all_tools_together_are_short(counts: dict[str, int]) -> None:
    assert sum(counts.values()) <= ALL_MOST, f"{sum(counts.values())} tokens: {counts}"


def test_the_instructions_fit_where_clients_cut_them(tokens: Count) -> None:
    told = f"{len(INSTRUCTIONS)} characters, {len(INSTRUCTIONS.encode())} bytes, {tokens(INSTRUCTIONS)} tokens"
    assert len(INSTRUCTIONS) <= INSTRUCTIONS_MOST, told
    assert len(INSTRUCTIONS.encode()) <= INSTRUCTIONS_MOST, told


def test_a_description_fits_where_clients_cut_it() -> None:
    lengths = {spec.name: len(spec.description.encode()) for spec in TOOLS}
    assert max(lengths.values()) <= 2_000, lengths
