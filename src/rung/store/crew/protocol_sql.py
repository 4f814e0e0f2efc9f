"""Statements of the conductor's protocol, as a document or a conductor of one's own writes them, run with the crew's key."""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING, Final

from rung.core.classify.evidence import clip
from rung.core.domain.errors import ConfigError, RungError

if TYPE_CHECKING:
    from rung.store.backends.port import Row
    from rung.store.crew.table import CrewTable

_OWN_TRANSACTION: Final = re.compile(
    r"(?:\s|--[^\n]*\n)*(BEGIN|COMMIT|END|ROLLBACK|START|SAVEPOINT|RELEASE)\b", re.IGNORECASE
)
_MAX_SHOWN_CHARS: Final = 80  # of a statement, in an error
_NOTHING: Final = re.compile(r"(?:\s|;|--[^\n]*(?:\n|$))*")


def split_statements(text: str) -> list[str]:
    """Return the statements of a text; a semicolon inside quotes or a comment ends none."""
    statements, begun = [], ""
    for part in re.split(r"(?<=;)", text):
        begun += part
        if sqlite3.complete_statement(begun):
            statements.append(begun)
            begun = ""
    statements.append(begun)
    return [statement.strip() for statement in statements if not _NOTHING.fullmatch(statement)]


def run_as_conductor(table: CrewTable, text: str) -> list[Row]:
    """Run the statements in one transaction with the rights of the conductor; return the rows of all of them.

    Raises StoreError without the crew's key. Nothing is written if one of them breaks the contract (IllegalTransition) or
    is not accepted by the database (ConfigError).
    """
    statements = split_statements(text)
    if not statements:
        raise ConfigError("SQL", "", "one statement or more")
    for statement in statements:
        if _OWN_TRANSACTION.match(statement):
            raise ConfigError("SQL", statement.split()[0], "statements alone: they run in one transaction")
    with table.signed_in():
        return [row for statement in statements for row in _execute(table, statement)]


def _execute(table: CrewTable, statement: str) -> list[Row]:
    try:
        return table.connection.execute(statement)
    except RungError:
        raise
    except Exception as error:  # noqa: BLE001  # of either driver: the statement is wrong
        raise ConfigError("SQL", clip(statement, _MAX_SHOWN_CHARS), f"SQL that the database accepts: {error}") from None
