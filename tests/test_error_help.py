"""Every error is explained, under each of its codes, offline."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from click.testing import CliRunner

from cortex_py.core import errors
from cortex_py.core.errors import WIRE_FORMS, CortexError
from cortex_py.surfaces.cli import cli
from cortex_py.surfaces.mcp.reference.error_help import all_errors, find_errors
from reference_pages import ERRORS_FILE, render_errors


def test_every_error_has_a_section() -> None:
    kinds = {name for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, CortexError)}
    assert {one.name for one in all_errors() if one.form} == kinds
    for one in all_errors():
        assert all(text.endswith(".") for text in (one.means, one.why, one.do)), one.name


def test_every_code_leads_to_its_errors() -> None:
    for _, form in WIRE_FORMS:
        for code in (form.cortex, str(form.subcog), form.embedding, str(form.exit_code)):
            assert form in {one.form for one in find_errors(code)}, code
    assert [one.name for one in find_errors("store-busy")] == ["StoreBusy"]


def test_codes_of_the_servers_and_of_results_are_explained() -> None:
    texts = [path.read_text("utf-8") for path in (Path(errors.__file__).parents[1] / "surfaces" / "http").glob("*.py")]
    found = {code for text in texts for code in re.findall(r'\((?:\d+, )?"([A-Z][A-Z_]{5,})"[,)]', text)} - {"DELETE"}
    assert {"UNAUTHORIZED", "DRAINING", "REQUEST_TIMEOUT", "INVALID_PROJECT"} <= found
    for code in (*found, "-32700", "-32600", "-32601", "11", "12", "130"):
        assert find_errors(code), code


def test_the_commands_that_help_names_exist() -> None:
    names = set(cli.list_commands(None))  # type: ignore[arg-type]
    for one in all_errors():
        for words in one.do.split("`cortex ")[1:]:
            assert words.split()[0].strip("`,.;)") in names | {"COMMAND"}, (one.name, words)


def test_help_explains_errors_and_commands() -> None:
    run = CliRunner()
    shown = run.invoke(cli, ["help", "StoreFull"]).output
    assert "The disk is full." in shown
    assert "exit code 7" in shown
    assert "MemoryNotFound" in run.invoke(cli, ["help", "-32604"]).output
    assert "--supersedes" in run.invoke(cli, ["help", "capture"]).output
    assert "TOPIC" in run.invoke(cli, ["help", "branch", "create"]).output
    wrong = run.invoke(cli, ["help", "storefll"])
    assert wrong.exit_code == 2
    assert "Did you mean 'storefull'?" in wrong.output


def test_the_page_is_what_help_says() -> None:
    assert ERRORS_FILE.read_text("utf-8") == render_errors(), "run: make reference"
