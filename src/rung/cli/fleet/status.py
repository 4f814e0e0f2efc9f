"""`rung fleet status`: shows executors, open runs, leases, queues and versions."""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from rung.cli.fleet.option import fleet_journal
from rung.cli.help_text import epilogue
from rung.cli.journal.option import journal_option
from rung.cli.numbers import refresh_option
from rung.cli.output import json_option, print_json
from rung.cli.terminal import MAX_WIDTH

if TYPE_CHECKING:
    from rung.store.journal.journal import Journal

REFRESH_SECONDS: Final = 2.0


@click.command(epilog=epilogue(examples=("rung fleet status --watch",)))
@click.option("--watch", is_flag=True, help="Refresh it until Ctrl-C.")
@refresh_option(REFRESH_SECONDS)
@journal_option
@json_option
def command(*, watch: bool, every: float, journal_at: str | None, as_json: bool) -> None:
    """Show the executors of a fleet with the runs they have in hand, open runs, late leases, queues and versions.

    An executor is late after two thirds of its lease without a heartbeat, and dead after the whole lease: then others take
    its runs. With --watch and --json, one object is printed per refresh.
    """
    with fleet_journal(journal_at) as journal:
        _show(journal, as_json=as_json)
        with suppress(KeyboardInterrupt):
            while watch:
                time.sleep(every)
                if not as_json and sys.stdout.isatty():
                    click.clear()
                _show(journal, as_json=as_json)


def _show(journal: Journal, *, as_json: bool) -> None:
    from rung.store.fleet.overview import load_overview, overview_json

    document = overview_json(load_overview(journal))
    if as_json:
        print_json(document)
        return
    from rung.cli.fleet.status_table import fleet_lines

    for line in fleet_lines(document, min(shutil.get_terminal_size().columns, MAX_WIDTH)):
        click.echo(line)
