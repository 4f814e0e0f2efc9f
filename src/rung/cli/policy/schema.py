"""`rung schema`: prints the JSON Schemas of what Rung writes and reads."""

from __future__ import annotations

import json

import click

from rung import schemas
from rung.cli.complete_names import complete_schema
from rung.cli.help_text import epilogue
from rung.cli.output import json_option, paragraph, print_json
from rung.core.domain.errors import ConfigError
from rung.core.domain.settings_schema import suggest_names


@click.command(epilog=epilogue(examples=("rung schema", "rung schema outcome > outcome.json")))
@click.argument("name", required=False, shell_complete=complete_schema)
@json_option
def command(name: str | None, *, as_json: bool) -> None:
    """Print the JSON Schema NAME; without NAME, list all schemas."""
    if name is None:
        _list(as_json=as_json)
        return
    names = schemas.names()
    if name not in names:
        raise ConfigError("schema", name, "one of " + ", ".join(names) + suggest_names(name, names))
    click.echo(schemas.text(name), nl=False)


def _list(*, as_json: bool) -> None:
    about = {name: json.loads(schemas.text(name))["description"] for name in schemas.names()}
    if as_json:
        print_json({"schemas": about})
        return
    for name, description in about.items():
        label = click.style(f"{name:<18}", bold=True)
        click.echo(label + paragraph(description, indent=18)[18:])
