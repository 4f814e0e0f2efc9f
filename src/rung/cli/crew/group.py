"""`rung crew`: the group of commands, and those that create the database and add tasks."""

from __future__ import annotations

import click

from rung.cli.command_group import CommandGroup
from rung.cli.crew.board import board
from rung.cli.crew.check import check
from rung.cli.crew.operate import learn, reply, restart, stop, wake
from rung.cli.crew.option import db_option, found_db_option, open_crew_table, read_text
from rung.cli.crew.run import conduct, run, watch
from rung.cli.crew.sql import sql
from rung.cli.crew.status import status
from rung.cli.help_text import epilogue
from rung.cli.numbers import MAX_COUNT, FiniteRange
from rung.cli.output import json_option, pluralize, print_json


@click.group(cls=CommandGroup)
def command() -> None:
    """Run and control a crew of agents."""


for subcommand in (check, run, board, status, reply, restart, wake, learn, sql, stop, conduct, watch):
    command.add_command(subcommand)


@command.command(
    "init", short_help="Create the crew database.", epilog=epilogue(examples=("rung crew init --db crew.db",))
)
@db_option
@json_option
def init(*, database: str, as_json: bool) -> None:
    """Create the crew database with the rows of the conductor and the watchdog; an existing one is left alone."""
    with open_crew_table(database, create=True) as table:
        at, tasks = table.location, len(table.tasks())
    if as_json:
        print_json({"db": at, "tasks": tasks})
        return
    click.echo(f"{at}: crew database, {pluralize(tasks, 'task')}")


@command.command("add", epilog=epilogue(examples=('rung crew add docs --body "Write the docs" --db crew.db',)))
@click.argument("task_id")
@click.option("--body", help="Instructions for its worker.")
@click.option("--body-file", metavar="FILE", help="File with the instructions for its worker; - is standard input.")
@click.option(
    "--instruction",
    "instruction_path",
    metavar="FILE",
    default="",
    help="Path of the instructions, for the worker to read.",
)
@click.option("--title", default="", metavar="NAME", help="Display name of the task.")
@click.option(
    "--after", "depends_on", multiple=True, metavar="TASK", help="Task that must be complete first. May be repeated."
)
@click.option("--writes", multiple=True, metavar="FILE", help="File or folder that the task writes. May be repeated.")
@click.option(
    "--priority",
    type=click.IntRange(-MAX_COUNT, MAX_COUNT),
    default=0,
    show_default=True,
    metavar="N",
    help="Tasks with a higher priority start first.",
)
@click.option("--command", "worker", metavar="COMMAND", help="Command of its worker (default: the plan's).")
@click.option("--workdir", metavar="DIR", default="", help="Working directory of its worker.")
@click.option(
    "--stale-after",
    type=FiniteRange(1),
    default=540.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds without a heartbeat after which its worker is stale.",
)
@click.option(
    "--pool",
    default="",
    metavar="NAME",
    help="Account or model that the task shares with others (default: the default pool).",
)
@found_db_option
@json_option
def add(
    task_id: str, *, body: str | None, body_file: str | None, instruction_path: str, title: str,
    depends_on: tuple[str, ...], writes: tuple[str, ...], priority: int, worker: str | None, workdir: str,
    stale_after: float, pool: str, database: str, as_json: bool,
) -> None:  # fmt: skip
    """Add a task and its instructions, in one transaction."""
    from rung.adapters.system.command_line import split_command
    from rung.core.domain.errors import ConfigError
    from rung.store.crew.rows import NewTask

    new = NewTask(
        task_id=task_id,
        instruction=read_text(body, body_file),
        instruction_path=instruction_path,
        title=title,
        depends_on=depends_on,
        writes=writes,
        priority=priority,
        command=None if worker is None else tuple(split_command("--command", worker)),
        workdir=workdir,
        stale_after=stale_after,
        pool=pool,
    )
    with open_crew_table(database) as table:
        for name in depends_on:
            if name == task_id or table.task(name) is None:
                raise ConfigError("--after", name, "another task that exists")
        table.add_task(new)
    if as_json:
        print_json({"task": task_id})
        return
    click.echo(f"added {task_id}")
