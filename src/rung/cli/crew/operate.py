"""`rung crew reply|restart|wake|learn|stop`: applies an operator's decisions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from rung.cli.audit import record_crew_action
from rung.cli.crew.option import found_db_option, open_crew_table
from rung.cli.help_text import epilogue
from rung.cli.output import json_option, print_json

if TYPE_CHECKING:
    from rung.store.crew.operator_commands import OperatorReply


@click.command(
    "reply",
    epilog=epilogue(
        examples=('rung crew reply task-01 "use the v2 API"', 'rung crew reply task-01 "looks good" --approve')
    ),
)
@click.argument("task_id", metavar="TASK")
@click.argument("text")
@click.option("--fix", "how", flag_value="fix", help="Answer its error; TEXT is the fix.")
@click.option("--approve", "how", flag_value="approve", help="Approve its review.")
@click.option("--reject", "how", flag_value="reject", help="Reject its review; TEXT is the reason.")
@found_db_option
def reply(task_id: str, text: str, *, how: str | None, database: str) -> None:
    """Send TEXT to the worker of a task, or answer what it waits for."""
    from rung.store.crew.operator_commands import OperatorReply

    _send_reply(database, task_id, text, OperatorReply(how or OperatorReply.TELL))


@click.command(
    "restart",
    short_help="Restart a task with a new worker.",
    epilog=epilogue(examples=('rung crew restart task-01 "start from the tests"',)),
)
@click.argument("task_id", metavar="TASK")
@click.argument("text", default="requested by the operator")
@found_db_option
def restart(task_id: str, text: str, *, database: str) -> None:
    """Restart a task with a new worker; TEXT says what to do differently."""
    from rung.store.crew.operator_commands import OperatorReply

    _send_reply(database, task_id, text, OperatorReply.RESET)


@click.command(
    "wake",
    short_help="Open a pool that waits for its limit or its service.",
    epilog=epilogue(examples=("rung crew wake",)),
)
@click.argument("pool", required=False)
@found_db_option
@json_option
def wake(pool: str | None, *, database: str, as_json: bool) -> None:
    """Open POOL at once, or all pools that are closed. Their tasks start one after the other."""
    from rung.store.crew.operator_commands import wake_pools

    with open_crew_table(database) as table:
        opened = wake_pools(table, time.time(), pool or "")
    if not opened:
        raise click.UsageError(f"{f'pool {pool}' if pool else 'every pool'} is open")
    record_crew_action(database, "wake", "", {"pools": opened})
    if as_json:
        print_json({"opened": opened})
        return
    click.echo(f"open: {', '.join(opened)}")


@click.command(
    "learn",
    short_help="Tell the crew a learning, or list what it has learned.",
    epilog=epilogue(examples=('rung crew learn "run make fmt before a review"',)),
)
@click.argument("text", required=False)
@found_db_option
@json_option
def learn(text: str | None, *, database: str, as_json: bool) -> None:
    """Tell the crew a learning: later workers and judges are told TEXT. Without TEXT, list what the crew has learned."""
    from dataclasses import asdict

    from rung.core.crew.contract import PERSON
    from rung.core.crew.learning import MAX_NOTE_CHARS, CrewLearning
    from rung.crew.learnings import keep_learning
    from rung.crew.runtime_dir import runtime_dir
    from rung.store.crew.learnings import load_learnings

    with open_crew_table(database) as table:
        if text is not None:
            if not text.strip():
                raise click.UsageError("a learning needs a text")
            if len(text) > MAX_NOTE_CHARS:
                raise click.UsageError(
                    f"a learning has at most {MAX_NOTE_CHARS} characters, not {len(text)}: name a file in it"
                )
            keep_learning(table, runtime_dir(database, table), CrewLearning(text=text), time.time(), PERSON)
        learnings = load_learnings(table)
    if as_json:
        print_json({"learnings": [asdict(one) for one in learnings]})
        return
    for one in learnings if text is None else ():
        click.echo(one.line())
    if text is not None:
        click.echo(f"learned; {len(learnings)} in all")


@click.command("stop", epilog=epilogue(examples=("rung crew stop", 'rung crew stop task-01 --why "no longer needed"')))
@click.argument("task_id", metavar="[TASK]", required=False)
@click.option("--why", default="requested by the operator", show_default=True, help="Reason, for the record.")
@click.option("--hand-over", is_flag=True, help="Stop only this conductor: the watchdog starts another one.")
@found_db_option
def stop(task_id: str | None, *, why: str, hand_over: bool, database: str) -> None:
    """Stop the crew, or one TASK. Workers are asked to stop, then signalled; their work is handed over or given up."""
    from rung.store.crew.operator_commands import OperatorReply, request_stop

    if task_id is not None:
        _send_reply(database, task_id, why, OperatorReply.EXIT)
        return
    with open_crew_table(database) as table:
        request_stop(table, why, hand_over=hand_over)
        is_conducted = table.conductor_lease().is_live
    record_crew_action(database, "stop", "", {"why": why, "hand_over": hand_over})
    if is_conducted:
        click.echo("the conductor stops at its next poll")
    else:
        click.echo("no process conducts this crew: there is nothing to stop", err=True)


def _send_reply(database: str, task_id: str, text: str, how: OperatorReply) -> None:
    from rung.store.crew.operator_commands import reply_to_task

    with open_crew_table(database) as table:
        row = reply_to_task(table, task_id, text, how)
    record_crew_action(database, how.value, task_id, {"words": text, "state": row.state.value})
    click.echo(f"{task_id}: {how.value}")
