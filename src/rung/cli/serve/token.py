"""`rung token`: adds, lists and revokes access tokens of the service."""

from __future__ import annotations

from typing import Final

import click

from rung.cli.journal.option import existing_journal, journal_option
from rung.cli.output import json_option, print_json
from rung.core.text.units import format_time

ROLES: Final = ("read", "act", "admin")


@click.group(short_help="Add, list and revoke access tokens of the service.")
def command() -> None:
    """Add, list and revoke tokens of the service."""


@command.command("add")
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), default="read", show_default=True, help="Role of the token.")
@click.option("--days", type=click.FloatRange(0, min_open=True), help="Expires after N days.")
@journal_option
def add(name: str, *, role: str, days: float | None, journal_at: str | None) -> None:
    """Create a token for NAME. It is printed only once."""
    from rung.service.auth import add_token

    with existing_journal(journal_at) as journal:
        token = add_token(journal, name, role, days=days, by="command line")
    click.echo(token)
    click.echo(f"rung: token of {name}, role {role}; it is not shown again", err=True)


@command.command("list")
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


@command.command("revoke")
@click.argument("name")
@journal_option
def revoke(name: str, *, journal_at: str | None) -> None:
    """Revoke the tokens of NAME."""
    from rung.core.domain.errors import ConfigError
    from rung.service.auth import revoke_token

    with existing_journal(journal_at) as journal:
        count = revoke_token(journal, name, by="command line")
    if not count:
        raise ConfigError("name", name, "the name of a token (see `rung token list`)")
    click.echo(f"{count} revoked; takes effect within seconds.")
