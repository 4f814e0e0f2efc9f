"""What is read off the events: rows that describe, and counts that add up. Nothing here is a source of truth."""

from __future__ import annotations

import json
from functools import cache
from math import log2
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core import events as ev
from rung.core.failures import Phase
from rung.core.incident import Incident

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rung.core.failures import Failure
    from rung.core.request import Request
    from rung.store.port import Connection

HOUR: Final = 3_600
DAY: Final = 86_400
MESSAGE: Final = 500

# Tables whose rows stand for themselves (one is replaced as a whole), and tables of counts (which add up).
ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    "incident": (
        "id", "project", "session", "agent", "ladder", "policy", "parent", "request", "model", "first_model", "opened_at",
        "ended_at", "status", "reason", "attempts", "failures", "dollars", "rung", "kind", "fingerprint", "message",
        "failed_at", "touched_at",
    ),
    "attempt": (
        "incident", "n", "number", "at", "seconds", "dollars", "project", "session", "model", "agent", "rung", "prompt",
        "ok", "kind", "rule", "phase", "fingerprint", "message",
    ),
    "model_change": (
        "incident", "n", "at", "session", "project", "from_model", "to_model", "to_agent", "reason", "estimate", "dollars",
    ),
    "ask": ("incident", "n", "at", "project", "question", "options", "answer", "answered_at"),
    "crash": ("incident", "n", "at", "what", "error"),
    "request": ("digest", "body", "size", "at"),
}  # fmt: skip
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "incident": ("id",), "attempt": ("incident", "n"), "model_change": ("incident", "n"), "ask": ("incident", "n"),
    "crash": ("incident", "n"), "request": ("digest",),
    "by_hour": ("hour", "project", "model", "tool", "kind"),
    "by_latency": ("day", "project", "model", "bucket"),
    "by_message": ("day", "project", "fingerprint"),
    "by_rung": ("day", "project", "kind", "rung", "prompt", "model"),
    "by_end": ("day", "project", "kind", "status"),
    "failure_group": ("project", "fingerprint"),
    "session": ("id",),
}  # fmt: skip
COUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "by_hour": ("n", "seconds", "dollars"),
    "by_latency": ("n",),
    "by_message": ("n",),
    "by_rung": ("tried", "saved", "seconds", "dollars"),
    "by_end": ("n", "recovery", "dollars", "asked", "escalated"),
}
READ_MODELS: Final = (*ROWS, *COUNTS, "failure_group", "session")
_WIDTHS: Final = {table: len(key) for table, key in KEYS.items()}


class Changes:
    """What a number of events change: rows by key, counts by key, groups and sessions."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[tuple[Any, ...], tuple[Any, ...]]] = {}
        self.counts: dict[str, dict[tuple[Any, ...], list[float]]] = {}
        self.groups: dict[tuple[str, str], list[Any]] = {}
        self.sessions: dict[str, list[Any]] = {}

    def put(self, table: str, *row: Any) -> None:
        """This row, instead of one with the same key."""
        self.rows.setdefault(table, {})[row[: _WIDTHS[table]]] = row

    def add(self, table: str, key: tuple[Any, ...], *amounts: float) -> None:
        """So much more."""
        counts = self.counts.setdefault(table, {})
        known = counts.get(key)
        counts[key] = list(amounts) if known is None else [one + more for one, more in zip(known, amounts, strict=True)]

    def take(self, other: Changes) -> None:
        """Add another's changes to these."""
        for table, rows in other.rows.items():
            self.rows.setdefault(table, {}).update(rows)
        for table, counts in other.counts.items():
            for key, amounts in counts.items():
                self.add(table, key, *amounts)
        for group, seen in other.groups.items():
            self.group(group, *seen)
        for session, told in other.sessions.items():
            self.session(session, *told)

    def group(
        self, key: tuple[str, str], kind: str, message: str, example: str, first: float, last: float, count: int
    ) -> None:
        """A failure of this fingerprint was seen."""
        known = self.groups.get(key)
        if known is None:
            self.groups[key] = [kind, message, example, first, last, count]
            return
        if last > known[4]:
            known[2], known[4] = example, last
        known[3], known[5] = min(known[3], first), known[5] + count

    def session(self, name: str, *told: Any) -> None:
        """What happened in a session: project, agent, model, former, status, began, touched, and four numbers."""
        known = self.sessions.get(name)
        if known is None:
            self.sessions[name] = list(told)
            return
        former = known[2] if told[2] != known[2] else told[3] or known[3]
        known[:5] = [told[0], told[1], told[2], former, told[4] or known[4]]
        known[5:7] = [min(known[5], told[5]), max(known[6], told[6])]
        for index in range(7, 11):
            known[index] += told[index]

    def write(self, connection: Connection) -> None:
        """Bring the tables up to date."""
        for table, rows in self.rows.items():
            connection.many(_replacing(table), list(rows.values()))
        for table, counts in self.counts.items():
            connection.many(_adding(table), [(*key, *amounts) for key, amounts in counts.items()])
        connection.many(_GROUPING, [(*key, *seen) for key, seen in self.groups.items()])
        connection.many(_SESSION, [(name, *told) for name, told in self.sessions.items()])


