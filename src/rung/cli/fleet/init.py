"""`rung fleet init`: prepares a PostgreSQL database for a fleet."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from rung.cli.exit_codes import TRY_LATER
from rung.cli.help_text import epilogue
from rung.core.domain.errors import ConfigError, StoreUnavailable

if TYPE_CHECKING:
    from rung.store.fleet.prepare import PreparedFleet


@click.command(
    epilog=epilogue(examples=("rung fleet init --url postgresql://owner@db/rung \\", "  --role rung_worker"))
)
@click.option("--url", metavar="URL", help="Database, as its owner (default: `[fleet] url`, or the journal).")
@click.option(
    "--engine",
    "engine_name",
    type=click.Choice(("embedded", "dbos", "temporal")),
    help="Durable engine (default: `[fleet] engine`, or embedded).",
)
@click.option(
    "--role", metavar="NAME", help="Role for workers, gateways and services: it may change rows and nothing else."
)
@click.option("--print-sql", is_flag=True, help="Print the SQL for a new database and change nothing.")
def command(*, url: str | None, engine_name: str | None, role: str | None, print_sql: bool) -> None:
    """Prepare a PostgreSQL database for a fleet; it is safe to run again, and after each update of Rung.

    It creates or migrates the schema of the journal, and the schema of the engine dbos. With --role, it also creates a role
    that cannot change the schemas, and gives it its rights: let all processes of the fleet connect with it.

    Exit codes: 0 the database is ready; 2 wrong usage or missing rights; 75 the server cannot be reached.
    """
    engine, at = _target(engine_name, url)
    if role is not None:
        from rung.store.fleet.prepare import check_role

        check_role(role)
    if print_sql:
        _print_sql(at, engine, role)
        return
    try:
        prepared = _prepare(at, engine, role)
    except StoreUnavailable as error:
        click.echo(f"rung: the server cannot be reached: {error}", err=True)
        sys.exit(TRY_LATER)
    _report(prepared, engine, role)


def _target(engine_name: str | None, url: str | None) -> tuple[str, str]:
    from rung.wiring.engines import fleet_settings
    from rung.wiring.journals import is_url, locate

    settings = fleet_settings()
    own = "" if settings.engine == "temporal" else settings.url  # of temporal, the address of its server
    at = url or own or locate(None).at
    if not is_url(at):
        raise ConfigError("--url", at, "a postgresql:// URL, or RUNG_JOURNAL set to one: a fleet shares a PostgreSQL")
    return engine_name or settings.engine, at


def _engine_schemas(engine: str) -> list[str]:
    if engine != "dbos":
        return []
    try:
        from rung.adapters.engines.dbos.engine import SCHEMA
    except ImportError:
        raise ConfigError("--engine", engine, "an installed engine: pip install 'rung[dbos]'") from None
    return [SCHEMA]


def _prepare(at: str, engine: str, role: str | None) -> PreparedFleet:
    from rung.store.fleet.prepare import grant_role, prepare_journal

    schemas = _engine_schemas(engine)
    prepared = prepare_journal(at)
    for schema in schemas:
        from rung.adapters.engines.dbos.schema import migrate_dbos

        migrate_dbos(at, schema)
    return prepared if role is None else prepared._replace(has_new_role=grant_role(at, role, schemas))


def _print_sql(at: str, engine: str, role: str | None) -> None:
    from rung.store.backends.postgres import PostgresBackend
    from rung.store.fleet.prepare import create_role, journal_statements, role_statements

    schema, schemas = PostgresBackend(at).schema, _engine_schemas(engine)
    click.echo("-- For a database without a journal; `rung fleet init` also migrates an older one.\nBEGIN;")
    for statement in journal_statements(schema):
        click.echo(f"{statement};")
    click.echo("COMMIT;")
    for name in schemas:
        click.echo(f"-- The tables of DBOS: dbos migrate --schema {name} --print-migrations all")
    if role is not None:
        click.echo(f"{create_role(role)};  -- if it does not exist; set its password")
        for statement in role_statements(schema, role, schemas):
            click.echo(f"{statement};")


def _report(prepared: PreparedFleet, engine: str, role: str | None) -> None:
    click.echo(f"{prepared.url}: journal in schema {prepared.schema}, version {prepared.version}")
    for schema in _engine_schemas(engine):
        click.echo(f"  tables of DBOS in schema {schema}")
    if engine == "temporal":
        click.echo("  Temporal keeps its own database: create its namespace with `temporal operator namespace create`")
    if role is None:
        click.echo("  no role was given: with --role NAME, the fleet needs no right to change the schema")
        return
    click.echo(f"  role {role}: may change rows, and nothing else")
    if prepared.has_new_role:
        click.echo("  it is new and has no password: set one with \\password in psql")
