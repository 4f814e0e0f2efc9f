"""`rung resume`: resumes runs that a crash interrupted, and takes up parked ones."""

from __future__ import annotations

import shlex
import sys
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click

from rung.cli.complete_names import complete_model
from rung.cli.help_text import epilogue
from rung.cli.journal.option import existing_journal, journal_option
from rung.cli.output import json_option, print_json
from rung.cli.run.named_run import TASK, command_to_type, take_up
from rung.cli.run.parked_call import load_parked_call, replace_process
from rung.cli.usage import UsageError
from rung.core.domain.errors import ConfigError, StoreError
from rung.core.text.moments import format_moment, format_span, rfc3339
from rung.wiring.journals import absolute_path

if TYPE_CHECKING:
    from rung.store.durable_runs import OpenRunRow
    from rung.store.journal.journal import Journal

STOPPED: Final = "waits for its command"
PARKED: Final = "parked"


@click.command(
    epilog=epilogue(examples=("rung resume --list", "rung resume --import my_tasks", "rung resume job-1 --now"))
)
@click.argument("run", required=False)
@click.option(
    "--import", "modules", multiple=True, metavar="MODULE", help="Module that registers the tasks. May be repeated."
)
@click.option("--list", "only_list", is_flag=True, help="List open runs without resuming them.")
@click.option("--due", is_flag=True, help="Take up every parked run whose limit has reopened, and wait for their ends.")
@click.option("--now", "wake", is_flag=True, help="Wake RUN, which is parked, before its limit reopens.")
@click.option("--model", metavar="NAME", shell_complete=complete_model, help="With --now: go on with this model.")
@click.option(
    "--idempotent", is_flag=True, help="Repeat an attempt of RUN that was cut off and may have had side effects."
)
@click.option("--print", "only_print", is_flag=True, help="Print the command that continues RUN, without running it.")
@journal_option
@json_option
def command(
    run: str | None,
    modules: tuple[str, ...],
    journal_at: str | None,
    *,
    due: bool,
    wake: bool,
    model: str | None,
    only_list: bool,
    only_print: bool,
    idempotent: bool,
    as_json: bool,
) -> None:
    """Resume interrupted runs that no live process owns: all of them, or RUN.

    A run of a task (`@rung.durable.task`) resumes in this process, after its recorded steps, once the module that
    registers it is imported. A run of a call in a program resumes when the program makes the call again. A run of
    `rung run --run-id` is taken up if it is named as RUN: its command runs again in its directory, with the standard input
    of this one. Without RUN, or with --print or --json, its command is printed.

    A run that is parked until a limit reopens goes on waiting if it is named as RUN, with the input that it had; --now wakes
    it. With --due, parked runs whose time has come are taken up, each by a process of its own; those that meet their limit
    again stay parked. It suits a timer: exit code 0 if all that were due have succeeded or are parked again, else 1.
    """
    _check_options(run, due=due, wake=wake, model=model, idempotent=idempotent)
    if due:
        sys.exit(_take_up_due(journal_at, as_json=as_json))
    sys.path.insert(0, "")
    for module in modules:
        import_task_module(module)
    takes_up = run is not None and not (only_list or only_print or as_json)
    rows = []
    with existing_journal(journal_at) as store:
        open_runs = [open_run for open_run in store.runs.open_runs() if run is None or open_run.id == run]
        if run is not None and not open_runs:
            raise _not_open(store, run)
        if run is not None:
            _begin(store, run, model or "", wake=wake, takes_up=takes_up, idempotent=idempotent)
        call = load_parked_call(store, run) if run is not None and takes_up and not open_runs[0].owned else None
        for open_run in open_runs if call is None else ():
            rows.append(_resumed(store, open_run, only_list=only_list, is_named=takes_up))
            if not as_json and not (takes_up and "command" in rows[-1]):
                _print_run(rows[-1])
    if call is not None and run is not None:
        replace_process(call, run, absolute_path(journal_at))
    if takes_up and "command" in rows[0]:
        take_up(open_runs[0].arguments, idempotent=idempotent)
    if as_json:
        print_json({"runs": rows})
    elif not rows:
        click.echo("No open runs.")
    if any(row["state"] == "failed" for row in rows):
        sys.exit(1)


def _not_open(store: Journal, run: str) -> UsageError:
    """Return the error about a run that is not open: it has ended, or does not exist."""
    if store.runs.result_of(run) is not None:
        return UsageError(f"run {run!r} has ended: rung show {shlex.quote(run)}")
    return UsageError(f"there is no open run {run!r} (see `rung resume --list`)")


