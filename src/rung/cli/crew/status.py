"""`rung crew status`: shows the conductor, the watchdog, closed pools and every unfinished task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rung.cli.crew.option import found_db_option, open_crew_table
from rung.cli.help_text import epilogue
from rung.cli.output import json_option, print_json

if TYPE_CHECKING:
    from rung.core.crew.pool import Pool
    from rung.store.crew.conductor_lease import ConductorLease
    from rung.store.crew.rows import TaskRow


@click.command(
    "status",
    short_help="Show the state of every unfinished task.",
    epilog=epilogue(examples=("rung crew status --db crew.db",)),
)
@found_db_option
@json_option
def status(*, database: str, as_json: bool) -> None:
    """Show the state of the conductor, the watchdog and every unfinished task."""
    from rung.core.crew.contract import CONDUCTOR, STOPPED_KEY, WATCHDOG
    from rung.core.crew.pool import describe
    from rung.store.crew.board import closed_pools

    with open_crew_table(database) as table:
        rows, counts = table.tasks(), {state.value: number for state, number in table.counts().items() if number}
        own = {name: table.task(name) for name in (CONDUCTOR, WATCHDOG)}
        facts = {name: table.get_fact(name) or "" for name in ("paused", "halted", STOPPED_KEY)}
        pools = closed_pools(table)
        lease = table.conductor_lease()
    if as_json:
        shown = {name: pool_json(pool) for name, pool in pools.items()}
        print_json({"tasks": [_task_json(row) for row in rows], "counts": counts, "pools": shown, **facts} | {
            name: None if row is None else {"state": row.state.value, "heartbeat_age": row.heartbeat_age}
            for name, row in own.items()
        } | {"lease": _lease_json(lease)})  # fmt: skip
        return
    for name, row in own.items():
        age = "never" if row is None or row.heartbeat_age is None else f"{row.heartbeat_age:.0f} s ago"
        click.echo(f"{name:<14} {row.state.value if row else '-':<15} beat {age}")
    if lease.holder:
        ended = "" if lease.is_live else "; it is gone, or its lease has expired"
        click.echo(f"conducted by {lease.describe()}{ended}")
    for name, value in (facts | {f"pool {name}": describe(pool) for name, pool in pools.items()}).items():
        if value:
            click.echo(f"{name}: {value}")
    for row in rows:
        if row.state != "complete":
            click.echo(format_line(row))
    click.echo(", ".join(f"{number} {state}" for state, number in counts.items()) or "no tasks")


def _lease_json(lease: ConductorLease) -> dict[str, Any]:
    return {
        "live": lease.is_live, "host": lease.host, "pid": lease.pid, "since": lease.since, "term": lease.term,
        "seconds_left": lease.seconds_left if lease.is_live else None,
    }  # fmt: skip


def pool_json(pool: Pool) -> dict[str, Any]:
    """Return a pool's state; times are RFC 3339 in UTC."""
    from rung.core.crew.service_trouble import format_time

    times = {"since": pool.since, "parked_until": pool.until, "next_probe": pool.next_probe}
    shown = {name: None if at is None else format_time(at) for name, at in times.items()}
    return {"state": pool.state.value, "reason": pool.reason, **shown, "probe": pool.probe}


def _task_json(row: TaskRow) -> dict[str, Any]:
    return {
        "task": row.task_id, "title": row.title, "state": row.state.value, "worked_by": row.worked_by,
        "heartbeat_age": row.heartbeat_age, "error_tries": row.error_tries, "redispatches": row.redispatches,
        "progress": row.progress, "outcome": row.outcome, "note": row.note,
    }  # fmt: skip


def format_line(row: TaskRow) -> str:
    """Return a task in one line."""
    note = shown_note(row)
    worker = f"  {row.worked_by}" if row.worked_by else ""
    return f"{row.task_id:<14} {row.state.value:<15}{worker}{'  ' + note if note else ''}"


def shown_note(row: TaskRow) -> str:
    """Return what a line says of a task beside its state: its note or its outcome, unless that repeats the state."""
    note = row.note or row.outcome
    return "" if note == row.state.value else note
