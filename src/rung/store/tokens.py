"""Access tokens of the service, stored as hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rung.store.backends.port import Database, Readable


class TokenRow(NamedTuple):
    """Stored token: its hash, owner, role and lifetime."""

    hash: str
    name: str
    role: str
    made_at: float
    ends_at: float | None


def insert_token(database: Database, row: TokenRow) -> None:
    """Store a token."""
    database.write(
        lambda connection: connection.execute(
            "INSERT INTO token (hash, name, role, made_at, ends_at) VALUES (?, ?, ?, ?, ?)", row
        ),
        lambda connection: bool(connection.execute("SELECT 1 FROM token WHERE hash = ?", (row.hash,))),
    ).result()


def token_by_hash(database: Readable, hash_: str) -> TokenRow | None:
    """Return the token with this hash; None when there is none."""
    rows = database.read("SELECT hash, name, role, made_at, ends_at FROM token WHERE hash = ?", (hash_,))
    return TokenRow(*rows[0]) if rows else None


def all_tokens(database: Readable) -> list[TokenRow]:
    """Return all stored tokens, the oldest first."""
    return [
        TokenRow(*row) for row in database.read("SELECT hash, name, role, made_at, ends_at FROM token ORDER BY made_at")
    ]


def delete_tokens(database: Database, name: str) -> int:
    """Delete the tokens of this owner; return their number."""
    rows = database.write(
        lambda connection: connection.execute("DELETE FROM token WHERE name = ? RETURNING hash", (name,)),
        lambda connection: not connection.execute("SELECT 1 FROM token WHERE name = ?", (name,)),
    ).result()
    return len(rows)
