"""`rung retry`: makes the failed call of a session again, with its error as context, from the command line."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click

from rung.cli.complete_names import complete_model
from rung.cli.help_text import epilogue
from rung.cli.journal.option import journal_option
from rung.cli.output import json_option, print_json
from rung.cli.retry.option import (
    confirm,
    describe_estimate,
    refusals_printed,
    refuse,
    service_option,
    token_option,
    yes_option,
)
from rung.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from rung.cli.retry.local_actions import LocalActions
    from rung.service.retry_ways import RetryChoice

_POLL_SECONDS: Final = 0.3
_MODES: Final = ("context", "plain", "model", "prompt")


@click.command(epilog=epilogue(examples=("rung retry SESSION", "rung retry SESSION --mode model --model opus")))
@click.argument("session")
@click.option(
    "--mode",
    type=click.Choice(_MODES),
    help="With the error as context (default), unchanged, on --model, or with --prompt.",
)
@click.option(
    "--model",
    metavar="NAME",
    default="",
    shell_complete=complete_model,
    help="Model to retry on (default: that of the session).",
)
@click.option("--prompt", metavar="TEXT", default="", help="Prompt in place of the error context.")
@click.option("--api-key-env", metavar="NAME", help="Variable with a key, where the client used its own.")
@yes_option
@journal_option
@service_option
@token_option
@json_option
def command(session: str, **options: Any) -> None:
    """Make the failed call of SESSION again: of a program, of the gateway, of `rung run`, of a pipeline's stage, or of a coding agent.

    A recovery that still waits continues at once. A call of the gateway is made by the running gateway, with its own key. A
    command of `rung run` runs again in its directory, in this terminal, and decides the exit code; it must be one of this
    account on this machine. A stage of a pipeline is tried again by resuming its run; a coding agent with hooks
    continues its own session. A model that costs more is estimated first and must be confirmed.

    Exit codes: 0 succeeded, or ordered, 1 failed again, 2 wrong usage or no such session, 4 nothing was done: it cannot be
    retried (the reason is printed), a budget forbids it, or the estimate was not confirmed.
    """
    choice = _choice(options)
    act = _by_service if options["service"] else _by_journal
    with refusals_printed(session, options, how="refused", ok=False, result=None):
        sys.exit(act(session, choice, options))


def _choice(options: dict[str, Any]) -> RetryChoice:
    from rung.service.retry_ways import RetryChoice

    given = {"prompt": "prompt", "model": "model"}
    mode = options["mode"] or next((given[name] for name in given if options[name]), "context")
    for name in given:
        if mode == name and not options[name]:
            raise ConfigError(f"--{name}", "", f"given with --mode {mode}")
    variable = options["api_key_env"]
    if variable and not os.environ.get(variable):
        raise ConfigError("--api-key-env", variable, "the name of an environment variable that is set")
    return RetryChoice(mode, options["model"], options["prompt"], os.environ.get(variable, "") if variable else "")


def _by_journal(session: str, choice: RetryChoice, options: dict[str, Any]) -> int:
    from rung.cli.audit import account
    from rung.cli.retry.local_actions import local_actions
    from rung.cli.run.parked_call import RETRY_VARIABLE, replace_process
    from rung.service.incident_status import order_note
    from rung.wiring.journals import absolute_path

    with local_actions(options["journal_at"], session) as actions:
        planned = actions.retries.plan(session, choice, account())
        is_open = planned.incident.status is None
        if not is_open:
            actions.retries.replayers.check(planned.incident, choice)
        found = planned.quote.fields()
        _ask(session, found, options, must_confirm=planned.must_confirm)
        name = actions.retries.carry_out(planned, choice)
        is_open = name == planned.incident.id  # it may have ended meanwhile
        if actions.command.call is None:
            if is_open:
                note = order_note(planned.incident, planned.events, time.time())
                return _report(session, {**found, "how": "ordered", "incident": name, "note": note}, None, options)
            result = _wait_for(actions, name)
            return _report(session, {**found, "how": "replayed", "incident": name}, result, options)
    call = actions.command.call
    if not options["as_json"]:
        replace_process(call, name, absolute_path(options["journal_at"]), RETRY_VARIABLE)
    return _report(session, {**found, "how": "run", "incident": name}, _captured(call, name, options), options)


def _by_service(session: str, choice: RetryChoice, options: dict[str, Any]) -> int:
    from rung.cli.retry.service_client import ServiceClient

    service = ServiceClient.of(options["service"], options["token"])
    fields = {"mode": choice.mode, "model": choice.model, "prompt": choice.prompt, "apiKey": choice.api_key}
    body = {name: value for name, value in fields.items() if value}
    found = service.session(session, "retry", body)
    _ask(session, found, options, must_confirm=found["how"] == "estimated")
    if found["how"] == "estimated":
        found = service.session(session, "retry", {**body, "confirm": found["token"]})
    result = None
    while found["how"] == "replayed" and result is None:
        time.sleep(_POLL_SECONDS)
        incident = service.incident(found["incident"]) if found["incident"] else {}
        if incident.get("status") not in (None, "open", "running", "retrying", "parked", "waiting"):
            ok = incident["status"] in ("succeeded", "recovered")
            result = {"ok": ok, "text": incident.get("result") or incident.get("reason") or ""}
    found.pop("token", None)
    return _report(session, found, result, options)


def _ask(session: str, found: dict[str, Any], options: dict[str, Any], *, must_confirm: bool) -> None:
    if not options["as_json"]:
        click.echo(describe_estimate(found), err=True)
    if must_confirm:
        confirm(f"retry {session} on {found['to_model']}?", yes=options["yes"])


def _wait_for(actions: LocalActions, name: str) -> dict[str, Any]:
    """Wait for the result of a call that is made again: by this process, or by a gateway that takes the order."""
    from rung.store.replay_orders import ORDER_SECONDS, pending_orders

    journal, ordered_at = actions.journal, time.monotonic()
    while (result := journal.runs.received(f"result/{name}")) is None:
        if time.monotonic() - ordered_at > ORDER_SECONDS and name in pending_orders(journal):
            refuse("no gateway has taken the order: is it running on this journal?")
        time.sleep(_POLL_SECONDS)
    return dict(result)


def _captured(call: Any, name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Run the command with its output captured; return how it ended."""
    import subprocess

    from rung.cli.run.parked_call import RETRY_VARIABLE
    from rung.wiring.journals import absolute_path

    environment = call.environment(name, absolute_path(options["journal_at"]), variable=RETRY_VARIABLE)
    with call.input_file() as given:
        done = subprocess.run(  # noqa: S603  # the user's own command
            call.command(), cwd=call.folder, env=environment, stdin=given, stdout=subprocess.PIPE, check=False
        )
    text = done.stdout.decode("utf-8", "replace")
    return {"ok": done.returncode == 0, "text": text, "exit_code": done.returncode}


def _report(session: str, found: dict[str, Any], result: dict[str, Any] | None, options: dict[str, Any]) -> int:
    code = 0 if result is None or result["ok"] else int(result.get("exit_code", 1))
    if options["as_json"]:
        print_json({"session": session, **found, "ok": None if result is None else result["ok"],
                    "result": None if result is None else result["text"]})  # fmt: skip
    elif result is None:
        click.echo(f"{found['incident']}: {found['note']}.")
    else:
        click.echo(result["text"])
        click.echo(f"rung: {found['incident']} {'succeeded' if result['ok'] else 'failed'}", err=True)
    return code
