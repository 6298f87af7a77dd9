"""`cortex template …`: saved templates, and rendering them with memories."""

from __future__ import annotations

import click

from ..prompts.templates import FORMATS
from .options import common, open_cortex
from .saved import add_common_commands, domain_option, given_values, variable_option
from .show import print_json

__all__ = ["template_command"]


@click.group("template")
def template_command() -> None:
    """Saved templates that lay memories out: {{#each memories}}, {{#if}}, {{variable}}.

    Files in .cortex/templates of a repository are templates of that project.
    """


add_common_commands(template_command, "template")


@template_command.command("render")
@click.argument("name")
@click.option("-q", "--query", help="Search that fills {{memories}}; without one, the newest.")
@click.option("-f", "--filter", default="", help="Filter, such as ns:decisions since:7d.")
@click.option("-l", "--limit", type=int, help="Most memories (default 10, without a query 50).")
@click.option("--format", type=click.Choice(FORMATS), default="markdown", show_default=True)
@variable_option
@click.option("--variables", help="Values as a JSON object.")
@domain_option
@common
def render_command(
    name: str,
    query: str | None,
    filter: str,
    limit: int | None,
    format: str,
    pairs: tuple[str, ...],
    variables: str | None,
    domain: str | None,
    home: str | None,
    project: str,
    as_json: bool,
) -> None:
    """Render a template and print the output."""
    values = given_values(pairs, variables)
    with open_cortex(home, project) as cortex:
        made = cortex.templates.render(
            name, query=query, limit=limit, filter=filter, format=format, variables=values, domain=domain
        )
    if as_json:
        print_json(made)
        return
    click.echo(made.output, nl=not made.output.endswith("\n"))
    for warning in made.warnings:
        click.echo(warning, err=True)
