"""`rung fleet`: the group of commands. Each is imported when it is used: a status needs no package of a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from rung.cli.command_group import LazyGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

# Command name: the module below `rung.cli` that defines it, and its line in the help.
COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "init": ("fleet.init", "Prepare a PostgreSQL database for a fleet."),
    "worker": ("fleet.worker", "Run submitted tasks until told to stop."),
    "status": ("fleet.status", "Show executors, runs, leases, queues and versions."),
    "drain": ("fleet.drain", "Let executors finish what they have, and exit."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def command() -> None:
    """Run Rung on several machines that share one PostgreSQL journal."""
