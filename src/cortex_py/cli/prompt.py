"""`cortex prompt …`: saved prompts, and filling them in."""

from __future__ import annotations

import sys

import click

from ..records import JsonValue, Saved
from .options import common, open_cortex
from .saved import add_common_commands, domain_option, given_values, variable_option
from .show import print_json

__all__ = ["prompt_command"]


@click.group("prompt")
def prompt_command() -> None:
    """Saved prompts with {{variable}} placeholders; MCP clients show them as commands.

    Files in .cortex/prompts of a repository are prompts of that project.
    """


add_common_commands(prompt_command, "prompt")


@prompt_command.command("run")
@click.argument("name")
@variable_option
@click.option("--variables", help="Values as a JSON object.")
@domain_option
@click.option("--no-input", is_flag=True, help="Never ask for missing values.")
@common
def run_command(
    name: str,
    pairs: tuple[str, ...],
    variables: str | None,
    domain: str | None,
    no_input: bool,
    home: str | None,
    project: str,
    as_json: bool,
) -> None:
    """Fill a prompt in and print it; on a terminal, values that are missing are asked for."""
    values = given_values(pairs, variables)
    with open_cortex(home, project) as cortex:
        if not no_input and not as_json and sys.stdin.isatty():
            values = _asked(cortex.prompts.get(name, domain=domain), values)
        filled = cortex.prompts.run(name, values, domain=domain)
    if as_json:
        print_json(filled)
        return
    click.echo(filled.content, nl=not filled.content.endswith("\n"))
    for warning in filled.warnings:
        click.echo(warning, err=True)


def _asked(saved: Saved, values: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The values, with those asked for that the prompt cannot do without. Questions go to standard error."""
    asked = dict(values)
    for variable in saved.variables:
        if variable.name in asked or variable.default is not None or not variable.required:
            continue
        question = f"{variable.name} ({variable.description})" if variable.description else variable.name
        kind = click.Choice(variable.choices) if variable.choices else str
        asked[variable.name] = click.prompt(question, type=kind, err=True)
    return asked
