"""`rung ladder`: lists, draws and checks ladders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rung.cli.command_group import CommandGroup
from rung.cli.complete_names import complete_ladder
from rung.cli.help_text import epilogue
from rung.cli.output import format_worst_case, json_option, paragraph, pluralize, print_json
from rung.cli.terminal import console
from rung.core.domain.errors import ConfigError
from rung.core.domain.ladder import WAITING_ACTIONS
from rung.core.domain.settings_schema import suggest_names
from rung.core.policy.presets import LADDERS
from rung.core.policy.serializer import ladder_table, worst_case_table
from rung.core.policy.templates import preset
from rung.core.policy.worst_case import worst_case

if TYPE_CHECKING:
    from rung.core.policy.policy import Policy


@click.group(cls=CommandGroup)
def command() -> None:
    """List, draw and check ladders."""


@command.command("list", epilog=epilogue(examples=("rung ladder list",)))
@json_option
def list_(*, as_json: bool) -> None:
    """List the built-in ladders."""
    if as_json:
        print_json({"ladders": [ladder_table(ladder) for ladder in LADDERS.values()]})
        return
    for ladder in LADDERS.values():
        steps = " → ".join(f"{rung.name} ({rung.tries})" if rung.tries > 1 else rung.name for rung in ladder.rungs)
        click.echo(click.style(f"{ladder.name:<10}", bold=True) + paragraph(ladder.about, indent=10)[10:])
        click.secho(paragraph(steps, indent=10), dim=True)


@command.command("show", epilog=epilogue(examples=("rung ladder show task", "rung ladder show rung.toml")))
@click.argument("ladder", metavar="NAME|FILE", shell_complete=complete_ladder)
@json_option
def show(ladder: str, *, as_json: bool) -> None:
    """Draw a ladder, the highest rung on top.

    NAME is a built-in ladder; FILE is a policy file.
    """
    policy = _load_policy(ladder)
    if as_json:
        print_json(ladder_table(policy.ladder))
        return
    from rung.cli.policy.ladder_diagram import draw

    screen = console()
    for line in draw(policy.ladder, screen.width, plain=screen.options.ascii_only):
        screen.print(line, no_wrap=True, overflow="ignore", crop=False)
    screen.print(f"\nWorst case: {format_worst_case(worst_case(policy))}.", style="dim")


@command.command(
    "check", epilog=epilogue(examples=("rung ladder check rung.toml",)), short_help="Check the ladder of a policy file."
)
@click.argument("file", metavar="FILE")
@json_option
def check(file: str, *, as_json: bool) -> None:
    """Check the ladder of a policy file, and print the worst case it allows."""
    from rung.wiring.files import load_policy

    policy = load_policy(file).default
    if as_json:
        result = {
            "ok": True,
            "file": file,
            "ladder": ladder_table(policy.ladder),
            "worst_case": worst_case_table(policy),
        }
        print_json(result)
        return
    click.echo(f"{click.style('OK', fg='green', bold=True)}  {file}: ladder {policy.ladder.name}, ", nl=False)
    own = [rung for rung in policy.ladder.rungs if rung.action not in WAITING_ACTIONS]
    click.echo(pluralize(len(own), "rung"))
    click.echo(f"    worst case: {format_worst_case(worst_case(policy))}")


def _load_policy(name: str) -> Policy:
    """Return the policy of a built-in ladder or of a file."""
    if name in LADDERS:
        return preset(name)
    if not (Path(name).suffix or os.path.exists(name)):  # noqa: PTH110  # Path.exists raises for a long name
        allowed = "one of " + ", ".join(LADDERS) + ", or a policy file"
        raise ConfigError("ladder", name, allowed + suggest_names(name, LADDERS))
    from rung.wiring.files import load_policy

    return load_policy(name).default
