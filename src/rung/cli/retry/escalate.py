"""`rung escalate`: switches a session to another model from its next call, after an estimate."""

from __future__ import annotations

from typing import Any

import click

from rung.cli.complete_names import complete_model
from rung.cli.help_text import epilogue
from rung.cli.journal.option import journal_option
from rung.cli.output import json_option, print_json
from rung.cli.retry.option import (
    confirm,
    describe_estimate,
    refusals_printed,
    service_option,
    token_option,
    yes_option,
)


@click.command(epilog=epilogue(examples=("rung escalate SESSION", "rung escalate SESSION --to opus --yes")))
@click.argument("session")
@click.option(
    "--to",
    "to_model",
    metavar="MODEL",
    default="",
    shell_complete=complete_model,
    help="Model to use (default: the policy's next one).",
)
@yes_option
@journal_option
@service_option
@token_option
@json_option
def command(session: str, to_model: str, **options: Any) -> None:
    """Switch SESSION to another model from its next call.

    The estimate of a call on it is shown first, in total and as a difference, and must be confirmed. A recovery that
    waits continues at once with the new model.

    Exit codes: 0 switched, 2 wrong usage or no such session, 4 nothing was done: no model above, a budget forbids it, or
    the estimate was not confirmed.
    """
    act = _by_service if options["service"] else _by_journal
    with refusals_printed(session, options, done=False):
        done = act(session, to_model, options)
    if options["as_json"]:
        print_json({"session": session, "done": True, **done})
    else:
        click.echo(f"{session} uses {done['to_model']} from its next call.")


def _by_journal(session: str, to_model: str, options: dict[str, Any]) -> dict[str, Any]:
    from rung.cli.audit import account
    from rung.cli.retry.local_actions import local_actions

    with local_actions(options["journal_at"], session) as actions:
        planned = actions.escalations.plan(session, to_model)
        found = planned.quote.fields()
        _ask(session, found, options)
        actions.escalations.carry_out(planned, account())
    return found


def _by_service(session: str, to_model: str, options: dict[str, Any]) -> dict[str, Any]:
    from rung.cli.retry.service_client import ServiceClient

    service = ServiceClient.of(options["service"], options["token"])
    found = service.session(session, "escalate", {"toModel": to_model} if to_model else {})
    _ask(session, found, options)
    done = service.session(session, "escalate", {"confirm": found["token"]})
    return {name: value for name, value in done.items() if name not in ("token", "done")}


def _ask(session: str, found: dict[str, Any], options: dict[str, Any]) -> None:
    if not options["as_json"]:
        click.echo(describe_estimate(found), err=True)
    confirm(f"switch {session} to {found['to_model']}?", yes=options["yes"])
