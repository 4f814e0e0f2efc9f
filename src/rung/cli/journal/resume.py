"""`rung resume`: resumes runs that a crash interrupted."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click

from rung.cli.journal.option import existing_journal, journal_option
from rung.cli.output import json_option, print_json
from rung.cli.run.named_run import TASK, command_to_type, take_up
from rung.core.domain.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from rung.store.durable_runs import OpenRunRow
    from rung.store.journal.journal import Journal

STOPPED: Final = "waits for its command"


@click.command(short_help="Resume runs that a crash interrupted.")
@click.argument("run", required=False)
@click.option(
    "--import", "modules", multiple=True, metavar="MODULE", help="Module that registers the tasks. May be repeated."
)
@click.option("--list", "only_list", is_flag=True, help="List open runs without resuming them.")
@click.option("--print", "only_print", is_flag=True, help="Print the command that continues RUN, without running it.")
@journal_option
@json_option
def command(
    run: str | None,
    modules: tuple[str, ...],
    journal_at: str | None,
    *,
    only_list: bool,
    only_print: bool,
    as_json: bool,
) -> None:
    """Resume interrupted runs that no live process owns: all of them, or RUN.

    A run of a task (`@rung.durable.task`) resumes in this process, after its recorded steps, once the module that
    registers it is imported. A run of a call in a program resumes when the program makes the call again. A run of
    `rung run --run-id` is taken up if it is named as RUN: its command runs again in its directory, with the standard input
    of this one. Without RUN, or with --print or --json, its command is printed.
    """
    sys.path.insert(0, "")
    for module in modules:
        _import_module(module)
    takes_up = run is not None and not (only_list or only_print or as_json)
    rows = []
    with existing_journal(journal_at) as store:
        open_runs = [open_run for open_run in store.runs.open_runs() if run is None or open_run.id == run]
        if run is not None and not open_runs:
            raise ConfigError("RUN", run, "an open run (see rung resume --list)")
        for open_run in open_runs:
            rows.append(_resumed(store, open_run, only_list=only_list))
            if not as_json and not (takes_up and "command" in rows[-1]):
                _print_run(rows[-1])
    if takes_up and "command" in rows[0]:
        take_up(open_runs[0].arguments)
    if as_json:
        print_json({"runs": rows})
    elif not rows:
        click.echo("No open runs.")
    if any(row["state"] == "failed" for row in rows):
        sys.exit(1)


def _resumed(store: Journal, run: OpenRunRow, *, only_list: bool) -> dict[str, Any]:
    """Resume a run whose task is imported. Return what is known about the run."""
    from rung.engine.durable.tasks import TASKS, start_blocking

    state = _state(run, TASKS)
    row: dict[str, Any] = {"run": run.id, "task": run.task, "state": state}
    if state == "left" and not only_list:
        try:
            row |= {"state": "done", "result": start_blocking(store, run.id, run.task, **run.arguments)}
        except Exception as error:  # noqa: BLE001  # the other runs are still resumed
            row |= {"state": "failed", "error": f"{type(error).__name__}: {error}"}
    if state == STOPPED:
        try:
            row |= command_to_type(run.arguments)
        except StoreError as error:  # sealed under another key: the other runs are still listed
            row["error"] = str(error)
    return row


def _import_module(module: str) -> None:
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        raise ConfigError("--import", module, f"a module that can be imported from here ({error})") from None


def _state(run: OpenRunRow, tasks: dict[str, Any]) -> str:
    if run.owned:
        return "running"
    if run.task == TASK:
        return STOPPED
    if not run.task:
        return "waits for its caller"
    return "left" if run.task in tasks else "task not imported"


def _print_run(row: dict[str, Any]) -> None:
    detail = row.get("error") or row.get("command") or row.get("result", "")
    click.echo(f"{row['run']}  {row['task'] or '-'}  {click.style(row['state'], bold=True)}  {detail}".rstrip())
