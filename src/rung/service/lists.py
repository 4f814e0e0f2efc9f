"""Lists that go on: filtered, sorted, and paged by the last row seen, so that new rows shift nothing."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.errors import ConfigError

if TYPE_CHECKING:
    from rung.store.journal import Journal
    from rung.store.port import Row

OPEN: Final = "EXISTS (SELECT 1 FROM incident i WHERE i.session = session.id AND i.status = 'open')"
ASKING: Final = """EXISTS (SELECT 1 FROM incident i JOIN ask a ON a.incident = i.id
                    WHERE i.session = session.id AND i.status = 'open' AND a.answer = '')"""
SESSION: Final = (
    "id", "project", "agent", "model", "former", "status", "began_at", "touched_at", "incidents", "attempts",
    "failures", "dollars",
)  # fmt: skip
INCIDENT: Final = (
    "id", "project", "session", "agent", "model", "first_model", "ladder", "policy", "status", "reason", "opened_at",
    "ended_at", "attempts", "failures", "dollars", "rung", "kind", "fingerprint", "message", "parent",
)  # fmt: skip
SORTS: Final = {
    "touched": "touched_at",
    "began": "began_at",
    "failures": "failures",
    "attempts": "attempts",
    "cost": "dollars",
}
STATUSES: Final = ("active", "waiting", "succeeded", "recovered", "partial", "blocked", "failed")
COUNTED: Final = 10_001  # more than so many are not counted


class Page(NamedTuple):
    """Some rows, where the next ones begin, and how many there are in all (at most COUNTED)."""

    rows: list[Row]
    cursor: str | None
    total: int


class Where(NamedTuple):
    """Terms that all hold, and their values."""

    terms: list[str]
    values: list[Any]

    def add(self, term: str, *values: Any) -> None:
        """One more."""
        self.terms.append(term)
        self.values.extend(values)


def sessions(
    journal: Journal,
    *,
    status: str = "",
    project: str | None = None,
    model: str = "",
    q: str = "",
    sort: str = "touched",
    cursor: str | None = None,
    limit: int = 50,
) -> Page:
    """The sessions, as the reader wants to see them."""
    if status and status not in STATUSES:
        raise ConfigError("status", status, "one of " + ", ".join(STATUSES))
    if sort not in SORTS:
        raise ConfigError("sort", sort, "one of " + ", ".join(SORTS))
    where = Where([], [])
    if status == "active":
        where.add(OPEN)
    elif status == "waiting":
        where.add(ASKING)
    elif status:
        where.add(f"status = ? AND NOT {OPEN}", status)
    if project is not None:
        where.add("project = ?", project)
    if model:
        where.add("model = ?", model)
    if q:
        like = _like(q)
        message = "(SELECT i.message FROM incident i WHERE i.session = session.id AND i.kind <> '' ORDER BY i.opened_at DESC LIMIT 1)"
        columns = ("id", "project", "agent", "model", f"COALESCE({message}, '')")
        where.add(
            "(" + " OR ".join(f"LOWER({column}) LIKE ? ESCAPE '\\'" for column in columns) + ")", *[like] * len(columns)
        )
    return _page(journal, "session", SESSION, SORTS[sort], where, cursor, limit)


def incidents(
    journal: Journal,
    *,
    status: str = "",
    project: str | None = None,
    session: str = "",
    model: str = "",
    kind: str = "",
    rung: str = "",
    fingerprint: str = "",
    q: str = "",
    since: float | None = None,
    until: float | None = None,
    troubled: bool = False,
    cursor: str | None = None,
    limit: int = 50,
) -> Page:
    """The incidents, the latest first."""
    where = Where([], [])
    for term, value in (
        ("status = ?", status),
        ("session = ?", session),
        ("kind = ?", kind),
        ("rung = ?", rung),
        ("fingerprint = ?", fingerprint),
    ):
        if value:
            where.add(term, value)
    if project is not None:
        where.add("project = ?", project)
    if model:
        where.add("(model = ? OR first_model = ?)", model, model)
    for term, moment in (("opened_at >= ?", since), ("opened_at < ?", until)):
        if moment is not None:
            where.add(term, moment)
    if troubled:
        where.add("kind <> ''")
    if q:
        columns = ("id", "session", "message", "kind")
        where.add(
            "(" + " OR ".join(f"LOWER({column}) LIKE ? ESCAPE '\\'" for column in columns) + ")",
            *[_like(q)] * len(columns),
        )
    return _page(journal, "incident", INCIDENT, "opened_at", where, cursor, limit)


def _page(
    journal: Journal, table: str, columns: tuple[str, ...], by: str, where: Where, cursor: str | None, limit: int
) -> Page:
    counted = f"SELECT 1 FROM {table}{_clause(where)} LIMIT {COUNTED}"  # noqa: S608  # our own names
    ((total,),) = journal.read(f"SELECT count(*) FROM ({counted}) AS rows_found", where.values)  # noqa: S608  # our own names
    if cursor is not None:
        value, name = _read_cursor(cursor)
        where.add(f"({by} < ? OR ({by} = ? AND id > ?))", value, value, name)
    rows = journal.read(
        f"SELECT {', '.join(columns)} FROM {table}{_clause(where)} ORDER BY {by} DESC, id LIMIT ?",  # noqa: S608  # our own names
        [*where.values, limit + 1],
    )
    more = len(rows) > limit
    rows = rows[:limit]
    after = _cursor(rows[-1][columns.index(by)], rows[-1][0]) if more and rows else None
    return Page(rows, after, int(total))


def _clause(where: Where) -> str:
    return " WHERE " + " AND ".join(where.terms) if where.terms else ""


def _like(text: str) -> str:
    plain = text.lower()
    for sign in ("\\", "%", "_"):
        plain = plain.replace(sign, "\\" + sign)
    return f"%{plain}%"


def _cursor(value: float, name: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([value, name]).encode()).decode().rstrip("=")


def _read_cursor(cursor: str) -> tuple[float, str]:
    try:
        told = json.loads(base64.urlsafe_b64decode(cursor.encode("ascii") + b"=="))
        value, name = told
    except (ValueError, binascii.Error, UnicodeError, TypeError):
        raise ConfigError("cursor", cursor, "what an earlier page gave as nextCursor") from None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isinstance(name, str):
        raise ConfigError("cursor", cursor, "what an earlier page gave as nextCursor")
    return value, name
