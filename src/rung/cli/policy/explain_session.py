"""`rung explain SESSION`: the root cause of a session's failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rung.cli.journal.option import existing_journal
from rung.cli.output import paragraph, print_json, print_row
from rung.core.domain.errors import RungError

if TYPE_CHECKING:
    from rung.cli.usage import UsageError
    from rung.core.recovery.root_cause import RootCause


def explain_session(name: str, journal_at: str | None, unknown: UsageError, *, as_json: bool) -> None:
    """Print the root cause of a session; raise `unknown` if the journal has no session of this name with a failure."""
    from rung.wiring.session_causes import session_root_cause

    try:
        with existing_journal(journal_at) as journal:
            cause = session_root_cause(journal, name)
    except RungError:
        if journal_at is not None:
            raise
        cause = None  # without a journal there are no sessions
    if cause is None:
        raise unknown
    if as_json:
        print_json({"session": name, **cause.to_json()})
    else:
        _show(name, cause)


def _show(name: str, cause: RootCause) -> None:
    click.echo(f"{click.style(name, bold=True, fg='cyan')}  {click.style('(session)', dim=True)}")
    click.echo(paragraph(cause.sentence) + "\n")
    if cause.step is None:
        return
    print_row("kind", str(cause.kind))
    print_row("incident", cause.where)
    print_row("confidence", f"{cause.confidence:.0%} of the failures are explained by it")
    if cause.chain:
        print_row("follows", [f"{one.step}: {one.link}" for one in cause.chain])
