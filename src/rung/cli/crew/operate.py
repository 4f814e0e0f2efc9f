"""`rung crew reply|restart|wake|learn|stop`: applies an operator's decisions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from rung.cli.crew.option import db_option, open_crew_table
from rung.cli.output import json_option, print_json

if TYPE_CHECKING:
    from rung.store.crew.operator_commands import OperatorReply


@click.command("reply")
@click.argument("task_id", metavar="TASK")
@click.argument("text")
@click.option("--fix", "how", flag_value="fix", help="Answer its error; TEXT is the fix.")
@click.option("--approve", "how", flag_value="approve", help="Approve its review.")
@click.option("--reject", "how", flag_value="reject", help="Reject its review; TEXT is the reason.")
@db_option
def reply(task_id: str, text: str, *, how: str | None, database: str) -> None:
    """Send TEXT to the worker of a task, or answer what it waits for."""
    from rung.store.crew.operator_commands import OperatorReply

    _send_reply(database, task_id, text, OperatorReply(how or OperatorReply.TELL))


@click.command("restart", short_help="Restart a task with a new worker.")
@click.argument("task_id", metavar="TASK")
@click.argument("text", default="requested by the operator")
@db_option
def restart(task_id: str, text: str, *, database: str) -> None:
    """Restart a task with a new worker; TEXT says what to do differently."""
    from rung.store.crew.operator_commands import OperatorReply

    _send_reply(database, task_id, text, OperatorReply.RESET)


@click.command("wake", short_help="Open a pool that waits for its limit or its service.")
@click.argument("pool", required=False)
@db_option
@json_option
def wake(pool: str | None, *, database: str, as_json: bool) -> None:
    """Open POOL at once, or all pools that are closed. Their tasks start one after the other."""
    from rung.store.crew.operator_commands import wake_pools

    with open_crew_table(database) as table:
        opened = wake_pools(table, time.time(), pool or "")
    if not opened:
        raise click.UsageError(f"{f'pool {pool}' if pool else 'every pool'} is open")
    if as_json:
        print_json({"opened": opened})
        return
    click.echo(f"open: {', '.join(opened)}")


@click.command("learn", short_help="Tell the crew a learning, or list what it has learned.")
@click.argument("text", required=False)
@db_option
@json_option
def learn(text: str | None, *, database: str, as_json: bool) -> None:
    """Tell the crew a learning: later workers and judges are told TEXT. Without TEXT, list what the crew has learned."""
    from dataclasses import asdict

    from rung.core.crew.contract import PERSON
    from rung.core.crew.learning import CrewLearning
    from rung.crew.learnings import keep_learning
    from rung.crew.runtime_dir import runtime_dir
    from rung.store.crew.learnings import load_learnings

    with open_crew_table(database) as table:
        if text is not None:
            if not text.strip():
                raise click.UsageError("a learning needs a text")
            keep_learning(table, runtime_dir(database, table), CrewLearning(text=text), time.time(), PERSON)
        learnings = load_learnings(table)
    if as_json:
        print_json({"learnings": [asdict(one) for one in learnings]})
        return
    for one in learnings if text is None else ():
        click.echo(one.line())
    if text is not None:
        click.echo(f"learned; {len(learnings)} in all")


@click.command("stop")
@click.argument("task_id", metavar="[TASK]", required=False)
@click.option("--why", default="requested by the operator", show_default=True, help="Reason, for the record.")
@click.option("--hand-over", is_flag=True, help="Stop only this conductor: the watchdog starts another one.")
@db_option
def stop(task_id: str | None, *, why: str, hand_over: bool, database: str) -> None:
    """Stop the crew, or one TASK. Workers are asked to stop, then signalled; their work is handed over or given up."""
    from rung.store.crew.operator_commands import OperatorReply, request_stop

    if task_id is not None:
        _send_reply(database, task_id, why, OperatorReply.EXIT)
        return
    with open_crew_table(database) as table:
        request_stop(table, why, hand_over=hand_over)
    click.echo("the conductor stops at its next poll")


def _send_reply(database: str, task_id: str, text: str, how: OperatorReply) -> None:
    from rung.store.crew.operator_commands import reply_to_task

    with open_crew_table(database) as table:
        reply_to_task(table, task_id, text, how)
    click.echo(f"{task_id}: {how.value}")
