"""Batch of changes to the read models: rows, which are replaced, and counts, which are added."""

from __future__ import annotations

from functools import cache
from operator import add
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.store.backends.port import BackendConnection

HOUR_SECONDS: Final = 3_600
DAY_SECONDS: Final = 86_400
MAX_MESSAGE_CHARS: Final = 500

# Tables of rows, each replaced as a whole, and tables of counts, which add up.
ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    "incident": (
        "id", "project", "session", "agent", "ladder", "policy", "parent", "request", "model", "first_model", "opened_at",
        "ended_at", "status", "reason", "attempts", "failures", "dollars", "own_dollars", "rung", "last_rung",
        "asks", "escalations", "pattern", "kind", "fingerprint", "message", "failed_at", "due_at", "touched_at",
        "orders",
    ),
    "attempt": (
        "incident", "n", "number", "at", "seconds", "dollars", "project", "session", "model", "agent", "rung", "prompt",
        "ok", "kind", "rule", "phase", "tool", "fingerprint", "message", "error_type",
    ),
    "model_change": (
        "incident", "n", "at", "session", "project", "from_model", "to_model", "to_agent", "reason", "estimate", "dollars",
        "restored_at",
    ),
    "level": (
        "incident", "n", "place", "rung", "kind", "entered_at", "left_at", "tries", "seconds", "dollars", "result",
    ),
    "ask": (
        "incident", "n", "at", "project", "session", "question", "options", "estimate", "model", "state", "answer",
        "answered_at",
    ),
    "crash": ("incident", "n", "at", "project", "session", "what", "error"),
    "request": ("digest", "body", "size", "at"),
    "pattern": ("id", "text", "at"),
}  # fmt: skip
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "incident": ("id",), "attempt": ("incident", "n"), "model_change": ("incident", "n"), "ask": ("incident", "n"),
    "crash": ("incident", "n"), "level": ("incident", "n"), "request": ("digest",), "pattern": ("id",),
    "by_hour": ("hour", "project", "model", "tool", "kind"),
    "by_day": ("day", "project", "model", "tool", "kind"),
    "by_pattern": ("day", "project", "pattern"),
    "by_latency": ("day", "project", "model", "bucket"),
    "by_message": ("day", "project", "fingerprint"),
    "by_rung": ("day", "project", "kind", "rung", "prompt", "model"),
    "by_end": ("day", "project", "model", "kind", "status", "rung"),
    "by_error_type": ("hour", "project", "model", "kind", "error_type"),
    "remedy": ("project", "fingerprint", "rung", "prompt", "model"),
    "project": ("id",),
    "session_model": ("session", "model"),
    "failure_group": ("project", "fingerprint"),
    "session": ("id",),
}  # fmt: skip
COUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "by_hour": ("n", "seconds", "dollars"),
    "by_day": ("n", "seconds", "dollars"),
    "by_pattern": ("n", "failures", "dollars"),
    "by_latency": ("n",),
    "by_message": ("n",),
    "by_rung": ("tried", "saved", "seconds", "dollars"),
    "by_end": ("n", "recovery", "dollars", "asked", "asks", "escalated", "escalations", "assisted"),
    "by_error_type": ("n",),
    "remedy": ("tried", "worked", "tried_at", "worked_at"),
    "project": ("incidents", "attempts", "failures", "dollars", "began_at", "touched_at"),
    "session_model": ("attempts", "failures", "dollars", "touched_at"),
}
MIN_COLUMNS: Final = frozenset({"began_at"})  # columns of counts that take the minimum instead of the sum
MAX_COLUMNS: Final = frozenset({"touched_at", "tried_at", "worked_at"})  # the maximum
# Tables all of whose columns are sums.
_SUM_TABLES: Final = frozenset(table for table, names in COUNTS.items() if not (MIN_COLUMNS | MAX_COLUMNS) & set(names))
READ_MODELS: Final = (*ROWS, *COUNTS, "failure_group", "session")
_KEY_WIDTHS: Final = {table: len(key) for table, key in KEYS.items()}


class AttemptBucket(NamedTuple):
    """Attempts that add to the same counts."""

    day: int
    hour: int
    project: str
    session: str
    model: str
    tool: str
    kind: str
    pattern: str
    bucket: int
    failed: bool


