"""`cortex prompt …` and `cortex template …`: saved texts, filling them in and rendering them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ....core.errors import InvalidInput, storage_error
from ....core.records import DOMAINS, JsonValue, Saved, SavedKind
from ....parts.prompts.checks import OF_FOLDER
from ....parts.prompts.files import FORMATS as FILE_FORMATS
from ....parts.prompts.templates import FORMATS
from ..input import confirm, read_text
from ..options import CommandSession, group, with_session
from ..output import counted, note, page, print_json, print_table, print_warnings, say, visible

if TYPE_CHECKING:
    from ....app import Cortex
    from ....parts.prompts.saved_texts import SavedTexts

__all__ = ["prompt_command", "template_command"]

_SUFFIXES = {"markdown": "md", "yaml": "yaml", "json": "json"}

_domain_option = click.option("--domain", type=click.Choice((*DOMAINS, "builtin")), help="Only in this domain.")
_variable_option = click.option(
    "-v", "--var", "pairs", multiple=True, metavar="NAME=VALUE", help="A value to fill in; repeat for several."
)

_variables_option = click.option(
    "--variables", "given", multiple=True, help="Values as a JSON object, or NAME=VALUE; repeat for several."
)


def _given_values(pairs: Sequence[str], given: Sequence[str]) -> dict[str, JsonValue]:
    """Values from `--var` and `--variables`, of which the latter may also be a JSON object."""
    values: dict[str, JsonValue] = {}
    for one in given:
        if not one.lstrip().startswith(("{", "[")):
            pairs = (*pairs, one)
            continue
        read = _read_json(one)
        if not isinstance(read, dict):
            raise InvalidInput("--variables is not a JSON object.", field="variables")
        values |= read
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign:
            raise InvalidInput(f"{pair[:40]!r} is not NAME=VALUE.", field="variables")
        values[name.strip()] = value
    return values


def _add_common_commands(group: click.Group, kind: SavedKind) -> None:  # noqa: C901  # seven small commands
    """Give a group save, list, get, versions, delete, import and export."""

    def texts(cortex: Cortex) -> SavedTexts:
        return cortex.prompts if kind == "prompt" else cortex.templates

    @group.command("save")
    @click.argument("name")
    @click.argument("content", required=False)
    @click.option("--description", help="What it is for.")
    @click.option("--domain", type=click.Choice(DOMAINS), default="project", show_default=True)
    @click.option("-t", "--tag", "tags", multiple=True, help="Repeat for several.")
    @click.option("--variables", help="Declarations as JSON: name, description, default, required, choices.")
    @with_session
    def save_command(
        name: str,
        content: str | None,
        description: str | None,
        domain: str,
        tags: tuple[str, ...],
        variables: str | None,
        session: CommandSession,
    ) -> None:
        """Save CONTENT, or standard input, under NAME; what was there stays as an older version."""
        declared = None if variables is None else _read_json(variables)
        with session.open() as cortex:
            stored = texts(cortex).save(
                name, read_text(content), description=description, domain=domain, tags=tags, variables=declared
            )
        if session.shown_as_json(stored):
            return
        say(f"{stored.saved.name}, version {stored.saved.version} ({stored.saved.domain})")
        print_warnings(stored.warnings)

    @group.command("list")
    @_domain_option
    @click.option("-t", "--tag", "tags", multiple=True, help="Only with this tag; repeat for several, all must fit.")
    @click.option("-l", "--limit", type=int, default=20, show_default=True)
    @click.option("--offset", type=int, default=0)
    @with_session
    def list_command(
        domain: str | None, tags: tuple[str, ...], limit: int, offset: int, session: CommandSession
    ) -> None:
        """List by name; of several with one name, the first is used."""
        with session.open() as cortex:
            found = texts(cortex).list(domain=domain, tags=tags, limit=limit, offset=offset)
        if session.shown_as_json(found):
            return
        rows = [
            (
                one.saved.name,
                one.saved.path or one.saved.domain,
                "file" if one.saved.path else str(one.saved.version or "-"),
                ", ".join(variable.name for variable in one.saved.variables),
                f"shadowed by {one.shadowed_by}" if one.shadowed_by else one.saved.description or "",
            )
            for one in found.items
        ]
        print_table(
            ("name", "where", "version", "variables", "description"), rows, wide=(3, 4), empty=f"No {kind} is here yet."
        )
        if found.items:
            note(f"{len(found.items)} of {counted(found.total, kind)}")
        print_warnings(found.problems)

    @group.command("get")
    @click.argument("name")
    @_domain_option
    @click.option("--version", type=int, help="As it was at this version.")
    @with_session
    def get_command(name: str, domain: str | None, version: int | None, session: CommandSession) -> None:
        """Print the content, as it was saved."""
        with session.open() as cortex:
            saved = texts(cortex).get(name, domain=domain, version=version)
        if session.as_json:
            print_json(saved)
        else:
            page(saved.content)

    @group.command("versions")
    @click.argument("name")
    @_domain_option
    @with_session
    def versions_command(name: str, domain: str | None, session: CommandSession) -> None:
        """List all versions, oldest first."""
        with session.open() as cortex:
            found = texts(cortex).versions(name, domain=domain)
        session.show_table(
            found, ("version", "saved", "content"), [_version_row(one) for one in found], wide=2, empty="No version."
        )

    @group.command("delete")
    @click.argument("name")
    @click.option("--domain", type=click.Choice(DOMAINS), required=True)
    @click.option("--yes", is_flag=True, help="Do not ask.")
    @with_session
    def delete_command(name: str, domain: str, yes: bool, session: CommandSession) -> None:
        """Take it away with all its versions."""
        with session.open() as cortex:
            found = texts(cortex).get(name, domain=domain)
            confirm(f"Delete the {kind} {found.name} ({found.domain}), {_versions(found)}, for good?", yes=yes)
            gone = texts(cortex).delete(name, domain=domain)
        session.show(gone, f"Deleted {gone.name} ({gone.domain}), {_versions(gone)}.")

    @group.command("import")
    @click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True))
    @click.option("--domain", type=click.Choice(DOMAINS), default="project", show_default=True)
    @click.option("--replace", is_flag=True, help="Save a new version where the content differs.")
    @with_session
    def import_command(paths: tuple[str, ...], domain: str, replace: bool, session: CommandSession) -> None:
        """Save what files, or the files of folders, hold: Markdown with front matter, YAML or JSON."""
        with session.open() as cortex:
            done = texts(cortex).import_files(paths, domain=domain, replace_existing=replace)
        if session.as_json:
            print_json(done)
        else:
            for word in ("created", "updated", "unchanged", "conflicts"):
                if names := getattr(done, word):
                    say(f"{word}: {', '.join(names)}")
            print_warnings(done.problems)
        if done.conflicts or done.problems:
            # Not click's `Exit`: in the mode in which the group runs, that is only a return value.
            sys.exit(6 if done.conflicts else 2)

    @group.command("export")
    @click.argument("names", nargs=-1)
    @_domain_option
    @click.option("--format", type=click.Choice(FILE_FORMATS), default="markdown", show_default=True)
    @click.option("--to", "folder", type=click.Path(file_okay=False), help="Write one file each into this folder.")
    @with_session
    def export_command(
        names: tuple[str, ...], domain: str | None, format: str, folder: str | None, session: CommandSession
    ) -> None:
        """Write files that `import` reads: of the NAMES, or of all that were saved; one alone goes to the screen."""
        with session.open() as cortex:
            chosen = names or _all_names(texts(cortex), domain)
            files = {name: texts(cortex).export(name, domain=domain, format=format) for name in chosen}
        if folder is None and len(files) == 1 and names:
            page(next(iter(files.values())).decode(), nl=False)
            return
        if folder is None:
            raise click.UsageError("Give --to FOLDER, or one name.")
        paths = {name: Path(folder, f"{name}.{_SUFFIXES[format]}") for name in files}
        _write_files(Path(folder), {path.name: files[name] for name, path in paths.items()})
        session.show(
            {"written": [str(path) for path in paths.values()]}, f"{counted(len(files), 'file')} written to {folder}."
        )


def _all_names(texts: SavedTexts, domain: str | None) -> list[str]:
    """What was saved or is in the project's files, without what comes with Cortex."""
    if domain is None:
        return _bare([one.name for one in texts.visible() if one.domain != "builtin"])
    names: list[str] = []
    while True:
        page = texts.list(domain=domain, limit=1_000, offset=len(names))
        names += [one.saved.name for one in page.items]
        if not page.items:
            return _bare(names)


