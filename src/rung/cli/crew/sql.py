"""`rung crew sql`: runs statements of the conductor's protocol with the crew's key."""

from __future__ import annotations

import sys

import click

from rung.cli.audit import record_crew_action
from rung.cli.crew.option import found_db_option, open_crew_table
from rung.cli.help_text import epilogue
from rung.cli.output import json_option, print_json

MAX_AUDITED_CHARS = 2_000


@click.command(
    "sql",
    short_help="Run SQL of the conductor's protocol, with the crew's key.",
    epilog=epilogue(
        examples=("rung crew sql --db crew.db < fix-proposal.sql", 'rung crew sql "SELECT * FROM orchestration_tasks"')
    ),
)
@click.argument("sql", required=False)
@found_db_option
@json_option
def sql(sql: str | None, *, database: str, as_json: bool) -> None:
    """Run SQL, or standard input, as the crew's conductor does: in one transaction that has the crew's key.

    For a conductor of your own, such as a coding agent that follows a written protocol: its statements run as they are written,
    on SQLite and PostgreSQL. What breaks the contract of the tables is refused, and then nothing is written. A worker is refused.
    """
    from rung.store.crew.protocol_sql import run_as_conductor

    text = sql if sql is not None else sys.stdin.read()
    with open_crew_table(database) as table:
        rows = run_as_conductor(table, text)
    record_crew_action(database, "sql", "", {"sql": text[:MAX_AUDITED_CHARS]})
    if as_json:
        print_json({"rows": [list(row) for row in rows]})
        return
    for row in rows:
        click.echo("|".join("" if value is None else str(value) for value in row))
