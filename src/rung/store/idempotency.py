"""Idempotency keys of the HTTP API and the responses they received."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rung.store.backends.port import BackendConnection, Database


class StoredResponse(NamedTuple):
    """Digest of the request that claimed a key, and its response; an empty body means it is still running."""

    digest: str
    body: str


def claim_key(database: Database, key: str, digest: str, now: float, *, keep_seconds: float) -> StoredResponse | None:
    """Claim a key for a request; return the stored response when it is already claimed. Old keys are deleted."""

    def work(connection: BackendConnection) -> StoredResponse | None:
        rows = connection.execute("SELECT digest, body FROM reply WHERE key = ?", (key,))
        if rows:
            return StoredResponse(*rows[0])
        connection.execute("DELETE FROM reply WHERE at < ?", (now - keep_seconds,))
        connection.execute(
            "INSERT INTO reply (key, digest, status, body, at) VALUES (?, ?, 0, '', ?)", (key, digest, now)
        )
        return None

    return database.write(
        work, lambda connection: bool(connection.execute("SELECT 1 FROM reply WHERE key = ?", (key,)))
    ).result()


def store_response(database: Database, key: str, body: str) -> None:
    """Store the response to the request that claimed a key."""
    database.write(
        lambda connection: connection.execute("UPDATE reply SET body = ? WHERE key = ?", (body, key)), lambda _: True
    ).result()


def release_key(database: Database, key: str) -> None:
    """Release a key whose request failed."""
    database.write(
        lambda connection: connection.execute("DELETE FROM reply WHERE key = ?", (key,)), lambda _: True
    ).result()
