"""Numbered forward migrations: applied once, in one transaction, whoever comes first."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from rung.core.domain.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rung.store.backends.port import BackendConnection

LATEST: Final = 2


def migrate(connection: BackendConnection, url: str, words: Mapping[str, str], *, mark: str = "") -> None:
    """Bring the schema up to date. A newer one than we know is not touched."""
    if version(connection) == LATEST:
        return
    connection.begin()  # from here on no other process migrates
    try:
        have = version(connection)
        _known(have, url)
        for number in range(have + 1, LATEST + 1):
            for statement in _statements(number, words):
                connection.execute(statement)
        if have == 0:
            connection.execute("INSERT INTO rung_schema (version) VALUES (?)", (LATEST,))
        else:
            connection.execute("UPDATE rung_schema SET version = ?", (LATEST,))
        if mark:
            connection.execute(mark)
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def _known(have: int, url: str) -> None:
    if have > LATEST:
        raise StoreError(f"{url}: was written by a newer Rung (schema {have}; this one knows {LATEST}): update Rung")


def check_version(connection: BackendConnection, url: str) -> None:
    """A reader, too, must know what it reads."""
    have = version(connection)
    _known(have, url)
    if have < LATEST:
        raise StoreError(f"{url}: is of an older schema ({have}): open it once with a command that writes")


def version(connection: BackendConnection) -> int:
    """The schema's number; 0: there is none."""
    if not connection.execute(EXISTS[type(connection).__name__]):
        return 0
    ((number,),) = connection.execute("SELECT version FROM rung_schema")
    return int(number)


EXISTS: Final = {
    "SqliteConnection": "SELECT 1 FROM sqlite_schema WHERE name = 'rung_schema'",
    "PostgresConnection": "SELECT 1 FROM pg_class WHERE relname = 'rung_schema' AND relkind = 'r'"
    " AND relnamespace = current_schema()::regnamespace",
}


def _statements(number: int, words: Mapping[str, str]) -> Iterator[str]:
    if number == 1:
        yield f"CREATE TABLE rung_schema (version {words['whole']} NOT NULL){words['strict']}"
    text = (files("rung.store.backends") / "sql" / f"{number:04}.sql").read_text("utf-8")
    plain = re.sub(r"--[^\n]*", "", text)
    for name, word in words.items():
        plain = plain.replace(f"{{{name}}}", word)
    for statement in plain.split(";"):
        if statement.strip():
            yield statement
