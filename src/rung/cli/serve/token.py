"""`rung token`: adds, lists and revokes access tokens of the service."""

from __future__ import annotations

from typing import Final

import click

from rung.cli.command_group import CommandGroup
from rung.cli.help_text import epilogue
from rung.cli.journal.option import existing_journal, journal_option
from rung.cli.numbers import MAX_DAYS, FiniteRange
from rung.cli.output import json_option, print_json
from rung.core.text.units import format_time

ROLES: Final = ("read", "act", "admin")


@click.group(cls=CommandGroup)
def command() -> None:
    """Add, list and revoke tokens of the service."""


@command.command("add", epilog=epilogue(examples=("rung token add ann --role act --days 30",)))
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default="read",
    show_default=True,
    help="Role of the token: read the data, also act on sessions, or administer.",
)
@click.option(
    "--days", type=FiniteRange(0, MAX_DAYS, min_open=True), metavar="N", help="Days until it expires (default: never)."
)
@journal_option
def add(name: str, *, role: str, days: float | None, journal_at: str | None) -> None:
    """Create a token for NAME. It is printed only once."""
    from rung.service.auth import add_token

    with existing_journal(journal_at) as journal:
        token = add_token(journal, name, role, days=days, by="command line")
    click.echo(token)
    click.echo(f"rung: token of {name}, role {role}; it is not shown again", err=True)


@command.command("list", epilog=epilogue(examples=("rung token list",)))
@journal_option
@json_option
def show(*, journal_at: str | None, as_json: bool) -> None:
    """List the tokens by name; their values are not stored."""
    from rung.service.auth import tokens

    with existing_journal(journal_at) as journal:
        existing = tokens(journal)
    if as_json:
        print_json({"tokens": [token._asdict() for token in existing]})
        return
    for token in existing:
        until = f"until {format_time(token.ends_at, to='minutes')}" if token.ends_at is not None else "no expiry"
        click.echo(f"{token.name:<24} {token.role:<6} created {format_time(token.made_at, to='minutes')}, {until}")
    if not existing:
        click.echo("No tokens except the administrator's, which `rung serve` prints.")


@command.command("revoke", epilog=epilogue(examples=("rung token revoke ann",)))
@click.argument("name")
@journal_option
def revoke(name: str, *, journal_at: str | None) -> None:
    """Revoke the tokens of NAME."""
    from rung.cli.usage import UsageError
    from rung.service.auth import revoke_token

    with existing_journal(journal_at) as journal:
        count = revoke_token(journal, name, by="command line")
    if not count:
        raise UsageError(f"there is no token of {name!r} (see `rung token list`)")
    click.echo(f"{count} revoked; takes effect within seconds.")
