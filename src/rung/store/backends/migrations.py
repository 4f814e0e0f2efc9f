"""Numbered forward schema migrations, applied once, in one transaction, by the first writer."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from rung.core.domain.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rung.store.backends.port import BackendConnection

LATEST_VERSION: Final = 3


def migrate(connection: BackendConnection, url: str, sql_types: Mapping[str, str], *, last_statement: str = "") -> None:
    """Migrate the schema to the latest version; raise StoreError when it is newer than this Rung."""
    if schema_version(connection) == LATEST_VERSION:
        return
    connection.begin()  # the write lock: no other process migrates concurrently
    try:
        current = schema_version(connection)
        _reject_newer(current, url)
        for number in range(current + 1, LATEST_VERSION + 1):
            for statement in statements(number, sql_types):
                connection.execute(statement)
        if current == 0:
            connection.execute("INSERT INTO rung_schema (version) VALUES (?)", (LATEST_VERSION,))
        else:
            connection.execute("UPDATE rung_schema SET version = ?", (LATEST_VERSION,))
        if last_statement:
            connection.execute(last_statement)
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def _reject_newer(current: int, url: str) -> None:
    if current > LATEST_VERSION:
        raise StoreError(
            f"{url}: was written by a newer Rung (schema {current}; this one supports {LATEST_VERSION}): update Rung"
        )


def check_version(connection: BackendConnection, url: str) -> None:
    """Raise StoreError when a reader cannot read this schema version."""
    current = schema_version(connection)
    _reject_newer(current, url)
    if current < LATEST_VERSION:
        raise StoreError(f"{url}: has the older schema {current}: open it once with a command that writes")


def schema_version(connection: BackendConnection) -> int:
    """Return the schema version; 0 when there is no schema."""
    if not connection.execute(_SCHEMA_EXISTS[type(connection).__name__]):
        return 0
    ((number,),) = connection.execute("SELECT version FROM rung_schema")
    return int(number)


_SCHEMA_EXISTS: Final = {
    "SqliteConnection": "SELECT 1 FROM sqlite_schema WHERE name = 'rung_schema'",
    "PostgresConnection": "SELECT 1 FROM pg_class WHERE relname = 'rung_schema' AND relkind = 'r'"
    " AND relnamespace = current_schema()::regnamespace",
}


def statements(number: int, sql_types: Mapping[str, str]) -> Iterator[str]:
    """Yield the SQL statements of a migration, with the column types of a back end."""
    if number == 1:
        yield f"CREATE TABLE rung_schema (version {sql_types['whole']} NOT NULL){sql_types['strict']}"
    text = (files("rung.store.backends") / "sql" / f"{number:04}.sql").read_text("utf-8")
    plain = re.sub(r"--[^\n]*", "", text)
    for name, sql_type in sql_types.items():
        plain = plain.replace(f"{{{name}}}", sql_type)
    for statement in plain.split(";"):
        if statement.strip():
            yield statement