def _begin(store: Journal, run: str, model: str, *, wake: bool, takes_up: bool, idempotent: bool) -> None:
    """Wake the run that is named, if that is asked for, and record that a person restarts it."""
    if idempotent and _parked_until(store, run) is not None:
        raise UsageError(f"--idempotent is for an attempt that was cut off: run {run!r} is parked")
    if wake:
        _wake(store, run, model)
    if takes_up:
        _record_restart(store, run)


def _record_restart(store: Journal, run: str) -> None:
    """Record in the audit trail that a person restarted a run."""
    from rung.store.settings import record_audit

    record_audit(store, "rung resume", "resume", f"run/{run}", {})


def _check_options(run: str | None, *, due: bool, wake: bool, model: str | None, idempotent: bool) -> None:
    if due and run is not None:
        raise UsageError("--due cannot be combined with RUN")
    if wake and run is None:
        raise UsageError("--now needs RUN, the parked run to wake")
    if idempotent and run is None:
        raise UsageError("--idempotent needs RUN, the run whose attempt was cut off")
    if model is not None and not wake:
        raise UsageError("--model needs --now")


def _wake(store: Journal, run: str, model: str) -> None:
    """Order a parked run to go on at once."""
    from rung.core.recovery.interventions import Intervention, InterventionType
    from rung.store.orders import order_recovery

    if _parked_until(store, run) is None:
        raise UsageError(f"run {run!r} is not parked: only a parked run can be woken")
    if not order_recovery(store, run, Intervention(InterventionType.RETRY, "rung resume", model), time.time()):
        raise UsageError(f"run {run!r} has ended: only a parked run can be woken")


def _take_up_due(journal_at: str | None, *, as_json: bool) -> int:
    """Take up the parked runs that are due, and wait for their ends. Return the exit code."""
    from rung.cli.exit_codes import TRY_LATER
    from rung.cli.run.due_runs import describe_end, parked_runs, start_due

    rows: list[dict[str, Any]] = []
    say = (lambda _: None) if as_json else click.echo

    def failed(run: str, why: str) -> None:
        rows.append({"run": run, "state": "failed", "error": why})
        say(f"{run}  cannot be taken up: {why}")

    with existing_journal(journal_at) as store:
        now = time.time()
        runs = list(parked_runs(store, now))
        for run in runs:
            if not run.is_due:
                rows.append({"run": run.id, "state": PARKED, "parked_until": rfc3339(run.until)})
                say(f"{run.id}  {_parked_text(run.until, now)}")
        started = start_due(store, runs, absolute_path(journal_at), failed)
    for taken in started:
        say(f"{taken.run}  is taken up; it prints to {taken.output}")
    for taken in started:
        code = taken.process.wait()
        rows.append({"run": taken.run, "state": "taken up", "exit_code": code, "output": str(taken.output)})
        say(f"{taken.run}  {describe_end(code)}")
    if as_json:
        print_json({"runs": rows})
    elif not rows:
        click.echo("No parked runs.")
    return int(any(row.get("exit_code", 0) not in (0, TRY_LATER) or row["state"] == "failed" for row in rows))


def _parked_text(until: float, now: float) -> str:
    from rung.engine.local_zone import local_zone

    return f"parked until {format_moment(until, now, local_zone())}, in {format_span(until - now)}"


def _resumed(store: Journal, run: OpenRunRow, *, only_list: bool, is_named: bool) -> dict[str, Any]:
    """Resume a run whose task is imported. Return what is known about the run."""
    from rung.engine.durable.tasks import TASKS, start_blocking

    state = _state(run, TASKS)
    row: dict[str, Any] = {"run": run.id, "task": run.task, "state": state}
    until = _parked_until(store, run.id)
    if until is not None:
        return row | {"state": PARKED, "parked_until": rfc3339(until), "owned": run.owned}
    if state == "left" and not only_list:
        if not is_named:
            _record_restart(store, run.id)
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


def _parked_until(store: Journal, run: str) -> float | None:
    from rung.core.domain.incident import Incident

    return Incident.of(store.events(run)).parked_until


def import_task_module(module: str) -> None:
    """Import a module that registers tasks."""
    try:
        import_module(module)
    except Exception as error:  # noqa: BLE001  # the module is the user's, and may raise anything
        why = f"{type(error).__name__}: {error}"
        raise ConfigError("--import", module, f"a module that can be imported from here ({why})") from None


def _state(run: OpenRunRow, tasks: dict[str, Any]) -> str:
    if run.owned:
        return "running"
    if run.task == TASK:
        return STOPPED
    if not run.task:
        return "waits for its caller"
    return "left" if run.task in tasks else "task not imported"


def _print_run(row: dict[str, Any]) -> None:
    detail = row.get("error") or row.get("command") or row.get("parked_until") or row.get("result", "")
    click.echo(f"{row['run']}  {row['task'] or '-'}  {click.style(row['state'], bold=True)}  {detail}".rstrip())
