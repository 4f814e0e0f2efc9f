"""Preparation of a PostgreSQL database for a fleet: the journal's schema, and rights of a role that changes rows alone.

The owner of the schema runs the migrations. The application role, with which workers, gateways and services connect, has
no right to create, alter, drop or truncate anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.domain.errors import ConfigError, StoreError, StoreUnavailable
from rung.store.backends.migrations import LATEST_VERSION, statements
from rung.store.backends.postgres import SQL_TYPES, PostgresBackend, PostgresConnection

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_ROLE_BYTES: Final = 63  # of a name in PostgreSQL


class PreparedFleet(NamedTuple):
    """Database that is ready for a fleet; `has_new_role` if the application role was created."""

    url: str  # without its password
    schema: str
    version: int
    has_new_role: bool = False


def prepare_journal(url: str) -> PreparedFleet:
    """Create or migrate the schema of the journal. Raise StoreUnavailable when the server cannot be reached."""
    backend = PostgresBackend(url)
    _connect(backend).close()
    return PreparedFleet(backend.url, backend.schema, LATEST_VERSION)


def grant_role(url: str, role: str, engine_schemas: Sequence[str] = ()) -> bool:
    """Give the application role its rights, and no others, in all schemas; return True if it had to be created."""
    check_role(role)
    backend = PostgresBackend(url)
    connection = _connect(backend)
    try:
        is_new = not _check_not_owner(connection, role)
        with connection.raw.transaction():
            if is_new:
                _execute(connection, create_role(role))
            for statement in role_statements(backend.schema, role, engine_schemas):
                _execute(connection, statement)
    finally:
        connection.raw.close()
    return is_new


def journal_statements(schema: str) -> Iterator[str]:
    """Yield the SQL that creates the journal's schema in a database that has none, for review by its owner."""
    yield f"CREATE SCHEMA {schema}"
    yield f"SET LOCAL search_path TO {schema}"
    for number in range(1, LATEST_VERSION + 1):
        for statement in statements(number, SQL_TYPES):
            yield statement.strip()
    yield f"INSERT INTO rung_schema (version) VALUES ({LATEST_VERSION})"  # noqa: S608  # a constant


def create_role(role: str) -> str:
    """Return the SQL that creates an application role without a password."""
    return f"CREATE ROLE {_quoted(role)} LOGIN"


def role_statements(schema: str, role: str, engine_schemas: Sequence[str] = ()) -> Iterator[str]:
    """Yield the SQL that gives an application role its rights in the journal's schema and in an engine's own."""
    who = _quoted(role)
    for name in (schema, *engine_schemas):
        yield f"REVOKE ALL ON SCHEMA {name} FROM {who}"
        yield f"GRANT USAGE ON SCHEMA {name} TO {who}"
        yield f"REVOKE ALL ON ALL TABLES IN SCHEMA {name} FROM {who}"
        yield f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {name} TO {who}"
        yield f"GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {name} TO {who}"
        for what, rights in (("TABLES", "SELECT, INSERT, UPDATE, DELETE"), ("SEQUENCES", "USAGE, SELECT")):
            yield f"ALTER DEFAULT PRIVILEGES IN SCHEMA {name} GRANT {rights} ON {what} TO {who}"
    yield f"REVOKE INSERT, UPDATE, DELETE ON {schema}.rung_schema FROM {who}"


def check_role(role: str) -> None:
    """Raise ConfigError when a name cannot be a role's."""
    if not role or "\0" in role or len(role.encode()) > MAX_ROLE_BYTES or role.startswith("pg_"):
        raise ConfigError("--role", role, f"a role name of at most {MAX_ROLE_BYTES} bytes that does not start with pg_")


def _check_not_owner(connection: PostgresConnection, role: str) -> bool:
    """Return whether the role exists; raise ConfigError when it could change the schema anyway."""
    found = connection.execute(
        "SELECT rolsuper OR pg_has_role(rolname, current_user, 'MEMBER') FROM pg_roles WHERE rolname = ?", (role,)
    )
    if found and found[0][0]:
        raise ConfigError("--role", role, "another role than the schema's owner, and no superuser")
    return bool(found)


def _connect(backend: PostgresBackend) -> PostgresConnection:
    import psycopg

    try:
        return backend.connect(write=True)
    except StoreError as error:
        if isinstance(error.__context__, psycopg.OperationalError):  # what the back end was told by the server, or not
            raise StoreUnavailable(str(error)) from None
        raise


def _execute(connection: PostgresConnection, statement: str) -> None:
    import psycopg

    try:
        connection.raw.execute(statement)
    except psycopg.Error as error:
        raise StoreError(f"{' '.join(str(error).split())}; as the owner, run: {statement}") from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
