"""DBOS's own tables: created and migrated by DBOS, in a PostgreSQL schema beside the journal's, with the owner's rights."""

from __future__ import annotations

import logging

from rung.core.domain.errors import StoreError


def migrate_dbos(url: str, schema: str) -> None:
    """Create or migrate DBOS's tables. Workers never do: their role must not be able to."""
    from dbos import DBOS

    logging.getLogger("dbos").setLevel(logging.WARNING)
    try:
        DBOS.migrate(url.replace("postgres://", "postgresql://", 1), schema=schema)
    except Exception as error:  # noqa: BLE001  # of SQLAlchemy, psycopg or DBOS
        raise StoreError(f"DBOS cannot migrate schema {schema}: {' '.join(str(error).split())[:400]}") from None
