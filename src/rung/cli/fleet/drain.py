"""`rung fleet drain`: orders executors to take no new runs and to exit when those in hand have ended."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

import click

from rung.cli.exit_codes import TRY_LATER
from rung.cli.fleet.option import fleet_journal
from rung.cli.help_text import epilogue
from rung.cli.journal.option import journal_option
from rung.cli.numbers import SECONDS
from rung.cli.usage import UsageError
from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rung.store.fleet.executors import Executor
    from rung.store.journal.journal import Journal

POLL_SECONDS: Final = 0.2


@click.command(epilog=epilogue(examples=("rung fleet drain --host worker-3 --wait 600",)))
@click.argument("executor", required=False)
@click.option("--all", "everybody", is_flag=True, help="Drain all executors.")
@click.option("--host", metavar="HOST", help="Drain the executors of a host.")
@click.option("--wait", "seconds", type=SECONDS, metavar="SECONDS", help="Wait until they have left, at most so long.")
@journal_option
def command(
    *, executor: str | None, everybody: bool, host: str | None, seconds: float | None, journal_at: str | None
) -> None:
    """Order EXECUTOR, an id of `rung fleet status` or its beginning, to drain.

    It takes no new runs and exits when those in hand have ended. It reads the order with its next heartbeat, within a third of
    its lease. A dead executor is left out: others take its runs.

    Exit codes: 0 ordered, and with --wait all have left; 2 wrong usage; 75 some have not left in time.
    """
    if sum((executor is not None, everybody, host is not None)) != 1:
        raise UsageError("give one executor, or --all, or --host HOST, and only one of them")
    with fleet_journal(journal_at) as journal:
        from rung.store.fleet.executors import drain, executors

        chosen = [each for each in _chosen(executors(journal), executor, host) if drain(journal, each.id)]
        for each in chosen:
            click.echo(f"draining {_describe(each)}")
        if not chosen:
            click.echo("no executor to drain")
        left = chosen if seconds is None else _wait(journal, chosen, seconds)
        if seconds is not None and left:
            for each in left:
                click.echo(f"rung: still there after {seconds:g} s: {_describe(each)}", err=True)
            sys.exit(TRY_LATER)


def _chosen(listed: list[Executor], name: str | None, host: str | None) -> list[Executor]:
    """Return the executors that are meant; raise ConfigError when a name or host fits none, or a name fits several."""
    alive = [each for each in listed if each.health != "dead"]
    if name is None and host is None:
        return alive
    if host is not None:
        found = [each for each in alive if each.host == host]
        allowed = ", ".join(sorted({each.host for each in alive})) or "none is live"
        if not found:
            raise ConfigError("--host", host, f"a host with live executors: {allowed}")
        return found
    found = [each for each in alive if name and each.id.startswith(name)]
    if len(found) != 1:
        fits = ", ".join(each.id for each in found or alive) or "none is live"
        raise UsageError(f"EXECUTOR {name!r} must be the id of one live executor, or its beginning: {fits}")
    return found


def _wait(journal: Journal, chosen: Iterable[Executor], seconds: float) -> list[Executor]:
    """Return the executors that are still there after so many seconds; one that has died is gone."""
    from rung.store.fleet.executors import executors

    names, until = {each.id for each in chosen}, time.monotonic() + seconds
    while True:
        left = [each for each in executors(journal) if each.id in names and each.health != "dead"]
        if not left or time.monotonic() >= until:
            return left
        time.sleep(POLL_SECONDS)


def _describe(executor: Executor) -> str:
    runs = executor.detail.get("runs") or executor.detail.get("requests") or 0
    in_hand = f", {runs} in hand" if runs else ""
    return f"{executor.role} {executor.id} on {executor.host}, pid {executor.pid}{in_hand}"