@cache
def _replacing(table: str) -> str:
    columns = ROWS[table]
    values = ", ".join("?" * len(columns))
    updates = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in KEYS[table])
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"  # noqa: S608  # our own names
        f" ON CONFLICT ({', '.join(KEYS[table])}) DO UPDATE SET {updates}"
    )


@cache
def _adding(table: str) -> str:
    columns = (*KEYS[table], *COUNTS[table])
    values = ", ".join("?" * len(columns))
    updates = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in COUNTS[table])
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"  # noqa: S608  # our own names
        f" ON CONFLICT ({', '.join(KEYS[table])}) DO UPDATE SET {updates}"
    )


_GROUPING: Final = """
    INSERT INTO failure_group (project, fingerprint, kind, message, example, first_at, last_at, count)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (project, fingerprint) DO UPDATE SET
      last_at = CASE WHEN excluded.last_at > failure_group.last_at THEN excluded.last_at ELSE failure_group.last_at END,
      example = CASE WHEN excluded.last_at > failure_group.last_at THEN excluded.example ELSE failure_group.example END,
      count = failure_group.count + excluded.count"""
_SESSION: Final = """
    INSERT INTO session (id, project, agent, model, former, status, began_at, touched_at, incidents, attempts, failures, dollars)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET
      project = excluded.project, agent = excluded.agent,
      former = CASE WHEN excluded.model <> session.model THEN session.model
                    WHEN excluded.former <> '' THEN excluded.former ELSE session.former END,
      model = excluded.model,
      status = CASE WHEN excluded.status <> '' THEN excluded.status ELSE session.status END,
      touched_at = excluded.touched_at, incidents = session.incidents + excluded.incidents,
      attempts = session.attempts + excluded.attempts, failures = session.failures + excluded.failures,
      dollars = session.dollars + excluded.dollars"""


