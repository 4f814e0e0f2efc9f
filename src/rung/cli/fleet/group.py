"""`rung fleet`: the group of commands, each imported when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

# Command name, which is also that of its module, and its line in the help.
COMMANDS: Final[Mapping[str, str]] = {
    "init": "Prepare a PostgreSQL database for a fleet.",
    "worker": "Run submitted tasks until told to stop.",
    "status": "Show executors, runs, leases, queues and versions.",
    "drain": "Let executors finish what they have, and exit.",
}


class FleetCommands(click.Group):
    """Group that imports a command when it is used: a worker's packages are not needed to show a status."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the command names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's signature
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = import_module(f"rung.cli.fleet.{cmd_name}").command
        found.name = cmd_name
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click's signature
        """Write the table of commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=FleetCommands, short_help="Run a fleet: prepare, work, watch, drain.")
def command() -> None:
    """Run Rung on several machines that share one PostgreSQL journal."""