def _bare(names: Iterable[str]) -> list[str]:
    """The names as files have them; what was saved comes before a file of that name."""
    return list(dict.fromkeys(name.removeprefix(OF_FOLDER) for name in names))


def _read_json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"--variables is not JSON: {error}.", field="variables") from error


def _versions(saved: Saved) -> str:
    return counted(saved.version or 1, "version")


def _version_row(saved: Saved) -> tuple[str, str, str]:
    first = saved.content.strip().splitlines()[0] if saved.content.strip() else ""
    when = f"{saved.updated_at:%Y-%m-%d %H:%M}" if saved.updated_at else "-"
    return (str(saved.version or "file"), when, first)


def _write_files(folder: Path, files: dict[str, bytes]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
    except OSError as error:
        raise storage_error(error, folder) from error


@group("prompt")
def prompt_command() -> None:
    """Saved prompts with {{variable}} placeholders; MCP clients show them as commands.

    Files in .cortex/prompts of a repository are prompts of that project, named project:NAME.
    """


_add_common_commands(prompt_command, "prompt")


@prompt_command.command("run")
@click.argument("name")
@_variable_option
@_variables_option
@_domain_option
@click.option("--no-input", is_flag=True, help="Never ask for missing values.")
@with_session
def run_command(
    name: str,
    pairs: tuple[str, ...],
    given: tuple[str, ...],
    domain: str | None,
    no_input: bool,
    session: CommandSession,
) -> None:
    """Fill a prompt in and print it; on a terminal, values that are missing are asked for."""
    values = _given_values(pairs, given)
    with session.open() as cortex:
        if not no_input and not session.as_json and sys.stdin.isatty():
            values = _asked(cortex.prompts.get(name, domain=domain), values)
        filled = cortex.prompts.run(name, values, domain=domain)
    if session.shown_as_json(filled):
        return
    page(filled.content)
    print_warnings(filled.warnings)


def _asked(saved: Saved, values: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The values, with those asked for that the prompt cannot do without. Questions go to standard error."""
    asked = dict(values)
    for variable in saved.variables:
        if variable.name in asked or variable.default is not None or variable.required is False:
            continue
        question = f"{variable.name} ({variable.description})" if variable.description else variable.name
        # What cannot be shown as it is cannot be chosen from; the library says then what is allowed.
        shown = all(choice == visible(choice) for choice in variable.choices)
        kind = click.Choice(variable.choices) if variable.choices and shown else str
        asked[variable.name] = click.prompt(visible(question), type=kind, err=True)
    return asked


@group("template")
def template_command() -> None:
    """Saved templates that lay memories out: {{#each memories}}, {{#if}}, {{variable}}.

    Files in .cortex/templates of a repository are templates of that project, named project:NAME.
    """


_add_common_commands(template_command, "template")


@template_command.command("render")
@click.argument("name")
@click.option("-q", "--query", help="Search that fills {{memories}}; without one, the newest.")
@click.option("-f", "--filter", default="", help="Filter, such as ns:decisions since:7d.")
@click.option("-l", "--limit", type=int, help="Most memories (default 10, without a query 50).")
@click.option("--format", type=click.Choice(FORMATS), default="markdown", show_default=True)
@_variable_option
@_variables_option
@_domain_option
@with_session
def render_command(
    name: str,
    query: str | None,
    filter: str,
    limit: int | None,
    format: str,
    pairs: tuple[str, ...],
    given: tuple[str, ...],
    domain: str | None,
    session: CommandSession,
) -> None:
    """Render a template and print the output."""
    values = _given_values(pairs, given)
    with session.open() as cortex:
        made = cortex.templates.render(
            name, query=query, limit=limit, filter=filter, format=format, variables=values, domain=domain
        )
    if session.shown_as_json(made):
        return
    page(made.output)
    print_warnings(made.warnings)
