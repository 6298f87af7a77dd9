"""What `cortex prompt …` and `cortex template …` have in common."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import InvalidInput, storage_error
from ..prompts.files import FORMATS
from ..records import DOMAINS, JsonValue, Saved, SavedKind
from .options import common, open_cortex, read_text
from .show import print_json, print_table

if TYPE_CHECKING:
    from ..app import Cortex
    from ..prompts.saved_texts import SavedTexts

__all__ = ["add_common_commands", "domain_option", "given_values", "variable_option"]

_SUFFIXES = {"markdown": "md", "yaml": "yaml", "json": "json"}

domain_option = click.option("--domain", type=click.Choice((*DOMAINS, "builtin")), help="Only in this domain.")
variable_option = click.option(
    "-v", "--var", "pairs", multiple=True, metavar="NAME=VALUE", help="A value to fill in; repeat for several."
)


def given_values(pairs: Sequence[str], as_json: str | None) -> dict[str, JsonValue]:
    """Values from `--var` and `--variables`."""
    values: dict[str, JsonValue] = {}
    if as_json is not None:
        read = _read_json(as_json)
        if not isinstance(read, dict):
            raise InvalidInput("--variables is not a JSON object.", field="variables")
        values |= read
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign:
            raise InvalidInput(f"{pair[:40]!r} is not NAME=VALUE.", field="variables")
        values[name.strip()] = value
    return values


def add_common_commands(group: click.Group, kind: SavedKind) -> None:
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
    @common
    def save_command(
        name: str,
        content: str | None,
        description: str | None,
        domain: str,
        tags: tuple[str, ...],
        variables: str | None,
        home: str | None,
        project: str,
        as_json: bool,
    ) -> None:
        """Save CONTENT, or standard input, under NAME; what was there stays as an older version."""
        declared = None if variables is None else _read_json(variables)
        with open_cortex(home, project) as cortex:
            stored = texts(cortex).save(
                name, read_text(content), description=description, domain=domain, tags=tags, variables=declared
            )
        if as_json:
            print_json(stored)
            return
        click.echo(f"{stored.saved.name}, version {stored.saved.version} ({stored.saved.domain})")
        _tell(stored.warnings)

    @group.command("list")
    @domain_option
    @click.option("-t", "--tag", "tags", multiple=True, help="Only with this tag; repeat for several, all must fit.")
    @click.option("-l", "--limit", type=int, default=20, show_default=True)
    @click.option("--offset", type=int, default=0)
    @common
    def list_command(
        domain: str | None,
        tags: tuple[str, ...],
        limit: int,
        offset: int,
        home: str | None,
        project: str,
        as_json: bool,
    ) -> None:
        """List by name; of several with one name, the first is used."""
        with open_cortex(home, project) as cortex:
            page = texts(cortex).list(domain=domain, tags=tags, limit=limit, offset=offset)
        if as_json:
            print_json(page)
            return
        rows = [
            (
                one.saved.name,
                one.saved.path or one.saved.domain,
                "file" if one.saved.path else str(one.saved.version or "-"),
                ", ".join(variable.name for variable in one.saved.variables),
                f"shadowed by {one.shadowed_by}" if one.shadowed_by else one.saved.description or "",
            )
            for one in page.items
        ]
        print_table(("name", "where", "version", "variables", "description"), rows, wide=4)
        click.echo(f"{len(page.items)} of {page.total}")
        _tell(page.problems)

    @group.command("get")
    @click.argument("name")
    @domain_option
    @click.option("--version", type=int, help="As it was at this version.")
    @common
    def get_command(
        name: str, domain: str | None, version: int | None, home: str | None, project: str, as_json: bool
    ) -> None:
        """Print the content, as it was saved."""
        with open_cortex(home, project) as cortex:
            saved = texts(cortex).get(name, domain=domain, version=version)
        if as_json:
            print_json(saved)
        else:
            click.echo(saved.content, nl=not saved.content.endswith("\n"))

    @group.command("versions")
    @click.argument("name")
    @domain_option
    @common
    def versions_command(name: str, domain: str | None, home: str | None, project: str, as_json: bool) -> None:
        """List all versions, oldest first."""
        with open_cortex(home, project) as cortex:
            found = texts(cortex).versions(name, domain=domain)
        if as_json:
            print_json(found)
            return
        print_table(("version", "saved", "content"), [_version_row(one) for one in found], wide=2)

    @group.command("delete")
    @click.argument("name")
    @click.option("--domain", type=click.Choice(DOMAINS), required=True)
    @common
    def delete_command(name: str, domain: str, home: str | None, project: str, as_json: bool) -> None:
        """Take it away with all its versions."""
        with open_cortex(home, project) as cortex:
            gone = texts(cortex).delete(name, domain=domain)
        if as_json:
            print_json(gone)
        else:
            click.echo(f"Deleted {gone.name} ({gone.domain}), {gone.version} versions.")

    @group.command("import")
    @click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True))
    @click.option("--domain", type=click.Choice(DOMAINS), default="project", show_default=True)
    @click.option("--replace", is_flag=True, help="Save a new version where the content differs.")
    @common
    def import_command(
        paths: tuple[str, ...], domain: str, replace: bool, home: str | None, project: str, as_json: bool
    ) -> None:
        """Save what files, or the files of folders, hold: Markdown with front matter, YAML or JSON."""
        with open_cortex(home, project) as cortex:
            done = texts(cortex).import_files(paths, domain=domain, replace_existing=replace)
        if as_json:
            print_json(done)
        else:
            for word in ("created", "updated", "unchanged", "conflicts"):
                if names := getattr(done, word):
                    click.echo(f"{word}: {', '.join(names)}")
            _tell(done.problems)
        if done.conflicts or done.problems:
            # Not `Exit`: the group is run in a mode in which that is a value that nobody reads.
            sys.exit(6 if done.conflicts else 2)

    @group.command("export")
    @click.argument("names", nargs=-1)
    @domain_option
    @click.option("--format", type=click.Choice(FORMATS), default="markdown", show_default=True)
    @click.option("--to", "folder", type=click.Path(file_okay=False), help="Write one file each into this folder.")
    @click.option("--home", type=click.Path(), help="Home folder (default: CORTEX_HOME or ~/.cortex).")
    @click.option("--project", type=click.Path(), default=".", help="Project folder (default: here).")
    def export_command(
        names: tuple[str, ...], domain: str | None, format: str, folder: str | None, home: str | None, project: str
    ) -> None:
        """Write files that `import` reads: of the NAMES, or of all that were saved; one alone goes to the screen."""
        with open_cortex(home, project) as cortex:
            chosen = names or _all_names(texts(cortex), domain)
            files = {name: texts(cortex).export(name, domain=domain, format=format) for name in chosen}
        if folder is None and len(files) == 1 and names:
            click.echo(next(iter(files.values())), nl=False)
            return
        if folder is None:
            raise click.UsageError("Give --to FOLDER, or one name.")
        _write_files(Path(folder), {f"{name}.{_SUFFIXES[format]}": data for name, data in files.items()})
        click.echo(f"{len(files)} written to {folder}")


def _all_names(texts: SavedTexts, domain: str | None) -> list[str]:
    """What was saved or lies in the project's files; what comes with Cortex need not be exported."""
    if domain is None:
        return [one.name for one in texts.visible() if one.domain != "builtin"]
    names: list[str] = []
    while True:
        page = texts.list(domain=domain, limit=1_000, offset=len(names))
        names += [one.saved.name for one in page.items]
        if not page.items:
            return list(dict.fromkeys(names))


def _read_json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"--variables is not JSON: {error}.", field="variables") from error


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


def _tell(warnings: Sequence[str]) -> None:
    for warning in warnings:
        click.echo(warning, err=True)