class ReadModelBatch:
    """Changes of a batch of events: rows by key, counts by key, failure groups and sessions."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[tuple[Any, ...], tuple[Any, ...]]] = {}
        self.counts: dict[str, dict[tuple[Any, ...], list[float]]] = {}
        self.groups: dict[tuple[str, str], list[Any]] = {}
        self.sessions: dict[str, list[Any]] = {}
        # Per bucket: number, seconds, dollars, and the times of the first and last attempt.
        self.attempts: dict[AttemptBucket, list[float]] = {}

    def attempt(self, bucket: AttemptBucket, seconds: float, dollars: float, at: float) -> None:
        """Add one attempt to its bucket; buckets are added to the counts once, when the batch is written."""
        amounts = self.attempts.get(bucket)
        if amounts is None:
            self.attempts[bucket] = [1, seconds, dollars, at, at]
            return
        amounts[0] += 1
        amounts[1] += seconds
        amounts[2] += dollars
        if at < amounts[3]:
            amounts[3] = at
        elif at > amounts[4]:
            amounts[4] = at

    def charge(self, bucket: AttemptBucket, dollars: float, at: float) -> None:
        """Add a cost to the bucket of an attempt that ended then and is counted already."""
        amounts = self.attempts.setdefault(bucket, [0, 0.0, 0.0, at, at])
        amounts[2] += dollars

    def _count_attempts(self) -> None:
        attempts, self.attempts = self.attempts, {}
        for bucket, (n, seconds, dollars, first, last) in attempts.items():
            day, hour, project, session, model, tool, kind, pattern, latency, failed = bucket
            failures = n if failed else 0
            self.add("by_hour", (hour, project, model, tool, kind), n, seconds, dollars)
            self.add("by_day", (day, project, model, tool, kind), n, seconds, dollars)
            self.add("by_pattern", (day, project, pattern), n, failures, dollars)
            self.add("by_latency", (day, project, model, latency), n)
            self.add("project", (project,), 0, n, failures, dollars, first, last)
            if session:
                self.add("session_model", (session, model), n, failures, dollars, last)

    def put(self, table: str, *row: Any) -> None:
        """Set a row; it replaces one with the same key."""
        rows = self.rows.get(table)
        if rows is None:
            rows = self.rows[table] = {}
        rows[row[: _KEY_WIDTHS[table]]] = row

    def add(self, table: str, key: tuple[Any, ...], *amounts: float) -> None:
        """Add amounts to the counts of a key."""
        counts = self.counts.get(table)
        if counts is None:
            counts = self.counts[table] = {}
        current = counts.get(key)
        if current is None:
            counts[key] = list(amounts)
        elif table in _SUM_TABLES:
            counts[key] = list(map(add, current, amounts))
        else:
            counts[key] = [merge(one, more) for merge, one, more in zip(_merges(table), current, amounts, strict=True)]

    def group(
        self, key: tuple[str, str], kind: str, message: str, example: str, first: float, last: float, count: int
    ) -> None:
        """Add occurrences of a failure to its group."""
        group = self.groups.get(key)
        if group is None:
            self.groups[key] = [kind, message, example, first, last, count]
            return
        if last > group[4]:
            group[2], group[4] = example, last
        group[3], group[5] = min(group[3], first), group[5] + count

    def session(self, name: str, *values: Any) -> None:
        """Update a session; values are in the order of its columns after the id. An empty text changes nothing."""
        current = self.sessions.get(name)
        if current is None:
            self.sessions[name] = list(values)
            return
        if values[_MODEL] and values[_MODEL] != current[_MODEL]:
            current[_FORMER] = current[_MODEL] or current[_FORMER]
        if values[_FORMER]:
            current[_FORMER] = values[_FORMER]
        for index, text in enumerate(values[:_TEXTS]):
            if text and index != _FORMER:
                current[index] = text
        began, touched = _TEXTS, _TEXTS + 1
        current[began], current[touched] = min(current[began], values[began]), max(current[touched], values[touched])
        for index in range(touched + 1, len(current)):
            current[index] += values[index]

    def write(self, connection: BackendConnection) -> None:
        """Write all changes to the tables."""
        self._count_attempts()
        for table, rows in self.rows.items():
            connection.executemany(_upsert_row(table), list(rows.values()))
        for table, counts in self.counts.items():
            connection.executemany(upsert_counts(table), [(*key, *amounts) for key, amounts in counts.items()])
        connection.executemany(_UPSERT_GROUP, [(*key, *values) for key, values in self.groups.items()])
        connection.executemany(_UPSERT_SESSION, [(name, *values) for name, values in self.sessions.items()])


@cache
def _upsert_row(table: str) -> str:
    columns = ROWS[table]
    values = ", ".join("?" * len(columns))
    updates = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in KEYS[table])
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"  # noqa: S608  # our own names
        f" ON CONFLICT ({', '.join(KEYS[table])}) DO UPDATE SET {updates}"
    )


@cache
def _merges(table: str) -> tuple[Callable[[float, float], float], ...]:
    """Return the function that merges each count of a table with its current value."""
    return tuple(min if name in MIN_COLUMNS else max if name in MAX_COLUMNS else add for name in COUNTS[table])


@cache
def upsert_counts(table: str) -> str:
    """Return the statement that inserts counts or adds them to the current row."""
    columns = (*KEYS[table], *COUNTS[table])
    values = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values}){on_conflict(table)}"  # noqa: S608  # our own names


@cache
def on_conflict(table: str) -> str:
    """Return the clause that merges counts into an existing row."""
    updates = ", ".join(f"{name} = {_merge_expression(table, name)}" for name in COUNTS[table])
    return f" ON CONFLICT ({', '.join(KEYS[table])}) DO UPDATE SET {updates}"


def _merge_expression(table: str, name: str) -> str:
    ours, new = f"{table}.{name}", f"excluded.{name}"
    if name in MIN_COLUMNS or name in MAX_COLUMNS:
        sign = "<" if name in MIN_COLUMNS else ">"
        return f"CASE WHEN {new} {sign} {ours} THEN {new} ELSE {ours} END"
    return f"{ours} + {new}"


_UPSERT_GROUP: Final = """
    INSERT INTO failure_group (project, fingerprint, kind, message, example, first_at, last_at, count)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (project, fingerprint) DO UPDATE SET
      first_at = CASE WHEN excluded.first_at < failure_group.first_at THEN excluded.first_at ELSE failure_group.first_at END,
      last_at = CASE WHEN excluded.last_at > failure_group.last_at THEN excluded.last_at ELSE failure_group.last_at END,
      example = CASE WHEN excluded.last_at > failure_group.last_at THEN excluded.example ELSE failure_group.example END,
      count = failure_group.count + excluded.count"""
SESSION_COLUMNS: Final = (
    "id", "project", "agent", "model", "former", "status", "kind", "message", "began_at", "touched_at", "incidents",
    "attempts", "failures", "dollars",
)  # fmt: skip
_MODEL, _FORMER, _TEXTS = 2, 3, 7  # indexes into the values of `session`; _TEXTS is the number of text columns
_UPSERT_SESSION: Final = f"""
    INSERT INTO session ({", ".join(SESSION_COLUMNS)}) VALUES ({", ".join("?" * len(SESSION_COLUMNS))})
    ON CONFLICT (id) DO UPDATE SET
      {
    ", ".join(
        f"{name} = CASE WHEN excluded.{name} <> '' THEN excluded.{name} ELSE session.{name} END"
        for name in ("project", "agent", "model", "status", "kind", "message")
    )
},
      former = CASE WHEN excluded.former <> '' THEN excluded.former
                    WHEN excluded.model <> '' AND excluded.model <> session.model AND session.model <> ''
                    THEN session.model ELSE session.former END,
      began_at = CASE WHEN excluded.began_at < session.began_at THEN excluded.began_at ELSE session.began_at END,
      touched_at = CASE WHEN excluded.touched_at > session.touched_at THEN excluded.touched_at ELSE session.touched_at END,
      {", ".join(f"{name} = session.{name} + excluded.{name}" for name in SESSION_COLUMNS[10:])}"""  # noqa: S608  # our own names