class Story:
    """One incident as it unfolds: what a row about it needs that a single event does not say."""

    def __init__(self) -> None:
        self.incident = Incident()
        self.failures = 0
        self.first: Failure | None = None
        self.mark = ""  # its fingerprint, which is not made for every row again
        self.digest = ""  # of the first request: the same
        self.failed_at: float | None = None
        self.touched_at = 0.0
        self.ended_at: float | None = None
        self.rungs: tuple[str, ...] = ()
        self.prompt = ""
        self.asked: tuple[int, float, ev.Ask] | None = None
        self.asks = 0
        self.handed: list[Any] | None = None  # the row of the hand-over in force
        self.escalated = 0
        self.opened: ev.Opened | None = None

    def take(self, n: int, event: ev.Event, changes: Changes, keep: Callable[[Request, str, float], object]) -> None:
        """One more event: fold it, and say what it changes. `keep` stores a request."""
        before = self.incident.request
        self.incident.fold(event)
        self.touched_at = event.at
        if isinstance(event, ev.Opened):
            self.opened = event
            self._about_session(changes, event.at, incidents=1)
            if event.request is not None:
                (self.digest,) = self.incident.digests
                keep(event.request, self.digest, event.at)
        elif isinstance(event, ev.AttemptFailed):
            self._failed(n, event, changes)
        elif isinstance(event, ev.AttemptSucceeded):
            self._succeeded(n, event, changes)
        elif isinstance(event, ev.Decided):
            self._decided(n, event, changes, before.model if before is not None else "")
        elif isinstance(event, ev.Changed):
            self.prompt = event.prompt
            keep(event.request, event.digest, event.at)
        elif isinstance(event, ev.Answered) and self.asked is not None:
            self._asked(changes, event.option, event.at)
        elif isinstance(event, ev.Crashed):
            changes.put("crash", self.incident.id, n, event.at, event.what, event.error[:MESSAGE])
        elif isinstance(event, ev.Closed | ev.Cancelled):
            self._ended(event.at, changes)

    def put_row(self, changes: Changes) -> None:
        """The row about it, as it is now: once for all events that are told together."""
        changes.put("incident", *self._row())

    # -- one kind of event each -----------------------------------------------------------------------

    def _failed(self, n: int, event: ev.AttemptFailed, changes: Changes) -> None:
        failure = event.failure
        mark = failure.fingerprint
        if self.first is None:
            self.first, self.mark, self.failed_at = failure, mark, event.at
        self.failures += 1
        tool = "tool" if failure.evidence.phase is Phase.TOOL else ""
        self._attempt(n, event, changes, failure, mark)
        day, project = int(event.at // DAY), self.project
        changes.add(
            "by_hour",
            (int(event.at // HOUR), project, self.model, tool, failure.kind.value),
            1,
            event.seconds,
            event.dollars,
        )
        changes.add("by_message", (day, project, mark), 1)
        changes.group(
            (project, mark), failure.kind.value, failure.message[:MESSAGE], self.incident.id, event.at, event.at, 1
        )
        self._about_session(changes, event.at, attempts=int(event.made), failures=1, dollars=event.dollars)

    def _succeeded(self, n: int, event: ev.AttemptSucceeded, changes: Changes) -> None:
        self._attempt(n, event, changes, None, "")
        changes.add(
            "by_hour", (int(event.at // HOUR), self.project, self.model, "", ""), 1, event.seconds, event.dollars
        )
        self._about_session(changes, event.at, attempts=1, dollars=event.dollars)
        self._ended(event.at, changes)

    def _attempt(
        self,
        n: int,
        event: ev.AttemptFailed | ev.AttemptSucceeded,
        changes: Changes,
        failure: Failure | None,
        mark: str,
    ) -> None:
        incident = self.incident
        rung = self.rungs[-1] if self.rungs else ""
        changes.put(
            "attempt", incident.id, n, incident.attempts, event.at, event.seconds, event.dollars, self.project, self.session,
            self.model, self.agent, rung, self.prompt, int(failure is None), failure.kind.value if failure else "",
            failure.rule if failure else "", failure.evidence.phase.value if failure else "", mark,
            failure.message[:MESSAGE] if failure else "",
        )  # fmt: skip
        bucket = round(4 * log2(max(event.seconds * 1_000, 1)))
        changes.add("by_latency", (int(event.at // DAY), self.project, self.model, bucket), 1)
        if rung and self.first is not None:
            key = (int(event.at // DAY), self.project, self.first.kind.value, rung, self.prompt, self.model)
            changes.add("by_rung", key, 1, int(failure is None), event.seconds, event.dollars)
        if self.handed is not None:
            self.handed[-1] += event.dollars
            changes.put("model_change", *self.handed)

    def _decided(self, n: int, event: ev.Decided, changes: Changes, model: str) -> None:
        decision = event.decision
        if isinstance(decision, ev.Finish):
            return
        if isinstance(decision, ev.Ask):
            self.asked, self.asks = (n, event.at, decision), self.asks + 1
            self._asked(changes, "", None)
            return
        names = self.incident.terms.rungs
        self.rungs = (*self.rungs, names[decision.rung] if decision.rung < len(names) else str(decision.rung))
        if isinstance(decision, ev.HandOver):
            self.escalated += 1
            self.handed = [
                self.incident.id, n, event.at, self.session, self.project, model, decision.model or model, decision.agent,
                decision.reason, decision.estimate, 0.0,
            ]  # fmt: skip
            changes.put("model_change", *self.handed)

    def _asked(self, changes: Changes, answer: str, at: float | None) -> None:
        if self.asked is not None:
            n, asked_at, ask = self.asked
            options = json.dumps([list(option) for option in ask.options], ensure_ascii=False)
            changes.put("ask", self.incident.id, n, asked_at, self.project, ask.question, options, answer, at)

    def _ended(self, at: float, changes: Changes) -> None:
        self.ended_at = at
        kind = self.first.kind.value if self.first is not None else ""
        took = at - self.failed_at if self.failed_at is not None else 0.0
        status = self.incident.status.value if self.incident.status is not None else ""
        key = (int(at // DAY), self.project, kind, status)
        changes.add("by_end", key, 1, took, self.incident.dollars, self.asks, self.escalated)
        self._about_session(changes, at, status=status)

    def _about_session(
        self, changes: Changes, at: float, *, status: str = "", incidents: int = 0, attempts: int = 0, failures: int = 0, dollars: float = 0.0
    ) -> None:  # fmt: skip
        if self.session:
            changes.session(
                self.session,
                self.project,
                self.agent,
                self.model,
                "",
                status,
                at,
                at,
                incidents,
                attempts,
                failures,
                dollars,
            )

    # -- what it is about -----------------------------------------------------------------------------

    @property
    def project(self) -> str:
        """Whose it is."""
        return self.incident.terms.project

    @property
    def session(self) -> str:
        """In which session of an agent."""
        return self.incident.terms.session

    @property
    def model(self) -> str:
        """The model at work."""
        return self.incident.request.model if self.incident.request is not None else ""

    @property
    def agent(self) -> str:
        """The agent at work."""
        return self.incident.request.agent if self.incident.request is not None else ""

    def _row(self) -> tuple[Any, ...]:
        incident, first = self.incident, self.first
        origin = incident.origin
        return (
            incident.id, self.project, self.session, self.agent, incident.terms.ladder, incident.terms.policy, incident.parent,
            self.digest, self.model, origin.model if origin is not None else "",
            incident.opened_at, self.ended_at, incident.status.value if incident.status is not None else "open", incident.reason,
            incident.attempts, self.failures, incident.dollars, self.rungs[-1] if self.rungs else "",
            first.kind.value if first is not None else "", self.mark,
            first.message[:MESSAGE] if first is not None else "", self.failed_at, self.touched_at,
        )  # fmt: skip


class Told(NamedTuple):
    """An event with its place."""

    incident: str
    n: int
    event: ev.Event


def replay(events: Iterable[Told], keep: Callable[[Request, str, float, Changes], object]) -> Changes:
    """All that can be read off these events, which are all there are, in their order."""
    changes = Changes()
    stories: dict[str, Story] = {}
    for incident, n, event in events:
        story = stories.setdefault(incident, Story())
        story.take(n, event, changes, lambda request, digest, at: keep(request, digest, at, changes))
        if story.ended_at is not None:
            stories.pop(incident).put_row(changes)
    for story in stories.values():
        story.put_row(changes)
    return changes
