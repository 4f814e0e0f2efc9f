"""Versioned settings and the append-only audit trail."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from rung.core.classify.redaction import redacted
from rung.core.domain.errors import VersionConflict
from rung.store.messages import as_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.store.backends.port import BackendConnection, Database


class StoredSetting(NamedTuple):
    """Setting with its version; version 0 means that it was never set."""

    name: str
    body: Any
    version: int
    at: float
    who: str


class AuditEntry(NamedTuple):
    """Action of an operator."""

    seq: int
    at: float
    who: str
    action: str
    subject: str
    detail: Any


def setting(journal: Database, name: str) -> StoredSetting:
    """Return the setting with this name."""
    rows = journal.read("SELECT body, version, at, who FROM setting WHERE name = ?", (name,))
    if not rows:
        return StoredSetting(name, None, 0, 0.0, "")
    ((body, version, at, who),) = rows
    return StoredSetting(name, json.loads(body), version, at, who)


def settings(journal: Database, prefix: str) -> list[StoredSetting]:
    """Return all settings whose name has this prefix."""
    rows = journal.read("SELECT name, body, version, at, who FROM setting ORDER BY name")
    return [
        StoredSetting(name, json.loads(body), version, at, who)
        for name, body, version, at, who in rows
        if name.startswith(prefix)
    ]


def put_setting(journal: Database, name: str, body: Any, who: str, *, expected: int | None = None) -> StoredSetting:
    """Change a setting and audit it in one transaction; raise VersionConflict unless its version is `expected`."""
    encoded, now = as_json(body, f"the setting {name}"), time.time()

    def work(connection: BackendConnection) -> int:
        rows = connection.execute("SELECT version, body FROM setting WHERE name = ?", (name,))
        version, before = rows[0] if rows else (0, "null")
        if expected is not None and version != expected:
            raise VersionConflict(name, expected, version)
        connection.execute(
            "INSERT INTO setting (name, body, version, at, who) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (name) DO UPDATE SET body = excluded.body, version = excluded.version, at = excluded.at,"
            " who = excluded.who",
            (name, encoded, version + 1, now, who),
        )
        _insert_audit(connection, now, who, "set", name, {"before": json.loads(before), "after": body})
        return int(version) + 1

    def present(connection: BackendConnection) -> bool:
        return bool(
            connection.execute("SELECT 1 FROM setting WHERE name = ? AND at = ? AND body = ?", (name, now, encoded))
        )

    version = journal.write(work, present).result()
    return StoredSetting(name, body, version, now, who)


def record_audit(journal: Database, who: str, action: str, subject: str, detail: Mapping[str, Any]) -> None:
    """Add an entry to the audit trail."""
    now = time.time()
    journal.write(
        lambda connection: _insert_audit(connection, now, who, action, subject, detail),
        lambda connection: bool(
            connection.execute(
                "SELECT 1 FROM audit WHERE at = ? AND subject = ? AND action = ?", (now, subject, action)
            )
        ),
    ).result()


def _insert_audit(
    connection: BackendConnection, at: float, who: str, action: str, subject: str, detail: Mapping[str, Any]
) -> None:
    connection.execute(
        "INSERT INTO audit (at, who, action, subject, detail) VALUES (?, ?, ?, ?, ?)",
        (at, who, action, subject, redacted(as_json(detail, action))),
    )


def audit_trail(journal: Database, *, subject: str | None = None, after: int = 0, limit: int = 100) -> list[AuditEntry]:
    """Return the audit entries of one subject or all, the newest first."""
    condition, values = ("AND subject = ?", [subject]) if subject is not None else ("", [])
    rows = journal.read(
        f"SELECT seq, at, who, action, subject, detail FROM audit WHERE seq > ? {condition} ORDER BY seq DESC LIMIT ?",  # noqa: S608  # our own words
        [after, *values, limit],
    )
    return [
        AuditEntry(seq, at, who, action, subject_, json.loads(detail))
        for seq, at, who, action, subject_, detail in rows
    ]
