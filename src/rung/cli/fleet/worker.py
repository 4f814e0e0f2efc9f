"""`rung fleet worker`: runs submitted tasks until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from rung.cli.help_text import epilogue
from rung.cli.journal.resume import import_task_module
from rung.cli.numbers import COUNT, SOME_SECONDS
from rung.core.domain.errors import ConfigError
from rung.core.policy.executor_health import beat_interval
from rung.engine.log_switch import LOG_SWITCH
from rung.store.fleet.executors import ExecutorRole, new_executor
from rung.wiring.engine_load import EngineLoad
from rung.wiring.engines import ENGINES, fleet_settings, make_engine
from rung.wiring.fleet_heartbeat import FleetHeartbeat
from rung.wiring.fleet_watchdog import watchdog_for
from rung.wiring.journals import is_url, locate

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from rung.engine.durable.port import DurableEngine
    from rung.store.journal.journal import Journal
    from rung.wiring.engines import FleetSettings


@click.command(epilog=epilogue(examples=("rung fleet worker --import my_tasks",)))
@click.option(
    "--import",
    "modules",
    multiple=True,
    required=True,
    metavar="MODULE",
    help="Module that registers tasks. May be repeated.",
)
@click.option(
    "--engine",
    "engine_name",
    type=click.Choice(ENGINES),
    help="Durable engine (default: `[fleet] engine`, or embedded).",
)
@click.option(
    "--url", metavar="URL", help="Journal, database or Temporal server (default: `[fleet] url`, or the journal)."
)
@click.option("--namespace", metavar="NAME", help="Namespace of the Temporal server.")
@click.option(
    "--lease",
    type=SOME_SECONDS,
    metavar="SECONDS",
    help="Silence after which others take over the runs of this worker (default: 30).",
)
@click.option(
    "--concurrency",
    type=COUNT,
    default=8,
    show_default=True,
    metavar="N",
    help="Runs at the same time; of dbos and temporal, for each task.",
)
def command(
    modules: tuple[str, ...],
    engine_name: str | None,
    url: str | None,
    namespace: str | None,
    lease: float | None,
    concurrency: int,
) -> None:
    """Run submitted tasks of MODULE in this process.

    SIGTERM or Ctrl-C, or `rung fleet drain`, ends it when the runs in hand have ended; a second signal ends it at once: another
    worker takes the runs over. Any number of workers, on any number of machines, share the runs.
    """
    own = {"engine": engine_name, "url": url, "namespace": namespace, "lease": lease}
    settings = fleet_settings(**{key: value for key, value in own.items() if value is not None})
    LOG_SWITCH.is_on = True  # tasks are programs of the user, whose recoveries nothing else shows
    sys.path.insert(0, "")
    for module in modules:
        import_task_module(module)
    from rung.engine.durable.tasks import TASKS

    if not TASKS:
        raise ConfigError("--import", ", ".join(modules), "a module that registers a task with @rung.durable.task")
    asyncio.run(_serve(settings, concurrency))


async def _serve(settings: FleetSettings, concurrency: int) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    executor = replace(new_executor(ExecutorRole.WORKER, engine=settings.engine), lease=settings.lease)
    engine = make_engine(settings, executor_id=executor.id)
    load = EngineLoad(engine, executor.id)
    beside: list[Coroutine[Any, Any, None]] = []
    heartbeat = None
    with ExitStack() as exits:
        journal = _journal(settings, exits)
        if journal is not None:
            heartbeat = FleetHeartbeat(
                journal,
                executor,
                detail=load.detail,
                on_drain=lambda: loop.call_soon_threadsafe(stop.set),
                warn=_report,
            )
            exits.enter_context(heartbeat)
            watchdog = watchdog_for(journal, engine, lease=settings.lease, report=_report)
            beside = [
                load.watch(stop, beat_interval(settings.lease)),
                *([] if watchdog is None else [watchdog.watch(stop)]),
            ]
        _stop_on_signals(loop, stop, heartbeat)
        _report(f"worker ready: engine {settings.engine}, executor {executor.id}")
        try:
            await _work(engine, beside, stop, concurrency)
        finally:
            await engine.close()
    _report("worker stopped")


async def _work(
    engine: DurableEngine, beside: Sequence[Coroutine[Any, Any, None]], stop: asyncio.Event, concurrency: int
) -> None:
    watching = [asyncio.create_task(watch) for watch in beside]
    try:
        await engine.work(stop, concurrency=concurrency)
    finally:
        stop.set()
        await asyncio.gather(*watching)


def _journal(settings: FleetSettings, exits: ExitStack) -> Journal | None:
    """Return the journal that the fleet shares; None where it is one machine's file."""
    at = locate(settings.url if settings.engine != "temporal" and settings.url else None).at
    if not is_url(at):
        return None
    from rung.store import open_journal

    return exits.enter_context(open_journal(at))


def _stop_on_signals(loop: asyncio.AbstractEventLoop, stop: asyncio.Event, heartbeat: FleetHeartbeat | None) -> None:
    received: list[int] = []

    def handle(number: int) -> None:
        received.append(number)
        if len(received) > 1:
            raise SystemExit(128 + number)  # others take over what is in hand
        if heartbeat is not None:
            heartbeat.drain()
        _report("stopping: no new runs are taken; those in hand are finished")
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, handle, number)


def _report(text: str) -> None:
    click.echo(f"rung fleet worker: {text}", err=True)
